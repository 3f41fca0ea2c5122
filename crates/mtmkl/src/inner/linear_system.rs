//! (K + D) x = r, D > 0 diagonal, by conjugate gradients; with a sum that is given, [[K + D, 1], [1', 0]] [x, b] = [r, 0].
//!
//! What makes them converge is a factor of S (K₀ + D₀) S, S so that there are ones on its diagonal, of an earlier θ and an earlier D, as a rule in
//! single precision: where θ/θ₀ and D/D₀ lie between a ≤ 1 and b ≥ 1, so do the eigenvalues of what is left, and a few steps are enough. It is
//! made anew where they are not. For the sum: Gould, Hribar and Nocedal, "On the solution of equality constrained quadratic programming
//! problems arising in optimization", SIAM J. Sci. Comput. 23 (2001).

use super::Effort;
use super::nystrom::{self, Nystrom};
use crate::gram::{CombinedRows, TaskGrams};
use crate::ledger::{Guard, Ledger, bytes_of};
use crate::linalg::{self, Cholesky, Room, SingleCholesky};

/// Samples for each step that is taken with one factor at most: so many cost about as much as another factor (n = 1,200, one thread: 2.5 ms
/// each, and 15 ms; n = 3,000, two threads: 12 ms, and 130 ms).
const SAMPLES_A_STEP: usize = 200;
/// Steps at least and at most.
const MOST_STEPS: std::ops::RangeInclusive<usize> = 4..=40;
/// Steps at most where there is no factor but landmarks.
const MOST_STREAMED: usize = 200;
/// Where more steps than this were needed, the factor is not near enough to say what J's curvature is.
const NEAR_STEPS: usize = 3;
/// Up to so many samples a factor in double precision costs nothing.
const FEW: usize = 256;
/// Added to a diagonal of ones in double precision,
const JITTER: f64 = 1e-15;
/// and in single precision; ten times more until it is enough, and no more than the last.
const SINGLE_JITTERS: [f32; 4] = [1e-6, 1e-5, 1e-4, 1e-3];

/// Bytes of a factor for so many samples at most.
pub(super) fn bytes_of_factor(samples: usize) -> u64 {
    let size = Room::None.size(samples);
    bytes_of::<f64>(size * size)
}

/// K(θ) of streamed kernels: kept where that fits, in blocks where it does not, and worth nothing where a stop comes before it is made.
pub(super) fn streamed_rows<'a>(
    grams: TaskGrams<'a>,
    theta: &[f64],
    effort: &Effort<'_>,
) -> CombinedRows<'a> {
    let rows = CombinedRows::new(grams, theta).until(effort.stop);
    if grams.count() > effort.allowance.working_set {
        rows.passing()
    } else {
        rows
    }
}

/// K + D, and whether Σx = 0 is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinearSystem<'a> {
    pub(super) rows: &'a CombinedRows<'a>,
    pub(super) diagonal: &'a [f64],
    pub(super) has_sum: bool,
    /// Whether K ⪰ 0 but for rounding: then a nearby matrix may stand in for one that rounding has made indefinite.
    pub(super) concave: bool,
    /// Landmarks that there is room for, where there is none for a factor.
    pub(super) landmarks: usize,
}

/// A factor of another such matrix, kept from step to step and from pass to pass.
#[derive(Debug)]
pub(super) struct Preconditioner {
    inverse: Inverse,
    /// (K₀ + D₀)⁻¹1 and its sum.
    ones: Vec<f64>,
    ones_sum: f64,
    /// Steps that the last system took.
    steps: usize,
}

/// How it is inverted.
#[derive(Debug)]
enum Inverse {
    /// By a factor of S (K₀ + D₀) S.
    Scaled {
        factor: Factor,
        /// S
        scale: Vec<f64>,
        _memory: Guard,
    },
    /// By landmarks, where there is no memory for a factor.
    Nystrom(Nystrom),
}

impl Inverse {
    /// (K₀ + D₀)⁻¹ r
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        match self {
            Self::Scaled { factor, scale, .. } => {
                let scaled = |values: &[f64]| -> Vec<f64> {
                    let pairs = values.iter().zip(scale);
                    pairs.map(|(value, scale)| value * scale).collect()
                };
                let mut x = scaled(right);
                factor.solve(&mut x, 1, true);
                scaled(&x)
            }
            Self::Nystrom(near) => near.solve(right),
        }
    }

    /// V with V'V = u'(K₀ + D₀)⁻¹u, for u with a row for each sample: L⁻¹Su, for one.
    fn half(&self, mut block: Vec<f64>, columns: usize) -> Vec<f64> {
        match self {
            Self::Scaled { factor, scale, .. } => {
                for (row, scale) in block.chunks_exact_mut(columns).zip(scale) {
                    for value in row {
                        *value *= scale;
                    }
                }
                factor.solve(&mut block, columns, false);
                block
            }
            Self::Nystrom(near) => near.half(block, columns),
        }
    }
}

