//! Gram matrices: label-free, owned by sample sets and shared by their tasks, as one operator each.
//!
//! A plan says what is computed and what that takes, `build` computes it, and what comes out is an [`Operator`]: matrices that are kept,
//! or made on demand from a base, or both. A task sees it through a view; K(θ) is combined row by row, when it is asked for.

mod blocks;
mod build;
mod composed;
mod cross;
mod definiteness;
mod images;
mod kept;
mod map;
mod mapped;
mod measure;
mod memory;
mod normaliser;
mod operator;
mod pairs;
mod plan;
mod restricted;
mod rows;
mod set_plan;
mod spanned;
mod sparse;
mod streamed;
mod triangle;
mod values;
mod weighted;

use std::sync::Arc;

pub(crate) use build::Built;
pub(crate) use cross::{CrossKernels, CrossPiece};
pub use definiteness::Definiteness;
pub(crate) use measure::Measured;
pub use measure::{ColumnMoments, measured_rows};
pub(crate) use memory::Memory;
pub(crate) use normaliser::Normaliser;
pub use operator::{ByChange, Image, OnSupport, Operator, by_kernel};
#[cfg(test)]
pub(crate) use plan::Plan;
pub use plan::Storage;
pub(crate) use plan::{Options, square};
pub(crate) use rows::{CombinedRows, can_be_rounded};
pub(crate) use set_plan::SetPlan;
pub(crate) use spanned::Spanned;
pub(crate) use values::Values;

use crate::ledger::Ledger;
use crate::run::Stop;
use crate::view::View;

/// The Gram matrices of one sample set.
pub(crate) type Grams = Arc<dyn Operator>;

/// An operator on matrices that are kept, n × n each, symmetric, row by row: they are shared with the caller.
pub fn kept(samples: usize, matrices: Vec<Arc<Vec<f64>>>, ledger: &Ledger) -> Arc<dyn Operator> {
    Arc::new(kept::Kept::given(samples, matrices, ledger))
}

/// These matrices, for tests.
#[cfg(test)]
pub(crate) fn given(samples: usize, matrices: Vec<Vec<f64>>) -> Grams {
    let matrices = matrices.into_iter().map(Into::into).collect();
    kept(samples, matrices, &Ledger::default())
}

/// The Gram matrices as one task sees them: all samples, or some of them in its own order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskGrams<'a> {
    pub(crate) grams: &'a dyn Operator,
    pub(crate) view: &'a View,
}

impl<'a> TaskGrams<'a> {
    /// As a task on all samples sees them.
    pub(crate) fn all(grams: &'a dyn Operator) -> Self {
        static ALL: View = View::All;
        Self { grams, view: &ALL }
    }
}

impl TaskGrams<'_> {
    /// N_t.
    pub(crate) fn count(&self) -> usize {
        self.view.count(self.grams.samples())
    }

    /// out ← out + Σ_(i, a) a · (row i of K_m).
    pub(crate) fn add_rows(&self, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        self.grams.add_rows(self.view, kernel, rows, out);
    }

    /// out ← out + Σ_(m, a) a · (row i of K_m).
    pub(crate) fn add_kernels(&self, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        self.grams.add_kernels(self.view, i, weights, out);
    }

    /// out ← Σ_(m, a) a · K_m(i, columns).
    pub(crate) fn entries(
        &self,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        self.grams.entries(self.view, i, columns, weights, out);
    }

    /// Σ_(m, a) a K_m, N_t × N_t, row by row. Worth nothing where `stop` comes first.
    fn combined(&self, weights: &[(usize, f64)], stop: &Stop) -> Memory<f64> {
        let n = self.count();
        let mut all = Memory::passing(n * n, self.grams.ledger());
        self.grams.combine(self.view, weights, &mut all, stop);
        all
    }

    /// The same in single precision, where possible in memory that is there; what is taken anew has room for three times as many samples, up to
    /// `most`: what is not written costs nothing, and pages that were written need not be had from the system again.
    fn combined_rounded(
        &self,
        weights: &[(usize, f64)],
        spare: Option<Memory<f32>>,
        most: usize,
        stop: &Stop,
    ) -> Memory<f32> {
        let n = self.count();
        let room = n.max(most.min(3 * n));
        let mut all = spare
            .filter(|spare| spare.len() >= n * n)
            .unwrap_or_else(|| Memory::passing(room * room, self.grams.ledger()));
        self.grams
            .combine_rounded(self.view, weights, &mut all[..n * n], stop);
        all
    }

    /// U_m of all these tasks for every kernel. Threads share the work; who does what makes no difference.
    pub(crate) fn images(&self, tasks: Vec<Image<'_>>) {
        self.grams.images(self.view, tasks);
    }

    /// U_m on all samples by the changes of β, and the pairs of samples that took; `None` where `stop` came first.
    pub(crate) fn sweep(&self, tasks: Vec<ByChange<'_>>, stop: &Stop) -> Option<u64> {
        if tasks.is_empty() {
            return Some(0);
        }
        self.grams.sweep(self.view, tasks, stop)
    }

    /// Σ_m θ_m d_m, the diagonal of K(θ).
    pub(crate) fn combined_diagonal(&self, theta: &[f64]) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.count()];
        let weights = theta.iter().enumerate();
        for (kernel, &weight) in weights.filter(|(_, weight)| **weight != 0.0) {
            for (i, sum) in diagonal.iter_mut().enumerate() {
                *sum += weight * self.diagonal(kernel, i);
            }
        }
        diagonal
    }

    /// K_m(i, i).
    pub(crate) fn diagonal(&self, kernel: usize, i: usize) -> f64 {
        self.grams.diagonal(kernel)[self.view.position(i)]
    }
}

#[cfg(test)]
mod tests;
