//! `Search`: many cells on folds of one set of Gram matrices, round by round. Python scores what each round decided.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use mtmkl::select::{self, Cell, Chain, Fold, Grid, Trial, UsualSearch, Verdict, in_parallel};
use mtmkl::{Pool, Preparation, Prepared, Problem, Stop};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::vectors;
use crate::enter::{interruptible, released};
use crate::errors::{self, Origins};
use crate::fit::{Asked, Data, Limits, Owned, PyTask, Set, read};

/// The rows to learn from and those kept aside, for each sample set.
type Rows = (Vec<Vec<usize>>, Vec<Vec<usize>>);

/// What a round tells of a fit: cell, fold, seconds, whether it converged, what is finer than its score, and the decision values of the rows kept
/// aside, by task.
type Told<'py> = (usize, usize, f64, bool, f64, Vec<Bound<'py, PyArray1<f64>>>);

/// Which cells are fitted: those of a grid, or as the usual search asks for them.
enum Plan {
    Grid(Grid, bool),
    Usual(Box<UsualSearch>),
}

/// One fit of a round.
struct Found {
    cell: usize,
    fold: usize,
    seconds: f64,
    converged: bool,
    finer: f64,
    decisions: Vec<Vec<f64>>,
}

/// A search that is being gone through.
#[pyclass(module = "mtmkl._core")]
pub(crate) struct Search {
    problem: Problem,
    prepared: Option<Prepared>,
    preparation: Preparation,
    kernel_sets: Vec<Vec<usize>>,
    folds: Vec<Fold>,
    /// By fold and sample set, where the weights of rows depend on the fold.
    weights: Option<Vec<Vec<Vec<f64>>>>,
    plan: Plan,
    limits: select::Limits,
    threads: usize,
    origins: Origins,
    /// The chains of this round.
    chains: Vec<Chain>,
    verdicts: BTreeMap<(usize, usize), Verdict>,
}

#[pymethods]
impl Search {
    /// Specifications are JSON, as in the model file. With `cells`, (machine, sharing) pairs, each is fitted on each fold; without, the usual
    /// search goes on from `machine` and, with several p where `exponents`, from `sharing`. `weights` are those of rows, by fold and sample set, where
    /// they depend on the fold.
    #[new]
    #[pyo3(signature = (*, kernels, machine, sharing, solver, normalize, target_scale, definiteness, sets, tasks, limits, folds, weights, cells, exponents))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "the names are the interface, and Python hands over what it passes"
    )]
    fn new(
        py: Python<'_>,
        kernels: Vec<(Option<String>, String)>,
        machine: &str,
        sharing: &str,
        solver: &str,
        normalize: Option<&str>,
        target_scale: &str,
        definiteness: &str,
        sets: Vec<Set<'_>>,
        tasks: Vec<PyTask<'_>>,
        limits: Limits,
        folds: Vec<Rows>,
        weights: Option<Vec<Vec<PyReadonlyArray1<'_, f64>>>>,
        cells: Option<Vec<(String, String)>>,
        exponents: bool,
    ) -> PyResult<Self> {
        let asked = Asked::read(
            machine,
            sharing,
            solver,
            normalize,
            target_scale,
            definiteness,
        )?;
        let weights = weights.map(|folds| folds.iter().map(|own| vectors(own)).collect());
        let weights: Option<Vec<_>> = weights.transpose()?;
        let cells = cells.map(|cells| cells.iter().map(cell_of).collect::<PyResult<Vec<_>>>());
        let cells = cells.transpose()?;
        let Data {
            origins,
            views,
            sets,
            tasks,
        } = Data::read(&kernels, &sets, &tasks)?;
        let preparation = limits.preparation(asked.definiteness)?;
        let threads = limits.threads;
        let fitting = limits.fitting()?(Stop::never());
        let folds: Vec<Fold> = folds
            .into_iter()
            .map(|(learn, held)| Fold { learn, held })
            .collect();
        let mut limits = select::Limits::from(&fitting);
        if cells.is_none() {
            limits.tolerance = limits.tolerance.max(UsualSearch::TOLERANCE);
        }
        let held: Vec<usize> = folds
            .iter()
            .map(|fold| fold.held.iter().map(Vec::len).sum())
            .collect();
        fitting
            .check()
            .map_err(|error| errors::raise(error, &origins))?;
        let problem = released(py, &origins, || {
            let samples = sets.into_iter().map(Owned::samples);
            let samples = samples.collect::<mtmkl::Result<Vec<_>>>()?;
            asked.problem(views, samples, tasks)
        })?;
        let kernels = problem.shape().kernels;
        let (plan, kernel_sets) = if let Some(cells) = cells {
            let all = (0..kernels).collect();
            (Plan::Grid(Grid::of(cells), false), vec![all])
        } else {
            let learned = if exponents {
                UsualSearch::exponents(&asked.sharing)
            } else {
                vec![asked.sharing.clone()]
            };
            let count = |set: usize| problem.samples()[set].count();
            let rows = problem.tasks().iter();
            let rows = rows.map(|task| task.rows.count(count(task.samples))).sum();
            let search = UsualSearch::new(&asked.machine, false, &learned, kernels, rows, &held);
            let sets = search.kernel_sets();
            (Plan::Usual(Box::new(search)), sets)
        };
        Ok(Self {
            problem,
            prepared: None,
            preparation,
            kernel_sets,
            folds,
            weights,
            plan,
            limits,
            threads,
            origins,
            chains: Vec::new(),
            verdicts: BTreeMap::new(),
        })
    }

    /// Goes to the next round: its chains of fits, each with its fold and its cells; none when the search is over. Every fit of the last round
    /// must be scored before. Whoever scores alike goes the same way.
    fn next_round(&mut self) -> Vec<(usize, Vec<usize>)> {
        self.chains = self.next();
        let chains = self.chains.iter();
        chains
            .map(|chain| (chain.fold, chain.cells.clone()))
            .collect()
    }

    /// Fits what these chains of the round say, by their numbers.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "Python hands over what it passes"
    )]
    fn follow<'py>(&mut self, py: Python<'py>, numbers: Vec<usize>) -> PyResult<Vec<Told<'py>>> {
        let chains = numbers
            .iter()
            .map(|&number| self.chains.get(number).cloned());
        let chains: Option<Vec<Chain>> = chains.collect();
        let chains = chains.ok_or_else(|| PyValueError::new_err("the round has no such chain"))?;
        let (problem, prepared) = (self.problem.clone(), self.prepared.clone());
        let preparation = self.preparation.clone();
        let (grid, kernel_sets) = (self.grid().clone(), self.kernel_sets.clone());
        let (folds, limits, threads) = (self.folds.clone(), self.limits.clone(), self.threads);
        let weights = self.weights.clone();
        let work = move || {
            let mut search = select::Search::new(&problem, &kernel_sets, &grid, &folds)?;
            if let Some(weights) = &weights {
                search = search.with_weights(weights)?;
            }
            let prepared = match prepared {
                Some(prepared) => prepared,
                None => problem.prepare(&preparation)?,
            };
            let found = fit(&search, &prepared, &chains, &limits, threads)?;
            Ok((prepared, found))
        };
        let (prepared, found) = interruptible(py, &self.limits.stop, &self.origins, work)?;
        self.prepared = Some(prepared);
        let told = found.into_iter().map(|one| {
            let decisions = one.decisions.into_iter();
            let decisions = decisions.map(|values| PyArray1::from_vec(py, values));
            (
                one.cell,
                one.fold,
                one.seconds,
                one.converged,
                one.finer,
                decisions.collect(),
            )
        });
        Ok(told.collect())
    }

    /// Says how good a cell was on a fold, more being better, and what was told to be finer.
    fn scored(&mut self, cell: usize, fold: usize, score: f64, finer: f64) {
        self.verdicts.insert((cell, fold), Verdict { score, finer });
    }

    /// The cells so far: positions of their kernels, machine and sharing.
    fn cells(&self) -> PyResult<Vec<(Vec<usize>, String, String)>> {
        let cell = |cell: &Cell| {
            let machine = serde_json::to_string(&cell.machine);
            let machine = machine.map_err(|error| errors::unreadable("machine", &error))?;
            let sharing = serde_json::to_string(&cell.sharing);
            let sharing = sharing.map_err(|error| errors::unreadable("sharing", &error))?;
            Ok((self.kernel_sets[cell.kernels].clone(), machine, sharing))
        };
        self.grid().cells().iter().map(cell).collect()
    }

    /// The cell that the usual search takes.
    fn best(&self) -> usize {
        match &self.plan {
            Plan::Usual(search) => {
                search.best(|cell, fold| self.verdicts.get(&(cell, fold)).copied())
            }
            Plan::Grid(..) => 0,
        }
    }
}

