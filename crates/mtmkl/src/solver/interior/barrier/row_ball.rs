//! ½ ‖x_row − centre‖² ≤ ½ radius² for each row: smooth where the distance itself is not, at the centre.
//!
//! λ∇²N + (λ/v)∇N∇N' = λ I + (λ/v)(x − centre)(x − centre)'.

use super::{Barrier, Linearisation};
use crate::grid::{Grid, dot};
use crate::solver::interior::kkt::{Border, RowMatrix};

/// A ball around given weights in each row.
#[derive(Debug, Clone)]
pub(super) struct RowBall {
    centre: Vec<f64>,
    radius: f64,
    linearised: Linearisation,
}

/// A weight whose centre is 0 starts at this part of radius/√M: well inside the orthant, and all of them together still well inside the ball.
const OFF_ZERO: f64 = 0.3;

impl RowBall {
    pub(super) fn new(centre: Vec<f64>, radius: f64, rows: usize) -> Self {
        Self {
            linearised: Linearisation::new(rows, rows, centre.len()),
            centre,
            radius,
        }
    }

    /// ‖x − centre‖²
    fn square(&self, x: &[f64]) -> f64 {
        let pairs = x.iter().zip(&self.centre);
        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
    }
}

impl Barrier for RowBall {
    fn bound(&self) -> f64 {
        0.5 * self.radius * self.radius
    }

    fn exponent(&self) -> f64 {
        2.0
    }

    fn enter(&self, x: &mut Grid) {
        let least = OFF_ZERO * self.radius / (x.kernels() as f64).sqrt();
        for value in x.values_mut() {
            *value = value.max(least);
        }
    }

    fn values(&self, x: &Grid) -> Vec<f64> {
        x.iter_rows().map(|row| 0.5 * self.square(row)).collect()
    }

    fn move_to(&mut self, x: &Grid) {
        for row in 0..x.rows() {
            let out = self.linearised.gradient.row_mut(row);
            for (out, (a, b)) in out.iter_mut().zip(x.row(row).iter().zip(&self.centre)) {
                *out = a - b;
            }
            self.linearised.values[row] = 0.5 * dot(out, out);
        }
    }

    fn linearised(&self) -> &Linearisation {
        &self.linearised
    }

    fn add_curvature(
        &self,
        _x: &Grid,
        multipliers: &[f64],
        slacks: &[f64],
        rows: &mut [RowMatrix],
    ) -> Option<Border> {
        for (row, matrix) in rows.iter_mut().enumerate() {
            let lambda = multipliers[row];
            for value in &mut matrix.diagonal {
                *value += lambda;
            }
            let factor = lambda / slacks[row];
            matrix.borders.push(Border {
                vector: self.linearised.gradient.row(row).to_vec(),
                inverse: factor.recip(),
            });
        }
        None
    }

    fn project(&self, x: &mut Grid) {
        for row in 0..x.rows() {
            let distance = self.square(x.row(row)).sqrt();
            if distance > self.radius {
                for (value, middle) in x.row_mut(row).iter_mut().zip(&self.centre) {
                    *value = middle + (*value - middle) * self.radius / distance;
                }
            }
        }
    }

    /// Dropping weights moves a row away from its centre, which no scaling mends.
    fn snap(&self, _x: &mut Grid, _threshold: f64) {}

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ball_is_entered_off_the_axes_and_left_nowhere() {
        let ball = RowBall::new(vec![0.5, 0.0, 0.0, 1.0], 2.0, 1);
        assert_eq!(ball.bound(), 2.0);
        // 0.3 · 2/√4
        let mut x = Grid::from_values(1, 4, vec![0.5, 0.0, 0.1, 1.0]);
        ball.enter(&mut x);
        assert_eq!(x.values(), [0.5, 0.3, 0.3, 1.0]);
        assert_eq!(ball.values(&x), [0.5 * (0.3 * 0.3 + 0.3 * 0.3)]);
        let inside = x.clone();
        ball.project(&mut x);
        assert_eq!(x.values(), inside.values());
        // Twice as far as the radius: back half of the way.
        let mut far = Grid::from_values(1, 4, vec![0.5, 4.0, 0.0, 1.0]);
        ball.project(&mut far);
        assert_eq!(far.values(), [0.5, 2.0, 0.0, 1.0]);
        let edge = far.clone();
        ball.project(&mut far);
        assert_eq!(far.values(), edge.values());
    }
}
