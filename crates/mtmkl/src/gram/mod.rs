//! Gram matrices: label-free, owned by sample sets and shared by their tasks; combined row by row, on demand.

mod build;
mod cross;
mod images;
mod mapped;
mod matrix;
mod memory;
mod pairs;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

pub use build::{Definiteness, Storage};
pub(crate) use build::{Size, build, has_unit_diagonal, inverse_norm, is_normalised, own_value};
pub(crate) use cross::{CrossKernels, CrossPiece};
pub(crate) use images::{ByChange, Image, OnSupport};
use matrix::{Matrix, Values};
pub(crate) use rows::CombinedRows;

use crate::vector;
use crate::view::View;

/// The M Gram matrices of one sample set: symmetric, n × n, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Grams {
    samples: usize,
    matrices: Vec<Matrix>,
    diagonals: Vec<Vec<f64>>,
    /// See [`Grams::indefiniteness`].
    indefiniteness: Vec<f64>,
}

impl Grams {
    pub(crate) fn new(samples: usize, matrices: Vec<Matrix>) -> Self {
        let diagonals = matrices
            .iter()
            .map(|matrix| {
                (0..samples)
                    .map(|i| matrix.value(i * samples + i))
                    .collect()
            })
            .collect();
        Self {
            samples,
            indefiniteness: vec![0.0; matrices.len()],
            matrices,
            diagonals,
        }
    }

    /// The same with what is known about their definiteness, one number for each kernel.
    fn with_indefiniteness(self, indefiniteness: Vec<f64>) -> Self {
        Self {
            indefiniteness,
            ..self
        }
    }

    /// These matrices, n × n each.
    #[cfg(test)]
    pub(crate) fn given(samples: usize, matrices: Vec<Vec<f64>>) -> Self {
        let given = matrices
            .into_iter()
            .map(|values| Matrix::Given(values.into()));
        Self::new(samples, given.collect())
    }

    /// n.
    pub(crate) fn samples(&self) -> usize {
        self.samples
    }

    /// M.
    pub(crate) fn kernels(&self) -> usize {
        self.matrices.len()
    }

    /// Some of the kernels, on all samples or on some of them, copied so that their rows lie together.
    pub(crate) fn part(&self, kernels: &[usize], view: &View) -> Self {
        let chosen = view.rows();
        // Kernels that are made from one base stay so.
        let mut bases = BTreeMap::new();
        for &kernel in kernels {
            if let (Matrix::Mapped(mapped), Some(chosen)) = (&self.matrices[kernel], chosen) {
                bases
                    .entry(mapped.base_address())
                    .or_insert_with(|| mapped.base_of(chosen));
            }
        }
        let matrices: Vec<Matrix> = kernels
            .par_iter()
            .map(|&kernel| match chosen {
                Some(chosen) => self.matrices[kernel].subset(self.samples, chosen, &bases),
                None => self.matrices[kernel].clone(),
            })
            .collect();
        // No eigenvalue of a part is below the smallest of the whole.
        let indefiniteness = kernels
            .iter()
            .map(|&kernel| self.indefiniteness[kernel])
            .collect();
        Self::new(chosen.map_or(self.samples, <[usize]>::len), matrices)
            .with_indefiniteness(indefiniteness)
    }

    /// The same, rounded to single precision.
    pub(crate) fn into_single(self) -> Self {
        let matrices = self
            .matrices
            .into_par_iter()
            .map(Matrix::into_single)
            .collect();
        Self::new(self.samples, matrices).with_indefiniteness(self.indefiniteness)
    }

    /// Bytes that these matrices take, or what they are made from; those of the caller's are not counted.
    pub(crate) fn bytes(&self) -> u64 {
        let built = |matrix: &&Matrix| !matches!(matrix, Matrix::Given(_));
        bytes(self.matrices.iter().filter(built), self.samples)
    }

