//! φ strictly convex and smooth on an open interval, a function of the machine's own: damped Newton steps on β.
//!
//! With g = q + c Σ_m θ_m d_m − Kβ, optimality is g − φ'(β) = b for all samples, Σβ = s (b = 0 where the sum is not given). One step solves
//!
//! [[K + diag φ'', 1], [1', 0]] [δ, b] = [g − φ'(β), s − Σβ]
//!
//! and goes along δ as far as ḡ rises, each variable bent off by itself before the end of its interval; what is then missing of the sum is made up
//! for by one shift of all slopes φ'(β). (One step length for all was cut short by whichever β came next to its end: 540 factorisations in
//! four passes on robot4's six pairs, against 33 in three.) For every b, Fenchel's inequality bounds what is missing (see
//! [`crate::machine::Dual`]):
//!
//! J − ḡ(β) ≤ κ ( Σ_i [ φ_i(β_i) + φ_i*(g_i − b) − β_i (g_i − b) ] + b (s − Σβ) ).
//!
//! The curvature of J has P, the leading block of the inverse of that matrix at the optimum.

mod rounds;

use super::linear_system::{LinearSystem, Preconditioner};
use super::rounding::{objective, target};
use super::{Curvature, Effort, Here, Point};
use crate::error::{Error, Result};
use crate::gram::CombinedRows;
use crate::grid::dot;
use crate::ledger::{Ledger, bytes_of};
use crate::linalg;
use crate::machine::{Dual, SmoothConjugate};
use crate::vector::rounding;

/// No more steps than this; five to twenty are usual from nothing, two or three from the last θ.
const MAX_STEPS: usize = 100;
/// So many steps without a gap that falls, or a rise of ḡ that is worth while, are the end: rounding is all that is left.
const IDLE_STEPS: usize = 5;
/// A gap of more than this part of ḡ, where no step helps any more, is not a matter of rounding.
const FAR: f64 = 0.01;
/// A factor of an earlier step is tried as long as the last step left no more than this part of the gap: then φ'' does not change much any more.
const CHORD: f64 = 0.1;
/// J's curvature is taken from the last step's factor where that step was made at a gap of no more than this part of ḡ, or than a hundred times the
/// accuracy asked for: θ steps by a model of J anyway, and a factor of its own would double the work of a warm pass.
const NEAR: f64 = 1e-3;
/// Newton's direction is solved for until so much of the residual is left: a gap falls with its square, and by no more in a step anyway.
const FORCING: f64 = 0.1;
/// Halvings of a step. A Newton direction of a concave function rises at its beginning: some will do, but for rounding.
const HALVINGS: usize = 40;
/// So much of the rise that the slope promises is enough (Armijo).
const ENOUGH: f64 = 0.1;
/// Variables keep this far from the ends of their intervals, relative to the ends' size: nearer, φ'' is rounding. Or to how far the others let
/// them go, where that is less: of a price of 1e15 beside one of 1, nothing of more than 1 can ever be used.
const MARGIN: f64 = 8.0 * f64::EPSILON;
/// Rounds of sharing what is missing of the sum; the first leaves rounding of its own, seldom more than the sum's.
const SUM_ROUNDS: usize = 4;
/// More than so many times its rounding is missing of a sum that cannot be reached.
const OUT_OF_REACH: f64 = 64.0;
/// Steps to b with the sum that is given; five are usual.
const SUM_STEPS: usize = 200;

/// The solver for a smooth conjugate.
#[derive(Debug)]
pub(super) struct Smooth<'a> {
    pub(super) dual: &'a Dual,
    pub(super) function: &'a dyn SmoothConjugate,
    pub(super) sum: Option<f64>,
    /// A factor from the last step, or the last θ.
    pub(super) kept: &'a mut Option<Preconditioner>,
}

