//! Some tasks of a larger problem, on the machine that has their samples: θ comes from elsewhere, numbers go back, samples and β stay.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mtmkl::engine::{Curvature, Evaluation, Fitted, Levels, Mixture, Request};
use mtmkl::grid::Grid;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Prepared, ProblemSpec, Proven, Rounds, Stop};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{matrix, vector};
use crate::enter::{interruptible, released};
use crate::errors::{self, Origins};
use crate::fit::{Limits, read, read_word, views};
use crate::machines::flat;
use crate::model::Model;
use crate::sets::Sets;

/// A θ of the caller's.
pub(crate) fn grid(theta: &PyReadonlyArray2<'_, f64>) -> PyResult<Grid> {
    let (rows, kernels) = (theta.shape()[0], theta.shape()[1]);
    Grid::new(rows, kernels, matrix(theta)?.to_vec())
        .map_err(|error| errors::raise(error, &Origins::default()))
}

/// The tasks with their Gram matrices, and what of past evaluations is still known.
#[pyclass(frozen, module = "mtmkl._core")]
pub(crate) struct Batch {
    prepared: Prepared,
    origins: Origins,
    state: Mutex<State>,
}

struct State {
    levels: Levels,
    /// The engine's numbers of evaluations by the caller's.
    numbers: BTreeMap<usize, usize>,
}

impl State {
    fn own(&self, number: usize) -> mtmkl::Result<usize> {
        let own = self.numbers.get(&number).copied();
        own.ok_or_else(|| mtmkl::Error::Engine(format!("it does not know of evaluation {number}")))
    }

    /// β and b, and β̂, of each task.
    fn machines(
        &mut self,
        machines: &[usize],
        mixtures: &[Mixture],
    ) -> mtmkl::Result<(Vec<Fitted>, Vec<Vec<f64>>)> {
        let own: Vec<usize> = (machines.iter())
            .map(|&number| self.own(number))
            .collect::<mtmkl::Result<_>>()?;
        let mixed: Vec<Mixture> = (mixtures.iter())
            .map(|mixture| {
                let entries = mixture.iter();
                entries
                    .map(|&(number, weight)| Ok((self.own(number)?, weight)))
                    .collect()
            })
            .collect::<mtmkl::Result<_>>()?;
        let engine = self.levels.engine();
        Ok((engine.machines(&own)?, engine.mixtures(&mixed)?))
    }
}

/// Ranks of the factors, one after the other, and all their numbers.
fn packed(curvature: Vec<Curvature>) -> (Vec<usize>, Vec<f64>) {
    let ranks = curvature.iter().map(|own| own.rank).collect();
    (
        ranks,
        curvature.into_iter().flat_map(|own| own.factor).collect(),
    )
}

fn answer(py: Python<'_>, found: Evaluation) -> PyResult<Bound<'_, PyDict>> {
    let s = found.sensitivities;
    let shape = [s.rows(), s.kernels()];
    let answer = PyDict::new(py);
    answer.set_item("values", found.values.into_pyarray(py))?;
    answer.set_item("gaps", found.gaps.into_pyarray(py))?;
    answer.set_item("noises", found.noises.into_pyarray(py))?;
    answer.set_item("forgiven", found.forgiven.into_pyarray(py))?;
    answer.set_item("scales", found.scales.into_pyarray(py))?;
    let s = s.values().to_vec().into_pyarray(py).reshape(shape)?;
    answer.set_item("sensitivities", s)?;
    let curvature = found.curvature.map(packed);
    let curvature =
        curvature.map(|(ranks, factors)| (ranks.into_pyarray(py), factors.into_pyarray(py)));
    answer.set_item("curvature", curvature)?;
    answer.set_item("steps", found.inner_iterations)?;
    Ok(answer)
}

impl Batch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// P_t, the part of D without θ by task, and s(β̂).
type Proofs<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<f64>>,
);

