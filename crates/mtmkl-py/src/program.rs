//! `program`: the program `mtmkl` with these arguments.

use std::ffi::OsString;

use mtmkl::Registry;
use pyo3::prelude::*;

/// Runs the program and returns its exit code; the first argument is its name. Signals must be the system's to handle: the program
/// takes Ctrl-C over when there is something to keep.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    reason = "Python hands over what it passes"
)]
pub(crate) fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| mtmkl_cli::run(&arguments, &Registry::default()))
}
