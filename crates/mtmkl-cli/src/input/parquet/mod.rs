//! Apache Parquet, read column by column without Arrow: numbers, booleans and text; null is missing, and what means it in a CSV file.
//!
//! The library panics on some damaged files, so it is called behind a guard, and `pages` checks what it would believe.
//! Columns that cannot be a number or a name per row (lists, dates, binary data) are left out with the reason.

mod pages;
mod parts;
mod shared_file;
mod sink;

use std::cell::Cell as StdCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Type};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use mtmkl_table::{Lines, Place, Skipped, Table, TableError};
use pages::CheckedPages;
pub(super) use parts::Parts;
use shared_file::SharedFile;
use sink::{Budget, Kind, Sink};

use super::batches::{self, NextPart};
use super::side_by_side::side_by_side;
use super::source::{Content, Source};
use super::{InputError, TableOptions, check_names, check_size};

/// What a cell costs at least: a number, or the fields of a text.
const CELL_BYTES: u64 = size_of::<f64>() as u64;

/// The name under which pandas stores a row index.
const PANDAS_INDEX: &str = "__index_level_";
const PANDAS_INDEX_REASON: &str = "it is a row index of pandas; name the index to use it";

/// Reads a table from the `bytes` of a Parquet file named `source`.
///
/// # Errors
///
/// Any [`InputError`] about Parquet files and sizes.
pub fn from_bytes(source: &str, bytes: &[u8], options: &TableOptions) -> Result<Table, InputError> {
    read(source, Bytes::copy_from_slice(bytes), options)
}

/// As [`from_bytes`], without a copy of a file in memory.
pub(super) fn from_source(source: Source, options: &TableOptions) -> Result<Table, InputError> {
    let (name, content) = source.into_parts();
    match content {
        Content::File { file, size } => read(&name, SharedFile::new(file, size), options),
        Content::Memory(bytes) => read(&name, Bytes::from(bytes), options),
    }
}

thread_local! {
    /// Whether this thread is inside the library, behind the guard.
    static GUARDED: StdCell<bool> = const { StdCell::new(false) };
}

/// Whether a panic of this thread is one of the library's that will be caught and reported as a damaged file, so that a
/// panic hook can keep silent.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Calls the library behind a guard: on some damaged files it panics. Nothing that it has touched is used after that.
fn guarded<T>(file: &str, call: impl FnOnce() -> Result<T, InputError>) -> Result<T, InputError> {
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(false);
    result.unwrap_or_else(|_| {
        Err(damaged(
            file,
            general("it is damaged, its parts contradict each other"),
        ))
    })
}

fn read(
    file: &str,
    content: impl ChunkReader + 'static,
    options: &TableOptions,
) -> Result<Table, InputError> {
    guarded(file, || Opened::new(file, content, options))?.whole(options)
}

/// The table of a file part by part.
///
/// # Errors
///
/// Any [`InputError`] about Parquet files.
pub(super) fn parts(
    source: Source,
    options: &TableOptions,
) -> Result<Box<dyn NextPart>, InputError> {
    let (name, content) = source.into_parts();
    Ok(match content {
        Content::File { file, size } => {
            let file = SharedFile::new(file, size);
            Box::new(Parts::open(&name, file, options, batches::ROWS)?)
        }
        Content::Memory(bytes) => Box::new(Parts::open(
            &name,
            Bytes::from(bytes),
            options,
            batches::ROWS,
        )?),
    })
}

/// A file whose headers were read.
struct Opened<C> {
    file: String,
    content: Arc<C>,
    metadata: ParquetMetaData,
    rows: u64,
    columns: Vec<Described>,
}

/// What the headers say of a column.
struct Described {
    name: String,
    /// How it is read, or why it cannot be.
    kind: Result<Kind, &'static str>,
    as_text: bool,
}

impl Described {
    fn sink(&self) -> Result<Sink, Problem> {
        match self.kind {
            Ok(kind) => Ok(Sink::new(kind, self.as_text)),
            Err(reason) => Err(Problem::Skip(reason)),
        }
    }
}

