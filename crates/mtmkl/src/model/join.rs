//! One model from the machines of several places: tasks that were fitted elsewhere to the same θ in Ψ.

use std::collections::BTreeMap;

use super::{Model, Outcome, Seconds, SupportSet, TaskModel, parts};
use crate::data::{Samples, Task};
use crate::engine::Fitted;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::kernel::KernelView;
use crate::machine::MachineSpec;
use crate::problem::{Normalization, ProblemSpec, TargetUnit};
use crate::run::Status;
use crate::sharing::{Parts, Sharing, SharingSpec};

/// The machines of some tasks, and the samples that they need: all of a model but its weights and its certificate.
#[derive(Debug, Clone)]
pub struct Machines {
    /// The kernels, settled.
    pub kernels: Vec<KernelView>,
    /// What was learned.
    pub machine: MachineSpec,
    /// What kernels are divided by.
    pub normalize: Normalization,
    /// The support rows; whoever has the samples elsewhere finds them there by their positions, and there are none here.
    pub sets: Vec<SupportSet>,
    /// The machines, those of the first sample set first.
    pub tasks: Vec<TaskModel>,
}

impl Machines {
    /// Those of these tasks, with the rows that they need or without them.
    pub(crate) fn of(
        spec: &ProblemSpec,
        sets: &[Samples],
        tasks: &[Task],
        units: &[TargetUnit],
        fitted: &[Fitted],
        witness: &[Vec<f64>],
        with_rows: bool,
    ) -> Self {
        // The tasks of each sample set: of thousands, each set looks at its own only.
        let mut of_set: Vec<Vec<usize>> = vec![Vec::new(); sets.len()];
        for (number, task) in tasks.iter().enumerate() {
            of_set[task.samples].push(number);
        }
        let support = |(set, own): (&Samples, &Vec<usize>)| {
            let own = own.iter().map(|&number| (&tasks[number], &fitted[number]));
            SupportSet::of(set, own, &spec.kernels, with_rows)
        };
        let sets: Vec<SupportSet> = sets.iter().zip(&of_set).map(support).collect();
        let machines = tasks.iter().zip(units).zip(fitted).zip(witness);
        let tasks = machines
            .map(|(((task, &unit), machine), witness)| {
                TaskModel::of(task, unit, machine, witness, &sets[task.samples])
            })
            .collect();
        Self {
            kernels: spec.kernels.clone(),
            machine: spec.machine.clone(),
            normalize: spec.normalize,
            sets,
            tasks,
        }
    }

    /// Those of all sample sets in this order: for each the part that it is in, and its number there.
    ///
    /// # Errors
    /// When there are no parts, or a sample set is not there or asked for twice.
    pub fn joined(parts: Vec<Self>, order: &[(usize, usize)]) -> Result<Self> {
        let strange = |what: &str| Error::Engine(format!("the parts of its model have {what}"));
        let mut parts = parts.into_iter();
        let first = parts.next().ok_or_else(|| strange("no machines"))?;
        let Self {
            kernels,
            machine,
            normalize,
            ..
        } = first;
        let of_first = (first.sets, first.tasks);
        let others = parts.map(|part| (part.sets, part.tasks));
        let mut left: Vec<Vec<Option<(SupportSet, Vec<TaskModel>)>>> = Vec::new();
        for (sets, tasks) in std::iter::once(of_first).chain(others) {
            let mut own: Vec<_> = sets
                .into_iter()
                .map(|set| Some((set, Vec::new())))
                .collect();
            for task in tasks {
                let set = own.get_mut(task.set).and_then(Option::as_mut);
                let (_, machines) = set.ok_or_else(|| strange("machines without samples"))?;
                machines.push(task);
            }
            left.push(own);
        }
        let (mut sets, mut tasks) = (Vec::new(), Vec::new());
        for &(part, set) in order {
            let own = left
                .get_mut(part)
                .and_then(|part| part.get_mut(set)?.take());
            let (own, machines) =
                own.ok_or_else(|| strange("not the sample sets that were said"))?;
            let set = sets.len();
            tasks.extend(machines.into_iter().map(|task| TaskModel { set, ..task }));
            sets.push(own);
        }
        Ok(Self {
            kernels,
            machine,
            normalize,
            sets,
            tasks,
        })
    }
}

impl Model {
    /// The machines of some tasks at their rows of θ; the outcome says nothing yet.
    pub(crate) fn part(machines: Machines, theta: Grid) -> Self {
        let Machines {
            kernels,
            machine,
            normalize,
            sets,
            tasks,
        } = machines;
        Self {
            kernels,
            machine,
            sharing: SharingSpec::uniform(),
            normalize,
            parts: Vec::new(),
            common: None,
            specific: None,
            theta,
            sets,
            tasks,
            outcome: Outcome {
                status: Status::Stopped,
                objective: f64::INFINITY,
                bound: f64::NEG_INFINITY,
                gap: f64::INFINITY,
                tolerance: None,
                solver: None,
                fallback: None,
                is_rounded: false,
                trace: Vec::new(),
                seconds: Seconds::default(),
            },
            notes: BTreeMap::new(),
        }
    }

    /// Machines with the weights that they were fitted to, and their certificate.
    ///
    /// # Errors
    /// When they are not as many as Ψ is for.
    pub(crate) fn of_machines(
        machines: Machines,
        spec: &SharingSpec,
        sharing: &Sharing,
        weights: &Parts,
        outcome: Outcome,
    ) -> Result<Self> {
        if machines.tasks.len() != sharing.shape().tasks {
            let problem = "the parts of its model have not as many machines as there are tasks";
            return Err(Error::Engine(problem.to_string()));
        }
        Ok(Self {
            sharing: spec.clone(),
            parts: parts::labelled(sharing, weights),
            common: sharing.common(weights),
            specific: sharing.specific(weights),
            outcome,
            ..Self::part(machines, sharing.theta(weights))
        })
    }
}
