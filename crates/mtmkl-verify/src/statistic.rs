//! The one number about a pair of rows that most kernels are a function of, from its definition, pair by pair, with how far it may be off.
//!
//! Here each is a sum over columns as it is written in books. Who solved the problem may have computed it in another way: ‖x − z‖² as
//! ‖x‖² + ‖z‖² − 2x'z, of rows that were moved or not. `error` bounds what rounding can do in any of these ways and in this one together.

use mtmkl::{RowValues, Samples, Sparse, SparseRows};

use crate::error::{Error, Result};
use crate::sum::lost;

/// Which number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// x'z
    Product,
    /// ‖x − z‖²
    SquaredDistance,
    /// ‖x − z‖₁
    Manhattan,
    /// Σ (x − z)²/(x + z)
    ChiSquare,
    /// Σ min(x, z)
    Intersection,
}

/// A number, and how far from it what others made of it can be.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Approximate {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl Approximate {
    /// The smallest that a number ≥ 0 can be.
    pub(crate) fn least(self) -> f64 {
        (self.value.min(f64::MAX) - self.error).max(0.0)
    }
}

/// A measure on some columns of a sample set.
#[derive(Debug)]
pub(crate) struct Statistic<'a> {
    pub(crate) measure: Measure,
    pub(crate) columns: Option<Vec<usize>>,
    rows: Rows<'a>,
    /// ‖x‖ by row, over these columns.
    lengths: Vec<f64>,
    /// What a part of a sum over so many columns loses at most.
    lost: f64,
}

/// Rows as they are summed over.
#[derive(Debug)]
enum Rows<'a> {
    Dense {
        values: &'a [f64],
        width: usize,
    },
    Sparse(Sparse<'a>),
    /// Of the columns that are seen, in their order.
    Seen(SparseRows),
}

impl<'a> Statistic<'a> {
    /// The measure on these columns of the rows of a sample set.
    pub(crate) fn new(
        measure: Measure,
        columns: Option<Vec<usize>>,
        samples: &'a Samples,
    ) -> Result<Self> {
        let width = samples.columns().len();
        let seen = columns.as_ref().map_or(width, Vec::len);
        let rows = match (samples.rows().sparse(), &columns, samples.rows().dense()) {
            (None, _, Some(values)) => Rows::Dense { values, width },
            (Some(all), None, _) => Rows::Sparse(all),
            (Some(all), Some(columns), _) => Rows::Seen(of_columns(all, columns)?),
            (None, _, None) => {
                let problem = "the rows are neither dense nor sparse".to_string();
                return Err(Error::Unreadable(problem));
            }
        };
        let mut made = Self {
            measure,
            columns,
            rows,
            lengths: Vec::new(),
            // Squares, differences, moved rows: six operations on each column, at most, one after the other.
            lost: 2.0 * lost(seen + 6),
        };
        made.lengths = (0..samples.count())
            .map(|row| made.fold(row, row, |a, _| a * a).sqrt())
            .collect();
        Ok(made)
    }

    /// s(x_i, x_j).
    pub(crate) fn of(&self, i: usize, j: usize) -> Approximate {
        let (own, other) = (self.lengths[i], self.lengths[j]);
        match self.measure {
            Measure::Product => Approximate {
                value: self.fold(i, j, |a, b| a * b),
                error: self.lost * own * other,
            },
            // The distance of a sample to itself is 0 to everybody.
            Measure::SquaredDistance if i == j => Approximate::default(),
            Measure::SquaredDistance => {
                let value = self.fold(i, j, |a, b| (a - b) * (a - b));
                let error = self.lost * (own + other) * (own + other);
                if value == f64::INFINITY {
                    self.beyond(i, j)
                } else {
                    Approximate { value, error }
                }
            }
            Measure::Manhattan => self.relative(self.fold(i, j, |a, b| (a - b).abs())),
            Measure::Intersection => self.relative(self.fold(i, j, f64::min)),
            Measure::ChiSquare => self.relative(self.fold(i, j, |a, b| {
                let (difference, sum) = (a - b, a + b);
                if sum == 0.0 {
                    0.0
                } else {
                    difference * (difference / sum)
                }
            })),
        }
    }

