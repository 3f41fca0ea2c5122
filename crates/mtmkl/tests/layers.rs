//! Which room may look into which. Modules of one crate can import anything, so this reads the `use` lines and refuses the rest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// room → the rooms it may use. `error`, `ledger`, `platform`, `random`, `vector` and `view` are open to all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("grid", &[]),
    ("span", &[]),
    ("error", &["run"]),
    ("tree", &[]),
    ("entry", &["tree"]),
    ("pool", &[]),
    ("run", &["pool"]),
    ("ledger", &[]),
    ("platform", &[]),
    ("random", &[]),
    ("vector", &[]),
    ("view", &[]),
    ("data", &["task_kernel"]),
    ("task_kernel", &["tree", "linalg"]),
    ("linalg", &[]),
    ("kernel", &["data", "linalg", "task_kernel"]),
    (
        "gram",
        &[
            "kernel",
            "data",
            "linalg",
            "grid",
            "run",
            "span",
            "task_kernel",
        ],
    ),
    ("machine", &["data", "entry"]),
    (
        "inner",
        &["machine", "gram", "linalg", "grid", "run", "span"],
    ),
    ("sharing", &["grid", "entry", "tree"]),
    ("registry", &["entry", "kernel", "machine", "sharing"]),
    (
        "engine",
        &[
            "inner", "machine", "gram", "linalg", "grid", "pool", "run", "span",
        ],
    ),
    (
        "solver",
        &["engine", "sharing", "grid", "pool", "run", "linalg", "span"],
    ),
    (
        "problem",
        &[
            "data",
            "engine",
            "gram",
            "grid",
            "kernel",
            "machine",
            "model",
            "pool",
            "run",
            "sharing",
            "solver",
            "span",
            "task_kernel",
        ],
    ),
    (
        "model",
        &[
            "data",
            "engine",
            "gram",
            "grid",
            "kernel",
            "linalg",
            "machine",
            "problem",
            "registry",
            "run",
            "sharing",
            "solver",
            "task_kernel",
        ],
    ),
    (
        "select",
        &[
            "data", "entry", "gram", "kernel", "linalg", "machine", "model", "pool", "problem",
            "run", "sharing",
        ],
    ),
];

fn rust_files(folder: &Path, out: &mut Vec<PathBuf>) {
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
                || used == "platform"
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
    let is_linalg = |file: &&PathBuf| {
        file.ends_with("linalg.rs")
            || file
                .parent()
                .is_some_and(|folder| folder.ends_with("linalg"))
    };
    for file in files.iter().filter(|file| !is_linalg(file)) {
        assert!(
            !fs::read_to_string(file).unwrap().contains("faer::"),
            "{} names faer",
            file.display()
        );
    }
}

/// What differs between systems is in one file of the library, so that the others are the same everywhere; the program has those of signals and
/// of its journal besides.
#[test]
fn only_platform_names_systems() {
    const SIGNS: [&str; 5] = [
        "cfg(unix",
        "cfg(windows",
        "not(unix",
        "target_os",
        "std::os::",
    ];
    const OWN: [&str; 3] = ["platform.rs", "signals.rs", "journal.rs"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for source in [
        "src",
        "../mtmkl-table/src",
        "../mtmkl-report/src",
        "../mtmkl-cli/src",
    ] {
        rust_files(&root.join(source), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let is_own = OWN.iter().any(|own| file.ends_with(own));
        let found = SIGNS.iter().find(|sign| text.contains(*sign));
        assert!(is_own || found.is_none(), "{}: {found:?}", file.display());
    }
}

/// Lines of each function, as rustfmt lays them out: from `fn` to the brace that stands as far in.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let inside = line.trim_start();
        let indent = &line[..line.len() - inside.len()];
        let words: Vec<&str> = inside.split_whitespace().take(4).collect();
        let Some(at) = words.iter().position(|word| *word == "fn") else {
            continue;
        };
        let is_head = words[..at]
            .iter()
            .all(|word| word.starts_with("pub") || *word == "const");
        let Some(name) = words.get(at + 1).filter(|_| is_head) else {
            continue;
        };
        if line.ends_with(';') || line.ends_with('}') {
            continue;
        }
        let end = format!("{indent}}}");
        // A method of a trait may have no body.
        let mut rest = lines[first..].iter().enumerate();
        let length = rest.find_map(|(length, line)| {
            let is_end = **line == *end;
            let is_over = line.starts_with(&format!("{indent})")) && line.ends_with(';');
            (is_end || is_over).then_some(length + 1)
        });
        if let Some(length) = length {
            found.push(((*name).to_string(), length));
        }
    }
    found
}

/// A function fits a screen, a file an idea.
#[test]
fn functions_and_files_are_short() {
    const MOST_LINES: usize = 80;
    const LONGEST_FILE: usize = 600;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let (mut faults, mut seen) = (Vec::new(), 0);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if text.lines().count() > LONGEST_FILE {
            faults.push(format!("{} has over {LONGEST_FILE} lines", file.display()));
        }
        for (name, length) in functions(&text) {
            seen += 1;
            if length >= MOST_LINES {
                faults.push(format!("{}: `{name}` has {length} lines", file.display()));
            }
        }
    }
    assert!(seen > 1000, "{seen}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The page that shows the way through the house names files that are there, and every room.
#[test]
fn the_architecture_page_names_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| {
            let is_rust = Path::new(name)
                .extension()
                .is_some_and(|ending| ending == "rs");
            is_rust || name.ends_with('/')
        })
        .collect();
    assert!(named.len() > 40, "{}", named.len());
    let places = [
        "crates/mtmkl/src",
        "crates/mtmkl-cli/src",
        "crates/mtmkl-table/src",
        "crates",
        "",
    ];
    for name in &named {
        let is_there = places
            .iter()
            .any(|place| root.join(place).join(name).exists());
        assert!(is_there, "docs/architecture.md names `{name}`");
    }
    for (room, _) in ALLOWED {
        let is_named = named.iter().any(|name| {
            let first = name
                .trim_start_matches("crates/mtmkl/src/")
                .split(['/', '.'])
                .next();
            first == Some(*room)
        });
        assert!(
            is_named,
            "docs/architecture.md does not name the room `{room}`"
        );
    }
}
