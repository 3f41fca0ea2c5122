//! The tables on made-up data in the forms of the real ones.

use std::fmt::Write as _;

use mtmkl::random::Random;
use serde_json::Value;

use crate::fixture::{Folder, Transcript};

/// Three kinds of vehicles.
fn vehicles() -> String {
    let mut random = Random::new(21);
    let mut text = String::from("f1,f2,label\n");
    for row in 0..90 {
        let kind = u8::try_from(row % 3).unwrap();
        let mut near = |middle: f64| middle + 2.0 * (random.uniform() + random.uniform() - 1.0);
        let (a, b) = (near(f64::from(kind)), near(f64::from(kind % 2)));
        let _ = writeln!(text, "{a},{b},{}", ["bus", "opel", "van"][row % 3]);
    }
    text
}

/// Three fields with mines.
fn mines() -> String {
    let mut random = Random::new(22);
    let mut text = String::from("f1,f2,label,task\n");
    for row in 0..150 {
        let mine = row % 5 < 2;
        let a = random.uniform() + if mine { 0.4 } else { 0.0 };
        let _ = writeln!(
            text,
            "{a},{},{},{}",
            random.uniform(),
            if mine { 1 } else { -1 },
            row % 3 + 1
        );
    }
    text
}

fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder
        .file("data/vehicle.csv", vehicles())
        .file("data/landmine.csv", mines());
    folder
}

/// The entries of a run without what takes time.
fn entries(object: &Value) -> Vec<Value> {
    let mut entries = object["entries"].as_array().unwrap().clone();
    for entry in &mut entries {
        for draw in entry["draws"].as_array_mut().unwrap() {
            draw.as_object_mut().unwrap().remove("seconds");
            draw.as_object_mut().unwrap().remove("longest");
        }
    }
    entries
}

const SMALL: &str =
    "table2 --data data --sets vehicle --share 10,20 --kernel linear --kernel rbf:sigma=1|2 --json";

