//! How columns are brought to one scale: x ← (x − offset) · factor.

use serde::{Deserialize, Serialize};

/// How columns are brought to one scale before kernels see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// As they are.
    None,
    /// To [0, 1].
    Minmax,
    /// To mean 0 and standard deviation 1.
    Standard,
}

impl Scaling {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 3] = [
        (Self::None, "none", "As they are"),
        (Self::Minmax, "minmax", "To [0, 1]"),
        (
            Self::Standard,
            "standard",
            "To mean 0 and standard deviation 1",
        ),
    ];

    /// (offset, factor) learned from the values of a column.
    pub fn of(self, values: &[f64]) -> (f64, f64) {
        // A constant column stays what it is, at zero.
        let inverse = |width: f64| if width > 0.0 { width.recip() } else { 1.0 };
        match self {
            Self::None => (0.0, 1.0),
            Self::Minmax => {
                let low = values.iter().copied().fold(f64::INFINITY, f64::min);
                let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (low, inverse(high - low))
            }
            Self::Standard => {
                let count = values.len() as f64;
                let mean = values.iter().sum::<f64>() / count;
                let squares = values.iter().map(|value| (value - mean).powi(2));
                (mean, inverse((squares.sum::<f64>() / count).sqrt()))
            }
        }
    }
}
