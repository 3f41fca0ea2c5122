//! Damping: a part of the curvature of J's classical upper bound, added to the diagonal of H, task by task.
//!
//! J(θ) ≤ constant + Σ_m θ_k² s_m/θ_m, the majorant whose minimum is the closed-form update of L_p-MKL; its second derivative at θ_k is 2 s_m/θ_k. Where most
//! dual variables sit at their bounds H vanishes, though J bends as soon as they come off; how much of the majorant's curvature is missing is read off J at the last
//! point.

use crate::engine::Curvature;
use crate::grid::Grid;
use crate::solver::bundle::Known;

/// Damping below this is none.
const LEAST: f64 = 1e-3;
/// As far as one point tells, no task needs more: 1 is the majorant's curvature at θ_k, and where weights fall 1/θ bends more than that.
const MOST: f64 = 3.0;
/// After a step that was taken damping falls by no more than this: one good step does not prove that H is to be trusted.
const FALL: f64 = 0.1;
/// A weight at zero must be able to leave it: it counts as this part of the largest.
const LEAST_WEIGHT: f64 = 1e-2;
/// Nothing is divided by zero, where all weights are.
const TINY: f64 = 1e-12;

/// The damping of each task, as a part of the majorant's curvature.
#[derive(Debug, Clone)]
pub(super) struct Damping(Vec<f64>);

impl Damping {
    /// None.
    pub(super) fn none(tasks: usize) -> Self {
        Self(vec![0.0; tasks])
    }

    /// What to add to the diagonal of each task's H, where any is.
    pub(super) fn diagonal(&self, at: &Known) -> Option<Grid> {
        if self.0.iter().all(|&damping| damping <= 0.0) {
            return None;
        }
        let mut diagonal = majorant_curvature(at);
        for (task, damping) in self.0.iter().enumerate() {
            for value in diagonal.row_mut(task) {
                *value *= damping;
            }
        }
        Some(diagonal)
    }

    /// After a step from `before` to `now` that was taken: does the curvature, seen from there, explain what J was before? Where J fell as far as it should or
    /// further, it may have bent twice as much: it bends less and less on the way, as 1/θ does, and damping would only make the next step too short.
    pub(super) fn after_step(
        &mut self,
        before: (&Known, &[Curvature]),
        now: (&Known, &[Curvature]),
    ) {
        let foretold = before.0.foretells(now.0, before.1);
        let forgiven: Vec<f64> = foretold.iter().map(|&f| f64::from(u8::from(f))).collect();
        let full = majorant_curvature(now.0);
        let missing = now.0.missing(before.0, now.1, &full, &forgiven);
        for (damping, missing) in self.0.iter_mut().zip(missing) {
            *damping = missing.min(MOST).max(FALL * *damping);
            if *damping < LEAST {
                *damping = 0.0;
            }
        }
    }

    /// By how much the model here mistook J there, as damping that would have told.
    pub(super) fn missing(here: (&Known, &[Curvature]), there: &Known) -> Vec<f64> {
        let unforgiven = vec![0.0; here.0.values.len()];
        let full = majorant_curvature(here.0);
        here.0.missing(there, here.1, &full, &unforgiven)
    }

    /// After a step that was refused: at least what was missing.
    pub(super) fn after_refusal(&mut self, missing: &[f64]) {
        for (damping, &missing) in self.0.iter_mut().zip(missing) {
            if missing > LEAST {
                *damping = damping.max(missing.min(MOST));
            }
        }
    }
}

/// 2|s_m| / θ_m
fn majorant_curvature(at: &Known) -> Grid {
    let theta = &at.theta;
    // Of all tasks: one without any weight must be able to get some.
    let largest = theta.values().iter().fold(0.0_f64, |a, &b| a.max(b));
    let pairs = at.sensitivities.values().iter().zip(theta.values());
    let values = pairs.map(|(s, weight)| 2.0 * s.abs() / (weight + LEAST_WEIGHT * largest + TINY));
    Grid::from_values(theta.rows(), theta.kernels(), values.collect())
}
