//! The bases x'z, ‖x − z‖² and ‖x − z‖₁ for many pairs of samples at once.

use rayon::prelude::*;

use crate::data::Rows;
use crate::kernel::Base;
use crate::linalg;
use crate::vector;

/// Rows handled at a time: large enough for GEMM, small enough for the caches and for many threads.
const BLOCK: usize = 64;

/// Up to that many columns, distances are summed directly: faster than GEMM, and nothing cancels.
const NARROW: usize = 8;

/// The columns that a kernel sees, packed row by row.
#[derive(Debug)]
pub(super) struct Packed {
    values: Vec<f64>,
    count: usize,
    width: usize,
}

impl Packed {
    /// The chosen columns, all where there is no choice.
    pub(super) fn new(rows: Rows<'_>, columns: Option<&[usize]>) -> Self {
        let values = match columns {
            None => rows.values().to_vec(),
            Some(columns) => (0..rows.rows())
                .flat_map(|i| columns.iter().map(move |&column| rows.row(i)[column]))
                .collect(),
        };
        Self {
            values,
            count: rows.rows(),
            width: columns.map_or(rows.columns(), <[usize]>::len),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All rows, one after the other.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }

    /// ‖x_i‖² of all rows.
    pub(super) fn squared_norms(&self) -> Vec<f64> {
        squared_norms(&self.values, self.width)
    }
}

/// The rows that others are compared with, prepared for one base.
#[derive(Debug)]
pub(super) struct Others {
    base: Base,
    width: usize,
    count: usize,
    form: Form,
}

/// How the base is computed.
#[derive(Debug)]
enum Form {
    /// Products of rows.
    Rows(Vec<f64>),
    /// Products of rows moved by −`means`, and their squared norms: ‖x − z‖² = ‖x‖² + ‖z‖² − 2x'z. Distances do not change
    /// when all points move, and the sum loses fewer digits near the origin.
    Centred {
        rows: Vec<f64>,
        means: Vec<f64>,
        squares: Vec<f64>,
    },
    /// Sums over columns.
    Columns(Vec<f64>),
}

impl Others {
    pub(super) fn new(z: &Packed, base: Base) -> Self {
        let (count, width) = (z.count, z.width);
        let form = if base == Base::Product {
            Form::Rows(z.values.clone())
        } else if base == Base::SquaredDistance && width > NARROW {
            let mut means = vec![0.0; width];
            for row in z.values.chunks_exact(width) {
                vector::axpy(1.0 / count as f64, row, &mut means);
            }
            let rows = moved(&z.values, &means);
            let squares = squared_norms(&rows, width);
            Form::Centred {
                rows,
                means,
                squares,
            }
        } else {
            let column = |k: usize| z.values.iter().skip(k).step_by(width).copied();
            Form::Columns((0..width).flat_map(column).collect())
        };
        Self {
            base,
            width,
            count,
            form,
        }
    }

    /// How many rows.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Base values of the rows x (one after the other) with the first `until` of these rows. Those of each x are the first of
    /// `stride` values in `out`.
    pub(super) fn block(&self, x: &[f64], until: usize, out: &mut [f64], stride: usize) {
        let d = self.width;
        match &self.form {
            Form::Rows(rows) => linalg::products_into(x, &rows[..until * d], d, out, stride),
            Form::Centred {
                rows,
                means,
                squares,
            } => {
                let x = moved(x, means);
                linalg::products_into(&x, &rows[..until * d], d, out, stride);
                for (row, own) in out.chunks_mut(stride).zip(squared_norms(&x, d)) {
                    vector::squared_distances(own, &squares[..until], &mut row[..until]);
                }
            }
            Form::Columns(columns) => {
                for (row, x) in out.chunks_mut(stride).zip(x.chunks_exact(d)) {
                    let out = &mut row[..until];
                    match self.base {
                        Base::Manhattan => {
                            vector::sum_terms(x, columns, out, |a, b| (a - b).abs());
                        }
                        _ => vector::sum_terms(x, columns, out, |a, b| (a - b) * (a - b)),
                    }
                }
            }
        }
    }
}

/// The lower triangle of the base matrix of x with itself, n × n; above it, some blocks are written too.
pub(super) fn lower_triangle(x: &Packed, base: Base, out: &mut [f64]) {
    let n = x.count;
    let others = Others::new(x, base);
    out.par_chunks_mut(n * BLOCK)
        .enumerate()
        .for_each(|(block, rows)| {
            let first = block * BLOCK;
            let until = first + rows.len() / n;
            let own = &x.values[first * x.width..until * x.width];
            others.block(own, until, rows, n);
            if base == Base::SquaredDistance {
                for (i, row) in (first..).zip(rows.chunks_exact_mut(n)) {
                    row[i] = 0.0;
                }
            }
        });
}

fn moved(rows: &[f64], means: &[f64]) -> Vec<f64> {
    rows.chunks_exact(means.len())
        .flat_map(|row| row.iter().zip(means).map(|(value, mean)| value - mean))
        .collect()
}

fn squared_norms(rows: &[f64], width: usize) -> Vec<f64> {
    rows.chunks_exact(width)
        .map(|row| vector::dot(row, row))
        .collect()
}
