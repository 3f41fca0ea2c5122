//! Support vector data description.

use super::{
    Conjugate, Dual, Machine, MachineInfo, MachineSpec, TargetKind, Variables, check_positive,
    check_unlabelled, sign, total_weight, weight,
};
use crate::data::Task;
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
pub(super) const ENTRY: MachineInfo = MachineInfo {
    name: "svdd",
    help: "support vector data description (the smallest sphere)",
    parameters: &["C"],
    targets: TargetKind::Unlabelled,
    examples: || vec![MachineSpec::Svdd { c: 0.2 }],
};

impl Machine for Svdd {
    fn name(&self) -> &'static str {
        "svdd"
    }

    fn check(&self, task: &Task, samples: usize) -> Result<()> {
        check_positive("C", self.c)?;
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
