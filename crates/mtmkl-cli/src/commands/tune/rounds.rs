//! The fits themselves, round by round: each is in the journal as soon as it is done.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow};
use mtmkl::error::DataProblem;
use mtmkl::select::{Chain, Limits, Search, Trial, in_parallel, usual_problem};
use mtmkl::{Pool, Prepared, Problem, ProblemSpec, Stop};
use mtmkl_table::Dataset;

use super::plan::{Done, Plan};
use super::starts::Starts;
use super::{Finished, Tune};
use crate::args::TuneArgs;
use crate::commands::fit::{check_columns, fitting_of, note_storage, preparation_of};
use crate::journal::Journal;
use crate::progress::{Fits, Progress};
use crate::words::count;
use crate::{choices, output};

/// What all rounds share.
struct Rounds<'a> {
    tune: &'a Tune,
    args: &'a TuneArgs,
    dataset: &'a Dataset,
    problem: Problem,
    kernel_sets: Vec<Vec<usize>>,
    /// By fold and task, where classes have weights.
    weights: Option<Vec<Vec<Vec<f64>>>>,
    limits: Limits,
    journal: Journal,
    /// Where chains of a grid are gone on from. Those of the usual search are short, and are begun anew.
    starts: Option<Starts>,
    done: Mutex<Done>,
    fits: Fits,
}

impl Tune {
    /// Fits every cell that the plan asks for on every fold, where the journal does not have it; how many were computed, and `None` where it was
    /// interrupted.
    pub(super) fn search(
        &mut self,
        args: &TuneArgs,
        path: &Path,
        dataset: &Dataset,
        stop: &Stop,
    ) -> Result<Option<(Done, usize)>> {
        let mut plan = self.plan.clone();
        let rounds = self.rounds(args, path, dataset, stop)?;
        let known = rounds.done().len();
        let mut prepared = None;
        loop {
            let chains = plan.next(self.folds.len(), &rounds.done(), self.metric);
            if chains.is_empty() {
                break;
            }
            rounds.fit(&plan, &chains, &mut prepared)?;
            let missing = rounds.missing(&chains);
            if missing > 0 {
                rounds.fits.finish();
                let kept = rounds.done().len();
                output::note(&format!(
                    "mtmkl: stopped; {kept} of {} are kept in {}. The same command with --resume goes on from there",
                    count(kept + missing, "fit", "fits"),
                    path.display()
                ));
                return Ok(None);
            }
            if let Some(starts) = &rounds.starts {
                for chain in &chains {
                    for &cell in &chain.cells {
                        starts.forget(chain.fold, cell);
                    }
                }
            }
        }
        rounds.fits.finish();
        let done = rounds.done.into_inner();
        let done = done.unwrap_or_else(PoisonError::into_inner);
        self.plan = plan;
        let computed = done.len() - known;
        Ok(Some((done, computed)))
    }

    /// Everything that is checked before the first fit.
    fn rounds<'a>(
        &'a self,
        args: &'a TuneArgs,
        path: &Path,
        dataset: &'a Dataset,
        stop: &Stop,
    ) -> Result<Rounds<'a>> {
        let levels = self.fit.levels(&args.fit, &self.tasks)?;
        let spec = choices::problem(
            &args.fit,
            self.fit.tasks(self.tasks.len()),
            &levels,
            self.fit.between(),
        )?;
        check_columns(&spec, &self.fit.frame, &self.fit.table, args.fit.normalize)?;
        let located = |error| self.fit.located(error, &self.rows, &self.tasks, &args.fit);
        let kernel_sets = self.positions(&args.fit, &spec.kernels)?;
        // The first cells of the usual search say whether the rest can be fitted.
        let mut first = self.plan.clone();
        first.next(self.folds.len(), &Done::new(), self.metric);
        let cell = &first.cells()[0];
        let problem = usual_problem(
            ProblemSpec {
                machine: cell.machine.clone(),
                sharing: cell.sharing.clone(),
                ..spec
            },
            args.fit.normalize,
            dataset.samples.clone(),
            dataset.tasks.clone(),
        )
        .map_err(located)?;
        Search::new(&problem, &kernel_sets, first.grid(), &self.folds).map_err(|error| {
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
        let mut silent = Progress::new(false, true, args.fit.tol);
        let fitting = fitting_of(&args.fit, stop, &mut silent)?;
        // Said now: a journal without results would be in the way of the next try.
        fitting.check().map_err(located)?;
        preparation_of(&args.fit, &self.fit.ledger)?;
        let limits = Limits {
            tolerance: fitting.tolerance.max(self.least),
            ..Limits::from(&fitting)
        };
        let (journal, done) = self.journal(args, path, dataset)?;
        let starts = Starts::beside(path, &args.fit.registry);
        Ok(Rounds {
            tune: self,
            args,
            dataset,
            problem,
            kernel_sets,
            weights: self.fit.fold_weights(dataset, &self.folds)?,
            limits,
            journal,
            starts: (!self.plan.is_usual()).then_some(starts),
            fits: Fits::new(args.fit.quiet || args.fit.json),
            done: Mutex::new(done),
        })
    }

    /// The journal and the fits that it has.
    fn journal(&self, args: &TuneArgs, path: &Path, dataset: &Dataset) -> Result<(Journal, Done)> {
        let fingerprint = self.fingerprint(&args.fit, dataset)?;
        let (journal, lines) = Journal::open(path, "mtmkl tune", &fingerprint, args.resume)?;
        let mut done = Done::new();
        for line in lines {
            let finished: Finished = serde_json::from_value(line)
                .with_context(|| format!("{} cannot be read", path.display()))?;
            done.insert((finished.cell, finished.fold), finished);
        }
        Ok((journal, done))
    }
}

