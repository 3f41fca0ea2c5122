//! The textbook's values at a point: J(θ), ḡ in its parts, the support function of Ψ in closed form, the primal of a machine. No line is shared with the
//! product, and none with the conic solver but what p* is, so that what either claims can be checked at the points that it found.

mod searches;
mod sets;
mod values;

pub(crate) use sets::{dual, settle};
pub use sets::{feasible, norm, sigma, violation};
#[cfg(test)]
pub(crate) use sets::{positive, prior_point};
pub use values::{alpha_of, dual_value, inner, outer, parts, primal, solved};

use crate::conic::{self, Task, Term};

/// Bounds further apart than this part of J* are improved by cutting planes, …
const WIDE: f64 = 1e-8;
/// … unless J* is this small beside what it is the sum of: zero, as far as can be seen.
const NOTHING: f64 = 1e-6;
/// So many planes.
const ROUNDS: usize = 60;
/// Bounds that are this near to each other, as a part of J*, or of 1e-3 where it is less, tell what J* is: their middle is off by half of it, a tenth of
/// what fits are held to.
const NARROW: f64 = 2e-7;

/// By how much longer w is tried too: errors of rounding cost a lot where C is a million, and a w that is a little longer makes none.
const STRETCHED: [f64; 4] = [0.0, 1e-11, 1e-10, 1e-9];

/// An interval that holds J*: what α proves once it is moved into Ω, or the best α at θ, and the primal of each machine at weights next to θ that are in Ψ.
/// Nothing needs to be believed of what found α and θ.
pub fn interval(
    tasks: &[Task],
    sharing: &[Term],
    alpha: &[Vec<f64>],
    theta: &[Vec<f64>],
) -> (f64, f64) {
    let inside: Vec<Vec<f64>> = tasks
        .iter()
        .zip(alpha)
        .map(|(task, alpha)| feasible(task, alpha))
        .collect();
    let theta = conic::nearest(sharing, theta);
    let (mut high, mut of_theta) = (0.0, Vec::new());
    for ((task, theta), alpha) in tasks.iter().zip(&theta).zip(&inside) {
        let (_, beta) = solved(task, theta);
        // y is ±1, so that this is its own inverse.
        let own = alpha_of(task, alpha);
        high += STRETCHED
            .iter()
            .map(|by| beta.iter().map(|beta| beta * (1.0 + by)).collect())
            .chain([own])
            .map(|beta: Vec<f64>| primal(task, theta, &beta))
            .fold(f64::INFINITY, f64::min);
        of_theta.push(feasible(task, &alpha_of(task, &beta)));
    }
    let proven = [inside, of_theta].map(|alpha| dual_value(tasks, sharing, &alpha));
    (proven[0].max(proven[1]), high)
}

/// Bounds on J*, and what found the points that prove them.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
    /// By which method.
    pub by: &'static str,
    /// The size of what J* is the sum of.
    pub unit: f64,
}

/// Bounds at the α and θ that the conic solver found, and where these are far apart at those that cutting planes find from there: closed forms, for which
/// neither needs to be believed.
pub fn bounds(tasks: &[Task], sharing: &[Term]) -> Bounds {
    let found = conic::optimum(tasks, sharing);
    let (mut low, mut high) = interval(tasks, sharing, &found.alpha, &found.theta);
    let mut by = "conic";
    if high - low > WIDE * high.abs() && high.abs() > NOTHING * found.unit {
        let (alpha, theta) = conic::cutting(tasks, sharing, &found.theta, ROUNDS);
        let (other_low, other_high) = interval(tasks, sharing, &alpha, &theta);
        (low, high) = (low.max(other_low), high.min(other_high));
        by = "cutting planes";
    }
    Bounds {
        low,
        high,
        by,
        unit: found.unit,
    }
}

/// J*, between bounds that need not be believed.
///
/// # Panics
/// When these are far from each other.
pub fn optimum(tasks: &[Task], sharing: &[Term]) -> f64 {
    let Bounds { low, high, by, .. } = bounds(tasks, sharing);
    let size = high.abs().max(1e-3);
    assert!(
        (high - low).abs() <= NARROW * size,
        "[{low:e}, {high:e}] by {by} says too little"
    );
    0.5 * (low + high)
}
