//! A checked problem: samples, tasks, kernels, a machine and a sharing that go together; and its solution.

mod certify;
mod prepared;
mod start;

pub use prepared::Prepared;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use crate::data::{Samples, Task};
use crate::engine;
use crate::error::{DataProblem, Error, Place, Result};
use crate::gram::{self, Definiteness, Grams, Storage};
use crate::grid::Shape;
use crate::kernel::KernelView;
use crate::machine::{Machine, MachineSpec};
use crate::model::Model;
use crate::run::{Run, pool};
use crate::sharing::{Sharing, SharingSpec};
use crate::solver::SolverSpec;

/// How precisely the values of Gram matrices are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 8 bytes each.
    #[default]
    Double,
    /// 4 bytes each: half the memory and, where memory is the limit, half the time. Everything is still added up in double precision,
    /// and the certificate holds for the kernels as rounded: each value is off by at most 6e-8 of itself, J by at most
    /// 3e-8 κ (Σ_i |β_i| √K_ii)², in practice by far less.
    Single,
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Self::Double => "double",
            Self::Single => "single",
        }
    }
}

/// The free choices: kernels, machine, sharing; and how to solve.
#[derive(Debug, Clone)]
pub struct ProblemSpec {
    /// k_1 … k_M.
    pub kernels: Vec<KernelView>,
    /// (ḡ, Ω).
    pub machine: MachineSpec,
    /// Ψ.
    pub sharing: SharingSpec,
    /// The outer solver.
    pub solver: SolverSpec,
    /// Use k/√(k(x,x) k(z,z)) in place of k, in prediction too. A sample with k(x,x) = 0 is the zero vector: all its kernel
    /// values are 0.
    pub normalize: bool,
    /// What to do about kernels that may be indefinite.
    pub definiteness: Definiteness,
    /// How precisely Gram matrices are kept.
    pub precision: Precision,
    /// Whether the inner solver leaves variables out of its search that are unlikely to move. The answer is the same.
    pub shrinking: bool,
}

impl ProblemSpec {
    /// These three choices, everything else by default.
    pub fn new(kernels: Vec<KernelView>, machine: MachineSpec, sharing: SharingSpec) -> Self {
        Self {
            kernels,
            machine,
            sharing,
            solver: SolverSpec::default(),
            normalize: true,
            definiteness: Definiteness::default(),
            precision: Precision::default(),
            shrinking: true,
        }
    }
}

/// Numbers that are kept per kernel and sample of a task at most: K_mβ, and the curvature's factor at two θ, as it is made and as the
/// outer solver scales it.
const BESIDE: u64 = 5;