/// Where the search stands.
struct Iterate {
    beta: Vec<f64>,
    product: Vec<f64>,
    /// The ends of the intervals, less a margin.
    ends: Vec<(f64, f64)>,
    /// The gap at the last step.
    last_gap: f64,
}

/// A step that was tried.
struct Tried {
    beta: Vec<f64>,
    /// K times the change.
    image: Vec<f64>,
    gain: f64,
}

/// What Newton's steps came to: how many, and the gap at the last one.
struct Climbed {
    steps: usize,
    last_gap: f64,
}

impl Iterate {
    fn is_inside(&self, i: usize) -> bool {
        let (low, high) = self.ends[i];
        low <= self.beta[i] && self.beta[i] <= high
    }
}

impl Smooth<'_> {
    fn error(problem: &str) -> Error {
        Error::Numeric {
            place: "a machine with a smooth conjugate".to_string(),
            problem: problem.to_string(),
        }
    }

    /// The closed intervals that β is kept in.
    ///
    /// No β_i can be further above the end of its interval than what is left of the sum where all are at theirs. Margins relative to no more than
    /// that leave Σβ = s within reach, however far apart the ends are.
    fn ends(&self, samples: usize) -> Vec<(f64, f64)> {
        let intervals = || (0..samples).map(|i| self.function.interval(i));
        let (above, below) = self.sum.map_or((f64::INFINITY, f64::INFINITY), |sum| {
            let (least, most) = intervals().fold((0.0, 0.0), |(least, most), (low, high)| {
                (least + low, most + high)
            });
            (sum - least, most - sum)
        });
        let closed = |(low, high): (f64, f64)| {
            let ends = [low, high].into_iter().filter(|end| end.is_finite());
            let size = ends.fold(f64::MIN_POSITIVE, |size, end| size.max(end.abs()));
            let margin = |end: f64, reach: f64| {
                let own = if end.is_finite() { end.abs() } else { 0.0 };
                (MARGIN * own.max(reach.min(size))).max(MARGIN * f64::MIN_POSITIVE)
            };
            let (low, high) = (low + margin(low, above), high - margin(high, below));
            if low <= high {
                (low, high)
            } else {
                // Too narrow for any room: one point.
                let middle = 0.5 * (low + high);
                (middle, middle)
            }
        };
        intervals().map(closed).collect()
    }

    /// Where β is not within its intervals (samples without one so far, or β of another problem), all get the β that goes with their slopes:
    /// what is kept of it is Kβ, the function that was learned. Σβ = s.
    fn enter(&self, iterate: &mut Iterate, linear: &[f64], rows: &CombinedRows<'_>) {
        let n = iterate.beta.len();
        let is_known = (0..n).all(|i| iterate.is_inside(i));
        if !is_known {
            let slopes: Vec<f64> = (0..n).map(|i| linear[i] - iterate.product[i]).collect();
            iterate.beta = self.beta_of_slopes(&iterate.ends, &slopes);
        }
        let is_moved = self.meet_sum(iterate);
        if is_moved || !is_known {
            iterate.product = rows.multiply(&iterate.beta);
        }
        if !is_known && self.sum.is_none_or(|sum| sum == 0.0) {
            self.shorten(iterate, linear);
        }
    }

    /// β ← τβ, 0 < τ ≤ 1, where ḡ is highest, by halving τ as long as ḡ rises: β that go with slopes of a function that is not there yet are too
    /// large by orders of magnitude, and each order would be a factorisation.
    fn shorten(&self, iterate: &mut Iterate, linear: &[f64]) {
        let Iterate {
            beta,
            product,
            ends,
            ..
        } = iterate;
        let (straight, bend) = (dot(linear, beta), dot(beta, product));
        let value = |share: f64| {
            let penalty: f64 = (beta.iter().enumerate())
                .map(|(i, &beta)| self.function.value(i, share * beta))
                .sum();
            share * straight - 0.5 * share * share * bend - penalty
        };
        let fits = |share: f64| {
            let pairs = beta.iter().zip(ends.iter());
            pairs
                .into_iter()
                .all(|(beta, &(low, high))| low <= share * beta && share * beta <= high)
        };
        let (mut share, mut best) = (1.0, value(1.0));
        while fits(0.5 * share) {
            let next = value(0.5 * share);
            if next.is_nan() || next <= best {
                break;
            }
            (share, best) = (0.5 * share, next);
        }
        for values in [beta, product] {
            for value in values.iter_mut() {
                *value *= share;
            }
        }
    }

    /// s − Σβ, and what of it is rounding; nothing is missing where no sum is given.
    fn missing(&self, beta: &[f64]) -> (f64, f64) {
        let Some(sum) = self.sum else {
            return (0.0, 0.0);
        };
        let length: f64 = beta.iter().map(|value| value.abs()).sum();
        let missing = sum - beta.iter().sum::<f64>();
        (missing, rounding(beta.len()) * (length + sum.abs()))
    }

    /// Whether Σβ = s but for rounding.
    fn has_sum(&self, beta: &[f64]) -> bool {
        let (missing, rounding) = self.missing(beta);
        missing.abs() <= rounding
    }

    /// Σβ = s, what is missing shared by the room there is; whether anything moved. Where there is no room, it stays missing.
    fn meet_sum(&self, iterate: &mut Iterate) -> bool {
        let mut is_moved = false;
        for _ in 0..SUM_ROUNDS {
            if self.has_sum(&iterate.beta) {
                break;
            }
            let (missing, _) = self.missing(&iterate.beta);
            let room = |i: usize| {
                let (low, high) = iterate.ends[i];
                if missing > 0.0 {
                    high - iterate.beta[i]
                } else {
                    iterate.beta[i] - low
                }
            };
            let mut rooms: Vec<f64> = (0..iterate.beta.len()).map(room).collect();
            if rooms.iter().any(|room| room.is_infinite()) {
                for room in &mut rooms {
                    *room = if room.is_infinite() { 1.0 } else { 0.0 };
                }
            }
            let all: f64 = rooms.iter().sum();
            if !missing.is_finite() || all.is_nan() || all <= 0.0 {
                break;
            }
            for (i, room) in rooms.iter().enumerate() {
                let (low, high) = iterate.ends[i];
                let change = missing * (room / all);
                iterate.beta[i] = (iterate.beta[i] + change).clamp(low, high);
            }
            is_moved = true;
        }
        is_moved
    }

    /// The β next to 0, Σβ = s.
    fn least(&self, iterate: &mut Iterate) {
        for (beta, (low, high)) in iterate.beta.iter_mut().zip(&iterate.ends) {
            *beta = 0.0_f64.clamp(*low, *high);
        }
        self.meet_sum(iterate);
    }

    /// g − φ'(β)
    fn residual(&self, iterate: &Iterate, linear: &[f64]) -> Vec<f64> {
        let slope = |i: usize| self.function.slope(i, iterate.beta[i]);
        (0..linear.len())
            .map(|i| linear[i] - iterate.product[i] - slope(i))
            .collect()
    }

    /// φ''(β)
    fn curvatures(&self, beta: &[f64]) -> Vec<f64> {
        let pairs = beta.iter().enumerate();
        pairs
            .map(|(i, &beta)| self.function.curvature(i, beta).max(f64::MIN_POSITIVE))
            .collect()
    }

    /// b for which the residual, weighed by 1/φ'', is least; 0 where the sum is not given.
    fn offset(&self, residual: &[f64], curvatures: &[f64]) -> f64 {
        if self.sum.is_none() {
            return 0.0;
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for (residual, curvature) in residual.iter().zip(curvatures) {
            sum += residual / curvature;
            weights += 1.0 / curvature;
        }
        let offset = sum / weights;
        // Next to the ends of all intervals there is nothing to weigh by, and any offset will do.
        if offset.is_finite() { offset } else { 0.0 }
    }

    /// The gap with this offset, and how much more it can be where slopes are within these errors, and for rounding of φ and φ*.
    fn gap(&self, iterate: &Iterate, linear: &[f64], offset: f64, errors: &[f64]) -> (f64, f64) {
        let (mut plain, mut safe) = (0.0, 0.0);
        for (i, &beta) in iterate.beta.iter().enumerate() {
            let own = self.function.value(i, beta);
            let slope = linear[i] - iterate.product[i] - offset;
            // φ + φ* − βg is convex in g: it is largest at an end.
            let at = |slope: f64| {
                let (loss, _) = self.function.conjugate(i, slope);
                let digits = 4.0 * f64::EPSILON * (own.abs() + loss.abs() + (beta * slope).abs());
                (own + loss - beta * slope, digits)
            };
            let error = errors[i] + f64::EPSILON * (linear[i].abs() + offset.abs());
            let (least, _) = at(slope);
            let ((below, digits), (above, more)) = (at(slope - error), at(slope + error));
            plain += least.max(0.0);
            safe += (below + digits).max(above + more).max(0.0);
        }
        let (missing, _) = self.missing(&iterate.beta);
        safe += (offset * missing).abs();
        let scale = self.dual.scale;
        (scale * plain, scale * (safe - plain).max(0.0))
    }

    /// Newton steps until the gap is small enough; returns how many. From nothing, once, where a start from elsewhere leads nowhere: with
    /// variables next to the wrong ends of their intervals steps are short.
    fn climb(
        &mut self,
        iterate: &mut Iterate,
        linear: &[f64],
        here: Here<'_>,
        effort: &Effort<'_>,
        ledger: &Ledger,
    ) -> Result<usize> {
        let (steps, gap) = self.climb_once(iterate, linear, here, effort, ledger)?;
        let value = objective(linear, &iterate.beta, &iterate.product);
        let size = (value - self.dual.penalty(&iterate.beta)).abs();
        if gap <= FAR * self.dual.scale * size || effort.stop.now() {
            return Ok(steps);
        }
        iterate.beta.fill(0.0);
        iterate.product.fill(0.0);
        *self.kept = None;
        self.enter(iterate, linear, here.rows);
        let (further, _) = self.climb_once(iterate, linear, here, effort, ledger)?;
        Ok(steps + further)
    }

    /// Steps, and the gap that is left; 0 where it is small enough.
    fn climb_once(
        &mut self,
        iterate: &mut Iterate,
        linear: &[f64],
        here: Here<'_>,
        effort: &Effort<'_>,
        ledger: &Ledger,
    ) -> Result<(usize, f64)> {
        let none = vec![0.0; linear.len()];
        let diagonal = here.rows.diagonal();
        let (mut least, mut idle, mut rise) = (f64::INFINITY, 0, 0.0);
        // A factor of the last θ is tried first.
        let mut last = f64::INFINITY;
        for steps in 0..MAX_STEPS {
            let residual = self.residual(iterate, linear);
            let offset = self.offset(&residual, &self.curvatures(&iterate.beta));
            let (gap, _) = self.gap(iterate, linear, offset, &none);
            if gap.is_nan() {
                return Err(Self::error("φ or its conjugate is not a number"));
            }
            let Iterate { beta, product, .. } = &*iterate;
            let wanted = target(self.dual, effort, linear, beta, product, diagonal);
            let has_moved = gap < 0.9 * least || self.dual.scale * rise > wanted;
            idle = if has_moved { 0 } else { idle + 1 };
            least = least.min(gap);
            if gap <= wanted {
                return Ok((steps, 0.0));
            }
            if idle > IDLE_STEPS || effort.stop.now() {
                return Ok((steps, gap));
            }
            if gap > CHORD * last {
                *self.kept = None;
            }
            last = gap;
            iterate.last_gap = gap;
            match self.advance(iterate, &residual, here, effort, ledger)? {
                Some(found) => rise = found,
                None => return Ok((steps, gap)),
            }
        }
        Ok((MAX_STEPS, least))
    }

    /// A step along Newton's direction, and how much ḡ/κ rises by it, about; `None` where there is none that rises.
    fn advance(
        &mut self,
        iterate: &mut Iterate,
        residual: &[f64],
        here: Here<'_>,
        effort: &Effort<'_>,
        ledger: &Ledger,
    ) -> Result<Option<f64>> {
        let curvatures = self.curvatures(&iterate.beta);
        let system = self.system(&curvatures, here, effort);
        let mut direction = vec![0.0; residual.len()];
        let mut left = residual.to_vec();
        let mut first = None;
        let is_enough =
            |_: &[f64], energy: f64| energy <= FORCING * FORCING * *first.get_or_insert(energy);
        let solved = system.solve(self.kept, &mut direction, &mut left, is_enough, ledger);
        if effort.stop.now() {
            // Rows that were not made say nothing, about K being definite neither.
            return Ok(None);
        }
        solved.ok_or_else(Self::not_definite)?;
        Ok(self.search(iterate, residual, &direction, here))
    }

    /// β and Kβ moved in the direction as far as ḡ rises, each variable within its interval, and the rise.
    fn search(
        &self,
        iterate: &mut Iterate,
        residual: &[f64],
        direction: &[f64],
        here: Here<'_>,
    ) -> Option<f64> {
        let mut step = 1.0_f64;
        for _ in 0..HALVINGS {
            let slopes: Vec<f64> = (iterate.beta.iter().zip(direction).enumerate())
                .map(|(i, (&beta, &change))| {
                    let (low, high) = iterate.ends[i];
                    let room = if change < 0.0 {
                        low - beta
                    } else {
                        high - beta
                    };
                    let moved = beta + bent(step * change, room);
                    self.function.slope(i, moved.clamp(low, high))
                })
                .collect();
            let beta = self.beta_of_slopes(&iterate.ends, &slopes);
            if let Some(tried) = self.tried(iterate, residual, beta, here) {
                iterate.beta = tried.beta;
                linalg::axpy(1.0, &tried.image, &mut iterate.product);
                return Some(tried.gain);
            }
            step *= 0.5;
        }
        None
    }

    /// What this β is worth; `None` where ḡ does not rise enough.
    fn tried(
        &self,
        iterate: &Iterate,
        residual: &[f64],
        beta: Vec<f64>,
        here: Here<'_>,
    ) -> Option<Tried> {
        let change: Vec<f64> = (beta.iter().zip(&iterate.beta))
            .map(|(new, old)| new - old)
            .collect();
        let rise = dot(residual, &change);
        let image = here.rows.multiply(&change);
        let bend = dot(&change, &image);
        let (mut slope, mut gain) = (rise - bend, rise - 0.5 * bend);
        for (i, &change) in change.iter().enumerate() {
            let known = self.function.slope(i, iterate.beta[i]);
            slope -= change * (self.function.slope(i, beta[i]) - known);
            gain -= self.function.value(i, beta[i])
                - self.function.value(i, iterate.beta[i])
                - change * known;
        }
        // On a concave line ḡ rises as long as its slope is not negative; next to the optimum the slope is all that rounding leaves.
        let is_enough = gain >= ENOUGH * rise || slope.abs() <= ENOUGH * rise;
        (rise > 0.0 && is_enough).then_some(Tried { beta, image, gain })
    }

    /// φ*'(z − b) within the ends, b such that Σβ = s; b = 0 where the sum is not given.
    fn beta_of_slopes(&self, ends: &[(f64, f64)], slopes: &[f64]) -> Vec<f64> {
        let at = |i: usize, offset: f64| {
            let (low, high) = ends[i];
            let (_, beta) = self.function.conjugate(i, slopes[i] - offset);
            let middle = 0.5 * (low + high);
            match (beta.is_nan(), middle.is_finite()) {
                (false, _) => beta.clamp(low, high),
                (true, true) => middle,
                (true, false) => 0.0_f64.clamp(low, high),
            }
        };
        let all = |offset: f64| (0..ends.len()).map(move |i| at(i, offset));
        let offset = self.sum.map_or(0.0, |sum| {
            offset_with_sum(sum, |offset| {
                let (mut total, mut slope) = (0.0, 0.0);
                for (i, beta) in all(offset).enumerate() {
                    total += beta;
                    slope += 1.0 / self.function.curvature(i, beta).max(f64::MIN_POSITIVE);
                }
                (total, slope)
            })
        });
        all(offset).collect()
    }

    /// K + diag φ'', with the sum.
    fn system<'s>(
        &self,
        curvatures: &'s [f64],
        here: Here<'s>,
        effort: &Effort<'_>,
    ) -> LinearSystem<'s> {
        LinearSystem {
            rows: here.rows,
            diagonal: curvatures,
            has_sum: self.sum.is_some(),
            concave: effort.concave,
            landmarks: effort.allowance.most_free,
        }
    }

    fn not_definite() -> Error {
        Self::error("K + diag φ'' is not positive definite in double precision")
    }

    /// F with F'F = κ u'Pu.
    fn curvature(
        &mut self,
        point: &mut Point,
        here: Here<'_>,
        effort: &Effort<'_>,
        is_near: bool,
    ) -> Result<Curvature> {
        let kernels = here.grams.grams.kernels();
        let is_usable = is_near && (self.kept.as_ref()).is_some_and(Preconditioner::is_near);
        if !is_usable {
            let curvatures = self.curvatures(&point.beta);
            self.system(&curvatures, here, effort)
                .factor(self.kept, &point.ledger);
        }
        let Some(near) = self.kept.as_ref().filter(|_| !effort.stop.now()) else {
            return if effort.stop.now() {
                Ok(Curvature::none())
            } else {
                Err(Self::not_definite())
            };
        };
        point.make_images(here.grams);
        let samples = 0..point.beta.len();
        let _memory = point.ledger.take(bytes_of::<f64>(samples.len() * kernels));
        let block = point.images.derivatives(self.dual, here.grams, samples);
        let block = near.project(block, kernels, self.sum.is_some());
        Ok(Curvature::of(
            block,
            kernels,
            self.dual.scale,
            &point.ledger,
        ))
    }
}

