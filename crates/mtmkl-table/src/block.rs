//! Rows of numbers that lie together and are complete, with the task of each, as sample sets and tasks: of thousands of tasks in one call.

use mtmkl::{RowValues, Samples, SparseRows, Targets, Task};

use crate::Result;
use crate::class_weight::ClassWeight;
use crate::dataset::{Dataset, task_of};
use crate::error::TableError;
use crate::frame::Frame;
use crate::goal::Goal;
use crate::merge::{Group, move_rows};
use crate::names::by_number_then_text;

/// The numbers of rows, before they are scaled.
#[derive(Debug, Clone, Copy)]
pub enum BlockRows<'a> {
    /// All of them row by row, as bytes: what came over a wire may begin anywhere.
    Dense(&'a [[u8; 8]]),
    /// Those that are not zero; the frame keeps zeros.
    Sparse(&'a SparseRows),
}

/// Rows with the task, the target and the weight of each.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The rows.
    pub rows: BlockRows<'a>,
    /// The names of tasks, and for each row the number of its own; none without tasks.
    pub tasks: Option<(&'a [String], &'a [i32])>,
    /// What the only task is called without.
    pub only: &'a str,
    /// For each row the number to predict, or that of its class; none without targets.
    pub targets: Option<&'a [f64]>,
    /// How often each row counts.
    pub weights: &'a [f64],
    /// What an error costs, by class.
    pub class_weight: Option<&'a ClassWeight>,
}

impl Block<'_> {
    /// The rows of each task, tasks in the order of names, without those of weight 0.
    fn groups(&self) -> Result<Vec<Group>> {
        let all = [self.only.to_string()];
        let (names, of): (&[String], _) = match self.tasks {
            Some((names, of)) => (names, Some(of)),
            None => (&all, None),
        };
        let mut rows: Vec<Option<Vec<usize>>> = vec![None; names.len()];
        for (row, weight) in self.weights.iter().enumerate() {
            let task = of.map_or(Some(0), |of| usize::try_from(of[row]).ok());
            if let Some(own) = task.and_then(|task| rows.get_mut(task)) {
                let own = own.get_or_insert_default();
                if *weight != 0.0 {
                    own.push(row);
                }
            }
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|&a, &b| by_number_then_text(&names[a], &names[b]));
        let present = order.into_iter().filter_map(|task| {
            let rows = rows[task].take()?;
            Some((names[task].clone(), rows))
        });
        let group = |(name, rows): (String, Vec<usize>)| {
            if rows.is_empty() {
                return Err(TableError::NoWeight { task: name });
            }
            let weights = rows.iter().map(|&row| self.weights[row]).collect();
            Ok(Group {
                name,
                rows,
                weights,
            })
        };
        present.map(group).collect()
    }

    /// What tells samples of a group with equal rows apart.
    fn keys(&self, group: &Group) -> Option<Vec<f64>> {
        let targets = self.targets?;
        Some(group.rows.iter().map(|&row| targets[row]).collect())
    }

    /// The machines on a group with their targets and weights.
    fn tasks(&self, goal: &Goal, group: &Group) -> Vec<Task> {
        let name = group.name.clone();
        let Some(keys) = self.keys(group) else {
            return vec![weighed(
                Task::new(name, Targets::Unlabelled),
                &group.weights,
            )];
        };
        if goal.classes().is_empty() {
            return vec![weighed(
                Task::new(name, Targets::Values(keys)),
                &group.weights,
            )];
        }
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "numbers of classes; others are of none"
        )]
        let codes: Vec<usize> = keys.iter().map(|&key| key as usize).collect();
        let mut weights = group.weights.clone();
        if let Some(prices) = self.class_weight {
            let factors = prices.factors(goal.classes(), &codes, &weights);
            for (weight, code) in weights.iter_mut().zip(&codes) {
                *weight *= factors.get(*code).copied().unwrap_or(1.0);
            }
        }
        let labels = goal.labels(&name, &codes).into_iter();
        labels
            .map(|(name, labels)| weighed(task_of(name, labels), &weights))
            .collect()
    }
}

/// The task with the weights of its rows, where they are not all 1.
fn weighed(task: Task, weights: &[f64]) -> Task {
    let rows = 0..task.rows.count(weights.len());
    let own: Vec<f64> = rows.map(|at| weights[task.rows.position(at)]).collect();
    if own.iter().all(|weight| *weight == 1.0) {
        return task;
    }
    task.with_weights(own)
}

impl Frame {
    /// These of the rows, in this order, on the scales of their columns.
    ///
    /// # Errors
    /// When a number is beyond the scale of its column.
    pub fn scaled_rows(&self, all: BlockRows<'_>, rows: &[usize]) -> Result<RowValues> {
        let columns = self.features.len();
        match all {
            BlockRows::Dense(values) => {
                let mut scaled = Vec::with_capacity(rows.len() * columns);
                for &row in rows {
                    let own = &values[row * columns..(row + 1) * columns];
                    for (column, bytes) in own.iter().enumerate() {
                        let value = f64::from_ne_bytes(*bytes);
                        scaled.push(self.scaled_cell(row, column, value)?);
                    }
                }
                Ok(RowValues::Dense(scaled))
            }
            BlockRows::Sparse(all) => {
                let own = all.select(rows);
                let values = self.scaled_entries(&own)?;
                let (offsets, columns) = (own.offsets().to_vec(), own.columns().to_vec());
                let made = SparseRows::new(offsets, columns, values, own.width())?;
                Ok(RowValues::Sparse(made))
            }
        }
    }
}

impl Dataset {
    /// The sample sets of a block, equal samples taken together, and their tasks; and the task of the table that each set is of.
    ///
    /// # Errors
    /// When a number is beyond the scale of its column, a task has no row that counts, or the core refuses the rows.
    pub fn of_block(frame: &Frame, block: &Block<'_>) -> Result<(Self, Vec<String>)> {
        let columns = frame.features.len();
        let mut made = Self {
            samples: Vec::new(),
            tasks: Vec::new(),
            rows: Vec::new(),
            counts: Vec::new(),
        };
        let mut names = Vec::new();
        for mut group in block.groups()? {
            let mut values = frame.scaled_rows(block.rows, &group.rows)?;
            let places = group.merge_rows(&values, block.keys(&group).as_deref());
            move_rows(&mut values, columns, &places);
            let number = made.samples.len();
            let tasks = block.tasks(&frame.goal, &group).into_iter();
            made.tasks.extend(tasks.map(|task| task.on(number)));
            let set = Samples::of_rows(values, group.rows.len(), frame.columns());
            made.samples.push(set?);
            made.rows.push(group.rows);
            made.counts.push(group.weights);
            names.push(group.name);
        }
        Ok((made, names))
    }
}
