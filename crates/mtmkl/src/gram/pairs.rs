//! A base statistic for all pairs of samples at once: s(x_i, x_j), n × n.

use std::borrow::Cow;

use rayon::prelude::*;

use super::sparse::{self, Held, SparseOthers};
use crate::data::{Kind, Rows, SparseRows};
use crate::kernel::Statistic;
use crate::kernel::base::Arranged;
use crate::ledger;

/// The columns that a kernel sees, row by row; a copy only where these are not all columns.
#[derive(Debug)]
pub(super) enum Packed<'a> {
    Dense {
        values: Cow<'a, [f64]>,
        width: usize,
    },
    Sparse(Held<'a>),
}

/// Rows that others are compared with, as a statistic wants them.
#[derive(Debug)]
pub(super) enum Compared<'a> {
    Dense(Arranged<'a>),
    Sparse(SparseOthers<'a>),
}

impl<'a> Packed<'a> {
    /// The chosen columns, all where there is no choice.
    pub(super) fn new(rows: Rows<'a>, columns: Option<&[usize]>) -> Self {
        let all = match rows.kind() {
            Kind::Dense(all) => all,
            Kind::Sparse(rows) => {
                return Self::Sparse(match columns {
                    None => Held::Borrowed(rows),
                    Some(columns) => Held::Owned(rows.view(columns)),
                });
            }
        };
        let (values, width) = match columns {
            None => (Cow::Borrowed(all), rows.columns()),
            Some(columns) => {
                let mut values = Vec::with_capacity(rows.rows() * columns.len());
                for row in all.chunks_exact(rows.columns()) {
                    values.extend(columns.iter().map(|&column| row[column]));
                }
                (values.into(), columns.len())
            }
        };
        Self::Dense { values, width }
    }

    /// All rows.
    pub(super) fn rows(&self) -> Rows<'_> {
        match self {
            Self::Dense { values, width } => Rows::of_dense(values, *width),
            Self::Sparse(held) => held.rows().into(),
        }
    }

    /// s(x, x) of all rows.
    pub(super) fn own(&self, statistic: &dyn Statistic) -> Vec<f64> {
        let (values, width) = match self {
            Self::Dense { values, width } => (values, *width),
            Self::Sparse(held) => return sparse::own(held.rows(), statistic),
        };
        let rows = values.chunks_exact(width);
        if statistic.is_distance() {
            vec![0.0; rows.len()]
        } else {
            rows.map(|x| statistic.value(x, x)).collect()
        }
    }

    /// Arranged for a statistic.
    pub(super) fn arrange(self, statistic: &dyn Statistic) -> Compared<'a> {
        match self {
            Self::Dense { values, width } => {
                let arrangement = statistic.arrangement(width);
                Compared::Dense(Arranged::new(values, width, arrangement))
            }
            Self::Sparse(held) => Compared::Sparse(SparseOthers::new(held, statistic)),
        }
    }

    /// The same rows, borrowed.
    fn borrowed(&self) -> Packed<'_> {
        match self {
            Self::Dense { values, width } => Packed::Dense {
                values: Cow::Borrowed(values),
                width: *width,
            },
            Self::Sparse(held) => Packed::Sparse(Held::Borrowed(held.rows())),
        }
    }
}

impl Compared<'_> {
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Dense(others) => others.count(),
            Self::Sparse(others) => others.count(),
        }
    }

    /// s(x, z) of the rows x with the first `until` rows z, as [`Statistic::block`]; of dense and sparse rows, x becomes what z is.
    pub(super) fn block(
        &self,
        statistic: &dyn Statistic,
        x: Rows<'_>,
        until: usize,
        out: &mut [f64],
        stride: usize,
    ) {
        match (self, x.kind()) {
            (Self::Dense(z), Kind::Dense(x)) => statistic.block(x, z, until, out, stride),
            (Self::Dense(z), Kind::Sparse(x)) => statistic.block(&x.dense(), z, until, out, stride),
            (Self::Sparse(z), Kind::Sparse(x)) => z.block(statistic, x, until, out, stride),
            (Self::Sparse(z), Kind::Dense(dense)) => {
                let x = SparseRows::of_dense(dense, x.columns());
                z.block(statistic, x.rows(), until, out, stride);
            }
        }
    }
}

/// Bytes of the copies that rows take, packed and arranged.
pub(super) fn copied_bytes(
    rows: Rows<'_>,
    columns: Option<&[usize]>,
    statistic: &dyn Statistic,
) -> u64 {
    if rows.sparse().is_some() {
        // The entries of some columns are at most all; and the same column by column.
        let starts = ledger::bytes_of::<usize>(2 * rows.columns());
        return rows.bytes().saturating_mul(2).saturating_add(starts);
    }
    let count = rows.rows();
    let packed = columns.map_or(0, |columns| ledger::bytes_of::<f64>(count * columns.len()));
    let width = columns.map_or(rows.columns(), <[usize]>::len);
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
        z.block(statistic, x.rows().part(first, until), n, rows, n);
        if statistic.is_distance() {
            for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
                row[i] = 0.0;
            }
        }
    }
    base
}

/// The lower triangle; above it, some blocks are written too.
fn lower_triangle(x: &Packed<'_>, statistic: &dyn Statistic, z: &Compared<'_>, out: &mut [f64]) {
    let n = z.count();
    let block = statistic.rows_at_a_time().max(1);
    out.par_chunks_mut(n * block)
        .enumerate()
        .for_each(|(number, rows)| {
            let first = number * block;
            let until = first + rows.len() / n;
            z.block(statistic, x.rows().part(first, until), until, rows, n);
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
pub(super) fn mirror<T: Copy + Send + Sync>(matrix: &mut [T], n: usize) {
    mirror_rows(matrix, n, 0);
}

/// The square of these rows on the diagonal of the matrix; `first` is the number of the first.
fn mirror_rows<T: Copy + Send + Sync>(rows: &mut [T], n: usize, first: usize) {
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
