//! Sets of kernels to choose from, with or without a name.

use anyhow::{Result, bail};

use crate::args::TuneArgs;

/// Kernels that are used together.
#[derive(Debug, Clone)]
pub(super) struct KernelSet {
    name: Option<String>,
    pub(super) specs: Vec<String>,
}

impl KernelSet {
    /// Without a name.
    pub(super) fn of(specs: Vec<String>) -> Self {
        Self { name: None, specs }
    }

    /// `NAME=SPEC;SPEC;…` or `SPEC;SPEC;…`: of a kernel's own `=` there is a colon before.
    fn read(text: &str) -> Self {
        let is_name = |name: &&str| !name.is_empty() && !name.contains([':', ';', '@']);
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if is_name(&name.trim()) => (Some(name.trim().to_string()), rest),
            _ => (None, text),
        };
        let specs = rest.split(';').map(|spec| spec.trim().to_string());
        Self {
            name,
            specs: specs.filter(|spec| !spec.is_empty()).collect(),
        }
    }

    /// What it is called in tables.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.specs.join(";"))
    }
}

/// The sets that the flags name; the flags then name each kernel once.
///
/// # Errors
/// When there is no kernel in a set, or one that cannot be.
pub(super) fn kernel_sets(args: &mut TuneArgs) -> Result<Vec<KernelSet>> {
    if args.kernel_set.is_empty() {
        return Ok(Vec::new());
    }
    let mut sets = Vec::new();
    let mut all: Vec<String> = Vec::new();
    for text in &args.kernel_set {
        let set = KernelSet::read(text);
        if set.specs.is_empty() {
            bail!(
                "--kernel-set {text}: there is no kernel in it; separate them by `;`, e.g. 'linear;rbf:sigma=1|2'"
            );
        }
        for spec in &set.specs {
            if spec.starts_with("precomputed") {
                bail!(
                    "--kernel-set {text}: precomputed kernels cannot stand in a set; give them with --kernel, for all cells"
                );
            }
            if !all.contains(spec) {
                all.push(spec.clone());
            }
        }
        sets.push(set);
    }
    args.fit.kernel = all;
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_parameters() {
        let read = |text: &str| {
            let set = KernelSet::read(text);
            (set.name, set.specs)
        };
        let specs = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let wide = (
            Some("wide ones".to_string()),
            specs(&["rbf:sigma=4", "linear"]),
        );
        assert_eq!(read("wide ones = rbf:sigma=4 ; linear"), wide);
        assert_eq!(read("rbf:sigma=4;linear"), (None, wide.1.clone()));
        assert_eq!(
            read("linear;rbf:sigma=4"),
            (None, specs(&["linear", "rbf:sigma=4"]))
        );
        assert_eq!(read("linear@f=1"), (None, specs(&["linear@f=1"])));
        assert_eq!(read("none=;"), (Some("none".to_string()), Vec::new()));
    }
}
