//! U_m = K_mβ on the support of β for all tasks on the same samples: β'K_mβ and the curvature are made of it.
//!
//! Matrices are symmetric, so half of the support's rows is enough, and each piece of a row is read once, or made once, for all tasks.

use rayon::prelude::*;

use super::operator::{ByChange, Image, OnSupport, Operator};
use crate::vector;
use crate::view::View;

/// U_m on all samples for the tasks that ask for it by the change of β; the other tasks are left to do.
pub(super) fn add_changes<'a>(
    operator: &impl Operator,
    view: &View,
    tasks: Vec<Image<'a>>,
) -> Vec<OnSupport<'a>> {
    let (mut supports, mut changes, mut outs) = (Vec::new(), Vec::new(), Vec::new());
    for task in tasks {
        match task {
            Image::Support(task) => supports.push(task),
            Image::Change(ByChange { change, out }) => {
                changes.push(change);
                outs.push(out);
            }
        }
    }
    if !changes.is_empty() {
        // Kernel by kernel: one task after the other finds rows in the cache.
        let outs = outs_by_kernel(outs.into_iter(), operator.kernels());
        outs.into_par_iter().enumerate().for_each(|(kernel, outs)| {
            for (change, out) in changes.iter().zip(outs) {
                operator.add_rows(view, kernel, change, out);
            }
        });
    }
    supports
}

/// The samples that belong to the support of one of these tasks, in ascending order, as places in the view and as rows of the set.
pub(super) fn used(tasks: &[OnSupport<'_>], view: &View, count: usize) -> (Vec<usize>, Vec<usize>) {
    let mut is_used = vec![false; count];
    for task in tasks {
        for &i in task.support {
            is_used[i] = true;
        }
    }
    let used: Vec<usize> = (0..count).filter(|&i| is_used[i]).collect();
    let positions = used.iter().map(|&i| view.position(i)).collect();
    (used, positions)
}

/// Where results go, one after the other.
pub(super) type Outs<'a> = Vec<&'a mut [f64]>;

/// What each kernel is to write, task by task, from what each task asks for, kernel by kernel.
pub(super) fn outs_by_kernel<'a>(
    outs: impl Iterator<Item = Outs<'a>>,
    kernels: usize,
) -> Vec<Outs<'a>> {
    let mut by_kernel: Vec<Outs<'a>> = std::iter::repeat_with(Vec::new).take(kernels).collect();
    for task in outs {
        for (kernel, out) in by_kernel.iter_mut().zip(task) {
            kernel.push(out);
        }
    }
    by_kernel
}

/// β of one task on the samples that matrices are read for.
#[derive(Debug)]
pub(super) struct Factor {
    beta: Vec<f64>,
    /// Whether the product is wanted there; where it is not, β is zero.
    is_wanted: Vec<bool>,
    /// Where the task's support is.
    places: Vec<usize>,
}

impl Factor {
    /// On these samples, in ascending order, the support among them.
    pub(super) fn new(task: &OnSupport<'_>, samples: &[usize]) -> Self {
        let mut is_wanted = vec![false; samples.len()];
        let mut places = Vec::with_capacity(task.support.len());
        let mut wanted = task.support.iter().peekable();
        for (place, i) in samples.iter().enumerate() {
            if wanted.next_if_eq(&i).is_some() {
                is_wanted[place] = true;
                places.push(place);
            }
        }
        Self {
            beta: samples.iter().map(|&i| task.beta[i]).collect(),
            is_wanted,
            places,
        }
    }
}

/// Kβ of all tasks, as it is added up: rows are those of the lower triangle of K.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    factors: &'a [Factor],
    products: Vec<Vec<f64>>,
}

/// Rows that are added at a time.
const FOUR: usize = 4;
/// Rows that one task after the other takes from: they stay in the cache meanwhile.
const BLOCK: usize = 32;

impl<'a> Sums<'a> {
    pub(super) fn new(factors: &'a [Factor]) -> Self {
        let products = factors
            .iter()
            .map(|factor| vec![0.0; factor.beta.len()])
            .collect();
        Self { factors, products }
    }

