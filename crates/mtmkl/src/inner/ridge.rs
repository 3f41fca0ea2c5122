//! φ(β) = ½ρβ²: β = (K + ρ)⁻¹(q + c Σ_m θ_m d_m), by conjugate gradients with a factor that is kept from θ to θ.
//!
//! With the residual r = q + c Σ_m θ_m d_m − Kβ − ρβ, J − ḡ(β) = ½κ r'(K + ρ)⁻¹r ≤ ½κ Σ_i r_i²/ρ_i for K ⪰ 0, r made anew from β. The
//! curvature has P = (K + ρ)⁻¹.

use super::linear_system::{LinearSystem, Preconditioner};
use super::rounding::{linear_term, noise, product_errors};
use super::{Answer, Curvature, Effort, Here, Inner, Point, Solved};
use crate::error::{Error, Result};
use crate::gram::TaskGrams;
use crate::grid::dot;
use crate::ledger::bytes_of;
use crate::machine::Dual;

/// The residual is made anew so often: conjugate gradients follow it by its changes, which add up their rounding.
const RENEWALS: usize = 3;
/// The gap is this far below what is asked for: sensitivities are off by the root of it.
const CLOSER: f64 = 1e-2;

/// The solver for a ridge.
#[derive(Debug)]
pub(super) struct Ridge<'a> {
    pub(super) dual: &'a Dual,
    /// ρ
    pub(super) rho: &'a [f64],
    /// From the last θ.
    pub(super) kept: &'a mut Option<Preconditioner>,
}

impl Ridge<'_> {
    fn error(concave: bool) -> Error {
        Error::Numeric {
            place: "kernel ridge regression".to_string(),
            problem: if concave {
                "K(θ) is too large beside lambda for double precision; raise lambda or scale the columns"
            } else {
                "λI + K is not positive definite, so ḡ has no maximum; raise lambda above minus the smallest eigenvalue of the kernel"
            }
            .to_string(),
        }
    }

    /// r = q − Kβ − ρβ
    fn residual(&self, linear: &[f64], beta: &[f64], product: &[f64]) -> Vec<f64> {
        (0..beta.len())
            .map(|i| linear[i] - product[i] - self.rho[i] * beta[i])
            .collect()
    }

    /// ½κ Σ_i r_i²/ρ_i, r as large as rounding may have it.
    fn gap(&self, residual: &[f64], errors: &[f64]) -> f64 {
        let squares = (residual.iter().zip(errors).zip(self.rho))
            .map(|((residual, error), ridge)| (residual.abs() + error).powi(2) / ridge);
        0.5 * self.dual.scale * squares.sum::<f64>()
    }

    /// F with F'F = κ u'(K + ρ)⁻¹u.
    fn curvature(
        &self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        near: &Preconditioner,
    ) -> Curvature {
        let n = self.rho.len();
        let kernels = grams.grams.kernels();
        point.make_images(grams);
        let _memory = point.ledger.take(bytes_of::<f64>(n * kernels));
        let mut block = point.images.derivatives(self.dual, grams, 0..n);
        near.project(&mut block, kernels, false);
        Curvature::of(block, kernels, self.dual.scale, &point.ledger)
    }
}

impl Inner for Ridge<'_> {
    fn start(&self, _beta: &mut [f64]) {}

    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved> {
        let (dual, rows) = (self.dual, here.rows);
        let n = self.rho.len();
        let linear = linear_term(dual, rows.diagonal());
        let system = LinearSystem {
            rows,
            diagonal: self.rho,
            has_sum: false,
            concave: effort.concave,
        };
        // Whether there is a maximum at all, only its own factor says; and where rows are made each time, a product costs as much as a factor.
        if !effort.concave || !effort.allowance.rows {
            *self.kept = None;
        }
        let mut product = point.take_product(dual.variables, here);
        let none = vec![0.0; n];
        let mut steps = 0;
        for _ in 0..RENEWALS {
            let mut left = self.residual(&linear, &point.beta, &product);
            let value = (dual.scale * dot(&linear, &point.beta)).abs();
            let enough = CLOSER * effort.accuracy * value;
            if self.gap(&left, &none) <= enough {
                break;
            }
            let mut kept = self.kept.take();
            let is_enough = |left: &[f64], _| self.gap(left, &none) <= 0.5 * enough;
            let taken = system.solve(
                &mut kept,
                &mut point.beta,
                &mut left,
                is_enough,
                &point.ledger,
            );
            *self.kept = kept;
            steps += taken.ok_or_else(|| Self::error(effort.concave))?;
            product = rows.multiply(&point.beta);
        }
        if !effort.concave && self.kept.is_none() && !system.factor(self.kept, &point.ledger) {
            return Err(Self::error(false));
        }
        let left = self.residual(&linear, &point.beta, &product);
        let mut errors = product_errors(dual.variables, &point.beta, rows.diagonal());
        for (i, error) in errors.iter_mut().enumerate() {
            *error += f64::EPSILON * (linear[i].abs() + (self.rho[i] * point.beta[i]).abs());
        }
        let (plain, gap) = (self.gap(&left, &none), self.gap(&left, &errors));
        point.set_product(product, here.theta);
        point.images.clear();
        let curvature = if effort.curvature {
            let is_near = (self.kept.as_ref()).is_some_and(Preconditioner::is_near);
            if !is_near && !system.factor(self.kept, &point.ledger) {
                return Err(Self::error(effort.concave));
            }
            (self.kept.as_ref()).map(|near| self.curvature(point, here.grams, near))
        } else {
            None
        };
        Ok(Solved {
            constant: dual.scale * (dot(&dual.linear, &point.beta) - dual.penalty(&point.beta)),
            steps: steps.max(1),
            noise: dual.scale * noise(dual.variables, &linear, &point.beta, rows.diagonal()),
            errors: Vec::new(),
            is_delicate: false,
            answer: Some(Answer {
                gap,
                noise: gap - plain,
                curvature,
            }),
            linear,
        })
    }
}
