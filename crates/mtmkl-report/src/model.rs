//! The report of a model: assembled here, for every program.

use mtmkl::Model;
use mtmkl::grid::Grid;
use mtmkl::sharing::Reach;
use mtmkl::solver::{Fallback, SolverSpec};
use serde::Serialize;
use serde_json::Value;

use crate::notes::Unreadable;
use crate::{GroupEntry, PassEntry, Picture, Report, TaskEntry, boundary};

impl Report {
    /// Everything the page shows of a model: what it holds, what its notes say, the picture of a model on two features, and what only
    /// the caller knows: its settings, and a title in place of the table's name.
    ///
    /// # Errors
    /// When a note cannot be read.
    pub fn of(
        model: &Model,
        title: Option<String>,
        settings: Vec<(String, String)>,
    ) -> Result<Self, Unreadable> {
        let mut report = Self::bare(model).with_notes(model.notes())?;
        let table = report.data.iter().find(|(key, _)| key == "table");
        report.title = title
            .or_else(|| table.map(|(_, table)| format!("mtmkl: {table}")))
            .unwrap_or_else(|| "mtmkl model".to_string());
        // Of older models, which do not say it themselves.
        let given = |name: &str| {
            let setting = settings.iter().find(|(key, _)| key == name);
            setting.map(|(_, value)| value.clone())
        };
        if report.solver.is_empty() {
            report.solver = given("solver").unwrap_or_else(|| "newton".to_string());
        }
        report.tolerance = report
            .tolerance
            .or_else(|| given("tol").and_then(|value| value.parse().ok()));
        if report.pictures.is_empty() {
            report.pictures = boundary::picture(model)
                .into_iter()
                .collect::<Vec<Picture>>();
        }
        report.settings = settings;
        Ok(report)
    }

    /// What the model itself holds.
    fn bare(model: &Model) -> Self {
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
            groups: groups(model),
            machine: in_words(model.machine()),
            sharing: in_words(model.sharing()),
            status: outcome.status.name().to_string(),
            objective: outcome.objective,
            bound: outcome.bound,
            gap: outcome.gap,
            tolerance: outcome.tolerance,
            is_rounded: outcome.is_rounded,
            solver: outcome.solver.as_ref().map_or(String::new(), name),
            fallback: outcome
                .fallback
                .map(|fallback| reason(fallback).to_string()),
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

/// The groups of tasks that share a part of the weights: those that are neither all tasks nor each by itself.
pub fn groups(model: &Model) -> Vec<GroupEntry> {
    let count = model.tasks().len();
    let inner = model.parts().iter().filter(|part| {
        let is_groups = matches!(part.reach, Reach::Groups(_));
        is_groups && !part.reach.is_common(count) && !part.reach.is_specific(count)
    });
    let rows = inner.flat_map(|part| {
        let name = |row: usize| {
            let known = part.names.get(row).cloned();
            known.unwrap_or_else(|| format!("{}", row + 1))
        };
        (0..part.weights.rows()).map(move |row| GroupEntry {
            level: part.label.clone(),
            name: name(row),
            tasks: part.reach.tasks_of(row, count).into_owned(),
            weights: part.weights.row(row).to_vec(),
        })
    });
    rows.collect()
}

/// The name of a solver.
fn name(solver: &SolverSpec) -> String {
    match solver {
        SolverSpec::Epf(_) => "epf".to_string(),
        _ => "newton".to_string(),
    }
}

/// Why the second-order solver handed a problem over, as the end of a sentence.
pub fn reason(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::Sharing => "the sharing has a term that second-order steps do not know",
        Fallback::Indefinite => "a kernel is not positive semi-definite",
        _ => "second-order steps do not fit this problem",
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
    let is_said = |key: &str, value: &Value| key != "name" && !value.is_null();
    for (key, value) in object.iter().filter(|(key, value)| is_said(key, value)) {
        let value = match (value.as_f64(), levels_in_words(value)) {
            (Some(number), _) => number.to_string(),
            (None, Some(words)) => words,
            _ => value.to_string(),
        };
        parts.push(format!("{} {value}", key.replace('_', " ")));
    }
    parts.join(", ")
}

/// Levels of groups, each by its label and how many groups it has.
fn levels_in_words(value: &Value) -> Option<String> {
    let words = |level: &Value| {
        let groups = level.get("groups")?.as_array()?.len();
        Some(format!("{} ({groups})", level.get("label")?.as_str()?))
    };
    let levels = value.as_array().filter(|levels| !levels.is_empty())?;
    let levels: Option<Vec<String>> = levels.iter().map(words).collect();
    Some(levels?.join(" / "))
}
