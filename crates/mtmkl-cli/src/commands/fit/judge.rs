//! Which rows a model is judged by, and its scores there beside those of simpler models.

use anyhow::{Result, bail};
use mtmkl::select::Calibration;
use mtmkl::{Model, Prepared, Stop, Task};
use mtmkl_table::{Frame, Predictions, Records, Table};
use serde_json::json;

use super::baselines::Wanted;
use super::open::{Fit, note_rows, read_table};
use crate::args::FitArgs;
use crate::confusion::Confusion;
use crate::predictor::{Asked, CrossGrams, Predictor};
use crate::score::{Method, losses, metric, scores};
use crate::words::count;
use crate::{constant, guards, output};

/// The rows that scores are about.
pub(super) struct Judged {
    /// Where they stand, if not in the table that is learned from.
    pub(super) table: Option<Table>,
    pub(super) records: Records,
    /// The kernel matrices' part.
    pub(super) cross: CrossGrams,
    /// What they are, in words.
    split: String,
    /// Whether the model has not seen them.
    held_out: bool,
}

/// Pairs of rows that are scored where somebody waits for the program to end: a quarter of a second's.
const AT_ONCE: usize = 5_000_000;
/// With fewer rows than these a score says nothing.
const FEWEST: usize = 100;

impl Judged {
    /// So few of the rows, spread over all of them, that their scores take no time to speak of: for whoever asked to stop.
    pub(super) fn at_once(mut self, model: &Model) -> Self {
        let sets = model.support_sets().iter();
        let support: usize = sets.map(|set| set.positions.len()).sum();
        let (all, most) = (self.records.count(), (AT_ONCE / support.max(1)).max(FEWEST));
        if all > most && self.cross.is_empty() {
            let rows: Vec<usize> = (0..most).map(|number| number * all / most).collect();
            self.records = self.records.select(&rows);
            self.split = format!("{} of {}", count(most, "row", "rows"), self.split);
        }
        self
    }
}

/// A model as it was fitted.
pub(super) struct Trained<'a> {
    pub(super) model: &'a Model,
    pub(super) prepared: &'a Prepared,
    /// For each sample set, its rows among the records.
    pub(super) rows: &'a [Vec<usize>],
    /// The same in the table.
    pub(super) training_rows: &'a [Vec<usize>],
    pub(super) stop: &'a Stop,
    /// What makes probabilities of its decisions, where that was asked for.
    pub(super) calibration: Option<&'a Calibration>,
}

/// Scores of the model and its baselines, on rows that were held out or, without such, on the training rows.
pub(super) struct Scores {
    split: String,
    held_out: bool,
    by_class: bool,
    pub(super) methods: Vec<Method>,
    confusion: Option<Confusion>,
    /// About baselines that are not there.
    remarks: Vec<String>,
    /// What a person should know about them.
    pub(super) warnings: Vec<String>,
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
            guards::note_unknown_classes(&self.frame, &table.source, &records);
            let names = records.task.iter().flat_map(|names| names.groups());
            let mut names = names.map(|(name, _)| name);
            let known = self
                .frame
                .goal
                .tasks_of(tasks.iter().map(|task| &task.name));
            // With kernels between tasks, what all of them share says something of any.
            let is_strange = |name: &&str| self.frame.transfer.is_none() && !known.contains(name);
            let strange = names.find(is_strange);
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
                held_out: true,
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
            format!(
                "the {} it learned from, which says nothing about new rows",
                count(rows.len(), "row", "rows")
            )
        };
        Ok(Judged {
            table: None,
            records,
            cross,
            split,
            held_out: held,
        })
    }

    /// What a model says of the rows that are judged by; `frame` and `records` may leave the tasks out.
    pub(super) fn predictions(
        &self,
        judged: &Judged,
        (frame, records): (&Frame, &Records),
        training_rows: &[Vec<usize>],
        model: (&Model, Option<&Calibration>),
        prepared: &Prepared,
    ) -> Result<Predictions> {
        let asked = Asked {
            table: judged.table.as_ref().unwrap_or(&self.table),
            records,
            cross: &judged.cross,
        };
        let predictor = Predictor {
            model: model.0,
            frame,
            calibration: model.1,
            new_tasks: false,
            training_rows,
            limit: self.ledger.limit(),
            noted: std::sync::Mutex::default(),
        };
        prepared.pool().install(|| predictor.predict(&asked))
    }

    /// Scores of the model beside those of simpler answers.
    pub(super) fn scores(
        &self,
        args: &FitArgs,
        judged: &Judged,
        trained: &Trained<'_>,
    ) -> Result<Scores> {
        let (frame, records) = (&self.frame, &judged.records);
        let main = metric(
            args.metric.as_deref(),
            &frame.goal,
            args.has_probabilities(),
        )?;
        let own = (frame, records);
        let rows = trained.training_rows;
        let model = (trained.model, trained.calibration);
        let learned = self.predictions(judged, own, rows, model, trained.prepared)?;
        let confusion = judged
            .held_out
            .then(|| Confusion::of(frame, records, &learned));
        let mut answers = vec![("learned".to_string(), learned)];
        let mut majority = None;
        if judged.held_out
            && let Some((word, answer)) = constant::predictions(
                frame,
                &self.records,
                &self.train,
                records,
                trained.calibration.is_some(),
            )?
        {
            majority = word;
            answers.push((constant::name(&frame.goal).to_string(), answer));
        }
        let wanted = Wanted::of(self, args, judged.held_out, trained);
        let (simpler, remarks) = self.baselines(args, &wanted, judged, trained)?;
        answers.extend(simpler);
        let method = |(name, answer): &(String, Predictions)| -> Result<Method> {
            Ok(Method {
                name: name.clone(),
                scores: scores(frame, records, answer, None, main)?,
            })
        };
        let methods = answers.iter().map(method).collect::<Result<Vec<_>>>()?;
        let losses: Vec<_> = answers
            .iter()
            .map(|(_, answer)| losses(frame, records, answer))
            .collect();
        let warnings = if judged.held_out {
            guards::of_scores(
                "held-out rows",
                main,
                &methods,
                &losses,
                majority.as_deref(),
            )
        } else {
            Vec::new()
        };
        Ok(Scores {
            split: judged.split.clone(),
            held_out: judged.held_out,
            by_class: frame.goal.is_by_class(),
            methods,
            confusion: confusion.flatten(),
            remarks,
            warnings,
        })
    }
}

impl Scores {
    pub(super) fn json(&self) -> serde_json::Value {
        let mut object = json!({
            "split": self.split,
            "held_out": self.held_out,
            "methods": self.methods.iter().map(Method::json).collect::<Vec<_>>(),
        });
        if let Some(confusion) = &self.confusion {
            object["confusion"] = json!(confusion);
        }
        object
    }

    /// The scores of simpler answers.
    pub(super) fn baselines(&self) -> serde_json::Value {
        self.methods[1..].iter().map(Method::json).collect()
    }

    /// For people: tables, and what they are worth.
    pub(super) fn text(&self) -> String {
        let about = if self.held_out {
            ""
        } else {
            " (--test-fraction 0.3 holds some back)"
        };
        let mut text = format!(
            "On {}{about}:\n\n{}",
            self.split,
            output::scores(&self.methods, self.by_class)
        );
        if let Some(confusion) = &self.confusion {
            text += &format!("\n{}", confusion.text());
        }
        for remark in &self.remarks {
            text += &format!("({remark})\n");
        }
        text
    }
}
