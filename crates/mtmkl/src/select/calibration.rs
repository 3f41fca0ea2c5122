//! From decision values to probabilities: Platt's sigmoid, on decisions about rows that were not learned from.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::grid::{Cell, Grid};
use super::search::{Limits, Search, Trial};
use super::threads::in_parallel;
use crate::data::{Targets, Task};
use crate::error::{Error, Result};
use crate::machine::{TargetKind, weight};
use crate::model::Model;
use crate::pool::Pool;
use crate::problem::Prepared;

/// The certified relative gap that is enough on folds.
const TOLERANCE: f64 = 1e-3;
/// Each task's sigmoid is learned from its own rows and from those of all tasks, which count as this many (ADR 26).
const PRIOR: f64 = 100.0;
/// The most Newton steps; seldom more than ten are needed.
const STEPS: usize = 100;
/// The gradient per sample that counts as zero.
const FLAT: f64 = 1e-10;

/// P(y = +1 | f) = 1 / (1 + exp(−(a f + b))), a ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sigmoid {
    /// a: how fast certainty grows with the decision value.
    pub slope: f64,
    /// b: what a decision value of 0 means.
    pub offset: f64,
}

impl Sigmoid {
    /// min_{a ≥ 0, b} −Σ_i w_i (t_i ln p_i + (1 − t_i) ln(1 − p_i)) for labels y_i = ±1, where t is (N₊ + 1)/(N₊ + 2) for +1 and
    /// 1/(N₋ + 2) for −1 instead of 1 and 0, so that few samples make nobody sure (Platt 1999). N₊ and N₋ are sums of weights.
    pub fn fit(decisions: &[f64], labels: &[f64], weights: &[f64]) -> Self {
        let rows = || decisions.iter().zip(labels).zip(weights);
        let sum = |wanted: fn(f64) -> bool| -> f64 {
            let own = rows().filter(|((_, y), _)| wanted(**y));
            own.map(|(_, w)| w).sum()
        };
        let (yes, no) = (sum(|y| y > 0.0), sum(|y| y <= 0.0));
        let (high, low) = ((yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0));
        let size = rows().map(|((f, _), _)| f.abs()).fold(0.0, f64::max);
        let size = if size > 0.0 { size } else { 1.0 };
        // In units of the largest decision value: (f, target, weight).
        let samples: Vec<[f64; 3]> = rows()
            .map(|((f, y), w)| [f / size, if *y > 0.0 { high } else { low }, *w])
            .collect();
        let mean = (yes * high + no * low) / (yes + no);
        let flat = Self {
            slope: 0.0,
            offset: (mean / (1.0 - mean)).ln(),
        };
        let found = newton(&samples, flat);
        // Decisions that go the wrong way say nothing: all that is known is how many there are of each.
        if found.slope.is_finite() && found.offset.is_finite() && found.slope > 0.0 {
            Self {
                slope: found.slope / size,
                ..found
            }
        } else {
            flat
        }
    }

    /// The probability of +1.
    pub fn probability(&self, decision: f64) -> f64 {
        logistic(self.slope * decision + self.offset)
    }
}

fn logistic(z: f64) -> f64 {
    // Either way without overflow.
    if z >= 0.0 {
        1.0 / (1.0 + (-z).exp())
    } else {
        z.exp() / (1.0 + z.exp())
    }
}

