//! What is predicted, and by which tasks: classes in their order, one against all others or each against each.

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
        (Self::Ova, "ova", "One task per class, against all others"),
        (Self::Ovo, "ovo", "One task per pair of classes"),
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
/// Of whole numbers from which on there may be, however many rows there are.
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
    },
    /// A number.
    Regression,
    /// Inside or outside.
    OneClass,
}

impl Goal {
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
            Self::Multiclass { classes, scheme } => match scheme {
                Multiclass::Ova => classes.len() == tasks,
                Multiclass::Ovo => Multiclass::pairs(classes.len()).count() == tasks,
            },
            Self::Regression | Self::OneClass => true,
        }
    }
}
