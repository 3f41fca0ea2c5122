//! A model with its frame: from rows to predictions in the user's words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::{DataProblem, Place};
use mtmkl::machine::Machine;
use mtmkl::{CrossGram, Input, Model, Rows};

use crate::args::Multiclass;
use crate::dataset::{pair_name, pairs};
use crate::frame::{Frame, Goal, Raw};
use crate::input::Gram;
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
}

/// Predictions for all rows, in their order.
#[derive(Debug, Clone, Default)]
pub struct Predictions {
    /// The prediction as the user writes it: a class, a number, 1 or -1.
    pub labels: Vec<String>,
    /// The same as a number: the value, or ±1.
    pub numbers: Vec<f64>,
    /// Decision values, one list per row.
    pub decisions: Vec<Vec<f64>>,
    /// What the decision values are called.
    pub names: Vec<String>,
    /// For several classes, each one's value for every row; the largest one wins.
    pub class_values: Vec<Vec<f64>>,
}

impl Predictions {
    /// For several classes, from the decision values of each task: the class with the largest value, or with the most votes.
    pub fn of_classes(classes: &[String], scheme: Multiclass, tasks: &[Vec<f64>]) -> Self {
        let names: Vec<String> = match scheme {
            Multiclass::Ova => classes.to_vec(),
            Multiclass::Ovo => pairs(classes)
                .into_iter()
                .map(|(a, b)| pair_name(&classes[a], &classes[b]))
                .collect(),
        };
        let mut predictions = Self {
            names,
            class_values: vec![Vec::new(); classes.len()],
            ..Self::default()
        };
        for row in 0..tasks.first().map_or(0, Vec::len) {
            let decisions: Vec<f64> = tasks.iter().map(|task| task[row]).collect();
            let scores = match scheme {
                Multiclass::Ova => decisions.clone(),
                Multiclass::Ovo => {
                    // A vote per pair; margins, squeezed below one vote, break ties.
                    let mut votes = vec![0.0; classes.len()];
                    for ((first, second), decision) in pairs(classes).into_iter().zip(&decisions) {
                        votes[if *decision >= 0.0 { second } else { first }] += 1.0;
                        let margin =
                            decision / (3.0 * (decision.abs() + 1.0) * classes.len() as f64);
                        votes[second] += margin;
                        votes[first] -= margin;
                    }
                    votes
                }
            };
            let mut best = 0;
            for (class, score) in scores.iter().enumerate() {
                if *score > scores[best] {
                    best = class;
                }
                predictions.class_values[class].push(*score);
            }
            predictions.labels.push(classes[best].clone());
            predictions.numbers.push(best as f64);
            predictions.decisions.push(decisions);
        }
        predictions
    }

    /// Room for rows that are filled in task by task.
    pub fn of_rows(count: usize) -> Self {
        Self {
            labels: vec![String::new(); count],
            numbers: vec![0.0; count],
            decisions: vec![Vec::new(); count],
            names: vec!["decision".to_string()],
            class_values: Vec::new(),
        }
    }

    /// One row's prediction, from its task's decision value.
    pub fn fill(&mut self, row: usize, goal: &Goal, machine: &dyn Machine, decision: f64) {
        let number = machine.predict(decision);
        self.labels[row] = match goal {
            Goal::Binary { classes } => classes[usize::from(number > 0.0)].clone(),
            _ => number.to_string(),
        };
        self.numbers[row] = number;
        self.decisions[row] = vec![decision];
    }
}

impl Predictor<'_> {
    /// Predicts for rows that are scaled already.
    ///
    /// # Errors
    /// When a task is unknown, or a kernel matrix is missing.
    pub fn predict(&self, raw: &Raw, values: &[f64], cross: &CrossGrams) -> Result<Predictions> {
        let rows: Vec<usize> = (0..raw.count).collect();
        match &self.frame.goal {
            Goal::Multiclass { classes, scheme } => {
                self.predict_classes(classes, *scheme, values, &rows, cross)
            }
            goal => self.predict_tasks(goal, raw, values, cross),
        }
    }

    fn predict_classes(
        &self,
        classes: &[String],
        scheme: Multiclass,
        values: &[f64],
        rows: &[usize],
        cross: &CrossGrams,
    ) -> Result<Predictions> {
        let all = self.with_input(0, values, rows, cross, |input| {
            self.model.decisions(input).map_err(own_missing)
        })?;
        Ok(Predictions::of_classes(classes, scheme, &all))
    }

    fn predict_tasks(
        &self,
        goal: &Goal,
        raw: &Raw,
        values: &[f64],
        cross: &CrossGrams,
    ) -> Result<Predictions> {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for row in 0..raw.count {
            let task = match &raw.task {
                Some(tasks) => tasks[row].clone(),
                None => self.model.tasks()[0].name.clone(),
            };
            groups.entry(task).or_default().push(row);
        }
        let mut predictions = Predictions::of_rows(raw.count);
        let machine = self.model.machine().build();
        for (task, rows) in groups {
            let known = self.model.tasks().iter().find(|known| known.name == task);
            let decisions = match known {
                Some(known) => self.with_input(known.set, values, &rows, cross, |input| {
                    self.model.decision(&task, input).map_err(own_missing)
                })?,
                None if self.new_tasks && self.model.common().is_some() => {
                    if !cross.is_empty() {
                        bail!(
                            "task `{task}` was never seen: precomputed kernels have no rows for it"
                        );
                    }
                    self.with_input(0, values, &rows, cross, |input| {
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
                    let near = nearest(&task, &known)
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
        values: &[f64],
        rows: &[usize],
        cross: &CrossGrams,
        call: impl FnOnce(Input<'_>) -> Result<T>,
    ) -> Result<T> {
        let d = self.frame.features.len();
        let own: Vec<f64> = rows
            .iter()
            .flat_map(|&row| &values[row * d..(row + 1) * d])
            .copied()
            .collect();
        // (name, values, k(x, x)) of each matrix
        let mut parts = Vec::new();
        for (name, (gram, diagonal)) in cross {
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
