//! A fitted model as Python sees it: numbers out, decisions for new rows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use mtmkl::grid::Grid;
use mtmkl::{CrossGram, Input, Pass};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::convert::{matrix, vector};
use crate::enter::{pool, released};
use crate::errors::{self, Origins};
use crate::machines::{flat, stacked};
use crate::rows::{PyRows, Stacked};
use crate::table::{Frame, raise};

/// A group of tasks: level, name, positions of the tasks, and the weights that they share.
type Shared<'py> = (String, String, Vec<usize>, Bound<'py, PyArray1<f64>>);

/// A fitted model: the contents of a model file.
#[pyclass(frozen, module = "mtmkl._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Model {
    model: Arc<mtmkl::Model>,
}

impl Model {
    /// The core's model.
    pub(crate) fn inner(&self) -> &mtmkl::Model {
        &self.model
    }
}

impl From<mtmkl::Model> for Model {
    fn from(model: mtmkl::Model) -> Self {
        Self {
            model: Arc::new(model),
        }
    }
}

/// The task of new samples: the frame that knows the columns of groups, the task, and its values in them.
type Origin = (Py<Frame>, String, Vec<Option<String>>);

/// New samples: how many, their rows, their precomputed kernels (name, values, k(x, x)), and their task where kernels are between tasks.
#[derive(FromPyObject)]
pub(crate) struct New<'py> {
    #[pyo3(item)]
    count: usize,
    #[pyo3(item)]
    threads: usize,
    #[pyo3(item)]
    rows: Option<PyRows<'py>>,
    #[pyo3(item)]
    grams: Vec<(
        String,
        PyReadonlyArray2<'py, f64>,
        Option<PyReadonlyArray1<'py, f64>>,
    )>,
    #[pyo3(item)]
    origin: Option<Origin>,
}

impl New<'_> {
    /// Calls the core with slices of the arrays, without the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        model: &mtmkl::Model,
        call: impl FnOnce(Input<'_>) -> mtmkl::Result<T> + Send,
    ) -> PyResult<T> {
        let grams = self
            .grams
            .iter()
            .map(|(name, values, own)| {
                Ok(CrossGram {
                    name,
                    values: matrix(values)?,
                    own: own.as_ref().map(vector).transpose()?,
                })
            })
            .collect::<PyResult<Vec<_>>>()?;
        let rows = self.rows.as_ref().map(PyRows::read).transpose()?;
        let origin = self.origin.as_ref().and_then(|(frame, task, values)| {
            let frame = frame.get().inner();
            frame.origin_of(model, task, values)
        });
        let count = self.count;
        let pool = pool(self.threads)?;
        released(py, &Origins::default(), move || {
            let rows = rows.as_ref().map(|rows| rows.rows(count)).transpose()?;
            let input = Input {
                count,
                rows,
                grams: &grams,
                origin: origin.as_ref(),
            };
            pool.install(|| call(input))
        })
    }
}

fn table(
    py: Python<'_>,
    rows: usize,
    columns: usize,
    values: Vec<f64>,
) -> PyResult<Bound<'_, PyArray2<f64>>> {
    values.into_pyarray(py).reshape([rows, columns])
}

fn grid<'py>(py: Python<'py>, grid: &Grid) -> PyResult<Bound<'py, PyArray2<f64>>> {
    table(py, grid.rows(), grid.kernels(), grid.values().to_vec())
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

#[pymethods]
impl Model {
    /// Names of the kernels, in the order of the weights' columns.
    #[getter]
    fn kernel_names(&self) -> Vec<String> {
        let views = self.model.kernels().iter();
        views.map(|view| view.name.clone()).collect()
    }

    /// Specifications of the kernels; where there are kernels between tasks, each says between which it is.
    #[getter]
    fn kernel_specs(&self) -> Vec<Option<String>> {
        let views = self.model.kernels().iter();
        match self.between() {
            Some(_) => views.map(mtmkl_table::spec_between_tasks).collect(),
            None => views.map(mtmkl::kernel::KernelView::spec).collect(),
        }
    }

