//! Gram matrices that are kept: n × n numbers each, in double or single precision, computed here or the caller's.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::images::{self, Factor, Sums};
use super::memory::{Memory, Part};
use super::operator::{Image, Operator};
use super::plan::square;
use super::values::Values;
use crate::ledger::Ledger;
use crate::vector;
use crate::view::View;

/// The values of a Gram matrix, row by row.
#[derive(Debug, Clone)]
pub(super) enum Matrix {
    /// Computed here. (An `Arc` of a slice would have to be copied from this.)
    Built(Part<f64>),
    /// The caller's.
    Given(Arc<Vec<f64>>),
    /// Rounded to single precision: half the memory, and half the time where memory is the limit.
    Single(Part<f32>),
}

impl Matrix {
    /// All values.
    pub(super) fn values(&self) -> Values<'_> {
        match self {
            Self::Built(values) => Values::Double(values),
            Self::Given(values) => Values::Double(values),
            Self::Single(values) => Values::Single(values),
        }
    }

    /// The same rounded to single precision, and the first value that is beyond its range.
    pub(super) fn into_single(self, ledger: &Ledger) -> (Self, Option<f64>) {
        let Values::Double(values) = self.values() else {
            return (self, None);
        };
        let mut memory = Memory::zeros(values.len(), ledger);
        vector::narrow(values, &mut memory);
        let beyond = memory.iter().position(|value| !value.is_finite());
        let beyond = beyond.map(|at| values[at]);
        (Self::Single(Part::from(memory)), beyond)
    }

    /// The rows and columns of a view of n samples.
    fn subset(&self, n: usize, chosen: &[usize], ledger: &Ledger) -> Self {
        match self.values() {
            Values::Double(values) => Self::Built(subset(values, n, chosen, ledger)),
            Values::Single(values) => Self::Single(subset(values, n, chosen, ledger)),
        }
    }
}

/// The rows and columns of `chosen` of an n × n matrix.
pub(super) fn subset<T: bytemuck::Pod>(
    values: &[T],
    n: usize,
    chosen: &[usize],
    ledger: &Ledger,
) -> Part<T> {
    // Neighbours are copied together.
    let runs: Vec<Range<usize>> = chosen
        .chunk_by(|&j, &next| next == j + 1)
        .map(|run| run[0]..run[0] + run.len())
        .collect();
    let mut copied = Vec::with_capacity(chosen.len() * chosen.len());
    for &i in chosen {
        let row = &values[i * n..(i + 1) * n];
        for run in &runs {
            copied.extend_from_slice(&row[run.clone()]);
        }
    }
    Part::from(Memory::holding(copied, ledger))
}

/// M matrices, n × n.
#[derive(Debug)]
pub(super) struct Kept {
    samples: usize,
    matrices: Vec<Matrix>,
    diagonals: Vec<Vec<f64>>,
    indefiniteness: Vec<f64>,
    ledger: Ledger,
}

impl Kept {
    pub(super) fn new(
        samples: usize,
        matrices: Vec<Matrix>,
        indefiniteness: Vec<f64>,
        ledger: &Ledger,
    ) -> Self {
        let diagonal = |matrix: &Matrix| {
            let values = matrix.values();
            (0..samples).map(|i| values.get(i * samples + i)).collect()
        };
        Self {
            samples,
            diagonals: matrices.iter().map(diagonal).collect(),
            matrices,
            indefiniteness,
            ledger: ledger.clone(),
        }
    }

    /// These matrices, n × n each, shared with the caller.
    pub(super) fn given(samples: usize, matrices: Vec<Arc<Vec<f64>>>, ledger: &Ledger) -> Self {
        let none = vec![0.0; matrices.len()];
        let given = matrices.into_iter().map(Matrix::Given).collect();
        Self::new(samples, given, none, ledger)
    }

    fn row(&self, kernel: usize, i: usize) -> Values<'_> {
        let n = self.samples;
        self.matrices[kernel].values().slice(i * n..(i + 1) * n)
    }
}

