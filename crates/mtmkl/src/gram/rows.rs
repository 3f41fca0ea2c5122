//! Rows of K(θ) = Σ_m θ_m K_m, combined when first asked for.

use std::sync::OnceLock;

use super::TaskGrams;

/// The combined kernel of one θ, row by row.
///
/// Rows are made on first use and kept; tasks with the same samples and the same θ may share one of these across threads,
/// since a row's content does not depend on who makes it. Where kernel values are made on demand, all rows are made together: by
/// symmetry that takes half as many values, and nearly all rows are asked for.
#[derive(Debug)]
pub(crate) struct CombinedRows<'a> {
    grams: TaskGrams<'a>,
    weights: Vec<(usize, f64)>,
    diagonal: Vec<f64>,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Single(Vec<OnceLock<Box<[f64]>>>),
    Together(OnceLock<Vec<f64>>),
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
        let mut diagonal = vec![0.0; n];
        for &(kernel, weight) in &weights {
            for (i, sum) in diagonal.iter_mut().enumerate() {
                *sum += weight * grams.diagonal(kernel, i);
            }
        }
        let rows = if grams.grams.are_made() {
            Rows::Together(OnceLock::new())
        } else {
            Rows::Single(std::iter::repeat_with(OnceLock::new).take(n).collect())
        };
        Self {
            grams,
            weights,
            diagonal,
            rows,
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
        let n = self.count();
        match &self.rows {
            Rows::Single(rows) => rows[i].get_or_init(|| {
                let mut row = vec![0.0; n].into_boxed_slice();
                self.grams.add_kernels(i, &self.weights, &mut row);
                row
            }),
            Rows::Together(rows) => {
                let rows = rows.get_or_init(|| self.grams.combined(&self.weights));
                &rows[i * n..(i + 1) * n]
            }
        }
    }

    /// Whether all rows are made together: then they are cheap, and rows of single kernels are not.
    pub(crate) fn are_together(&self) -> bool {
        matches!(self.rows, Rows::Together(_))
    }

    /// Makes all rows now, where they are made together. Whoever shares them with others must: threads that wait for rows while they
    /// help with making them would wait for themselves.
    pub(crate) fn make_together(&self) {
        if self.are_together() && self.count() > 0 {
            self.row(0);
        }
    }

    /// Whether row i is made already, or would be made with all others.
    fn is_at_hand(&self, i: usize) -> bool {
        match &self.rows {
            Rows::Single(rows) => rows[i].get().is_some(),
            Rows::Together(_) => true,
        }
    }

    /// out ← the entries (i, i), (i, j), (i, k), … of K(θ) for i < j < k < …, from row i where it was made already, else without
    /// making it.
    pub(crate) fn later_entries(&self, ascending: &[usize], out: &mut [f64]) {
        let Some(&first) = ascending.first() else {
            return;
        };
        if self.is_at_hand(first) {
            let row = self.row(first);
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
