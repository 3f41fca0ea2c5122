//! A model with its frame: from rows to predictions in the user's words.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::{DataProblem, Place};
use mtmkl::select::Calibration;
use mtmkl::task_kernel::Origin;
use mtmkl::{CrossGram, Input, Model};
use mtmkl_table::{Frame, Goal, Gram, Predictions, Records, Table};

use crate::output;
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
    /// What makes probabilities of its decisions, where it has that.
    pub calibration: Option<&'a Calibration>,
    /// Predict for unknown tasks from the common part.
    pub new_tasks: bool,
    /// For each sample set, its rows in the training table: precomputed kernels refer to them.
    pub training_rows: &'a [Vec<usize>],
    /// Most bytes that rows may take.
    pub limit: u64,
    /// Tasks of which it was said that the model never saw them: rows may come in parts, and it is said once.
    pub noted: Mutex<BTreeSet<String>>,
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
        let (model, goal) = (self.model, &self.frame.goal);
        let only = self.frame.only_task();
        let machine = model.machine().build();
        let judge = (goal, machine.as_ref());
        let mut predictions = Predictions::of_rows(goal, asked.records.count());
        let by_task = asked.records.by_task(&only).into_iter();
        let parts = by_task.flat_map(|(task, rows)| {
            let parts = (self.frame).origins(model, task, asked.table, asked.records, rows);
            parts.into_iter().map(move |part| (task, part))
        });
        for (task, (origin, rows)) in parts {
            let is_named = self.frame.task.is_some();
            let set = if let Some(origin) = &origin {
                if !origin.is_known() && self.is_news(task) {
                    let groups = if origin.has_groups() {
                        " and its group"
                    } else {
                        ""
                    };
                    output::note(&format!(
                        "note: the model never saw the task `{task}`; it is predicted from what all tasks{groups} share"
                    ));
                }
                Some(0)
            } else {
                // A task column that the model never had says nothing.
                let name = if is_named {
                    task
                } else {
                    &model.tasks()[0].name
                };
                goal.set_of(model, name)
            };
            if let Some(set) = set {
                let decisions = self.with_input(set, asked, &rows, origin.as_ref(), |input| {
                    model.decisions_on(set, input).map_err(own_missing)
                })?;
                let sigmoids = self.calibration.map(|own| own.on(model, set));
                predictions.decide(&rows, judge, set, &decisions, sigmoids.as_deref());
            } else {
                let decisions = vec![self.of_new_task(task, asked, &rows)?];
                let pooled = self.calibration.map(|calibration| [calibration.pooled]);
                let pooled = pooled.as_ref().map(<[_; 1]>::as_slice);
                predictions.decide(&rows, judge, 0, &decisions, pooled);
            }
        }
        Ok(predictions)
    }

    /// Whether nothing was said of this task before.
    fn is_news(&self, task: &str) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.insert(task.to_string())
    }

    /// Decision values for a task that was never seen, if that is asked for and can be.
    fn of_new_task(&self, task: &str, asked: &Asked<'_>, rows: &[usize]) -> Result<Vec<f64>> {
        let several = matches!(self.frame.goal, Goal::Multiclass { .. });
        let is_possible = self.model.common().is_some() && !several;
        if self.new_tasks && is_possible {
            if !asked.cross.is_empty() {
                bail!("task `{task}` was never seen: precomputed kernels have no rows for it");
            }
            return self.with_input(0, asked, rows, None, |input| {
                Ok(self.model.decision_of_new_task(input)?)
            });
        }
        let advice = if is_possible {
            "; --new-tasks predicts for it from what the tasks share"
        } else if several {
            "; which of several classes a new task has is not known"
        } else {
            "; its sharing has no common part, from which a new task could be predicted"
        };
        let machines = self.model.tasks().iter().map(|task| &task.name);
        let known = self.frame.goal.tasks_of(machines);
        let near = nearest(task, &known)
            .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        bail!(
            "the model was not fitted on the task `{task}`{near}, but on {}{advice}",
            listed(&known)
        )
    }

    /// Calls the model with these rows and, for precomputed kernels, the part of the matrices that belongs to sample set `set`.
    fn with_input<T>(
        &self,
        set: usize,
        asked: &Asked<'_>,
        rows: &[usize],
        origin: Option<&Origin>,
        call: impl FnOnce(Input<'_>) -> Result<T>,
    ) -> Result<T> {
        let d = self.frame.features.len();
        let positions: Vec<usize> = rows
            .iter()
            .map(|&row| asked.records.positions[row])
            .collect();
        let own = self
            .frame
            .gather_rows(asked.table, &positions, self.limit)?;
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
            Some(own.table(rows.len(), d)?)
        };
        call(Input {
            count: rows.len(),
            rows: table,
            grams: &grams,
            origin,
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
