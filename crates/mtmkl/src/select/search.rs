//! Fits of the cells of a grid on the folds of a problem.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::grid::{Cell, Chain, Grid};
use super::held_out::check_rows;
use crate::data::{Samples, Targets, Task};
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::KernelView;
use crate::model::Model;
use crate::pool::Pool;
use crate::problem::{Fitting, Prepared, Problem, ProblemSpec};
use crate::run::{Rounds, Stop};

/// Rows of each sample set: those to learn from, and those kept aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// For each sample set, the rows to learn from.
    pub learn: Vec<Vec<usize>>,
    /// For each sample set, the rows to decide about.
    pub held: Vec<Vec<usize>>,
}

/// The limits of each single fit.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The certified relative gap to reach.
    pub tolerance: f64,
    /// At most this many passes.
    pub max_passes: usize,
    /// At most this much time.
    pub time_limit: Option<Duration>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Whether each fit of a chain starts from the one before it. It then takes less time, and its answer depends on that one
    /// within the tolerance.
    pub warm: bool,
    /// Cancellation.
    pub stop: Stop,
}

impl From<&Fitting<'_>> for Limits {
    /// Those of one fit, each of a chain starting from the one before it.
    fn from(fitting: &Fitting<'_>) -> Self {
        Self {
            tolerance: fitting.tolerance,
            max_passes: fitting.max_passes,
            time_limit: fitting.time_limit,
            seed: fitting.seed,
            warm: true,
            stop: fitting.stop.clone(),
        }
    }
}

impl Limits {
    fn fitting<'a>(&self, last: Option<&'a Model>) -> Fitting<'a> {
        Fitting {
            tolerance: self.tolerance,
            max_passes: self.max_passes,
            time_limit: self.time_limit,
            seed: self.seed,
            start: last.filter(|_| self.warm),
            stop: self.stop.clone(),
            rounds: Rounds::default(),
            observer: None,
        }
    }
}

/// One cell fitted on one fold.
#[derive(Debug)]
pub struct Trial<'a> {
    /// Which cell.
    pub cell: usize,
    /// Which fold.
    pub fold: usize,
    /// The fit.
    pub model: &'a Model,
    /// What it was fitted on: [`Prepared::decisions`] decides about further rows.
    pub prepared: &'a Prepared,
    /// By task, the decision values of the fold's rows kept aside.
    pub decisions: Vec<Vec<f64>>,
    /// The mean of min(1, (1 + y f)₊ / 2) over tasks and their rows kept aside, for labels y = ±1; 0 for other targets. It moves where the
    /// share of rows that are right does not.
    pub finer: f64,
    /// Seconds for the fit.
    pub seconds: f64,
}

/// A problem on all its rows, the cells and the folds to fit.
#[derive(Debug)]
pub struct Search<'a> {
    spec: &'a ProblemSpec,
    samples: &'a [Samples],
    tasks: &'a [Task],
    kernel_sets: &'a [Vec<usize>],
    grid: &'a Grid,
    folds: &'a [Fold],
    /// By fold and sample set, the weight of each row, in place of the tasks' own.
    weights: Option<&'a [Vec<Vec<f64>>]>,
}

