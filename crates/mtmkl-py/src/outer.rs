//! The outer solver on a thread of its own: it asks for J at θ, and somebody tells.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mtmkl::engine::{Answer, Curvature, Driver, Evaluation, Question, channel};
use mtmkl::grid::{Grid, Shape};
use mtmkl::model::{Machines, Seconds};
use mtmkl::sharing::Parts;
use mtmkl::solver::Solution;
use mtmkl::{Fitting, OuterProblem, Pass, Proven, Stop};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::grid;
use crate::convert::vector;
use crate::enter::{broken, pool, released};
use crate::errors::{self, Origins};
use crate::fit::{Limits, read, views};
use crate::machines::Part;
use crate::model::Model;
use crate::sets::Wired;
use crate::table::Frame;

/// What the solver's thread leaves.
type Ended = Option<std::thread::Result<mtmkl::Result<Solution>>>;

/// What is known of a fit while it runs.
#[derive(Default)]
struct Shared {
    passes: Mutex<Vec<Pass>>,
    ended: Mutex<Ended>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// min over θ in Ψ of J(θ), J being told.
#[pyclass(frozen, module = "mtmkl._core")]
pub(crate) struct Outer {
    problem: OuterProblem,
    shape: Shape,
    driver: Mutex<Option<Driver>>,
    shared: Arc<Shared>,
    stop: Stop,
    solution: Mutex<Option<Solution>>,
    waited: Mutex<Waits>,
}

/// When the last question came and the last answer went: the solver's own time is what is between an answer and the next question.
#[derive(Default)]
struct Waits {
    told: Option<Instant>,
    own: f64,
}

/// Which tasks one answer is about, and the answer.
#[derive(FromPyObject)]
struct Told<'py> {
    #[pyo3(item)]
    values: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    gaps: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    noises: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    forgiven: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    scales: PyReadonlyArray1<'py, bool>,
    #[pyo3(item)]
    sensitivities: PyReadonlyArray2<'py, f64>,
    #[pyo3(item)]
    curvature: Option<(PyReadonlyArray1<'py, usize>, PyReadonlyArray1<'py, f64>)>,
    #[pyo3(item)]
    steps: usize,
}

fn unfitting() -> PyErr {
    PyValueError::new_err("the answers are not one for each task and kernel")
}

impl Told<'_> {
    /// Writes what is told of these tasks where it belongs.
    fn write(
        &self,
        tasks: &[usize],
        evaluation: &mut Evaluation,
        curvature: &mut [Curvature],
    ) -> PyResult<()> {
        let kernels = evaluation.sensitivities.kernels();
        let s = grid(&self.sensitivities)?;
        let numbers = [
            vector(&self.values)?,
            vector(&self.gaps)?,
            vector(&self.noises)?,
            vector(&self.forgiven)?,
        ];
        let scales = self.scales.as_slice()?;
        let count = tasks.len();
        let fits = numbers.iter().all(|list| list.len() == count)
            && scales.len() == count
            && (s.rows(), s.kernels()) == (count, kernels)
            && tasks.iter().all(|&task| task < evaluation.values.len());
        if !fits {
            return Err(unfitting());
        }
        let [values, gaps, noises, forgiven] = numbers;
        for (at, &task) in tasks.iter().enumerate() {
            evaluation.values[task] = values[at];
            evaluation.gaps[task] = gaps[at];
            evaluation.noises[task] = noises[at];
            evaluation.forgiven[task] = forgiven[at];
            evaluation.scales[task] = scales[at];
            evaluation
                .sensitivities
                .row_mut(task)
                .copy_from_slice(s.row(at));
        }
        evaluation.inner_iterations += self.steps;
        if let Some((ranks, factors)) = &self.curvature {
            let (ranks, factors) = (ranks.as_slice()?, vector(factors)?);
            let mut left = factors;
            for (&rank, &task) in ranks.iter().zip(tasks) {
                let length = rank.saturating_mul(kernels);
                let (own, rest) = left.split_at_checked(length).ok_or_else(unfitting)?;
                left = rest;
                curvature[task] = Curvature {
                    rank,
                    factor: own.to_vec(),
                    span: None,
                };
            }
            if ranks.len() != count || !left.is_empty() {
                return Err(unfitting());
            }
        }
        Ok(())
    }
}

