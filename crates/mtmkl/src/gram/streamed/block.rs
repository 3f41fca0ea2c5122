//! Kernel values between a block of rows and a chunk of others: one matrix product for each base, then each kernel's map while it is in the
//! cache.
//!
//! ‖x − z‖² comes from the products x'z that other kernels need anyway, where the rows lie around the origin. And of exponentials of one base,
//! e^(−4γs) is (e^(−γs))⁴: of eight Gaussians, each twice as wide as the next, two exponentials are computed, and used where they are made.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::super::map::Map;
use super::super::mapped::Made;
use super::super::normaliser::Normaliser;
use super::super::pairs::{Compared, Packed};
use super::super::sparse::Held;
use super::Streamed;
use crate::data::Samples;
use crate::kernel::Statistic;
use crate::kernel::base::InnerProduct;
use crate::vector::{self, MOST_POWERS, Powers};

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

/// Kernels with one base; who asks knows each by its slot.
pub(super) struct Group<'a> {
    source: &'a Source,
    /// By their maps.
    singles: Vec<Single<'a>>,
    chains: Vec<Chain>,
    /// The group whose base is x'z of the same columns, where this base comes from it.
    products: Option<usize>,
}

/// A kernel whose values come from its map.
struct Single<'a> {
    slot: usize,
    map: &'a Map,
}

/// Kernels c e with powers e of one exponential.
pub(super) struct Chain {
    pub(super) powers: Powers,
    /// Slot and c of each.
    pub(super) members: Vec<(usize, f64)>,
}

/// A power of an exponential has so much more rounding: with 2⁶ about as much as the sum of a thousand terms.
const MOST_SQUARINGS: u32 = 6;

/// Who looks at kernel values between a row of a block and the samples of a chunk.
pub(super) trait Visitor {
    /// Those of one kernel.
    fn values(&mut self, slot: usize, row: usize, values: &[f64]);

    /// Those of several, by what they have in common; s is the base.
    fn powers(&mut self, chain: &Chain, row: usize, s: &[f64]);

    /// All values of this row were shown.
    fn end(&mut self, _row: usize) {}
}

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
    arranged: Option<Compared<'static>>,
    /// x'x, where the base comes from products.
    squares: Vec<f64>,
    /// What normalises each single kernel, where something does.
    scales: Vec<Option<Vec<f64>>>,
}

/// The rows of a block.
pub(super) struct Block<'a> {
    positions: &'a [usize],
    /// Group by group.
    rows: Vec<Option<Packed<'static>>>,
    squares: Vec<Vec<f64>>,
}

/// Buffers of one thread.
#[derive(Default)]
pub(super) struct Scratch {
    /// Base values of groups, one after the other.
    bases: Vec<Vec<f64>>,
    values: Vec<f64>,
    own: Vec<f64>,
}

impl Source {
    /// The columns of these rows.
    fn gather(&self, samples: &Samples, positions: &[usize]) -> Packed<'static> {
        let rows = samples.rows();
        if let Some(sparse) = rows.sparse() {
            let chosen = sparse.select(positions);
            return Packed::Sparse(Held::Owned(match &self.columns {
                None => chosen,
                Some(columns) => chosen.rows().view(columns),
            }));
        }
        let width = self.width(samples);
        let mut values = Vec::with_capacity(positions.len() * width);
        for &at in positions {
            let row = rows.row(at);
            match &self.columns {
                None => values.extend_from_slice(&row),
                Some(columns) => values.extend(columns.iter().map(|&column| row[column])),
            }
        }
        Packed::Dense {
            values: Cow::Owned(values),
            width,
        }
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
            let row = row.rows().row(0);
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
        let all: Vec<usize> = (0..samples.count()).collect();
        let some = all.par_chunks(ROWS);
        some.flat_map_iter(|some| self.gather(samples, some).own(self.statistic.as_ref()))
            .collect()
    }
}

