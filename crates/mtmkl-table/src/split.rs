//! Rows kept aside, so that each task and class keeps its share.

use std::collections::BTreeMap;

use crate::Result;
use crate::error::TableError;
use crate::frame::Frame;
use crate::names::Names;
use crate::records::Records;

/// What a split keeps the mix of: each row's task and class, empty where there is none.
pub fn strata(frame: &Frame, records: &Records, rows: &[usize]) -> Vec<(String, String)> {
    let classes = !frame.goal.classes().is_empty();
    let name = |names: &Option<Names>, row: usize| {
        names
            .as_ref()
            .map_or(String::new(), |names| names.get(row).to_string())
    };
    rows.iter()
        .map(|&row| {
            let class = if classes {
                name(&records.target, row)
            } else {
                String::new()
            };
            (name(&records.task, row), class)
        })
        .collect()
}

/// So many rows by lot, in their order: of each task and class its share, and at least one. All of them where there are no more.
///
/// # Errors
/// When there are more tasks and classes than that.
pub fn sample(frame: &Frame, records: &Records, count: usize, seed: u64) -> Result<Vec<usize>> {
    let all: Vec<usize> = (0..records.count()).collect();
    if count >= all.len() {
        return Ok(all);
    }
    let mut members: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (row, stratum) in strata(frame, records, &all).into_iter().enumerate() {
        members.entry(stratum).or_default().push(row);
    }
    let least = members.len();
    if count < least {
        return Err(TableError::Sample { count, least });
    }
    let mut random = mtmkl::random::Random::new(seed);
    let sizes: Vec<usize> = members.values().map(Vec::len).collect();
    let share = count as f64 / all.len() as f64;
    // What rounding leaves goes where most is missing of a share.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a row count"
    )]
    let mut taken: Vec<usize> = sizes
        .iter()
        .map(|&size| ((size as f64 * share).floor() as usize).max(1))
        .collect();
    let mut made = taken.iter().sum::<usize>();
    while made != count {
        // How many more rows than there are a stratum should have.
        let owed = |at: usize| sizes[at] as f64 * share - taken[at] as f64;
        let able = |at: &usize| {
            if made < count {
                taken[*at] < sizes[*at]
            } else {
                taken[*at] > 1
            }
        };
        let order = |a: &usize, b: &usize| owed(*a).total_cmp(&owed(*b)).then(b.cmp(a));
        let all = (0..sizes.len()).filter(able);
        let next = if made < count {
            all.max_by(order)
        } else {
            all.min_by(order)
        };
        let Some(at) = next else { break };
        if made < count {
            taken[at] += 1;
            made += 1;
        } else {
            taken[at] -= 1;
            made -= 1;
        }
    }
    let mut chosen = Vec::with_capacity(count);
    for (mut rows, taken) in members.into_values().zip(taken) {
        random.shuffle(&mut rows);
        chosen.extend(&rows[..taken]);
    }
    chosen.sort_unstable();
    Ok(chosen)
}

/// Splits rows into training and held-out ones: within each task and class the same share, at least one row on either side where
/// there are two.
///
/// # Errors
/// When the share is not between 0 and 1.
pub fn split(
    frame: &Frame,
    records: &Records,
    share: f64,
    seed: u64,
) -> Result<(Vec<usize>, Vec<usize>)> {
    if !(share > 0.0 && share < 1.0) {
        return Err(TableError::Share { share });
    }
    let all: Vec<usize> = (0..records.count()).collect();
    let mut members: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (row, stratum) in strata(frame, records, &all).into_iter().enumerate() {
        members.entry(stratum).or_default().push(row);
    }
    let mut random = mtmkl::random::Random::new(seed);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for mut rows in members.into_values() {
        random.shuffle(&mut rows);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a row count"
        )]
        let held = ((rows.len() as f64 * share).round() as usize).min(rows.len().saturating_sub(1));
        let held = if held == 0 && rows.len() > 1 { 1 } else { held };
        test.extend(rows.drain(..held));
        train.extend(rows);
    }
    train.sort_unstable();
    test.sort_unstable();
    Ok((train, test))
}
