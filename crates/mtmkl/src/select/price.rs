//! One number for the price of an error, chosen by the data: C, λ.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use super::leave_one_out::LeaveOneOut;
use super::metric::Metric;
use super::search::{Fold, Limits, Search, Trial};
use super::threads::in_parallel;
use super::usual_search::{UsualSearch, Verdict};
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::gram::{CombinedRows, TaskGrams};
use crate::machine::{Conjugate, weight};
use crate::pool::Pool;
use crate::problem::{Prepared, Problem, TargetScale};

/// With more samples than this, the eigenvalues of leave-one-out take longer than folds.
const LARGEST: usize = 2000;
/// Ridges are 10^{k/4}, k from …
const LEAST: i32 = -24;
/// … to.
const MOST: i32 = 16;

/// A price that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The machine's parameter.
    pub parameter: &'static str,
    /// Its value.
    pub value: f64,
    /// What it was chosen by, in words.
    pub by: String,
}

impl Prepared {
    /// The price of an error that predicts best with all weights equal, of the problem's machine: λ by the leave-one-out error in closed form
    /// for a ridge, C by 5 folds otherwise. One number for all tasks.
    ///
    /// It is chosen by the mean of `metric` over the tasks where it is a number, of each machine by itself; where none is named, or one of
    /// probabilities, by what errors cost. By a metric of order it is the middle of the prices within one standard
    /// error of the best.
    ///
    /// It is looked for at θ = 1/M. Weights of another size, as the sharing has them at its start, make kernels r times as large, and rK with C/r
    /// or rλ is the same machine: the price is that one.
    ///
    /// # Errors
    /// When the machine has no price, a class of a task has fewer than two samples, or as [`Prepared::fit`].
    pub fn usual_price(&self, metric: Option<Metric>, limits: &Limits) -> Result<Price> {
        let machine = &self.problem().spec().machine;
        let Some(parameter) = UsualSearch::price_of(machine) else {
            let expected = "a machine with C, lambda or nu, and targets to choose it by";
            return Err(Error::param("machine", machine.name(), expected));
        };
        let ratio = self.ratio();
        let is_centred = self.problem().spec().target_scale == TargetScale::Standard;
        let metric = metric.filter(|metric| !metric.is_for_probabilities());
        let by_squares = matches!(metric, None | Some(Metric::R2 | Metric::Rmse));
        if let (true, Some(folds)) = (by_squares, self.leave_one_out()) {
            let loss = |lambda: f64| -> f64 {
                folds.iter().map(|task| task.loss(lambda, is_centred)).sum()
            };
            let ridges = (LEAST..=MOST).map(|k| 10_f64.powf(f64::from(k) / 4.0));
            let losses = ridges.map(|lambda| (lambda, loss(lambda)));
            // Of equal ones the larger.
            let best = losses.reduce(|best, one| if one.1 <= best.1 { one } else { best });
            return Ok(Price {
                parameter,
                value: ratio * best.map_or(1.0, |(lambda, _)| lambda),
                by: "leave-one-out errors".to_string(),
            });
        }
        let mut price = self.price_by_folds(parameter, metric, limits)?;
        match parameter {
            "C" => price.value /= ratio,
            "lambda" => price.value *= ratio,
            _ => {}
        }
        Ok(price)
    }

    /// The same problem at its usual price, and that price.
    ///
    /// # Errors
    /// As [`Prepared::usual_price`].
    pub fn at_usual_price(&self, metric: Option<Metric>, limits: &Limits) -> Result<(Self, Price)> {
        let price = self.usual_price(metric, limits)?;
        let spec = self.problem().spec();
        let mut machine = spec.machine.clone();
        machine.set(price.parameter, price.value);
        Ok((self.with(&machine, &spec.sharing)?, price))
    }

    /// How much larger the sharing's weights are at its start than 1/M, on the mean.
    fn ratio(&self) -> f64 {
        let sharing = self.problem().sharing();
        let theta = sharing.theta(&sharing.start());
        let mean = theta.values().iter().sum::<f64>() / theta.rows() as f64;
        if mean > 0.0 { mean } else { 1.0 }
    }

