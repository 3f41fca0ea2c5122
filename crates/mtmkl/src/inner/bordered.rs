//! Newton's system of a dual with a separable conjugate: K plus a diagonal, bordered by the sum.
//!
//! [[E'KE + D, 1], [1', 0]] [x, b] = [r, s], D > 0 diagonal, E the sum over the variables of a sample.
//!
//! With w_i = Σ 1/D over the variables of sample i and u = Ex it is (K + 1/w) u = ρ/w for ρ_i = Σ r/D, a system with one row a sample, and
//! x = (r − Ku)/D, Ku = (ρ − u)/w. It is scaled to ones on its diagonal, so that entries of D that differ by many orders of magnitude do no
//! harm. The border is eliminated by its Schur complement 1'(E'KE + D)⁻¹1.

use crate::gram::CombinedRows;
use crate::ledger::{Guard, Ledger};
use crate::linalg::{self, Cholesky, Room};
use crate::machine::Variables;
use crate::run::Stop;

/// Added to a diagonal of ones.
const JITTER: f64 = 1e-15;

/// E'KE + D, factored, with what the border needs.
#[derive(Debug)]
pub(super) struct Bordered {
    variables: Variables,
    /// Of the matrix with ones on its diagonal: S (K + 1/w) S.
    factor: Cholesky,
    scale: Vec<f64>,
    /// The samples that can move.
    samples: Vec<usize>,
    /// w, and D per variable (infinite where nothing can move).
    weights: Vec<f64>,
    diagonal: Vec<f64>,
    /// The solution for a right-hand side of ones, and its sum.
    ones: Vec<f64>,
    ones_sum: f64,
    _memory: Guard,
}

/// Bytes of a factor for so many samples.
pub(super) fn bytes(samples: usize) -> u64 {
    let size = Room::None.size(samples) as u64;
    8 * size * size
}

impl Bordered {
    /// `None` where it is not positive definite in double precision, nothing can move, or `stop` comes first.
    pub(super) fn new(
        variables: Variables,
        diagonal: Vec<f64>,
        rows: &CombinedRows<'_>,
        stop: &Stop,
        ledger: &Ledger,
    ) -> Option<Self> {
        let n = variables.samples();
        let mut weights = vec![0.0; n];
        for (v, own) in diagonal.iter().enumerate() {
            weights[variables.sample_of(v)] += 1.0 / own;
        }
        let samples: Vec<usize> = (0..n).filter(|&i| weights[i] > 0.0).collect();
        let own = rows.diagonal();
        rows.make_together();
        let scale: Vec<f64> = samples
            .iter()
            .map(|&i| 1.0 / (own[i] + 1.0 / weights[i]).sqrt())
            .collect();
        let fill = |j: usize, column: &mut [f64]| {
            let row = rows.row(samples[j]);
            for (k, value) in column.iter_mut().enumerate() {
                *value = row.get(samples[j + k]) * scale[j + k] * scale[j];
            }
            column[0] += scale[j] * scale[j] / weights[samples[j]];
        };
        let memory = ledger.take(bytes(samples.len()));
        let jitters = linalg::rising(JITTER);
        let is_wanted = || !stop.now();
        let mut system = Self {
            variables,
            factor: Cholesky::of_columns(samples.len(), Room::None, jitters, &is_wanted, fill)?,
            scale,
            samples,
            weights,
            diagonal,
            ones: Vec::new(),
            ones_sum: 0.0,
            _memory: memory,
        };
        system.ones = system.solve(&vec![1.0; variables.count()]);
        system.ones_sum = system.ones.iter().sum();
        (system.ones_sum.is_finite() && system.ones_sum > 0.0).then_some(system)
    }

    /// (E'KE + D) x = r
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let sample_of = |v: usize| self.variables.sample_of(v);
        let mut shares = vec![0.0; self.weights.len()];
        for (v, value) in right.iter().enumerate() {
            shares[sample_of(v)] += value / self.diagonal[v];
        }
        let mut sums: Vec<f64> = (self.samples.iter().zip(&self.scale))
            .map(|(&i, scale)| scale * shares[i] / self.weights[i])
            .collect();
        self.factor.solve(&mut sums, 1);
        let mut image = vec![0.0; self.weights.len()];
        for ((&i, scale), sum) in self.samples.iter().zip(&self.scale).zip(&sums) {
            image[i] = (shares[i] - scale * sum) / self.weights[i];
        }
        let solution = |(v, value): (usize, &f64)| (value - image[sample_of(v)]) / self.diagonal[v];
        right.iter().enumerate().map(solution).collect()
    }

    /// x and b with Σx = s.
    pub(super) fn solve_with_sum(&self, right: &[f64], sum: f64) -> (Vec<f64>, f64) {
        let mut x = self.solve(right);
        let along: f64 = x.iter().sum();
        let multiplier = (along - sum) / self.ones_sum;
        for (value, one) in x.iter_mut().zip(&self.ones) {
            *value -= multiplier * one;
        }
        (x, multiplier)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::some_kernel;
    use super::*;
    use crate::gram::{TaskGrams, given};
    use crate::random::Random;

    #[test]
    fn it_solves_the_dense_system() {
        let mut random = Random::new(3);
        let (n, copies) = (7, 2);
        let variables = Variables::new(n, copies);
        let count = variables.count();
        let kernel = some_kernel(n, &mut random);
        let grams = given(n, vec![kernel.clone()]);
        let view = TaskGrams::all(grams.as_ref());
        let rows = CombinedRows::new(view, &[1.0]);
        // One variable cannot move, and the others are held back by very different amounts.
        let mut diagonal: Vec<f64> = (0..count).map(|v| [1e-3, 1.0, 1e3][v % 3]).collect();
        diagonal[4] = f64::INFINITY;
        let ledger = Ledger::default();
        let system =
            Bordered::new(variables, diagonal.clone(), &rows, &Stop::never(), &ledger).unwrap();
        assert!(ledger.taken() > 0);
        let right: Vec<f64> = (0..count).map(|_| random.uniform() - 0.5).collect();
        let (x, multiplier) = system.solve_with_sum(&right, 0.3);
        assert_eq!(x[4], 0.0);
        assert!((x.iter().sum::<f64>() - 0.3).abs() < 1e-10);
        let own = variables.sums(&x);
        for v in (0..count).filter(|&v| v != 4) {
            let i = variables.sample_of(v);
            let image = linalg::dot(&kernel[i * n..(i + 1) * n], &own);
            let left = image + diagonal[v] * x[v] + multiplier;
            assert!((left - right[v]).abs() < 1e-8, "{left} {}", right[v]);
        }
    }

    #[test]
    fn a_factor_is_a_square_of_doubles() {
        for samples in [1, 30, 1000] {
            let size = Room::None.size(samples) as u64;
            assert!(size >= samples as u64);
            assert_eq!(bytes(samples), 8 * size * size);
            assert_eq!(
                super::super::linear_system::bytes_of_factor(samples),
                8 * size * size
            );
        }
    }
}
