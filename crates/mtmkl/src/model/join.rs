//! One model from the machines of several: tasks that were fitted in different places to the same θ in Ψ.

use std::collections::BTreeMap;

use super::{Model, Outcome, Seconds, SupportSet, TaskModel, parts};
use crate::data::{Samples, Task};
use crate::engine::Fitted;
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::problem::{ProblemSpec, TargetUnit};
use crate::run::Status;
use crate::sharing::{Parts, Sharing, SharingSpec};

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
        let strange = |what: &str| Error::Engine(format!("the parts of its model have {what}"));
        let first = (models.first()).ok_or_else(|| strange("no machines"))?;
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
}
