//! Gram matrices that are never there: blocks of kernel values are made from rows, used at once and forgotten.
//!
//! Kernels with the same base statistic on the same columns share a block of base values, one matrix product that stays in the cache while
//! each kernel maps it. Memory is that of the rows. What is asked for is paid for in pairs of samples: U_m = K_mβ of all kernels and all tasks
//! for a change of some β in one sweep over all rows, K(θ) on a part of the samples in half of its pairs.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::map::{Map, first_overflow};
use super::mapped::Made;
use super::normaliser::Normaliser;
use super::operator::{ByChange, Image, Operator};
use super::pairs::mirror;
use super::plan::{SameBase, by_statistic};
use crate::data::Samples;
use crate::error::Result;
use crate::kernel::base::{Arranged, InnerProduct, NARROW};
use crate::kernel::{KernelView, Statistic};
use crate::ledger::{Buffer, Ledger, bytes_of};
use crate::run::Stop;
use crate::vector;
use crate::view::View;

/// Rows of a block, and the samples that they are compared with: 512 KiB of base values, which a core's own cache holds.
const ROWS: usize = 128;
const OTHERS: usize = 512;
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

/// A statistic of some columns, all where there is no choice.
#[derive(Debug, Clone)]
struct Source {
    statistic: Arc<dyn Statistic>,
    columns: Option<Vec<usize>>,
    /// The source of x'z of the same columns, where that serves.
    products: Option<usize>,
}

/// Kernels with one base.
struct Group<'a> {
    source: &'a Source,
    members: Vec<Member<'a>>,
    /// The group whose base is x'z of the same columns, where this base comes from it.
    products: Option<usize>,
}

/// One kernel of a group; who asks knows it by its slot.
struct Member<'a> {
    slot: usize,
    map: &'a Map,
    how: How,
}

/// How a kernel's values come about.
#[derive(Clone, Copy)]
enum How {
    /// By its map of base values.
    Map,
    /// c exp(−γ s).
    Exponential { factor: f64, gamma: f64 },
    /// c e^(2^times), e being what the exponential before it had become.
    Power { factor: f64, times: u32 },
}

/// A power of an exponential has so much more rounding: with 2⁶ about as much as the sum of a thousand terms.
const MOST_SQUARINGS: u32 = 6;

/// Samples that others are compared with.
struct Chunk {
    /// Their places among all that are compared with.
    range: Range<usize>,
    /// Rows of the set.
    positions: Vec<usize>,
    /// The positions in ascending order, each with its place in the chunk.
    sorted: Vec<(usize, usize)>,
    /// Group by group.
    groups: Vec<Seen>,
}

/// Samples as a group sees them.
struct Seen {
    arranged: Option<Arranged<'static>>,
    /// x'x, where the base comes from products.
    squares: Vec<f64>,
    /// What normalises each member, where something does.
    scales: Vec<Option<Vec<f64>>>,
}

/// The rows of a block.
struct Block<'a> {
    positions: &'a [usize],
    /// Group by group.
    rows: Vec<Vec<f64>>,
    squares: Vec<Vec<f64>>,
}

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    /// Base values of groups, one after the other.
    bases: Vec<Vec<f64>>,
    values: Vec<f64>,
    /// The exponential that powers are made of.
    power: Vec<f64>,
}

impl Source {
    /// The columns of these rows, one after the other.
    fn gather(&self, samples: &Samples, positions: &[usize]) -> Vec<f64> {
        let rows = samples.rows();
        match &self.columns {
            None => positions
                .iter()
                .flat_map(|&at| rows.row(at))
                .copied()
                .collect(),
            Some(columns) => {
                let of_row = |&at: &usize| columns.iter().map(move |&column| rows.row(at)[column]);
                positions.iter().flat_map(of_row).collect()
            }
        }
    }

