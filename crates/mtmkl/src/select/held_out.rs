//! Decision values of rows whose kernel values are in the Gram matrices already.

use crate::error::{DataProblem, Error, Place, Result};
use crate::gram::TaskGrams;
use crate::linalg;
use crate::model::Model;
use crate::problem::Prepared;

/// Rows that are combined at a time.
const BLOCK: usize = 128;

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
        let mut sums: Vec<Vec<f64>> = vec![Vec::new(); model.tasks().len()];
        for (set, held) in held.iter().enumerate() {
            let tasks = (0..sums.len()).filter(|&task| model.tasks()[task].set == set);
            let tasks: Vec<usize> = tasks.collect();
            if !tasks.is_empty() {
                let found = self.sums_on(model, set, &tasks, held);
                for (task, found) in tasks.into_iter().zip(found) {
                    sums[task] = found;
                }
            }
        }
        let decide = |(number, sums): (usize, Vec<f64>)| {
            let task = &model.tasks()[number];
            let held = &held[task.set];
            let mut own = vec![0.0; held.len()];
            if machine.uses_own_kernel() {
                let (grams, kernels) = self.whole(task.set);
                for (&kernel, &weight) in kernels.iter().zip(model.weights().row(number)) {
                    let diagonal = grams.diagonal(kernel);
                    for (own, &j) in own.iter_mut().zip(held) {
                        *own += weight * diagonal[j];
                    }
                }
            }
            let values = sums.iter().zip(&own);
            values
                .map(|(value, own)| {
                    let decision = machine.decision(value + task.offset, *own);
                    task.unit.back(decision)
                })
                .collect()
        };
        Ok(sums.into_iter().enumerate().map(decide).collect())
    }

    /// Σ_i β_i Σ_m θ_m K_m(i, j) of these tasks on a sample set, for the rows j that are held.
    fn sums_on(&self, model: &Model, set: usize, tasks: &[usize], held: &[usize]) -> Vec<Vec<f64>> {
        let (grams, kernels) = self.whole(set);
        let all = TaskGrams::all(grams.as_ref());
        let n = grams.samples();
        let positions = &model.support_sets()[set].positions;
        let theta = |task: usize| model.weights().row(task);
        let support = |task: usize| {
            let own = &model.tasks()[task];
            let pairs = own.support.iter().zip(&own.beta);
            pairs.map(|(&row, &beta)| (positions[row], beta))
        };
        let is_common = tasks.iter().all(|&task| theta(task) == theta(tasks[0]));
        // Rows of Gram matrices to be read, one way or the other; a product with all β costs about an eighth of a row.
        let by_support: usize = tasks.iter().map(|&task| support(task).count()).sum();
        if !is_common || held.len() + held.len() * tasks.len() / (8 * kernels.len()) > by_support {
            let of_task = |&task: &usize| {
                // Whole rows, one after the other: faster than picking the entries that are wanted out of each.
                let mut sums = vec![0.0; n];
                for (&kernel, &weight) in kernels.iter().zip(theta(task)) {
                    if weight != 0.0 {
                        let rows: Vec<(usize, f64)> = support(task)
                            .map(|(row, beta)| (row, weight * beta))
                            .collect();
                        all.add_rows(kernel, &rows, &mut sums);
                    }
                }
                held.iter().map(|&j| sums[j]).collect()
            };
            return tasks.iter().map(of_task).collect();
        }
        // K(θ) of the rows that are held, times β of all tasks.
        let mut betas = vec![0.0; tasks.len() * n];
        for (&task, out) in tasks.iter().zip(betas.chunks_mut(n)) {
            for (row, beta) in support(task) {
                out[row] = beta;
            }
        }
        let weights = kernels.iter().copied().zip(theta(tasks[0]).iter().copied());
        let weights: Vec<(usize, f64)> = weights.filter(|(_, weight)| *weight != 0.0).collect();
        let mut sums = vec![Vec::with_capacity(held.len()); tasks.len()];
        for block in held.chunks(BLOCK) {
            let mut rows = vec![0.0; block.len() * n];
            for (&j, row) in block.iter().zip(rows.chunks_mut(n)) {
                all.add_kernels(j, &weights, row);
            }
            let mut products = vec![0.0; block.len() * tasks.len()];
            linalg::products_into(&rows, &betas, n, &mut products, tasks.len());
            for row in products.chunks(tasks.len()) {
                for (sums, value) in sums.iter_mut().zip(row) {
                    sums.push(*value);
                }
            }
        }
        sums
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
