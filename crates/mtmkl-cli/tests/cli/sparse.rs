//! LIBSVM files stay sparse from the file to the model.

use std::fmt::Write as _;

use mtmkl::random::Random;

use crate::fixture::{Folder, column};

const COLUMNS: usize = 300;

/// The same rows twice, as LIBSVM and as CSV: about eight counts of 300 columns, those of the first half for one class.
fn tables(rows: usize, seed: u64) -> (String, String) {
    let mut random = Random::new(seed);
    let mut sparse = String::new();
    let mut dense = String::new();
    for number in 1..=COLUMNS {
        let _ = write!(dense, "f{number},");
    }
    dense.push_str("label\n");
    for row in 0..rows {
        let label = if row % 2 == 0 { 1 } else { -1 };
        let _ = write!(sparse, "{label}");
        for number in 1..=COLUMNS {
            let is_own = (number <= COLUMNS / 2) == (row % 2 == 0);
            let share = if is_own { 0.035 } else { 0.02 };
            // The last column is known to all tables.
            let is_there = random.uniform() < share || number == COLUMNS && row == 0;
            let count = if is_there { 1 + row % 3 } else { 0 };
            if is_there {
                let _ = write!(sparse, " {number}:{count}");
            }
            let _ = write!(dense, "{count},");
        }
        sparse.push('\n');
        let _ = writeln!(dense, "{label}");
    }
    (sparse, dense)
}

fn folder() -> Folder {
    let folder = Folder::new();
    for (name, rows, seed) in [("rows", 160, 1), ("new", 50, 2)] {
        let (sparse, dense) = tables(rows, seed);
        folder.file(&format!("{name}.svm"), sparse);
        folder.file(&format!("{name}.csv"), dense);
    }
    folder
}

const KERNELS: &str = "--kernel linear@f1..f150 --kernel cosine@f151..f300 --kernel poly:degree=2 --kernel rbf:sigma=3 --tol 1e-6 --threads 2";

#[test]
fn the_answer_is_that_of_all_zeros_written_out() {
    let folder = folder();
    let fit = |file: &str| {
        let ran = folder.run(&format!(
            "fit {file} --target label {KERNELS} --scale none -o {file}.m --json"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(!ran.stderr.contains("not centred"), "{}", ran.stderr);
        ran.json()["objective"].as_f64().unwrap()
    };
    let (sparse, dense) = (fit("rows.svm"), fit("rows.csv"));
    assert!((sparse - dense).abs() <= 2e-6 * dense, "{sparse} {dense}");
    // Models of either take tables of either.
    let predict = |model: &str, file: &str| -> Vec<f64> {
        let text = folder
            .run(&format!("predict {model} {file} --decision"))
            .good();
        let scores = text
            .lines()
            .next()
            .unwrap()
            .split(',')
            .next_back()
            .unwrap()
            .to_string();
        column(&text, &scores)
            .iter()
            .map(|score| score.parse().unwrap())
            .collect()
    };
    let expected = predict("rows.csv.m", "new.csv");
    for model in ["rows.svm.m", "rows.csv.m"] {
        let [a, b] = ["new.svm", "new.csv"].map(|file| predict(model, file));
        for ((a, b), expected) in a.iter().zip(&b).zip(&expected) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
            assert!((a - expected).abs() <= 0.01, "{a} {expected}");
        }
    }
    let [a, b] = ["rows.svm", "rows.csv"].map(|file| {
        let ran = folder.run(&format!("evaluate {file}.m new.svm --json"));
        ran.json()["mean"].as_f64().unwrap()
    });
    assert!((a - b).abs() < 1e-12, "{a} {b}");
}

#[test]
fn scales_keep_zeros_and_it_is_said() {
    let folder = folder();
    for scale in ["standard", "minmax"] {
        let ran = folder.run(&format!(
            "fit rows.svm {KERNELS} --scale {scale} -o {scale}.m --json"
        ));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("not centred"), "{}", ran.stderr);
        // The same rows in the order of another file.
        let predicted = folder.run(&format!("predict {scale}.m new.svm")).good();
        assert_eq!(
            folder.run(&format!("predict {scale}.m new.csv")).good(),
            predicted
        );
    }
    let tuned = folder.run("tune rows.svm --kernel linear --folds 3 --grid C=0.1,1 -o t.m --json");
    assert_eq!(tuned.code, 0, "{}", tuned.stderr);
    folder.run("predict t.m new.svm").good();
}

/// Within less memory than the rows would take with their zeros, in every part of a fit: learning, scoring, predicting.
#[test]
fn memory_is_that_of_what_is_there() {
    let folder = Folder::new();
    let mut text = String::new();
    for row in 0..200 {
        let label = if row % 2 == 0 { 1 } else { -1 };
        let _ = writeln!(
            text,
            "{label} {}:1 {}:2 40000:1",
            1 + row % 2,
            3 + row * 199
        );
    }
    folder.file("rows.svm", text);
    // 200 × 40,000 numbers are 61 MiB.
    let fit = "fit rows.svm --target label --kernel linear --kernel cosine --memory-limit 0.04 --test-fraction 0.3 -o m --json";
    let report = folder.run(fit).json();
    assert_eq!(report["status"], "converged");
    assert_eq!(folder.run("predict m rows.svm").good().lines().count(), 201);
}
