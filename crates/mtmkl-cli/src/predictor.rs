//! A model with its frame: from rows to predictions in the user's words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::{DataProblem, Place};
use mtmkl::{CrossGram, Input, Model, Rows};
use mtmkl_table::{Frame, Goal, Gram, Predictions, Records, Table};

use crate::words::{listed, nearest};

/// Kernel matrices new rows × training rows of the table the model was fitted on, by name, with k(x, x) of the new rows where known.
pub type CrossGrams = BTreeMap<String, (Gram, Option<Vec<f64>>)>;

/// A model and how to feed it.
#[derive(Debug)]
pub struct Predictor<'a> {
    /// The model.
    pub model: &'a Model,
    /// How tables become numbers.
    pub frame: &'a Frame,
    /// Predict for unknown tasks from the common part.
    pub new_tasks: bool,
    /// For each sample set, its rows in the training table: precomputed kernels refer to them.
    pub training_rows: &'a [Vec<usize>],
    /// Most bytes that rows may take.
    pub limit: u64,
}

/// Rows to predict for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The table.
    pub table: &'a Table,
    /// Those of its rows that are meant.
    pub records: &'a Records,
    /// Their part of the kernel matrices.
    pub cross: &'a CrossGrams,
}

impl Predictor<'_> {
    /// Predicts for rows of a table.
    ///
    /// # Errors
    /// When a task is unknown, a kernel matrix is missing, or a gap is not filled.
    pub fn predict(&self, asked: &Asked<'_>) -> Result<Predictions> {
        match &self.frame.goal {
            Goal::Multiclass { classes, scheme } => {
                let rows: Vec<usize> = (0..asked.records.count()).collect();
                let all = self.with_input(0, asked, &rows, |input| {
                    self.model.decisions(input).map_err(own_missing)
                })?;
                Ok(Predictions::of_classes(classes, *scheme, &all))
            }
            goal => self.predict_tasks(goal, asked),
        }
    }

    fn predict_tasks(&self, goal: &Goal, asked: &Asked<'_>) -> Result<Predictions> {
        let only = &self.model.tasks()[0].name;
        let mut predictions = Predictions::of_rows(asked.records.count());
        let machine = self.model.machine().build();
        for (task, rows) in asked.records.by_task(only) {
            let known = self.model.tasks().iter().find(|known| known.name == task);
            let decisions = match known {
                Some(known) => self.with_input(known.set, asked, &rows, |input| {
                    self.model.decision(task, input).map_err(own_missing)
                })?,
                None if self.new_tasks && self.model.common().is_some() => {
                    if !asked.cross.is_empty() {
                        bail!(
                            "task `{task}` was never seen: precomputed kernels have no rows for it"
                        );
                    }
                    self.with_input(0, asked, &rows, |input| {
                        Ok(self.model.decision_of_new_task(input)?)
                    })?
                }
                None => {
                    let advice = if self.model.common().is_some() {
                        "; --new-tasks predicts for it from what the tasks share"
                    } else {
                        "; its sharing has no common part, from which a new task could be predicted"
                    };
                    let known: Vec<&str> = self
                        .model
                        .tasks()
                        .iter()
                        .map(|known| known.name.as_str())
                        .collect();
                    let near = nearest(task, &known)
                        .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
                    bail!(
                        "the model was not fitted on the task `{task}`{near}, but on {}{advice}",
                        listed(&known)
                    );
                }
            };
            for (&row, decision) in rows.iter().zip(decisions) {
                predictions.fill(row, goal, machine.as_ref(), decision);
            }
        }
        Ok(predictions)
    }

    /// Calls the model with these rows and, for precomputed kernels, the part of the matrices that belongs to sample set `set`.
    fn with_input<T>(
        &self,
        set: usize,
        asked: &Asked<'_>,
        rows: &[usize],
        call: impl FnOnce(Input<'_>) -> Result<T>,
    ) -> Result<T> {
        let d = self.frame.features.len();
        let positions: Vec<usize> = rows
            .iter()
            .map(|&row| asked.records.positions[row])
            .collect();
        let own = self.frame.gather(asked.table, &positions, self.limit)?;
        // (name, values, k(x, x)) of each matrix
        let mut parts = Vec::new();
        for (name, (gram, diagonal)) in asked.cross {
            let training = self
                .training_rows
                .get(set)
                .context("the model does not say which rows it was fitted on")?;
            // All rows and columns in order are those that are there.
            let is_whole = rows.iter().copied().eq(0..gram.rows)
                && training.iter().copied().eq(0..gram.columns);
            let part = if is_whole {
                Cow::Borrowed(gram.values.as_slice())
            } else {
                Cow::Owned(part_of(name, gram, rows, training)?)
            };
            let diagonal: Option<Vec<f64>> = diagonal
                .as_ref()
                .map(|all| rows.iter().map(|&row| all[row]).collect());
            parts.push((name, part, diagonal));
        }
        let grams: Vec<CrossGram<'_>> = parts
            .iter()
            .map(|(name, values, own)| CrossGram {
                name,
                values,
                own: own.as_deref(),
            })
            .collect();
        let table = if d == 0 {
            None
        } else {
            Some(Rows::new(&own, rows.len(), d)?)
        };
        call(Input {
            count: rows.len(),
            rows: table,
            grams: &grams,
        })
    }
}

/// These rows and columns of a kernel matrix.
fn part_of(name: &str, gram: &Gram, rows: &[usize], columns: &[usize]) -> Result<Vec<f64>> {
    // A column too far would be found in the next row.
    let value = |row: usize, column: usize| {
        let at = (column < gram.columns).then_some(row * gram.columns + column)?;
        gram.values.get(at).copied()
    };
    let cells = rows
        .iter()
        .flat_map(|&row| columns.iter().map(move |&column| (row, column)));
    let part: Option<Vec<f64>> = cells.map(|(row, column)| value(row, column)).collect();
    part.with_context(|| {
        format!(
            "kernel matrix `{name}` is {} × {}, too small: it needs a row for each new row and a column for each row of the training \
             table",
            gram.rows, gram.columns
        )
    })
}

/// k(x, x) is asked for in the words of `--cross`.
fn own_missing(error: mtmkl::Error) -> anyhow::Error {
    match error {
        mtmkl::Error::Data {
            place: Place::Gram { name, .. },
            problem: DataProblem::OwnMissing,
        } => anyhow!(
            "--cross {name}: the values k(x, x) of the new rows are needed too, to normalise the kernel or for the sphere of \
             svdd; save both with numpy.savez(FILE, k=K, own=diagonal[:, None])"
        ),
        other => other.into(),
    }
}
