//! Rows most of whose numbers are zero: only the others are there, row by row (CSR).
//!
//! Row i has the columns `columns[offsets[i]..offsets[i + 1]]`, ascending, with the values at the same places. Zeros are never among them, so that
//! equal rows have equal entries.

use std::cmp::Ordering;

use crate::error::{DataProblem, Error, Place, Result};

/// Sparse rows, checked: finite values, columns that ascend within a row and are there.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRows {
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    width: usize,
}

/// Consecutive sparse rows, borrowed.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Sparse<'a> {
    offsets: &'a [usize],
    columns: &'a [u32],
    values: &'a [f64],
    width: usize,
}

impl SparseRows {
    /// Rows of `width` columns: row i has the entries `offsets[i]..offsets[i + 1]`. Entries that are zero are dropped.
    ///
    /// # Errors
    /// When offsets do not begin with 0, descend or do not end with the number of entries, when columns of a row do not ascend or are not there,
    /// or a value is NaN or infinite.
    pub fn new(
        offsets: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f64>,
        width: usize,
    ) -> Result<Self> {
        if columns.len() != values.len() {
            let problem = DataProblem::Length {
                what: "columns of sparse rows",
                found: columns.len(),
                expected: values.len(),
            };
            return Err(Error::data(Place::Problem, problem));
        }
        let ascend = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
        if offsets.first() != Some(&0) || offsets.last() != Some(&values.len()) || !ascend {
            return Err(Error::data(Place::Problem, DataProblem::SparseOffsets));
        }
        for (row, ends) in offsets.windows(2).enumerate() {
            let mut least = 0;
            for at in ends[0]..ends[1] {
                let (column, value) = (columns[at], values[at]);
                if (column as usize) < least || column as usize >= width {
                    let problem = DataProblem::SparseColumn { row, column, width };
                    return Err(Error::data(Place::Problem, problem));
                }
                least = column as usize + 1;
                if !value.is_finite() {
                    let place = Place::Cell {
                        samples: 0,
                        row,
                        column: format!("f{}", column + 1),
                    };
                    return Err(Error::data(place, DataProblem::NotFinite(value)));
                }
            }
        }
        let made = Self {
            offsets,
            columns,
            values,
            width,
        };
        Ok(if made.values.contains(&0.0) {
            made.without_zeros()
        } else {
            made
        })
    }

    fn without_zeros(&self) -> Self {
        let mut made = Self::none(self.width);
        for row in 0..self.count() {
            let (columns, values) = self.rows().row(row);
            made.push(columns.iter().copied().zip(values.iter().copied()));
        }
        made
    }

    /// No rows yet.
    pub(crate) fn none(width: usize) -> Self {
        Self {
            offsets: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
            width,
        }
    }

    /// One more row, of entries whose columns ascend; zeros are dropped.
    pub(crate) fn push(&mut self, entries: impl Iterator<Item = (u32, f64)>) {
        for (column, value) in entries.filter(|(_, value)| *value != 0.0) {
            self.columns.push(column);
            self.values.push(value);
        }
        self.offsets.push(self.values.len());
    }

    /// Those of dense rows, one after the other.
    pub(crate) fn of_dense(rows: &[f64], width: usize) -> Self {
        let mut made = Self::none(width);
        for row in rows.chunks_exact(width.max(1)) {
            made.push((0..).zip(row.iter().copied()));
        }
        made
    }

    /// How many rows.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where each row begins among the entries, and where the last one ends.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The columns of the entries.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The values of the entries.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The rows, borrowed.
    pub fn rows(&self) -> Sparse<'_> {
        Sparse {
            offsets: &self.offsets,
            columns: &self.columns,
            values: &self.values,
            width: self.width,
        }
    }

    /// The same rows, those of them at these places, in this order.
    #[must_use]
    pub fn select(&self, places: &[usize]) -> Self {
        self.rows().select(places)
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        super::Rows::from(self).bytes()
    }
}

impl<'a> Sparse<'a> {
    /// How many rows.
    pub fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many entries.
    pub fn entries(&self) -> usize {
        self.offsets[self.count()] - self.offsets[0]
    }

