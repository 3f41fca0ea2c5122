//! Some tasks of a larger problem, whose θ comes from elsewhere: their machines, to be joined with the others'.

use super::{Prepared, Proven};
use crate::engine::Fitted;
use crate::error::Result;
use crate::grid::Grid;
use crate::model::{Machines, Model};
use crate::run::Status;

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

    /// The same as a model that can be used alone, with what it proves. It states what is true of these tasks at these weights (`model/join.rs`); `allowed`
    /// is how far objective and bound of the whole may be apart, and `status` how the whole ended. `None` where a kernel cannot be made from rows.
    ///
    /// # Errors
    /// As [`Prepared::machines`] and [`Prepared::prove`].
    pub fn standing_part(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
        allowed: f64,
        status: Status,
    ) -> Result<Option<(Model, Proven)>> {
        let Some(proven) = self.prove(theta, fitted, witness)? else {
            return Ok(None);
        };
        let machines = self.machines(fitted, witness, true)?;
        let model = Model::part(machines, theta.clone());
        let model = model.standing_alone(&proven, allowed, status);
        Ok(Some((model, proven)))
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
