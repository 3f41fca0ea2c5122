use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::{Error, Result};
use crate::vector::{map_exp, map_exp_from};

/// k(x, z) = exp(−gamma ‖x − z‖²) = exp(−‖x − z‖² / (2 σ²))
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    gamma: f64,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "rbf",
    aliases: &["gaussian"],
    formula: "exp(−gamma ‖x − z‖²)",
    keys: &[
        KeyInfo {
            key: "gamma",
            meaning: "the inverse squared width, > 0 (default 1); `scale`: 1/(columns × variance)",
        },
        KeyInfo {
            key: "sigma",
            meaning: "the width instead of gamma, > 0: gamma = 1/(2 sigma²); `median*2`: twice the median distance of two samples",
        },
    ],
    example: "rbf:gamma=0.5",
    build: |options| {
        options.at_most_one("gamma", "sigma")?;
        if options.has("sigma") {
            options.length("sigma", 1.0, Gaussian::from_sigma)
        } else {
            options.inverse("gamma", 1.0, Gaussian::from_gamma)
        }
    },
};

impl Gaussian {
    /// exp(−gamma ‖x − z‖²)
    ///
    /// # Errors
    /// When gamma is not a finite number > 0.
    pub fn from_gamma(gamma: f64) -> Result<Self> {
        Ok(Self {
            gamma: positive("gamma", gamma)?,
        })
    }

    /// exp(−‖x − z‖² / (2 σ²))
    ///
    /// # Errors
    /// When sigma is not a finite number > 0, or so small or large that 1/(2σ²) is none.
    pub fn from_sigma(sigma: f64) -> Result<Self> {
        let gamma = 0.5 / (positive("sigma", sigma)? * sigma);
        if !(gamma.is_finite() && gamma > 0.0) {
            return Err(Error::param(
                "sigma",
                sigma,
                "a number between about 1e-154 and 1e154",
            ));
        }
        Ok(Self { gamma })
    }

    /// 1/(2σ²)
    pub fn gamma(&self) -> f64 {
        self.gamma
    }
}

impl Kernel for Gaussian {
    fn base(&self) -> Base {
        Base::squared_distance()
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

    /// Always with gamma, never with sigma: σ → 1/(2σ²) → σ loses bits.
    fn spec(&self) -> Option<String> {
        Some(format!("rbf:gamma={}", self.gamma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_squared_distances() {
        let mut values = [0.0, 2.0];
        Gaussian::from_gamma(0.5).unwrap().map(&mut values);
        assert_eq!(values, [1.0, (-1.0_f64).exp()]);
    }

    #[test]
    fn sigma_is_the_standard_deviation() {
        assert_eq!(Gaussian::from_sigma(2.0).unwrap().gamma(), 0.125);
    }

    #[test]
    fn the_specification_keeps_every_bit() {
        for sigma in [1e-150, 0.1, 1.0 / 3.0, std::f64::consts::PI, 7e77] {
            let kernel = Gaussian::from_sigma(sigma).unwrap();
            let text = kernel.spec().unwrap();
            let gamma: f64 = text.strip_prefix("rbf:gamma=").unwrap().parse().unwrap();
            assert_eq!(gamma.to_bits(), kernel.gamma().to_bits(), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Gaussian::from_gamma(gamma).is_err());
            assert!(Gaussian::from_sigma(gamma).is_err());
        }
        for sigma in [1e-200, 1e200] {
            let message = Gaussian::from_sigma(sigma).unwrap_err().to_string();
            assert!(message.contains("1e154"), "{message}");
        }
    }
}
