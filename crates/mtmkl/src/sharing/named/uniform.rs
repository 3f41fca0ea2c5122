//! θ = 1/M everywhere: the plain average, the baseline to beat.

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec, uniform};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "uniform",
        help: "θ = 1/M everywhere, nothing learned",
        parameters: &[],
    },
    terms: |_, shape| {
        let weights = uniform(shape);
        Ok(vec![TermSpec::Common(SetSpec::Fixed { weights })])
    },
    examples: |_| vec![SharingSpec::uniform()],
};

impl SharingSpec {
    /// θ = 1/M everywhere.
    pub fn uniform() -> Self {
        Self::of(&ENTRY, [0.0; 0])
    }
}