    /// A squared distance beyond the range of numbers. Its error is such that it is at least the largest number less that.
    fn beyond(&self, i: usize, j: usize) -> Approximate {
        let part = |a: f64| a * 2.0_f64.powi(-540);
        let length = |row: usize| self.fold(row, row, |a, _| part(a) * part(a)).sqrt();
        let value = self.fold(i, j, |a, b| (part(a) - part(b)) * (part(a) - part(b)));
        let sizes = length(i) + length(j);
        Approximate {
            value: f64::INFINITY,
            error: (self.lost * sizes * sizes / value).min(1.0) * f64::MAX,
        }
    }

    /// A sum of terms of one sign.
    fn relative(&self, value: f64) -> Approximate {
        Approximate {
            value,
            error: self.lost * value.abs(),
        }
    }

    /// Σ over columns of term(x, z); `term` of two zeros is zero.
    fn fold(&self, i: usize, j: usize, term: impl Fn(f64, f64) -> f64) -> f64 {
        match (&self.rows, &self.columns) {
            (Rows::Dense { values, width }, None) => {
                let row = |at: usize| &values[at * width..(at + 1) * width];
                over(row(i), row(j), term)
            }
            (Rows::Dense { values, width }, Some(columns)) => {
                let row = |at: usize| &values[at * width..(at + 1) * width];
                let (x, z) = (row(i), row(j));
                columns
                    .iter()
                    .map(|&column| term(x[column], z[column]))
                    .sum()
            }
            (Rows::Sparse(rows), _) => merged(*rows, i, j, term),
            (Rows::Seen(rows), _) => merged(rows.rows(), i, j, term),
        }
    }
}

/// In four sums side by side, which is faster.
fn over(x: &[f64], z: &[f64], term: impl Fn(f64, f64) -> f64) -> f64 {
    let ((x, x_rest), (z, z_rest)) = (x.as_chunks::<4>(), z.as_chunks::<4>());
    let mut sums = [0.0; 4];
    for (x, z) in x.iter().zip(z) {
        for lane in 0..4 {
            sums[lane] += term(x[lane], z[lane]);
        }
    }
    let rest = x_rest.iter().zip(z_rest).map(|(&x, &z)| term(x, z));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

/// Over the columns in which one of the two has an entry.
fn merged(rows: Sparse<'_>, i: usize, j: usize, term: impl Fn(f64, f64) -> f64) -> f64 {
    let ((columns, values), (other_columns, others)) = (rows.row(i), rows.row(j));
    let (mut at, mut other, mut sum) = (0, 0, 0.0);
    loop {
        let (own, known) = (columns.get(at), other_columns.get(other));
        sum += match (own, known) {
            (Some(own), Some(known)) if own == known => {
                (at, other) = (at + 1, other + 1);
                term(values[at - 1], others[other - 1])
            }
            (Some(own), known) if known.is_none_or(|known| own < known) => {
                at += 1;
                term(values[at - 1], 0.0)
            }
            (_, Some(_)) => {
                other += 1;
                term(0.0, others[other - 1])
            }
            _ => return sum,
        };
    }
}

/// The same rows with these columns only, as often as they are named.
fn of_columns(rows: Sparse<'_>, columns: &[usize]) -> Result<SparseRows> {
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); rows.width()];
    for (place, &column) in columns.iter().enumerate() {
        places[column].push(place);
    }
    let (mut offsets, mut kept, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows.count() {
        let (own, entries) = rows.row(row);
        let entries = own.iter().zip(entries);
        let mut seen: Vec<(usize, f64)> = entries
            .flat_map(|(&column, &value)| {
                let places = places[column as usize].iter();
                places.map(move |&place| (place, value))
            })
            .collect();
        seen.sort_unstable_by_key(|(place, _)| *place);
        for (place, value) in seen {
            kept.push(u32::try_from(place).unwrap_or(u32::MAX));
            values.push(value);
        }
        offsets.push(values.len());
    }
    SparseRows::new(offsets, kept, values, columns.len())
        .map_err(|error| Error::Unreadable(error.to_string()))
}

