//! The quadratic model of J around θ_k, and its minimum over Ψ: the second-order step before the line search.
//!
//! min over x of  −⟨s, δ⟩ + ½ Σ_t δᵗ'(F_t'F_t + diag(b_t))δᵗ + Σ_t max(0, max_j r_tj(δᵗ)),  δ = θ(x) − θ_k
//!
//! with θᵗ(x) the sum of the rows that reach task t, x ≥ 0 and one norm, sum or ball constraint per term; r are the cuts of the bundle. It needs no conic lift: on
//! x > 0 the mixed norm is smooth, and its curvature is a diagonal plus a few rank-one pieces, so a Newton step costs one small factorisation per
//! task (see [`super::kkt`]).
//!
//! The result is feasible and comes with its own certificate, the Frank–Wolfe gap of the model by the sharing's oracle.

use super::barrier::is_variable;
use super::competitors::Competitors;
use super::epigraph::Epigraph;
use super::kkt::{Border, Hessian, KktSystem, Layout, RowMatrix};
use super::term::TermState;
use crate::engine::Curvature;
use crate::grid::{Grid, dot};
use crate::sharing::{Constraint, Parts, Sharing};
use crate::solver::bundle::Cut;

/// J around θ_k, to second order.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Model<'a> {
    pub(in crate::solver) theta: &'a Grid,
    pub(in crate::solver) sensitivities: &'a Grid,
    pub(in crate::solver) curvature: &'a [Curvature],
    /// b ≥ 0, further curvature on the diagonal.
    pub(in crate::solver) damping: Option<&'a Grid>,
    /// What other evaluations say, for each task.
    pub(in crate::solver) cuts: &'a [Vec<Cut>],
    pub(in crate::solver) sharing: &'a Sharing,
}

/// A feasible point and what the model says of it.
#[derive(Debug, Clone)]
pub(in crate::solver) struct Minimum {
    pub(in crate::solver) parts: Parts,
    /// The model's value relative to θ_k, ≤ 0 for progress.
    pub(in crate::solver) value: f64,
    /// How far the value can be above the model's minimum.
    pub(in crate::solver) gap: f64,
    /// The proportions of the cuts of each task.
    pub(in crate::solver) weights: Vec<Vec<f64>>,
}

impl Minimum {
    /// Whether the model is solved to this accuracy, and to a part of what was won unless that is below `least`.
    pub(super) fn is_solved(&self, accuracy: f64, least: f64) -> bool {
        self.gap <= accuracy && self.gap <= least.max(-SHARE * self.value)
    }

    /// The better one.
    pub(super) fn or(self, other: Self) -> Self {
        if other.gap < self.gap || !self.gap.is_finite() {
            other
        } else {
            self
        }
    }
}

/// Where an interior point method is: all terms, and the epigraph variable of each task's cuts.
#[derive(Debug)]
pub(super) struct Iterate<'a> {
    pub(super) terms: Vec<TermState>,
    pub(super) epigraphs: Vec<Epigraph<'a>>,
}

impl Iterate<'_> {
    /// Σ of complementarity products, and how many there are.
    pub(super) fn complementarity(&self) -> (f64, f64) {
        self.terms
            .iter()
            .map(TermState::complementarity)
            .chain(self.epigraphs.iter().map(Epigraph::complementarity))
            .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
}

/// Each term's part of the Newton matrix.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) rows: Vec<Vec<RowMatrix>>,
    pub(super) couplings: Vec<Option<Border>>,
}

impl Pieces {
    pub(super) fn of(terms: &[TermState]) -> Self {
        let (rows, couplings) = terms.iter().map(TermState::matrix).unzip();
        Self { rows, couplings }
    }
}