    /// Bytes that [`Grams::part`] would copy for these kernels and so many samples.
    pub(crate) fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        bytes(
            kernels.iter().map(|&kernel| &self.matrices[kernel]),
            samples,
        )
    }

    fn row(&self, kernel: usize, i: usize) -> Values<'_> {
        self.matrices[kernel].values(i * self.samples, (i + 1) * self.samples)
    }

    /// Whether some of the matrices are made on demand.
    pub(crate) fn are_made(&self) -> bool {
        self.matrices
            .iter()
            .any(|matrix| matches!(matrix, Matrix::Mapped(_)))
    }

    /// The diagonal of K_m.
    pub(crate) fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    /// ε_m ≥ 0 such that K_m + ε_m is positive semi-definite: 0 for a kernel that is, or is taken to be; what was forgiven, or allowed,
    /// where K_m was checked. Before it was rounded to single precision, where it is.
    pub(crate) fn indefiniteness(&self, kernel: usize) -> f64 {
        self.indefiniteness[kernel]
    }
}

/// Bytes of such matrices on so many samples; kernels that are made from one base share it.
fn bytes<'a>(matrices: impl Iterator<Item = &'a Matrix>, samples: usize) -> u64 {
    let mut bases = BTreeSet::new();
    matrices
        .map(|matrix| match matrix {
            Matrix::Mapped(mapped) if !bases.insert(mapped.base_address()) => 0,
            Matrix::Single(_) => Size::square(samples) / 2,
            _ => Size::square(samples),
        })
        .sum()
}

/// The Gram matrices as one task sees them: all samples, or some of them in its own order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskGrams<'a> {
    pub(crate) grams: &'a Grams,
    pub(crate) view: &'a View,
}

impl TaskGrams<'_> {
    /// N_t.
    pub(crate) fn count(&self) -> usize {
        self.view.count(self.grams.samples)
    }

    /// The sample's position in its sample set.
    pub(crate) fn position(&self, i: usize) -> usize {
        self.view.position(i)
    }

    /// out ← out + Σ_(i, a) a · (row i of K_m).
    pub(crate) fn add_rows(&self, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let rows = rows
            .iter()
            .map(|&(i, a)| (a, self.grams.row(kernel, self.position(i))));
        self.add(rows, out);
    }

    /// out ← out + Σ_(m, a) a · (row i of K_m).
    pub(crate) fn add_kernels(&self, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let at = self.position(i);
        let rows = weights
            .iter()
            .map(|&(kernel, a)| (a, self.grams.row(kernel, at)));
        self.add(rows, out);
    }

    /// out ← out + Σ a · row. Rows that are kept are added several at a time.
    fn add<'r>(&self, rows: impl Iterator<Item = (f64, Values<'r>)>, out: &mut [f64]) {
        let (mut double, mut single) = (Vec::new(), Vec::new());
        for (a, row) in rows {
            match (row, self.view.rows()) {
                (Values::Double(row), None) => double.push((a, row)),
                (Values::Single(row), None) => single.push((a, row)),
                (Values::Made(row), None) => vector::axpy(a, &row, out),
                (Values::Double(row), Some(view)) => add_chosen(a, row, view, out),
                (Values::Single(row), Some(view)) => add_chosen(a, row, view, out),
                (Values::Made(row), Some(view)) => add_chosen(a, &row, view, out),
            }
        }
        vector::add_rows(&double, out);
        vector::add_rows(&single, out);
    }

    /// out ← Σ_(m, a) a · K_m(i, columns).
    pub(crate) fn entries(
        &self,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let at = self.position(i);
        let chosen: Vec<usize> = columns.iter().map(|&j| self.position(j)).collect();
        for &(kernel, a) in weights {
            match self.grams.row(kernel, at) {
                Values::Double(row) => add_chosen(a, row, &chosen, out),
                Values::Single(row) => add_chosen(a, row, &chosen, out),
                Values::Made(row) => add_chosen(a, &row, &chosen, out),
            }
        }
    }

    /// K_m(i, i).
    pub(crate) fn diagonal(&self, kernel: usize, i: usize) -> f64 {
        self.grams.diagonal(kernel)[self.position(i)]
    }
}

/// out ← out + a · (chosen entries of the row).
fn add_chosen<T: Copy + Into<f64>>(a: f64, row: &[T], chosen: &[usize], out: &mut [f64]) {
    for (value, &j) in out.iter_mut().zip(chosen) {
        *value += a * row[j].into();
    }
}
