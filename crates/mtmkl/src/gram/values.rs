//! Kernel values in the precision they are kept in.

use std::ops::Range;

use bytemuck::Pod;

use crate::vector;

/// Some values of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Values<'a> {
    Double(&'a [f64]),
    Single(&'a [f32]),
}

impl Values<'_> {
    /// Some of them.
    pub(super) fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Double(values) => Self::Double(&values[range]),
            Self::Single(values) => Self::Single(&values[range]),
        }
    }

    pub(crate) fn get(self, at: usize) -> f64 {
        match self {
            Self::Double(values) => values[at],
            Self::Single(values) => values[at].into(),
        }
    }
}

/// A precision that values are kept in.
pub(super) trait Precision: Pod + Send + Sync {
    /// out ← the values, rounded.
    fn round(values: &[f64], out: &mut [Self]);
}

impl Precision for f64 {
    fn round(values: &[f64], out: &mut [Self]) {
        out.copy_from_slice(values);
    }
}

impl Precision for f32 {
    fn round(values: &[f64], out: &mut [Self]) {
        vector::narrow(values, out);
    }
}