impl<'a> Search<'a> {
    /// The kernels of `problem` are all that any cell uses; `kernel_sets` are positions among them. Everything that can be refused
    /// is refused here, before any kernel is computed.
    ///
    /// # Errors
    /// When a cell does not go with the tasks of a fold, or a row or kernel is not there.
    pub fn new(
        problem: &'a Problem,
        kernel_sets: &'a [Vec<usize>],
        grid: &'a Grid,
        folds: &'a [Fold],
    ) -> Result<Self> {
        let search = Self {
            spec: problem.spec(),
            samples: problem.samples(),
            tasks: problem.tasks(),
            kernel_sets,
            grid,
            folds,
            weights: None,
        };
        let known = search.spec.kernels.len();
        for cell in grid.cells() {
            let Some(kernels) = kernel_sets.get(cell.kernels).filter(|set| !set.is_empty()) else {
                return Err(Error::param(
                    "kernels",
                    "an empty set",
                    "at least one kernel in each set of the grid",
                ));
            };
            if let Some(kernel) = kernels.iter().find(|&&kernel| kernel >= known) {
                let expected = format!("positions below {known} in each set of the grid");
                return Err(Error::param("kernels", kernel, expected));
            }
        }
        for fold in folds {
            for rows in [&fold.learn, &fold.held] {
                if rows.len() != search.samples.len() {
                    return Err(Error::data(
                        Place::Problem,
                        DataProblem::Length {
                            what: "lists of rows of a fold, one for each sample set",
                            found: rows.len(),
                            expected: search.samples.len(),
                        },
                    ));
                }
                for (number, (rows, set)) in rows.iter().zip(search.samples).enumerate() {
                    check_rows(rows, number, set.count())?;
                }
            }
        }
        let mut machines: Vec<_> = Vec::new();
        for cell in grid.cells() {
            if !machines.contains(&&cell.machine) {
                machines.push(&cell.machine);
            }
        }
        for number in 0..folds.len() {
            // Sharings do not depend on rows, machines may.
            let cells = if number == 0 { grid.cells() } else { &[] };
            for cell in cells.iter().chain(grid.cells().first()) {
                search.problem(cell, number)?;
            }
            for task in search.tasks_on(number) {
                let count = task.rows.count(0);
                for machine in &machines {
                    machine.build().check(&task, count)?;
                }
            }
        }
        Ok(search)
    }

    /// The same with weights of the rows that depend on the fold, such as those that balance the classes of what it learns from:
    /// `weights[f][s]` has the weight of each row of sample set s in fold f, in place of the tasks' own.
    ///
    /// # Errors
    /// When there is not one for each row of each sample set in each fold.
    pub fn with_weights(mut self, weights: &'a [Vec<Vec<f64>>]) -> Result<Self> {
        let counts: Vec<usize> = self.samples.iter().map(Samples::count).collect();
        let fits = |fold: &Vec<Vec<f64>>| fold.iter().map(Vec::len).eq(counts.iter().copied());
        if weights.len() != self.folds.len() || !weights.iter().all(fits) {
            return Err(Error::param(
                "weights",
                "of other folds or rows",
                "a weight for each row of each sample set in each fold",
            ));
        }
        self.weights = Some(weights);
        Ok(self)
    }

    /// The tasks with only the rows that a fold learns from.
    fn tasks_on(&self, number: usize) -> Vec<Task> {
        let fold = &self.folds[number];
        let learned: Vec<Vec<bool>> = self
            .samples
            .iter()
            .zip(&fold.learn)
            .map(|(set, rows)| {
                let mut learned = vec![false; set.count()];
                for &row in rows {
                    learned[row] = true;
                }
                learned
            })
            .collect();
        let weights = self.weights.map(|weights| &weights[number]);
        let restricted = |task: &Task| {
            let mut task = task.restricted(&learned[task.samples]);
            if let Some(weights) = weights {
                let own = &weights[task.samples];
                let rows = 0..task.rows.count(own.len());
                task.weights = Some(rows.map(|at| own[task.rows.position(at)]).collect());
            }
            task
        };
        self.tasks.iter().map(restricted).collect()
    }

    /// By task, the labels of rows of its sample set; no number where it has none.
    fn labels_of(&self, held: &[Vec<usize>]) -> Vec<Vec<f64>> {
        let of = |task: &Task| {
            let count = self.samples[task.samples].count();
            let mut labels = vec![f64::NAN; count];
            if let Targets::Labels(own) = &task.targets {
                for (row, &label) in task.rows.iter(count).zip(own) {
                    labels[row] = label;
                }
            }
            held[task.samples].iter().map(|&row| labels[row]).collect()
        };
        self.tasks.iter().map(of).collect()
    }

    fn kernels_of(&self, cell: &Cell) -> Vec<KernelView> {
        self.kernel_sets[cell.kernels]
            .iter()
            .map(|&kernel| self.spec.kernels[kernel].clone())
            .collect()
    }

