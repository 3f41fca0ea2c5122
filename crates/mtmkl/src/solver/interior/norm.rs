//! ‖x‖_p on x ≥ 0, its gradient (x/N)^{p−1} and the diagonal of its second derivative.
//!
//! ∇²N = (p−1)/N · (diag((x/N)^{p−2}) − ∇N∇N'): smooth on x > 0, also at p = 1, where it vanishes. Powers are taken after dividing by the largest entry, so that
//! none overflows.

/// x^p; the usual p need no logarithm.
fn power(x: f64, p: f64) -> f64 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x * x
    } else if p == 3.0 {
        x * x * x
    } else if p == 1.5 {
        x * x.sqrt()
    } else if p == 0.5 {
        x.sqrt()
    } else {
        x.powf(p)
    }
}

/// ‖x‖_p for x ≥ 0.
pub(super) fn norm(x: &[f64], p: f64) -> f64 {
    if p == 1.0 {
        return x.iter().sum();
    }
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = x.iter().map(|value| power(value / largest, p)).sum();
    largest * power(sum, 1.0 / p)
}

/// ‖x‖_p for x > 0; `out` becomes its gradient (x/N)^{p−1}.
pub(super) fn norm_and_gradient(x: &[f64], p: f64, out: &mut [f64]) -> f64 {
    if p == 1.0 {
        out.fill(1.0);
        return x.iter().sum();
    }
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    let mut sum = 0.0;
    for (out, value) in out.iter_mut().zip(x) {
        *out = power(value / largest, p);
        sum += *out;
    }
    let norm = largest * power(sum, 1.0 / p);
    // (x/N)^{p−1} = (x/largest)^p (largest/x) (largest/N)^{p−1}
    let scale = largest * power(largest / norm, p - 1.0);
    for (out, value) in out.iter_mut().zip(x) {
        *out *= scale / value;
    }
    norm
}

/// Adds scale/N · (x/N)^{p−2} = scale · ∇N/x to a diagonal.
pub(super) fn add_norm_diagonal(diagonal: &mut [f64], x: &[f64], gradient: &[f64], scale: f64) {
    if scale == 0.0 {
        return;
    }
    for (value, (x, gradient)) in diagonal.iter_mut().zip(x.iter().zip(gradient)) {
        *value += scale * gradient / x;
    }
}

/// x scaled down to the radius, where its norm is larger.
pub(super) fn scale_down(x: &mut [f64], radius: f64, norm: f64) {
    if norm > radius {
        for value in x.iter_mut() {
            *value *= radius / norm;
        }
    }
}

/// x scaled from one norm to another; nothing has no other norm.
pub(super) fn rescale(x: &mut [f64], from: f64, to: f64) {
    if from > 0.0 {
        for value in x.iter_mut() {
            *value *= to / from;
        }
    }
}

/// Zeroes entries below the least.
pub(super) fn drop_below(x: &mut [f64], least: f64) {
    x.iter_mut()
        .filter(|value| **value < least)
        .for_each(|value| *value = 0.0);
}
