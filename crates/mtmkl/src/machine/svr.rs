//! ε-insensitive support vector regression.

use super::{
    Conjugate, Dual, Machine, MachineInfo, MachineSpec, TargetKind, Variables, check_positive,
    check_values, numbers, weight,
};
use crate::data::Task;
use crate::error::{Error, Result};

/// max y'β − ε‖β‖₁ − ½ β'Kβ, |β_i| ≤ C_i, 1'β = 0.
///
/// Primal: min ½‖w‖² + Σ_i C_i (|y_i − ⟨w, φ(x_i)⟩ − b| − ε)₊. Two variables a sample, one ≥ 0 and one ≤ 0, make ‖β‖₁ linear.
/// Vapnik (1995).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Svr {
    /// C > 0.
    pub c: f64,
    /// ε ≥ 0, the width of the tube.
    pub epsilon: f64,
}

/// How it is known.
pub(super) const ENTRY: MachineInfo = MachineInfo {
    name: "svr",
    help: "ε-insensitive support vector regression",
    parameters: &["C", "epsilon"],
    targets: TargetKind::Values,
    examples: || {
        vec![
            MachineSpec::Svr {
                c: 2.0,
                epsilon: 0.1,
            },
            MachineSpec::Svr {
                c: 1.0,
                epsilon: 0.0,
            },
        ]
    },
};

impl Machine for Svr {
    fn name(&self) -> &'static str {
        "svr"
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_positive("C", self.c)?;
        if !(self.epsilon.is_finite() && self.epsilon >= 0.0) {
            return Err(Error::param("epsilon", self.epsilon, "a finite number ≥ 0"));
        }
        check_values(self.name(), task)
    }

    fn dual(&self, task: &Task, _samples: usize) -> Dual {
        let values = numbers(task);
        let n = values.len();
        let bounds: Vec<f64> = (0..n).map(|row| self.c * weight(task, row)).collect();
        let zeros = vec![0.0; n];
        Dual {
            scale: 1.0,
            variables: Variables::new(n, 2),
            linear: values
                .iter()
                .map(|y| y - self.epsilon)
                .chain(values.iter().map(|y| y + self.epsilon))
                .collect(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: zeros
                    .iter()
                    .copied()
                    .chain(bounds.iter().map(|bound| -bound))
                    .collect(),
                upper: bounds
                    .iter()
                    .copied()
                    .chain(zeros.iter().copied())
                    .collect(),
                sum: 0.0,
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        decision
    }
}
