//! Gram matrices that are never there: blocks of kernel values are made from rows, used at once and forgotten.
//!
//! Memory is that of the rows. What is asked for is paid for in pairs of samples: U_m = K_mβ of all kernels and all tasks for a change of some β
//! in one sweep over all rows, K(θ) on a part of the samples in half of its pairs. The pairs themselves are `block.rs`.

mod block;
mod product;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::map::{Map, first_overflow};
use super::mapped::Made;
use super::operator::{ByChange, Image, Operator};
use super::pairs::mirror;
use super::plan::{SameBase, by_statistic};
use super::values::Precision;
use crate::data::Samples;
use crate::error::Result;
use crate::kernel::KernelView;
use crate::kernel::base::{InnerProduct, NARROW, Statistic};
use crate::ledger::{Buffer, Ledger, bytes_of};
use crate::run::Stop;
use crate::vector::{self, MOST_POWERS};
use crate::view::View;
use block::{Chain, ROWS, Scratch, Source, Visitor};

/// So few rows are looked at one by one.
const FEW: usize = 16;

/// M kernels on rows.
#[derive(Debug)]
pub(super) struct Streamed {
    samples: Samples,
    bases: Vec<Source>,
    kernels: Vec<Made>,
    /// Kernel by kernel.
    diagonals: Buffer<f64>,
    ledger: Ledger,
}

impl Streamed {
    /// Of kernels that are all computed from rows by a statistic. The error is the first kernel with a value that is not finite: where k is
    /// positive semi-definite, none is larger than those on the diagonal.
    pub(super) fn new(
        samples: &Samples,
        kernels: &[KernelView],
        normalise: bool,
        ledger: &Ledger,
    ) -> Result<std::result::Result<Self, (usize, f64)>> {
        let groups = by_statistic(samples.columns(), kernels, 0..kernels.len())?;
        let mut bases = Vec::with_capacity(groups.len());
        let mut made: Vec<Option<Made>> = vec![None; kernels.len()];
        for SameBase {
            statistic,
            columns,
            members,
            ..
        } in groups
        {
            let source = Source {
                statistic,
                columns,
                products: None,
            };
            let own = source.own(samples);
            for number in members {
                let map = Map::new(&kernels[number].kernel, &own, normalise);
                made[number] = Some(Made {
                    base: bases.len(),
                    map,
                });
            }
            bases.push(source);
        }
        let product = InnerProduct.key();
        for number in 0..bases.len() {
            let columns = &bases[number].columns;
            let is_product =
                |other: &Source| other.statistic.key() == product && other.columns == *columns;
            let is_served = bases[number].statistic.of_products(0.0, &[], &mut [])
                && (samples.rows().sparse().is_some()
                    || bases[number].width(samples) > NARROW && bases[number].is_centred(samples));
            let found = bases.iter().position(is_product).filter(|_| is_served);
            bases[number].products = found;
        }
        let kernels = made.into_iter().flatten().collect();
        let streamed = Self::of(samples.clone(), bases, kernels, ledger);
        let mut diagonals = (0..streamed.kernels()).map(|kernel| streamed.diagonal(kernel));
        let overflow = diagonals.position(|diagonal| !vector::all_finite(diagonal));
        Ok(match overflow {
            Some(kernel) => Err((kernel, first_overflow(streamed.diagonal(kernel)))),
            None => Ok(streamed),
        })
    }

    fn of(samples: Samples, bases: Vec<Source>, kernels: Vec<Made>, ledger: &Ledger) -> Self {
        let n = samples.count();
        let mut diagonals: Buffer<f64> = ledger.zeros(kernels.len() * n);
        for (number, source) in bases.iter().enumerate() {
            let own = source.own(&samples);
            let diagonals = diagonals.chunks_exact_mut(n.max(1)).zip(&kernels);
            for (diagonal, made) in diagonals.filter(|(_, made)| made.base == number) {
                diagonal.copy_from_slice(&own);
                made.map.kernel_values(diagonal);
                made.map.normaliser().diagonal(diagonal);
            }
        }
        Self {
            samples,
            bases,
            kernels,
            diagonals,
            ledger: ledger.clone(),
        }
    }

