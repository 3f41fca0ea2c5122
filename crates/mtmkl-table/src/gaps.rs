//! Which cells have no value, and what is done about them.
//!
//! A cell is a gap if it is empty, spells NaN, or is one of the words below, spaces around it aside. That holds in every format and
//! for names as much as for numbers.

use serde::{Deserialize, Serialize};

/// Words that mean "no value", beside nothing at all and every spelling of NaN.
const WORDS: [&[u8]; 6] = [b"NA", b"N/A", b"null", b"NULL", b"?", b"<NA>"];

/// What to do about cells without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Refuse the table, naming the column.
    Error,
    /// Leave the row out.
    Drop,
    /// Fill in the column's mean (of the training rows).
    Mean,
}

impl Missing {
    /// Each with its word and what it means.
    pub const WORDS: [(Self, &'static str, &'static str); 3] = [
        (Self::Error, "error", "Refuse the file, naming the column"),
        (Self::Drop, "drop", "Leave the row out"),
        (
            Self::Mean,
            "mean",
            "Fill in the column's mean (of the training rows)",
        ),
    ];
}

/// What a cell says where a number may stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A finite number.
    Number(f64),
    /// An infinite number, or one too large for a double.
    Infinite,
    /// No value.
    Gap,
    /// Something else.
    Text,
}

/// Reads a cell.
pub fn read_cell(raw: &[u8]) -> Cell {
    let raw = raw.trim_ascii();
    if raw.is_empty() || WORDS.contains(&raw) {
        return Cell::Gap;
    }
    match std::str::from_utf8(raw)
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
    {
        Some(number) if number.is_finite() => Cell::Number(number),
        Some(number) if number.is_nan() => Cell::Gap,
        Some(_) => Cell::Infinite,
        None => Cell::Text,
    }
}

/// Whether a cell of text means that there is no value.
pub fn is_gap(cell: &str) -> bool {
    read_cell(cell.as_bytes()) == Cell::Gap
}
