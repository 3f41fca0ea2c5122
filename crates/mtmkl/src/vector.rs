//! The innermost loops, compiled for the widest vector instructions of the machine at hand. Sums have a fixed order, so that
//! results do not depend on anything but the machine.

#![allow(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the wider instructions"
)]

mod exp;

use std::sync::OnceLock;

use pulp::Arch;

pub(crate) use exp::{exp, map_exp};

fn arch() -> Arch {
    static ARCH: OnceLock<Arch> = OnceLock::new();
    *ARCH.get_or_init(Arch::new)
}

/// Σ_i a_i b_i in interleaved sums.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() < 16 {
        return dot_loop(a, b);
    }
    arch().dispatch(
        #[inline(always)]
        || dot_loop(a, b),
    )
}

#[inline(always)]
fn dot_loop(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (chunks_a, rest_a) = a.as_chunks::<LANES>();
    let (chunks_b, rest_b) = b.as_chunks::<LANES>();
    for (x, y) in chunks_a.iter().zip(chunks_b) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = rest_a.iter().zip(rest_b).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// y ← y + a x.
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    if y.len() < 16 {
        for (out, value) in y.iter_mut().zip(x) {
            *out += a * value;
        }
        return;
    }
    arch().dispatch(
        #[inline(always)]
        || {
            for (out, value) in y.iter_mut().zip(x) {
                *out += a * value;
            }
        },
    );
}

/// y ← y + a x and Σ_i x_i b_i, reading x once.
pub(crate) fn dot_and_add(x: &[f64], b: &[f64], a: f64, y: &mut [f64]) -> f64 {
    arch().dispatch(
        #[inline(always)]
        || {
            let mut sums = [0.0; LANES];
            let (x_chunks, x_rest) = x.as_chunks::<LANES>();
            let (b_chunks, b_rest) = b.as_chunks::<LANES>();
            let (y_chunks, y_rest) = y.as_chunks_mut::<LANES>();
            for ((x, b), y) in x_chunks.iter().zip(b_chunks).zip(y_chunks) {
                for lane in 0..LANES {
                    sums[lane] += x[lane] * b[lane];
                    y[lane] += a * x[lane];
                }
            }
            let mut rest = 0.0;
            for ((x, b), y) in x_rest.iter().zip(b_rest).zip(y_rest) {
                rest += x * b;
                *y += a * x;
            }
            // By halves: rows are short, and one sum after the other would take longer than the row.
            let [p, q, r, s, t, u, v, w] = sums;
            ((p + t) + (r + v)) + ((q + u) + (s + w)) + rest
        },
    )
}

/// y ← y + Σ_k a_k x_k, four rows at a time: y is read and written once for four rows of x.
pub(crate) fn add_rows<T: Copy + Into<f64>>(rows: &[(f64, &[T])], y: &mut [f64]) {
    arch().dispatch(
        #[inline(always)]
        || {
            let (fours, rest) = rows.as_chunks::<4>();
            for [(a, p), (b, q), (c, r), (d, s)] in fours {
                for ((((out, &p), &q), &r), &s) in y.iter_mut().zip(*p).zip(*q).zip(*r).zip(*s) {
                    *out += (a * p.into() + b * q.into()) + (c * r.into() + d * s.into());
                }
            }
            for (a, x) in rest {
                for (out, &value) in y.iter_mut().zip(*x) {
                    *out += a * value.into();
                }
            }
        },
    );
}

/// y ← y + step · (a − b).
pub(crate) fn add_difference(step: f64, a: &[f64], b: &[f64], y: &mut [f64]) {
    arch().dispatch(
        #[inline(always)]
        || {
            for ((out, a), b) in y.iter_mut().zip(a).zip(b) {
                *out += step * (a - b);
            }
        },
    );
}

/// Whether all values are finite.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    arch().dispatch(
        #[inline(always)]
        || {
            values
                .iter()
                .fold(true, |all, value| all & value.is_finite())
        },
    )
}

/// v_j ← max(own + squares_j − 2 v_j, 0): squared distances from inner products.
pub(crate) fn squared_distances(own: f64, squares: &[f64], values: &mut [f64]) {
    arch().dispatch(
        #[inline(always)]
        || {
            for (value, other) in values.iter_mut().zip(squares) {
                *value = (own + other - 2.0 * *value).max(0.0);
            }
        },
    );
}

