//! Σθ = total, 0 ≤ θ ≤ upper (soft-margin MKL with the hinge loss).

use super::{Constraint, Set, negativity};
use crate::entry::Range;
use crate::error::{Error, Result};

/// {0 ≤ θ ≤ upper : Σ_m θ_m = total}. Support function: upper on each of the largest entries until the total is spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxSimplex {
    /// The sum, > 0.
    pub total: f64,
    /// The bound on each weight, ≥ total / M.
    pub upper: f64,
}

impl Set for BoxSimplex {
    fn check(&self, kernels: usize) -> Result<()> {
        Range::Positive.check("total", self.total)?;
        Range::Positive.check("upper", self.upper)?;
        let least = self.total / kernels as f64;
        if self.upper < least {
            let expected = format!(
                "at least total / M = {least}, or no weights reach the sum {}",
                self.total
            );
            return Err(Error::param("upper", self.upper, expected));
        }
        Ok(())
    }

    fn start(&self, out: &mut [f64]) {
        out.fill(self.total / out.len() as f64);
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        out.fill(0.0);
        let mut order: Vec<usize> = (0..s.len()).collect();
        order.sort_by(|&a, &b| s[b].total_cmp(&s[a]));
        let mut left = self.total;
        let mut support = 0.0;
        for kernel in order {
            let weight = left.min(self.upper);
            out[kernel] = weight;
            support += weight * s[kernel];
            left -= weight;
            if left <= 0.0 {
                break;
            }
        }
        support
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        let above = theta
            .iter()
            .fold(0.0_f64, |worst, &value| worst.max(value - self.upper));
        (theta.iter().sum::<f64>() - self.total)
            .abs()
            .max(above)
            .max(negativity(theta))
    }

    fn contains_zero(&self) -> bool {
        false
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::RowSum {
            total: self.total,
            upper: Some(self.upper),
        })
    }
}
