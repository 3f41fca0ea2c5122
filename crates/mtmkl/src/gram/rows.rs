//! Rows of K(θ) = Σ_m θ_m K_m, combined when first asked for.

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use super::memory::Memory;
use super::{TaskGrams, Values};
use crate::ledger::{self, Guard, LARGE};
use crate::run::Stop;
use crate::vector;

/// The combined kernel of one θ, row by row.
///
/// Rows are made on first use and kept; tasks with the same samples and the same θ may share one of these across threads,
/// since a row's content does not depend on who makes it. Where kernel values are made on demand, all rows are made together: by
/// symmetry that takes half as many values, and nearly all rows are asked for.
#[derive(Debug)]
pub(crate) struct CombinedRows<'a> {
    grams: TaskGrams<'a>,
    weights: Vec<(usize, f64)>,
    diagonal: Vec<f64>,
    rows: Rows,
    /// Whether there is memory for all rows.
    are_kept: bool,
    /// Where this comes first, rows are worth nothing.
    stop: Stop,
}

#[derive(Debug)]
enum Rows {
    Single(Vec<OnceLock<Row>>),
    Together(OnceLock<Memory<f64>>),
    /// Together, in single precision.
    Rounded(OnceLock<Memory<f32>>, Spare),
}

/// Where rows may be written to.
#[derive(Debug)]
struct Spare {
    /// Memory of rows that are not wanted any more: fresh memory costs the system more than writing to it costs us.
    memory: Mutex<Option<Memory<f32>>>,
    /// What is taken anew has room for more samples, but for no more than these.
    most: usize,
}

/// One row, and what is taken for it where all rows together are much.
#[derive(Debug)]
struct Row {
    values: Box<[f64]>,
    _taken: Option<Guard>,
}

/// Values up to this, and down to one over it, have all digits of single precision.
const ROUNDED: f64 = 1e30;

/// Whether single precision has the range of a K with this diagonal: no value is larger than the largest there.
pub(crate) fn can_be_rounded(diagonal: &[f64]) -> bool {
    let largest = diagonal.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    (1.0 / ROUNDED..ROUNDED).contains(&largest)
}

