//! φ(β) = ½ρβ²: β = (K + ρ)⁻¹(q + c Σ_m θ_m d_m), by conjugate gradients with a factor that is kept from θ to θ.
//!
//! With the residual r = q + c Σ_m θ_m d_m − Kβ − ρβ, J − ḡ(β) = ½κ r'(K + ρ)⁻¹r ≤ ½κ Σ_i r_i²/ρ_i for K ⪰ 0, r made anew from β. The
//! curvature has P = (K + ρ)⁻¹.

use super::linear_system::{LinearSystem, Preconditioner, streamed_rows};
use super::rounding::{linear_term, noise, objective, product_errors};
use super::{Answer, Curvature, Effort, Here, Inner, Point, Progress, Solved};
use crate::error::{Error, Result};
use crate::gram::{CombinedRows, TaskGrams};
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

    /// The gap that is small enough, for ḡ of this size.
    fn enough(&self, effort: &Effort<'_>, linear: &[f64], beta: &[f64]) -> f64 {
        CLOSER * effort.accuracy * (self.dual.scale * dot(linear, beta)).abs()
    }

    fn system<'s>(&'s self, rows: &'s CombinedRows<'s>, effort: &Effort<'_>) -> LinearSystem<'s> {
        LinearSystem {
            rows,
            diagonal: self.rho,
            has_sum: false,
            concave: effort.concave,
            landmarks: effort.allowance.most_free,
        }
    }

    /// β ← β + (K + ρ)⁻¹r, about; how many steps that took.
    fn improve(
        &mut self,
        point: &mut Point,
        rows: &CombinedRows<'_>,
        linear: &[f64],
        mut left: Vec<f64>,
        effort: &Effort<'_>,
    ) -> Result<usize> {
        let mut kept = self.kept.take();
        let none = vec![0.0; left.len()];
        let (scale, mut enough) = (self.dual.scale, self.enough(effort, linear, &point.beta));
        let mut is_first = true;
        let is_enough = |left: &[f64], energy: f64| {
            if std::mem::take(&mut is_first) {
                // From β = 0 that is what ḡ will be, about.
                enough = enough.max(CLOSER * effort.accuracy * scale * energy);
            }
            self.gap(left, &none) <= 0.5 * enough
        };
        let taken = self.system(rows, effort).solve(
            &mut kept,
            &mut point.beta,
            &mut left,
            is_enough,
            &point.ledger,
        );
        *self.kept = kept;
        // Rows that were not made for a stop say nothing about K.
        let taken = taken.or_else(|| effort.stop.now().then_some(0));
        taken.ok_or_else(|| Self::error(effort.concave))
    }

    /// What β is worth, Kβ being this within these errors.
    fn judged(
        &mut self,
        point: &mut Point,
        here: Here<'_>,
        linear: Vec<f64>,
        (product, mut errors): (Vec<f64>, Vec<f64>),
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        let dual = self.dual;
        let left = self.residual(&linear, &point.beta, &product);
        for (i, error) in errors.iter_mut().enumerate() {
            *error += f64::EPSILON * (linear[i].abs() + (self.rho[i] * point.beta[i]).abs());
        }
        let none = vec![0.0; left.len()];
        let (plain, gap) = (self.gap(&left, &none), self.gap(&left, &errors));
        point.set_product(product, here.theta);
        let curvature = if effort.curvature && effort.stop.now() {
            Some(Curvature::none())
        } else if effort.curvature {
            let is_near = (self.kept.as_ref()).is_some_and(Preconditioner::is_near);
            if !is_near {
                let mut kept = self.kept.take();
                let is_made = (self.system(here.rows, effort)).factor(&mut kept, &point.ledger);
                if !is_made && !effort.stop.now() {
                    return Err(Self::error(effort.concave));
                }
                *self.kept = kept.filter(|_| is_made);
            }
            let near = self.kept.as_ref();
            Some(near.map_or_else(Curvature::none, |near| {
                self.curvature(point, here.grams, near)
            }))
        } else {
            None
        };
        let noise = noise(dual.variables, &linear, &point.beta, here.rows.diagonal());
        Ok(Solved {
            constant: dual.scale * (dot(&dual.linear, &point.beta) - dual.penalty(&point.beta)),
            steps: 1,
            noise: dual.scale * noise,
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
        let block = point.images.derivatives(self.dual, grams, 0..n);
        let block = near.project(block, kernels, false);
        Curvature::of(block, kernels, self.dual.scale, &point.ledger)
    }
}

impl Inner for Ridge<'_> {
    fn start(&self, _beta: &mut [f64]) {}

    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved> {
        let (dual, rows) = (self.dual, here.rows);
        let linear = linear_term(dual, rows.diagonal());
        // Whether there is a maximum at all, only its own factor says; and where rows are made each time, a product costs as much as a factor.
        if !effort.concave || !effort.allowance.rows {
            *self.kept = None;
        }
        let mut product = point.take_product(dual.variables, here);
        let none = vec![0.0; linear.len()];
        let mut steps = 0;
        for _ in 0..RENEWALS {
            let left = self.residual(&linear, &point.beta, &product);
            if self.gap(&left, &none) <= self.enough(effort, &linear, &point.beta) {
                break;
            }
            steps += self.improve(point, rows, &linear, left, effort)?;
            product = rows.multiply(&point.beta);
        }
        if !effort.concave && self.kept.is_none() {
            let mut kept = None;
            if !self.system(rows, effort).factor(&mut kept, &point.ledger) {
                return Err(Self::error(false));
            }
            *self.kept = kept;
        }
        point.images.clear();
        let errors = product_errors(dual.variables, &point.beta, rows.diagonal());
        let solved = self.judged(point, here, linear, (product, errors), effort)?;
        Ok(Solved {
            steps: steps.max(1),
            ..solved
        })
    }

    fn round(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Solved>> {
        let dual = self.dual;
        let rows = streamed_rows(grams, theta, effort);
        let linear = linear_term(dual, rows.diagonal());
        let product = point.known_product(dual.variables, theta);
        let left = self.residual(&linear, &point.beta, &product);
        let gap = self.gap(&left, &vec![0.0; left.len()]);
        let penalty = dual.penalty(&point.beta);
        let value = dual.scale * (objective(&linear, &point.beta, &product) - penalty);
        let enough = self.enough(effort, &linear, &point.beta);
        let is_done = progress.is_done(value, gap, enough) || effort.stop.now();
        if !is_done {
            rows.make_together();
            if rows.are_streamed() {
                // Landmarks of this very θ cost less than the products that they save.
                *self.kept = None;
            }
            let before = point.beta.clone();
            if !effort.stop.now() {
                let steps = self.improve(point, &rows, &linear, left, effort)?;
                progress.note_steps(steps, linear.len());
            }
            if point.beta != before {
                return Ok(None);
            }
        }
        let here = Here {
            grams,
            rows: &rows,
            theta,
        };
        let errors = point.followed_errors(dual.variables, rows.diagonal());
        let solved = self.judged(point, here, linear, (product, errors), effort)?;
        Ok(Some(progress.of(solved)))
    }

    fn unswept(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        let rows = streamed_rows(grams, theta, effort);
        let linear = linear_term(self.dual, rows.diagonal());
        let known = point.product_where_known(self.dual.variables, theta, rows.diagonal());
        let here = Here {
            grams,
            rows: &rows,
            theta,
        };
        let solved = self.judged(point, here, linear, known, effort)?;
        Ok(solved.without_noise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inner::tests::effort;
    use crate::machine::{Conjugate, Variables};
    use crate::run::Stop;

    #[test]
    fn the_gap_is_of_residuals_as_large_as_rounding_may_have_them() {
        let dual = Dual {
            scale: 2.0,
            variables: Variables::one_each(2),
            linear: vec![3.0, 1.0],
            diagonal: 0.0,
            conjugate: Conjugate::Ridge {
                ridge: vec![0.5, 2.0],
            },
        };
        let ridge = Ridge {
            dual: &dual,
            rho: &[0.5, 2.0],
            kept: &mut None,
        };
        let left = ridge.residual(&[3.0, 1.0], &[1.0, 2.0], &[2.0, -1.0]);
        assert_eq!(left, [0.5, -2.0]);
        // ½ · 2 · (0.75²/½ + 2.5²/2)
        assert_eq!(ridge.gap(&left, &[0.25, 0.5]), 1.125 + 3.125);
        let stop = Stop::never();
        let effort = effort(0.1, &stop);
        // A hundredth of what is asked for, of 2 q'β = 10.
        let enough = ridge.enough(&effort, &[3.0, 1.0], &[1.0, 2.0]);
        assert!((enough - 0.01).abs() <= 1e-16);
    }
}
