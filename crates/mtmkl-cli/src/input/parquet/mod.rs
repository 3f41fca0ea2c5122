//! Apache Parquet, read column by column without Arrow: numbers, booleans and text; null is missing, and what means it in a CSV file.
//!
//! The library panics on some damaged files, so it is called behind a guard, and `pages` checks what it would believe.
//! Columns that cannot be a number or a name per row (lists, dates, binary data) are left out with the reason.

mod pages;

use std::cell::Cell as StdCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{AsBytes, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;

use mtmkl_table::{Column, Lines, Place, Skipped, Table, TableError, Values, is_gap};
use pages::CheckedPages;

use super::npy::half;
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
        Content::File { file, .. } => read(&name, file, options),
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

/// Calls the library behind a guard: on some damaged files it panics.
fn read(
    file: &str,
    content: impl ChunkReader + 'static,
    options: &TableOptions,
) -> Result<Table, InputError> {
    GUARDED.set(true);
    // Nothing that the library has touched outlives the guard.
    let result = catch_unwind(AssertUnwindSafe(|| {
        read_unguarded(file, &Arc::new(content), options)
    }));
    GUARDED.set(false);
    result.unwrap_or_else(|_| {
        Err(damaged(
            file,
            general("it is damaged, its parts contradict each other"),
        ))
    })
}

fn read_unguarded<C: ChunkReader + 'static>(
    file: &str,
    content: &Arc<C>,
    options: &TableOptions,
) -> Result<Table, InputError> {
    let damaged = |error| damaged(file, error);
    pages::check_schema(content.as_ref()).map_err(damaged)?;
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(content.as_ref())
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
    let names: Vec<String> = schema
        .columns()
        .iter()
        .map(|column| column.path().string())
        .collect();
    check_names(file, names.iter().map(String::as_str))?;
    let cells = rows.saturating_mul(names.len() as u64);
    let what = format!("{rows} rows of {} columns take", names.len());
    check_size(file, &what, cells.saturating_mul(CELL_BYTES), options.limit)?;
    let mut budget = Budget {
        used: 0,
        limit: options.limit,
    };
    let mut columns = Vec::new();
    let mut skipped = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let description = schema.column(index);
        let kind = if name.starts_with(PANDAS_INDEX) {
            Err(PANDAS_INDEX_REASON)
        } else {
            Kind::of(&description)
        };
        let read = match kind {
            Err(reason) => Err(Problem::Skip(reason)),
            Ok(kind) => {
                // Whole numbers keep all their digits as text; others have no spelling of their own.
                let whole = !matches!(kind, Kind::Decimal(_) | Kind::Half)
                    && !matches!(description.physical_type(), Type::FLOAT | Type::DOUBLE);
                let mut sink = Sink::new(kind, whole && options.text.contains(&name));
                metadata
                    .row_groups()
                    .iter()
                    .try_for_each(|group| {
                        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
                        let chunk = group.column(index);
                        check_chunk(content.as_ref(), chunk, options.limit)?;
                        let pages =
                            SerializedPageReader::new(Arc::clone(content), chunk, rows, None)?;
                        let pages = CheckedPages::new(Box::new(pages), &description);
                        let column = get_column_reader(Arc::clone(&description), Box::new(pages));
                        sink.read(column, rows, description.max_def_level(), &mut budget)
                    })
                    .map(|()| sink)
            }
        };
        match read {
            Ok(sink) => columns.push(Column {
                name,
                values: sink.values,
                missing: sink.missing,
            }),
            Err(Problem::Skip(reason)) => skipped.push(Skipped {
                name,
                reason: reason.to_owned(),
            }),
            Err(problem) => return Err(problem.into_error(file, name, options.limit)),
        }
    }
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut table = Table::new(file, rows, columns, Lines::Rows(1));
    table.skipped = skipped;
    Ok(table)
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
    used: u64,
    limit: u64,
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

    /// Appends the `rows` values of `column` in one row group.
    fn read(
        &mut self,
        column: ColumnReader,
        rows: usize,
        levels: i16,
        budget: &mut Budget,
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
        mut reader: ColumnReaderImpl<T>,
        rows: usize,
        levels: i16,
        budget: &mut Budget,
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

    fn push_missing(&mut self) {
        self.missing.push(self.rows);
        self.rows += 1;
        match &mut self.values {
            Values::Text(texts) => texts.push(String::new()),
            numbers => numbers.push(0.0),
        }
    }

    fn push(&mut self, cell: Cell<'_>, budget: &mut Budget) -> Result<(), Problem> {
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
                budget.used = budget
                    .used
                    .saturating_add((text.len() + size_of::<String>()) as u64);
                if budget.used > budget.limit {
                    return Err(Problem::TooLarge(budget.used));
                }
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
