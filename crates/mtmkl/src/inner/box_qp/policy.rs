//! Which step comes next on the way to β at one θ.
//!
//! 1. **Predict.** A factorisation of K_FF kept from the last θ says where β moves to with θ: a direct step with it comes first.
//! 2. **Small steps** (SMO) otherwise, until the bounds are mostly settled: they are cheap while much is wrong.
//! 3. **Direct step**: K_FF factored, and the free variables moved to where their slopes are equal. Again at once where that left a tenth of
//!    the gap, else small steps for the few variables on the wrong side, to a tolerance that goes with the gap.
//! 4. **Interior points**, once, where small steps have cost as much or nothing helps any more. Then 3 again.
//! 5. **Done** when the gap is at most the accuracy asked for, or what rounding can do to it; or when the gap has not fallen for long.
//!
//! All of them keep β feasible, so that it can be left at any time, and the gap says what it is worth.

use super::super::rounding::{linear_term, noise, product_errors, slope_size, target};
use super::super::{Effort, Here, Point, Solved};
use super::free_set::{free_variables, movable_variables};
use super::kept_factor::{KeptFactor, small_steps_of_factorisation};
use super::smo::{self, Smo};
use super::{BoxQp, Qp, fill, gap, interior, violation};
use crate::gram::CombinedRows;
use crate::grid::dot;
use crate::ledger::Ledger;
use crate::machine::Dual;
use crate::vector::rounding;

/// A direct step with the right K_FF that leaves no more than this share of the gap has left a few variables on the wrong side, and the
/// next one will have them.
const FEW_LEFT: f64 = 0.1;
/// Where what rounding can do is this little below the accuracy that is wanted, nothing is added up step by step.
const DELICATE: f64 = 1e3;
/// And where it is this little below, sums are made with twice the digits.
const EXACT: f64 = 10.0;
/// What interior points leave this close to a bound, as a part of the distance between the bounds, is tried at it.
const NEXT_TO_BOUND: [f64; 2] = [1e-6, 1e-9];
/// A gap that did not fall for this many rounds of direct and small steps will not fall.
const IDLE_ROUNDS: usize = 30;
/// The violation that small steps begin with, relative to the size of slopes.
const FIRST_TOLERANCE: f64 = 1e-2;
/// Violations below this, relative to the size of slopes, are rounding.
const LAST_TOLERANCE: f64 = 1e-15;
/// And below this they are, where no step was left to take.
const IDLE_TOLERANCE: f64 = 1e-13;

/// The search for β at one θ: where it stands, and what was tried.
struct Search<'a> {
    dual: &'a Dual,
    qp: Qp<'a>,
    here: Here<'a>,
    effort: &'a Effort<'a>,
    ledger: Ledger,
    /// Of slopes.
    size: f64,
    /// Small steps that are taken before interior points have their turn.
    patience: usize,

    beta: Vec<f64>,
    product: Vec<f64>,
    gap: f64,
    /// The gap that is small enough.
    accuracy: f64,
    steps: usize,
    /// Kβ is not the sum of many small steps, which add up their rounding.
    is_exact: bool,

    /// How far small steps go.
    tolerance: f64,
    kept: Option<KeptFactor>,
    is_direct_step_due: bool,
    /// Others have yet to be solved for: a factorisation for these alone has to be worth its price.
    is_part: bool,
    /// What a direct step leaves of the gap. With K_FF of an earlier θ, about the share by which θ moved since, then as seen.
    share: f64,
    /// Small steps since the last direct one.
    since: usize,
    /// The least gap so far, and the rounds since it fell.
    least: f64,
    idle: usize,
    interior_points: InteriorPoints,
}

/// What is known before a search.
struct Known {
    kept: Option<KeptFactor>,
    was_hard: bool,
    is_part: bool,
}

/// Whether interior points can be used, or were.
#[derive(PartialEq, Eq)]
enum InteriorPoints {
    Ready,
    /// Tried in vain, or there is no memory for them.
    Over,
    /// The problem is a hard one.
    Helped,
}

/// What to do after a direct step.
#[derive(PartialEq, Eq)]
enum After {
    NextRound,
    SmallSteps,
}

