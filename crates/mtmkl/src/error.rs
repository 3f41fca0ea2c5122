//! Everything that can go wrong, typed, with the place and the way out.

use std::path::PathBuf;

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Not reaching the tolerance is not an error but a [`Status`](crate::run::Status).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data of a task or of a sample set cannot be used.
    #[error("{place}: {problem}")]
    Data {
        /// Which sample set, task, row or column.
        place: Place,
        /// What is wrong there, what was expected, and the way out.
        problem: DataProblem,
    },
    /// A parameter has a value outside its range.
    #[error("parameter `{name}` is {value}, expected {expected}")]
    Param {
        /// The parameter's name as the user writes it.
        name: &'static str,
        /// The value given.
        value: String,
        /// The values allowed.
        expected: String,
    },
    /// A machine and a sharing that do not go together.
    #[error("machine `{machine}` with sharing `{sharing}`: {reason}")]
    Pair {
        /// The machine's name.
        machine: String,
        /// The sharing's name.
        sharing: String,
        /// Why, and what to choose instead.
        reason: String,
    },
    /// The Gram matrices would not fit.
    #[error(
        "this needs at least {needed} bytes ({}), over the limit of {limit} bytes ({}){}: use fewer kernels or rows, or raise the memory limit",
        human_bytes(*needed), human_bytes(*limit), without_streams(not_streamed.as_deref())
    )]
    Memory {
        /// Bytes that would be taken at least.
        needed: u64,
        /// Bytes the caller allows.
        limit: u64,
        /// Why kernel values cannot be made from rows in blocks instead, where that is what takes so much.
        not_streamed: Option<String>,
    },
    /// A kernel specification cannot be read.
    #[error("kernel `{spec}`: {problem}")]
    Kernel {
        /// The specification as given.
        spec: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// A machine, a sharing or a kernel that nobody registered.
    #[error("there is no {what} `{name}`; known: {known}")]
    Unknown {
        /// What is looked for: a machine, a sharing, a kernel.
        what: &'static str,
        /// Its name.
        name: String,
        /// The names that the registry has.
        known: String,
    },
    /// A specification of a machine or of a sharing cannot be read.
    #[error("{spec}: {problem}")]
    Spec {
        /// What it is of.
        spec: String,
        /// What is wrong with it and what would be right.
        problem: String,
    },
    /// Groups of tasks that do not fit the tasks.
    #[error("the tree of tasks: {0}")]
    Tree(TreeProblem),
    /// A numerical breakdown that no valid input should cause.
    #[error("numerical breakdown in {place}: {problem}")]
    Numeric {
        /// Where.
        place: String,
        /// What happened.
        problem: String,
    },
    /// An engine, or a model that came from one, is not what it should be.
    #[error("the engine: {0}")]
    Engine(String),
    /// Reading or writing a file failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not a model that this version can read.
    #[error("not a readable mtmkl model: {problem}")]
    Format {
        /// What is wrong with it.
        problem: String,
    },
}

/// Why there is no way around matrices, in brackets, for messages.
pub fn without_streams(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| {
        format!(" (it cannot be done without matrices of all samples: {reason})")
    })
}

/// Where in the data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A whole task.
    Task(String),
    /// One sample of a task, counted from 0 within the task.
    TaskRow {
        /// The task.
        task: String,
        /// The sample.
        row: usize,
    },
    /// A whole sample set.
    Samples(usize),
    /// One cell of a sample set.
    Cell {
        /// The sample set.
        samples: usize,
        /// The row, from 0.
        row: usize,
        /// The column's name.
        column: String,
    },
    /// A Gram matrix given by the caller.
    Gram {
        /// The sample set.
        samples: usize,
        /// The Gram matrix' name.
        name: String,
    },
    /// The data as a whole.
    Problem,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Task(task) => write!(f, "task `{task}`"),
            Self::TaskRow { task, row } => write!(f, "task `{task}`, sample {row}"),
            Self::Samples(samples) => write!(f, "sample set {samples}"),
            Self::Cell {
                samples,
                row,
                column,
            } => write!(f, "sample set {samples}, row {row}, column `{column}`"),
            Self::Gram { samples, name } => {
                write!(f, "sample set {samples}, precomputed kernel `{name}`")
            }
            Self::Problem => write!(f, "data"),
        }
    }
}

