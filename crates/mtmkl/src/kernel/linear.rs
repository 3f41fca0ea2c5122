use std::sync::Arc;

use super::{Base, Kernel, KernelEntry};

/// k(x, z) = x'z
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Linear;

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "linear",
    aliases: &[],
    formula: "x'z",
    keys: &[],
    example: "linear",
    build: |_| Ok(Arc::new(Linear)),
};

impl Kernel for Linear {
    fn base(&self) -> Base {
        Base::product()
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<String> {
        Some("linear".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_stays_as_it_is() {
        let mut values = [-2.0, 0.0, 3.5];
        Linear.map(&mut values);
        assert_eq!(values, [-2.0, 0.0, 3.5]);
        assert!(Linear.is_positive_definite());
    }
}
