//! ε-insensitive support vector regression.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, PRICES, TargetKind, Variables,
    check_values, numbers, weight,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::Result;

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
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "svr",
        help: "ε-insensitive support vector regression",
        parameters: &[
            Parameter::number("C", Range::Positive, "the price of an error")
                .or(1.0)
                .tried(PRICES),
            Parameter::number(
                "epsilon",
                Range::AtLeast(0.0),
                "the width of the tube, in which errors are free",
            )
            .or(0.1),
        ],
    },
    targets: TargetKind::Values,
    build: |values| {
        Arc::new(Svr {
            c: values.number("C"),
            epsilon: values.number("epsilon"),
        })
    },
    examples: || vec![MachineSpec::svr(2.0, 0.1), MachineSpec::svr(1.0, 0.0)],
};

impl MachineSpec {
    /// [`Svr`]
    pub fn svr(c: f64, epsilon: f64) -> Self {
        Self::of(&ENTRY, [c, epsilon])
    }
}

impl Machine for Svr {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
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
