//! One model from the machines of several places: tasks that were fitted elsewhere to the same θ in Ψ; and one whose machines are elsewhere.

use std::collections::BTreeMap;

use super::{Model, Outcome, Part, Seconds, SupportSet, TaskModel, parts};
use crate::data::{Samples, Task};
use crate::engine::Fitted;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::kernel::KernelView;
use crate::machine::MachineSpec;
use crate::problem::{Normalization, ProblemSpec, Proven, TargetUnit};
use crate::run::Status;
use crate::sharing::{Parts, Reach, Sharing, SharingSpec};
use crate::solver::relative_gap;

/// A sample set with its machines, until it is asked for.
type Waiting = Option<(SupportSet, Vec<TaskModel>)>;

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
        let mut left: Vec<Vec<Waiting>> = Vec::new();
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
            return Err(strange("not as many machines as there are tasks"));
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

    /// Its machines, and the samples that they need.
    pub fn into_machines(self) -> Machines {
        Machines {
            kernels: self.kernels,
            machine: self.machine,
            normalize: self.normalize,
            sets: self.sets,
            tasks: self.tasks,
        }
    }

    /// The same without its machines: weights, names, certificate and notes. What it would predict means nothing.
    #[must_use]
    pub fn without_machines(&self) -> Self {
        let set = |set: &SupportSet| SupportSet {
            rows: set
                .rows
                .rows(set.positions.len(), set.columns.len())
                .select([]),
            positions: Vec::new(),
            given_diagonals: (set.given_diagonals.keys())
                .map(|name| (name.clone(), Vec::new()))
                .collect(),
            origins: None,
            ..set.clone()
        };
        let task = |task: &TaskModel| TaskModel {
            support: Vec::new(),
            beta: Vec::new(),
            witness: None,
            ..task.clone()
        };
        Self {
            sets: self.sets.iter().map(set).collect(),
            tasks: self.tasks.iter().map(task).collect(),
            ..self.clone()
        }
    }

    /// The same with the machines of these models: for each of its sample sets the model that has it, and its number there.
    ///
    /// # Errors
    /// When a sample set is not there, or the machines are not those of its tasks.
    pub fn with_machines(&self, models: Vec<Self>, order: &[(usize, usize)]) -> Result<Self> {
        let parts = models.into_iter().map(Self::into_machines).collect();
        let Machines { sets, tasks, .. } = Machines::joined(parts, order)?;
        let is_same = |(own, known): (&TaskModel, &TaskModel)| {
            (&own.name, own.set, own.samples) == (&known.name, known.set, known.samples)
        };
        if tasks.len() != self.tasks.len() || !tasks.iter().zip(&self.tasks).all(is_same) {
            return Err(strange("machines of other tasks"));
        }
        Ok(Self {
            sets,
            tasks,
            ..self.clone()
        })
    }

    /// The machines of a part of a larger problem as a model that can be used alone. What it states is of the problem in which each of its tasks has
    /// the weights that it has here: `allowed` is how far objective and bound of the whole may be apart.
    ///
    /// At θ given, Σ_t P_t ≥ J(θ) ≥ Σ_t (constant_t − ⟨s_t, θᵗ⟩), and ⟨s, θ⟩ ≤ σ_Ψ(s): the gaps of all parts add up to no more than that of the whole.
    pub(crate) fn standing_alone(self, proven: &Proven, allowed: f64, status: Status) -> Self {
        let objective: f64 = proven.primal.iter().sum();
        let bound = proven.constant.iter().sum::<f64>() - proven.sensitivities.dot(&self.theta);
        let gap = relative_gap(objective, bound);
        let tolerance = allowed / objective.abs().max(f64::MIN_POSITIVE);
        let label = if self.theta.rows() > 1 {
            "specific"
        } else {
            "common"
        };
        let reach = if self.theta.rows() > 1 {
            Reach::Each
        } else {
            Reach::All
        };
        let weights = Part {
            label: label.to_string(),
            reach: reach.clone(),
            names: Vec::new(),
            weights: self.theta.clone(),
        };
        let is_each = reach == Reach::Each;
        Self {
            sharing: SharingSpec::fixed_at(&self.theta),
            parts: vec![weights],
            common: (!is_each).then(|| self.theta.clone()),
            specific: is_each.then(|| self.theta.clone()),
            outcome: Outcome {
                status: match status {
                    Status::Converged if gap > tolerance => Status::Stalled,
                    status => status,
                },
                objective,
                bound,
                gap,
                tolerance: Some(tolerance),
                ..self.outcome
            },
            ..self
        }
    }
}

fn strange(what: &str) -> Error {
    Error::Engine(format!("the parts of its model have {what}"))
}
