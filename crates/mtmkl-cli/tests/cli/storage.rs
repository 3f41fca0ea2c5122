//! Where kernel values come from, by name.

use crate::fixture::Folder;
use std::fmt::Write as _;

use mtmkl::random::Random;

fn table(rows: usize) -> String {
    let mut random = Random::new(4);
    let mut text = String::from("a,b,kind\n");
    for _ in 0..rows {
        let (a, b) = (random.uniform(), random.uniform());
        let kind = if a * b > 0.2 + 0.1 * random.uniform() {
            "yes"
        } else {
            "no"
        };
        let _ = writeln!(text, "{a:.4},{b:.4},{kind}");
    }
    text
}

#[test]
fn every_storage_finds_the_same_machine() {
    let folder = Folder::new();
    folder.file("two.csv", table(300));
    let mut objectives = Vec::new();
    for storage in ["kept", "mapped", "streamed"] {
        let found = folder
            .run(&format!(
                "fit two.csv --target kind --tol 1e-6 --storage {storage} --json"
            ))
            .json();
        assert_eq!(found["storage"], storage);
        assert_eq!(found["status"], "converged");
        objectives.push(found["objective"].as_f64().unwrap());
    }
    for objective in &objectives {
        assert!((objective - objectives[0]).abs() <= 2e-6 * objectives[0]);
    }
}

#[test]
fn what_cannot_be_had_is_named() {
    let folder = Folder::new();
    folder.file("two.csv", table(60));
    for (flags, said) in [
        ("--storage stremed", "did you mean `streamed`?"),
        (
            "--storage streamed --kernel sigmoid",
            "is not known to be positive semi-definite",
        ),
    ] {
        let run = folder.run(&format!("fit two.csv --target kind {flags}"));
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}
