//! `mtmkl tune`: which settings predict best on rows kept aside, and a model with them from all rows.

mod folds;
mod results;
mod starts;
mod wanted;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::entry::Parameter;
use mtmkl::error::DataProblem;
use mtmkl::select::{Cell, Fold, Grid, Limits, Metric, Search, Trial, in_parallel, usual_problem};
use mtmkl::{Pool, Registry, Task};
use mtmkl_table::{Dataset, Equals, Goal, Predictions};
use serde::{Deserialize, Serialize};

use self::folds::{fold_of, splits};
use self::results::Results;
use self::starts::Starts;
use self::wanted::Wanted;
use super::Outcome;
use super::fit::{Fit, check_columns, fitting_of, interruptible, note_storage, preparation_of};
use crate::args::{FitArgs, TuneArgs};
use crate::journal::{Fingerprint, Journal};
use crate::progress::{Fits, Progress};
use crate::score::{Score, metric, score};
use crate::words::count;
use crate::{choices, output};

/// The journal's name where none is given.
const JOURNAL: &str = "mtmkl-tune.journal";

/// One cell on one fold, as the journal keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Finished {
    cell: usize,
    fold: usize,
    /// Not there where it is not defined.
    score: Option<f64>,
    tasks: Vec<Option<f64>>,
    status: String,
    converged: bool,
    passes: usize,
    seconds: f64,
}

/// Everything that is tried on everything.
struct Tune {
    fit: Fit,
    metric: Metric,
    inlier: Option<String>,
    grid: Grid,
    /// For each kernel set, its specifications as given.
    kernel_sets: Vec<Vec<String>>,
    registry: Registry,
    folds: Vec<Fold>,
    /// What the folds are, in words.
    split: String,
    tasks: Vec<Task>,
    /// For each sample set, its rows among the records.
    rows: Vec<Vec<usize>>,
}

/// `mtmkl tune`
///
/// # Errors
/// When the input cannot be used, the journal is not of this run, or something cannot be written.
pub fn run(args: &TuneArgs) -> Result<Outcome> {
    let mut args = args.clone();
    if args.fit.print_config {
        output::print(&toml::to_string(&args)?)?;
        return Ok(Outcome::Done);
    }
    let wanted = Wanted::new(&args)?;
    let kernel_sets = kernel_sets(&mut args)?;
    let journal = args
        .journal
        .clone()
        .unwrap_or_else(|| PathBuf::from(JOURNAL));
    args.picture
        .iter()
        .chain([&journal])
        .try_for_each(|path| output::check_place(path))?;
    if let Some(group) = args
        .group
        .clone()
        .filter(|group| !args.fit.ignore.contains(group))
    {
        args.fit.ignore.push(group);
    }
    // Opening gives precomputed kernels names of their own; the settings keep the paths.
    let given = args.fit.kernel.clone();
    let fit = Fit::open(&mut args.fit, "tune")?;
    // Folds tell equal rows apart; the model of all rows does not.
    let sets = fit.sets(Equals::Apart)?;
    let mut tune = Tune::new(&args, &wanted, kernel_sets, fit, &sets.dataset)?;
    let stop = interruptible();
    let Some((finished, computed)) = tune.search(&args, &journal, &sets.dataset, &stop)? else {
        return Ok(Outcome::NotConverged);
    };
    drop(sets);
    let results = Results::new(&tune, &finished);
    let best = &tune.grid.cells()[results.best];
    settle(&mut args.fit, best);
    args.fit.kernel.clone_from(&tune.kernel_sets[best.kernels]);
    let mut shown = args.fit.clone();
    if tune.kernel_sets.len() == 1 {
        shown.kernel = given;
    }
    tune.fit.settings = toml::to_string(&shown)?;
    let picture = results.picture(&tune);
    let sets = tune.fit.sets(Equals::Merged)?;
    let mut learned = tune.fit.learn(&args.fit, sets, || stop.clone())?;
    learned.model.notes_mut().insert(
        mtmkl_report::notes::PICTURES.to_string(),
        serde_json::to_string(&[(picture.title.clone(), picture.title.clone(), picture.svg())])?,
    );
    let mut saved = learned.save(&args.fit);
    if let Some(path) = &args.picture
        && let Err(error) = mtmkl::model::write_whole(path, picture.svg().as_bytes())
    {
        saved.missing(format!("{error}; the picture is not written"));
    }
    if args.fit.json {
        let mut object = learned.json();
        object["tune"] = results.json(&tune, computed);
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        let text = results.text(&tune, computed) + "\n" + &learned.text(&args.fit, &saved);
        output::show(&text)?;
    }
    saved.check()?;
    Ok(learned.outcome())
}

