//! A primal–dual interior point method: Mehrotra, "On the implementation of a primal–dual interior point method", SIAM J. Optim. 2 (1992).
//!
//! Small steps hardly move where K has a low rank or a wide spectrum and the bounds are far apart (a linear kernel on a few columns with a
//! large C): they need a number of steps that grows with C. Interior points do not mind. One iteration factors K + diag(1/w), and some
//! twenty are enough for any K and C, so this is what remains when small steps have cost as much.
//!
//! With a = β − lower, c = upper − β and multipliers z_l, z_u ≥ 0 of a ≥ 0, c ≥ 0, the conditions are q − Kβ − b + z_l − z_u = 0, Σβ = s and
//! a z_l = c z_u = μ → 0. The start fulfils the linear ones, and so do all iterates.

use super::super::bordered::{self, Bordered};
use super::{Qp, gap};
use crate::gram::CombinedRows;
use crate::ledger::Ledger;
use crate::run::Stop;

/// With more samples the factorisation takes more memory than a fit can be given without asking: this many squared, in doubles, are 2 GiB.
pub(in crate::inner) const MOST_SAMPLES: usize = 16_384;
/// No more iterations than this; some twenty are usual.
const MAX_ITERATIONS: usize = 100;
/// So many iterations without a better gap are the end: rounding is all that is left.
const IDLE: usize = 5;
/// How far towards the boundary a step may go.
const TO_BOUNDARY: f64 = 0.995;
/// The gap is brought to this part of what is wanted, at the price of a few iterations, so that what is next to a bound can be told.
const CLOSER: f64 = 1e-3;
/// How many small steps cost as much. Some twenty-five factorisations of n³/3 multiply–adds each are 25 n³/3; a small step of SMO goes through
/// about eight vectors of n numbers (two rows of K, slopes, bounds, the diagonal), and a number read from memory takes as long as eight
/// multiply–adds in cache: 64 n. The ratio is n²/8. What is added keeps small problems, where neither costs anything, with SMO.
pub(crate) fn price_in_small_steps(samples: usize) -> usize {
    samples * samples / 8 + 10 * samples
}

/// Bytes of the factorisation for so many samples.
pub(in crate::inner) fn bytes(samples: usize) -> u64 {
    bordered::bytes(samples)
}

/// β and Kβ.
#[derive(Debug, Clone)]
pub(crate) struct Interior {
    pub(crate) beta: Vec<f64>,
    pub(crate) product: Vec<f64>,
    pub(crate) iterations: usize,
}

/// Maximises until the gap is at most `accuracy`, rounding ends the progress, or somebody asks to stop; `None` where nothing can move. The sum
/// is that of `start`.
pub(crate) fn solve(
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    start: &[f64],
    accuracy: f64,
    stop: &Stop,
    ledger: &Ledger,
) -> Option<Interior> {
    let sum: f64 = start.iter().sum();
    let mut point = Iterate::balanced(qp, rows, sum)?;
    let mut best = (f64::INFINITY, point.beta.clone());
    let (mut idle, mut iterations) = (0, 0);
    for _ in 0..MAX_ITERATIONS {
        let gap = gap(qp, &point.beta, &point.product);
        if gap < best.0 {
            // A gap that falls by less is not worth while.
            idle = if gap < 0.9 * best.0 { 0 } else { idle + 1 };
            best = (gap, point.beta.clone());
        } else {
            idle += 1;
        }
        if gap <= CLOSER * accuracy
            || idle > IDLE
            || stop.now()
            || !point.advance(qp, rows, sum, stop, ledger)
        {
            break;
        }
        iterations += 1;
    }
    let (_, beta) = best;
    let product = rows.product(&qp.variables.sums(&beta));
    Some(Interior {
        beta,
        product,
        iterations,
    })
}

