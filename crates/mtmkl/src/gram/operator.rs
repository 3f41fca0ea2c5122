//! The M Gram matrices of one sample set as one operator: what solving asks of them, and nothing about how they are kept.
//!
//! Rows are seen through a [`View`]: row i is that of sample v(i), and its entries are those of v(0), v(1), …. All samples are 0..n of the
//! set; numbers i, j below are places in the view. Matrices are symmetric.
//!
//! An operator of one's own needs the shape, the diagonals, [`Operator::add_rows`] and a ledger. The other methods have the same meaning as
//! their defaults, and are there because a kept or a mapped matrix can do better.

use std::fmt::Debug;
use std::sync::Arc;

use rayon::prelude::*;

use super::restricted::Restricted;
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::span::Span;
use crate::vector;
use crate::view::View;

/// K_1, …, K_M on n samples.
pub trait Operator: Debug + Send + Sync {
    /// n.
    fn samples(&self) -> usize;

    /// M.
    fn kernels(&self) -> usize;

    /// The diagonal of K_m, one number for each sample of the set.
    fn diagonal(&self, kernel: usize) -> &[f64];

    /// out ← out + Σ_(i, a) a · (row i of K_m): K_m v for a v that is given where it is not zero.
    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]);

    /// The account that its memory is in. Whoever works with it takes from the same.
    fn ledger(&self) -> &Ledger;

    /// ε_m ≥ 0 such that K_m + ε_m is positive semi-definite: 0 for a kernel that is, or is taken to be; what was forgiven, or allowed,
    /// where K_m was checked. Before it was rounded to single precision, where it is.
    fn indefiniteness(&self, _kernel: usize) -> f64 {
        0.0
    }

    /// out ← out + Σ_(m, a) a · (row i of K_m): row i of a combined kernel.
    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        for &(kernel, a) in weights {
            self.add_rows(view, kernel, &[(i, a)], out);
        }
    }

    /// out ← Σ_(m, a) a · K_m(i, columns).
    fn entries(
        &self,
        view: &View,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        // Row i first, then what is wanted of it.
        let chosen: View = std::iter::once(i).chain(columns.iter().copied()).collect();
        let mut row = vec![0.0; columns.len() + 1];
        self.add_kernels(&view.then(&chosen), 0, weights, &mut row);
        out.copy_from_slice(&row[1..]);
    }

    /// out ← Σ_(m, a) a K_m, all rows together, whatever `out` held. Threads may share the work; who does what makes no difference. Where
    /// `stop` comes first, what is written is worth nothing.
    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], _stop: &Stop) {
        let count = view.count(self.samples());
        out.par_chunks_mut(count.max(1))
            .enumerate()
            .for_each(|(i, row)| {
                row.fill(0.0);
                self.add_kernels(view, i, weights, row);
            });
    }

    /// The same in single precision: for whoever knows Kβ from elsewhere, and asks only by how much it changes.
    fn combine_rounded(
        &self,
        view: &View,
        weights: &[(usize, f64)],
        out: &mut [f32],
        _stop: &Stop,
    ) {
        let count = view.count(self.samples());
        let rows = out.par_chunks_mut(count.max(1)).enumerate();
        rows.for_each(|(i, out)| {
            let mut row = vec![0.0; count];
            self.add_kernels(view, i, weights, &mut row);
            vector::narrow(&row, out);
        });
    }

    /// Σ_(m, a) a K_m v, by all threads; who does what makes no difference. Worth nothing where `stop` comes first.
    fn multiply(&self, view: &View, weights: &[(usize, f64)], v: &[f64], _stop: &Stop) -> Vec<f64> {
        let row = |i: usize| {
            let mut row = vec![0.0; v.len()];
            self.add_kernels(view, i, weights, &mut row);
            vector::dot(&row, v)
        };
        (0..v.len()).into_par_iter().map(row).collect()
    }

    /// U_m = K_mβ of all these tasks, which see the same rows, for every kernel. Threads may share the work; who does what makes no
    /// difference.
    fn images(&self, view: &View, tasks: Vec<Image<'_>>) {
        for task in tasks {
            match task {
                Image::Change(ByChange { change, out }) => {
                    out.into_par_iter()
                        .enumerate()
                        .for_each(|(kernel, out)| self.add_rows(view, kernel, &change, out));
                }
                Image::Support(OnSupport { beta, support, out }) => {
                    let view = view.then(&View::of(support));
                    let rows: Vec<(usize, f64)> =
                        support.iter().map(|&i| beta[i]).enumerate().collect();
                    out.into_par_iter().enumerate().for_each(|(kernel, out)| {
                        out.fill(0.0);
                        self.add_rows(&view, kernel, &rows, out);
                    });
                }
            }
        }
    }

    /// Whether kernel values are made when they are asked for, so that asking twice costs twice.
    fn are_made(&self) -> bool {
        false
    }

    /// Whether nothing of size n² can be had of all samples: values are made from rows, in blocks. Solvers then look at a part of the samples
    /// at a time, and U_m = K_mβ is kept on all of them, by [`Operator::sweep`].
    fn is_streamed(&self) -> bool {
        false
    }

    /// U_m on all samples of all these tasks, which see the same rows, by the changes of their β; how many pairs of samples that took. `None`
    /// where `stop` came first: what is written then is worth nothing.
    fn sweep(&self, view: &View, tasks: Vec<ByChange<'_>>, _stop: &Stop) -> Option<u64> {
        self.images(view, tasks.into_iter().map(Image::Change).collect());
        Some(0)
    }

    /// Bytes that it keeps; those of the caller's are not counted.
    fn bytes(&self) -> u64 {
        0
    }

    /// Some of the kernels on some of the samples as an operator of its own, copied so that their rows lie together; `None` where that is
    /// not worth a copy: then a part is read where it lies. Ask for a part by `part`, which does either.
    fn copied_part(&self, _kernels: &[usize], _view: &View) -> Option<Arc<dyn Operator>> {
        None
    }

    /// Bytes that [`Operator::copied_part`] would copy for these kernels and so many samples.
    fn bytes_of_part(&self, _kernels: &[usize], _samples: usize) -> u64 {
        0
    }

    /// How its matrices are combinations of those of another operator, where they are: what is linear in them is then asked of the other.
    fn spanned(&self) -> Option<(&Arc<Span>, &Arc<dyn Operator>)> {
        None
    }
}