    /// For each kernel, the name of the matrix it is read from, if it is not computed.
    #[getter]
    fn given_names(&self) -> Vec<Option<String>> {
        let views = self.model.kernels().iter();
        views
            .map(|view| view.kernel.given().map(str::to_string))
            .collect()
    }

    /// Names of the tasks, in the order of the weights' rows.
    #[getter]
    fn task_names(&self) -> Vec<String> {
        let tasks = self.model.tasks().iter();
        tasks.map(|task| task.name.clone()).collect()
    }

    /// The sample set of each task.
    #[getter]
    fn task_sets(&self) -> Vec<usize> {
        self.model.tasks().iter().map(|task| task.set).collect()
    }

    /// How many samples each task was fitted on.
    #[getter]
    fn task_samples(&self) -> Vec<usize> {
        self.model.tasks().iter().map(|task| task.samples).collect()
    }

    /// The machine, as JSON.
    #[getter]
    fn machine(&self) -> PyResult<String> {
        json(self.model.machine())
    }

    /// The sharing, as JSON.
    #[getter]
    fn sharing(&self) -> PyResult<String> {
        json(self.model.sharing())
    }

    /// Whether kernels are normalised.
    #[getter]
    fn normalize(&self) -> &'static str {
        self.model.normalize().word()
    }

    /// θ, tasks × kernels.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        grid(py, self.model.weights())
    }

    /// ζ, where the sharing has a common part.
    #[getter]
    fn common<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let common = self.model.common()?;
        Some(common.row(0).to_vec().into_pyarray(py))
    }

    /// γ, tasks × kernels, where the sharing has specific parts.
    #[getter]
    fn specific<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        self.model
            .specific()
            .map(|specific| grid(py, specific))
            .transpose()
    }

    /// The groups of tasks that share weights: level, name, positions of the tasks, and the weights.
    #[getter]
    fn groups<'py>(&self, py: Python<'py>) -> Vec<Shared<'py>> {
        let groups = mtmkl_report::groups(&self.model).into_iter();
        let groups = groups.map(|group| {
            let weights = group.weights.into_pyarray(py);
            (group.level, group.name, group.tasks, weights)
        });
        groups.collect()
    }

    /// How the fit ended.
    #[getter]
    fn status(&self) -> &'static str {
        self.model.outcome().status.name()
    }

    /// Whether the tolerance was reached.
    #[getter]
    fn converged(&self) -> bool {
        self.model.outcome().status.is_converged()
    }

    /// An upper bound on the objective at these weights.
    #[getter]
    fn objective(&self) -> f64 {
        self.model.outcome().objective
    }

    /// A certified lower bound on the optimum.
    #[getter]
    fn bound(&self) -> f64 {
        self.model.outcome().bound
    }

    /// (objective − bound) / |objective|.
    #[getter]
    fn gap(&self) -> f64 {
        self.model.outcome().gap
    }

    /// The tolerance that was asked for, where the file says so.
    #[getter]
    fn tolerance(&self) -> Option<f64> {
        self.model.outcome().tolerance
    }

    /// The solver that was asked for, as JSON, where the file says so.
    #[getter]
    fn solver(&self) -> PyResult<Option<String>> {
        self.model.outcome().solver.as_ref().map(json).transpose()
    }

    /// Why another solver did the work, where one did, as JSON.
    #[getter]
    fn fallback(&self) -> PyResult<Option<String>> {
        self.model.outcome().fallback.as_ref().map(json).transpose()
    }

    /// Whether objective, bound and gap are those of kernels rounded to single precision.
    #[getter]
    fn is_rounded(&self) -> bool {
        self.model.outcome().is_rounded
    }

    /// Each pass: number, objective, bound, gap, step, inner iterations, seconds.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let trace = &self.model.outcome().trace;
        let values = trace.iter().flat_map(Pass::numbers).collect();
        table(py, trace.len(), 7, values)
    }

    /// Seconds: Gram matrices, everything after.
    #[getter]
    fn seconds(&self) -> (f64, f64) {
        let seconds = self.model.outcome().seconds;
        (seconds.kernels, seconds.solve)
    }

    /// b of each task.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let offsets: Vec<f64> = self.model.tasks().iter().map(|task| task.offset).collect();
        offsets.into_pyarray(py)
    }

    /// What is kept with the model in words.
    #[getter]
    fn notes(&self) -> BTreeMap<String, String> {
        self.model.notes().clone()
    }

    /// The columns' names of a sample set.
    fn columns(&self, set: usize) -> PyResult<Vec<String>> {
        Ok(self.set(set)?.columns.clone())
    }

    /// How many samples a sample set had.
    fn samples(&self, set: usize) -> PyResult<usize> {
        Ok(self.set(set)?.samples)
    }

    /// The positions of the support rows of all sample sets, one set after the other, how many each has, and how many samples.
    fn support_places<'py>(&self, py: Python<'py>) -> [Bound<'py, PyArray1<usize>>; 3] {
        let sets = self.model.support_sets();
        let positions: Vec<usize> = (sets.iter())
            .flat_map(|set| &set.positions)
            .copied()
            .collect();
        let counts = sets.iter().map(|set| set.positions.len());
        let samples = sets.iter().map(|set| set.samples);
        [positions, counts.collect(), samples.collect()].map(|own: Vec<usize>| own.into_pyarray(py))
    }

    /// The rows of the table that the samples of all sample sets were, one set after the other; none where the notes do not say.
    fn training_rows<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray1<usize>>>> {
        let rows =
            mtmkl_table::training_rows_of(&self.model).map_err(|error| raise(error, false))?;
        let samples = self.model.support_sets().iter().map(|set| set.samples);
        if !rows.is_empty() && !rows.iter().map(Vec::len).eq(samples) {
            let problem = "its notes say of other samples which rows of the table they were";
            return Err(PyValueError::new_err(problem));
        }
        Ok((!rows.is_empty()).then(|| rows.concat().into_pyarray(py)))
    }

    /// The support rows of a sample set: their positions in it, and the rows.
    fn support_rows<'py>(
        &self,
        py: Python<'py>,
        set: usize,
    ) -> PyResult<(Bound<'py, PyArray1<usize>>, Stacked<'py>)> {
        let set = self.set(set)?;
        let rows = stacked(py, std::slice::from_ref(set))?;
        Ok((set.positions.clone().into_pyarray(py), rows))
    }

    /// The support of a task: positions among the support rows of its sample set, and β.
    #[allow(clippy::type_complexity, reason = "a pair of arrays")]
    fn support<'py>(
        &self,
        py: Python<'py>,
        task: usize,
    ) -> PyResult<(Bound<'py, PyArray1<usize>>, Bound<'py, PyArray1<f64>>)> {
        let task = self
            .model
            .tasks()
            .get(task)
            .ok_or_else(|| no_such("task"))?;
        Ok((
            task.support.clone().into_pyarray(py),
            task.beta.clone().into_pyarray(py),
        ))
    }

    /// Decision values of the machines on a sample set: new samples × machines.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn decisions<'py>(
        &self,
        py: Python<'py>,
        set: usize,
        new: New<'_>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = &self.model;
        let all = new.with(py, model, |input| model.decisions_on(set, input))?;
        let values = (0..new.count)
            .flat_map(|row| all.iter().map(move |task| task[row]))
            .collect();
        table(py, new.count, all.len(), values)
    }

    /// What each kernel adds to the decision values of a machine, kernels × new samples, without the offset.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn contributions<'py>(
        &self,
        py: Python<'py>,
        task: &str,
        new: New<'_>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let model = &self.model;
        let parts = new.with(py, model, |input| model.contributions(task, input))?;
        grid(py, &parts)
    }

    /// Where each kernel shares between tasks: `all`, a level of groups, `own`, `similarity`, or `offset`.
    #[getter]
    fn kernel_levels(&self) -> Vec<String> {
        mtmkl_table::levels_of(self.model.kernels())
    }

    /// The task kernels as JSON, as they stand in model files; none where each task has machines of its own.
    #[getter]
    fn task_kernels(&self) -> PyResult<Option<String>> {
        self.between().map(json).transpose()
    }

    /// Whether it has probabilities.
    #[getter]
    fn has_probabilities(&self) -> bool {
        mtmkl_table::calibration_of(&self.model).is_ok_and(|found| found.is_some())
    }

    /// Decision values for a task never seen, from the common part.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn decision_of_new_task<'py>(
        &self,
        py: Python<'py>,
        new: New<'_>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let model = &self.model;
        let values = new.with(py, model, |input| model.decision_of_new_task(input))?;
        Ok(values.into_pyarray(py))
    }

    /// The model as one HTML page, with the settings as they were given.
    fn report(
        &self,
        py: Python<'_>,
        title: String,
        settings: Vec<(String, String)>,
    ) -> PyResult<String> {
        let model = &self.model;
        released(py, &Origins::default(), || {
            let report =
                mtmkl_report::Report::of(model, Some(title), settings).map_err(|error| {
                    mtmkl::Error::Format {
                        problem: error.to_string(),
                    }
                })?;
            Ok(mtmkl_report::html(&report))
        })
    }

    /// The model file's bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let model = &self.model;
        let bytes = released(py, &Origins::default(), || model.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// A model from a model file's bytes, wherever its machines are.
    #[classmethod]
    fn from_bytes(_class: &Bound<'_, PyType>, py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let registry = mtmkl::Registry::default();
        released(py, &Origins::default(), || {
            mtmkl::Model::from_bytes_anyhow(&registry, bytes)
        })
        .map(Self::from)
    }

    /// Whether its machines are somewhere else: what it would predict means nothing.
    #[getter]
    fn is_elsewhere(&self) -> bool {
        self.model.notes().contains_key(mtmkl::model::ELSEWHERE)
    }

    /// The same without its machines, which are somewhere else.
    fn without_machines(&self) -> Self {
        let mut model = self.model.without_machines();
        let note = (mtmkl::model::ELSEWHERE.to_string(), "yes".to_string());
        model.notes_mut().extend([note]);
        Self::from(model)
    }

    /// The same in arrays, as those that come with their rows.
    fn machines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        flat(py, &mtmkl::Model::clone(&self.model).into_machines(), true)
    }

    /// The same with the machines of these models: for each of its sample sets the model that has it, and its number there.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn with_machines(
        &self,
        py: Python<'_>,
        models: Vec<Self>,
        order: Vec<(usize, usize)>,
    ) -> PyResult<Self> {
        let models: Vec<mtmkl::Model> = models.iter().map(|own| own.core().clone()).collect();
        let mut whole = released(py, &Origins::default(), || {
            self.model.with_machines(models, &order)
        })?;
        whole.notes_mut().remove(mtmkl::model::ELSEWHERE);
        Ok(Self::from(whole))
    }

    /// Writes the model file: all of it or nothing.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let model = &self.model;
        released(py, &Origins::default(), || model.save(&path))
    }

    /// Reads a model file.
    #[classmethod]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn load(_class: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        released(py, &Origins::default(), || mtmkl::Model::load(&path)).map(Self::from)
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let py = slf.py();
        let make = py.get_type::<Self>().getattr("from_bytes")?;
        Ok((make, (slf.get().to_bytes(py)?,)))
    }
}

impl Model {
    /// The core's model.
    pub(crate) fn core(&self) -> &mtmkl::Model {
        &self.model
    }

    /// The task kernels, where one machine learned from all tasks.
    pub(crate) fn between(&self) -> Option<&mtmkl::task_kernel::TaskKernels> {
        let set = self.model.support_sets().first()?;
        set.origins.as_ref().map(|origins| &*origins.kernels)
    }

    fn set(&self, set: usize) -> PyResult<&mtmkl::model::SupportSet> {
        let sets = self.model.support_sets();
        sets.get(set).ok_or_else(|| no_such("sample set"))
    }
}

fn no_such(what: &str) -> PyErr {
    let error = mtmkl::Error::Format {
        problem: format!("there is no such {what}"),
    };
    errors::raise(error, &Origins::default())
}
