//! One task: its dual variables, kept from pass to pass, and what one evaluation does to them.

use super::exact;
use super::free_set;
use super::images::Images;
use super::indefiniteness;
use super::kept::{Here, Kept};
use super::{Curvature, LocalMaximum};
use crate::error::{Error, Result};
use crate::gram::{CombinedRows, Image, TaskGrams};
use crate::grid::dot;
use crate::linalg::{self, Cholesky};
use crate::machine::{Domain, Dual};
use crate::qp::{self, Qp, Smo, interior};
use crate::run::Stop;
use crate::vector::rounding;

/// The machine of one task as fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// β, one per sample of the task.
    pub beta: Vec<f64>,
    /// b, the multiplier of Σβ = s; 0 without one.
    pub offset: f64,
}

/// The dual variables of one task, and what is known about them.
///
/// Ω does not depend on θ, so β stays feasible from pass to pass. Solving for β reads rows of K(θ), combined when first asked for; only
/// what J looks like at the answer takes U_m = K_mβ for single kernels, and that on the support.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// One per variable (two per sample for ε-SVR).
    beta: Vec<f64>,
    /// Kβ and its θ, where known.
    product: Option<(Vec<f64>, Vec<f64>)>,
    /// b as of then.
    offset: f64,
    images: Images,
    /// K_FF, factored at the last θ or one nearby.
    kept: Option<Kept>,
    /// Small and direct steps did not do at the last θ.
    is_hard: bool,
}

/// What solving for β yields, before U is known.
#[derive(Debug)]
pub(super) struct Inner {
    /// The part of ḡ without θ.
    constant: f64,
    /// q + c Σ_m θ_m d_m
    linear: Vec<f64>,
    /// Without bounds on β these are known already.
    gap: f64,
    gap_noise: f64,
    curvature: Option<Curvature>,
    steps: usize,
    noise: f64,
    /// What rounding can do to Kβ, per sample.
    errors: Vec<f64>,
    /// Plain sums are not good enough for β'Kβ.
    is_delicate: bool,
}

/// What one evaluation of one task yields.
#[derive(Debug, Clone)]
pub(super) struct TaskEvaluation {
    pub(super) value: f64,
    pub(super) gap: f64,
    pub(super) sensitivities: Vec<f64>,
    pub(super) curvature: Option<Curvature>,
    pub(super) steps: usize,
    pub(super) noise: f64,
    pub(super) forgiven: f64,
}

/// How to evaluate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort<'a> {
    /// The gap to reach, relative to the task's |ḡ|,
    pub(super) accuracy: f64,
    /// or to this, where it is more: the average |ḡ| of the last evaluation.
    pub(super) size: f64,
    pub(super) curvature: bool,
    pub(super) shrinking: bool,
    pub(super) concave: bool,
    pub(super) stop: &'a Stop,
}

/// A direct step with the right K_FF that leaves no more than this share of the gap has left a few variables on the wrong side, and the
/// next one will have them.
const FEW_LEFT: f64 = 0.1;
/// The gap is at most this part of ½ β'Kβ, all that depends on θ.
const OWN_ACCURACY: f64 = 0.01;
/// Where what rounding can do is this little below the accuracy that is wanted, nothing is added up step by step.
const DELICATE: f64 = 1e3;
/// And where it is this little below, sums are made with twice the digits.
const EXACT: f64 = 10.0;
/// What interior points leave this close to a bound, as a part of the distance between the bounds, is tried at it.
const NEXT_TO_BOUND: [f64; 2] = [1e-6, 1e-9];
/// A gap that did not fall for this many rounds of direct and small steps will not fall.
const IDLE_ROUNDS: usize = 30;

impl State {
    /// A feasible point that touches as few samples as possible, with an optional order in which to fill them.
    pub(super) fn new(dual: &Dual, samples: usize, order: Option<&[usize]>) -> Self {
        let mut beta = vec![0.0; dual.linear.len()];
        if let Domain::Box { lower, upper, sum } = &dual.domain {
            match order {
                None => fill(&mut beta, lower, upper, *sum, 0..lower.len()),
                Some(order) => {
                    // A random vertex: as much as possible on the first half of the order, balanced by the rest.
                    beta.copy_from_slice(lower);
                    fill(&mut beta, lower, upper, *sum, order.iter().copied());
                }
            }
        }
        Self {
            beta,
            product: None,
            offset: 0.0,
            images: Images::new(samples),
            kept: None,
            is_hard: false,
        }
    }

