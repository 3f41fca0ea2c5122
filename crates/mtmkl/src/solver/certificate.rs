//! What is proven so far: the best upper and lower bounds on J*, the machines and mixtures of α that they are of, and the reasons to stop.

use std::time::Instant;

use super::Solution;
use crate::engine::{Evaluation, Mixture};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::run::{Pass, Run, Status, Stop};
use crate::sharing::{Parts, Sharing};

/// D(α̂) ≤ J* ≤ J(θ) ≤ Σ_t (value + inner gap), both ends widened by what rounding can do to them.
#[derive(Debug)]
pub(super) struct Certificate {
    pub(super) objective: f64,
    bound: f64,
    /// An objective this small is none.
    forgiven: f64,
    best: Parts,
    /// For each task the evaluation whose machine the objective is of.
    machines: Vec<usize>,
    /// For each task what proves the bound.
    witness: Vec<Mixture>,
    trace: Vec<Pass>,
    started: Instant,
    pub(super) stop: Stop,
    tolerance: f64,
    max_passes: usize,
}

/// θ with what is known there: for each task the evaluation that it comes from.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    pub(super) parts: &'a Parts,
    pub(super) theta: &'a Grid,
    pub(super) evaluation: &'a Evaluation,
    pub(super) machines: Vec<usize>,
}

impl<'a> Candidate<'a> {
    /// All tasks as in one evaluation.
    pub(super) fn new(parts: &'a Parts, theta: &'a Grid, evaluation: &'a Evaluation) -> Self {
        Self {
            parts,
            theta,
            evaluation,
            machines: vec![evaluation.number; evaluation.values.len()],
        }
    }
}

impl Certificate {
    pub(super) fn new(start: Parts, run: &Run<'_>) -> Self {
        Self {
            objective: f64::INFINITY,
            bound: f64::NEG_INFINITY,
            forgiven: 0.0,
            best: start,
            machines: Vec::new(),
            witness: Vec::new(),
            trace: Vec::new(),
            started: Instant::now(),
            stop: run.stop.clone(),
            tolerance: run.tolerance,
            max_passes: run.max_passes,
        }
    }

    /// Takes in what is known at θ and tells the observer of a pass.
    ///
    /// # Errors
    /// When a task's value is not finite: that proves nothing.
    pub(super) fn record(
        &mut self,
        at: Candidate<'_>,
        sharing: &Sharing,
        step: f64,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let Candidate {
            parts,
            theta,
            evaluation,
            machines,
        } = at;
        let (_, support) = sharing.maximise(&evaluation.sensitivities);
        let noise = evaluation.noise();
        let bound = evaluation.constant(theta) - support - noise;
        let objective = evaluation.upper() + noise;
        if !(objective.is_finite() && bound.is_finite()) {
            return Err(not_finite(evaluation));
        }
        self.improve_bound(bound, || {
            machines.iter().map(|&number| vec![(number, 1.0)]).collect()
        });
        if objective < self.objective {
            self.objective = objective;
            self.forgiven = evaluation.forgiven.iter().sum();
            self.best = parts.clone();
            self.machines = machines;
        }
        let pass = Pass {
            number: self.trace.len() + 1,
            objective: self.objective,
            bound: self.bound,
            gap: self.gap(),
            step,
            inner_iterations: evaluation.inner_iterations,
            seconds: self.started.elapsed().as_secs_f64(),
        };
        run.report(&pass);
        self.trace.push(pass);
        Ok(())
    }

    /// Whether an evaluation at θ is all that is missing, or nothing more is asked for.
    pub(super) fn ends_with(
        &self,
        evaluation: &Evaluation,
        theta: &Grid,
        sharing: &Sharing,
    ) -> bool {
        let (_, support) = sharing.maximise(&evaluation.sensitivities);
        let noise = evaluation.noise();
        let bound = (evaluation.constant(theta) - support - noise).max(self.bound);
        let objective = (evaluation.upper() + noise).min(self.objective);
        relative_gap(objective, bound) <= self.tolerance || self.stop.now()
    }

    /// Takes in another lower bound on J*, and what proves it.
    pub(super) fn improve_bound(&mut self, bound: f64, witness: impl FnOnce() -> Vec<Mixture>) {
        if bound > self.bound {
            self.bound = bound;
            self.witness = witness();
        }
    }

