//! Nothing of what solved a problem checks its certificate: this crate depends on `mtmkl` for reading a model and holding data, and here are the names of it
//! that it may use.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// Data and a model as it was read. Of a user's own kernel, `Kernel::value`.
const ALLOWED: [&str; 19] = [
    "Model",
    "Samples",
    "Task",
    "Targets",
    "Rows",
    "RowValues",
    "Sparse",
    "SparseRows",
    "GivenGram",
    "Normalization",
    "kernel::Kernel",
    "kernel::KernelView",
    "model::SupportSet",
    "model::TaskModel",
    "run::Status",
    "sharing::Reach",
    "solver::Fallback",
    "task_kernel::Form",
    "task_kernel::TaskKernels",
];

/// Methods that compute what is to be checked.
const FORBIDDEN: [&str; 14] = [
    ".build(",
    ".dual(",
    ".maximise(",
    ".terms(",
    ".constraint(",
    ".decision(",
    ".decisions_on(",
    ".predict(",
    ".fit(",
    ".prepare(",
    ".map_from(",
    ".base(",
    "Sharing::",
    "Problem",
];

/// The source without tests and comments.
fn source(text: &str) -> String {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path that begins with `mtmkl::`, groups in braces taken apart.
fn names(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in code.split("mtmkl::").skip(1) {
        let path: String = rest
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
            .collect();
        let after = &rest[path.len()..];
        if let Some(group) = after.strip_prefix('{') {
            let group = group.split('}').next().unwrap_or_default();
            let members = group
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            found.extend(members.map(|name| format!("{path}{name}")));
        } else {
            found.push(path.trim_end_matches(':').to_string());
        }
    }
    found
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn nothing_of_the_solvers_is_used() {
    let mut files = Vec::new();
    rust_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    let mut used = 0;
    for path in &files {
        let code = source(&fs::read_to_string(path).unwrap());
        for name in names(&code) {
            used += 1;
            let is_allowed = ALLOWED.iter().any(|allowed| *allowed == name);
            assert!(is_allowed, "{} uses mtmkl::{name}", path.display());
        }
        for word in FORBIDDEN {
            assert!(!code.contains(word), "{} has `{word}`", path.display());
        }
        assert!(code.lines().count() < 500, "{} is too long", path.display());
    }
    assert!(
        files.len() > 8 && used > 15,
        "{} files, {used} names",
        files.len()
    );
}

#[test]
fn it_depends_on_nothing_else_that_computes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let own = text.split("[dependencies]").nth(1).unwrap();
    let own = own.split("\n[").next().unwrap();
    let names: Vec<&str> = own
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(
        names,
        ["mtmkl", "rayon", "serde", "serde_json", "thiserror"]
    );
}
