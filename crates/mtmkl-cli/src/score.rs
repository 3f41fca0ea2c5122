//! How good predictions are.

use anyhow::{Context, Result, bail};
use mtmkl::select::Metric;
use mtmkl_table::{Frame, Goal, Names, Predictions, Records};
use serde::Serialize;
use serde_json::{Value, json};

use crate::choices::unknown;
use crate::words::listed;

/// One figure per task and one for all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// What is measured.
    pub metric: &'static str,
    /// Per task, in the order of their names.
    pub tasks: Vec<TaskScore>,
    /// The mean over tasks that have one, or over all rows where the tasks are classes of one problem.
    pub mean: f64,
    /// Of all rows at once, whatever their task.
    pub together: f64,
}

/// One task's figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskScore {
    /// The task.
    pub name: String,
    /// How many rows were scored.
    pub rows: usize,
    /// The figure.
    pub score: f64,
}

/// What made predictions, and how good they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// `learned`, or a baseline's name.
    pub name: String,
    /// By the metric that counts, and by the usual ones.
    pub scores: Vec<Score>,
}

impl Method {
    /// By the metric that counts.
    pub fn main(&self) -> &Score {
        &self.scores[0]
    }

    /// The metric that counts in full, and the others in short.
    pub fn json(&self) -> Value {
        let mut object = json!(self.main());
        object["name"] = json!(self.name);
        object["metrics"] = figures(&self.scores);
        object
    }
}

/// The mean over tasks and the figure of all rows together, by metric.
pub fn figures(scores: &[Score]) -> Value {
    let figure = |score: &Score| {
        let figure = json!({ "mean": score.mean, "together": score.together });
        (score.metric.to_string(), figure)
    };
    scores
        .iter()
        .map(figure)
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The metric of this name, or the usual one: accuracy for classes, R² for numbers. Some are about probabilities, which are not always there.
///
/// # Errors
/// When there is none of that name, or it is not about what is predicted.
pub fn metric(name: Option<&str>, goal: &Goal, has_probabilities: bool) -> Result<Metric> {
    let numbers = *goal == Goal::Regression;
    let Some(name) = name else {
        return Ok(if numbers {
            Metric::R2
        } else {
            Metric::Accuracy
        });
    };
    let fits = |metric: &Metric| {
        metric.is_for_numbers() == numbers && (has_probabilities || !metric.is_for_probabilities())
    };
    let fitting: Vec<&str> = Metric::ALL
        .into_iter()
        .filter(fits)
        .map(Metric::name)
        .collect();
    match Metric::named(name) {
        Some(metric) if fits(&metric) => Ok(metric),
        Some(metric) => bail!(
            "--metric {}: it is about {}; choose one of {}",
            metric.name(),
            match (metric.is_for_probabilities(), numbers) {
                (true, true) => "probabilities of classes, and numbers are predicted here",
                (true, false) =>
                    "probabilities, which fit learns with --probability (tune chooses without them)",
                (_, true) => "classes, and numbers are predicted here",
                (_, false) => "numbers, and classes are predicted here",
            },
            fitting.join(", ")
        ),
        None => Err(unknown("metric", name, &fitting)),
    }
}

/// What is shown beside the metric that counts: no single figure says all.
fn usual(goal: &Goal) -> &'static [Metric] {
    match goal {
        Goal::Multiclass { .. } => &[Metric::Accuracy, Metric::BalancedAccuracy],
        Goal::Binary { .. } | Goal::OneClass => {
            &[Metric::Accuracy, Metric::BalancedAccuracy, Metric::Auc]
        }
        Goal::Regression => &[Metric::R2, Metric::Rmse, Metric::Mae],
    }
}

/// Scores by this metric, which counts, and by the usual ones.
///
/// # Errors
/// As [`score`].
pub fn scores(
    frame: &Frame,
    records: &Records,
    predictions: &Predictions,
    inlier: Option<&str>,
    main: Metric,
) -> Result<Vec<Score>> {
    let of_probabilities: &[Metric] = if predictions.probabilities.is_empty() {
        &[]
    } else {
        &[Metric::LogLoss, Metric::Brier]
    };
    let others = usual(&frame.goal).iter().chain(of_probabilities).copied();
    let mut scores = vec![score(frame, records, predictions, inlier, main)?];
    for metric in others.filter(|metric| *metric != main) {
        let score = score(frame, records, predictions, inlier, metric)?;
        // Without inliers to know, all metrics are one.
        if scores.iter().all(|known| known.metric != score.metric) {
            scores.push(score);
        }
    }
    Ok(scores)
}

