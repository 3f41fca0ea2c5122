//! How columns are brought to one scale.

use crate::args::Scaling;

impl Scaling {
    /// (offset, factor) learned from a column: a value x becomes (x − offset) · factor.
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
