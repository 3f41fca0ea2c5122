//! min over θ in Ψ of J(θ) on any engine, and the model of its answer.

use std::time::Instant;

use super::outer::check_shape;
use super::start::{coarse_start, known_beta, known_start};
use super::{Fitting, Problem};
use crate::engine::{Engine, Fitted};
use crate::error::{Error, Result};
use crate::model::{Model, Outcome, Seconds};
use crate::pool::Pool;
use crate::solver::{Solution, SolverSpec};

/// The answer of an outer solver with the machines and mixtures that it is of.
pub(super) struct Solved {
    pub(super) solution: Solution,
    /// β and b by task, which `objective` is of.
    pub(super) fitted: Vec<Fitted>,
    /// β̂ by task, which proves `bound`.
    pub(super) witness: Vec<Vec<f64>>,
    seconds: f64,
    /// Whether the certificate is that of kernels as rounded.
    pub(super) is_rounded: bool,
}

impl Problem {
    /// min over θ in Ψ of J(θ), with the machines at the answer, by an engine of the caller's: it must have this problem's tasks, samples,
    /// kernels and machine.
    ///
    /// # Errors
    /// When the engine is of another shape, or breaks down.
    pub fn fit_on(&self, engine: &mut dyn Engine, fitting: &mut Fitting<'_>) -> Result<Model> {
        let solved = self.solve(engine, fitting, None)?;
        Ok(solved.into_model(self, fitting.tolerance, 0.0))
    }

    /// The same, before it is put together. The solver's own work is done by the threads of `pool`.
    pub(super) fn solve(
        &self,
        engine: &mut dyn Engine,
        fitting: &mut Fitting<'_>,
        pool: Option<Pool>,
    ) -> Result<Solved> {
        fitting.check()?;
        check_shape(engine, self.shape())?;
        if let Some(last) = fitting.start {
            self.check_start(last)?;
        }
        let started = Instant::now();
        let last = fitting.start;
        let mut run = fitting.run(pool);
        let solver = self.spec.solver.build()?;
        let sharing = &self.choice.sharing;
        let start = match (&self.spec.solver, last) {
            (SolverSpec::Newton, None) => coarse_start(engine, solver.as_ref(), sharing, &run)?,
            (SolverSpec::Newton, Some(last)) => {
                engine.start_from(&known_beta(self, last))?;
                known_start(last, sharing)
            }
            // Faithful to the paper.
            (SolverSpec::Epf(_), _) => None,
        };
        let solution = solver.solve(engine, sharing, start.as_ref(), &mut run)?;
        // The machines that objective and bound are of, whatever the engine last looked at.
        let fitted = engine.machines(&solution.machines)?;
        let witness = engine.mixtures(&solution.witness)?;
        self.check_machines(&fitted, &witness)?;
        Ok(Solved {
            solution,
            fitted,
            witness,
            seconds: started.elapsed().as_secs_f64(),
            is_rounded: false,
        })
    }

    /// Whether a fit may start from this model.
    fn check_start(&self, last: &Model) -> Result<()> {
        let (known, wanted) = (last.machine.build(), self.spec.machine.build());
        if known.name() != wanted.name() {
            return Err(Error::param(
                "start",
                format!("a model of the machine `{}`", known.name()),
                format!("one of the machine `{}`, or none", wanted.name()),
            ));
        }
        let tasks = self.tasks.iter().zip(last.tasks());
        let same = last.shape() == self.shape()
            && tasks.clone().all(|(task, known)| {
                // Which of its rows a task learns from may differ: a fold starts from the model of all.
                last.sets[known.set].samples == self.sets[task.samples].count()
            });
        if !same {
            return Err(Error::param(
                "start",
                "a model of other data",
                "a model of the same tasks, samples and kernels",
            ));
        }
        Ok(())
    }

    /// Whether an engine's machines are those of this problem's tasks.
    pub(super) fn check_machines(&self, fitted: &[Fitted], witness: &[Vec<f64>]) -> Result<()> {
        let counts = || {
            let count = |samples: usize| self.sets[samples].count();
            self.tasks
                .iter()
                .map(move |task| task.count(count(task.samples)))
        };
        let machines = fitted.iter().map(|machine| machine.beta.len());
        if machines.eq(counts()) && witness.iter().map(Vec::len).eq(counts()) {
            return Ok(());
        }
        Err(Error::Engine(
            "its machines have not one β for each sample of their tasks".to_string(),
        ))
    }
}

impl Solved {
    pub(super) fn into_model(self, problem: &Problem, tolerance: f64, kernels: f64) -> Model {
        let Self {
            solution,
            fitted,
            witness,
            seconds: solve,
            is_rounded,
        } = self;
        let outcome = Outcome {
            status: solution.status,
            objective: solution.objective,
            bound: solution.bound,
            gap: solution.gap,
            tolerance: Some(tolerance),
            solver: Some(problem.spec.solver.clone()),
            fallback: solution.fallback,
            is_rounded,
            trace: solution.trace,
            seconds: Seconds { kernels, solve },
        };
        let sharing = &problem.choice.sharing;
        Model::assemble(
            &problem.spec,
            &problem.sets,
            &problem.tasks,
            &problem.units,
            sharing,
            &solution.parts,
            &fitted,
            &witness,
            outcome,
        )
    }
}
