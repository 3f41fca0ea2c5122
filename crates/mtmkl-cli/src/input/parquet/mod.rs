//! Apache Parquet, read column by column without Arrow: numbers, booleans and text; null is missing, and what means it in a CSV file.
//!
//! The library panics on some damaged files, so it is called behind a guard, and `pages` checks what it would believe.
//! Columns that cannot be a number or a name per row (lists, dates, binary data) are left out with the reason.

mod pages;
mod parts;
mod shared_file;

use std::any::Any;
use std::cell::Cell as StdCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use mtmkl_table::{Column, Lines, Place, Skipped, Table, TableError, Values, is_gap};
use pages::CheckedPages;
pub(super) use parts::Parts;
use shared_file::SharedFile;

use super::batches::{self, NextPart};
use super::npy::half;
use super::side_by_side::side_by_side;
use super::source::{Content, Source};
use super::{InputError, TableOptions, check_names, check_size};

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// What a cell costs at least: a number, or the fields of a text.
const CELL_BYTES: u64 = size_of::<f64>() as u64;

/// The name under which pandas stores a row index.
const PANDAS_INDEX: &str = "__index_level_";
const PANDAS_INDEX_REASON: &str = "it is a row index of pandas; name the index to use it";

/// Why a column of bytes is left out.
const BINARY: &str = "it holds binary data; turn it into numbers or text to use it";

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

/// How the stored values of a column are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Numbers as they are stored, signed.
    Number,
    /// Integers stored as signed that are not.
    Unsigned,
    /// Integers, or their bytes, to be divided by this power of ten.
    Decimal(i32),
    /// Half-precision numbers.
    Half,
    /// Text.
    Text,
}

impl Kind {
    /// The kind of a column, or why it cannot be read.
    fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
        const TIME: &str = "it holds dates or times; turn them into numbers or text to use them";
        if column.max_rep_level() > 0 {
            return Err("it holds lists; give each element a column of its own to use them");
        }
        let bytes = matches!(
            column.physical_type(),
            Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY
        );
        match column.logical_type_ref() {
            Some(LogicalType::Date | LogicalType::Time(_) | LogicalType::Timestamp(_)) => {
                return Err(TIME);
            }
            Some(LogicalType::Decimal(decimal)) => return Ok(Self::Decimal(decimal.scale)),
            Some(LogicalType::Integer(integer)) if !integer.is_signed => return Ok(Self::Unsigned),
            Some(LogicalType::Float16) if column.type_length() == 2 => return Ok(Self::Half),
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) | None => {}
            Some(_) if bytes => return Err(BINARY),
            Some(_) => {}
        }
        match column.converted_type() {
            ConvertedType::DATE
            | ConvertedType::TIME_MILLIS
            | ConvertedType::TIME_MICROS
            | ConvertedType::TIMESTAMP_MILLIS
            | ConvertedType::TIMESTAMP_MICROS
            | ConvertedType::INTERVAL => Err(TIME),
            ConvertedType::DECIMAL => Ok(Self::Decimal(column.type_scale())),
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Ok(Self::Unsigned),
            _ if column.physical_type() == Type::INT96 => Err(TIME),
            _ if bytes => Ok(Self::Text),
            _ => Ok(Self::Number),
        }
    }
}

/// A stored value.
#[derive(Debug, Clone, Copy)]
enum Cell<'a> {
    Number(f64),
    Integer(i64),
    Unsigned(u64),
    Truth(bool),
    Bytes(&'a [u8]),
}

/// The bytes spent on texts.
struct Budget {
    used: AtomicU64,
    limit: u64,
}

impl Budget {
    fn new(limit: u64) -> Self {
        Self {
            used: AtomicU64::new(0),
            limit,
        }
    }

    fn spend(&self, bytes: usize) -> Result<(), Problem> {
        let before = self.used.fetch_add(bytes as u64, Ordering::Relaxed);
        match before.saturating_add(bytes as u64) {
            used if used > self.limit => Err(Problem::TooLarge(used)),
            _ => Ok(()),
        }
    }
}

/// A column while it is being read.
struct Sink {
    kind: Kind,
    values: Values,
    missing: Vec<usize>,
    rows: usize,
}

impl Sink {
    fn new(kind: Kind, as_text: bool) -> Self {
        Self {
            kind,
            values: if as_text || kind == Kind::Text {
                Values::Text(Vec::new())
            } else {
                Values::Numbers(Vec::new())
            },
            missing: Vec::new(),
            rows: 0,
        }
    }

    /// What was read.
    fn column(self, name: String) -> Column {
        Column {
            name,
            values: self.values,
            missing: self.missing,
        }
    }