#[test]
fn the_table_of_one_vs_all_tasks() {
    let folder = folder();
    let made = folder.run(&format!("{SMALL} --runs 3 -o out")).json();
    let all = entries(&made);
    assert_eq!(all.len(), 2 * 7);
    for entry in &all {
        let draws = entry["draws"].as_array().unwrap();
        assert_eq!(draws.len(), 3);
        let tests: Vec<f64> = draws
            .iter()
            .map(|draw| 100.0 * draw["test"].as_f64().unwrap())
            .collect();
        let mean = tests.iter().sum::<f64>() / 3.0;
        assert!((mean - entry["mean"].as_f64().unwrap()).abs() < 1e-9);
        // Chance is a third.
        assert!((40.0..100.0).contains(&mean), "{mean}");
        let fits = match entry["method"].as_str().unwrap() {
            "pscs" | "group" => 77,
            "tang" => 35,
            "single" => 21,
            _ => 7,
        };
        assert!(draws.iter().all(|draw| draw["fits"] == fits));
        assert_eq!(entry["sign"].is_null(), entry["method"] == "pscs");
        // The paper has 2, 5, 20 and 50 per cent.
        assert_eq!(
            entry["paper"].is_null(),
            entry["share"] != 20.0
                || !["pscs", "cs", "is"].contains(&entry["method"].as_str().unwrap())
        );
    }
    for name in [
        "table2.md",
        "table2.csv",
        "table2.json",
        "table2-vehicle.svg",
        "table2-pictures.html",
        "table2.journal",
    ] {
        assert!(folder.path("out").join(name).is_file(), "{name}");
    }
    let csv = std::fs::read_to_string(folder.path("out/table2.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + all.len());
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == columns));
    // The number of threads changes nothing.
    let one = folder
        .run(&format!("{SMALL} --runs 3 --threads 1 -o one"))
        .json();
    assert_eq!(entries(&one), all);
    // A run that was killed, in the middle of a line; then more draws with the same journal.
    let journal = std::fs::read(folder.path("out/table2.journal")).unwrap();
    std::fs::create_dir(folder.path("part")).unwrap();
    folder.file("part/table2.journal", &journal[..journal.len() / 2]);
    let resumed = folder
        .run(&format!("{SMALL} --runs 3 --resume -o part"))
        .json();
    assert_eq!(entries(&resumed), all);
    let lines = std::fs::read_to_string(folder.path("part/table2.journal"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(lines, 1 + 3 * all.len());
    let more = folder
        .run(&format!("{SMALL} --runs 4 --resume -o part"))
        .json();
    for (entry, before) in entries(&more).iter().zip(&all) {
        let draws = entry["draws"].as_array().unwrap();
        assert_eq!(draws.len(), 4);
        assert_eq!(&draws[..3], before["draws"].as_array().unwrap().as_slice());
    }
}

#[test]
fn the_table_of_tasks_and_a_document() {
    let folder = folder();
    folder.file(
        "doc.md",
        "before\n\n<!-- table3 -->\nold\n<!-- /table3 -->\n\nafter\n",
    );
    let flags = "table3 --data data --sets landmine --share 20 --runs 2 --methods pscs,uniform --kernel linear --into doc.md -o out";
    let text = folder.run(flags).good();
    assert!(
        text.contains("PSCS against uniform average") && text.contains("passes per fit"),
        "{text}"
    );
    let document = std::fs::read_to_string(folder.path("doc.md")).unwrap();
    assert!(
        document.starts_with("before\n\n<!-- table3 -->\n\n| Landmine | 20 % | paper |"),
        "{document}"
    );
    assert!(
        document.ends_with("<!-- /table3 -->\n\nafter\n") && !document.contains("old"),
        "{document}"
    );
}

#[test]
fn help() {
    let folder = Folder::new();
    let mut shown = Transcript::new(&folder);
    shown.run("--help");
    insta::assert_snapshot!("help", shown.text());
    folder.run("table1 --output /proc/out").bad();
}

#[test]
fn the_iris_table() {
    let folder = Folder::new();
    let made = folder.run("table1 -o out --json").json();
    let common: Vec<f64> = made["common"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w.as_f64().unwrap())
        .collect();
    // The exact optimum (an independent conic solver's) at C = 6.
    for (ours, optimum) in common.iter().zip([0.364, 0.785, 0.501]) {
        assert!((ours - optimum).abs() < 2e-3, "{common:?}");
    }
    let text = std::fs::read_to_string(folder.path("out/table1.md")).unwrap();
    assert!(text.contains("| polynomial | 0.7847 | 0.9421 |"), "{text}");
}

#[test]
fn what_cannot_be_reproduced() {
    let folder = folder();
    folder
        .file("doc.md", "no marks\n")
        .file("data/robot4.csv", "f1,label\n1,a\n2,b\n");
    std::fs::create_dir(folder.path("done")).unwrap();
    let mut said = Transcript::new(&folder);
    for flags in [
        "table2",
        "table2 --data nowhere",
        "table2 --data data --sets usps",
        "table2 --data data --sets vehicel",
        "table2 --data data --sets landmine",
        "table2 --data data --sets robot",
        "table2 --data data --sets vehicle --methods psc",
        "table2 --data data --sets vehicle --runs 0",
        "table2 --data data --sets vehicle --share 1",
        "table2 --data data --sets vehicle --share 99",
        "table2 --data data --sets vehicle --share 120",
        "table2 --data data --sets vehicle --kernel rbg",
        "table2 --data data --sets vehicle --into doc.md",
        "table4",
    ] {
        said.bad(flags);
        assert!(
            !folder.path("reproduction/table2.journal").exists(),
            "{flags}"
        );
    }
    let flags = "table2 --data data --sets vehicle --methods uniform --share 20 --runs 1 -o done";
    folder.run(flags).good();
    said.bad(flags);
    said.bad(&format!("{flags} --resume --scale none"));
    folder.file("data/vehicle.csv", vehicles().replace("bus", "bike"));
    said.bad(&format!("{flags} --resume"));
    insta::assert_snapshot!("what_cannot_be_reproduced", said.text());
}
