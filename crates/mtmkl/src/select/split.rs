//! Splits of rows: k folds, repeated draws, shares for learning, choosing and testing.
//!
//! Every split keeps the mix of *strata*: rows of one stratum (one class of one task) are dealt out evenly. Rows of one *group*
//! (one patient, one writer) stay together. Splits depend on the seed only.

use crate::error::{Error, Result};
use crate::random::Random;

/// Rows for learning, for choosing between models, and for testing the choice; each in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// To learn from.
    pub train: Vec<usize>,
    /// To choose by.
    pub validation: Vec<usize>,
    /// To judge the choice by; empty where a split has two parts only.
    pub test: Vec<usize>,
}

impl Split {
    fn sorted(mut parts: [Vec<usize>; 3]) -> Self {
        for part in &mut parts {
            part.sort_unstable();
        }
        let [train, validation, test] = parts;
        Self {
            train,
            validation,
            test,
        }
    }
}

/// k folds: fold i is kept aside (as `validation`) in split i, the others are for learning.
///
/// The rows of a stratum, shuffled, are dealt out one by one; each stratum goes on where the last one ended, so that folds differ by
/// one row at most, in all and in each stratum. With groups, whole groups are dealt out, the largest first, each to the fold
/// in which it leaves strata most even.
///
/// # Errors
/// When there are fewer than two folds, or a stratum has fewer rows (with groups: all rows fewer groups) than folds.
pub fn k_fold(
    strata: &[usize],
    groups: Option<&[usize]>,
    folds: usize,
    seed: u64,
) -> Result<Vec<Split>> {
    if folds < 2 {
        return Err(Error::param("folds", folds, "at least 2"));
    }
    check_rows(strata, groups)?;
    let mut random = Random::new(seed);
    let mut fold_of = vec![0; strata.len()];
    if let Some(groups) = groups {
        let members = members(groups);
        if members.len() < folds {
            let expected = format!("at most {}, the number of groups", members.len());
            return Err(Error::param("folds", folds, expected));
        }
        for (rows, fold) in deal_groups(members, strata, folds, &mut random) {
            for row in rows {
                fold_of[row] = fold;
            }
        }
    } else {
        let mut next = 0;
        for mut rows in members(strata) {
            if rows.len() < folds {
                let expected = format!("at most {}, the rows of the smallest class", rows.len());
                return Err(Error::param("folds", folds, expected));
            }
            random.shuffle(&mut rows);
            for row in rows {
                fold_of[row] = next % folds;
                next += 1;
            }
        }
    }
    Ok((0..folds)
        .map(|fold| {
            let mut parts = [Vec::new(), Vec::new(), Vec::new()];
            for (row, &own) in fold_of.iter().enumerate() {
                parts[usize::from(own == fold)].push(row);
            }
            Split::sorted(parts)
        })
        .collect())
}

/// One draw: the share `train` of each stratum for learning, the share `validation` for choosing, the rest for testing.
///
/// Each part of each stratum has at least one row (the test part only where its share is not 0), if need be at the cost of the
/// others. The part sizes are rounded to the nearest row; what is left of the rest is halved fairly from stratum to stratum.
/// With groups, whole groups are drawn until a part has its share of the rows.
///
/// # Errors
/// When the shares are not positive or sum up to more than 1, or a stratum has fewer rows than there are parts.
pub fn by_shares(
    strata: &[usize],
    groups: Option<&[usize]>,
    train: f64,
    validation: f64,
    seed: u64,
) -> Result<Split> {
    let share = |name: &'static str, value: f64| {
        if value > 0.0 && value < 1.0 {
            Ok(())
        } else {
            Err(Error::param(name, value, "a number between 0 and 1"))
        }
    };
    check_rows(strata, groups)?;
    share("train share", train)?;
    share("validation share", validation)?;
    // Shares are typed as decimals: 0.7 and 0.3 sum up to a little more or less than 1.
    if train + validation > 1.0 + 1e-9 {
        return Err(Error::param(
            "validation share",
            validation,
            format!("at most {}, what the train share leaves", 1.0 - train),
        ));
    }
    let tested = train + validation < 1.0 - 1e-9;
    let parts = if tested { 3 } else { 2 };
    let mut random = Random::new(seed);
    let mut made = [Vec::new(), Vec::new(), Vec::new()];
    if let Some(groups) = groups {
        let goals = [train, validation, 1.0].map(|share| share * strata.len() as f64);
        return groups_by_shares(members(groups), &goals[..parts], &mut random);
    }
    // What rounding gave to one stratum's validation part, the next one's test part gets.
    let mut owed = 0.0;
    for mut rows in members(strata) {
        let n = rows.len();
        if n < parts {
            let expected = format!("at least {parts}, one for each part of the split");
            return Err(Error::param("rows of the smallest class", n, expected));
        }
        random.shuffle(&mut rows);
        let learn = rounded(train * n as f64).clamp(1, n + 1 - parts);
        let most = n - learn - (parts - 2);
        let choose = if tested {
            let exact = (n - learn) as f64 * validation / (1.0 - train) + owed;
            let choose = rounded(exact).clamp(1, most);
            owed = exact - choose as f64;
            choose
        } else {
            most
        };
        let rest = rows.split_off(learn);
        made[0].extend(rows);
        made[1].extend(&rest[..choose]);
        made[2].extend(&rest[choose..]);
    }
    Ok(Split::sorted(made))
}

