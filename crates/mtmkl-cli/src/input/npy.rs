//! `NumPy` arrays (NPY versions 1 to 3): numbers of any width, either byte order, C or Fortran order.

use std::io::{self, Cursor, Read};

use mtmkl_table::{Column, Gram, Lines, Place, Table, TableError};

use super::source::{Content, Source};
use super::{GramOptions, InputError, TableOptions, check_size};

/// The first bytes of a file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header believed; `NumPy`'s own reader takes 10,000 bytes.
const MOST_HEADER: usize = 1 << 16;

/// Bytes converted at a time, a multiple of every item size.
const CHUNK: usize = 1 << 16;

/// Kernel matrices or a table: what a two-dimensional array was wanted for.
const EXPECTED_GRAM: &str =
    "a kernel matrix has two dimensions, a stack of them three (kernel, row, column)";
const EXPECTED_TABLE: &str = "a table has two dimensions (sample, feature)";

/// Reads kernel matrices from the `bytes` of an array named `source`.
///
/// # Errors
///
/// Any [`InputError`] about arrays.
pub fn from_bytes(
    source: &str,
    bytes: &[u8],
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    grams(
        source,
        Array::read(
            source,
            bytes,
            Size::Known(bytes.len() as u64),
            options.limit,
        )?,
        false,
    )
}

/// Reads a table with the columns `f1` to `fd` from the `bytes` of an array named `source`.
///
/// # Errors
///
/// Any [`InputError`] about arrays.
pub fn table_from_bytes(
    source: &str,
    bytes: &[u8],
    options: &TableOptions,
) -> Result<Table, InputError> {
    table(
        source,
        &Array::read(
            source,
            bytes,
            Size::Known(bytes.len() as u64),
            options.limit,
        )?,
    )
}

/// As [`from_bytes`], without a copy of a file in memory.
pub(super) fn grams_from_source(
    source: Source,
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    let (name, array) = from_source(source, options.limit)?;
    grams(&name, array, false)
}

/// As [`table_from_bytes`], without a copy of a file in memory.
pub(super) fn table_from_source(
    source: Source,
    options: &TableOptions,
) -> Result<Table, InputError> {
    let (name, array) = from_source(source, options.limit)?;
    table(&name, &array)
}

fn from_source(source: Source, limit: u64) -> Result<(String, Array), InputError> {
    let (name, content) = source.into_parts();
    let array = match content {
        Content::File { file, size } => Array::read(&name, file, Size::Known(size), limit),
        Content::Memory(bytes) => {
            let size = bytes.len() as u64;
            Array::read(&name, Cursor::new(bytes), Size::Known(size), limit)
        }
    }?;
    Ok((name, array))
}

/// The matrices of `array`: itself, or its slices by number. A list of numbers is a matrix of one column where `lists` are allowed: that is
/// how a diagonal is saved beside its matrix.
pub(super) fn grams(
    file: &str,
    array: Array,
    lists: bool,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    let (count, rows, columns) = match *array.shape.as_slice() {
        [rows] if lists => (None, rows, 1),
        [rows, columns] => (None, rows, columns),
        [count, rows, columns] => (Some(count), rows, columns),
        _ => return Err(array.wrong_shape(file, EXPECTED_GRAM)),
    };
    if rows == 0 || columns == 0 || count == Some(0) {
        return Err(array.wrong_shape(file, "it has no entries"));
    }
    if let Some(position) = array.values.iter().position(|value| !value.is_finite()) {
        return Err(InputError::ArrayNotFinite {
            file: file.to_owned(),
            row: position / columns % rows + 1,
            column: position % columns + 1,
            value: array.values[position],
        });
    }
    let gram = |values: Vec<f64>| Gram {
        rows,
        columns,
        values: values.into(),
        row_names: None,
    };
    Ok(match count {
        None => vec![(None, gram(array.values))],
        Some(_) => array
            .values
            .chunks_exact(rows * columns)
            .enumerate()
            .map(|(number, values)| (Some(number.to_string()), gram(values.to_vec())))
            .collect(),
    })
}

