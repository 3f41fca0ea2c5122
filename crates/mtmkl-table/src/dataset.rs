//! From a table's records to the core's sample sets and tasks.
//!
//! With a task column each task has samples of its own, and so Gram matrices of its own; several classes become tasks over one
//! shared set.

use std::collections::BTreeMap;
use std::sync::Arc;

use mtmkl::error::Place;
use mtmkl::ledger::bytes_of;
use mtmkl::{GivenGram, Samples, Targets, Task};

use crate::Result;
use crate::class_weight::ClassWeight;
use crate::error::TableError;
use crate::frame::Frame;
use crate::goal::Goal;
use crate::merge::{Group, groups, move_rows};
use crate::records::Records;
use crate::table::Table;

/// A kernel matrix, square between the training samples, rectangular between new and training samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The entries, row after row, all finite; shared by whoever uses all of them.
    pub values: Arc<Vec<f64>>,
    /// The names of the rows, where the file has them.
    pub row_names: Option<Vec<String>>,
}

impl Gram {
    /// These rows of it; all of them in order are not copied.
    #[must_use]
    pub fn with_rows(&self, rows: &[usize]) -> Self {
        let is_all = rows.iter().copied().eq(0..self.rows);
        let values = if is_all {
            Arc::clone(&self.values)
        } else {
            let row = |&row: &usize| &self.values[row * self.columns..(row + 1) * self.columns];
            Arc::new(rows.iter().flat_map(row).copied().collect())
        };
        Self {
            rows: rows.len(),
            columns: self.columns,
            values,
            row_names: None,
        }
    }

    /// The part between these rows, under a name.
    fn given(&self, name: &str, rows: &[usize]) -> GivenGram {
        let values = if rows.iter().copied().eq(0..self.rows) {
            Arc::clone(&self.values)
        } else {
            let pairs = rows.iter().flat_map(|&i| rows.iter().map(move |&j| (i, j)));
            Arc::new(
                pairs
                    .map(|(i, j)| self.values[i * self.columns + j])
                    .collect(),
            )
        };
        GivenGram {
            name: name.to_string(),
            values,
        }
    }
}

/// Kernel matrices by name, each square over all rows of the table.
pub type Grams = BTreeMap<String, Gram>;

/// What becomes of equal samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Equals {
    /// They are one, and the order of rows makes no difference; where kernel matrices are given, all stays as it is.
    Merged,
    /// Each row is a sample of its own, in the order of the table: for folds, which tell them apart.
    Apart,
}

/// Samples and tasks for the core, and which records they are made of.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The sample sets.
    pub samples: Vec<Samples>,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// For each sample set, its rows among the records; the first of equal ones.
    pub rows: Vec<Vec<usize>>,
    /// How often each of them counts.
    pub counts: Vec<Vec<f64>>,
}

impl Dataset {
    /// Samples and tasks from the `chosen` records; rows of over `limit` bytes are refused.
    ///
    /// # Errors
    /// When a class or a task has no rows, or the core refuses them.
    pub fn new(
        frame: &Frame,
        table: &Table,
        records: &Records,
        chosen: &[usize],
        grams: &Grams,
        equals: Equals,
        limit: u64,
    ) -> Result<Self> {
        let only = frame.only_task();
        let weights = records.weights.as_deref();
        let same = Same::of(frame, records)?;
        let mut made = Self {
            samples: Vec::new(),
            tasks: Vec::new(),
            rows: Vec::new(),
            counts: Vec::new(),
        };
        let columns = frame.features.len();
        let mut by_task = groups(chosen, records.task.as_ref(), &only, weights)?;
        let mut origins = None;
        if let Some(transfer) = &frame.transfer {
            if equals == Equals::Merged && grams.is_empty() {
                for group in &mut by_task {
                    let at: Vec<usize> = group
                        .rows
                        .iter()
                        .map(|&row| records.positions[row])
                        .collect();
                    let values = frame.gather_rows(table, &at, limit)?;
                    let keys = same.keys(group);
                    group.merge_rows(&values, keys.as_deref());
                }
            }
            let (all, of) = transfer.pooled(by_task, only.clone());
            by_task = vec![all];
            origins = transfer.kernels.clone().map(|kernels| (kernels, of));
        }
        same.check_all(&by_task)?;
        for mut group in by_task {
            let positions = |group: &Group| -> Vec<usize> {
                group
                    .rows
                    .iter()
                    .map(|&row| records.positions[row])
                    .collect()
            };
            let mut values = frame.gather_rows(table, &positions(&group), limit)?;
            if equals == Equals::Merged && grams.is_empty() && origins.is_none() {
                let keys = same.keys(&group);
                let places = group.merge_rows(&values, keys.as_deref());
                move_rows(&mut values, columns, &places);
            }
            let at = positions(&group);
            let given = grams.iter().map(|(name, gram)| gram.given(name, &at));
            let set = if columns == 0 {
                Samples::from_grams(group.rows.len(), given.collect())
            } else {
                Samples::of_rows(values, group.rows.len(), frame.columns())
                    .and_then(|set| given.into_iter().try_fold(set, Samples::with_gram))
            };
            let set = match origins.take() {
                Some((kernels, of)) => set.and_then(|set| set.from_tasks(kernels, of)),
                None => set,
            };
            let number = made.samples.len();
            made.samples.push(set.map_err(located)?);
            made.tasks
                .extend(same.tasks(&group).into_iter().map(|task| task.on(number)));
            made.rows.push(group.rows);
            made.counts.push(group.weights);
        }
        Ok(made)
    }

