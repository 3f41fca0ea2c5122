//! A table in parts, for those who need its rows once and in order: delimited text as it comes, everything else at once.

use std::path::Path;

use mtmkl_table::Table;

use super::source::Stream;
use super::{Format, InputError, TableOptions, csv, format, table_of};

/// A table that is read part by part. Each part is a table with all columns; places in it are those in the file.
///
/// Which columns are names is what the options say. All others that are asked for are numbers in every part, or its errors name a cell.
pub struct Batches(Content);

enum Content {
    Text(Box<csv::Parts>),
    Whole(Option<Table>),
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
        let format =
            format.map_or_else(|| format::of_head(path, stream.name(), stream.head()), Ok)?;
        Ok(Self(match format {
            Format::Csv | Format::Tsv => {
                let options = TableOptions {
                    delimiter: options.delimiter.or(format.delimiter()),
                    ..options.clone()
                };
                Content::Text(Box::new(csv::Parts::new(stream, options)))
            }
            _ => {
                let source = stream.into_source(options.limit)?;
                Content::Whole(Some(table_of(source, format, options)?))
            }
        }))
    }

    /// The next part; none after the last. A table without rows is an error, not a stream without parts.
    ///
    /// # Errors
    ///
    /// As [`Batches::open`].
    pub fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        match &mut self.0 {
            Content::Text(parts) => parts.next(),
            Content::Whole(table) => Ok(table.take()),
        }
    }
}
