//! The innermost loops, compiled for the widest vector instructions of the machine at hand. Sums have a fixed order, so that
//! results do not depend on anything but the machine.

#![allow(
    clippy::inline_always,
    reason = "only what is inlined is compiled for the wider instructions"
)]

mod exp;
mod powers;
mod search;

use std::sync::OnceLock;

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};

pub(crate) use exp::{map_exp, map_exp_from};
pub(crate) use powers::{MOST_POWERS, Powers};
pub(crate) use search::{Partner, best_partner, best_partner_rounded, largest};

fn arch() -> Arch {
    static ARCH: OnceLock<Arch> = OnceLock::new();
    *ARCH.get_or_init(Arch::new)
}

/// A loop that the compiler is to vectorise.
///
/// As a bare closure it would go through a function of the standard library that is not always inlined, and what is not inlined is compiled
/// for the narrowest instructions there are.
struct Wide<F>(F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Wide<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// Σ_i a_i b_i in interleaved sums.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() < 16 {
        return a.iter().zip(b).map(|(x, y)| x * y).sum();
    }
    arch().dispatch(Dot { a, b })
}

struct Dot<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

/// Sums side by side: an addition waits for the last one to its sum.
const SUMS: usize = 4;

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let (a, a_rest) = S::as_simd_f64s(self.a);
        let (b, b_rest) = S::as_simd_f64s(self.b);
        let mut sums = [simd.splat_f64s(0.0); SUMS];
        let (a_chunks, a_more) = a.as_chunks::<SUMS>();
        let (b_chunks, b_more) = b.as_chunks::<SUMS>();
        for (a, b) in a_chunks.iter().zip(b_chunks) {
            for k in 0..SUMS {
                sums[k] = simd.mul_add_e_f64s(a[k], b[k], sums[k]);
            }
        }
        for (a, b) in a_more.iter().zip(b_more) {
            sums[0] = simd.mul_add_e_f64s(*a, *b, sums[0]);
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
        let [p, q, r, s] = sums;
        simd.reduce_sum_f64s(simd.add_f64s(simd.add_f64s(p, q), simd.add_f64s(r, s))) + rest
    }
}

/// y ← y + a x.
pub(crate) fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    if y.len() < 16 {
        for (out, value) in y.iter_mut().zip(x) {
            *out += a * value;
        }
        return;
    }
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for (out, value) in y.iter_mut().zip(x) {
                *out += a * value;
            }
        },
    ));
}

/// y ← y + Σ_k a_k x_k, and Σ_i x_ki b_i for each k, reading each x once.
pub(crate) fn fold_rows<const ROWS: usize>(
    x: [&[f64]; ROWS],
    b: &[f64],
    a: [f64; ROWS],
    y: &mut [f64],
) -> [f64; ROWS] {
    arch().dispatch(Fold { x, b, a, y })
}

struct Fold<'a, const ROWS: usize> {
    x: [&'a [f64]; ROWS],
    b: &'a [f64],
    a: [f64; ROWS],
    y: &'a mut [f64],
}

impl<const ROWS: usize> WithSimd for Fold<'_, ROWS> {
    type Output = [f64; ROWS];

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> [f64; ROWS] {
        let (b, b_rest) = S::as_simd_f64s(self.b);
        let (y, y_rest) = S::as_mut_simd_f64s(self.y);
        let count = b.len().min(y.len());
        let x = self.x.map(
            #[inline(always)]
            |x| &S::as_simd_f64s(x).0[..count],
        );
        let weights = self.a.map(
            #[inline(always)]
            |a| simd.splat_f64s(a),
        );
        let mut sums = [simd.splat_f64s(0.0); ROWS];
        for at in 0..count {
            let (b, mut out) = (b[at], y[at]);
            for row in 0..ROWS {
                let value = x[row][at];
                sums[row] = simd.mul_add_e_f64s(value, b, sums[row]);
                out = simd.mul_add_e_f64s(weights[row], value, out);
            }
            y[at] = out;
        }
        let mut totals = [0.0; ROWS];
        for row in 0..ROWS {
            let rest = &self.x[row][self.x[row].len() - b_rest.len()..];
            totals[row] = simd.reduce_sum_f64s(sums[row]);
            for ((value, b), y) in rest.iter().zip(b_rest).zip(&mut *y_rest) {
                totals[row] += value * b;
                *y += self.a[row] * value;
            }
        }
        totals
    }
}