    /// Starts from this β, brought into Ω where it is not.
    pub(super) fn start_at(&mut self, dual: &Dual, beta: &[f64]) {
        self.beta.copy_from_slice(beta);
        if let Domain::Box { lower, upper, sum } = &dual.domain {
            for (value, (low, high)) in self.beta.iter_mut().zip(lower.iter().zip(upper)) {
                *value = value.clamp(*low, *high);
            }
            fill(&mut self.beta, lower, upper, *sum, 0..lower.len());
        }
        self.product = None;
        self.kept = None;
    }

    /// β of a problem on all of the samples, those that are not among `places` at zero.
    pub(super) fn spread(&self, places: &[usize], variables: usize) -> Vec<f64> {
        let copies = self.beta.len() / places.len();
        let samples = variables / copies;
        let mut beta = vec![0.0; variables];
        for (copy, values) in self.beta.chunks_exact(places.len()).enumerate() {
            for (value, &place) in values.iter().zip(places) {
                beta[copy * samples + place] = *value;
            }
        }
        beta
    }

    /// β per sample: variables of the same sample added up.
    fn per_sample(&self) -> Vec<f64> {
        let n = self.images.samples();
        let mut sums = self.beta[..n].to_vec();
        for copy in self.beta[n..].chunks_exact(n) {
            linalg::axpy(1.0, copy, &mut sums);
        }
        sums
    }

