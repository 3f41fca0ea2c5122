//! Simpler models on the same rows: the uniform average, the best single kernel, all tasks pooled, each task alone.

use std::ops::ControlFlow;
use std::sync::Mutex;

use anyhow::Result;
use mtmkl::select::{
    Fold, Grid, Limits, Metric, Search, Tasks, Trial, in_parallel, split, usual_problem,
};
use mtmkl::sharing::SharingSpec;
use mtmkl::{Model, Pool, Prepared};
use mtmkl_table::{Equals, Goal, Predictions, strata};

use super::judge::{Judged, Trained};
use super::limits::{fitting_of, preparation_of};
use super::open::Fit;
use crate::args::FitArgs;
use crate::choices;
use crate::progress::Progress;
use crate::score::{metric, score};

/// Without being asked, baselines are fitted where (all rows)² × kernels × (machines on a row) is at most this: a second or so.
const LITTLE: f64 = 5e7;

/// Folds of the training rows that a single kernel is chosen on.
const FOLDS: usize = 3;

/// Which of them, for one fit.
pub(super) enum Wanted {
    /// Those that differ from the model.
    All,
    /// None, and why in words where someone may wonder.
    None(Option<String>),
}

impl Wanted {
    /// By the flags, and by what they would cost.
    pub(super) fn of(fit: &Fit, args: &FitArgs, held_out: bool, trained: &Trained<'_>) -> Self {
        if args.no_baselines || trained.stop.is_requested() {
            return Self::None(None);
        }
        if args.baselines {
            return Self::All;
        }
        let shape = trained.model.shape();
        let rows: usize = trained.rows.iter().map(Vec::len).sum();
        let machines = shape.tasks.div_ceil(trained.rows.len());
        let cost = (rows * rows) as f64 * (shape.kernels * machines) as f64;
        let why = if !held_out || fit.frame.goal == Goal::OneClass {
            return Self::None(None);
        } else if args.time_limit.is_some() {
            "time is short"
        } else if cost > LITTLE {
            "they would take a while"
        } else {
            return Self::All;
        };
        Self::None(Some(format!(
            "no simpler models beside it, since {why}; --baselines fits them"
        )))
    }
}

/// A baseline's name, and what it says of the rows to judge by.
type Answers = Vec<(String, Predictions)>;

impl Fit {
    /// The answers of all baselines that differ from the model, and remarks about those that cannot be. What Ctrl-C cuts short is left out.
    pub(super) fn baselines(
        &self,
        args: &FitArgs,
        wanted: &Wanted,
        judged: &Judged,
        trained: &Trained<'_>,
    ) -> Result<(Answers, Vec<String>)> {
        let (mut answers, mut remarks) = (Answers::new(), Vec::new());
        if let Wanted::None(why) = wanted {
            remarks.extend(why.clone());
            return Ok((answers, remarks));
        }
        let kernels = trained.model.kernels();
        let sharing = trained.model.sharing().name();
        let with = |sharing: &SharingSpec| -> Result<Predictions> {
            let prepared = trained.prepared.with(trained.model.machine(), sharing)?;
            let model = quietly(args, trained, &prepared)?;
            let (own, rows) = ((&self.frame, &judged.records), trained.training_rows);
            self.predictions(judged, own, rows, (&model, None), trained.prepared)
        };
        let mut add = |name: String, answer: Predictions| {
            if !trained.stop.is_requested() {
                answers.push((name, answer));
            }
        };
        if kernels.len() > 1 && sharing != "uniform" {
            add("uniform".to_string(), with(&SharingSpec::uniform())?);
        }
        // Without known answers nothing can be chosen, and no answer is right or wrong.
        let is_judged = self.frame.goal != Goal::OneClass;
        if kernels.len() > 1 && is_judged {
            match self.best_single(args, trained) {
                Ok(Some(best)) => {
                    let mut weights = vec![0.0; kernels.len()];
                    weights[best] = 1.0;
                    let name = format!("best single: {}", kernels[best].name);
                    add(name, with(&SharingSpec::fixed(weights))?);
                }
                Ok(None) => {}
                Err(error) => remarks.push(format!("no single kernel could be chosen: {error:#}")),
            }
        }
        let is_transfer = self.frame.transfer.is_some();
        if self.frame.task.is_some() && is_judged && (trained.rows.len() > 1 || is_transfer) {
            match self.pooled(args, judged, trained) {
                Ok(answer) => add("pooled".to_string(), answer),
                Err(error) => remarks.push(format!("the tasks could not be pooled: {error:#}")),
            }
            if sharing != "independent" && !is_transfer {
                let mut own = args.clone();
                own.sharing = Some("independent".to_string());
                let sharing = choices::sharing(&own, Tasks::Several, &[])?;
                add("each alone".to_string(), with(&sharing)?);
            }
        }
        Ok((answers, remarks))
    }

    /// One machine for the rows of all tasks.
    fn pooled(
        &self,
        args: &FitArgs,
        judged: &Judged,
        trained: &Trained<'_>,
    ) -> Result<Predictions> {
        let (mut frame, mut records) = (self.frame.clone(), self.records.clone());
        let mut asked = judged.records.clone();
        (frame.task, records.task, asked.task) = (None, None, None);
        frame.transfer = None;
        frame.learn_classes(&records, &self.train);
        let dataset = self.dataset(&frame, &records, &self.train, Equals::Merged)?;
        let rows = self.training_rows(&dataset.rows);
        let mut own = args.clone();
        own.sharing = None;
        let mut spec = choices::problem(&own, Tasks::new(dataset.tasks.len(), true), &[], None)?;
        crate::transfer::forget(&mut spec.kernels);
        let problem = usual_problem(spec, args.normalize, dataset.samples, dataset.tasks)?;
        let prepared = problem.prepare(&preparation_of(args, &self.ledger)?)?;
        let model = quietly(args, trained, &prepared)?;
        self.predictions(judged, (&frame, &asked), &rows, (&model, None), &prepared)
    }

