//! What was found, by folder, and the mutants that no test noticed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files;
use crate::mutant::{Mutant, State};
use crate::run::{Ending, Finding};

/// Counts of one folder.
#[derive(Default)]
struct Counts {
    mutants: usize,
    unviable: usize,
    not_woven: usize,
    killed: usize,
    slow: usize,
    survived: usize,
    unreached: usize,
    untried: usize,
}

impl Counts {
    fn add(&mut self, mutant: &Mutant, finding: Option<&Finding>) {
        self.mutants += 1;
        let count = match (mutant.state, finding.map(|finding| finding.ending)) {
            (State::Unviable, _) => &mut self.unviable,
            (State::NotWoven, _) => &mut self.not_woven,
            (State::Woven, None) => &mut self.untried,
            (State::Woven, Some(Ending::Killed)) => &mut self.killed,
            (State::Woven, Some(Ending::Slow)) => &mut self.slow,
            (State::Woven, Some(Ending::Survived)) => &mut self.survived,
            (State::Woven, Some(Ending::Unreached)) => &mut self.unreached,
        };
        *count += 1;
    }

    fn row(&self, name: &str) -> String {
        let killed = self.killed + self.slow;
        let tried = killed + self.survived + self.unreached;
        let share = 100.0 * killed as f64 / tried.max(1) as f64;
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {share:.1} % |",
            self.mutants,
            self.unviable,
            self.not_woven,
            self.untried,
            self.killed,
            self.slow,
            self.survived,
            self.unreached
        )
    }
}

/// The folder below `src` of a file.
fn folder(file: &str) -> &str {
    file.strip_prefix("crates/mtmkl/src/")
        .and_then(|rest| rest.split('/').next())
        .unwrap_or(file)
}

/// Prints a table, then a line for each mutant that is not killed. Where findings say different things, one that kills is believed.
pub(crate) fn print(plan: &Path, results: &[PathBuf]) -> Result<(), String> {
    let mutants: Vec<Mutant> = files::read_lines(&plan.join("mutants.jsonl"))?;
    let mut findings: BTreeMap<u32, Finding> = BTreeMap::new();
    for path in results {
        for finding in files::read_lines::<Finding>(path)? {
            let known = findings.get(&finding.id);
            let kills = |finding: &Finding| matches!(finding.ending, Ending::Killed | Ending::Slow);
            if known.is_none_or(|known| {
                kills(&finding) || (!kills(known) && known.tried <= finding.tried)
            }) {
                findings.insert(finding.id, finding);
            }
        }
    }
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut all = Counts::default();
    for mutant in &mutants {
        let finding = findings.get(&mutant.id);
        counts
            .entry(folder(&mutant.file))
            .or_default()
            .add(mutant, finding);
        all.add(mutant, finding);
    }
    println!(
        "| folder | mutants | do not compile | not woven | not tried | killed | over time | survived | not reached | killed of tried |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, counts) in &counts {
        println!("{}", counts.row(&format!("`{name}/`")));
    }
    println!("{}\n", all.row("all"));
    for mutant in &mutants {
        let (how, tests) = match (mutant.state, findings.get(&mutant.id)) {
            (State::NotWoven, _) => ("not woven", mutant.why.clone()),
            (State::Woven, Some(finding)) if finding.ending == Ending::Survived => (
                "survived",
                format!("{} of {} tests", finding.tried, finding.of),
            ),
            (State::Woven, Some(finding)) if finding.ending == Ending::Unreached => {
                ("not reached", String::new())
            }
            _ => continue,
        };
        println!(
            "{how} {} {}:{}:{} {:?} {:?} in {} ({tests})",
            mutant.id,
            mutant.file,
            mutant.start.line,
            mutant.start.column,
            mutant.genre,
            mutant.replacement,
            mutant.function
        );
    }
    Ok(())
}