/// Improves β for θ until its gap is small enough. Where this is not the last word on β, nothing is factored for the curvature.
pub(super) fn solve(
    solver: &mut BoxQp<'_>,
    point: &mut Point,
    here: Here<'_>,
    effort: &Effort<'_>,
    is_last: bool,
) -> Solved {
    let linear = linear_term(solver.dual, here.rows.diagonal());
    let kept = solver.memory.kept.take();
    let was_hard = std::mem::take(&mut solver.memory.is_hard);
    let qp = solver.qp(&linear);
    let memory = Known {
        kept,
        was_hard,
        is_part: !is_last,
    };
    let mut search = Search::new(solver.dual, qp, point, here, effort, memory);
    search.run();
    search.mend_sum(solver.sum);
    let worst = search.worst_of_rounding();
    if DELICATE * worst > search.accuracy {
        // Neither Kβ nor U may have come from a β whose terms were larger still.
        search.is_exact = false;
        point.images.clear();
    }
    if !search.is_exact && !point.images.are_everywhere() {
        search.product = here.rows.product(&qp.variables.sums(&search.beta));
    }
    let kept = if is_last {
        search.factor_for_curvature()
    } else {
        search.kept.take()
    };
    let Search {
        beta,
        product,
        accuracy,
        steps,
        interior_points,
        ..
    } = search;
    solver.memory.kept = kept;
    solver.memory.is_hard = interior_points == InteriorPoints::Helped;
    let (dual, diagonal) = (solver.dual, here.rows.diagonal());
    let solved = Solved {
        constant: dual.scale * dot(&dual.linear, &beta),
        steps,
        noise: dual.scale * noise(dual.variables, &linear, &beta, diagonal),
        errors: product_errors(dual.variables, &beta, diagonal),
        is_delicate: EXACT * worst > accuracy && effort.concave,
        answer: None,
        linear,
    };
    point.beta = beta;
    point.set_product(product, here.theta);
    solved
}

impl<'a> Search<'a> {
    fn new(
        dual: &'a Dual,
        qp: Qp<'a>,
        point: &mut Point,
        here: Here<'a>,
        effort: &'a Effort<'a>,
        known: Known,
    ) -> Self {
        let Known {
            kept,
            was_hard,
            is_part,
        } = known;
        let product = point.take_product(dual.variables, here);
        let beta = std::mem::take(&mut point.beta);
        let size = slope_size(qp.linear, &beta, here.rows.diagonal());
        // A factorisation at hand predicts where β moves to with θ.
        let kept = kept.filter(|_| effort.concave && (effort.curvature || is_part));
        let samples = product.len();
        let has_interior_points =
            effort.concave && effort.allowance.interior_points && samples <= interior::MOST_SAMPLES;
        let mut search = Self {
            dual,
            qp,
            here,
            effort,
            ledger: point.ledger.clone(),
            size,
            // Small steps may cost as much as interior points before these have their turn; less where they had it last time.
            patience: if was_hard {
                2 * qp.linear.len()
            } else {
                interior::price_in_small_steps(samples)
            },
            beta,
            product,
            gap: 0.0,
            accuracy: 0.0,
            steps: 0,
            is_exact: true,
            tolerance: FIRST_TOLERANCE * size,
            is_direct_step_due: kept.is_some(),
            is_part,
            share: kept.as_ref().map_or(1.0, |kept| kept.distance(here.theta)),
            kept,
            since: 0,
            least: f64::INFINITY,
            idle: 0,
            interior_points: if has_interior_points {
                InteriorPoints::Ready
            } else {
                InteriorPoints::Over
            },
        };
        search.measure();
        search
    }

    /// Without a concave ḡ there is no direct step: it may lead to a saddle. And without a use for its factorisation afterwards it is not
    /// worth while, but for parts, where it has to earn its price.
    fn has_direct_steps(&self) -> bool {
        self.effort.concave && (self.effort.curvature || self.is_part)
    }

    /// The gap as it stands, and the one that is small enough.
    fn measure(&mut self) {
        self.gap = self.gap_now();
        self.accuracy = self.target();
    }