/// out_j ← Σ_k term(x_k, z_jk) for the first rows of Z, given column by column; summed in the order of k.
pub(crate) fn sum_terms(
    x: &[f64],
    columns: &[f64],
    out: &mut [f64],
    term: impl Fn(f64, f64) -> f64,
) {
    const WIDE: usize = 32;
    let count = columns.len() / x.len();
    arch().dispatch(
        #[inline(always)]
        || {
            for (number, chunk) in out.chunks_mut(WIDE).enumerate() {
                let range = number * WIDE..number * WIDE + chunk.len();
                let mut sums = [0.0; WIDE];
                for (&value, column) in x.iter().zip(columns.chunks_exact(count)) {
                    for (sum, &other) in sums.iter_mut().zip(&column[range.clone()]) {
                        *sum += term(value, other);
                    }
                }
                chunk.copy_from_slice(&sums[..chunk.len()]);
            }
        },
    );
}

const LANES: usize = 8;

/// The position and value of max (a − b + c), and of none where all are −∞.
pub(crate) fn largest(a: &[f64], b: &[f64], c: &[f64]) -> Option<(usize, f64)> {
    arch().dispatch(
        #[inline(always)]
        || {
            let mut best = [f64::NEG_INFINITY; LANES];
            let mut position = [0.0; LANES];
            let mut at = 0.0;
            let (a_chunks, a_rest) = a.as_chunks::<LANES>();
            let (b_chunks, b_rest) = b.as_chunks::<LANES>();
            let (c_chunks, c_rest) = c.as_chunks::<LANES>();
            for ((a, b), c) in a_chunks.iter().zip(b_chunks).zip(c_chunks) {
                for lane in 0..LANES {
                    let value = a[lane] - b[lane] + c[lane];
                    let better = value > best[lane];
                    best[lane] = if better { value } else { best[lane] };
                    position[lane] = if better { at } else { position[lane] };
                }
                at += LANES as f64;
            }
            let mut found = reduce(&best, &position);
            for (offset, ((a, b), c)) in a_rest.iter().zip(b_rest).zip(c_rest).enumerate() {
                let value = a - b + c;
                if found.is_none_or(|(_, best)| value > best) && value > f64::NEG_INFINITY {
                    found = Some((a_chunks.len() * LANES + offset, value));
                }
            }
            found
        },
    )
}

/// What the second variable of a pair promises, see [`best_partner`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partner {
    /// The position of the largest gain, where one is positive.
    pub(crate) position: Option<usize>,
    pub(crate) gain: f64,
    /// The lowest slope of all that can shrink.
    pub(crate) lowest: f64,
}

/// Slopes a − b (+∞ by c where a variable cannot shrink); gain = (highest − slope)² / max(own + d − 2k, least).
pub(crate) fn best_partner(
    [a, b, c, d, k]: [&[f64]; 5],
    highest: f64,
    own: f64,
    least: f64,
) -> Partner {
    arch().dispatch(
        #[inline(always)]
        || {
            let mut best = [0.0; LANES];
            let mut position = [0.0; LANES];
            let mut low = [f64::INFINITY; LANES];
            let mut at = 0.0;
            let chunks = a.len() / LANES;
            let whole = chunks * LANES;
            for chunk in 0..chunks {
                let range = chunk * LANES..(chunk + 1) * LANES;
                let (a, b, c) = (&a[range.clone()], &b[range.clone()], &c[range.clone()]);
                let (d, k) = (&d[range.clone()], &k[range]);
                for lane in 0..LANES {
                    let slope = a[lane] - b[lane] + c[lane];
                    low[lane] = if slope < low[lane] { slope } else { low[lane] };
                    let gain = gain_of(highest - slope, own + d[lane] - 2.0 * k[lane], least);
                    let better = gain > best[lane];
                    best[lane] = if better { gain } else { best[lane] };
                    position[lane] = if better { at } else { position[lane] };
                }
                at += LANES as f64;
            }
            let mut lowest = low.iter().copied().fold(f64::INFINITY, f64::min);
            let mut found = reduce(&best, &position).filter(|(_, gain)| *gain > 0.0);
            for i in whole..a.len() {
                let slope = a[i] - b[i] + c[i];
                lowest = lowest.min(slope);
                let gain = gain_of(highest - slope, own + d[i] - 2.0 * k[i], least);
                if gain > found.map_or(0.0, |(_, best)| best) {
                    found = Some((i, gain));
                }
            }
            Partner {
                position: found.map(|(position, _)| position),
                gain: found.map_or(0.0, |(_, gain)| gain),
                lowest,
            }
        },
    )
}

/// difference² / curvature, 0 where there is nothing to gain.
#[inline(always)]
fn gain_of(difference: f64, curvature: f64, least: f64) -> f64 {
    let curvature = if curvature > least { curvature } else { least };
    if difference > 0.0 {
        difference * difference / curvature
    } else {
        0.0
    }
}

