//! One-class support vector machine.

use std::sync::Arc;

use super::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, TargetKind, Variables, check_unlabelled,
    sign, total_weight, weight,
};
use crate::data::Task;
use crate::entry::{Parameter, Part, Range};
use crate::error::Result;

/// max −α'Kα, 0 ≤ α_i ≤ w_i/(ν Σw), 1'α = 1, with w_i the weight of the sample (1 without weights, so that Σw = n): the hyperplane that separates the samples from the origin, at most a share ν left out.
///
/// Decision: Σ_i α_i k(x_i, x) − ρ, ≥ 0 inside. Schölkopf et al. (2001).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OneClass {
    /// ν in (0, 1].
    pub nu: f64,
}

/// How it is known.
pub(super) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "ocsvm",
        help: "one-class support vector machine",
        parameters: &[Parameter::number(
            "nu",
            Range::Share,
            "the share of samples that may be left out",
        )
        .or(0.5)
        .tried(&[0.05, 0.1, 0.2, 0.3, 0.5])],
    },
    targets: TargetKind::Unlabelled,
    build: |values| {
        Arc::new(OneClass {
            nu: values.number("nu"),
        })
    },
    examples: || vec![MachineSpec::one_class(0.3)],
};

impl MachineSpec {
    /// [`OneClass`]
    pub fn one_class(nu: f64) -> Self {
        Self::of(&ENTRY, [nu])
    }
}

impl Machine for OneClass {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_unlabelled(self.name(), task)
    }

    fn dual(&self, task: &Task, samples: usize) -> Dual {
        let each = 1.0 / (self.nu * total_weight(task, samples));
        Dual {
            scale: 2.0,
            variables: Variables::one_each(samples),
            linear: vec![0.0; samples],
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: vec![0.0; samples],
                upper: (0..samples).map(|row| each * weight(task, row)).collect(),
                sum: 1.0,
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        sign(decision)
    }
}
