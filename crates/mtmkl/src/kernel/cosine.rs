use std::sync::Arc;

use super::{Base, Kernel, KernelEntry};

/// k(x, z) = x'z / (‖x‖ ‖z‖), the linear kernel in its normalised form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cosine;

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "cosine",
    aliases: &[],
    formula: "x'z / (‖x‖ ‖z‖)",
    keys: &[],
    example: "cosine",
    build: |_| Ok(Arc::new(Cosine)),
};

impl Kernel for Cosine {
    fn base(&self) -> Base {
        Base::product()
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn is_always_normalised(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<String> {
        Some("cosine".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_division_is_left_to_the_normalisation() {
        let mut values = [-2.0, 0.0, 3.5];
        Cosine.map(&mut values);
        assert_eq!(values, [-2.0, 0.0, 3.5]);
        assert!(Cosine.is_always_normalised());
    }
}
