//! A base statistic for all pairs of samples at once: s(x_i, x_j), n × n.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::data::Rows;
use crate::kernel::Statistic;
use crate::kernel::base::Arranged;
use crate::ledger;

/// The columns that a kernel sees, row by row; a copy only where these are not all columns.
#[derive(Debug)]
pub(super) struct Packed<'a> {
    values: Cow<'a, [f64]>,
    width: usize,
}

impl<'a> Packed<'a> {
    /// The chosen columns, all where there is no choice.
    pub(super) fn new(rows: Rows<'a>, columns: Option<&[usize]>) -> Self {
        let (values, width) = match columns {
            None => (Cow::Borrowed(rows.values()), rows.columns()),
            Some(columns) => {
                let mut values = Vec::with_capacity(rows.rows() * columns.len());
                for i in 0..rows.rows() {
                    let row = rows.row(i);
                    values.extend(columns.iter().map(|&column| row[column]));
                }
                (values.into(), columns.len())
            }
        };
        Self { values, width }
    }

    /// All rows, one after the other.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// s(x, x) of all rows.
    pub(super) fn own(&self, statistic: &dyn Statistic) -> Vec<f64> {
        let rows = self.values.chunks_exact(self.width);
        if statistic.is_distance() {
            vec![0.0; rows.len()]
        } else {
            rows.map(|x| statistic.value(x, x)).collect()
        }
    }

    /// Arranged for a statistic.
    pub(super) fn arrange(self, statistic: &dyn Statistic) -> Arranged<'a> {
        let arrangement = statistic.arrangement(self.width);
        Arranged::new(self.values, self.width, arrangement)
    }

    /// The same rows, borrowed.
    fn borrowed(&self) -> Packed<'_> {
        Packed {
            values: Cow::Borrowed(&self.values),
            width: self.width,
        }
    }
}

/// Bytes of the copies that so many rows of so many columns take, packed and arranged.
pub(super) fn copied_bytes(
    count: usize,
    width: usize,
    columns: Option<&[usize]>,
    statistic: &dyn Statistic,
) -> u64 {
    let packed = columns.map_or(0, |columns| ledger::bytes_of::<f64>(count * columns.len()));
    let width = columns.map_or(width, <[usize]>::len);
    packed.saturating_add(statistic.arrangement(width).bytes(count, width))
}

/// s(x_i, x_j) of all pairs, n × n, exactly symmetric.
pub(super) fn write_base(x: &Packed<'_>, statistic: &dyn Statistic, out: &mut [f64]) {
    let others = x.borrowed().arrange(statistic);
    lower_triangle(x, statistic, &others, out);
    mirror(out, others.count());
}

/// The same of a few rows, by the caller's own thread: a problem that is being made has no others yet, and rayon's own are never asked.
pub(super) fn base_of_few(x: &Packed<'_>, statistic: &dyn Statistic) -> Vec<f64> {
    let z = x.borrowed().arrange(statistic);
    let n = z.count();
    let mut base = vec![0.0; n * n];
    let block = statistic.rows_at_a_time().max(1);
    for (number, rows) in base.chunks_mut((n * block).max(1)).enumerate() {
        let first = number * block;
        let until = first + rows.len() / n;
        let own = &x.values[first * x.width..until * x.width];
        statistic.block(own, &z, n, rows, n);
        if statistic.is_distance() {
            for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
                row[i] = 0.0;
            }
        }
    }
    base
}

/// The lower triangle; above it, some blocks are written too.
fn lower_triangle(x: &Packed<'_>, statistic: &dyn Statistic, z: &Arranged<'_>, out: &mut [f64]) {
    let n = z.count();
    let block = statistic.rows_at_a_time().max(1);
    out.par_chunks_mut(n * block)
        .enumerate()
        .for_each(|(number, rows)| {
            let first = number * block;
            let until = first + rows.len() / n;
            let own = &x.values[first * x.width..until * x.width];
            statistic.block(own, z, until, rows, n);
            if statistic.is_distance() {
                for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
                    row[i] = 0.0;
                }
            }
        });
}

/// Rows and columns that are copied at a time, so that the column-wise writes stay in the caches.
const TILE: usize = 32;

/// Lower triangle → symmetric.
pub(super) fn mirror(matrix: &mut [f64], n: usize) {
    mirror_rows(matrix, n, 0);
}

/// The square of these rows on the diagonal of the matrix; `first` is the number of the first.
fn mirror_rows(rows: &mut [f64], n: usize, first: usize) {
    let count = rows.len() / n;
    if count <= TILE {
        for i in 0..count {
            for j in 0..i {
                rows[j * n + first + i] = rows[i * n + first + j];
            }
        }
        return;
    }
    let half = (count / 2).next_multiple_of(TILE);
    let (upper, lower) = rows.split_at_mut(half * n);
    upper
        .par_chunks_mut(TILE * n)
        .enumerate()
        .for_each(|(tile, upper)| {
            let column = first + tile * TILE;
            for (from, lower) in lower.chunks(TILE * n).enumerate() {
                let start = first + half + from * TILE;
                for (j, row) in upper.chunks_exact_mut(n).enumerate() {
                    for (i, source) in lower.chunks_exact(n).enumerate() {
                        row[start + i] = source[column + j];
                    }
                }
            }
        });
    rayon::join(
        || mirror_rows(upper, n, first),
        || mirror_rows(lower, n, first + half),
    );
}