    /// The same, known since the last pass.
    pub(super) fn raise_bound(&mut self, bound: f64, witness: impl FnOnce() -> Vec<Mixture>) {
        self.improve_bound(bound, witness);
        let (bound, gap) = (self.bound, self.gap());
        if let Some(pass) = self.trace.last_mut() {
            (pass.bound, pass.gap) = (bound, gap);
        }
    }

    /// The relative gap, but for what is forgiven.
    pub(super) fn gap(&self) -> f64 {
        let difference = (self.objective - self.bound).abs();
        // An optimum of zero would never be reached otherwise: all that is seen of it is rounding.
        if difference <= 2.0 * self.forgiven && self.objective.abs() <= self.forgiven {
            0.0
        } else {
            relative_gap(self.objective, self.bound)
        }
    }

    /// Why to stop now, if there is a reason.
    pub(super) fn finished(&self) -> Option<Status> {
        if self.gap() <= self.tolerance {
            Some(Status::Converged)
        } else if self.stop.is_requested() {
            Some(Status::Stopped)
        } else if self.stop.is_late() {
            Some(Status::TimeLimit)
        } else if self.trace.len() >= self.max_passes {
            Some(Status::PassLimit)
        } else {
            None
        }
    }

    /// The evaluations whose machines are part of the answer as it stands.
    pub(super) fn evaluations(&self) -> impl Iterator<Item = usize> + '_ {
        let witness = self.witness.iter().flatten().map(|(number, _)| *number);
        self.machines.iter().copied().chain(witness)
    }

    pub(super) fn solution(self, sharing: &Sharing, status: Status) -> Solution {
        let gap = self.gap();
        let theta = sharing.theta(&self.best);
        Solution {
            parts: self.best,
            theta,
            status,
            objective: self.objective,
            bound: self.bound,
            gap,
            tolerance: self.tolerance,
            machines: self.machines,
            witness: self.witness,
            fallback: None,
            trace: self.trace,
        }
    }
}

/// An objective of zero has a gap all the same: without end, or none where the bound is zero too.
const TINY: f64 = 1e-300;

/// (objective − bound) / |objective|, never negative.
pub(crate) fn relative_gap(objective: f64, bound: f64) -> f64 {
    (objective - bound).abs() / objective.abs().max(TINY)
}

