//! A kernel of one's own: the rational quadratic.

use std::sync::Arc;

use mtmkl::entry::Range;
use mtmkl::kernel::{Base, Kernel, KernelEntry, KeyInfo};

/// k(x, z) = 1 / (1 + ‖x − z‖²/scale)
#[derive(Debug)]
struct Rational {
    scale: f64,
}

/// How it is known.
pub(crate) static ENTRY: KernelEntry = KernelEntry {
    name: "rational",
    aliases: &[],
    formula: "1 / (1 + ‖x − z‖²/scale)",
    keys: &[KeyInfo {
        key: "scale",
        meaning: "the squared distance at which it is ½, > 0 (default 1)",
    }],
    example: "rational:scale=2",
    build: |options| {
        let scale = options.number("scale", 1.0)?;
        Range::Positive.check("scale", scale)?;
        Ok(Arc::new(Rational { scale }))
    },
};

impl Kernel for Rational {
    fn base(&self) -> Base {
        Base::squared_distance()
    }

    fn map(&self, values: &mut [f64]) {
        for value in values {
            *value = 1.0 / (1.0 + *value / self.scale);
        }
    }

    fn is_positive_definite(&self) -> bool {
        true
    }

    fn spec(&self) -> Option<String> {
        Some(format!("rational:scale={}", self.scale))
    }
}
