//! How much of what a model with kernels between tasks says is common, a group's, a task's own.

use anyhow::Result;
use mtmkl::grid::Grid;
use mtmkl::{Input, Model};
use mtmkl_table::{levels_of, variance_shares};
use serde_json::{Value, json};

use super::open::Fit;

/// So many rows in all are looked at, and at least so many of each task.
const ROWS: usize = 1000;
const OF_A_TASK: usize = 10;

impl Fit {
    /// The shares of the variance of predictions by level, over rows learned from: over all of them, for each task, and for each kernel.
    /// None where each task has machines of its own, or kernels are given as matrices.
    pub(super) fn shares(&self, model: &Model) -> Result<Option<Value>> {
        let origins = model.support_sets().first();
        let Some(origins) = origins.and_then(|set| set.origins.as_ref()) else {
            return Ok(None);
        };
        let (Some(names), true) = (&self.records.task, self.grams.is_empty()) else {
            return Ok(None);
        };
        let tasks = origins.kernels.tasks();
        let most = (ROWS / tasks.len()).max(OF_A_TASK);
        let own = names.select(&self.train);
        let (mut task_of, mut parts) = (Vec::new(), vec![Vec::new(); model.tasks().len()]);
        for (name, rows) in own.groups() {
            let Some(number) = tasks.iter().position(|task| task == name) else {
                continue;
            };
            // Spread over the rows of the task.
            let step = rows.len().div_ceil(most).max(1);
            let positions: Vec<usize> = (rows.iter().step_by(step))
                .map(|&at| self.records.positions[self.train[at]])
                .collect();
            let values = self.frame.gather_rows(&self.table, &positions, u64::MAX)?;
            let input = Input {
                origin: Some(&origins.kernels.origin(name, &[])),
                ..Input::from(values.table(positions.len(), self.frame.features.len())?)
            };
            for (machine, part) in model.tasks().iter().zip(&mut parts) {
                part.push(model.contributions(&machine.name, input)?);
            }
            task_of.extend(std::iter::repeat_n(number, positions.len()));
        }
        let machines = parts
            .iter()
            .map(|parts| beside(parts))
            .collect::<mtmkl::Result<Vec<_>>>()?;
        let levels = levels_of(model.kernels());
        let all = variance_shares(&machines, &levels, &task_of, tasks.len());
        let plain = |name: &str| {
            let (head, columns) = name.split_once('@').unwrap_or((name, ""));
            let head = head.rsplit_once('*').map_or(head, |(head, _)| head);
            if columns.is_empty() {
                head.to_string()
            } else {
                format!("{head}@{columns}")
            }
        };
        let bases: Vec<String> = model
            .kernels()
            .iter()
            .map(|view| plain(&view.name))
            .collect();
        let mut kernels: Vec<Value> = Vec::new();
        for (at, base) in bases.iter().enumerate() {
            if levels[at] == "offset" || bases[..at].contains(base) {
                continue;
            }
            // Those of this kernel alone, the others as if they were not there.
            let mut alone = machines.clone();
            for machine in &mut alone {
                for (kernel, other) in bases.iter().enumerate() {
                    if other != base {
                        machine.row_mut(kernel).fill(0.0);
                    }
                }
            }
            let own = variance_shares(&alone, &levels, &task_of, tasks.len());
            kernels.push(json!({ "kernel": base, "shares": own.overall }));
        }
        let by_task = tasks.iter().zip(&all.by_task);
        let by_task: Vec<Value> = by_task
            .map(|(name, shares)| json!({ "task": name, "shares": shares }))
            .collect();
        Ok(Some(json!({
            "levels": all.levels,
            "overall": all.overall,
            "tasks": by_task,
            "kernels": kernels,
        })))
    }
}

/// Grids with the same rows side by side.
fn beside(parts: &[Grid]) -> mtmkl::Result<Grid> {
    let rows = parts.first().map_or(0, Grid::rows);
    let width = parts.iter().map(Grid::kernels).sum();
    let values = (0..rows).flat_map(|row| parts.iter().flat_map(move |part| part.row(row)));
    Grid::new(rows, width, values.copied().collect())
}
