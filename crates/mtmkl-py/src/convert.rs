//! NumPy arrays to slices.
//!
//! `as_slice` takes Fortran order too and would read it transposed, so C order is asked for first; the Python side sees to it.

use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The values of a vector.
pub(crate) fn vector<'a>(array: &'a PyReadonlyArray1<'_, f64>) -> PyResult<&'a [f64]> {
    array
        .as_slice()
        .map_err(|_| PyValueError::new_err("a vector must be contiguous"))
}

/// The values of a matrix, row by row.
pub(crate) fn matrix<'a>(array: &'a PyReadonlyArray2<'_, f64>) -> PyResult<&'a [f64]> {
    if !array.is_c_contiguous() {
        return Err(PyValueError::new_err(
            "a matrix must be contiguous, row by row (C order)",
        ));
    }
    array
        .as_slice()
        .map_err(|_| PyValueError::new_err("a matrix must be contiguous"))
}

/// Copies of several vectors.
pub(crate) fn vectors(arrays: &[PyReadonlyArray1<'_, f64>]) -> PyResult<Vec<Vec<f64>>> {
    let own = arrays.iter().map(|own| vector(own).map(<[f64]>::to_vec));
    own.collect()
}
