//! A problem with its Gram matrices: computed, or taken from another problem's.

use std::sync::Arc;
use std::time::Instant;

use super::certify::Certified;
use super::fit::Solved;
use super::memory::{MemoryPlan, PartLimits};
use super::{Fitting, Precision, Preparation, Problem, ProblemSpec};
use crate::engine::{Engine, Levels, Local, Room, TaskData};
use crate::error::{Error, Result};
use crate::gram::{Built, Grams, Operator, Spanned, Storage};
use crate::ledger::Ledger;
use crate::machine::MachineSpec;
use crate::model::Model;
use crate::pool::Pool;
use crate::run::Status;
use crate::sharing::SharingSpec;
use crate::solver::{Solution, relative_gap};
use crate::view::View;

/// A problem with its Gram matrices: fit it as often as you like. A clone shares them.
#[derive(Debug, Clone)]
pub struct Prepared {
    problem: Problem,
    /// What the tasks learn from.
    pub(super) grams: Arc<[Grams]>,
    /// The Gram matrices of all samples and kernels that they were taken from, and which of those kernels are this problem's.
    whole: Arc<[Grams]>,
    kernels: Vec<usize>,
    /// The sample sets whose tasks' rows were copied together: there the tasks see all of `grams`.
    gathered: Vec<bool>,
    concave: bool,
    storage: Storage,
    /// What solving has memory for.
    room: Room,
    /// The account of memory, and what was taken of it when all matrices were there: parts and their fits share the rest.
    ledger: Ledger,
    taken: u64,
    precision: Precision,
    pool: Pool,
    seconds: f64,
}

impl Prepared {
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

    /// The problem.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The account of memory.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The threads that compute.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The same samples, tasks and kernels with another machine and sharing: the Gram matrices are used again.
    ///
    /// # Errors
    /// When they do not go with the tasks, or with each other.
    pub fn with(&self, machine: &MachineSpec, sharing: &SharingSpec) -> Result<Self> {
        let problem = self.problem.with(machine, sharing)?;
        let span = self.grams.first().and_then(|grams| grams.spanned());
        if span.is_some_and(|(span, _)| !problem.may_be_spanned(span.error())) {
            return problem.prepare(&Preparation {
                ledger: self.ledger.clone(),
                pool: Some(self.pool.clone()),
                ..Preparation::default()
            });
        }
        Ok(Self {
            problem,
            ..self.clone()
        })
    }

    /// Σ_m θ_m at most, where anybody asks for it.
    fn reach(&self) -> f64 {
        if self.grams.iter().any(|grams| grams.spanned().is_some()) {
            self.problem.reach()
        } else {
            0.0
        }
    }

    /// The engine on these Gram matrices.
    pub fn engine(&self) -> impl Engine + use<> {
        self.local().engine(self.reach())
    }

    /// The same with its coarser selves, for whoever drives it from afar.
    pub fn levels(&self) -> Levels {
        Levels::new(self.local(), self.reach())
    }

    /// What the engine is made of.
    fn local(&self) -> Local {
        let problem = &self.problem;
        let machine = problem.choice.machine.as_ref();
        let mut views: Vec<View> = Vec::new();
        let tasks = problem
            .learned
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
        Local {
            grams: Arc::clone(&self.grams),
            tasks,
            concave: self.concave,
            shrinking: problem.spec.shrinking,
            pool: self.pool.clone(),
            room: self.room,
        }
    }

    /// min over θ in Ψ of J(θ), with the machines at the answer.
    ///
    /// # Errors
    /// When an inner problem breaks down numerically, or the model to start from is of another machine or other data.
    pub fn fit(&self, fitting: &mut Fitting<'_>) -> Result<Model> {
        let problem = &self.problem;
        let pool = Some(self.pool.clone());
        let mut solved = problem.solve(&mut self.engine(), fitting, pool)?;
        let is_spanned = self.grams.iter().any(|grams| grams.spanned().is_some());
        if is_spanned && solved.solution.status == Status::Stalled && fitting.time_limit.is_none() {
            // What interpolation may do to J is more than is tolerated. Where there is memory and time for it, every kernel is looked at.
            let each = problem.prepare_each(&Preparation {
                ledger: self.ledger.clone(),
                pool: Some(self.pool.clone()),
                ..Preparation::default()
            });
            if let Ok(each) = each {
                return each.fit(fitting);
            }
        }
        if self.precision == Precision::Single {
            match self.certify_in_double(&solved)? {
                Some(solution) => solved.solution = solution,
                None => solved.is_rounded = true,
            }
        }
        Ok(solved.into_model(problem, fitting.tolerance, self.seconds))
    }

