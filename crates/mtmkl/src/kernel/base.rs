//! s(x, z): the one number about a pair that a kernel is a function of, k(x, z) = map(s(x, z)).
//!
//! Kernels with the same statistic on the same columns share one block of base values: ten Gaussians cost one distance block and ten
//! vectorised exponentials. Many pairs at once are cheaper than one after the other, if the rows lie well: products are one matrix
//! product, ‖x − z‖² = ‖x‖² + ‖z‖² − 2x'z comes from products once the rows are centred, and sums over columns run along columns.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use crate::ledger;
use crate::linalg;
use crate::vector;

/// A number about a pair (x, z), symmetric: s(x, z) = s(z, x).
///
/// A statistic of one's own is a [`Statistic::key`] and a [`Statistic::value`]; the rest makes it faster.
pub trait Statistic: Debug + Send + Sync {
    /// What it is, with its parameters. Statistics with equal keys are taken to be equal, and their values are shared.
    fn key(&self) -> String;

    /// s(x, z) for one pair.
    fn value(&self, x: &[f64], z: &[f64]) -> f64;

    /// Whether s(x, x) = 0 for every x, exactly.
    fn is_distance(&self) -> bool {
        false
    }

    /// How [`Statistic::block`] wants to find rows with so many columns.
    fn arrangement(&self, _width: usize) -> Arrangement {
        Arrangement::Rows
    }

    /// s(x, z) from x'x, z'z and x'z of one x and many z, the last in `values`; false, and nothing changed, where that is not all it takes.
    fn of_products(&self, _own: f64, _others: &[f64], _values: &mut [f64]) -> bool {
        false
    }

    /// How many rows x a block is best given at a time.
    fn rows_at_a_time(&self) -> usize {
        1
    }

    /// s(x, z) of the rows x (one after the other) with the first `until` rows z. Those of each x are the first of `stride` values in `out`.
    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        let rows = || z.values().chunks_exact(z.width()).take(until);
        for (out, x) in out.chunks_mut(stride).zip(x.chunks_exact(z.width())) {
            for (out, z) in out.iter_mut().zip(rows()) {
                *out = self.value(x, z);
            }
        }
    }
}

/// How rows lie that others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// As they are, one after the other.
    Rows,
    /// One after the other, moved so that their mean is the origin: distances do not change when all points move, and
    /// ‖x‖² + ‖z‖² − 2x'z loses fewer digits near the origin.
    Centred,
    /// Column by column.
    Columns,
}

/// Rows that others are compared with, arranged.
#[derive(Debug)]
pub struct Arranged<'a> {
    values: Cow<'a, [f64]>,
    count: usize,
    width: usize,
    /// Of the rows as they were, where they are centred.
    means: Vec<f64>,
    /// ‖z‖² of the rows as they lie, where they are centred.
    squares: Vec<f64>,
}

impl<'a> Arranged<'a> {
    /// These rows, one after the other, of `width` > 0 columns.
    pub fn new(rows: Cow<'a, [f64]>, width: usize, arrangement: Arrangement) -> Self {
        let count = rows.len() / width;
        let (mut means, mut squares) = (Vec::new(), Vec::new());
        let values = match arrangement {
            Arrangement::Rows => rows,
            Arrangement::Centred => {
                means = vec![0.0; width];
                for row in rows.chunks_exact(width) {
                    vector::axpy(1.0 / count as f64, row, &mut means);
                }
                let moved = moved(&rows, &means);
                squares = squared_norms(&moved, width);
                moved.into()
            }
            Arrangement::Columns => {
                let column = |k: usize| rows.iter().skip(k).step_by(width).copied();
                let mut columns = Vec::with_capacity(rows.len());
                (0..width).for_each(|k| columns.extend(column(k)));
                columns.into()
            }
        };
        Self {
            values,
            count,
            width,
            means,
            squares,
        }
    }

    /// How many rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, as they are arranged.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl Arrangement {
    /// Bytes of the copy that so many rows take.
    pub fn bytes(self, count: usize, width: usize) -> u64 {
        match self {
            Self::Rows => 0,
            _ => ledger::bytes_of::<f64>(count.saturating_mul(width)),
        }
    }
}

fn moved(rows: &[f64], means: &[f64]) -> Vec<f64> {
    let mut moved = Vec::with_capacity(rows.len());
    for row in rows.chunks_exact(means.len()) {
        moved.extend(row.iter().zip(means).map(|(value, mean)| value - mean));
    }
    moved
}

fn squared_norms(rows: &[f64], width: usize) -> Vec<f64> {
    rows.chunks_exact(width)
        .map(|row| vector::dot(row, row))
        .collect()
}

/// Rows handled at a time: large enough for a matrix product, small enough for the caches and for many threads.
const BLOCK: usize = 64;

/// x'z
#[derive(Debug, Clone, Copy)]
pub struct InnerProduct;

impl Statistic for InnerProduct {
    fn key(&self) -> String {
        "x'z".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        vector::dot(x, z)
    }

    fn rows_at_a_time(&self) -> usize {
        BLOCK
    }

    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        let d = z.width();
        linalg::products_into(x, &z.values()[..until * d], d, out, stride);
    }
}

/// ‖x − z‖²
#[derive(Debug, Clone, Copy)]
pub struct SquaredDistance;

/// Up to that many columns, distances are summed directly: faster than a matrix product, and nothing cancels.
pub(crate) const NARROW: usize = 8;

impl Statistic for SquaredDistance {
    fn key(&self) -> String {
        "‖x−z‖²".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        x.iter().zip(z).map(|(a, b)| (a - b) * (a - b)).sum()
    }

    fn is_distance(&self) -> bool {
        true
    }

    fn of_products(&self, own: f64, others: &[f64], values: &mut [f64]) -> bool {
        vector::squared_distances(own, others, values);
        true
    }