/// The kernel sets as lists of specifications; the flags then name each kernel once.
fn kernel_sets(args: &mut TuneArgs) -> Result<Vec<Vec<String>>> {
    if args.kernel_set.is_empty() {
        return Ok(Vec::new());
    }
    let mut sets = Vec::new();
    let mut all: Vec<String> = Vec::new();
    for text in &args.kernel_set {
        let set: Vec<String> = text
            .split(';')
            .map(|spec| spec.trim().to_string())
            .filter(|spec| !spec.is_empty())
            .collect();
        if set.is_empty() {
            bail!(
                "--kernel-set {text}: there is no kernel in it; separate them by `;`, e.g. 'linear;rbf:sigma=1|2'"
            );
        }
        for spec in &set {
            if spec.starts_with("precomputed") {
                bail!(
                    "--kernel-set {text}: precomputed kernels cannot stand in a set; give them with --kernel, for all cells"
                );
            }
            if !all.contains(spec) {
                all.push(spec.clone());
            }
        }
        sets.push(set);
    }
    args.fit.kernel = all;
    Ok(sets)
}

/// Writes a cell's values where `fit` would find them.
fn settle(args: &mut FitArgs, cell: &Cell) {
    args.sharing = Some(cell.sharing.name().to_string());
    let parameters: Vec<&Parameter> = args.registry.parameters().map(|(_, one)| one).collect();
    for parameter in parameters {
        if let Some(value) = cell.get(parameter.name) {
            args.parameters.set(&parameter.flag(), value);
        }
    }
}

impl Tune {
    fn new(
        args: &TuneArgs,
        wanted: &Wanted,
        mut kernel_sets: Vec<Vec<String>>,
        fit: Fit,
        dataset: &Dataset,
    ) -> Result<Self> {
        if kernel_sets.is_empty() {
            kernel_sets.push(args.fit.kernel.clone());
        }
        let metric = metric(args.fit.metric.as_deref(), &fit.frame.goal)?;
        if fit.frame.goal == Goal::OneClass && (fit.frame.target.is_none() || args.inlier.is_none())
        {
            bail!(
                "machine {} learns without labels, so there is nothing to choose by; name a column that tells inliers with --target \
                 COLUMN --inlier VALUE",
                args.fit.machine
            );
        }
        let machine = choices::machine(&args.fit)?;
        let sharings = wanted.sharings(&args.fit, dataset.tasks.len())?;
        let grid =
            Grid::new(&machine, &sharings, kernel_sets.len(), &wanted.axes).map_err(|error| {
                match error {
                    mtmkl::Error::Unknown { name, known, .. } => anyhow!(
                        "--grid {name}=…: expected a parameter of the machine or of one of the sharings in the grid: {known}"
                    ),
                    other => other.into(),
                }
            })?;
        let (splits, split) = splits(args, &fit)?;
        let folds = splits
            .iter()
            .map(|split| fold_of(split, &fit.train, dataset))
            .collect();
        Ok(Self {
            fit,
            metric,
            inlier: args.inlier.clone(),
            grid,
            kernel_sets,
            registry: args.fit.registry.clone(),
            folds,
            split,
            tasks: dataset.tasks.clone(),
            rows: dataset.rows.clone(),
        })
    }

