use super::spec::positive;
use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::Result;
use crate::vector::map_exp;

const SQRT_3: f64 = 1.732_050_807_568_877_2;
const SQRT_5: f64 = 2.236_067_977_499_79;

/// exp(−s) is 0 from here on; stopping here keeps ∞ · 0 out of the products.
const FAR: f64 = 800.0;

const LENGTH: KeyInfo = KeyInfo {
    key: "length",
    meaning: "the length scale ℓ, > 0 (default 1); `median*2`: twice the median distance of two samples",
};

/// k(x, z) = (1 + s) exp(−s) with s = √3 ‖x − z‖ / ℓ: once differentiable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matern32 {
    length: f64,
}

/// k(x, z) = (1 + s + s²/3) exp(−s) with s = √5 ‖x − z‖ / ℓ: twice differentiable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matern52 {
    length: f64,
}

pub(super) static ENTRY_32: KernelEntry = KernelEntry {
    name: "matern32",
    aliases: &[],
    formula: "(1 + s) exp(−s), s = √3 ‖x − z‖/length",
    keys: &[LENGTH],
    example: "matern32:length=2",
    build: |options| options.length("length", 1.0, Matern32::new),
};

pub(super) static ENTRY_52: KernelEntry = KernelEntry {
    name: "matern52",
    aliases: &[],
    formula: "(1 + s + s²/3) exp(−s), s = √5 ‖x − z‖/length",
    keys: &[LENGTH],
    example: "matern52:length=2",
    build: |options| options.length("length", 1.0, Matern52::new),
};

/// s = root · √(squared distance) / ℓ. A squared distance from a product can be a rounding error below 0.
fn scaled(squared_distance: f64, root: f64, length: f64) -> f64 {
    (root * squared_distance.max(0.0).sqrt() / length).min(FAR)
}

impl Matern32 {
    /// (1 + s) exp(−s) with s = √3 ‖x − z‖ / ℓ
    ///
    /// # Errors
    /// When the length is not a finite number > 0.
    pub fn new(length: f64) -> Result<Self> {
        Ok(Self {
            length: positive("length", length)?,
        })
    }

    /// ℓ
    pub fn length(&self) -> f64 {
        self.length
    }
}

impl Matern52 {
    /// (1 + s + s²/3) exp(−s) with s = √5 ‖x − z‖ / ℓ
    ///
    /// # Errors
    /// When the length is not a finite number > 0.
    pub fn new(length: f64) -> Result<Self> {
        Ok(Self {
            length: positive("length", length)?,
        })
    }

    /// ℓ
    pub fn length(&self) -> f64 {
        self.length
    }
}

impl Kernel for Matern32 {
    fn base(&self) -> Base {
        Base::squared_distance()
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn map(&self, values: &mut [f64]) {
        map_exp(values, |squared_distance| {
            let s = scaled(squared_distance, SQRT_3, self.length);
            (-s, 1.0 + s)
        });
    }

    fn spec(&self) -> Option<String> {
        Some(format!("matern32:length={}", self.length))
    }
}

impl Kernel for Matern52 {
    fn base(&self) -> Base {
        Base::squared_distance()
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn map(&self, values: &mut [f64]) {
        map_exp(values, |squared_distance| {
            let s = scaled(squared_distance, SQRT_5, self.length);
            (-s, 1.0 + s + s * s / 3.0)
        });
    }

    fn spec(&self) -> Option<String> {
        Some(format!("matern52:length={}", self.length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(length: f64) -> [Box<dyn Kernel>; 2] {
        [
            Box::new(Matern32::new(length).unwrap()),
            Box::new(Matern52::new(length).unwrap()),
        ]
    }

    #[test]
    fn the_roots_are_exact() {
        assert_eq!(SQRT_3, 3.0_f64.sqrt());
        assert_eq!(SQRT_5, 5.0_f64.sqrt());
    }

    #[test]
    fn one_at_zero_and_falling() {
        for kernel in both(2.0) {
            let mut values = [-1e-17, 0.0, 0.25, 4.0, 100.0];
            kernel.map(&mut values);
            assert_eq!(values[..2], [1.0, 1.0]);
            assert!(
                values.windows(2).all(|pair| pair[0] >= pair[1]),
                "{values:?}"
            );
        }
    }

    #[test]
    fn zero_far_away_and_never_nan() {
        for length in [f64::MIN_POSITIVE, 1e-300, 1.0] {
            for kernel in both(length) {
                let mut values = [0.0, 1e300, f64::MAX];
                kernel.map(&mut values);
                assert_eq!(values, [1.0, 0.0, 0.0]);
            }
        }
    }

    #[test]
    fn refuses_what_is_out_of_range() {
        for length in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Matern32::new(length).is_err());
            assert!(Matern52::new(length).is_err());
        }
    }
}
