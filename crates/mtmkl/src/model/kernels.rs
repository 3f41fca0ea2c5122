//! The kernels of a model file, by their specifications.

use super::SupportSet;
use super::file::format_error;
use super::header::KernelHeader;
use crate::error::Result;
use crate::kernel::KernelView;
use crate::registry::Registry;

/// The kernels, for these sample sets.
pub(super) fn read(
    registry: &Registry,
    kernels: &[KernelHeader],
    sets: &[SupportSet],
) -> Result<Vec<KernelView>> {
    // Checked one by one: a few bytes can ask for many columns, and only those there are cost memory.
    let views = kernels
        .iter()
        .map(|kernel| {
            let name = kernel
                .spec
                .split([':', '@', '*'])
                .next()
                .unwrap_or_default();
            registry.kernel(name.trim())?;
            let mut view = registry
                .parse_kernel(&kernel.spec)
                .map_err(|error| format_error(error.to_string()))?;
            view.name.clone_from(&kernel.name);
            for set in sets {
                view.columns
                    .resolve(&set.columns)
                    .map_err(|error| format_error(error.to_string()))?;
                if view.kernel.given().is_none() && set.columns.is_empty() {
                    return Err(format_error("a kernel needs columns and there are none"));
                }
                let kernels = set.origins.as_ref().map(|origins| &origins.kernels);
                let is_known = |word: &String| kernels.is_some_and(|own| own.get(word).is_some());
                if let Some(word) = view.between.as_ref().filter(|word| !is_known(word)) {
                    let problem = format!("the task kernel `{word}` is missing");
                    return Err(format_error(problem));
                }
            }
            Ok(view)
        })
        .collect::<Result<Vec<_>>>()?;
    for name in views.iter().filter_map(|view| view.kernel.given()) {
        if sets
            .iter()
            .any(|set| !set.given_diagonals.contains_key(name))
        {
            return Err(format_error(format!(
                "the diagonal of the precomputed kernel `{name}` is missing"
            )));
        }
    }
    Ok(views)
}
