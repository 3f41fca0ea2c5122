//! A cutting plane r(δ) = b + a'δ: by how much the line of another evaluation is above the model here.
//!
//! r = (line of θ_j) − (line of θ_k) − share · (tangent of ½ δ'Hδ at θ_j). The share is 1 but where the cut would then be above J at θ_k itself.

use super::known::Known;
use crate::engine::Curvature;
use crate::grid::dot;
use crate::linalg::axpy;

/// At θ_k a cut stays below J, by one less this part of what the linear function it comes from does: the model must not have a kink
/// there that J has not.
const BELOW: f64 = 0.9;
/// Where a line is above the model by no more than this part of the value, or than twice the inner gap, it is not told from rounding.
const ROUNDING: f64 = 1e-12;

/// r(δ) = b + a'δ
#[derive(Debug, Clone)]
pub(in crate::solver) struct Cut {
    pub(in crate::solver) slope: Vec<f64>,
    pub(super) offset: f64,
    /// The linear function it comes from: J_t(θ) ≥ constant − sensitivities'θ.
    pub(super) constant: f64,
    pub(super) sensitivities: Vec<f64>,
    /// What rounding can do to it, and the α that it is of: κ times that of an evaluation.
    pub(super) noise: f64,
    pub(super) source: (usize, f64),
}

impl Cut {
    /// One that comes from nowhere.
    #[cfg(test)]
    pub(in crate::solver) fn new(slope: Vec<f64>, offset: f64) -> Self {
        Self {
            slope,
            offset,
            constant: 0.0,
            sensitivities: Vec::new(),
            noise: 0.0,
            source: (0, 1.0),
        }
    }

    pub(in crate::solver) fn value(&self, delta: &[f64]) -> f64 {
        self.offset + dot(&self.slope, delta)
    }
}

impl Known {
    /// The linear function that J_t is nowhere below, as a cut of this slope and offset.
    pub(super) fn as_cut(&self, task: usize, slope: Vec<f64>, offset: f64) -> Cut {
        Cut {
            slope,
            offset,
            constant: self.constant(task),
            sensitivities: self.sensitivities.row(task).to_vec(),
            noise: self.noises[task],
            source: (self.number, self.kappas[task]),
        }
    }

    /// The cut that another evaluation makes into the model here; none where the model is above it there anyway.
    pub(super) fn cut(
        &self,
        other: &Known,
        curvature: &[Curvature],
        task: usize,
    ) -> Option<(Vec<f64>, f64)> {
        let there = self.compare(other, curvature, task);
        if there.excess <= 2.0 * self.gaps[task] + ROUNDING * self.values[task].abs() {
            return None;
        }
        let theirs = other.sensitivities.row(task);
        let below = (-there.rise - dot(theirs, &there.delta)).max(0.0);
        // r = (linear function of θ_j) − (that of θ_k) − share · (that of ½ δ'Hδ at θ_j)
        let share = if BELOW * below < there.bend {
            BELOW * below / there.bend
        } else {
            1.0
        };
        let pairs = self.sensitivities.row(task).iter().zip(theirs);
        let mut slope: Vec<f64> = pairs.map(|(here, there)| here - there).collect();
        axpy(-share, &there.pull, &mut slope);
        Some((slope, (share * there.bend - below).min(0.0)))
    }
}