impl Interior {
    /// With what is next to a bound, by this part of the distance between the bounds, at it, and what is strictly between making up for the sum.
    pub(crate) fn snapped(
        &self,
        qp: &Qp<'_>,
        rows: &CombinedRows<'_>,
        sum: f64,
        margin: f64,
    ) -> Option<Self> {
        let mut beta = self.beta.clone();
        let mut rooms = vec![0.0; beta.len()];
        for (v, value) in beta.iter_mut().enumerate() {
            let (low, high) = (qp.lower[v], qp.upper[v]);
            let near = margin * (high - low);
            if *value <= low + near {
                *value = low;
            } else if *value >= high - near {
                *value = high;
            } else {
                rooms[v] = (*value - low).min(high - *value);
            }
        }
        let missing = sum - beta.iter().sum::<f64>();
        let room: f64 = rooms.iter().sum();
        if missing.abs() > 0.5 * room {
            return None;
        }
        if missing != 0.0 {
            for (value, own) in beta.iter_mut().zip(&rooms) {
                *value += missing * own / room;
            }
        }
        let product = rows.product(&qp.variables.sums(&beta));
        Some(Self {
            beta,
            product,
            iterations: self.iterations,
        })
    }
}

/// A point strictly between its bounds, with its multipliers.
#[derive(Debug)]
struct Iterate {
    beta: Vec<f64>,
    product: Vec<f64>,
    offset: f64,
    /// z_l and z_u; 0 where the bounds are one.
    hold_low: Vec<f64>,
    hold_high: Vec<f64>,
    /// The variables that are not fixed.
    movable: Vec<usize>,
}

/// A direction of everything.
#[derive(Debug)]
struct Direction {
    beta: Vec<f64>,
    offset: f64,
    hold_low: Vec<f64>,
    hold_high: Vec<f64>,
}

impl Iterate {
    /// The same share of the distance between its bounds for each variable, and multipliers that go with the slopes there.
    fn balanced(qp: &Qp<'_>, rows: &CombinedRows<'_>, sum: f64) -> Option<Self> {
        let variables = qp.linear.len();
        let movable: Vec<usize> = (0..variables)
            .filter(|&v| qp.lower[v] < qp.upper[v])
            .collect();
        let least: f64 = qp.lower.iter().sum();
        let width: f64 = movable.iter().map(|&v| qp.upper[v] - qp.lower[v]).sum();
        let share = (sum - least) / width;
        if !(share > 1e-12 && share < 1.0 - 1e-12) {
            return None;
        }
        let beta: Vec<f64> = (0..variables)
            .map(|v| qp.lower[v] + share * (qp.upper[v] - qp.lower[v]))
            .collect();
        let product = rows.product(&qp.variables.sums(&beta));
        let slope = |v: usize| qp.slope(&product, v);
        let offset = movable.iter().map(|&v| slope(v)).sum::<f64>() / movable.len() as f64;
        let size = movable.iter().map(|&v| (slope(v) - offset).abs());
        let size = (size.sum::<f64>() / movable.len() as f64).max(f64::MIN_POSITIVE);
        let mut point = Self {
            hold_low: vec![0.0; variables],
            hold_high: vec![0.0; variables],
            offset,
            movable,
            beta,
            product,
        };
        for &v in &point.movable {
            let slope = qp.slope(&point.product, v) - offset;
            point.hold_low[v] = size + (-slope).max(0.0);
            point.hold_high[v] = size + slope.max(0.0);
        }
        Some(point)
    }

    /// Σ (a z_l + c z_u), after a step.
    fn complementarity(&self, qp: &Qp<'_>, step: f64, direction: Option<&Direction>) -> f64 {
        let moved = |values: &[f64], change: Option<&Vec<f64>>, v: usize| {
            values[v] + change.map_or(0.0, |change| step * change[v])
        };
        let products = self.movable.iter().map(|&v| {
            let beta = moved(&self.beta, direction.map(|d| &d.beta), v);
            let low = moved(&self.hold_low, direction.map(|d| &d.hold_low), v);
            let high = moved(&self.hold_high, direction.map(|d| &d.hold_high), v);
            (beta - qp.lower[v]) * low + (qp.upper[v] - beta) * high
        });
        products.sum()
    }

