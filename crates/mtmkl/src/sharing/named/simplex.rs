//! Σ_m θ_m = 1, one θ for all tasks (SimpleMKL).

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "simplex",
        help: "one θ for all tasks, Σθ = 1 (SimpleMKL)",
        parameters: &[],
    },
    terms: |_, _| Ok(vec![TermSpec::Common(SetSpec::Simplex { total: 1.0 })]),
    examples: |_| vec![SharingSpec::simplex()],
};

impl SharingSpec {
    /// One θ for all tasks, Σθ = 1.
    pub fn simplex() -> Self {
        Self::of(&ENTRY, [0.0; 0])
    }
}
