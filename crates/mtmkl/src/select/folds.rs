//! The folds that are used where none are given.

use std::collections::BTreeMap;

use super::search::Fold;
use super::split::numbered;
use crate::data::Targets;
use crate::error::{DataProblem, Error, Place, Result};
use crate::problem::Prepared;
use crate::random::Random;

/// How many folds.
const FOLDS: usize = 5;

impl Prepared {
    /// Five folds of every sample set, with the mix of its tasks' labels: the rows of a class of a task, shuffled, are dealt out one by one. The only
    /// row of a class is always learned from.
    ///
    /// # Errors
    /// When no class of a task has two rows.
    pub(super) fn folds(&self, seed: u64) -> Result<Vec<Fold>> {
        let problem = self.problem();
        let mut strata: Vec<Vec<Vec<u64>>> = problem
            .samples()
            .iter()
            .map(|set| {
                // Samples of several tasks: each task has its share of every fold.
                let task = |i: usize| set.origins().map(|origins| origins.of[i] as u64);
                (0..set.count())
                    .map(|i| task(i).into_iter().collect())
                    .collect()
            })
            .collect();
        for (number, task) in problem.tasks().iter().enumerate() {
            if let Targets::Labels(labels) = &task.targets {
                let own = &mut strata[task.samples];
                for (row, label) in task.rows.iter(own.len()).zip(labels) {
                    own[row].extend([number as u64, label.to_bits()]);
                }
            }
        }
        let strata: Vec<Vec<usize>> = strata.iter().map(|own| numbered(own)).collect();
        // For each row the fold that keeps it aside.
        let mut random = Random::new(seed);
        let mut kept: Vec<Vec<Option<usize>>> = Vec::new();
        let mut next = 0;
        for own in &strata {
            let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (row, &kind) in own.iter().enumerate() {
                members.entry(kind).or_default().push(row);
            }
            let mut fold_of = vec![None; own.len()];
            for mut rows in members.into_values().filter(|rows| rows.len() > 1) {
                random.shuffle(&mut rows);
                for row in rows {
                    fold_of[row] = Some(next % FOLDS);
                    next += 1;
                }
            }
            kept.push(fold_of);
        }
        if next == 0 {
            let problem = "no class of a task has two samples, so that no fold can be kept aside; add samples";
            return Err(Error::data(Place::Problem, DataProblem::Empty(problem)));
        }
        let part = |wanted: &dyn Fn(Option<usize>) -> bool| -> Vec<Vec<usize>> {
            let of_set = |own: &Vec<Option<usize>>| {
                let rows = (0..own.len()).filter(|&row| wanted(own[row]));
                rows.collect()
            };
            kept.iter().map(of_set).collect()
        };
        let fold = |number: usize| Fold {
            learn: part(&|fold| fold != Some(number)),
            held: part(&|fold| fold == Some(number)),
        };
        Ok((0..FOLDS.min(next)).map(fold).collect())
    }
}
