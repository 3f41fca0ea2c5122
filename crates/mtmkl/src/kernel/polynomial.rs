use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::{Error, Result};

/// k(x, z) = (gamma x'z + coef0)^degree
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Polynomial {
    degree: i32,
    coef0: f64,
    gamma: f64,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "poly",
    aliases: &["polynomial"],
    formula: "(gamma x'z + coef0)^degree",
    keys: &[
        KeyInfo {
            key: "degree",
            meaning: "the power, a whole number ≥ 1 (default 2)",
        },
        KeyInfo {
            key: "coef0",
            meaning: "the constant added; below 0 the kernel may be indefinite (default 1)",
        },
        KeyInfo {
            key: "gamma",
            meaning: "the factor of x'z, > 0 (default 1); `scale`: 1/(columns × variance)",
        },
    ],
    example: "poly:degree=3,coef0=1,gamma=0.5",
    build: |options| {
        let degree = options.whole("degree", 2)?;
        let coef0 = options.number("coef0", 1.0)?;
        options.inverse("gamma", 1.0, move |gamma| {
            Polynomial::new(degree, coef0, gamma)
        })
    },
};

impl Polynomial {
    /// (gamma x'z + coef0)^degree. With coef0 < 0 it is not positive semi-definite in general, so each Gram is checked.
    ///
    /// # Errors
    /// When the degree is 0 or beyond `i32`, coef0 is not finite, or gamma is not a finite number > 0.
    pub fn new(degree: u32, coef0: f64, gamma: f64) -> Result<Self> {
        let checked_degree = i32::try_from(degree)
            .ok()
            .filter(|&degree| degree >= 1)
            .ok_or_else(|| {
                Error::param(
                    "degree",
                    degree,
                    format!("a whole number from 1 to {}", i32::MAX),
                )
            })?;
        if !coef0.is_finite() {
            return Err(Error::param(
                "coef0",
                coef0,
                "a finite number, ≥ 0 for a positive semi-definite kernel",
            ));
        }
        Ok(Self {
            degree: checked_degree,
            coef0,
            gamma: positive("gamma", gamma)?,
        })
    }

    /// The power.
    pub fn degree(&self) -> u32 {
        self.degree.unsigned_abs()
    }

    /// The constant added.
    pub fn coef0(&self) -> f64 {
        self.coef0
    }

    /// The factor of x'z.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }
}

impl Default for Polynomial {
    /// (x'z + 1)²
    fn default() -> Self {
        Self {
            degree: 2,
            coef0: 1.0,
            gamma: 1.0,
        }
    }
}

impl Kernel for Polynomial {
    fn base(&self) -> Base {
        Base::product()
    }

    fn map(&self, values: &mut [f64]) {
        // The usual power without a call for each value.
        if self.degree == 2 {
            for value in values {
                let root = self.gamma * *value + self.coef0;
                *value = root * root;
            }
            return;
        }
        for value in values {
            *value = (self.gamma * *value + self.coef0).powi(self.degree);
        }
    }

    fn is_positive_definite(&self) -> bool {
        self.coef0 >= 0.0
    }

    fn spec(&self) -> Option<String> {
        Some(format!(
            "poly:degree={},coef0={},gamma={}",
            self.degree, self.coef0, self.gamma
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_products() {
        let mut values = [2.0, -1.0];
        Polynomial::new(3, 1.0, 0.5).unwrap().map(&mut values);
        assert_eq!(values, [8.0, 0.125]);
    }

    #[test]
    fn a_negative_constant_gives_up_definiteness() {
        assert!(Polynomial::new(2, 0.0, 1.0).unwrap().is_positive_definite());
        assert!(
            !Polynomial::new(2, -1.0, 1.0)
                .unwrap()
                .is_positive_definite()
        );
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for (degree, coef0, gamma, name) in [
            (0, 1.0, 1.0, "degree"),
            (u32::MAX, 1.0, 1.0, "degree"),
            (2, f64::NAN, 1.0, "coef0"),
            (2, f64::INFINITY, 1.0, "coef0"),
            (2, 1.0, 0.0, "gamma"),
            (2, 1.0, f64::INFINITY, "gamma"),
        ] {
            let message = Polynomial::new(degree, coef0, gamma)
                .unwrap_err()
                .to_string();
            assert!(
                message.contains(&format!("parameter `{name}`")),
                "{message}"
            );
        }
    }

    #[test]
    fn the_default_equals_the_default_of_the_specification() {
        let parsed = crate::kernel::parse_kernel("poly").unwrap();
        assert_eq!(parsed.spec(), Polynomial::default().spec());
    }
}
