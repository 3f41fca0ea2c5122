//! Units in which a programme is of order one.

use super::model::Model;
use super::programme::{Affine, Answer};
use super::{Machine, Task};

/// Units in which the variables are of order one, so that the solver's tolerances mean relative errors.
pub(super) struct Scale {
    /// Size of α, one a task.
    pub(super) alpha: Vec<f64>,
    /// Size of `s_tm`.
    pub(super) sensitivity: Vec<Vec<f64>>,
    /// Size of J.
    pub(super) value: f64,
}

fn mean_diagonal(gram: &[f64], n: usize) -> f64 {
    (0..n).map(|i| gram[i * n + i]).sum::<f64>() / n as f64
}

/// First sizes, from the data alone; [`rescale`] mends them.
pub(super) fn guess(tasks: &[Task]) -> Scale {
    let alpha: Vec<f64> = tasks
        .iter()
        .map(|task| {
            let n = task.samples;
            let weight = task
                .grams
                .iter()
                .map(|gram| mean_diagonal(gram, n))
                .fold(0.0, f64::max)
                .max(f64::MIN_POSITIVE);
            let most = |values: &[f64]| {
                values
                    .iter()
                    .fold(0.0_f64, |most, value| most.max(value.abs()))
            };
            let size = match &task.machine {
                Machine::Svc { upper, .. } | Machine::Logistic { upper, .. } => {
                    most(upper).min(1.0 / weight)
                }
                Machine::Krr { y, lambda } => most(y) / (lambda + weight),
                Machine::Svdd { .. } | Machine::OneClass { .. } => 1.0 / n as f64,
                Machine::Svr { y, upper, .. } => most(upper).min(most(y) / weight),
            };
            if size > 0.0 { size } else { 1.0 }
        })
        .collect();
    let sensitivity: Vec<Vec<f64>> = tasks
        .iter()
        .zip(&alpha)
        .map(|(task, size)| {
            let n = task.samples as f64;
            let rough = |gram: &Vec<f64>| n * size * size * mean_diagonal(gram, task.samples);
            task.grams
                .iter()
                .map(|gram| if rough(gram) > 0.0 { rough(gram) } else { 1.0 })
                .collect()
        })
        .collect();
    let value = sensitivity.iter().flatten().copied().fold(0.0, f64::max);
    Scale {
        alpha,
        sensitivity,
        value,
    }
}

/// The sizes that an answer shows.
pub(super) fn rescale(model: &Model, answer: &Answer, old: &Scale) -> Scale {
    let at = |row: &Vec<Affine>| {
        row.iter()
            .map(|entry| entry.at(&answer.x))
            .collect::<Vec<f64>>()
    };
    let alpha = model
        .alpha
        .iter()
        .zip(&old.alpha)
        .map(|(row, &before)| {
            let most = at(row)
                .into_iter()
                .fold(0.0_f64, |most, value| most.max(value.abs()));
            if most > 0.0 { most } else { before }
        })
        .collect();
    let seen: Vec<Vec<f64>> = model.epigraph.iter().map(at).collect();
    let most = seen.iter().flatten().copied().fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { old.value };
    // A kernel that hardly matters must not blow its cone up.
    let sensitivity = seen
        .into_iter()
        .map(|row| {
            row.into_iter()
                .map(|value| value.max(1e-4 * most))
                .collect()
        })
        .collect();
    let value = (answer.value * old.value).abs().max(1e-6 * most);
    Scale {
        alpha,
        sensitivity,
        value,
    }
}
