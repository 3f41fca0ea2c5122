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
/// Rounding leaves a sum that was made exact this close to its total.
const SUMS: f64 = 1e-13;

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

    /// Makes the sum exact. With an upper bound, rescaling could step over it: the missing mass goes where there is room. Whether there was.
    fn complete(&self, x: &mut [f64]) -> bool {
        let upper = self.upper.unwrap_or(f64::INFINITY);
        for value in x.iter_mut() {
            *value = value.min(upper);
        }
        spread(x, self.total, upper);
        (self.total - x.iter().sum::<f64>()).abs() <= SUMS * self.total
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
            self.complete(x.row_mut(row));
        }
    }

    fn snap(&self, x: &mut Grid, threshold: f64) {
        for row in 0..x.rows() {
            let before = x.row(row).to_vec();
            drop_below(x.row_mut(row), threshold * self.total);
            if !self.complete(x.row_mut(row)) {
                // Those that are left are all at their bound: what was dropped is needed.
                x.row_mut(row).copy_from_slice(&before);
            }
        }
    }

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}

/// Lowers all entries in proportion where their sum is too large; raises the non-zero ones in proportion where it is too small, none above `upper`.
fn spread(x: &mut [f64], total: f64, upper: f64) {
    for _ in 0..=x.len() {
        let sum: f64 = x.iter().sum();
        let free: f64 = x.iter().filter(|value| **value < upper).sum();
        if (total - sum).abs() <= ROUNDING * total {
            return;
        }
        if sum > total {
            for value in x.iter_mut() {
                *value *= total / sum;
            }
            continue;
        }
        if free <= 0.0 {
            return;
        }
        let factor = 1.0 + (total - sum) / free;
        x.iter_mut()
            .filter(|value| **value < upper)
            .for_each(|value| *value = (*value * factor).min(upper));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(x: &Grid, total: f64, upper: f64) {
        let sum: f64 = x.values().iter().sum();
        assert!((sum - total).abs() <= 1e-15 * total, "{sum}");
        assert!(
            x.values()
                .iter()
                .all(|&value| (0.0..=upper).contains(&value)),
            "{x:?}"
        );
    }

    #[test]
    fn a_sum_made_exact_does_not_step_over_the_upper_bound() {
        // An iterate whose sum is not quite the total, with entries at the bound.
        let barrier = RowSum::new(1.0, Some(0.44));
        let mut x = Grid::from_values(1, 4, vec![0.44, 0.12 - 1e-9, 0.44 - 1e-12, 1e-12]);
        barrier.project(&mut x);
        held(&x, 1.0, 0.44);
    }

    #[test]
    fn a_sum_that_is_too_large_leaves_no_weight_below_zero() {
        let barrier = RowSum::new(0.5, Some(0.5));
        let mut x = Grid::from_values(1, 2, vec![0.5 + 1e-12, 1e-13]);
        barrier.project(&mut x);
        held(&x, 0.5, 0.5);
    }

    #[test]
    fn what_the_bound_leaves_no_room_for_is_not_dropped() {
        let upper = 0.5 - 1e-8;
        let barrier = RowSum::new(1.0, Some(upper));
        let mut x = Grid::from_values(1, 3, vec![upper, 2e-8, upper]);
        barrier.snap(&mut x, 1e-6);
        held(&x, 1.0, upper);
    }

    #[test]
    fn a_sum_that_fills_its_bounds_is_a_point() {
        for (upper, kernels, is_point) in [
            (Some(0.25), 4, true),
            (Some(0.2), 4, true),
            (Some(0.26), 4, false),
            (Some(0.26), 1, true),
            (None, 1, true),
            (None, 2, false),
        ] {
            assert_eq!(RowSum::is_point(1.0, upper, kernels), is_point, "{upper:?}");
        }
    }

    #[test]
    fn what_a_sum_has_too_much_is_taken_in_proportion_and_given_where_there_is_room() {
        let check = |mut x: Vec<f64>, total: f64, upper: f64, expected: &[f64]| {
            spread(&mut x, total, upper);
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14;
            assert!(x.iter().zip(expected).all(close), "{x:?} {expected:?}");
        };
        check(vec![1.0, 1.0, 2.0], 2.0, f64::INFINITY, &[0.5, 0.5, 1.0]);
        check(vec![0.1, 0.3], 0.8, f64::INFINITY, &[0.2, 0.6]);
        check(vec![0.1, 0.4, 0.0], 0.8, 0.5, &[0.3, 0.5, 0.0]);
        check(vec![0.5, 0.0], 0.8, 0.5, &[0.5, 0.0]);
        check(vec![0.25, 0.75], 1.0, 1.0, &[0.25, 0.75]);
    }
}
