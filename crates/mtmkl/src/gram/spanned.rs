//! Gram matrices that are combinations of fewer: K_m = Σ_j B_mj N_j, see [`Span`]. Only those of the nodes are there.

use std::sync::Arc;

use super::Grams;
use super::operator::Operator;
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::span::Span;
use crate::view::View;

/// M matrices, as combinations of those of another operator, all with the same diagonal as the first node of theirs.
#[derive(Debug)]
pub(crate) struct Spanned {
    span: Arc<Span>,
    nodes: Grams,
}

impl Spanned {
    pub(crate) fn new(span: Arc<Span>, nodes: Grams) -> Self {
        Self { span, nodes }
    }

    /// Weights of kernels as those of nodes.
    fn gathered(&self, weights: &[(usize, f64)]) -> Vec<(usize, f64)> {
        let mut theta = vec![0.0; self.span.kernels()];
        for &(kernel, weight) in weights {
            theta[kernel] += weight;
        }
        self.span.gather(&theta).into_iter().enumerate().collect()
    }
}

impl Operator for Spanned {
    fn samples(&self) -> usize {
        self.nodes.samples()
    }

    fn kernels(&self) -> usize {
        self.span.kernels()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        let first = self.span.row(kernel).first().map_or(0, |(node, _)| *node);
        self.nodes.diagonal(first)
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        let row = self.span.row(kernel);
        let sizes = row
            .iter()
            .map(|(node, b)| b.abs() * self.nodes.indefiniteness(*node));
        sizes.sum()
    }

    fn ledger(&self) -> &Ledger {
        self.nodes.ledger()
    }

    fn are_made(&self) -> bool {
        self.nodes.are_made()
    }

    fn is_streamed(&self) -> bool {
        self.nodes.is_streamed()
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        for (node, b) in self.span.row(kernel) {
            let scaled: Vec<(usize, f64)> = rows.iter().map(|(i, a)| (*i, b * a)).collect();
            self.nodes.add_rows(view, node, &scaled, out);
        }
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        self.nodes
            .add_kernels(view, i, &self.gathered(weights), out);
    }

    fn entries(
        &self,
        view: &View,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        let weights = self.gathered(weights);
        self.nodes.entries(view, i, columns, &weights, out);
    }

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], stop: &Stop) {
        self.nodes.combine(view, &self.gathered(weights), out, stop);
    }

    fn combine_rounded(&self, view: &View, weights: &[(usize, f64)], out: &mut [f32], stop: &Stop) {
        let weights = self.gathered(weights);
        self.nodes.combine_rounded(view, &weights, out, stop);
    }

    fn bytes(&self) -> u64 {
        self.nodes.bytes()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let all: Vec<usize> = (0..self.span.nodes()).collect();
        let nodes = self.nodes.part(&all, view);
        let span = Arc::new(self.span.part(kernels));
        Some(Arc::new(Self::new(span, nodes)))
    }

    fn bytes_of_part(&self, _kernels: &[usize], samples: usize) -> u64 {
        let all: Vec<usize> = (0..self.span.nodes()).collect();
        self.nodes.bytes_of_part(&all, samples)
    }

    fn spanned(&self) -> Option<(&Arc<Span>, &Arc<dyn Operator>)> {
        Some((&self.span, &self.nodes))
    }
}
