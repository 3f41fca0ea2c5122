//! The quadratic model of J, minimised over Ψ: the second-order step before the line search.
//!
//! min over x of  −⟨s, δ⟩ + ½ Σ_t (‖F_t δᵗ‖² + Σ_m b_tm δ_tm²) + (cuts, see [`super::cuts`]),  δ = θ(x) − θ_k,  with θᵗ(x) the sum of the terms' variables, x ≥ 0 and one norm, sum
//! or ball constraint per term. A primal–dual interior point method (Mehrotra's predictor and corrector) with a slack v for each
//! norm: N(x) + v = radius. It needs no conic lift: on x > 0 the mixed norm is smooth, and its curvature is a diagonal plus a
//! few rank-one pieces, so a Newton step costs one small factorisation per task (see [`super::system`]).
//!
//! The result is feasible and comes with its own certificate, the Frank–Wolfe gap of the model by the sharing's oracle.

use super::cuts::Cut;
use super::excess::{Excess, ExcessStep};
use super::system::{Bend, Extra, RowMatrix, System};
use super::term::{Direction, TermState, longest_step};
use crate::engine::Curvature;
use crate::grid::{Grid, dot};
use crate::sharing::{Constraint, Parts, Sharing};

/// J around θ_k, to second order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model<'a> {
    pub(super) theta: &'a Grid,
    pub(super) sensitivities: &'a Grid,
    pub(super) curvature: &'a [Curvature],
    /// b ≥ 0, further curvature on the diagonal.
    pub(super) bends: Option<&'a Grid>,
    /// What is known beyond, for each task.
    pub(super) cuts: &'a [Vec<Cut>],
    pub(super) sharing: &'a Sharing,
}

/// A feasible point and what the model says of it.
#[derive(Debug, Clone)]
pub(super) struct Minimum {
    pub(super) parts: Parts,
    /// The model's value relative to θ_k, ≤ 0 for progress.
    pub(super) value: f64,
    /// How far the value can be above the model's minimum.
    pub(super) gap: f64,
    /// The proportions of the cuts of each task.
    pub(super) weights: Vec<Vec<f64>>,
}

impl Minimum {
    /// The better one.
    fn or(self, other: Self) -> Self {
        if other.gap < self.gap || !self.gap.is_finite() {
            other
        } else {
            self
        }
    }
}

/// No more interior point iterations than this; some twenty are usual.
const MAX_ITERATIONS: usize = 80;
/// An iterate is looked at when what is left may be this many times what is wanted, and every so often anyway.
const NEAR: f64 = 2.0;
const LOOK: usize = 8;
/// Shorter steps than this make no progress.
const SHORTEST: f64 = 1e-10;
/// The model is solved well when what is left is at most this part of what was won.
const SHARE: f64 = 0.1;
/// How far towards the boundary a step may go.
pub(super) const TO_BOUNDARY: f64 = 0.99;