    /// The errors of each task, where its machine is a ridge and small enough.
    fn leave_one_out(&self) -> Option<Vec<LeaveOneOut>> {
        let problem = self.problem();
        let machine = problem.spec().machine.build();
        let count = |task: &Task| task.count(problem.samples()[task.samples].count());
        let is_ridge = |task: &Task| {
            let dual = machine.dual(task, count(task));
            matches!(dual.conjugate, Conjugate::Ridge { .. }) && count(task) <= LARGEST
        };
        if !problem.tasks().iter().all(is_ridge) {
            return None;
        }
        let kernels = problem.shape().kernels;
        let of_task = |task: &Task| {
            let (grams, positions) = self.whole(task.samples);
            let mut theta = vec![0.0; grams.kernels()];
            for &kernel in positions {
                theta[kernel] = 1.0 / kernels as f64;
            }
            let view = TaskGrams {
                grams: grams.as_ref(),
                view: &task.rows,
            };
            let rows = CombinedRows::new(view, &theta);
            let matrix: Vec<f64> = (0..rows.count())
                .flat_map(|i| rows.with_row(i, <[f64]>::to_vec))
                .collect();
            let Targets::Values(targets) = &task.targets else {
                return None;
            };
            let ones = vec![1.0; targets.len()];
            LeaveOneOut::new(matrix, targets, task.weights.as_deref().unwrap_or(&ones))
        };
        problem.learned().iter().map(of_task).collect()
    }

    /// Up and down the ladder from three prices, until the best is between two others.
    fn price_by_folds(
        &self,
        parameter: &'static str,
        metric: Option<Metric>,
        limits: &Limits,
    ) -> Result<Price> {
        let problem = self.problem();
        let folds = self.folds(limits.seed)?;
        let held: Vec<usize> = folds
            .iter()
            .map(|fold| fold.held.iter().map(Vec::len).sum())
            .collect();
        let mut search = UsualSearch::of_price(&problem.spec().machine, &held);
        let kernel_sets = [(0..problem.shape().kernels).collect::<Vec<usize>>()];
        let limits = Limits {
            tolerance: limits.tolerance.max(UsualSearch::TOLERANCE),
            ..limits.clone()
        };
        let has_odds = problem.spec().machine.has_probabilities();
        let done: Mutex<BTreeMap<(usize, usize), Verdict>> = Mutex::default();
        let known = || done.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let chains = search.next(|cell, fold| known().get(&(cell, fold)).copied());
            if chains.is_empty() {
                break;
            }
            let fits = Search::new(problem, &kernel_sets, search.grid(), &folds)?;
            let workers = fits.at_a_time(self)?.min(chains.len());
            let pools = Pool::for_jobs(workers, self.pool().threads())?;
            in_parallel(chains.len(), &pools, |number, pool| {
                let tell = |trial: Trial<'_>| {
                    let fold = &folds[trial.fold];
                    let score = match metric {
                        None => score(problem.tasks(), fold, &trial, has_odds),
                        Some(metric) => mean_of(metric, problem, fold, &trial),
                    };
                    let machine = &search.grid().cells()[trial.cell].machine;
                    let finer = match (parameter, metric) {
                        // Of ridges that are as good the larger, as with leave-one-out: systems with the smallest cannot be solved well.
                        ("lambda", _) => machine.number(parameter),
                        // An order has no ties for margins to break.
                        (_, Some(metric)) if metric.is_of_order() => score,
                        _ => trial.finer,
                    };
                    let verdict = Verdict { score, finer };
                    known().insert((trial.cell, trial.fold), verdict);
                    ControlFlow::Continue(())
                };
                fits.follow(self, &chains[number], None, &limits, pool, tell)
            })?;
            if limits.stop.is_requested() {
                break;
            }
        }
        let mut best = search.best(|cell, fold| known().get(&(cell, fold)).copied());
        let cells = search.grid().cells();
        if metric.is_some_and(Metric::is_of_order) {
            let price = |cell: usize| cells[cell].machine.number(parameter);
            let of_cell = |cell: usize| -> Option<Vec<f64>> {
                let own = (0..folds.len()).map(|fold| Some(known().get(&(cell, fold))?.score));
                own.collect()
            };
            let scores: Vec<_> = (0..cells.len()).map(of_cell).collect();
            best = middle_within_one_error(&scores, price, best);
        }
        let value = cells.get(best).and_then(|cell| cell.machine.get(parameter));
        Ok(Price {
            parameter,
            value: value.unwrap_or_else(|| problem.spec().machine.number(parameter)),
            by: match metric {
                None => format!("{} folds", folds.len()),
                Some(metric) => format!("{} on {} folds", metric.name(), folds.len()),
            },
        })
    }
}

/// Of the cells that folds cannot tell from the best one, the one with the middle price.
fn middle_within_one_error(
    scores: &[Option<Vec<f64>>],
    price: impl Fn(usize) -> f64,
    best: usize,
) -> usize {
    let mut near = within_one_error(scores, best);
    near.sort_by(|&a, &b| price(a).total_cmp(&price(b)));
    let middle = near.len().saturating_sub(1) / 2;
    near.get(middle).copied().unwrap_or(best)
}