/// What is wrong with the data.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DataProblem {
    /// NaN or infinite.
    #[error("the value is {0}, expected a finite number; remove the row or fill the value in")]
    NotFinite(f64),
    /// No tasks, no samples, no columns.
    #[error("{0}")]
    Empty(&'static str),
    /// Only one class.
    #[error(
        "all {samples} labels are {label}, expected both +1 and -1; drop the task or add samples of the other class"
    )]
    OneClass {
        /// The only label.
        label: f64,
        /// How many samples.
        samples: usize,
    },
    /// A label other than ±1.
    #[error("the label is {0}, expected +1 or -1")]
    Label(f64),
    /// Two lengths that must agree do not.
    #[error("{what}: {found}, expected {expected}")]
    Length {
        /// What has that length.
        what: &'static str,
        /// The length found.
        found: usize,
        /// The length expected.
        expected: usize,
    },
    /// Sparse rows do not say where each begins.
    #[error(
        "the offsets of sparse rows: expected 0 first, then where each row ends, in ascending order, the last the number of entries"
    )]
    SparseOffsets,
    /// A column of a sparse row that is not there, or not after the one before it.
    #[error(
        "sparse row {row}, column {column}: expected columns below {width} that ascend within a row"
    )]
    SparseColumn {
        /// The row.
        row: usize,
        /// The column.
        column: u32,
        /// How many columns there are.
        width: usize,
    },
    /// A row index outside the sample set.
    #[error("row index {index} is outside its sample set of {samples} rows")]
    RowIndex {
        /// The index.
        index: usize,
        /// The number of rows.
        samples: usize,
    },
    /// A row that a task lists twice.
    #[error("row index {0} is listed twice; a task uses a sample once")]
    RowTwice(usize),
    /// Targets of the wrong kind for the machine.
    #[error("the machine `{machine}` needs {expected}, found {found}")]
    Targets {
        /// The machine.
        machine: &'static str,
        /// What it needs.
        expected: &'static str,
        /// What it got.
        found: &'static str,
    },
    /// Two tasks with the same name.
    #[error("the name is used by two tasks; names must differ")]
    NameTwice,
    /// A column that is not there.
    #[error("there is no column {wanted}; the samples have {available}")]
    Column {
        /// What was asked for.
        wanted: String,
        /// What there is.
        available: String,
    },
    /// A precomputed kernel that is not there.
    #[error("no Gram matrix of this name was given; given: {0}")]
    MissingGram(String),
    /// Two Gram matrices with the same name.
    #[error("a Gram matrix of this name is there already; names must differ")]
    GramTwice,
    /// K ≠ Kᵀ.
    #[error(
        "not symmetric: entry ({row}, {column}) is {value}, entry ({column}, {row}) is {mirrored}"
    )]
    Asymmetric {
        /// Row.
        row: usize,
        /// Column.
        column: usize,
        /// K\[row, column\].
        value: f64,
        /// K\[column, row\].
        mirrored: f64,
    },
    /// A negative eigenvalue.
    #[error(
        "not positive semi-definite: smallest eigenvalue {smallest:.3e}, largest {largest:.3e}; repair the kernel (clip or shift its spectrum) or allow indefinite kernels, which gives up the certificate"
    )]
    Indefinite {
        /// The smallest eigenvalue.
        smallest: f64,
        /// The largest eigenvalue.
        largest: f64,
    },
    /// A kernel value beyond the range of floating point.
    #[error(
        "a kernel value is {0}: the samples are too large for this kernel; scale the columns or lower its degree"
    )]
    Overflow(f64),
    /// A kernel to be divided by its variance has none.
    #[error(
        "all samples are the same to this kernel, so that it has no variance to be divided by; leave it out, or choose the normalisation `unit`"
    )]
    NoVariance,
    /// A value that the kernel is not defined for.
    #[error("the value is {value}, expected a number ≥ 0 for the kernel `{kernel}`")]
    Negative {
        /// The value.
        value: f64,
        /// The kernel.
        kernel: &'static str,
    },
    /// A sample weight that is not allowed.
    #[error("the sample weight is {0}, expected a finite number ≥ 0 with a positive sum")]
    Weight(f64),
    /// A weight of 0 for a machine that divides by it.
    #[error(
        "the sample weight is 0, expected a number > 0 for the machine `{0}`; leave the sample out"
    )]
    ZeroWeight(&'static str),
    /// The bound leaves Ω empty.
    #[error(
        "C = {c} is below {least}, 1 over the total weight of the {samples} samples, so no α with sum 1 fits under it; raise C to at least {least}"
    )]
    BoundTooSmall {
        /// The bound.
        c: f64,
        /// 1/n, or 1 over the sum of the sample weights.
        least: f64,
        /// n.
        samples: usize,
    },
    /// A kernel that needs k(x, x) of the new rows.
    #[error(
        "k(x, x) of the new samples is needed beside the cross-Gram matrix, to normalise the kernel or for the sphere of SVDD"
    )]
    OwnMissing,
    /// A task that the model does not have.
    #[error("the model has no such task; it knows: {known}. {advice}")]
    UnknownTask {
        /// The tasks it has.
        known: String,
        /// What can be done.
        advice: &'static str,
    },
}

