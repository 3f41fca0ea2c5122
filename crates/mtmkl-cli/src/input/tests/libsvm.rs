use proptest::prelude::*;

use super::super::libsvm::{from_bytes, gram_from_bytes, resembles};
use super::super::{GramOptions, InputError, TableOptions};
use super::{message, names, numbers, texts};
use mtmkl_table::{Place, Table};

fn read(text: &str) -> Result<Table, InputError> {
    from_bytes("data.svm", text.as_bytes(), &TableOptions::default())
}

#[test]
fn rows_become_dense() {
    let table = read("# made by hand\n+1 1:0.5 3:-2e1 # first\r\n\n-1 2:1\n0\n").unwrap();
    assert_eq!(table.rows, 3);
    assert_eq!(names(&table), ["label", "f1", "f2", "f3"]);
    assert_eq!(numbers(&table, "label"), [1.0, -1.0, 0.0]);
    assert_eq!(numbers(&table, "f1"), [0.5, 0.0, 0.0]);
    assert_eq!(numbers(&table, "f2"), [0.0, 1.0, 0.0]);
    assert_eq!(numbers(&table, "f3"), [-20.0, 0.0, 0.0]);
    assert_eq!(
        (table.place(0), table.place(1)),
        (Place::Line(2), Place::Line(4))
    );
    assert_eq!(table.precomputed, None);
}

#[test]
fn indices_from_zero_keep_their_names() {
    let table = read("1 0:2.5 2:1\n2 1:3\n").unwrap();
    assert_eq!(names(&table), ["label", "f0", "f1", "f2"]);
    assert_eq!(numbers(&table, "f0"), [2.5, 0.0]);
    assert_eq!(table.precomputed, None);
}

#[test]
fn query_groups_and_text_labels() {
    let table = read("1 qid:3 1:2\n2 1:1\n").unwrap();
    assert_eq!(names(&table), ["label", "qid", "f1"]);
    assert_eq!(numbers(&table, "qid"), [3.0, 0.0]);
    assert_eq!(table.column("qid").unwrap().missing, [1]);
    assert_eq!(
        texts(&read("1,3 1:2\n2 1:1\n").unwrap(), "label"),
        ["1,3", "2"]
    );
}

