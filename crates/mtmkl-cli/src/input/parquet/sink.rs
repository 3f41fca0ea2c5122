//! The cells of a Parquet column as they come from the library, understood and collected.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};

use mtmkl_table::{Column, Values, is_gap};
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{AsBytes, DataType};
use parquet::schema::types::ColumnDescriptor;

use super::super::npy::half;
use super::{Problem, general};

/// Rows decoded at a time.
const BATCH: usize = 8192;

/// Why a column of bytes is left out.
const BINARY: &str = "it holds binary data; turn it into numbers or text to use it";

/// How the stored values of a column are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, &'static str> {
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
pub(super) struct Budget {
    used: AtomicU64,
    pub(super) limit: u64,
}

impl Budget {
    pub(super) fn new(limit: u64) -> Self {
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
pub(super) struct Sink {
    kind: Kind,
    values: Values,
    missing: Vec<usize>,
    rows: usize,
}

impl Sink {
    pub(super) fn new(kind: Kind, as_text: bool) -> Self {
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
    pub(super) fn column(self, name: String) -> Column {
        Column {
            name,
            values: self.values,
            missing: self.missing,
        }
    }

    /// Appends the next `rows` values of `column`, of one row group.
    pub(super) fn read(
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
