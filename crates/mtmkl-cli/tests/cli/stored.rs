//! Models that 0.1.0 wrote are read for ever, and predict what they predicted then. The files in `tests/stored/` are never written again: a
//! later format adds files of its own, with the version in their names.

use std::path::Path;

use crate::fixture::Folder;

fn stored(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/stored")
        .join(name);
    path.to_str().unwrap().to_string()
}

/// Texts are the same, and numbers but for their last digits, which are the processor's.
fn check(flags: &[&str], model: &str, rows: &str) {
    let (model_path, rows_path) = (stored(&format!("{model}.mtmkl")), stored(rows));
    let arguments = [&["predict", &model_path, &rows_path], flags].concat();
    let found = Folder::new().run_all(&arguments).good();
    let expected = std::fs::read_to_string(stored(&format!("{model}.csv"))).unwrap();
    let (found, expected): (Vec<&str>, Vec<&str>) =
        (found.lines().collect(), expected.lines().collect());
    assert_eq!(found.len(), expected.len());
    assert_eq!(found[0], expected[0]);
    for (found, expected) in found.iter().zip(&expected).skip(1) {
        for (one, other) in found.split(',').zip(expected.split(',')) {
            match (one.parse::<f64>(), other.parse::<f64>()) {
                (Ok(one), Ok(other)) => assert!((one - other).abs() < 1e-9, "{one} {other}"),
                _ => assert_eq!(one, other),
            }
        }
    }
}

#[test]
fn classes_of_several_tasks_with_probabilities() {
    check(&["--decision", "--probability"], "classes-0.1.0", "new.csv");
}

#[test]
fn numbers_with_shared_predictors() {
    check(&[], "numbers-0.1.0", "new.csv");
}

#[test]
fn sparse_rows() {
    check(&["--decision"], "words-0.1.0", "words.svm");
}

#[test]
fn the_files_say_who_wrote_them() {
    for model in ["classes", "numbers", "words"] {
        let bytes = std::fs::read(stored(&format!("{model}-0.1.0.mtmkl"))).unwrap();
        let version = b"0.1.0";
        assert!(bytes.windows(version.len()).any(|part| part == version));
    }
}
