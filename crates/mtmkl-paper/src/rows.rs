//! The rows of a draw: which are chosen of a set, how they are scaled, what tasks they make, and which are for learning, choosing and
//! testing.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use mtmkl::random::Random;
use mtmkl::select::{Fold, split};
use mtmkl::{Targets, Task};
use mtmkl_cli::journal::Fingerprint;
use mtmkl_table::Scaling;
use mtmkl_table::by_number_then_text;

use crate::benchmark::{Benchmark, Choice};
use crate::sources::Source;

/// A seed of its own for each purpose.
fn seed_of(seed: u64, purpose: &str) -> u64 {
    let mut fingerprint = Fingerprint::default();
    fingerprint
        .bytes(&seed.to_le_bytes())
        .bytes(purpose.as_bytes());
    // The text is the number in base 16.
    Random::new(u64::from_str_radix(&fingerprint.text(), 16).unwrap_or(seed)).bits()
}

/// The rows of a draw's subset by sample set, each with its task's name (or none for one-vs-all).
pub(crate) fn chosen_rows(
    set: &Benchmark,
    source: &Source,
    run: usize,
    seed: u64,
) -> Result<Vec<(String, Vec<usize>)>> {
    let mut random = Random::new(seed_of(seed, &format!("subset {} {run}", set.name)));
    let mut by_class: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (row, label) in source.labels.iter().enumerate() {
        let task = source
            .tasks
            .as_ref()
            .map_or("", |tasks| tasks[row].as_str());
        by_class.entry((task, label)).or_default().push(row);
    }
    let mut take = |task: &str, class: &str, each: usize| -> Result<Vec<usize>> {
        let mut rows = by_class.get(&(task, class)).cloned().unwrap_or_default();
        let of = if task.is_empty() {
            String::new()
        } else {
            format!(" of task `{task}`")
        };
        if rows.is_empty() {
            bail!("there is no row of class `{class}`{of}");
        }
        if rows.len() < each {
            bail!(
                "class `{class}`{of} has {} rows, the experiment takes {each}",
                rows.len()
            );
        }
        if set.choice != Choice::Balanced {
            random.shuffle(&mut rows);
        }
        if each > 0 {
            rows.truncate(each);
        }
        Ok(rows)
    };
    let named = || source.tasks.clone().context("there is no task column");
    let mut both = |name: String, each: usize| {
        let mut rows = take(&name, "1", each)?;
        rows.extend(take(&name, "-1", rows.len())?);
        rows.sort_unstable();
        Ok((name, rows))
    };
    let sorted = |mut names: Vec<String>| {
        names.sort_by(|a, b| by_number_then_text(a, b));
        names.dedup();
        names
    };
    match set.choice {
        Choice::Classes { classes, each } => {
            let all = sorted(source.labels.clone());
            let classes: Vec<String> = if classes.is_empty() {
                all
            } else {
                classes.iter().map(ToString::to_string).collect()
            };
            let mut rows = Vec::new();
            for class in &classes {
                rows.extend(take("", class, each)?);
            }
            rows.sort_unstable();
            Ok(vec![(String::new(), rows)])
        }
        Choice::Tasks { tasks, each } => {
            named()?;
            let names = tasks.iter().map(ToString::to_string);
            names.map(|name| both(name, each)).collect()
        }
        Choice::Balanced => {
            let names = sorted(named()?).into_iter();
            names.map(|name| both(name, 0)).collect()
        }
    }
}

/// The rows of each sample set as numbers, columns scaled by all of them together.
pub(crate) fn scaled(
    source: &Source,
    groups: &[(String, Vec<usize>)],
    scale: Scaling,
) -> Vec<Vec<f64>> {
    let d = source.columns;
    let all: Vec<usize> = groups.iter().flat_map(|(_, rows)| rows).copied().collect();
    let scales: Vec<(f64, f64)> = (0..d)
        .map(|column| {
            let values: Vec<f64> = all
                .iter()
                .map(|&row| source.values[row * d + column])
                .collect();
            scale.of(&values, None)
        })
        .collect();
    groups
        .iter()
        .map(|(_, rows)| {
            let cells = rows
                .iter()
                .flat_map(|&row| &source.values[row * d..(row + 1) * d]);
            cells
                .zip(scales.iter().cycle())
                .map(|(value, (offset, factor))| (value - offset) * factor)
                .collect()
        })
        .collect()
}

