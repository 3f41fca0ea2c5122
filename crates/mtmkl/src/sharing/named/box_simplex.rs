//! Σ_m θ_m = 1, θ ≤ upper, one θ for all tasks (soft-margin MKL).

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Part, Range};

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "box-simplex",
        help: "one θ for all tasks, Σθ = 1, θ ≤ upper",
        parameters: &[Parameter::number(
            "upper",
            Range::Positive,
            "the bound on each weight",
        )],
    },
    terms: |values, _| {
        Ok(vec![TermSpec::Common(SetSpec::BoxSimplex {
            total: 1.0,
            upper: values.number("upper"),
        })])
    },
    examples: |shape| {
        let least = 1.0 / shape.kernels as f64;
        vec![
            SharingSpec::box_simplex(1.5 * least),
            SharingSpec::box_simplex(least),
        ]
    },
};

impl SharingSpec {
    /// One θ for all tasks, Σθ = 1, θ ≤ upper.
    pub fn box_simplex(upper: f64) -> Self {
        Self::of(&ENTRY, [upper])
    }
}
