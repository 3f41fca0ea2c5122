use std::sync::Arc;

use super::{Base, Kernel, KernelEntry, KeyInfo};
use crate::error::{Error, Result};

/// `k(x_i, x_j) = K[i, j]`, read from a Gram matrix that was given with the samples. It is checked, since anybody can
/// compute anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precomputed {
    name: String,
}

pub(super) static ENTRY: KernelEntry = KernelEntry {
    name: "precomputed",
    aliases: &[],
    formula: "K[i, j] of a given Gram matrix",
    keys: &[
        KeyInfo {
            key: "name",
            meaning: "the name of the Gram matrix given with the samples",
        },
        KeyInfo {
            key: "path",
            meaning: "the same under another key, for a Gram matrix named after its file",
        },
    ],
    example: "precomputed:name=K1",
    build: |options| {
        options.at_most_one("name", "path")?;
        match options.text("name").or_else(|| options.text("path")) {
            Some(name) => Ok(Arc::new(Precomputed::new(name)?)),
            None => Err(options
                .problem("the name of the Gram matrix is missing; write `precomputed:name=K1`")),
        }
    },
};

impl Precomputed {
    /// The Gram matrix with this name.
    ///
    /// # Errors
    /// When the name is empty, has blanks around it, or contains `,`, `|` or `@`, which mean something in a
    /// specification.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        if name.is_empty() || name.trim() != name || name.contains([',', '|', '@']) {
            let expected = "a name without `,`, `|`, `@` and blanks around it";
            return Err(Error::param("name", format!("`{name}`"), expected));
        }
        Ok(Self { name })
    }
}

impl Kernel for Precomputed {
    fn base(&self) -> Base {
        Base::Given
    }

    fn given(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn spec(&self) -> Option<String> {
        Some(format!("precomputed:name={}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse_kernel;

    #[test]
    fn names_round_trip() {
        for name in [
            "K1",
            "a=b",
            "C:\\grams\\k 1.npy",
            "#0",
            "naïve..kernel",
            "\"quoted\"",
            "a=b=c:d",
        ] {
            let kernel = Precomputed::new(name).unwrap();
            assert_eq!(kernel.given(), Some(name));
            let parsed = parse_kernel(&kernel.spec().unwrap()).unwrap();
            assert_eq!(parsed.kernel.given(), Some(name));
        }
    }

    #[test]
    fn refuses_names_that_a_specification_cannot_hold() {
        for name in ["", " ", "a ", "\ta", "a,b", "a|b", "a@b"] {
            let message = Precomputed::new(name).unwrap_err().to_string();
            assert!(message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn path_is_another_word_for_name() {
        let view = parse_kernel("precomputed:path=k1.npy").unwrap();
        assert_eq!(view.kernel.given(), Some("k1.npy"));
        assert_eq!(view.spec().unwrap(), "precomputed:name=k1.npy");
    }
}
