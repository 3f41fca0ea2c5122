//! A table as read, and the questions that the rest of the program asks it.

use std::borrow::Cow;

use mtmkl::ledger::bytes_of;

use super::error::{listed, shown, similar};
use super::{Format, InputError, Place};

/// A table as read: named columns, numbers where every cell is one, text elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The file, as messages name it.
    pub source: String,
    /// The format that was read.
    pub format: Format,
    /// The columns, in the order of the file.
    columns: Vec<Column>,
    /// The number of rows, equal in all columns.
    pub rows: usize,
    /// Columns of the file that were left out, worth a warning.
    pub skipped: Vec<Skipped>,
    /// The serial numbers of a LIBSVM file of kernel values (`label 0:i 1:K(i,1) …`); the columns are then kernel
    /// values, not features.
    pub precomputed: Option<Vec<u64>>,
    /// Where each row stands in the file.
    lines: Lines,
    /// The columns in the order of their names, so that thousands are found one by one without searching all.
    by_name: Vec<usize>,
}

/// A column of a [`Table`].
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
    /// Anything else.
    Text(Vec<String>),
}

/// A column of the file that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The name, or the position in words where it has none.
    pub name: String,
    /// Why, and what to do about it.
    pub reason: String,
}

/// Where the rows stand in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lines {
    /// No lines: a binary file.
    Rows,
    /// One row per line, from this line on.
    From(usize),
    /// The line at which each row begins.
    Listed(Vec<usize>),
}

impl Lines {
    /// Adds the line of row `row`, the next one; stays small as long as each row is one line.
    pub(super) fn push(&mut self, row: usize, line: usize) {
        match self {
            Self::Rows => *self = Self::From(line),
            Self::From(first) if *first + row == line => {}
            Self::From(first) => {
                let mut lines: Vec<usize> = (*first..*first + row).collect();
                lines.push(line);
                *self = Self::Listed(lines);
            }
            Self::Listed(lines) => lines.push(line),
        }
    }

    fn place(&self, row: usize) -> Place {
        match self {
            Self::Rows => Place::Row(row + 1),
            Self::From(first) => Place::Line(first + row),
            Self::Listed(lines) => lines
                .get(row)
                .map_or(Place::Row(row + 1), |line| Place::Line(*line)),
        }
    }
}

impl Table {
    /// A table without left-out columns; `columns` have `rows` cells each and names of their own.
    pub(super) fn new(
        source: &str,
        format: Format,
        rows: usize,
        columns: Vec<Column>,
        lines: Lines,
    ) -> Self {
        let mut by_name: Vec<usize> = (0..columns.len()).collect();
        by_name.sort_by(|first, second| columns[*first].name.cmp(&columns[*second].name));
        Self {
            source: source.to_owned(),
            format,
            columns,
            rows,
            skipped: Vec::new(),
            precomputed: None,
            lines,
            by_name,
        }
    }

    /// Bytes that the cells take.
    pub fn bytes(&self) -> u64 {
        let column = |column: &Column| match &column.values {
            Values::Numbers(values) => bytes_of::<f64>(values.len()),
            Values::Text(texts) => {
                let letters: usize = texts.iter().map(String::len).sum();
                bytes_of::<String>(texts.len()) + letters as u64
            }
        };
        self.columns.iter().map(column).sum()
    }

