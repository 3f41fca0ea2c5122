//! Kernel values between new samples and support rows, for prediction.

use std::collections::BTreeMap;

use super::build::{inverse_norm, is_normalised, map_base, own_value};
use super::pairs::{Others, Packed};
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::{Base, Kernel, KernelView};

/// Base values mapped at a time: with as many results they fill the first cache.
const PIECE: usize = 2048;

/// The kernels of a model with its support rows, ready for new rows. Kernels on the same columns share what they can.
#[derive(Debug)]
pub(crate) struct CrossKernels<'a> {
    groups: Vec<Group<'a>>,
}

/// Kernels with one base on the same columns.
#[derive(Debug)]
struct Group<'a> {
    columns: Option<Vec<usize>>,
    base: Base,
    support: Packed,
    others: Others,
    members: Vec<Member<'a>>,
}

#[derive(Debug)]
struct Member<'a> {
    number: usize,
    kernel: &'a dyn Kernel,
    /// 1/√k(z,z) of the support rows, where the kernel is normalised.
    scales: Option<Vec<f64>>,
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
        support: Rows<'_>,
        normalise: bool,
    ) -> Result<Self> {
        let mut groups: BTreeMap<(Base, Option<Vec<usize>>), Vec<usize>> = BTreeMap::new();
        for &number in wanted {
            let base = views[number].kernel.base();
            if base != Base::Given {
                let columns = views[number].columns.resolve(names)?;
                groups.entry((base, columns)).or_default().push(number);
            }
        }
        let groups = groups.into_iter().map(|((base, columns), members)| {
            let support = Packed::new(support, columns.as_deref());
            let member = |number: usize| {
                let kernel = views[number].kernel.as_ref();
                let scales = is_normalised(kernel, normalise).then(|| {
                    let own = own_values(kernel, &support);
                    own.iter().map(|&own| inverse_norm(own)).collect()
                });
                Member {
                    number,
                    kernel,
                    scales,
                }
            };
            Group {
                base,
                others: Others::new(&support, base),
                members: members.into_iter().map(member).collect(),
                columns,
                support,
            }
        });
        Ok(Self {
            groups: groups.collect(),
        })
    }

    /// Calls `each` with pieces of K_m(x, z), normalised as in training, for all kernels and all of the rows x.
    pub(crate) fn pieces(&self, x: Rows<'_>, mut each: impl FnMut(CrossPiece<'_>)) {
        for group in &self.groups {
            group.pieces(x, &mut each);
        }
    }
}

impl Group<'_> {
    fn pieces(&self, x: Rows<'_>, each: &mut impl FnMut(CrossPiece<'_>)) {
        let x = Packed::new(x, self.columns.as_deref());
        let m = self.others.count();
        let mut base = vec![0.0; x.count() * m];
        if self.base != Base::Own && m > 0 {
            self.others.block(x.values(), m, &mut base, m);
        }
        let rows = (PIECE / m.max(1)).max(1);
        let mut piece = vec![0.0; rows.min(x.count()) * m];
        for member in &self.members {
            let mut own = own_values(member.kernel, &x);
            let scales: Option<Vec<f64>> = member
                .scales
                .is_some()
                .then(|| own.iter().map(|&own| inverse_norm(own)).collect());
            if let Some(scales) = &scales {
                for (own, scale) in own.iter_mut().zip(scales) {
                    *own = own_value(*scale);
                }
            }
            for first in (0..x.count()).step_by(rows) {
                let until = (first + rows).min(x.count());
                let values = &mut piece[..(until - first) * m];
                if self.base == Base::Own {
                    for (row, i) in values.chunks_exact_mut(m.max(1)).zip(first..) {
                        for (j, value) in row.iter_mut().enumerate() {
                            *value = member.kernel.value(x.row(i), self.support.row(j));
                        }
                    }
                } else {
                    values.copy_from_slice(&base[first * m..until * m]);
                    member.kernel.map(values);
                }
                if let (Some(new), Some(support)) = (&scales, &member.scales) {
                    for (row, scale) in values.chunks_exact_mut(m.max(1)).zip(&new[first..]) {
                        for (value, other) in row.iter_mut().zip(support) {
                            *value *= scale * other;
                        }
                    }
                }
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

/// k(x, x) of all rows.
fn own_values(kernel: &dyn Kernel, x: &Packed) -> Vec<f64> {
    let mut own = match kernel.base() {
        Base::Product => x.squared_norms(),
        Base::Own => (0..x.count())
            .map(|i| kernel.value(x.row(i), x.row(i)))
            .collect(),
        _ => vec![0.0; x.count()],
    };
    map_base(kernel, &mut own);
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::gram::{Definiteness, Storage, build};
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
                let (grams, _) = build(
                    &samples,
                    0,
                    &kernels,
                    normalise,
                    Definiteness::Assume,
                    Storage::Kept,
                    false,
                )
                .unwrap();
                let cross =
                    CrossKernels::new(&kernels, &wanted, samples.columns(), rows, normalise)
                        .unwrap();
                let mut seen = 0;
                cross.pieces(rows, |piece| {
                    for (i, row) in (piece.first..).zip(piece.values.chunks_exact(n)) {
                        let gram: Vec<f64> = (0..n)
                            .map(|j| grams.matrices[piece.kernel].value(i * n + j))
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
