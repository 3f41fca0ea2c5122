//! What J looks like at β where the terms of β'Kβ are so much larger than their sum that plain sums would leave nothing of the gap: the same
//! numbers with twice the digits. A linear kernel on few columns with a large C is such a case.

use crate::gram::TaskGrams;
use crate::ledger::Ledger;
use crate::machine::Dual;
use crate::vector::{exact_dot, rounding};

/// Sensitivities and Kβ, and what rounding can still do.
#[derive(Debug)]
pub(super) struct Exact {
    /// s_m = κ ( ½ β'K_mβ − c d_m'β )
    pub(super) sensitivities: Vec<f64>,
    /// K(θ)β by sample, and what it may be off by.
    pub(super) product: Vec<f64>,
    pub(super) errors: Vec<f64>,
    /// What rounding can do to ḡ, but for its linear part.
    pub(super) noise: f64,
}

/// Of β per sample: n² products for each kernel.
pub(super) fn evaluate(
    dual: &Dual,
    grams: TaskGrams<'_>,
    theta: &[f64],
    beta: &[f64],
    ledger: &Ledger,
) -> Exact {
    let n = beta.len();
    let support: Vec<usize> = (0..n).filter(|&i| beta[i] != 0.0).collect();
    let own: Vec<f64> = support.iter().map(|&i| beta[i]).collect();
    let mut row = vec![0.0; support.len()];
    // θ_m of the kernels that have a weight, and for each sample their K_mβ: high and low parts as two terms.
    let used = theta.iter().filter(|&&weight| weight != 0.0);
    let weights: Vec<f64> = used.flat_map(|&weight| [weight, weight]).collect();
    let terms = weights.len();
    let mut images = ledger.zeros::<f64>(n * terms);
    let mut term = 0;
    let mut exact = Exact {
        sensitivities: Vec::with_capacity(theta.len()),
        product: Vec::with_capacity(n),
        errors: Vec::with_capacity(n),
        noise: 0.0,
    };
    for (kernel, &weight) in theta.iter().enumerate() {
        let mut highs = Vec::with_capacity(n);
        let mut lows = Vec::with_capacity(n);
        for i in 0..n {
            grams.entries(i, &support, &[(kernel, 1.0)], &mut row);
            let (high, low) = exact_dot(&row, &own);
            highs.push(high);
            lows.push(low);
            if weight != 0.0 {
                images[i * terms + term] = high;
                images[i * terms + term + 1] = low;
            }
        }
        term += if weight == 0.0 { 0 } else { 2 };
        let (high, low) = exact_dot(beta, &highs);
        let square = high + (low + exact_dot(beta, &lows).0);
        let diagonals: Vec<f64> = (0..n).map(|i| grams.diagonal(kernel, i)).collect();
        let straight = if dual.diagonal == 0.0 {
            0.0
        } else {
            dual.diagonal * exact_dot(&diagonals, beta).0
        };
        let sensitivity = dual.scale * (0.5 * square - straight);
        let size = dual.scale * (0.5 * square.abs() + straight.abs());
        exact.noise += rounding(theta.len()) * weight.abs() * size;
        exact.sensitivities.push(sensitivity);
    }
    for i in 0..n {
        let images = &images[i * terms..(i + 1) * terms];
        let (high, _) = exact_dot(&weights, images);
        let sizes = weights.iter().zip(images).map(|(w, u)| (w * u).abs());
        // θ_m U_m has lost nothing; the sum is rounded once, and so is what the kernels' rows are combined to.
        exact
            .errors
            .push(f64::EPSILON * (high.abs() + f64::EPSILON * sizes.sum::<f64>()));
        exact.product.push(high);
    }
    exact
}

#[cfg(test)]
mod tests {
    use super::super::tests::whole;
    use super::*;
    use crate::gram::given;
    use crate::machine::{Conjugate, Variables};

    /// Whole numbers, so that nothing is rounded: what is said of rounding is then all there is to compare.
    #[test]
    fn sums_of_whole_numbers_are_exact_and_their_errors_those_of_one_rounding() {
        let kernels = [
            vec![2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0],
            vec![1.0, -1.0, 0.0, -1.0, 2.0, 0.0, 0.0, 0.0, 5.0],
            vec![1.0; 9],
        ];
        let grams = given(3, kernels.to_vec());
        let dual = Dual {
            scale: 2.0,
            variables: Variables::one_each(3),
            linear: vec![0.0; 3],
            diagonal: 0.5,
            conjugate: Conjugate::Ridge { ridge: Vec::new() },
        };
        let (theta, beta) = ([2.0, -0.5, 0.0], [1.0, 0.0, -3.0]);
        let found = evaluate(&dual, whole(&grams), &theta, &beta, &Ledger::default());
        // K_mβ: (2, −2, −12), (1, −1, −15) and −2 everywhere; β'K_mβ: 38, 46 and 4; d_m'β: −10, −14 and −2.
        let own = |square: f64, straight: f64| 2.0 * (0.5 * square - 0.5 * straight);
        assert_eq!(
            found.sensitivities,
            [own(38.0, -10.0), own(46.0, -14.0), own(4.0, -2.0)]
        );
        assert_eq!(found.product, [3.5, -3.5, -16.5]);
        let size = |square: f64, straight: f64| 2.0 * (0.5 * square + 0.5 * straight);
        let noise = rounding(3) * (2.0 * size(38.0, 10.0) + 0.5 * size(46.0, 14.0));
        assert!((found.noise - noise).abs() <= 1e-15 * noise);
        let sizes = [4.0 + 0.5, 4.0 + 0.5, 24.0 + 7.5];
        for ((error, product), size) in found.errors.iter().zip(&found.product).zip(sizes) {
            let expected = f64::EPSILON * (f64::abs(*product) + f64::EPSILON * size);
            assert!(
                (error - expected).abs() <= 1e-20 * f64::EPSILON + 1e-16 * expected * f64::EPSILON,
                "{error} {expected}"
            );
        }
    }
}