/// What is wrong with a tree of tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeProblem {
    /// A task in the tree that the data do not have.
    #[error(
        "there is no task `{task}`; the tasks are {known}. Correct its name, or take it out of the tree"
    )]
    UnknownTask {
        /// Its name in the tree.
        task: String,
        /// The tasks that there are.
        known: String,
    },
    /// A task that the tree does not have.
    #[error("it has no task `{0}`; put it into a group, which may be one of its own")]
    MissingTask(String),
    /// A task that is named twice.
    #[error(
        "task `{task}` is in `{first}` and in `{second}`; a task has one place in a tree, and in groups that may overlap one in each"
    )]
    TwoPlaces {
        /// The task.
        task: String,
        /// The groups above it.
        first: String,
        /// The groups above it where it is named again.
        second: String,
    },
    /// A task whose rows do not agree.
    #[error(
        "task `{task}` has two values in column `{column}`, `{first}` and `{second}`; a task has one place in a tree"
    )]
    TwoValues {
        /// The task.
        task: String,
        /// The column.
        column: String,
        /// One value.
        first: String,
        /// Another one.
        second: String,
    },
    /// A task with a gap in its branch.
    #[error(
        "task `{task}` has no value in column `{column}` but one in a column further in; fill it in"
    )]
    NoValue {
        /// The task.
        task: String,
        /// The column.
        column: String,
    },
    /// A group without tasks.
    #[error("group `{0}` has no tasks; give it some, or take it out")]
    EmptyGroup(String),
    /// Two groups of the same name in one place.
    #[error("there are two groups `{0}` in one place; give one of them another name")]
    GroupTwice(String),
}

impl Error {
    pub(crate) fn data(place: Place, problem: DataProblem) -> Self {
        Self::Data { place, problem }
    }

    pub(crate) fn param(
        name: &'static str,
        value: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Param {
            name,
            value: value.to_string(),
            expected: expected.into(),
        }
    }
}

/// 1536 → "1.5 KiB".
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_place_and_the_way_out() {
        let error = Error::data(
            Place::Cell {
                samples: 0,
                row: 3,
                column: "width".into(),
            },
            DataProblem::NotFinite(f64::NAN),
        );
        assert_eq!(
            error.to_string(),
            "sample set 0, row 3, column `width`: the value is NaN, expected a finite number; remove the row or fill the value in"
        );
        let error = Error::Memory {
            needed: 8 << 30,
            limit: 1 << 30,
            not_streamed: None,
        };
        assert!(error.to_string().contains("8.0 GiB"));
    }
}