/// The table of `array`, with NaN as missing.
fn table(file: &str, array: &Array) -> Result<Table, InputError> {
    let &[rows, features] = array.shape.as_slice() else {
        return Err(array.wrong_shape(file, EXPECTED_TABLE));
    };
    if rows == 0 || features == 0 {
        return Err(array.wrong_shape(file, "it has no entries"));
    }
    let mut columns = Vec::with_capacity(features);
    for feature in 0..features {
        let name = format!("f{}", feature + 1);
        let values = array.values.iter().skip(feature).step_by(features);
        let column = Column::of_numbers(name.clone(), values.copied().collect());
        columns.push(column.map_err(|(row, value)| TableError::NotFinite {
            file: file.to_owned(),
            place: Place::Row(row + 1),
            column: name,
            value: value.to_string(),
        })?);
    }
    Ok(Table::new(file, rows, columns, Lines::Rows(1)))
}

/// How many bytes an array takes, header included.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    /// They are there.
    Known(u64),
    /// An archive says so.
    Claimed(u64),
}

/// An array in C order.
pub(super) struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    /// Reads an array from `reader`, which holds `size` bytes.
    pub(super) fn read(
        file: &str,
        mut reader: impl Read,
        size: Size,
        limit: u64,
    ) -> Result<Self, InputError> {
        let damaged = |reason: String| InputError::Damaged {
            file: file.to_owned(),
            format: "NPY",
            reason,
        };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                damaged("it ends early; was it copied in full?".to_owned())
            }
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => damaged(error.to_string()),
            _ => InputError::Io {
                file: file.to_owned(),
                source: error,
            },
        };
        let mut start = [0; 8];
        reader.read_exact(&mut start).map_err(failed)?;
        if !start.starts_with(MAGIC) {
            return Err(damaged(
                "it does not begin with the bytes `\\x93NUMPY`".to_owned(),
            ));
        }
        let mut length = [0; 4];
        let length_bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                return Err(damaged(format!(
                    "version {version} is unknown (1 to 3 are read)"
                )));
            }
        };
        reader
            .read_exact(&mut length[..length_bytes])
            .map_err(failed)?;
        let header_length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if header_length > MOST_HEADER {
            return Err(damaged(format!("its header claims {header_length} bytes")));
        }
        let mut header = vec![0; header_length];
        reader.read_exact(&mut header).map_err(failed)?;
        let header = Header::parse(&header)
            .map_err(|reason| damaged(format!("its header is malformed: {reason}")))?;
        let item = Item::parse(&header.item).ok_or_else(|| InputError::Unsupported {
            file: file.to_owned(),
            found: format!(
                "holds items of type `{}`, not plain numbers",
                mtmkl_table::words::shown(header.item.as_bytes())
            ),
            remedy: "save it as `array.astype(float)`",
        })?;
        let entries = header
            .shape
            .iter()
            .try_fold(1_u64, |product, length| product.checked_mul(*length))
            .filter(|entries| entries.checked_mul(8).is_some());
        let Some(entries) = entries else {
            return Err(damaged(format!(
                "its shape {} is impossible",
                header.shape_text()
            )));
        };
        let needed = entries * item.width as u64;
        let (Size::Known(total) | Size::Claimed(total)) = size;
        let present = total.saturating_sub((8 + length_bytes + header_length) as u64);
        if present != needed {
            return Err(damaged(format!(
                "its header (shape {}, type `{}`) promises {needed} bytes of numbers, there are {present}",
                header.shape_text(),
                header.item
            )));
        }
        check_size(file, "its numbers take", 8 * entries, limit)?;
        let values = item
            .read(&mut reader, entries, matches!(size, Size::Known(_)))
            .map_err(failed)?;
        // Reading to the end lets an archive verify its checksum.
        if reader.read(&mut [0]).map_err(failed)? > 0 {
            return Err(damaged("it goes on after its numbers".to_owned()));
        }
        let shape: Vec<usize> = header
            .shape
            .iter()
            .map(|length| usize::try_from(*length).unwrap_or(usize::MAX))
            .collect();
        let values = if header.fortran_order {
            c_order(&shape, &values)
        } else {
            values
        };
        Ok(Self { shape, values })
    }

    fn wrong_shape(&self, file: &str, expected: &'static str) -> InputError {
        InputError::Shape {
            file: file.to_owned(),
            shape: shape_text(&self.shape),
            expected,
        }
    }
}