impl Streamed {
    /// These kernels by their bases; the slot of each is its place here.
    pub(super) fn groups(&self, kernels: impl Iterator<Item = usize>) -> Vec<Group<'_>> {
        let mut singles: Vec<Vec<Single<'_>>> = self.bases.iter().map(|_| Vec::new()).collect();
        let mut exponentials: Vec<Vec<Exponential>> =
            self.bases.iter().map(|_| Vec::new()).collect();
        for (slot, kernel) in kernels.enumerate() {
            let Made { base, map } = &self.kernels[kernel];
            match map.exponential().filter(|_| map.normaliser().is_idle()) {
                Some((factor, gamma)) => exponentials[*base].push(Exponential {
                    slot,
                    factor,
                    gamma,
                }),
                None => singles[*base].push(Single { slot, map }),
            }
        }
        let mut place = vec![None; self.bases.len()];
        let mut groups: Vec<Group<'_>> = Vec::new();
        let members = singles.into_iter().zip(exponentials);
        for (number, (singles, exponentials)) in members.enumerate() {
            if singles.is_empty() && exponentials.is_empty() {
                continue;
            }
            place[number] = Some(groups.len());
            groups.push(Group {
                source: &self.bases[number],
                singles,
                chains: chains(exponentials),
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
        let scales = group.singles.iter();
        Seen {
            arranged: (group.products.is_none())
                .then(|| group.source.gather(&self.samples, positions))
                .map(|rows| rows.arrange(group.source.statistic.as_ref())),
            squares: self.squares(group, positions),
            scales: scales
                .map(|single| single.map.normaliser().of(positions))
                .collect(),
        }
    }

    fn squares(&self, group: &Group<'_>, positions: &[usize]) -> Vec<f64> {
        if group.products.is_none() {
            return Vec::new();
        }
        let rows = group.source.gather(&self.samples, positions);
        rows.own(&InnerProduct)
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
            Some(_) => None,
            None => Some(group.source.gather(&self.samples, positions)),
        });
        let squares = groups.iter().map(|group| self.squares(group, positions));
        Block {
            positions,
            rows: rows.collect(),
            squares: squares.collect(),
        }
    }

    /// Shows the values of all kernels between the rows of a block and the samples of a chunk.
    pub(super) fn visit(
        groups: &[Group<'_>],
        block: &Block<'_>,
        chunk: &Chunk,
        scratch: &mut Scratch,
        visitor: &mut impl Visitor,
    ) {
        let count = chunk.positions.len();
        scratch.bases.resize_with(groups.len(), Vec::new);
        scratch.values.resize(count, 0.0);
        scratch.own.resize(count, 0.0);
        for (number, group) in groups.iter().enumerate() {
            let (seen, base) = (&chunk.groups[number], &mut scratch.bases[number]);
            if let (Some(others), Some(rows)) = (&seen.arranged, &block.rows[number]) {
                base.resize(block.positions.len() * count, 0.0);
                let statistic = group.source.statistic.as_ref();
                others.block(statistic, rows.rows(), count, base, count);
            }
        }
        let Scratch { bases, values, own } = scratch;
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
                        statistic.of_products(square, &seen.squares, own);
                    }
                    if let Some(itself) = itself.filter(|_| statistic.is_distance()) {
                        // A sample is at no distance from itself, whatever rounding says.
                        own[itself] = 0.0;
                    }
                    base = own;
                }
                for chain in &group.chains {
                    visitor.powers(chain, row, base);
                }
                for (single, scales) in group.singles.iter().zip(&seen.scales) {
                    single.map.kernel_values_from(base, values);
                    if let Some(scales) = scales {
                        let normaliser = single.map.normaliser();
                        vector::scale_by(normaliser.scale_of(at), scales, values);
                        if let Some(itself) = itself {
                            values[itself] = Normaliser::own(scales[itself]);
                        }
                    }
                    visitor.values(single.slot, row, values);
                }
            }
            visitor.end(row);
        }
    }
}

/// A kernel c exp(−γ s).
struct Exponential {
    slot: usize,
    factor: f64,
    gamma: f64,
}

/// Those whose γ is a power of two times another's are powers of it; the flattest first.
fn chains(mut exponentials: Vec<Exponential>) -> Vec<Chain> {
    exponentials.sort_by(|a, b| a.gamma.total_cmp(&b.gamma));
    let mut chains: Vec<Chain> = Vec::new();
    let mut last = 0.0;
    for Exponential {
        slot,
        factor,
        gamma,
    } in exponentials
    {
        let times = (gamma / last).log2();
        let rounded = times.round();
        let chain = chains.last_mut().filter(|chain| {
            (times - rounded).abs() < 1e-12
                && chain.powers.len() < MOST_POWERS
                && (0.0..=f64::from(MOST_SQUARINGS - chain.powers.squarings())).contains(&rounded)
        });
        match chain {
            Some(chain) => {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a small whole number"
                )]
                chain.powers.push(rounded as u32);
                chain.members.push((slot, factor));
            }
            None => chains.push(Chain {
                powers: Powers::new(gamma),
                members: vec![(slot, factor)],
            }),
        }
        last = gamma;
    }
    chains
}
