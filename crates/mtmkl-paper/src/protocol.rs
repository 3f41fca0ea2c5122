//! The paper's protocol: for each draw a random subset of the data set, of that random training rows for each share, the rest halved for
//! choosing and testing.
//!
//! For every draw, share and method, each cell of the method's grid is fitted on the training rows; the cell that is best on the
//! validation half (of equal ones the first: small C before large, small q before large) is judged once on the test half. All
//! methods see the same rows, and all shares of a draw are views of the same Gram matrices.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use mtmkl::kernel::KernelView;
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Cell, Chain, Fold, Grid, Limits, Metric, Search};
use mtmkl::sharing::SharingSpec;
use mtmkl::{Pool, Prepared, Problem, ProblemSpec, Samples, Targets};
use mtmkl_cli::journal::Fingerprint;
use mtmkl_table::Scaling;
use serde::{Deserialize, Serialize};

use crate::benchmark::{Benchmark, Choice};
use crate::method::Method;
use crate::rows::{chosen_rows, divided, scaled, tasks_of};
use crate::sources::Source;

/// C of the paper.
pub const C: [f64; 7] = [1.0 / 27.0, 1.0 / 9.0, 1.0 / 3.0, 1.0, 3.0, 9.0, 27.0];
/// The paper's experiments leave the ½ before the quadratic term out, which is the same as doubling C (with α halved).
pub const DOUBLED: f64 = 2.0;

/// What all sets have in common.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How features are scaled, on all rows of a set's subset; labels are not looked at.
    pub scale: Scaling,
    /// The kernels.
    pub kernels: Vec<KernelView>,
    /// The methods.
    pub methods: Vec<Method>,
    /// Training shares in per cent in place of each set's own.
    pub shares: Option<Vec<f64>>,
    /// How many draws.
    pub runs: usize,
    /// The seed of subsets and draws.
    pub seed: u64,
}

/// The best cell of one method on one draw, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unit {
    /// The data set.
    pub set: String,
    /// The fingerprint of its numbers.
    pub data: String,
    /// The training share in per cent.
    pub share: f64,
    /// The draw.
    pub run: usize,
    /// The method.
    pub method: Method,
    /// The chosen C, as the paper counts it.
    #[serde(rename = "C")]
    pub c: f64,
    /// The chosen q, β or kernel (its number, from 1), where the method has one.
    pub choice: Option<f64>,
    /// Accuracy on the validation half, 0 to 1.
    pub validation: f64,
    /// Accuracy on the test half, 0 to 1.
    pub test: f64,
    /// How many fits were made.
    pub fits: usize,
    /// Those that did not reach the tolerance: the cell, how it ended, the gap.
    pub not_converged: Vec<String>,
    /// Passes of all fits together.
    pub passes: usize,
    /// Seconds of all fits together.
    pub seconds: f64,
    /// Seconds of the longest fit.
    pub longest: f64,
}

/// Names a unit.
pub type Key = (String, u64, usize, Method);

impl Unit {
    /// Its name.
    pub fn key(&self) -> Key {
        key(&self.set, self.share, self.run, self.method)
    }
}

fn key(set: &str, share: f64, run: usize, method: Method) -> Key {
    (set.to_string(), share.to_bits(), run, method)
}

/// A data set and what is done with it.
#[derive(Debug)]
pub struct Experiment {
    /// The paper's description of it.
    pub set: &'static Benchmark,
    /// The fingerprint of its rows.
    pub data: String,
    /// The training shares in per cent.
    pub shares: Vec<f64>,
    source: Source,
    settings: Settings,
}

impl Experiment {
    /// Makes every draw once, so that whatever cannot be drawn or fitted is refused now.
    ///
    /// # Errors
    /// When a class has too few rows for the subset or for a share.
    pub fn new(set: &'static Benchmark, source: Source, settings: &Settings) -> Result<Self> {
        let mut fingerprint = Fingerprint::default();
        fingerprint.numbers(&source.values);
        for name in source.labels.iter().chain(source.tasks.iter().flatten()) {
            fingerprint.bytes(name.as_bytes());
        }
        if set.choice == Choice::Balanced {
            // Results of rows that were drawn, as they once were, are of other data.
            fingerprint.bytes(b"in file order");
        }
        let shares = settings
            .shares
            .clone()
            .unwrap_or_else(|| set.shares.to_vec());
        let experiment = Self {
            set,
            data: fingerprint.text(),
            shares,
            source,
            settings: settings.clone(),
        };
        for run in experiment.runs() {
            experiment.draw(run)?;
        }
        Ok(experiment)
    }