/// Names the first task whose numbers are not finite.
fn not_finite(evaluation: &Evaluation) -> Error {
    let is_finite = |task: &usize| {
        let numbers = [evaluation.values[*task], evaluation.gaps[*task]];
        let sensitivities = evaluation.sensitivities.row(*task).iter();
        numbers.iter().chain(sensitivities).all(|v| v.is_finite())
    };
    let task = (0..evaluation.values.len()).find(|task| !is_finite(task));
    Error::Numeric {
        place: task.map_or_else(
            || "the objective".to_string(),
            |task| format!("task number {}", task + 1),
        ),
        problem: "its value is too large for double precision (it is infinite or not a number); scale the columns and the target, \
                  normalise the kernels, or lower C"
            .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Shape;
    use crate::sharing::SharingSpec;

    /// Σθ ≤ 2 of one task with two kernels.
    fn sharing() -> Sharing {
        let shape = Shape {
            tasks: 1,
            kernels: 2,
        };
        SharingSpec::lp(1.0, 2.0).build(shape).unwrap()
    }

    /// ḡ = value with a gap of ½ and a noise of ¼ at θ = (½, ½), s = (1, 2): J ≤ value + ¾, J* ≥ value + 1.5 − 4 − ¼.
    fn evaluation(number: usize, value: f64) -> Evaluation {
        let mut evaluation = Evaluation::zeros(number, 1, 2);
        evaluation.values = vec![value];
        evaluation.gaps = vec![0.5];
        evaluation.noises = vec![0.25];
        evaluation.sensitivities = Grid::from_values(1, 2, vec![1.0, 2.0]);
        evaluation
    }

    fn theta() -> Grid {
        Grid::filled(1, 2, 0.5)
    }

    fn record(certificate: &mut Certificate, evaluation: &Evaluation, run: &mut Run<'_>) {
        let (sharing, theta) = (sharing(), theta());
        let parts = sharing.start();
        let at = Candidate::new(&parts, &theta, evaluation);
        certificate.record(at, &sharing, 1.0, run).unwrap();
    }

    fn new(run: &Run<'_>) -> Certificate {
        Certificate::new(sharing().start(), run)
    }

    #[test]
    fn the_best_of_both_sides_is_kept_with_what_proves_it() {
        let mut run = Run {
            tolerance: 0.1,
            max_passes: 3,
            ..Run::default()
        };
        let mut certificate = new(&run);
        record(&mut certificate, &evaluation(5, 10.0), &mut run);
        assert_eq!((certificate.objective, certificate.bound), (10.75, 7.25));
        assert_eq!(certificate.gap(), 3.5 / 10.75);
        assert_eq!(certificate.evaluations().collect::<Vec<_>>(), [5, 5]);
        assert_eq!(certificate.finished(), None);
        // A higher one proves the bound, the objective is still that of the lower one.
        record(&mut certificate, &evaluation(6, 11.0), &mut run);
        assert_eq!((certificate.objective, certificate.bound), (10.75, 8.25));
        assert_eq!(certificate.evaluations().collect::<Vec<_>>(), [5, 6]);
        let numbers: Vec<usize> = certificate.trace.iter().map(|pass| pass.number).collect();
        assert_eq!(
            (numbers, certificate.trace[1].gap),
            (vec![1, 2], 2.5 / 10.75)
        );
        // A bound that is no better proves nothing; a better one is that of the last pass, too.
        certificate.improve_bound(8.25, || unreachable!());
        certificate.raise_bound(9.0, || vec![vec![(7, 1.0)]]);
        assert_eq!((certificate.bound, certificate.trace[1].bound), (9.0, 9.0));
        assert_eq!(certificate.trace[1].gap, 1.75 / 10.75);
        assert_eq!(certificate.trace[0].bound, 7.25);
        assert_eq!(certificate.finished(), None);
        certificate.raise_bound(9.75, || vec![vec![(8, 0.5), (9, 0.5)]]);
        assert_eq!(certificate.finished(), Some(Status::Converged));
        assert_eq!(certificate.evaluations().collect::<Vec<_>>(), [5, 8, 9]);
        let solution = certificate.solution(&sharing(), Status::Converged);
        assert_eq!((solution.gap, solution.trace.len()), (1.0 / 10.75, 2));
    }

    #[test]
    fn passes_come_to_an_end() {
        let mut run = Run {
            max_passes: 2,
            ..Run::default()
        };
        let mut certificate = new(&run);
        record(&mut certificate, &evaluation(1, 10.0), &mut run);
        assert_eq!(certificate.finished(), None);
        record(&mut certificate, &evaluation(2, 10.0), &mut run);
        assert_eq!(certificate.finished(), Some(Status::PassLimit));
    }

    #[test]
    fn an_evaluation_ends_a_search_where_it_closes_the_gap_from_either_side() {
        let mut run = Run {
            tolerance: 0.1,
            ..Run::default()
        };
        let mut certificate = new(&run);
        let ends = |certificate: &Certificate, value: f64| {
            certificate.ends_with(&evaluation(9, value), &theta(), &sharing())
        };
        // By itself: 3.5 of value + ¾.
        assert!(!ends(&certificate, 34.0) && ends(&certificate, 34.5));
        record(&mut certificate, &evaluation(5, 10.0), &mut run);
        certificate.raise_bound(9.0, Vec::new);
        // From above: 10 and 9; from below: 10.75 and 9.75.
        assert!(ends(&certificate, 9.2) && !ends(&certificate, 9.4));
        assert!(ends(&certificate, 12.5) && !ends(&certificate, 12.3));
    }

    #[test]
    fn an_optimum_of_zero_is_reached_when_all_that_is_left_is_forgiven() {
        let mut run = Run::default();
        let mut small = evaluation(1, -0.25);
        small.forgiven = vec![1.0];
        small.sensitivities = Grid::zeros(1, 2);
        let gap = |small: &Evaluation, run: &mut Run<'_>| {
            let mut certificate = new(run);
            record(&mut certificate, small, run);
            certificate.gap()
        };
        // ½ and −½.
        assert_eq!(gap(&small, &mut run), 0.0);
        small.forgiven = vec![0.5];
        assert_eq!(gap(&small, &mut run), 0.0);
        small.forgiven = vec![0.49];
        assert_eq!(gap(&small, &mut run), 2.0);
        // As far apart, but at a height that is something.
        small.values = vec![1.0];
        small.forgiven = vec![1.0];
        assert!(gap(&small, &mut run) > 0.5);
    }
}
