//! One task from pass to pass: its dual variables, and what one evaluation does to them.

use super::box_qp::{self, BoxQp};
use super::exact;
use super::indefiniteness;
use super::linear_system::Preconditioner;
use super::ridge::Ridge;
use super::smooth::Smooth;
use super::{Effort, Fitted, Here, Inner, Point, Progress, Solved, TaskEvaluation};
use crate::error::Result;
use crate::gram::{ByChange, Image, TaskGrams};
use crate::grid::dot;
use crate::ledger::Ledger;
use crate::machine::{Conjugate, Dual, Variables};
use crate::vector::rounding;

/// The dual variables of one task, and what is known about them.
#[derive(Debug)]
pub(crate) struct State {
    variables: Variables,
    point: Point,
    memory: box_qp::Memory,
    /// The factor of a linear system, of an earlier θ.
    near: Option<Preconditioner>,
    /// β by variable that U was last made for, where it is kept on all samples.
    settled: Vec<f64>,
}

/// The solver for this dual.
fn solver<'a>(
    dual: &'a Dual,
    memory: &'a mut box_qp::Memory,
    kept: &'a mut Option<Preconditioner>,
) -> Box<dyn Inner + 'a> {
    match &dual.conjugate {
        Conjugate::Box { lower, upper, sum } => Box::new(BoxQp {
            dual,
            lower,
            upper,
            sum: *sum,
            memory,
        }),
        Conjugate::Ridge { ridge } => Box::new(Ridge {
            dual,
            rho: ridge,
            kept,
        }),
        Conjugate::Smooth { function, sum } => Box::new(Smooth {
            dual,
            function: function.as_ref(),
            sum: *sum,
            kept,
        }),
    }
}

impl State {
    /// A feasible point that touches as few samples as possible, with an optional order in which to fill them.
    pub(crate) fn new(dual: &Dual, order: Option<&[usize]>, ledger: &Ledger) -> Self {
        let beta = match (&dual.conjugate, order) {
            (Conjugate::Box { lower, upper, sum }, None) => {
                box_qp::vertex(dual, lower, upper, *sum)
            }
            (Conjugate::Box { lower, upper, sum }, Some(order)) => {
                box_qp::vertex_in_order(lower, upper, *sum, order)
            }
            _ => vec![0.0; dual.variables.count()],
        };
        Self {
            variables: dual.variables,
            point: Point::new(beta, dual.variables.samples(), ledger),
            memory: box_qp::Memory::default(),
            near: None,
            settled: Vec::new(),
        }
    }

    /// Starts from this β, brought into Ω where it is not.
    pub(crate) fn start_at(&mut self, dual: &Dual, beta: &[f64]) {
        self.point.beta.copy_from_slice(beta);
        solver(dual, &mut self.memory, &mut self.near).start(&mut self.point.beta);
        self.point.forget_product();
        self.memory.forget();
    }

    /// β of a problem on all of the samples, those that are not among `places` at zero.
    pub(crate) fn spread(&self, places: &[usize], all: Variables) -> Vec<f64> {
        let mut beta = vec![0.0; all.count()];
        for (from, to) in self.variables.ranges().zip(all.ranges()) {
            for (value, &place) in self.point.beta[from].iter().zip(places) {
                beta[to.start + place] = *value;
            }
        }
        beta
    }

    /// U as far as a problem on fewer of the samples knew it, where β is that of it.
    pub(crate) fn adopt_images(&mut self, small: &Self, places: &[usize]) {
        let images = &small.point.images;
        if !images.are_on_support_of(&small.per_sample()) {
            return;
        }
        let all = self.variables;
        let beta = all.sums(&small.spread(places, all));
        if beta == self.per_sample() {
            self.point.images = images.spread(places, beta);
        }
    }

    /// β per sample: variables of the same sample added up.
    fn per_sample(&self) -> Vec<f64> {
        self.variables.sums(&self.point.beta)
    }

