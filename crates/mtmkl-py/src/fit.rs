//! `fit`: arrays and specifications to a model.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Likeness, usual_problem};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::SolverSpec;
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{
    Definiteness, Fitting, GivenGram, Ledger, Normalization, Preparation, Prepared, Problem,
    ProblemSpec, RowValues, Samples, Stop, Storage, TargetScale, Targets, Task,
};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;

use crate::convert::{matrix, vector, vectors};
use crate::enter::{interruptible, pool, released};
use crate::errors::{self, Origins};
use crate::model::Model;
use crate::rows::PyRows;
use crate::transfer::Transfer;

/// One sample set: the table of numbers with the names of its columns and the rows of it that are meant, Gram matrices of these by
/// name, and the task of each row where kernels are between tasks.
#[derive(FromPyObject)]
pub(crate) struct Set<'py> {
    #[pyo3(item)]
    values: Option<PyRows<'py>>,
    #[pyo3(item)]
    columns: Vec<String>,
    #[pyo3(item)]
    grams: Vec<(String, PyReadonlyArray2<'py, f64>)>,
    #[pyo3(item)]
    origin: Vec<usize>,
    #[pyo3(item)]
    tasks: Option<(Transfer, Vec<usize>)>,
}

impl Set<'_> {
    /// What the core needs of it, copied once: the core's thread may outlive the arrays.
    pub(crate) fn owned(&self) -> PyResult<Owned> {
        let grams = self
            .grams
            .iter()
            .map(|(name, values)| {
                Ok(GivenGram {
                    name: name.clone(),
                    values: matrix(values)?.to_vec().into(),
                })
            })
            .collect::<PyResult<_>>()?;
        let values = self.values.as_ref();
        let values = values.map(|rows| rows.select(&self.origin)).transpose()?;
        Ok(Owned {
            values,
            columns: self.columns.clone(),
            grams,
            count: self.origin.len(),
            tasks: (self.tasks.as_ref())
                .map(|(transfer, of)| Ok::<_, PyErr>((transfer.known()?, of.clone())))
                .transpose()?,
        })
    }
}

/// The same in Rust's hands.
pub(crate) struct Owned {
    values: Option<RowValues>,
    columns: Vec<String>,
    grams: Vec<GivenGram>,
    count: usize,
    tasks: Option<(Arc<TaskKernels>, Vec<usize>)>,
}

impl Owned {
    pub(crate) fn samples(self) -> mtmkl::Result<Samples> {
        let set = match self.values {
            Some(values) => {
                let set = Samples::of_rows(values, self.count, self.columns)?;
                self.grams.into_iter().try_fold(set, Samples::with_gram)?
            }
            None => Samples::from_grams(self.count, self.grams)?,
        };
        match self.tasks {
            Some((kernels, of)) => set.from_tasks(kernels, of),
            None => Ok(set),
        }
    }
}

/// One task: its name, its sample set, its rows of it where they are not all, what kind of targets, the targets and the weights of its rows.
#[derive(FromPyObject)]
pub(crate) struct PyTask<'py> {
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    samples: usize,
    #[pyo3(item)]
    rows: Option<Vec<usize>>,
    #[pyo3(item)]
    kind: String,
    #[pyo3(item)]
    targets: Option<PyReadonlyArray1<'py, f64>>,
    #[pyo3(item)]
    weights: Option<PyReadonlyArray1<'py, f64>>,
}

impl PyTask<'_> {
    pub(crate) fn owned(&self) -> PyResult<Task> {
        let values = || match &self.targets {
            Some(targets) => vector(targets).map(<[f64]>::to_vec),
            None => Err(PyValueError::new_err("the targets are missing")),
        };
        let targets = match self.kind.as_str() {
            "labels" => Targets::Labels(values()?),
            "values" => Targets::Values(values()?),
            _ => Targets::Unlabelled,
        };
        let mut task = Task::new(self.name.clone(), targets).on(self.samples);
        if let Some(rows) = &self.rows {
            task = task.with_rows(rows.clone());
        }
        if let Some(weights) = &self.weights {
            task = task.with_weights(vector(weights)?.to_vec());
        }
        Ok(task)
    }
}

impl Origins {
    /// Of these sets and tasks.
    pub(crate) fn of(sets: &[Set<'_>], tasks: &[PyTask<'_>]) -> Self {
        let tasks = tasks.iter();
        Self {
            rows: sets.iter().map(|set| set.origin.clone()).collect(),
            tasks: tasks
                .map(|task| (task.name.clone(), task.samples, task.rows.clone()))
                .collect(),
        }
    }
}

/// How to run: the limits of one fit.
#[derive(FromPyObject)]
pub(crate) struct Limits {
    #[pyo3(item)]
    tolerance: f64,
    #[pyo3(item)]
    max_passes: usize,
    #[pyo3(item)]
    time_limit: Option<f64>,
    #[pyo3(item)]
    pub(crate) threads: usize,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    memory_limit: f64,
    #[pyo3(item)]
    precision: String,
    #[pyo3(item)]
    storage: Option<String>,
}

