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
