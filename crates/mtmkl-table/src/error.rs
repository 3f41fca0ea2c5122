//! What can be wrong with a table, said so that the reader of the message knows where to look and what to do.
//!
//! The ways out are the program's flags. Another door has the parts of each message and may say it in its own words.

use std::fmt;

use thiserror::Error;

use crate::words::{count, quoted, shown, size};

/// Where in a table a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file, counted from 1.
    Line(usize),
    /// A row, counted as its table counts them.
    Row(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Row(row) => write!(formatter, "row {row}"),
        }
    }
}

/// A table that cannot be used as asked. `file` is the table as messages name it.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are what the messages say they are")]
pub enum TableError {
    /// A column that the table does not have; `hint` is a similar name, or the names there are.
    #[error("{file} has no column `{name}`; {hint}")]
    UnknownColumn {
        file: String,
        name: String,
        hint: String,
    },

    /// A column that the file has but that was left out.
    #[error("{file}, column `{name}` was not read: {reason}")]
    SkippedColumn {
        file: String,
        name: String,
        reason: String,
    },

    /// A cell that is not a number, in a column wanted as numbers.
    #[error("{file}, {place}, column `{column}`: `{value}` is not a number; {remedy}")]
    NotNumber {
        file: String,
        place: Place,
        column: String,
        value: String,
        remedy: String,
    },

    /// A column of text, wanted as numbers: its cells, and how many different ones.
    #[error(
        "{file}, column `{column}`: none of its {cells} values is a number, the first is `{value}` in {place}; `--one-hot {flag}` \
         makes a 0/1 column of each of its {}, `--ignore {flag}` leaves it out",
        count(*.different, "value", "different values"),
        flag = quoted(column)
    )]
    NoNumbers {
        file: String,
        place: Place,
        column: String,
        value: String,
        cells: usize,
        different: usize,
    },

    /// Several columns of text with many different values, wanted as numbers: their names, and how many.
    #[error(
        "{file}: {} columns are text of many different values: {}; `{}` leaves them out, `--one-hot COLUMN` makes a 0/1 column of each value of one",
        columns.len(),
        joined(columns, ", ", |(name, different)| format!("`{}` ({different})", shown(name.as_bytes()))),
        joined(columns, " ", |(name, _)| format!("--ignore {}", quoted(name)))
    )]
    ManyTexts {
        file: String,
        columns: Vec<(String, usize)>,
    },

    /// An infinite number, or one too large for a double.
    #[error(
        "{file}, {place}, column `{column}`: `{value}` is not a finite number; correct it or leave the cell empty (a missing value)"
    )]
    NotFinite {
        file: String,
        place: Place,
        column: String,
        value: String,
    },

    /// A column of numerals that is text by type or by request.
    #[error(
        "{file}, column `{column}` was read as text, so it cannot serve as numbers; use it either as names or as numbers"
    )]
    ReadAsText { file: String, column: String },

    /// Gaps in a column that must be complete.
    #[error("{file}, column `{column}`: {} (the first in {place}); {remedy}", count(*.gaps, "missing value", "missing values"))]
    Missing {
        file: String,
        column: String,
        gaps: usize,
        place: Place,
        remedy: &'static str,
    },

    /// Gaps in a column that every row needs: the target, the task, the weight.
    #[error(
        "{file}: {gaps} of {} no value in the {what} column `{column}`, the first at {place} (empty, NA, N/A, null, ? and NaN mean \
         that there is none); fit with --missing drop to leave such rows out{}",
        count(*.rows, "row has", "rows have"),
        if *.what == "sample weight" { "" } else { "; a name that is spelled so needs another spelling" }
    )]
    Incomplete {
        file: String,
        what: &'static str,
        column: String,
        gaps: usize,
        rows: usize,
        place: Place,
    },

    /// A gap that nothing fills.
    #[error(
        "{file}, {place}, column `{column}`: the value is missing; only a model fitted with --missing mean fills it in, or with \
         --missing drop skips the row"
    )]
    Gap {
        file: String,
        place: Place,
        column: String,
    },

    /// A value beyond the scale that was learned.
    #[error(
        "{file}, {place}, column `{column}`: {value} is too large to be scaled as the training rows were"
    )]
    TooLarge {
        file: String,
        place: Place,
        column: String,
        value: f64,
    },

    /// Rows that would take more memory than allowed.
    #[error("{file}: {rows} rows of {columns} columns as numbers take {}, over the limit of {}; raise it with `--memory-limit`",
        size(*.bytes), size(*.limit))]
    TooManyValues {
        file: String,
        rows: usize,
        columns: usize,
        bytes: u64,
        limit: u64,
    },

    /// A column without a value among the training rows.
    #[error(
        "column `{column}` has no value in any row to learn from; `--ignore {}` leaves it out",
        quoted(column)
    )]
    NoValue { column: String },

    /// Every row has a gap.
    #[error(
        "{file}: no rows are left, each has a missing value; --ignore leaves out a column, --missing mean fills gaps"
    )]
    NoRows { file: String },

    /// No column that kernels could see.
    #[error(
        "{file} has no column left to learn from: all of them are the target, the task, the weight, the row names or ignored"
    )]
    NoFeatures { file: String },

    /// Columns to learn from that are not there, or not understood.
    #[error("--features {text}: {problem}")]
    Features { text: String, problem: String },

    /// Nobody said what to predict; `last` are the last columns.
    #[error(
        "--target COLUMN is needed: which column of {file} is to be predicted? Its last columns are {last}"
    )]
    NoTarget { file: String, last: String },

    /// Rows were read without the target that they are to be learned or scored by.
    #[error("the target column is needed")]
    TargetNeeded,

    /// Nothing to tell apart.
    #[error("{file}: the target `{target}` has one value only, {}; there is nothing to tell apart",
        .value.as_ref().map_or("none".to_string(), |value| format!("`{value}`")))]
    OneValue {
        file: String,
        target: String,
        value: Option<String>,
    },

    /// Numbers where classes are wanted.
    #[error(
        "{file}: the target `{target}` has {classes} different numbers in {rows} rows, which look like numbers to predict: say --machine \
         krr or --machine svr for that, or --machine svc if each of them is a class"
    )]
    NumbersAsClasses {
        file: String,
        target: String,
        classes: usize,
        rows: usize,
    },

    /// Names of rows where classes are wanted.
    #[error(
        "{file}: the target `{target}` has {classes} different values in {rows} rows, which look like names and not like classes: {remedy}"
    )]
    NamesAsClasses {
        file: String,
        target: String,
        classes: usize,
        rows: usize,
        remedy: String,
    },

    /// Text where numbers are predicted.
    #[error(
        "{file}: the target `{target}` is text, such as `{value}`; svr and krr predict numbers, {remedy}"
    )]
    TextTarget {
        file: String,
        target: String,
        value: String,
        remedy: &'static str,
    },

    /// A target that is none of the model's classes in any row, which is rather another spelling than another class.
    #[error(
        "{file}, {place}: the target `{target}` is `{value}`, and no row has one of the model's classes, {classes}; classes are \
         compared as text, so that `1` is not `1.0`"
    )]
    StrangeClasses {
        file: String,
        place: Place,
        target: String,
        value: String,
        classes: String,
    },

    /// A number that two names spell.
    #[error(
        "{file}, {place}, column `{column}`: the number {number} may be `{first}` or `{second}`; give names as text, as in a CSV file"
    )]
    TwoSpellings {
        file: String,
        place: Place,
        column: String,
        number: f64,
        first: String,
        second: String,
    },

    /// A task whose rows are all of one class.
    #[error(
        "task `{task}`: the target is `{present}` in all its rows ({rows}), never `{absent}`{}; leave these rows out, add some of the other class, or \
         let one machine learn from all tasks, where a task may have one class (--transfer all,own)",
        alike(.others)
    )]
    OneClass {
        task: String,
        present: String,
        absent: String,
        rows: usize,
        /// Further tasks with one class.
        others: Vec<String>,
    },

    /// A weight of a class that is none.
    #[error("there is no class `{name}` to give a weight to; there are {classes}")]
    ClassWeight { name: String, classes: String },

    /// A sample of fewer rows than there are kinds.
    #[error(
        "{count} rows are too few: with one row for each class of each task there are {least}; take at least so many"
    )]
    Sample { count: usize, least: usize },

    /// A class that lost all its rows.
    #[error(
        "class `{class}` has no rows left to learn from; all of them have missing values or weight 0"
    )]
    LostClass { class: String },

    /// A task whose rows have no weight.
    #[error("task `{task}`: all its sample weights are 0; leave the task out")]
    NoWeight { task: String },

    /// A kernel matrix that the core refuses.
    #[error("kernel matrix `{name}`: {problem}")]
    Gram { name: String, problem: String },

    /// A share of rows that is none.
    #[error("--test-fraction is {share}, expected a number between 0 and 1")]
    Share { share: f64 },

    /// A model without the note that is asked for.
    #[error(
        "the model has no table description: it was not fitted by this program, use it from the library"
    )]
    NoFrame,

    /// A note that cannot be understood.
    #[error("the model's {what} cannot be read: {problem}")]
    Note { what: &'static str, problem: String },

    /// A note of a later version.
    #[error(
        "the model's table description is of version {version}, later than the {known} that is known here; take a newer mtmkl"
    )]
    Version { version: u32, known: u32 },

    /// Notes that do not go with the machines.
    #[error("the model's table description does not fit its machines: the file is damaged")]
    Damaged,

    /// What the core says.
    #[error(transparent)]
    Core(#[from] mtmkl::Error),
}