#[derive(Debug)]
enum Factor {
    Single(SingleCholesky),
    Double(Cholesky),
}

impl Factor {
    /// b ← L⁻¹ b, and with `whole` (LL')⁻¹ b, for `columns` right-hand sides in a row-major block.
    fn solve(&self, block: &mut [f64], columns: usize, whole: bool) {
        match self {
            Self::Double(factor) if whole => factor.solve(block, columns),
            Self::Double(factor) => factor.solve_lower(block, columns),
            Self::Single(factor) => {
                // Within the range of single precision.
                let largest = block.iter().fold(0.0_f64, |a, b| a.max(b.abs()));
                if largest == 0.0 {
                    return;
                }
                #[allow(clippy::cast_possible_truncation, reason = "rounding is meant")]
                let mut single: Vec<f32> = block.iter().map(|b| (b / largest) as f32).collect();
                factor.solve_lower(&mut single, columns);
                if whole {
                    factor.solve_upper(&mut single, columns);
                }
                for (out, &value) in block.iter_mut().zip(&single) {
                    *out = largest * f64::from(value);
                }
            }
        }
    }
}

impl Preconditioner {
    /// The factor of a system; `None` where it is not positive definite in double precision.
    fn new(system: &LinearSystem<'_>, is_single: bool, ledger: &Ledger) -> Option<Self> {
        let LinearSystem { rows, diagonal, .. } = *system;
        let n = diagonal.len();
        let own = rows.diagonal().iter().zip(diagonal);
        let scale: Vec<f64> = own.map(|(k, d)| 1.0 / (k + d).abs().sqrt()).collect();
        if !scale.iter().all(|scale| scale.is_finite()) {
            return None;
        }
        rows.make_together();
        let entry = |row: &[f64], i: usize, j: usize| {
            let ridge = if i == j { diagonal[j] } else { 0.0 };
            (row[i] + ridge) * scale[i] * scale[j]
        };
        let (memory, factor) = if is_single {
            let memory = ledger.take(SingleCholesky::bytes(n));
            let fill = |j: usize, column: &mut [f32]| {
                rows.with_row(j, |row| {
                    for (k, value) in column.iter_mut().enumerate() {
                        #[allow(clippy::cast_possible_truncation, reason = "rounding is meant")]
                        let rounded = entry(row, j + k, j) as f32;
                        *value = rounded;
                    }
                });
            };
            let factor = SingleCholesky::of_columns(n, SINGLE_JITTERS, fill)?;
            (memory, Factor::Single(factor))
        } else {
            let memory = ledger.take(bytes_of_factor(n));
            let fill = |j: usize, column: &mut [f64]| {
                rows.with_row(j, |row| {
                    for (k, value) in column.iter_mut().enumerate() {
                        *value = entry(row, j + k, j);
                    }
                });
            };
            let rescue = linalg::rising(JITTER).take(if system.concave { usize::MAX } else { 0 });
            let jitters = std::iter::once(0.0).chain(rescue);
            let factor = Cholesky::of_columns(n, Room::None, jitters, &|| true, fill)?;
            (memory, Factor::Double(factor))
        };
        Self::of(
            Inverse::Scaled {
                factor,
                scale,
                _memory: memory,
            },
            n,
        )
    }

    fn of(inverse: Inverse, samples: usize) -> Option<Self> {
        let ones = inverse.solve(&vec![1.0; samples]);
        let ones_sum: f64 = ones.iter().sum();
        (ones_sum.is_finite() && ones_sum > 0.0).then_some(Self {
            inverse,
            ones,
            ones_sum,
            steps: 0,
        })
    }

    /// The same with Σx = 0, r less the multiplier of that, which then says how far x is from the solution.
    fn solve_with_sum(&self, right: &mut [f64]) -> Vec<f64> {
        let mut x = self.inverse.solve(right);
        let multiplier = x.iter().sum::<f64>() / self.ones_sum;
        linalg::axpy(-multiplier, &self.ones, &mut x);
        for value in right {
            *value -= multiplier;
        }
        x
    }

    /// Whether it is near enough to the system that it was last used for to say what its inverse is like; of few samples a new one costs nothing.
    pub(super) fn is_near(&self) -> bool {
        match &self.inverse {
            Inverse::Scaled { scale, .. } => self.steps <= NEAR_STEPS && scale.len() > FEW,
            Inverse::Nystrom(_) => true,
        }
    }

