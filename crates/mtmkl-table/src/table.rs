//! A table, and the questions that are asked of it.

use std::borrow::Cow;

use crate::Result;
use crate::column::{Column, Values};
use crate::error::{Place, TableError};
use crate::words::{count, listed, quoted, shown, similar};

/// Named columns with as many cells each: numbers where every cell is one, text elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The table, as messages name it.
    pub source: String,
    columns: Vec<Column>,
    /// The number of rows, equal in all columns.
    pub rows: usize,
    /// Columns of the file that were left out, worth a warning.
    pub skipped: Vec<Skipped>,
    /// The serial numbers of a LIBSVM file of kernel values (`label 0:i 1:K(i,1) …`); the columns are then kernel
    /// values, not features.
    pub precomputed: Option<Vec<u64>>,
    /// Whether a column `f7` that is not there is one of zeros, as in a LIBSVM file.
    pub absent_is_zero: bool,
    /// Whether the names may be data, as those of a CSV file whose header is missing.
    pub has_header: bool,
    lines: Lines,
    /// The columns in the order of their names, so that thousands are found one by one without searching all.
    by_name: Vec<usize>,
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
pub enum Lines {
    /// No lines: rows, counted from this number on.
    Rows(usize),
    /// One row per line, from this line on.
    From(usize),
    /// The line at which each row begins.
    Listed(Vec<usize>),
}

impl Lines {
    /// Adds the line of row `row`, the next one; stays small as long as each row is one line.
    pub fn push(&mut self, row: usize, line: usize) {
        match self {
            Self::Rows(_) => *self = Self::From(line),
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
            Self::Rows(first) => Place::Row(first + row),
            Self::From(first) => Place::Line(first + row),
            Self::Listed(lines) => lines
                .get(row)
                .map_or(Place::Row(row + 1), |line| Place::Line(*line)),
        }
    }
}

/// What helps against gaps in a column of numbers.
const GAPS_REMEDY: &str =
    "`--missing drop` leaves these rows out, `--missing mean` fills in the mean";

impl Table {
    /// A table; `columns` have `rows` cells each and names of their own.
    pub fn new(source: &str, rows: usize, columns: Vec<Column>, lines: Lines) -> Self {
        let mut by_name: Vec<usize> = (0..columns.len()).collect();
        by_name.sort_by(|first, second| columns[*first].name.cmp(&columns[*second].name));
        Self {
            source: source.to_owned(),
            columns,
            rows,
            skipped: Vec::new(),
            precomputed: None,
            absent_is_zero: false,
            has_header: false,
            lines,
            by_name,
        }
    }

    /// Bytes that the cells take.
    pub fn bytes(&self) -> u64 {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Room for so many rows in columns of numbers, so that they need not grow.
    pub fn reserve(&mut self, rows: usize) {
        for column in &mut self.columns {
            if let Values::Numbers(numbers) = &mut column.values {
                numbers.reserve_exact(rows.saturating_sub(numbers.len()));
            }
        }
    }

    /// Adds the rows of the next part of the same file. False, and this table is of no use any more, where a column is of another kind there.
    #[must_use]
    pub fn append(&mut self, part: Self) -> bool {
        for row in 0..part.rows {
            if let Place::Line(line) = part.place(row) {
                self.lines.push(self.rows + row, line);
            }
        }
        let columns = self.columns.iter_mut().zip(part.columns);
        for (column, more) in columns {
            match (&mut column.values, more.values) {
                (Values::Numbers(numbers), Values::Numbers(more)) => numbers.extend(more),
                (Values::Text(texts), Values::Text(more)) => texts.extend(more),
                _ => return false,
            }
            let missing = more.missing.iter().map(|row| self.rows + row);
            column.missing.extend(missing);
        }
        self.rows += part.rows;
        true
    }

    /// Where row `row` (counted from 0) stands in the file.
    pub fn place(&self, row: usize) -> Place {
        self.lines.place(row)
    }

    /// The columns, in the order of the file.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The columns' names, in the order of the file.
    pub fn column_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The column `name`.
    ///
    /// # Errors
    ///
    /// There is none: the message names a similar one, or those there are, or why it was left out.
    pub fn column(&self, name: &str) -> Result<&Column> {
        if let Ok(order) = self.order_of(name) {
            return Ok(&self.columns[self.by_name[order]]);
        }
        if let Some(skipped) = self.skipped.iter().find(|skipped| skipped.name == name) {
            return Err(TableError::SkippedColumn {
                file: self.source.clone(),
                name: name.to_owned(),
                reason: skipped.reason.clone(),
            });
        }
        let names = || self.column_names();
        let numbers = names().filter(|name| name.parse::<f64>().is_ok()).count();
        let hint = if let Some(close) = similar(name, names()) {
            format!("did you mean `{close}`?")
        } else if self.has_header && 2 * numbers > self.columns.len() {
            format!(
                "its names are {}: if the first line is data, say `--no-header`",
                listed(names())
            )
        } else {
            format!("it has {}", listed(names()))
        };
        Err(TableError::UnknownColumn {
            file: self.source.clone(),
            name: shown(name.as_bytes()),
            hint,
        })
    }

    /// The numbers of column `name`, all present.
    ///
    /// # Errors
    ///
    /// No such column, a cell that is not a number (the first one is named), or gaps (counted).
    pub fn numeric(&self, name: &str) -> Result<Cow<'_, [f64]>> {
        let (numbers, _) = self.numeric_or_missing(name)?;
        self.complete(name, GAPS_REMEDY)?;
        Ok(numbers)
    }