/// The sum; what cannot be counted is more than any limit.
fn total(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Samples and tasks with a specification that fits them. Only a checked problem can be fitted.
#[derive(Debug)]
pub struct Problem {
    spec: ProblemSpec,
    sets: Vec<Samples>,
    tasks: Vec<Task>,
    choice: Choice,
}

/// A machine and a sharing that go with the tasks and with each other.
#[derive(Debug)]
struct Choice {
    machine: Arc<dyn Machine>,
    sharing: Sharing,
}

impl Choice {
    fn new(
        machine: &MachineSpec,
        sharing: &SharingSpec,
        sets: &[Samples],
        tasks: &[Task],
        shape: Shape,
    ) -> Result<Self> {
        let is_own = matches!(machine, MachineSpec::Own(_));
        let machine = machine.build();
        for task in tasks {
            let samples = task.count(sets[task.samples].count());
            machine.check(task, samples)?;
            if is_own {
                machine.dual(task, samples).check(samples)?;
            }
        }
        let sharing = sharing.build(shape)?;
        if machine.shrinks_kernels() && sharing.contains_zero() {
            return Err(Error::Pair {
                machine: machine.name().to_string(),
                sharing: sharing.name().to_string(),
                reason: "the spread of the samples only grows with the kernel weights, so in a set that contains θ = 0 the \
                         optimum is θ = 0, a sphere of radius zero; choose a set of fixed mass: `simplex`, `box-simplex`, \
                         `tang`, or fixed weights"
                    .to_string(),
            });
        }
        Ok(Self { machine, sharing })
    }
}

impl Problem {
    /// Checks everything that can be checked without computing a kernel.
    ///
    /// # Errors
    /// Names the task, sample, column or parameter, what was expected, and the way out.
    pub fn new(spec: ProblemSpec, sets: Vec<Samples>, tasks: Vec<Task>) -> Result<Self> {
        if tasks.is_empty() {
            return Err(Error::data(
                Place::Problem,
                DataProblem::Empty("there are no tasks, expected at least one"),
            ));
        }
        if spec.kernels.is_empty() {
            return Err(Error::param(
                "kernels",
                "an empty list",
                "at least one kernel",
            ));
        }
        let mut names = BTreeSet::new();
        for task in &tasks {
            if !names.insert(task.name.as_str()) {
                return Err(Error::data(
                    Place::Task(task.name.clone()),
                    DataProblem::NameTwice,
                ));
            }
            task.check(&sets)?;
        }
        for set in &sets {
            for view in &spec.kernels {
                view.columns.resolve(set.columns())?;
            }
        }
        spec.solver.build()?;
        let shape = Shape {
            tasks: tasks.len(),
            kernels: spec.kernels.len(),
        };
        let choice = Choice::new(&spec.machine, &spec.sharing, &sets, &tasks, shape)?;
        Ok(Self {
            spec,
            sets,
            tasks,
            choice,
        })
    }

    /// T × M.
    pub fn shape(&self) -> Shape {
        self.choice.sharing.shape()
    }

    /// The specification.
    pub fn spec(&self) -> &ProblemSpec {
        &self.spec
    }

    /// The sample sets.
    pub fn samples(&self) -> &[Samples] {
        &self.sets
    }

    /// The tasks.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Ψ.
    pub fn sharing(&self) -> &Sharing {
        &self.choice.sharing
    }

    /// Bytes that Gram matrices would take at most, with that many threads at work: the matrices or what they are made from, copies of
    /// parts of them that `newton` starts from, and one combined matrix per thread. With [`Storage::OnDemand`] also what is kept per
    /// kernel and sample, no longer little beside them.
    pub fn memory_needed(&self, storage: Storage, threads: usize) -> u64 {
        let single = self.spec.precision == Precision::Single;
        let sizes: Vec<gram::Size> = self
            .sets
            .iter()
            .filter_map(|set| {
                let spec = &self.spec;
                gram::Size::new(set, &spec.kernels, spec.normalize, single, storage).ok()
            })
            .collect();
        let counts = || self.sets.iter().map(Samples::count);
        let kernels = self.spec.kernels.len();
        let kept = total(sizes.iter().map(gram::Size::kept));
        let passing = sizes.iter().map(gram::Size::passing).max().unwrap_or(0);
        let copied = total(
            sizes
                .iter()
                .zip(counts())
                .flat_map(|(size, n)| engine::coarser(n, kernels).map(|n| size.part(n))),
        );
        let combined = counts().map(gram::Size::square).max().unwrap_or(0);
        let combined = combined.saturating_mul(threads as u64);
        let beside = self.memory_beside(storage);
        total([kept, passing.max(copied), combined, beside])
    }

    /// Computes the Gram matrices, or where these would need more memory than the run allows, what they are made from on demand.
    ///
    /// # Errors
    /// When that needs more memory too, or a kernel cannot be used on these samples.
    pub fn prepare(&self, run: &Run<'_>) -> Result<Prepared<'_>> {
        let started = Instant::now();
        let pool = pool(run.threads)?;
        let needed = |storage| self.memory_needed(storage, pool.current_num_threads());
        let storage = if needed(Storage::Kept) <= run.memory_limit {
            Storage::Kept
        } else if needed(Storage::OnDemand) <= run.memory_limit {
            Storage::OnDemand
        } else {
            return Err(Error::Memory {
                needed: needed(Storage::Kept).min(needed(Storage::OnDemand)),
                limit: run.memory_limit,
            });
        };
        let single = self.spec.precision == Precision::Single;
        let built: Vec<(Grams, bool)> = pool.install(|| {
            self.sets
                .iter()
                .enumerate()
                .map(|(index, set)| {
                    let (grams, semidefinite) = gram::build(
                        set,
                        index,
                        &self.spec.kernels,
                        self.spec.normalize,
                        self.spec.definiteness,
                        storage,
                        single,
                    )?;
                    // What the caller gave is not rounded yet.
                    let grams = if single { grams.into_single() } else { grams };
                    Ok((grams, semidefinite))
                })
                .collect::<Result<_>>()
        })?;
        let concave = built.iter().all(|(_, semidefinite)| *semidefinite);
        let grams: Arc<[Grams]> = built.into_iter().map(|(grams, _)| grams).collect();
        Ok(Prepared {
            problem: self,
            whole: Arc::clone(&grams),
            grams,
            kernels: (0..self.spec.kernels.len()).collect(),
            gathered: vec![false; self.sets.len()],
            concave,
            storage,
            memory_limit: run.memory_limit,
            pool: Arc::new(pool),
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// This problem on the Gram matrices of another one with the same sample sets: other tasks or rows of them, and of its kernels
    /// those at the positions `kernels`, in this order. No kernel is computed. Where all tasks of a sample set use the same rows,
    /// their part of the matrices is copied, so that it lies together.
    ///
    /// Where such a copy would need more memory than the run allows, rows are read where they lie.
    ///
    /// # Errors
    /// When the sample sets are not the same, a kernel is another one than that at its position, what is done to the kernels differs
    /// (normalised, precision, definiteness), or the run allows less memory than is needed without a copy.
    pub fn prepare_from(
        &self,
        other: &Prepared<'_>,
        kernels: &[usize],
        run: &Run<'_>,
    ) -> Result<Prepared<'_>> {
        self.check_prepared(other, kernels)?;
        // From all samples, whatever part of them the other problem uses.
        let kernels: Vec<usize> = kernels
            .iter()
            .map(|&kernel| other.kernels[kernel])
            .collect();
        let pool = pool(run.threads)?;
        let views: Vec<Option<&[usize]>> = (0..self.sets.len())
            .map(|set| {
                let mut own = self.tasks.iter().filter(|task| task.samples == set);
                let rows = own.next()?.rows.as_deref()?;
                own.all(|task| task.rows.as_deref() == Some(rows))
                    .then_some(rows)
            })
            .collect();
        let threads = pool.current_num_threads();
        let needed =
            |views: &[Option<&[usize]>]| self.memory_needed_from(other, &kernels, views, threads);
        let views = if needed(&views) <= run.memory_limit {
            views
        } else {
            vec![None; self.sets.len()]
        };
        if needed(&views) > run.memory_limit {
            return Err(Error::Memory {
                needed: needed(&views),
                limit: run.memory_limit,
            });
        }
        let all = other
            .whole
            .iter()
            .all(|grams| kernels.iter().copied().eq(0..grams.kernels()));
        let grams = if all && views.iter().all(Option::is_none) {
            Arc::clone(&other.whole)
        } else {
            pool.install(|| {
                let parts = other.whole.iter().zip(&views);
                parts
                    .map(|(grams, view)| grams.part(&kernels, *view))
                    .collect()
            })
        };
        Ok(Prepared {
            problem: self,
            grams,
            whole: Arc::clone(&other.whole),
            kernels,
            gathered: views.iter().map(Option::is_some).collect(),
            concave: other.concave,
            storage: other.storage,
            memory_limit: run.memory_limit,
            pool: Arc::new(pool),
            seconds: 0.0,
        })
    }

    /// Whether the Gram matrices of another problem, of its kernels those at these positions, are this problem's.
    fn check_prepared(&self, other: &Prepared<'_>, kernels: &[usize]) -> Result<()> {
        let (own, known) = (&self.spec, &other.problem.spec);
        let refused =
            |value: String, expected: String| Err(Error::param("prepared", value, expected));
        let sets = self.sets.iter().zip(&other.problem.sets);
        if self.sets.len() != other.problem.sets.len() || !sets.clone().all(|(a, b)| a.is(b)) {
            return refused(
                "on other samples".to_string(),
                "a problem on the same sample sets".to_string(),
            );
        }
        if own.normalize != known.normalize {
            let form = |normalize| {
                if normalize {
                    "with normalised kernels"
                } else {
                    "with kernels that are not normalised"
                }
            };
            return refused(
                form(known.normalize).to_string(),
                format!("one {}, as in this problem", form(own.normalize)),
            );
        }
        if own.precision != known.precision {
            return refused(
                format!("in {} precision", known.precision.name()),
                format!("{} precision, as in this problem", own.precision.name()),
            );
        }
        if own.definiteness != known.definiteness {
            return refused(
                format!("with definiteness `{}`", known.definiteness.name()),
                format!("`{}`, as in this problem", own.definiteness.name()),
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
            for set in &self.sets {
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

    /// As [`Problem::memory_needed`], on the Gram matrices of another problem, of its kernels those at these positions; with parts of them
    /// copied on these rows of the sample sets.
    fn memory_needed_from(
        &self,
        other: &Prepared<'_>,
        kernels: &[usize],
        views: &[Option<&[usize]>],
        threads: usize,
    ) -> u64 {
        let sets = other.whole.iter().zip(views);
        let counts = || {
            let sets = other.whole.iter().zip(views);
            sets.map(|(grams, view)| view.map_or(grams.samples(), <[usize]>::len))
        };
        let copied = total(sets.zip(counts()).flat_map(|((grams, view), count)| {
            let coarser = engine::coarser(count, kernels.len());
            let copies = view.map(|_| count).into_iter().chain(coarser);
            copies.map(|count| grams.bytes_of_part(kernels, count))
        }));
        let kept = total(other.whole.iter().map(Grams::bytes));
        let combined = counts().map(gram::Size::square).max().unwrap_or(0);
        let combined = combined.saturating_mul(threads as u64);
        let beside = self.memory_beside(other.storage);
        total([kept, copied, combined, beside])
    }

    /// Bytes of what is kept per kernel and sample, no longer little beside the matrices where these are made on demand.
    fn memory_beside(&self, storage: Storage) -> u64 {
        match storage {
            Storage::Kept => 0,
            Storage::OnDemand => {
                let rows = self.tasks.iter().map(|task| {
                    let count = task.count(self.sets[task.samples].count());
                    (count as u64).saturating_mul(BESIDE)
                });
                let samples = self.sets.iter().map(|set| set.count() as u64);
                let numbers = total(rows.chain(samples));
                numbers.saturating_mul(8 * self.spec.kernels.len() as u64)
            }
        }
    }

    /// Computes the Gram matrices and solves.
    ///
    /// # Errors
    /// As [`Problem::prepare`]; not reaching the tolerance is not an error but the model's status.
    pub fn fit(&self, run: &mut Run<'_>) -> Result<Model> {
        self.prepare(run)?.fit(run)
    }
}
