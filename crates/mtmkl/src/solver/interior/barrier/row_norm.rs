//! ‖x_row‖_p ≤ radius for each row.
//!
//! λ∇²N + (λ/v)∇N∇N' = λ(p−1) diag(∇N/x) + (λ/v − λ(p−1)/N) ∇N∇N'.

use super::{Barrier, Linearisation};
use crate::grid::Grid;
use crate::solver::interior::kkt::{Border, RowMatrix};
use crate::solver::interior::norm::{
    add_norm_diagonal, drop_below, norm, norm_and_gradient, rescale, scale_down,
};

/// An L_p ball in each row.
#[derive(Debug, Clone)]
pub(super) struct RowNorm {
    p: f64,
    radius: f64,
    linearised: Linearisation,
}

impl RowNorm {
    pub(super) fn new(p: f64, radius: f64, rows: usize, kernels: usize) -> Self {
        Self {
            p,
            radius,
            linearised: Linearisation::new(rows, rows, kernels),
        }
    }
}

impl Barrier for RowNorm {
    fn bound(&self) -> f64 {
        self.radius
    }

    fn exponent(&self) -> f64 {
        self.p
    }

    /// Start points lie on the sphere: go inside, to where n entries and the slack of their norm are in balance.
    fn enter(&self, x: &mut Grid) {
        let n = x.kernels() as f64;
        let inside = n / (n + 1.0);
        x.values_mut().iter_mut().for_each(|value| *value *= inside);
    }

    fn values(&self, x: &Grid) -> Vec<f64> {
        x.iter_rows().map(|row| norm(row, self.p)).collect()
    }

    fn move_to(&mut self, x: &Grid) {
        let Linearisation { values, gradient } = &mut self.linearised;
        for (row, value) in values.iter_mut().enumerate() {
            *value = norm_and_gradient(x.row(row), self.p, gradient.row_mut(row));
        }
    }

    fn linearised(&self) -> &Linearisation {
        &self.linearised
    }

    fn add_curvature(
        &self,
        x: &Grid,
        multipliers: &[f64],
        slacks: &[f64],
        rows: &mut [RowMatrix],
    ) -> Option<Border> {
        for (row, matrix) in rows.iter_mut().enumerate() {
            let (norm, gradient) = (
                self.linearised.values[row],
                self.linearised.gradient.row(row),
            );
            let lambda = multipliers[row];
            let scale = lambda * (self.p - 1.0);
            add_norm_diagonal(&mut matrix.diagonal, x.row(row), gradient, scale);
            let factor = lambda / slacks[row] - scale / norm;
            matrix.borders.push(Border {
                vector: gradient.to_vec(),
                inverse: factor.recip(),
            });
        }
        None
    }

    fn project(&self, x: &mut Grid) {
        for row in 0..x.rows() {
            let norm = norm(x.row(row), self.p);
            scale_down(x.row_mut(row), self.radius, norm);
        }
    }

    fn snap(&self, x: &mut Grid, threshold: f64) {
        for row in 0..x.rows() {
            let row = x.row_mut(row);
            let before = norm(row, self.p);
            drop_below(row, threshold * self.radius);
            let after = norm(row, self.p);
            rescale(row, after, before);
        }
    }

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}