    /// The numbers of column `name`, 0 where missing, and the missing rows.
    ///
    /// # Errors
    ///
    /// No such column, or a cell that is not a number (the first one is named).
    pub fn numeric_or_missing(&self, name: &str) -> Result<(Cow<'_, [f64]>, &[usize])> {
        let column = self.numbers_in(name)?;
        let numbers = column.values.numbers().unwrap_or_default();
        Ok((numbers, &column.missing))
    }

    fn order_of(&self, name: &str) -> std::result::Result<usize, usize> {
        let of = |position: &usize| self.columns[*position].name.as_str().cmp(name);
        self.by_name.binary_search_by(of)
    }

    /// Whether there is a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.order_of(name).is_ok()
    }

    /// Whether the column `name` is there, has numbers and no gaps.
    ///
    /// # Errors
    ///
    /// As [`Table::numeric`].
    pub(crate) fn check_numeric(&self, name: &str) -> Result<()> {
        let column = self.numbers_in(name)?;
        if self.rows > 0 && column.missing.len() == self.rows {
            return Err(TableError::NoValue {
                column: name.to_owned(),
            });
        }
        self.complete(name, GAPS_REMEDY)
    }

    /// The column `name`, which holds numbers.
    ///
    /// # Errors
    ///
    /// No such column, or a cell that is not a number (the first one is named).
    pub(crate) fn numbers_in(&self, name: &str) -> Result<&Column> {
        let column = self.column(name)?;
        match &column.values {
            Values::Numbers(_) | Values::Sparse(_) => Ok(column),
            Values::Text(cells) => Err(self.not_numeric(column, cells)),
        }
    }

    /// Whether the column `name` says nothing but which row it is: the whole numbers from 0 or 1 on, of a few rows in their order (else that may be
    /// chance), of many from any number on (a few may be years) and in any order.
    pub fn counts_rows(&self, name: &str) -> bool {
        const FEW: usize = 10;
        const MANY: usize = 200;
        let Ok((numbers, [])) = self.numeric_or_missing(name) else {
            return false;
        };
        let counts = |numbers: &[f64]| numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0);
        let first = numbers.first().copied().unwrap_or(f64::NAN);
        if numbers.len() >= FEW && (first == 0.0 || first == 1.0) && counts(&numbers) {
            return true;
        }
        // Most columns are seen not to be such by the first of their rows.
        let is_whole = |number: &f64| number.fract() == 0.0;
        numbers.len() >= MANY && numbers.iter().all(is_whole) && {
            let mut sorted = numbers.into_owned();
            sorted.sort_unstable_by(f64::total_cmp);
            counts(&sorted)
        }
    }

    /// The cells of column `name` as names (of classes, of tasks), all present.
    ///
    /// # Errors
    ///
    /// No such column, or gaps (counted).
    pub fn names(&self, name: &str) -> Result<Vec<Cow<'_, str>>> {
        self.complete(name, "`--missing drop` leaves these rows out")?;
        let column = self.column(name)?;
        Ok(match &column.values {
            Values::Text(cells) => cells.iter().map(|cell| cell.as_str().into()).collect(),
            other => (0..other.len())
                .map(|row| column.text(row).into())
                .collect(),
        })
    }

    /// Fails if column `name` has gaps.
    pub(crate) fn complete(&self, name: &str, remedy: &'static str) -> Result<()> {
        let column = self.column(name)?;
        match column.missing.first() {
            None => Ok(()),
            Some(&row) => Err(TableError::Missing {
                file: self.source.clone(),
                column: name.to_owned(),
                gaps: column.missing.len(),
                place: self.place(row),
                remedy,
            }),
        }
    }

    /// Names the first cell of `column` that keeps it from being numeric.
    fn not_numeric(&self, column: &Column, cells: &[String]) -> TableError {
        let fault =
            (0..cells.len()).find(|&row| !column.is_missing(row) && !is_number(&cells[row]));
        let Some(row) = fault else {
            return TableError::ReadAsText {
                file: self.source.clone(),
                column: column.name.clone(),
            };
        };
        let cell = &cells[row];
        let remedy = if is_decimal_comma(cell) {
            "write decimals with a point".to_owned()
        } else {
            format!(
                "correct it, leave it empty if the value is missing, or declare the column categorical with `--one-hot {}`",
                quoted(&column.name)
            )
        };
        TableError::NotNumber {
            file: self.source.clone(),
            place: self.place(row),
            column: column.name.clone(),
            value: shown(cell.as_bytes()),
            remedy,
        }
    }

    /// What can be done about a column of text that is to be learned from, and how much of it there is.
    pub(crate) fn text_to_learn_from(&self, error: TableError) -> TableError {
        let TableError::NotNumber {
            file,
            place,
            column,
            value,
            remedy,
        } = error
        else {
            return error;
        };
        let mut cells = self.column(&column).map_or(Vec::new(), Column::present);
        let all = cells.len();
        cells.retain(|cell| !is_number(cell));
        let bad = cells.len();
        // Numbers in another spelling are neither names nor categories.
        if bad < all || cells.iter().all(|cell| is_decimal_comma(cell)) {
            let share = count(bad, "is not a number", "are not numbers");
            return TableError::NotNumber {
                file,
                place,
                column,
                value,
                remedy: format!("{remedy} (of the column's {all} values {share})"),
            };
        }
        cells.sort();
        cells.dedup();
        TableError::NoNumbers {
            file,
            place,
            column,
            value,
            cells: all,
            different: cells.len(),
        }
    }
}

/// Whether a cell of text is a finite number.
/// Whether a cell is a number with a comma before its decimals.
pub(crate) fn is_decimal_comma(cell: &str) -> bool {
    cell.contains(',') && is_number(&cell.replacen(',', ".", 1))
}

fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f64>().is_ok_and(f64::is_finite)
}
