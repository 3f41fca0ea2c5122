//! From columns to rows: the one time that the numbers of a table are copied.
//!
//! Row by row, x_ij = (v_ij − offset_j) · factor_j, with fill_j for gaps and 0 for what a sparse column does not mention.

use mtmkl::RowValues;
use mtmkl::ledger::bytes_of;

use crate::Result;
use crate::column::{Sparse, Values};
use crate::error::{Place, TableError};
use crate::frame::{Feature, Frame};
use crate::names::Names;
use crate::one_hot::Indicators;
use crate::records::text_where_numbers_belong;
use crate::table::Table;

/// Rows written at a time: a block of them, some hundred columns wide, stays in the processor's cache.
const BLOCK: usize = 256;

/// Values made at a time where rows are only looked at.
const CHECKED: usize = 1 << 22;

/// The cells behind a feature.
#[derive(Clone, Copy)]
pub(crate) enum Cells<'a> {
    Dense(&'a [f64]),
    Sparse(&'a Sparse),
    /// 1 where the row has this name.
    Indicator(&'a Names, u32),
    /// A column that a LIBSVM file does not mention.
    Zero,
}

/// The cells behind a feature, and the rows without one.
pub(crate) struct Source<'a> {
    pub(crate) cells: Cells<'a>,
    pub(crate) missing: &'a [usize],
}

impl Source<'_> {
    /// The number in a row of the table.
    pub(crate) fn get(&self, row: usize) -> f64 {
        match self.cells {
            Cells::Dense(numbers) => numbers[row],
            Cells::Sparse(sparse) => sparse.get(row),
            Cells::Indicator(names, code) => f64::from(u8::from(names.codes()[row] == code)),
            Cells::Zero => 0.0,
        }
    }
}