    /// One predictor–corrector step; false where no further progress can be made, or a stop came.
    fn advance(
        &mut self,
        qp: &Qp<'_>,
        rows: &CombinedRows<'_>,
        sum: f64,
        stop: &Stop,
        ledger: &Ledger,
    ) -> bool {
        let diagonal = self.diagonal(qp);
        let Some(system) = Bordered::new(qp.variables, diagonal, rows, stop, ledger) else {
            return false;
        };
        let total = self.complementarity(qp, 0.0, None);
        let count = 2.0 * self.movable.len() as f64;
        let predictor = self.direction(qp, &system, sum, 0.0, None);
        let step = self.longest(qp, &predictor);
        let after = self.complementarity(qp, step, Some(&predictor));
        let sigma = (after / total).clamp(0.0, 1.0).powi(3);
        let mu = sigma * total / count;
        let corrector = self.direction(qp, &system, sum, mu, Some(&predictor));
        let step = (TO_BOUNDARY * self.longest(qp, &corrector)).min(1.0);
        if !(step.is_finite() && step > 1e-10) {
            return false;
        }
        for &v in &self.movable {
            let (low, high) = (qp.lower[v], qp.upper[v]);
            self.beta[v] = (self.beta[v] + step * corrector.beta[v]).clamp(low, high);
            self.hold_low[v] += step * corrector.hold_low[v];
            self.hold_high[v] += step * corrector.hold_high[v];
        }
        self.offset += step * corrector.offset;
        self.product = rows.product(&qp.variables.sums(&self.beta));
        let is_inside = |&v: &usize| {
            qp.lower[v] < self.beta[v]
                && self.beta[v] < qp.upper[v]
                && self.hold_low[v] > 0.0
                && self.hold_high[v] > 0.0
        };
        self.movable.iter().all(is_inside)
    }

    /// D = z_l/a + z_u/c, infinite where nothing can move.
    fn diagonal(&self, qp: &Qp<'_>) -> Vec<f64> {
        let mut diagonal = vec![f64::INFINITY; self.beta.len()];
        for &v in &self.movable {
            let (a, c) = (self.beta[v] - qp.lower[v], qp.upper[v] - self.beta[v]);
            diagonal[v] = self.hold_low[v] / a + self.hold_high[v] / c;
        }
        diagonal
    }

    /// Newton's direction towards a z_l = c z_u = μ, with the predictor's products taken into account.
    fn direction(
        &self,
        qp: &Qp<'_>,
        system: &Bordered,
        sum: f64,
        mu: f64,
        predicted: Option<&Direction>,
    ) -> Direction {
        let variables = self.beta.len();
        let (mut low, mut high) = (vec![0.0; variables], vec![0.0; variables]);
        let mut right = vec![0.0; variables];
        for &v in &self.movable {
            let (a, c) = (self.beta[v] - qp.lower[v], qp.upper[v] - self.beta[v]);
            let (pair_low, pair_high) = predicted.map_or((0.0, 0.0), |p| {
                (p.beta[v] * p.hold_low[v], -p.beta[v] * p.hold_high[v])
            });
            low[v] = (mu - pair_low) / a - self.hold_low[v];
            high[v] = (mu - pair_high) / c - self.hold_high[v];
            let slope = qp.slope(&self.product, v) - self.offset;
            right[v] = slope + self.hold_low[v] - self.hold_high[v] + low[v] - high[v];
        }
        let missing = sum - self.beta.iter().sum::<f64>();
        let (beta, offset) = system.solve_with_sum(&right, missing);
        for &v in &self.movable {
            let (a, c) = (self.beta[v] - qp.lower[v], qp.upper[v] - self.beta[v]);
            low[v] -= self.hold_low[v] / a * beta[v];
            high[v] += self.hold_high[v] / c * beta[v];
        }
        Direction {
            beta,
            offset,
            hold_low: low,
            hold_high: high,
        }
    }

