//! Scores over the grid: a table, JSON, a picture.

use mtmkl_report::HeatMap;
use serde_json::{Value, json};

use super::plan::Done;
use super::{Finished, Tune};
use crate::output;
use crate::words::count;

/// With more cells than this, only the best are printed.
const PRINTED: usize = 40;

/// One cell over all folds.
struct Row {
    cell: usize,
    mean: f64,
    deviation: f64,
    folds: Vec<Option<f64>>,
    not_converged: usize,
    passes: usize,
    seconds: f64,
}

/// All of them, and which is chosen.
pub(super) struct Results {
    rows: Vec<Row>,
    pub(super) best: usize,
}

impl Results {
    pub(super) fn new(tune: &Tune, done: &Done) -> Self {
        let rows: Vec<Row> = (0..tune.plan.cells().len())
            .map(|cell| {
                let own: Vec<&Finished> = done.values().filter(|one| one.cell == cell).collect();
                let scores: Vec<f64> = own.iter().filter_map(|one| one.score).collect();
                let n = scores.len() as f64;
                let mean = scores.iter().sum::<f64>() / n;
                let squares: f64 = scores.iter().map(|score| (score - mean).powi(2)).sum();
                Row {
                    cell,
                    mean,
                    deviation: if n > 1.0 {
                        (squares / (n - 1.0)).sqrt()
                    } else {
                        f64::NAN
                    },
                    folds: own.iter().map(|one| one.score).collect(),
                    not_converged: own.iter().filter(|one| !one.converged).count(),
                    passes: own.iter().map(|one| one.passes).sum(),
                    seconds: own.iter().map(|one| one.seconds).sum(),
                }
            })
            .collect();
        let means: Vec<f64> = rows.iter().map(|row| row.mean).collect();
        let best = tune.plan.best(done, tune.metric, &means);
        Self { rows, best }
    }

    /// The mean score of the chosen cell.
    pub(super) fn mean(&self) -> f64 {
        self.rows[self.best].mean
    }

    /// What cells differ in: a name and a text for each cell.
    fn differences(tune: &Tune) -> Vec<(String, Vec<String>)> {
        let cells = tune.plan.cells();
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        columns.push((
            "kernels".to_string(),
            cells
                .iter()
                .map(|cell| tune.kernel_sets[cell.kernels].label())
                .collect(),
        ));
        columns.push((
            "sharing".to_string(),
            cells
                .iter()
                .map(|cell| cell.sharing.name().to_string())
                .collect(),
        ));
        // Sharing parameters before machine parameters, as in the grid.
        let mut names: Vec<(bool, &str, String)> = Vec::new();
        for (_, parameter) in tune.registry.parameters() {
            let is_machine = cells[0].machine.takes(parameter.name);
            if parameter.is_number() && names.iter().all(|known| known.1 != parameter.name) {
                names.push((is_machine, parameter.name, parameter.flag()));
            }
        }
        names.sort_by_key(|known| known.0);
        for (_, name, flag) in names {
            let texts = cells
                .iter()
                .map(|cell| cell.get(name).map_or("–".to_string(), short))
                .collect();
            columns.push((flag, texts));
        }
        columns.retain(|(_, texts)| texts.iter().any(|text| *text != texts[0]));
        if columns.is_empty() {
            columns.push((
                "sharing".to_string(),
                vec![cells[0].sharing.name().to_string()],
            ));
        }
        columns
    }

    fn fits(&self) -> usize {
        self.rows.iter().map(|row| row.folds.len()).sum()
    }

    fn not_converged(&self) -> usize {
        self.rows.iter().map(|row| row.not_converged).sum()
    }