/// A value that was never learned is a class of its own, which no prediction hits.
fn class_of(classes: &[String], value: &str) -> usize {
    let known = classes.iter().position(|class| class == value);
    known.unwrap_or(classes.len())
}

fn sign(yes: bool) -> f64 {
    if yes { 1.0 } else { -1.0 }
}

fn target(records: &Records) -> Result<&Names> {
    let target = records.target.as_ref();
    target.context("the target column is needed to score")
}

/// Scores predictions. One-class machines without a known inlier value have one figure only, the share of rows inside.
///
/// # Errors
/// When the targets are not there.
pub fn score(
    frame: &Frame,
    records: &Records,
    predictions: &Predictions,
    inlier: Option<&str>,
    metric: Metric,
) -> Result<Score> {
    match &frame.goal {
        Goal::Multiclass { classes, .. } if frame.goal.is_by_class() => {
            let target = target(records)?;
            Ok(by_class(classes, target, predictions, metric))
        }
        Goal::Binary { classes } | Goal::Multiclass { classes, .. } => {
            let target = target(records)?;
            let is_binary = classes.len() == 2;
            Ok(by_task(frame, records, metric.name(), |rows| {
                let of = |all: &[f64]| rows.iter().map(|&row| all[row]).collect::<Vec<f64>>();
                let by_class = |all: &[Vec<f64>]| all.iter().map(|own| of(own)).collect::<Vec<_>>();
                let truth: Vec<usize> = rows
                    .iter()
                    .map(|&row| class_of(classes, target.get(row)))
                    .collect();
                if metric.is_for_probabilities() {
                    return metric.of_probabilities(&truth, &by_class(&predictions.probabilities));
                }
                if is_binary && (metric == Metric::F1 || metric.is_of_order()) {
                    let labels: Vec<f64> = truth.iter().map(|&class| sign(class == 1)).collect();
                    return metric.of_labels(&labels, &said(predictions, rows, metric));
                }
                let predicted: Vec<usize> = rows
                    .iter()
                    .map(|&row| class_of(classes, &predictions.labels[row]))
                    .collect();
                metric.of_classes(&truth, &predicted, &by_class(&predictions.class_values))
            }))
        }
        Goal::Regression => {
            let numbers = records
                .numbers
                .as_ref()
                .context("the target column is needed to score")?;
            Ok(by_task(frame, records, metric.name(), |rows| {
                let own: Vec<f64> = rows.iter().map(|&row| numbers[row]).collect();
                let predicted: Vec<f64> =
                    rows.iter().map(|&row| predictions.numbers[row]).collect();
                metric.of_numbers(&own, &predicted)
            }))
        }
        Goal::OneClass => match (records.target.as_ref(), inlier) {
            (Some(target), Some(inlier)) if !target.iter().any(|value| value == inlier) => {
                let groups = target.groups();
                let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
                bail!(
                    "no row has the target `{inlier}`, which would mark it as an inlier; say which value does with --inlier VALUE (there are {})",
                    listed(&names)
                )
            }
            (Some(target), Some(inlier)) => Ok(by_task(frame, records, metric.name(), |rows| {
                let labels: Vec<f64> = rows
                    .iter()
                    .map(|&row| sign(target.get(row) == inlier))
                    .collect();
                metric.of_labels(&labels, &said(predictions, rows, metric))
            })),
            _ => Ok(by_task(frame, records, "accepted", |rows| {
                let inside = vec![1.0; rows.len()];
                let said = said(predictions, rows, Metric::Accuracy);
                Metric::Accuracy.of_labels(&inside, &said)
            })),
        },
    }
}

