use std::sync::Arc;

use super::base::{Arranged, Arrangement, sum_over_columns};
use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo, Statistic};
use crate::error::Result;
use crate::vector::{map_exp, map_exp_from};

/// `k(x, z) = exp(−gamma Σ_i (x_i − z_i)² / (x_i + z_i))` with 0/0 = 0; for values ≥ 0, such as histograms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChiSquare {
    gamma: f64,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "chi2",
    aliases: &["chi_square"],
    formula: "exp(−gamma Σ (x_i − z_i)²/(x_i + z_i)), values ≥ 0",
    keys: &[KeyInfo {
        key: "gamma",
        meaning: "the inverse width, > 0 (default 1)",
    }],
    example: "chi2:gamma=0.5",
    build: |options| Ok(Arc::new(ChiSquare::new(options.number("gamma", 1.0)?)?)),
};

impl ChiSquare {
    /// `exp(−gamma Σ_i (x_i − z_i)² / (x_i + z_i))`
    ///
    /// # Errors
    /// When gamma is not a finite number > 0.
    pub fn new(gamma: f64) -> Result<Self> {
        Ok(Self {
            gamma: positive("gamma", gamma)?,
        })
    }

    /// The inverse width.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }
}

/// The χ² distance `Σ_i (x_i − z_i)² / (x_i + z_i)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChiSquareDistance;

fn term(a: f64, b: f64) -> f64 {
    let (difference, sum) = (a - b, a + b);
    // A bin that is empty in both tells nothing. Dividing before multiplying keeps tiny values from underflowing to a distance of 0.
    if sum == 0.0 {
        0.0
    } else {
        difference * (difference / sum)
    }
}

impl Statistic for ChiSquareDistance {
    fn key(&self) -> String {
        "Σ(x−z)²/(x+z)".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        x.iter().zip(z).map(|(&a, &b)| term(a, b)).sum()
    }

    fn is_distance(&self) -> bool {
        true
    }

    fn arrangement(&self, _width: usize) -> Arrangement {
        Arrangement::Columns
    }

    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        sum_over_columns(x, z, until, out, stride, term);
    }
}

impl Kernel for ChiSquare {
    fn base(&self) -> Base {
        Base::of(ChiSquareDistance)
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn map(&self, values: &mut [f64]) {
        map_exp(values, |distance| (-self.gamma * distance, 1.0));
    }

    fn exponential(&self) -> Option<(f64, f64)> {
        Some((1.0, self.gamma))
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn map_from(&self, base: &[f64], values: &mut [f64]) {
        let gamma = self.gamma;
        map_exp_from(base, values, move |distance| (-gamma * distance, 1.0));
    }

    fn needs_non_negative(&self) -> Option<&'static str> {
        Some("chi2")
    }

    fn spec(&self) -> Option<String> {
        Some(format!("chi2:gamma={}", self.gamma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_bin_adds_nothing() {
        let kernel = ChiSquare::new(0.5).unwrap();
        assert_eq!(kernel.value(&[0.0, 3.0], &[0.0, 1.0]), (-0.5_f64).exp());
        assert_eq!(kernel.value(&[0.0, 0.0], &[0.0, 0.0]), 1.0);
        assert_eq!(kernel.needs_non_negative(), Some("chi2"));
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(ChiSquare::new(gamma).is_err());
        }
    }
}
