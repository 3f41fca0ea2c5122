//! k(x, z) / √(k(x, x) k(z, z)): the cosine of two samples in the feature space, in training and in prediction alike.
//!
//! A sample of zero norm stays the zero vector: its row and column are 0, and so is its diagonal. The diagonal of all others is 1, exactly.

use crate::data::GivenGram;
use crate::kernel::Kernel;
use crate::view::View;

/// 1/√k(x, x) of some samples, where something is to be divided.
#[derive(Debug, Clone, Default)]
pub(crate) struct Normaliser {
    scales: Option<Vec<f64>>,
}

impl Normaliser {
    /// Whether a kernel is used in its normalised form, in training and in prediction.
    pub(crate) fn is_wanted(kernel: &dyn Kernel, normalise: bool) -> bool {
        normalise || kernel.is_always_normalised()
    }

    /// From k(x, x) of the samples.
    pub(super) fn new(own: &[f64]) -> Self {
        Self {
            scales: Some(own.iter().map(|&own| Self::scale(own)).collect()),
        }
    }

    /// The same for samples to learn from: what is 1 already is left alone, and a value beyond the range is to be found, not to be scaled away.
    pub(super) fn of_training(own: &[f64]) -> Self {
        let Self { scales } = Self::new(own);
        let is_needed = |scales: &Vec<f64>| {
            scales.iter().all(|scale| scale.is_finite()) && scales.iter().any(|&scale| scale != 1.0)
        };
        Self {
            scales: scales.filter(is_needed),
        }
    }

    /// Whether nothing is to be done.
    pub(super) fn is_idle(&self) -> bool {
        self.scales.is_none()
    }

    /// 1/√k(x, x), or 0 for a sample of zero norm (or of none, with an indefinite kernel).
    pub(crate) fn scale(own: f64) -> f64 {
        if !own.is_finite() {
            f64::NAN
        } else if own > 0.0 {
            own.sqrt().recip()
        } else {
            0.0
        }
    }

    /// k(x, x) once normalised, exactly.
    pub(crate) fn own(scale: f64) -> f64 {
        if scale > 0.0 { 1.0 } else { 0.0 }
    }

    /// Whether k(x, x) = 1 for all samples of a set. A given Gram matrix with that diagonal is that of a normalised kernel: there is nothing
    /// to do to it, and k(x, x) of new samples is 1 where it is not given. It takes all samples of the set to say so, not only those
    /// that a model keeps.
    pub(crate) fn has_unit_diagonal(gram: &GivenGram, samples: usize) -> bool {
        (0..samples).all(|i| gram.values[i * samples + i] == 1.0)
    }

    /// The same for some of the samples.
    pub(super) fn subset(&self, view: &View) -> Self {
        let of = |scales: &Vec<f64>| view.iter(scales.len()).map(|i| scales[i]).collect();
        Self {
            scales: self.scales.as_ref().map(of),
        }
    }

    /// Whole rows of a Gram matrix, from row `first` on.
    pub(super) fn rows(&self, rows: &mut [f64], first: usize) {
        let Some(scales) = &self.scales else {
            return;
        };
        for (i, row) in (first..).zip(rows.chunks_exact_mut(scales.len())) {
            for (value, scale) in row.iter_mut().zip(scales) {
                *value *= scales[i] * scale;
            }
            row[i] = Self::own(scales[i]);
        }
    }

    /// Values of row i in these columns; the same bits as by [`Normaliser::rows`].
    pub(super) fn part(&self, row: &mut [f64], i: usize, columns: impl Iterator<Item = usize>) {
        let Some(scales) = &self.scales else {
            return;
        };
        for (value, j) in row.iter_mut().zip(columns) {
            *value *= scales[i] * scales[j];
            if j == i {
                *value = Self::own(scales[i]);
            }
        }
    }

    /// 1/√k(x, x) of these samples; `None` where nothing is to be done.
    pub(super) fn of(&self, samples: &[usize]) -> Option<Vec<f64>> {
        let scales = self.scales.as_ref()?;
        Some(samples.iter().map(|&i| scales[i]).collect())
    }

    /// 1/√k(x, x) of a sample.
    pub(super) fn scale_of(&self, sample: usize) -> f64 {
        self.scales.as_ref().map_or(1.0, |scales| scales[sample])
    }

    /// Rows of a cross kernel: these are its new samples, from row `first` on, the columns `others`.
    pub(super) fn cross(&self, others: &Self, rows: &mut [f64], first: usize) {
        let (Some(own), Some(others)) = (&self.scales, &others.scales) else {
            return;
        };
        let rows = rows.chunks_exact_mut(others.len().max(1));
        for (row, scale) in rows.zip(&own[first..]) {
            for (value, other) in row.iter_mut().zip(others) {
                *value *= scale * other;
            }
        }
    }

    /// k(x, x) of all samples.
    pub(super) fn diagonal(&self, own: &mut [f64]) {
        if let Some(scales) = &self.scales {
            for (own, scale) in own.iter_mut().zip(scales) {
                *own = Self::own(*scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_norm_stays_zero_and_ones_are_left_alone() {
        let normaliser = Normaliser::of_training(&[4.0, 0.0, 1.0]);
        let mut rows = [4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0];
        normaliser.rows(&mut rows, 0);
        assert_eq!(rows, [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]);
        let mut part = [2.0, 4.0];
        normaliser.part(&mut part, 0, [2, 0].into_iter());
        assert_eq!(part, [1.0, 1.0]);
        assert!(Normaliser::of_training(&[1.0, 1.0]).is_idle());
        assert!(Normaliser::of_training(&[1.0, f64::INFINITY]).is_idle());
        assert!(Normaliser::scale(f64::INFINITY).is_nan());
    }

    #[test]
    fn new_samples_against_old_ones() {
        let (new, old) = (Normaliser::new(&[4.0, 0.0]), Normaliser::new(&[1.0, 16.0]));
        let mut rows = [2.0, 8.0, 3.0, 3.0];
        new.cross(&old, &mut rows, 0);
        assert_eq!(rows, [1.0, 1.0, 0.0, 0.0]);
        let mut own = [4.0, 0.0];
        new.diagonal(&mut own);
        assert_eq!(own, [1.0, 0.0]);
    }
}
