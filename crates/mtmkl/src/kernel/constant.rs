use std::sync::Arc;

use super::{Base, Kernel, KernelEntry};

/// k(x, z) = 1: an offset with a ridge on it. With the task kernel `own`, `constant*own`, an offset for each task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Constant;

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "constant",
    aliases: &[],
    formula: "1",
    keys: &[],
    example: "constant",
    build: |_| Ok(Arc::new(Constant)),
};

impl Kernel for Constant {
    fn base(&self) -> Base {
        Base::Own
    }

    fn value(&self, _x: &[f64], _z: &[f64]) -> f64 {
        1.0
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn is_bounded(&self) -> bool {
        true
    }

    // Samples do not vary in its feature space, so that nothing else can be divided by.
    fn is_always_normalised(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<String> {
        Some("constant".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one() {
        assert_eq!(Constant.value(&[1.0, 2.0], &[]), 1.0);
    }
}
