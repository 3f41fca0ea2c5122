//! W = F'F + G'G + diag(b): the second derivative of one task's part of the model in θᵗ.
//!
//! F comes from the engine, G from the cuts once their epigraph variable is eliminated, b from damping. Where F and G have few rows beside M, W is only
//! ever worked with by these rows.

use std::borrow::Cow;

use crate::grid::dot;
use crate::linalg::{self, axpy};

/// W = F'F + G'G + diag(b), one task's curvature.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver::interior) struct Hessian<'a> {
    /// F, row by row.
    pub(in crate::solver::interior) factor: &'a [f64],
    /// F'F, where F has enough rows to make that worth while.
    pub(in crate::solver::interior) gram: Option<&'a [f64]>,
    /// G, row by row.
    pub(in crate::solver::interior) cuts: &'a [f64],
    /// b
    pub(in crate::solver::interior) damping: Option<&'a [f64]>,
}

impl<'a> Hessian<'a> {
    /// W = 0.
    pub(super) const NONE: Self = Self {
        factor: &[],
        gram: None,
        cuts: &[],
        damping: None,
    };

    /// Whether F'F should be known: with many more kernels than rows it is never used.
    pub(in crate::solver::interior) fn wants_gram(factor: &[f64], m: usize) -> bool {
        !is_low(factor.len() / m, m)
    }

    /// The number of rows of F and G, at least the rank of W − diag(b).
    pub(super) fn rank(&self, m: usize) -> usize {
        (self.factor.len() + self.cuts.len()) / m
    }

    /// out ← out + sign · W v
    pub(super) fn add_image(&self, v: &[f64], sign: f64, out: &mut [f64]) {
        if is_zero(v) {
            return;
        }
        let m = v.len();
        match self.gram {
            Some(gram) => {
                for (value, row) in v.iter().zip(gram.chunks_exact(m)) {
                    axpy(sign * value, row, out);
                }
            }
            None => add_squares(self.factor, v, sign, out),
        }
        add_squares(self.cuts, v, sign, out);
        if let Some(damping) = self.damping {
            for (out, (b, v)) in out.iter_mut().zip(damping.iter().zip(v)) {
                *out += sign * b * v;
            }
        }
    }

    /// out ← out − W v
    pub(in crate::solver::interior) fn subtract_image(&self, v: &[f64], out: &mut [f64]) {
        self.add_image(v, -1.0, out);
    }

    /// v'Wv
    pub(in crate::solver::interior) fn square(&self, v: &[f64]) -> f64 {
        if is_zero(v) {
            return 0.0;
        }
        let rows = [self.factor, self.cuts];
        let rows = rows.iter().flat_map(|rows| rows.chunks_exact(v.len()));
        let own: f64 = rows.map(|row| dot(row, v).powi(2)).sum();
        let pairs = self.damping.iter().flat_map(|b| b.iter().zip(v));
        own + pairs.map(|(b, v)| b * v * v).sum::<f64>()
    }

    /// out ← out + W, M × M.
    pub(super) fn add_to(&self, m: usize, out: &mut [f64]) {
        match self.gram {
            Some(gram) => axpy(1.0, gram, out),
            None if self.factor.is_empty() => {}
            None => linalg::add_gram(self.factor, m, out),
        }
        if !self.cuts.is_empty() {
            linalg::add_gram(self.cuts, m, out);
        }
        if let Some(damping) = self.damping {
            for (i, b) in damping.iter().enumerate() {
                out[i * m + i] += b;
            }
        }
    }

    /// F above G.
    pub(super) fn all_rows(self) -> Cow<'a, [f64]> {
        if self.cuts.is_empty() {
            Cow::Borrowed(self.factor)
        } else {
            Cow::Owned([self.factor, self.cuts].concat())
        }
    }

    /// 1/(1 + b S): what the diagonal leaves of each direction.
    pub(super) fn shares(&self, inverse_sum: &[f64]) -> Vec<f64> {
        match self.damping {
            None => vec![1.0; inverse_sum.len()],
            Some(damping) => {
                let pairs = damping.iter().zip(inverse_sum);
                pairs.map(|(b, s)| (1.0 + b * s).recip()).collect()
            }
        }
    }
}

/// Whether a task does not move: where tasks compete, most have no weights and get none.
fn is_zero(v: &[f64]) -> bool {
    v.iter().all(|value| *value == 0.0)
}

/// Whether a curvature of this rank r on M kernels is better worked with by its rows than by an M × M matrix. Factoring takes M³/3 operations by the matrix,
/// and by the rows M r² for F S F' and r³/3: far fewer below r = M/2. The 64 more are where a small dense factorisation is done before anything pays.
pub(super) fn is_low(rank: usize, m: usize) -> bool {
    m > 2 * rank + 64
}

/// out ← out + sign · F'F v
fn add_squares(rows: &[f64], v: &[f64], sign: f64, out: &mut [f64]) {
    for row in rows.chunks_exact(v.len()) {
        axpy(sign * dot(row, v), row, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const M: usize = 4;

    #[test]
    fn few_rows_are_few_beside_half_of_the_kernels_and_what_is_dense_anyway() {
        for (rank, m, low) in [
            (0, 64, false),
            (0, 65, true),
            (10, 84, false),
            (10, 85, true),
        ] {
            assert_eq!(is_low(rank, m), low, "{rank} of {m}");
        }
        let factor = vec![0.0; 10 * 85];
        assert!(!Hessian::wants_gram(&factor, 85));
        assert!(Hessian::wants_gram(&factor[..10 * 84], 84));
    }

    #[test]
    fn matrix_image_square_and_rank_are_those_of_one_matrix() {
        let mut random = Random::new(42);
        let mut signed =
            |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform() - 0.5).collect() };
        let (factor, cuts, damping, v) = (signed(3 * M), signed(2 * M), signed(M), signed(M));
        let mut gram = vec![0.0; M * M];
        linalg::add_gram(&factor, M, &mut gram);
        for (with_factor, with_cuts, with_damping, with_gram) in [
            (true, true, true, true),
            (true, true, true, false),
            (true, false, true, false),
            (false, true, false, false),
            (false, false, true, false),
        ] {
            let hessian = Hessian {
                factor: if with_factor { &factor } else { &[] },
                gram: with_gram.then_some(&gram[..]),
                cuts: if with_cuts { &cuts } else { &[] },
                damping: with_damping.then_some(&damping[..]),
            };
            assert_eq!(
                hessian.rank(M),
                3 * usize::from(with_factor) + 2 * usize::from(with_cuts)
            );
            // Entry by entry.
            let mut expected = vec![1.0; M * M];
            for i in 0..M {
                for j in 0..M {
                    let rows = hessian
                        .factor
                        .chunks_exact(M)
                        .chain(hessian.cuts.chunks_exact(M));
                    expected[i * M + j] += rows.map(|row| row[i] * row[j]).sum::<f64>();
                }
                expected[i * M + i] += hessian.damping.map_or(0.0, |b| b[i]);
            }
            let mut found = vec![1.0; M * M];
            hessian.add_to(M, &mut found);
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-14);
            assert!(close(&found, &expected));
            let image: Vec<f64> = (0..M)
                .map(|i| (0..M).map(|j| (expected[i * M + j] - 1.0) * v[j]).sum())
                .collect();
            let mut found = vec![2.0; M];
            hessian.subtract_image(&v, &mut found);
            assert!(close(
                &found,
                &image.iter().map(|value| 2.0 - value).collect::<Vec<f64>>()
            ));
            assert!((hessian.square(&v) - dot(&v, &image)).abs() <= 1e-14);
        }
    }
}
