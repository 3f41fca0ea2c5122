//! A part of an operator that is not copied: K_m(v(i), v(j)) for some of the kernels, read where it lies.

use std::sync::Arc;

use super::operator::Operator;
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::view::View;

/// Some kernels and some samples of another operator.
#[derive(Debug)]
pub(super) struct Restricted {
    whole: Arc<dyn Operator>,
    kernels: Vec<usize>,
    view: View,
    diagonals: Vec<Vec<f64>>,
}

impl Restricted {
    pub(super) fn new(whole: Arc<dyn Operator>, kernels: &[usize], view: &View) -> Self {
        let diagonal = |&kernel: &usize| {
            let diagonal = whole.diagonal(kernel);
            view.iter(diagonal.len()).map(|i| diagonal[i]).collect()
        };
        Self {
            kernels: kernels.to_vec(),
            view: view.clone(),
            diagonals: kernels.iter().map(diagonal).collect(),
            whole,
        }
    }

    fn weights(&self, weights: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let weights = weights.iter();
        weights.map(|&(m, a)| (self.kernels[m], a)).collect()
    }
}

impl Operator for Restricted {
    fn samples(&self) -> usize {
        self.view.count(self.whole.samples())
    }

    fn kernels(&self) -> usize {
        self.kernels.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        // No eigenvalue of a part is below the smallest of the whole.
        self.whole.indefiniteness(self.kernels[kernel])
    }

    fn ledger(&self) -> &Ledger {
        self.whole.ledger()
    }

    fn are_made(&self) -> bool {
        self.whole.are_made()
    }

    fn is_streamed(&self) -> bool {
        self.whole.is_streamed()
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let view = self.view.then(view);
        self.whole.add_rows(&view, self.kernels[kernel], rows, out);
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let view = self.view.then(view);
        self.whole
            .add_kernels(&view, i, &self.weights(weights), out);
    }

    fn multiply(&self, view: &View, weights: &[(usize, f64)], v: &[f64], stop: &Stop) -> Vec<f64> {
        let view = self.view.then(view);
        self.whole.multiply(&view, &self.weights(weights), v, stop)
    }

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], stop: &Stop) {
        let view = self.view.then(view);
        self.whole.combine(&view, &self.weights(weights), out, stop);
    }

    fn combine_rounded(&self, view: &View, weights: &[(usize, f64)], out: &mut [f32], stop: &Stop) {
        let (view, weights) = (self.view.then(view), self.weights(weights));
        self.whole.combine_rounded(&view, &weights, out, stop);
    }
}