    fn gap_now(&self) -> f64 {
        self.dual.scale * gap(&self.qp, &self.beta, &self.product)
    }

    fn target(&self) -> f64 {
        let diagonal = self.here.rows.diagonal();
        let Self { dual, effort, .. } = self;
        target(
            dual,
            effort,
            self.qp.linear,
            &self.beta,
            &self.product,
            diagonal,
        )
    }

    fn run(&mut self) {
        while self.gap > self.accuracy && !self.effort.stop.now() {
            self.note_progress();
            if self.are_interior_points_due() && self.use_interior_points() {
                continue;
            }
            if self.is_stuck() {
                break;
            }
            if self.has_direct_steps()
                && self.is_direct_step_due
                && self.predict_or_step() == After::NextRound
            {
                continue;
            }
            if !self.take_small_steps() {
                break;
            }
        }
    }

    /// Rounding (in single precision at the latest) sets a limit to what can be reached.
    fn note_progress(&mut self) {
        self.idle = if self.gap < 0.9 * self.least {
            0
        } else {
            self.idle + 1
        };
        self.least = self.least.min(self.gap);
    }

    fn is_stuck(&self) -> bool {
        self.idle > IDLE_ROUNDS
    }

    fn are_interior_points_due(&self) -> bool {
        self.interior_points == InteriorPoints::Ready
            && (self.is_stuck() || self.steps >= self.patience)
    }

    /// Interior points, once; false, and nothing changed, where they do not lower the gap.
    fn use_interior_points(&mut self) -> bool {
        self.interior_points = InteriorPoints::Over;
        // Two factorisations at a time are not planned for.
        self.kept = None;
        let before = (self.beta.clone(), self.product.clone(), self.gap);
        self.steps += self.go_to_interior_solution();
        self.gap = self.gap_now();
        if self.gap < before.2 {
            self.interior_points = InteriorPoints::Helped;
            self.is_exact = true;
            self.accuracy = self.target();
            self.is_direct_step_due = self.has_direct_steps();
            self.idle = 0;
            return true;
        }
        (self.beta, self.product, self.gap) = before;
        false
    }

    /// β and Kβ by interior points: at their bounds what is next to them, if that and a direct step on the rest reach the accuracy. Returns the
    /// number of iterations.
    fn go_to_interior_solution(&mut self) -> usize {
        let (qp, rows) = (self.qp, self.here.rows);
        let wanted = 0.5 * self.accuracy / self.dual.scale;
        let stop = self.effort.stop;
        let Some(found) = interior::solve(&qp, rows, &self.beta, wanted, stop, &self.ledger) else {
            return 0;
        };
        let sum = self.beta.iter().sum();
        for margin in NEXT_TO_BOUND {
            let Some(snapped) = found.snapped(&qp, rows, sum, margin) else {
                continue;
            };
            (self.beta, self.product) = (snapped.beta, snapped.product);
            let free = free_variables(&qp, &self.beta);
            if let Some(mut kept) = self.factor(free) {
                direct_step(&mut kept, &qp, rows, &mut self.beta, &mut self.product);
            }
            if self.gap_now() <= self.accuracy {
                return found.iterations;
            }
        }
        (self.beta, self.product) = (found.beta, found.product);
        cancel_twins(&qp, &mut self.beta);
        found.iterations
    }

    /// K_FF of these variables, factored anew.
    fn factor(&self, free: Vec<usize>) -> Option<KeptFactor> {
        let Self { qp, effort, .. } = self;
        KeptFactor::new(free, qp.variables, self.here, effort, &self.ledger)
    }

