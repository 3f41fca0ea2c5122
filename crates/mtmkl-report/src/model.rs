//! What the page shows of a model itself; the caller adds what only it knows (title, settings, scores, pictures).

use mtmkl::Model;
use mtmkl::grid::Grid;
use serde::Serialize;
use serde_json::Value;

use crate::{PassEntry, Report, TaskEntry};

impl From<&Model> for Report {
    fn from(model: &Model) -> Self {
        let outcome = model.outcome();
        let grid =
            |grid: &Grid| -> Vec<Vec<f64>> { grid.iter_rows().map(<[f64]>::to_vec).collect() };
        let kernels = model.kernels().iter();
        Self {
            kernels: kernels.map(|view| view.name.clone()).collect(),
            tasks: model
                .tasks()
                .iter()
                .map(|task| TaskEntry {
                    name: task.name.clone(),
                    samples: task.samples,
                    support: task.support.len(),
                })
                .collect(),
            weights: grid(model.weights()),
            common: model.common().map(|common| common.row(0).to_vec()),
            specific: model.specific().map(grid),
            machine: in_words(model.machine()),
            sharing: in_words(model.sharing()),
            status: outcome.status.name().to_string(),
            objective: outcome.objective,
            bound: outcome.bound,
            gap: outcome.gap,
            passes: outcome
                .trace
                .iter()
                .map(|pass| PassEntry {
                    number: pass.number,
                    objective: pass.objective,
                    bound: pass.bound,
                    gap: pass.gap,
                    step: pass.step,
                    inner_iterations: pass.inner_iterations,
                    seconds: pass.seconds,
                })
                .collect(),
            seconds: vec![
                ("kernels".to_string(), outcome.seconds.kernels),
                ("solve".to_string(), outcome.seconds.solve),
                (
                    "total".to_string(),
                    outcome.seconds.kernels + outcome.seconds.solve,
                ),
            ],
            version: env!("CARGO_PKG_VERSION").to_string(),
            ..Self::default()
        }
    }
}

/// A specification in words: `{"name":"pscs","p":2.0,"q":1.0}` → `pscs, p 2, q 1`. What has no JSON form (none of ours) is left blank.
pub fn in_words(specification: &impl Serialize) -> String {
    let Ok(value) = serde_json::to_value(specification) else {
        return String::new();
    };
    let Value::Object(object) = &value else {
        return value.to_string();
    };
    let mut parts = Vec::new();
    if let Some(name) = object.get("name").and_then(Value::as_str) {
        parts.push(name.to_string());
    }
    for (key, value) in object.iter().filter(|(key, _)| *key != "name") {
        let value = match value.as_f64() {
            Some(number) => number.to_string(),
            None => value.to_string(),
        };
        parts.push(format!("{} {value}", key.replace('_', " ")));
    }
    parts.join(", ")
}