    /// Bytes that stay, for so many samples and kernels.
    pub(super) fn bytes_for(samples: usize, kernels: usize) -> u64 {
        bytes_of::<f64>(samples.saturating_mul(kernels))
    }

    fn positions(&self, view: &View) -> Vec<usize> {
        view.iter(self.samples()).collect()
    }

    /// out ← Σ_(m, a) a K_m on these samples, in the precision of `out`.
    fn write<T: Precision>(
        &self,
        view: &View,
        weights: &[(usize, f64)],
        out: &mut [T],
        stop: &Stop,
    ) {
        let positions = self.positions(view);
        let n = positions.len();
        if n == 0 {
            return;
        }
        let groups = self.groups(weights.iter().map(|(kernel, _)| *kernel));
        let chunks = self.chunks(&groups, &positions);
        let blocks = out.par_chunks_mut(ROWS * n).zip(positions.par_chunks(ROWS));
        let blocks = blocks.enumerate().filter(|_| !stop.now());
        blocks.for_each_init(Scratch::default, |scratch, (number, (out, block))| {
            let until = number * ROWS + block.len();
            let block = self.block(&groups, block);
            // Up to the diagonal; the rest is the same by symmetry.
            for chunk in chunks.iter().filter(|chunk| chunk.range.start < until) {
                let mut written = Written {
                    weights,
                    sums: vec![0.0; chunk.range.len()],
                    out: &mut out[chunk.range.start..],
                    stride: n,
                };
                Self::visit(&groups, &block, chunk, scratch, &mut written);
            }
        });
        mirror(out, n);
    }

    /// Σ_(m, a) a · K_m(i, columns) for a row and columns of the set, added.
    fn add_row(&self, row: usize, columns: &[usize], weights: &[(usize, f64)], out: &mut [f64]) {
        let groups = self.groups(weights.iter().map(|(kernel, _)| *kernel));
        let row = [row];
        let block = self.block(&groups, &row);
        let mut scratch = Scratch::default();
        for chunk in self.chunks(&groups, columns) {
            let out = &mut out[chunk.range.clone()];
            let stride = out.len();
            let mut sum = Sum {
                weights,
                out,
                stride,
            };
            Self::visit(&groups, &block, &chunk, &mut scratch, &mut sum);
        }
    }
}

/// Σ_m a_m K_m between the rows of a block and a chunk, written row by row.
struct Written<'a, T> {
    /// Kernel and a_m by slot.
    weights: &'a [(usize, f64)],
    /// Of the row at hand.
    sums: Vec<f64>,
    out: &'a mut [T],
    /// From one row to the next.
    stride: usize,
}

impl<T: Precision> Visitor for Written<'_, T> {
    fn values(&mut self, slot: usize, _row: usize, values: &[f64]) {
        vector::axpy(self.weights[slot].1, values, &mut self.sums);
    }

    fn powers(&mut self, chain: &Chain, _row: usize, s: &[f64]) {
        let factors = factors(chain, self.weights);
        chain.powers.add(s, &factors, &mut self.sums);
    }

    fn end(&mut self, row: usize) {
        let out = &mut self.out[row * self.stride..];
        T::round(&self.sums, &mut out[..self.sums.len()]);
        self.sums.fill(0.0);
    }
}

/// a_m c_m of the kernels of a chain.
fn factors(chain: &Chain, weights: &[(usize, f64)]) -> [f64; MOST_POWERS] {
    let mut factors = [0.0; MOST_POWERS];
    for (a, &(slot, factor)) in factors.iter_mut().zip(&chain.members) {
        *a = factor * weights[slot].1;
    }
    factors
}

/// Σ_m a_m K_m between the rows of a block and a chunk, added.
struct Sum<'a> {
    /// Kernel and a_m by slot.
    weights: &'a [(usize, f64)],
    out: &'a mut [f64],
    /// From one row to the next.
    stride: usize,
}

impl Visitor for Sum<'_> {
    fn values(&mut self, slot: usize, row: usize, values: &[f64]) {
        let out = &mut self.out[row * self.stride..];
        vector::axpy(self.weights[slot].1, values, &mut out[..values.len()]);
    }

    fn powers(&mut self, chain: &Chain, row: usize, s: &[f64]) {
        let out = &mut self.out[row * self.stride..];
        let factors = factors(chain, self.weights);
        chain.powers.add(s, &factors, &mut out[..s.len()]);
    }
}

