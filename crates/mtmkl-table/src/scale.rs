//! How columns are brought to one scale: x ← (x − offset) · factor.

use mtmkl::kernel::KernelView;
use serde::{Deserialize, Serialize};

/// How columns are brought to one scale before kernels see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// To mean 0 and spread 1: the standard deviation, but not less than an eighth of the range, so that a column with a few large values
    /// (mostly zeros, say) does not drown the others. Of two values one is 2 above the other, however rare it is.
    Standard,
    /// To [0, 1].
    Minmax,
    /// As they are.
    None,
}

/// The scaling where nothing is said, for the program and for Python: columns are standardised, unless a kernel is for values ≥ 0 only, as
/// histograms have them.
pub fn usual_scaling(kernels: &[KernelView]) -> Scaling {
    let mut kernels = kernels.iter();
    if kernels.any(|view| view.kernel.needs_non_negative().is_some()) {
        Scaling::None
    } else {
        Scaling::Standard
    }
}

/// A range is at most so many spreads.
const SPREADS: f64 = 8.0;

impl Scaling {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 3] = [
        (
            Self::Standard,
            "standard",
            "To mean 0 and standard deviation 1",
        ),
        (Self::Minmax, "minmax", "To [0, 1]"),
        (Self::None, "none", "As they are"),
    ];

    /// (offset, factor) learned from the values of a column and how often each counts. A constant column, which says nothing, becomes 0, also
    /// where a later row has another value.
    pub fn of(self, values: &[f64], weights: Option<&[f64]>) -> (f64, f64) {
        let counted = || {
            let weight = |at: usize| weights.map_or(1.0, |weights| weights[at]);
            let pairs = values.iter().enumerate();
            pairs
                .map(move |(at, &value)| (value, weight(at)))
                .filter(|(_, weight)| *weight > 0.0)
        };
        let low = counted().fold(f64::INFINITY, |low, (value, _)| low.min(value));
        let high = counted().fold(f64::NEG_INFINITY, |high, (value, _)| high.max(value));
        let mut moments = Moments {
            low,
            high,
            ..Moments::default()
        };
        if self == Self::Standard {
            let mean = |of: &dyn Fn(f64) -> f64| {
                let terms = counted().map(|(value, weight)| (weight * of(value), weight));
                let (sum, total) = terms.fold((0.0, 0.0), |(sum, total), (term, weight)| {
                    (sum + term, total + weight)
                });
                sum / total
            };
            moments.middle = mean(&|value| value);
            moments.deviation = mean(&|value| (value - moments.middle).powi(2)).sqrt();
            moments.is_binary = counted().all(|(value, _)| value == low || value == high);
        }
        self.of_moments(&moments)
    }

    /// The same from what is known of the column.
    pub fn of_moments(self, moments: &Moments) -> (f64, f64) {
        let inverse = |width: f64| if width > 0.0 { width.recip() } else { 0.0 };
        let range = moments.high - moments.low;
        match self {
            Self::None => (0.0, 1.0),
            Self::Minmax => (moments.low, inverse(range)),
            Self::Standard => {
                let spread = if moments.is_binary {
                    0.5 * range
                } else {
                    moments.deviation.max(range / SPREADS)
                };
                (short(moments.middle), inverse(short(spread)))
            }
        }
    }
}

/// What a scale is learned from: the values of a column that count, in short.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The weighted mean.
    pub middle: f64,
    /// The weighted standard deviation.
    pub deviation: f64,
    /// Whether there are no others than the least and the largest.
    pub is_binary: bool,
}

/// To 40 binary digits: the order in which rows are added up shows in the last few of 53 only.
fn short(value: f64) -> f64 {
    const KEPT: u64 = !((1 << 13) - 1);
    let half = 1 << 12;
    if value.is_finite() {
        f64::from_bits(value.to_bits().wrapping_add(half) & KEPT)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_is_mean_and_deviation() {
        let (offset, factor) = Scaling::Standard.of(&[1.0, 2.0, 3.0, 6.0], None);
        assert!((offset - 3.0).abs() < 1e-11);
        assert!((factor - 3.5_f64.sqrt().recip()).abs() < 1e-11);
    }

    #[test]
    fn a_weight_counts_copies() {
        let copies = Scaling::Standard.of(&[1.0, 1.0, 1.0, 4.0, 9.0], None);
        let weighted = Scaling::Standard.of(&[1.0, 4.0, 9.0, 70.0], Some(&[3.0, 1.0, 1.0, 0.0]));
        assert_eq!(copies, weighted);
    }

    #[test]
    fn rare_values_do_not_drown_the_others() {
        let mut rare = vec![0.0; 1000];
        rare[3] = 1.0;
        let (_, factor) = Scaling::Standard.of(&rare, None);
        assert_eq!(factor, 2.0);
        rare[4] = 0.5;
        let (_, factor) = Scaling::Standard.of(&rare, None);
        assert_eq!(factor, 8.0);
    }

    #[test]
    fn a_constant_column_is_zero() {
        for scaling in [Scaling::Standard, Scaling::Minmax] {
            let (offset, factor) = scaling.of(&[0.3; 5], None);
            assert!((offset - 0.3).abs() < 1e-11);
            assert_eq!(factor, 0.0);
        }
    }

    #[test]
    fn the_order_of_rows_does_not_show() {
        let values: Vec<f64> = (0..999).map(|i| f64::from(i * i % 1013) / 7.0).collect();
        let reversed: Vec<f64> = values.iter().rev().copied().collect();
        assert_eq!(
            Scaling::Standard.of(&values, None),
            Scaling::Standard.of(&reversed, None)
        );
    }
}
