//! Decision values of rows whose kernel values are in the Gram matrices already.

use crate::error::{DataProblem, Error, Place, Result};
use crate::gram::TaskGrams;
use crate::model::Model;
use crate::problem::Prepared;

impl Prepared {
    /// f(x_j) = Σ_i β_i Σ_m θ_m K_m(i, j) + b for rows j of each sample set, by task: `held[s]` are the rows of sample set s, and
    /// every task on it decides about all of them. No kernel is computed.
    ///
    /// The model must have been fitted on these Gram matrices.
    ///
    /// # Errors
    /// When it was fitted on other ones, as far as can be seen, or a row is not there.
    pub fn decisions(&self, model: &Model, held: &[Vec<usize>]) -> Result<Vec<Vec<f64>>> {
        let machine = model.machine().build();
        let sets = model.support_sets();
        let samples: Vec<usize> = self.samples().collect();
        let of_model = sets.iter().map(|set| set.samples);
        if !of_model.eq(samples.iter().copied()) || model.shape().kernels != self.whole(0).1.len() {
            return Err(Error::param(
                "model",
                "of other samples or kernels",
                "a model that was fitted on these Gram matrices",
            ));
        }
        if held.len() != samples.len() {
            return Err(Error::data(
                Place::Problem,
                DataProblem::Length {
                    what: "lists of rows, one for each sample set",
                    found: held.len(),
                    expected: samples.len(),
                },
            ));
        }
        for (set, (rows, &samples)) in held.iter().zip(&samples).enumerate() {
            check_rows(rows, set, samples)?;
        }
        let decisions = model
            .tasks()
            .iter()
            .enumerate()
            .map(|(number, task)| {
                let (grams, kernels) = self.whole(task.set);
                let all = TaskGrams::all(grams.as_ref());
                let held = &held[task.set];
                let positions = &sets[task.set].positions;
                // Whole rows, one after the other: faster than picking the entries that are wanted out of each.
                let mut sums = vec![0.0; grams.samples()];
                let mut own = vec![0.0; held.len()];
                for (&kernel, &weight) in kernels.iter().zip(model.weights().row(number)) {
                    if weight == 0.0 {
                        continue;
                    }
                    let support = task.support.iter().zip(&task.beta);
                    let rows: Vec<(usize, f64)> = support
                        .map(|(&row, &beta)| (positions[row], weight * beta))
                        .collect();
                    all.add_rows(kernel, &rows, &mut sums);
                    if machine.uses_own_kernel() {
                        let diagonal = grams.diagonal(kernel);
                        for (own, &j) in own.iter_mut().zip(held) {
                            *own += weight * diagonal[j];
                        }
                    }
                }
                let values = held.iter().map(|&j| sums[j]);
                values
                    .zip(&own)
                    .map(|(value, own)| {
                        let decision = machine.decision(value + task.offset, *own);
                        task.unit.back(decision)
                    })
                    .collect()
            })
            .collect();
        Ok(decisions)
    }
}

/// Whether these are rows of a sample set with so many.
pub(super) fn check_rows(rows: &[usize], set: usize, samples: usize) -> Result<()> {
    match rows.iter().find(|&&row| row >= samples) {
        Some(&index) => Err(Error::data(
            Place::Samples(set),
            DataProblem::RowIndex { index, samples },
        )),
        None => Ok(()),
    }
}