/// K_m v of each kernel for the part of v that a chunk has, task by task, added.
struct Products<'a, 'b> {
    /// Those with something in the chunk, and v there.
    tasks: &'a [(usize, &'a [f64])],
    /// Task by task and kernel by kernel, the rows of a block.
    outs: &'a mut [Vec<&'b mut [f64]>],
    /// Where several tasks want the same.
    powers: Vec<f64>,
}

impl Visitor for Products<'_, '_> {
    fn values(&mut self, slot: usize, row: usize, values: &[f64]) {
        for &(task, v) in self.tasks {
            self.outs[task][slot][row] += vector::dot(v, values);
        }
    }

    fn powers(&mut self, chain: &Chain, row: usize, s: &[f64]) {
        if let [(task, v)] = self.tasks {
            let products = chain.powers.dot(s, v);
            for (product, &(slot, factor)) in products.iter().zip(&chain.members) {
                self.outs[*task][slot][row] += factor * product;
            }
            return;
        }
        self.powers.resize(chain.powers.len() * s.len(), 0.0);
        chain.powers.write(s, &mut self.powers);
        for (values, &(slot, factor)) in self.powers.chunks_exact(s.len()).zip(&chain.members) {
            for &(task, v) in self.tasks {
                self.outs[task][slot][row] += factor * vector::dot(v, values);
            }
        }
    }
}

/// Changes of β of several tasks, on all samples that one of them changes at.
struct Changes {
    /// Places in the view, ascending.
    places: Vec<usize>,
    /// Task by task, one number for each place.
    values: Vec<Vec<f64>>,
}

impl Changes {
    fn new(tasks: &[ByChange<'_>], count: usize) -> Self {
        let mut place = vec![usize::MAX; count];
        for (i, _) in tasks.iter().flat_map(|task| &task.change) {
            place[*i] = 0;
        }
        let places: Vec<usize> = (0..count).filter(|&i| place[i] == 0).collect();
        for (at, &i) in places.iter().enumerate() {
            place[i] = at;
        }
        let values = tasks.iter().map(|task| {
            let mut values = vec![0.0; places.len()];
            for &(i, change) in &task.change {
                values[place[i]] += change;
            }
            values
        });
        Self {
            values: values.collect(),
            places,
        }
    }

    /// The tasks that change within this range, with their changes there.
    fn within(&self, range: &Range<usize>) -> Vec<(usize, &[f64])> {
        let tasks = self.values.iter().enumerate();
        tasks
            .map(|(task, values)| (task, &values[range.clone()]))
            .filter(|(_, values)| values.iter().any(|value| *value != 0.0))
            .collect()
    }
}

/// What each block of rows is to write: task by task, kernel by kernel.
fn by_block(tasks: Vec<ByChange<'_>>, count: usize) -> Vec<Vec<Vec<&mut [f64]>>> {
    let mut blocks: Vec<Vec<Vec<&mut [f64]>>> = std::iter::repeat_with(Vec::new)
        .take(count.div_ceil(ROWS))
        .collect();
    for task in tasks {
        for block in &mut blocks {
            block.push(Vec::with_capacity(task.out.len()));
        }
        for out in task.out {
            for (block, part) in blocks.iter_mut().zip(out.chunks_mut(ROWS)) {
                if let Some(own) = block.last_mut() {
                    own.push(part);
                }
            }
        }
    }
    blocks
}

impl Operator for Streamed {
    fn samples(&self) -> usize {
        self.samples.count()
    }

