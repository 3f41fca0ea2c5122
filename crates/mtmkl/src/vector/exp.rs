//! exp for whole slices: e^x = 2^k e^r with k = round(x / ln 2), so |r| ≤ ln 2 / 2, and a polynomial for e^r.
//!
//! There are no branches and no tables, so the compiler turns it into vector instructions. The first and the last value of a
//! slice are computed by the same operations as all others: equal arguments give equal bits, wherever they stand.

use pulp::Arch;

use super::{Wide, arch};

/// e^x is 0 below: it would be nearly subnormal, slow to work with and worth nothing.
const LOWEST: f64 = -707.0;
/// e^x is ∞ above.
const HIGHEST: f64 = 709.782_712_893_384;
/// Added to a number below 2^51, it leaves the nearest whole number in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts: k times the first is exact for every k that occurs.
const LN_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
/// (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2, interpolated at the Chebyshev points: off by 2e-17 r² e^r at most, lowest power first.
const POLYNOMIAL: [f64; 10] = [
    0.500_000_000_000_000_1,
    0.166_666_666_666_666_69,
    0.041_666_666_666_624_094,
    0.008_333_333_333_330_06,
    0.001_388_888_891_723_072_4,
    0.000_198_412_698_630_666_96,
    2.480_152_126_953_212_2e-5,
    2.755_726_843_967_8e-6,
    2.762_010_101_209_8e-7,
    2.510_039_515_942_924_3e-8,
];

/// e^x, the same bits as [`map_exp`] gives.
#[cfg(test)]
fn exp(x: f64) -> f64 {
    let mut value = [x];
    map_exp(&mut value, |x| (x, 1.0));
    value[0]
}

/// v ← b e^a for every value v of the slice, with (a, b) = `parts`(v).
///
/// e^a is right to 1 unit in the last place; 0 for a < −707.
pub(crate) fn map_exp(values: &mut [f64], parts: impl Fn(f64) -> (f64, f64)) {
    match arch() {
        // Without the instruction, a fused multiply-add is a slow function call.
        Arch::Scalar => map_loop::<false>(values, parts),
        wide => wide.dispatch(Wide(
            #[inline(always)]
            || map_loop::<true>(values, &parts),
        )),
    }
}

/// The same from the values v of one slice into another.
pub(crate) fn map_exp_from(from: &[f64], to: &mut [f64], parts: impl Fn(f64) -> (f64, f64) + Copy) {
    match arch() {
        Arch::Scalar => map_loop_from::<false>(from, to, parts),
        wide => wide.dispatch(Wide(
            #[inline(always)]
            || map_loop_from::<true>(from, to, parts),
        )),
    }
}

#[inline(always)]
fn map_loop<const FUSED: bool>(values: &mut [f64], parts: impl Fn(f64) -> (f64, f64)) {
    for value in values {
        *value = product_of::<FUSED>(parts(*value));
    }
}

#[inline(always)]
fn map_loop_from<const FUSED: bool>(
    from: &[f64],
    to: &mut [f64],
    parts: impl Fn(f64) -> (f64, f64),
) {
    for (value, &from) in to.iter_mut().zip(from) {
        *value = product_of::<FUSED>(parts(from));
    }
}

#[inline(always)]
fn product_of<const FUSED: bool>((argument, factor): (f64, f64)) -> f64 {
    factor * exp_of::<FUSED>(argument)
}

#[inline(always)]
fn exp_of<const FUSED: bool>(x: f64) -> f64 {
    let (near_one, rounded) = parts_of::<FUSED>(x);
    // Half of 2^k by adding k − 1 to the exponent: k = 1024 has room, and the last factor makes ∞ of what is too large.
    let shift = rounded.to_bits().wrapping_sub(1) << 52;
    let half = f64::from_bits(near_one.to_bits().wrapping_add(shift));
    if x < LOWEST {
        0.0
    } else if x <= HIGHEST {
        2.0 * half
    } else {
        // ∞, or NaN for NaN.
        x + f64::INFINITY
    }
}

/// e^x for x ≤ 0, the same bits.
#[inline(always)]
pub(super) fn falling_exp<const FUSED: bool>(x: f64) -> f64 {
    let (near_one, rounded) = parts_of::<FUSED>(x);
    let value = f64::from_bits(near_one.to_bits().wrapping_add(rounded.to_bits() << 52));
    if x < LOWEST { 0.0 } else { value }
}

