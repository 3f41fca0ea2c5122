//! Support vector classification.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, NEGATIVE_WEIGHT, POSITIVE_WEIGHT, PRICES,
    TargetKind, Variables, check_labels, numbers, sign, signed_prices,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::Result;

/// max 1'α − ½ β'Kβ, β = y∘α, 0 ≤ α_i ≤ C_i, y'α = 0, with C_i = C · (weight of the class) · (weight of the sample).
///
/// Primal: min ½‖w‖² + Σ_i C_i (1 − y_i(⟨w, φ(x_i)⟩ + b))₊. Decision: Σ_i β_i k(x_i, x) + b.
/// Cortes and Vapnik (1995); the ½ is LIBSVM's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Svc {
    /// C > 0.
    pub c: f64,
    /// Factor of C for the class +1, > 0.
    pub positive_weight: f64,
    /// Factor of C for the class −1, > 0.
    pub negative_weight: f64,
}

/// How it is known.
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "svc",
        help: "support vector classification",
        parameters: &[
            Parameter::number("C", Range::Positive, "the price of an error")
                .or(1.0)
                .tried(PRICES),
            POSITIVE_WEIGHT,
            NEGATIVE_WEIGHT,
        ],
    },
    targets: TargetKind::Labels,
    build: |values| {
        Arc::new(Svc {
            c: values.number("C"),
            positive_weight: values.number("positive_weight"),
            negative_weight: values.number("negative_weight"),
        })
    },
    examples: || {
        vec![
            MachineSpec::svc(1.0),
            MachineSpec::weighted_svc(20.0, 2.0, 0.5),
        ]
    },
};

impl MachineSpec {
    /// [`Svc`] with equal class weights.
    pub fn svc(c: f64) -> Self {
        Self::of(&ENTRY, [c])
    }

    /// [`Svc`] with a factor of C for each class.
    pub fn weighted_svc(c: f64, positive_weight: f64, negative_weight: f64) -> Self {
        Self::of(&ENTRY, [c, positive_weight, negative_weight])
    }
}

impl Machine for Svc {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_labels(self.name(), task).map(|_| ())
    }

    fn dual(&self, task: &Task, _samples: usize) -> Dual {
        let labels = numbers(task);
        let ends = signed_prices(task, self.c, [self.negative_weight, self.positive_weight]);
        Dual {
            scale: 1.0,
            variables: Variables::one_each(labels.len()),
            linear: labels.to_vec(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: ends.iter().map(|end| end.min(0.0)).collect(),
                upper: ends.iter().map(|end| end.max(0.0)).collect(),
                sum: 0.0,
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        sign(decision)
    }
}
