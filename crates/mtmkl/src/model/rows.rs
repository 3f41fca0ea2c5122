//! Support rows in a model file: a table, or CSR where they are sparse.
//!
//! Dense rows are the tensor `set.N.rows`. Sparse ones are `set.N.sparse.offsets`, `set.N.sparse.columns` and `set.N.sparse.values`, since version 4
//! of the format; models without them are written as version 3, for those that know no later one.

use std::collections::BTreeMap;

use super::SupportSet;
use super::file::{Reader, Tensor, format_error};
use super::header::{DENSE_VERSION, VERSION};
use crate::data::{RowValues, SparseRows};
use crate::error::Result;

/// The least version of the format that can hold these support rows.
pub(super) fn version(sets: &[SupportSet]) -> u32 {
    let is_sparse = |set: &SupportSet| matches!(set.rows, RowValues::Sparse(_));
    if sets.iter().any(is_sparse) {
        VERSION
    } else {
        DENSE_VERSION
    }
}

pub(super) fn write(number: usize, set: &SupportSet, tensors: &mut BTreeMap<String, Tensor>) {
    let mut put = |name: &str, tensor: Tensor| {
        tensors.insert(format!("set.{number}.{name}"), tensor);
    };
    match &set.rows {
        RowValues::Dense(rows) => {
            let shape = vec![set.positions.len(), set.columns.len()];
            put("rows", Tensor::floats(shape, rows));
        }
        RowValues::Sparse(rows) => {
            let columns: Vec<usize> = rows.columns().iter().map(|&c| c as usize).collect();
            put("sparse.offsets", Tensor::counts(rows.offsets()));
            put("sparse.columns", Tensor::counts(&columns));
            let values = rows.values();
            put("sparse.values", Tensor::floats(vec![values.len()], values));
        }
    }
}

pub(super) fn read(
    file: &Reader<'_>,
    number: usize,
    count: usize,
    width: usize,
) -> Result<RowValues> {
    let name = |part: &str| format!("set.{number}.sparse.{part}");
    if !file.has(&name("offsets")) {
        let values = count.saturating_mul(width);
        let rows = file.finite(&format!("set.{number}.rows"), Some(values))?;
        return Ok(RowValues::Dense(rows));
    }
    let values = file.finite(&name("values"), None)?;
    let offsets = file.counts(&name("offsets"), values.len().saturating_add(1))?;
    let columns = file.counts(&name("columns"), width.min(u32::MAX as usize))?;
    if offsets.len() != count + 1 {
        return Err(format_error(format!(
            "the tensor `{}` has {} numbers, expected {}",
            name("offsets"),
            offsets.len(),
            count + 1
        )));
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "below the width, as checked"
    )]
    let columns = columns.into_iter().map(|column| column as u32).collect();
    let rows = SparseRows::new(offsets, columns, values, width)
        .map_err(|error| format_error(format!("the support rows of set {number}: {error}")))?;
    Ok(RowValues::Sparse(rows))
}
