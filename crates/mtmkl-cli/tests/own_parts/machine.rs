//! A machine of one's own: quantile regression.

use std::sync::Arc;

use mtmkl::Task;
use mtmkl::entry::{Parameter, Part, Range};
use mtmkl::error::Result;
use mtmkl::machine::{
    Conjugate, Dual, Machine, MachineEntry, MachineSpec, TargetKind, Variables, check_values,
    numbers, weight,
};

/// max y'β − ½ β'Kβ, −C(1 − τ) ≤ β_i ≤ Cτ, 1'β = 0.
///
/// Primal: min ½‖w‖² + C Σ_i ρ_τ(y_i − ⟨w, φ(x_i)⟩ − b), ρ_τ(r) = max(τ r, (τ − 1) r): the share τ of the values is below the
/// prediction. Takeuchi et al. (2006).
#[derive(Debug)]
struct Quantile {
    c: f64,
    tau: f64,
}

/// How it is known.
pub(crate) static ENTRY: MachineEntry = MachineEntry {
    part: Part {
        name: "quantile",
        help: "quantile regression",
        parameters: &[
            Parameter::number("C", Range::Positive, "the price of an error")
                .or(1.0)
                .tried(&[0.1, 1.0, 10.0]),
            Parameter::number("tau", Range::Share, "the share of values below").or(0.5),
        ],
    },
    targets: TargetKind::Values,
    build: |values| {
        Arc::new(Quantile {
            c: values.number("C"),
            tau: values.number("tau"),
        })
    },
    examples: || {
        vec![
            MachineSpec::of(&ENTRY, [1.0]),
            MachineSpec::of(&ENTRY, [3.0, 0.8]),
        ]
    },
};

impl Machine for Quantile {
    fn name(&self) -> &'static str {
        ENTRY.part.name
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_values(self.name(), task)
    }

    fn dual(&self, task: &Task, samples: usize) -> Dual {
        let bounds = |share: f64| (0..samples).map(move |row| self.c * share * weight(task, row));
        Dual {
            scale: 1.0,
            variables: Variables::one_each(samples),
            linear: numbers(task).to_vec(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: bounds(self.tau - 1.0).collect(),
                upper: bounds(self.tau).collect(),
                sum: 0.0,
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        decision
    }
}
