//! Gram matrices: label-free, owned by sample sets and shared by their tasks; combined row by row, on demand.

mod build;
mod cross;
mod rows;

use std::sync::Arc;

pub use build::Definiteness;
pub(crate) use build::{build, memory_needed};
pub(crate) use cross::CrossKernels;
pub(crate) use rows::CombinedRows;

/// The M Gram matrices of one sample set: symmetric, n × n, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Grams {
    samples: usize,
    matrices: Vec<Arc<[f64]>>,
    diagonals: Vec<Vec<f64>>,
}

impl Grams {
    pub(crate) fn new(samples: usize, matrices: Vec<Arc<[f64]>>) -> Self {
        let diagonals = matrices
            .iter()
            .map(|matrix| (0..samples).map(|i| matrix[i * samples + i]).collect())
            .collect();
        Self {
            samples,
            matrices,
            diagonals,
        }
    }

    /// M.
    pub(crate) fn kernels(&self) -> usize {
        self.matrices.len()
    }

    /// Row i of K_m.
    pub(crate) fn row(&self, kernel: usize, i: usize) -> &[f64] {
        &self.matrices[kernel][i * self.samples..(i + 1) * self.samples]
    }

    /// The diagonal of K_m.
    pub(crate) fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }
}

/// The Gram matrices as one task sees them: all samples, or some of them in its own order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskGrams<'a> {
    pub(crate) grams: &'a Grams,
    pub(crate) view: Option<&'a [usize]>,
}

impl TaskGrams<'_> {
    /// N_t.
    pub(crate) fn count(&self) -> usize {
        self.view.map_or(self.grams.samples, <[usize]>::len)
    }

    /// The sample's position in its sample set.
    pub(crate) fn position(&self, i: usize) -> usize {
        self.view.map_or(i, |view| view[i])
    }

    /// out ← out + Σ_(i, a) a · (row i of K_m).
    pub(crate) fn add_rows(&self, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        self.add(
            rows.iter()
                .map(|&(i, a)| (a, self.grams.row(kernel, self.position(i)))),
            out,
        );
    }

    /// out ← out + Σ_(m, a) a · (row i of K_m).
    pub(crate) fn add_kernels(&self, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let at = self.position(i);
        self.add(
            weights
                .iter()
                .map(|&(kernel, a)| (a, self.grams.row(kernel, at))),
            out,
        );
    }

    fn add<'b>(&self, rows: impl Iterator<Item = (f64, &'b [f64])>, out: &mut [f64]) {
        match self.view {
            None => crate::vector::add_rows(&rows.collect::<Vec<_>>(), out),
            Some(view) => {
                for (a, row) in rows {
                    for (value, &j) in out.iter_mut().zip(view) {
                        *value += a * row[j];
                    }
                }
            }
        }
    }

    /// out ← Σ_(m, a) a · K_m(i, columns).
    pub(crate) fn entries(
        &self,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let at = self.position(i);
        for &(kernel, a) in weights {
            let row = self.grams.row(kernel, at);
            match self.view {
                None => {
                    for (value, &j) in out.iter_mut().zip(columns) {
                        *value += a * row[j];
                    }
                }
                Some(view) => {
                    for (value, &j) in out.iter_mut().zip(columns) {
                        *value += a * row[view[j]];
                    }
                }
            }
        }
    }

    /// K_m(i, i).
    pub(crate) fn diagonal(&self, kernel: usize, i: usize) -> f64 {
        self.grams.diagonal(kernel)[self.position(i)]
    }
}
