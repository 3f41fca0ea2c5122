//! Names that are meant for something else: terminals, web pages, spreadsheets, shells.

use super::{Case, file};

pub(super) fn cases() -> Vec<Case> {
    let csv = |name, text: &str, command: &str, words: &[&'static str]| {
        file(name, "x.csv", text, command, words)
    };
    vec![
        csv(
            "a colour in a column",
            "a,\u{1b}[31mred,label\n1,oops,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["\\u{1b}[31mred"],
        ),
        csv(
            "a cleared screen in a cell",
            "a,b,label\n1,\u{1b}[2J,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["\\u{1b}[2J"],
        ),
        csv(
            "a forged line in a class",
            "a,label\n1,\"x\nmtmkl: all is well\"\n2,\"x\nmtmkl: all is well\"\n",
            "fit x.csv --target label",
            &["one value only", "x\\nmtmkl: all is well"],
        ),
        csv(
            "text turned around in a task",
            "a,site,label\n1,\u{202e}live,x\n2,\u{202e}live,x\n1,b,y\n3,b,x\n",
            "fit x.csv --target label --task site",
            &["\\u{202e}live"],
        ),
        csv(
            "a title for the terminal in a column",
            "a,\u{1b}]0;owned\u{7},label\n1,oops,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["\\u{1b}]0;owned\\u{7}"],
        ),
        csv(
            "an eight-bit command in a cell",
            "a,b,label\n1,\u{9b}31m,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["\\u{9b}31m"],
        ),
        csv(
            "a script in a column",
            "a,<script>alert(1)</script>,label\n1,oops,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["<script>alert(1)</script>"],
        ),
        csv(
            "a formula in a column",
            "a,=cmd|' /C calc'!A0,label\n1,oops,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["=cmd|' /C calc'!A0"],
        ),
        csv(
            "a shell's words in a column",
            "a,$(rm -rf ~),label\n1,oops,x\n3,2,y\n5,1,x\n",
            "fit x.csv --target label",
            &["$(rm -rf ~)"],
        ),
        csv(
            "a very long name",
            &format!("a,{},label\n1,oops,x\n3,2,y\n5,1,x\n", "n".repeat(100_000)),
            "fit x.csv --target label",
            &["oops"],
        ),
        file(
            "a colour in a kernel matrix",
            "k.csv",
            "\u{1b}[31m,\u{1b}[32m\n1,\u{1b}[33m\n",
            "fit two.csv --target label --kernel precomputed:path=k.csv",
            &["k.csv"],
        ),
        file(
            "a colour in LIBSVM",
            "x.svm",
            "1 1:\u{1b}[31m\n-1 1:2\n",
            "fit x.svm",
            &["\\u{1b}[31m"],
        ),
    ]
}