    /// V with V'V = u'Pu, P the leading block of the inverse: (I − vv')V with v along what is made of 1, where Σx is given, and V itself where it
    /// is not. u has a row for each sample.
    pub(super) fn project(&self, block: Vec<f64>, columns: usize, has_sum: bool) -> Vec<f64> {
        let samples = block.len() / columns;
        let mut block = self.inverse.half(block, columns);
        if !has_sum {
            return block;
        }
        let direction = self.inverse.half(vec![1.0; samples], 1);
        let length = linalg::dot(&direction, &direction);
        let mut along = vec![0.0; columns];
        for (&weight, row) in direction.iter().zip(block.chunks_exact(columns)) {
            linalg::axpy(weight, row, &mut along);
        }
        for (&weight, row) in direction.iter().zip(block.chunks_exact_mut(columns)) {
            linalg::axpy(-weight / length, &along, row);
        }
        block
    }
}

impl LinearSystem<'_> {
    /// (K + D) v
    fn product(&self, v: &[f64]) -> Vec<f64> {
        let mut product = self.rows.multiply(v);
        for ((out, d), v) in product.iter_mut().zip(self.diagonal).zip(v) {
            *out += d * v;
        }
        product
    }

    /// The factor of this very system, in single precision where that serves; the one before is given back first.
    ///
    /// False where there is none in double precision either.
    pub(super) fn factor(&self, kept: &mut Option<Preconditioner>, ledger: &Ledger) -> bool {
        *kept = None;
        if self.rows.are_streamed() {
            let landmarks = nystrom::landmarks(self.diagonal.len(), self.landmarks);
            let near = Nystrom::new(self, landmarks, ledger);
            *kept = Preconditioner::of(Inverse::Nystrom(near), self.diagonal.len());
            return kept.is_some();
        }
        let is_single = self.diagonal.len() > FEW && self.concave;
        if is_single {
            *kept = Preconditioner::new(self, true, ledger);
        }
        if kept.is_none() {
            *kept = Preconditioner::new(self, false, ledger);
        }
        kept.is_some()
    }

    /// x ← x + (K + D)⁻¹ r, and what is then left of r, until `is_enough(r, r'M⁻¹r)`, M being what was factored; how many steps that took. The
    /// factor is made, and made better, where that is needed. `None` where it cannot be.
    pub(super) fn solve(
        &self,
        kept: &mut Option<Preconditioner>,
        x: &mut [f64],
        residual: &mut [f64],
        mut is_enough: impl FnMut(&[f64], f64) -> bool,
        ledger: &Ledger,
    ) -> Option<usize> {
        let mut taken = 0;
        if let Some(known) = kept {
            let (steps, is_done) = self.descend(known, x, residual, &mut is_enough);
            taken += steps;
            if is_done {
                return Some(taken);
            }
        }
        if !self.factor(kept, ledger) {
            return None;
        }
        loop {
            let known = kept.as_mut()?;
            let (steps, is_done) = self.descend(known, x, residual, &mut is_enough);
            taken += steps;
            // Where nothing better can be had, this is how far it goes.
            let is_single = match &known.inverse {
                Inverse::Scaled { factor, .. } => matches!(factor, Factor::Single(_)),
                Inverse::Nystrom(_) => false,
            };
            if is_done || !is_single {
                return Some(taken);
            }
            *kept = None;
            *kept = Preconditioner::new(self, false, ledger);
        }
    }

    /// Conjugate gradients with one factor: how many steps, and whether they were enough.
    fn descend(
        &self,
        known: &mut Preconditioner,
        x: &mut [f64],
        residual: &mut [f64],
        is_enough: &mut impl FnMut(&[f64], f64) -> bool,
    ) -> (usize, bool) {
        let near = |residual: &mut [f64]| {
            if self.has_sum {
                known.solve_with_sum(residual)
            } else {
                known.inverse.solve(residual)
            }
        };
        let mut direction = near(residual);
        let mut energy = linalg::dot(residual, &direction);
        let (mut steps, mut is_done) = (0, is_enough(residual, energy));
        let most = if matches!(known.inverse, Inverse::Nystrom(_)) {
            MOST_STREAMED
        } else {
            (x.len() / SAMPLES_A_STEP).clamp(*MOST_STEPS.start(), *MOST_STEPS.end())
        };
        while !is_done && steps < most && energy > 0.0 {
            let image = self.product(&direction);
            if self.rows.is_stopped() {
                break;
            }
            let bend = linalg::dot(&direction, &image);
            if bend.is_nan() || bend <= 0.0 {
                break;
            }
            let length = energy / bend;
            linalg::axpy(length, &direction, x);
            linalg::axpy(-length, &image, residual);
            let next = near(residual);
            // Conjugate to the last direction whatever rounding has done to the factor.
            let share = -linalg::dot(&next, &image) / bend;
            for (old, new) in direction.iter_mut().zip(&next) {
                *old = new + share * *old;
            }
            energy = linalg::dot(residual, &next);
            steps += 1;
            is_done = is_enough(residual, energy);
        }
        known.steps = steps;
        (steps, is_done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::some_kernel;
    use super::*;
    use crate::gram::{TaskGrams, given};
    use crate::random::Random;

    /// |(K + D)x + b − r| at most, b the mean of what is left where Σx = 0.
    fn left_over(kernel: &[f64], diagonal: &[f64], x: &[f64], right: &[f64], has_sum: bool) -> f64 {
        let n = x.len();
        let left: Vec<f64> = (0..n)
            .map(|i| right[i] - linalg::dot(&kernel[i * n..(i + 1) * n], x) - diagonal[i] * x[i])
            .collect();
        let offset = if has_sum {
            left.iter().sum::<f64>() / n as f64
        } else {
            0.0
        };
        left.iter().fold(0.0, |a, l| a.max((l - offset).abs()))
    }

    #[test]
    fn it_solves_the_dense_system_with_factors_of_other_systems() {
        for (n, least) in [(7, 1e-3), (300, 1e-1), (300, 1e-9)] {
            let mut random = Random::new(3);
            let kernel = some_kernel(n, &mut random);
            let grams = given(n, vec![kernel.clone()]);
            let view = TaskGrams::all(grams.as_ref());
            let rows = CombinedRows::new(view, &[1.0]);
            let ledger = Ledger::default();
            let mut kept = None;
            for (turn, has_sum) in [false, true, false, true].into_iter().enumerate() {
                // Entries of very different size, which change from turn to turn.
                let diagonal: Vec<f64> = (0..n)
                    .map(|i| least * [1.0, 10.0, 1e6][i % 3] * (1.0 + (i + turn) as f64 % 5.0))
                    .collect();
                let system = LinearSystem {
                    rows: &rows,
                    diagonal: &diagonal,
                    has_sum,
                    concave: true,
                    landmarks: 0,
                };
                let right: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
                let (mut x, mut left) = (vec![0.0; n], right.clone());
                let mut first = None;
                let is_enough =
                    |_: &[f64], energy: f64| energy <= 1e-20 * *first.get_or_insert(energy);
                system
                    .solve(&mut kept, &mut x, &mut left, is_enough, &ledger)
                    .unwrap();
                let found = left_over(&kernel, &diagonal, &x, &right, has_sum);
                assert!(found < 1e-6, "n {n}, turn {turn}: {found}");
                if has_sum {
                    let size: f64 = x.iter().map(|x| x.abs()).sum();
                    assert!(x.iter().sum::<f64>().abs() <= 1e-10 * size);
                }
                assert!(ledger.taken() > 0);
            }
            drop(kept);
            assert_eq!(ledger.taken(), 0);
        }
    }

    #[test]
    fn what_is_projected_has_the_gram_matrix_of_the_inverse() {
        // In double and in single precision.
        for (n, digits) in [(6, 1e-10), (FEW + 40, 1e-3)] {
            let mut random = Random::new(4);
            let kernel = some_kernel(n, &mut random);
            let grams = given(n, vec![kernel]);
            let view = TaskGrams::all(grams.as_ref());
            let rows = CombinedRows::new(view, &[1.0]);
            let diagonal: Vec<f64> = (0..n).map(|_| 0.1 + random.uniform()).collect();
            let u: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
            for has_sum in [false, true] {
                let system = LinearSystem {
                    rows: &rows,
                    diagonal: &diagonal,
                    has_sum,
                    concave: true,
                    landmarks: 0,
                };
                let (mut kept, ledger) = (None, Ledger::default());
                assert!(system.factor(&mut kept, &ledger));
                let block = kept.as_ref().unwrap().project(u.clone(), 1, has_sum);
                let (mut x, mut left) = (vec![0.0; n], u.clone());
                let is_enough = |_: &[f64], energy: f64| energy < 1e-20;
                system.solve(&mut kept, &mut x, &mut left, is_enough, &ledger);
                let (ours, wanted) = (linalg::dot(&block, &block), linalg::dot(&u, &x));
                assert!((ours - wanted).abs() < digits * wanted, "{ours} {wanted}");
            }
        }
    }

    #[test]
    fn a_matrix_that_is_not_definite_has_no_factor() {
        let grams = given(2, vec![vec![1.0, 3.0, 3.0, 1.0]]);
        let rows = CombinedRows::new(TaskGrams::all(grams.as_ref()), &[1.0]);
        let system = |concave| LinearSystem {
            rows: &rows,
            diagonal: &[0.5, 0.5],
            has_sum: false,
            concave,
            landmarks: 0,
        };
        let ledger = Ledger::default();
        assert!(!system(false).factor(&mut None, &ledger));
        assert!(!system(true).factor(&mut None, &ledger));
    }
}