    /// For each sample set, how often each row counts times the factor of its class; factors that balance classes are made of the rows
    /// that are `learned` from, for each sample set, or of all.
    ///
    /// # Errors
    /// When a class is named that is none.
    pub fn class_weights(
        &self,
        frame: &Frame,
        records: &Records,
        weight: &ClassWeight,
        learned: Option<&[Vec<usize>]>,
    ) -> Result<Vec<Vec<f64>>> {
        let classes = frame.goal.classes();
        weight.check(classes)?;
        let Same::Classes(_, codes) = Same::of(frame, records)? else {
            return Ok(self.counts.clone());
        };
        let sets = self.rows.iter().zip(&self.counts).enumerate();
        let weigh = |(set, (rows, counts)): (usize, (&Vec<usize>, &Vec<f64>))| {
            let own: Vec<usize> = rows.iter().map(|&row| codes[row]).collect();
            let factors = match learned.map(|learned| &learned[set]) {
                None => weight.factors(classes, &own, counts),
                Some(rows) => {
                    let own: Vec<usize> = rows.iter().map(|&row| own[row]).collect();
                    let counts: Vec<f64> = rows.iter().map(|&row| counts[row]).collect();
                    weight.factors(classes, &own, &counts)
                }
            };
            let factor = |code: &usize| factors.get(*code).copied().unwrap_or(1.0);
            let pairs = counts.iter().zip(&own);
            pairs.map(|(count, code)| count * factor(code)).collect()
        };
        Ok(sets.map(weigh).collect())
    }

    /// Gives the rows of each sample set these weights, in every task on it.
    pub fn weigh(&mut self, weights: &[Vec<f64>]) {
        for task in &mut self.tasks {
            let own = &weights[task.samples];
            let rows = 0..task.rows.count(own.len());
            let own: Vec<f64> = rows.map(|at| own[task.rows.position(at)]).collect();
            task.weights = own.iter().any(|weight| *weight != 1.0).then_some(own);
        }
    }

    /// Bytes of kernel matrices in the sample sets that are not these themselves.
    pub fn bytes_of_copies(&self, grams: &Grams) -> u64 {
        let is_shared = |given: &GivenGram| {
            let mut all = grams.values();
            all.any(|gram| Arc::ptr_eq(&gram.values, &given.values))
        };
        let given = self.samples.iter().flat_map(Samples::grams);
        let copies = given.filter(|given| !is_shared(given));
        copies
            .map(|given| bytes_of::<f64>(given.values.len()))
            .sum()
    }

    /// Bytes of so many further rows like these.
    pub fn bytes_for(&self, count: usize) -> u64 {
        let rows: usize = self.samples.iter().map(Samples::count).sum();
        let each = self.bytes_of_rows().div_ceil(rows.max(1) as u64);
        each.saturating_mul(count as u64)
    }

    /// Bytes of the rows.
    pub fn bytes_of_rows(&self) -> u64 {
        self.samples.iter().map(|set| set.rows().bytes()).sum()
    }
}

fn located(error: mtmkl::Error) -> TableError {
    match error {
        mtmkl::Error::Data {
            place: Place::Gram { name, .. },
            problem,
        } => TableError::Gram {
            name,
            problem: problem.to_string(),
        },
        other => other.into(),
    }
}