    /// Takes in K(row, from..from + values), up to the diagonal at most.
    pub(super) fn add(&mut self, row: usize, from: usize, values: &[f64]) {
        for (factor, product) in self.factors.iter().zip(&mut self.products) {
            if factor.is_wanted[row] {
                add_part(factor, product, row, from, values);
            }
        }
    }

    /// The products where they are wanted, task by task.
    pub(super) fn write(&self, outs: &mut [&mut [f64]]) {
        for ((factor, product), out) in self.factors.iter().zip(&self.products).zip(outs) {
            for (value, &place) in out.iter_mut().zip(&factor.places) {
                *value = product[place];
            }
        }
    }

    /// Takes in some rows up to the diagonal, in ascending order.
    fn add_block(&mut self, at: &[usize], rows: &[&[f64]]) {
        for (factor, product) in self.factors.iter().zip(&mut self.products) {
            let pairs = at.iter().copied().zip(rows.iter().copied());
            let wanted: Vec<(usize, &[f64])> =
                pairs.filter(|(row, _)| factor.is_wanted[*row]).collect();
            let (fours, rest) = wanted.as_chunks::<FOUR>();
            for four in fours {
                let common = four[0].0;
                let heads = four.map(|(_, values)| &values[..common]);
                let weights = four.map(|(row, _)| factor.beta[row]);
                let beta = &factor.beta[..common];
                let sums = vector::fold_rows(heads, beta, weights, &mut product[..common]);
                for ((row, values), sum) in four.iter().zip(sums) {
                    product[*row] += sum;
                    add_part(factor, product, *row, common, &values[common..]);
                }
            }
            for (row, values) in rest {
                add_part(factor, product, *row, 0, values);
            }
        }
    }
}

fn add_part(factor: &Factor, product: &mut [f64], row: usize, from: usize, values: &[f64]) {
    // The entry on the diagonal counts once.
    let others = row.min(from + values.len()) - from;
    let range = from..from + others;
    let own = factor.beta[row];
    let [mut sum] = vector::fold_rows(
        [&values[..others]],
        &factor.beta[range.clone()],
        [own],
        &mut product[range],
    );
    if let Some(&diagonal) = values.get(others) {
        sum += own * diagonal;
    }
    product[row] += sum;
}

/// Takes in the rows of an n × n matrix that are used, as they lie there.
pub(super) fn add_rows(sums: &mut Sums<'_>, matrix: &[f64], n: usize, used: &[usize]) {
    for at in used.chunks(BLOCK) {
        let rows: Vec<&[f64]> = at.iter().map(|i| &matrix[i * n..=i * n + i]).collect();
        sums.add_block(at, &rows);
    }
}

/// The same in single precision.
pub(super) fn add_single(sums: &mut Sums<'_>, matrix: &[f32], n: usize, used: &[usize]) {
    // In double precision they take more room than the cache has for a whole block.
    const SOME: usize = BLOCK / 4;
    let mut wide = vec![0.0; SOME * n];
    for at in used.chunks(SOME) {
        for (out, &i) in wide.chunks_exact_mut(n).zip(at) {
            vector::widen(&matrix[i * n..=i * n + i], &mut out[..=i]);
        }
        let wide = wide.chunks_exact(n).zip(at);
        let rows: Vec<&[f64]> = wide.map(|(row, &i)| &row[..=i]).collect();
        sums.add_block(at, &rows);
    }
}

/// Takes in the entries of an n × n matrix that are used, picked out of their rows.
pub(super) fn add_picked<T: Copy + Into<f64>>(
    sums: &mut Sums<'_>,
    matrix: &[T],
    n: usize,
    used: &[usize],
) {
    let mut row = Vec::with_capacity(used.len());
    for (at, &i) in used.iter().enumerate() {
        let values = &matrix[i * n..(i + 1) * n];
        row.clear();
        row.extend(used[..=at].iter().map(|&j| values[j].into()));
        sums.add(at, 0, &row);
    }
}
