//! MATLAB's level 5 files (`save -v6`, `-v7`): matrices of numbers and cells of them; other variables are passed over.
//!
//! A file is a header of 128 bytes and then elements: a type, a length, so many bytes. A variable is an element of type 14 that
//! holds elements itself, or one of type 15 that holds such an element packed with zlib. ("MAT-File Format", The MathWorks.)

use std::io::Read;

use flate2::read::ZlibDecoder;

use mtmkl_cli::input::{InputError, check_size};

/// Cells in cells in cells: deeper than this nobody means it.
const DEPTH: usize = 16;

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A matrix of real numbers, column after column.
    Matrix {
        /// The number of rows.
        rows: usize,
        /// The number of columns; further dimensions are folded into it.
        columns: usize,
        /// The entries, column after column.
        values: Vec<f64>,
    },
    /// Cells, column after column.
    Cells(Vec<Value>),
    /// Something else: text, a structure, a sparse or complex matrix.
    Other,
}

/// The element types that hold numbers, and their widths.
const NUMBERS: [(u32, usize); 10] = [
    (1, 1),
    (2, 1),
    (3, 2),
    (4, 2),
    (5, 4),
    (6, 4),
    (7, 4),
    (9, 8),
    (12, 8),
    (13, 8),
];
const MATRIX: u32 = 14;
const PACKED: u32 = 15;

/// Reads all variables in `bytes`, in their order; unpacked, they may take `limit` bytes.
///
/// # Errors
///
/// When it is no such file, contradicts itself, or is too large.
pub fn from_bytes(
    file: &str,
    bytes: &[u8],
    limit: u64,
) -> Result<Vec<(String, Value)>, InputError> {
    let damaged = |reason: &str| InputError::Damaged {
        file: file.to_owned(),
        format: "MATLAB",
        reason: reason.to_owned(),
    };
    if bytes.starts_with(b"\x89HDF") || bytes.starts_with(b"MATLAB 7.3") {
        return Err(InputError::Unsupported {
            file: file.to_owned(),
            found: "is a MATLAB 7.3 file, which is HDF5".to_owned(),
            remedy: "save it with `save -v7`",
        });
    }
    let (Some(head), Some(body)) = (bytes.get(..128), bytes.get(128..)) else {
        return Err(damaged("it is shorter than its header"));
    };
    let big_endian = match &head[124..128] {
        [0, 1, b'I', b'M'] => false,
        [1, 0, b'M', b'I'] => true,
        _ => return Err(damaged("the header has no version 5 mark")),
    };
    let mut reader = Reader {
        file,
        big_endian,
        room: limit,
    };
    let mut variables = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (kind, data) = reader.element(&mut rest)?;
        match kind {
            MATRIX => variables.push(reader.matrix(data, 0)?),
            PACKED => {
                let unpacked = reader.unpack(data)?;
                let mut inside = unpacked.as_slice();
                let (kind, data) = reader.element(&mut inside)?;
                if kind == MATRIX {
                    variables.push(reader.matrix(data, 0)?);
                }
            }
            _ => {}
        }
    }
    Ok(variables)
}

/// What is needed at every depth.
struct Reader<'a> {
    file: &'a str,
    big_endian: bool,
    /// Bytes that may still be taken.
    room: u64,
}

