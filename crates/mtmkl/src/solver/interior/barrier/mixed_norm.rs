//! N(x) = (Σ_rows ‖x_row‖_p^q)^{1/q} ≤ radius, over all rows together.
//!
//! With n_r = ‖x_r‖_p, g_r = ∇n_r and c_r = (n_r/N)^{q−1}, the gradient in row r is c_r g_r, and
//!
//! λ∇²N + (λ/v)∇N∇N' = for each row λ c_r (p−1) diag(g_r/x_r) + λ c_r (q−p)/n_r g_r g_r', and over all rows (λ/v − λ(q−1)/N) ∇N∇N'.

use super::{Barrier, Linearisation};
use crate::grid::Grid;
use crate::solver::interior::kkt::{Border, RowMatrix};
use crate::solver::interior::norm::{
    add_norm_diagonal, drop_below, norm, norm_and_gradient, rescale, scale_down,
};

/// An L_p–L_q ball over all rows.
#[derive(Debug, Clone)]
pub(super) struct MixedNorm {
    p: f64,
    q: f64,
    radius: f64,
    linearised: Linearisation,
    /// n_r of each row, and g_r.
    row_norms: Vec<f64>,
    row_gradients: Grid,
    /// c_r, the gradient of the norm of the norms.
    between: Vec<f64>,
}

impl MixedNorm {
    pub(super) fn new(p: f64, q: f64, radius: f64, rows: usize, kernels: usize) -> Self {
        Self {
            p,
            q,
            radius,
            linearised: Linearisation::new(1, rows, kernels),
            row_norms: vec![0.0; rows],
            row_gradients: Grid::zeros(rows, kernels),
            between: vec![0.0; rows],
        }
    }

    fn norm(&self, x: &Grid) -> f64 {
        let norms: Vec<f64> = x.iter_rows().map(|row| norm(row, self.p)).collect();
        norm(&norms, self.q)
    }
}

impl Barrier for MixedNorm {
    fn bound(&self) -> f64 {
        self.radius
    }

    fn inequality_of(&self, _row: usize) -> usize {
        0
    }

    fn exponent(&self) -> f64 {
        self.p.max(self.q)
    }

    /// Start points lie on the sphere: go inside, to where n entries and the slack of their norm are in balance.
    fn enter(&self, x: &mut Grid) {
        let n = x.values().len() as f64;
        let inside = n / (n + 1.0);
        x.values_mut().iter_mut().for_each(|value| *value *= inside);
    }

    fn values(&self, x: &Grid) -> Vec<f64> {
        vec![self.norm(x)]
    }

    fn move_to(&mut self, x: &Grid) {
        for (row, norm) in self.row_norms.iter_mut().enumerate() {
            *norm = norm_and_gradient(x.row(row), self.p, self.row_gradients.row_mut(row));
        }
        self.linearised.values[0] = norm_and_gradient(&self.row_norms, self.q, &mut self.between);
        for (row, between) in self.between.iter().enumerate() {
            let pairs = self.linearised.gradient.row_mut(row).iter_mut();
            for (out, value) in pairs.zip(self.row_gradients.row(row)) {
                *out = between * value;
            }
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
        let (p, q, lambda) = (self.p, self.q, multipliers[0]);
        for (row, matrix) in rows.iter_mut().enumerate() {
            let gradient = self.row_gradients.row(row);
            let share = lambda * self.between[row];
            let scale = share * (p - 1.0);
            add_norm_diagonal(&mut matrix.diagonal, x.row(row), gradient, scale);
            let factor = share * (q - p) / self.row_norms[row];
            if factor != 0.0 {
                matrix.borders.push(Border {
                    vector: gradient.to_vec(),
                    inverse: factor.recip(),
                });
            }
        }
        let factor = lambda / slacks[0] - lambda * (q - 1.0) / self.linearised.values[0];
        Some(Border {
            vector: self.linearised.gradient.values().to_vec(),
            inverse: factor.recip(),
        })
    }

    fn project(&self, x: &mut Grid) {
        let norm = self.norm(x);
        scale_down(x.values_mut(), self.radius, norm);
    }

    fn snap(&self, x: &mut Grid, threshold: f64) {
        let before = self.norm(x);
        drop_below(x.values_mut(), threshold * self.radius);
        let after = self.norm(x);
        rescale(x.values_mut(), after, before);
    }

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}
