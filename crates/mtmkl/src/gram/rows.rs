//! Rows of K(θ) = Σ_m θ_m K_m, combined when first asked for.

use std::sync::OnceLock;

use super::TaskGrams;

/// The combined kernel of one θ, row by row.
///
/// Rows are made on first use and kept; tasks with the same samples and the same θ may share one of these across threads,
/// since a row's content does not depend on who makes it.
#[derive(Debug)]
pub(crate) struct CombinedRows<'a> {
    grams: TaskGrams<'a>,
    weights: Vec<(usize, f64)>,
    diagonal: Vec<f64>,
    rows: Vec<OnceLock<Box<[f64]>>>,
}

impl<'a> CombinedRows<'a> {
    pub(crate) fn new(grams: TaskGrams<'a>, theta: &[f64]) -> Self {
        let n = grams.count();
        // A kernel without weight costs nothing.
        let weights: Vec<(usize, f64)> = theta
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, weight)| *weight != 0.0)
            .collect();
        let diagonal = (0..n)
            .map(|i| {
                weights
                    .iter()
                    .map(|&(kernel, weight)| weight * grams.diagonal(kernel, i))
                    .sum()
            })
            .collect();
        Self {
            grams,
            weights,
            diagonal,
            rows: std::iter::repeat_with(OnceLock::new).take(n).collect(),
        }
    }

    /// N_t.
    pub(crate) fn count(&self) -> usize {
        self.diagonal.len()
    }

    /// The diagonal of K(θ).
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// Row i of K(θ).
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        self.rows[i].get_or_init(|| {
            let mut row = vec![0.0; self.count()].into_boxed_slice();
            self.grams.add_kernels(i, &self.weights, &mut row);
            row
        })
    }

    /// out ← the entries (i, i), (i, j), (i, k), … of K(θ) for i < j < k < …, from row i where it was made already, else without
    /// making it.
    pub(crate) fn later_entries(&self, ascending: &[usize], out: &mut [f64]) {
        let Some(&first) = ascending.first() else {
            return;
        };
        if let Some(row) = self.rows[first].get() {
            for (value, &j) in out.iter_mut().zip(ascending) {
                *value = row[j];
            }
        } else if let Some(tail) = self.grams.tail(first, &self.weights) {
            for (value, &j) in out.iter_mut().zip(ascending) {
                *value = tail[j - first];
            }
        } else {
            self.grams.entries(first, ascending, &self.weights, out);
        }
    }
}
