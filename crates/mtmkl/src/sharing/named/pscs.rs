//! Partially shared common space: θᵗ = ζ + γᵗ, ‖ζ‖_p ≤ radius, (Σ_t ‖γᵗ‖_p^q)^{1/q} ≤ radius.

use super::{P, Q, RADIUS, SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::Part;

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "pscs",
        help: "θᵗ = ζ + γᵗ, ζ in an L_p ball, γ in an L_p–L_q group ball",
        parameters: &[P, Q, RADIUS],
    },
    terms: |values, _| {
        let common = TermSpec::Common(SetSpec::lp_ball(values));
        Ok(vec![common, TermSpec::group(values)])
    },
    examples: |_| {
        [(2.0, 1.0), (1.1, 1.0), (1.1, 1.5), (2.0, 2.0), (1.0, 1.0)]
            .map(|(p, q)| SharingSpec::pscs(p, q, 1.0))
            .to_vec()
    },
};

impl SharingSpec {
    /// θᵗ = ζ + γᵗ, ‖ζ‖_p ≤ radius, (Σ_t ‖γᵗ‖_p^q)^{1/q} ≤ radius.
    pub fn pscs(p: f64, q: f64, radius: f64) -> Self {
        Self::of(&ENTRY, [p, q, radius])
    }
}
