//! Data and models that do not go together: nothing can be said of the certificate.

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing can be said of a certificate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another number of something.
    #[error(
        "the model was fitted on {stated} {what}, the data have {found}: they are not those of the fit"
    )]
    Count {
        /// Of what.
        what: String,
        /// By the model.
        stated: usize,
        /// In the data.
        found: usize,
    },
    /// Another name of something.
    #[error(
        "{what} is `{stated}` in the model and `{found}` in the data: they are not those of the fit"
    )]
    Name {
        /// Of what.
        what: String,
        /// By the model.
        stated: String,
        /// In the data.
        found: String,
    },
    /// A row that is not the one the model was fitted on.
    #[error(
        "row {row} of sample set {set} is not the one the model was fitted on: its {what} is {stated} in the model and {found} in the \
         data; take the table that it was fitted on, or the model file was changed"
    )]
    Row {
        /// Which sample set.
        set: usize,
        /// The position in it.
        row: usize,
        /// Which number of the row.
        what: String,
        /// By the model.
        stated: String,
        /// In the data.
        found: String,
    },
    /// What the data of a task lack.
    #[error("task `{task}`: {problem}")]
    Task {
        /// The task.
        task: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// A part of the model that is nobody's but its user's, or later than this version.
    #[error(
        "the {what} `{name}` is not known here: its formula is not among those that are checked, so nothing is said of the certificate"
    )]
    Unknown {
        /// A machine, a sharing, a kernel.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Something of the model that cannot be read.
    #[error("{0}")]
    Unreadable(String),
}