    /// The kernel that does best alone, by cross-validation on the training rows; the rows to judge by have no say.
    fn best_single(&self, args: &FitArgs, trained: &Trained<'_>) -> Result<Option<usize>> {
        let main = metric(args.metric.as_deref(), &self.frame.goal, true)?;
        // Decisions on folds are no probabilities.
        let main = if main.is_for_probabilities() {
            Metric::Accuracy
        } else {
            main
        };
        let problem = trained.prepared.problem();
        let sets: Vec<Vec<usize>> = (0..problem.spec().kernels.len())
            .map(|kernel| vec![kernel])
            .collect();
        let machine = trained.model.machine();
        let grid = Grid::new(machine, &[SharingSpec::uniform()], sets.len(), &[])?;
        let folds = self.folds(args, trained.rows)?;
        let search = Search::new(problem, &sets, &grid, &folds)?;
        let mut silent = Progress::new(false, true, args.tol);
        let fitting = fitting_of(args, trained.stop, &mut silent)?;
        let limits = Limits {
            warm: false,
            ..Limits::from(&fitting)
        };
        let chains = grid.chains(folds.len());
        let workers = search.at_a_time(trained.prepared)?.min(chains.len());
        let pools = Pool::for_jobs(workers, args.threads)?;
        let scores = Mutex::new(vec![vec![f64::NAN; folds.len()]; sets.len()]);
        in_parallel(chains.len(), &pools, |number, pool| -> Result<()> {
            let mut failure = None;
            let tell = |trial: Trial<'_>| {
                match self.score_of(&trial, &folds[trial.fold], trained.rows, main) {
                    Ok(own) => {
                        let mut scores = scores
                            .lock()
                            .unwrap_or_else(std::sync::PoisonError::into_inner);
                        scores[trial.cell][trial.fold] = own;
                    }
                    Err(error) => failure = Some(error),
                }
                ControlFlow::Continue(())
            };
            search.follow(trained.prepared, &chains[number], None, &limits, pool, tell)?;
            failure.map_or(Ok(()), Err)
        })?;
        if trained.stop.is_requested() {
            return Ok(None);
        }
        let scores = scores
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let means: Vec<f64> = scores
            .iter()
            .map(|own| own.iter().sum::<f64>() / own.len() as f64)
            .collect();
        let mut best = 0;
        for kernel in 1..means.len() {
            if main.is_better(means[kernel], means[best]) {
                best = kernel;
            }
        }
        Ok(Some(best))
    }

    /// The training rows in folds, each with the mix of tasks and classes; classes with fewer rows than folds are learned from only.
    fn folds(&self, args: &FitArgs, rows: &[Vec<usize>]) -> Result<Vec<Fold>> {
        let sets = rows.iter().enumerate();
        let places: Vec<(usize, usize)> = sets
            .flat_map(|(set, rows)| (0..rows.len()).map(move |at| (set, at)))
            .collect();
        let all: Vec<usize> = rows.iter().flatten().copied().collect();
        let strata = split::numbered(&strata(&self.frame, &self.records, &all));
        let mut counts = vec![0_usize; all.len()];
        for &stratum in &strata {
            counts[stratum] += 1;
        }
        let (many, few): (Vec<usize>, Vec<usize>) =
            (0..all.len()).partition(|&row| counts[strata[row]] >= FOLDS);
        let by_set = |chosen: &mut dyn Iterator<Item = usize>| {
            let mut sets = vec![Vec::new(); rows.len()];
            for row in chosen {
                let (set, at) = places[row];
                sets[set].push(at);
            }
            sets
        };
        let own: Vec<usize> = many.iter().map(|&row| strata[row]).collect();
        let folds = split::k_fold(&own, None, FOLDS, args.seed)?;
        let folds = folds.iter().map(|fold| {
            let learn = fold.train.iter().map(|&row| many[row]);
            let held = fold.validation.iter().map(|&row| many[row]);
            Fold {
                learn: by_set(&mut learn.chain(few.iter().copied())),
                held: by_set(&mut { held }),
            }
        });
        Ok(folds.collect())
    }

    /// How good a fit is on the rows of a fold that it did not see.
    fn score_of(
        &self,
        trial: &Trial<'_>,
        fold: &Fold,
        rows: &[Vec<usize>],
        main: Metric,
    ) -> Result<f64> {
        let goal = &self.frame.goal;
        let predictions = Predictions::of_decisions(goal, trial.model, &trial.decisions);
        let held = fold.held.iter().zip(rows);
        let held: Vec<usize> = held
            .flat_map(|(held, rows)| held.iter().map(|&row| rows[row]))
            .collect();
        let records = self.records.select(&held);
        Ok(score(&self.frame, &records, &predictions, None, main)?.mean)
    }
}

/// A fit that shows nothing.
fn quietly(args: &FitArgs, trained: &Trained<'_>, prepared: &Prepared) -> Result<Model> {
    let mut silent = Progress::new(false, true, args.tol);
    Ok(prepared.fit(&mut fitting_of(args, trained.stop, &mut silent)?)?)
}