/// The cells whose mean is within one standard error of the best one's, the deviation of its folds over √folds. Where a class has few rows, folds tell
/// such prices apart by chance, and the middle of them is closer to the best price than the one that happens to win.
fn within_one_error(scores: &[Option<Vec<f64>>], best: usize) -> Vec<usize> {
    let mean = |own: &[f64]| own.iter().sum::<f64>() / own.len() as f64;
    let Some(top) = scores.get(best).and_then(Option::as_deref) else {
        return Vec::new();
    };
    let squares: f64 = top.iter().map(|score| (score - mean(top)).powi(2)).sum();
    let count = top.len() as f64;
    let least = mean(top) - (squares / (count - 1.0).max(1.0) / count).sqrt();
    let is_near = |own: &Option<Vec<f64>>| own.as_deref().is_some_and(|own| mean(own) >= least);
    (0..scores.len())
        .filter(|&cell| is_near(&scores[cell]))
        .collect()
}

/// The mean over tasks of a metric, where it is a number; more is better.
fn mean_of(metric: Metric, problem: &Problem, fold: &Fold, trial: &Trial<'_>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (task, decisions) in problem.tasks().iter().zip(&trial.decisions) {
        let (Targets::Labels(truth) | Targets::Values(truth)) = &task.targets else {
            continue;
        };
        let held = fold.held[task.samples].iter().copied();
        let decided: BTreeMap<usize, f64> = held.zip(decisions.iter().copied()).collect();
        // Tasks that one machine learns together are judged each by itself.
        let origins = problem.samples()[task.samples].origins();
        let mut own: BTreeMap<usize, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        let rows = (0..).map_while(|i| task.rows.get(i, usize::MAX));
        for (value, row) in truth.iter().zip(rows) {
            if let Some(decision) = decided.get(&row) {
                let pairs = own.entry(origins.map_or(0, |origins| origins.of[row]));
                let (values, told) = pairs.or_default();
                values.push(*value);
                told.push(*decision);
            }
        }
        for (values, told) in own.values() {
            let score = match task.targets {
                Targets::Labels(_) => metric.of_labels(values, told),
                _ => metric.of_numbers(values, told),
            };
            if !score.is_nan() {
                sum += score;
                count += 1.0;
            }
        }
    }
    let mean = sum / count;
    if metric.less_is_better() { -mean } else { mean }
}

/// The share of labels that are right, each counted as often as an error on it costs (of a machine of log-odds, the geometric mean of their
/// probabilities), or 1 − (squared error)/(squared error of the mean), over all tasks.
fn score(tasks: &[Task], fold: &Fold, trial: &Trial<'_>, has_odds: bool) -> f64 {
    let (mut left, mut total, mut right, mut count) = (0.0, 0.0, 0.0, 0.0);
    let mut loss = 0.0;
    for (task, decisions) in tasks.iter().zip(&trial.decisions) {
        let held = &fold.held[task.samples];
        let decided: BTreeMap<usize, f64> = held
            .iter()
            .copied()
            .zip(decisions.iter().copied())
            .collect();
        let rows = (0..)
            .map_while(|i| task.rows.get(i, usize::MAX))
            .enumerate();
        match &task.targets {
            Targets::Labels(labels) => {
                for (label, (at, row)) in labels.iter().zip(rows) {
                    if let Some(decision) = decided.get(&row) {
                        let cost = weight(task, at);
                        count += cost;
                        if (*decision > 0.0) == (*label > 0.0) {
                            right += cost;
                        }
                        let margin = label * decision;
                        loss += cost * ((-margin).max(0.0) + (-margin.abs()).exp().ln_1p());
                    }
                }
            }
            Targets::Values(values) => {
                let own: Vec<(f64, f64)> = values
                    .iter()
                    .zip(rows)
                    .filter_map(|(value, (_, row))| Some((*value, *decided.get(&row)?)))
                    .collect();
                let mean = own.iter().map(|(y, _)| y).sum::<f64>() / own.len().max(1) as f64;
                left += own.iter().map(|(y, f)| (y - f).powi(2)).sum::<f64>();
                total += own.iter().map(|(y, _)| (y - mean).powi(2)).sum::<f64>();
            }
            Targets::Unlabelled => {}
        }
    }
    if count > 0.0 && has_odds {
        (-loss / count).exp()
    } else if count > 0.0 {
        right / count
    } else {
        1.0 - left / total
    }
}

#[cfg(test)]
mod tests {
    use super::within_one_error;

    #[test]
    fn what_is_within_one_standard_error_of_the_best() {
        // Of the best: mean 0.8, deviation 0.1, so 0.05 over four folds.
        let spread = 0.1 * 0.75_f64.sqrt();
        let best = [0.8 - spread, 0.8 + spread, 0.8 - spread, 0.8 + spread];
        let scores = [
            Some(vec![0.76; 4]),
            Some(best.to_vec()),
            Some(vec![0.74; 4]),
            None,
            Some(vec![f64::NAN; 4]),
        ];
        assert_eq!(within_one_error(&scores, 1), [0, 1]);
        assert!(within_one_error(&scores, 3).is_empty());
    }
}