/// One task per class over one sample set, or one per sample set.
pub(crate) fn tasks_of(
    set: &Benchmark,
    source: &Source,
    groups: &[(String, Vec<usize>)],
) -> (Vec<Task>, Option<Vec<usize>>) {
    let sign = |yes: bool| if yes { 1.0 } else { -1.0 };
    match set.choice {
        Choice::Classes { .. } => {
            let rows = &groups[0].1;
            let mut names: Vec<&String> = rows.iter().map(|&row| &source.labels[row]).collect();
            names.sort_by(|a, b| by_number_then_text(a, b));
            names.dedup();
            let class = |row: usize| {
                names
                    .iter()
                    .position(|name| **name == source.labels[row])
                    .unwrap_or(0)
            };
            let classes: Vec<usize> = rows.iter().map(|&row| class(row)).collect();
            let tasks = names
                .iter()
                .enumerate()
                .map(|(own, name)| {
                    let labels = classes.iter().map(|&class| sign(class == own)).collect();
                    Task::new((*name).clone(), Targets::Labels(labels))
                })
                .collect();
            (tasks, Some(classes))
        }
        Choice::Tasks { .. } | Choice::Balanced => {
            let tasks = groups
                .iter()
                .enumerate()
                .map(|(number, (name, rows))| {
                    let labels = rows
                        .iter()
                        .map(|&row| sign(source.labels[row] == "1"))
                        .collect();
                    Task::new(name.clone(), Targets::Labels(labels)).on(number)
                })
                .collect();
            (tasks, None)
        }
    }
}

/// Training and validation rows of a draw for a share, and its test rows.
pub(crate) fn divided(
    set: &Benchmark,
    source: &Source,
    groups: &[(String, Vec<usize>)],
    share: f64,
    run: usize,
    seed: u64,
) -> Result<(Fold, Vec<Vec<usize>>)> {
    let mut fold = Fold {
        learn: Vec::new(),
        held: Vec::new(),
    };
    let mut tests = Vec::new();
    for (name, rows) in groups {
        let labels: Vec<&String> = rows.iter().map(|&row| &source.labels[row]).collect();
        let strata = split::numbered(&labels);
        let kinds = strata.iter().max().map_or(0, |most| most + 1);
        let counts = (0..kinds).map(|kind| strata.iter().filter(|&&own| own == kind).count());
        let least = counts.min().unwrap_or(0);
        if !(share > 0.0 && share < 100.0) {
            bail!("--share {share}: expected a number of per cent between 0 and 100");
        }
        // Half a row is rounded up to one; with less, a part would have none of a class, or more than its share.
        let part = |per_cent: f64| per_cent / 100.0 * (least as f64) >= 0.5;
        if !part(share) || !part(0.5 * (100.0 - share)) {
            let of = if name.is_empty() {
                set.title.to_string()
            } else {
                format!("task `{name}` of {}", set.title)
            };
            bail!(
                "--share {share}: a class of {of} has {least} rows, too few for {share} per cent of them to learn from and half of the rest each to \
                 choose and to test; take between {:.2} and {:.2}",
                50.0 / least as f64,
                100.0 - 100.0 / least as f64
            );
        }
        let seed = seed_of(seed, &format!("draw {} {name} {share} {run}", set.name));
        let train = share / 100.0;
        let made = split::by_shares(&strata, None, train, 0.5 * (1.0 - train), seed)
            .with_context(|| format!("{}, {share} % for training", set.title))?;
        fold.learn.push(made.train);
        fold.held.push(made.validation);
        tests.push(made.test);
    }
    Ok((fold, tests))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixty rows of two tasks, one in three of class 1.
    fn mines() -> Source {
        Source {
            file: "mines".to_string(),
            values: (0..60).map(f64::from).collect(),
            columns: 1,
            labels: (0..60)
                .map(|row| if row % 3 == 0 { "1" } else { "-1" }.to_string())
                .collect(),
            tasks: Some((0..60).map(|row| (row % 2 + 1).to_string()).collect()),
        }
    }

    fn set(name: &str) -> &'static Benchmark {
        Benchmark::named(name).unwrap()
    }

    #[test]
    fn positives_and_the_first_negatives_in_every_draw() {
        let source = mines();
        let rows = |run| chosen_rows(set("landmine"), &source, run, 0).unwrap();
        assert_eq!(rows(0), rows(1));
        for (task, rows) in rows(0) {
            let own: Vec<usize> = (0..60)
                .filter(|&row| source.tasks.as_ref().unwrap()[row] == task)
                .collect();
            let of_class = |class: &str| -> Vec<usize> {
                let own = own.iter().copied();
                own.filter(|&row| source.labels[row] == class).collect()
            };
            let mut expected = [of_class("1"), of_class("-1")[..10].to_vec()].concat();
            expected.sort_unstable();
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn each_draw_has_rows_of_its_own_always_the_same() {
        let names: Vec<String> = (0..3000).map(|row| format!("{}", row % 10)).collect();
        let source = Source {
            file: "digits".to_string(),
            values: (0..3000).map(f64::from).collect(),
            columns: 1,
            labels: names,
            tasks: None,
        };
        let rows = |run, seed| chosen_rows(set("mnist"), &source, run, seed).unwrap();
        assert_eq!(rows(3, 0), rows(3, 0));
        assert_ne!(rows(0, 0), rows(1, 0));
        assert_ne!(rows(0, 0), rows(0, 1));
        assert_eq!(rows(0, 0)[0].1.len(), 1000);
    }
}