    fn arranged(&self, samples: &Samples, positions: &[usize]) -> Arranged<'static> {
        let width = self.width(samples);
        let rows = Cow::Owned(self.gather(samples, positions));
        Arranged::new(rows, width, self.statistic.arrangement(width))
    }

    fn width(&self, samples: &Samples) -> usize {
        self.columns
            .as_ref()
            .map_or(samples.columns().len(), Vec::len)
    }

    /// Whether the rows' mean is no farther from the origin than rows are from their mean: then ‖x‖² + ‖z‖² − 2x'z loses no digits worth
    /// moving the rows for.
    fn is_centred(&self, samples: &Samples) -> bool {
        let (n, width) = (samples.count(), self.width(samples));
        let mut means = vec![0.0; width];
        let mut square = 0.0;
        for at in 0..n {
            let row = self.gather(samples, &[at]);
            vector::axpy(1.0 / n as f64, &row, &mut means);
            square += vector::dot(&row, &row) / n as f64;
        }
        2.0 * vector::dot(&means, &means) <= square
    }

    /// s(x, x) of all samples.
    fn own(&self, samples: &Samples) -> Vec<f64> {
        if self.statistic.is_distance() {
            return vec![0.0; samples.count()];
        }
        let own = |at: usize| {
            let row = self.gather(samples, &[at]);
            self.statistic.value(&row, &row)
        };
        (0..samples.count()).into_par_iter().map(own).collect()
    }
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
            let is_served = bases[number].statistic.from_products(0.0, &[], &mut [])
                && bases[number].width(samples) > NARROW
                && bases[number].is_centred(samples);
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

    /// These kernels by their bases; the slot of each is its place here.
    fn groups(&self, kernels: impl Iterator<Item = usize>) -> Vec<Group<'_>> {
        let mut members: Vec<Vec<Member<'_>>> = self.bases.iter().map(|_| Vec::new()).collect();
        for (slot, kernel) in kernels.enumerate() {
            let Made { base, map } = &self.kernels[kernel];
            let how = match map.exponential() {
                Some((factor, gamma)) => How::Exponential { factor, gamma },
                None => How::Map,
            };
            members[*base].push(Member { slot, map, how });
        }
        let mut place = vec![None; self.bases.len()];
        let mut groups: Vec<Group<'_>> = Vec::new();
        for (number, mut members) in members.into_iter().enumerate() {
            if members.is_empty() {
                continue;
            }
            chain(&mut members);
            place[number] = Some(groups.len());
            groups.push(Group {
                source: &self.bases[number],
                members,
                products: None,
            });
        }
        for group in &mut groups {
            group.products = group.source.products.and_then(|number| place[number]);
        }
        groups
    }

    /// These samples as a group sees them.
    fn seen(&self, group: &Group<'_>, positions: &[usize]) -> Seen {
        let scales = group.members.iter();
        Seen {
            arranged: (group.products.is_none())
                .then(|| group.source.arranged(&self.samples, positions)),
            squares: self.squares(group, positions),
            scales: scales
                .map(|member| member.map.normaliser().of(positions))
                .collect(),
        }
    }

    fn squares(&self, group: &Group<'_>, positions: &[usize]) -> Vec<f64> {
        if group.products.is_none() {
            return Vec::new();
        }
        let width = group.source.width(&self.samples).max(1);
        let rows = group.source.gather(&self.samples, positions);
        rows.chunks_exact(width)
            .map(|row| vector::dot(row, row))
            .collect()
    }

    /// These samples, in chunks.
    fn chunks(&self, groups: &[Group<'_>], positions: &[usize]) -> Vec<Chunk> {
        let chunk = |(number, positions): (usize, &[usize])| {
            let mut sorted: Vec<(usize, usize)> = positions.iter().copied().zip(0..).collect();
            sorted.sort_unstable();
            let groups = groups.iter().map(|group| self.seen(group, positions));
            Chunk {
                range: number * OTHERS..number * OTHERS + positions.len(),
                positions: positions.to_vec(),
                sorted,
                groups: groups.collect(),
            }
        };
        let chunks = positions.chunks(OTHERS).enumerate();
        chunks.map(chunk).collect()
    }

    /// The rows of a block as each group sees them.
    fn block<'b>(&self, groups: &[Group<'_>], positions: &'b [usize]) -> Block<'b> {
        let rows = groups.iter().map(|group| match group.products {
            Some(_) => Vec::new(),
            None => group.source.gather(&self.samples, positions),
        });
        let squares = groups.iter().map(|group| self.squares(group, positions));
        Block {
            positions,
            rows: rows.collect(),
            squares: squares.collect(),
        }
    }

    /// Calls `visit(slot, row, values)` with the values of each kernel between a row of the block and the samples of a chunk.
    fn visit(
        groups: &[Group<'_>],
        block: &Block<'_>,
        chunk: &Chunk,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, usize, &[f64]),
    ) {
        let count = chunk.positions.len();
        scratch.bases.resize_with(groups.len(), Vec::new);
        scratch.values.resize(count, 0.0);
        scratch.power.resize(count, 0.0);
        for (number, group) in groups.iter().enumerate() {
            let (seen, base) = (&chunk.groups[number], &mut scratch.bases[number]);
            if let Some(others) = &seen.arranged {
                base.resize(block.positions.len() * count, 0.0);
                let statistic = group.source.statistic.as_ref();
                statistic.block(&block.rows[number], others, count, base, count);
            }
        }
        let Scratch {
            bases,
            values,
            power,
        } = scratch;
        let mut own = vec![0.0; count];
        for (row, &at) in block.positions.iter().enumerate() {
            let found = chunk.sorted.binary_search_by_key(&at, |(other, _)| *other);
            let itself = found.ok().map(|found| chunk.sorted[found].1);
            let range = row * count..(row + 1) * count;
            for (number, group) in groups.iter().enumerate() {
                let seen = &chunk.groups[number];
                let statistic = group.source.statistic.as_ref();
                let from = group.products.unwrap_or(number);
                let mut base = &bases[from][range.clone()];
                if group.products.is_some() || itself.is_some() && statistic.is_distance() {
                    own.copy_from_slice(base);
                    if group.products.is_some() {
                        let square = block.squares[number][row];
                        statistic.from_products(square, &seen.squares, &mut own);
                    }
                    if let Some(itself) = itself.filter(|_| statistic.is_distance()) {
                        // A sample is at no distance from itself, whatever rounding says.
                        own[itself] = 0.0;
                    }
                    base = &own;
                }
                for (member, scales) in group.members.iter().zip(&seen.scales) {
                    match member.how {
                        How::Map => member.map.kernel_values_from(base, values),
                        How::Exponential { factor, gamma } => {
                            vector::map_exp_from(base, power, move |s| (-gamma * s, 1.0));
                            vector::square_times(0, factor, power, values);
                        }
                        How::Power { factor, times } => {
                            vector::square_times(times, factor, power, values);
                        }
                    }
                    if let Some(scales) = scales {
                        let normaliser = member.map.normaliser();
                        vector::scale_by(normaliser.scale_of(at), scales, values);
                        if let Some(itself) = itself {
                            values[itself] = Normaliser::own(scales[itself]);
                        }
                    }
                    visit(member.slot, row, values);
                }
            }
        }
    }

    fn positions(&self, view: &View) -> Vec<usize> {
        view.iter(self.samples()).collect()
    }

    /// Σ_(m, a) a · K_m(i, columns) for a row and columns of the set, added.
    fn add_row(&self, row: usize, columns: &[usize], weights: &[(usize, f64)], out: &mut [f64]) {
        let groups = self.groups(weights.iter().map(|(kernel, _)| *kernel));
        let row = [row];
        let block = self.block(&groups, &row);
        let mut scratch = Scratch::default();
        for chunk in self.chunks(&groups, columns) {
            let out = &mut out[chunk.range.clone()];
            Self::visit(&groups, &block, &chunk, &mut scratch, |slot, _, values| {
                vector::axpy(weights[slot].1, values, out)
            });
        }
    }
}

