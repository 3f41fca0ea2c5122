//! min over θ in Ψ of J(θ) without samples: all that an outer solver needs beside an engine. Whoever has the samples elsewhere solves this.

use super::start::coarse_start;
use super::{Fitting, check_pair};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::grid::{Grid, Shape};
use crate::machine::MachineSpec;
use crate::model::{Machines, Model, Outcome, Seconds};
use crate::pool::Pool;
use crate::run::Status;
use crate::sharing::{Parts, Sharing, SharingSpec};
use crate::solver::{Solution, SolverSpec, relative_gap};

/// Ψ for T tasks and M kernels, and who searches it.
#[derive(Debug, Clone)]
pub struct OuterProblem {
    spec: SharingSpec,
    sharing: Sharing,
    solver: SolverSpec,
}

impl OuterProblem {
    /// This sharing for so many tasks of a machine and so many kernels, and this solver.
    ///
    /// # Errors
    /// When a parameter is outside its range, or machine and sharing do not go together.
    pub fn new(
        machine: &MachineSpec,
        spec: SharingSpec,
        solver: SolverSpec,
        shape: Shape,
    ) -> Result<Self> {
        machine.check()?;
        solver.build()?;
        let sharing = spec.build(shape)?;
        check_pair(machine.build().as_ref(), &sharing)?;
        Ok(Self {
            spec,
            sharing,
            solver,
        })
    }

    /// Ψ.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Minimises J over Ψ on an engine, from `start` or, without it, from fewer samples where the engine has a coarser self. The solver's own work
    /// is done by the threads of `pool`.
    ///
    /// # Errors
    /// When the engine is of another shape, or breaks down.
    pub fn solve(
        &self,
        engine: &mut dyn Engine,
        start: Option<&Parts>,
        fitting: &mut Fitting<'_>,
        pool: Option<Pool>,
    ) -> Result<Solution> {
        fitting.check()?;
        check_shape(engine, self.sharing.shape())?;
        let mut run = fitting.run(pool);
        let solver = self.solver.build()?;
        let found = match (&self.solver, start) {
            (SolverSpec::Newton, None) => {
                coarse_start(engine, solver.as_ref(), &self.sharing, &run)?
            }
            (SolverSpec::Newton, Some(start)) => Some(start.clone()),
            // Faithful to the paper.
            (SolverSpec::Epf(_), start) => start.cloned(),
        };
        solver.solve(engine, &self.sharing, found.as_ref(), &mut run)
    }

    /// The model of an answer whose machines were fitted elsewhere.
    ///
    /// # Errors
    /// When these are not as many as the problem has tasks.
    pub fn model(&self, solution: Solution, seconds: Seconds, machines: Machines) -> Result<Model> {
        let outcome = Outcome {
            status: solution.status,
            objective: solution.objective,
            bound: solution.bound,
            gap: solution.gap,
            tolerance: Some(solution.tolerance),
            solver: Some(self.solver.clone()),
            fallback: solution.fallback,
            is_rounded: false,
            trace: solution.trace,
            seconds,
        };
        Model::of_machines(
            machines,
            &self.spec,
            &self.sharing,
            &solution.parts,
            outcome,
        )
    }
}

/// What machines and witnesses prove of J by task, from the rows alone: P_t ≥ J_t(θ), and the parts of ḡ(β̂, ·) without and with θ.
#[derive(Debug, Clone)]
pub struct Proven {
    /// P_t by task.
    pub primal: Vec<f64>,
    /// The part of ḡ(β̂ᵗ, ·) without θ by task, less what rounding can do to it.
    pub constant: Vec<f64>,
    /// s(β̂), T × M, and what rounding can do to it.
    pub sensitivities: Grid,
}

impl Proven {
    /// Σ_t P_t ≥ J(θ), and Σ_t constant − σ_Ψ(s) ≤ J*.
    pub(super) fn bounds(&self, sharing: &Sharing) -> (f64, f64) {
        let support = sharing.maximise(&self.sensitivities).1;
        (
            self.primal.iter().sum(),
            self.constant.iter().sum::<f64>() - support,
        )
    }
}

impl Solution {
    /// The same answer with the certificate of these machines and witnesses: those that are kept may be others than the solver's, found again at the
    /// same θ where the first ones were lost.
    #[must_use]
    pub fn proven_by(self, proven: &Proven, sharing: &Sharing) -> Self {
        let (objective, bound) = proven.bounds(sharing);
        let gap = relative_gap(objective, bound);
        let status = match self.status {
            Status::Converged if gap > self.tolerance => Status::Stalled,
            Status::Stalled | Status::PassLimit if gap <= self.tolerance => Status::Converged,
            status => status,
        };
        Self {
            status,
            objective,
            bound,
            gap,
            ..self
        }
    }
}

/// Whether an engine is for this problem.
pub(super) fn check_shape(engine: &dyn Engine, wanted: Shape) -> Result<()> {
    let described =
        |shape: Shape| format!("for {} tasks and {} kernels", shape.tasks, shape.kernels);
    if engine.shape() == wanted {
        return Ok(());
    }
    Err(Error::param(
        "engine",
        described(engine.shape()),
        format!("one {}", described(wanted)),
    ))
}
