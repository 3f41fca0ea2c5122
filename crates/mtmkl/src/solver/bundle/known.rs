//! What one evaluation, at θ_j, leaves: J_t(θ) ≥ value_t − s_t'(θ − θ_j) for every θ, and more such lines from κα.
//!
//! ḡ(κα, θ) = κc − κ² s'θ, c the part without θ, for machines with κα in Ω for 0 ≤ κ ≤ 1.

use crate::engine::{Curvature, Evaluation};
use crate::grid::{Grid, dot};

/// What an evaluation leaves: J_t(θ) ≥ value_t − s_t'(θ − θ_j).
#[derive(Debug, Clone)]
pub(in crate::solver) struct Known {
    pub(in crate::solver) number: usize,
    /// κ of each task: 1 but for [`Known::scaled`].
    pub(super) kappas: Vec<f64>,
    pub(in crate::solver) theta: Grid,
    pub(in crate::solver) values: Vec<f64>,
    pub(in crate::solver) sensitivities: Grid,
    pub(super) gaps: Vec<f64>,
    pub(super) noises: Vec<f64>,
    pub(super) scales: Vec<bool>,
}

/// J_t at another θ, and what the model here says.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) delta: Vec<f64>,
    /// Hδ
    pub(super) pull: Vec<f64>,
    /// ½ δ'Hδ
    pub(super) bend: f64,
    /// J_t there, less J_t here.
    pub(super) rise: f64,
    /// J_t there, less what the model says.
    pub(super) excess: f64,
}

/// Where ⟨s, θ⟩ is less than this part of the constant, it is next to nothing or all rounding, and the θ at which κα would be best is out of reach.
const FLAT: f64 = 1e-9;

impl Known {
    pub(in crate::solver) fn new(theta: &Grid, evaluation: &Evaluation) -> Self {
        Self {
            number: evaluation.number,
            kappas: vec![1.0; evaluation.values.len()],
            theta: theta.clone(),
            values: evaluation.values.clone(),
            sensitivities: evaluation.sensitivities.clone(),
            gaps: evaluation.gaps.clone(),
            noises: evaluation.noises.clone(),
            scales: evaluation.scales.clone(),
        }
    }

    /// The part of task t's ḡ without θ.
    pub(super) fn constant(&self, task: usize) -> f64 {
        self.values[task] + dot(self.sensitivities.row(task), self.theta.row(task))
    }

    /// What κα says, at the θ where no other κ says more: J_t(θ) ≥ κc − κ² s'θ for 0 ≤ κ ≤ 1, c the part without θ.
    pub(super) fn scaled(&self, kappa: f64) -> Self {
        let mut known = self.clone();
        for task in 0..self.values.len() {
            let constant = self.constant(task);
            // Not the constant less the value: where that is rounding, so would be the line.
            let along = dot(self.sensitivities.row(task), self.theta.row(task));
            let longer = constant / (2.0 * kappa * along);
            if !(self.scales[task] && along > FLAT * constant) {
                continue;
            }
            known.kappas[task] = kappa;
            known.values[task] = kappa * constant - kappa * kappa * longer * along;
            for weight in known.theta.row_mut(task) {
                *weight *= longer;
            }
            for sensitivity in known.sensitivities.row_mut(task) {
                *sensitivity *= kappa * kappa;
            }
        }
        known
    }

    pub(super) fn compare(&self, other: &Self, curvature: &[Curvature], task: usize) -> Comparison {
        let pairs = other.theta.row(task).iter().zip(self.theta.row(task));
        let delta: Vec<f64> = pairs.map(|(there, here)| there - here).collect();
        let along = curvature[task].along(&delta);
        let bend = 0.5 * along.iter().map(|value| value * value).sum::<f64>();
        let pull = curvature[task].pull(&along, delta.len());
        let rise = other.values[task] - self.values[task];
        let excess = rise + dot(self.sensitivities.row(task), &delta) - bend;
        Comparison {
            delta,
            pull,
            bend,
            rise,
            excess,
        }
    }

    /// For each task the share of the curvature `damping` on the diagonal with which the model here would have foretold J there. So many times the
    /// bend of the model is not missed where `forgiven` says so.
    pub(in crate::solver) fn missing(
        &self,
        other: &Self,
        curvature: &[Curvature],
        damping: &Grid,
        forgiven: &[f64],
    ) -> Vec<f64> {
        (0..self.values.len())
            .map(|task| {
                let there = self.compare(other, curvature, task);
                let squares = damping.row(task).iter().zip(&there.delta);
                let full: f64 = squares.map(|(b, d)| 0.5 * b * d * d).sum();
                let excess = there.excess - self.gaps[task] - forgiven[task] * there.bend;
                if full > 0.0 && excess > 0.0 {
                    excess / full
                } else {
                    0.0
                }
            })
            .collect()
    }

    /// For each task whether J there is at most what the model here says.
    pub(in crate::solver) fn foretells(&self, other: &Self, curvature: &[Curvature]) -> Vec<bool> {
        (0..self.values.len())
            .map(|task| self.compare(other, curvature, task).excess <= self.gaps[task])
            .collect()
    }
}
