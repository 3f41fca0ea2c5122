//! The rows of a table that are used, and what they say beside their features.

use crate::Result;
use crate::error::{Place, TableError};
use crate::frame::{Frame, complete, target_numbers};
use crate::goal::Goal;
use crate::names::Names;
use crate::table::Table;

/// Rows of a table with their targets, tasks and weights.
#[derive(Debug, Clone)]
pub struct Records {
    /// The position in the table of each row: rows may have been dropped.
    pub positions: Vec<usize>,
    /// The target as text, where there is one.
    pub target: Option<Names>,
    /// The target as numbers, for regression.
    pub numbers: Option<Vec<f64>>,
    /// The task's name, where there is a task column.
    pub task: Option<Names>,
    /// Sample weights.
    pub weights: Option<Vec<f64>>,
}

impl Records {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.positions.len()
    }

    /// Some of the rows.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let names = |all: &Option<Names>| all.as_ref().map(|all| all.select(rows));
        let numbers = |all: &Option<Vec<f64>>| {
            all.as_ref()
                .map(|all| rows.iter().map(|&row| all[row]).collect())
        };
        Self {
            positions: rows.iter().map(|&row| self.positions[row]).collect(),
            target: names(&self.target),
            numbers: numbers(&self.numbers),
            task: names(&self.task),
            weights: numbers(&self.weights),
        }
    }

    /// Adds the rows of the next part of the same table, which has so many rows before it.
    pub fn append(&mut self, part: &Self, before: usize) {
        let positions = part.positions.iter().map(|position| before + position);
        self.positions.extend(positions);
        for (own, more) in [
            (&mut self.target, &part.target),
            (&mut self.task, &part.task),
        ] {
            if let (Some(own), Some(more)) = (own, more) {
                own.append(more);
            }
        }
        let numbers = [
            (&mut self.numbers, &part.numbers),
            (&mut self.weights, &part.weights),
        ];
        for (own, more) in numbers {
            if let (Some(own), Some(more)) = (own, more) {
                own.extend_from_slice(more);
            }
        }
    }

    /// The rows of each task, in the order of names; all of them are those of `only` where there is no task column.
    pub fn by_task<'a>(&'a self, only: &'a str) -> Vec<(&'a str, Vec<usize>)> {
        match &self.task {
            Some(names) => names.groups(),
            None => vec![(only, (0..self.count()).collect())],
        }
    }
}

impl Frame {
    /// The rows of a table that can be used; columns are found by name. `tasks` are names that tasks are known by: numbers in the
    /// table are given theirs.
    ///
    /// # Errors
    /// When a column is not there, has text, or has gaps in a target, task or weight.
    pub fn records(
        &self,
        table: &Table,
        with_target: bool,
        weight: Option<&str>,
        tasks: &[&str],
    ) -> Result<Records> {
        let records = self.records_of_part(table, with_target, weight, tasks)?;
        let first = records.positions.first().copied().unwrap_or(0);
        self.recognised(&table.source, table.place(first), &records)?;
        Ok(records)
    }

    /// As [`Frame::records`], of a table that is a part of a larger one: it may have no row that can be used, and classes of its own.
    ///
    /// # Errors
    /// When a column is not there, has text, or has gaps in a target, task or weight.
    pub fn records_of_part(
        &self,
        table: &Table,
        with_target: bool,
        weight: Option<&str>,
        tasks: &[&str],
    ) -> Result<Records> {
        let target = self.target.as_deref().filter(|_| with_target);
        let positions = self.usable(table, target, weight)?;
        let names = |name: &str, known: &[&str]| -> Result<Names> {
            Ok(Names::of(table, name, known)?.select(&positions))
        };
        let numbers = |all: &[f64]| positions.iter().map(|&row| all[row]).collect();
        let classes: Vec<&str> = self.goal.classes().iter().map(String::as_str).collect();
        Ok(Records {
            target: target.map(|name| names(name, &classes)).transpose()?,
            numbers: match target.filter(|_| self.goal == Goal::Regression) {
                Some(name) => Some(numbers(&target_numbers(table, name)?)),
                None => None,
            },
            task: self
                .task
                .as_deref()
                .map(|name| names(name, tasks))
                .transpose()?,
            weights: match weight {
                Some(name) => {
                    let found = table.numeric_or_missing(name);
                    let found = found.map_err(|error| {
                        text_where_numbers_belong(error, "a sample weight is a number")
                    });
                    Some(numbers(&found?.0))
                }
                None => None,
            },
            positions,
        })
    }

    /// The rows without gaps where gaps are dropped; elsewhere gaps in a target, task or weight are refused.
    fn usable(
        &self,
        table: &Table,
        target: Option<&str>,
        weight: Option<&str>,
    ) -> Result<Vec<usize>> {
        let mut dropped = vec![false; table.rows];
        let mut drop_rows = |rows: &[usize]| rows.iter().for_each(|&row| dropped[row] = true);
        let needed = [
            ("target", target),
            ("task", self.task.as_deref()),
            ("sample weight", weight),
        ];
        for (what, name) in needed {
            let Some(name) = name else { continue };
            if !self.drop_missing {
                complete(table, what, name)?;
            }
            drop_rows(&table.column(name)?.missing);
        }
        for feature in &self.features {
            let missing = Self::checked(table, feature)?;
            if self.drop_missing {
                drop_rows(missing);
            }
        }
        Ok((0..table.rows).filter(|&row| !dropped[row]).collect())
    }

    /// Whether the rows of a table, all of them, can be used; the first of them is at this place.
    ///
    /// # Errors
    /// When there are none, or none has a class of the model, which is rather another spelling than another class.
    pub fn recognised(&self, source: &str, first: Place, records: &Records) -> Result<()> {
        if records.count() == 0 {
            return Err(TableError::NoRows {
                file: source.to_owned(),
            });
        }
        let classes = self.goal.classes();
        let (Some(name), Some(target)) = (&self.target, &records.target) else {
            return Ok(());
        };
        let known: Vec<bool> = target
            .distinct()
            .iter()
            .map(|value| classes.contains(value))
            .collect();
        let is_known = |code: &u32| known.get(*code as usize).copied().unwrap_or(false);
        if classes.is_empty() || target.codes().iter().any(is_known) {
            return Ok(());
        }
        // The same list as everywhere in the program.
        let shown: Vec<String> = classes
            .iter()
            .take(8)
            .map(|class| format!("`{class}`"))
            .collect();
        let more = if classes.len() > 8 {
            format!(", … ({} in all)", classes.len())
        } else {
            String::new()
        };
        Err(TableError::StrangeClasses {
            file: source.to_owned(),
            place: first,
            target: name.clone(),
            value: target.get(0).to_string(),
            classes: shown.join(", ") + &more,
        })
    }
}

/// The same fault where making categories of the column is not the way out.
pub(crate) fn text_where_numbers_belong(error: TableError, expected: &str) -> TableError {
    match error {
        TableError::NotNumber {
            file,
            place,
            column,
            value,
            ..
        } => TableError::NotNumber {
            file,
            place,
            column,
            value,
            remedy: expected.to_string(),
        },
        other => other,
    }
}
