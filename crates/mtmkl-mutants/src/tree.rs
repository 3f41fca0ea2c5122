//! A copy of the core with all mutants in it, woven again until it builds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::files;
use crate::mutant::{Mutant, State};
use crate::sites::{self, Site};
use crate::weave::{WAYS, Woven, weave};

/// What the tests read besides the crates.
const DATA: &[&str] = &["crates/mtmkl-cli/data", "python/mtmkl"];

/// Files of tests that look at the source instead of running it.
const LEFT_OUT: &[&str] = &["layers"];

/// Tests that must have a program of their own: an allocator is in it.
const ALONE: &[&str] = &["memory"];

/// What is built.
const PROGRAMS: &[&str] = &[
    "test",
    "--package",
    "mtmkl",
    "--no-run",
    "--lib",
    "--test",
    "all",
    "--test",
    "memory",
];

/// What the compiler calls values of a wrong type.
const MISTYPED: &[&str] = &["E0277", "E0308", "E0369", "E0600"];

/// One file on its way.
struct File {
    source: String,
    sites: Vec<Site>,
    ways: BTreeMap<usize, u8>,
    woven: Woven,
}

/// One thing that the compiler said.
#[derive(Deserialize)]
struct Line {
    message: Option<Message>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    #[serde(rename = "message")]
    text: String,
    code: Option<Code>,
    spans: Vec<Place>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct Place {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

/// Copies, weaves and builds; leaves the stripped programs of tests and `mutants.jsonl` in `plan`.
pub(crate) fn build(
    root: &Path,
    tree: &Path,
    target: &Path,
    plan: &Path,
    mut mutants: Vec<Mutant>,
) -> Result<(), String> {
    copy(root, tree)?;
    let (mut all, mut unviable) = (BTreeMap::new(), Vec::new());
    let count = mutants.iter().map(|mutant| mutant.id).max().unwrap_or(0) + 1;
    for name in sources(root)? {
        let source = files::read(&root.join(&name))?;
        let here: Vec<&Mutant> = mutants.iter().filter(|m| m.file == name).collect();
        let found = sites::find(&source, &here).map_err(|error| format!("{name}: {error}"))?;
        unviable.extend(found.unviable);
        let file = File {
            source,
            sites: found.sites,
            ways: BTreeMap::new(),
            woven: Woven::default(),
        };
        all.insert(name, file);
    }
    for id in unviable {
        mark(&mut mutants, id, State::Unviable, "`||` beside `let`");
    }
    files::write(&tree.join("crates/mtmkl/src/mutant.rs"), &switch(count))?;
    for round in 1.. {
        for (name, file) in &mut all {
            file.woven = weave(&file.source, &file.sites, &file.ways);
            let path = tree.join(name);
            // What is as it was is not built again.
            if files::read(&path)? != file.woven.text {
                files::write(&path, &file.woven.text)?;
            }
        }
        // As it is built in the end, so that nothing is built twice.
        let said = cargo(tree, target, PROGRAMS)?;
        let errors: Vec<&Message> = said
            .iter()
            .filter_map(|line| line.message.as_ref())
            .filter(|message| message.level == "error" && !message.spans.is_empty())
            .collect();
        println!("round {round}: {} errors", errors.len());
        if errors.is_empty() {
            files::write_lines(&plan.join("mutants.jsonl"), &mutants)?;
            return programs(said, plan);
        }
        if !give_way(&mut all, &mut mutants, &errors) {
            let text: String = errors.iter().filter_map(|m| m.rendered.clone()).collect();
            return Err(format!("errors that are at no mutant:\n{text}"));
        }
    }
    Ok(())
}

/// All files of the core but those of tests.
fn sources(root: &Path) -> Result<Vec<String>, String> {
    let (mut folders, mut found) = (vec!["crates/mtmkl/src".to_string()], Vec::new());
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(root.join(&folder)).map_err(|e| format!("{folder}: {e}"))?;
        for name in entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
        {
            let path = format!("{folder}/{name}");
            if root.join(&path).is_dir() {
                folders.push(path);
            } else if Path::new(&path)
                .extension()
                .is_some_and(|ending| ending == "rs")
                && name != "tests.rs"
                && path != "crates/mtmkl/src/lib.rs"
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn copy(root: &Path, tree: &Path) -> Result<(), String> {
    for part in [
        "crates/mtmkl",
        "crates/mtmkl-testkit",
        "Cargo.lock",
        "rust-toolchain.toml",
        ".cargo",
    ]
    .iter()
    .chain(DATA)
    {
        files::copy(&root.join(part), &tree.join(part))?;
    }
    let manifest = files::read(&root.join("Cargo.toml"))?
        .replace(
            "members = [\"crates/*\"]",
            "members = [\"crates/mtmkl\", \"crates/mtmkl-testkit\"]",
        )
        .replace("default-members = [\"crates/mtmkl-cli\"]", "")
        .replace("debug = \"line-tables-only\"", "debug = false");
    files::write(&tree.join("Cargo.toml"), &manifest)?;
    let library = tree.join("crates/mtmkl/src/lib.rs");
    let text = files::read(&library)?;
    files::write(
        &library,
        &format!(
            "#![allow(warnings, arithmetic_overflow, unconditional_panic, overflowing_literals)]\n{text}\npub(crate) mod mutant;\n"
        ),
    )?;
    one_program(tree)
}

/// All files of tests as modules of one, which is built once: thirty programs would each have the core in them.
fn one_program(tree: &Path) -> Result<(), String> {
    let tests = tree.join("crates/mtmkl/tests");
    let mut text = String::from("#![allow(warnings, unsafe_code)]\n");
    for folder in [&tests, &tree.join("crates/mtmkl-testkit/tests")] {
        let entries =
            std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let main = path.join("main.rs");
            let (Some(name), file) = (
                path.file_stem().and_then(|name| name.to_str()),
                if main.exists() { &main } else { &path },
            ) else {
                continue;
            };
            if file.is_dir() || LEFT_OUT.contains(&name) || ALONE.contains(&name) || name == "all" {
                continue;
            }
            text += &format!("#[path = {:?}]\nmod {name};\n", file.display().to_string());
        }
    }
    files::write(&tests.join("all.rs"), &text)?;
    let manifest = tree.join("crates/mtmkl/Cargo.toml");
    let mut text =
        files::read(&manifest)?.replace("[dependencies]", "autotests = false\n\n[dependencies]");
    // `autotests` belongs to the package.
    text = text.replacen("autotests = false\n\n[dependencies]", "[dependencies]", 1);
    text = text.replacen("[package]", "[package]\nautotests = false", 1);
    for name in ALONE.iter().chain(&["all"]) {
        text += &format!("\n[[test]]\nname = \"{name}\"\npath = \"tests/{name}.rs\"\n");
    }
    files::write(&manifest, &text)
}

/// `on`: which mutant there is, from `MUTANT`; or with `MUTANT_RECORD` a file to which each number is written when it is asked for first.
fn switch(count: u32) -> String {
    include_str!("switch.txt").replace("COUNT", &count.to_string())
}

fn cargo(tree: &Path, target: &Path, arguments: &[&str]) -> Result<Vec<Line>, String> {
    let output = Command::new("cargo")
        .args(arguments)
        .args(["--message-format=json", "--offline"])
        .env("CARGO_TARGET_DIR", target)
        .current_dir(tree)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Line> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let told = lines
        .iter()
        .any(|line| line.message.as_ref().is_some_and(|m| m.level == "error"));
    if output.status.success() || told {
        Ok(lines)
    } else {
        Err(format!("cargo {arguments:?}: {}", output.status))
    }
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The innermost of those that contain a range.
fn innermost<T: Copy>(ranges: &[(Range<usize>, T)], inner: &Range<usize>) -> Option<(usize, T)> {
    ranges
        .iter()
        .filter(|(range, _)| contains(range, inner))
        .map(|(range, what)| (range.len(), *what))
        .min_by_key(|(length, _)| *length)
}

/// What an error takes away: a mutant that does not compile by itself, or this way of weaving a site. Whether anything was taken.
fn give_way(all: &mut BTreeMap<String, File>, mutants: &mut [Mutant], errors: &[&Message]) -> bool {
    let mut refused: BTreeMap<u32, String> = BTreeMap::new();
    let mut again: BTreeMap<(String, usize), String> = BTreeMap::new();
    for error in errors {
        let code = error.code.as_ref().map_or("", |code| &code.code);
        let why = format!("{code} {}", error.text);
        let primary = error.spans.iter().filter(|place| place.is_primary);
        let others = error.spans.iter().filter(|place| !place.is_primary);
        for place in primary.chain(others) {
            let Some(file) = all.get(&place.file_name) else {
                continue;
            };
            let range = place.byte_start..place.byte_end;
            let branch = innermost(&file.woven.branches, &range);
            let site = innermost(&file.woven.places, &range);
            // A site within the branch is nearer than the branch.
            match (branch, site) {
                (Some((length, id)), site) if site.is_none_or(|(s, _)| length < s) => {
                    refused.insert(id, why);
                }
                (_, Some((_, index))) => {
                    again.insert((place.file_name.clone(), index), why);
                }
                _ => {
                    let within = file
                        .woven
                        .places
                        .iter()
                        .filter(|(r, _)| contains(&range, r));
                    let found: Vec<usize> = within.map(|(_, index)| *index).collect();
                    if found.is_empty() {
                        continue;
                    }
                    for index in found {
                        again.insert((place.file_name.clone(), index), why.clone());
                    }
                }
            }
            break;
        }
    }
    let taken = !refused.is_empty() || !again.is_empty();
    let mut lost = BTreeSet::new();
    for ((name, index), why) in again {
        let Some(file) = all.get_mut(&name) else {
            continue;
        };
        let way = file.ways.entry(index).or_insert(0);
        *way += 1;
        if *way >= WAYS {
            for choice in &file.sites[index].choices {
                lost.insert(choice.id);
                // The last way has the mutant's own text in it: types that are wrong there are its own.
                let own = MISTYPED.iter().any(|code| why.starts_with(code));
                let state = if own {
                    State::Unviable
                } else {
                    State::NotWoven
                };
                mark(mutants, choice.id, state, &why);
            }
        }
    }
    for (id, why) in refused {
        if lost.contains(&id) {
            continue;
        }
        mark(mutants, id, State::Unviable, &why);
        for site in all.values_mut().flat_map(|file| &mut file.sites) {
            site.choices.retain(|choice| choice.id != id);
        }
    }
    taken
}

fn mark(mutants: &mut [Mutant], id: u32, state: State, why: &str) {
    if let Some(mutant) = mutants.iter_mut().find(|mutant| mutant.id == id) {
        mutant.state = state;
        mutant.why = why.to_string();
    }
}

/// Leaves the programs of tests without symbols in `plan`.
fn programs(said: Vec<Line>, plan: &Path) -> Result<(), String> {
    let mut made = 0;
    for line in said {
        let Some(program) = line.executable else {
            continue;
        };
        let name = program
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let name = name.split('-').next().unwrap_or_default();
        let to = plan.join("bin").join(name);
        files::copy(&program, &to)?;
        let stripped = Command::new("strip").arg(&to).status();
        if !stripped.is_ok_and(|status| status.success()) {
            return Err("strip (binutils) is needed".into());
        }
        made += 1;
    }
    println!("{made} programs of tests in {}", plan.join("bin").display());
    Ok(())
}