    fn problem(&self, cell: &Cell, fold: usize) -> Result<Problem> {
        let spec = ProblemSpec {
            kernels: self.kernels_of(cell),
            machine: cell.machine.clone(),
            sharing: cell.sharing.clone(),
            ..self.spec.clone()
        };
        Problem::new(spec, self.samples.to_vec(), self.tasks_on(fold))
    }

    /// How many chains there is memory for at a time, each followed by one thread.
    ///
    /// # Errors
    /// When there is not enough for one.
    pub fn at_a_time(&self, base: &Prepared) -> Result<usize> {
        let mut least = usize::MAX;
        let mut seen = Vec::new();
        for cell in self.grid.cells() {
            if seen.contains(&cell.kernels) {
                continue;
            }
            seen.push(cell.kernels);
            for fold in 0..self.folds.len() {
                let problem = self.problem(cell, fold)?;
                let kernels = &self.kernel_sets[cell.kernels];
                least = least.min(problem.fits_at_a_time(base, kernels)?);
            }
        }
        Ok(least)
    }

    /// Fits the cells of a chain, one after the other, each by the threads of `pool`, and tells of each. `base` has the Gram
    /// matrices of the problem, `last` is the fit of the cell before these, where there is one. A fit that is stopped is not told
    /// of.
    ///
    /// # Errors
    /// When the chain is not one of this grid and these folds, `base` is of another problem, or as [`Prepared::fit`].
    pub fn follow(
        &self,
        base: &Prepared,
        chain: &Chain,
        last: Option<Model>,
        limits: &Limits,
        pool: &Pool,
        mut tell: impl FnMut(Trial<'_>) -> ControlFlow<()> + Send,
    ) -> Result<()> {
        let Some(&first) = chain.cells.first() else {
            return Ok(());
        };
        let Some(fold) = self.folds.get(chain.fold) else {
            let expected = format!("a number below {}", self.folds.len());
            return Err(Error::param("fold", chain.fold, expected));
        };
        let cells = self.grid.cells();
        if let Some(cell) = chain.cells.iter().find(|&&cell| cell >= cells.len()) {
            let expected = format!("numbers below {}", cells.len());
            return Err(Error::param("cells", cell, expected));
        }
        let first = &cells[first];
        let kernels = |cell: &usize| cells[*cell].kernels;
        if let Some(other) = chain
            .cells
            .iter()
            .map(kernels)
            .find(|&set| set != first.kernels)
        {
            let expected = format!("cells with one kernel set, {}", first.kernels);
            return Err(Error::param(
                "cells",
                format!("kernel set {other}"),
                expected,
            ));
        }
        let problem = self.problem(first, chain.fold)?;
        let prepared = problem.prepare_from(base, &self.kernel_sets[first.kernels], pool)?;
        let truth = self.labels_of(&fold.held);
        // On one of its threads: the fits need not change threads.
        pool.install(|| {
            let mut last = last;
            for &number in &chain.cells {
                let Cell {
                    machine, sharing, ..
                } = &self.grid.cells()[number];
                let started = Instant::now();
                let cell = prepared.with(machine, sharing)?;
                let model = cell.fit(&mut limits.fitting(last.as_ref()))?;
                let seconds = started.elapsed().as_secs_f64();
                if limits.stop.is_requested() {
                    break;
                }
                let decisions = prepared.decisions(&model, &fold.held)?;
                let trial = Trial {
                    cell: number,
                    fold: chain.fold,
                    finer: finer(&truth, &decisions),
                    decisions,
                    model: &model,
                    prepared: &prepared,
                    seconds,
                };
                if tell(trial).is_break() {
                    break;
                }
                last = Some(model);
            }
            Ok(())
        })
    }
}

/// [`Trial::finer`]
fn finer(truth: &[Vec<f64>], decisions: &[Vec<f64>]) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    let rows = truth.iter().flatten().zip(decisions.iter().flatten());
    for (label, decision) in rows.filter(|(label, _)| !label.is_nan()) {
        sum += (0.5 * (1.0 + label * decision)).clamp(0.0, 1.0);
        count += 1;
    }
    sum / count.max(1) as f64
}