/// `shape` as `NumPy` writes it.
fn shape_text<T: ToString>(shape: &[T]) -> String {
    match shape {
        [length] => format!("({},)", length.to_string()),
        _ => format!(
            "({})",
            shape
                .iter()
                .map(T::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    }
}

/// Reorders `values` from Fortran order (first index fastest) to C order (last index fastest).
fn c_order(shape: &[usize], values: &[f64]) -> Vec<f64> {
    let mut result = vec![0.0; values.len()];
    // Write in order, read along strides; the index vector counts like an odometer.
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for length in shape {
        strides.push(stride);
        stride *= length;
    }
    let mut index = vec![0; shape.len()];
    let mut position = 0;
    for target in &mut result {
        *target = values[position];
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            position += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            position -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    result
}

/// The kinds of number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Signed,
    Unsigned,
    Boolean,
}

/// The type of an item.
#[derive(Debug, Clone, Copy)]
struct Item {
    kind: Kind,
    width: usize,
    big_endian: bool,
}

impl Item {
    /// Reads a type string such as `<f8`.
    fn parse(text: &str) -> Option<Self> {
        let (order, rest) = match text.as_bytes() {
            [order @ (b'<' | b'>' | b'|' | b'='), rest @ ..] => (*order, rest),
            rest => (b'=', rest),
        };
        let (kind, width) = match rest {
            b"f2" => (Kind::Float, 2),
            b"f4" => (Kind::Float, 4),
            b"f8" => (Kind::Float, 8),
            [b'i', width] => (Kind::Signed, width.wrapping_sub(b'0')),
            [b'u', width] => (Kind::Unsigned, width.wrapping_sub(b'0')),
            b"b1" | b"?" => (Kind::Boolean, 1),
            _ => return None,
        };
        matches!(width, 1 | 2 | 4 | 8).then_some(Self {
            kind,
            width: usize::from(width),
            big_endian: order == b'>',
        })
    }

    /// Reads `entries` numbers; reserves room for all of them only if the bytes are known to be there.
    fn read(self, reader: &mut impl Read, entries: u64, reserve: bool) -> io::Result<Vec<f64>> {
        let entries =
            usize::try_from(entries).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut values = Vec::new();
        if reserve {
            values
                .try_reserve_exact(entries)
                .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        }
        let mut chunk = vec![0; CHUNK.min(entries * self.width)];
        while values.len() < entries {
            let bytes = chunk.len().min((entries - values.len()) * self.width);
            reader.read_exact(&mut chunk[..bytes])?;
            if self.big_endian {
                chunk[..bytes]
                    .chunks_exact_mut(self.width)
                    .for_each(<[u8]>::reverse);
            }
            self.convert(&chunk[..bytes], &mut values);
        }
        Ok(values)
    }

    /// Appends the numbers in the little-endian `bytes`.
    // 64-bit integers beyond 2^53 are rounded, as NumPy's own conversion does.
    fn convert(self, bytes: &[u8], values: &mut Vec<f64>) {
        /// Appends the numbers of one fixed width.
        fn extend<const WIDTH: usize>(
            bytes: &[u8],
            values: &mut Vec<f64>,
            number: impl Fn([u8; WIDTH]) -> f64,
        ) {
            let (items, _) = bytes.as_chunks::<WIDTH>();
            values.extend(items.iter().map(|item| number(*item)));
        }
        match (self.kind, self.width) {
            (Kind::Float, 8) => extend(bytes, values, f64::from_le_bytes),
            (Kind::Float, 4) => extend(bytes, values, |item| f64::from(f32::from_le_bytes(item))),
            (Kind::Float, _) => extend(bytes, values, |item| half(u16::from_le_bytes(item))),
            (Kind::Signed, 8) => extend(bytes, values, |item| i64::from_le_bytes(item) as f64),
            (Kind::Signed, 4) => extend(bytes, values, |item| f64::from(i32::from_le_bytes(item))),
            (Kind::Signed, 2) => extend(bytes, values, |item| f64::from(i16::from_le_bytes(item))),
            (Kind::Signed, _) => extend(bytes, values, |item| f64::from(i8::from_le_bytes(item))),
            (Kind::Unsigned, 8) => extend(bytes, values, |item| u64::from_le_bytes(item) as f64),
            (Kind::Unsigned, 4) => {
                extend(bytes, values, |item| f64::from(u32::from_le_bytes(item)));
            }
            (Kind::Unsigned, 2) => {
                extend(bytes, values, |item| f64::from(u16::from_le_bytes(item)));
            }
            (Kind::Unsigned, _) => extend(bytes, values, |[item]: [u8; 1]| f64::from(item)),
            (Kind::Boolean, _) => extend(bytes, values, |[item]: [u8; 1]| {
                f64::from(u8::from(item != 0))
            }),
        }
    }
}

/// The number with the IEEE half-precision pattern `bits`.
pub(super) fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2_f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    }
}

