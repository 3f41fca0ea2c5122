//! Exponentials that are powers of each other, e = exp(−γ s), e^(2^t), …, made and used while they are in registers.
//!
//! Of Gaussians each twice as wide as the next, one exponential serves four: e, e⁴, e¹⁶, e⁶⁴. Written to memory between one step and the next,
//! they take twice as long.

use pulp::Arch;

use super::exp::falling_exp;
use super::{Wide, arch};

/// Powers of one exponential at most: what is kept for more does not fit into registers.
pub(crate) const MOST_POWERS: usize = 4;

/// Values at a time; with 8 or 32 it takes a fifth longer, or twice as long.
const LANES: usize = 16;
/// Sums side by side.
const SUMS: usize = 4;

/// What is below is 0: it would be next to subnormal, slow to work with and worth nothing.
const LEAST: f64 = 1e-300;

/// exp(−γ s), and of what there is, the powers 2^t, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Powers {
    gamma: f64,
    /// t of each; the first is 0.
    squarings: Vec<u32>,
    /// What has a power below [`LEAST`], for each.
    least: Vec<f64>,
}

impl Powers {
    pub(crate) fn new(gamma: f64) -> Self {
        Self {
            gamma,
            squarings: vec![0],
            least: vec![0.0],
        }
    }

    /// With one more, by so many squarings of the last.
    pub(crate) fn push(&mut self, squarings: u32) {
        debug_assert!(self.len() < MOST_POWERS);
        self.squarings.push(squarings);
        self.least.push(LEAST.powf(0.5_f64.powf(squarings.into())));
    }

    pub(crate) fn len(&self) -> usize {
        self.squarings.len()
    }

    /// How often the exponential is squared in all.
    pub(crate) fn squarings(&self) -> u32 {
        self.squarings.iter().sum()
    }

    /// Σ_j w_j e_j of each power e.
    pub(crate) fn dot(&self, s: &[f64], w: &[f64]) -> [f64; MOST_POWERS] {
        match self.len() {
            1 => self.dispatch::<1, _>(Dot { s, w }),
            2 => self.dispatch::<2, _>(Dot { s, w }),
            3 => self.dispatch::<3, _>(Dot { s, w }),
            _ => self.dispatch::<MOST_POWERS, _>(Dot { s, w }),
        }
    }

    /// y_j ← y_j + Σ_e a_e e_j.
    pub(crate) fn add(&self, s: &[f64], a: &[f64; MOST_POWERS], y: &mut [f64]) {
        match self.len() {
            1 => self.dispatch::<1, _>(Add { s, a, y }),
            2 => self.dispatch::<2, _>(Add { s, a, y }),
            3 => self.dispatch::<3, _>(Add { s, a, y }),
            _ => self.dispatch::<MOST_POWERS, _>(Add { s, a, y }),
        }
    }

    /// The powers themselves, one after the other, each as long as s.
    pub(crate) fn write(&self, s: &[f64], out: &mut [f64]) {
        match self.len() {
            1 => self.dispatch::<1, _>(Write { s, out }),
            2 => self.dispatch::<2, _>(Write { s, out }),
            3 => self.dispatch::<3, _>(Write { s, out }),
            _ => self.dispatch::<MOST_POWERS, _>(Write { s, out }),
        }
    }

    fn dispatch<const COUNT: usize, U: Use>(&self, mut what: U) -> U::Output {
        let chain = Chain::<COUNT> {
            gamma: self.gamma,
            squarings: std::array::from_fn(|at| self.squarings[at]),
            least: std::array::from_fn(|at| self.least[at]),
        };
        match arch() {
            // Without the instruction, a fused multiply-add is a slow function call.
            Arch::Scalar => what.run::<COUNT, false>(&chain),
            wide => wide.dispatch(Wide(
                #[inline(always)]
                || what.run::<COUNT, true>(&chain),
            )),
        }
    }
}

