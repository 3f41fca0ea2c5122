//! Kernels times a similarity of the tasks that samples come from: K_m(i, j) c(t_i, t_j), where c may be anything.

use std::sync::Arc;

use super::operator::Operator;
use crate::ledger::Ledger;
use crate::task_kernel::Origins;
use crate::view::View;

/// The kernels of another operator, entry by entry times a task kernel.
#[derive(Debug)]
pub(super) struct Weighted {
    whole: Arc<dyn Operator>,
    origins: Origins,
    /// Which task kernel.
    number: usize,
    diagonals: Vec<Vec<f64>>,
}

impl Weighted {
    pub(super) fn new(whole: Arc<dyn Operator>, origins: Origins, number: usize) -> Self {
        let diagonal = |kernel: usize| {
            let own = whole.diagonal(kernel).iter().enumerate();
            own.map(|(i, value)| value * origins.value(number, i, i))
                .collect()
        };
        Self {
            diagonals: (0..whole.kernels()).map(diagonal).collect(),
            whole,
            origins,
            number,
        }
    }

    /// out ← out + row i of a sum that `row` makes, times c.
    fn add(&self, view: &View, i: usize, out: &mut [f64], row: impl FnOnce(&mut [f64])) {
        let mut values = vec![0.0; out.len()];
        row(&mut values);
        let at = view.position(i);
        for (j, (out, value)) in out.iter_mut().zip(values).enumerate() {
            *out += value * self.origins.value(self.number, at, view.position(j));
        }
    }
}

impl Operator for Weighted {
    fn samples(&self) -> usize {
        self.whole.samples()
    }

    fn kernels(&self) -> usize {
        self.diagonals.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        // K + ε is semi-definite, and so is its product with c: K∘C + ε diag(c).
        let own = (0..self.samples()).map(|i| self.origins.value(self.number, i, i));
        self.whole.indefiniteness(kernel) * own.fold(0.0, f64::max)
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
        for &(i, a) in rows {
            self.add(view, i, out, |values| {
                self.whole.add_rows(view, kernel, &[(i, a)], values);
            });
        }
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        self.add(view, i, out, |values| {
            self.whole.add_kernels(view, i, weights, values);
        });
    }

    fn bytes(&self) -> u64 {
        self.whole.bytes()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let origins = self.origins.part(view.iter(self.samples()));
        let whole = self.whole.part(kernels, view);
        Some(Arc::new(Self::new(whole, origins, self.number)))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        self.whole.bytes_of_part(kernels, samples)
    }
}
