//! CS: θᵗ = ζ for all tasks, ‖ζ‖_p ≤ radius.

use super::{P, RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "common",
        help: "one θ for all tasks, ‖θ‖_p ≤ radius",
        parameters: &[P, RADIUS],
    },
    terms: |values, _| Ok(vec![TermSpec::Common(SetSpec::lp_ball(values))]),
    examples: |_| {
        [1.0, 1.5, 2.0]
            .map(|p| SharingSpec::common(p, 1.5))
            .to_vec()
    },
};

impl SharingSpec {
    /// One θ for all tasks, ‖θ‖_p ≤ radius.
    pub fn common(p: f64, radius: f64) -> Self {
        Self::of(&ENTRY, [p, radius])
    }
}
