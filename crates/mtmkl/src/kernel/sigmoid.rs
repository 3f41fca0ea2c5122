use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::{Error, Result};

/// k(x, z) = tanh(gamma x'z + coef0). Not positive semi-definite, so each of its Grams is checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sigmoid {
    gamma: f64,
    coef0: f64,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "sigmoid",
    aliases: &["tanh"],
    formula: "tanh(gamma x'z + coef0), not positive semi-definite",
    keys: &[
        KeyInfo {
            key: "gamma",
            meaning: "the factor of x'z, > 0 (default 1); `scale`: 1/(columns × variance)",
        },
        KeyInfo {
            key: "coef0",
            meaning: "the constant added (default 1)",
        },
    ],
    example: "sigmoid:gamma=0.1,coef0=0.5",
    build: |options| {
        let coef0 = options.number("coef0", 1.0)?;
        options.inverse("gamma", 1.0, move |gamma| Sigmoid::new(gamma, coef0))
    },
};

impl Sigmoid {
    /// tanh(gamma x'z + coef0)
    ///
    /// # Errors
    /// When gamma is not a finite number > 0, or coef0 is not finite.
    pub fn new(gamma: f64, coef0: f64) -> Result<Self> {
        if !coef0.is_finite() {
            return Err(Error::param("coef0", coef0, "a finite number"));
        }
        Ok(Self {
            gamma: positive("gamma", gamma)?,
            coef0,
        })
    }

    /// The factor of x'z.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// The constant added.
    pub fn coef0(&self) -> f64 {
        self.coef0
    }
}

impl Kernel for Sigmoid {
    fn base(&self) -> Base {
        Base::product()
    }

    fn map(&self, values: &mut [f64]) {
        for value in values {
            *value = (self.gamma * *value + self.coef0).tanh();
        }
    }

    fn is_positive_definite(&self) -> bool {
        false
    }

    fn spec(&self) -> Option<String> {
        Some(format!("sigmoid:gamma={},coef0={}", self.gamma, self.coef0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_products() {
        let mut values = [2.0, -2.0];
        let kernel = Sigmoid::new(0.5, 1.0).unwrap();
        kernel.map(&mut values);
        assert_eq!(values, [2.0_f64.tanh(), 0.0]);
        assert!(!kernel.is_positive_definite());
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        assert!(Sigmoid::new(0.0, 1.0).is_err());
        assert!(Sigmoid::new(f64::NAN, 1.0).is_err());
        assert!(Sigmoid::new(1.0, f64::NEG_INFINITY).is_err());
        assert!(Sigmoid::new(1.0, -3.0).is_ok());
    }
}