impl Model<'_> {
    /// q(θ) − q(θ_k)
    pub(super) fn value(&self, theta: &Grid) -> f64 {
        let mut value = 0.0;
        for task in 0..theta.rows() {
            let delta = self.delta(theta, task);
            value -= dot(self.sensitivities.row(task), &delta);
            let bend = Bend {
                rows: &self.curvature[task].factor,
                gram: None,
                more: &[],
                diagonal: self.bends.map(|bends| bends.row(task)),
            };
            value += 0.5 * bend.square(&delta);
            let cuts = self.cuts[task].iter().map(|cut| cut.value(&delta));
            value += cuts.fold(0.0, f64::max);
        }
        value
    }

    fn delta(&self, theta: &Grid, task: usize) -> Vec<f64> {
        theta
            .row(task)
            .iter()
            .zip(self.theta.row(task))
            .map(|(new, old)| new - old)
            .collect()
    }

    /// F'F of each task that has enough rows; made once, used in every iteration.
    fn grams(&self) -> Vec<Option<Vec<f64>>> {
        let kernels = self.theta.kernels();
        let gram = |rows: &[f64]| {
            let mut gram = vec![0.0; kernels * kernels];
            crate::linalg::add_gram(rows, kernels, &mut gram);
            gram
        };
        let curvature = self.curvature.iter().map(|curvature| &curvature.factor);
        curvature
            .map(|rows| {
                let is_wanted = !rows.is_empty() && Bend::wants_gram(rows, kernels);
                is_wanted.then(|| gram(rows))
            })
            .collect()
    }

    /// The curvature of each task, without the cuts'.
    fn task_bends<'b>(&'b self, grams: &'b [Option<Vec<f64>>]) -> Vec<Bend<'b>> {
        let tasks = self.curvature.iter().zip(grams).enumerate();
        tasks
            .map(|(task, (curvature, gram))| Bend {
                rows: &curvature.factor,
                gram: gram.as_deref(),
                more: &[],
                diagonal: self.bends.map(|bends| bends.row(task)),
            })
            .collect()
    }

    /// −∇q(θ): the model's sensitivities there.
    fn descent(&self, theta: &Grid, bends: &[Bend<'_>]) -> Grid {
        let mut descent = self.sensitivities.clone();
        for (task, bend) in bends.iter().enumerate() {
            bend.subtract_image(&self.delta(theta, task), descent.row_mut(task));
        }
        descent
    }

    /// max over θ' in Ψ of ⟨−∇q(θ), θ' − θ⟩ ≥ q(θ) − min q, for q with the cuts in these proportions, and what these proportions lack at θ.
    fn gap(&self, theta: &Grid, weights: &[Vec<f64>], bends: &[Bend<'_>]) -> f64 {
        let mut descent = self.descent(theta, bends);
        let mut lack = 0.0;
        for (task, weights) in weights.iter().enumerate() {
            if weights.is_empty() {
                continue;
            }
            let delta = self.delta(theta, task);
            let mut highest = 0.0_f64;
            for (cut, weight) in self.cuts[task].iter().zip(weights) {
                let value = cut.value(&delta);
                highest = highest.max(value);
                lack -= weight * value;
                crate::linalg::axpy(-weight, &cut.slope, descent.row_mut(task));
            }
            lack += highest;
        }
        lack + self.sharing.maximise(&descent).1 - descent.dot(theta)
    }

    /// Minimises the model to an absolute accuracy, and to a part of the decrease that it promises unless that is below `least`.
    pub(super) fn minimise(
        &self,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Minimum {
        let mut terms = self.terms(constraints);
        let grams = self.grams();
        let bends = self.task_bends(&grams);
        let mut excess = self.start_multipliers(&mut terms, &bends);
        let mut best = self.feasible(&terms, &excess, &bends);
        if terms.iter().all(|term| !term.is_variable()) {
            return best;
        }
        for number in 1..=MAX_ITERATIONS {
            let goes_on = self.iterate(&mut terms, &mut excess, &bends);
            let (left, _) = complementarity(&terms, &excess);
            if goes_on && left > NEAR * accuracy && number % LOOK != 0 {
                continue;
            }
            best = best.or(self.feasible(&terms, &excess, &bends));
            let is_solved = best.gap <= accuracy && best.gap <= least.max(-SHARE * best.value);
            if is_solved || !goes_on {
                break;
            }
        }
        if best.gap > accuracy && self.cuts.iter().all(Vec::is_empty) {
            // Strongly curved norms can lead the quick method astray; the plain barrier method cannot be.
            let mut terms = self.terms(constraints);
            self.start_multipliers(&mut terms, &bends);
            self.follow_barrier(&mut terms, &bends, |terms| {
                best = best.clone().or(self.feasible(terms, &[], &bends));
                best.gap <= accuracy
            });
        }
        self.snap(best, &terms, accuracy, &bends)
    }

    /// Minimises q − μ (Σ log x + Σ log v + …) for smaller and smaller μ by damped Newton steps that never leave the interior.
    /// Slower than [`Model::iterate`] and safe. Stops when `keep` is satisfied or rounding ends the progress.
    fn follow_barrier(
        &self,
        terms: &mut [TermState],
        bends: &[Bend<'_>],
        mut keep: impl FnMut(&[TermState]) -> bool,
    ) {
        let (total, count) = terms
            .iter()
            .map(TermState::complementarity)
            .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        let mut mu = total / count;
        let merit = |terms: &[TermState], mu: f64| {
            let barrier: f64 = terms.iter().map(TermState::barrier).sum();
            self.value(&self.theta(terms)) + mu * barrier
        };
        for _ in 0..60 {
            for _ in 0..30 {
                for term in terms.iter_mut().filter(|term| term.is_variable()) {
                    term.start_multipliers(mu);
                }
                let descent = self.descent(&self.theta(terms), bends);
                let (matrices, couplings) = matrices(terms);
                let Some(system) = self.system(&matrices, &couplings, bends) else {
                    return;
                };
                let right: Vec<Grid> = terms
                    .iter()
                    .map(|term| {
                        term.right_hand_side(&Self::term_descent(&descent, term.x.rows()), mu, None)
                    })
                    .collect();
                let Some(dx) = system.solve(&right) else {
                    return;
                };
                // The Newton decrement: what the quadratic model of the merit function promises, twice.
                let promise: f64 = right
                    .iter()
                    .zip(&dx)
                    .map(|(right, dx)| dot(right.values(), dx.values()))
                    .sum();
                if promise <= 1e-3 * mu {
                    break;
                }
                let before = merit(terms, mu);
                let mut step = 1.0;
                let moved = loop {
                    let mut moved = terms.to_vec();
                    for (term, dx) in moved.iter_mut().zip(&dx) {
                        term.shift(dx, step);
                    }
                    let after = merit(&moved, mu);
                    if after <= before - 0.1 * step * promise {
                        break Some(moved);
                    }
                    step *= 0.5;
                    if step < SHORTEST {
                        break None;
                    }
                };
                match moved {
                    Some(moved) => terms.clone_from_slice(&moved),
                    None => break,
                }
            }
            if keep(terms) || mu < 1e-16 * total {
                return;
            }
            mu *= 0.2;
        }
    }

    /// The Newton matrix at the current point.
    fn system<'b>(
        &self,
        matrices: &'b [Vec<RowMatrix>],
        couplings: &'b [Option<Extra>],
        bends: &'b [Bend<'b>],
    ) -> Option<System<'b>> {
        let terms = self.sharing.terms().iter();
        let common: Vec<bool> = terms.map(|term| term.is_common()).collect();
        System::new(matrices, couplings, &common, bends, self.theta.kernels())
    }

    /// Weights that are on their way to zero become exact zeros, where the model does not mind.
    fn snap(
        &self,
        best: Minimum,
        terms: &[TermState],
        accuracy: f64,
        bends: &[Bend<'_>],
    ) -> Minimum {
        for threshold in [1e-4, 1e-6, 1e-8, 1e-10] {
            let mut parts = best.parts.clone();
            for (part, term) in parts.0.iter_mut().zip(terms) {
                term.snap(part, threshold);
            }
            let theta = self.sharing.theta(&parts);
            let (value, gap) = (self.value(&theta), self.gap(&theta, &best.weights, bends));
            if value <= best.value + 0.1 * accuracy && gap <= 1.5 * best.gap.max(accuracy) {
                return Minimum {
                    parts,
                    value,
                    gap,
                    weights: best.weights,
                };
            }
        }
        best
    }

    /// Strictly feasible, balanced starting points.
    fn terms(&self, constraints: &[Constraint]) -> Vec<TermState> {
        let start = self.sharing.start();
        constraints
            .iter()
            .zip(start.0)
            .map(|(constraint, x)| TermState::new(constraint, x))
            .collect()
    }

    fn theta(&self, terms: &[TermState]) -> Grid {
        self.sharing
            .theta(&Parts(terms.iter().map(|term| term.x.clone()).collect()))
    }

    /// The iterate moved into Ψ, and its value and gap.
    fn feasible(&self, terms: &[TermState], excess: &[Excess<'_>], bends: &[Bend<'_>]) -> Minimum {
        let weights: Vec<Vec<f64>> = excess.iter().map(Excess::convex_weights).collect();
        let parts = Parts(terms.iter().map(TermState::feasible).collect());
        let theta = self.sharing.theta(&parts);
        Minimum {
            value: self.value(&theta),
            gap: self.gap(&theta, &weights, bends),
            weights,
            parts,
        }
    }

    /// −∇q for each term, in the term's own rows.
    fn term_descent(descent: &Grid, rows: usize) -> Grid {
        if rows == descent.rows() {
            descent.clone()
        } else {
            descent.sum_rows()
        }
    }

    /// All complementarity products start out equal, and together as large as the gap; the cuts are at the height that goes with that.
    fn start_multipliers(&self, terms: &mut [TermState], bends: &[Bend<'_>]) -> Vec<Excess<'_>> {
        let theta = self.theta(terms);
        let excess = |mu: f64| -> Vec<Excess<'_>> {
            let cuts = self.cuts.iter().enumerate();
            cuts.map(|(task, cuts)| Excess::new(cuts, &self.delta(&theta, task), mu))
                .collect()
        };
        let (_, count) = complementarity(terms, &[]);
        let mut mu = (self.gap(&theta, &[], bends) / count.max(1.0)).max(1e-30);
        let mut start = excess(mu);
        if self.cuts.iter().any(|cuts| !cuts.is_empty()) {
            let weights: Vec<Vec<f64>> = start.iter().map(Excess::convex_weights).collect();
            let (_, count) = complementarity(terms, &start);
            mu = mu.max(self.gap(&theta, &weights, bends) / count);
            start = excess(mu);
        }
        for term in terms.iter_mut().filter(|term| term.is_variable()) {
            term.start_multipliers(mu);
        }
        start
    }

    /// One predictor–corrector step; `false` when no further progress can be made.
    fn iterate(
        &self,
        terms: &mut [TermState],
        excess: &mut [Excess<'_>],
        bends: &[Bend<'_>],
    ) -> bool {
        let descent = self.descent(&self.theta(terms), bends);
        let (total, count) = complementarity(terms, excess);
        let mu = total / count;
        if !(mu.is_finite() && mu > 0.0) {
            return false;
        }
        let more: Vec<Vec<f64>> = excess.iter().map(Excess::curvature).collect();
        let bends: Vec<Bend<'_>> = bends
            .iter()
            .zip(&more)
            .map(|(&bend, more)| Bend { more, ..bend })
            .collect();
        let (matrices, couplings) = matrices(terms);
        let Some(system) = self.system(&matrices, &couplings, &bends) else {
            return false;
        };
        let solve =
            |terms: &[TermState], excess: &[Excess<'_>], mu: f64, predicted: Option<&Step>| {
                let mut descent = descent.clone();
                for (task, excess) in excess.iter().enumerate() {
                    let predicted = predicted.map(|all| &all.excess[task]);
                    excess.add_right(mu, predicted, descent.row_mut(task));
                }
                let right: Vec<Grid> = terms
                    .iter()
                    .enumerate()
                    .map(|(number, term)| {
                        let own = Self::term_descent(&descent, term.x.rows());
                        term.right_hand_side(&own, mu, predicted.map(|all| &all.terms[number]))
                    })
                    .collect();
                let dx = system.solve(&right)?;
                // A constant term does not move.
                let moves = dx.iter().zip(terms).map(|(dx, term)| {
                    if term.is_variable() {
                        dx.clone()
                    } else {
                        Grid::zeros(term.x.rows(), term.x.kernels())
                    }
                });
                let change = self.sharing.theta(&Parts(moves.collect()));
                Some(Step {
                    terms: terms
                        .iter()
                        .zip(dx)
                        .enumerate()
                        .map(|(number, (term, dx))| {
                            term.direction(dx, mu, predicted.map(|all| &all.terms[number]))
                        })
                        .collect(),
                    excess: excess
                        .iter()
                        .enumerate()
                        .map(|(task, excess)| {
                            let predicted = predicted.map(|all| &all.excess[task]);
                            excess.direction(change.row(task), mu, predicted)
                        })
                        .collect(),
                })
            };
        let Some(predictor) = solve(terms, excess, 0.0, None) else {
            return false;
        };
        let step = longest(terms, excess, &predictor);
        let after = predictor.complementarity_after(terms, excess, step);
        let sigma = (after / total).clamp(0.0, 1.0).powi(3).max(1e-4);
        let Some(corrector) = solve(terms, excess, sigma * mu, Some(&predictor)) else {
            return false;
        };
        let mut step = (TO_BOUNDARY * longest(terms, excess, &corrector)).min(1.0);
        // A norm is no straight line: do not step so far that it leaves its slack behind.
        while step > SHORTEST
            && !terms
                .iter()
                .zip(&corrector.terms)
                .all(|(term, direction)| term.stays_close(direction, step))
        {
            step *= 0.6;
        }
        if !(step.is_finite() && step > SHORTEST) {
            return false;
        }
        corrector.take(terms, excess, step);
        true
    }
}

/// Each term's part of the Newton matrix.
fn matrices(terms: &[TermState]) -> (Vec<Vec<RowMatrix>>, Vec<Option<Extra>>) {
    terms.iter().map(TermState::matrix).unzip()
}

/// A step of everything.
#[derive(Debug)]
struct Step {
    terms: Vec<Direction>,
    excess: Vec<ExcessStep>,
}

impl Step {
    /// Σ of complementarity products where this step would lead.
    fn complementarity_after(&self, terms: &[TermState], excess: &[Excess<'_>], step: f64) -> f64 {
        let terms = terms.iter().zip(&self.terms);
        let terms = terms.map(|(term, direction)| term.complementarity_after(direction, step));
        let excess = excess.iter().zip(&self.excess);
        let excess =
            excess.map(|(excess, direction)| excess.complementarity_after(direction, step));
        terms.sum::<f64>() + excess.sum::<f64>()
    }

    fn take(&self, terms: &mut [TermState], excess: &mut [Excess<'_>], step: f64) {
        for (term, direction) in terms.iter_mut().zip(&self.terms) {
            term.advance(direction, step);
        }
        for (excess, direction) in excess.iter_mut().zip(&self.excess) {
            excess.advance(direction, step);
        }
    }
}

fn longest(terms: &[TermState], excess: &[Excess<'_>], step: &Step) -> f64 {
    excess
        .iter()
        .zip(&step.excess)
        .flat_map(|(excess, step)| excess.pairs(step))
        .filter(|(_, change)| *change < 0.0)
        .fold(longest_step(terms, &step.terms), |step, (value, change)| {
            step.min(-value / change)
        })
}

/// Σ of complementarity products, and how many there are.
fn complementarity(terms: &[TermState], excess: &[Excess<'_>]) -> (f64, f64) {
    terms
        .iter()
        .map(TermState::complementarity)
        .chain(excess.iter().map(Excess::complementarity))
        .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
}
