//! Kernel ridge regression.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, TargetKind, Variables,
    check_positive_weights, check_values, numbers, weight,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::Result;

/// max 2α'y − α'(Λ + K)α over all α, Λ_ii = λ / (weight of the sample): α = (Λ + K)⁻¹y, value y'(Λ + K)⁻¹y.
///
/// Primal: min Σ_i (weight_i/λ) (y_i − ⟨w, φ(x_i)⟩)² + ‖w‖². No offset: centre the targets. Saunders, Gammerman and Vovk (1998).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Krr {
    /// λ > 0.
    pub lambda: f64,
}

/// How it is known.
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "krr",
        help: "kernel ridge regression",
        parameters: &[Parameter::number("lambda", Range::Positive, "the ridge")
            .or(1.0)
            .tried(&[1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0])
            .in_python("alpha")],
    },
    targets: TargetKind::Values,
    build: |values| {
        Arc::new(Krr {
            lambda: values.number("lambda"),
        })
    },
    examples: || vec![MachineSpec::krr(0.5)],
};

impl MachineSpec {
    /// [`Krr`]
    pub fn krr(lambda: f64) -> Self {
        Self::of(&ENTRY, [lambda])
    }
}

impl Machine for Krr {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_values(self.name(), task)?;
        check_positive_weights(self.name(), task)
    }

    fn dual(&self, task: &Task, _samples: usize) -> Dual {
        let values = numbers(task);
        Dual {
            scale: 2.0,
            variables: Variables::one_each(values.len()),
            linear: values.to_vec(),
            diagonal: 0.0,
            conjugate: Conjugate::Ridge {
                ridge: (0..values.len())
                    .map(|row| self.lambda / weight(task, row))
                    .collect(),
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        decision
    }
}
