//! Kernel values between new samples and support rows, for prediction.

use std::collections::BTreeMap;

use super::build::{centre, column_means, gather, inverse_norm, manhattan, squared_norms};
use crate::data::Rows;
use crate::error::Result;
use crate::kernel::{Base, Kernel, KernelView};
use crate::linalg;

/// The kernels of a model with their columns resolved, ready to compare new rows with support rows.
#[derive(Debug)]
pub(crate) struct CrossKernels<'a> {
    views: &'a [KernelView],
    columns: Vec<Option<Vec<usize>>>,
    normalise: bool,
}

/// Base values of one view: a block n × m and what normalisation needs.
struct BaseBlock {
    values: Vec<f64>,
    own_x: Vec<f64>,
    own_z: Vec<f64>,
}

impl<'a> CrossKernels<'a> {
    pub(crate) fn new(views: &'a [KernelView], names: &[String], normalise: bool) -> Result<Self> {
        let columns = views
            .iter()
            .map(|view| view.columns.resolve(names))
            .collect::<Result<_>>()?;
        Ok(Self {
            views,
            columns,
            normalise,
        })
    }

    /// Calls `each(m, K_m(x, z), k_m(x, x))` for every kernel of `wanted` that is computed from rows: the block n × m, row by
    /// row, normalised as in training, and the diagonal for the new rows. Bases are shared between kernels.
    pub(crate) fn blocks(
        &self,
        wanted: &[usize],
        x: Rows<'_>,
        z: Rows<'_>,
        mut each: impl FnMut(usize, &[f64], &[f64]),
    ) {
        let mut groups: BTreeMap<(Base, &Option<Vec<usize>>), Vec<usize>> = BTreeMap::new();
        for &number in wanted {
            let base = self.views[number].kernel.base();
            if base != Base::Given {
                groups
                    .entry((base, &self.columns[number]))
                    .or_default()
                    .push(number);
            }
        }
        let (n, m) = (x.rows(), z.rows());
        let mut block = vec![0.0; n * m];
        for ((base, columns), members) in groups {
            let d = x.columns();
            let width = columns.as_ref().map_or(d, Vec::len);
            let packed_x = gather(x.values(), d, columns.as_deref());
            let packed_z = gather(z.values(), d, columns.as_deref());
            let shared = (base != Base::Own).then(|| base_block(&packed_x, &packed_z, width, base));
            for number in members {
                let kernel = self.views[number].kernel.as_ref();
                let normalised = self.normalise || kernel.is_always_normalised();
                let (mut own_x, own_z) = if let Some(shared) = &shared {
                    block.copy_from_slice(&shared.values);
                    kernel.map(&mut block);
                    let (mut own_x, mut own_z) = (shared.own_x.clone(), shared.own_z.clone());
                    kernel.map(&mut own_x);
                    kernel.map(&mut own_z);
                    (own_x, own_z)
                } else {
                    own_block(kernel, &packed_x, &packed_z, width, &mut block)
                };
                if normalised {
                    normalise_block(&mut block, &mut own_x, &own_z);
                }
                each(number, &block, &own_x);
            }
        }
    }
}

fn base_block(x: &[f64], z: &[f64], d: usize, base: Base) -> BaseBlock {
    let (n, m) = (x.len() / d, z.len() / d);
    let mut values = vec![0.0; n * m];
    match base {
        Base::SquaredDistance => {
            let means = column_means(z, d);
            let (x, z) = (centre(x, d, &means), centre(z, d, &means));
            linalg::products(&x, &z, d, &mut values);
            let (squares_x, squares_z) = (squared_norms(&x, d), squared_norms(&z, d));
            for (row, own) in values.chunks_exact_mut(m.max(1)).zip(&squares_x) {
                for (value, other) in row.iter_mut().zip(&squares_z) {
                    *value = (own + other - 2.0 * *value).max(0.0);
                }
            }
            BaseBlock {
                values,
                own_x: vec![0.0; n],
                own_z: vec![0.0; m],
            }
        }
        Base::Manhattan => {
            for (row, own) in values.chunks_exact_mut(m.max(1)).zip(x.chunks_exact(d)) {
                for (value, other) in row.iter_mut().zip(z.chunks_exact(d)) {
                    *value = manhattan(own, other);
                }
            }
            BaseBlock {
                values,
                own_x: vec![0.0; n],
                own_z: vec![0.0; m],
            }
        }
        _ => {
            linalg::products(x, z, d, &mut values);
            BaseBlock {
                values,
                own_x: squared_norms(x, d),
                own_z: squared_norms(z, d),
            }
        }
    }
}

fn own_block(
    kernel: &dyn Kernel,
    x: &[f64],
    z: &[f64],
    d: usize,
    out: &mut [f64],
) -> (Vec<f64>, Vec<f64>) {
    let m = z.len() / d;
    for (row, own) in out.chunks_exact_mut(m.max(1)).zip(x.chunks_exact(d)) {
        for (value, other) in row.iter_mut().zip(z.chunks_exact(d)) {
            *value = kernel.value(own, other);
        }
    }
    let own = |rows: &[f64]| {
        rows.chunks_exact(d)
            .map(|row| kernel.value(row, row))
            .collect()
    };
    (own(x), own(z))
}

fn normalise_block(block: &mut [f64], own_x: &mut [f64], own_z: &[f64]) {
    let scales: Vec<f64> = own_z.iter().map(|&own| inverse_norm(own)).collect();
    for (number, own) in own_x.iter_mut().enumerate() {
        let scale = inverse_norm(*own);
        let row = &mut block[number * scales.len()..(number + 1) * scales.len()];
        for (value, other) in row.iter_mut().zip(&scales) {
            *value *= scale * other;
        }
        *own = if scale > 0.0 { 1.0 } else { 0.0 };
    }
}
