//! min over θ in Ψ of J(θ): the outer solvers. They see grids, the sharing and the engine's trait, never data.
//!
//! Both keep a certificate: for any θ in Ψ and any feasible α, converged or not,
//!
//! D(α) = (part of ḡ without θ) − σ_Ψ(s(α))  ≤  J*  ≤  J(θ) ≤ Σ_t (value + inner gap)
//!
//! so the difference is a rigorous optimality gap for the whole problem.

mod block;
mod cuts;
mod epf;
mod excess;
mod model;
mod newton;
mod system;
mod term;

use std::time::Instant;

use serde::{Deserialize, Serialize};

pub use epf::Epf;
pub use newton::Newton;

use crate::engine::{Engine, Evaluation};
use crate::error::Result;
use crate::grid::Grid;
use crate::run::{Pass, Run, Status, Stop};
use crate::sharing::{Parts, Sharing};

/// The answer of an outer solver: θ with the best certified objective.
#[derive(Debug, Clone)]
pub struct Solution {
    /// θ in summand variables.
    pub parts: Parts,
    /// θ, T × M.
    pub theta: Grid,
    /// How the run ended.
    pub status: Status,
    /// An upper bound on J(θ), and so on J*.
    pub objective: f64,
    /// A lower bound on J*.
    pub bound: f64,
    /// (objective − bound) / |objective|.
    pub gap: f64,
    /// Why another solver than the one that was asked did the work.
    pub fallback: Option<Fallback>,
    /// Every pass, in order.
    pub trace: Vec<Pass>,
}

/// An outer solver.
pub trait Solver: std::fmt::Debug + Send + Sync {
    /// Minimises J over Ψ, from `start` or, without it, from the balanced point of the sharing.
    ///
    /// # Errors
    /// When an inner problem breaks down numerically.
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Solution>;
}

/// An outer solver by name, with its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SolverSpec {
    /// [`Newton`]: second-order steps, the default.
    #[default]
    Newton,
    /// [`Epf`]: the paper's Algorithm 1, with these parameters.
    Epf(Epf),
}

impl SolverSpec {
    /// The solver itself.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn build(&self) -> Result<Box<dyn Solver>> {
        Ok(match self {
            Self::Newton => Box::new(Newton),
            Self::Epf(epf) => {
                epf.check()?;
                Box::new(epf.clone())
            }
        })
    }
}

/// Why [`Newton`] handed a problem over to [`Epf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fallback {
    /// A term of the sharing has no description for the second-order model.
    Sharing,
    /// A kernel is indefinite, so that ḡ is not concave.
    Indefinite,
}

/// The best upper and lower bounds seen, the passes made, and the reasons to stop.
#[derive(Debug)]
struct Certificate {
    objective: f64,
    bound: f64,
    noise: f64,
    best: Parts,
    trace: Vec<Pass>,
    started: Instant,
    stop: Stop,
    tolerance: f64,
    max_passes: usize,
}

impl Certificate {
    fn new(start: Parts, run: &Run<'_>) -> Self {
        Self {
            objective: f64::INFINITY,
            bound: f64::NEG_INFINITY,
            noise: 0.0,
            best: start,
            trace: Vec::new(),
            started: Instant::now(),
            stop: run.deadline(),
            tolerance: run.tolerance,
            max_passes: run.max_passes,
        }
    }

    /// Takes in one evaluation at θ and tells the observer.
    fn record(
        &mut self,
        parts: &Parts,
        theta: &Grid,
        evaluation: &Evaluation,
        sharing: &Sharing,
        step: f64,
        run: &mut Run<'_>,
    ) {
        let bound = evaluation.constant(theta) - sharing.maximise(&evaluation.sensitivities).1;
        self.bound = self.bound.max(bound);
        let objective = evaluation.upper();
        if objective < self.objective {
            self.objective = objective;
            self.noise = evaluation.noise;
            self.best = parts.clone();
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
    }

    /// Takes in another lower bound on J*, known since the last pass.
    fn raise_bound(&mut self, bound: f64) {
        if bound <= self.bound {
            return;
        }
        self.bound = bound;
        let gap = self.gap();
        if let Some(pass) = self.trace.last_mut() {
            (pass.bound, pass.gap) = (bound, gap);
        }
    }

    /// (objective − bound) / |objective|, never negative.
    fn gap(&self) -> f64 {
        let difference = self.objective - self.bound;
        // What rounding can do is no gap: an optimum of zero would never be reached otherwise.
        if difference <= self.noise {
            0.0
        } else {
            difference / self.objective.abs().max(1e-300)
        }
    }

    /// Why to stop now, if there is a reason.
    fn finished(&self) -> Option<Status> {
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

    fn solution(self, sharing: &Sharing, status: Status) -> Solution {
        let gap = self.gap();
        let theta = sharing.theta(&self.best);
        Solution {
            parts: self.best,
            theta,
            status,
            objective: self.objective,
            bound: self.bound,
            gap,
            fallback: None,
            trace: self.trace,
        }
    }
}

/// How tightly to solve the inner problems, relative to J, when the outer gap is this: a small part of it, never much below what
/// the tolerance asks for.
fn inner_accuracy(gap: f64, tolerance: f64) -> f64 {
    (0.1 * gap).clamp((0.2 * tolerance).min(1e-3), 1e-3)
}