fn parts_of(parts: &[PyReadonlyArray2<'_, f64>]) -> PyResult<Parts> {
    let grids = parts.iter().map(grid);
    Ok(Parts(grids.collect::<PyResult<_>>()?))
}

fn array<'py>(py: Python<'py>, grid: &Grid) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let shape = [grid.rows(), grid.kernels()];
    grid.values().to_vec().into_pyarray(py).reshape(shape)
}

#[pymethods]
impl Outer {
    /// Starts to solve, from these parts of θ or, without them, from the balanced point and coarser problems.
    #[new]
    #[pyo3(signature = (*, machine, sharing, solver, tasks, kernels, limits, start=None))]
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn new(
        machine: &str,
        sharing: &str,
        solver: &str,
        tasks: usize,
        kernels: usize,
        limits: Limits,
        start: Option<Vec<PyReadonlyArray2<'_, f64>>>,
    ) -> PyResult<Self> {
        let shape = Shape { tasks, kernels };
        let raise = |error| errors::raise(error, &Origins::default());
        let (sharing, solver) = (read("sharing", sharing)?, read("solver", solver)?);
        let machine = read("machine", machine)?;
        let problem = OuterProblem::new(&machine, sharing, solver, shape).map_err(raise)?;
        let start = start.as_deref().map(parts_of).transpose()?;
        let threads = pool(limits.threads)?;
        let fitting = limits.fitting()?;
        let stop = Stop::never();
        let shared = Arc::new(Shared::default());
        let (engine, driver) = channel(shape, true);
        let mut engine = engine.with_coarser();
        let (own_problem, own_stop, own_shared) =
            (problem.clone(), stop.clone(), Arc::clone(&shared));
        std::thread::Builder::new()
            .name("mtmkl-outer".to_string())
            .spawn(move || {
                let work = || {
                    let mut note = |pass: &Pass| locked(&own_shared.passes).push(*pass);
                    let limits = fitting(own_stop);
                    let mut fitting = Fitting {
                        tolerance: limits.tolerance,
                        max_passes: limits.max_passes,
                        time_limit: limits.time_limit,
                        seed: limits.seed,
                        stop: limits.stop,
                        observer: Some(&mut note),
                        ..Fitting::default()
                    };
                    own_problem.solve(&mut engine, start.as_ref(), &mut fitting, Some(threads))
                };
                let result = catch_unwind(AssertUnwindSafe(work));
                *locked(&own_shared.ended) = Some(result);
                // The driver hears of the end when the engine is dropped, after the result is there.
                drop(engine);
            })?;
        Ok(Self {
            problem,
            shape,
            driver: Mutex::new(Some(driver)),
            shared,
            stop,
            solution: Mutex::new(None),
            waited: Mutex::new(Waits {
                told: Some(Instant::now()),
                own: 0.0,
            }),
        })
    }

