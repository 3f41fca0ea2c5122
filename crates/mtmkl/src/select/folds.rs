//! The folds that are used where none are given.

use super::search::Fold;
use super::split::{k_fold, numbered};
use crate::data::Targets;
use crate::error::{DataProblem, Error, Place, Result};
use crate::problem::Prepared;

/// How many folds.
const FOLDS: usize = 5;

impl Prepared {
    /// Five folds of every sample set, with the mix of its tasks' labels; fewer where a class of a task has fewer rows.
    ///
    /// # Errors
    /// When a class of a task has one row only.
    pub(super) fn folds(&self, seed: u64) -> Result<Vec<Fold>> {
        let problem = self.problem();
        let mut strata: Vec<Vec<Vec<u64>>> = problem
            .samples()
            .iter()
            .map(|set| vec![Vec::new(); set.count()])
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
        let rarest = strata.iter().flat_map(|own| {
            let kinds = own.iter().max().map_or(0, |most| most + 1);
            let count = move |kind| own.iter().filter(|&&other| other == kind).count();
            (0..kinds).map(count)
        });
        let count = rarest.min().unwrap_or(0).min(FOLDS);
        if count < 2 {
            let problem = "a class of a task has one sample only, so that no fold of it can be kept aside; leave the class out, or add samples";
            return Err(Error::data(Place::Problem, DataProblem::Empty(problem)));
        }
        let splits = strata
            .iter()
            .map(|own| k_fold(own, None, count, seed))
            .collect::<Result<Vec<_>>>()?;
        let fold = |number: usize| Fold {
            learn: splits.iter().map(|own| own[number].train.clone()).collect(),
            held: splits
                .iter()
                .map(|own| own[number].validation.clone())
                .collect(),
        };
        Ok((0..count).map(fold).collect())
    }
}
