//! One model from the machines of several: tasks that were fitted in different places to the same θ in Ψ; and one whose machines are elsewhere.

use std::collections::BTreeMap;

use super::{Model, Outcome, Part, Seconds, SupportSet, TaskModel, parts};
use crate::data::{Samples, Task};
use crate::engine::Fitted;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::problem::{ProblemSpec, Proven, TargetUnit};
use crate::run::Status;
use crate::sharing::{Parts, Reach, Sharing, SharingSpec};
use crate::solver::relative_gap;

impl Model {
    /// The machines of some tasks at their rows of θ, for [`Model::joined`]; the outcome says nothing yet.
    pub(crate) fn part(
        spec: &ProblemSpec,
        sets: &[Samples],
        tasks: &[Task],
        units: &[TargetUnit],
        theta: Grid,
        fitted: Vec<Fitted>,
        witness: Vec<Vec<f64>>,
    ) -> Self {
        let sets: Vec<SupportSet> = (sets.iter().enumerate())
            .map(|(index, set)| {
                let machines = tasks.iter().zip(&fitted);
                let own = machines.filter(|(task, _)| task.samples == index);
                SupportSet::of(set, own, &spec.kernels)
            })
            .collect();
        let machines = tasks.iter().zip(units).zip(fitted).zip(witness);
        let tasks = machines
            .map(|(((task, &unit), machine), witness)| {
                TaskModel::of(task, unit, &machine, &witness, &sets[task.samples])
            })
            .collect();
        Self {
            kernels: spec.kernels.clone(),
            machine: spec.machine.clone(),
            sharing: spec.sharing.clone(),
            normalize: spec.normalize,
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

    /// One model of all sample sets and their tasks, in this order: for each sample set, the part that it is in and its number there. The weights are
    /// those of the whole.
    ///
    /// # Errors
    /// When a sample set is not there, or the tasks are not as many as Ψ is for.
    pub(crate) fn joined(
        models: &[Self],
        order: &[(usize, usize)],
        spec: &SharingSpec,
        sharing: &Sharing,
        weights: &Parts,
        outcome: Outcome,
    ) -> Result<Self> {
        let first = (models.first()).ok_or_else(|| strange("no machines"))?;
        let (sets, tasks) = gathered(models, order)?;
        if tasks.len() != sharing.shape().tasks {
            return Err(strange("not as many machines as there are tasks"));
        }
        Ok(Self {
            kernels: first.kernels.clone(),
            machine: first.machine.clone(),
            sharing: spec.clone(),
            normalize: first.normalize,
            theta: sharing.theta(weights),
            parts: parts::labelled(sharing, weights),
            common: sharing.common(weights),
            specific: sharing.specific(weights),
            sets,
            tasks,
            outcome,
            notes: BTreeMap::new(),
        })
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
    pub fn with_machines(&self, models: &[Self], order: &[(usize, usize)]) -> Result<Self> {
        let (sets, tasks) = gathered(models, order)?;
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

/// The sample sets of several models and their tasks, in this order.
fn gathered(
    models: &[Model],
    order: &[(usize, usize)],
) -> Result<(Vec<SupportSet>, Vec<TaskModel>)> {
    let (mut sets, mut tasks) = (Vec::new(), Vec::new());
    for &(part, set) in order {
        let own = models.get(part).and_then(|model| model.sets.get(set));
        let own = own.ok_or_else(|| strange("not the sample sets that were said"))?;
        for task in models[part].tasks.iter().filter(|task| task.set == set) {
            tasks.push(TaskModel {
                set: sets.len(),
                ..task.clone()
            });
        }
        sets.push(own.clone());
    }
    Ok((sets, tasks))
}
