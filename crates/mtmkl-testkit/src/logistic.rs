//! Kernel logistic regression at a fixed kernel, from the primal side.

use crate::generate::{dot, eliminate, times};

/// ½ a'Ka + Σ C_i ln(1 + exp(−y_i((Ka)_i + b)))
pub fn primal(kernel: &[f64], y: &[f64], c: &[f64], a: &[f64], b: f64) -> f64 {
    let f = times(kernel, a);
    let losses = f.iter().zip(y).zip(c).map(|((f, y), c)| {
        let t = -y * (f + b);
        c * (t.max(0.0) + (-t.abs()).exp().ln_1p())
    });
    0.5 * dot(a, &f) + losses.sum::<f64>()
}

/// −Σ [α ln(α/C) + (C − α) ln((C − α)/C)], α = yβ: the part of the dual without the kernel.
pub fn entropy(y: &[f64], c: &[f64], beta: &[f64]) -> f64 {
    let terms = beta.iter().zip(y).zip(c).map(|((beta, y), c)| {
        let alpha = y * beta;
        let less = alpha.min(c - alpha);
        // x ln x is 0 at 0.
        if less > 0.0 {
            less * (less / c).ln() + (c - less) * (-less / c).ln_1p()
        } else {
            0.0
        }
    });
    -terms.sum::<f64>()
}

/// The minimum of the primal over a and b, by damped Newton steps on the primal: gradient K(a − v), −Σv with v = C y σ(−y(Ka + b)).
pub fn least_primal(kernel: &[f64], y: &[f64], c: &[f64]) -> f64 {
    least_primal_at(kernel, y, c).0
}

/// The same, and a that reaches it.
pub fn least_primal_at(kernel: &[f64], y: &[f64], c: &[f64]) -> (f64, Vec<f64>) {
    let n = y.len();
    let (mut a, mut b) = (vec![0.0; n], 0.0);
    for _ in 0..200 {
        let f = times(kernel, &a);
        let p: Vec<f64> = (0..n)
            .map(|i| 1.0 / (1.0 + (y[i] * (f[i] + b)).exp()))
            .collect();
        // (I + WK) δa + w δb = v − a, w'Kδa + Σw δb = Σv, W = diag of C p (1 − p).
        let size = n + 1;
        let mut matrix = vec![0.0; size * size];
        let mut right = vec![0.0; size];
        for i in 0..n {
            let w = c[i] * p[i] * (1.0 - p[i]);
            for j in 0..n {
                matrix[i * size + j] = w * kernel[i * n + j] + f64::from(u8::from(i == j));
                matrix[n * size + j] += w * kernel[i * n + j];
            }
            matrix[i * size + n] = w;
            matrix[n * size + n] += w;
            right[i] = c[i] * y[i] * p[i] - a[i];
            right[n] += c[i] * y[i] * p[i];
        }
        let direction = eliminate(matrix, right);
        let now = primal(kernel, y, c, &a, b);
        let mut step = 1.0;
        let moved = loop {
            let moved: Vec<f64> = (a.iter().zip(&direction))
                .map(|(a, d)| a + step * d)
                .collect();
            let value = primal(kernel, y, c, &moved, b + step * direction[n]);
            if value <= now || step < 1e-12 {
                break moved;
            }
            step *= 0.5;
        };
        (a, b) = (moved, b + step * direction[n]);
        if direction.iter().all(|d| d.abs() < 1e-12) {
            break;
        }
    }
    (primal(kernel, y, c, &a, b), a)
}