/// e^r, and a number with k in its lowest bits.
#[inline(always)]
fn parts_of<const FUSED: bool>(x: f64) -> (f64, f64) {
    let rounded = multiply_add::<FUSED>(x, std::f64::consts::LOG2_E, ROUND);
    let k = rounded - ROUND;
    let r = multiply_add::<FUSED>(k, -LN_2[0], x);
    let r = multiply_add::<FUSED>(k, -LN_2[1], r);
    let mut tail = POLYNOMIAL[9];
    for power in (0..9).rev() {
        tail = multiply_add::<FUSED>(tail, r, POLYNOMIAL[power]);
    }
    (1.0 + multiply_add::<FUSED>(r * r, tail, r), rounded)
}

/// a b + c, rounded once where `FUSED`.
#[inline(always)]
pub(super) fn multiply_add<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both forms of the sum, whatever this machine has.
    const FORMS: [fn(f64) -> f64; 2] = [exp_of::<true>, exp_of::<false>];

    /// In units in the last place of `expected`.
    fn error(value: f64, expected: f64) -> f64 {
        let unit = f64::from_bits(expected.to_bits() + 1) - expected;
        (value - expected).abs() / unit
    }

    #[test]
    fn as_the_standard_library_over_the_whole_range() {
        for form in FORMS {
            let mut worst: f64 = 0.0;
            for i in 0..2_000_000 {
                let x = LOWEST + f64::from(i) * (HIGHEST - LOWEST) / 2e6;
                worst = worst.max(error(form(x), x.exp()));
            }
            // Small arguments, and those half-way between two k.
            for i in 0..100_000 {
                let small = -f64::from(i) * 1e-5;
                worst = worst.max(error(form(small), small.exp()));
                let tiny = small * 1e-14;
                worst = worst.max(error(form(tiny), tiny.exp()));
                let edge = (f64::from(i % 1000 - 1000) + 0.5) * std::f64::consts::LN_2
                    + f64::from(i / 1000 - 50) * 1e-13;
                worst = worst.max(error(form(edge), edge.exp()));
            }
            // The standard library itself is off by up to one unit.
            assert!(worst <= 1.5, "{worst}");
        }
    }

    #[test]
    fn edges() {
        for form in FORMS {
            assert_eq!(form(0.0), 1.0);
            assert_eq!(form(-0.0), 1.0);
            assert_eq!(form(-1e-300), 1.0);
            assert!(form(LOWEST) > 0.0);
            for x in [LOWEST - 1e-12, -708.0, -745.2, -1e4, -1e300, f64::MIN] {
                assert_eq!(form(x).to_bits(), 0, "{x}");
            }
            assert_eq!(form(f64::NEG_INFINITY).to_bits(), 0);
            assert!(form(709.7).is_finite());
            assert!(error(form(HIGHEST), HIGHEST.exp()) <= 2.0);
            for x in [709.79, 1e4, f64::MAX, f64::INFINITY] {
                assert_eq!(form(x), f64::INFINITY, "{x}");
            }
            assert!(form(f64::NAN).is_nan());
            assert!(form(-f64::NAN).is_nan());
        }
    }

    #[test]
    fn in_place_and_elsewhere_have_the_same_bits() {
        for n in [0, 1, 7, 8, 9, 64, 513] {
            let from: Vec<f64> = (0..n).map(|i| f64::from(i) * 0.37).collect();
            let mut there = vec![f64::NAN; from.len()];
            map_exp_from(&from, &mut there, |x| (-0.3 * x, 2.0));
            let mut here = from;
            map_exp(&mut here, |x| (-0.3 * x, 2.0));
            assert_eq!(here, there);
        }
    }

    #[test]
    fn falls_nowhere() {
        for form in FORMS {
            let mut last = 0.0;
            for i in 0..1_000_000 {
                let value = form(LOWEST - 1.0 + f64::from(i) * 7.1e-4);
                assert!(value >= last);
                last = value;
            }
        }
    }

    #[test]
    fn the_place_in_the_slice_does_not_matter() {
        for n in 0..40 {
            let arguments: Vec<f64> = (0..n).map(|i| -0.37 * f64::from(i)).collect();
            let mut values = arguments.clone();
            map_exp(&mut values, |x| (x, 1.0));
            for (value, x) in values.iter().zip(&arguments) {
                assert_eq!(value.to_bits(), exp(*x).to_bits());
            }
            let mut scaled = arguments.clone();
            map_exp(&mut scaled, |x| (2.0 * x, x - 3.0));
            for (value, x) in scaled.iter().zip(&arguments) {
                assert_eq!(*value, (x - 3.0) * exp(2.0 * x));
            }
        }
    }
}
