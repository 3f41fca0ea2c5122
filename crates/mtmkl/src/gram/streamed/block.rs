//! Kernel values between a block of rows and a chunk of others: one matrix product for each base, then each kernel's map while it is in the
//! cache.
//!
//! ‖x − z‖² comes from the products x'z that other kernels need anyway, where the rows lie around the origin. And of exponentials of one base,
//! e^(−4γs) is (e^(−γs))⁴: of eight Gaussians, each twice as wide as the next, two exponentials are computed.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::map::Map;
use super::super::mapped::Made;
use super::super::normaliser::Normaliser;
use super::Streamed;
use crate::data::Samples;
use crate::kernel::Statistic;
use crate::kernel::base::Arranged;
use crate::vector;

/// Rows of a block, and the samples that they are compared with: 512 KiB of base values, which a core's own cache holds.
pub(super) const ROWS: usize = 128;
const OTHERS: usize = 512;

/// A statistic of some columns, all where there is no choice.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) statistic: Arc<dyn Statistic>,
    pub(super) columns: Option<Vec<usize>>,
    /// The source of x'z of the same columns, where that serves.
    pub(super) products: Option<usize>,
}

/// Kernels with one base.
pub(super) struct Group<'a> {
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
pub(super) struct Chunk {
    /// Their places among all that are compared with.
    pub(super) range: Range<usize>,
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
pub(super) struct Block<'a> {
    positions: &'a [usize],
    /// Group by group.
    rows: Vec<Vec<f64>>,
    squares: Vec<Vec<f64>>,
}

/// Buffers of one thread.
#[derive(Default)]
pub(super) struct Scratch {
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

    pub(super) fn width(&self, samples: &Samples) -> usize {
        self.columns
            .as_ref()
            .map_or(samples.columns().len(), Vec::len)
    }

    /// Whether the rows' mean is no farther from the origin than rows are from their mean: then ‖x‖² + ‖z‖² − 2x'z loses no digits worth
    /// moving the rows for.
    pub(super) fn is_centred(&self, samples: &Samples) -> bool {
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
    pub(super) fn own(&self, samples: &Samples) -> Vec<f64> {
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
    /// These kernels by their bases; the slot of each is its place here.
    pub(super) fn groups(&self, kernels: impl Iterator<Item = usize>) -> Vec<Group<'_>> {
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
    pub(super) fn chunks(&self, groups: &[Group<'_>], positions: &[usize]) -> Vec<Chunk> {
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
    pub(super) fn block<'b>(&self, groups: &[Group<'_>], positions: &'b [usize]) -> Block<'b> {
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

    /// Calls `visit(slot, row, factor, values)`: the values of each kernel between a row of the block and the samples of a chunk, but for a
    /// factor.
    pub(super) fn visit(
        groups: &[Group<'_>],
        block: &Block<'_>,
        chunk: &Chunk,
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, usize, f64, &[f64]),
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
                        statistic.of_products(square, &seen.squares, &mut own);
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
                        How::Exponential { gamma, .. } => {
                            vector::map_exp_from(base, power, move |s| (-gamma * s, 1.0));
                        }
                        How::Power { times, .. } => vector::square_times(times, power),
                    }
                    let factor = match member.how {
                        How::Map => 1.0,
                        How::Exponential { factor, .. } | How::Power { factor, .. } => {
                            if scales.is_none() {
                                visit(member.slot, row, factor, power);
                                continue;
                            }
                            values.copy_from_slice(power);
                            factor
                        }
                    };
                    if let Some(scales) = scales {
                        let normaliser = member.map.normaliser();
                        vector::scale_by(factor * normaliser.scale_of(at), scales, values);
                        if let Some(itself) = itself {
                            values[itself] = Normaliser::own(scales[itself]);
                        }
                    }
                    visit(member.slot, row, 1.0, values);
                }
            }
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
