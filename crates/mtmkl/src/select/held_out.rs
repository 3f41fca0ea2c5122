//! Decision values of rows whose kernel values are in the Gram matrices already.

use crate::gram::TaskGrams;
use crate::model::Model;
use crate::problem::Prepared;

impl Prepared<'_> {
    /// f(x_j) = Σ_i β_i Σ_m θ_m K_m(i, j) + b for rows j of each sample set, by task: `held[s]` are the rows of sample set s, and
    /// every task on it decides about all of them. No kernel is computed.
    ///
    /// The model must have been fitted on these Gram matrices.
    pub fn decisions(&self, model: &Model, held: &[Vec<usize>]) -> Vec<Vec<f64>> {
        let machine = model.machine().build();
        let sets = model.support_sets();
        model
            .tasks()
            .iter()
            .enumerate()
            .map(|(number, task)| {
                let (grams, kernels) = self.whole(task.set);
                let all = TaskGrams { grams, view: None };
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
                    .map(|(value, own)| machine.decision(value + task.offset, *own))
                    .collect()
            })
            .collect()
    }
}
