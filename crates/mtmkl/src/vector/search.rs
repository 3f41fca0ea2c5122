//! Searches over slices: the largest of sums, and the partner of a sample in a small step.

use pulp::{Simd, WithSimd};

use super::{arch, widen};

/// The position and value of max (a − b + c), and of none where all are −∞.
pub(crate) fn largest(a: &[f64], b: &[f64], c: &[f64]) -> Option<(usize, f64)> {
    arch().dispatch(Largest { a, b, c })
}

struct Largest<'a> {
    a: &'a [f64],
    b: &'a [f64],
    c: &'a [f64],
}

impl WithSimd for Largest<'_> {
    type Output = Option<(usize, f64)>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let (a, a_rest) = S::as_simd_f64s(self.a);
        let (b, b_rest) = S::as_simd_f64s(self.b);
        let (c, c_rest) = S::as_simd_f64s(self.c);
        let mut best = Best::new(simd, f64::NEG_INFINITY);
        for ((&a, &b), &c) in a.iter().zip(b).zip(c) {
            best.offer(simd, simd.add_f64s(simd.sub_f64s(a, b), c));
        }
        let mut found = best.found();
        let whole = self.a.len() - a_rest.len();
        for (offset, ((a, b), c)) in a_rest.iter().zip(b_rest).zip(c_rest).enumerate() {
            let value = a - b + c;
            if found.is_none_or(|(_, best)| value > best) && value > f64::NEG_INFINITY {
                found = Some((whole + offset, value));
            }
        }
        found
    }
}

/// The largest of many values, lane by lane, and where it stands.
#[derive(Clone, Copy)]
struct Best<S: Simd> {
    value: S::f64s,
    /// The number of its vector. Counted in floats, exactly.
    number: S::f64s,
    next: f64,
    least: f64,
}

impl<S: Simd> Best<S> {
    /// Of those above `least`.
    #[inline(always)]
    fn new(simd: S, least: f64) -> Self {
        Self {
            value: simd.splat_f64s(least),
            number: simd.splat_f64s(0.0),
            next: 0.0,
            least,
        }
    }

    #[inline(always)]
    fn offer(&mut self, simd: S, value: S::f64s) {
        let better = simd.greater_than_f64s(value, self.value);
        let number = simd.splat_f64s(self.next);
        self.value = simd.select_f64s(better, value, self.value);
        self.number = simd.select_f64s(better, number, self.number);
        self.next += 1.0;
    }

    #[inline(always)]
    fn found(&self) -> Option<(usize, f64)> {
        let values: &[f64] = bytemuck::cast_slice(std::slice::from_ref(&self.value));
        let numbers: &[f64] = bytemuck::cast_slice(std::slice::from_ref(&self.number));
        let mut lane = 0;
        for other in 1..values.len() {
            if values[other] > values[lane] {
                lane = other;
            }
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let number = numbers[lane] as usize;
        (values[lane] > self.least).then_some((number * values.len() + lane, values[lane]))
    }
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
    [a, b, c, d]: [&[f64]; 4],
    k: &[f64],
    highest: f64,
    own: f64,
    least: f64,
) -> Partner {
    arch().dispatch(Search {
        slices: [a, b, c, d, k],
        highest,
        own,
        least,
    })
}

/// So many values at a time are widened in the fastest cache.
const WIDENED: usize = 512;

/// The same with k in single precision.
pub(crate) fn best_partner_rounded(
    slices: [&[f64]; 4],
    k: &[f32],
    highest: f64,
    own: f64,
    least: f64,
) -> Partner {
    let mut best = Partner {
        position: None,
        gain: 0.0,
        lowest: f64::INFINITY,
    };
    let mut buffer = [0.0; WIDENED];
    for (number, k) in k.chunks(WIDENED).enumerate() {
        let start = number * WIDENED;
        let widened = &mut buffer[..k.len()];
        widen(k, widened);
        let parts = slices.map(|slice| &slice[start..start + k.len()]);
        let found = best_partner(parts, widened, highest, own, least);
        best.lowest = best.lowest.min(found.lowest);
        if found.gain > best.gain {
            best.gain = found.gain;
            best.position = found.position.map(|at| start + at);
        }
    }
    best
}

struct Search<'a> {
    slices: [&'a [f64]; 5],
    highest: f64,
    own: f64,
    least: f64,
}

impl WithSimd for Search<'_> {
    type Output = Partner;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Partner {
        let [a, b, c, d, k] = self.slices.map(
            #[inline(always)]
            |slice| S::as_simd_f64s(slice).0,
        );
        let (highest, own) = (simd.splat_f64s(self.highest), simd.splat_f64s(self.own));
        let (least, zero) = (simd.splat_f64s(self.least), simd.splat_f64s(0.0));
        let minus_two = simd.splat_f64s(-2.0);
        let mut low = simd.splat_f64s(f64::INFINITY);
        let mut best = Best::new(simd, 0.0);
        for ((((&a, &b), &c), &d), &k) in a.iter().zip(b).zip(c).zip(d).zip(k) {
            let slope = simd.add_f64s(simd.sub_f64s(a, b), c);
            low = simd.min_f64s(low, slope);
            // Nothing to gain where this is not above zero.
            let difference = simd.max_f64s(simd.sub_f64s(highest, slope), zero);
            let curvature = simd.mul_add_e_f64s(minus_two, k, simd.add_f64s(own, d));
            let curvature = simd.max_f64s(curvature, least);
            let gain = simd.div_f64s(simd.mul_f64s(difference, difference), curvature);
            best.offer(simd, gain);
        }
        let mut lowest = simd.reduce_min_f64s(low);
        let mut found = best.found();
        let [a, b, c, d, k] = self.slices;
        let lanes = size_of::<S::f64s>() / size_of::<f64>();
        for i in a.len() / lanes * lanes..a.len() {
            let slope = a[i] - b[i] + c[i];
            lowest = lowest.min(slope);
            let difference = (self.highest - slope).max(0.0);
            let curvature = (self.own + d[i] - 2.0 * k[i]).max(self.least);
            let gain = difference * difference / curvature;
            if gain > found.map_or(0.0, |(_, best)| best) {
                found = Some((i, gain));
            }
        }
        Partner {
            position: found.map(|(position, _)| position),
            gain: found.map_or(0.0, |(_, gain)| gain),
            lowest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::narrow;
    use super::super::tests::numbers;
    use super::*;

    #[test]
    fn searches_equal_their_plain_forms() {
        for n in (0..70).chain([333, 1200]) {
            let (a, b, d, mut k) = (numbers(n, 5), numbers(n, 6), numbers(n, 7), numbers(n, 8));
            let mut rounded = vec![0.0; n];
            narrow(&k, &mut rounded);
            widen(&rounded, &mut k);
            let c: Vec<f64> = (0..n)
                .map(|i| if i % 3 == 0 { f64::NEG_INFINITY } else { 0.0 })
                .collect();
            let plain = (0..n)
                .map(|i| (i, a[i] - b[i] + c[i]))
                .filter(|(_, value)| value.is_finite())
                .max_by(|x, y| x.1.total_cmp(&y.1));
            assert_eq!(largest(&a, &b, &c), plain);
            let shut: Vec<f64> = c.iter().map(|value| -value).collect();
            let slices: [&[f64]; 4] = [&a, &b, &shut, &d];
            let partner = best_partner(slices, &k, 0.4, 1.0, 1e-12);
            let same = best_partner_rounded(slices, &rounded, 0.4, 1.0, 1e-12);
            assert_eq!(
                (same.position, same.gain, same.lowest),
                (partner.position, partner.gain, partner.lowest)
            );
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