    /// What to ask of the Gram matrices to bring U up to date.
    pub(super) fn outdated(&mut self, grams: TaskGrams<'_>) -> Option<Image<'_>> {
        let beta = self.per_sample();
        let moving = self
            .kept
            .as_ref()
            .map_or_else(Vec::new, |kept| kept.set.moving());
        let free: Vec<usize> = moving.into_iter().map(|v| v % beta.len()).collect();
        self.images.outdated(beta, &free, grams)
    }

    /// U for this task alone.
    fn refresh(&mut self, grams: TaskGrams<'_>) {
        let images = self.outdated(grams).into_iter().collect();
        grams.images(images);
    }

    /// The samples whose rows of K(θ) Kβ is made of, where it is not known.
    pub(super) fn rows_to_begin_with(&self, theta: &[f64]) -> Vec<usize> {
        let beta = self.per_sample();
        let is_known = self.product.as_ref().is_some_and(|(_, of)| of == theta);
        if is_known || self.images.are_those_of(&beta) {
            return Vec::new();
        }
        (0..beta.len()).filter(|&i| beta[i] != 0.0).collect()
    }

    /// Kβ.
    fn product(&mut self, here: Here<'_>) -> Vec<f64> {
        match self.product.take() {
            Some((product, theta)) if theta == here.theta => product,
            _ => {
                let beta = self.per_sample();
                let known = self.images.product(&beta, here.theta);
                known.unwrap_or_else(|| here.rows.product(&beta))
            }
        }
    }

    /// Improves β for θ until its gap is at most `accuracy`, and says what J looks like there.
    pub(super) fn evaluate(
        &mut self,
        dual: &Dual,
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Result<TaskEvaluation> {
        let inner = self.solve(dual, here, effort)?;
        self.refresh(here.grams);
        Ok(self.report(dual, here.grams, here.theta, inner, effort))
    }

    /// Improves β for θ until its gap is at most `accuracy`.
    pub(super) fn solve(
        &mut self,
        dual: &Dual,
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Result<Inner> {
        match &dual.domain {
            Domain::Free { ridge } => self.solve_free(dual, ridge, here, effort),
            Domain::Box { lower, upper, .. } => {
                Ok(self.solve_box(dual, lower, upper, here, effort))
            }
        }
    }

    /// What J looks like, once β is solved for and U is up to date.
    pub(super) fn report(
        &mut self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        theta: &[f64],
        mut inner: Inner,
        effort: &Effort<'_>,
    ) -> TaskEvaluation {
        let mut sensitivities = self.images.sensitivities(dual, grams);
        let plain_noise = inner.noise;
        let exact =
            (inner.is_delicate).then(|| exact::evaluate(dual, grams, theta, &self.per_sample()));
        let (gap, gap_noise, curvature) = match &dual.domain {
            Domain::Box { lower, upper, .. } => {
                let qp = Qp {
                    linear: &inner.linear,
                    lower,
                    upper,
                };
                // From U where it is known everywhere: many small steps add up their rounding.
                if let Some(product) = self.images.product(&self.per_sample(), theta) {
                    self.product = Some((product, theta.to_vec()));
                }
                if let Some(exact) = exact {
                    sensitivities = exact.sensitivities;
                    inner.errors = exact.errors;
                    let sizes = dual.linear.iter().zip(&self.beta);
                    let linear: f64 = sizes.map(|(q, b)| (q * b).abs()).sum();
                    inner.noise = exact.noise + rounding(self.beta.len()) * dual.scale * linear;
                    self.product = Some((exact.product, theta.to_vec()));
                }
                let product = self
                    .product
                    .as_ref()
                    .map_or(&[][..], |(product, _)| product);
                let best = qp::best_offset(&qp, &self.beta, product, &inner.errors);
                self.offset = best.offset;
                let (gap, noise) = if effort.concave {
                    (
                        dual.scale * (best.gap + best.noise),
                        dual.scale * best.noise,
                    )
                } else {
                    (0.0, 0.0)
                };
                let curvature = effort.curvature.then(|| self.curvature_box(dual, grams));
                (gap, noise, curvature)
            }
            Domain::Free { .. } => (inner.gap, inner.gap_noise, inner.curvature),
        };
        // A kernel that rounding left a little indefinite is forgiven, and the gap is what holds for it.
        let pairs = theta.iter().enumerate();
        let epsilon: f64 = pairs
            .map(|(m, weight)| weight * grams.grams.indefiniteness(m))
            .sum();
        let gap = match &self.product {
            Some((product, _)) if epsilon > 0.0 && effort.concave => {
                let wider = indefiniteness::gap(dual, &inner.linear, &self.beta, product, epsilon);
                gap.max(wider + gap_noise)
            }
            _ => gap,
        };
        TaskEvaluation {
            // Exactly what the sensitivities belong to.
            value: inner.constant - dot(&sensitivities, theta),
            gap,
            sensitivities,
            curvature,
            steps: inner.steps,
            noise: inner.noise,
            // Where β = 0 is allowed, J is zero at that point or it is not zero.
            forgiven: match (dual.has_zero(), self.beta.iter().all(|&value| value == 0.0)) {
                (false, _) => 2.0 * plain_noise + gap_noise,
                (true, true) => gap_noise,
                (true, false) => 0.0,
            },
        }
    }

    fn solve_box(
        &mut self,
        dual: &Dual,
        lower: &[f64],
        upper: &[f64],
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Inner {
        let Here { rows, theta, .. } = here;
        let linear = linear_term(dual, rows);
        let qp = Qp {
            linear: &linear,
            lower,
            upper,
        };
        let mut product = self.product(here);
        let size = slope_size(&linear, &self.beta, rows.diagonal());
        let mut steps = 0;
        let mut gap = dual.scale * qp::gap(&qp, &self.beta, &product);
        let target = |beta: &[f64], product: &[f64]| {
            let value = dual.scale * objective(&linear, beta, product);
            let noise = dual.scale * noise(&linear, beta, rows.diagonal());
            // With next to no weight, what β should be is a matter of next to nothing, but its sensitivities are not.
            let own = dual.scale * (dot(&linear, beta) - objective(&linear, beta, product)).abs();
            (effort.accuracy * value.abs().max(effort.size))
                .min(OWN_ACCURACY * own)
                .max(noise)
        };
        let mut accuracy = target(&self.beta, &product);
        // Without a concave ḡ there is no direct step: it may lead to a saddle.
        let direct = effort.concave && effort.curvature;
        let mut tolerance = 1e-2 * size;
        // A factorisation at hand predicts where β moves to with θ. Else small steps until the bounds are mostly settled, then
        // a direct one on what is free; and again where that was too early.
        let mut known = self.kept.take().filter(|_| direct);
        let mut due = known.is_some();
        // What a direct step leaves of the gap. With K_FF of an earlier θ, about the share by which θ moved since, then as seen.
        let mut share = known.as_ref().map_or(1.0, |kept| kept.distance(theta));
        let mut since = 0;
        // Many small steps add up their rounding.
        let mut is_exact = true;
        let (mut least, mut idle) = (f64::INFINITY, 0);
        // Small steps may cost as much as interior points before these have their turn; less where they had it last time.
        let patience = if self.is_hard {
            2 * linear.len()
        } else {
            interior::price_in_small_steps(product.len())
        };
        let mut may_go_inside = effort.concave && product.len() <= interior::MOST_SAMPLES;
        self.is_hard = false;
        while gap > accuracy && !effort.stop.now() {
            // Rounding (in single precision at the latest) sets a limit to what can be reached.
            idle = if gap < 0.9 * least { 0 } else { idle + 1 };
            least = least.min(gap);
            if may_go_inside && (idle > IDLE_ROUNDS || steps >= patience) {
                may_go_inside = false;
                let before = (self.beta.clone(), product.clone(), gap);
                steps += self.go_inside(dual, &qp, here, effort, accuracy, &mut product);
                gap = dual.scale * qp::gap(&qp, &self.beta, &product);
                if gap < before.2 {
                    self.is_hard = true;
                    is_exact = true;
                    accuracy = target(&self.beta, &product);
                    (known, due, idle) = (None, direct, 0);
                    continue;
                }
                (self.beta, product, gap) = before;
            }
            if idle > IDLE_ROUNDS {
                break;
            }
            if direct && due {
                due = false;
                since = 0;
                let free = free_set::movable_variables(&qp, &self.beta, &product);
                let kept = known
                    .take()
                    .filter(|kept| kept.serves(&free, here, share, accuracy / gap))
                    .and_then(|kept| kept.follow(&free, here))
                    .or_else(|| Kept::new(free, here));
                if let Some(mut kept) = kept
                    && self.direct_step(&mut kept, &qp, rows, &mut product)
                {
                    let is_old = !kept.is_of(theta);
                    known = Some(kept);
                    is_exact = true;
                    steps += 1;
                    let before = gap;
                    gap = dual.scale * qp::gap(&qp, &self.beta, &product);
                    accuracy = target(&self.beta, &product);
                    if gap <= accuracy {
                        break;
                    }
                    if is_old || gap <= FEW_LEFT * before {
                        share = gap / before;
                        due = true;
                        continue;
                    }
                    // What is left is a matter of a few variables; the gap shrinks with their violation.
                    let wanted = (0.5 * accuracy / gap).clamp(1e-3, 0.5);
                    tolerance = tolerance.min(wanted * qp::violation(&qp, &self.beta, &product));
                }
                share = 1.0;
            }
            let smo = Smo {
                tolerance,
                shrinking: effort.shrinking,
                // A direct step is worth about as much as this many small ones.
                max_steps: if direct {
                    2 * linear.len()
                } else {
                    100 * linear.len()
                }
                .min(if may_go_inside { patience } else { usize::MAX }),
            };
            let taken = qp::solve(&qp, rows, &mut self.beta, &mut product, &smo, effort.stop);
            is_exact &= taken == 0;
            steps += taken;
            since += taken;
            let before = gap;
            gap = dual.scale * qp::gap(&qp, &self.beta, &product);
            if tolerance <= 1e-15 * size
                || (taken == 0 && tolerance <= 1e-13 * size && gap >= before)
            {
                break;
            }
            due |= steps == since || 8 * since >= linear.len();
            accuracy = target(&self.beta, &product);
            if taken < smo.max_steps {
                // The gap is at most (violation) · Σ(upper − lower): tighten the violation with it.
                tolerance *= (0.3 * accuracy / gap.max(f64::MIN_POSITIVE)).clamp(1e-3, 0.3);
            }
        }
        self.mend_sum(dual, rows, &mut product);
        let errors = product_errors(&self.beta, rows.diagonal());
        let widths = (0..linear.len()).map(|v| errors[v % errors.len()] * (upper[v] - lower[v]));
        let worst = dual.scale * widths.sum::<f64>();
        if DELICATE * worst > accuracy {
            // Neither Kβ nor U may have come from a β whose terms were larger still.
            is_exact = false;
            self.images = Images::new(product.len());
        }
        if !is_exact && !self.images.are_everywhere() {
            product = rows.product(&self.per_sample());
        }
        self.kept = if effort.curvature {
            let free = free_set::free_variables(&qp, &self.beta, product.len());
            known
                .filter(|kept| kept.bends_alike(&free, here))
                .and_then(|kept| kept.follow(&free, here))
                .or_else(|| Kept::new(free, here))
        } else {
            None
        };
        self.product = Some((product, theta.to_vec()));
        Inner {
            constant: dual.scale * dot(&dual.linear, &self.beta),
            steps,
            noise: dual.scale * noise(&linear, &self.beta, rows.diagonal()),
            errors,
            is_delicate: EXACT * worst > accuracy && effort.concave,
            gap: f64::INFINITY,
            gap_noise: 0.0,
            curvature: None,
            linear,
        }
    }

    /// β and Kβ by interior points: at their bounds what is next to them, if that and a direct step on the rest reach the accuracy. Returns the
    /// number of iterations.
    fn go_inside(
        &mut self,
        dual: &Dual,
        qp: &Qp<'_>,
        here: Here<'_>,
        effort: &Effort<'_>,
        accuracy: f64,
        product: &mut Vec<f64>,
    ) -> usize {
        let wanted = 0.5 * accuracy / dual.scale;
        let Some(found) = interior::solve(qp, here.rows, &self.beta, wanted, effort.stop) else {
            return 0;
        };
        let sum = self.beta.iter().sum();
        for margin in NEXT_TO_BOUND {
            let Some(snapped) = found.snapped(qp, here.rows, sum, margin) else {
                continue;
            };
            (self.beta, *product) = (snapped.beta, snapped.product);
            let free = free_set::free_variables(qp, &self.beta, product.len());
            if let Some(mut kept) = Kept::new(free, here) {
                self.direct_step(&mut kept, qp, here.rows, product);
            }
            if dual.scale * qp::gap(qp, &self.beta, product) <= accuracy {
                return found.iterations;
            }
        }
        (self.beta, *product) = (found.beta, found.product);
        found.iterations
    }

    /// Σβ = s again, where steps from a β with larger terms have left more of their rounding than there is now: the variable with the most room on
    /// both sides makes up for it.
    fn mend_sum(&mut self, dual: &Dual, rows: &CombinedRows<'_>, product: &mut [f64]) {
        let Domain::Box { lower, upper, sum } = &dual.domain else {
            return;
        };
        let missing = sum - self.beta.iter().sum::<f64>();
        let length: f64 = self.beta.iter().map(|value| value.abs()).sum();
        if missing.abs() <= rounding(self.beta.len()) * length {
            return;
        }
        let room = |v: usize| (self.beta[v] - lower[v]).min(upper[v] - self.beta[v]);
        let widest = (0..self.beta.len()).max_by(|&v, &w| room(v).total_cmp(&room(w)));
        if let Some(v) = widest.filter(|&v| room(v) > missing.abs()) {
            self.beta[v] += missing;
            rows.add_product(&[(v % product.len(), missing)], product);
        }
    }

    /// β and Kβ moved by a direct step on the free variables; false, and nothing moved, where that would not raise ḡ.
    fn direct_step(
        &mut self,
        kept: &mut Kept,
        qp: &Qp<'_>,
        rows: &CombinedRows<'_>,
        product: &mut Vec<f64>,
    ) -> bool {
        let before = self.beta.clone();
        if kept.set.step(qp, &mut self.beta, product).is_none() {
            return false;
        }
        let n = product.len();
        let mut change = vec![0.0; n];
        for (v, (new, old)) in self.beta.iter().zip(&before).enumerate() {
            change[v % n] += new - old;
        }
        let change: Vec<(usize, f64)> = (change.into_iter().enumerate())
            .filter(|(_, change)| *change != 0.0)
            .collect();
        let mut after = product.clone();
        rows.add_product(&change, &mut after);
        // Along β + t d, ḡ is t g'd − ½ t² d'Kd more.
        let (mut slope, mut bend) = (0.0, 0.0);
        for (v, (new, old)) in self.beta.iter().zip(&before).enumerate() {
            let change = new - old;
            slope += (qp.linear[v] - product[v % n]) * change;
            bend += (after[v % n] - product[v % n]) * change;
        }
        if slope >= 0.5 * bend {
            *product = after;
            return true;
        }
        self.beta = before;
        false
    }

    fn solve_free(
        &mut self,
        dual: &Dual,
        ridge: &[f64],
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Result<Inner> {
        let Here { grams, rows, theta } = here;
        let n = self.images.samples();
        let linear = linear_term(dual, rows);
        let mut matrix = Vec::with_capacity(n * n);
        for i in 0..n {
            matrix.extend_from_slice(rows.row(i));
            matrix[i * n + i] += ridge[i];
        }
        let factor = match Cholesky::new(&matrix, n) {
            Some(factor) => factor,
            // Rounding has made K indefinite beyond λ. A nearby matrix leads close to the answer; the gap says how close.
            None if effort.concave => Cholesky::with_jitter(matrix, n, 1e-15).ok_or_else(|| {
                ridge_error("K(θ) is too large beside lambda for double precision; raise lambda or scale the columns")
            })?,
            None => {
                return Err(ridge_error(
                    "λI + K is not positive definite, so ḡ has no maximum; raise lambda above minus the smallest eigenvalue of the kernel",
                ));
            }
        };
        // β ← β + (K + ρ)⁻¹ (q − Kβ − ρβ): from any β, warm or cold; twice for full accuracy.
        let mut product = self.product(here);
        let residual = |beta: &[f64], product: &[f64]| -> Vec<f64> {
            (0..n)
                .map(|i| linear[i] - product[i] - ridge[i] * beta[i])
                .collect()
        };
        // J − ḡ(β) = ½κ r'(K + ρ)⁻¹r ≤ ½κ Σ_i r_i²/ρ_i, r as large as rounding may have it.
        let gap = |residual: &[f64], errors: &[f64]| {
            let squares = (0..n).map(|i| (residual[i].abs() + errors[i]).powi(2) / ridge[i]);
            0.5 * dual.scale * squares.sum::<f64>()
        };
        let none = vec![0.0; n];
        for _ in 0..3 {
            let mut left = residual(&self.beta, &product);
            let value = (dual.scale * dot(&linear, &self.beta)).abs();
            if gap(&left, &none) <= 1e-3 * effort.accuracy * value {
                break;
            }
            factor.solve(&mut left, 1);
            linalg::axpy(1.0, &left, &mut self.beta);
            product = rows.product(&self.beta);
        }
        let left = residual(&self.beta, &product);
        let mut errors = product_errors(&self.beta, rows.diagonal());
        for (i, error) in errors.iter_mut().enumerate() {
            *error += f64::EPSILON * (linear[i].abs() + (ridge[i] * self.beta[i]).abs());
        }
        let (exact, gap) = (gap(&left, &none), gap(&left, &errors));
        // All of β changes with θ: U made anew costs no more than U by the change, and adds up no rounding.
        self.images = Images::new(n);
        let penalty: f64 = (0..n).map(|i| ridge[i] * self.beta[i] * self.beta[i]).sum();
        self.product = Some((product, theta.to_vec()));
        let curvature = effort.curvature.then(|| {
            // While the factorisation is there: it is as large as a Gram matrix.
            self.refresh(grams);
            let kernels = grams.grams.kernels();
            let mut block = self.images.rows(0..n, kernels);
            factor.solve_lower(&mut block, kernels);
            compress(block, kernels, dual.scale)
        });
        Ok(Inner {
            constant: dual.scale * (dot(&dual.linear, &self.beta) - 0.5 * penalty),
            gap,
            gap_noise: gap - exact,
            curvature,
            steps: 1,
            noise: dual.scale * noise(&linear, &self.beta, rows.diagonal()),
            errors: Vec::new(),
            is_delicate: false,
            linear,
        })
    }

    /// F with F'F = κ u'Pu: u_m = U_m − c d_m on the samples with a free variable, P from K_FF bordered by ones.
    fn curvature_box(&self, dual: &Dual, grams: TaskGrams<'_>) -> Curvature {
        let n = self.images.samples();
        let kernels = grams.grams.kernels();
        let Some(Kept { set, .. }) = &self.kept else {
            return Curvature::none();
        };
        // What is held does not count, whatever stands in its place.
        let samples = || set.variables().iter().map(|v| v % n);
        let mut block = self.images.rows(samples(), kernels);
        if dual.diagonal != 0.0 {
            for (row, i) in block.chunks_exact_mut(kernels).zip(samples()) {
                for (kernel, value) in row.iter_mut().enumerate() {
                    *value -= dual.diagonal * grams.diagonal(kernel, i);
                }
            }
        }
        set.project(&mut block, kernels);
        compress(block, kernels, dual.scale)
    }

    /// The machine as it stands.
    pub(super) fn fitted(&self) -> Fitted {
        Fitted {
            beta: self.per_sample(),
            offset: self.offset,
        }
    }

    /// This point as a local maximum.
    pub(super) fn maximum(evaluation: TaskEvaluation, theta: &[f64]) -> LocalMaximum {
        LocalMaximum {
            value: evaluation.value,
            constant: evaluation.value + dot(&evaluation.sensitivities, theta),
            sensitivities: evaluation.sensitivities,
        }
    }
}

fn ridge_error(problem: &str) -> Error {
    Error::Numeric {
        place: "kernel ridge regression".to_string(),
        problem: problem.to_string(),
    }
}

/// Raises or lowers β from where it is, in this order, until Σβ = sum.
fn fill(
    beta: &mut [f64],
    lower: &[f64],
    upper: &[f64],
    sum: f64,
    order: impl Iterator<Item = usize>,
) {
    let mut left = sum - beta.iter().sum::<f64>();
    for v in order {
        if left == 0.0 {
            break;
        }
        let change = if left > 0.0 {
            (upper[v] - beta[v].max(lower[v])).min(left)
        } else {
            (lower[v] - beta[v].min(upper[v])).max(left)
        };
        beta[v] += change;
        left -= change;
    }
}

/// q + c Σ_m θ_m d_m, per variable.
fn linear_term(dual: &Dual, rows: &CombinedRows<'_>) -> Vec<f64> {
    let n = rows.count();
    let diagonal = rows.diagonal();
    dual.linear
        .iter()
        .enumerate()
        .map(|(v, q)| q + dual.diagonal * diagonal[v % n])
        .collect()
}

/// The size of slopes q − Kβ: that of q or, where there is none, of Kβ before anything cancels.
fn slope_size(linear: &[f64], beta: &[f64], diagonal: &[f64]) -> f64 {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |a, &b| a.max(b.abs()));
    let linear = largest(linear);
    if linear > 0.0 {
        return linear;
    }
    (largest(diagonal) * beta.iter().map(|value| value.abs()).sum::<f64>()).max(1e-300)
}

/// What rounding can do to q'β − ½ β'Kβ.
fn noise(linear: &[f64], beta: &[f64], diagonal: &[f64]) -> f64 {
    let n = diagonal.len();
    let (mut straight, mut root) = (0.0, 0.0);
    for (v, value) in beta.iter().enumerate() {
        straight += (linear[v] * value).abs();
        root += value.abs() * diagonal[v % n].abs().sqrt();
    }
    rounding(n) * (straight + 0.5 * root * root)
}

/// What rounding can do to each entry of Kβ.
fn product_errors(beta: &[f64], diagonal: &[f64]) -> Vec<f64> {
    let n = diagonal.len();
    let roots: Vec<f64> = diagonal.iter().map(|d| d.abs().sqrt()).collect();
    let terms = beta.iter().enumerate().map(|(v, b)| b.abs() * roots[v % n]);
    let length = rounding(n) * terms.sum::<f64>();
    roots.iter().map(|root| root * length).collect()
}

/// q'β − ½ β'Kβ
fn objective(linear: &[f64], beta: &[f64], product: &[f64]) -> f64 {
    let n = product.len();
    dot(linear, beta)
        - 0.5
            * beta
                .chunks_exact(n)
                .map(|copy| dot(copy, product))
                .sum::<f64>()
}

/// √κ V, or a factor with fewer rows of the same V'V where V has more rows than columns.
fn compress(mut block: Vec<f64>, kernels: usize, scale: f64) -> Curvature {
    let root = scale.sqrt();
    for value in &mut block {
        *value *= root;
    }
    let factor = if block.len() > kernels * kernels {
        let mut gram = vec![0.0; kernels * kernels];
        linalg::add_gram(&block, kernels, &mut gram);
        linalg::semidefinite_factor(gram, kernels)
    } else {
        block
    };
    Curvature {
        rank: factor.len() / kernels,
        factor,
    }
}