impl Limits {
    /// How to prepare with these limits.
    pub(crate) fn preparation(&self, definiteness: Definiteness) -> PyResult<Preparation> {
        if self.memory_limit.is_nan() || self.memory_limit <= 0.0 {
            return Err(wrong(
                "memory_limit",
                self.memory_limit,
                "a number of GiB > 0",
            ));
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes; a float's range saturates"
        )]
        let memory_limit = (self.memory_limit * f64::from(1 << 30)) as u64;
        Ok(Preparation {
            ledger: Ledger::new(memory_limit),
            definiteness,
            precision: read_word("precision", &self.precision)?,
            storage: (self.storage.as_deref())
                .map(|storage| read_word("storage", storage))
                .transpose()?,
            pool: Some(pool(self.threads)?),
        })
    }

    /// Makes the limits of the fit, on the thread that it is for.
    pub(crate) fn fitting(
        self,
    ) -> PyResult<impl FnOnce(Stop) -> Fitting<'static> + Send + 'static> {
        let time_limit = match self.time_limit {
            None => None,
            Some(seconds) => Some(
                Duration::try_from_secs_f64(seconds)
                    .map_err(|_| wrong("time_limit", seconds, "None or a number of seconds ≥ 0"))?,
            ),
        };
        Ok(move |stop| Fitting {
            tolerance: self.tolerance,
            max_passes: self.max_passes,
            time_limit,
            seed: self.seed,
            start: None,
            stop,
            rounds: mtmkl::Rounds::default(),
            observer: None,
        })
    }
}

fn wrong(name: &str, value: f64, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{name} is {value}, expected {expected}"))
}

/// The kernels of (name, specification) pairs; a set `rbf:sigma=1|2` stands for several.
pub(crate) fn views(kernels: &[(Option<String>, String)]) -> mtmkl::Result<Vec<KernelView>> {
    let mut views = Vec::new();
    for (name, spec) in kernels {
        let mut made = parse_kernels(spec)?;
        let several = made.len() > 1;
        if let Some(name) = name {
            for view in &mut made {
                view.name = if several {
                    format!("{name} {}", view.name)
                } else {
                    name.clone()
                };
            }
        }
        views.extend(made);
    }
    Ok(views)
}

/// The kernels that a specification stands for, one specification each.
#[pyfunction]
pub(crate) fn kernel_specs(py: Python<'_>, spec: &str) -> PyResult<Vec<String>> {
    let views = released(py, &Origins::default(), || parse_kernels(spec))?;
    Ok(views.into_iter().map(|view| view.name).collect())
}

/// Kernels, sample sets and tasks in Rust's hands, and where their rows come from.
pub(crate) struct Data {
    pub(crate) origins: Origins,
    pub(crate) views: Vec<KernelView>,
    pub(crate) sets: Vec<Owned>,
    pub(crate) tasks: Vec<Task>,
}

impl Data {
    pub(crate) fn read(
        kernels: &[(Option<String>, String)],
        sets: &[Set<'_>],
        tasks: &[PyTask<'_>],
    ) -> PyResult<Self> {
        let origins = Origins::of(sets, tasks);
        let views = views(kernels).map_err(|error| errors::raise(error, &origins))?;
        let tasks = tasks.iter().map(PyTask::owned);
        Ok(Self {
            views,
            sets: sets.iter().map(Set::owned).collect::<PyResult<_>>()?,
            tasks: tasks.collect::<PyResult<_>>()?,
            origins,
        })
    }
}

/// What is wrong with kernels that tell no samples apart, or all: of those that someone named, or where all there are do so.
fn told_nothing(prepared: &Prepared, named: bool) -> Vec<String> {
    let kernels = &prepared.problem().spec().kernels;
    let likeness = prepared.likeness();
    let found = |is: fn(Likeness) -> bool, what: &str| {
        let those = kernels.iter().zip(&likeness);
        let those = those.filter(|(_, like)| like.is_some_and(is));
        let names: Vec<&str> = those.map(|(view, _)| view.name.as_str()).collect();
        let is_shown = !names.is_empty() && (named || names.len() == kernels.len());
        let listed = mtmkl_table::words::listed(names.iter().copied());
        is_shown.then(|| format!("on the samples of fit, {what}: {listed}"))
    };
    let identity = "these kernels are nearly the identity: each sample is like itself only, so that all are learned by heart and new ones are \
                    told nothing; take wider ones, as rbf:sigma=median";
    let constant = "these kernels are nearly constant: all samples are alike to them; take narrower ones, as \
                    rbf:sigma=median";
    let both = [
        found(Likeness::is_identity, identity),
        found(Likeness::is_constant, constant),
    ];
    both.into_iter().flatten().collect()
}

/// What Python says of a problem beside its data and kernels; the parts as JSON, as in the model file.
pub(crate) struct Asked {
    pub(crate) machine: MachineSpec,
    pub(crate) sharing: SharingSpec,
    pub(crate) definiteness: Definiteness,
    solver: SolverSpec,
    normalize: Option<Normalization>,
    target_scale: TargetScale,
}

/// A part as JSON.
pub(crate) fn read<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| errors::unreadable(what, &error))
}

