//! Some tasks of a larger problem, whose θ comes from elsewhere: their machines, to be joined with the others'.

use super::{Prepared, Proven};
use crate::engine::Fitted;
use crate::error::Result;
use crate::grid::Grid;
use crate::model::{Machines, Model};

impl Prepared {
    /// These machines and witnesses with what they need of the samples, to be joined with the others' ([`Machines::joined`]); without rows for
    /// whoever has the samples.
    ///
    /// # Errors
    /// When these are not machines of this problem's tasks.
    pub fn machines(
        &self,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
        with_rows: bool,
    ) -> Result<Machines> {
        let problem = self.problem();
        problem.check_machines(fitted, witness)?;
        Ok(Machines::of(
            problem.spec(),
            problem.samples(),
            problem.tasks(),
            &problem.units,
            fitted,
            witness,
            with_rows,
        ))
    }

    /// The same at θ as a model of its own: its weights and its certificate are not those of the whole.
    ///
    /// # Errors
    /// As [`Prepared::machines`].
    pub fn part_model(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Model> {
        let machines = self.machines(fitted, witness, true)?;
        Ok(Model::part(machines, theta.clone()))
    }

    /// What these machines and witnesses prove, task by task; `None` where a kernel cannot be made from rows.
    ///
    /// # Errors
    /// When a kernel's columns are not there; a checked problem has them.
    pub fn prove(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Option<Proven>> {
        let problem = self.problem();
        problem.check_machines(fitted, witness)?;
        self.pool()
            .install(|| problem.prove(theta, fitted, witness))
    }
}
