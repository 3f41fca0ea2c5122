use std::sync::Arc;

use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::Result;
use crate::vector::{map_exp, map_exp_from};

/// k(x, z) = exp(−gamma ‖x − z‖₁)
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Laplacian {
    gamma: f64,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "laplacian",
    aliases: &["laplace"],
    formula: "exp(−gamma ‖x − z‖₁)",
    keys: &[
        KeyInfo {
            key: "gamma",
            meaning: "the inverse width, > 0 (default 1)",
        },
        KeyInfo {
            key: "sigma",
            meaning: "the width instead of gamma, > 0: gamma = 1/sigma; `median*2`: twice the median distance ‖x − z‖₁ of two samples",
        },
    ],
    example: "laplacian:gamma=0.5",
    build: |options| {
        options.at_most_one("gamma", "sigma")?;
        if options.has("sigma") {
            return options.length("sigma", 1.0, |sigma| {
                Laplacian::new(positive("sigma", sigma)?.recip())
            });
        }
        Ok(Arc::new(Laplacian::new(options.number("gamma", 1.0)?)?))
    },
};

impl Laplacian {
    /// exp(−gamma ‖x − z‖₁)
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

impl Kernel for Laplacian {
    fn base(&self) -> Base {
        Base::manhattan()
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

    fn spec(&self) -> Option<String> {
        Some(format!("laplacian:gamma={}", self.gamma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_manhattan_distances() {
        let mut values = [0.0, 2.0];
        Laplacian::new(0.25).unwrap().map(&mut values);
        assert_eq!(values, [1.0, (-0.5_f64).exp()]);
        assert_eq!(Laplacian::new(0.25).unwrap().base(), Base::manhattan());
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Laplacian::new(gamma).is_err());
        }
    }
}
