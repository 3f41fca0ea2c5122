//! What one kernel does to the rows of its base: k = map(s), then normalised.

use std::sync::Arc;

use super::normaliser::Normaliser;
use crate::kernel::{Base, Kernel};
use crate::vector;
use crate::view::View;

/// A kernel on the samples of one set.
#[derive(Debug, Clone)]
pub(super) struct Map {
    /// `None` where base values are kernel values already.
    kernel: Option<Arc<dyn Kernel>>,
    normaliser: Arc<Normaliser>,
}

impl Map {
    /// For samples to learn from, with s(x, x) of each.
    pub(super) fn new(kernel: &Arc<dyn Kernel>, own: &[f64], normalise: bool) -> Self {
        let is_mapped = match kernel.base() {
            Base::Of(_) => true,
            Base::Given => kernel.factor().is_some(),
            Base::Own => false,
        };
        let mut map = Self {
            kernel: is_mapped.then(|| Arc::clone(kernel)),
            normaliser: Arc::default(),
        };
        if Normaliser::is_wanted(kernel.as_ref(), normalise) {
            let mut own = own.to_vec();
            map.kernel_values(&mut own);
            map.normaliser = Arc::new(Normaliser::of_training(&own));
        }
        map
    }

    /// Base values → kernel values.
    pub(super) fn kernel_values(&self, values: &mut [f64]) {
        if let Some(kernel) = &self.kernel {
            kernel.map(values);
        }
    }

    /// The same, elsewhere.
    pub(super) fn kernel_values_from(&self, base: &[f64], values: &mut [f64]) {
        match &self.kernel {
            Some(kernel) => kernel.map_from(base, values),
            None => values.copy_from_slice(base),
        }
    }

    /// (c, γ) where kernel values are c exp(−γ s) before they are normalised.
    pub(super) fn exponential(&self) -> Option<(f64, f64)> {
        self.kernel.as_ref()?.exponential()
    }

    /// What is done to kernel values.
    pub(super) fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// The same for some of the samples.
    pub(super) fn subset(&self, view: &View) -> Self {
        Self {
            kernel: self.kernel.clone(),
            normaliser: Arc::new(self.normaliser.subset(view)),
        }
    }

    /// Whole rows of a matrix from row `first` on. Says whether all values are finite.
    pub(super) fn apply(&self, rows: &mut [f64], first: usize) -> bool {
        self.kernel_values(rows);
        self.normaliser.rows(rows, first);
        vector::all_finite(rows)
    }
}

/// The first of these values that is not finite.
pub(super) fn first_overflow(values: &[f64]) -> f64 {
    let found = values.iter().copied().find(|value| !value.is_finite());
    found.unwrap_or(f64::NAN)
}