/// A word for a choice.
pub(crate) fn read_word<T: serde::de::DeserializeOwned>(
    what: &'static str,
    word: &str,
) -> PyResult<T> {
    serde_json::from_value(word.into()).map_err(|error| errors::unreadable(what, &error))
}

impl Asked {
    pub(crate) fn read(
        machine: &str,
        sharing: &str,
        solver: &str,
        normalize: Option<&str>,
        target_scale: &str,
        definiteness: &str,
    ) -> PyResult<Self> {
        Ok(Self {
            machine: read("machine", machine)?,
            sharing: read("sharing", sharing)?,
            definiteness: read_word("indefinite", definiteness)?,
            solver: read("solver", solver)?,
            normalize: normalize.and_then(Normalization::of_word),
            target_scale: read_word("target_scale", target_scale)?,
        })
    }

    /// The checked problem.
    pub(crate) fn problem(
        &self,
        kernels: Vec<KernelView>,
        samples: Vec<Samples>,
        tasks: Vec<Task>,
    ) -> mtmkl::Result<Problem> {
        let mut spec = ProblemSpec::new(kernels, self.machine.clone(), self.sharing.clone());
        spec.solver = self.solver.clone();
        spec.target_scale = self.target_scale;
        usual_problem(spec, self.normalize, samples, tasks)
    }
}

/// Solves a problem, with a price that the data chooses where `auto`, and with probabilities where `counts` say how often each sample counts.
/// Specifications are JSON, as in the model file; `named` says whether someone chose the kernels.
#[pyfunction]
#[pyo3(signature = (*, kernels, named, machine, sharing, solver, normalize, target_scale, definiteness, sets, tasks, limits, notes, auto=false, counts=None))]
#[allow(
    clippy::too_many_arguments,
    clippy::needless_pass_by_value,
    reason = "the names are the interface, and Python hands over what it passes"
)]
pub(crate) fn fit(
    py: Python<'_>,
    kernels: Vec<(Option<String>, String)>,
    named: bool,
    machine: &str,
    sharing: &str,
    solver: &str,
    normalize: Option<&str>,
    target_scale: &str,
    definiteness: &str,
    sets: Vec<Set<'_>>,
    tasks: Vec<PyTask<'_>>,
    limits: Limits,
    notes: BTreeMap<String, String>,
    auto: bool,
    counts: Option<Vec<PyReadonlyArray1<'_, f64>>>,
) -> PyResult<Model> {
    let asked = Asked::read(
        machine,
        sharing,
        solver,
        normalize,
        target_scale,
        definiteness,
    )?;
    let Data {
        origins,
        views,
        sets,
        tasks,
    } = Data::read(&kernels, &sets, &tasks)?;
    let counts = counts.as_deref().map(vectors).transpose()?;
    let stop = Stop::never();
    let preparation = limits.preparation(asked.definiteness)?;
    let is_said = limits.storage.is_some();
    let fitting = limits.fitting()?;
    let own_stop = stop.clone();
    let (model, storage, warnings) = interruptible(py, &stop, &origins, move || {
        let samples = sets
            .into_iter()
            .map(Owned::samples)
            .collect::<mtmkl::Result<Vec<_>>>()?;
        let problem = asked.problem(views, samples, tasks)?;
        let mut fitting = fitting(own_stop);
        fitting.check()?;
        let mut prepared = problem.prepare(&preparation)?;
        if auto {
            (prepared, _) =
                prepared.at_usual_price(None, &mtmkl::select::Limits::from(&fitting))?;
        }
        let mut model = prepared.fit(&mut fitting)?;
        *model.notes_mut() = notes;
        if let Some(counts) = &counts {
            let limits = mtmkl::select::Limits::from(&fitting);
            let calibration = prepared.calibrate(&model, counts, &limits)?;
            if let Some(calibration) = calibration {
                let kept = mtmkl_table::keep_calibration(model.notes_mut(), &calibration);
                kept.map_err(|error| mtmkl::Error::Format {
                    problem: error.to_string(),
                })?;
            }
        }
        let warnings = told_nothing(&prepared, named);
        Ok((model, prepared.storage(), warnings))
    })?;
    let category = py.import("mtmkl._warnings")?.getattr("DataWarning")?;
    for warning in warnings {
        PyErr::warn(py, &category, &CString::new(warning)?, 3)?;
    }
    // Who asked for it knows.
    let message = match storage {
        _ if is_said => None,
        Storage::Mapped => Some(
            c"the kernel matrices do not fit into memory_limit (GiB), so their values were made on demand, which may be slower",
        ),
        Storage::Streamed => Some(
            c"no matrix of all rows fits into memory_limit (GiB), so kernel values were made from rows in blocks, which may be slower",
        ),
        Storage::Kept => None,
    };
    if let Some(message) = message {
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), message, 3)?;
    }
    Ok(Model::from(model))
}
