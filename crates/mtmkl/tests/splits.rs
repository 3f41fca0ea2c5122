//! Splits: every row in one part, even in every stratum, groups together.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use mtmkl::select::split;
use proptest::prelude::*;

fn counts(strata: &[usize], rows: &[usize]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for &row in rows {
        *counts.entry(strata[row]).or_default() += 1;
    }
    counts
}

/// Every row is in exactly one part.
fn is_partition(parts: &[&[usize]], rows: usize) -> bool {
    let mut all: Vec<usize> = parts.iter().flat_map(|part| part.iter().copied()).collect();
    all.sort_unstable();
    all == (0..rows).collect::<Vec<_>>()
}

proptest! {
    #[test]
    fn folds_are_even_in_every_stratum(strata in prop::collection::vec(0_usize..4, 20..120), folds in 2_usize..6, seed: u64) {
        let all = counts(&strata, &(0..strata.len()).collect::<Vec<_>>());
        let made = split::k_fold(&strata, None, folds, seed);
        if all.values().any(|&count| count < folds) {
            prop_assert!(made.is_err());
            return Ok(());
        }
        let made = made.unwrap();
        prop_assert_eq!(made.len(), folds);
        let held: Vec<&[usize]> = made.iter().map(|split| split.validation.as_slice()).collect();
        prop_assert!(is_partition(&held, strata.len()));
        let sizes: Vec<usize> = held.iter().map(|held| held.len()).collect();
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        for split in &made {
            prop_assert!(is_partition(&[&split.train, &split.validation], strata.len()));
            prop_assert!(split.test.is_empty());
            let own = counts(&strata, &split.validation);
            for (stratum, &count) in &all {
                let own = own.get(stratum).copied().unwrap_or(0);
                prop_assert!(own == count / folds || own == count.div_ceil(folds));
            }
        }
        prop_assert_eq!(&made, &split::k_fold(&strata, None, folds, seed).unwrap());
    }

    #[test]
    fn groups_stay_together(groups in prop::collection::vec(0_usize..12, 20..120), folds in 2_usize..5, seed: u64) {
        let strata: Vec<usize> = groups.iter().enumerate().map(|(row, group)| (row + group) % 2).collect();
        let kinds = counts(&groups, &(0..groups.len()).collect::<Vec<_>>()).len();
        let made = split::k_fold(&strata, Some(&groups), folds, seed);
        if kinds < folds {
            prop_assert!(made.is_err());
            return Ok(());
        }
        for split in made.unwrap() {
            prop_assert!(!split.validation.is_empty());
            prop_assert!(is_partition(&[&split.train, &split.validation], groups.len()));
            prop_assert!(split.validation.iter().all(|&a| split.train.iter().all(|&b| groups[a] != groups[b])));
        }
        if kinds >= 3 {
            let split = split::by_shares(&strata, Some(&groups), 0.5, 0.25, seed).unwrap();
            let parts = [split.train.as_slice(), &split.validation, &split.test];
            prop_assert!(is_partition(&parts, groups.len()));
            for (i, a) in parts.iter().enumerate() {
                prop_assert!(!a.is_empty());
                for b in &parts[i + 1..] {
                    prop_assert!(a.iter().all(|&a| b.iter().all(|&b| groups[a] != groups[b])));
                }
            }
        }
    }

    #[test]
    fn shares_are_kept_in_every_stratum(
        strata in prop::collection::vec(0_usize..3, 20..200), train in 0.01_f64..0.8, half: bool, seed: u64,
    ) {
        let all = counts(&strata, &(0..strata.len()).collect::<Vec<_>>());
        prop_assume!(all.values().all(|&count| count >= 3));
        let validation = if half { 0.5 * (1.0 - train) } else { 1.0 - train };
        let split = split::by_shares(&strata, None, train, validation, seed).unwrap();
        prop_assert!(is_partition(&[&split.train, &split.validation, &split.test], strata.len()));
        prop_assert_eq!(split.test.is_empty(), !half);
        let learned = counts(&strata, &split.train);
        let chosen = counts(&strata, &split.validation);
        for (stratum, &count) in &all {
            let exact = train * count as f64;
            let own = learned[stratum] as f64;
            prop_assert!((own - exact).abs() <= 0.5 || own == 1.0 || learned[stratum] + 2 >= count);
            prop_assert!(chosen[stratum] >= 1);
        }
        if half && all.values().all(|&count| count > 10) && train < 0.6 {
            // Halves, in all and not only in each stratum.
            prop_assert!(split.validation.len().abs_diff(split.test.len()) <= 2);
        }
        let again = split::repeated(&strata, None, train, validation, 3, seed).unwrap();
        prop_assert_eq!(&again, &split::repeated(&strata, None, train, validation, 3, seed).unwrap());
        prop_assert!(again[0] != again[1] || again[1] != again[2] || strata.len() < 30);
    }
}

#[test]
fn splits_that_cannot_be() {
    let strata = [0, 0, 0, 1, 1];
    let message = split::k_fold(&strata, None, 3, 0).unwrap_err().to_string();
    assert!(message.contains("at most 2"), "{message}");
    assert!(split::k_fold(&strata, None, 1, 0).is_err());
    for (train, validation) in [
        (0.0, 0.5),
        (1.0, 0.5),
        (0.7, 0.5),
        (f64::NAN, 0.5),
        (0.5, 0.0),
    ] {
        assert!(split::by_shares(&strata, None, train, validation, 0).is_err());
    }
    assert!(split::by_shares(&strata, None, 0.4, 0.3, 0).is_err());
    assert!(split::by_shares(&strata, None, 0.4, 0.6, 0).is_ok());
}
