//! From rows to the core's sample sets and tasks.
//!
//! With a task column each task has samples of its own, and so Gram matrices of its own; several classes become tasks over one
//! shared set.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::Place;
use mtmkl::ledger::bytes_of;
use mtmkl::{GivenGram, Samples, Targets, Task};

use crate::args::Multiclass;
use crate::frame::{Frame, Goal, Raw};
use crate::input::Gram;
use crate::words::by_number_then_text;

/// Kernel matrices by name, each square over all rows of the table.
pub type Grams = BTreeMap<String, Gram>;

/// Samples and tasks for the core, and which rows of the raw data they are made of.
#[derive(Debug)]
pub struct Dataset {
    /// The sample sets.
    pub samples: Vec<Samples>,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// For each sample set, its rows in the raw data.
    pub rows: Vec<Vec<usize>>,
}

/// The task names of one-vs-one: `a-b`, where +1 is `b`.
pub fn pair_name(first: &str, second: &str) -> String {
    format!("{first}-{second}")
}

/// All pairs of classes, in order.
pub fn pairs(classes: &[String]) -> Vec<(usize, usize)> {
    (0..classes.len())
        .flat_map(|first| (first + 1..classes.len()).map(move |second| (first, second)))
        .collect()
}

impl Dataset {
    /// Samples and tasks from these rows. `values` are all rows, scaled.
    ///
    /// # Errors
    /// When the core refuses them.
    pub fn new(
        frame: &Frame,
        raw: &Raw,
        values: &[f64],
        chosen: &[usize],
        grams: &Grams,
    ) -> Result<Self> {
        // Each sample set: a name (of its task) and its rows.
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        match &raw.task {
            Some(tasks) => {
                let mut by_task: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
                for &row in chosen {
                    by_task.entry(&tasks[row]).or_default().push(row);
                }
                let mut names: Vec<(&str, Vec<usize>)> = by_task.into_iter().collect();
                // Numbered tasks in the order of their numbers.
                names.sort_by(|a, b| by_number_then_text(a.0, b.0));
                groups.extend(
                    names
                        .into_iter()
                        .map(|(name, rows)| (name.to_string(), rows)),
                );
            }
            None => groups.push((frame.only_task(), chosen.to_vec())),
        }
        let d = frame.features.len();
        let mut samples = Vec::new();
        for (_, rows) in &groups {
            let own: Vec<f64> = rows
                .iter()
                .flat_map(|&row| &values[row * d..(row + 1) * d])
                .copied()
                .collect();
            let given = grams
                .iter()
                .map(|(name, gram)| sub_gram(name, gram, raw, rows))
                .collect::<Vec<_>>();
            let made = if d == 0 {
                Samples::from_grams(rows.len(), given)
            } else {
                Samples::with_columns(own, rows.len(), frame.columns())
                    .and_then(|set| given.into_iter().try_fold(set, Samples::with_gram))
            };
            samples.push(made.map_err(|error| match error {
                mtmkl::Error::Data {
                    place: Place::Gram { name, .. },
                    problem,
                } => anyhow!("kernel matrix `{name}`: {problem}"),
                other => other.into(),
            })?);
        }
        let mut tasks = Vec::new();
        for (set, (name, rows)) in groups.iter().enumerate() {
            let mut made = Self::tasks_of(frame, raw, name, rows)?;
            for task in &mut made {
                task.samples = set;
                if let Some(weights) = &raw.weights {
                    let at = |i: usize| rows[task.rows.position(i)];
                    let count = task.rows.count(rows.len());
                    task.weights = Some((0..count).map(|i| weights[at(i)]).collect());
                }
            }
            tasks.extend(made);
        }
        Ok(Self {
            samples,
            tasks,
            rows: groups.into_iter().map(|(_, rows)| rows).collect(),
        })
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

    fn tasks_of(frame: &Frame, raw: &Raw, name: &str, rows: &[usize]) -> Result<Vec<Task>> {
        let text = || raw.target.as_ref().context("the target column is needed");
        let sign = |positive: bool| if positive { 1.0 } else { -1.0 };
        Ok(match &frame.goal {
            Goal::OneClass => vec![Task::new(name, Targets::Unlabelled)],
            Goal::Regression => {
                let numbers = raw
                    .numbers
                    .as_ref()
                    .context("the target column is needed")?;
                vec![Task::new(
                    name,
                    Targets::Values(rows.iter().map(|&row| numbers[row]).collect()),
                )]
            }
            Goal::Binary { classes } => {
                let target = text()?;
                let positive: Vec<bool> =
                    rows.iter().map(|&row| target[row] == classes[1]).collect();
                if let Some(only) = positive
                    .first()
                    .filter(|first| positive.iter().all(|other| other == *first))
                {
                    bail!(
                        "task `{name}`: the target is `{}` in all its rows ({}), never `{}`; leave these rows out, or add some of the other class",
                        classes[usize::from(*only)],
                        rows.len(),
                        classes[usize::from(!only)]
                    );
                }
                let labels = positive.into_iter().map(sign).collect();
                vec![Task::new(name, Targets::Labels(labels))]
            }
            Goal::Multiclass {
                classes,
                scheme: Multiclass::Ova,
            } => {
                let target = text()?;
                if let Some(class) = classes
                    .iter()
                    .find(|class| rows.iter().all(|&row| target[row] != **class))
                {
                    bail!(
                        "class `{class}` has no rows left to learn from; all of them have missing values"
                    );
                }
                classes
                    .iter()
                    .map(|class| {
                        let labels = rows
                            .iter()
                            .map(|&row| sign(target[row] == *class))
                            .collect();
                        Task::new(class.clone(), Targets::Labels(labels))
                    })
                    .collect()
            }
            Goal::Multiclass {
                classes,
                scheme: Multiclass::Ovo,
            } => {
                let target = text()?;
                pairs(classes)
                    .into_iter()
                    .map(|(first, second)| {
                        let (first, second) = (&classes[first], &classes[second]);
                        let own: Vec<usize> = (0..rows.len())
                            .filter(|&i| target[rows[i]] == *first || target[rows[i]] == *second)
                            .collect();
                        let labels = own
                            .iter()
                            .map(|&i| sign(target[rows[i]] == *second))
                            .collect();
                        Task::new(pair_name(first, second), Targets::Labels(labels)).with_rows(own)
                    })
                    .collect()
            }
        })
    }
}

/// The part of a kernel matrix that belongs to these rows.
fn sub_gram(name: &str, gram: &Gram, raw: &Raw, rows: &[usize]) -> GivenGram {
    let at = |row: usize| raw.positions[row];
    if rows.iter().map(|&row| at(row)).eq(0..gram.rows) {
        return GivenGram {
            name: name.to_string(),
            values: Arc::clone(&gram.values),
        };
    }
    let values: Vec<f64> = rows
        .iter()
        .flat_map(|&i| rows.iter().map(move |&j| (i, j)))
        .map(|(i, j)| gram.values[at(i) * gram.columns + at(j)])
        .collect();
    GivenGram {
        name: name.to_string(),
        values: values.into(),
    }
}

/// What a split keeps the mix of: each row's task and class, empty where there is none.
pub fn strata(frame: &Frame, raw: &Raw, rows: &[usize]) -> Vec<(String, String)> {
    let classes = matches!(frame.goal, Goal::Binary { .. } | Goal::Multiclass { .. });
    let of = |texts: &Option<Vec<String>>, row: usize| {
        texts
            .as_ref()
            .map_or(String::new(), |texts| texts[row].clone())
    };
    rows.iter()
        .map(|&row| {
            let class = if classes {
                of(&raw.target, row)
            } else {
                String::new()
            };
            (of(&raw.task, row), class)
        })
        .collect()
}

/// Splits rows into training and held-out ones: within each task and class the same share, at least one row on either side where
/// there are two.
///
/// # Errors
/// When the share is not between 0 and 1.
pub fn split(frame: &Frame, raw: &Raw, share: f64, seed: u64) -> Result<(Vec<usize>, Vec<usize>)> {
    if !(share > 0.0 && share < 1.0) {
        bail!("--test-fraction is {share}, expected a number between 0 and 1");
    }
    let all: Vec<usize> = (0..raw.count).collect();
    let mut members: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for (row, stratum) in strata(frame, raw, &all).into_iter().enumerate() {
        members.entry(stratum).or_default().push(row);
    }
    let mut random = mtmkl::random::Random::new(seed);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for mut rows in members.into_values() {
        random.shuffle(&mut rows);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a row count"
        )]
        let held = ((rows.len() as f64 * share).round() as usize).min(rows.len().saturating_sub(1));
        let held = if held == 0 && rows.len() > 1 { 1 } else { held };
        test.extend(rows.drain(..held));
        train.extend(rows);
    }
    train.sort_unstable();
    test.sort_unstable();
    Ok((train, test))
}