impl TableError {
    /// What is said of columns of text that cannot be learned from; nothing where there is none.
    pub(crate) fn of_texts(mut errors: Vec<Self>) -> Option<Self> {
        if errors.len() < 2 {
            return errors.pop();
        }
        let (mut source, mut columns) = (String::new(), Vec::new());
        for error in errors {
            if let Self::NoNumbers {
                file,
                column,
                different,
                ..
            } = error
            {
                source = file;
                columns.push((column, different));
            }
        }
        Some(Self::ManyTexts {
            file: source,
            columns,
        })
    }
}

/// `, and so it is in …`, where there are more.
fn alike(others: &[String]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = others
        .iter()
        .take(8)
        .map(|name| format!("`{}`", shown(name.as_bytes())))
        .collect();
    let more = if others.len() > shown.len() {
        format!(" and {} more", others.len() - shown.len())
    } else {
        String::new()
    };
    format!(" (nor are there two classes in {}{more})", shown.join(", "))
}

fn joined<T>(parts: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    parts.iter().map(text).collect::<Vec<_>>().join(between)
}

/// What is wrong, in an error of the core about columns, without the place that means nothing to the reader.
pub fn problem_of(error: &mtmkl::Error) -> String {
    match error {
        mtmkl::Error::Data { problem, .. } => problem.to_string(),
        mtmkl::Error::Kernel { problem, .. } => problem.clone(),
        other => other.to_string(),
    }
}