impl Frame {
    /// The rows without a value in the column of a feature, which must have numbers or be a one-hot column.
    pub(crate) fn checked<'a>(table: &'a Table, feature: &Feature) -> Result<&'a [usize]> {
        if feature.category.is_some() {
            return Ok(&table.column(&feature.column)?.missing);
        }
        if is_absent(table, &feature.column) {
            return Ok(&[]);
        }
        match table.numbers_in(&feature.column) {
            Ok(column) => Ok(&column.missing),
            Err(error) => Err(text_where_numbers_belong(
                error,
                "the model learned from numbers here",
            )),
        }
    }

    /// The cells behind a feature, by its number.
    pub(crate) fn source<'a>(
        &self,
        table: &'a Table,
        number: usize,
        indicators: &'a Indicators,
    ) -> Result<Source<'a>> {
        let feature = &self.features[number];
        let missing = Self::checked(table, feature)?;
        if let Some((names, code)) = indicators.indicator(feature) {
            return Ok(Source {
                cells: Cells::Indicator(names, code),
                missing,
            });
        }
        if is_absent(table, &feature.column) {
            let cells = Cells::Zero;
            return Ok(Source { cells, missing });
        }
        let cells = match table
            .numbers_in(&feature.column)
            .map(|column| &column.values)
        {
            Ok(Values::Numbers(numbers)) => Cells::Dense(numbers),
            Ok(Values::Sparse(sparse)) => Cells::Sparse(sparse),
            _ => Cells::Zero,
        };
        Ok(Source { cells, missing })
    }

    /// These rows of a table, each at most once, as numbers row by row: gaps filled and scaled.
    ///
    /// # Errors
    /// When a cell is missing and nothing fills it, a value is beyond the scale, or the rows take over `limit` bytes.
    pub fn gather(&self, table: &Table, rows: &[usize], limit: u64) -> Result<Vec<f64>> {
        let columns = self.features.len();
        let bytes = bytes_of::<f64>(rows.len().saturating_mul(columns));
        if bytes > limit {
            return Err(TableError::TooManyValues {
                file: table.source.clone(),
                rows: rows.len(),
                columns,
                bytes,
                limit,
            });
        }
        let indicators = Indicators::of(self, table)?;
        let sources = (0..columns)
            .map(|number| self.source(table, number, &indicators))
            .collect::<Result<Vec<_>>>()?;
        let mut values = vec![0.0; rows.len() * columns];
        if columns == 0 {
            return Ok(values);
        }
        for (block, own) in rows.chunks(BLOCK).zip(values.chunks_mut(BLOCK * columns)) {
            for (at, (feature, source)) in self.features.iter().zip(&sources).enumerate() {
                let cells = own[at..].iter_mut().step_by(columns).zip(block);
                match source.cells {
                    Cells::Dense(numbers) => {
                        cells.for_each(|(cell, &row)| *cell = feature.scaled(numbers[row]));
                    }
                    Cells::Indicator(..) => {
                        cells.for_each(|(cell, &row)| *cell = feature.scaled(source.get(row)));
                    }
                    Cells::Sparse(_) | Cells::Zero => {
                        let zero = feature.scaled(0.0);
                        if zero != 0.0 {
                            cells.for_each(|(cell, _)| *cell = zero);
                        }
                    }
                }
            }
        }
        self.put_entries(table, rows, &sources, &mut values);
        self.all_finite(table, rows, &sources, &values)?;
        Ok(values)
    }

    /// The same, without zeros where that is better (see [`Frame::is_mostly_zero`]).
    ///
    /// # Errors
    /// As [`Frame::gather`].
    pub fn gather_rows(&self, table: &Table, rows: &[usize], limit: u64) -> Result<RowValues> {
        Ok(match self.gather_sparse(table, rows, limit)? {
            Some(sparse) => RowValues::Sparse(sparse),
            None => RowValues::Dense(self.gather(table, rows, limit)?),
        })
    }

    /// Rows of numbers that are complete, scaled.
    ///
    /// # Errors
    /// When a value is beyond the scale.
    pub fn scaled(&self, rows: &[f64]) -> Result<Vec<f64>> {
        let columns = self.features.len().max(1);
        let scale =
            |(at, &value): (usize, &f64)| self.scaled_cell(at / columns, at % columns, value);
        rows.iter().enumerate().map(scale).collect()
    }

    /// A number of X on the scale of its column.
    pub(crate) fn scaled_cell(&self, row: usize, column: usize, value: f64) -> Result<f64> {
        let feature = &self.features[column];
        let scaled = feature.scaled(value);
        if scaled.is_finite() {
            return Ok(scaled);
        }
        Err(TableError::TooLarge {
            file: "X".to_string(),
            place: Place::Row(row),
            column: feature.column.clone(),
            value,
        })
    }

    /// Whether these rows can be gathered, found out without keeping them.
    ///
    /// # Errors
    /// As [`Frame::gather`].
    pub fn check(&self, table: &Table, rows: &[usize]) -> Result<()> {
        if self.gather_sparse(table, rows, u64::MAX)?.is_some() {
            return Ok(());
        }
        let at_once = (CHECKED / self.features.len().max(1)).max(1);
        for some in rows.chunks(at_once) {
            self.gather(table, some, u64::MAX)?;
        }
        Ok(())
    }

    /// Writes the entries of sparse columns, and what fills gaps: nothing is NaN, and refused afterwards.
    fn put_entries(
        &self,
        table: &Table,
        rows: &[usize],
        sources: &[Source<'_>],
        values: &mut [f64],
    ) {
        let columns = sources.len();
        let is_needed = |source: &Source<'_>| {
            !source.missing.is_empty() || matches!(source.cells, Cells::Sparse(_))
        };
        if !sources.iter().any(is_needed) {
            return;
        }
        // Where each row of the table is among those wanted.
        let mut places = vec![usize::MAX; table.rows];
        for (place, &row) in rows.iter().enumerate() {
            places[row] = place;
        }
        let mut put = |row: usize, at: usize, value: f64| {
            if let Some(cell) = places[row]
                .checked_mul(columns)
                .and_then(|begin| values.get_mut(begin + at))
            {
                *cell = value;
            }
        };
        for (at, (feature, source)) in self.features.iter().zip(sources).enumerate() {
            if let Cells::Sparse(sparse) = source.cells {
                for (&row, &value) in sparse.rows.iter().zip(&sparse.values) {
                    put(row as usize, at, feature.scaled(value));
                }
            }
            let fill = feature.fill.map_or(f64::NAN, |fill| feature.scaled(fill));
            source.missing.iter().for_each(|&row| put(row, at, fill));
        }
    }

    fn all_finite(
        &self,
        table: &Table,
        rows: &[usize],
        sources: &[Source<'_>],
        values: &[f64],
    ) -> Result<()> {
        let Some(at) = values.iter().position(|value| !value.is_finite()) else {
            return Ok(());
        };
        let (row, feature) = (rows[at / sources.len()], at % sources.len());
        Err(self.not_finite(table, row, feature, &sources[feature]))
    }

    /// Why a cell has no number: there is none, or it is beyond the scale.
    pub(crate) fn not_finite(
        &self,
        table: &Table,
        row: usize,
        feature: usize,
        source: &Source<'_>,
    ) -> TableError {
        let (file, place) = (table.source.clone(), table.place(row));
        let column = self.features[feature].column.clone();
        if source.missing.binary_search(&row).is_ok() {
            TableError::Gap {
                file,
                place,
                column,
            }
        } else {
            TableError::TooLarge {
                file,
                place,
                column,
                value: source.get(row),
            }
        }
    }
}

/// Whether a column is a feature that no line of a LIBSVM file mentions.
fn is_absent(table: &Table, name: &str) -> bool {
    let number = name.strip_prefix('f').map(str::parse::<u64>);
    table.absent_is_zero && number.is_some_and(|number| number.is_ok()) && !table.has(name)
}
