//! Cuts inside the model's interior point method: max(0, max_j r_j) as a height e above all of them, eliminated before the system is factored.

use super::cuts::Cut;
use crate::engine::Curvature;
use crate::grid::dot;
use crate::linalg::{axpy, semidefinite_factor};

/// The cuts of one task inside the interior point method: minimise … + e over e ≥ 0, r_j + v_j = e, v ≥ 0.
#[derive(Debug, Clone)]
pub(super) struct Excess<'a> {
    cuts: &'a [Cut],
    /// e
    height: f64,
    /// The multiplier of e ≥ 0.
    hold: f64,
    slack: Vec<f64>,
    /// λ_j of v_j ≥ 0; Σλ + hold = 1 at the end.
    weights: Vec<f64>,
}

/// A step of e, v and their multipliers.
#[derive(Debug, Clone)]
pub(super) struct ExcessStep {
    height: f64,
    hold: f64,
    slack: Vec<f64>,
    weights: Vec<f64>,
}

/// What is left of the cuts in the system for θᵗ once e, v and the multipliers are eliminated.
#[derive(Debug)]
struct Reduced {
    /// λ_j / v_j
    ratios: Vec<f64>,
    /// Σ_j λ_j/v_j + hold/e
    own: f64,
    /// μ/v_j, less the predictor's products.
    targets: Vec<f64>,
    /// Σ targets + μ/e − 1
    right: f64,
}

impl<'a> Excess<'a> {
    /// Strictly feasible at δ.
    pub(super) fn new(cuts: &'a [Cut], delta: &[f64], scale: f64) -> Self {
        let values: Vec<f64> = cuts.iter().map(|cut| cut.value(delta)).collect();
        let height = values.iter().fold(0.0_f64, |a, &b| a.max(b)) + scale;
        Self {
            cuts,
            height,
            hold: 0.0,
            slack: values.iter().map(|value| height - value).collect(),
            weights: vec![0.0; cuts.len()],
        }
    }

    pub(super) fn start_multipliers(&mut self, mu: f64) {
        if self.cuts.is_empty() {
            return;
        }
        self.hold = mu / self.height;
        for (weight, slack) in self.weights.iter_mut().zip(&self.slack) {
            *weight = mu / slack;
        }
    }

    pub(super) fn complementarity(&self) -> (f64, f64) {
        if self.cuts.is_empty() {
            return (0.0, 0.0);
        }
        (
            self.height * self.hold + dot(&self.slack, &self.weights),
            1.0 + self.cuts.len() as f64,
        )
    }

    fn reduced(&self, mu: f64, predicted: Option<&ExcessStep>) -> Reduced {
        let ratios: Vec<f64> = self
            .weights
            .iter()
            .zip(&self.slack)
            .map(|(l, v)| l / v)
            .collect();
        let targets: Vec<f64> = (0..self.cuts.len())
            .map(|j| {
                let product = predicted.map_or(0.0, |p| p.slack[j] * p.weights[j]);
                (mu - product) / self.slack[j]
            })
            .collect();
        let product = predicted.map_or(0.0, |p| p.height * p.hold);
        Reduced {
            own: ratios.iter().sum::<f64>() + self.hold / self.height,
            right: targets.iter().sum::<f64>() + (mu - product) / self.height - 1.0,
            ratios,
            targets,
        }
    }

    /// F with further rows, for the curvature A'(W − ww'/own)A that the cuts leave.
    pub(super) fn curvature(&self, plain: &Curvature) -> Curvature {
        let count = self.cuts.len();
        if count == 0 {
            return plain.clone();
        }
        let reduced = self.reduced(0.0, None);
        let w = &reduced.ratios;
        let mut matrix = vec![0.0; count * count];
        for i in 0..count {
            for j in 0..count {
                matrix[i * count + j] = -w[i] * w[j] / reduced.own;
            }
            // w_i − w_i²/own without cancellation
            let others: f64 = (0..count).filter(|&j| j != i).map(|j| w[j]).sum();
            matrix[i * count + i] = w[i] * (others + self.hold / self.height) / reduced.own;
        }
        let mut factor = plain.factor.clone();
        for row in semidefinite_factor(matrix, count).chunks_exact(count) {
            let mut sum = vec![0.0; self.cuts[0].slope.len()];
            for (weight, cut) in row.iter().zip(self.cuts) {
                axpy(*weight, &cut.slope, &mut sum);
            }
            factor.extend(sum);
        }
        Curvature {
            rank: factor.len() / self.cuts[0].slope.len(),
            factor,
        }
    }

    /// Adds the cuts' part to the right-hand side of θᵗ.
    pub(super) fn add_right(&self, mu: f64, predicted: Option<&ExcessStep>, out: &mut [f64]) {
        if self.cuts.is_empty() {
            return;
        }
        let reduced = self.reduced(mu, predicted);
        for (j, cut) in self.cuts.iter().enumerate() {
            let pull = reduced.ratios[j] * reduced.right / reduced.own - reduced.targets[j];
            axpy(pull, &cut.slope, out);
        }
    }

    /// The step that goes with a step of θᵗ.
    pub(super) fn direction(
        &self,
        change: &[f64],
        mu: f64,
        predicted: Option<&ExcessStep>,
    ) -> ExcessStep {
        if self.cuts.is_empty() {
            return ExcessStep {
                height: 0.0,
                hold: 0.0,
                slack: Vec::new(),
                weights: Vec::new(),
            };
        }
        let reduced = self.reduced(mu, predicted);
        let along: Vec<f64> = self
            .cuts
            .iter()
            .map(|cut| dot(&cut.slope, change))
            .collect();
        let height = (dot(&reduced.ratios, &along) + reduced.right) / reduced.own;
        let slack: Vec<f64> = along.iter().map(|along| height - along).collect();
        let weights = (0..slack.len())
            .map(|j| reduced.targets[j] - self.weights[j] - reduced.ratios[j] * slack[j])
            .collect();
        let product = predicted.map_or(0.0, |p| p.height * p.hold);
        let hold = (mu - product - self.hold * height) / self.height - self.hold;
        ExcessStep {
            height,
            hold,
            slack,
            weights,
        }
    }

    /// All pairs of a positive quantity and its change.
    pub(super) fn pairs<'b>(
        &'b self,
        step: &'b ExcessStep,
    ) -> impl Iterator<Item = (f64, f64)> + 'b {
        let own = [(self.height, step.height), (self.hold, step.hold)];
        let own = own
            .into_iter()
            .take(if self.cuts.is_empty() { 0 } else { 2 });
        let slack = self.slack.iter().copied().zip(step.slack.iter().copied());
        let weights = self
            .weights
            .iter()
            .copied()
            .zip(step.weights.iter().copied());
        own.chain(slack).chain(weights)
    }

    pub(super) fn advance(&mut self, direction: &ExcessStep, step: f64) {
        self.height += step * direction.height;
        self.hold += step * direction.hold;
        axpy(step, &direction.slack, &mut self.slack);
        axpy(step, &direction.weights, &mut self.weights);
    }

    /// λ_j, scaled where they sum to more than one.
    pub(super) fn convex_weights(&self) -> Vec<f64> {
        let total: f64 = self.weights.iter().sum();
        self.weights
            .iter()
            .map(|weight| weight / total.max(1.0))
            .collect()
    }
}
