//! `mtmkl._core`: the door between Python and the core. Arrays in, models out; names, gaps and frames are those of `mtmkl_table`.
//! Everything else is Python (`python/mtmkl`).
//!
//! An extension module finds Python's symbols in the interpreter that loads it. A test program of this crate would have none, so it is
//! left empty: the tests are in Python.
#![cfg(not(test))]

mod batch;
mod convert;
mod defaults;
mod enter;
mod errors;
mod fit;
mod machines;
mod measure;
mod model;
mod outer;
mod program;
mod rows;
mod search;
mod sets;
mod table;
mod transfer;
mod verify;

use mimalloc::MiMalloc;
use pyo3::prelude::*;

/// Memory in huge pages, kept between fits (ADR 13).
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

/// The compiled part of mtmkl. Use the estimators of the package `mtmkl` instead.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::defaults::sharings;
    #[pymodule_export]
    use super::defaults::task_levels;
    #[pymodule_export]
    use super::defaults::usual_kernels;
    #[pymodule_export]
    use super::defaults::usual_kernels_to_search;
    #[pymodule_export]
    use super::defaults::usual_kernels_without_targets;
    #[pymodule_export]
    use super::defaults::usual_sharing;
    #[pymodule_export]
    use super::fit::fit;
    #[pymodule_export]
    use super::fit::kernel_specs;
    #[pymodule_export]
    use super::measure::{scales_of_moments, settled_kernels};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::outer::Outer;
    #[pymodule_export]
    use super::program::program;
    #[pymodule_export]
    use super::search::{Search, search_tolerance};
    #[pymodule_export]
    use super::sets::Sets;
    #[pymodule_export]
    use super::table::{
        Frame, balanced, column_scales, is_gap, looks_like_numbers, name_order, named, sample_sets,
        task_groups, usual_scale,
    };
    #[pymodule_export]
    use super::transfer::{Transfer, are_between_tasks, variance_shares, without_tasks};
    #[pymodule_export]
    use super::verify::verify;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