    /// What to ask of the Gram matrices to bring U up to date.
    pub(crate) fn outdated(&mut self, grams: TaskGrams<'_>) -> Option<Image<'_>> {
        let beta = self.per_sample();
        let free = self.memory.free_samples();
        self.point.images.outdated(beta, &free, grams)
    }

    /// The samples whose rows of K(θ) Kβ is made of, where it is not known.
    pub(crate) fn rows_to_begin_with(&self, theta: &[f64]) -> Vec<usize> {
        let beta = self.per_sample();
        if self.point.has_product_of(theta) || self.point.images.are_those_of(&beta) {
            return Vec::new();
        }
        (0..beta.len()).filter(|&i| beta[i] != 0.0).collect()
    }

    /// Improves β for θ until its gap is at most `accuracy`, and says what J looks like there.
    pub(crate) fn evaluate(
        &mut self,
        dual: &Dual,
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Result<TaskEvaluation> {
        let solved = self.solve(dual, here, effort)?;
        let images = self.outdated(here.grams).into_iter().collect();
        here.grams.images(images);
        Ok(self.report(dual, here.grams, here.theta, solved, effort))
    }

    /// Improves β for θ until its gap is at most `accuracy`.
    pub(crate) fn solve(
        &mut self,
        dual: &Dual,
        here: Here<'_>,
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        let mut solver = solver(dual, &mut self.memory, &mut self.near);
        let solved = solver.solve(&mut self.point, here, effort);
        drop(solver);
        if !effort.allowance.factors {
            self.near = None;
        }
        solved
    }

    /// U on all samples, where it does not follow β yet: what to ask of the Gram matrices. [`State::settle`] comes after it.
    pub(crate) fn follow(&mut self, grams: TaskGrams<'_>) -> Option<ByChange<'_>> {
        let beta = self.per_sample();
        self.point.images.follow(beta, grams.grams.kernels())
    }

    /// U follows β; or β goes back to where U is known, where it was not made.
    pub(crate) fn settle(&mut self, is_made: bool) {
        self.point.images.settle(is_made);
        if is_made {
            self.settled.clone_from(&self.point.beta);
        } else if !self.settled.is_empty() {
            self.point.beta.clone_from(&self.settled);
            self.memory.forget();
        }
    }

    /// What β is worth where U is not known on all samples yet, and there is no time to make it; nothing where it is known.
    pub(crate) fn unswept(
        &mut self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Option<Result<Solved>> {
        if self.point.images.are_everywhere() {
            return None;
        }
        let beta = self.per_sample();
        if !self.point.images.are_on_support_of(&beta) {
            let images = self.outdated(grams).into_iter().collect();
            grams.images(images);
        }
        let mut solver = solver(dual, &mut self.memory, &mut self.near);
        Some(solver.unswept(&mut self.point, grams, theta, effort))
    }

    /// Gives back memory that others may need meanwhile.
    pub(crate) fn give_back(&mut self) {
        self.memory.give_back();
    }

    /// One more round where kernel values are streamed, U being that of β; what was found where there is no need of another.
    pub(crate) fn round(
        &mut self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Solved>> {
        let mut solver = solver(dual, &mut self.memory, &mut self.near);
        solver.round(&mut self.point, grams, theta, effort, progress)
    }

    /// What J looks like, once β is solved for and U is up to date.
    pub(crate) fn report(
        &mut self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        theta: &[f64],
        mut solved: Solved,
        effort: &Effort<'_>,
    ) -> TaskEvaluation {
        let mut sensitivities = self.point.images.sensitivities(dual, grams);
        let plain_noise = solved.noise;
        let answer = solved.answer.take().unwrap_or_else(|| {
            self.point.renew_product(dual.variables, theta);
            if solved.is_delicate {
                sensitivities = self.sum_exactly(dual, grams, theta, &mut solved);
            }
            solver(dual, &mut self.memory, &mut self.near).answer(
                &mut self.point,
                grams,
                &solved,
                effort,
            )
        });
        let beta = &self.point.beta;
        // A kernel that rounding left a little indefinite is forgiven, and the gap is what holds for it.
        let weights = theta.iter().enumerate();
        let epsilon: f64 = weights
            .map(|(m, weight)| weight * grams.grams.indefiniteness(m))
            .sum();
        let gap = if epsilon > 0.0 && effort.concave {
            let (product, offset) = (self.point.product_values(), self.point.offset);
            let wider = indefiniteness::gap(dual, &solved.linear, beta, product, offset, epsilon);
            solved.noise += indefiniteness::shift(dual, beta, epsilon);
            answer.gap.max(wider + answer.noise)
        } else {
            answer.gap
        };
        TaskEvaluation {
            // Exactly what the sensitivities belong to.
            value: solved.constant - dot(&sensitivities, theta),
            gap,
            sensitivities,
            curvature: answer.curvature,
            steps: solved.steps,
            noise: solved.noise,
            // An optimum of zero would never be reached otherwise. Where β = 0 is allowed, J is zero at that point or it is not zero, and smooth losses
            // are above zero everywhere.
            forgiven: match &dual.conjugate {
                Conjugate::Smooth { .. } => 0.0,
                Conjugate::Box { sum, .. } if *sum != 0.0 => 2.0 * plain_noise + answer.noise,
                _ if beta.iter().all(|&value| value == 0.0) => answer.noise,
                _ => 0.0,
            },
        }
    }

    /// Kβ and the sensitivities with twice the digits.
    fn sum_exactly(
        &mut self,
        dual: &Dual,
        grams: TaskGrams<'_>,
        theta: &[f64],
        solved: &mut Solved,
    ) -> Vec<f64> {
        let ledger = self.point.ledger.clone();
        let exact = exact::evaluate(dual, grams, theta, &self.per_sample(), &ledger);
        let beta = &self.point.beta;
        let sizes = dual.linear.iter().zip(beta);
        let linear: f64 = sizes.map(|(q, b)| (q * b).abs()).sum();
        solved.noise = exact.noise + rounding(beta.len()) * dual.scale * linear;
        solved.errors = exact.errors;
        self.point.set_product(exact.product, theta);
        exact.sensitivities
    }

    /// The machine as it stands.
    pub(crate) fn fitted(&self) -> Fitted {
        Fitted {
            beta: self.per_sample(),
            offset: self.point.offset,
        }
    }
}
