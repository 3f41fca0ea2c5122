//! The tasks that support rows come from, in the model file: for each sample set that has them the task of each support row, and the task kernels as a
//! tensor of JSON text.

use std::collections::BTreeMap;
use std::sync::Arc;

use safetensors::tensor::Dtype;

use super::SupportSet;
use super::file::{Reader, Tensor, format_error};
use crate::error::Result;
use crate::task_kernel::{Origins, TaskKernels};

fn kernels_of(set: usize) -> String {
    format!("set.{set}.task_kernels")
}

fn rows_of(set: usize) -> String {
    format!("set.{set}.origins")
}

/// Adds the tensors of these sets.
pub(super) fn write(sets: &[SupportSet], tensors: &mut BTreeMap<String, Tensor>) -> Result<()> {
    for (number, set) in sets.iter().enumerate() {
        if let Some(origins) = &set.origins {
            tensors.insert(kernels_of(number), Tensor::json(&*origins.kernels)?);
            tensors.insert(rows_of(number), Tensor::counts(&origins.of));
        }
    }
    Ok(())
}

/// Those of a set with so many support rows, where the file has them.
pub(super) fn read(file: &Reader<'_>, set: usize, rows: usize) -> Result<Option<Origins>> {
    let name = kernels_of(set);
    if !file.has(&name) {
        return Ok(None);
    }
    let (_, text) = file.bytes(&name, Dtype::U8)?;
    let bad = |error: &dyn std::fmt::Display| format_error(format!("bad tensor `{name}`: {error}"));
    let kernels: TaskKernels = serde_json::from_slice(text).map_err(|error| bad(&error))?;
    kernels.check().map_err(|error| bad(&error))?;
    let of = file.counts(&rows_of(set), kernels.tasks().len())?;
    if of.len() != rows {
        let problem = format!("there are {} origins of {rows} support rows", of.len());
        return Err(format_error(problem));
    }
    Ok(Some(Origins {
        kernels: Arc::new(kernels),
        of: Arc::new(of),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the format: models in files have these names.
    #[test]
    fn each_set_has_tensors_of_its_own() {
        assert_eq!(kernels_of(3), "set.3.task_kernels");
        assert_eq!(rows_of(12), "set.12.origins");
    }
}