/// What tells samples with equal rows apart.
enum Same<'a> {
    /// The number of each record's class; that of none where it is of no known one.
    Classes(&'a Goal, Vec<usize>),
    Numbers(&'a [f64]),
    Nothing,
}

impl<'a> Same<'a> {
    fn of(frame: &'a Frame, records: &'a Records) -> Result<Self> {
        let needed = || TableError::TargetNeeded;
        Ok(match &frame.goal {
            Goal::OneClass => Self::Nothing,
            Goal::Regression => Self::Numbers(records.numbers.as_ref().ok_or_else(needed)?),
            goal => {
                let target = records.target.as_ref().ok_or_else(needed)?;
                let classes = goal.classes();
                let place = |name: &String| classes.iter().position(|class| class == name);
                let places: Vec<Option<usize>> = target.distinct().iter().map(place).collect();
                let class = |&code: &u32| places.get(code as usize).copied().flatten();
                let codes = target.codes().iter();
                Self::Classes(
                    goal,
                    codes
                        .map(|code| class(code).unwrap_or(classes.len()))
                        .collect(),
                )
            }
        })
    }

    /// The key of each row of a group.
    fn keys(&self, group: &Group) -> Option<Vec<f64>> {
        let rows = group.rows.iter();
        match self {
            Self::Classes(_, codes) => Some(rows.map(|&row| codes[row] as f64).collect()),
            Self::Numbers(numbers) => Some(rows.map(|&row| numbers[row]).collect()),
            Self::Nothing => None,
        }
    }

    /// Whether each group has what its tasks tell apart; all that lack the same are named.
    fn check_all(&self, groups: &[Group]) -> Result<()> {
        let mut found = groups.iter().filter_map(|group| self.check(group).err());
        let Some(mut first) = found.next() else {
            return Ok(());
        };
        if let TableError::OneClass { others, .. } = &mut first {
            others.extend(found.filter_map(|error| match error {
                TableError::OneClass { task, .. } => Some(task),
                _ => None,
            }));
        }
        Err(first)
    }

    /// Whether a group has what its tasks tell apart.
    fn check(&self, group: &Group) -> Result<()> {
        let Self::Classes(goal, codes) = self else {
            return Ok(());
        };
        let classes = goal.classes();
        let mut has = vec![false; classes.len() + 1];
        group.rows.iter().for_each(|&row| has[codes[row]] = true);
        let count = has[..classes.len()].iter().filter(|has| **has).count();
        let Some(absent) = has[..classes.len()].iter().position(|has| !has) else {
            return Ok(());
        };
        match goal {
            // With a task column, each task has classes of its own.
            goal if !goal.is_by_class() && count > 1 => Ok(()),
            goal if goal.is_by_class() => Err(TableError::LostClass {
                class: classes[absent].clone(),
            }),
            _ => {
                let present = has.iter().position(|has| *has).unwrap_or(0);
                let present = classes.get(present).cloned().unwrap_or_default();
                Err(TableError::OneClass {
                    task: group.name.clone(),
                    present,
                    absent: classes[absent].clone(),
                    rows: group.rows.len(),
                    others: Vec::new(),
                })
            }
        }
    }

    /// The tasks on a group, with their targets and weights.
    fn tasks(&self, group: &Group) -> Vec<Task> {
        let rows = &group.rows;
        let mut tasks = match self {
            Self::Nothing => vec![Task::new(&group.name, Targets::Unlabelled)],
            Self::Numbers(numbers) => {
                let values = rows.iter().map(|&row| numbers[row]).collect();
                vec![Task::new(&group.name, Targets::Values(values))]
            }
            Self::Classes(goal, codes) => {
                let codes: Vec<usize> = rows.iter().map(|&row| codes[row]).collect();
                let tasks = goal.labels(&group.name, &codes).into_iter();
                tasks.map(|(name, labels)| task_of(name, labels)).collect()
            }
        };
        if group.weights.iter().any(|weight| *weight != 1.0) {
            for task in &mut tasks {
                let count = task.rows.count(rows.len());
                let own = (0..count).map(|at| group.weights[task.rows.position(at)]);
                task.weights = Some(own.collect());
            }
        }
        tasks
    }
}

/// The task of these labels, on the rows that have one.
pub(crate) fn task_of(name: String, labels: Vec<f64>) -> Task {
    let own: Vec<usize> = (0..labels.len())
        .filter(|&at| !labels[at].is_nan())
        .collect();
    if own.len() == labels.len() {
        return Task::new(name, Targets::Labels(labels));
    }
    let labels = own.iter().map(|&at| labels[at]).collect();
    Task::new(name, Targets::Labels(labels)).with_rows(own)
}
