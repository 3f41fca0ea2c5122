//! Given weights, the same for all tasks.

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec, WEIGHTS};
use crate::entry::{Parameter, Part};

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "fixed",
        help: "given weights for all tasks",
        parameters: &[Parameter::list("weights", WEIGHTS)],
    },
    terms: |values, _| {
        let weights = values.list("weights").unwrap_or_default().to_vec();
        Ok(vec![TermSpec::Common(SetSpec::Fixed { weights })])
    },
    examples: |shape| {
        let weights = (1..=shape.kernels).map(|kernel| 0.5 * kernel as f64);
        vec![SharingSpec::fixed(weights.collect())]
    },
};

impl SharingSpec {
    /// These weights, one for each kernel, for all tasks.
    pub fn fixed(weights: Vec<f64>) -> Self {
        Self::of(&ENTRY, [weights])
    }
}
