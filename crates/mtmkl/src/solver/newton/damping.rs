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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Evaluation;

    /// J and s at θ, one task with two kernels.
    fn known(theta: [f64; 2], value: f64, s: [f64; 2]) -> Known {
        let mut evaluation = Evaluation::zeros(0, 1, 2);
        evaluation.values = vec![value];
        evaluation.sensitivities = Grid::from_values(1, 2, s.to_vec());
        Known::new(&Grid::from_values(1, 2, theta.to_vec()), &evaluation)
    }

    /// 2|s|/(θ + a hundredth of the largest θ).
    fn majorant(s: f64, weight: f64, largest: f64) -> f64 {
        2.0 * s.abs() / (weight + 0.01 * largest)
    }

    #[test]
    fn the_diagonal_is_a_part_of_the_majorant_s_curvature() {
        let at = known([0.0, 2.0], 1.0, [-3.0, 4.0]);
        let mut damping = Damping::none(1);
        assert!(damping.diagonal(&at).is_none());
        damping.after_refusal(&[0.5]);
        let diagonal = damping.diagonal(&at).unwrap();
        for (found, expected) in
            (diagonal.values().iter()).zip([majorant(3.0, 0.0, 2.0), majorant(4.0, 2.0, 2.0)])
        {
            assert!((found - 0.5 * expected).abs() <= 1e-8 * expected);
        }
    }

    #[test]
    fn a_refusal_never_lowers_damping_and_what_is_little_is_none() {
        let mut damping = Damping(vec![0.0, 0.5, 0.5, 0.5, 0.0]);
        damping.after_refusal(&[LEAST, 0.2, 0.7, 100.0, 2.0 * LEAST]);
        assert_eq!(damping.0, [0.0, 0.5, 0.7, MOST, 2.0 * LEAST]);
    }

    #[test]
    fn after_a_step_damping_is_what_was_missing_or_a_tenth_of_what_it_was() {
        // H = 0: J is a line here, but was more where the step came from.
        let curvature = [Curvature::none()];
        let now = known([1.0, 1.0], 10.0, [1.0, 1.0]);
        let step = |before: f64, damping: f64| {
            let mut damping = Damping(vec![damping]);
            let before = known([0.5, 0.5], before, [1.0, 1.0]);
            damping.after_step((&before, &curvature), (&now, &curvature));
            damping.0[0]
        };
        // The line says 11 there; the whole diagonal would add ½ · 2 · ¼ of 2/1.01.
        let full = 0.25 * majorant(1.0, 1.0, 1.0);
        assert!((step(11.0 + 0.4 * full, 0.0) - 0.4).abs() <= 1e-10);
        assert_eq!(step(11.0 + 100.0 * full, 0.0), MOST);
        assert_eq!(step(11.0, 2.0), FALL * 2.0);
        assert_eq!(step(11.0, 5.0 * LEAST), 0.0);
        let missing = Damping::missing(
            (&now, &curvature),
            &known([0.5, 0.5], 11.0 + 0.4 * full, [1.0, 1.0]),
        );
        assert!((missing[0] - 0.4).abs() <= 1e-10);
    }

    #[test]
    fn what_the_model_had_foretold_may_bend_twice_as_much() {
        // F = (1, 1) on both ends of δ = (½, ½): a bend of ½.
        let curvature = [Curvature {
            rank: 1,
            factor: vec![1.0, 1.0],
            span: None,
        }];
        let now = known([1.0, 1.0], 10.0, [1.0, 1.0]);
        // From there the model says 10.75 − 1 + ½ here, so that J fell further; from here it says 11.5 there.
        let full = 0.25 * majorant(1.0, 1.0, 1.0);
        let step = |before: f64| {
            let mut damping = Damping::none(1);
            damping.after_step(
                (&known([0.5, 0.5], before, [1.0, 1.0]), &curvature),
                (&now, &curvature),
            );
            damping.0[0]
        };
        assert_eq!(step(11.9), 0.0);
        assert!((step(12.0 + 0.3 * full) - 0.3).abs() <= 1e-9);
        // J fell less than foretold: nothing is forgiven.
        let model = [Curvature {
            rank: 1,
            factor: vec![3.0, 3.0],
            span: None,
        }];
        let mut damping = Damping::none(1);
        let before = known([0.5, 0.5], 11.5 + 0.2 * full, [1.0, 1.0]);
        let foretold = before.foretells(&now, &[Curvature::none()]);
        assert_eq!(foretold, [true]);
        assert_eq!(before.foretells(&now, &model), [true]);
        let steep = known([0.5, 0.5], 11.5 + 0.2 * full, [3.0, 3.0]);
        assert_eq!(steep.foretells(&now, &[Curvature::none()]), [false]);
        damping.after_step((&steep, &[Curvature::none()]), (&now, &curvature));
        assert!((damping.0[0] - 0.2).abs() <= 1e-9);
    }
}