/// The best lane; positions are those of the lanes' chunks.
#[inline(always)]
fn reduce(best: &[f64; LANES], position: &[f64; LANES]) -> Option<(usize, f64)> {
    let mut lane = 0;
    for other in 1..LANES {
        if best[other] > best[lane] {
            lane = other;
        }
    }
    // Positions were counted in floats, exactly.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let start = position[lane] as usize;
    (best[lane] > f64::NEG_INFINITY).then_some((start + lane, best[lane]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut random = crate::random::Random::new(seed);
        (0..n).map(|_| random.uniform() - 0.5).collect()
    }

    #[test]
    fn loops_equal_their_plain_forms() {
        for n in (0..70).chain([1000]) {
            let (a, b, c, d) = (numbers(n, 1), numbers(n, 2), numbers(n, 3), numbers(n, 4));
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert!((dot(&a, &b) - plain).abs() < 1e-12);
            let rows: Vec<(f64, &[f64])> = vec![
                (0.5, &a),
                (-1.0, &b),
                (2.0, &c),
                (0.1, &d),
                (3.0, &a),
                (1.0, &b),
            ];
            let (mut once, mut twice) = (vec![1.0; n], vec![1.0; n]);
            add_rows(&rows, &mut once);
            for (weight, row) in &rows {
                axpy(*weight, row, &mut twice);
            }
            assert!(once.iter().zip(&twice).all(|(x, y)| (x - y).abs() < 1e-13));
            let (mut added, mut expected) = (c.clone(), c.clone());
            axpy(0.7, &a, &mut expected);
            let sum = dot_and_add(&a, &b, 0.7, &mut added);
            assert!((sum - plain).abs() < 1e-12);
            assert_eq!(added, expected);
            add_difference(0.3, &a, &b, &mut once);
            assert!((0..n).all(|i| (once[i] - twice[i] - 0.3 * (a[i] - b[i])).abs() < 1e-13));
        }
    }

    #[test]
    fn pairs_equal_their_plain_forms() {
        for (n, d) in [(1, 1), (31, 3), (32, 1), (100, 7)] {
            let (x, z) = (numbers(d, 1), numbers(n * d, 2));
            let mut out = vec![f64::NAN; n];
            sum_terms(&x, &z, &mut out, |a, b| (a - b).abs());
            for j in 0..n {
                let plain: f64 = (0..d).map(|k| (x[k] - z[k * n + j]).abs()).sum();
                assert_eq!(out[j], plain);
            }
            let squares = numbers(n, 3);
            let products = out.clone();
            squared_distances(0.5, &squares, &mut out);
            for j in 0..n {
                assert_eq!(out[j], (0.5 + squares[j] - 2.0 * products[j]).max(0.0));
            }
        }
    }

    #[test]
    fn a_value_that_is_not_finite_is_found_anywhere() {
        for n in 0..40 {
            let mut values = numbers(n, 9);
            assert!(all_finite(&values));
            for i in 0..n {
                for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let kept = std::mem::replace(&mut values[i], bad);
                    assert!(!all_finite(&values));
                    values[i] = kept;
                }
            }
        }
    }

    #[test]
    fn searches_equal_their_plain_forms() {
        for n in (0..70).chain([333]) {
            let (a, b, d, k) = (numbers(n, 5), numbers(n, 6), numbers(n, 7), numbers(n, 8));
            let c: Vec<f64> = (0..n)
                .map(|i| if i % 3 == 0 { f64::NEG_INFINITY } else { 0.0 })
                .collect();
            let plain = (0..n)
                .map(|i| (i, a[i] - b[i] + c[i]))
                .filter(|(_, value)| value.is_finite())
                .max_by(|x, y| x.1.total_cmp(&y.1));
            assert_eq!(largest(&a, &b, &c), plain);
            let shut: Vec<f64> = c.iter().map(|value| -value).collect();
            let partner = best_partner([&a, &b, &shut, &d, &k], 0.4, 1.0, 1e-12);
            let gain = |i: usize| {
                let difference = 0.4 - (a[i] - b[i] + shut[i]);
                let curvature = (1.0 + d[i] - 2.0 * k[i]).max(1e-12);
                if difference > 0.0 {
                    difference * difference / curvature
                } else {
                    0.0
                }
            };
            let best = (0..n)
                .map(|i| (i, gain(i)))
                .filter(|x| x.1 > 0.0)
                .max_by(|x, y| x.1.total_cmp(&y.1));
            assert_eq!(partner.position, best.map(|(i, _)| i));
            assert_eq!(partner.gain, best.map_or(0.0, |(_, gain)| gain));
        }
    }
}