#[test]
fn kernel_values_are_recognised() {
    let text = "15 0:1 1:4 2:6 3:1\n45 0:2 1:6 2:18\n15 0:3 1:1 3:1\n";
    let table = read(text).unwrap();
    assert_eq!(table.precomputed, Some(vec![1, 2, 3]));
    assert_eq!(names(&table), ["label", "f1", "f2", "f3"]);
    let gram = gram_from_bytes("data.svm", text.as_bytes(), &GramOptions::default()).unwrap();
    assert_eq!((gram.rows, gram.columns), (3, 3));
    assert_eq!(*gram.values, [4.0, 6.0, 1.0, 6.0, 18.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(gram.row_names.unwrap(), ["1", "2", "3"]);
    // The same number twice is a feature.
    assert_eq!(read("1 0:1 1:4\n2 0:1 1:6\n").unwrap().precomputed, None);
    assert_eq!(
        message(gram_from_bytes(
            "data.svm",
            b"1 1:2\n",
            &GramOptions::default()
        )),
        "data.svm holds features: kernel values need a different `0:i` at the start of every row; give it as the data file"
    );
}

#[test]
fn the_format_is_recognised_by_its_text() {
    for text in [
        "1 1:2\n",
        "-1 qid:3 4:0.5 # c\n",
        "# c\n\n0\n1 2:3\n",
        "1.5 1:2 2:3",
    ] {
        assert!(resembles(text.as_bytes()), "{text:?}");
    }
    for text in [
        "",
        "a,b\n1,2\n",
        "1 2 3\n",
        "time 1:30\n",
        "1 12:30:15\n1 x:3\n",
        "1\n2\n",
    ] {
        assert!(!resembles(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn labels_are_numbers_or_text_and_may_be_missing() {
    // One label, however it is written, also where it is asked for as a name.
    let options = TableOptions {
        text: vec!["label".to_owned()],
        ..TableOptions::default()
    };
    let table = from_bytes("data.svm", b"+1 1:1\n1.0 1:2\n-1 1:3\n", &options).unwrap();
    assert_eq!(table.names("label").unwrap(), ["1", "1", "-1"]);
    for (text, rows) in [
        ("1 1:1\nNA 1:2\nnan 1:2\n", [1, 2]),
        ("? 1:1\na 1:1\nnull 1:2\n", [0, 2]),
    ] {
        assert_eq!(read(text).unwrap().column("label").unwrap().missing, rows);
    }
}

#[test]
fn faults() {
    assert!(read("1 1:2 2:3\n").is_ok());
    assert_eq!(message(read("# nothing\n")), "data.svm is empty");
    for (line, problem) in [
        (
            "1:2 2:3",
            "`1:2` stands where the label belongs; lines are `label index:value …` (write 0 for an unknown label)",
        ),
        ("1 2:3 1:2", "index 1 follows index 2; indices must ascend"),
        ("1 2:3 2:2", "index 2 follows index 2; indices must ascend"),
        (
            "1 a:3",
            "`a:3` is not `index:value` with a whole index and a number",
        ),
        (
            "1 -1:3",
            "`-1:3` is not `index:value` with a whole index and a number",
        ),
        (
            "1 1:",
            "`1:` is not `index:value` with a whole index and a number",
        ),
        (
            "1 17",
            "`17` is not `index:value` with a whole index and a number",
        ),
        (
            "1 99999999999999999999:1",
            "`99999999999999999999:1` is not `index:value` with a whole index and a number",
        ),
        (
            "1 1:inf",
            "the value in `1:inf` is not finite; leave out what is missing or correct it",
        ),
        ("1 qid:x 1:2", "`qid:x` is not `qid:` and a number"),
    ] {
        assert_eq!(
            message(read(&format!("1 1:1\n{line}\n"))),
            format!("data.svm, line 2: {problem}")
        );
    }
    assert_eq!(
        message(read("1 1:1\ninf 1:1\n")),
        "data.svm, line 2, column `label`: `inf` is not a finite number; correct it or leave the cell empty (a missing value)"
    );
    assert_eq!(
        message(read("a 1:1\n").unwrap().numeric("label")),
        "data.svm, line 1, column `label`: `a` is not a number; correct it, leave it empty if the value is missing, or declare the column categorical with `--one-hot label`"
    );
}

#[test]
fn the_size_is_checked_before_it_is_taken() {
    assert_eq!(
        message(read("1 1:1\n2 4000000000:1\n")),
        "data.svm: the columns of 4000000000 features (the largest index is 4000000000) take 715.3 GiB, over the limit of 8.0 GiB; raise it with `--memory-limit`"
    );
    assert!(message(read("1 18446744073709551615:1\n")).contains("over the limit"));
    assert!(
        message(gram_from_bytes(
            "data.svm",
            b"1 0:1 18446744073709551615:1\n",
            &GramOptions::default()
        ))
        .contains("over the limit")
    );
}

proptest! {
    #[test]
    fn sparse_rows_survive(rows in prop::collection::vec((-9i32..9, prop::collection::btree_map(1u64..30, -1e6..1e6f64, 0..8)), 1..12)) {
        let mut text = String::new();
        for (label, entries) in &rows {
            text.push_str(&label.to_string());
            for (index, value) in entries {
                text = format!("{text} {index}:{value:?}");
            }
            text.push('\n');
        }
        let table = read(&text).unwrap();
        for (row, (label, entries)) in rows.iter().enumerate() {
            prop_assert_eq!(numbers(&table, "label")[row], f64::from(*label));
            for index in 1..30 {
                let Ok(column) = table.numeric(&format!("f{index}")) else { continue };
                prop_assert_eq!(column[row], entries.get(&index).copied().unwrap_or(0.0));
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop::sample::select(b"019.: \n\r#qid-e\xff".to_vec()), 0..60)) {
        let options = TableOptions { limit: 1 << 20, ..TableOptions::default() };
        let _ = from_bytes("data.svm", &bytes, &options);
        let _ = gram_from_bytes("data.svm", &bytes, &GramOptions { limit: 1 << 20, ..GramOptions::default() });
        let _ = resembles(&bytes);
    }
}
