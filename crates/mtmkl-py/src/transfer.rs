//! Kernels between tasks: task kernels, samples and kernels as `mtmkl_table` makes them for the program.

use std::sync::Arc;

use mtmkl::grid::Grid;
use mtmkl::task_kernel::TaskKernels;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::matrix;
use crate::defaults;
use crate::errors::{self, Origins};
use crate::fit;
use crate::rows::PyRows;
use crate::table::{self, Samples};

/// Task kernels by name, for tasks in the order in which their samples stand.
#[pyclass(frozen, module = "mtmkl._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Transfer {
    pub(crate) inner: mtmkl_table::Transfer,
}

#[pymethods]
impl Transfer {
    /// For tasks with these names; `groups` as `task_levels` takes them, `similarity` of tasks in the order of names. `columns` are those that name
    /// the groups of a task, where they come from some.
    #[new]
    #[pyo3(signature = (tasks, columns, groups=None, similarity=None))]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn new(
        tasks: Vec<String>,
        columns: Vec<String>,
        groups: Option<&str>,
        similarity: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Self> {
        let tree = groups.map(defaults::tree_of).transpose()?;
        let similarity = similarity.as_ref().map(matrix).transpose()?;
        let similarity = similarity.map(<[f64]>::to_vec);
        let inner = mtmkl_table::Transfer::new(tasks, &columns, tree.as_ref(), similarity)
            .map_err(|error| table::raise(error, false))?;
        Ok(Self { inner })
    }

    /// The tasks, in the order of their samples.
    #[getter]
    fn tasks(&self) -> Vec<String> {
        let kernels = self.inner.kernels.as_ref();
        kernels.map_or(Vec::new(), |kernels| kernels.tasks().to_vec())
    }

    /// The kernels of (name, specification) pairs, each with the task kernels that the words mean, one by one.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn kernels(
        &self,
        kernels: Vec<(Option<String>, String)>,
        words: Vec<String>,
        offset: bool,
    ) -> PyResult<Vec<(String, String)>> {
        let raise = |error| errors::raise(error, &Origins::default());
        let known = self.known()?;
        let mut views = Vec::new();
        for (name, spec) in kernels {
            // A name that someone gave does not say between which tasks it is; its specification may.
            let said = are_between_tasks(vec![spec.clone()]);
            let own = fit::views(&[(name, spec)]).map_err(raise)?;
            views.extend(own.into_iter().map(|view| (view, said)));
        }
        let made = mtmkl_table::kernels_between_tasks(views, &words, &known, offset);
        let pair = |view: mtmkl::kernel::KernelView| {
            // Said of each, so that nothing is multiplied twice.
            let spec = mtmkl_table::spec_between_tasks(&view).ok_or_else(|| {
                PyValueError::new_err(format!("kernel `{}` sees no columns", view.name))
            })?;
            Ok((view.name, spec))
        };
        made.map_err(raise)?.into_iter().map(pair).collect()
    }

    /// The samples of all tasks as one set: its rows, equal ones of a task taken together as by `sample_sets`, their weights, and the task of each.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::type_complexity,
        reason = "Python hands over what it passes; a triple of arrays"
    )]
    fn pooled<'py>(
        &self,
        py: Python<'py>,
        rows: Option<PyRows<'py>>,
        tasks: Vec<String>,
        only: &str,
        weights: PyReadonlyArray1<'py, f64>,
        same: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<(
        Bound<'py, PyArray1<usize>>,
        Bound<'py, PyArray1<f64>>,
        Vec<usize>,
    )> {
        let groups = Samples {
            rows: rows.as_ref(),
            weights: &weights,
            same: same.as_ref(),
        }
        .groups(Some(tasks), only)?;
        let (all, of) = self.inner.pooled(groups, only.to_string());
        Ok((all.rows.into_pyarray(py), all.weights.into_pyarray(py), of))
    }
}

impl Transfer {
    /// The task kernels.
    pub(crate) fn known(&self) -> PyResult<Arc<TaskKernels>> {
        let kernels = self.inner.kernels.clone();
        kernels.ok_or_else(|| PyValueError::new_err("there are no task kernels"))
    }
}

/// Whether one of these specifications says itself which tasks it is between; what cannot be read is complained about where kernels are made.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn are_between_tasks(kernels: Vec<String>) -> bool {
    let views = kernels
        .iter()
        .filter_map(|spec| mtmkl::kernel::parse_kernels(spec).ok());
    let mut views = views.flatten();
    views.any(|view| mtmkl_table::is_between_tasks(&view))
}

/// The same specification between no tasks, as that of one machine for all rows without tasks.
#[pyfunction]
pub(crate) fn without_tasks(spec: &str) -> PyResult<Vec<String>> {
    let raise = |error| errors::raise(error, &Origins::default());
    let mut views = mtmkl::kernel::parse_kernels(spec).map_err(raise)?;
    for view in &mut views {
        view.between = None;
    }
    Ok(views
        .iter()
        .filter_map(mtmkl::kernel::KernelView::spec)
        .collect())
}

/// The levels, and the share of each in the variance of predictions: over all rows, and over those of each of so many tasks. `machines` are what
/// each kernel adds, kernels × rows, for each machine; `levels` are those of the kernels.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "Python hands over what it passes; names with two arrays"
)]
pub(crate) fn variance_shares<'py>(
    py: Python<'py>,
    machines: Vec<PyReadonlyArray2<'py, f64>>,
    levels: Vec<String>,
    task: Vec<usize>,
    tasks: usize,
) -> PyResult<(
    Vec<String>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
)> {
    let grid = |values: &PyReadonlyArray2<'py, f64>| {
        let shape = (values.shape()[0], values.shape()[1]);
        if shape != (levels.len(), task.len()) {
            return Err(PyValueError::new_err("machines are not kernels × rows"));
        }
        Grid::new(shape.0, shape.1, matrix(values)?.to_vec())
            .map_err(|error| errors::raise(error, &Origins::default()))
    };
    let machines = machines.iter().map(grid).collect::<PyResult<Vec<_>>>()?;
    let found = mtmkl_table::variance_shares(&machines, &levels, &task, tasks);
    let by_task = found.by_task.concat().into_pyarray(py);
    let by_task = by_task.reshape([tasks, found.levels.len()])?;
    Ok((found.levels, found.overall.into_pyarray(py), by_task))
}
