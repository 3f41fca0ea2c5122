//! s(x, z) between sparse rows.
//!
//! x'z goes through the entries of x and, for each, through the rows z that have this column: what neither has costs nothing. ‖x − z‖² is
//! ‖x‖² + ‖z‖² − 2x'z; rows are not centred for it, since centred rows are not sparse. Any other statistic sees rows with all their
//! zeros, a few at a time: right, and as slow as for dense rows. All sums run over ascending columns, so that s(x, z) = s(z, x) to the last
//! digit, and x'x = ‖x‖².

use std::borrow::Cow;

use crate::data::{Sparse, SparseRows};
use crate::kernel::Statistic;
use crate::kernel::base::{Arranged, InnerProduct};

/// Numbers of rows that are written out at a time: 1 MiB.
const WRITTEN: usize = 1 << 17;

/// Sparse rows, borrowed or made.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Borrowed(Sparse<'a>),
    Owned(SparseRows),
}

impl Held<'_> {
    pub(super) fn rows(&self) -> Sparse<'_> {
        match self {
            Self::Borrowed(rows) => *rows,
            Self::Owned(rows) => rows.rows(),
        }
    }
}

/// What a statistic is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It is x'z.
    Product,
    /// x'x, z'z and x'z.
    Products,
    /// Nothing that sparse rows are better for.
    Values,
}

impl Way {
    fn of(statistic: &dyn Statistic) -> Self {
        if statistic.key() == InnerProduct.key() {
            Self::Product
        } else if statistic.of_products(0.0, &[], &mut []) {
            Self::Products
        } else {
            Self::Values
        }
    }
}

/// Sparse rows that others are compared with.
#[derive(Debug)]
pub(super) struct SparseOthers<'a> {
    rows: Held<'a>,
    way: Way,
    /// Where products are needed of many rows.
    by_column: Option<ByColumn>,
    /// ‖z‖², where products are not all that is needed.
    squares: Vec<f64>,
}

/// The entries column by column, rows ascending.
#[derive(Debug)]
struct ByColumn {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl ByColumn {
    fn new(rows: Sparse<'_>) -> Self {
        let mut starts = vec![0_usize; rows.width() + 1];
        for row in 0..rows.count() {
            for &column in rows.row(row).0 {
                starts[column as usize + 1] += 1;
            }
        }
        for column in 0..rows.width() {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut made = Self {
            starts,
            rows: vec![0; rows.entries()],
            values: vec![0.0; rows.entries()],
        };
        for (number, row) in (0_u32..).zip(0..rows.count()) {
            let (columns, values) = rows.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let at = &mut next[column as usize];
                made.rows[*at] = number;
                made.values[*at] = value;
                *at += 1;
            }
        }
        made
    }