    /// Fits every cell on every fold that the journal does not have; `None` where it was interrupted.
    fn search(
        &self,
        args: &TuneArgs,
        path: &Path,
        dataset: &Dataset,
        stop: &mtmkl::Stop,
    ) -> Result<Option<(Vec<Finished>, usize)>> {
        let spec = choices::problem(&args.fit, self.tasks.len())?;
        check_columns(&spec, &self.fit.frame, &self.fit.table, args.fit.normalize)?;
        let located = |error| self.fit.located(error, &self.rows, &self.tasks, &args.fit);
        let sets = self.positions(&spec.kernels)?;
        let problem = usual_problem(
            mtmkl::ProblemSpec {
                machine: self.grid.cells()[0].machine.clone(),
                sharing: self.grid.cells()[0].sharing.clone(),
                ..spec
            },
            args.fit.normalize,
            dataset.samples.clone(),
            dataset.tasks.clone(),
        )
        .map_err(located)?;
        let search = Search::new(&problem, &sets, &self.grid, &self.folds).map_err(|error| {
            match &error {
                mtmkl::Error::Data {
                    place,
                    problem: DataProblem::OneClass { .. },
                } => anyhow!(
                    "{place}: in one of the folds all rows to learn from are of one class; take fewer folds, or another --group"
                ),
                _ => located(error),
            }
        })?;
        let weights = self.fit.fold_weights(dataset, &self.folds)?;
        let search = match &weights {
            Some(weights) => search.with_weights(weights).map_err(located)?,
            None => search,
        };
        let mut silent = Progress::new(false, true, args.fit.tol);
        let fitting = fitting_of(&args.fit, stop, &mut silent)?;
        // Said now: a journal without results would be in the way of the next try.
        fitting.check().map_err(located)?;
        let preparation = preparation_of(&args.fit, &self.fit.ledger)?;
        let (journal, lines) = Journal::open(
            path,
            "mtmkl tune",
            &self.fingerprint(&args.fit, dataset)?,
            args.resume,
        )?;
        let mut done: BTreeMap<(usize, usize), Finished> = BTreeMap::new();
        for line in lines {
            let finished: Finished = serde_json::from_value(line)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            done.insert((finished.cell, finished.fold), finished);
        }
        let known = done.len();
        let total = self.grid.cells().len() * self.folds.len();
        let limits = Limits {
            tolerance: fitting.tolerance,
            max_passes: fitting.max_passes,
            time_limit: fitting.time_limit,
            seed: fitting.seed,
            warm: true,
            stop: stop.clone(),
        };
        let starts = Starts::beside(path, &args.fit.registry);
        let fits = Fits::new(args.fit.quiet || args.fit.json, total, known);
        if known < total {
            let prepared = problem.prepare(&preparation).map_err(located)?;
            note_storage(&prepared);
            let done = Mutex::new(&mut done);
            let kept = |cell: usize, fold: usize| {
                let done = done
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner);
                done.contains_key(&(cell, fold))
            };
            let chains = self.grid.chains(self.folds.len());
            let workers = search.at_a_time(&prepared).map_err(located)?;
            let workers = workers.min(chains.len());
            let pools = Pool::for_jobs(workers, args.fit.threads).map_err(located)?;
            in_parallel(chains.len(), &pools, |number, pool| -> Result<()> {
                if stop.is_requested() {
                    return Ok(());
                }
                let (chain, last) =
                    starts.rest(&chains[number], |cell| kept(cell, chains[number].fold));
                let mut failure = None;
                let mut before = None;
                let tell = |trial: Trial<'_>| match starts
                    .keep(trial.fold, trial.cell, trial.model)
                    .and_then(|()| self.keep(&trial, dataset, &journal))
                {
                    Ok(finished) => {
                        if let Some(cell) = before.replace(finished.cell) {
                            starts.forget(finished.fold, cell);
                        }
                        fits.advance(&format!(
                            "{} {:.4}",
                            self.metric.name(),
                            finished.score.unwrap_or(f64::NAN)
                        ));
                        let mut done = done
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner);
                        done.insert((finished.cell, finished.fold), finished);
                        ControlFlow::Continue(())
                    }
                    Err(error) => {
                        failure = Some(error);
                        ControlFlow::Break(())
                    }
                };
                search
                    .follow(&prepared, &chain, last, &limits, pool, tell)
                    .map_err(located)?;
                failure.map_or(Ok(()), Err)
            })?;
        }
        fits.finish();
        if done.len() < total {
            output::note(&format!(
                "mtmkl: stopped; {} of {} are kept in {}. The same command with --resume goes on from there",
                done.len(),
                count(total, "fit", "fits"),
                path.display()
            ));
            return Ok(None);
        }
        for chain in self.grid.chains(self.folds.len()) {
            for &cell in &chain.cells {
                starts.forget(chain.fold, cell);
            }
        }
        if args.journal.is_none() {
            journal.remove()?;
        }
        Ok(Some((done.into_values().collect(), total - known)))
    }

    /// Scores a trial and writes it down.
    fn keep(&self, trial: &Trial<'_>, dataset: &Dataset, journal: &Journal) -> Result<Finished> {
        let score = self.judge(trial, dataset)?;
        let outcome = trial.model.outcome();
        let there = |value: f64| value.is_finite().then_some(value);
        let finished = Finished {
            cell: trial.cell,
            fold: trial.fold,
            score: there(score.mean),
            tasks: score.tasks.iter().map(|task| there(task.score)).collect(),
            status: outcome.status.name().to_string(),
            converged: outcome.status.is_converged(),
            passes: outcome.trace.len(),
            seconds: trial.seconds,
        };
        journal.add(&serde_json::to_value(&finished)?)?;
        Ok(finished)
    }

    fn judge(&self, trial: &Trial<'_>, dataset: &Dataset) -> Result<Score> {
        let held = &self.folds[trial.fold].held;
        let frame = &self.fit.frame;
        let raw_rows = |set: usize| held[set].iter().map(move |&row| dataset.rows[set][row]);
        let (rows, predictions): (Vec<usize>, Predictions) = match &frame.goal {
            Goal::Multiclass { classes, scheme } => (
                raw_rows(0).collect(),
                Predictions::of_classes(classes, *scheme, &trial.decisions),
            ),
            goal => {
                let machine = trial.model.machine().build();
                // With a task column, each task has a sample set of its own, in the same order.
                let rows: Vec<usize> = (0..held.len()).flat_map(raw_rows).collect();
                let decisions = &trial.decisions;
                let predictions = Predictions::of_decisions(goal, machine.as_ref(), decisions);
                (rows, predictions)
            }
        };
        score(
            frame,
            &self.fit.records.select(&rows),
            &predictions,
            self.inlier.as_deref(),
            self.metric,
        )
    }

    /// The kernel sets as positions among all kernels.
    fn positions(&self, kernels: &[mtmkl::kernel::KernelView]) -> Result<Vec<Vec<usize>>> {
        if self.kernel_sets.len() == 1 {
            return Ok(vec![(0..kernels.len()).collect()]);
        }
        self.kernel_sets
            .iter()
            .map(|set| {
                let mut positions = Vec::new();
                for spec in set {
                    for view in self.registry.parse_kernels(spec)? {
                        let at = kernels.iter().position(|known| known.name == view.name);
                        positions.push(
                            at.with_context(|| format!("kernel `{}` is not there", view.name))?,
                        );
                    }
                }
                Ok(positions)
            })
            .collect()
    }

    /// Of everything that scores depend on.
    fn fingerprint(&self, args: &FitArgs, dataset: &Dataset) -> Result<Fingerprint> {
        let mut fingerprint = Fingerprint::default();
        let records = &self.fit.records;
        fingerprint.bytes(serde_json::to_string(self.grid.cells())?.as_bytes());
        for text in self.kernel_sets.iter().flatten().chain(&args.kernel) {
            fingerprint.bytes(text.as_bytes());
        }
        fingerprint
            .bytes(format!("{:?} {:?} {:?}", self.metric, self.inlier, self.folds).as_bytes())
            .bytes(
                format!(
                    "{} {:?} {:?} {} {} {}",
                    args.solver,
                    args.normalize,
                    args.target_scale,
                    args.precision,
                    args.tol,
                    args.max_passes
                )
                .as_bytes(),
            )
            .bytes(format!("{:?} {} {:?}", args.time_limit, args.seed, self.fit.frame).as_bytes())
            .bytes(format!("{:?} {:?}", records.target, records.task).as_bytes())
            .bytes(format!("{:?}", args.class_weight).as_bytes())
            .numbers(records.numbers.as_deref().unwrap_or_default())
            .numbers(records.weights.as_deref().unwrap_or_default());
        for set in &dataset.samples {
            fingerprint.numbers(set.rows().values());
        }
        for (name, gram) in &self.fit.grams {
            fingerprint.bytes(name.as_bytes()).numbers(&gram.values);
        }
        Ok(fingerprint)
    }
}