/// [`Powers`] of a number that the compiler knows.
struct Chain<const COUNT: usize> {
    gamma: f64,
    squarings: [u32; COUNT],
    least: [f64; COUNT],
}

impl<const COUNT: usize> Chain<COUNT> {
    /// Calls `see(number, values)` for each power.
    #[inline(always)]
    fn each<const FUSED: bool>(&self, s: &[f64; LANES], mut see: impl FnMut(usize, &[f64; LANES])) {
        let mut e = [0.0; LANES];
        for lane in 0..LANES {
            e[lane] = falling_exp::<FUSED>(-self.gamma * s[lane]);
        }
        for number in 0..COUNT {
            for lane in 0..LANES {
                e[lane] = if e[lane] < self.least[number] {
                    0.0
                } else {
                    e[lane]
                };
            }
            for _ in 0..self.squarings[number] {
                for lane in 0..LANES {
                    e[lane] *= e[lane];
                }
            }
            see(number, &e);
        }
    }
}

/// What powers are made for.
trait Use {
    type Output;

    fn run<const COUNT: usize, const FUSED: bool>(&mut self, chain: &Chain<COUNT>) -> Self::Output;
}

struct Dot<'a> {
    s: &'a [f64],
    w: &'a [f64],
}

impl Use for Dot<'_> {
    type Output = [f64; MOST_POWERS];

    #[inline(always)]
    fn run<const COUNT: usize, const FUSED: bool>(&mut self, chain: &Chain<COUNT>) -> Self::Output {
        let mut sums = [[0.0; SUMS]; COUNT];
        let (s, s_rest) = self.s.as_chunks::<LANES>();
        let (w, w_rest) = self.w.as_chunks::<LANES>();
        for (s, w) in s.iter().zip(w) {
            chain.each::<FUSED>(
                s,
                #[inline(always)]
                |number, e| add_products::<FUSED>(&mut sums[number], e, w),
            );
        }
        if !s_rest.is_empty() {
            let (s, w) = (padded(s_rest), padded(w_rest));
            chain.each::<FUSED>(
                &s,
                #[inline(always)]
                |number, e| add_products::<FUSED>(&mut sums[number], e, &w),
            );
        }
        let mut totals = [0.0; MOST_POWERS];
        for number in 0..COUNT {
            let [a, b, c, d] = sums[number];
            totals[number] = (a + b) + (c + d);
        }
        totals
    }
}

struct Add<'a> {
    s: &'a [f64],
    a: &'a [f64; MOST_POWERS],
    y: &'a mut [f64],
}

impl Use for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const COUNT: usize, const FUSED: bool>(&mut self, chain: &Chain<COUNT>) {
        let (s, s_rest) = self.s.as_chunks::<LANES>();
        let (y, y_rest) = self.y.as_chunks_mut::<LANES>();
        let a = self.a;
        for (s, y) in s.iter().zip(y) {
            let mut out = *y;
            chain.each::<FUSED>(
                s,
                #[inline(always)]
                |number, e| add_multiple::<FUSED>(a[number], e, &mut out),
            );
            *y = out;
        }
        if !s_rest.is_empty() {
            let mut out = padded(y_rest);
            chain.each::<FUSED>(
                &padded(s_rest),
                #[inline(always)]
                |number, e| add_multiple::<FUSED>(a[number], e, &mut out),
            );
            y_rest.copy_from_slice(&out[..y_rest.len()]);
        }
    }
}

struct Write<'a> {
    s: &'a [f64],
    out: &'a mut [f64],
}

impl Use for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const COUNT: usize, const FUSED: bool>(&mut self, chain: &Chain<COUNT>) {
        let length = self.s.len();
        for (place, s) in self.s.chunks(LANES).enumerate() {
            let out = &mut *self.out;
            chain.each::<FUSED>(
                &padded(s),
                #[inline(always)]
                |number, e| {
                    let first = number * length + place * LANES;
                    out[first..first + s.len()].copy_from_slice(&e[..s.len()]);
                },
            );
        }
    }
}