impl Reader<'_> {
    fn damaged(&self, reason: &str) -> InputError {
        InputError::Damaged {
            file: self.file.to_owned(),
            format: "MATLAB",
            reason: reason.to_owned(),
        }
    }

    /// Takes memory into account before it is taken.
    fn take(&mut self, bytes: u64) -> Result<(), InputError> {
        check_size(self.file, "the variables take more than", bytes, self.room)?;
        self.room -= bytes;
        Ok(())
    }

    fn unpack(&mut self, data: &[u8]) -> Result<Vec<u8>, InputError> {
        let mut unpacked = Vec::new();
        ZlibDecoder::new(data)
            .take(self.room.saturating_add(1))
            .read_to_end(&mut unpacked)
            .map_err(|error| {
                self.damaged(&format!("a packed variable cannot be unpacked: {error}"))
            })?;
        self.take(unpacked.len() as u64)?;
        Ok(unpacked)
    }

    fn word(&self, bytes: &[u8]) -> Option<u32> {
        let word = *bytes.first_chunk::<4>()?;
        Some(if self.big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        })
    }

    /// The next element's type and bytes.
    fn element<'b>(&self, rest: &mut &'b [u8]) -> Result<(u32, &'b [u8]), InputError> {
        let short = || self.damaged("an element is cut short");
        let tag = self.word(rest).ok_or_else(short)?;
        if tag >> 16 != 0 {
            // A small element: its length, its type and up to four bytes in eight.
            let length = (tag >> 16) as usize;
            let all = *rest;
            let data = all
                .get(4..4 + length)
                .filter(|_| length <= 4)
                .ok_or_else(short)?;
            *rest = all.get(8..).unwrap_or_default();
            return Ok((tag & 0xffff, data));
        }
        let all = *rest;
        let length = self
            .word(all.get(4..).unwrap_or_default())
            .ok_or_else(short)? as usize;
        let data = all
            .get(8..)
            .and_then(|all| all.get(..length))
            .ok_or_else(short)?;
        // Elements begin at multiples of eight bytes, except after packed ones; the last may go without.
        let step = if tag == PACKED {
            length
        } else {
            length.next_multiple_of(8)
        };
        *rest = all.get(8 + step..).unwrap_or_default();
        Ok((tag, data))
    }

    /// The numbers of an element.
    fn numbers(&mut self, kind: u32, data: &[u8]) -> Result<Vec<f64>, InputError> {
        let width = NUMBERS
            .iter()
            .find(|(known, _)| *known == kind)
            .map(|(_, width)| *width);
        let Some(width) = width.filter(|width| data.len().is_multiple_of(*width)) else {
            return Err(self.damaged("an element that should hold numbers does not"));
        };
        self.take((data.len() / width * 8) as u64)?;
        let mut bytes = [0; 8];
        let numbers = data.chunks_exact(width).map(|item| {
            bytes[..width].copy_from_slice(item);
            if self.big_endian {
                bytes[..width].reverse();
            }
            let low2 = [bytes[0], bytes[1]];
            let low4 = [bytes[0], bytes[1], bytes[2], bytes[3]];
            match kind {
                1 => f64::from(bytes[0].cast_signed()),
                2 => f64::from(bytes[0]),
                3 => f64::from(i16::from_le_bytes(low2)),
                4 => f64::from(u16::from_le_bytes(low2)),
                5 => f64::from(i32::from_le_bytes(low4)),
                6 => f64::from(u32::from_le_bytes(low4)),
                7 => f64::from(f32::from_le_bytes(low4)),
                9 => f64::from_le_bytes(bytes),
                12 => i64::from_le_bytes(bytes) as f64,
                _ => u64::from_le_bytes(bytes) as f64,
            }
        });
        Ok(numbers.collect())
    }

    /// A variable: flags, dimensions, name, content.
    fn matrix(&mut self, data: &[u8], depth: usize) -> Result<(String, Value), InputError> {
        let mut rest = data;
        // An empty cell is an element without bytes.
        if rest.is_empty() {
            let empty = Value::Matrix {
                rows: 0,
                columns: 0,
                values: Vec::new(),
            };
            return Ok((String::new(), empty));
        }
        let (_, flags) = self.element(&mut rest)?;
        let flags = self
            .word(flags)
            .ok_or_else(|| self.damaged("a variable has no flags"))?;
        let (kind, dimensions) = self.element(&mut rest)?;
        if kind != 5 {
            return Err(self.damaged("a variable has no dimensions"));
        }
        let lengths = self.numbers(kind, dimensions)?;
        if lengths.len() < 2 {
            return Err(self.damaged("a variable has fewer than two dimensions"));
        }
        let (_, name) = self.element(&mut rest)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let complex = flags & 0x0800 != 0;
        let value = match flags & 0xff {
            1 if depth >= DEPTH => return Err(self.damaged("cells are nested too deeply")),
            1 => {
                let mut cells = Vec::new();
                while !rest.is_empty() {
                    let (kind, data) = self.element(&mut rest)?;
                    if kind != MATRIX {
                        return Err(self.damaged("a cell holds no variable"));
                    }
                    self.take(64)?;
                    cells.push(self.matrix(data, depth + 1)?.1);
                }
                if cells.len() as f64 != lengths.iter().product::<f64>() {
                    return Err(self.damaged("there are not as many cells as the dimensions say"));
                }
                Value::Cells(cells)
            }
            6..=15 if !complex => {
                let (kind, data) = self.element(&mut rest)?;
                let values = self.numbers(kind, data)?;
                if values.len() as f64 != lengths.iter().product::<f64>()
                    || lengths.iter().any(|&length| length < 0.0)
                {
                    return Err(self.damaged("there are not as many numbers as the dimensions say"));
                }
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a length from 32 bits, not negative"
                )]
                let rows = lengths.first().map_or(0, |&rows| rows as usize);
                let columns = values.len().checked_div(rows).unwrap_or(0);
                Value::Matrix {
                    rows,
                    columns,
                    values,
                }
            }
            _ => Value::Other,
        };
        Ok((name, value))
    }
}
