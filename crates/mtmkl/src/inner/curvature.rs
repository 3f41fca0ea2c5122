//! The second derivative of one task's J in its weights, as a factor: H = F'F.

use std::sync::Arc;

use crate::grid::dot;
use crate::ledger::{Ledger, bytes_of};
use crate::linalg::{self, axpy};
use crate::span::Span;

/// The part of each H_mm that may be left out: steps are as good without it, whatever the scales of kernels.
const LEFT: f64 = 1e-9;
/// With more kernels than this a smaller factor is only made where there are more rows than kernels: finding it takes rank² M operations.
const MANY: usize = 512;

/// H = F'F, the M × M second derivative of one task's J in θᵗ, kept as its factor F (rank × M); or H = BF'FB' where kernels are combinations of
/// fewer, F one number for each of these.
#[derive(Debug, Clone, PartialEq)]
pub struct Curvature {
    /// The number of rows of the factor.
    pub rank: usize,
    /// F, row by row.
    pub factor: Vec<f64>,
    /// B, where there is one.
    pub span: Option<Arc<Span>>,
}

impl Curvature {
    /// H = 0.
    pub(crate) fn none() -> Self {
        Self {
            rank: 0,
            factor: Vec::new(),
            span: None,
        }
    }

    /// Of √κ V, with as few rows as it takes: kernels that are nearly alike bend J nearly alike, and everything that is made of H costs by its rank.
    pub(super) fn of(mut block: Vec<f64>, kernels: usize, scale: f64, ledger: &Ledger) -> Self {
        let root = scale.sqrt();
        for value in &mut block {
            *value *= root;
        }
        let most = block.len().min(kernels * kernels);
        let factor = if kernels <= MANY || most < block.len() {
            let _memory = ledger.take(bytes_of::<f64>(most));
            let factor = linalg::low_rank_rows(&block, kernels, LEFT);
            if factor.len() < block.len() {
                factor
            } else {
                block
            }
        } else {
            block
        };
        Self {
            rank: factor.len() / kernels,
            factor,
            span: None,
        }
    }

    /// Fδ, or FB'δ.
    pub(crate) fn along(&self, delta: &[f64]) -> Vec<f64> {
        let gathered = self.span.as_ref().map(|span| span.gather(delta));
        let delta = gathered.as_deref().unwrap_or(delta);
        let rows = self.factor.chunks_exact(delta.len().max(1));
        rows.map(|row| dot(row, delta)).collect()
    }

    /// F'v, or BF'v, M numbers.
    pub(crate) fn pull(&self, along: &[f64], kernels: usize) -> Vec<f64> {
        let width = self.span.as_ref().map_or(kernels, |span| span.nodes());
        let mut sum = vec![0.0; width];
        for (value, row) in along.iter().zip(self.factor.chunks_exact(width.max(1))) {
            axpy(*value, row, &mut sum);
        }
        match &self.span {
            Some(span) => span.spread(&sum),
            None => sum,
        }
    }

    /// The same with a number for each kernel.
    pub(crate) fn by_kernel(&self) -> Self {
        let Some(span) = &self.span else {
            return self.clone();
        };
        let kernels: Vec<usize> = (0..span.kernels()).collect();
        Self {
            rank: self.rank,
            factor: span.columns(&self.factor, &kernels),
            span: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// F'F
    fn square(factor: &[f64], kernels: usize) -> Vec<f64> {
        let mut out = vec![0.0; kernels * kernels];
        linalg::add_gram(factor, kernels, &mut out);
        out
    }

    /// Rows for 3 kernels that span so many directions.
    fn rows(count: usize, directions: usize, random: &mut Random) -> Vec<f64> {
        let mut signed =
            |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform() - 0.5).collect() };
        let basis = signed(3 * directions);
        (0..count)
            .flat_map(|_| {
                let parts = signed(directions);
                let mut row = vec![0.0; 3];
                for (part, direction) in parts.iter().zip(basis.chunks_exact(3)) {
                    axpy(*part, direction, &mut row);
                }
                row
            })
            .collect()
    }

    #[test]
    fn the_factor_has_as_few_rows_as_it_takes_and_the_same_square() {
        let mut random = Random::new(41);
        for (count, directions, rank) in [(10, 3, 3), (10, 1, 1), (2, 2, 2), (3, 1, 1)] {
            let block = rows(count, directions, &mut random);
            let ledger = Ledger::default();
            let found = Curvature::of(block.clone(), 3, 2.5, &ledger);
            assert_eq!((found.rank, found.factor.len()), (rank, 3 * rank));
            let expected = square(&block, 3);
            for (found, expected) in square(&found.factor, 3).iter().zip(&expected) {
                assert!((found - 2.5 * expected).abs() <= 1e-8);
            }
            // A square of the kernels' number, or what is there.
            assert_eq!(ledger.peak(), bytes_of::<f64>(9.min(3 * count)));
        }
    }

    #[test]
    fn with_very_many_kernels_few_rows_are_left_alone() {
        let (kernels, ledger) = (MANY + 1, Ledger::default());
        let block = vec![1.0; 2 * kernels];
        let found = Curvature::of(block, kernels, 1.0, &ledger);
        assert_eq!((found.rank, ledger.peak()), (2, 0));
    }
}
