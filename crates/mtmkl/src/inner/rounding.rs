//! How far floating-point sums can be from what they stand for, and the accuracy that is worth asking for.
//!
//! A sum of n terms is off by about ε √n times the sum of their sizes, and |K_ij| ≤ √(K_ii K_jj) bounds the sizes of what Kβ and β'Kβ are made
//! of.

use super::Effort;
use crate::grid::dot;
use crate::machine::{Dual, Variables};
use crate::vector::rounding;

/// The gap is at most this part of ½ β'Kβ, all that depends on θ.
const OWN_ACCURACY: f64 = 0.01;

/// q + c Σ_m θ_m d_m, per variable.
pub(super) fn linear_term(dual: &Dual, diagonal: &[f64]) -> Vec<f64> {
    let terms = dual.linear.iter().enumerate();
    terms
        .map(|(v, q)| q + dual.diagonal * diagonal[dual.variables.sample_of(v)])
        .collect()
}

/// The size of slopes q − Kβ: that of q or, where there is none, of Kβ before anything cancels.
pub(super) fn slope_size(linear: &[f64], beta: &[f64], diagonal: &[f64]) -> f64 {
    let largest = |values: &[f64]| values.iter().fold(0.0_f64, |a, &b| a.max(b.abs()));
    let linear = largest(linear);
    if linear > 0.0 {
        return linear;
    }
    (largest(diagonal) * beta.iter().map(|value| value.abs()).sum::<f64>()).max(1e-300)
}

/// What rounding can do to q'β − ½ β'Kβ.
pub(super) fn noise(variables: Variables, linear: &[f64], beta: &[f64], diagonal: &[f64]) -> f64 {
    let (mut straight, mut root) = (0.0, 0.0);
    for (v, value) in beta.iter().enumerate() {
        straight += (linear[v] * value).abs();
        root += value.abs() * diagonal[variables.sample_of(v)].abs().sqrt();
    }
    rounding(variables.samples()) * (straight + 0.5 * root * root)
}

/// What rounding can do to each entry of Kβ.
pub(super) fn product_errors(variables: Variables, beta: &[f64], diagonal: &[f64]) -> Vec<f64> {
    let roots: Vec<f64> = diagonal.iter().map(|d| d.abs().sqrt()).collect();
    let terms = beta.iter().enumerate();
    let terms = terms.map(|(v, b)| b.abs() * roots[variables.sample_of(v)]);
    let length = rounding(variables.samples()) * terms.sum::<f64>();
    roots.iter().map(|root| root * length).collect()
}

/// q'β − ½ β'Kβ
pub(super) fn objective(linear: &[f64], beta: &[f64], product: &[f64]) -> f64 {
    let copies = beta.chunks_exact(product.len());
    dot(linear, beta) - 0.5 * copies.map(|copy| dot(copy, product)).sum::<f64>()
}

/// The gap that is small enough here, for ḡ of this value before φ and κ: as small as is asked for, but not below what rounding can do.
pub(super) fn target(
    dual: &Dual,
    effort: &Effort<'_>,
    linear: &[f64],
    beta: &[f64],
    product: &[f64],
    diagonal: &[f64],
) -> f64 {
    let quadratic = objective(linear, beta, product);
    let value = dual.scale * (quadratic - dual.penalty(beta));
    let straight = noise(dual.variables, linear, beta, diagonal);
    let noise = dual.scale * (straight + rounding(beta.len()) * dual.size_of_penalty(beta));
    // With next to no weight, what β should be is a matter of next to nothing, but its sensitivities are not.
    let own = dual.scale * (dot(linear, beta) - quadratic).abs();
    (effort.accuracy * value.abs().max(effort.size))
        .min(OWN_ACCURACY * own)
        .max(noise)
}

#[cfg(test)]
mod tests {
    use super::super::Allowance;
    use super::*;
    use crate::machine::Conjugate;
    use crate::run::Stop;

    /// Two samples with two variables each.
    const COPIES: [f64; 4] = [1.0, -3.0, 0.5, 2.0];

    #[test]
    fn slopes_are_as_large_as_q_or_else_as_what_k_beta_is_made_of() {
        assert_eq!(slope_size(&[1.0, -3.0], &[9.0, 9.0], &[9.0, 9.0]), 3.0);
        assert_eq!(slope_size(&[0.0, 0.0], &[1.0, -2.0], &[2.0, -5.0]), 15.0);
        assert_eq!(slope_size(&[0.0], &[0.0], &[2.0]), 1e-300);
    }

    #[test]
    fn noise_is_that_of_terms_without_signs() {
        let variables = Variables::new(2, 2);
        let linear = [2.0, -1.0, 4.0, 0.0];
        // √K_ii of 2 and 3.
        let diagonal = [4.0, 9.0];
        let straight = 2.0 + 3.0 + 2.0;
        let root: f64 = 2.0 + 9.0 + 1.0 + 6.0;
        let expected = rounding(2) * (straight + 0.5 * root * root);
        let found = noise(variables, &linear, &COPIES, &diagonal);
        assert!((found - expected).abs() <= 1e-15 * expected);
        let errors = product_errors(variables, &COPIES, &diagonal);
        for (error, own) in errors.iter().zip([2.0, 3.0]) {
            let expected = rounding(2) * root * own;
            assert!((error - expected).abs() <= 1e-15 * expected);
        }
    }

    #[test]
    fn the_objective_is_of_all_copies() {
        // q'β = 1 + 3 + 2, β'Kβ of the sums (1.5, −1) with Kβ = (2, 5).
        let found = objective(&[1.0, -1.0, 4.0, 0.0], &COPIES, &[2.0, 5.0]);
        assert_eq!(found, 6.0 - 0.5 * (3.0 - 5.0));
    }

    #[test]
    fn the_gap_to_reach_is_what_is_asked_for_within_what_theta_decides_and_rounding() {
        let stop = Stop::never();
        let effort = |accuracy: f64, size: f64| Effort {
            accuracy,
            size,
            curvature: true,
            shrinking: true,
            concave: true,
            allowance: Allowance::default(),
            stop: &stop,
        };
        let dual = Dual {
            scale: 2.0,
            variables: Variables::one_each(1),
            linear: vec![3.0],
            diagonal: 0.0,
            conjugate: Conjugate::Ridge { ridge: vec![0.5] },
        };
        let find = |effort: &Effort<'_>| target(&dual, effort, &[3.0], &[1.0], &[1.0], &[1.0]);
        let close = |found: f64, expected: f64| (found - expected).abs() <= 1e-15;
        // ḡ = 2 (3 − ½ − ¼), of which ½ β'Kβ is 2 · ½.
        assert!(close(find(&effort(1e-3, 0.0)), 4.5e-3));
        assert!(close(find(&effort(1e-5, 100.0)), 1e-3));
        assert!(close(find(&effort(0.1, 0.0)), OWN_ACCURACY));
        let least = 2.0 * noise(dual.variables, &[3.0], &[1.0], &[1.0]);
        assert!(close(find(&effort(0.0, 0.0)), least) && least > 0.0);
    }
}
