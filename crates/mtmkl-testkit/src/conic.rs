//! min over θ in Ψ of max over α in Ω of `Σ_t` ḡ(α^t, `Σ_m` `θ_m^t` `K_m^t`), by a general conic solver.
//!
//! ḡ is affine in θ and concave in α, and Ψ is convex and bounded, so the order may be turned round: the optimum is the
//! largest, over α, of (the part of ḡ without θ) − `σ_Ψ(s(α))`, where s are the sensitivities and `σ_Ψ(s)` = max over θ in Ψ
//! of ⟨s, θ⟩ is the support function. That is one concave problem in α alone. Each `s_m` is a convex quadratic of α and σ
//! never falls when an entry of s rises (θ ≥ 0), so t ≥ s(α) may stand for s: quadratics become second-order cones and
//! σ is written by its dual. No formula, step or rounding is shared with a Frank–Wolfe or Newton method on θ.

mod cutting;
mod model;
mod problem;
mod programme;
mod scale;
mod sets;
mod support;
#[cfg(test)]
mod tests;

pub use cutting::cutting;
use model::{assemble, pivoted_cholesky, read};
pub use problem::{Machine, Set, Task, Term};
use problem::{check, size};
use programme::{Affine, Programme};
use scale::{guess, rescale};
pub use sets::{Maximum, maximum, nearest};
use sets::{rows_of, sum_of};

/// Tolerance asked of the solver, on a problem scaled to order one.
const TOLERANCE: f64 = 1e-10;

/// Largest relative error (gap, residuals by their effect on the value) with which an answer counts as solved.
const ACCEPTED: f64 = 1e-8;

/// J* = max over α of (θ-free part) − `σ_Ψ(s(α))`, and where it is reached.
#[derive(Clone, Debug)]
pub struct Optimum {
    /// J*.
    pub value: f64,
    /// The maximiser, one vector a task, in the machine's own variable (α; β for [`Machine::Svr`]).
    pub alpha: Vec<Vec<f64>>,
    /// The minimising weights, T rows of M: the multipliers of t ≥ s(α). Not unique where J is flat.
    pub theta: Vec<Vec<f64>>,
    /// Whether the gap and the effect of the residuals on the value are below 1e-8, relative.
    pub solved: bool,
    /// How far the value may be off: the gap, the dual residual and the effect of the primal residuals, times the size of J.
    pub error: f64,
    /// The size of what the value is the sum of: the value itself, or the largest sensitivity.
    pub unit: f64,
}

impl Optimum {
    /// By how much J* may differ because the factors LL' that were used are not quite the kernels: Σ θ |α|'|K − LL'||α|.
    pub fn factor_error(&self, tasks: &[Task]) -> f64 {
        let mut error = 0.0;
        for ((task, alpha), theta) in tasks.iter().zip(&self.alpha).zip(&self.theta) {
            let n = task.samples;
            for (gram, weight) in task.grams.iter().zip(theta) {
                let columns = pivoted_cholesky(gram, n);
                for i in 0..n {
                    for j in 0..n {
                        let made: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
                        let rest = (gram[i * n + j] - made).abs();
                        error += weight.max(0.0) * rest * (alpha[i] * alpha[j]).abs();
                    }
                }
            }
        }
        error
    }
}

/// J* = max over α in Ω of (θ-free part of `Σ_t` ḡ) − `σ_Ψ(s(α))`, the support-function form of min over Ψ of max over Ω.
///
/// Solved twice: a rough pass finds the size of α, s and J, the second is scaled by them.
pub fn optimum(tasks: &[Task], sharing: &[Term]) -> Optimum {
    let kernels = tasks.first().map_or(0, |task| task.grams.len());
    assert!(kernels > 0, "at least one task and one kernel");
    for task in tasks {
        check(task, kernels);
    }
    let factors: Vec<Vec<Vec<Vec<f64>>>> = tasks
        .iter()
        .map(|task| {
            task.grams
                .iter()
                .map(|gram| pivoted_cholesky(gram, task.samples))
                .collect()
        })
        .collect();

    let mut scale = guess(tasks);
    let mut best: Option<(f64, Optimum)> = None;
    // The first pass only looks for the sizes; a third mends them where the second fell short.
    for (tolerance, accepted) in [(1e-6, 1e-4), (TOLERANCE, ACCEPTED), (TOLERANCE, ACCEPTED)] {
        let model = assemble(tasks, sharing, &factors, &scale);
        let answer = model.programme.solve(tolerance, accepted);
        if best.as_ref().is_none_or(|(error, _)| answer.error < *error) {
            best = Some((answer.error, read(&model, &answer, &scale)));
        }
        if tolerance == TOLERANCE && answer.error < ACCEPTED || !answer.error.is_finite() {
            break;
        }
        scale = rescale(&model, &answer, &scale);
    }
    best.expect("one pass at least").1
}
