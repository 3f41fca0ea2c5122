//! Weights that are given, not learned: the uniform average is one of them.

use super::prior_ball::check_weights;
use super::{Constraint, Reach, Set, Term};
use crate::error::Result;
use crate::grid::{Grid, Shape};

/// {weights}: one point. Support function: ⟨s, weights⟩.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    /// M numbers ≥ 0.
    pub weights: Vec<f64>,
}

impl Set for Fixed {
    fn check(&self, kernels: usize) -> Result<()> {
        check_weights("weights", &self.weights, kernels)
    }

    fn start(&self, out: &mut [f64]) {
        out.copy_from_slice(&self.weights);
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        out.copy_from_slice(&self.weights);
        s.iter()
            .zip(&self.weights)
            .map(|(cost, weight)| cost * weight)
            .sum()
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        theta
            .iter()
            .zip(&self.weights)
            .fold(0.0, |worst, (a, b)| f64::max(worst, (a - b).abs()))
    }

    fn contains_zero(&self) -> bool {
        self.weights.iter().all(|&weight| weight == 0.0)
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::Constant)
    }
}

/// {weights}: one point, with a row for each task. Support function: ⟨s, weights⟩.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedRows {
    /// T × M numbers ≥ 0, row by row.
    pub weights: Vec<f64>,
}

impl Term for FixedRows {
    fn reach(&self) -> Reach {
        Reach::Each
    }

    fn label(&self) -> &'static str {
        "specific"
    }

    fn check(&self, shape: Shape) -> Result<()> {
        check_weights("weights", &self.weights, shape.tasks * shape.kernels)
    }

    fn start(&self, out: &mut Grid) {
        out.values_mut().copy_from_slice(&self.weights);
    }

    fn maximise(&self, s: &Grid, out: &mut Grid) -> f64 {
        self.start(out);
        s.dot(out)
    }

    fn violation(&self, x: &Grid) -> f64 {
        let pairs = x.values().iter().zip(&self.weights);
        pairs.fold(0.0, |worst, (a, b)| f64::max(worst, (a - b).abs()))
    }

    fn contains_zero(&self) -> bool {
        self.weights.iter().all(|&weight| weight == 0.0)
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::Constant)
    }
}
