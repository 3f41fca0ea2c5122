//! How one task is solved at one θ: max over β of ḡ(β, θ), with its gap and what J looks like there.
//!
//! A [`State`] keeps the dual variables of a task from pass to pass: Ω does not depend on θ, so β stays feasible. For each kind of conjugate φ
//! of the machine's dual there is one file that solves it, all behind one trait, [`Inner`]:
//!
//! | φ | file | method |
//! |---|---|---|
//! | a box with a sum | `box_qp/` | SMO, direct steps on the free variables, interior points |
//! | ½ρβ² | `ridge.rs` | conjugate gradients with a factor of K + ρ |
//! | smooth | `smooth.rs` | damped Newton steps with K + diag φ'', bordered by the sum, by the same |
//!
//! Solving for β reads rows of K(θ), combined when first asked for; only what J looks like at the answer takes U_m = K_mβ for single
//! kernels (`images.rs`), and that on the support:
//!
//! s_m = −∂J/∂θ_m = κ ( ½ β'U_m − c d_m'β ), ∂²J/∂θ_m∂θ_n = κ u_m'P u_n, u_m = U_m − c d_m.

mod bordered;
mod box_qp;
mod curvature;
mod exact;
mod images;
mod indefiniteness;
mod linear_system;
mod memory;
mod nystrom;
mod point;
mod progress;
mod ridge;
mod rounding;
mod smooth;
mod state;
#[cfg(test)]
mod tests;

pub use curvature::Curvature;
pub(crate) use memory::bytes;
use point::Point;
pub(crate) use progress::Progress;
pub(crate) use state::State;

use crate::error::Result;
use crate::gram::{CombinedRows, TaskGrams};
use crate::run::Stop;

/// The machine of one task as fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// β, one per sample of the task.
    pub beta: Vec<f64>,
    /// b, the multiplier of Σβ = s; 0 without one.
    pub offset: f64,
}

/// The kernels of a task, single and combined, at one θ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here<'a> {
    pub(crate) grams: TaskGrams<'a>,
    pub(crate) rows: &'a CombinedRows<'a>,
    pub(crate) theta: &'a [f64],
}

/// How to evaluate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort<'a> {
    /// The gap to reach, relative to the task's |ḡ|,
    pub(crate) accuracy: f64,
    /// or to this, where it is more: the average |ḡ| of the last evaluation.
    pub(crate) size: f64,
    /// Whether second derivatives are wanted.
    pub(crate) curvature: bool,
    /// Whether SMO leaves variables out of its search.
    pub(crate) shrinking: bool,
    /// Whether ḡ is concave in β.
    pub(crate) concave: bool,
    /// What there is memory for.
    pub(crate) allowance: Allowance,
    /// Give up early, at a feasible point.
    pub(crate) stop: &'a Stop,
}

/// What there is memory for. The same for all evaluations of a task, so that results do not depend on what happens at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Free variables whose K_FF may be factored at a time.
    pub(crate) most_free: usize,
    /// Whether interior points may be used.
    pub(crate) interior_points: bool,
    /// Whether all rows of K(θ) may be kept, where a solver can do without.
    pub(crate) rows: bool,
    /// Whether the factor of a linear system may stay for the next θ.
    pub(crate) factors: bool,
    /// Samples that are solved for at a time, where kernel values are streamed.
    pub(crate) working_set: usize,
}

impl Default for Allowance {
    /// Everything.
    fn default() -> Self {
        Self {
            most_free: usize::MAX,
            interior_points: true,
            rows: true,
            factors: true,
            working_set: usize::MAX,
        }
    }
}

/// What solving for β yields, before U is known.
#[derive(Debug)]
pub(crate) struct Solved {
    /// The part of ḡ without θ.
    constant: f64,
    /// q + c Σ_m θ_m d_m
    linear: Vec<f64>,
    steps: usize,
    /// What rounding can do to ḡ.
    noise: f64,
    /// What rounding can do to Kβ, per sample.
    errors: Vec<f64>,
    /// Plain sums are not good enough for β'Kβ.
    is_delicate: bool,
    /// Where all of β is free, the answer is known already.
    answer: Option<Answer>,
}

impl Solved {
    /// The same where what is not known of slopes is no rounding.
    fn without_noise(mut self) -> Self {
        if let Some(answer) = &mut self.answer {
            answer.noise = 0.0;
        }
        self
    }
}

/// What β is worth.
#[derive(Debug)]
struct Answer {
    /// J − ḡ(β) at most, wherever rounding may have left the slopes.
    gap: f64,
    /// The part of that which is for rounding.
    noise: f64,
    curvature: Option<Curvature>,
}

/// What one evaluation of one task yields.
#[derive(Debug, Clone)]
pub(crate) struct TaskEvaluation {
    pub(crate) value: f64,
    pub(crate) gap: f64,
    pub(crate) sensitivities: Vec<f64>,
    pub(crate) curvature: Option<Curvature>,
    pub(crate) steps: usize,
    pub(crate) noise: f64,
    pub(crate) forgiven: f64,
}

/// A solver for one kind of conjugate. It is made for each call, from the dual and from what the task keeps from pass to pass.
trait Inner {
    /// Brings β, which may come from another problem, into Ω; or next to it, where the solver can begin from there.
    fn start(&self, beta: &mut [f64]);

    /// Improves β for θ until its gap is at most the accuracy asked for; whatever ends it, β is feasible.
    ///
    /// # Errors
    /// When a factorisation breaks down.
    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved>;

    /// One more round where kernel values are streamed and U is that of β on all samples: β is improved, and U has to follow it. Or there is no
    /// need to, and this is what was found.
    ///
    /// # Errors
    /// As [`Inner::solve`].
    fn round(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Solved>>;

    /// What β is worth where there was no time to make U on all samples: |f_i| ≤ √(K_ii β'Kβ) wherever f = Kβ is not known.
    ///
    /// # Errors
    /// As [`Inner::solve`].
    fn unswept(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Result<Solved>;

    /// The offset, the gap with that very offset, and the curvature, once U is up to date; asked for where [`Solved::answer`] has none.
    fn answer(
        &self,
        _point: &mut Point,
        _grams: TaskGrams<'_>,
        _solved: &Solved,
        _effort: &Effort<'_>,
    ) -> Answer {
        Answer {
            gap: f64::INFINITY,
            noise: 0.0,
            curvature: None,
        }
    }
}
