//! Which room may look into which. Modules of one crate can import anything, so this reads the `use` lines and refuses the rest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

/// room → the rooms it may use. `error`, `ledger`, `random`, `vector` and `view` are open to all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("grid", &[]),
    ("error", &["run"]),
    ("pool", &[]),
    ("run", &["pool"]),
    ("ledger", &[]),
    ("random", &[]),
    ("vector", &[]),
    ("view", &[]),
    ("data", &[]),
    ("linalg", &[]),
    ("kernel", &["data", "linalg"]),
    ("gram", &["kernel", "data", "linalg", "grid"]),
    ("machine", &["data"]),
    ("inner", &["machine", "gram", "linalg", "grid", "run"]),
    ("sharing", &["grid"]),
    (
        "engine",
        &["inner", "machine", "gram", "linalg", "grid", "pool", "run"],
    ),
    (
        "solver",
        &["engine", "sharing", "grid", "pool", "run", "linalg"],
    ),
    (
        "problem",
        &[
            "data", "engine", "gram", "grid", "kernel", "machine", "model", "pool", "run",
            "sharing", "solver",
        ],
    ),
    (
        "model",
        &[
            "data", "engine", "gram", "grid", "kernel", "linalg", "machine", "problem", "run",
            "sharing", "solver",
        ],
    ),
    (
        "select",
        &[
            "data", "gram", "kernel", "machine", "model", "pool", "problem", "run", "sharing",
        ],
    ),
];

fn rust_files(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// The first path segments after every `crate::` outside comments.
fn rooms_used(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect()
        })
        .collect()
}

#[test]
fn rooms_look_only_where_they_may() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    assert!(files.len() > 30);
    let mut faults = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&source).unwrap().with_extension("");
        let room = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .to_string();
        if room == "lib" {
            continue;
        }
        let allowed = ALLOWED.iter().find(|(name, _)| *name == room);
        let Some((_, allowed)) = allowed else {
            panic!("the room `{room}` is not in the list of this test")
        };
        for used in rooms_used(&fs::read_to_string(&file).unwrap()) {
            let open = used == room
                || used == "error"
                || used == "ledger"
                || used == "random"
                || used == "vector"
                || used == "view"
                || allowed.contains(&used.as_str());
            if !open {
                faults.push(format!(
                    "{}: `{room}` must not use `{used}`",
                    relative.display()
                ));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Inside `solver`: the bundle knows no model, the model knows no steps, and nothing but the outer loops knows what is proven so far.
const SOLVER: &[(&str, &[&str])] = &[
    ("bundle", &[]),
    ("interior", &["bundle"]),
    ("newton", &["bundle", "interior", "certificate"]),
    ("epf", &["certificate"]),
    ("certificate", &[]),
];

#[test]
fn the_solver_s_rooms_look_only_where_they_may() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/solver");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    for file in files {
        let relative = file.strip_prefix(&source).unwrap().with_extension("");
        let room = relative.iter().next().unwrap().to_str().unwrap();
        let Some((_, allowed)) = SOLVER.iter().find(|(name, _)| *name == room) else {
            assert_eq!(room, "mod", "the room `{room}` is not in the list");
            continue;
        };
        let text = fs::read_to_string(&file).unwrap();
        for (other, _) in SOLVER.iter().filter(|(other, _)| *other != room) {
            let is_used = text.contains(&format!("solver::{other}::"));
            assert!(
                !is_used || allowed.contains(other),
                "{}: `{room}` must not use `{other}`",
                relative.display()
            );
        }
    }
}

#[test]
fn only_linalg_names_faer() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    for file in files.iter().filter(|file| !file.ends_with("linalg.rs")) {
        assert!(
            !fs::read_to_string(file).unwrap().contains("faer::"),
            "{} names faer",
            file.display()
        );
    }
}