    /// What the answer is worth for the kernels in double precision, where they can be made from rows. Rounding may have moved the optimum by more
    /// than the tolerance; then the fit got as far as single precision goes. An optimum of zero within rounding says nothing in either precision.
    fn certify_in_double(&self, solved: &Solved) -> Result<Option<Solution>> {
        let solution = &solved.solution;
        let certified = match solution.status {
            Status::ConvergedUncertified => None,
            _ if solution.gap == 0.0 || !self.concave => None,
            _ => self.pool.install(|| {
                let (fitted, witness) = (&solved.fitted, &solved.witness);
                self.problem.certify(&solution.theta, fitted, witness)
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

impl Problem {
    /// Computes the Gram matrices, or where these would need more memory than is allowed, what they are made from on demand.
    ///
    /// # Errors
    /// When that needs more memory too, or a kernel cannot be used on these samples.
    pub fn prepare(&self, preparation: &Preparation) -> Result<Prepared> {
        let Some((span, nodes)) = self.span(preparation)? else {
            return self.prepare_each(preparation);
        };
        // Nodes are used a few times each: making their values takes less time than memory for all of them does.
        let mapped = Preparation {
            storage: Some(Storage::Mapped),
            ..preparation.clone()
        };
        let reduced = self.with_kernels(nodes);
        let needed = reduced.memory_needed(Storage::Mapped, &mapped)?;
        let fits = needed <= preparation.ledger.left();
        let inner = reduced.prepare_each(if fits { &mapped } else { preparation })?;
        let nodes = inner.grams.iter().map(Arc::clone);
        let span = Arc::new(span);
        let spanned =
            nodes.map(|nodes| -> Grams { Arc::new(Spanned::new(Arc::clone(&span), nodes)) });
        let grams: Arc<[Grams]> = spanned.collect();
        Ok(Prepared {
            problem: self.clone(),
            whole: Arc::clone(&grams),
            grams,
            kernels: (0..self.spec.kernels.len()).collect(),
            ..inner
        })
    }

    /// The same, every kernel by itself.
    fn prepare_each(&self, preparation: &Preparation) -> Result<Prepared> {
        let started = Instant::now();
        let pool = preparation.pool()?;
        let (precision, ledger) = (preparation.precision, &preparation.ledger);
        let MemoryPlan { storage, room } = self.plan_memory(preparation, pool.threads())?;
        let built: Vec<Built> = pool.install(|| {
            let sets = self.sets.iter().enumerate();
            sets.map(|(index, set)| {
                let plan = |threads| self.plan(index, set, storage, preparation, threads);
                let (by_one, by_all) = (plan(1)?, plan(pool.threads())?);
                let fits = by_all.kept().saturating_add(by_all.passing()) <= ledger.left();
                if fits { by_all } else { by_one }.build(ledger)
            })
            .collect::<Result<_>>()
        })?;
        let concave = built.iter().all(|built| built.is_semidefinite);
        let grams: Arc<[Grams]> = built.into_iter().map(|built| built.operator).collect();
        Ok(Prepared {
            problem: self.clone(),
            whole: Arc::clone(&grams),
            grams,
            kernels: (0..self.spec.kernels.len()).collect(),
            gathered: vec![false; self.sets.len()],
            concave,
            storage,
            room,
            taken: ledger.taken(),
            ledger: ledger.clone(),
            // What is not kept is not rounded.
            precision: match storage {
                Storage::Streamed => Precision::Double,
                Storage::Kept | Storage::Mapped => precision,
            },
            pool,
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// This problem on operators of the caller's, one for each sample set: K_1, …, K_M of its kernels, normalised or not as they are wanted,
    /// positive semi-definite but for what they say themselves. No kernel is computed; the kernels of the problem are for prediction.
    ///
    /// # Errors
    /// When they are not one for each sample set, of its samples and the problem's kernels, or nothing fits into what the ledger has left.
    pub fn prepare_on(
        &self,
        operators: Vec<Arc<dyn Operator>>,
        preparation: &Preparation,
    ) -> Result<Prepared> {
        let kernels = self.spec.kernels.len();
        let shapes = operators
            .iter()
            .map(|grams| (grams.samples(), grams.kernels()));
        if !shapes.eq(self.sets.iter().map(|set| (set.count(), kernels))) {
            return Err(Error::param(
                "operators",
                "of other samples or kernels",
                format!("one for each sample set, on its samples and for {kernels} kernels"),
            ));
        }
        let pool = preparation.pool()?;
        let ledger = &preparation.ledger;
        let grams: Arc<[Grams]> = operators.into();
        let numbers: Vec<usize> = (0..kernels).collect();
        let limits = PartLimits {
            limit: ledger.limit(),
            taken: ledger.taken(),
            threads: pool.threads(),
        };
        let all = vec![View::All; self.sets.len()];
        let (_, room) = self.plan_part(&grams, &numbers, all, limits)?;
        Ok(Prepared {
            problem: self.clone(),
            storage: if grams.iter().any(|grams| grams.is_streamed()) {
                Storage::Streamed
            } else if grams.iter().any(|grams| grams.are_made()) {
                Storage::Mapped
            } else {
                Storage::Kept
            },
            whole: Arc::clone(&grams),
            grams,
            kernels: numbers,
            gathered: vec![false; self.sets.len()],
            concave: true,
            room,
            taken: ledger.taken(),
            ledger: ledger.clone(),
            precision: Precision::Double,
            pool,
            seconds: 0.0,
        })
    }

    /// This problem on the Gram matrices of another one with the same sample sets: other tasks or rows of them, and of its kernels
    /// those at the positions `kernels`, in this order. No kernel is computed. Where all tasks of a sample set use the same rows,
    /// their part of the matrices is copied, so that it lies together.
    ///
    /// Where such a copy would need more memory than the other problem was allowed, rows are read where they lie. Fits are done by the
    /// threads of `pool`.
    ///
    /// # Errors
    /// When the sample sets are not the same, a kernel is another one than that at its position, only one of the problems has normalised
    /// kernels, or less memory is allowed than is needed without a copy.
    pub fn prepare_from(
        &self,
        other: &Prepared,
        kernels: &[usize],
        pool: &Pool,
    ) -> Result<Prepared> {
        self.check_prepared(other, kernels)?;
        // From all samples, whatever part of them the other problem uses.
        let kernels: Vec<usize> = kernels
            .iter()
            .map(|&kernel| other.kernels[kernel])
            .collect();
        let (views, room) = self.parts_of(other, &kernels, pool.threads())?;
        let all = other
            .whole
            .iter()
            .all(|grams| kernels.iter().copied().eq(0..grams.kernels()));
        let grams = if all && views.iter().all(View::is_all) {
            Arc::clone(&other.whole)
        } else {
            pool.install(|| {
                let parts = other.whole.iter().zip(&views);
                parts
                    .map(|(grams, view)| grams.part(&kernels, view))
                    .collect()
            })
        };
        Ok(Prepared {
            problem: self.clone(),
            grams,
            whole: Arc::clone(&other.whole),
            kernels,
            gathered: views.iter().map(|view| !view.is_all()).collect(),
            concave: other.concave,
            storage: other.storage,
            room,
            taken: other.taken,
            ledger: other.ledger.clone(),
            precision: other.precision,
            pool: pool.clone(),
            seconds: 0.0,
        })
    }

    /// The rows whose part of another problem's matrices is copied, and what fits beside.
    fn parts_of(
        &self,
        other: &Prepared,
        kernels: &[usize],
        threads: usize,
    ) -> Result<(Vec<View>, Room)> {
        let views: Vec<View> = (0..self.sets.len())
            .map(|set| {
                let mut own = self.tasks.iter().filter(|task| task.samples == set);
                let first = own.next().map_or(View::All, |task| task.rows.clone());
                if own.all(|task| task.rows == first) {
                    first
                } else {
                    View::All
                }
            })
            .collect();
        let limits = PartLimits {
            limit: other.ledger.limit(),
            taken: other.taken,
            threads,
        };
        self.plan_part(&other.whole, kernels, views, limits)
    }

    /// How many fits of this problem on the Gram matrices of another one, each with one thread, there is memory for at a time.
    pub(crate) fn fits_at_a_time(&self, other: &Prepared, kernels: &[usize]) -> Result<usize> {
        let kernels: Vec<usize> = kernels
            .iter()
            .map(|&kernel| other.kernels[kernel])
            .collect();
        let (views, room) = self.parts_of(other, &kernels, 1)?;
        let each = self.bytes_of_part(&other.whole, &kernels, &views, room);
        let left = other.ledger.limit().saturating_sub(other.taken);
        Ok(usize::try_from(left / each.max(1))
            .unwrap_or(usize::MAX)
            .max(1))
    }

    /// Whether the Gram matrices of another problem, of its kernels those at these positions, are this problem's.
    fn check_prepared(&self, other: &Prepared, kernels: &[usize]) -> Result<()> {
        let (own, known) = (&self.spec, &other.problem.spec);
        let refused =
            |value: String, expected: String| Err(Error::param("prepared", value, expected));
        let sets = self.sets.iter().zip(other.problem.sets.iter());
        if self.sets.len() != other.problem.sets.len() || !sets.clone().all(|(a, b)| a.is(b)) {
            return refused(
                "on other samples".to_string(),
                "a problem on the same sample sets".to_string(),
            );
        }
        if own.normalize != known.normalize {
            let form =
                |spec: &ProblemSpec| format!("with the normalisation `{}`", spec.normalize.word());
            return refused(
                form(known),
                format!("one {}, as in this problem", form(own)),
            );
        }
        if kernels.len() != own.kernels.len() || kernels.iter().any(|&m| m >= known.kernels.len()) {
            return Err(Error::param(
                "kernels",
                format!("{kernels:?}"),
                format!(
                    "{} positions below {}",
                    own.kernels.len(),
                    known.kernels.len()
                ),
            ));
        }
        for (view, &position) in own.kernels.iter().zip(kernels) {
            let there = &known.kernels[position];
            for set in self.sets.iter() {
                if !view.is_same_on(there, set.columns())? {
                    return Err(Error::param(
                        "kernels",
                        format!("{position}, the position of `{}`", there.name),
                        format!(
                            "the position of `{}`, with the same parameters and columns",
                            view.name
                        ),
                    ));
                }
            }
        }
        Ok(())
    }
}
