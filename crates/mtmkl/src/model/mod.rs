//! What a fit leaves behind: kernel weights, machines, the certificate; support rows only.

mod file;
mod header;
mod join;
mod kernels;
mod origins;
mod parts;
mod predict;
mod read;
mod rows;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use file::ELSEWHERE;
pub use join::Machines;
pub use parts::Part;
pub use predict::{CrossGram, Input};
pub use write::{WholeFile, check_writable, write_whole};

use crate::data::{GivenGram, RowValues, Samples, Task};
use crate::engine::Fitted;
use crate::gram::Normaliser;
use crate::grid::{Grid, Shape};
use crate::kernel::KernelView;
use crate::machine::MachineSpec;
use crate::problem::{Normalization, ProblemSpec, TargetUnit};
use crate::run::{Pass, Status};
use crate::sharing::{Parts, Sharing, SharingSpec};
use crate::solver::{Fallback, SolverSpec};
use crate::task_kernel::Origins;

/// How the fit ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Converged, or why not.
    pub status: Status,
    /// An upper bound on J at the model's θ.
    pub objective: f64,
    /// A certified lower bound on the optimum J*.
    pub bound: f64,
    /// (objective − bound) / |objective|: how far from optimal the answer can be.
    pub gap: f64,
    /// The tolerance that was asked for; not known of models in files of version 1.
    pub tolerance: Option<f64>,
    /// The outer solver that was asked for; not known of models in files of version 1.
    pub solver: Option<SolverSpec>,
    /// Why another solver did the work, where one did.
    pub fallback: Option<Fallback>,
    /// Whether `objective`, `bound` and `gap` are those of the kernels as rounded to single precision.
    pub is_rounded: bool,
    /// Every pass.
    pub trace: Vec<Pass>,
    /// Where the time went.
    pub seconds: Seconds,
}

/// Where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Gram matrices.
    pub kernels: f64,
    /// Everything after.
    pub solve: f64,
}

/// A feasible β̂ that proves its task's part of `bound`: with the other tasks' ones,
///
/// Σ_t (part of ḡ(β̂ᵗ, ·) without θ) − σ_Ψ(s(β̂)) ≥ bound.
///
/// A bound comes from a mixture of evaluations, so that the machine's own β may prove far less.
#[derive(Debug, Clone, PartialEq)]
pub struct Witness {
    /// Positions in the task's sample set, not only among its support rows.
    pub rows: Vec<usize>,
    /// β̂ of these rows; 0 elsewhere.
    pub beta: Vec<f64>,
}

/// The machine of one task: f(x) = Σ_i β_i k(x_i, x) + b over its support rows, in units of what was learned.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskModel {
    /// The task's name.
    pub name: String,
    /// How many samples it was fitted on.
    pub samples: usize,
    /// Which support set its rows are in.
    pub set: usize,
    /// Positions in that support set.
    pub support: Vec<usize>,
    /// β of the support rows.
    pub beta: Vec<f64>,
    /// b.
    pub offset: f64,
    /// What brings decisions back from the units in which the targets were learned.
    pub unit: TargetUnit,
    /// What proves the bound, where it is not β.
    pub witness: Option<Witness>,
}

/// The rows of one sample set that some task needs for prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct SupportSet {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows, one after the other.
    pub rows: RowValues,
    /// Each row's position in the sample set it came from: precomputed kernels refer to it.
    pub positions: Vec<usize>,
    /// How many samples that set had.
    pub samples: usize,
    /// For each precomputed kernel by name: k(x, x) of the support rows, before normalisation.
    pub given_diagonals: BTreeMap<String, Vec<f64>>,
    /// Those precomputed kernels whose k(x, x) is 1 for all samples of that set, not only for the support rows: there it is taken to be
    /// 1 for new samples too.
    pub unit_diagonals: BTreeSet<String>,
    /// The tasks that the rows come from, where kernels are between tasks.
    pub origins: Option<Origins>,
}

/// A fitted model.
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) kernels: Vec<KernelView>,
    pub(crate) machine: MachineSpec,
    pub(crate) sharing: SharingSpec,
    pub(crate) normalize: Normalization,
    pub(crate) theta: Grid,
    pub(crate) parts: Vec<Part>,
    pub(crate) common: Option<Grid>,
    pub(crate) specific: Option<Grid>,
    pub(crate) sets: Vec<SupportSet>,
    pub(crate) tasks: Vec<TaskModel>,
    pub(crate) outcome: Outcome,
    pub(crate) notes: BTreeMap<String, String>,
}

