//! IS: ‖θᵗ‖_p ≤ radius for each task.

use super::{P, RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "independent",
        help: "a θ for each task, each ‖θ‖_p ≤ radius",
        parameters: &[P, RADIUS],
    },
    terms: |values, _| Ok(vec![TermSpec::Independent(SetSpec::lp_ball(values))]),
    examples: |_| {
        [1.0, 1.1, 2.0]
            .map(|p| SharingSpec::independent(p, 0.7))
            .to_vec()
    },
};

impl SharingSpec {
    /// A θ for each task, each ‖θ‖_p ≤ radius.
    pub fn independent(p: f64, radius: f64) -> Self {
        Self::of(&ENTRY, [p, radius])
    }
}
