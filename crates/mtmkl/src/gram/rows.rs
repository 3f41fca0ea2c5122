//! Rows of K(θ) = Σ_m θ_m K_m, combined when first asked for.

use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use super::TaskGrams;
use super::memory::Memory;
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
    /// Memory of rows that are not wanted any more: fresh memory costs the system more than writing to it costs us.
    spare: Mutex<Option<Memory<f64>>>,
    /// What is taken anew has room for more samples, but for no more than these.
    most: usize,
    /// Where this comes first, rows are worth nothing.
    stop: Stop,
}

#[derive(Debug)]
enum Rows {
    Single(Vec<OnceLock<Row>>),
    Together(OnceLock<Memory<f64>>),
}

/// One row, and what is taken for it where all rows together are much.
#[derive(Debug)]
struct Row {
    values: Box<[f64]>,
    _taken: Option<Guard>,
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
            spare: Mutex::default(),
            most: 0,
            stop: Stop::never(),
        }
    }

    /// The same with memory that may be used again, and where there is too little of it, with room for more samples, up to so many. Where `stop`
    /// comes before all rows are made, they are worth nothing: whoever asks for one is to ask whether it has come, too.
    pub(crate) fn in_memory(self, spare: Option<Memory<f64>>, most: usize, stop: &Stop) -> Self {
        Self {
            spare: Mutex::new(spare),
            most,
            stop: stop.clone(),
            ..self
        }
    }

    /// The same until somebody asks to stop: what is made then is worth nothing.
    pub(crate) fn until(self, stop: &Stop) -> Self {
        Self {
            stop: stop.clone(),
            ..self
        }
    }

    /// Its memory, for others to use.
    pub(crate) fn into_memory(self) -> Option<Memory<f64>> {
        match self.rows {
            Rows::Together(rows) => rows.into_inner(),
            Rows::Single(_) => None,
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
    pub(crate) fn row(&self, i: usize) -> &[f64] {
        let n = self.count();
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
                &row.values
            }
            Rows::Together(rows) => {
                let rows = rows.get_or_init(|| {
                    let spare = self
                        .spare
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .take();
                    self.grams
                        .combined(&self.weights, spare, self.most, &self.stop)
                });
                &rows[i * n..(i + 1) * n]
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
        let are_together = matches!(self.rows, Rows::Together(_));
        if are_together && self.are_kept && self.count() > 0 {
            self.row(0);
        }
    }

    /// Looks at row i of K(θ), kept or made for this once.
    pub(crate) fn with_row<R>(&self, i: usize, look: impl FnOnce(&[f64]) -> R) -> R {
        if self.are_kept {
            look(self.row(i))
        } else {
            look(&self.passing_row(i))
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
        let rows: Vec<(f64, &[f64])> = change.iter().map(|&(i, a)| (a, self.row(i))).collect();
        vector::add_rows(&rows, product);
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
