//! ‖θ‖_p ≤ radius, for one task (L_p-MKL).

use super::{P, RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;
use crate::error::Error;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "lp",
        help: "‖θ‖_p ≤ radius, one task",
        parameters: &[P, RADIUS],
    },
    terms: |values, shape| {
        if shape.tasks > 1 {
            return Err(Error::param(
                "sharing",
                format!("`lp` with {} tasks", shape.tasks),
                "`common`, `independent`, `group`, `pscs` or `tang` for more than one task",
            ));
        }
        Ok(vec![TermSpec::Common(SetSpec::lp_ball(values))])
    },
    examples: |shape| match shape.tasks {
        1 => [1.0, 1.33, 2.0].map(|p| SharingSpec::lp(p, 1.0)).to_vec(),
        _ => Vec::new(),
    },
};

impl SharingSpec {
    /// ‖θ‖_p ≤ radius, for one task.
    pub fn lp(p: f64, radius: f64) -> Self {
        Self::of(&ENTRY, [p, radius])
    }
}
