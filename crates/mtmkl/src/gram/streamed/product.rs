//! K(θ)v from rows: each pair of samples is seen once and counts for both, but for those next to the diagonal.

use std::ops::Range;

use rayon::prelude::*;

use super::block::{Chunk, ROWS, Scratch};
use super::{Streamed, Sum};
use crate::run::Stop;
use crate::vector;

/// Samples are taken in so many panels at most: enough tiles for all threads, and each tile leaves two panels of numbers behind.
const PANELS: usize = 16;

/// What the pairs of two panels add to Kv.
struct Tile {
    /// To the rows of the one,
    own: Vec<f64>,
    /// and by symmetry to those of the other.
    other: Vec<f64>,
}

impl Streamed {
    /// Σ_(m, a) a K_m v on these samples. Worth nothing where `stop` comes first.
    pub(super) fn product(
        &self,
        positions: &[usize],
        weights: &[(usize, f64)],
        v: &[f64],
        stop: &Stop,
    ) -> Vec<f64> {
        let groups = self.groups(weights.iter().map(|(kernel, _)| *kernel));
        let chunks = self.chunks(&groups, positions);
        let panels: Vec<&[Chunk]> = chunks
            .chunks(chunks.len().div_ceil(PANELS).max(1))
            .collect();
        let range = |panel: &[Chunk]| -> Range<usize> {
            let first = panel.first().map_or(0, |chunk| chunk.range.start);
            first..panel.last().map_or(first, |chunk| chunk.range.end)
        };
        let pairs: Vec<(usize, usize)> = (0..panels.len())
            .flat_map(|one| (0..=one).map(move |other| (one, other)))
            .collect();
        let tile = |scratch: &mut (Scratch, Vec<f64>), &(one, other): &(usize, usize)| {
            let (scratch, values) = scratch;
            let (rows, columns) = (range(panels[one]), range(panels[other]));
            let mut tile = Tile {
                own: vec![0.0; rows.len()],
                other: vec![0.0; if one == other { 0 } else { columns.len() }],
            };
            for (from, own) in rows.clone().step_by(ROWS).zip(tile.own.chunks_mut(ROWS)) {
                let block = self.block(&groups, &positions[from..from + own.len()]);
                for chunk in panels[other].iter().filter(|_| !stop.now()) {
                    let width = chunk.range.len();
                    values.clear();
                    values.resize(own.len() * width, 0.0);
                    let mut sum = Sum {
                        weights,
                        out: values,
                        stride: width,
                    };
                    Self::visit(&groups, &block, chunk, scratch, &mut sum);
                    let at = chunk.range.start - columns.start;
                    for (i, row) in values.chunks_exact(width).enumerate() {
                        own[i] += vector::dot(row, &v[chunk.range.clone()]);
                        if let Some(other) = tile.other.get_mut(at..at + width) {
                            vector::axpy(v[from + i], row, other);
                        }
                    }
                }
            }
            tile
        };
        let tiles: Vec<Tile> = (pairs.par_iter())
            .map_init(Default::default, tile)
            .collect();
        let mut product = vec![0.0; v.len()];
        for (&(one, other), tile) in pairs.iter().zip(&tiles) {
            vector::axpy(1.0, &tile.own, &mut product[range(panels[one])]);
            if one != other {
                vector::axpy(1.0, &tile.other, &mut product[range(panels[other])]);
            }
        }
        product
    }
}
