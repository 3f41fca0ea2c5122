//! Σ_m x_m = total in each row, and x ≤ upper where there is such a bound.
//!
//! The sum is an equality that the start already fulfils: steps keep it, 1'dx = 0. The upper bounds have their multipliers beside those of x ≥ 0.

use super::{Barrier, Linearisation};
use crate::grid::Grid;
use crate::solver::interior::kkt::{Border, RowMatrix};
use crate::solver::interior::norm::drop_below;

/// A simplex in each row, or a part of one.
#[derive(Debug, Clone)]
pub(super) struct RowSum {
    total: f64,
    upper: Option<f64>,
    linearised: Linearisation,
}

/// An upper bound this close above total/M leaves no interior that rounding would not close.
const POINT: f64 = 1e-9;
/// A sum this close to its total is its total.
const ROUNDING: f64 = 1e-16;

impl RowSum {
    pub(super) fn new(total: f64, upper: Option<f64>) -> Self {
        Self {
            total,
            upper,
            linearised: Linearisation::none(),
        }
    }

    /// Whether only the equal weights are left.
    pub(super) fn is_point(total: f64, upper: Option<f64>, kernels: usize) -> bool {
        let tight = upper.is_some_and(|upper| upper * kernels as f64 <= total * (1.0 + POINT));
        tight || kernels == 1
    }
}

impl Barrier for RowSum {
    fn upper(&self) -> Option<f64> {
        self.upper
    }

    fn linearised(&self) -> &Linearisation {
        &self.linearised
    }

    fn add_curvature(
        &self,
        x: &Grid,
        _multipliers: &[f64],
        _slacks: &[f64],
        rows: &mut [RowMatrix],
    ) -> Option<Border> {
        for matrix in rows {
            matrix.borders.push(Border {
                vector: vec![1.0; x.kernels()],
                inverse: 0.0,
            });
        }
        None
    }

    fn project(&self, x: &mut Grid) {
        for row in 0..x.rows() {
            let sum: f64 = x.row(row).iter().sum();
            for value in x.row_mut(row) {
                *value *= self.total / sum;
            }
        }
    }

    fn snap(&self, x: &mut Grid, threshold: f64) {
        for row in 0..x.rows() {
            drop_below(x.row_mut(row), threshold * self.total);
            // With an upper bound, rescaling could step over it: the missing mass goes where there is room.
            let upper = self.upper.unwrap_or(f64::INFINITY);
            spread(x.row_mut(row), self.total, upper);
        }
    }

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}

/// Raises or lowers the non-zero entries in proportion until they sum to the total, none above `upper`.
fn spread(x: &mut [f64], total: f64, upper: f64) {
    for _ in 0..x.len() {
        let sum: f64 = x.iter().sum();
        let free: f64 = x.iter().filter(|value| **value < upper).sum();
        if free <= 0.0 || (total - sum).abs() <= ROUNDING * total {
            return;
        }
        let factor = 1.0 + (total - sum) / free;
        x.iter_mut()
            .filter(|value| **value < upper)
            .for_each(|value| *value = (*value * factor).min(upper));
    }
}