/// Of exponentials with one base, those whose γ is a power of two times another's are powers of it; the flattest first.
fn chain(members: &mut [Member<'_>]) {
    let gamma = |member: &Member<'_>| match member.how {
        How::Exponential { gamma, .. } => gamma,
        _ => f64::NEG_INFINITY,
    };
    members.sort_by(|a, b| gamma(a).total_cmp(&gamma(b)));
    let (mut last, mut squarings) = (0.0, 0);
    for member in members {
        let How::Exponential { factor, gamma } = member.how else {
            continue;
        };
        let times = (gamma / last).log2();
        let rounded = times.round();
        let is_power = (times - rounded).abs() < 1e-12
            && (0.0..=f64::from(MOST_SQUARINGS - squarings)).contains(&rounded);
        if is_power {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a small whole number"
            )]
            let times = rounded as u32;
            squarings += times;
            member.how = How::Power { factor, times };
        } else {
            squarings = 0;
        }
        last = gamma;
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
fn by_block<'a>(tasks: Vec<ByChange<'a>>, count: usize) -> Vec<Vec<Vec<&'a mut [f64]>>> {
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
                let weights = &weights[chunk.range.clone()];
                Self::visit(&groups, &block, chunk, &mut scratch, |_, row, values| {
                    out[row] += vector::dot(weights, values);
                });
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

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64]) {
        let positions = self.positions(view);
        let n = positions.len();
        if n == 0 {
            return;
        }
        let groups = self.groups(weights.iter().map(|(kernel, _)| *kernel));
        let chunks = self.chunks(&groups, &positions);
        let blocks = out.par_chunks_mut(ROWS * n).zip(positions.par_chunks(ROWS));
        blocks.enumerate().for_each(|(number, (out, block))| {
            let until = number * ROWS + block.len();
            let block = self.block(&groups, block);
            let mut scratch = Scratch::default();
            // Up to the diagonal; the rest is the same by symmetry.
            for chunk in chunks.iter().filter(|chunk| chunk.range.start < until) {
                Self::visit(&groups, &block, chunk, &mut scratch, |slot, row, values| {
                    let out = &mut out[row * n..(row + 1) * n][chunk.range.clone()];
                    vector::axpy(weights[slot].1, values, out);
                });
            }
        });
        mirror(out, n);
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

    fn sweep(&self, view: &View, tasks: Vec<ByChange<'_>>, stop: &Stop) -> bool {
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
        blocks
            .zip(by_block(tasks, positions.len()))
            .for_each(|(block, mut outs)| {
                let block = self.block(&groups, block);
                let mut scratch = Scratch::default();
                for (chunk, tasks) in chunks.iter().zip(&within) {
                    if is_stopped.load(Ordering::Relaxed) || stop.now() {
                        is_stopped.store(true, Ordering::Relaxed);
                        return;
                    }
                    Self::visit(
                        &groups,
                        &block,
                        chunk,
                        &mut scratch,
                        |kernel, row, values| {
                            for &(task, change) in tasks {
                                outs[task][kernel][row] += vector::dot(change, values);
                            }
                        },
                    );
                }
            });
        !is_stopped.into_inner()
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
        let rows = bytes_of::<f64>(samples.saturating_mul(self.samples.columns().len()));
        rows.saturating_add(Self::bytes_for(samples, kernels.len()))
    }
}
