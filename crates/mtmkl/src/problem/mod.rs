//! A checked problem: samples, tasks, kernels, a machine and a sharing that go together; and its solution.

mod certify;
mod families;
mod fit;
mod memory;
mod options;
mod outer;
mod part;
mod prepare;
mod settle;
mod start;
mod targets;

pub use options::{Fitting, Precision, Preparation};
pub use outer::{OuterProblem, Proven};
pub use prepare::Prepared;
pub use settle::Normalization;
pub use targets::{TargetScale, TargetUnit};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::data::{Samples, Task};
use crate::error::{DataProblem, Error, Place, Result};
use crate::grid::Shape;
use crate::kernel::KernelView;
use crate::machine::{Machine, MachineSpec};
use crate::model::Model;
use crate::sharing::{Sharing, SharingSpec};
use crate::solver::SolverSpec;
use crate::task_kernel::ALL;

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
    /// What kernels are divided by, in prediction too.
    pub normalize: Normalization,
    /// What numbers to learn are measured in; the objective is that of the targets so measured.
    pub target_scale: TargetScale,
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
            normalize: Normalization::default(),
            target_scale: TargetScale::default(),
            shrinking: true,
        }
    }
}

/// Samples and tasks with a specification that fits them. Only a checked problem can be fitted.
///
/// A clone shares everything.
#[derive(Debug, Clone)]
pub struct Problem {
    spec: Arc<ProblemSpec>,
    sets: Arc<[Samples]>,
    tasks: Arc<[Task]>,
    /// The tasks as machines learn them, and what brings their answers back.
    learned: Arc<[Task]>,
    units: Arc<[TargetUnit]>,
    choice: Arc<Choice>,
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
        machine.check()?;
        let is_own = !machine.is_ours();
        let machine = machine.build();
        for task in tasks {
            let samples = task.count(sets[task.samples].count());
            machine.check(task, samples)?;
            if is_own {
                machine.dual(task, samples).check(samples)?;
            }
        }
        let sharing = sharing.build(shape)?;
        check_pair(machine.as_ref(), &sharing)?;
        Ok(Self { machine, sharing })
    }
}

/// Whether a machine and a sharing go together.
fn check_pair(machine: &dyn Machine, sharing: &Sharing) -> Result<()> {
    if !(machine.shrinks_kernels() && sharing.contains_zero()) {
        return Ok(());
    }
    Err(Error::Pair {
        machine: machine.name().to_string(),
        sharing: sharing.name().to_string(),
        reason: "the spread of the samples only grows with the kernel weights, so in a set that contains θ = 0 the \
                 optimum is θ = 0, a sphere of radius zero; choose a set of fixed mass: `simplex`, `box-simplex`, \
                 `tang`, or fixed weights"
            .to_string(),
    })
}

/// Whether the tasks that a kernel is between are known.
fn check_between(view: &KernelView, set: &Samples) -> Result<()> {
    let Some(word) = &view.between else {
        return Ok(());
    };
    let known = set.origins().map(|origins| &origins.kernels);
    let problem = match known {
        Some(kernels) if kernels.get(word).is_some() => return Ok(()),
        Some(kernels) => {
            let names = kernels.kernels().iter().map(|kernel| kernel.name.as_str());
            let names: Vec<&str> = std::iter::once(ALL).chain(names).collect();
            format!(
                "there is no task kernel `{word}`; there are {}",
                names.join(", ")
            )
        }
        None => format!("`*{word}` is between tasks, and the samples are not said to be of any"),
    };
    Err(Error::Kernel {
        spec: view.name.clone(),
        problem,
    })
}

impl Problem {
    /// Checks everything that can be checked without computing a Gram matrix, and settles what kernels take from the samples: widths in
    /// units of the data, and factors where kernels are divided by their variance.
    ///
    /// # Errors
    /// Names the task, sample, column or parameter, what was expected, and the way out.
    pub fn new(mut spec: ProblemSpec, sets: Vec<Samples>, tasks: Vec<Task>) -> Result<Self> {
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
                check_between(view, set)?;
            }
        }
        spec.solver.build()?;
        spec.kernels = settle::settled(&spec, &sets, None)?;
        let shape = Shape {
            tasks: tasks.len(),
            kernels: spec.kernels.len(),
        };
        let (learned, units) = targets::in_units(&tasks, spec.target_scale);
        let choice = Choice::new(&spec.machine, &spec.sharing, &sets, &learned, shape)?;
        Ok(Self {
            spec: Arc::new(spec),
            sets: sets.into(),
            tasks: tasks.into(),
            learned: learned.into(),
            units: units.into(),
            choice: Arc::new(choice),
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

    /// The tasks with their targets as machines learn them.
    pub(crate) fn learned(&self) -> &[Task] {
        &self.learned
    }

    /// Ψ.
    pub fn sharing(&self) -> &Sharing {
        &self.choice.sharing
    }

    /// The same samples, tasks and kernels with another machine and sharing.
    ///
    /// # Errors
    /// When they do not go with the tasks, or with each other.
    pub fn with(&self, machine: &MachineSpec, sharing: &SharingSpec) -> Result<Self> {
        let choice = Choice::new(machine, sharing, &self.sets, &self.learned, self.shape())?;
        let spec = ProblemSpec {
            machine: machine.clone(),
            sharing: sharing.clone(),
            ..(*self.spec).clone()
        };
        Ok(Self {
            spec: Arc::new(spec),
            choice: Arc::new(choice),
            ..self.clone()
        })
    }

    /// Prepares the kernels as is usual, and fits.
    ///
    /// # Errors
    /// As [`Problem::prepare`]; not reaching the tolerance is not an error but the model's status.
    pub fn fit(&self, fitting: &mut Fitting<'_>) -> Result<Model> {
        fitting.check()?;
        self.prepare(&Preparation::default())?.fit(fitting)
    }
}