    fn arrangement(&self, width: usize) -> Arrangement {
        if width > NARROW {
            Arrangement::Centred
        } else {
            Arrangement::Columns
        }
    }

    fn rows_at_a_time(&self) -> usize {
        BLOCK
    }

    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        let d = z.width();
        if d <= NARROW {
            sum_over_columns(x, z, until, out, stride, |a, b| (a - b) * (a - b));
            return;
        }
        let x = moved(x, &z.means);
        linalg::products_into(&x, &z.values()[..until * d], d, out, stride);
        for (row, own) in out.chunks_mut(stride).zip(squared_norms(&x, d)) {
            vector::squared_distances(own, &z.squares[..until], &mut row[..until]);
        }
    }
}

/// ‖x − z‖₁
#[derive(Debug, Clone, Copy)]
pub struct ManhattanDistance;

impl Statistic for ManhattanDistance {
    fn key(&self) -> String {
        "‖x−z‖₁".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum()
    }

    fn is_distance(&self) -> bool {
        true
    }

    fn arrangement(&self, _width: usize) -> Arrangement {
        Arrangement::Columns
    }

    fn rows_at_a_time(&self) -> usize {
        BLOCK
    }

    fn block(&self, x: &[f64], z: &Arranged<'_>, until: usize, out: &mut [f64], stride: usize) {
        sum_over_columns(x, z, until, out, stride, |a, b| (a - b).abs());
    }
}

/// s(x, z) = Σ_k term(x_k, z_k), of rows z that lie column by column; as [`Statistic::block`].
pub(super) fn sum_over_columns(
    x: &[f64],
    z: &Arranged<'_>,
    until: usize,
    out: &mut [f64],
    stride: usize,
    term: impl Fn(f64, f64) -> f64,
) {
    for (row, x) in out.chunks_mut(stride).zip(x.chunks_exact(z.width())) {
        vector::sum_terms(x, z.values(), &mut row[..until], &term);
    }
}

/// Where a kernel's values come from.
#[derive(Debug, Clone)]
pub enum Base {
    /// A function of this statistic: [`super::Kernel::map`].
    Of(Arc<dyn Statistic>),
    /// Nothing that others could share: [`super::Kernel::value`] is called for each pair.
    Own,
    /// Read from the Gram matrices given with the samples.
    Given,
}

impl Base {
    /// A function of this statistic.
    pub fn of(statistic: impl Statistic + 'static) -> Self {
        Self::Of(Arc::new(statistic))
    }

    /// A function of x'z.
    pub fn product() -> Self {
        Self::of(InnerProduct)
    }

    /// A function of ‖x − z‖².
    pub fn squared_distance() -> Self {
        Self::of(SquaredDistance)
    }

    /// A function of ‖x − z‖₁.
    pub fn manhattan() -> Self {
        Self::of(ManhattanDistance)
    }

    /// Whether values are read from given Gram matrices.
    pub fn is_given(&self) -> bool {
        matches!(self, Self::Given)
    }
}

impl PartialEq for Base {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Of(a), Self::Of(b)) => a.key() == b.key(),
            (Self::Own, Self::Own) | (Self::Given, Self::Given) => true,
            _ => false,
        }
    }
}

impl Eq for Base {}

#[cfg(test)]
mod tests {
    use super::super::{chi_square::ChiSquareDistance, intersection::SumOfMinima};
    use super::*;
    use crate::random::Random;

    /// Σ_k k |x_k − z_k|, as a user would write it.
    #[derive(Debug)]
    struct Weighted;

    impl Statistic for Weighted {
        fn key(&self) -> String {
            "weighted".into()
        }

        fn value(&self, x: &[f64], z: &[f64]) -> f64 {
            let pairs = x.iter().zip(z).enumerate();
            pairs.map(|(k, (a, b))| k as f64 * (a - b).abs()).sum()
        }
    }

    #[test]
    fn blocks_are_made_of_values() {
        let all: [&dyn Statistic; 6] = [
            &InnerProduct,
            &SquaredDistance,
            &ManhattanDistance,
            &ChiSquareDistance,
            &SumOfMinima,
            &Weighted,
        ];
        let mut random = Random::new(3);
        for (d, count) in [(1, 1), (3, 40), (9, 70)] {
            let mut some = |rows: usize| -> Vec<f64> {
                (0..rows * d).map(|_| 2.0 + random.uniform()).collect()
            };
            let (x, z) = (some(5), some(count));
            for statistic in all {
                let rows = Cow::Borrowed(&z[..]);
                let arranged = Arranged::new(rows, d, statistic.arrangement(d));
                assert_eq!((arranged.count(), arranged.width()), (count, d));
                let (until, stride) = (count.div_ceil(2), count + 2);
                let mut out = vec![f64::NAN; 5 * stride];
                statistic.block(&x, &arranged, until, &mut out, stride);
                for (x, row) in x.chunks_exact(d).zip(out.chunks_exact(stride)) {
                    for (z, found) in z.chunks_exact(d).zip(&row[..until]) {
                        let value = statistic.value(x, z);
                        assert!((value - found).abs() < 1e-12, "{statistic:?} {d}");
                    }
                    let own = statistic.value(x, x);
                    assert!(!statistic.is_distance() || own == 0.0);
                }
            }
        }
        let keys: std::collections::BTreeSet<String> = all.iter().map(|s| s.key()).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn a_base_is_known_by_its_key() {
        assert_eq!(Base::product(), Base::product());
        assert_ne!(Base::product(), Base::manhattan());
        assert_eq!(Base::of(Weighted), Base::of(Weighted));
        assert_ne!(Base::of(Weighted), Base::Own);
        assert!(Base::Given.is_given() && !Base::Own.is_given());
    }
}
