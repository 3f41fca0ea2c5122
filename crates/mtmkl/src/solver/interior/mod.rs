//! The quadratic model of J, minimised over Ψ by a primal–dual interior point method.
//!
//! - [`model`](Model): the model and what its minimum is; the loop over iterations.
//! - `competitors`: the few tasks that it is minimised among where the others get nothing.
//! - `predictor_corrector`: one iteration, Mehrotra's predictor and corrector.
//! - `term`: the variables, slacks and multipliers of one term of the sharing; `barrier`, one file for each kind of constraint.
//! - `epigraph`: the cuts of a task, as an epigraph variable that is eliminated before the system is factored.
//! - `kkt`: the Newton matrix, factored by its structure.

mod barrier;
mod competitors;
mod epigraph;
mod kkt;
mod model;
mod norm;
mod predictor_corrector;
mod term;

pub(super) use model::{Minimum, Model};
