//! c k(x, z): a kernel times a number, the key `factor` of every specification.

use std::sync::Arc;

use super::spec::positive;
use super::{Base, Kernel};
use crate::error::{Error, Result};

/// The key of every kernel's specification that stands for the number.
pub(super) const FACTOR: &str = "factor";

/// c k(x, z), c > 0.
#[derive(Debug, Clone)]
pub struct Scaled {
    factor: f64,
    kernel: Arc<dyn Kernel>,
}

impl Scaled {
    /// c k(x, z)
    ///
    /// # Errors
    /// When the factor is not a finite number > 0, or the kernel is one that is always normalised: that would take the factor away again.
    pub fn new(factor: f64, kernel: Arc<dyn Kernel>) -> Result<Self> {
        if kernel.is_always_normalised() {
            let expected = "1: this kernel is always normalised, which takes a factor away";
            return Err(Error::param(FACTOR, factor, expected));
        }
        Ok(Self {
            factor: positive(FACTOR, factor)?,
            kernel,
        })
    }
}

impl Kernel for Scaled {
    fn base(&self) -> Base {
        self.kernel.base()
    }

    fn map(&self, values: &mut [f64]) {
        self.kernel.map(values);
        for value in values {
            *value *= self.factor;
        }
    }

    fn map_from(&self, base: &[f64], values: &mut [f64]) {
        self.kernel.map_from(base, values);
        for value in values {
            *value *= self.factor;
        }
    }

    fn exponential(&self) -> Option<(f64, f64)> {
        let (factor, gamma) = self.kernel.exponential()?;
        Some((self.factor * factor, gamma))
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        self.factor * self.kernel.value(x, z)
    }

    fn factor(&self) -> Option<f64> {
        Some(self.factor)
    }

    fn unsettled(&self) -> Option<&super::Unsettled> {
        self.kernel.unsettled()
    }

    fn is_positive_definite(&self) -> bool {
        self.kernel.is_positive_definite()
    }

    fn needs_non_negative(&self) -> Option<&'static str> {
        self.kernel.needs_non_negative()
    }

    fn given(&self) -> Option<&str> {
        self.kernel.given()
    }

    fn spec(&self) -> Option<String> {
        let kernel = self.kernel.spec()?;
        let mark = if kernel.contains(':') { ',' } else { ':' };
        Some(format!("{kernel}{mark}{FACTOR}={}", self.factor))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_kernel;

    #[test]
    fn every_kernel_takes_a_factor_or_says_why_not() {
        let (x, z) = ([0.5, 2.0], [1.5, 0.25]);
        for entry in crate::kernel::KERNELS {
            let plain = parse_kernel(entry.example).unwrap();
            let mark = if entry.example.contains(':') {
                ','
            } else {
                ':'
            };
            let text = format!("{}{mark}factor=3", entry.example);
            let scaled = parse_kernel(&text);
            if plain.kernel.is_always_normalised() {
                let message = scaled.unwrap_err().to_string();
                assert!(message.contains("always normalised"), "{message}");
                let one = format!("{}{mark}factor=1", entry.example);
                assert_eq!(parse_kernel(&one).unwrap().kernel.factor(), None);
                continue;
            }
            let scaled = scaled.unwrap();
            assert_eq!(scaled.kernel.factor(), Some(3.0), "{text}");
            let again = parse_kernel(&scaled.spec().unwrap()).unwrap();
            assert_eq!(again.spec(), scaled.spec());
            let (value, expected) = (scaled.kernel.value(&x, &z), plain.kernel.value(&x, &z));
            assert!(
                (value - 3.0 * expected).abs() <= 1e-15 * value.abs(),
                "{text}"
            );
        }
        let message = parse_kernel("rbf:factor=0").unwrap_err().to_string();
        assert!(message.contains("factor"), "{message}");
    }
}
