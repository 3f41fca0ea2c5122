//! A table in parts, for those who need its rows once and in order: text and Parquet as they come, NPY at once.

use std::path::Path;

use mtmkl_table::Table;

use super::source::Stream;
use super::{Format, InputError, TableOptions, csv, format, libsvm, parquet, table_of};

/// Rows of a part: a multiple of those that the core predicts at a time, so that the same rows are together as in the whole table.
pub(super) const ROWS: usize = 8192;
/// A part of rows that are long ends after so many bytes.
pub(super) const BYTES: usize = 8 << 20;
/// Bytes read at a time.
pub(super) const BLOCK: usize = 256 << 10;

/// A table that is read part by part. Each part is a table with all columns; places in it are those in the file.
///
/// Which columns are names is what the options say. All others that are asked for are numbers in every part, or its errors name a cell.
pub struct Batches(Box<dyn NextPart>);

/// How one format is read part by part.
pub(super) trait NextPart {
    /// The next part; none after the last. A table without rows is an error, not a stream without parts.
    ///
    /// # Errors
    ///
    /// Any [`InputError`] about the format.
    fn next_part(&mut self) -> Result<Option<Table>, InputError>;
}

/// All of it at once.
struct Whole(Option<Table>);

impl NextPart for Whole {
    fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        Ok(self.0.take())
    }
}

impl Batches {
    /// Opens the table in `path`, or standard input where it is `-`, packed with gzip or not.
    ///
    /// # Errors
    ///
    /// Any [`InputError`]; the message names the file, the place in it and the way out.
    pub fn open(
        path: &Path,
        format: Option<Format>,
        options: &TableOptions,
    ) -> Result<Self, InputError> {
        let stream = Stream::open(path)?;
        let format = format::of_stream(path, &stream, format)?;
        Ok(Self(match format {
            Format::Csv | Format::Tsv => {
                let options = TableOptions {
                    delimiter: options.delimiter.or(format.delimiter()),
                    ..options.clone()
                };
                Box::new(csv::Parts::new(stream, options))
            }
            Format::Libsvm => Box::new(libsvm::Parts::new(stream, options.clone())),
            Format::Parquet => parquet::parts(stream.into_source(options.limit)?, options)?,
            Format::Npy | Format::Npz => {
                let source = stream.into_source(options.limit)?;
                Box::new(Whole(Some(table_of(source, format, options)?)))
            }
        }))
    }

    /// The next part; none after the last. A table without rows is an error, not a stream without parts.
    ///
    /// # Errors
    ///
    /// As [`Batches::open`].
    pub fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        self.0.next_part()
    }
}