/// out ← out + Σ a · row, several rows at a time where they lie as they are seen.
fn add<'r>(view: &View, rows: impl Iterator<Item = (f64, Values<'r>)>, out: &mut [f64]) {
    let (mut double, mut single) = (Vec::new(), Vec::new());
    for (a, row) in rows {
        match (row, view.rows()) {
            (Values::Double(row), None) => double.push((a, row)),
            (Values::Single(row), None) => single.push((a, row)),
            (Values::Double(row), Some(chosen)) => add_chosen(a, row, chosen, out),
            (Values::Single(row), Some(chosen)) => add_chosen(a, row, chosen, out),
        }
    }
    vector::add_rows(&double, out);
    vector::add_rows(&single, out);
}

/// out ← out + a · (chosen entries of the row).
fn add_chosen<T: Copy + Into<f64>>(a: f64, row: &[T], chosen: &[usize], out: &mut [f64]) {
    for (value, &j) in out.iter_mut().zip(chosen) {
        *value += a * row[j].into();
    }
}

impl Operator for Kept {
    fn samples(&self) -> usize {
        self.samples
    }

    fn kernels(&self) -> usize {
        self.matrices.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        self.indefiniteness[kernel]
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let rows = rows.iter();
        let rows = rows.map(|&(i, a)| (a, self.row(kernel, view.position(i))));
        add(view, rows, out);
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let at = view.position(i);
        let rows = weights.iter();
        add(view, rows.map(|&(m, a)| (a, self.row(m, at))), out);
    }

    fn entries(
        &self,
        view: &View,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let at = view.position(i);
        let chosen: Vec<usize> = columns.iter().map(|&j| view.position(j)).collect();
        for &(kernel, a) in weights {
            match self.row(kernel, at) {
                Values::Double(row) => add_chosen(a, row, &chosen, out),
                Values::Single(row) => add_chosen(a, row, &chosen, out),
            }
        }
    }

    fn images(&self, view: &View, tasks: Vec<Image<'_>>) {
        let mut supports = images::add_changes(self, view, tasks);
        if supports.is_empty() {
            return;
        }
        let (n, count) = (self.samples, view.count(self.samples));
        let (used, positions) = images::used(&supports, view, count);
        // Rows that lie there as the task sees them are read as they are: faster than picking what is used.
        let lies_there = view.is_all();
        let all: Vec<usize> = (0..count).collect();
        let samples = if lies_there { &all } else { &used };
        let factors: Vec<Factor> = supports
            .iter()
            .map(|task| Factor::new(task, samples))
            .collect();
        let outs = supports
            .iter_mut()
            .map(|task| std::mem::take(&mut task.out));
        let outs = images::outs_by_kernel(outs, self.kernels());
        let pairs = self.matrices.par_iter().zip(outs);
        pairs.for_each(|(matrix, mut outs)| {
            let mut sums = Sums::new(&factors);
            match (matrix.values(), lies_there) {
                (Values::Double(values), true) => images::add_rows(&mut sums, values, n, &used),
                (Values::Single(values), true) => images::add_single(&mut sums, values, n, &used),
                (Values::Double(values), _) => images::add_picked(&mut sums, values, n, &positions),
                (Values::Single(values), _) => images::add_picked(&mut sums, values, n, &positions),
            }
            sums.write(&mut outs);
        });
    }

    fn bytes(&self) -> u64 {
        let built = self.matrices.iter();
        let built = built.filter(|matrix| !matches!(matrix, Matrix::Given(_)));
        built.map(|matrix| bytes(matrix, self.samples)).sum()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let n = self.samples;
        let matrices = kernels.par_iter().map(|&kernel| match view.rows() {
            Some(chosen) => self.matrices[kernel].subset(n, chosen, &self.ledger),
            None => self.matrices[kernel].clone(),
        });
        // No eigenvalue of a part is below the smallest of the whole.
        let known = kernels.iter().map(|&kernel| self.indefiniteness[kernel]);
        Some(Arc::new(Self::new(
            view.count(n),
            matrices.collect(),
            known.collect(),
            &self.ledger,
        )))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        let matrices = kernels.iter().map(|&kernel| &self.matrices[kernel]);
        matrices.map(|matrix| bytes(matrix, samples)).sum()
    }
}

/// Bytes of such a matrix on so many samples.
fn bytes(matrix: &Matrix, samples: usize) -> u64 {
    match matrix {
        Matrix::Single(_) => square(samples) / 2,
        _ => square(samples),
    }
}