/// Newton's method with halved steps (Lin, Lin and Weng 2007) from a point.
fn newton(samples: &[[f64; 3]], mut at: Sigmoid) -> Sigmoid {
    // t ln(1 + e^{−z}) + (1 − t) ln(1 + e^{z})
    let loss = |at: &Sigmoid| -> f64 {
        let own = samples.iter().map(|[f, t, w]| {
            let z = at.slope * f + at.offset;
            w * ((-z.abs()).exp().ln_1p() + z.max(0.0) - t * z)
        });
        own.sum()
    };
    let total: f64 = samples.iter().map(|[_, _, w]| w).sum();
    let mut value = loss(&at);
    for _ in 0..STEPS {
        let (mut g, mut h) = ([0.0; 2], [1e-12; 3]);
        h[1] = 0.0;
        for [f, t, w] in samples {
            let p = logistic(at.slope * f + at.offset);
            let (slope, curvature) = (w * (p - t), w * p * (1.0 - p));
            g[0] += slope * f;
            g[1] += slope;
            h[0] += curvature * f * f;
            h[1] += curvature * f;
            h[2] += curvature;
        }
        if g[0].abs().max(g[1].abs()) <= FLAT * total {
            break;
        }
        let determinant = h[0] * h[2] - h[1] * h[1];
        let step = [
            -(h[2] * g[0] - h[1] * g[1]) / determinant,
            -(h[0] * g[1] - h[1] * g[0]) / determinant,
        ];
        let descent = g[0] * step[0] + g[1] * step[1];
        let mut length = 1.0;
        loop {
            let next = Sigmoid {
                slope: at.slope + length * step[0],
                offset: at.offset + length * step[1],
            };
            let found = loss(&next);
            if found <= value + 1e-4 * length * descent {
                (at, value) = (next, found);
                break;
            }
            length *= 0.5;
            if length < 1e-10 {
                return at;
            }
        }
    }
    at
}

/// What turns the decision values of a model into probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// For each task, from its own decisions and, counting less, those of all.
    pub tasks: Vec<Sigmoid>,
    /// From the decisions of all, for a task that was never seen.
    pub pooled: Sigmoid,
    /// How many folds the decisions come from; 0 where the machine's decisions are log-odds themselves.
    pub folds: usize,
}

impl Calibration {
    /// The sigmoids of a model's tasks on one sample set.
    pub fn on(&self, model: &Model, set: usize) -> Vec<Sigmoid> {
        let tasks = model.tasks().iter().zip(&self.tasks);
        let own = tasks.filter(|(task, _)| task.set == set);
        own.map(|(_, sigmoid)| *sigmoid).collect()
    }
}

impl Prepared {
    /// Sigmoids for a model that was fitted on these Gram matrices. Where a machine's decisions are log-odds, theirs, less what weights of classes
    /// put there. For all others each of five folds is decided about by a model of the others, which are views
    /// of the same matrices, each started from `model`. `counts[s][i]` says how often sample i of sample set s counts, whatever an error
    /// costs there. None where it was stopped.
    ///
    /// # Errors
    /// When the machine does not learn from labels, no class of a task has two samples, or as [`Prepared::fit`].
    pub fn calibrate(
        &self,
        model: &Model,
        counts: &[Vec<f64>],
        limits: &Limits,
    ) -> Result<Option<Calibration>> {
        let problem = self.problem();
        let spec = problem.spec();
        let targets = spec.machine.entry().map(|entry| entry.targets);
        if targets != Some(TargetKind::Labels) {
            let expected = "a machine that tells classes apart";
            return Err(Error::param("probability", spec.machine.name(), expected));
        }
        if let Some(shift) = spec.machine.build().log_odds_shift() {
            return Ok(Some(of_log_odds(problem.tasks(), counts, shift)));
        }
        let folds = self.folds(limits.seed)?;
        let kernel_sets = [(0..problem.shape().kernels).collect::<Vec<usize>>()];
        let grid = Grid::of(vec![Cell {
            kernels: 0,
            machine: spec.machine.clone(),
            sharing: spec.sharing.clone(),
        }]);
        let search = Search::new(problem, &kernel_sets, &grid, &folds)?;
        let chains = grid.chains(folds.len());
        let workers = search.at_a_time(self)?.min(chains.len());
        let pools = Pool::for_jobs(workers, self.pool().threads())?;
        let limits = Limits {
            tolerance: limits.tolerance.max(TOLERANCE),
            ..limits.clone()
        };
        let samples: Vec<usize> = self.samples().collect();
        let empty = |task: &Task| vec![f64::NAN; samples[task.samples]];
        // By task, the decision about each row of its sample set.
        let decided: Mutex<Vec<Vec<f64>>> = Mutex::new(problem.tasks().iter().map(empty).collect());
        in_parallel(chains.len(), &pools, |number, pool| {
            let tell = |trial: Trial<'_>| {
                let mut decided = decided.lock().unwrap_or_else(PoisonError::into_inner);
                let held = &folds[trial.fold].held;
                let tasks = problem.tasks().iter().zip(decided.iter_mut());
                for ((task, all), own) in tasks.zip(&trial.decisions) {
                    for (&row, &decision) in held[task.samples].iter().zip(own) {
                        all[row] = decision;
                    }
                }
                ControlFlow::Continue(())
            };
            let last = Some(model.clone());
            search.follow(self, &chains[number], last, &limits, pool, tell)
        })?;
        let decided = decided.into_inner().unwrap_or_else(PoisonError::into_inner);
        if limits.stop.is_requested() {
            return Ok(None);
        }
        let made = of_decisions(problem.tasks(), counts, &decided, folds.len());
        Ok(Some(made))
    }
}