impl<'a> CombinedRows<'a> {
    pub(crate) fn new(grams: TaskGrams<'a>, theta: &[f64]) -> Self {
        let n = grams.count();
        // A kernel without weight costs nothing.
        let weights: Vec<(usize, f64)> = theta
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, weight)| *weight != 0.0)
            .collect();
        let diagonal = grams.combined_diagonal(theta);
        let rows = if grams.grams.are_made() {
            Rows::Together(OnceLock::new())
        } else {
            Rows::Single(std::iter::repeat_with(OnceLock::new).take(n).collect())
        };
        Self {
            grams,
            weights,
            diagonal,
            rows,
            are_kept: true,
            stop: Stop::never(),
        }
    }

    /// The same in single precision, with memory that may be used again, and where there is too little of it, with room for more samples, up to so
    /// many: for whoever knows Kβ from elsewhere, and asks only by how much it changes.
    pub(crate) fn rounded(self, memory: Option<Memory<f32>>, most: usize) -> Self {
        let memory = Mutex::new(memory);
        Self {
            rows: Rows::Rounded(OnceLock::new(), Spare { memory, most }),
            ..self
        }
    }

    /// The same until somebody asks to stop: what is made then is worth nothing, and whoever asks for a row is to ask whether it has come, too.
    pub(crate) fn until(self, stop: &Stop) -> Self {
        Self {
            stop: stop.clone(),
            ..self
        }
    }

    /// Its memory, for others to use.
    pub(crate) fn into_memory(self) -> Option<Memory<f32>> {
        match self.rows {
            Rows::Rounded(rows, _) => rows.into_inner(),
            Rows::Single(_) | Rows::Together(_) => None,
        }
    }

    /// The same without memory for all rows: [`CombinedRows::with_row`] and [`CombinedRows::product`] make theirs each time.
    pub(crate) fn passing(self) -> Self {
        Self {
            are_kept: false,
            ..self
        }
    }

    /// Whether there is no memory for all rows, and what is made of them is made from blocks of values.
    pub(crate) fn are_streamed(&self) -> bool {
        !self.are_kept && self.grams.grams.is_streamed()
    }

    /// Whether what was made last is worth nothing, since a stop came.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.now()
    }

    /// N_t.
    pub(crate) fn count(&self) -> usize {
        self.diagonal.len()
    }

    /// The diagonal of K(θ).
    pub(crate) fn diagonal(&self) -> &[f64] {
        &self.diagonal
    }

    /// Row i of K(θ).
    pub(crate) fn row(&self, i: usize) -> Values<'_> {
        let n = self.count();
        let range = i * n..(i + 1) * n;
        match &self.rows {
            Rows::Single(rows) => {
                let row = rows[i].get_or_init(|| {
                    let bytes = ledger::bytes_of::<f64>(n);
                    let is_much = bytes.saturating_mul(n as u64) >= LARGE as u64;
                    let mut values = vec![0.0; n].into_boxed_slice();
                    self.grams.add_kernels(i, &self.weights, &mut values);
                    Row {
                        values,
                        _taken: is_much.then(|| self.grams.grams.ledger().take(bytes)),
                    }
                });
                Values::Double(&row.values)
            }
            Rows::Together(rows) => {
                let rows = rows.get_or_init(|| self.grams.combined(&self.weights, &self.stop));
                Values::Double(&rows[range])
            }
            Rows::Rounded(rows, Spare { memory, most }) => {
                let rows = rows.get_or_init(|| {
                    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                    let spare = memory.take();
                    self.grams
                        .combined_rounded(&self.weights, spare, *most, &self.stop)
                });
                Values::Single(&rows[range])
            }
        }
    }

    /// Whether rows are kept, each made when it is first asked for.
    pub(crate) fn are_single(&self) -> bool {
        self.are_kept && matches!(self.rows, Rows::Single(_))
    }

    /// Makes all rows now, where they are made together. Whoever shares them with others must: threads that wait for rows while they
    /// help with making them would wait for themselves.
    pub(crate) fn make_together(&self) {
        let are_together = !matches!(self.rows, Rows::Single(_));
        if are_together && self.are_kept && self.count() > 0 {
            self.row(0);
        }
    }

    /// Looks at row i of K(θ), kept or made for this once.
    pub(crate) fn with_row<R>(&self, i: usize, look: impl FnOnce(&[f64]) -> R) -> R {
        match self.are_kept.then(|| self.row(i)) {
            Some(Values::Double(row)) => look(row),
            Some(Values::Single(row)) => {
                let mut values = vec![0.0; row.len()];
                vector::widen(row, &mut values);
                look(&values)
            }
            None => look(&self.passing_row(i)),
        }
    }

    /// Kv for a v without zeros, by all threads.
    pub(crate) fn multiply(&self, v: &[f64]) -> Vec<f64> {
        if self.are_streamed() {
            let TaskGrams { grams, view } = self.grams;
            return grams.multiply(view, &self.weights, v, &self.stop);
        }
        self.make_together();
        let product = |i: usize| self.with_row(i, |row| vector::dot(row, v));
        (0..v.len())
            .into_par_iter()
            .with_min_len(16)
            .map(product)
            .collect()
    }

    fn passing_row(&self, i: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.count()];
        self.grams.add_kernels(i, &self.weights, &mut row);
        row
    }

    /// product ← product + Kδ, δ given where it is not zero.
    pub(crate) fn add_product(&self, change: &[(usize, f64)], product: &mut [f64]) {
        if let Rows::Single(rows) = &self.rows {
            // Neighbours after each other are read faster than in the order of their first use.
            change
                .par_iter()
                .filter(|&&(i, _)| rows[i].get().is_none())
                .for_each(|&(i, _)| {
                    self.row(i);
                });
        }
        let (mut double, mut single) = (Vec::new(), Vec::new());
        for &(i, a) in change {
            match self.row(i) {
                Values::Double(row) => double.push((a, row)),
                Values::Single(row) => single.push((a, row)),
            }
        }
        vector::add_rows(&double, product);
        vector::add_rows(&single, product);
    }

    /// Kβ for β given by sample.
    pub(crate) fn product(&self, beta: &[f64]) -> Vec<f64> {
        let support: Vec<(usize, f64)> = (beta.iter().copied().enumerate())
            .filter(|(_, value)| *value != 0.0)
            .collect();
        let mut product = vec![0.0; beta.len()];
        if self.are_kept {
            self.add_product(&support, &mut product);
        } else {
            for (i, value) in support {
                vector::axpy(value, &self.passing_row(i), &mut product);
            }
        }
        product
    }
}