#[inline(always)]
fn add_products<const FUSED: bool>(sums: &mut [f64; SUMS], e: &[f64; LANES], w: &[f64; LANES]) {
    for group in 0..LANES / SUMS {
        for lane in 0..SUMS {
            let at = SUMS * group + lane;
            sums[lane] = super::exp::multiply_add::<FUSED>(e[at], w[at], sums[lane]);
        }
    }
}

#[inline(always)]
fn add_multiple<const FUSED: bool>(a: f64, e: &[f64; LANES], out: &mut [f64; LANES]) {
    for lane in 0..LANES {
        out[lane] = super::exp::multiply_add::<FUSED>(a, e[lane], out[lane]);
    }
}

/// These values, and zeros behind them.
#[inline(always)]
fn padded(values: &[f64]) -> [f64; LANES] {
    let mut all = [0.0; LANES];
    all[..values.len()].copy_from_slice(values);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f64> {
        let mut random = crate::random::Random::new(seed);
        (0..n).map(|_| random.uniform()).collect()
    }

    #[test]
    fn powers_equal_their_plain_forms() {
        for (n, squarings) in [
            (0, vec![]),
            (1, vec![1]),
            (16, vec![2, 2, 2]),
            (37, vec![0, 6]),
            (512, vec![2, 2, 2]),
            (517, vec![1, 3]),
        ] {
            let s: Vec<f64> = numbers(n, 1).iter().map(|u| 40.0 * u).collect();
            let (w, a) = (numbers(n, 2), [0.3, -2.0, 1.5, 4.0]);
            let gamma = 0.7;
            let mut powers = Powers::new(gamma);
            for &t in &squarings {
                powers.push(t);
            }
            assert_eq!(powers.squarings(), squarings.iter().sum::<u32>());
            let (mut times, mut plain) = (0, Vec::new());
            for t in std::iter::once(0).chain(squarings) {
                times += t;
                let rate = gamma * 2.0_f64.powf(times.into());
                plain.push(s.iter().map(|s| (-rate * s).exp()).collect::<Vec<f64>>());
            }
            let sums = powers.dot(&s, &w);
            let y = numbers(n, 3);
            let mut added = y.clone();
            powers.add(&s, &a, &mut added);
            let mut written = vec![0.0; n * powers.len()];
            powers.write(&s, &mut written);
            for (number, e) in plain.iter().enumerate() {
                for (value, e) in written[number * n..].iter().zip(e) {
                    assert!((value - e).abs() <= 1e-13 * e + 1e-300, "{n} {number}");
                }
                let sum: f64 = e.iter().zip(&w).map(|(e, w)| e * w).sum();
                let size: f64 = e.iter().zip(&w).map(|(e, w)| (e * w).abs()).sum();
                assert!((sums[number] - sum).abs() <= 1e-13 * size, "{n} {number}");
            }
            for j in 0..n {
                let terms: f64 = plain.iter().zip(a).map(|(e, a)| a * e[j]).sum();
                assert!((added[j] - (y[j] + terms)).abs() < 1e-12, "{n} {j}");
            }
        }
    }

    #[test]
    fn what_would_be_next_to_subnormal_is_zero() {
        let mut powers = Powers::new(1.0);
        powers.push(2);
        let s = [170.0, 175.0, 600.0, 800.0];
        let mut y = [0.0; 4];
        powers.add(&s, &[0.0, 1.0, 0.0, 0.0], &mut y);
        assert!(y[0] > 0.0);
        assert_eq!(y[1..], [0.0; 3]);
    }

    #[test]
    fn what_is_no_number_stays_none() {
        let powers = Powers::new(1.0);
        let mut y = [0.0; 2];
        powers.add(&[f64::NAN, 0.0], &[1.0, 0.0, 0.0, 0.0], &mut y);
        assert!(y[0].is_nan());
        assert_eq!(y[1], 1.0);
    }
}
