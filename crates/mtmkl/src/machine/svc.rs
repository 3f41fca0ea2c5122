//! Support vector classification.

use super::{
    Conjugate, Dual, Machine, MachineInfo, MachineSpec, TargetKind, Variables, check_labels,
    check_positive, numbers, sign, weight,
};
use crate::data::Task;
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
pub(super) const ENTRY: MachineInfo = MachineInfo {
    name: "svc",
    help: "support vector classification",
    parameters: &["C", "positive_weight", "negative_weight"],
    targets: TargetKind::Labels,
    examples: || {
        vec![
            MachineSpec::svc(1.0),
            MachineSpec::Svc {
                c: 20.0,
                positive_weight: 2.0,
                negative_weight: 0.5,
            },
        ]
    },
};

impl Machine for Svc {
    fn name(&self) -> &'static str {
        "svc"
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_positive("C", self.c)?;
        check_positive("positive_weight", self.positive_weight)?;
        check_positive("negative_weight", self.negative_weight)?;
        check_labels(self.name(), task).map(|_| ())
    }

    fn dual(&self, task: &Task, _samples: usize) -> Dual {
        let labels = numbers(task);
        let bound = |row: usize| {
            let class = if labels[row] > 0.0 {
                self.positive_weight
            } else {
                self.negative_weight
            };
            labels[row] * self.c * class * weight(task, row)
        };
        Dual {
            scale: 1.0,
            variables: Variables::one_each(labels.len()),
            linear: labels.to_vec(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: (0..labels.len()).map(|row| bound(row).min(0.0)).collect(),
                upper: (0..labels.len()).map(|row| bound(row).max(0.0)).collect(),
                sum: 0.0,
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        sign(decision)
    }
}