    /// The numbers of its draws.
    pub fn runs(&self) -> std::ops::Range<usize> {
        0..self.settings.runs
    }

    /// The names of a draw's units.
    pub fn keys(&self, run: usize) -> Vec<Key> {
        let methods = &self.settings.methods;
        self.shares
            .iter()
            .flat_map(|&share| {
                methods
                    .iter()
                    .map(move |&method| key(self.set.name, share, run, method))
            })
            .collect()
    }

    /// How many fits all draws take.
    pub fn fits(&self) -> usize {
        let kernels = self.settings.kernels.len();
        let methods = self.settings.methods.iter();
        let cells: usize = methods
            .map(|method| C.len() * method.sharings(1, kernels).len())
            .sum();
        self.settings.runs * self.shares.len() * cells
    }

    /// Chooses the rows of a draw and divides them, for each share.
    ///
    /// # Errors
    /// When a class has too few rows for the subset or for a share.
    pub fn draw(&self, run: usize) -> Result<Draw<'_>> {
        let (set, source, settings) = (self.set, &self.source, &self.settings);
        let groups =
            chosen_rows(set, source, run, settings.seed).with_context(|| source.file.clone())?;
        let samples = scaled(source, &groups, settings.scale)
            .into_iter()
            .zip(&groups)
            .map(|(values, (_, rows))| Samples::new(values, rows.len(), source.columns))
            .collect::<mtmkl::Result<_>>()?;
        let (tasks, classes) = tasks_of(set, source, &groups);
        let cells = settings
            .methods
            .iter()
            .flat_map(|method| method.sharings(tasks.len(), settings.kernels.len()))
            .flat_map(|sharing| {
                C.map(|c| Cell {
                    kernels: 0,
                    sharing: sharing.clone(),
                    machine: MachineSpec::svc(DOUBLED * c),
                })
            })
            .collect();
        let spec = ProblemSpec::new(
            settings.kernels.clone(),
            MachineSpec::svc(1.0),
            SharingSpec::uniform(),
        );
        // The largest share first: the threads then end a draw together.
        let mut shares = self.shares.clone();
        shares.sort_by(|a, b| b.total_cmp(a));
        let (folds, tests) = shares
            .iter()
            .map(|&share| divided(set, source, &groups, share, run, settings.seed))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .unzip();
        let draw = Draw {
            experiment: self,
            run,
            shares,
            problem: Problem::new(spec, samples, tasks)?,
            grid: Grid::of(cells),
            kernel_sets: vec![(0..settings.kernels.len()).collect()],
            folds,
            tests,
            classes,
        };
        draw.search()?;
        Ok(draw)
    }
}

/// The rows of one draw, divided for each share.
#[derive(Debug)]
pub struct Draw<'a> {
    experiment: &'a Experiment,
    run: usize,
    problem: Problem,
    grid: Grid,
    kernel_sets: Vec<Vec<usize>>,
    /// For each fold, its share.
    shares: Vec<f64>,
    folds: Vec<Fold>,
    /// For each fold, the test rows of each sample set.
    tests: Vec<Vec<Vec<usize>>>,
    /// For one-vs-all tasks, the class of each row.
    classes: Option<Vec<usize>>,
}