    /// Where row `row` (counted from 0) stands in the file.
    pub fn place(&self, row: usize) -> Place {
        self.lines.place(row)
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns, to be taken apart.
    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// The column `name`.
    ///
    /// # Errors
    ///
    /// There is none: the message names a similar one, or those there are, or why it was left out.
    pub fn column(&self, name: &str) -> Result<&Column, InputError> {
        let found = self
            .by_name
            .binary_search_by(|position| self.columns[*position].name.as_str().cmp(name));
        if let Ok(order) = found {
            return Ok(&self.columns[self.by_name[order]]);
        }
        if let Some(skipped) = self.skipped.iter().find(|skipped| skipped.name == name) {
            return Err(InputError::SkippedColumn {
                file: self.source.clone(),
                name: name.to_owned(),
                reason: skipped.reason.clone(),
            });
        }
        let names = || self.columns.iter().map(|column| column.name.as_str());
        let numbers = names().filter(|name| name.parse::<f64>().is_ok()).count();
        let hint = if let Some(close) = similar(name, names()) {
            format!("did you mean `{close}`?")
        } else if self.format.is_delimited() && 2 * numbers > self.columns.len() {
            format!(
                "its names are {}: if the first line is data, say `--no-header`",
                listed(names())
            )
        } else {
            format!("it has {}", listed(names()))
        };
        Err(InputError::UnknownColumn {
            file: self.source.clone(),
            name: shown(name.as_bytes()),
            hint,
        })
    }

    /// The numbers of column `name`, all present.
    ///
    /// # Errors
    ///
    /// No such column, a cell that is not a number (the first one is named), or missing cells (counted).
    pub fn numeric(&self, name: &str) -> Result<&[f64], InputError> {
        let (numbers, missing) = self.numeric_or_missing(name)?;
        match missing.first() {
            None => Ok(numbers),
            Some(&row) => Err(InputError::Missing {
                file: self.source.clone(),
                column: name.to_owned(),
                count: missing.len(),
                place: self.place(row),
                remedy: "`--missing drop` leaves these rows out, `--missing mean` fills in the mean",
            }),
        }
    }

    /// The numbers of column `name`, 0 where missing, and the missing rows.
    ///
    /// # Errors
    ///
    /// No such column, or a cell that is not a number (the first one is named).
    pub fn numeric_or_missing(&self, name: &str) -> Result<(&[f64], &[usize]), InputError> {
        let column = self.column(name)?;
        match &column.values {
            Values::Numbers(numbers) => Ok((numbers, &column.missing)),
            Values::Text(cells) => Err(self.not_numeric(column, cells)),
        }
    }

    /// The cells of column `name` as names (of classes, of tasks), all present. Numbers are written as short as
    /// possible: `1`, not `1.0`.
    ///
    /// # Errors
    ///
    /// No such column, or missing cells (counted).
    pub fn names(&self, name: &str) -> Result<Vec<Cow<'_, str>>, InputError> {
        let column = self.column(name)?;
        if let Some(&row) = column.missing.first() {
            return Err(InputError::Missing {
                file: self.source.clone(),
                column: name.to_owned(),
                count: column.missing.len(),
                place: self.place(row),
                remedy: "`--missing drop` leaves these rows out",
            });
        }
        Ok(match &column.values {
            // Adding zero turns -0 into 0: they are one name.
            Values::Numbers(numbers) => numbers
                .iter()
                .map(|number| Cow::Owned((number + 0.0).to_string()))
                .collect(),
            Values::Text(cells) => cells
                .iter()
                .map(|cell| Cow::Borrowed(cell.as_str()))
                .collect(),
        })
    }

    /// Names the first cell of `column` that keeps it from being numeric.
    fn not_numeric(&self, column: &Column, cells: &[String]) -> InputError {
        let mut missing = column.missing.iter().copied().peekable();
        for (row, cell) in cells.iter().enumerate() {
            if missing.next_if_eq(&row).is_some() {
                continue;
            }
            if !cell.trim().parse::<f64>().is_ok_and(f64::is_finite) {
                let decimal_comma =
                    cell.contains(',') && cell.replacen(',', ".", 1).trim().parse::<f64>().is_ok();
                let remedy = if decimal_comma {
                    "write decimals with a point".to_owned()
                } else {
                    format!(
                        "correct it, leave it empty if the value is missing, or declare the column categorical with `--one-hot {}`",
                        column.name
                    )
                };
                return InputError::NotNumber {
                    file: self.source.clone(),
                    place: self.place(row),
                    column: column.name.clone(),
                    value: shown(cell.as_bytes()),
                    remedy,
                };
            }
        }
        InputError::ReadAsText {
            file: self.source.clone(),
            column: column.name.clone(),
        }
    }
}