impl SupportSet {
    /// What these tasks on a sample set need of it; its rows by their positions only, where somebody else has them.
    fn of<'a>(
        set: &Samples,
        tasks: impl Iterator<Item = (&'a Task, &'a Fitted)>,
        kernels: &[KernelView],
        with_rows: bool,
    ) -> Self {
        let mut used = vec![false; set.count()];
        for (task, machine) in tasks {
            for (i, &beta) in machine.beta.iter().enumerate() {
                used[task.rows.position(i)] |= beta != 0.0;
            }
        }
        let positions: Vec<usize> = (0..set.count()).filter(|&i| used[i]).collect();
        let given = kernels
            .iter()
            .filter_map(|view| view.kernel.given())
            .filter_map(|name| set.grams().iter().find(|gram| gram.name == name));
        let unit = given
            .clone()
            .filter(|gram| Normaliser::has_unit_diagonal(gram, set.count()));
        let unit_diagonals = unit.map(|gram| gram.name.clone()).collect();
        let diagonal = |gram: &GivenGram| {
            let values = positions.iter().map(|&i| gram.values[i * set.count() + i]);
            (gram.name.clone(), values.collect())
        };
        Self {
            columns: set.columns().to_vec(),
            rows: if with_rows {
                set.rows().select(positions.iter().copied())
            } else {
                RowValues::default()
            },
            samples: set.count(),
            given_diagonals: given.map(diagonal).collect(),
            unit_diagonals,
            origins: (set.origins()).map(|origins| origins.part(positions.iter().copied())),
            positions,
        }
    }
}

impl TaskModel {
    /// The machine of a task, with its support among the rows of its set.
    fn of(
        task: &Task,
        unit: TargetUnit,
        machine: &Fitted,
        witness: &[f64],
        set: &SupportSet,
    ) -> Self {
        let used = |beta: &[f64]| -> (Vec<usize>, Vec<f64>) {
            let values = beta.iter().enumerate().filter(|(_, value)| **value != 0.0);
            values
                .map(|(i, &value)| (task.rows.position(i), value))
                .unzip()
        };
        let (rows, beta) = used(&machine.beta);
        // Every row that a machine uses is in the set, in ascending order.
        let place = |row: usize| set.positions.partition_point(|&known| known < row);
        Self {
            name: task.name.clone(),
            samples: machine.beta.len(),
            set: task.samples,
            support: rows.into_iter().map(place).collect(),
            beta,
            offset: machine.offset,
            unit,
            witness: (witness != machine.beta).then(|| {
                let (rows, beta) = used(witness);
                Witness { rows, beta }
            }),
        }
    }
}

impl Model {
    /// Keeps what prediction needs of a fit.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn assemble(
        spec: &ProblemSpec,
        sets: &[Samples],
        tasks: &[Task],
        units: &[TargetUnit],
        sharing: &Sharing,
        weights: &Parts,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
        outcome: Outcome,
    ) -> Self {
        let machines = Machines::of(spec, sets, tasks, units, fitted, witness, true);
        Self {
            sharing: spec.sharing.clone(),
            parts: parts::labelled(sharing, weights),
            common: sharing.common(weights),
            specific: sharing.specific(weights),
            outcome,
            ..Self::part(machines, sharing.theta(weights))
        }
    }

    /// T × M.
    pub fn shape(&self) -> Shape {
        Shape {
            tasks: self.theta.rows(),
            kernels: self.theta.kernels(),
        }
    }

    /// The kernels, in the order of the weights' columns.
    pub fn kernels(&self) -> &[KernelView] {
        &self.kernels
    }

    /// The machine.
    pub fn machine(&self) -> &MachineSpec {
        &self.machine
    }

    /// The sharing.
    pub fn sharing(&self) -> &SharingSpec {
        &self.sharing
    }

    /// What kernels are divided by.
    pub fn normalize(&self) -> Normalization {
        self.normalize
    }

    /// θ, T × M.
    pub fn weights(&self) -> &Grid {
        &self.theta
    }

    /// θ in its summands, one for each term of the sharing.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// ζ, 1 × M, where the sharing has a common part: the sum of the parts of one row for all tasks.
    pub fn common(&self) -> Option<&Grid> {
        self.common.as_ref()
    }

    /// γ, T × M, where the sharing has task-specific parts: the sum of the parts of a row for each task.
    pub fn specific(&self) -> Option<&Grid> {
        self.specific.as_ref()
    }

    /// The machines, in the order of the weights' rows.
    pub fn tasks(&self) -> &[TaskModel] {
        &self.tasks
    }

    /// The support rows.
    pub fn support_sets(&self) -> &[SupportSet] {
        &self.sets
    }

    /// How the fit ended, with its certificate.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Texts that a program keeps with the model (scaling, class names, …); saved with it.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        &self.notes
    }

    /// The same, to write.
    pub fn notes_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.notes
    }
}
