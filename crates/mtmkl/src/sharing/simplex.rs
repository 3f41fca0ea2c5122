//! Σθ = total, θ ≥ 0 (SimpleMKL).

use super::lp_ball::largest_entry;
use super::{Constraint, Set, negativity};
use crate::entry::Range;
use crate::error::Result;

/// {θ ≥ 0 : Σ_m θ_m = total}. Support function: total · max_m s_m.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Simplex {
    /// The sum, > 0.
    pub total: f64,
}

impl Set for Simplex {
    fn check(&self, _kernels: usize) -> Result<()> {
        Range::Positive.check("total", self.total)
    }

    fn start(&self, out: &mut [f64]) {
        out.fill(self.total / out.len() as f64);
    }

    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64 {
        out.fill(0.0);
        let Some((best, largest)) = largest_entry(s) else {
            return 0.0;
        };
        out[best] = self.total;
        self.total * largest
    }

    fn violation(&self, theta: &[f64]) -> f64 {
        (theta.iter().sum::<f64>() - self.total)
            .abs()
            .max(negativity(theta))
    }

    fn contains_zero(&self) -> bool {
        false
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::RowSum {
            total: self.total,
            upper: None,
        })
    }
}
