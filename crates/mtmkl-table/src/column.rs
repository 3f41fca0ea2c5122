//! A column: numbers, all of them or those that are not zero, or text; and the rows without a value.

use std::borrow::Cow;

use mtmkl::ledger::bytes_of;

use crate::gaps::{Cell, is_gap, read_cell};

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The cells.
    pub values: Values,
    /// The rows without a value, ascending, counted from 0. In `values` they are 0 or the empty text.
    pub missing: Vec<usize>,
}

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Finite numbers.
    Numbers(Vec<f64>),
    /// Finite numbers, most of them zero.
    Sparse(Sparse),
    /// Anything else.
    Text(Vec<String>),
}

/// A column most of whose numbers are zero.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sparse {
    /// The rows of the column.
    pub count: usize,
    /// The rows with a number, ascending; a table has fewer than 2³².
    pub rows: Vec<u32>,
    /// Their numbers.
    pub values: Vec<f64>,
}

impl Sparse {
    /// The number in a row.
    pub fn get(&self, row: usize) -> f64 {
        let row = u32::try_from(row).ok();
        let found = row.and_then(|row| self.rows.binary_search(&row).ok());
        found.map_or(0.0, |at| self.values[at])
    }

    /// All numbers.
    pub fn dense(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.count];
        for (&row, &value) in self.rows.iter().zip(&self.values) {
            all[row as usize] = value;
        }
        all
    }
}

impl Values {
    /// How many cells there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Sparse(sparse) => sparse.count,
            Self::Text(texts) => texts.len(),
        }
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a number; to a column of text, as it is written.
    pub fn push(&mut self, number: f64) {
        match self {
            Self::Numbers(numbers) => numbers.push(number),
            Self::Sparse(sparse) => {
                if number != 0.0 {
                    // Rows are fewer than 2³².
                    sparse
                        .rows
                        .push(u32::try_from(sparse.count).unwrap_or(u32::MAX));
                    sparse.values.push(number);
                }
                sparse.count += 1;
            }
            Self::Text(texts) => texts.push(number.to_string()),
        }
    }

    /// The cells as numbers, where they are numbers.
    pub fn numbers(&self) -> Option<Cow<'_, [f64]>> {
        match self {
            Self::Numbers(numbers) => Some(Cow::Borrowed(numbers)),
            Self::Sparse(sparse) => Some(Cow::Owned(sparse.dense())),
            Self::Text(_) => None,
        }
    }
}

impl Column {
    /// A column of numbers, NaN where there is none. Gives back the row and the value where one is infinite.
    ///
    /// # Errors
    /// The first infinite value.
    pub fn of_numbers(
        name: String,
        mut numbers: Vec<f64>,
    ) -> std::result::Result<Self, (usize, f64)> {
        let mut missing = Vec::new();
        for (row, number) in numbers.iter_mut().enumerate() {
            if number.is_nan() {
                missing.push(row);
                *number = 0.0;
            } else if number.is_infinite() {
                return Err((row, *number));
            }
        }
        Ok(Self {
            name,
            values: Values::Numbers(numbers),
            missing,
        })
    }

    /// A column of cells as they are written: numbers if all that are no gaps are, unless they are names.
    ///
    /// # Errors
    /// The first infinite number of a column of numbers.
    pub fn of_cells(
        name: String,
        mut cells: Vec<String>,
        names: bool,
    ) -> std::result::Result<Self, (usize, String)> {
        let read: Vec<Cell> = cells
            .iter()
            .map(|cell| read_cell(cell.as_bytes()))
            .collect();
        if names || read.contains(&Cell::Text) {
            let mut missing = Vec::new();
            for (row, cell) in cells.iter_mut().enumerate() {
                if is_gap(cell) {
                    missing.push(row);
                    cell.clear();
                }
            }
            return Ok(Self {
                name,
                values: Values::Text(cells),
                missing,
            });
        }
        if let Some(row) = read.iter().position(|cell| *cell == Cell::Infinite) {
            return Err((row, cells.swap_remove(row)));
        }
        let number = |cell: &Cell| match cell {
            Cell::Number(number) => *number,
            _ => 0.0,
        };
        Ok(Self {
            name,
            values: Values::Numbers(read.iter().map(number).collect()),
            missing: (0..read.len())
                .filter(|&row| read[row] == Cell::Gap)
                .collect(),
        })
    }

    /// Whether a row has no value.
    pub fn is_missing(&self, row: usize) -> bool {
        self.missing.binary_search(&row).is_ok()
    }

    /// The cells that have a value, as text.
    pub(crate) fn present(&self) -> Vec<String> {
        (0..self.values.len())
            .filter(|&row| !self.is_missing(row))
            .map(|row| self.text(row))
            .collect()
    }

    /// A cell as text. A number is written as short as possible: `1`, not `1.0`; adding zero turns −0 into 0, they are one name.
    pub(crate) fn text(&self, row: usize) -> String {
        match &self.values {
            Values::Numbers(numbers) => (numbers[row] + 0.0).to_string(),
            Values::Sparse(sparse) => (sparse.get(row) + 0.0).to_string(),
            Values::Text(texts) => texts[row].clone(),
        }
    }

    /// Bytes that the cells take.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.values {
            Values::Numbers(values) => bytes_of::<f64>(values.len()),
            Values::Sparse(sparse) => {
                bytes_of::<u32>(sparse.rows.len()) + bytes_of::<f64>(sparse.rows.len())
            }
            Values::Text(texts) => {
                let letters: usize = texts.iter().map(String::len).sum();
                bytes_of::<String>(texts.len()) + letters as u64
            }
        }
    }
}
