//! Kernel ridge regression.

use super::{
    Conjugate, Dual, Machine, MachineInfo, MachineSpec, TargetKind, Variables, check_positive,
    check_values, numbers, weight,
};
use crate::data::Task;
use crate::error::{DataProblem, Error, Place, Result};

/// max 2α'y − α'(Λ + K)α over all α, Λ_ii = λ / (weight of the sample): α = (Λ + K)⁻¹y, value y'(Λ + K)⁻¹y.
///
/// Primal: min Σ_i (weight_i/λ) (y_i − ⟨w, φ(x_i)⟩)² + ‖w‖². No offset: centre the targets. Saunders, Gammerman and Vovk (1998).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Krr {
    /// λ > 0.
    pub lambda: f64,
}

/// How it is known.
pub(super) const ENTRY: MachineInfo = MachineInfo {
    name: "krr",
    help: "kernel ridge regression",
    parameters: &["lambda"],
    targets: TargetKind::Values,
    examples: || vec![MachineSpec::Krr { lambda: 0.5 }],
};

impl Machine for Krr {
    fn name(&self) -> &'static str {
        "krr"
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        check_positive("lambda", self.lambda)?;
        check_values(self.name(), task)?;
        let zero = task
            .weights
            .as_ref()
            .and_then(|weights| weights.iter().position(|&weight| weight == 0.0));
        match zero {
            Some(row) => {
                let place = Place::TaskRow {
                    task: task.name.clone(),
                    row,
                };
                Err(Error::data(place, DataProblem::ZeroWeight("krr")))
            }
            None => Ok(()),
        }
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