    /// Appends the next `rows` values of `column`, of one row group.
    fn read(
        &mut self,
        column: &mut ColumnReader,
        rows: usize,
        levels: i16,
        budget: &Budget,
    ) -> Result<(), Problem> {
        let kind = self.kind;
        match column {
            ColumnReader::BoolColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| Cell::Truth(*value))
            }
            ColumnReader::Int32ColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| {
                    if kind == Kind::Unsigned {
                        Cell::Unsigned(u64::from(value.cast_unsigned()))
                    } else {
                        Cell::Integer(i64::from(*value))
                    }
                })
            }
            ColumnReader::Int64ColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| {
                    if kind == Kind::Unsigned {
                        Cell::Unsigned(value.cast_unsigned())
                    } else {
                        Cell::Integer(*value)
                    }
                })
            }
            ColumnReader::FloatColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| {
                    Cell::Number(f64::from(*value))
                })
            }
            ColumnReader::DoubleColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| Cell::Number(*value))
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| {
                    Cell::Bytes(value.as_bytes())
                })
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                self.read_typed(reader, rows, levels, budget, |value| {
                    Cell::Bytes(value.as_bytes())
                })
            }
            // `Kind::of` has refused these times already.
            ColumnReader::Int96ColumnReader(_) => Err(Problem::Skip(BINARY)),
        }
    }

    /// Appends the `rows` values of a column with values of one stored type.
    fn read_typed<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        rows: usize,
        levels: i16,
        budget: &Budget,
        cell: impl for<'v> Fn(&'v T::T) -> Cell<'v>,
    ) -> Result<(), Problem> {
        let mut definitions = Vec::new();
        let mut values = Vec::new();
        let mut remaining = rows;
        while remaining > 0 {
            definitions.clear();
            values.clear();
            let (read, _, _) = reader.read_records(
                remaining.min(BATCH),
                Some(&mut definitions),
                None,
                &mut values,
            )?;
            if read == 0 || read > remaining {
                return Err(Problem::Parquet(general(
                    "a column has fewer values than its row group has rows",
                )));
            }
            remaining -= read;
            if values.len() == read && self.extend(&values) {
                continue;
            }
            let mut present = values.iter();
            for row in 0..read {
                // Without optional parts there are no levels, and every value is present.
                let defined = levels == 0 || definitions.get(row) == Some(&levels);
                if !defined {
                    self.push_missing();
                    continue;
                }
                match present.next() {
                    Some(value) => self.push(cell(value), budget)?,
                    None => {
                        return Err(Problem::Parquet(general(
                            "a column has fewer values than it declares",
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Appends finite numbers that are all there, the common case; false, and nothing was done, where they are something else.
    fn extend<T: 'static>(&mut self, values: &[T]) -> bool {
        let (Kind::Number, Values::Numbers(numbers)) = (self.kind, &mut self.values) else {
            return false;
        };
        let before = numbers.len();
        for value in values {
            let value: &dyn Any = value;
            let number = match (value.downcast_ref::<f64>(), value.downcast_ref::<f32>()) {
                (Some(&double), _) => double,
                (_, Some(&single)) => f64::from(single),
                _ => return false,
            };
            if !number.is_finite() {
                numbers.truncate(before);
                return false;
            }
            numbers.push(number);
        }
        self.rows += values.len();
        true
    }

    fn push_missing(&mut self) {
        self.missing.push(self.rows);
        self.rows += 1;
        match &mut self.values {
            Values::Text(texts) => texts.push(String::new()),
            numbers => numbers.push(0.0),
        }
    }

    fn push(&mut self, cell: Cell<'_>, budget: &Budget) -> Result<(), Problem> {
        let cell = self.understood(cell)?;
        if let Cell::Number(value) = cell {
            if value.is_nan() {
                self.push_missing();
                return Ok(());
            }
            if value.is_infinite() {
                return Err(Problem::NotFinite {
                    row: self.rows,
                    value,
                });
            }
        }
        match &mut self.values {
            Values::Text(texts) => {
                let text = match cell {
                    Cell::Number(value) => value.to_string(),
                    Cell::Integer(value) => value.to_string(),
                    Cell::Unsigned(value) => value.to_string(),
                    // As pandas writes them into a CSV file.
                    Cell::Truth(value) => if value { "True" } else { "False" }.to_owned(),
                    Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
                        Ok(text) => text.to_owned(),
                        Err(_) => return Err(Problem::Skip(BINARY)),
                    },
                };
                if is_gap(&text) {
                    self.push_missing();
                    return Ok(());
                }
                budget.spend(text.len() + size_of::<String>())?;
                texts.push(text);
            }
            numbers => numbers.push(match cell {
                Cell::Number(value) => value,
                Cell::Integer(value) => value as f64,
                Cell::Unsigned(value) => value as f64,
                Cell::Truth(value) => f64::from(u8::from(value)),
                Cell::Bytes(_) => return Err(Problem::Skip(BINARY)),
            }),
        }
        self.rows += 1;
        Ok(())
    }

    /// `cell` with its meaning: decimals divided, half-precision numbers widened.
    fn understood<'a>(&self, cell: Cell<'a>) -> Result<Cell<'a>, Problem> {
        Ok(match (self.kind, cell) {
            (Kind::Decimal(scale), Cell::Integer(value)) => {
                Cell::Number(value as f64 / 10_f64.powi(scale))
            }
            (Kind::Decimal(scale), Cell::Bytes(bytes)) => {
                let value = big_endian(bytes)
                    .ok_or(Problem::Skip("its decimals have more than 38 digits"))?;
                Cell::Number(value as f64 / 10_f64.powi(scale))
            }
            (Kind::Half, Cell::Bytes(&[low, high])) => {
                Cell::Number(half(u16::from_le_bytes([low, high])))
            }
            _ => cell,
        })
    }
}

/// The signed integer with these bytes, most significant first.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = *bytes.first()?;
    let mut wide = [if first & 0x80 == 0 { 0 } else { 0xff }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}
