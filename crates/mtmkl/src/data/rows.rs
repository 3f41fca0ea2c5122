//! Rows of numbers, dense or sparse: borrowed, and as they are kept.

use std::borrow::Cow;

use super::sparse::{Sparse, SparseRows};
use crate::error::{DataProblem, Error, Place, Result};
use crate::ledger::bytes_of;

/// A borrowed table of numbers, row by row, dense or sparse.
#[derive(Debug, Clone, Copy)]
#[must_use]
#[allow(clippy::struct_field_names, reason = "a count of rows is called rows")]
pub struct Rows<'a> {
    kind: Kind<'a>,
    rows: usize,
    columns: usize,
}

/// Of which kind rows are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// All values, row by row.
    Dense(&'a [f64]),
    Sparse(Sparse<'a>),
}

impl<'a> Rows<'a> {
    /// A table of `rows` × `columns` values, row by row.
    ///
    /// # Errors
    /// When the number of values is not `rows * columns`.
    pub fn new(values: &'a [f64], rows: usize, columns: usize) -> Result<Self> {
        let expected = rows.saturating_mul(columns);
        if values.len() != expected {
            return Err(Error::data(
                Place::Problem,
                DataProblem::Length {
                    what: "values of a table",
                    found: values.len(),
                    expected,
                },
            ));
        }
        Ok(Self {
            kind: Kind::Dense(values),
            rows,
            columns,
        })
    }

    /// Dense rows, one after the other.
    pub(crate) fn of_dense(values: &'a [f64], columns: usize) -> Self {
        Self {
            kind: Kind::Dense(values),
            rows: values.len() / columns.max(1),
            columns,
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row with all its numbers, where there is one of this number.
    pub fn get(&self, row: usize) -> Option<Cow<'a, [f64]>> {
        (row < self.rows).then(|| self.row(row))
    }

    /// One row with all its numbers, which must be there.
    pub(crate) fn row(&self, row: usize) -> Cow<'a, [f64]> {
        match self.kind {
            Kind::Dense(values) => {
                Cow::Borrowed(&values[row * self.columns..(row + 1) * self.columns])
            }
            Kind::Sparse(rows) => Cow::Owned(rows.slice(row, row + 1).dense()),
        }
    }

    /// Dense or sparse.
    pub(crate) fn kind(&self) -> Kind<'a> {
        self.kind
    }

    /// All values, row by row, where rows are dense.
    pub fn dense(&self) -> Option<&'a [f64]> {
        match self.kind {
            Kind::Dense(values) => Some(values),
            Kind::Sparse(_) => None,
        }
    }

    /// The rows, where they are sparse.
    pub fn sparse(&self) -> Option<Sparse<'a>> {
        match self.kind {
            Kind::Dense(_) => None,
            Kind::Sparse(rows) => Some(rows),
        }
    }

    /// Consecutive rows, `to` not included.
    ///
    /// # Errors
    /// When these are not rows of the table.
    pub fn slice(&self, from: usize, to: usize) -> Result<Rows<'a>> {
        if to > self.rows || from > to {
            let expected = format!("a range of rows within 0..{}", self.rows);
            return Err(Error::param("rows", format!("{from}..{to}"), expected));
        }
        Ok(self.part(from, to))
    }

    /// Consecutive rows, which must be there, `to` not included.
    pub(crate) fn part(&self, from: usize, to: usize) -> Rows<'a> {
        Rows {
            kind: match self.kind {
                Kind::Dense(values) => Kind::Dense(&values[from * self.columns..to * self.columns]),
                Kind::Sparse(rows) => Kind::Sparse(rows.slice(from, to)),
            },
            rows: to - from,
            columns: self.columns,
        }
    }

    /// These rows, in this order.
    pub(crate) fn select(&self, rows: impl IntoIterator<Item = usize>) -> RowValues {
        match self.kind {
            Kind::Dense(values) => {
                let d = self.columns;
                let rows = rows.into_iter();
                let own = rows.flat_map(|row| &values[row * d..(row + 1) * d]);
                RowValues::Dense(own.copied().collect())
            }
            Kind::Sparse(all) => {
                let rows: Vec<usize> = rows.into_iter().collect();
                RowValues::Sparse(all.select(&rows))
            }
        }
    }

    /// Bytes of a copy.
    pub fn bytes(&self) -> u64 {
        match self.kind {
            Kind::Dense(values) => bytes_of::<f64>(values.len()),
            Kind::Sparse(rows) => {
                let entries = rows.entries();
                bytes_of::<usize>(rows.count() + 1)
                    + bytes_of::<u32>(entries)
                    + bytes_of::<f64>(entries)
            }
        }
    }
}

impl<'a> From<Sparse<'a>> for Rows<'a> {
    fn from(rows: Sparse<'a>) -> Self {
        Self {
            kind: Kind::Sparse(rows),
            rows: rows.count(),
            columns: rows.width(),
        }
    }
}

impl<'a> From<&'a SparseRows> for Rows<'a> {
    fn from(rows: &'a SparseRows) -> Self {
        rows.rows().into()
    }
}

/// Rows as they are kept.
#[derive(Debug, Clone, PartialEq)]
pub enum RowValues {
    /// All numbers, row by row.
    Dense(Vec<f64>),
    /// Those that are not zero.
    Sparse(SparseRows),
}

impl Default for RowValues {
    fn default() -> Self {
        Self::Dense(Vec::new())
    }
}

impl RowValues {
    /// The rows, borrowed: so many of so many columns.
    pub(crate) fn rows(&self, rows: usize, columns: usize) -> Rows<'_> {
        match self {
            Self::Dense(values) => Rows {
                kind: Kind::Dense(values),
                rows,
                columns,
            },
            Self::Sparse(sparse) => sparse.into(),
        }
    }

    /// The rows, borrowed.
    ///
    /// # Errors
    /// When these are not so many rows of so many columns.
    pub fn table(&self, rows: usize, columns: usize) -> Result<Rows<'_>> {
        match self {
            Self::Dense(values) => Rows::new(values, rows, columns),
            Self::Sparse(sparse) => Ok(sparse.into()),
        }
    }

    /// All numbers, row by row.
    pub fn dense(&self) -> Cow<'_, [f64]> {
        match self {
            Self::Dense(values) => Cow::Borrowed(values),
            Self::Sparse(sparse) => Cow::Owned(sparse.rows().dense()),
        }
    }
}