fn proofs(py: Python<'_>, proven: Proven) -> PyResult<Proofs<'_>> {
    let s = &proven.sensitivities;
    let shape = [s.rows(), s.kernels()];
    let sensitivities = s.values().to_vec().into_pyarray(py).reshape(shape)?;
    Ok((
        proven.primal.into_pyarray(py),
        proven.constant.into_pyarray(py),
        sensitivities,
    ))
}

#[pymethods]
impl Batch {
    /// Prepares these tasks, each with a factor of its weights: kernels are settled, and the sharing is somebody else's business.
    #[new]
    #[pyo3(signature = (*, kernels, machine, normalize, target_scale, definiteness, sets, shares, limits))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "the names are the interface, and Python hands over what it passes"
    )]
    fn new(
        py: Python<'_>,
        kernels: Vec<(Option<String>, String)>,
        machine: &str,
        normalize: &str,
        target_scale: &str,
        definiteness: &str,
        sets: &Sets,
        shares: PyReadonlyArray1<'_, f64>,
        limits: Limits,
    ) -> PyResult<Self> {
        let machine = read("machine", machine)?;
        let target_scale = read_word("target_scale", target_scale)?;
        let normalize = mtmkl::Normalization::of_word(normalize)
            .ok_or_else(|| PyValueError::new_err(format!("normalize is '{normalize}'")))?;
        let preparation = limits.preparation(read_word("indefinite", definiteness)?)?;
        let origins = sets.origins();
        let views = views(&kernels).map_err(|error| errors::raise(error, &origins))?;
        // Samples are shared; the weights of tasks depend on all of them.
        let (samples, tasks) = (sets.data.samples.clone(), sets.tasks(vector(&shares)?)?);
        let prepared = interruptible(py, &Stop::never(), &origins, move || {
            // Any sharing will do that goes with every machine: θ is given.
            let mut spec = ProblemSpec::new(views, machine, SharingSpec::uniform());
            spec.normalize = normalize;
            spec.target_scale = target_scale;
            mtmkl::Problem::new(spec, samples, tasks)?.prepare(&preparation)
        })?;
        let levels = prepared.levels();
        Ok(Self {
            prepared,
            origins,
            state: Mutex::new(State {
                levels,
                numbers: BTreeMap::new(),
            }),
        })
    }

    /// Seconds that the Gram matrices took.
    #[getter]
    fn seconds(&self) -> f64 {
        self.prepared.seconds()
    }

    /// Where kernel values come from: kept, mapped or streamed.
    #[getter]
    fn storage(&self) -> &'static str {
        match self.prepared.storage() {
            mtmkl::Storage::Kept => "kept",
            mtmkl::Storage::Mapped => "mapped",
            mtmkl::Storage::Streamed => "streamed",
        }
    }

    /// Bytes that it has taken of its memory limit.
    #[getter]
    fn bytes(&self) -> u64 {
        self.prepared.ledger().taken()
    }

    /// How many levels below the full problem it is.
    #[getter]
    fn depth(&self) -> usize {
        self.state().levels.depth()
    }

    /// The evaluations that it knows of, by the caller's numbers.
    #[getter]
    fn known(&self) -> Vec<usize> {
        self.state().numbers.keys().copied().collect()
    }

    /// One level down, to part of the samples; False where that says too little.
    fn descend(&self, py: Python<'_>) -> PyResult<bool> {
        released(py, &self.origins, || {
            let mut state = self.state();
            let found = state.levels.descend();
            if found {
                state.numbers.clear();
            }
            Ok(found)
        })
    }

    /// One level up; with `adopt`, from where the coarser one has got to.
    fn ascend(&self, py: Python<'_>, adopt: bool) -> PyResult<()> {
        released(py, &self.origins, || {
            let mut state = self.state();
            state.levels.ascend(adopt);
            state.numbers.clear();
            Ok(())
        })
    }

    /// J and its derivatives at θ, known from then on by this number. Machines of other evaluations are forgotten but for those to keep.
    #[pyo3(signature = (number, theta, *, accuracy, curvature, keep, seconds=None))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "the names are the interface, and Python hands over what it passes"
    )]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        theta: PyReadonlyArray2<'py, f64>,
        accuracy: f64,
        curvature: bool,
        keep: Vec<usize>,
        seconds: Option<f64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let theta = grid(&theta)?;
        let limit = seconds.map(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)));
        let stop = match limit {
            Some(Ok(limit)) => Stop::never().with_limit(limit),
            _ => Stop::never(),
        };
        let request = Request {
            accuracy,
            curvature,
            stop,
            rounds: Rounds::default(),
        };
        let found = released(py, &self.origins, || {
            let mut state = self.state();
            state.numbers.retain(|number, _| keep.contains(number));
            let own: Vec<usize> = state.numbers.values().copied().collect();
            let engine = state.levels.engine();
            engine.keep(&own);
            let found = engine.evaluate(&theta, &request)?;
            state.numbers.insert(number, found.number);
            Ok(found)
        })?;
        answer(py, found)
    }

    /// What the machines of these evaluations, and these mixtures of them, prove at θ: P_t, the part of D without θ by task, and s(β̂). None where
    /// kernels cannot be made from rows.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn prove<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray2<'py, f64>,
        machines: Vec<usize>,
        mixtures: Vec<Mixture>,
    ) -> PyResult<Option<Proofs<'py>>> {
        let theta = grid(&theta)?;
        let proven = released(py, &self.origins, || {
            let (fitted, witness) = self.state().machines(&machines, &mixtures)?;
            self.prepared.prove(&theta, &fitted, &witness)
        })?;
        proven.map(|proven| proofs(py, proven)).transpose()
    }

    /// The same machines and mixtures as a model that can be used alone, with what they prove. It states what is true of these tasks at these weights:
    /// `allowed` is how far objective and bound of the whole may be apart, `status` how the whole ended.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "Python hands over what it passes"
    )]
    fn standing<'py>(
        &self,
        py: Python<'py>,
        theta: PyReadonlyArray2<'py, f64>,
        machines: Vec<usize>,
        mixtures: Vec<Mixture>,
        allowed: f64,
        status: &str,
        notes: BTreeMap<String, String>,
    ) -> PyResult<(Model, Proofs<'py>)> {
        let theta = grid(&theta)?;
        let status = read_word("status", status)?;
        let found = released(py, &self.origins, || {
            let (fitted, witness) = self.state().machines(&machines, &mixtures)?;
            self.prepared
                .standing_part(&theta, &fitted, &witness, allowed, status)
        })?;
        let (mut model, proven) = found.ok_or_else(|| {
            PyValueError::new_err("kernels that are matrices cannot be made from rows")
        })?;
        *model.notes_mut() = notes;
        Ok((Model::from(model), proofs(py, proven)?))
    }

    /// The same machines and mixtures in arrays, with the rows that they need or without them, to be joined with those of other batches.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn machines<'py>(
        &self,
        py: Python<'py>,
        machines: Vec<usize>,
        mixtures: Vec<Mixture>,
        with_rows: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let machines = released(py, &self.origins, || {
            let (fitted, witness) = self.state().machines(&machines, &mixtures)?;
            self.prepared.machines(&fitted, &witness, with_rows)
        })?;
        flat(py, &machines, with_rows)
    }
}
