//! Everything that can be wrong, and what the program says about it. Read the snapshots as the person who gets the message.

use std::io::Read;
use std::process::Stdio;

use crate::fixture::{Folder, Transcript, finished, three_classes, two_classes, two_tasks};

/// A model to misuse, fitted on `two.csv`; and one with tasks, on `tasks.csv`.
fn models() -> Folder {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(24))
        .file("tasks.csv", two_tasks(40));
    folder
        .run("fit two.csv --target label --kernel linear --kernel rbf -o two.model")
        .good();
    folder
        .run("fit tasks.csv --target label --task site --kernel linear --kernel rbf -o tasks.model")
        .good();
    folder
}

#[test]
fn files_that_cannot_be_read() {
    let folder = models();
    folder
        .file("empty.csv", "")
        .file("header.csv", "a,b,label\n")
        .file("nothing.model", "")
        .file("model.toml", "C = 1\n");
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit nowhere.csv --target label")
        .bad("fit two.cvs --target label")
        .bad("fit . --target label")
        .bad("fit empty.csv --target label")
        .bad("fit header.csv --target label")
        .bad("fit")
        .bad("fit two.csv --target label --test nowhere.csv")
        .bad("predict nowhere.model two.csv")
        .bad("predict two.model nowhere.csv")
        .bad("evaluate two.model empty.csv")
        .bad("inspect .")
        .bad("report nowhere.model");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn tables_that_do_not_hold_together() {
    let folder = Folder::new();
    folder
        .file("semicolon.csv", "a;b;label\n1;2;x\n3;4;y\n")
        .file("ragged.csv", "a,b,label\n1,2,x\n3,4\n5,6,y\n")
        .file("text.csv", "a,b,label\n1,2,x\n3,oops,y\n5,6,y\n")
        .file("comma.csv", "a;b;label\n1,5;2;x\n3;4;y\n")
        .file("infinite.csv", "a,b,label\n1,2,x\n3,1e999,y\n")
        .file("quote.csv", "a,b,label\n1,\"2,x\n3,4,y\n")
        .file("twice.csv", "a,a,label\n1,2,x\n3,4,y\n")
        .file("no_header.csv", "1,2,x\n3,4,y\n5,6,x\n")
        .file("latin.csv", b"a,b,label\n1,2,caf\xe9\n3,4,y\n")
        .file("bad.svm", "1 1:2 2:x\n-1 1:3\n")
        .file("vast.svm", "1 1:2\n-1 5000000000:3\n")
        .file("kernel.svm", "1 0:1 1:2 2:0\n-1 0:2 1:0 2:2\n");
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit semicolon.csv --target label --delimiter ,")
        .bad("fit semicolon.csv --target label --delimiter ab")
        .bad("fit semicolon.csv --target label --format xlsx")
        .bad("fit ragged.csv --target label")
        .bad("fit text.csv --target label")
        .bad("fit comma.csv --target label")
        .bad("fit infinite.csv --target label")
        .bad("fit quote.csv --target label")
        .bad("fit twice.csv --target label")
        .bad("fit no_header.csv --target label")
        .bad("fit latin.csv --target label")
        .bad("fit bad.svm")
        .bad("fit vast.svm")
        .bad("fit kernel.svm");
    insta::assert_snapshot!(shown.text());
    folder
        .run("fit kernel.svm --kernel precomputed:path=kernel.svm")
        .good();
    // Detected, where nobody insists on another delimiter.
    folder.run("fit semicolon.csv --target label").good();
    folder
        .run("fit no_header.csv --target f3 --no-header")
        .good();
}

#[test]
fn targets_and_tasks() {
    let folder = models();
    folder
        .file("one.csv", "a,b,label\n1,2,x\n3,1,x\n5,6,x\n")
        .file("three.csv", three_classes(30))
        .file("lone.csv", "t,a,label\nu,1,x\nu,2,y\nv,5,x\nv,2,x\n")
        .file("many.csv", "a,y\n1,0.5\n2,0.7\n3,0.9\n4,1.3\n")
        .file("minus.csv", "a,w,label\n1,1,x\n2,1,y\n5,-1,x\n2,1,y\n")
        .file("only.csv", "id,label\nr1,x\nr2,y\n");
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit two.csv")
        .bad("fit two.csv --target labl")
        .bad("fit two.csv --target colour")
        .bad("fit tasks.csv --target label --task sites")
        .bad("fit one.csv --target label")
        .bad("fit three.csv --target kind --task a")
        .bad("fit lone.csv --target label --task t")
        .bad("fit many.csv --target y")
        .bad("fit two.csv --target label --machine krr")
        .bad("fit only.csv --target label --ignore id")
        .bad("fit two.csv --target label --features a,c")
        .bad("fit two.csv --target label --sample-weight label")
        .bad("fit minus.csv --target label --sample-weight w")
        .bad("fit two.csv --machine svdd --target label --sample-weight a")
        .bad("fit tasks.csv --target label --task site --sharing lp");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn categories_and_gaps_and_the_options_that_handle_them() {
    let folder = Folder::new();
    folder
        .file(
            "colour.csv",
            "a,colour,label\n1,red,x\n3,blue,y\n5,red,x\n2,green,y\n4,blue,x\n",
        )
        .file("gaps.csv", "a,b,label\n1,2,x\n,1,y\n5,,x\n2,2,y\n,4,x\n")
        .file("target.csv", "a,b,label\n1,2,x\n2,1,y\n5,1,\n2,2,y\n")
        .file("task.csv", "t,a,label\nu,1,x\nu,2,y\n,5,x\nv,2,y\nv,3,x\n")
        .file("weight.csv", "w,a,label\n1,1,x\n,2,y\n1,5,x\n1,2,y\n")
        .file(
            "shade.csv",
            "a,colour,label\n1,red,x\n3,,y\n5,blue,x\n2,red,y\n",
        )
        .file("hollow.csv", "a,b,label\n1,,x\n2,,y\n5,,x\n");
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit colour.csv --target label")
        .bad("fit gaps.csv --target label")
        .bad("fit target.csv --target label")
        .bad("fit task.csv --target label --task t")
        .bad("fit weight.csv --target label --sample-weight w")
        .bad("fit shade.csv --target label --one-hot colour")
        .bad("fit hollow.csv --target label --missing drop")
        .bad("fit hollow.csv --target label --missing mean")
        .bad("fit colour.csv --target label --one-hot color");
    for arguments in [
        "colour.csv --target label --one-hot colour",
        "colour.csv --target label --ignore colour",
        "gaps.csv --target label --missing drop",
        "gaps.csv --target label --missing mean",
        "target.csv --target label --missing drop",
        "task.csv --target label --task t --missing drop",
        "weight.csv --target label --sample-weight w --missing drop",
        "shade.csv --target label --one-hot colour --missing drop",
        "shade.csv --target label --one-hot colour --missing mean",
        "hollow.csv --target label --ignore b",
    ] {
        let ran = folder.run(&format!("fit {arguments} --kernel linear --json"));
        assert_eq!(ran.code, 0, "{arguments}: {}", ran.stderr);
        let rows: u64 = ran.json()["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["samples"].as_u64().unwrap())
            .sum();
        let note = ran.stderr.trim_end();
        shown.note(
            &format!("fit {arguments}"),
            &crate::fixture::Ran {
                code: 0,
                stdout: format!("({rows} rows learned from)\n"),
                stderr: if note.is_empty() {
                    String::new()
                } else {
                    format!("{note}\n")
                },
            },
        );
    }
    insta::assert_snapshot!(shown.text());
}

#[test]
fn kernels_machines_sharings_solvers() {
    let folder = models();
    let mut shown = Transcript::new(&folder);
    for flags in [
        "--kernel rbf@c",
        "--kernel rbf@lable",
        "--kernel linear@a..z",
        "--kernel linear@#7",
        "--kernel rbff",
        "--kernel rbf:sigm=2",
        "--kernel rbf:sigma=0",
        "--kernel rbf:sigma=1,2",
        "--kernel chi2",
        "--machine svm",
        "--machine gaussian-process",
        "--machine svdd --sharing pscs",
        "--machine svdd --C 0.001",
        "--machine ocsvm --nu 2",
        "--C 0",
        "--C -1",
        "--C=-1",
        "--epsilon -1 --machine svr --target a --ignore label",
        "--sharing pcs",
        "--sharing tang",
        "--sharing tang --beta -1",
        "--sharing box-simplex",
        "--sharing fixed",
        "--sharing fixed --weights 1,2",
        "--sharing fixed --weights 1,-2 --kernel linear --kernel rbf",
        "--sharing sum",
        "--sharing sum --term x",
        "--sharing sum --term common:ball",
        "--sharing sum --term group,r=1",
        "--sharing sum --term group,p=x",
        "--sharing sum --term common:lp-ball,p=0.5",
        "--p 0.5",
        "--radius 0",
        "--solver newtn",
        "--tol 0",
        "--tol -1",
        "--max-passes 0",
        "--time-limit -1",
        "--memory-limit 0",
        "--memory-limit 4e-6",
        "--test-fraction 2",
    ] {
        shown.bad(&format!("fit two.csv --target label {flags}"));
    }
    // Indefinite, and then allowed.
    shown.bad("fit two.csv --target label --kernel sigmoid:gamma=2,coef0=-1 --normalize false");
    shown.run("fit two.csv --target label --kernel sigmoid:gamma=2,coef0=-1 --normalize false --allow-indefinite");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn flags_that_clap_refuses() {
    let folder = models();
    let mut shown = Transcript::new(&folder);
    for arguments in [
        "fitt two.csv",
        "fit two.csv --nosuch",
        "fit two.csv --target",
        "fit two.csv --target label --tol small",
        "fit two.csv --target label --threads -1",
        "fit two.csv --target label --multiclass ov",
        "fit two.csv --target label --missing men",
        "fit two.csv --target label --scale log",
        "fit two.csv --target label --normalize maybe",
        "fit two.csv --target label --test two.csv --test-fraction 0.5",
        "predict two.model",
        "completions cmd",
    ] {
        shown.bad(arguments);
    }
    insta::assert_snapshot!(shown.text());
}

#[test]
fn predicting_for_rows_that_do_not_fit() {
    let folder = models();
    folder
        .file("fewer.csv", "a\n1\n2\n")
        .file("other.csv", "a,bb\n1,2\n")
        .file("text.csv", "a,b\n1,2\n3,many\n")
        .file("gap.csv", "a,b\n1,2\n3,\n")
        .file("west.csv", "site,a,b\nnorth,1,2\nwest,1,2\n")
        .file("nort.csv", "site,a,b\nnort,1,2\n")
        .file("nowhere.csv", "a,b\n1,2\n");
    folder
        .run("fit tasks.csv --target label --task site --kernel rbf --sharing independent -o own.model")
        .good();
    folder
        .run("fit two.csv --machine ocsvm --target label --kernel rbf -o one.model")
        .good();
    let mut shown = Transcript::new(&folder);
    shown
        .bad("predict two.model fewer.csv")
        .bad("predict two.model other.csv")
        .bad("predict two.model text.csv")
        .bad("predict two.model gap.csv")
        .bad("predict tasks.model nowhere.csv")
        .bad("predict tasks.model west.csv")
        .bad("predict tasks.model nort.csv")
        .bad("predict own.model west.csv")
        .bad("predict own.model west.csv --new-tasks")
        .bad("predict two.model two.csv --cross k1=two.csv")
        .bad("predict two.model two.csv --cross two.csv")
        .bad("evaluate two.model fewer.csv")
        .bad("evaluate two.model nowhere.csv")
        .bad("evaluate two.model two.csv --target a")
        .bad("evaluate two.model two.csv --json --cross k=nowhere.npy")
        .bad("evaluate one.model two.csv")
        .bad("fit tasks.csv --target label --task site --test west.csv");
    folder.file("west_label.csv", "site,a,b,label\nwest,1,2,yes\n");
    shown.bad("fit tasks.csv --target label --task site --test west_label.csv");
    // What the tasks share speaks for the new one.
    shown.run("predict tasks.model west.csv --new-tasks");
    insta::assert_snapshot!(shown.text());
}

#[test]
fn standard_input() {
    let folder = models();
    let table = two_classes(24);
    let ran = folder.run_with_input("fit - --target label --json", table.as_bytes());
    let from_file = folder.run("fit two.csv --target label --json").json();
    assert_eq!(ran.json()["tasks"], from_file["tasks"]);
    assert_eq!(
        folder
            .run_with_input("predict two.model -", table.as_bytes())
            .good(),
        folder.run("predict two.model two.csv").good()
    );
    let mut shown = Transcript::new(&folder);
    for (arguments, input) in [
        ("fit - --target label", ""),
        ("fit - --target label", "a,b,label\n1,x,p\n2,3,q\n"),
        ("predict two.model -", "a,c\n1,2\n"),
    ] {
        let ran = folder.run_with_input(arguments, input.as_bytes());
        assert_eq!(ran.code, 2);
        shown.note(arguments, &ran);
    }
    insta::assert_snapshot!(shown.text());
}

/// The reader goes away: a quiet success.
#[test]
fn closed_pipe() {
    let folder = models();
    for arguments in [
        "fit two.csv --target label -o again.model",
        "fit two.csv --target label --json",
        "predict two.model two.csv",
        "evaluate two.model two.csv",
        "inspect two.model",
        "demo",
        "--help",
        "fit --help",
        "completions bash",
        "man",
    ] {
        let mut child = folder
            .command()
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments}: {said}");
        assert_eq!(said, "", "{arguments}");
    }
    // And what was to be kept is kept.
    folder.run("inspect again.model").good();
}

#[test]
fn places_that_cannot_be_written() {
    let folder = models();
    let before = std::fs::read(folder.path("two.model")).unwrap();
    std::fs::create_dir(folder.path("taken")).unwrap();
    let mut shown = Transcript::new(&folder);
    shown
        .bad("fit two.csv --target label -o nowhere/m.model")
        .bad("fit two.csv --target label -o two.csv/m.model")
        .bad("fit two.csv --target label -o taken")
        .bad("fit two.csv --target label --report nowhere/page.html")
        .bad("predict two.model two.csv -o nowhere/out.csv")
        .bad("report two.model -o nowhere/page.html")
        .bad("demo --output two.csv");
    insta::assert_snapshot!(shown.text());
    assert_eq!(std::fs::read(folder.path("two.model")).unwrap(), before);
}

/// No room left while the model is written: an error, the old file whole, nothing left lying about.
#[cfg(target_os = "linux")]
#[test]
fn full_disk() {
    let folder = models();
    let before = std::fs::read(folder.path("two.model")).unwrap();
    assert!(before.len() > 2048, "or the limit below would not be felt");
    let limited = |prepare: &str| {
        finished(
            std::process::Command::new("sh")
                .current_dir(folder.root())
                .arg("-c")
                .arg(format!(
                    "{prepare} ulimit -f 1; exec {} fit two.csv --target label -o two.model",
                    crate::PROGRAM
                )),
        )
    };
    // Whoever starts the program may ignore the signal or not: the write fails, as on a full disk.
    for prepare in ["trap '' XFSZ;", ""] {
        let ran = limited(prepare);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(
            ran.stderr.starts_with("mtmkl: two.model: "),
            "{}",
            ran.stderr
        );
        assert_eq!(std::fs::read(folder.path("two.model")).unwrap(), before);
        let mut left = std::fs::read_dir(folder.root()).unwrap();
        let is_temporary = |name: std::ffi::OsString| name.to_string_lossy().contains(".tmp");
        assert!(!left.any(|entry| is_temporary(entry.unwrap().file_name())));
    }

    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let ran = folder
        .command()
        .args(["inspect", "two.model"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    insta::assert_snapshot!(String::from_utf8(ran.stderr).unwrap());
}