/// What each row's prediction costs: 1 for a wrong class, the squared error of a number. None where no answer is known.
pub fn losses(frame: &Frame, records: &Records, predictions: &Predictions) -> Option<Vec<f64>> {
    match frame.goal {
        Goal::OneClass => None,
        Goal::Regression => {
            let pairs = records.numbers.as_ref()?.iter().zip(&predictions.numbers);
            Some(pairs.map(|(y, f)| (y - f).powi(2)).collect())
        }
        _ => {
            let pairs = records.target.as_ref()?.iter().zip(&predictions.labels);
            Some(pairs.map(|(y, f)| f64::from(u8::from(y != f))).collect())
        }
    }
}

/// One of several classes: a figure for each of them, and that of all rows.
fn by_class(
    classes: &[String],
    target: &Names,
    predictions: &Predictions,
    metric: Metric,
) -> Score {
    let truth: Vec<usize> = target
        .iter()
        .map(|value| class_of(classes, value))
        .collect();
    let predicted: Vec<usize> = predictions
        .labels
        .iter()
        .map(|value| class_of(classes, value))
        .collect();
    let figure = |class: usize, own: &[usize]| {
        if metric.is_for_probabilities() {
            let own_of = |all: &Vec<f64>| own.iter().map(|&row| all[row]).collect();
            let probabilities: Vec<Vec<f64>> =
                predictions.probabilities.iter().map(own_of).collect();
            return metric.of_probabilities(&vec![class; own.len()], &probabilities);
        }
        let labels: Vec<f64> = truth.iter().map(|&value| sign(value == class)).collect();
        if metric.is_of_order() {
            return metric.of_labels(&labels, &predictions.class_values[class]);
        }
        if metric == Metric::F1 {
            let said = predicted.iter().map(|&value| sign(value == class));
            return metric.of_labels(&labels, &said.collect::<Vec<_>>());
        }
        // The share of its rows that were recognised.
        let own_of = |all: &[usize]| own.iter().map(|&row| all[row]).collect::<Vec<_>>();
        Metric::Accuracy.of_classes(&own_of(&truth), &own_of(&predicted), &[])
    };
    let tasks = classes.iter().enumerate().map(|(class, name)| {
        let own = (0..truth.len()).filter(|&row| truth[row] == class);
        let own: Vec<usize> = own.collect();
        TaskScore {
            name: name.clone(),
            rows: own.len(),
            score: figure(class, &own),
        }
    });
    let all = if metric.is_for_probabilities() {
        metric.of_probabilities(&truth, &predictions.probabilities)
    } else {
        metric.of_classes(&truth, &predicted, &predictions.class_values)
    };
    Score {
        metric: metric.name(),
        tasks: tasks.collect(),
        mean: all,
        together: all,
    }
}

/// What a metric of labels looks at, for rows whose tasks have one decision value each: the value where order matters, else the
/// prediction ±1, which is the machine's word on a value of exactly 0.
fn said(predictions: &Predictions, rows: &[usize], metric: Metric) -> Vec<f64> {
    let of = |row: usize| {
        if metric.is_of_order() {
            predictions.decisions[row][0]
        } else {
            predictions.numbers[row]
        }
    };
    rows.iter().map(|&row| of(row)).collect()
}

fn by_task(
    frame: &Frame,
    records: &Records,
    metric: &'static str,
    figure: impl Fn(&[usize]) -> f64,
) -> Score {
    let only = frame.only_task();
    let groups = records.by_task(&only).into_iter();
    let tasks: Vec<TaskScore> = groups
        .map(|(name, rows)| TaskScore {
            name: name.to_string(),
            rows: rows.len(),
            score: figure(&rows),
        })
        .collect();
    let mean = mean(&tasks.iter().map(|task| task.score).collect::<Vec<_>>());
    let all: Vec<usize> = (0..records.count()).collect();
    Score {
        metric,
        together: if tasks.len() == 1 { mean } else { figure(&all) },
        tasks,
        mean,
    }
}

/// Of those that are numbers: a task without rows of both classes has no AUC, and takes none from the others.
fn mean(values: &[f64]) -> f64 {
    let there: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    there.iter().sum::<f64>() / there.len() as f64
}
