//! Kernel values between new samples and support rows, for prediction.

use std::sync::Arc;

use super::memory::take_large;
use super::normaliser::Normaliser;
use super::pairs::{Compared, Packed, copied_bytes};
use super::plan::{SameBase, by_statistic};
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::{Base, Kernel, KernelView, Statistic};
use crate::ledger::{self, Guard, Ledger};

/// Base values mapped at a time: with as many results they fill the first cache.
const PIECE: usize = 2048;

/// The kernels of a model with its support rows, ready for new rows. Kernels on the same columns share what they can.
#[derive(Debug)]
pub(crate) struct CrossKernels<'a> {
    groups: Vec<Group<'a>>,
    ledger: Ledger,
}

/// Kernels with one base on the same columns.
#[derive(Debug)]
struct Group<'a> {
    columns: Option<Vec<usize>>,
    statistic: Arc<dyn Statistic>,
    support: Compared<'a>,
    members: Vec<Member<'a>>,
    _taken: Option<Guard>,
}

#[derive(Debug)]
struct Member<'a> {
    number: usize,
    kernel: &'a dyn Kernel,
    is_normalised: bool,
    /// Of the support rows.
    normaliser: Normaliser,
}

/// New rows of one batch, as a kernel sees them: values with all support rows, row by row, and k(x, x).
#[derive(Debug, Clone, Copy)]
pub(crate) struct CrossPiece<'a> {
    /// The kernel's number.
    pub(crate) kernel: usize,
    /// The first row's number in the batch.
    pub(crate) first: usize,
    /// As many rows as there are entries in `own`.
    pub(crate) values: &'a [f64],
    pub(crate) own: &'a [f64],
}

impl<'a> CrossKernels<'a> {
    /// Those of the `wanted` kernels that are computed from rows, with these support rows.
    pub(crate) fn new(
        views: &'a [KernelView],
        wanted: &[usize],
        names: &[String],
        support: Rows<'a>,
        normalise: bool,
        ledger: &Ledger,
    ) -> Result<Self> {
        let groups = by_statistic(names, views, wanted.iter().copied())?;
        let groups = groups.into_iter().map(|same| {
            let SameBase {
                statistic,
                columns,
                members,
                ..
            } = same;
            let copies = copied_bytes(support, columns.as_deref(), statistic.as_ref());
            let taken = take_large(ledger, copies);
            let packed = Packed::new(support, columns.as_deref());
            let own = packed.own(statistic.as_ref());
            let member = |number: usize| Member::new(number, &views[number], &own, normalise);
            Group {
                members: members.into_iter().map(member).collect(),
                support: packed.arrange(statistic.as_ref()),
                columns,
                statistic,
                _taken: taken,
            }
        });
        Ok(Self {
            groups: groups.collect(),
            ledger: ledger.clone(),
        })
    }

    /// Calls `each` with pieces of K_m(x, z), normalised as in training, for all kernels and all of the rows x.
    pub(crate) fn pieces(&self, x: Rows<'_>, mut each: impl FnMut(CrossPiece<'_>)) {
        for group in &self.groups {
            group.pieces(x, &self.ledger, &mut each);
        }
    }
}

impl<'a> Member<'a> {
    /// With s(z, z) of the support rows.
    fn new(number: usize, view: &'a KernelView, own: &[f64], normalise: bool) -> Self {
        let kernel = view.kernel.as_ref();
        let mut member = Self {
            number,
            kernel,
            is_normalised: Normaliser::is_wanted(kernel, normalise),
            normaliser: Normaliser::default(),
        };
        (_, member.normaliser) = member.own(own);
        member
    }

    fn map(&self, values: &mut [f64]) {
        if matches!(self.kernel.base(), Base::Of(_)) {
            self.kernel.map(values);
        }
    }

    /// k(x, x) as it is used, from s(x, x), and what normalises these rows.
    fn own(&self, own: &[f64]) -> (Vec<f64>, Normaliser) {
        let mut own = own.to_vec();
        self.map(&mut own);
        let normaliser = if self.is_normalised {
            Normaliser::new(&own)
        } else {
            Normaliser::default()
        };
        normaliser.diagonal(&mut own);
        (own, normaliser)
    }
}

impl Group<'_> {
    fn pieces(&self, x: Rows<'_>, ledger: &Ledger, each: &mut impl FnMut(CrossPiece<'_>)) {
        let (count, m) = (x.rows(), self.support.count());
        let x = Packed::new(x, self.columns.as_deref());
        let _taken = take_large(ledger, ledger::bytes_of::<f64>(count * m));
        let mut base = vec![0.0; count * m];
        if m > 0 {
            let statistic = self.statistic.as_ref();
            self.support.block(statistic, x.rows(), m, &mut base, m);
        }
        let own = x.own(self.statistic.as_ref());
        let rows = (PIECE / m.max(1)).max(1);
        let mut piece = vec![0.0; rows.min(count) * m];
        for member in &self.members {
            let (own, normaliser) = member.own(&own);
            for first in (0..count).step_by(rows) {
                let until = (first + rows).min(count);
                let values = &mut piece[..(until - first) * m];
                values.copy_from_slice(&base[first * m..until * m]);
                member.map(values);
                normaliser.cross(&member.normaliser, values, first);
                each(CrossPiece {
                    kernel: member.number,
                    first,
                    values,
                    own: &own[first..until],
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::gram::Storage;
    use crate::gram::tests::{build, value};
    use crate::kernel::parse_kernels;

    #[test]
    fn training_rows_get_the_values_of_the_gram() {
        let kernels: Vec<KernelView> = [
            "rbf:sigma=1|3",
            "poly:degree=2",
            "laplacian",
            "cosine",
            "chi2",
            "rbf:sigma=1@f2",
        ]
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
        let wanted: Vec<usize> = (0..kernels.len()).collect();
        for (n, d) in [(1, 2), (70, 3), (90, 20)] {
            let mut random = crate::random::Random::new(7);
            let values = (0..n * d).map(|_| random.uniform()).collect();
            let samples = Samples::new(values, n, d).unwrap();
            let rows = samples.rows();
            for normalise in [false, true] {
                let grams = build(&samples, &kernels, normalise, Storage::Kept);
                let ledger = grams.ledger();
                let names = samples.columns();
                let cross = CrossKernels::new(&kernels, &wanted, names, rows, normalise, ledger);
                let cross = cross.unwrap();
                let mut seen = 0;
                cross.pieces(rows, |piece| {
                    for (i, row) in (piece.first..).zip(piece.values.chunks_exact(n)) {
                        let gram: Vec<f64> = (0..n)
                            .map(|j| value(grams.as_ref(), piece.kernel, i, j))
                            .collect();
                        for (value, expected) in row.iter().zip(&gram) {
                            assert!((value - expected).abs() <= 1e-13 * expected.abs().max(1.0));
                        }
                        let own = piece.own[i - piece.first];
                        assert!((own - gram[i]).abs() <= 1e-13 * gram[i]);
                        seen += 1;
                    }
                });
                assert_eq!(seen, n * kernels.len());
            }
        }
    }
}
