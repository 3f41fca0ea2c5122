//! (Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius.

use super::{P, Q, RADIUS, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "group",
        help: "(Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius",
        parameters: &[P, Q, RADIUS],
    },
    terms: |values, _| Ok(vec![TermSpec::group(values)]),
    examples: |_| {
        [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.5, 3.0), (3.0, 1.5)]
            .map(|(p, q)| SharingSpec::group(p, q, 2.0))
            .to_vec()
    },
};

impl SharingSpec {
    /// (Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius.
    pub fn group(p: f64, q: f64, radius: f64) -> Self {
        Self::of(&ENTRY, [p, q, radius])
    }
}
