//! A ball around prior weights (Cortes, Mohri and Rostamizadeh, for kernel ridge regression).

use super::{Constraint, Set, negativity};
use crate::entry::Range;
use crate::error::{Error, Result};

/// {θ ≥ 0 : ‖θ − prior‖₂ ≤ radius}.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorBall {
    /// θ⁰ ≥ 0, M numbers.
    pub prior: Vec<f64>,
    /// Λ > 0.
    pub radius: f64,
}

/// M weights ≥ 0 as a user gave them.
pub(super) fn check_weights(name: &'static str, weights: &[f64], kernels: usize) -> Result<()> {
    if weights.len() != kernels {
        let expected = format!("{kernels} weights, one per kernel");
        return Err(Error::param(
            name,
            format!("{} weights", weights.len()),
            expected,
        ));
    }
    match weights
        .iter()
        .find(|weight| !(weight.is_finite() && **weight >= 0.0))
    {
        Some(weight) => Err(Error::param(name, weight, "finite weights ≥ 0")),
        None => Ok(()),
    }
}

impl Set for PriorBall {
    fn check(&self, kernels: usize) -> Result<()> {
        check_weights("prior", &self.prior, kernels)?;
        Range::Positive.check("radius", self.radius)
    }

    fn start(&self, out: &mut [f64]) {
        out.copy_from_slice(&self.prior);
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        // θ = (θ⁰ + τ s)⁺ for the one τ ≥ 0 at which it reaches the sphere. Between the points where an entry meets 0 its
        // squared distance to θ⁰ is τ² Σ_free s² + Σ_clipped θ⁰², so τ is found by walking those points in order.
        let largest = s.iter().fold(0.0_f64, |a, &b| a.max(b.abs()));
        out.copy_from_slice(&self.prior);
        if largest == 0.0 {
            return 0.0;
        }
        let mut clipping: Vec<(f64, usize)> = (0..s.len())
            .filter(|&kernel| s[kernel] < 0.0)
            .map(|kernel| (self.prior[kernel] / (-s[kernel] / largest), kernel))
            .collect();
        clipping.sort_by(|a, b| a.0.total_cmp(&b.0));
        let square = |value: f64| value * value;
        let positive: f64 = s.iter().map(|&cost| square(cost.max(0.0) / largest)).sum();
        // Σ_free s² from each of those points on, added up from the end: subtracting would leave nothing but rounding.
        let mut free = vec![positive; clipping.len() + 1];
        for (at, &(_, kernel)) in clipping.iter().enumerate().rev() {
            free[at] = free[at + 1] + square(s[kernel] / largest);
        }
        let mut clipped = 0.0;
        let mut tau = None;
        for (&(meets, kernel), free) in clipping.iter().zip(&free) {
            let reach = square(self.radius) - clipped;
            if square(meets) * free >= reach {
                tau = Some((reach.max(0.0) / free).sqrt());
                break;
            }
            clipped += square(self.prior[kernel]);
        }
        let tau = tau.or_else(|| {
            (positive > 0.0).then(|| ((square(self.radius) - clipped).max(0.0) / positive).sqrt())
        });
        let mut support = 0.0;
        for (kernel, value) in out.iter_mut().enumerate() {
            *value = match tau {
                Some(tau) => (self.prior[kernel] + tau * s[kernel] / largest).max(0.0),
                // No entry of s is positive and the ball reaches beyond 0: drop all that costs.
                None if s[kernel] < 0.0 => 0.0,
                None => self.prior[kernel],
            };
            support += *value * s[kernel];
        }
        support
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        let distance: f64 = theta
            .iter()
            .zip(&self.prior)
            .map(|(a, b)| (a - b) * (a - b))
            .sum();
        (distance.sqrt() - self.radius).max(negativity(theta))
    }

    fn contains_zero(&self) -> bool {
        self.prior
            .iter()
            .map(|weight| weight * weight)
            .sum::<f64>()
            .sqrt()
            <= self.radius
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::RowBall {
            centre: self.prior.clone(),
            radius: self.radius,
        })
    }
}