/// y ← y + Σ_k a_k x_k, four rows at a time: y is read and written once for four rows of x.
pub(crate) fn add_rows<T: Copy + Into<f64>>(rows: &[(f64, &[T])], y: &mut [f64]) {
    arch().dispatch(Wide(
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
    ));
}

/// The same numbers in double precision.
pub(crate) fn widen(single: &[f32], double: &mut [f64]) {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for (out, &value) in double.iter_mut().zip(single) {
                *out = value.into();
            }
        },
    ));
}

/// The same numbers, rounded to single precision.
pub(crate) fn narrow(double: &[f64], single: &mut [f32]) {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for (out, &value) in single.iter_mut().zip(double) {
                // Rounding is what is asked for.
                #[allow(clippy::cast_possible_truncation)]
                let rounded = value as f32;
                *out = rounded;
            }
        },
    ));
}

/// y ← y + step · (a − b).
pub(crate) fn add_difference<T: Copy + Into<f64>>(step: f64, a: &[T], b: &[T], y: &mut [f64]) {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for ((out, &a), &b) in y.iter_mut().zip(a).zip(b) {
                *out += step * (a.into() - b.into());
            }
        },
    ));
}

/// Whether all values are finite.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            values
                .iter()
                .fold(true, |all, value| all & value.is_finite())
        },
    ))
}

/// v_j ← max(own + squares_j − 2 v_j, 0): squared distances from inner products.
pub(crate) fn squared_distances(own: f64, squares: &[f64], values: &mut [f64]) {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for (value, other) in values.iter_mut().zip(squares) {
                *value = (own + other - 2.0 * *value).max(0.0);
            }
        },
    ));
}

/// y ← a x ∘ y
pub(crate) fn scale_by(a: f64, x: &[f64], y: &mut [f64]) {
    arch().dispatch(Wide(
        #[inline(always)]
        || {
            for (out, value) in y.iter_mut().zip(x) {
                *out *= a * value;
            }
        },
    ));
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
    arch().dispatch(Wide(
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
    ));
}

/// a'b as high + low, as if computed with twice the digits: Ogita, Rump and Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005).
pub(crate) fn exact_dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut sum, mut rest) = (0.0, 0.0);
    for (&x, &y) in a.iter().zip(b) {
        let product = x * y;
        let total = sum + product;
        let back = total - sum;
        // What the product and the sum have lost.
        rest += x.mul_add(y, -product) + ((sum - (total - back)) + (product - back));
        sum = total;
    }
    let high = sum + rest;
    (high, rest - (high - sum))
}

/// What rounding can do to a sum of n terms, as a part of the sum of their sizes: √n times the last digit, as errors go by chance, and a few for what
/// the terms are made of. (At worst it would be n times; |K_ij| ≤ √(K_ii K_jj), which the sizes are taken from, makes up for that.)
pub(crate) fn rounding(n: usize) -> f64 {
    f64::EPSILON * (n as f64 + 16.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn numbers(n: usize, seed: u64) -> Vec<f64> {
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
            let (mut added, mut expected) = (d.clone(), d.clone());
            axpy(0.7, &a, &mut expected);
            axpy(-0.2, &c, &mut expected);
            let sums = fold_rows([&a, &c], &b, [0.7, -0.2], &mut added);
            assert!((sums[0] - plain).abs() < 1e-12 && (sums[1] - dot(&b, &c)).abs() < 1e-12);
            assert!(
                added
                    .iter()
                    .zip(&expected)
                    .all(|(x, y)| (x - y).abs() < 1e-13)
            );
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
    fn exact_sums_lose_nothing_that_double_precision_can_say() {
        // 1e20 − 1e20 + 2⁻⁴⁰ and the like, in an order that plain sums do not survive.
        let a = [1e10, 3.0, -1e10, 1e10, 0.125, -1e10];
        let b = [1e10, 2.0_f64.powi(-40), 1e10, 3e10, 8.0, 3e10];
        let (high, low) = exact_dot(&a, &b);
        assert_eq!(high, 1.0 + 3.0 * 2.0_f64.powi(-40));
        assert_eq!(low, 0.0);
        // 1 + 2⁻⁷⁰ needs both parts.
        assert_eq!(
            exact_dot(&[1.0, 2.0_f64.powi(-35)], &[1.0, 2.0_f64.powi(-35)]),
            (1.0, 2.0_f64.powi(-70))
        );
        assert_eq!(exact_dot(&[], &[]), (0.0, 0.0));
    }
}