impl dyn Operator {
    /// Some of the kernels, on all samples or on some of them, as an operator of its own.
    pub fn part(self: &Arc<Self>, kernels: &[usize], view: &View) -> Arc<dyn Operator> {
        self.copied_part(kernels, view)
            .unwrap_or_else(|| Arc::new(Restricted::new(Arc::clone(self), kernels, view)))
    }
}

/// What one task asks for, see [`Operator::images`].
#[derive(Debug)]
pub enum Image<'a> {
    /// On the support of β: there sensitivities β'K_mβ and the curvature want it.
    Support(OnSupport<'a>),
    /// On all samples.
    Change(ByChange<'a>),
}

/// U_m on the support of β, anew.
#[derive(Debug)]
pub struct OnSupport<'a> {
    /// β, one number per sample.
    pub beta: &'a [f64],
    /// In ascending order; β is zero everywhere else.
    pub support: &'a [usize],
    /// For each kernel, a number for each sample of the support.
    pub out: Vec<&'a mut [f64]>,
}

/// U_m on all samples, by the change of β.
#[derive(Debug)]
pub struct ByChange<'a> {
    /// Samples, and by how much their β changed.
    pub change: Vec<(usize, f64)>,
    /// U_m as it was: for each kernel, a number for each sample.
    pub out: Vec<&'a mut [f64]>,
}

/// Numbers that lie one kernel after the other, kernel by kernel.
pub fn by_kernel(values: &mut [f64], kernels: usize) -> Vec<&mut [f64]> {
    let size = values.len() / kernels.max(1);
    let mut rest = values;
    let mut parts = Vec::with_capacity(kernels);
    for _ in 0..kernels {
        let (part, after) = rest.split_at_mut(size);
        parts.push(part);
        rest = after;
    }
    parts
}
