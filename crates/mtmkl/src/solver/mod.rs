//! min over θ in Ψ of J(θ): the outer solvers. They see grids, the sharing and the engine's trait, never data.
//!
//! - [`Newton`] (`newton`, steps and damping) minimises a model of J over Ψ at each step (`interior`), which also knows what other evaluations said
//!   (`bundle`);
//! - [`Epf`] is the paper's Algorithm 1.
//!
//! Both keep a certificate: for any θ in Ψ and any feasible α, converged or not,
//!
//! D(α) = (part of ḡ without θ) − σ_Ψ(s(α))  ≤  J*  ≤  J(θ) ≤ Σ_t (value + inner gap)
//!
//! so the difference is a rigorous optimality gap for the whole problem.

mod bundle;
mod certificate;
mod epf;
mod interior;
mod newton;

use serde::{Deserialize, Serialize};

pub use epf::Epf;
pub use newton::Newton;

pub(crate) use certificate::relative_gap;
use certificate::{Candidate, Certificate};

use crate::engine::{Engine, Mixture};
use crate::error::Result;
use crate::grid::Grid;
use crate::run::{Pass, Run, Status};
use crate::sharing::{Parts, Sharing};

/// The answer of an outer solver: θ with the best certified objective.
#[derive(Debug, Clone)]
pub struct Solution {
    /// θ in summand variables.
    pub parts: Parts,
    /// θ, T × M.
    pub theta: Grid,
    /// How the run ended.
    pub status: Status,
    /// An upper bound on J(θ), and so on J*.
    pub objective: f64,
    /// A lower bound on J*.
    pub bound: f64,
    /// (objective − bound) / |objective|.
    pub gap: f64,
    /// The tolerance that was asked for.
    pub tolerance: f64,
    /// For each task the number of the evaluation whose machine `objective` is of.
    pub machines: Vec<usize>,
    /// For each task the mixture of evaluations that proves `bound`.
    pub witness: Vec<Mixture>,
    /// Why another solver than the one that was asked did the work.
    pub fallback: Option<Fallback>,
    /// Every pass, in order.
    pub trace: Vec<Pass>,
}

/// An outer solver.
pub trait Solver: std::fmt::Debug + Send + Sync {
    /// Minimises J over Ψ, from `start` or, without it, from the balanced point of the sharing.
    ///
    /// # Errors
    /// When an inner problem breaks down numerically.
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Solution>;
}

/// An outer solver by name, with its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SolverSpec {
    /// [`Newton`]: second-order steps, the default.
    #[default]
    Newton,
    /// [`Epf`]: the paper's Algorithm 1, with these parameters.
    Epf(Epf),
}

impl SolverSpec {
    /// The solver itself.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn build(&self) -> Result<Box<dyn Solver>> {
        Ok(match self {
            Self::Newton => Box::new(Newton),
            Self::Epf(epf) => {
                epf.check()?;
                Box::new(epf.clone())
            }
        })
    }
}

/// Why [`Newton`] handed a problem over to [`Epf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Fallback {
    /// A term of the sharing has no description for the second-order model.
    Sharing,
    /// A kernel is indefinite, so that ḡ is not concave.
    Indefinite,
}

/// Inner problems are solved to this part of the outer gap, so that it can fall tenfold before their gaps are what is left of it, …
const OF_GAP: f64 = 0.1;
/// … never tighter than to this part of the tolerance, which leaves four fifths of it to the outer gap, …
const OF_TOLERANCE: f64 = 0.2;
/// … and never looser than to this: sensitivities are off by the root of the inner gap, and 3 % is what a step can bear.
const LOOSEST: f64 = 1e-3;

/// How tightly to solve the inner problems, relative to J, when the outer gap is this.
fn inner_accuracy(gap: f64, tolerance: f64) -> f64 {
    (OF_GAP * gap).clamp((OF_TOLERANCE * tolerance).min(LOOSEST), LOOSEST)
}