    /// How far along a direction everything stays ≥ 0.
    fn longest(&self, qp: &Qp<'_>, direction: &Direction) -> f64 {
        let mut longest = 1.0 / TO_BOUNDARY;
        for &v in &self.movable {
            let pairs = [
                (self.beta[v] - qp.lower[v], direction.beta[v]),
                (qp.upper[v] - self.beta[v], -direction.beta[v]),
                (self.hold_low[v], direction.hold_low[v]),
                (self.hold_high[v], direction.hold_high[v]),
            ];
            for (value, change) in pairs {
                if change < 0.0 {
                    longest = f64::min(longest, -value / change);
                } else if change.is_nan() {
                    return 0.0;
                }
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::{TaskGrams, given};
    use crate::machine::Variables;
    use crate::random::Random;

    /// x'z on a few columns, labels that no line separates: hardly anything is free, and small steps go on for ever.
    #[test]
    fn low_rank_wide_boxes_and_two_variables_a_sample_are_solved() {
        let mut random = Random::new(8);
        for (n, columns, copies, c) in [(40, 2, 1, 1e4), (60, 3, 2, 1e3), (30, 1, 1, 1e6)] {
            let x: Vec<f64> = (0..n * columns)
                .map(|_| 20.0 * random.uniform() - 10.0)
                .collect();
            let row = |i: usize| &x[i * columns..(i + 1) * columns];
            let gram: Vec<f64> = (0..n * n)
                .map(|k| row(k / n).iter().zip(row(k % n)).map(|(a, b)| a * b).sum())
                .collect();
            let grams = given(n, vec![gram]);
            let view = TaskGrams::all(grams.as_ref());
            let rows = CombinedRows::new(view, &[1.0]);
            let noisy: Vec<f64> = (0..n)
                .map(|i| x[i * columns] + 30.0 * random.uniform() - 15.0)
                .collect();
            let (mut linear, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new());
            for copy in 0..copies {
                for value in &noisy {
                    // Classification with one variable a sample, regression with two.
                    let is_up = if copies == 1 { *value > 0.0 } else { copy == 0 };
                    let sign = if is_up { 1.0 } else { -1.0 };
                    linear.push(if copies == 1 {
                        sign
                    } else {
                        value - 0.1 * sign
                    });
                    lower.push(if is_up { 0.0 } else { -c });
                    upper.push(if is_up { c } else { 0.0 });
                }
            }
            let qp = Qp {
                variables: Variables::new(n, copies),
                linear: &linear,
                lower: &lower,
                upper: &upper,
            };
            let start = vec![0.0; linear.len()];
            let first = gap(&qp, &start, &vec![0.0; n]);
            let found = solve(
                &qp,
                &rows,
                &start,
                1e-9 * first,
                &Stop::never(),
                &Ledger::default(),
            )
            .unwrap();
            assert!(gap(&qp, &found.beta, &found.product) <= 1.5e-9 * first);
            let sum: f64 = found.beta.iter().sum();
            assert!(sum.abs() <= 1e-12 * c * linear.len() as f64, "{sum}");
            let is_inside = |v: usize| lower[v] <= found.beta[v] && found.beta[v] <= upper[v];
            assert!((0..linear.len()).all(is_inside));
            // Few are free, and the others can be told.
            let snapped = found.snapped(&qp, &rows, 0.0, 1e-7).unwrap();
            let free = (0..linear.len())
                .filter(|&v| lower[v] < snapped.beta[v] && snapped.beta[v] < upper[v]);
            let free = free.count();
            assert!(free <= n / 3, "{free} of {n}");
        }
    }

    #[test]
    fn nothing_moves_where_the_bounds_leave_one_point() {
        let grams = given(2, vec![vec![1.0, 0.0, 0.0, 1.0]]);
        let view = TaskGrams::all(grams.as_ref());
        let qp = Qp {
            variables: Variables::one_each(2),
            linear: &[0.0, 0.0],
            lower: &[0.0, 0.0],
            upper: &[0.5, 0.5],
        };
        let rows = CombinedRows::new(view, &[1.0]);
        assert!(
            solve(
                &qp,
                &rows,
                &[0.5, 0.5],
                1e-9,
                &Stop::never(),
                &Ledger::default()
            )
            .is_none()
        );
    }

    #[test]
    fn their_price_in_small_steps_grows_with_the_square() {
        assert_eq!(price_in_small_steps(80), 800 + 800);
        assert_eq!(price_in_small_steps(100), 1250 + 1000);
    }

    #[test]
    fn what_is_next_to_a_bound_goes_there_and_the_rest_makes_up_for_it() {
        let grams = given(
            4,
            vec![(0..16).map(|k| f64::from(u8::from(k % 5 == 0))).collect()],
        );
        let rows = CombinedRows::new(TaskGrams::all(grams.as_ref()), &[1.0]);
        let (lower, upper) = ([0.0; 4], [2.0; 4]);
        let qp = Qp {
            variables: Variables::one_each(4),
            linear: &[0.0; 4],
            lower: &lower,
            upper: &upper,
        };
        let snapped = |beta: [f64; 4], sum: f64| {
            let interior = Interior {
                beta: beta.to_vec(),
                product: Vec::new(),
                iterations: 7,
            };
            interior.snapped(&qp, &rows, sum, 0.01)
        };
        // Rooms of ½ and 1 share what the first two leave.
        let found = snapped([0.015, 1.985, 0.5, 1.0], 3.5).unwrap();
        for (found, expected) in found.beta.iter().zip([0.0, 2.0, 0.5, 1.0]) {
            assert!((found - expected).abs() <= 1e-15);
        }
        let found = snapped([0.015, 1.975, 0.5, 1.0], 3.49).unwrap();
        let missing = 3.49 - 3.475;
        for (found, expected) in found.beta.iter().zip([
            0.0,
            1.975 + missing * 0.025 / 1.525,
            0.5 + missing * 0.5 / 1.525,
            1.0 + missing / 1.525,
        ]) {
            assert!((found - expected).abs() <= 1e-14, "{found} {expected}");
        }
        assert_eq!((found.beta.clone(), found.iterations), (found.product, 7));
        // At exactly the margin is next to it; and more than half of the room is too much.
        assert_eq!(
            snapped([0.02, 1.98, 0.5, 1.0], 3.5).unwrap().beta,
            [0.0, 2.0, 0.5, 1.0]
        );
        assert!(snapped([0.015, 1.985, 0.5, 1.0], 4.3).is_none());
        assert!(snapped([0.0, 2.0, 2.0, 0.0], 3.9).is_none());
        assert!(snapped([0.0, 2.0, 2.0, 0.0], 4.0).is_some());
    }

    #[test]
    fn the_start_is_balanced_and_a_dozen_steps_are_enough() {
        let mut random = Random::new(9);
        // Seven to twenty are usual.
        for (n, most) in [(20, [10, 17]), (60, [12, 23])] {
            for (c, most) in [1.0, 1e3].into_iter().zip(most) {
                let grams = given(n, vec![crate::inner::tests::some_kernel(n, &mut random)]);
                let rows = CombinedRows::new(TaskGrams::all(grams.as_ref()), &[1.0]);
                let labels: Vec<f64> = (0..n).map(|i| [1.0, -1.0][i % 2]).collect();
                let lower: Vec<f64> = labels.iter().map(|y| (c * y).min(0.0)).collect();
                let upper: Vec<f64> = labels.iter().map(|y| (c * y).max(0.0)).collect();
                let qp = Qp {
                    variables: Variables::one_each(n),
                    linear: &labels,
                    lower: &lower,
                    upper: &upper,
                };
                let point = Iterate::balanced(&qp, &rows, 0.0).unwrap();
                // Half way, with multipliers that fulfil the linear conditions.
                for v in 0..n {
                    assert!((point.beta[v] - 0.5 * c * labels[v]).abs() <= 1e-12 * c);
                    let slope = qp.slope(&point.product, v) - point.offset;
                    let left = slope + point.hold_low[v] - point.hold_high[v];
                    assert!(left.abs() <= 1e-9 * (1.0 + slope.abs()), "{left}");
                    assert!(point.hold_low[v] > 0.0 && point.hold_high[v] > 0.0);
                }
                let mean: f64 = (0..n)
                    .map(|v| qp.slope(&point.product, v) - point.offset)
                    .sum();
                assert!(mean.abs() <= 1e-9 * c);
                let stop = Stop::never();
                let found =
                    solve(&qp, &rows, &vec![0.0; n], 1e-6, &stop, &Ledger::default()).unwrap();
                assert!(found.iterations <= most, "{n} {c}: {}", found.iterations);
                assert!(gap(&qp, &found.beta, &found.product) <= 1e-6);
            }
        }
    }
}
