//! θ and everything of its shape: a table of T tasks × M kernels.

use std::ops::{Index, IndexMut};

use crate::error::{Error, Result};

/// T × M: how many tasks, how many kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// T, the number of tasks.
    pub tasks: usize,
    /// M, the number of kernels.
    pub kernels: usize,
}

/// A rows × M table of numbers, one row per task (or a single row where all tasks share one).
///
/// Kernel weights θ, sensitivities s and the summands ζ, γ of a sharing are grids. Nothing larger than
/// a grid (and the curvature blocks) ever passes between the engine and the solver.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    rows: usize,
    kernels: usize,
    values: Vec<f64>,
}

impl Grid {
    /// A grid of zeros. (As of a vector, there is none of more numbers than memory can hold.)
    pub fn zeros(rows: usize, kernels: usize) -> Self {
        Self {
            rows,
            kernels,
            values: vec![0.0; rows * kernels],
        }
    }

    /// A grid with one value everywhere.
    pub fn filled(rows: usize, kernels: usize, value: f64) -> Self {
        Self {
            rows,
            kernels,
            values: vec![value; rows * kernels],
        }
    }

    /// A grid from its values, row by row.
    ///
    /// # Errors
    /// When the number of values is not `rows * kernels`.
    pub fn new(rows: usize, kernels: usize, values: Vec<f64>) -> Result<Self> {
        if values.len() != rows.saturating_mul(kernels) {
            let expected = format!("{rows} × {kernels} values");
            return Err(Error::param(
                "grid",
                format!("{} values", values.len()),
                expected,
            ));
        }
        Ok(Self {
            rows,
            kernels,
            values,
        })
    }

    /// The same, of as many values as it takes.
    pub(crate) fn from_values(rows: usize, kernels: usize, values: Vec<f64>) -> Self {
        assert_eq!(
            values.len(),
            rows * kernels,
            "a grid needs rows × kernels values"
        );
        Self {
            rows,
            kernels,
            values,
        }
    }

    /// The number of rows: T, or 1 for a row that all tasks share.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// M, the number of kernels.
    pub fn kernels(&self) -> usize {
        self.kernels
    }

    /// One row.
    ///
    /// # Panics
    /// Where a slice does: when there is no such row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.kernels..(row + 1) * self.kernels]
    }

    /// One row, to write.
    ///
    /// # Panics
    /// As [`Grid::row`].
    pub fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.kernels..(row + 1) * self.kernels]
    }

    /// All rows in order.
    pub fn iter_rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.kernels.max(1))
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All values, row by row, to write.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }

    /// ⟨self, other⟩, the sum of products of all entries.
    pub fn dot(&self, other: &Self) -> f64 {
        dot(&self.values, &other.values)
    }

    /// self ← self + step · (target − self).
    pub fn move_towards(&mut self, target: &Self, step: f64) {
        for (value, aim) in self.values.iter_mut().zip(&target.values) {
            *value += step * (aim - *value);
        }
    }

    /// The sum of all rows, as a grid of one row.
    #[must_use]
    pub fn sum_rows(&self) -> Self {
        let mut sum = Self::zeros(1, self.kernels);
        for row in self.iter_rows() {
            for (total, value) in sum.values.iter_mut().zip(row) {
                *total += value;
            }
        }
        sum
    }

    /// Whether every entry is finite.
    pub fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }
}

impl Index<(usize, usize)> for Grid {
    type Output = f64;
    fn index(&self, (row, kernel): (usize, usize)) -> &f64 {
        &self.values[row * self.kernels + kernel]
    }
}

impl IndexMut<(usize, usize)> for Grid {
    fn index_mut(&mut self, (row, kernel): (usize, usize)) -> &mut f64 {
        &mut self.values[row * self.kernels + kernel]
    }
}

pub(crate) use crate::vector::dot;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_equals_the_plain_sum() {
        for n in 0..40 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let b: Vec<f64> = (0..n).map(|i| 0.5 * f64::from(i) - 3.0).collect();
            let plain: f64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert!((dot(&a, &b) - plain).abs() < 1e-9);
        }
    }

    #[test]
    fn rows_sum_and_move() {
        let mut grid = Grid::from_values(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(grid.sum_rows().values(), [5.0, 7.0, 9.0]);
        grid.move_towards(&Grid::zeros(2, 3), 0.5);
        assert_eq!(grid.row(1), [2.0, 2.5, 3.0]);
        assert_eq!(grid[(0, 2)], 1.5);
    }
}
