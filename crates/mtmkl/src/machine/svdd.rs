//! Support vector data description.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, TargetKind, Variables, check_unlabelled,
    sign, total_weight, weight,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::{DataProblem, Error, Place, Result};

/// max α'diag(K) − α'Kα, 0 ≤ α_i ≤ C w_i, 1'α = 1: the smallest sphere around the samples, with outliers at price C times their
/// weight w_i.
///
/// Primal: min R² + C Σ_i w_i (‖φ(x_i) − centre‖² − R²)₊. Decision: R² − ‖φ(x) − centre‖², ≥ 0 inside. Tax and Duin (1999).
///
/// All sensitivities are ≤ 0, since spread only grows with θ: it needs a sharing that excludes θ = 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Svdd {
    /// C ≥ 1/n, or 1/Σw where the samples have weights.
    pub c: f64,
}

/// How it is known.
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "svdd",
        help: "support vector data description (the smallest sphere)",
        parameters: &[
            Parameter::number("C", Range::Positive, "the price of an error")
                .or(1.0)
                .tried(&[0.05, 0.1, 0.2, 0.5, 1.0]),
        ],
    },
    targets: TargetKind::Unlabelled,
    build: |values| {
        Arc::new(Svdd {
            c: values.number("C"),
        })
    },
    examples: || vec![MachineSpec::svdd(0.2)],
};

impl MachineSpec {
    /// [`Svdd`]
    pub fn svdd(c: f64) -> Self {
        Self::of(&ENTRY, [c])
    }
}

impl Machine for Svdd {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, samples: usize) -> Result<()> {
        check_unlabelled(self.name(), task)?;
        let least = 1.0 / total_weight(task, samples);
        if self.c < least * (1.0 - 1e-12) {
            let problem = DataProblem::BoundTooSmall {
                c: self.c,
                least,
                samples,
            };
            return Err(Error::data(Place::Task(task.name.clone()), problem));
        }
        Ok(())
    }

    fn dual(&self, task: &Task, samples: usize) -> Dual {
        // At C = 1/n exactly, rounding must not leave the sum out of reach.
        let each = self.c.max(1.0 / total_weight(task, samples));
        Dual {
            scale: 2.0,
            variables: Variables::one_each(samples),
            linear: vec![0.0; samples],
            diagonal: 0.5,
            conjugate: Conjugate::Box {
                lower: vec![0.0; samples],
                upper: (0..samples).map(|row| each * weight(task, row)).collect(),
                sum: 1.0,
            },
        }
    }

    fn decision(&self, f: f64, own: f64) -> f64 {
        // R² − ‖φ(x) − centre‖² = (2b + α'Kα) − (k(x,x) − 2 Σ α_i k(x_i,x) + α'Kα)
        2.0 * f - own
    }

    fn uses_own_kernel(&self) -> bool {
        true
    }

    fn predict(&self, decision: f64) -> f64 {
        sign(decision)
    }

    fn shrinks_kernels(&self) -> bool {
        true
    }
}
