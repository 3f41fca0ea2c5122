//! What can be wrong with a file, said so that the reader of the message knows where to look and what to do.

use std::io;

use mtmkl_table::words::size;
use mtmkl_table::{Place, TableError};
use thiserror::Error;

/// A file that could not be read as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InputError {
    /// What was read is not what was asked for.
    #[error(transparent)]
    Table(#[from] TableError),

    /// A name without a letter.
    #[error("the name of the file is empty")]
    NoName,

    /// There is no file of that name.
    #[error("{file}: no such file{}", .similar.as_ref().map_or(String::new(), |name| format!("; did you mean `{name}`?")))]
    NotFound {
        /// The path as given.
        file: String,
        /// A file of the same folder with a similar name.
        similar: Option<String>,
    },

    /// The path is a folder.
    #[error("{file} is a folder; give a file")]
    Folder {
        /// The path as given.
        file: String,
    },

    /// The operating system refused.
    #[error("{file} cannot be read: {source}")]
    Io {
        /// The path as given.
        file: String,
        /// The reason given by the operating system.
        source: io::Error,
    },

    /// The content contradicts its own format.
    #[error("{file} is not a readable {format} file: {reason}")]
    Damaged {
        /// The file.
        file: String,
        /// The format it was read as.
        format: &'static str,
        /// What contradicts it.
        reason: String,
    },

    /// The content is of a known kind that is not read.
    #[error("{file} {found}; {remedy}")]
    Unsupported {
        /// The file.
        file: String,
        /// What it is, with the verb.
        found: String,
        /// What to do instead.
        remedy: &'static str,
    },

    /// Reading would need more memory than allowed.
    #[error("{file}: {what} {}, over the limit of {}; raise it with `--memory-limit`", size(*.bytes), size(*.limit))]
    TooLarge {
        /// The file.
        file: String,
        /// What is large, with the verb.
        what: String,
        /// The bytes needed.
        bytes: u64,
        /// The bytes allowed.
        limit: u64,
    },

    /// Nothing to read.
    #[error("{file} is empty")]
    Empty {
        /// The file.
        file: String,
    },

    /// A header without rows.
    #[error("{file} has column names but no rows")]
    NoRows {
        /// The file.
        file: String,
    },

    /// Bytes that are not UTF-8 text.
    #[error(
        "{file}, {place}: {what} `{value}` is not UTF-8 text; save the file as UTF-8, e.g. `iconv -f latin1 -t utf-8`"
    )]
    NotUtf8 {
        /// The file.
        file: String,
        /// Where.
        place: Place,
        /// What the bytes are: a column name, or the cell of a column.
        what: String,
        /// The bytes, as far as they can be shown.
        value: String,
    },

    /// A row with another number of cells than the header.
    #[error("{file}, line {line}: {expected} cells expected, {found} found{hint}")]
    Ragged {
        /// The file.
        file: String,
        /// The line at which the row begins.
        line: usize,
        /// The cells of the header.
        expected: usize,
        /// The cells of this row.
        found: usize,
        /// A likely cause, or nothing.
        hint: &'static str,
    },

    /// A quoted cell that never ends.
    #[error(
        "{file}, line {line}: the quote opened in cell {cell} is never closed; close it, or write a quote inside a quoted cell twice"
    )]
    OpenQuote {
        /// The file.
        file: String,
        /// The line of the opening quote.
        line: usize,
        /// The cell, counted from 1.
        cell: usize,
    },

    /// Text between a closing quote and the next delimiter.
    #[error(
        "{file}, line {line}: cell {cell} goes on after its closing quote; write a quote inside a quoted cell twice"
    )]
    AfterQuote {
        /// The file.
        file: String,
        /// The line of the closing quote.
        line: usize,
        /// The cell, counted from 1.
        cell: usize,
    },

    /// One column only, and signs of another delimiter.
    #[error(
        "{file}: only one column when split at {used}, but line {line} looks split at {likely}; try `--delimiter {option}`"
    )]
    Delimiter {
        /// The file.
        file: String,
        /// The line that shows it.
        line: usize,
        /// The delimiter in use, in words.
        used: String,
        /// The delimiter that the line suggests, in words.
        likely: String,
        /// The same, as the option wants it.
        option: &'static str,
    },

    /// A first line of numbers where names were expected.
    #[error(
        "{file}, line {line}: `{value}` and the other cells are numbers, not column names; if the file has no header, say `--no-header`"
    )]
    HeaderOfNumbers {
        /// The file.
        file: String,
        /// The line of the header.
        line: usize,
        /// The first cell.
        value: String,
    },

    /// A column name that occurs twice.
    #[error("{file}: columns {first} and {second} are both named `{name}`; rename one")]
    DuplicateColumn {
        /// The file.
        file: String,
        /// The name.
        name: String,
        /// The first column of that name, counted from 1.
        first: usize,
        /// The second column of that name, counted from 1.
        second: usize,
    },

    /// More columns than any sensible table has.
    #[error(
        "{file} has {found} columns, more than the {limit} that are read; is the delimiter right?"
    )]
    TooManyColumns {
        /// The file.
        file: String,
        /// The columns found.
        found: usize,
        /// The columns allowed.
        limit: usize,
    },

    /// A line of a LIBSVM file that breaks its rules.
    #[error("{file}, line {line}: {problem}")]
    Libsvm {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong, what was expected, what to do.
        problem: String,
    },

    /// An array that is no kernel matrix, or no table.
    #[error("{file} has shape {shape}; {expected}")]
    Shape {
        /// The file, with the member of an archive.
        file: String,
        /// The shape found, as `NumPy` writes it.
        shape: String,
        /// What was expected.
        expected: &'static str,
    },

    /// An infinite or undefined entry of an array.
    #[error("{file}, row {row}, column {column} (counted from 1): {value} is not a finite number")]
    ArrayNotFinite {
        /// The file, with the member of an archive.
        file: String,
        /// The row, counted from 1.
        row: usize,
        /// The column, counted from 1.
        column: usize,
        /// The entry.
        value: f64,
    },

    /// A member that the archive does not have.
    #[error("{file} has no array `{member}`; it has {present}")]
    UnknownMember {
        /// The archive.
        file: String,
        /// The member asked for.
        member: String,
        /// The members there are.
        present: String,
    },
}
