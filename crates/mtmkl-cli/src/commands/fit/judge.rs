//! Which rows a model is judged by, and its scores there beside those of simpler models.

use anyhow::{Result, bail};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Model, Prepared, Stop, Task};
use mtmkl_table::{Records, Table};
use serde_json::json;

use super::limits::fitting_of;
use super::open::{Fit, note_rows, read_table};
use crate::args::FitArgs;
use crate::predictor::{Asked, CrossGrams, Predictor};
use crate::progress::Progress;
use crate::score::{Score, metric, score};
use crate::words::count;

/// The rows that scores are about.
pub(super) struct Judged {
    /// Where they stand, if not in the table that is learned from.
    table: Option<Table>,
    pub(super) records: Records,
    /// The kernel matrices' part.
    cross: CrossGrams,
    /// What they are, in words.
    split: String,
}

/// Scores of the model and its baselines, on rows that were held out or, without such, on the training rows.
pub(super) struct Scores {
    pub(super) split: String,
    pub(super) methods: Vec<(String, Score)>,
}

impl Fit {
    /// The rows to score on: those of `--test`, those held out, or those learned from.
    pub(super) fn judged(&self, args: &FitArgs, tasks: &[Task]) -> Result<Judged> {
        if let Some(path) = &args.test {
            if !self.grams.is_empty() {
                bail!(
                    "--test cannot be used with precomputed kernels; use --test-fraction, or mtmkl evaluate --cross"
                );
            }
            let names = self.frame.names();
            let table = read_table(path, &args.table, &names, Some(self.ledger.left()))?;
            let records = self.frame.records(&table, true, None, &[])?;
            note_rows(&self.frame, &table, &records)?;
            let names = records.task.iter().flat_map(|names| names.groups());
            let mut names = names.map(|(name, _)| name);
            let strange = names.find(|name| tasks.iter().all(|task| task.name != *name));
            if let Some(name) = strange {
                bail!(
                    "{}: there is no task `{name}` in {}, so it cannot be scored; leave its rows out",
                    table.source,
                    self.table.source
                );
            }
            // Said before anything is computed.
            self.frame.check(&table, &records.positions)?;
            return Ok(Judged {
                cross: CrossGrams::new(),
                split: format!(
                    "{} of {}",
                    count(records.count(), "row", "rows"),
                    table.source
                ),
                table: Some(table),
                records,
            });
        }
        let held = !self.test.is_empty();
        let rows = if held { &self.test } else { &self.train };
        let records = self.records.select(rows);
        if held {
            self.frame.check(&self.table, &records.positions)?;
        }
        let cross = self
            .grams
            .iter()
            .map(|(name, gram)| {
                let n = gram.columns;
                let positions = &records.positions;
                let own = positions.iter().map(|&row| gram.values[row * n + row]);
                let own = Some(own.collect());
                (name.clone(), (gram.with_rows(positions), own))
            })
            .collect();
        let split = if held {
            format!(
                "{} of {}",
                count(rows.len(), "held-out row", "held-out rows"),
                self.records.count()
            )
        } else {
            format!("the {} training rows", rows.len())
        };
        Ok(Judged {
            table: None,
            records,
            cross,
            split,
        })
    }

    pub(super) fn scores(
        &self,
        args: &FitArgs,
        judged: &Judged,
        training_rows: &[Vec<usize>],
        model: &Model,
        prepared: &Prepared,
        stop: &Stop,
    ) -> Result<Scores> {
        let asked = Asked {
            table: judged.table.as_ref().unwrap_or(&self.table),
            records: &judged.records,
            cross: &judged.cross,
        };
        let judge = |model: &Model| -> Result<Score> {
            let predictor = Predictor {
                model,
                frame: &self.frame,
                new_tasks: false,
                training_rows,
                limit: self.ledger.limit(),
            };
            let predictions = prepared.pool().install(|| predictor.predict(&asked))?;
            let metric = metric(None, &self.frame.goal)?;
            score(&self.frame, asked.records, &predictions, None, metric)
        };
        let mut methods = vec![("learned".to_string(), judge(model)?)];
        if args.baselines {
            let machine: &MachineSpec = model.machine();
            let fit_with = |sharing: &SharingSpec| -> Result<Model> {
                let mut silent = Progress::new(false, true, args.tol);
                let mut fitting = fitting_of(args, stop, &mut silent)?;
                Ok(prepared.with(machine, sharing)?.fit(&mut fitting)?)
            };
            methods.push((
                "uniform".to_string(),
                judge(&fit_with(&SharingSpec::uniform())?)?,
            ));
            let kernels = model.kernels();
            let mut best: Option<(String, Score)> = None;
            for number in 0..kernels.len() {
                let mut weights = vec![0.0; kernels.len()];
                weights[number] = 1.0;
                let score = judge(&fit_with(&SharingSpec::fixed(weights))?)?;
                if best
                    .as_ref()
                    .is_none_or(|(_, known)| score.mean > known.mean)
                {
                    best = Some((format!("best single: {}", kernels[number].name), score));
                }
            }
            methods.extend(best);
        }
        Ok(Scores {
            split: judged.split.clone(),
            methods,
        })
    }
}

impl Scores {
    pub(super) fn json(&self) -> serde_json::Value {
        json!({
            "split": self.split,
            "methods": self.methods.iter().map(|(name, score)| json!({
                "name": name, "metric": score.metric, "mean": score.mean, "tasks": score.tasks,
            })).collect::<Vec<_>>(),
        })
    }
}
