//! The folds that are used where none are given.

use super::search::Fold;
use super::split::{Split, k_fold, numbered};
use crate::data::Targets;
use crate::error::{DataProblem, Error, Place, Result};
use crate::problem::Prepared;

/// How many folds.
const FOLDS: usize = 5;

impl Prepared {
    /// Five folds of every sample set, with the mix of its tasks' labels. Rows of a class that has fewer than that in its task are always learned
    /// from; where there are no others, there are as few folds as the smallest class has rows.
    ///
    /// # Errors
    /// When no class of a task has two rows.
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
        let sizes: Vec<Vec<usize>> = strata.iter().map(|own| sizes(own)).collect();
        let many = |own: &Vec<usize>| own.iter().filter(|&&size| size >= FOLDS).count();
        let count = if sizes.iter().any(|own| many(own) > 1) {
            FOLDS
        } else {
            let some = sizes.iter().flatten().copied().filter(|&size| size > 1);
            some.min().unwrap_or(0).min(FOLDS)
        };
        if count < 2 {
            let problem = "no class of a task has two samples, so that no fold can be kept aside; add samples";
            return Err(Error::data(Place::Problem, DataProblem::Empty(problem)));
        }
        let mut folds = vec![
            Fold {
                learn: Vec::new(),
                held: Vec::new()
            };
            count
        ];
        for (own, sizes) in strata.iter().zip(&sizes) {
            let (many, few): (Vec<usize>, Vec<usize>) =
                (0..own.len()).partition(|&row| sizes[own[row]] >= count);
            let kinds: Vec<usize> = many.iter().map(|&row| own[row]).collect();
            let splits = if many.is_empty() {
                Vec::new()
            } else {
                k_fold(&numbered(&kinds), None, count, seed)?
            };
            for (number, fold) in folds.iter_mut().enumerate() {
                let rows = |part: fn(&Split) -> &Vec<usize>| -> Vec<usize> {
                    let part = splits.get(number).map_or(&[][..], |split| part(split));
                    part.iter().map(|&at| many[at]).collect()
                };
                let mut learn = rows(|split| &split.train);
                learn.extend(&few);
                learn.sort_unstable();
                fold.learn.push(learn);
                fold.held.push(rows(|split| &split.validation));
            }
        }
        Ok(folds)
    }
}

/// How many rows each stratum has.
fn sizes(strata: &[usize]) -> Vec<usize> {
    let mut sizes = vec![0; strata.iter().max().map_or(0, |most| most + 1)];
    for &kind in strata {
        sizes[kind] += 1;
    }
    sizes
}
