//! A problem with its Gram matrices, and its solution.

use std::sync::Arc;
use std::time::Instant;

use super::certify::Certified;
use super::start::{coarse_start, known_start};
use super::{Choice, Precision, Problem, ProblemSpec};
use crate::engine::{Engine, Fitted, LocalEngine, TaskData};
use crate::error::{Error, Result};
use crate::gram::{Grams, Storage};
use crate::machine::{Machine, MachineSpec};
use crate::model::{Model, Outcome, Seconds};
use crate::run::{Run, Status};
use crate::sharing::SharingSpec;
use crate::solver::{Solution, SolverSpec, relative_gap};
use crate::view::View;

/// A problem with its Gram matrices: fit it as often as you like.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub(super) problem: &'a Problem,
    /// What the tasks learn from.
    pub(super) grams: Arc<[Grams]>,
    /// The Gram matrices of all samples and kernels that they were taken from, and which of those kernels are this problem's.
    pub(super) whole: Arc<[Grams]>,
    pub(super) kernels: Vec<usize>,
    /// The sample sets whose tasks' rows were copied together: there the tasks see all of `grams`.
    pub(super) gathered: Vec<bool>,
    pub(super) concave: bool,
    pub(super) storage: Storage,
    /// What it was prepared under: fits of parts of it hold it too.
    pub(super) memory_limit: u64,
    pub(super) pool: Arc<rayon::ThreadPool>,
    pub(super) seconds: f64,
}