    /// x'z with the first rows z.
    fn products(&self, x: (&[u32], &[f64]), out: &mut [f64]) {
        out.fill(0.0);
        for (&column, &own) in x.0.iter().zip(x.1) {
            let range = self.starts[column as usize]..self.starts[column as usize + 1];
            for (&row, &value) in self.rows[range.clone()].iter().zip(&self.values[range]) {
                // Rows ascend: what is after this one is not wanted either.
                let Some(out) = out.get_mut(row as usize) else {
                    break;
                };
                *out += own * value;
            }
        }
    }
}

impl<'a> SparseOthers<'a> {
    pub(super) fn new(rows: Held<'a>, statistic: &dyn Statistic) -> Self {
        let way = Way::of(statistic);
        let seen = rows.rows();
        // Fewer entries than columns are not worth a list of columns.
        let is_worth = way != Way::Values && seen.entries() >= seen.width();
        Self {
            way,
            by_column: is_worth.then(|| ByColumn::new(seen)),
            squares: match way {
                Way::Products => (0..seen.count()).map(|row| seen.square(row)).collect(),
                Way::Product | Way::Values => Vec::new(),
            },
            rows,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.rows.rows().count()
    }

    /// s(x, z) of the rows x with the first `until` rows z; as [`Statistic::block`].
    pub(super) fn block(
        &self,
        statistic: &dyn Statistic,
        x: Sparse<'_>,
        until: usize,
        out: &mut [f64],
        stride: usize,
    ) {
        if self.way == Way::Values {
            return self.values(statistic, x, until, out, stride);
        }
        self.products(x, until, out, stride);
        if self.way == Way::Products {
            for (row, out) in out.chunks_mut(stride).enumerate().take(x.count()) {
                statistic.of_products(x.square(row), &self.squares[..until], &mut out[..until]);
            }
        }
    }

    fn products(&self, x: Sparse<'_>, until: usize, out: &mut [f64], stride: usize) {
        let outs = out.chunks_mut(stride).enumerate().take(x.count());
        if let Some(by_column) = &self.by_column {
            for (row, out) in outs {
                by_column.products(x.row(row), &mut out[..until]);
            }
            return;
        }
        let z = self.rows.rows();
        let mut written = vec![0.0; z.width()];
        for (row, out) in outs {
            x.write_dense(row, &mut written);
            for (other, out) in out[..until].iter_mut().enumerate() {
                let (columns, values) = z.row(other);
                let pairs = columns.iter().zip(values);
                let terms = pairs.map(|(&column, value)| written[column as usize] * value);
                *out = terms.fold(0.0, |sum, term| sum + term);
            }
        }
    }

    /// By rows with all their zeros, a few of them at a time.
    fn values(
        &self,
        statistic: &dyn Statistic,
        x: Sparse<'_>,
        until: usize,
        out: &mut [f64],
        stride: usize,
    ) {
        let z = self.rows.rows();
        let width = z.width();
        let at_once = (WRITTEN / width.max(1)).max(1);
        let mut own = vec![0.0; width];
        for first in (0..until).step_by(at_once) {
            let last = (first + at_once).min(until);
            let some = Cow::Owned(z.slice(first, last).dense());
            let some = Arranged::new(some, width, statistic.arrangement(width));
            for (row, out) in out.chunks_mut(stride).enumerate().take(x.count()) {
                x.write_dense(row, &mut own);
                let count = last - first;
                statistic.block(&own, &some, count, &mut out[first..last], count);
            }
        }
    }
}

/// s(x, x) of sparse rows.
pub(super) fn own(rows: Sparse<'_>, statistic: &dyn Statistic) -> Vec<f64> {
    let count = rows.count();
    if statistic.is_distance() {
        return vec![0.0; count];
    }
    let way = Way::of(statistic);
    let mut written = vec![0.0; rows.width()];
    let value = |row: usize| match way {
        Way::Product => rows.square(row),
        Way::Products => {
            let square = rows.square(row);
            let mut value = [square];
            statistic.of_products(square, &[square], &mut value);
            value[0]
        }
        Way::Values => {
            rows.write_dense(row, &mut written);
            statistic.value(&written, &written)
        }
    };
    (0..count).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Base;
    use crate::kernel::parse_kernel;
    use crate::random::Random;

    /// Rows with so many of a hundred numbers other than zero.
    fn some(count: usize, width: usize, of_hundred: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let number = |random: &mut Random| {
            let value = random.uniform();
            if random.uniform() * 100.0 < of_hundred {
                value + 0.1
            } else {
                0.0
            }
        };
        (0..count * width).map(|_| number(&mut random)).collect()
    }

    #[test]
    fn blocks_are_those_of_dense_rows() {
        let specs = ["linear", "rbf:sigma=1", "laplacian", "chi2", "intersection"];
        for (count, width, share) in [(1, 1, 100.0), (5, 400, 1.0), (40, 30, 20.0), (7, 9, 0.0)] {
            let z = some(count, width, share, 1);
            let x = some(3, width, share, 2);
            let (sparse_z, sparse_x) = (
                SparseRows::of_dense(&z, width),
                SparseRows::of_dense(&x, width),
            );
            for spec in specs {
                let Base::Of(statistic) = parse_kernel(spec).unwrap().kernel.base() else {
                    panic!("{spec} has a statistic");
                };
                let others = SparseOthers::new(Held::Owned(sparse_z.clone()), statistic.as_ref());
                let (until, stride) = (count.div_ceil(2), count + 1);
                let mut out = vec![f64::NAN; 3 * stride];
                others.block(statistic.as_ref(), sparse_x.rows(), until, &mut out, stride);
                for (x, row) in x.chunks_exact(width).zip(out.chunks_exact(stride)) {
                    for (z, found) in z.chunks_exact(width).zip(&row[..until]) {
                        let value = statistic.value(x, z);
                        assert!((value - found).abs() < 1e-12, "{spec}: {found} {value}");
                    }
                }
                let squares = own(sparse_x.rows(), statistic.as_ref());
                for (x, found) in x.chunks_exact(width).zip(squares) {
                    assert!((statistic.value(x, x) - found).abs() < 1e-12, "{spec}");
                }
            }
        }
    }

    #[test]
    fn equal_rows_are_at_no_distance() {
        let rows = SparseRows::of_dense(&some(20, 50, 30.0, 5), 50);
        let Base::Of(statistic) = Base::squared_distance() else {
            panic!("a distance is a statistic");
        };
        let others = SparseOthers::new(Held::Owned(rows.clone()), statistic.as_ref());
        let mut out = vec![f64::NAN; 400];
        others.block(statistic.as_ref(), rows.rows(), 20, &mut out, 20);
        for i in 0..20 {
            assert_eq!(out[i * 20 + i], 0.0);
            for j in 0..i {
                assert_eq!(out[i * 20 + j], out[j * 20 + i]);
            }
        }
    }
}
