//! Given weights: the same for all tasks, or each task's own.

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec, WEIGHTS};
use crate::entry::{Parameter, Part};
use crate::grid::Grid;
use crate::sharing::FixedRows;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "fixed",
        help: "given weights for all tasks",
        parameters: &[Parameter::list("weights", WEIGHTS)],
    },
    terms: |values, shape| {
        let weights = values.list("weights").unwrap_or_default().to_vec();
        // As many as there are tasks and kernels are one row for each task.
        let is_each = shape.tasks > 1 && weights.len() == shape.tasks * shape.kernels;
        Ok(vec![if is_each {
            TermSpec::own(FixedRows { weights })
        } else {
            TermSpec::Common(SetSpec::Fixed { weights })
        }])
    },
    examples: |shape| {
        let weights = |count: usize| (1..=count).map(|kernel| 0.5 * kernel as f64).collect();
        let common = SharingSpec::fixed(weights(shape.kernels));
        let own = SharingSpec::fixed(weights(shape.tasks * shape.kernels));
        let mut all = vec![common, own];
        all.dedup();
        all
    },
};

impl SharingSpec {
    /// These weights: one for each kernel, for all tasks, or a row of them for each task.
    pub fn fixed(weights: Vec<f64>) -> Self {
        Self::of(&ENTRY, [weights])
    }

    /// Each task at its own row of θ.
    pub fn fixed_at(theta: &Grid) -> Self {
        Self::fixed(theta.values().to_vec())
    }
}
