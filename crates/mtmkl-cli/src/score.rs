//! How good predictions are.

use anyhow::{Context, Result, bail};
use mtmkl::select::Metric;
use mtmkl_table::{Frame, Goal, Predictions, Records};
use serde::Serialize;

use crate::choices::unknown;
use crate::words::listed;

/// One figure per task and one for all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// What is measured.
    pub metric: &'static str,
    /// Per task, in the order of their names.
    pub tasks: Vec<TaskScore>,
    /// The mean over tasks, or over all rows where the tasks are classes of one problem.
    pub mean: f64,
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

/// The metric of this name, or the usual one: accuracy for classes, R² for numbers.
///
/// # Errors
/// When there is none of that name, or it is not about what is predicted.
pub fn metric(name: Option<&str>, goal: &Goal) -> Result<Metric> {
    let numbers = *goal == Goal::Regression;
    let Some(name) = name else {
        return Ok(if numbers {
            Metric::R2
        } else {
            Metric::Accuracy
        });
    };
    let fitting: Vec<&str> = Metric::ALL
        .into_iter()
        .filter(|metric| metric.is_for_numbers() == numbers)
        .map(Metric::name)
        .collect();
    match Metric::named(name) {
        Some(metric) if metric.is_for_numbers() == numbers => Ok(metric),
        Some(metric) => bail!(
            "--metric {}: it is about {}; choose one of {}",
            metric.name(),
            if numbers {
                "classes, and numbers are predicted here"
            } else {
                "numbers, and classes are predicted here"
            },
            fitting.join(", ")
        ),
        None => Err(unknown("metric", name, &fitting)),
    }
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
    let target = || {
        records
            .target
            .as_ref()
            .context("the target column is needed to score")
    };
    // A value that was never learned is a class of its own, which no prediction hits.
    let class_of = |classes: &[String], value: &str| {
        classes
            .iter()
            .position(|class| class == value)
            .unwrap_or(classes.len())
    };
    let sign = |yes: bool| if yes { 1.0 } else { -1.0 };
    match &frame.goal {
        Goal::Multiclass { classes, .. } => {
            let truth: Vec<usize> = target()?
                .iter()
                .map(|value| class_of(classes, value))
                .collect();
            let predicted: Vec<usize> = predictions
                .labels
                .iter()
                .map(|value| class_of(classes, value))
                .collect();
            let tasks = classes
                .iter()
                .enumerate()
                .map(|(class, name)| {
                    let own: Vec<usize> = (0..records.count())
                        .filter(|&row| truth[row] == class)
                        .collect();
                    let labels: Vec<f64> =
                        truth.iter().map(|&value| sign(value == class)).collect();
                    let score = match metric {
                        Metric::F1 => {
                            let said: Vec<f64> = predicted
                                .iter()
                                .map(|&value| sign(value == class))
                                .collect();
                            metric.of_labels(&labels, &said)
                        }
                        Metric::Auc => metric.of_labels(&labels, &predictions.class_values[class]),
                        // The share of its rows that were recognised.
                        _ => Metric::Accuracy.of_classes(
                            &own.iter().map(|&row| truth[row]).collect::<Vec<_>>(),
                            &own.iter().map(|&row| predicted[row]).collect::<Vec<_>>(),
                            &[],
                        ),
                    };
                    TaskScore {
                        name: name.clone(),
                        rows: own.len(),
                        score,
                    }
                })
                .collect();
            Ok(Score {
                metric: metric.name(),
                tasks,
                mean: metric.of_classes(&truth, &predicted, &predictions.class_values),
            })
        }
        Goal::Binary { classes } => {
            let target = target()?;
            Ok(by_task(frame, records, metric.name(), |rows| {
                let truth: Vec<usize> = rows
                    .iter()
                    .map(|&row| class_of(classes, target.get(row)))
                    .collect();
                match metric {
                    Metric::F1 | Metric::Auc => {
                        let labels: Vec<f64> =
                            truth.iter().map(|&class| sign(class == 1)).collect();
                        metric.of_labels(&labels, &said(predictions, rows, metric))
                    }
                    _ => {
                        let predicted: Vec<usize> = rows
                            .iter()
                            .map(|&row| class_of(classes, &predictions.labels[row]))
                            .collect();
                        metric.of_classes(&truth, &predicted, &[])
                    }
                }
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
                bail!(
                    "no row has the target `{inlier}`, which would mark it as an inlier; say which value does with --inlier VALUE (there are {})",
                    listed(
                        &target
                            .groups()
                            .iter()
                            .map(|(name, _)| *name)
                            .collect::<Vec<_>>()
                    )
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
                Metric::Accuracy.of_labels(&inside, &said(predictions, rows, metric))
            })),
        },
    }
}

/// What a metric of labels looks at, for rows whose tasks have one decision value each: the value where order matters, else the
/// prediction ±1, which is the machine's word on a value of exactly 0.
fn said(predictions: &Predictions, rows: &[usize], metric: Metric) -> Vec<f64> {
    let of = |row: usize| match metric {
        Metric::Auc => predictions.decisions[row][0],
        _ => predictions.numbers[row],
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
    Score {
        metric,
        tasks,
        mean,
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
