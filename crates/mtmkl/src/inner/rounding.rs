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