/// A change, bent so that it never uses up the room r on its way: itself up to half of r, r (1 − r/4c) for a change of c beyond.
fn bent(change: f64, room: f64) -> f64 {
    if change.abs() <= 0.5 * room.abs() {
        change
    } else {
        room * (1.0 - 0.25 * room / change)
    }
}

/// b with total(b) = wanted, for a total that falls with b, by Newton's steps within a bracket; the nearest there is where none has it. The
/// function says the total and minus its slope.
fn offset_with_sum(wanted: f64, total: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (-f64::MAX, f64::MAX);
    let (mut offset, mut reach) = (0.0, 1.0);
    for _ in 0..SUM_STEPS {
        let (found, slope) = total(offset);
        let excess = found - wanted;
        if excess > 0.0 {
            low = offset;
        } else {
            high = offset;
        }
        let newton = offset + excess / slope;
        // Outwards by twice as much each time, until both sides are known: where the total is flat a step of Newton's leads anywhere.
        let (least, most) = (low.max(offset - reach), high.min(offset + reach));
        let next = if newton > least && newton < most {
            newton
        } else if low > -f64::MAX && high < f64::MAX {
            0.5 * (low + high)
        } else {
            offset + if excess > 0.0 { reach } else { -reach }
        };
        reach *= 2.0;
        if (next - offset).abs() <= f64::EPSILON * offset.abs() || excess == 0.0 {
            break;
        }
        offset = next;
    }
    offset
}

#[cfg(test)]
mod tests;