/// Whole groups, by lot, to as many parts as there are goals, each of about so many rows.
fn groups_by_shares(
    mut members: Vec<Vec<usize>>,
    goals: &[f64],
    random: &mut Random,
) -> Result<Split> {
    let parts = goals.len();
    if members.len() < parts {
        let expected = format!("at least {parts}, one for each part");
        return Err(Error::param("groups", members.len(), expected));
    }
    random.shuffle(&mut members);
    let mut made = [Vec::new(), Vec::new(), Vec::new()];
    let mut left = members.len();
    for rows in members {
        // As many groups must be left as there are parts without one.
        let part = (0..parts)
            .find(|&part| {
                let empty = (part + 1..parts)
                    .filter(|&other| made[other].is_empty())
                    .count();
                made[part].is_empty()
                    || (made[part].len() as f64 + 0.5 < goals[part] && left > empty)
            })
            .unwrap_or(parts - 1);
        made[part].extend(rows);
        left -= 1;
    }
    Ok(Split::sorted(made))
}

/// The same draw, repeated with other seeds that follow from this one.
///
/// # Errors
/// As [`by_shares`].
pub fn repeated(
    strata: &[usize],
    groups: Option<&[usize]>,
    train: f64,
    validation: f64,
    repeats: usize,
    seed: u64,
) -> Result<Vec<Split>> {
    let mut seeds = Random::new(seed);
    (0..repeats)
        .map(|_| by_shares(strata, groups, train, validation, seeds.bits()))
        .collect()
}

/// Numbers for names: equal names get equal numbers, in the order of their first rows.
pub fn numbered<T: Ord>(names: &[T]) -> Vec<usize> {
    let mut known = std::collections::BTreeMap::new();
    names
        .iter()
        .map(|name| {
            let next = known.len();
            *known.entry(name).or_insert(next)
        })
        .collect()
}

/// Whether there are rows, and a group for each.
fn check_rows(strata: &[usize], groups: Option<&[usize]>) -> Result<()> {
    if strata.is_empty() {
        return Err(Error::param("rows", 0, "at least one to split"));
    }
    match groups {
        Some(groups) if groups.len() != strata.len() => {
            let expected = format!("{}, one for each row", strata.len());
            Err(Error::param("groups", groups.len(), expected))
        }
        _ => Ok(()),
    }
}

/// The rows of each number, in the order of the numbers.
fn members(numbers: &[usize]) -> Vec<Vec<usize>> {
    let mut members: std::collections::BTreeMap<usize, Vec<usize>> =
        std::collections::BTreeMap::new();
    for (row, &number) in numbers.iter().enumerate() {
        members.entry(number).or_default().push(row);
    }
    members.into_values().collect()
}

/// Whole groups to folds.
fn deal_groups(
    mut members: Vec<Vec<usize>>,
    strata: &[usize],
    folds: usize,
    random: &mut Random,
) -> Vec<(Vec<usize>, usize)> {
    // The order of groups of one size is random, the order of sizes is not.
    random.shuffle(&mut members);
    members.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
    // Any numbers may stand for strata.
    let strata = numbered(strata);
    let kinds = strata.iter().max().map_or(0, |most| most + 1);
    let mut counts = vec![vec![0_usize; kinds]; folds];
    let mut dealt = Vec::with_capacity(members.len());
    let is_empty = |counts: &[usize]| counts.iter().all(|&count| count == 0);
    let total = members.len();
    for (number, rows) in members.into_iter().enumerate() {
        // Σ (count + own)² − count² = Σ own (2 count + own): least where these strata are rarest.
        let mut own = vec![0_usize; kinds];
        for &row in &rows {
            own[strata[row]] += 1;
        }
        let cost = |counts: &[usize]| -> usize {
            counts
                .iter()
                .zip(&own)
                .map(|(count, own)| own * (2 * count + own))
                .sum()
        };
        // Where as many groups are left as folds are empty, each of those gets one.
        let empty = counts.iter().filter(|counts| is_empty(counts)).count();
        let must_fill = total - number == empty;
        let fold = (0..folds)
            .filter(|&fold| !must_fill || is_empty(&counts[fold]))
            .min_by_key(|&fold| (cost(&counts[fold]), fold))
            .unwrap_or(0);
        counts[fold]
            .iter_mut()
            .zip(&own)
            .for_each(|(count, own)| *count += own);
        dealt.push((rows, fold));
    }
    dealt
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a row count"
)]
fn rounded(value: f64) -> usize {
    value.round().max(0.0) as usize
}
