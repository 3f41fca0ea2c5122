//! Where the values of a Gram matrix come from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::mapped::Mapped;
use super::memory::{Memory, Part};

/// The values of a Gram matrix, row by row.
#[derive(Debug, Clone)]
pub(crate) enum Matrix {
    /// Computed here. (An `Arc` of a slice would have to be copied from this.)
    Built(Part<f64>),
    /// The caller's.
    Given(Arc<[f64]>),
    /// Rounded to single precision: half the memory, and half the time where memory is the limit.
    Single(Part<f32>),
    /// Not kept: made on demand.
    Mapped(Mapped),
}

/// A part of a matrix in the precision it is kept in.
#[derive(Debug, Clone)]
pub(super) enum Values<'a> {
    Double(&'a [f64]),
    Single(&'a [f32]),
    Made(Vec<f64>),
}

impl Matrix {
    /// The values from..to.
    pub(super) fn values(&self, from: usize, to: usize) -> Values<'_> {
        match self {
            Self::Built(values) => Values::Double(&values[from..to]),
            Self::Given(values) => Values::Double(&values[from..to]),
            Self::Single(values) => Values::Single(&values[from..to]),
            Self::Mapped(mapped) => Values::Made(mapped.values(from, to)),
        }
    }

    /// One value.
    pub(super) fn value(&self, at: usize) -> f64 {
        match self {
            Self::Built(values) => values[at],
            Self::Given(values) => values[at],
            Self::Single(values) => values[at].into(),
            Self::Mapped(mapped) => mapped.value(at),
        }
    }

    /// The same in single precision.
    pub(super) fn into_single(self) -> Self {
        let rounded = |values: &[f64]| {
            let mut memory = Memory::zeros(values.len());
            round(values, &mut memory);
            Self::Single(Part::from(memory))
        };
        match self {
            Self::Built(values) => rounded(&values),
            Self::Given(values) => rounded(&values),
            single @ Self::Single(_) => single,
            Self::Mapped(mapped) => Self::Mapped(mapped.into_single()),
        }
    }

    /// The rows and columns of `chosen`, of n. `bases` holds the bases of `chosen` by the addresses of those of all samples.
    pub(super) fn subset(
        &self,
        n: usize,
        chosen: &[usize],
        bases: &BTreeMap<usize, Part<f64>>,
    ) -> Self {
        match self {
            Self::Built(values) => Self::Built(subset(values, n, chosen).into()),
            Self::Given(values) => Self::Built(subset(values, n, chosen).into()),
            Self::Single(values) => Self::Single(subset(values, n, chosen).into()),
            Self::Mapped(mapped) => Self::Mapped(mapped.subset(chosen, bases)),
        }
    }
}

pub(super) fn subset<T: Copy>(values: &[T], n: usize, chosen: &[usize]) -> Vec<T> {
    // Neighbours are copied together.
    let runs: Vec<Range<usize>> = chosen
        .chunk_by(|&j, &next| next == j + 1)
        .map(|run| run[0]..run[0] + run.len())
        .collect();
    let mut out = Vec::with_capacity(chosen.len() * chosen.len());
    for &i in chosen {
        let row = &values[i * n..(i + 1) * n];
        for run in &runs {
            out.extend_from_slice(&row[run.clone()]);
        }
    }
    out
}

/// out ← the values in single precision.
pub(super) fn round(values: &[f64], out: &mut [f32]) {
    for (out, &value) in out.iter_mut().zip(values) {
        // Rounding is what is asked for.
        #[allow(clippy::cast_possible_truncation)]
        let rounded = value as f32;
        *out = rounded;
    }
}
