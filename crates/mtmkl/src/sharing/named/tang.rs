//! θᵗ = ζ + γᵗ ≥ 0, Σ_m θ_mᵗ = 1 for every t, Σγ ≤ β (Tang et al.).

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Part, Range};

/// How it is known.
pub(crate) static ENTRY: SharingEntry = SharingEntry {
    part: Part {
        name: "tang",
        help: "θᵗ = ζ + γᵗ, Σ_m θ_mᵗ = 1, Σγ ≤ beta",
        parameters: &[Parameter::number(
            "beta",
            Range::AtLeast(0.0),
            "how much weight may be the tasks' own, over all tasks together",
        )],
    },
    terms: |values, shape| {
        // Σγ ≤ β allows each task an own share b = min(1, β/T): Ψ = (1−b) · common simplex + b · simplex per task.
        let own = (values.number("beta") / shape.tasks as f64).min(1.0);
        let mut terms = Vec::new();
        if own < 1.0 {
            terms.push(TermSpec::Common(SetSpec::Simplex { total: 1.0 - own }));
        }
        if own > 0.0 {
            terms.push(TermSpec::Independent(SetSpec::Simplex { total: own }));
        }
        Ok(terms)
    },
    examples: |shape| {
        let tasks = shape.tasks as f64;
        [0.0, 0.4 * tasks, 2.0 * tasks]
            .map(SharingSpec::tang)
            .to_vec()
    },
};

impl SharingSpec {
    /// θᵗ = ζ + γᵗ, Σ_m θ_mᵗ = 1 for every t, Σγ ≤ β: how much weight may be the tasks' own, over all tasks together.
    pub fn tang(beta: f64) -> Self {
        Self::of(&ENTRY, [beta])
    }
}