/// f less ln (w₊/w₋), what an error costs in each class on average: a machine of log-odds learns as if there were so many more of them.
fn of_log_odds(tasks: &[Task], counts: &[Vec<f64>], shift: f64) -> Calibration {
    // By class, what the rows cost and how often they count.
    let totals = |task: &Task| {
        let mut totals = [[0.0; 2]; 2];
        if let Targets::Labels(labels) = &task.targets {
            for (at, &label) in labels.iter().enumerate() {
                let counts = counts.get(task.samples);
                let count = counts.and_then(|counts| counts.get(task.rows.position(at)));
                let own = &mut totals[usize::from(label > 0.0)];
                own[0] += weight(task, at);
                own[1] += count.copied().unwrap_or(1.0);
            }
        }
        totals
    };
    let sigmoid = |[no, yes]: [[f64; 2]; 2]| Sigmoid {
        slope: 1.0,
        offset: shift + (no[0] / no[1]).ln() - (yes[0] / yes[1]).ln(),
    };
    let own: Vec<[[f64; 2]; 2]> = tasks.iter().map(totals).collect();
    let mut all = [[0.0; 2]; 2];
    for (class, part) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        all[class][part] = own.iter().map(|task| task[class][part]).sum();
    }
    Calibration {
        tasks: own.into_iter().map(sigmoid).collect(),
        pooled: sigmoid(all),
        folds: 0,
    }
}

/// The sigmoids for decisions about all rows of the sample sets, by task.
fn of_decisions(
    tasks: &[Task],
    counts: &[Vec<f64>],
    decided: &[Vec<f64>],
    folds: usize,
) -> Calibration {
    // Decisions, labels and counts of rows that were kept aside.
    let of_task = |(task, all): (&Task, &Vec<f64>)| {
        let mut own: [Vec<f64>; 3] = Default::default();
        if let Targets::Labels(labels) = &task.targets {
            for (row, &label) in task.rows.iter(all.len()).zip(labels) {
                if all[row].is_finite() {
                    let count = counts.get(task.samples).and_then(|counts| counts.get(row));
                    own[0].push(all[row]);
                    own[1].push(label);
                    own[2].push(count.copied().unwrap_or(1.0));
                }
            }
        }
        own
    };
    let own: Vec<[Vec<f64>; 3]> = tasks.iter().zip(decided).map(of_task).collect();
    let all: [Vec<f64>; 3] =
        [0, 1, 2].map(|part| own.iter().flat_map(|task| &task[part]).copied().collect());
    let fit = |[decisions, labels, counts]: &[Vec<f64>; 3]| Sigmoid::fit(decisions, labels, counts);
    let pooled = fit(&all);
    let total: f64 = all[2].iter().sum();
    let one = |task: &[Vec<f64>; 3]| {
        // Few rows of its own say little, and the others' decisions mean much the same.
        let mut rows = task.clone();
        if own.len() > 1 {
            for (rows, all) in rows.iter_mut().zip(&all).take(2) {
                rows.extend(all);
            }
            rows[2].extend(all[2].iter().map(|count| count * PRIOR / total));
        }
        fit(&rows)
    };
    Calibration {
        tasks: own.iter().map(one).collect(),
        pooled,
        folds,
    }
}