impl<C: ChunkReader + 'static> Opened<C> {
    fn new(file: &str, content: C, options: &TableOptions) -> Result<Self, InputError> {
        let damaged = |error| damaged(file, error);
        pages::check_schema(&content).map_err(damaged)?;
        let metadata = ParquetMetaDataReader::new()
            .parse_and_finish(&content)
            .map_err(damaged)?;
        let schema = metadata.file_metadata().schema_descr();
        let mut rows = 0_u64;
        for group in metadata.row_groups() {
            rows = u64::try_from(group.num_rows())
                .ok()
                .and_then(|group_rows| rows.checked_add(group_rows))
                .ok_or_else(|| damaged(general("its number of rows is impossible")))?;
            if group.num_columns() != schema.num_columns() {
                return Err(damaged(general("a row group lacks columns")));
            }
        }
        if rows == 0 {
            return Err(InputError::NoRows {
                file: file.to_owned(),
            });
        }
        let described = |description: &Arc<ColumnDescriptor>| {
            let name = description.path().string();
            let kind = if name.starts_with(PANDAS_INDEX) {
                Err(PANDAS_INDEX_REASON)
            } else {
                Kind::of(description)
            };
            // Whole numbers keep all their digits as text; others have no spelling of their own.
            let whole = !matches!(kind, Ok(Kind::Decimal(_) | Kind::Half))
                && !matches!(description.physical_type(), Type::FLOAT | Type::DOUBLE);
            Described {
                as_text: whole && options.text.contains(&name),
                name,
                kind,
            }
        };
        let columns: Vec<Described> = schema.columns().iter().map(described).collect();
        check_names(file, columns.iter().map(|column| column.name.as_str()))?;
        Ok(Self {
            file: file.to_owned(),
            content: Arc::new(content),
            rows,
            columns,
            metadata,
        })
    }

    /// The table, column by column.
    fn whole(self, options: &TableOptions) -> Result<Table, InputError> {
        let (file, count) = (&self.file, self.columns.len());
        let cells = self.rows.saturating_mul(count as u64);
        let what = format!("{} rows of {count} columns take", self.rows);
        check_size(file, &what, cells.saturating_mul(CELL_BYTES), options.limit)?;
        let budget = Budget::new(options.limit);
        // Each column behind a guard of its own, on whatever thread it is read.
        let read = side_by_side((0..count).collect(), |index| {
            guarded(file, || Ok(self.column(index, &budget)))
        });
        let mut columns = Vec::new();
        let mut skipped = Vec::new();
        for (described, column) in self.columns.iter().zip(read) {
            let name = described.name.clone();
            match column? {
                Ok(sink) => columns.push(sink.column(name)),
                Err(Problem::Skip(reason)) => skipped.push(Skipped {
                    name,
                    reason: reason.to_owned(),
                }),
                Err(problem) => return Err(problem.into_error(file, name, options.limit)),
            }
        }
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        let mut table = Table::new(file, rows, columns, Lines::Rows(1));
        table.skipped = skipped;
        Ok(table)
    }

    /// All of a column.
    fn column(&self, index: usize, budget: &Budget) -> Result<Sink, Problem> {
        let mut sink = self.columns[index].sink()?;
        let levels = self.levels(index);
        for group in 0..self.metadata.num_row_groups() {
            let mut reader = self.reader(group, index, budget.limit)?;
            sink.read(&mut reader, self.rows_of(group), levels, budget)?;
        }
        Ok(sink)
    }

    /// The definition level of a value that is there.
    fn levels(&self, index: usize) -> i16 {
        let schema = self.metadata.file_metadata().schema_descr();
        schema.column(index).max_def_level()
    }

    fn rows_of(&self, group: usize) -> usize {
        let rows = self.metadata.row_group(group).num_rows();
        usize::try_from(rows).unwrap_or(usize::MAX)
    }

    /// A column of a row group, from its first row on.
    fn reader(&self, group: usize, index: usize, limit: u64) -> Result<ColumnReader, Problem> {
        let schema = self.metadata.file_metadata().schema_descr();
        let description = schema.column(index);
        let chunk = self.metadata.row_group(group).column(index);
        check_chunk(self.content.as_ref(), chunk, limit)?;
        let rows = self.rows_of(group);
        let pages = SerializedPageReader::new(Arc::clone(&self.content), chunk, rows, None)?;
        let pages = CheckedPages::new(Box::new(pages), &description);
        Ok(get_column_reader(description, Box::new(pages)))
    }
}

/// Checks what the headers of a column chunk say before the library acts on it.
fn check_chunk(
    content: &impl ChunkReader,
    chunk: &ColumnChunkMetaData,
    limit: u64,
) -> Result<(), Problem> {
    match chunk.compression() {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::ZSTD(_) => {}
        other => return Err(Problem::Packed(other.to_string().to_lowercase())),
    }
    match pages::largest(content, chunk)? {
        bytes if bytes > limit => Err(Problem::TooLarge(bytes)),
        _ => Ok(()),
    }
}

/// The error for a file that the library refuses.
fn damaged(file: &str, error: ParquetError) -> InputError {
    InputError::Damaged {
        file: file.to_owned(),
        format: "Parquet",
        reason: match error {
            ParquetError::General(reason)
            | ParquetError::EOF(reason)
            | ParquetError::NYI(reason) => reason,
            other => other.to_string(),
        },
    }
}

fn general(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

/// Why a column ends before its last row.
enum Problem {
    /// The file is damaged.
    Parquet(ParquetError),
    /// A number is infinite.
    NotFinite { row: usize, value: f64 },
    /// The column cannot be used.
    Skip(&'static str),
    /// The compression is not read.
    Packed(String),
    /// A page or the texts take too many bytes.
    TooLarge(u64),
}

impl Problem {
    /// The error to report of column `name`.
    fn into_error(self, file: &str, name: String, limit: u64) -> InputError {
        let file = file.to_owned();
        match self {
            Self::Parquet(error) => damaged(&file, error),
            Self::NotFinite { row, value } => TableError::NotFinite {
                file,
                place: Place::Row(row + 1),
                column: name,
                value: value.to_string(),
            }
            .into(),
            Self::Skip(reason) => TableError::SkippedColumn {
                file,
                name,
                reason: reason.to_owned(),
            }
            .into(),
            Self::Packed(compression) => InputError::Unsupported {
                file,
                found: format!("is packed with {compression}"),
                remedy: "write it with snappy, gzip, zstd or no compression",
            },
            Self::TooLarge(bytes) => InputError::TooLarge {
                file,
                what: "its content takes at least".to_owned(),
                bytes,
                limit,
            },
        }
    }
}

impl From<ParquetError> for Problem {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}