impl Prepared<'_> {
    /// Whether the Gram matrices are kept or made on demand.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Seconds that the Gram matrices took.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The Gram matrices of all samples of a set, and where in them this problem's kernels are.
    pub(crate) fn whole(&self, set: usize) -> (&Grams, &[usize]) {
        (&self.whole[set], &self.kernels)
    }

    /// How many samples each set has.
    pub(crate) fn samples(&self) -> impl Iterator<Item = usize> {
        self.whole.iter().map(|grams| grams.samples())
    }

    /// Bytes that the run it was prepared in allows for Gram matrices.
    pub(crate) fn memory_limit(&self) -> u64 {
        self.memory_limit
    }

    /// Runs `work` on a thread of this problem's pool: the fits in it need not change threads.
    pub(crate) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    /// The engine on these Gram matrices, for outer solvers of the caller's own.
    pub fn engine(&self) -> impl Engine {
        self.local_engine(self.problem.choice.machine.as_ref())
    }

    fn local_engine(&self, machine: &dyn Machine) -> LocalEngine {
        let problem = self.problem;
        let mut views: Vec<View> = Vec::new();
        let tasks = problem
            .tasks
            .iter()
            .map(|task| {
                // Equal views become one, so that comparing them later is a pointer's work.
                let view = if self.gathered[task.samples] {
                    View::All
                } else if let Some(known) = views.iter().find(|known| **known == task.rows) {
                    known.clone()
                } else {
                    views.push(task.rows.clone());
                    task.rows.clone()
                };
                let count = task.count(problem.sets[task.samples].count());
                TaskData {
                    samples: task.samples,
                    view,
                    dual: machine.dual(task, count),
                }
            })
            .collect();
        LocalEngine::new(
            Arc::clone(&self.grams),
            tasks,
            self.concave,
            problem.spec.shrinking,
            Arc::clone(&self.pool),
        )
    }

    /// min over θ in Ψ of J(θ), with the machines at the answer.
    ///
    /// # Errors
    /// When an inner problem breaks down numerically.
    pub fn fit(&self, run: &mut Run<'_>) -> Result<Model> {
        self.fit_choice(&self.problem.choice, &self.problem.spec, None, run)
    }

    /// The same samples, tasks and kernels with another machine and sharing: the Gram matrices are used again.
    ///
    /// # Errors
    /// When they do not go with the tasks, or as [`Prepared::fit`].
    pub fn fit_with(
        &self,
        machine: &MachineSpec,
        sharing: &SharingSpec,
        run: &mut Run<'_>,
    ) -> Result<Model> {
        self.fit_other(machine, sharing, None, run)
    }

    /// As [`Prepared::fit_with`], started from a model of the same tasks: its β, grown with C, and its θ, as far as the sharing
    /// allows it. That changes the way, not the answer: certified to the same tolerance.
    ///
    /// # Errors
    /// When the model is of another machine, or of other tasks, samples or kernels, or as [`Prepared::fit_with`].
    pub fn fit_from(
        &self,
        last: &Model,
        machine: &MachineSpec,
        sharing: &SharingSpec,
        run: &mut Run<'_>,
    ) -> Result<Model> {
        let problem = self.problem;
        let (known, wanted) = (last.machine.build().name(), machine.build().name());
        if known != wanted {
            return Err(Error::param(
                "last",
                format!("a model of the machine `{known}`"),
                format!("one of the machine `{wanted}`; without one, use `fit_with`"),
            ));
        }
        let tasks = problem.tasks.iter().zip(last.tasks());
        let same = last.shape() == problem.shape()
            && tasks.clone().all(|(task, known)| {
                let set = problem.sets[task.samples].count();
                known.samples == task.count(set) && last.sets[known.set].samples == set
            });
        if !same {
            return Err(Error::param(
                "last",
                "a model of other data",
                "a model of the same tasks, samples and kernels",
            ));
        }
        self.fit_other(machine, sharing, Some(last), run)
    }

    fn fit_other(
        &self,
        machine: &MachineSpec,
        sharing: &SharingSpec,
        last: Option<&Model>,
        run: &mut Run<'_>,
    ) -> Result<Model> {
        let problem = self.problem;
        let choice = Choice::new(
            machine,
            sharing,
            &problem.sets,
            &problem.tasks,
            problem.shape(),
        )?;
        let spec = ProblemSpec {
            machine: machine.clone(),
            sharing: sharing.clone(),
            ..problem.spec.clone()
        };
        self.fit_choice(&choice, &spec, last, run)
    }

    fn fit_choice(
        &self,
        choice: &Choice,
        spec: &ProblemSpec,
        last: Option<&Model>,
        run: &mut Run<'_>,
    ) -> Result<Model> {
        run.check()?;
        let started = Instant::now();
        let problem = self.problem;
        let mut part = run.part(&run.deadline());
        if let Some(observer) = &mut run.observer {
            part.observer = Some(&mut **observer);
        }
        let mut engine = self.local_engine(choice.machine.as_ref());
        let solver = spec.solver.build()?;
        let sharing = &choice.sharing;
        let start = match (&spec.solver, last) {
            (SolverSpec::Newton, None) => {
                coarse_start(&mut engine, solver.as_ref(), sharing, &part)?
            }
            (SolverSpec::Newton, Some(last)) => {
                self.adopt(&mut engine, last);
                known_start(last, sharing)
            }
            // Faithful to the paper.
            (SolverSpec::Epf(_), _) => None,
        };
        let solution = solver.solve(&mut engine, &choice.sharing, start.as_ref(), &mut part)?;
        // The machines that objective and bound are of, whatever the engine last looked at.
        let machines = engine.fitted(&solution.machines);
        let witness = engine.mixed(&solution.witness);
        let (Some(fitted), Some(witness)) = (machines, witness) else {
            return Err(Error::Numeric {
                place: "the answer".to_string(),
                problem: "the engine has forgotten its machines; this is a mistake in mtmkl, please report it".to_string(),
            });
        };
        let certified = if spec.precision == Precision::Single {
            self.certify_in_double(choice, &solution, &fitted, &witness)?
        } else {
            None
        };
        let is_rounded = spec.precision == Precision::Single && certified.is_none();
        let solution = certified.unwrap_or(solution);
        let solve = started.elapsed().as_secs_f64();
        let outcome = Outcome {
            status: solution.status,
            objective: solution.objective,
            bound: solution.bound,
            gap: solution.gap,
            tolerance: Some(run.tolerance),
            solver: Some(spec.solver.clone()),
            fallback: solution.fallback,
            is_rounded,
            trace: solution.trace,
            seconds: Seconds {
                kernels: self.seconds,
                solve,
            },
        };
        let common = choice.sharing.common(&solution.parts);
        let specific = choice.sharing.specific(&solution.parts);
        Ok(Model::assemble(
            spec,
            &problem.sets,
            &problem.tasks,
            solution.theta,
            common,
            specific,
            fitted,
            witness,
            outcome,
        ))
    }

    /// What the answer is worth for the kernels in double precision, where they can be made from rows. Rounding may have moved the optimum by more
    /// than the tolerance; then the fit got as far as single precision goes. An optimum of zero within rounding says nothing in either precision.
    fn certify_in_double(
        &self,
        choice: &Choice,
        solution: &Solution,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Option<Solution>> {
        let certified = match solution.status {
            Status::ConvergedUncertified => None,
            _ if solution.gap == 0.0 || !self.concave => None,
            _ => self.install(|| {
                let theta = &solution.theta;
                self.problem.certify(choice, theta, fitted, witness)
            })?,
        };
        let Some(Certified { objective, bound }) = certified else {
            return Ok(None);
        };
        let gap = relative_gap(objective, bound);
        let status = match solution.status {
            Status::Converged if gap > solution.tolerance => Status::Stalled,
            status => status,
        };
        Ok(Some(Solution {
            status,
            objective,
            bound,
            gap,
            ..solution.clone()
        }))
    }
}