/// One row with all its numbers.
pub(crate) fn whole_row(rows: &RowValues, row: usize, width: usize) -> Vec<f64> {
    match rows {
        RowValues::Dense(values) => values[row * width..(row + 1) * width].to_vec(),
        RowValues::Sparse(rows) => {
            let mut whole = vec![0.0; width];
            let (columns, values) = rows.rows().row(row);
            for (&column, &value) in columns.iter().zip(values) {
                whole[column as usize] = value;
            }
            whole
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const MEASURES: [Measure; 5] = [
        Measure::Product,
        Measure::SquaredDistance,
        Measure::Manhattan,
        Measure::ChiSquare,
        Measure::Intersection,
    ];

    fn by_hand(measure: Measure, x: &[f64], z: &[f64]) -> f64 {
        let pairs = x.iter().zip(z);
        pairs
            .map(|(&x, &z)| match measure {
                Measure::Product => x * z,
                Measure::SquaredDistance => (x - z).powi(2),
                Measure::Manhattan => (x - z).abs(),
                Measure::ChiSquare if x + z == 0.0 => 0.0,
                Measure::ChiSquare => (x - z).powi(2) / (x + z),
                Measure::Intersection => x.min(z),
            })
            .sum()
    }

    #[test]
    fn dense_and_sparse_rows_on_all_and_on_some_columns() {
        let rows = [
            [1.0, 0.0, 2.5, 0.0, 0.5, 3.0],
            [0.0, 0.0, 0.5, 4.0, 0.5, 0.0],
            [2.0, 1.0, 0.0, 1.0, 0.0, 0.25],
        ];
        let dense = Samples::new(rows.concat(), 3, 6).unwrap();
        let (mut offsets, mut columns, mut values) = (vec![0], vec![], vec![]);
        for row in rows {
            for (column, value) in (0..).zip(row).filter(|(_, value)| *value != 0.0) {
                columns.push(column);
                values.push(value);
            }
            offsets.push(values.len());
        }
        let entries = SparseRows::new(offsets, columns, values, 6).unwrap();
        let sparse = Samples::sparse(entries.clone()).unwrap();
        for chosen in [None, Some(vec![4, 0, 2, 0])] {
            let pick = |row: usize| -> Vec<f64> {
                let all = 0..6;
                let seen = chosen.clone().unwrap_or_else(|| all.collect());
                seen.iter().map(|&column| rows[row][column]).collect()
            };
            for measure in MEASURES {
                let a = Statistic::new(measure, chosen.clone(), &dense).unwrap();
                let b = Statistic::new(measure, chosen.clone(), &sparse).unwrap();
                for (i, j) in [(0, 1), (1, 2), (2, 0), (1, 1)] {
                    let expected = by_hand(measure, &pick(i), &pick(j));
                    for found in [a.of(i, j), b.of(i, j)] {
                        assert!((found.value - expected).abs() <= found.error + 1e-300);
                        assert!(found.error <= 1e-12, "{measure:?}");
                    }
                }
            }
        }
        assert_eq!(whole_row(&RowValues::Sparse(entries), 1, 6), rows[1]);
    }

    #[test]
    fn distances_beyond_numbers_are_known_to_be_there() {
        let samples =
            Samples::new(vec![0.0, 1e160, 1e160, 1.000_000_000_000_001e160], 4, 1).unwrap();
        let squared = Statistic::new(Measure::SquaredDistance, None, &samples).unwrap();
        let far = squared.of(0, 1);
        assert_eq!(far.value, f64::INFINITY);
        assert!(far.error <= 1e-14 * f64::MAX && far.least() >= 0.99 * f64::MAX);
        // Near each other, but nobody else need have seen that.
        assert_eq!(squared.of(1, 2).least(), 0.0);
        assert_eq!(squared.of(1, 3).least(), 0.0);
    }
}