/// No more interior point iterations than this; some twenty are usual.
const MAX_ITERATIONS: usize = 80;
/// An iterate is looked at (moved into Ψ, with its Frank–Wolfe gap, an oracle call and an image by every H) when the sum of its complementarity products, about its
/// gap, is within this many times what is wanted …
const NEAR: f64 = 2.0;
/// … and every so many iterations anyway, since that sum says little of an iterate whose residuals are large.
const LOOK: usize = 8;
/// The model is solved well when what is left is at most this part of what was won.
const SHARE: f64 = 0.1;
/// Complementarity products start no smaller than this, also where the gap is zero: their logarithms must exist.
const LEAST_MU: f64 = 1e-30;
/// Weights below these parts of the term's size become zeros, the first of them that the model does not mind.
const SNAPPED: [f64; 4] = [1e-4, 1e-6, 1e-8, 1e-10];
/// It does not mind if the value rises by this part of the accuracy and the gap by one half.
const SNAP_RISE: f64 = 0.1;
const SNAP_GAP: f64 = 1.5;

impl Model<'_> {
    /// q(θ) − q(θ_k)
    pub(in crate::solver) fn value(&self, theta: &Grid) -> f64 {
        let mut value = 0.0;
        for task in 0..theta.rows() {
            let delta = self.delta(theta, task);
            value -= dot(self.sensitivities.row(task), &delta);
            value += 0.5 * self.hessian(task, None).square(&delta);
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

    /// The curvature of one task, without the cuts'.
    fn hessian<'b>(&'b self, task: usize, gram: Option<&'b [f64]>) -> Hessian<'b> {
        Hessian {
            factor: &self.curvature[task].factor,
            gram,
            cuts: &[],
            damping: self.damping.map(|damping| damping.row(task)),
        }
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
                let is_wanted = !rows.is_empty() && Hessian::wants_gram(rows, kernels);
                is_wanted.then(|| gram(rows))
            })
            .collect()
    }

    /// The curvature of all tasks; `grams` has F'F of each, or nothing.
    pub(super) fn hessians<'b>(&'b self, grams: &'b [Option<Vec<f64>>]) -> Vec<Hessian<'b>> {
        let gram = |task: usize| grams.get(task).and_then(Option::as_deref);
        let tasks = 0..self.theta.rows();
        tasks.map(|task| self.hessian(task, gram(task))).collect()
    }

    /// Minimises the model to an absolute accuracy, and to a part of the decrease that it promises unless that is below `least`.
    pub(in crate::solver) fn minimise(
        &self,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Minimum {
        match Competitors::of(self, constraints) {
            Some(competitors) => competitors.minimise(self, constraints, accuracy, least),
            None => self.minimise_at_once(constraints, accuracy, least),
        }
    }

    /// The same, over all tasks at once.
    pub(super) fn minimise_at_once(
        &self,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Minimum {
        let grams = self.grams();
        let work = Workspace::new(self, constraints, self.hessians(&grams));
        let mut at = work.start();
        let mut best = work.feasible(&at);
        if at.terms.iter().all(|term| !term.is_variable()) {
            return best;
        }
        for number in 1..=MAX_ITERATIONS {
            let goes_on = work.iterate(&mut at);
            let (left, _) = at.complementarity();
            if goes_on && left > NEAR * accuracy && number % LOOK != 0 {
                continue;
            }
            best = best.or(work.feasible(&at));
            if best.is_solved(accuracy, least) || !goes_on {
                break;
            }
        }
        work.snap(best, &at.terms, accuracy)
    }
}

/// A model with what all iterations of its minimisation have in common.
#[derive(Debug)]
pub(super) struct Workspace<'a> {
    pub(super) model: &'a Model<'a>,
    constraints: &'a [Constraint],
    /// The curvature of each task, without the cuts'.
    pub(super) hessians: Vec<Hessian<'a>>,
    layout: Layout,
}

impl<'a> Workspace<'a> {
    pub(super) fn new(
        model: &'a Model<'a>,
        constraints: &'a [Constraint],
        hessians: Vec<Hessian<'a>>,
    ) -> Self {
        let kernels = model.theta.kernels();
        let terms = model.sharing.reaches().iter().zip(constraints);
        let variable = terms.map(|(reach, own)| is_variable(own, kernels).then_some(reach));
        Self {
            model,
            constraints,
            layout: Layout::new(variable, model.theta.rows()),
            hessians,
        }
    }

