//! φ(β) = ½ρβ²: β = (K + ρ)⁻¹(q + c Σ_m θ_m d_m), one factorisation.
//!
//! With the residual r = q + c Σ_m θ_m d_m − Kβ − ρβ, J − ḡ(β) = ½κ r'(K + ρ)⁻¹r ≤ ½κ Σ_i r_i²/ρ_i for K ⪰ 0. The curvature has
//! P = (K + ρ)⁻¹: with K + ρ = LL', F = √κ L⁻¹u.
//!
//! The factor is made in place from rows of K, which need not be kept: one n × n matrix is held at least.

use super::rounding::{linear_term, noise, product_errors};
use super::{Answer, Curvature, Effort, Here, Inner, Point, Solved};
use crate::error::{Error, Result};
use crate::gram::TaskGrams;
use crate::grid::dot;
use crate::ledger::bytes_of;
use crate::linalg::{self, Cholesky, Room};
use crate::machine::Dual;

/// Added to the diagonal where rounding has made K + ρ indefinite, relative to it; ten times more until it is not.
const JITTER: f64 = 1e-15;
/// Refinements of the solution: twice for full accuracy, and once more from a matrix with jitter.
const REFINEMENTS: usize = 3;
/// The gap is this far below what is asked for: a refinement costs next to nothing beside the factorisation.
const CLOSER: f64 = 1e-3;

/// Bytes of the factor for so many samples.
pub(super) fn bytes_of_factor(samples: usize) -> u64 {
    let size = Room::None.size(samples);
    bytes_of::<f64>(size * size)
}

/// The solver for a ridge.
#[derive(Debug)]
pub(super) struct Ridge<'a> {
    pub(super) dual: &'a Dual,
    pub(super) ridge: &'a [f64],
}

impl Ridge<'_> {
    fn factor(&self, here: Here<'_>, concave: bool) -> Result<Cholesky> {
        let fill = |j: usize, column: &mut [f64]| {
            here.rows.fill(j, column);
            column[0] += self.ridge[j];
        };
        // Rounding has made K indefinite beyond λ. A nearby matrix leads close to the answer; the gap says how close.
        let rescue = linalg::rising(JITTER).take(if concave { usize::MAX } else { 0 });
        let jitters = std::iter::once(0.0).chain(rescue);
        let factor = Cholesky::of_columns(self.ridge.len(), Room::None, jitters, fill);
        factor.ok_or_else(|| Error::Numeric {
            place: "kernel ridge regression".to_string(),
            problem: if concave {
                "K(θ) is too large beside lambda for double precision; raise lambda or scale the columns"
            } else {
                "λI + K is not positive definite, so ḡ has no maximum; raise lambda above minus the smallest eigenvalue of the kernel"
            }
            .to_string(),
        })
    }

    /// r = q − Kβ − ρβ
    fn residual(&self, linear: &[f64], beta: &[f64], product: &[f64]) -> Vec<f64> {
        (0..beta.len())
            .map(|i| linear[i] - product[i] - self.ridge[i] * beta[i])
            .collect()
    }

    /// ½κ Σ_i r_i²/ρ_i, r as large as rounding may have it.
    fn gap(&self, residual: &[f64], errors: &[f64]) -> f64 {
        let squares = (residual.iter().zip(errors).zip(self.ridge))
            .map(|((residual, error), ridge)| (residual.abs() + error).powi(2) / ridge);
        0.5 * self.dual.scale * squares.sum::<f64>()
    }

    /// F with F'F = κ u'(K + ρ)⁻¹u.
    fn curvature(&self, point: &mut Point, grams: TaskGrams<'_>, factor: &Cholesky) -> Curvature {
        let n = self.ridge.len();
        let kernels = grams.grams.kernels();
        point.make_images(grams);
        let _memory = point.ledger.take(bytes_of::<f64>(n * kernels));
        let mut block = point.images.derivatives(self.dual, grams, 0..n);
        factor.solve_lower(&mut block, kernels);
        Curvature::of(block, kernels, self.dual.scale, &point.ledger)
    }
}

impl Inner for Ridge<'_> {
    fn start(&self, _beta: &mut [f64]) {}

    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved> {
        let (dual, rows) = (self.dual, here.rows);
        let n = self.ridge.len();
        let linear = linear_term(dual, rows);
        let _memory = point.ledger.take(bytes_of_factor(n));
        let factor = self.factor(here, effort.concave)?;
        // β ← β + (K + ρ)⁻¹ (q − Kβ − ρβ): from any β, warm or cold.
        let mut product = point.take_product(dual.variables, here);
        let none = vec![0.0; n];
        for _ in 0..REFINEMENTS {
            let mut left = self.residual(&linear, &point.beta, &product);
            let value = (dual.scale * dot(&linear, &point.beta)).abs();
            if self.gap(&left, &none) <= CLOSER * effort.accuracy * value {
                break;
            }
            factor.solve(&mut left, 1);
            linalg::axpy(1.0, &left, &mut point.beta);
            product = rows.product(&point.beta);
        }
        let left = self.residual(&linear, &point.beta, &product);
        let mut errors = product_errors(dual.variables, &point.beta, rows.diagonal());
        for (i, error) in errors.iter_mut().enumerate() {
            *error += f64::EPSILON * (linear[i].abs() + (self.ridge[i] * point.beta[i]).abs());
        }
        let (plain, gap) = (self.gap(&left, &none), self.gap(&left, &errors));
        point.set_product(product, here.theta);
        point.images.clear();
        // While the factorisation is there: it is as large as a Gram matrix.
        let curvature = (effort.curvature).then(|| self.curvature(point, here.grams, &factor));
        Ok(Solved {
            constant: dual.scale * (dot(&dual.linear, &point.beta) - dual.penalty(&point.beta)),
            steps: 1,
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
