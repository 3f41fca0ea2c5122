//! Bad input by name: what each is, and the words that its error has. One line, exit code 2, nothing printed, no fault of ours.
#![cfg(target_os = "linux")]

mod flags;
mod matrices;
mod models;
mod names;
mod places;
mod tables;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::fixture::{Folder, finished, three_classes, two_classes, two_tasks};
use crate::precomputed::npy;

/// One of them: a file where it needs one of its own, a command, and words of the message.
struct Case {
    name: &'static str,
    file: Option<(&'static str, Vec<u8>)>,
    command: String,
    words: Vec<&'static str>,
}

/// A file and a command that reads it.
fn file(
    name: &'static str,
    path: &'static str,
    bytes: impl AsRef<[u8]>,
    command: &str,
    words: &[&'static str],
) -> Case {
    Case {
        name,
        file: Some((path, bytes.as_ref().to_vec())),
        command: command.to_string(),
        words: words.to_vec(),
    }
}

/// A command on files that are good.
fn command(name: &'static str, command: &str, words: &[&'static str]) -> Case {
    Case {
        name,
        file: None,
        command: command.to_string(),
        words: words.to_vec(),
    }
}

/// Good files to go wrong with.
fn files() -> Folder {
    let folder = Folder::new();
    let gram: Vec<f64> = (0..24 * 24)
        .map(|k| (-0.1 * f64::from(k / 24 - k % 24).powi(2)).exp())
        .collect();
    folder
        .file("two.csv", two_classes(24))
        .file("tasks.csv", two_tasks(40))
        .file("three.csv", three_classes(30))
        .file("gram.npy", npy(&gram, 24));
    for fit in [
        "two.csv --target label --kernel linear --kernel rbf -o two.model",
        "tasks.csv --target label --task site --kernel linear --kernel rbf -o tasks.model",
        "two.csv --target label --kernel precomputed:path=gram.npy -o given.model",
    ] {
        folder.run(&format!("fit {fit}")).good();
    }
    folder
}

/// Runs all of a kind; how many.
fn refused(folder: &Folder, cases: &[Case]) -> usize {
    let mut faults = Vec::new();
    for case in cases {
        if let Some((path, bytes)) = &case.file {
            folder.file(path, bytes);
        }
        let begun = Instant::now();
        let words: Vec<&str> = case.command.split_whitespace().collect();
        let ran = finished(folder.command().args(words).env("COLUMNS", "500"));
        let said = &ran.stderr;
        let missing = case.words.iter().find(|word| !said.contains(**word));
        let is_fine = ran.code == 2
            && ran.stdout.is_empty()
            && missing.is_none()
            && !said.contains("internal error")
            && !said.contains("panicked")
            && !said.chars().any(|sign| sign.is_control() && sign != '\n')
            && begun.elapsed() < Duration::from_secs(20);
        if !is_fine {
            faults.push(format!(
                "{}: `{}` exits {} without {missing:?}: {said}{}",
                case.name, case.command, ran.code, ran.stdout
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    cases.len()
}

#[test]
fn every_case_is_refused_in_its_words() {
    let kinds = [
        tables::cases(),
        matrices::cases(),
        models::cases(&files()),
        flags::cases(),
        names::cases(),
        places::cases(),
    ];
    let names: BTreeSet<&str> = kinds.iter().flatten().map(|case| case.name).collect();
    let all: usize = kinds.iter().map(Vec::len).sum();
    assert_eq!(names.len(), all, "two cases have one name");
    let mut refusals = 0;
    for cases in &kinds {
        let folder = files();
        places::make(&folder);
        refusals += refused(&folder, cases);
    }
    println!("{refusals} cases of bad input are refused");
    assert!(refusals >= 150, "{refusals}");
}
