//! Which lines of the core the tests run: those of regions (bodies, branches, arms, closures) that some test comes to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;
use crate::run::Test;

/// A block or an expression that is run or not, in bytes of its file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Region {
    pub(crate) id: u32,
    pub(crate) file: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Lines and regions, run and in all.
#[derive(Clone, Copy, Default)]
struct Counts {
    lines: [usize; 2],
    regions: [usize; 2],
}

impl Counts {
    fn add(&mut self, other: Counts) {
        for (own, other) in [
            (&mut self.lines, other.lines),
            (&mut self.regions, other.regions),
        ] {
            own[0] += other[0];
            own[1] += other[1];
        }
    }

    fn row(&self, name: &str) -> String {
        let share = |[run, all]: [usize; 2]| 100.0 * run as f64 / all.max(1) as f64;
        format!(
            "| {name} | {} | {:.1} % | {} | {:.1} % |",
            self.lines[1],
            share(self.lines),
            self.regions[1],
            share(self.regions)
        )
    }
}

/// Prints a table by folder, then the lines of each file that no test runs.
pub(crate) fn print(root: &Path, plan: &Path) -> Result<(), String> {
    let tests: Vec<Test> = files::read_lines(&plan.join("tests.jsonl"))?;
    let reached: BTreeSet<u32> = tests
        .iter()
        .flat_map(|test| test.reached.iter().copied())
        .collect();
    let mut by_file: BTreeMap<String, Vec<Region>> = BTreeMap::new();
    for region in files::read_lines::<Region>(&plan.join("regions.jsonl"))? {
        by_file.entry(region.file.clone()).or_default().push(region);
    }
    let mut folders: BTreeMap<String, Counts> = BTreeMap::new();
    let (mut all, mut missing) = (Counts::default(), String::new());
    for (name, regions) in &by_file {
        let text = files::read(&root.join(name))?;
        let (counts, lines) = count(&text, regions, &reached);
        let short = name.trim_start_matches("crates/mtmkl/src/");
        let folder = short
            .split_once('/')
            .map_or("files of the crate's root".to_string(), |(folder, _)| {
                format!("`{folder}/`")
            });
        folders.entry(folder).or_default().add(counts);
        all.add(counts);
        if !lines.is_empty() {
            missing += &format!("{short}: {}\n", ranges(&lines));
        }
    }
    println!("| folder | lines | run | regions | run |\n|---|---|---|---|---|");
    for (name, counts) in folders {
        println!("{}", counts.row(&name));
    }
    println!("{}\n\n{missing}", all.row("all"));
    Ok(())
}

/// A line is that of the innermost region in which its first letter stands.
fn count(text: &str, regions: &[Region], reached: &BTreeSet<u32>) -> (Counts, Vec<usize>) {
    let mut counts = Counts {
        regions: [
            regions
                .iter()
                .filter(|region| reached.contains(&region.id))
                .count(),
            regions.len(),
        ],
        ..Counts::default()
    };
    let (mut at, mut missing) = (0, Vec::new());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let code = line.trim();
        let first = at + line.len() - line.trim_start().len();
        at += line.len();
        let closes = code.chars().all(|letter| "{}()[];,".contains(letter));
        if closes || code.starts_with("//") || code.starts_with("#[") {
            continue;
        }
        let around = regions
            .iter()
            .filter(|region| region.start <= first && first < region.end);
        if let Some(region) = around.min_by_key(|region| region.end - region.start) {
            counts.lines[1] += 1;
            if reached.contains(&region.id) {
                counts.lines[0] += 1;
            } else {
                missing.push(number + 1);
            }
        }
    }
    (counts, missing)
}

/// `3, 5–7`
fn ranges(lines: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &line in lines {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => parts.push((line, line)),
        }
    }
    let parts = parts.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}–{last}")
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}
