//! The readers of the program: tables of samples and kernel matrices, from files or standard input.
//!
//! Each format has a file of its own with a `from_bytes`; this one chooses among them. A reader never panics and
//! never reserves memory on the word of a file: sizes are checked against the bytes there are and the limit given.

mod batches;
pub mod csv;
mod error;
mod format;
pub mod libsvm;
pub mod npy;
pub mod npz;
pub mod parquet;
mod side_by_side;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

pub use batches::Batches;
pub use csv::Delimiter;
pub use error::InputError;
pub use format::Format;
use mtmkl_table::words::shown;
use mtmkl_table::{Gram, Table};

use source::{Source, Stream};

/// How to read a table.
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// The delimiter of a CSV file; detected from its first line if absent.
    pub delimiter: Option<Delimiter>,
    /// Whether the first line of a CSV file names the columns; otherwise they are `f1`, `f2`, ….
    pub header: bool,
    /// Columns to read as text even if all cells are numbers, so that `007` stays `007`; where the format has numbers only (LIBSVM,
    /// NPY, fractions in Parquet), they stay numbers.
    pub text: Vec<String>,
    /// The columns that somebody asks for, all of them if absent; where a text is read in parts, the others are not looked at.
    pub only: Option<BTreeSet<String>>,
    /// Most bytes that the table, or the unpacked file, may take.
    pub limit: u64,
}

/// Eight gibibytes: a table or matrix that a workstation can still hold.
const DEFAULT_LIMIT: u64 = 8 << 30;

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            header: true,
            text: Vec::new(),
            only: None,
            limit: DEFAULT_LIMIT,
        }
    }
}

/// How to read kernel matrices.
#[derive(Debug, Clone)]
pub struct GramOptions {
    /// The arrays to read from an archive, by name; all of them if empty.
    pub members: Vec<String>,
    /// Most bytes that the matrices, or the unpacked file, may take.
    pub limit: u64,
}

impl Default for GramOptions {
    fn default() -> Self {
        Self {
            members: Vec::new(),
            limit: DEFAULT_LIMIT,
        }
    }
}

/// Reads the table in `path`, or standard input where it is `-`, packed with gzip or not.
///
/// # Errors
///
/// Any [`InputError`]; the message names the file, the place in it and the way out.
pub fn read_table(
    path: &Path,
    format: Option<Format>,
    options: &TableOptions,
) -> Result<Table, InputError> {
    let (source, format) = opened(path, format, options.limit)?;
    if let Some(table) = joined(path, &source, format, options)? {
        return Ok(table);
    }
    table_of(source, format, options)
}

/// Opens an input and finds out its format, if nobody says it. A device that never ends is refused by its first bytes.
fn opened(path: &Path, format: Option<Format>, limit: u64) -> Result<(Source, Format), InputError> {
    let stream = Stream::open(path)?;
    let format = format::of_stream(path, &stream, format)?;
    Ok((stream.into_source(limit)?, format))
}

/// A text of so many bytes is not read into memory beside its numbers.
const LARGE: u64 = 64 << 20;

/// The table of a large text, part by part, where its parts go together.
fn joined(
    path: &Path,
    source: &Source,
    format: Format,
    options: &TableOptions,
) -> Result<Option<Table>, InputError> {
    let Some(size) = source.size().filter(|size| *size >= LARGE) else {
        return Ok(None);
    };
    match format {
        Format::Csv | Format::Tsv => {
            let options = TableOptions {
                delimiter: options.delimiter.or(format.delimiter()),
                ..options.clone()
            };
            csv::joined(Stream::open(path)?, &options, size)
        }
        Format::Libsvm => libsvm::joined(Stream::open(path)?, options, size),
        Format::Parquet | Format::Npy | Format::Npz => Ok(None),
    }
}

/// Reads the table that an open input holds.
fn table_of(source: Source, format: Format, options: &TableOptions) -> Result<Table, InputError> {
    match format {
        Format::Csv | Format::Tsv => {
            let options = TableOptions {
                delimiter: options.delimiter.or(format.delimiter()),
                ..options.clone()
            };
            let (name, bytes) = source.into_bytes(options.limit)?;
            csv::from_bytes(&name, &bytes, &options)
        }
        Format::Libsvm => {
            let (name, bytes) = source.into_bytes(options.limit)?;
            libsvm::from_bytes(&name, &bytes, options)
        }
        Format::Parquet => parquet::from_source(source, options),
        Format::Npy => npy::table_from_source(source, options),
        Format::Npz => Err(npz::not_a_table(source.name())),
    }
}

/// Reads the kernel matrices in `path`: one of an NPY, CSV or precomputed LIBSVM file, all of a three-dimensional NPY
/// array (named `0`, `1`, …) or of an NPZ archive (named as in it).
///
/// # Errors
///
/// Any [`InputError`]; the message names the file, the place in it and the way out.
pub fn read_gram(
    path: &Path,
    format: Option<Format>,
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    let (source, format) = opened(path, format, options.limit)?;
    match format {
        Format::Npy => npy::grams_from_source(source, options),
        Format::Npz => npz::from_source(source, options),
        format @ (Format::Csv | Format::Tsv) => {
            let (name, bytes) = source.into_bytes(options.limit)?;
            Ok(vec![(
                None,
                csv::gram_from_bytes(&name, &bytes, format.delimiter(), options)?,
            )])
        }
        Format::Libsvm => {
            let (name, bytes) = source.into_bytes(options.limit)?;
            Ok(vec![(
                None,
                libsvm::gram_from_bytes(&name, &bytes, options)?,
            )])
        }
        Format::Parquet => Err(InputError::Unsupported {
            file: source.name().to_owned(),
            found: "is a Parquet file, which holds samples, not a kernel matrix".to_owned(),
            remedy: "save the matrix with `numpy.save`",
        }),
    }
}

/// Everything in `path`, unpacked where it is packed with gzip, and the file's name for messages.
///
/// # Errors
///
/// When it cannot be read, or is larger than `limit`.
pub fn read_bytes(path: &Path, limit: u64) -> Result<(String, Vec<u8>), InputError> {
    Source::open(path, limit)?.into_bytes(limit)
}

/// Whether `bytes` are at most `limit`.
///
/// # Errors
///
/// With the figures if they are more.
pub fn check_size(file: &str, what: &str, bytes: u64, limit: u64) -> Result<(), InputError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(InputError::TooLarge {
        file: file.to_owned(),
        what: what.to_owned(),
        bytes,
        limit,
    })
}

/// Fails if two columns share a name.
fn check_names<'a>(file: &str, names: impl Iterator<Item = &'a str>) -> Result<(), InputError> {
    let mut seen = std::collections::BTreeMap::new();
    for (position, name) in names.enumerate() {
        if let Some(first) = seen.insert(name, position) {
            return Err(InputError::DuplicateColumn {
                file: file.to_owned(),
                name: shown(name.as_bytes()),
                first: first + 1,
                second: position + 1,
            });
        }
    }
    Ok(())
}