    /// A direct step, with the factorisation at hand where that is worth while: with K_FF of an earlier θ it predicts where β moves to.
    fn predict_or_step(&mut self) -> After {
        self.is_direct_step_due = false;
        let is_earned = self.since >= self.price();
        self.since = 0;
        let free = movable_variables(&self.qp, &self.beta, &self.product);
        let (here, share, wanted) = (self.here, self.share, self.accuracy / self.gap);
        let kept = (self.kept.take())
            .filter(|kept| kept.serves(&free, here, share, wanted))
            .and_then(|kept| kept.follow(&free, here))
            .or_else(|| is_earned.then(|| self.factor(free)).flatten());
        self.share = 1.0;
        let Some(mut kept) = kept else {
            return After::SmallSteps;
        };
        let rows = here.rows;
        if !direct_step(&mut kept, &self.qp, rows, &mut self.beta, &mut self.product) {
            return After::SmallSteps;
        }
        let is_old = !kept.is_of(here.theta);
        self.kept = Some(kept);
        self.is_exact = true;
        self.steps += 1;
        let before = self.gap;
        self.measure();
        if self.gap <= self.accuracy {
            return After::NextRound;
        }
        if is_old || self.gap <= FEW_LEFT * before {
            self.share = self.gap / before;
            self.is_direct_step_due = true;
            return After::NextRound;
        }
        // What is left is a matter of a few variables; the gap shrinks with their violation.
        let wanted = (0.5 * self.accuracy / self.gap).clamp(1e-3, 0.5);
        let violation = violation(&self.qp, &self.beta, &self.product);
        self.tolerance = self.tolerance.min(wanted * violation);
        After::SmallSteps
    }

    /// SMO until no pair violates optimality by more than the tolerance, or a direct step is worth as much; false where rounding is all
    /// that is left.
    fn take_small_steps(&mut self) -> bool {
        let variables = self.qp.linear.len();
        // A direct step is worth about as much as this many small ones.
        let worth = if self.has_direct_steps() {
            self.price().max(2 * variables)
        } else {
            100 * variables
        };
        let smo = Smo {
            tolerance: self.tolerance,
            shrinking: self.effort.shrinking,
            max_steps: match self.interior_points {
                InteriorPoints::Ready => worth.min(self.patience),
                InteriorPoints::Over | InteriorPoints::Helped => worth,
            },
        };
        let (rows, stop) = (self.here.rows, self.effort.stop);
        let (beta, product) = (&mut self.beta, &mut self.product);
        let taken = smo::solve(&self.qp, rows, beta, product, &smo, stop);
        self.is_exact &= taken == 0;
        self.steps += taken;
        self.since += taken;
        let before = self.gap;
        self.gap = self.gap_now();
        let is_idle = taken == 0 && self.gap >= before;
        if self.tolerance <= LAST_TOLERANCE * self.size
            || is_idle && self.tolerance <= IDLE_TOLERANCE * self.size
        {
            return false;
        }
        let price = self.price();
        let is_first = self.steps == self.since && price == 0;
        self.is_direct_step_due |= is_first || 8 * self.since >= variables.max(8 * price);
        self.accuracy = self.target();
        if taken < smo.max_steps {
            // The gap is at most (violation) · Σ(upper − lower): tighten the violation with it.
            let share = 0.3 * self.accuracy / self.gap.max(f64::MIN_POSITIVE);
            self.tolerance *= share.clamp(1e-3, 0.3);
        }
        true
    }

    /// Small steps that cost as much as a factorisation, where it has to be worth that.
    fn price(&self) -> usize {
        if !self.is_part {
            return 0;
        }
        let free = free_variables(&self.qp, &self.beta);
        small_steps_of_factorisation(free.len(), self.product.len())
    }

    /// Σβ = s again, where steps from a β with larger terms have left more of their rounding than there is now: the variable with the most room on
    /// both sides makes up for it, or those with the most room on the right one.
    fn mend_sum(&mut self, sum: f64) {
        let qp = self.qp;
        // By sample: where two variables of one take each other away, only what they leave is in the model.
        let before = qp.variables.sums(&self.beta);
        let missing = sum - before.iter().sum::<f64>();
        let length: f64 = before.iter().map(|value| value.abs()).sum();
        if missing.abs() <= rounding(self.beta.len()) * length {
            return;
        }
        cancel_twins(&qp, &mut self.beta);
        let beta = &mut self.beta;
        let room = |v: usize| (beta[v] - qp.lower[v]).min(qp.upper[v] - beta[v]);
        let mut order: Vec<usize> = (0..beta.len()).collect();
        order.sort_by(|&v, &w| room(w).total_cmp(&room(v)));
        if order.first().is_some_and(|&v| room(v) > missing.abs()) {
            beta[order[0]] += missing;
        } else {
            let room = |v: usize| {
                if missing > 0.0 {
                    qp.upper[v] - beta[v]
                } else {
                    beta[v] - qp.lower[v]
                }
            };
            order.sort_by(|&v, &w| room(w).total_cmp(&room(v)));
            fill(beta, qp.lower, qp.upper, sum, order.into_iter());
        }
        let after = qp.variables.sums(beta);
        let change: Vec<(usize, f64)> = (after.iter().zip(&before).enumerate())
            .map(|(i, (new, old))| (i, new - old))
            .filter(|(_, change)| *change != 0.0)
            .collect();
        self.here.rows.add_product(&change, &mut self.product);
    }

