//! How good predictions are.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::frame::{Frame, Goal, Raw};
use crate::predictor::Predictions;
use crate::words::{by_number_then_text, listed};

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

/// Scores predictions: accuracy for classes, R² for numbers, the accuracy (or the share accepted) for one-class machines.
///
/// # Errors
/// When the targets are not there.
pub fn score(
    frame: &Frame,
    raw: &Raw,
    predictions: &Predictions,
    inlier: Option<&str>,
) -> Result<Score> {
    let target = || {
        raw.target
            .as_ref()
            .context("the target column is needed to score")
    };
    let hit = |yes: bool| f64::from(u8::from(yes));
    match &frame.goal {
        Goal::Multiclass { classes, .. } => {
            let target = target()?;
            let hits: Vec<f64> = target
                .iter()
                .zip(&predictions.labels)
                .map(|(a, b)| hit(a == b))
                .collect();
            // Per class: the share of its rows that were recognised.
            let tasks = classes
                .iter()
                .map(|class| {
                    let own: Vec<f64> = target
                        .iter()
                        .zip(&hits)
                        .filter(|(name, _)| *name == class)
                        .map(|(_, hit)| *hit)
                        .collect();
                    TaskScore {
                        name: class.clone(),
                        rows: own.len(),
                        score: mean(&own),
                    }
                })
                .collect();
            Ok(Score {
                metric: "accuracy",
                tasks,
                mean: mean(&hits),
            })
        }
        Goal::Binary { .. } => {
            let target = target()?;
            let hits: Vec<f64> = target
                .iter()
                .zip(&predictions.labels)
                .map(|(a, b)| hit(a == b))
                .collect();
            Ok(by_task(frame, raw, "accuracy", |rows| {
                mean(&rows.iter().map(|&row| hits[row]).collect::<Vec<_>>())
            }))
        }
        Goal::Regression => {
            let numbers = raw
                .numbers
                .as_ref()
                .context("the target column is needed to score")?;
            Ok(by_task(frame, raw, "R2", |rows| {
                let own: Vec<f64> = rows.iter().map(|&row| numbers[row]).collect();
                let middle = mean(&own);
                let total: f64 = own.iter().map(|value| (value - middle).powi(2)).sum();
                let left: f64 = rows
                    .iter()
                    .map(|&row| (numbers[row] - predictions.numbers[row]).powi(2))
                    .sum();
                if total > 0.0 {
                    1.0 - left / total
                } else {
                    f64::NAN
                }
            }))
        }
        Goal::OneClass => match (raw.target.as_ref(), inlier) {
            (Some(target), Some(inlier)) if !target.iter().any(|value| value == inlier) => {
                let mut values = target.clone();
                values.sort_by(|a, b| by_number_then_text(a, b));
                values.dedup();
                bail!(
                    "no row has the target `{inlier}`, which would mark it as an inlier; say which value does with --inlier VALUE (there are {})",
                    listed(&values.iter().map(String::as_str).collect::<Vec<_>>())
                )
            }
            (Some(target), Some(inlier)) => Ok(by_task(frame, raw, "accuracy", |rows| {
                let hits: Vec<f64> = rows
                    .iter()
                    .map(|&row| hit((target[row] == inlier) == (predictions.numbers[row] > 0.0)))
                    .collect();
                mean(&hits)
            })),
            _ => Ok(by_task(frame, raw, "accepted", |rows| {
                mean(
                    &rows
                        .iter()
                        .map(|&row| hit(predictions.numbers[row] > 0.0))
                        .collect::<Vec<_>>(),
                )
            })),
        },
    }
}

fn by_task(
    frame: &Frame,
    raw: &Raw,
    metric: &'static str,
    figure: impl Fn(&[usize]) -> f64,
) -> Score {
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for row in 0..raw.count {
        let task = raw
            .task
            .as_ref()
            .map_or_else(|| frame.only_task(), |tasks| tasks[row].clone());
        groups.entry(task).or_default().push(row);
    }
    let mut tasks: Vec<TaskScore> = groups
        .into_iter()
        .map(|(name, rows)| TaskScore {
            name,
            rows: rows.len(),
            score: figure(&rows),
        })
        .collect();
    tasks.sort_by(|a, b| by_number_then_text(&a.name, &b.name));
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