    pub(super) fn text(&self, tune: &Tune, computed: usize) -> String {
        let columns = Self::differences(tune);
        let header: Vec<String> = columns
            .iter()
            .map(|(name, _)| name.clone())
            .chain([tune.metric.name(), "±", "passes", "seconds", ""].map(String::from))
            .collect();
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        // What was left after few folds is not beside the others.
        order.retain(|&cell| self.rows[cell].folds.len() == tune.folds.len());
        let left = self.rows.len() - order.len();
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.rows[a], &self.rows[b]);
            let better = tune.metric.is_better(b.mean, a.mean);
            let worse = tune.metric.is_better(a.mean, b.mean);
            better.cmp(&worse).then(a.cell.cmp(&b.cell))
        });
        let shown = if order.len() > PRINTED {
            PRINTED / 2
        } else {
            order.len()
        };
        let rows: Vec<Vec<String>> = order[..shown]
            .iter()
            .map(|&cell| {
                let row = &self.rows[cell];
                let mut cells: Vec<String> = columns
                    .iter()
                    .map(|(_, texts)| texts[cell].clone())
                    .collect();
                cells.push(output::figure(row.mean));
                cells.push(output::figure(row.deviation));
                cells.push(row.passes.to_string());
                cells.push(format!("{:.2} s", row.seconds));
                cells.push(match (cell == self.best, row.not_converged > 0) {
                    (true, false) => "chosen".to_string(),
                    (true, true) => "chosen *".to_string(),
                    (false, true) => "*".to_string(),
                    (false, false) => String::new(),
                });
                cells
            })
            .collect();
        let total = self.fits();
        let mut text = format!(
            "{}, {}: {}{}\n\n{}",
            count(self.rows.len(), "cell", "cells"),
            tune.split,
            count(total, "fit", "fits"),
            if computed < total {
                format!(", {} of them from the journal", total - computed)
            } else {
                String::new()
            },
            output::table(&header, &rows)
        );
        if left > 0 {
            text += &format!(
                "({} after {} of the folds; --json has all, --picture draws them)\n",
                count(left, "more cell was left", "more cells were left"),
                self.rows
                    .iter()
                    .map(|row| row.folds.len())
                    .min()
                    .unwrap_or(0)
            );
        }
        if shown < order.len() {
            text += &format!(
                "(the best {shown} of {}; --json has all, --picture draws them)\n",
                order.len()
            );
        }
        let missed = self.not_converged();
        if missed > 0 {
            text += &format!(
                "* {} of {total} did not reach the tolerance; their scores count as they are\n",
                count(missed, "fit", "fits")
            );
        }
        text
    }

    pub(super) fn json(&self, tune: &Tune, computed: usize) -> Value {
        let cells = tune.plan.cells();
        json!({
            "metric": tune.metric.name(),
            "split": tune.split,
            "folds": tune.folds.len(),
            "fits": self.fits(),
            "computed": computed,
            "not_converged": self.not_converged(),
            "best": self.best,
            "cells": self.rows.iter().map(|row| json!({
                "kernels": tune.kernel_sets[cells[row.cell].kernels].specs,
                "machine": cells[row.cell].machine,
                "sharing": cells[row.cell].sharing,
                "mean": row.mean,
                "deviation": row.deviation,
                "folds": row.folds,
                "not_converged": row.not_converged,
                "passes": row.passes,
                "seconds": row.seconds,
            })).collect::<Vec<_>>(),
        })
    }

    /// The last difference across, the others up.
    pub(super) fn picture(&self, tune: &Tune) -> HeatMap {
        let mut differences = Self::differences(tune);
        let (across, columns_of) = differences.pop().unwrap_or_default();
        let distinct = |texts: &[String]| {
            let mut distinct: Vec<String> = Vec::new();
            for text in texts {
                if !distinct.contains(text) {
                    distinct.push(text.clone());
                }
            }
            distinct
        };
        let row_of: Vec<String> = (0..self.rows.len())
            .map(|cell| {
                let parts: Vec<&str> = differences
                    .iter()
                    .map(|(_, texts)| texts[cell].as_str())
                    .filter(|text| *text != "–")
                    .collect();
                parts.join(", ")
            })
            .collect();
        let (columns, rows) = (distinct(&columns_of), distinct(&row_of));
        let mut values = vec![vec![f64::NAN; columns.len()]; rows.len()];
        let place = |cell: usize| {
            let row = rows.iter().position(|name| *name == row_of[cell]);
            let column = columns.iter().position(|name| *name == columns_of[cell]);
            row.zip(column)
        };
        let mut marked = Vec::new();
        for row in &self.rows {
            if let Some((up, along)) = place(row.cell) {
                values[up][along] = row.mean;
                if row.not_converged > 0 {
                    marked.push((up, along));
                }
            }
        }
        let best = place(self.best);
        let names: Vec<&str> = differences.iter().map(|(name, _)| name.as_str()).collect();
        HeatMap {
            title: format!("{} over the grid, {}", tune.metric.name(), tune.split),
            across,
            up: names.join(", "),
            columns,
            rows,
            values,
            note: if marked.is_empty() {
                String::new()
            } else {
                "* not converged".to_string()
            },
            marked,
            best,
            higher_is_better: !tune.metric.less_is_better(),
        }
    }
}

/// Few digits: 1/27 is shown as 0.037.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    rounded.to_string()
}