    /// The columns of a row, which must be there, and their values.
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [f64]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// All values that are there, row by row.
    pub(crate) fn values(&self) -> &'a [f64] {
        &self.values[self.offsets[0]..self.offsets[self.count()]]
    }

    /// Consecutive rows, `to` not included.
    pub(crate) fn slice(&self, from: usize, to: usize) -> Self {
        Self {
            offsets: &self.offsets[from..=to],
            ..*self
        }
    }

    /// Those at these places, in this order.
    pub(crate) fn select(&self, places: &[usize]) -> SparseRows {
        let mut made = SparseRows::none(self.width);
        for &place in places {
            let (columns, values) = self.row(place);
            made.columns.extend_from_slice(columns);
            made.values.extend_from_slice(values);
            made.offsets.push(made.values.len());
        }
        made
    }

    /// Some columns, in this order, each of them as often as it is named.
    pub(crate) fn view(&self, columns: &[usize]) -> SparseRows {
        // Where each column goes: consecutive places in `targets`.
        let mut starts = vec![0_usize; self.width + 1];
        for &column in columns {
            starts[column + 1] += 1;
        }
        for column in 0..self.width {
            starts[column + 1] += starts[column];
        }
        let mut targets = vec![0_u32; columns.len()];
        let mut next = starts.clone();
        for (target, &column) in (0_u32..).zip(columns) {
            targets[next[column]] = target;
            next[column] += 1;
        }
        let are_sorted = columns.is_sorted();
        let mut made = SparseRows::none(columns.len());
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for row in 0..self.count() {
            let (own, values) = self.row(row);
            entries.clear();
            for (&column, &value) in own.iter().zip(values) {
                let range = starts[column as usize]..starts[column as usize + 1];
                entries.extend(targets[range].iter().map(|&target| (target, value)));
            }
            if !are_sorted {
                entries.sort_unstable_by_key(|(target, _)| *target);
            }
            made.push(entries.iter().copied());
        }
        made
    }

    /// A row with all its zeros.
    pub(crate) fn write_dense(&self, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        let (columns, values) = self.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            out[column as usize] = value;
        }
    }

    /// All rows with all their zeros, one after the other.
    pub(crate) fn dense(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.count() * self.width];
        for (row, out) in all.chunks_exact_mut(self.width.max(1)).enumerate() {
            self.write_dense(row, out);
        }
        all
    }

    /// x'x, summed as products of sparse rows are: for equal rows they are equal to the last digit.
    pub(crate) fn square(&self, row: usize) -> f64 {
        self.row(row).1.iter().fold(0.0, |sum, v| sum + v * v)
    }

    /// Row by row, the first columns first, as dense rows are compared.
    pub fn compare(&self, a: usize, b: usize) -> Ordering {
        let ((a, x), (b, z)) = (self.row(a), self.row(b));
        let (mut i, mut j) = (0, 0);
        loop {
            let order = match (a.get(i), b.get(j)) {
                (None, None) => return Ordering::Equal,
                (Some(own), other) if other.is_none_or(|other| own < other) => {
                    i += 1;
                    x[i - 1].total_cmp(&0.0)
                }
                (own, Some(other)) if own.is_none_or(|own| other < own) => {
                    j += 1;
                    0.0_f64.total_cmp(&z[j - 1])
                }
                _ => {
                    (i, j) = (i + 1, j + 1);
                    x[i - 1].total_cmp(&z[j - 1])
                }
            };
            if order.is_ne() {
                return order;
            }
        }
    }

    /// The first value below zero, by row and column; of these columns, where some are chosen.
    pub(crate) fn first_negative(&self, columns: Option<&[usize]>) -> Option<(usize, usize, f64)> {
        let seen = columns.map(|columns| {
            let mut seen = vec![false; self.width];
            for &column in columns {
                seen[column] = true;
            }
            seen
        });
        (0..self.count()).find_map(|row| {
            let (columns, values) = self.row(row);
            let mut pairs = columns.iter().zip(values);
            pairs
                .find(|&(&column, &value)| {
                    value < 0.0 && seen.as_ref().is_none_or(|seen| seen[column as usize])
                })
                .map(|(&column, &value)| (row, column as usize, value))
        })
    }
}

impl<'a> From<&'a SparseRows> for Sparse<'a> {
    fn from(rows: &'a SparseRows) -> Self {
        rows.rows()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_are_those_of_dense_rows() {
        let dense = [0.0, 1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, -4.0, 0.5];
        let rows = SparseRows::of_dense(&dense, 4);
        assert_eq!((rows.count(), rows.width()), (3, 4));
        assert_eq!(rows.rows().dense(), dense);
        for columns in [
            vec![0, 1, 2, 3],
            vec![2],
            vec![3, 0],
            vec![1, 3, 1],
            vec![1, 1],
        ] {
            let seen = dense.chunks_exact(4);
            let expected: Vec<f64> = seen
                .flat_map(|row| columns.iter().map(|&column| row[column]))
                .collect();
            assert_eq!(rows.rows().view(&columns).rows().dense(), expected);
        }
        assert_eq!(
            rows.select(&[2, 0]).rows().dense(),
            [&dense[8..], &dense[..4]].concat()
        );
        assert_eq!(rows.rows().slice(1, 3).entries(), 3);
        assert_eq!(rows.rows().compare(0, 1), Ordering::Greater);
        assert_eq!(rows.rows().compare(1, 2), Ordering::Less);
        assert_eq!(rows.rows().compare(2, 2), Ordering::Equal);
        assert_eq!(rows.rows().first_negative(None), Some((2, 2, -4.0)));
        assert_eq!(rows.rows().first_negative(Some(&[0, 1])), None);
    }

    #[test]
    fn what_is_no_sparse_table_is_refused() {
        let of = |offsets: &[usize], columns: &[u32], values: &[f64]| {
            SparseRows::new(offsets.to_vec(), columns.to_vec(), values.to_vec(), 3)
        };
        assert_eq!(of(&[0, 2], &[0, 2], &[1.0, 0.0]).unwrap().values(), [1.0]);
        for offsets in [&[][..], &[1, 2], &[0, 1], &[0, 2, 1, 2], &[0, 3]] {
            assert!(of(offsets, &[0, 2], &[1.0, 2.0]).is_err(), "{offsets:?}");
        }
        for columns in [[0, 3], [1, 1], [2, 0]] {
            assert!(of(&[0, 2], &columns, &[1.0, 2.0]).is_err(), "{columns:?}");
        }
        assert!(of(&[0, 2], &[0, 1], &[1.0, f64::NAN]).is_err());
        assert!(of(&[0, 2], &[0, 1], &[1.0]).is_err());
    }
}