impl Draw<'_> {
    /// The search over all its shares, everything checked.
    ///
    /// # Errors
    /// When a cell does not go with a share.
    pub fn search(&self) -> Result<Search<'_>> {
        Ok(Search::new(
            &self.problem,
            &self.kernel_sets,
            &self.grid,
            &self.folds,
        )?)
    }

    /// The problem on all rows, to compute its Gram matrices.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// One chain of cells for each share and method.
    pub fn chains(&self) -> Vec<Chain> {
        self.grid.chains(self.folds.len())
    }

    /// What a chain's unit is called in the journal.
    pub fn key(&self, chain: &Chain) -> Key {
        let method = Method::of(&self.grid.cells()[chain.cells[0]]);
        let set = self.experiment.set.name;
        key(set, self.shares[chain.fold], self.run, method)
    }

    /// Fits a chain's cells and judges the best; `None` where it was stopped.
    ///
    /// # Errors
    /// When a fit breaks down.
    pub fn follow(
        &self,
        search: &Search<'_>,
        prepared: &Prepared,
        chain: &Chain,
        limits: &Limits,
        pool: &Pool,
    ) -> Result<Option<Unit>> {
        let method = Method::of(&self.grid.cells()[chain.cells[0]]);
        let mut unit = Unit {
            set: self.experiment.set.name.to_string(),
            data: self.experiment.data.clone(),
            share: self.shares[chain.fold],
            run: self.run,
            method,
            c: f64::NAN,
            choice: None,
            validation: f64::NAN,
            test: f64::NAN,
            fits: 0,
            not_converged: Vec::new(),
            passes: 0,
            seconds: 0.0,
            longest: 0.0,
        };
        let mut best: Option<usize> = None;
        let mut failed = None;
        search.follow(prepared, chain, None, limits, pool, |trial| {
            let outcome = trial.model.outcome();
            unit.fits += 1;
            unit.passes += outcome.trace.len();
            unit.seconds += trial.seconds;
            unit.longest = unit.longest.max(trial.seconds);
            let cell = &self.grid.cells()[trial.cell];
            if !outcome.status.is_converged() {
                let named = chosen(cell).map_or(String::new(), |value| format!(", {value}"));
                unit.not_converged.push(format!(
                    "C {}{named}: {}, gap {:.1e}, {} passes",
                    paper_c(cell),
                    outcome.status.name(),
                    outcome.gap,
                    outcome.trace.len()
                ));
            }
            let validation = self.accuracy(&self.folds[chain.fold].held, &trial.decisions);
            // Of equal ones the first in the grid, which is not always the first in the chain.
            let better = Metric::Accuracy.is_better(validation, unit.validation)
                || (validation == unit.validation && best.is_none_or(|best| trial.cell < best));
            if better {
                let tests = &self.tests[chain.fold];
                let decisions = match trial.prepared.decisions(trial.model, tests) {
                    Ok(decisions) => decisions,
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                };
                best = Some(trial.cell);
                unit.validation = validation;
                unit.test = self.accuracy(tests, &decisions);
                unit.c = paper_c(cell);
                unit.choice = chosen(cell);
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok((unit.fits == chain.cells.len()).then_some(unit))
    }

    /// The share of rows whose class has the largest decision value, or the mean over tasks of the share on the right side.
    fn accuracy(&self, rows: &[Vec<usize>], decisions: &[Vec<f64>]) -> f64 {
        if let Some(classes) = &self.classes {
            let truth: Vec<usize> = rows[0].iter().map(|&row| classes[row]).collect();
            let predicted: Vec<usize> = (0..truth.len())
                .map(|row| {
                    let mut best = 0;
                    for (class, values) in decisions.iter().enumerate() {
                        if values[row] > decisions[best][row] {
                            best = class;
                        }
                    }
                    best
                })
                .collect();
            return Metric::Accuracy.of_classes(&truth, &predicted, &[]);
        }
        let tasks = self.problem.tasks();
        let scores = tasks.iter().zip(decisions).map(|(task, decisions)| {
            let Targets::Labels(labels) = &task.targets else {
                return f64::NAN;
            };
            let own: Vec<f64> = rows[task.samples].iter().map(|&row| labels[row]).collect();
            Metric::Accuracy.of_labels(&own, decisions)
        });
        scores.sum::<f64>() / tasks.len() as f64
    }
}

/// C as the paper counts it.
fn paper_c(cell: &Cell) -> f64 {
    cell.machine.number("C") / DOUBLED
}

/// q, β or the kernel's number, where a cell has one that was chosen.
fn chosen(cell: &Cell) -> Option<f64> {
    match cell.sharing.values().list("weights") {
        Some(weights) => weights
            .iter()
            .position(|&weight| weight > 0.0)
            .map(|at| (at + 1) as f64),
        None => cell.get("q").or_else(|| cell.get("beta")),
    }
}