    /// The next question, waiting for it no longer than so many seconds: a dictionary whose `ask` is "evaluate", "coarser", "finer", or "nothing" once
    /// the fit is over. None when the time is.
    fn ask<'py>(&self, py: Python<'py>, seconds: f64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let limit = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let asked = py.detach(|| match &*locked(&self.driver) {
            Some(driver) => driver.ask_within(limit),
            None => Err(RecvTimeoutError::Disconnected),
        });
        let said = PyDict::new(py);
        let question = match asked {
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                said.set_item("ask", "nothing")?;
                return Ok(Some(said));
            }
            Ok(question) => question,
        };
        {
            let mut waited = locked(&self.waited);
            if let Some(told) = waited.told.take() {
                waited.own += told.elapsed().as_secs_f64();
            }
        }
        match question {
            Question::Evaluate {
                number,
                theta,
                request,
                keep,
                ..
            } => {
                said.set_item("ask", "evaluate")?;
                said.set_item("number", number)?;
                said.set_item("theta", array(py, &theta)?)?;
                said.set_item("accuracy", request.accuracy)?;
                said.set_item("curvature", request.curvature)?;
                said.set_item("keep", keep)?;
            }
            Question::Coarser => said.set_item("ask", "coarser")?,
            Question::Finer => said.set_item("ask", "finer")?,
            _ => {
                return Err(PyRuntimeError::new_err(
                    "the outer solver asks what is not known here; please report it",
                ));
            }
        }
        Ok(Some(said))
    }

    /// Tells J at the θ that was asked for: for each part of the tasks their positions, and what a batch said of them.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn tell(&self, parts: Vec<(PyReadonlyArray1<'_, usize>, Told<'_>)>) -> PyResult<()> {
        let Shape { tasks, kernels } = self.shape;
        let mut evaluation = Evaluation::zeros(0, tasks, kernels);
        let flat = Curvature {
            rank: 0,
            factor: Vec::new(),
            span: None,
        };
        let mut curvature = vec![flat; tasks];
        let mut is_told = vec![false; tasks];
        for (positions, told) in &parts {
            let positions = positions.as_slice()?;
            told.write(positions, &mut evaluation, &mut curvature)?;
            for &task in positions {
                is_told[task] = true;
            }
        }
        if !is_told.iter().all(|told| *told) {
            return Err(unfitting());
        }
        let is_curved = parts.iter().all(|(_, told)| told.curvature.is_some());
        evaluation.curvature = is_curved.then_some(curvature);
        self.answer(Answer::Evaluation(evaluation));
        Ok(())
    }

    /// Tells whether there is a coarser problem.
    fn tell_coarser(&self, found: bool) {
        self.answer(Answer::Coarser(found));
    }

    /// Tells that the coarser problem is over.
    fn tell_finer(&self) {
        self.answer(Answer::Finer);
    }

    /// Asks the solver to end with the best answer so far, at the next point where it looks.
    fn stop(&self) {
        self.stop.request();
    }

    /// Ends the fit without an answer: nobody will tell anything any more.
    fn abandon(&self, py: Python<'_>) {
        self.stop.request();
        // Whoever asks just now has it for a moment.
        py.detach(|| *locked(&self.driver) = None);
    }

    /// The passes so far: number, objective, bound, gap, step, inner iterations, seconds.
    #[getter]
    fn passes(&self) -> Vec<[f64; 7]> {
        let passes = locked(&self.shared.passes);
        passes.iter().map(Pass::numbers).collect()
    }

    /// Seconds that the solver worked itself, all that was between an answer and the next question.
    #[getter]
    fn own_seconds(&self) -> f64 {
        locked(&self.waited).own
    }

    /// The answer, once the fit is over: θ, its parts, status, objective, bound, gap and tolerance.
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if let Some(result) = locked(&self.shared.ended).take() {
            let solution = match result {
                Ok(result) => result.map_err(|error| errors::raise(error, &Origins::default()))?,
                Err(_) => return Err(broken()),
            };
            *locked(&self.solution) = Some(solution);
        }
        let solution = locked(&self.solution);
        let solution = solution.as_ref().ok_or_else(not_over)?;
        let found = PyDict::new(py);
        found.set_item("theta", array(py, &solution.theta)?)?;
        let parts = solution.parts.0.iter().map(|part| array(py, part));
        found.set_item("parts", parts.collect::<PyResult<Vec<_>>>()?)?;
        found.set_item("status", solution.status.name())?;
        found.set_item("objective", solution.objective)?;
        found.set_item("bound", solution.bound)?;
        found.set_item("gap", solution.gap)?;
        found.set_item("tolerance", solution.tolerance)?;
        Ok(found)
    }

    /// For these tasks, the evaluation whose machine each has, and the mixture of evaluations that proves its part of the bound.
    #[allow(
        clippy::needless_pass_by_value,
        clippy::type_complexity,
        reason = "Python hands over what it passes; two lists"
    )]
    fn machines(
        &self,
        tasks: PyReadonlyArray1<'_, usize>,
    ) -> PyResult<(Vec<usize>, Vec<Vec<(usize, f64)>>)> {
        let solution = locked(&self.solution);
        let solution = solution.as_ref().ok_or_else(not_over)?;
        let tasks = tasks.as_slice()?;
        let machines = tasks
            .iter()
            .map(|&task| solution.machines.get(task).copied());
        let mixtures = tasks.iter().map(|&task| {
            let mixture = solution.witness.get(task)?;
            // What has no weight is not needed, but for one that says how many samples there are.
            let first = mixture.first().copied();
            let mut used: Vec<(usize, f64)> = mixture
                .iter()
                .copied()
                .filter(|(_, weight)| *weight != 0.0)
                .collect();
            if used.is_empty() {
                used.extend(first);
            }
            Some(used)
        });
        let machines = machines.collect::<Option<Vec<_>>>();
        let mixtures = mixtures.collect::<Option<Vec<_>>>();
        machines.zip(mixtures).ok_or_else(unfitting)
    }

    /// Takes the certificate from what machines and witnesses prove, by task and in the order of tasks. Says the gap.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn take_proof(
        &self,
        primal: PyReadonlyArray1<'_, f64>,
        constant: PyReadonlyArray1<'_, f64>,
        sensitivities: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<f64> {
        let proven = Proven {
            primal: vector(&primal)?.to_vec(),
            constant: vector(&constant)?.to_vec(),
            sensitivities: grid(&sensitivities)?,
        };
        let s = &proven.sensitivities;
        let Shape { tasks, kernels } = self.shape;
        if (
            s.rows(),
            s.kernels(),
            proven.primal.len(),
            proven.constant.len(),
        ) != (tasks, kernels, tasks, tasks)
        {
            return Err(unfitting());
        }
        let mut known = locked(&self.solution);
        let solution = known.take().ok_or_else(not_over)?;
        let solution = solution.proven_by(&proven, self.problem.sharing());
        let gap = solution.gap;
        *known = Some(solution);
        Ok(gap)
    }

    /// One model of all parts: for each sample set, in the order of names, its part and its number there; `rows` are those of parts that have none, before they are
    /// on the scales that `frame` has. `before` are passes of an earlier start.
    #[pyo3(signature = (parts, order, *, rows, kernels, machine, normalize, frame, kernel_seconds, solve_seconds, notes, before=None))]
    #[allow(
        clippy::needless_pass_by_value,
        clippy::too_many_arguments,
        reason = "the names are the interface, and Python hands over what it passes"
    )]
    fn model(
        &self,
        py: Python<'_>,
        parts: Vec<Part<'_>>,
        order: Vec<(usize, usize)>,
        rows: Option<Wired<'_>>,
        kernels: Vec<(Option<String>, String)>,
        machine: &str,
        normalize: &str,
        frame: Py<Frame>,
        kernel_seconds: f64,
        solve_seconds: f64,
        notes: std::collections::BTreeMap<String, String>,
        before: Option<PyRef<'_, Self>>,
    ) -> PyResult<Model> {
        let mut solution = locked(&self.solution).clone().ok_or_else(not_over)?;
        if let Some(before) = before {
            let mut earlier = locked(&before.shared.passes).clone();
            let (count, seconds) = earlier
                .last()
                .map_or((0, 0.0), |pass| (pass.number, pass.seconds));
            for pass in &mut solution.trace {
                pass.number += count;
                pass.seconds += seconds;
            }
            earlier.append(&mut solution.trace);
            solution.trace = earlier;
        }
        let raise = |error| errors::raise(error, &Origins::default());
        let none = Machines {
            kernels: views(&kernels).map_err(raise)?,
            machine: read("machine", machine)?,
            normalize: mtmkl::Normalization::of_word(normalize).unwrap_or_default(),
            sets: Vec::new(),
            tasks: Vec::new(),
        };
        let frame = frame.get();
        let columns = frame.inner().features.len();
        let rows = rows.as_ref().map(|rows| rows.read(columns)).transpose()?;
        let machines = parts.iter();
        let machines = machines.map(|part| part.machines(frame, &none, rows.as_ref()));
        let machines = machines.collect::<PyResult<Vec<_>>>()?;
        let seconds = Seconds {
            kernels: kernel_seconds,
            solve: solve_seconds,
        };
        let mut model = released(py, &Origins::default(), || {
            let machines = Machines::joined(machines, &order)?;
            self.problem.model(solution, seconds, machines)
        })?;
        *model.notes_mut() = notes;
        Ok(Model::from(model))
    }
}

impl Outer {
    fn answer(&self, answer: Answer) {
        locked(&self.waited).told = Some(Instant::now());
        if let Some(driver) = &*locked(&self.driver) {
            driver.tell(answer);
        }
    }
}

fn not_over() -> PyErr {
    PyRuntimeError::new_err("the fit is not over, so there is no answer yet")
}