    /// What rounding of Kβ can do to the gap at most.
    fn worst_of_rounding(&self) -> f64 {
        let Self { qp, beta, .. } = self;
        let errors = product_errors(qp.variables, beta, self.here.rows.diagonal());
        let widths = (0..qp.linear.len())
            .map(|v| errors[qp.variables.sample_of(v)] * (qp.upper[v] - qp.lower[v]));
        self.dual.scale * widths.sum::<f64>()
    }

    /// K_FF of the free variables, where curvature is asked for: the one at hand where it bends alike.
    fn factor_for_curvature(&mut self) -> Option<KeptFactor> {
        if !self.effort.curvature {
            return None;
        }
        let (free, here) = (free_variables(&self.qp, &self.beta), self.here);
        (self.kept.take())
            .filter(|kept| kept.bends_alike(&free, here))
            .and_then(|kept| kept.follow(&free, here))
            .or_else(|| self.factor(free))
    }
}

/// Variables of one sample that take each other away, brought towards 0 where ḡ does not fall by that: of large ones, only what they leave is known to
/// all digits. Neither Σβ nor Kβ changes.
fn cancel_twins(qp: &Qp<'_>, beta: &mut [f64]) {
    for sample in 0..qp.variables.samples() {
        for above in qp.variables.of_sample(sample) {
            for below in qp.variables.of_sample(sample) {
                let room = beta[above] - qp.lower[above].max(0.0);
                let rise = qp.upper[below].min(0.0) - beta[below];
                if room > 0.0 && rise > 0.0 && qp.linear[below] >= qp.linear[above] {
                    let both = beta[above] + beta[below];
                    // The one that gets to its end is there exactly.
                    (beta[above], beta[below]) = if room <= rise {
                        let end = qp.lower[above].max(0.0);
                        (end, both - end)
                    } else {
                        let end = qp.upper[below].min(0.0);
                        (both - end, end)
                    };
                }
            }
        }
    }
}

/// β and Kβ moved by a direct step on the free variables; false, and nothing moved, where that would not raise ḡ.
fn direct_step(
    kept: &mut KeptFactor,
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    beta: &mut Vec<f64>,
    product: &mut Vec<f64>,
) -> bool {
    let before = beta.clone();
    if kept.set.step(qp, beta, product).is_none() {
        return false;
    }
    let sample_of = |v: usize| qp.variables.sample_of(v);
    let mut change = vec![0.0; product.len()];
    for (v, (new, old)) in beta.iter().zip(&before).enumerate() {
        change[sample_of(v)] += new - old;
    }
    let change: Vec<(usize, f64)> = (change.into_iter().enumerate())
        .filter(|(_, change)| *change != 0.0)
        .collect();
    let mut after = product.clone();
    rows.add_product(&change, &mut after);
    // Along β + t d, ḡ is t g'd − ½ t² d'Kd more.
    let (mut slope, mut bend) = (0.0, 0.0);
    for (v, (new, old)) in beta.iter().zip(&before).enumerate() {
        let change = new - old;
        slope += qp.slope(product, v) * change;
        bend += (after[sample_of(v)] - product[sample_of(v)]) * change;
    }
    if slope >= 0.5 * bend {
        *product = after;
        return true;
    }
    *beta = before;
    false
}

#[cfg(test)]
mod tests;
