//! Classes, tasks and categories are text: what two spellings, a gap, or a number where a name belongs mean.

use std::fmt::Write as _;

use crate::fixture::{Folder, column};

/// Rows `a,code,label` whose label and code go with the sign of `a`.
fn two_names(first: &str, second: &str) -> String {
    let mut table = String::from("a,code,label\n");
    for row in 0..20_i32 {
        let a = f64::from(row % 10) + 1.0;
        let (a, name) = if row % 2 == 0 {
            (a, second)
        } else {
            (-a, first)
        };
        let _ = writeln!(table, "{a},{name},{name}");
    }
    table
}

#[test]
fn spellings_of_one_number_are_two_classes() {
    for (first, second) in [
        ("007", "7"),
        ("1", "1.0"),
        ("12345678901234567890", "12345678901234567891"),
        ("False", "True"),
        ("inf", "nano"),
    ] {
        let folder = Folder::new();
        folder
            .file("table.csv", two_names(first, second))
            .file("new.csv", "a\n-3\n3\n");
        folder
            .run("fit table.csv --target label --ignore code --kernel rbf -o m")
            .good();
        let predicted = folder.run("predict m new.csv").good();
        assert_eq!(column(&predicted, "prediction"), [first, second]);
        let evaluated = folder.run("evaluate m table.csv --json").json();
        assert_eq!(evaluated["mean"], 1.0, "{first} {second}");
    }
}

#[test]
fn spellings_of_one_number_are_two_categories() {
    let folder = Folder::new();
    // All of one spelling in the new rows: still names, not numbers.
    folder
        .file("table.csv", two_names("007", "7"))
        .file("new.csv", "a,code\n0,007\n0,007\n");
    let fitted = folder.run(
        "fit table.csv --target label --one-hot code --kernel linear@code=007 --normalize false -o m",
    );
    fitted.good();
    let ran = folder.run("predict m new.csv");
    assert_eq!(ran.stderr, "");
    assert_eq!(column(&ran.good(), "prediction"), ["007", "007"]);
}

#[test]
fn targets_of_another_spelling_are_refused() {
    let folder = Folder::new();
    folder
        .file("table.csv", two_names("0", "1"))
        .file("other.csv", two_names("0.0", "1.0"))
        .file("some.csv", "a,code,label\n1,x,1\n2,x,2\n");
    folder
        .run("fit table.csv --target label --ignore code --kernel rbf -o m")
        .good();
    assert_eq!(
        folder.run("evaluate m other.csv").bad(),
        "mtmkl: other.csv, line 2: the target `label` is `1.0`, and no row has one of the model's classes, `0`, `1`; classes are compared \
         as text, so that `1` is not `1.0`\n"
    );
    // One of them is enough; the other is a class that is never predicted.
    assert_eq!(folder.run("evaluate m some.csv --json").json()["mean"], 0.5);
}

#[test]
fn labels_of_a_format_without_text_are_numbers() {
    let folder = Folder::new();
    folder
        .file("table.csv", two_names("-1.0", "1.0").replace("a,", "f1,"))
        .file("rows.svm", "+1 1:2\n1 1:3\n-1 1:-2\n");
    folder
        .run("fit table.csv --target label --ignore code --kernel rbf -o m")
        .good();
    let evaluated = folder.run("evaluate m rows.svm --json").json();
    assert_eq!(evaluated["mean"], 1.0);
}

#[test]
fn a_missing_class_is_named_and_is_no_class() {
    for gap in ["NA", "", "NaN", "nan", "null", "?", "N/A"] {
        let folder = Folder::new();
        // Two countries, and one of them Namibia.
        folder.file("table.csv", two_names(gap, "DE"));
        assert_eq!(
            folder
                .run("fit table.csv --target label --ignore code")
                .bad(),
            "mtmkl: table.csv: 10 of 20 rows have no value in the target column `label`, the first at line 3 (empty, NA, N/A, null, ? and \
             NaN mean that there is none); fit with --missing drop to leave such rows out; a name that is spelled so needs another spelling\n"
        );
    }
    let folder = Folder::new();
    folder
        .file("table.csv", two_names("N.A.", "DE"))
        .file("new.csv", "a\n-3\n");
    folder
        .run("fit table.csv --target label --ignore code --kernel rbf -o m")
        .good();
    let predicted = folder.run("predict m new.csv").good();
    assert_eq!(column(&predicted, "prediction"), ["N.A."]);
}

#[test]
fn a_missing_number_to_predict_is_named() {
    let folder = Folder::new();
    folder.file("table.csv", "a,y\n1,2\n2,NA\n3,4\n");
    let message = folder.run("fit table.csv --target y --machine krr").bad();
    assert!(
        message.contains("no value in the target column `y`, the first at line 3"),
        "{message}"
    );
    folder.file("rows.svm", "1 1:2\nNA 1:3\n-1 1:-2\n");
    let message = folder.run("fit rows.svm").bad();
    assert!(
        message.contains("no value in the target column `label`, the first at line 2"),
        "{message}"
    );
}
