//! The best of one variable or of two at a time: slow, and plain enough to be believed.

/// min ½x'Qx + p'x over 0 ≤ x ≤ u, signs'x kept at its start: pairwise descent on the most violating pair.
pub(super) fn pairwise(
    q: &[f64],
    p: &[f64],
    signs: &[f64],
    upper: &[f64],
    mut x: Vec<f64>,
) -> (f64, Vec<f64>) {
    let n = x.len();
    let mut slope: Vec<f64> = (0..n)
        .map(|i| p[i] + (0..n).map(|j| q[i * n + j] * x[j]).sum::<f64>())
        .collect();
    let tolerance = 1e-11
        * slope
            .iter()
            .fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
    for _ in 0..5_000_000 {
        // Moving signs_i·x_i up lowers the value at rate −signs_i·slope_i.
        let rate = |i: usize| -signs[i] * slope[i];
        let can_rise = |i: usize| {
            if signs[i] > 0.0 {
                x[i] < upper[i]
            } else {
                x[i] > 0.0
            }
        };
        let can_fall = |i: usize| {
            if signs[i] > 0.0 {
                x[i] > 0.0
            } else {
                x[i] < upper[i]
            }
        };
        let Some(i) = (0..n)
            .filter(|&i| can_rise(i))
            .max_by(|&a, &b| rate(a).total_cmp(&rate(b)))
        else {
            break;
        };
        // The partner with the largest decrease (second order), as most violating pairs crawl on singular matrices.
        let bend = |j: usize| {
            (q[i * n + i] + q[j * n + j] - 2.0 * signs[i] * signs[j] * q[i * n + j]).max(1e-12)
        };
        let gain = |j: usize| (rate(i) - rate(j)).powi(2) / bend(j);
        let violators = (0..n).filter(|&j| can_fall(j) && rate(i) - rate(j) > tolerance);
        let Some(j) = violators.max_by(|&a, &b| gain(a).total_cmp(&gain(b))) else {
            break;
        };
        let room_i = if signs[i] > 0.0 {
            upper[i] - x[i]
        } else {
            x[i]
        };
        let room_j = if signs[j] > 0.0 {
            x[j]
        } else {
            upper[j] - x[j]
        };
        let step = ((rate(i) - rate(j)) / bend(j)).min(room_i).min(room_j);
        let moved = |k: usize, up: f64| {
            let end = x[k] + up * signs[k] * step;
            // Land on the bound exactly, or the pair is chosen again for a step of rounding size.
            if step >= room_i.min(room_j) && end < 1e-14 * upper[k] {
                0.0
            } else if end > upper[k] * (1.0 - 1e-14) {
                upper[k]
            } else {
                end
            }
        };
        let (to_i, to_j) = (moved(i, 1.0), moved(j, -1.0));
        let (by_i, by_j) = (to_i - x[i], to_j - x[j]);
        for k in 0..n {
            slope[k] += q[k * n + i] * by_i + q[k * n + j] * by_j;
        }
        x[i] = to_i;
        x[j] = to_j;
    }
    ((0..n).map(|i| 0.5 * x[i] * (slope[i] + p[i])).sum(), x)
}

/// min over b of Σ C ln(1 + exp(−y(f + b))), by bisection of its slope.
pub(super) fn least_logistic(f: &[f64], y: &[f64], c: &[f64]) -> f64 {
    let each = || f.iter().zip(y).zip(c);
    let slope = |b: f64| {
        each()
            .map(|((f, y), c)| -y * c / (1.0 + (y * (f + b)).exp()))
            .sum::<f64>()
    };
    let size = f.iter().fold(0.0_f64, |most, f| most.max(f.abs()));
    let (mut low, mut high) = (-size - 800.0, size + 800.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let losses = each().map(|((f, y), c)| {
        let t = -y * (f + low);
        c * (t.max(0.0) + (-t.abs()).exp().ln_1p())
    });
    losses.sum()
}