impl Search {
    fn grid(&self) -> &Grid {
        match &self.plan {
            Plan::Grid(grid, _) => grid,
            Plan::Usual(search) => search.grid(),
        }
    }

    fn next(&mut self) -> Vec<Chain> {
        match &mut self.plan {
            Plan::Grid(_, true) => Vec::new(),
            Plan::Grid(grid, is_begun) => {
                *is_begun = true;
                grid.chains(self.folds.len())
            }
            Plan::Usual(search) => {
                let verdicts = &self.verdicts;
                search.next(|cell, fold| verdicts.get(&(cell, fold)).copied())
            }
        }
    }
}

/// The certified relative gap that is enough on folds of the usual search.
#[pyfunction]
pub(crate) fn search_tolerance() -> f64 {
    UsualSearch::TOLERANCE
}

fn cell_of((machine, sharing): &(String, String)) -> PyResult<Cell> {
    Ok(Cell {
        kernels: 0,
        machine: read("machine", machine)?,
        sharing: read("sharing", sharing)?,
    })
}

/// Follows the chains by as many workers as there is memory for.
fn fit(
    search: &select::Search<'_>,
    prepared: &Prepared,
    chains: &[Chain],
    limits: &select::Limits,
    threads: usize,
) -> mtmkl::Result<Vec<Found>> {
    let workers = search.at_a_time(prepared)?.min(chains.len());
    let pools = Pool::for_jobs(workers, threads)?;
    let found = Mutex::new(Vec::new());
    in_parallel(chains.len(), &pools, |number, pool| {
        let tell = |trial: Trial<'_>| {
            let one = Found {
                cell: trial.cell,
                fold: trial.fold,
                seconds: trial.seconds,
                converged: trial.model.outcome().status.is_converged(),
                finer: trial.finer,
                decisions: trial.decisions,
            };
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(one);
            ControlFlow::Continue(())
        };
        search.follow(prepared, &chains[number], None, limits, pool, tell)
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|one| (one.cell, one.fold));
    Ok(found)
}
