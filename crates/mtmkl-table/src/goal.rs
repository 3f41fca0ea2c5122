//! What is predicted, and by which tasks: classes in their order, one against all others or each against each.

use mtmkl::Model;
use serde::{Deserialize, Serialize};

/// How several classes become binary tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Multiclass {
    /// One task per class, against all others.
    Ova,
    /// One task per pair of classes.
    Ovo,
}

impl Multiclass {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 2] = [
        (Self::Ovo, "ovo", "One task per pair of classes"),
        (Self::Ova, "ova", "One task per class, against all others"),
    ];

    /// All pairs of so many classes, in order.
    pub fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..classes).flat_map(move |first| (first + 1..classes).map(move |second| (first, second)))
    }

    /// The tasks' names: the class that is +1, or `a-b`, where +1 is `b`.
    pub fn task_names(self, classes: &[String]) -> Vec<String> {
        match self {
            Self::Ova => classes.to_vec(),
            Self::Ovo => Self::pairs(classes.len())
                .map(|(first, second)| format!("{}-{}", classes[first], classes[second]))
                .collect(),
        }
    }
}

/// What a machine is to learn, before the table is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// Classes; several in this way.
    Classes(Multiclass),
    /// Numbers.
    Numbers,
    /// Inside and outside, without a target.
    Inside,
}

/// Classes of whole numbers from which on there may be numbers to predict, if a tenth of the rows differs.
const MANY: usize = 20;
/// Of whole numbers from which on there may be, however many rows there are; of words from which on they may be names.
const VERY_MANY: usize = 50;
/// The same of others, which classes are seldom called by.
const MANY_FRACTIONS: usize = 10;

/// Whether different `values` in so many rows look like numbers to predict rather than classes: numbers all of them, and more than one would
/// name classes by, or more than every second row has one of its own.
pub fn looks_like_numbers(values: &[String], rows: usize) -> bool {
    let mut fractions = false;
    for value in values {
        match value.trim().parse::<f64>() {
            Ok(number) => fractions |= number.fract() != 0.0,
            Err(_) => return false,
        }
    }
    let count = values.len();
    count > 2
        && (2 * count > rows
            || (fractions && count > MANY_FRACTIONS)
            || (count > MANY && 10 * count > rows)
            || count > VERY_MANY)
}

/// Whether so many different values in so many rows look like names of rows rather than classes: very many, of which more than every second row has one of
/// its own.
pub(crate) fn looks_like_names(values: usize, rows: usize) -> bool {
    values > VERY_MANY && 2 * values > rows
}

/// The classes that a task of the table has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskClasses {
    /// The task.
    pub task: String,
    /// Their numbers, ascending.
    pub classes: Vec<usize>,
}

/// What is predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// One of two classes: the first is −1, the second +1.
    Binary {
        /// In the order of names.
        classes: Vec<String>,
    },
    /// One of several classes, by tasks over shared samples.
    Multiclass {
        /// In the order of names.
        classes: Vec<String>,
        /// One task per class or per pair.
        scheme: Multiclass,
        /// With a task column, the classes of each task, tasks in the order of names; else nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        present: Vec<TaskClasses>,
    },
    /// A number.
    Regression,
    /// Inside or outside.
    OneClass,
}

impl Goal {
    /// The machines that rows of one task of the table make, by their numbers of classes: each with its name and with +1, −1 or, where it is
    /// not about a row, no number. None where numbers are predicted, or inside and outside.
    pub fn labels(&self, task: &str, codes: &[usize]) -> Vec<(String, Vec<f64>)> {
        let against = |negative: Option<usize>, positive: usize| -> Vec<f64> {
            let label = |&code: &usize| match code {
                _ if code == positive => 1.0,
                _ if negative.is_none_or(|negative| code == negative) => -1.0,
                _ => f64::NAN,
            };
            codes.iter().map(label).collect()
        };
        match self {
            Self::Binary { .. } => vec![(task.to_string(), against(None, 1))],
            Self::Multiclass {
                classes,
                scheme,
                present,
            } => {
                let set = present.iter().position(|own| own.task == task);
                let own = self.classes_on(set.unwrap_or(0));
                let names: Vec<String> = own.iter().map(|&class| classes[class].clone()).collect();
                let named = |name: String| match set {
                    Some(_) => format!("{task}: {name}"),
                    None => name,
                };
                let names = scheme.task_names(&names).into_iter().map(named);
                match scheme {
                    Multiclass::Ova => {
                        let all = own.into_iter().map(|class| against(None, class));
                        names.zip(all).collect()
                    }
                    Multiclass::Ovo => {
                        let pairs = Multiclass::pairs(own.len());
                        let all = pairs.map(|(a, b)| against(Some(own[a]), own[b]));
                        names.zip(all).collect()
                    }
                }
            }
            Self::Regression | Self::OneClass => Vec::new(),
        }
    }

    /// The classes between which the machines on a sample set decide, by their numbers.
    pub fn classes_on(&self, set: usize) -> Vec<usize> {
        match self {
            Self::Multiclass { present, .. } if !present.is_empty() => present
                .get(set)
                .map_or(Vec::new(), |own| own.classes.clone()),
            _ => (0..self.classes().len()).collect(),
        }
    }

    /// The sample set of a task of the table, of a model with this goal.
    pub fn set_of(&self, model: &Model, task: &str) -> Option<usize> {
        match self {
            Self::Multiclass { present, .. } if present.is_empty() => Some(0),
            Self::Multiclass { present, .. } => present.iter().position(|own| own.task == task),
            _ => {
                let known = model.tasks().iter().find(|known| known.name == task);
                known.map(|known| known.set)
            }
        }
    }

    /// The tasks of the table, where these are the names of the machines.
    pub fn tasks_of<'a>(&'a self, machines: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
        match self {
            Self::Multiclass { present, .. } => {
                present.iter().map(|own| own.task.as_str()).collect()
            }
            _ => machines.map(String::as_str).collect(),
        }
    }

    /// Whether the tasks are the classes of one problem, or its pairs of classes.
    pub fn is_by_class(&self) -> bool {
        matches!(self, Self::Multiclass { present, .. } if present.is_empty())
    }

    /// The classes, in order; none where numbers are predicted, or inside and outside.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Binary { classes } | Self::Multiclass { classes, .. } => classes,
            Self::Regression | Self::OneClass => &[],
        }
    }

    /// Whether so many tasks are those of this goal.
    pub(crate) fn fits(&self, tasks: usize) -> bool {
        match self {
            Self::Binary { classes } => classes.len() == 2,
            Self::Multiclass {
                classes,
                scheme,
                present,
            } => {
                let count = |classes: usize| match scheme {
                    Multiclass::Ova => classes,
                    Multiclass::Ovo => classes * classes.saturating_sub(1) / 2,
                };
                let all =
                    |own: &TaskClasses| own.classes.iter().all(|&class| class < classes.len());
                if present.is_empty() {
                    return count(classes.len()) == tasks;
                }
                let own = present.iter().map(|own| count(own.classes.len()));
                present.iter().all(all) && own.sum::<usize>() == tasks
            }
            Self::Regression | Self::OneClass => true,
        }
    }
}