    /// Strictly feasible, balanced starting points.
    fn terms(&self) -> Vec<TermState> {
        let start = self.model.sharing.start();
        let terms = self.constraints.iter().zip(start.0);
        terms
            .map(|(constraint, x)| TermState::new(constraint, x))
            .collect()
    }

    pub(super) fn theta(&self, terms: &[TermState]) -> Grid {
        let x = terms.iter().map(|term| term.x.clone());
        self.model.sharing.theta(&Parts(x.collect()))
    }

    /// All complementarity products start out equal, and together as large as the gap; the epigraph variables are where that puts them.
    pub(super) fn start(&self) -> Iterate<'a> {
        let (model, terms) = (self.model, self.terms());
        let theta = self.theta(&terms);
        let epigraphs = |mu: f64| -> Vec<Epigraph<'a>> {
            let cuts = model.cuts.iter().enumerate();
            cuts.map(|(task, cuts)| Epigraph::new(cuts, &model.delta(&theta, task), mu))
                .collect()
        };
        let mut at = Iterate {
            terms,
            epigraphs: Vec::new(),
        };
        let (_, count) = at.complementarity();
        let mut mu = (self.gap(&theta, &[]) / count.max(1.0)).max(LEAST_MU);
        at.epigraphs = epigraphs(mu);
        if model.cuts.iter().any(|cuts| !cuts.is_empty()) {
            let weights: Vec<Vec<f64>> =
                at.epigraphs.iter().map(Epigraph::convex_weights).collect();
            let (_, count) = at.complementarity();
            mu = mu.max(self.gap(&theta, &weights) / count);
            at.epigraphs = epigraphs(mu);
        }
        for term in at.terms.iter_mut().filter(|term| term.is_variable()) {
            term.start_multipliers(mu);
        }
        at
    }

    /// −∇q(θ): the model's sensitivities there, without the cuts'.
    pub(super) fn descent(&self, theta: &Grid) -> Grid {
        let mut descent = self.model.sensitivities.clone();
        for (task, hessian) in self.hessians.iter().enumerate() {
            hessian.subtract_image(&self.model.delta(theta, task), descent.row_mut(task));
        }
        descent
    }

    /// max over θ' in Ψ of ⟨−∇q(θ), θ' − θ⟩ ≥ q(θ) − min q, for q with the cuts in these proportions, and what these proportions lack at θ.
    fn gap(&self, theta: &Grid, weights: &[Vec<f64>]) -> f64 {
        let (descent, lack) = self.pulled(theta, weights);
        lack + self.model.sharing.maximise(&descent).1 - descent.dot(theta)
    }

    /// −∇q(θ) for q with the cuts in these proportions, and what these proportions lack at θ.
    pub(super) fn pulled(&self, theta: &Grid, weights: &[Vec<f64>]) -> (Grid, f64) {
        let model = self.model;
        let mut descent = self.descent(theta);
        let mut lack = 0.0;
        for (task, weights) in weights.iter().enumerate() {
            if weights.is_empty() {
                continue;
            }
            let delta = model.delta(theta, task);
            let mut highest = 0.0_f64;
            for (cut, weight) in model.cuts[task].iter().zip(weights) {
                let value = cut.value(&delta);
                highest = highest.max(value);
                lack -= weight * value;
                crate::linalg::axpy(-weight, &cut.slope, descent.row_mut(task));
            }
            lack += highest;
        }
        (descent, lack)
    }

    /// The iterate moved into Ψ, and its value and gap.
    fn feasible(&self, at: &Iterate<'_>) -> Minimum {
        let weights = at.epigraphs.iter().map(Epigraph::convex_weights).collect();
        let parts = at.terms.iter().map(TermState::feasible).collect();
        self.minimum(Parts(parts), weights)
    }

    /// A feasible point with cuts in these proportions, its value and gap.
    pub(super) fn minimum(&self, parts: Parts, weights: Vec<Vec<f64>>) -> Minimum {
        let theta = self.model.sharing.theta(&parts);
        Minimum {
            value: self.model.value(&theta),
            gap: self.gap(&theta, &weights),
            weights,
            parts,
        }
    }

    /// Weights that are on their way to zero become exact zeros, where the model does not mind.
    fn snap(&self, best: Minimum, terms: &[TermState], accuracy: f64) -> Minimum {
        for threshold in SNAPPED {
            let mut parts = best.parts.clone();
            for (part, term) in parts.0.iter_mut().zip(terms) {
                term.snap(part, threshold);
            }
            let snapped = self.minimum(parts, best.weights.clone());
            let is_as_good = snapped.value <= best.value + SNAP_RISE * accuracy
                && snapped.gap <= SNAP_GAP * best.gap.max(accuracy);
            if is_as_good {
                return snapped;
            }
        }
        best
    }

    /// The Newton matrix at the current point, to be factored, of these pieces.
    pub(super) fn system<'b>(
        &'b self,
        pieces: &'b Pieces,
        hessians: &'b [Hessian<'b>],
    ) -> Option<KktSystem<'b>> {
        let kernels = self.model.theta.kernels();
        let (rows, couplings) = (&pieces.rows, &pieces.couplings);
        KktSystem::new(rows, couplings, &self.layout, hessians, kernels)
    }

    /// The right-hand side of each term, in its own rows, for a descent of θ.
    pub(super) fn right_hand_sides<'b>(
        &'b self,
        terms: &'b [TermState],
        descent: &'b Grid,
        one: impl Fn(usize, &TermState, &Grid) -> Grid + 'b,
    ) -> Vec<Grid> {
        let reaches = self.model.sharing.reaches().iter();
        let terms = terms.iter().zip(reaches).enumerate();
        terms
            .map(|(number, (term, reach))| one(number, term, &reach.gather(descent)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sharing::SharingSpec;
    use crate::solver::bundle::Cut;

    const SHAPE: crate::grid::Shape = crate::grid::Shape {
        tasks: 2,
        kernels: 5,
    };

    fn sharings() -> Vec<SharingSpec> {
        vec![
            SharingSpec::independent(1.0, 1.5),
            SharingSpec::independent(2.0, 1.5),
            SharingSpec::pscs(1.5, 1.0, 1.0),
            SharingSpec::group(2.0, 1.0, 1.0),
            SharingSpec::common(2.0, 1.0),
            SharingSpec::box_simplex(0.4),
            SharingSpec::tang(0.5),
        ]
    }

    fn signed(count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| random.uniform() - 0.5).collect()
    }

    /// A model with this many rows of curvature and this many cuts per task, looked at with its sharing.
    fn with(
        spec: &SharingSpec,
        rows: usize,
        cuts: usize,
        random: &mut Random,
        look: impl Fn(&Model<'_>, &[Constraint]),
    ) {
        let sharing = spec.build(SHAPE).unwrap();
        let (tasks, kernels) = (SHAPE.tasks, SHAPE.kernels);
        let theta = sharing.theta(&sharing.start());
        let s = Grid::from_values(
            tasks,
            kernels,
            (0..tasks * kernels).map(|_| random.uniform()).collect(),
        );
        let curvature: Vec<Curvature> = (0..tasks)
            .map(|_| Curvature {
                rank: rows,
                factor: signed(rows * kernels, random),
                span: None,
            })
            .collect();
        let cuts: Vec<Vec<Cut>> = (0..tasks)
            .map(|_| {
                (0..cuts)
                    .map(|_| Cut::new(signed(kernels, random), -0.01))
                    .collect()
            })
            .collect();
        let model = Model {
            theta: &theta,
            sensitivities: &s,
            curvature: &curvature,
            damping: None,
            cuts: &cuts,
            sharing: &sharing,
        };
        look(&model, &sharing.constraints().unwrap());
    }

    #[test]
    fn the_start_is_as_far_as_its_gap_and_a_dozen_steps_from_the_end() {
        let mut random = Random::new(61);
        for spec in sharings() {
            for (rows, cuts) in [(0, 0), (3, 0), (5, 0), (3, 2), (0, 4)] {
                with(&spec, rows, cuts, &mut random, |model, constraints| {
                    let hessians = (0..SHAPE.tasks).map(|task| model.hessian(task, None));
                    let work = Workspace::new(model, constraints, hessians.collect());
                    let mut at = work.start();
                    let (products, count) = at.complementarity();
                    let theta = work.theta(&at.terms);
                    let weights: Vec<Vec<f64>> =
                        at.epigraphs.iter().map(Epigraph::convex_weights).collect();
                    let gap = work.gap(&theta, &weights);
                    // Without cuts the products are the gap; with cuts the epigraph variables are where that puts them.
                    assert!(products >= 0.9 * gap, "{spec:?}: {products} {gap}");
                    assert!(
                        products <= (if cuts == 0 { 1.0 } else { 9.0 }) * gap * (1.0 + 1e-9),
                        "{spec:?}: {products} {gap} {count}"
                    );
                    let mut steps = 0;
                    while at.complementarity().0 > 1e-7 * products && work.iterate(&mut at) {
                        steps += 1;
                    }
                    assert!(at.complementarity().0 <= 1e-7 * products);
                    // Six to nine are usual. Where groups of all tasks meet next to no curvature, the way along the norm's kink is longer.
                    let is_kinked =
                        ["group", "pscs"].contains(&spec.name()) && rows < 5 && cuts == 0;
                    assert!(
                        is_kinked || steps <= 10,
                        "{spec:?}, {rows} rows, {cuts} cuts: {steps}"
                    );
                    let end = work.feasible(&at);
                    assert!(end.gap <= 1e-4 * gap, "{spec:?}: {}", end.gap);
                });
            }
        }
    }

    #[test]
    fn a_minimum_is_as_good_as_was_asked_for() {
        let mut random = Random::new(62);
        for spec in sharings() {
            for (rows, cuts) in [(0, 0), (3, 0), (5, 2)] {
                with(&spec, rows, cuts, &mut random, |model, constraints| {
                    let best = model.minimise(constraints, 1e-7, 1e-7);
                    assert!(best.gap <= SNAP_GAP * 1e-7, "{spec:?}: {}", best.gap);
                    // Only the accuracy, and only the part of the decrease.
                    for (accuracy, least) in
                        [(1e-3, f64::INFINITY), (1e-2, 1e-5), (f64::INFINITY, 1e-4)]
                    {
                        let found = model.minimise(constraints, accuracy, least);
                        let wanted = accuracy.min(least.max(-SHARE * found.value));
                        assert!(
                            found.gap <= SNAP_GAP * wanted.max(1e-12),
                            "{spec:?}: {} {wanted}",
                            found.gap
                        );
                        assert!(found.value <= best.value + found.gap + 1e-12);
                        assert!(found.value >= best.value - 1e-6);
                    }
                });
            }
        }
    }

    #[test]
    fn the_value_is_of_slopes_curvature_damping_and_the_highest_cut() {
        let shape = crate::grid::Shape {
            tasks: 1,
            kernels: 2,
        };
        let sharing = SharingSpec::lp(1.0, 9.0).build(shape).unwrap();
        let cuts = [vec![
            Cut::new(vec![1.0, 0.0], 0.5),
            Cut::new(vec![0.0, 1.0], -9.0),
        ]];
        let model = Model {
            theta: &Grid::from_values(1, 2, vec![1.0, 1.0]),
            sensitivities: &Grid::from_values(1, 2, vec![3.0, 5.0]),
            curvature: &[Curvature {
                rank: 1,
                factor: vec![1.0, -1.0],
                span: None,
            }],
            damping: Some(&Grid::from_values(1, 2, vec![2.0, 4.0])),
            cuts: &cuts,
            sharing: &sharing,
        };
        // δ = (2, −½): −(6 − 2.5) + ½ (2.5² + 8 + 1) + max(0, 2.5, −9.5).
        let found = model.value(&Grid::from_values(1, 2, vec![3.0, 0.5]));
        assert!((found - (-3.5 + 0.5 * (6.25 + 9.0) + 2.5)).abs() <= 1e-14);
        // Below zero a cut says nothing.
        let found = model.value(&Grid::from_values(1, 2, vec![0.0, 1.0]));
        assert!((found - (3.0 + 0.5 * (1.0 + 2.0))).abs() <= 1e-14);
    }
}