impl Rounds<'_> {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn missing(&self, chains: &[Chain]) -> usize {
        let done = self.done();
        let fits = chains
            .iter()
            .flat_map(|chain| chain.cells.iter().map(|&cell| (cell, chain.fold)));
        fits.filter(|fit| !done.contains_key(fit)).count()
    }

    /// One round: what is missing of these chains. The Gram matrices are made when the first fit needs them.
    fn fit(&self, plan: &Plan, chains: &[Chain], prepared: &mut Option<Prepared>) -> Result<()> {
        let (tune, args) = (self.tune, self.args);
        let located = |error| tune.fit.located(error, &tune.rows, &tune.tasks, &args.fit);
        let all: usize = chains.iter().map(|chain| chain.cells.len()).sum();
        let missing = self.missing(chains);
        self.fits.expect(all, all - missing);
        if missing == 0 {
            return Ok(());
        }
        let search = Search::new(&self.problem, &self.kernel_sets, plan.grid(), &tune.folds)
            .map_err(located)?;
        let search = match &self.weights {
            Some(weights) => search.with_weights(weights).map_err(located)?,
            None => search,
        };
        if prepared.is_none() {
            let preparation = preparation_of(&args.fit, &tune.fit.ledger)?;
            let made = self.problem.prepare(&preparation).map_err(located)?;
            note_storage(&args.fit, &made);
            *prepared = Some(made);
        }
        let Some(prepared) = prepared.as_ref() else {
            return Ok(());
        };
        let workers = search.at_a_time(prepared).map_err(located)?;
        let pools = Pool::for_jobs(workers.min(chains.len()), args.fit.threads).map_err(located)?;
        in_parallel(chains.len(), &pools, |number, pool| {
            if self.limits.stop.is_requested() {
                return Ok(());
            }
            self.follow(&search, prepared, &chains[number], pool)
        })
    }

    /// Fits what is missing of a chain.
    fn follow(
        &self,
        search: &Search<'_>,
        prepared: &Prepared,
        chain: &Chain,
        pool: &Pool,
    ) -> Result<()> {
        let tune = self.tune;
        let is_done = |cell: usize| self.done().contains_key(&(cell, chain.fold));
        let (rest, last) = match &self.starts {
            Some(starts) => starts.rest(chain, is_done),
            None if chain.cells.iter().all(|&cell| is_done(cell)) => return Ok(()),
            None => (chain.clone(), None),
        };
        let mut failure = None;
        let mut before = None;
        let tell = |trial: Trial<'_>| {
            // Fitted once more, so that the next one starts where it would have.
            if is_done(trial.cell) {
                return ControlFlow::Continue(());
            }
            let kept = self.starts.as_ref().map_or(Ok(()), |starts| {
                starts.keep(trial.fold, trial.cell, trial.model)
            });
            match kept.and_then(|()| tune.keep(&trial, self.dataset, &self.journal)) {
                Ok(finished) => {
                    if let (Some(starts), Some(cell)) =
                        (&self.starts, before.replace(finished.cell))
                    {
                        starts.forget(finished.fold, cell);
                    }
                    let score = finished.score.unwrap_or(f64::NAN);
                    self.fits
                        .advance(&format!("{} {score:.4}", tune.metric.name()));
                    self.done().insert((finished.cell, finished.fold), finished);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        search
            .follow(prepared, &rest, last, &self.limits, pool, tell)
            .map_err(|error| {
                tune.fit
                    .located(error, &tune.rows, &tune.tasks, &self.args.fit)
            })?;
        failure.map_or(Ok(()), Err)
    }
}