/// The header: a Python dictionary of three entries.
#[derive(Debug)]
struct Header {
    item: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    /// Parses `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let mut parser = Parser { rest: text };
        let (mut item, mut fortran_order, mut shape) = (None, None, None);
        parser.expect("{")?;
        while !parser.accept("}") {
            let key = parser.string()?;
            parser.expect(":")?;
            match key {
                "descr" => item = Some(parser.item()?),
                "fortran_order" => fortran_order = Some(parser.boolean()?),
                "shape" => shape = Some(parser.tuple()?),
                _ => {
                    return Err(format!(
                        "unknown entry `{}`",
                        mtmkl_table::words::shown(key.as_bytes())
                    ));
                }
            }
            if !parser.accept(",") {
                parser.expect("}")?;
                break;
            }
        }
        match (item, fortran_order, shape) {
            (Some(item), Some(fortran_order), Some(shape)) => Ok(Self {
                item,
                fortran_order,
                shape,
            }),
            _ => Err("it lacks `descr`, `fortran_order` or `shape`".to_owned()),
        }
    }

    fn shape_text(&self) -> String {
        shape_text(&self.shape)
    }
}

/// Reads the few Python literals of a header.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Skips `token` and the space before it, if it comes next.
    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) {
            return Ok(());
        }
        Err(format!(
            "expected `{token}` at `{}`",
            mtmkl_table::words::shown(self.rest.as_bytes())
        ))
    }

    fn string(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("\"") { '"' } else { '\'' };
        if quote == '\'' {
            self.expect("'")?;
        }
        let (text, rest) = self
            .rest
            .split_once(quote)
            .ok_or_else(|| "a text is not closed".to_owned())?;
        self.rest = rest;
        Ok(text)
    }

    /// A type string; the list of a structured type is kept as it stands, to be named in the refusal.
    fn item(&mut self) -> Result<String, String> {
        if self.accept("[") {
            let (fields, rest) = self.rest.split_once(']').ok_or("a list is not closed")?;
            self.rest = rest;
            return Ok(format!("[{fields}]"));
        }
        self.string().map(str::to_owned)
    }

    fn boolean(&mut self) -> Result<bool, String> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False")?;
        Ok(false)
    }

    fn tuple(&mut self) -> Result<Vec<u64>, String> {
        let mut numbers = Vec::new();
        self.expect("(")?;
        while !self.accept(")") {
            self.rest = self.rest.trim_start();
            let end = self
                .rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            numbers.push(digits.parse().map_err(|_| {
                format!(
                    "expected a length at `{}`",
                    mtmkl_table::words::shown(self.rest.as_bytes())
                )
            })?);
            self.rest = rest;
            // Python 2 marked long integers.
            self.accept("L");
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(numbers)
    }
}