    fn kernels(&self) -> usize {
        self.kernels.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        let n = self.samples();
        &self.diagonals[kernel * n..(kernel + 1) * n]
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn are_made(&self) -> bool {
        true
    }

    fn is_streamed(&self) -> bool {
        true
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        if rows.len() < FEW {
            let positions = self.positions(view);
            for &(i, a) in rows {
                self.add_row(view.position(i), &positions, &[(kernel, a)], out);
            }
            return;
        }
        let groups = self.groups(std::iter::once(kernel));
        let others: Vec<usize> = rows.iter().map(|(i, _)| view.position(*i)).collect();
        let weights: Vec<f64> = rows.iter().map(|(_, a)| *a).collect();
        let chunks = self.chunks(&groups, &others);
        let mut scratch = Scratch::default();
        let positions = self.positions(view);
        for (block, out) in positions.chunks(ROWS).zip(out.chunks_mut(ROWS)) {
            let block = self.block(&groups, block);
            for chunk in &chunks {
                let mut products = Products {
                    tasks: &[(0, &weights[chunk.range.clone()])],
                    outs: &mut [vec![&mut *out]],
                    powers: Vec::new(),
                };
                Self::visit(&groups, &block, chunk, &mut scratch, &mut products);
            }
        }
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        self.add_row(view.position(i), &self.positions(view), weights, out);
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
        let columns: Vec<usize> = columns.iter().map(|&j| view.position(j)).collect();
        self.add_row(view.position(i), &columns, weights, out);
    }

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], stop: &Stop) {
        self.write(view, weights, out, stop);
    }

    fn combine_rounded(&self, view: &View, weights: &[(usize, f64)], out: &mut [f32], stop: &Stop) {
        self.write(view, weights, out, stop);
    }

    fn multiply(&self, view: &View, weights: &[(usize, f64)], v: &[f64], stop: &Stop) -> Vec<f64> {
        self.product(&self.positions(view), weights, v, stop)
    }

    fn images(&self, view: &View, tasks: Vec<Image<'_>>) {
        for task in tasks {
            match task {
                Image::Change(change) => {
                    self.sweep(view, vec![change], &Stop::never());
                }
                Image::Support(mut task) => {
                    let view = view.then(&View::of(task.support));
                    for out in &mut task.out {
                        out.fill(0.0);
                    }
                    let change = ByChange {
                        change: task
                            .support
                            .iter()
                            .map(|&i| task.beta[i])
                            .enumerate()
                            .collect(),
                        out: task.out,
                    };
                    self.sweep(&view, vec![change], &Stop::never());
                }
            }
        }
    }

    fn sweep(&self, view: &View, tasks: Vec<ByChange<'_>>, stop: &Stop) -> Option<u64> {
        let positions = self.positions(view);
        let changes = Changes::new(&tasks, positions.len());
        let groups = self.groups(0..self.kernels());
        let others: Vec<usize> = changes.places.iter().map(|&i| positions[i]).collect();
        let chunks = self.chunks(&groups, &others);
        let within: Vec<Vec<(usize, &[f64])>> = (chunks.iter())
            .map(|chunk| changes.within(&chunk.range))
            .collect();
        let is_stopped = AtomicBool::new(false);
        let blocks = positions.par_chunks(ROWS);
        blocks.zip(by_block(tasks, positions.len())).for_each_init(
            Scratch::default,
            |scratch, (block, mut outs)| {
                let block = self.block(&groups, block);
                for (chunk, tasks) in chunks.iter().zip(&within) {
                    if is_stopped.load(Ordering::Relaxed) || stop.now() {
                        is_stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                    let mut products = Products {
                        tasks,
                        outs: &mut outs,
                        powers: Vec::new(),
                    };
                    Self::visit(&groups, &block, chunk, scratch, &mut products);
                }
            },
        );
        let pairs = positions.len() as u64 * others.len() as u64;
        (!is_stopped.into_inner()).then_some(pairs)
    }

    fn bytes(&self) -> u64 {
        self.diagonals.bytes()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let samples = match view {
            View::All => self.samples.clone(),
            View::Rows(rows) => self.samples.part(rows),
        };
        let kernels = kernels.iter().map(|&kernel| {
            let Made { base, map } = &self.kernels[kernel];
            Made {
                base: *base,
                map: map.subset(view),
            }
        });
        let part = Self::of(samples, self.bases.clone(), kernels.collect(), &self.ledger);
        Some(Arc::new(part))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        let rows = self.samples.bytes_of_rows(samples);
        rows.saturating_add(Self::bytes_for(samples, kernels.len()))
    }
}
