//! Which rows are kept aside.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};
use mtmkl::random::Random;
use mtmkl::select::{Fold, Split, split};
use mtmkl_table::{Dataset, strata};

use crate::args::TuneArgs;
use crate::commands::fit::Fit;
use crate::output;
use crate::words::count;

/// Which rows are kept aside in each fold, and what that is in words.
pub(super) fn splits(args: &TuneArgs, fit: &Fit) -> Result<(Vec<Split>, String)> {
    if let Some(share) = args.validation_fraction
        && !(share > 0.0 && share < 1.0)
    {
        bail!("--validation-fraction is {share}, expected a number between 0 and 1");
    }
    if args.repeats == 0 {
        bail!("--repeats is 0, expected at least 1");
    }
    let strata = strata(&fit.frame, &fit.records, &fit.train);
    let numbers = split::numbered(&strata);
    let groups: Option<Vec<usize>> = match &args.group {
        Some(column) => {
            let names = fit.table.names(column)?;
            let own: Vec<&str> = fit
                .train
                .iter()
                .map(|&row| names[fit.records.positions[row]].as_ref())
                .collect();
            Some(split::numbered(&own))
        }
        None => None,
    };
    // The smallest class, in the user's words.
    let mut counts: BTreeMap<&(String, String), usize> = BTreeMap::new();
    for stratum in &strata {
        *counts.entry(stratum).or_default() += 1;
    }
    let smallest = counts.iter().min_by_key(|(_, rows)| **rows);
    let least = if args.validation_fraction.is_some() {
        2
    } else {
        args.folds
    };
    let is_split = args.validation_fraction.is_some();
    let most = counts.values().max().copied().unwrap_or(0);
    if let (Some((stratum, &rows)), None) = (smallest, &groups)
        && rows < least
    {
        let what = match (stratum.0.as_str(), stratum.1.as_str()) {
            ("", "") => "the table".to_string(),
            ("", class) => format!("class `{class}`"),
            (task, "") => format!("task `{task}`"),
            (task, class) => format!("class `{class}` of task `{task}`"),
        };
        if !is_split && most >= least && !args.fit.said.folds {
            output::note(&format!(
                "note: {what} has {}, fewer than the {least} folds; each of its rows is kept aside in one of them, a row that is alone in none",
                count(rows, "row", "rows")
            ));
            return Ok((of_rare(&numbers, args), format!("{least} folds")));
        }
        bail!(
            "{what} has {}, fewer than {}; {}",
            count(rows, "row", "rows"),
            if args.validation_fraction.is_some() {
                "a split in two needs".to_string()
            } else {
                format!("the {} folds", args.folds)
            },
            if rows >= 2 {
                format!("say --folds {rows}, or leave it out")
            } else {
                "leave it out, or add rows".to_string()
            }
        );
    }
    let groups = groups.as_deref();
    let mut seeds = Random::new(args.fit.seed);
    let mut made = Vec::new();
    for _ in 0..args.repeats {
        let seed = seeds.bits();
        let one = match args.validation_fraction {
            Some(share) => split::by_shares(&numbers, groups, 1.0 - share, share, seed)
                .map(|split| vec![split])
                .map_err(|error| anyhow!("--validation-fraction {share}: {error}"))?,
            None => {
                split::k_fold(&numbers, groups, args.folds, seed).map_err(|error| match error {
                    mtmkl::Error::Param {
                        value, expected, ..
                    } => anyhow!("--folds: found {value}, expected {expected}"),
                    other => other.into(),
                })?
            }
        };
        made.extend(one);
    }
    let mut words = match args.validation_fraction {
        Some(share) => format!("{} of the rows kept aside", output::percent(share)),
        None => format!("{} folds", args.folds),
    };
    if args.repeats > 1 {
        words += &format!(", {} times", args.repeats);
    }
    if let Some(column) = &args.group {
        words += &format!(", rows of one `{column}` together");
    }
    Ok((made, words))
}

/// Folds where some strata have fewer rows than there are folds: each of their rows is kept aside once, but for one that is alone.
fn of_rare(numbers: &[usize], args: &TuneArgs) -> Vec<Split> {
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, &number) in numbers.iter().enumerate() {
        members.entry(number).or_default().push(row);
    }
    let mut seeds = Random::new(args.fit.seed);
    let mut made = Vec::new();
    for _ in 0..args.repeats {
        let mut random = Random::new(seeds.bits());
        let mut fold_of = vec![None; numbers.len()];
        let mut next = 0;
        for rows in members.values().filter(|rows| rows.len() > 1) {
            let mut rows = rows.clone();
            random.shuffle(&mut rows);
            for row in rows {
                fold_of[row] = Some(next % args.folds);
                next += 1;
            }
        }
        made.extend((0..args.folds).map(|fold| {
            let is_held = |row: &usize| fold_of[*row] == Some(fold);
            let (validation, train) = (0..numbers.len()).partition(is_held);
            Split {
                train,
                validation,
                test: Vec::new(),
            }
        }));
    }
    made
}

/// A split of the chosen rows as rows of the sample sets.
pub(super) fn fold_of(split: &Split, chosen: &[usize], dataset: &Dataset) -> Fold {
    let mut places: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (set, rows) in dataset.rows.iter().enumerate() {
        for (at, &row) in rows.iter().enumerate() {
            places.insert(row, (set, at));
        }
    }
    let by_set = |rows: &[usize]| {
        let mut sets = vec![Vec::new(); dataset.rows.len()];
        for row in rows {
            if let Some(&(set, at)) = places.get(&chosen[*row]) {
                sets[set].push(at);
            }
        }
        sets
    };
    Fold {
        learn: by_set(&split.train),
        held: by_set(&split.validation),
    }
}
