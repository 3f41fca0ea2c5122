//! Whether the certificate of a model holds on the data of its fit.

use mtmkl::Samples;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::enter::{pool, released};
use crate::fit::{Data, Owned, PyTask, Set};
use crate::model::Model;

/// The verdict as JSON; `kernels`, `sets` and `tasks` as `fit` takes them.
#[pyfunction]
#[pyo3(signature = (model, *, kernels, sets, tasks, threads))]
#[allow(
    clippy::needless_pass_by_value,
    reason = "Python hands over what it passes"
)]
pub(crate) fn verify(
    py: Python<'_>,
    model: &Model,
    kernels: Vec<(Option<String>, String)>,
    sets: Vec<Set<'_>>,
    tasks: Vec<PyTask<'_>>,
    threads: usize,
) -> PyResult<String> {
    let Data {
        origins,
        sets,
        tasks,
        ..
    } = Data::read(&kernels, &sets, &tasks)?;
    let (model, pool) = (model.inner(), pool(threads)?);
    let verdict = released(py, &origins, move || {
        let samples: Vec<Samples> = sets
            .into_iter()
            .map(Owned::samples)
            .collect::<mtmkl::Result<_>>()?;
        Ok(pool.install(|| mtmkl_verify::verify(model, &samples, &tasks)))
    })?;
    let verdict = verdict.map_err(|error| PyValueError::new_err(error.to_string()))?;
    serde_json::to_string(&verdict).map_err(|error| PyValueError::new_err(error.to_string()))
}
