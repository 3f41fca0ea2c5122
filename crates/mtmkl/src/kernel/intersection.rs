use std::sync::Arc;

use super::base::{Arranged, Arrangement, sum_over_columns};
use super::{Base, Kernel, KernelEntry, Statistic};

/// `k(x, z) = Σ_i min(x_i, z_i)`, the histogram intersection; for values ≥ 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Intersection;

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "intersection",
    aliases: &["histogram"],
    formula: "Σ min(x_i, z_i), values ≥ 0",
    keys: &[],
    example: "intersection",
    build: |_| Ok(Arc::new(Intersection)),
};

/// `Σ_i min(x_i, z_i)`
#[derive(Debug, Clone, Copy)]
pub(super) struct SumOfMinima;

impl Statistic for SumOfMinima {
    fn key(&self) -> String {
        "Σmin(x,z)".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        x.iter().zip(z).map(|(a, b)| a.min(*b)).sum()
    }

    fn arrangement(&self, _width: usize) -> Arrangement {
        Arrangement::Columns
    }

    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        sum_over_columns(x, z, until, out, stride, f64::min);
    }
}

impl Kernel for Intersection {
    fn base(&self) -> Base {
        Base::of(SumOfMinima)
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn needs_non_negative(&self) -> Option<&'static str> {
        Some("intersection")
    }

    fn spec(&self) -> Option<String> {
        Some("intersection".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_the_smaller_of_each_pair() {
        assert_eq!(Intersection.value(&[1.0, 5.0, 0.0], &[2.0, 3.0, 4.0]), 4.0);
        assert_eq!(Intersection.needs_non_negative(), Some("intersection"));
    }
}
