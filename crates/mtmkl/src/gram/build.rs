//! From samples and kernels to Gram matrices: each base computed once, then mapped by every kernel on the same columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Grams, Matrix};
use crate::data::Samples;
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::{Base, Kernel, KernelView};
use crate::linalg;

/// What to do about kernels that do not promise to be positive semi-definite (precomputed, sigmoid, a user's own).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Definiteness {
    /// Check each Gram matrix, refuse an indefinite one. Costs a Cholesky factorisation for each.
    #[default]
    Check,
    /// Take the caller's word for it.
    Assume,
    /// Allow indefinite ones: the answer is then a local one, and the gap not certified.
    AllowIndefinite,
}

/// A row block of this many rows is one piece of parallel work: large enough for GEMM, small enough for the caches.
const BLOCK: usize = 128;

/// Bytes that the Gram matrices of these sample sets will take, and one combined matrix per thread beside them.
///
/// Grams given by the caller are counted too where they have to be copied (when they are normalised).
pub(crate) fn memory_needed(
    sets: &[Samples],
    kernels: &[KernelView],
    normalise: bool,
    threads: usize,
) -> u64 {
    let copied = kernels
        .iter()
        .filter(|view| normalise || view.kernel.base() != Base::Given)
        .count() as u64;
    let square = |set: &Samples| 8 * (set.count() as u64).pow(2);
    let largest = sets.iter().map(square).max().unwrap_or(0);
    sets.iter().map(|set| copied * square(set)).sum::<u64>() + largest * threads as u64
}

/// The Gram matrices of one sample set, and whether all are positive semi-definite as far as is known. `index` is the set's
/// number, for messages.
pub(crate) fn build(
    samples: &Samples,
    index: usize,
    kernels: &[KernelView],
    normalise: bool,
    definiteness: Definiteness,
) -> Result<(Grams, bool)> {
    let n = samples.count();
    // Kernels on the same columns with the same base share one block of base values.
    let mut groups: BTreeMap<(Base, Option<Vec<usize>>), Vec<usize>> = BTreeMap::new();
    for (number, view) in kernels.iter().enumerate() {
        let columns = view.columns.resolve(samples.columns())?;
        if view.kernel.base() != Base::Given && samples.columns().is_empty() {
            let problem = DataProblem::Empty(
                "the samples have no columns, so only precomputed kernels can be used",
            );
            return Err(Error::data(Place::Samples(index), problem));
        }
        check_domain(samples, index, columns.as_deref(), view.kernel.as_ref())?;
        // A base of the kernel's own is nobody else's.
        let columns = if view.kernel.base() == Base::Own {
            Some(vec![number])
        } else {
            columns
        };
        groups
            .entry((view.kernel.base(), columns))
            .or_default()
            .push(number);
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let built: Vec<Vec<(usize, Arc<[f64]>)>> = groups
        .par_iter()
        .map(|((base, columns), members)| {
            let columns = if *base == Base::Own {
                kernels[members[0]].columns.resolve(samples.columns())?
            } else {
                columns.clone()
            };
            build_group(
                samples,
                index,
                kernels,
                *base,
                columns.as_deref(),
                members,
                normalise,
            )
        })
        .collect::<Result<_>>()?;
    let mut matrices: Vec<Option<Arc<[f64]>>> = vec![None; kernels.len()];
    for (number, matrix) in built.into_iter().flatten() {
        matrices[number] = Some(matrix);
    }
    let matrices: Vec<Arc<[f64]>> = matrices.into_iter().flatten().collect();
    for (view, matrix) in kernels.iter().zip(&matrices) {
        if let Some(value) = matrix.iter().find(|value| !value.is_finite()) {
            let place = Place::Gram {
                samples: index,
                name: view.name.clone(),
            };
            return Err(Error::data(place, DataProblem::Overflow(*value)));
        }
    }
    let mut semidefinite = true;
    if definiteness != Definiteness::Assume {
        let checked: Result<()> = kernels
            .par_iter()
            .zip(&matrices)
            .filter(|(view, _)| !view.kernel.is_positive_definite())
            .try_for_each(|(view, matrix)| check_definite(matrix, n, index, &view.name));
        match checked {
            Err(Error::Data {
                problem: DataProblem::Indefinite { .. },
                ..
            }) if definiteness == Definiteness::AllowIndefinite => {
                semidefinite = false;
            }
            other => other?,
        }
    }
    let matrices = matrices.into_iter().map(Matrix::Given).collect();
    Ok((Grams::new(n, matrices), semidefinite))
}

fn check_domain(
    samples: &Samples,
    index: usize,
    columns: Option<&[usize]>,
    kernel: &dyn Kernel,
) -> Result<()> {
    let Some(name) = kernel.needs_non_negative() else {
        return Ok(());
    };
    let all: Vec<usize> = (0..samples.columns().len()).collect();
    for row in 0..samples.count() {
        for &column in columns.unwrap_or(&all) {
            let value = samples.rows().row(row)[column];
            if value < 0.0 {
                let place = Place::Cell {
                    samples: index,
                    row,
                    column: samples.columns()[column].clone(),
                };
                return Err(Error::data(
                    place,
                    DataProblem::Negative {
                        value,
                        kernel: name,
                    },
                ));
            }
        }
    }
    Ok(())
}

fn check_definite(matrix: &[f64], n: usize, index: usize, name: &str) -> Result<()> {
    let largest = (0..n).fold(0.0_f64, |a, i| a.max(matrix[i * n + i].abs()));
    let mut shifted = matrix.to_vec();
    for i in 0..n {
        // Rounding of n-term sums is forgiven, a negative eigenvalue beyond it is not.
        shifted[i * n + i] += 1e-9 * largest * n as f64;
    }
    if largest == 0.0 && matrix.iter().all(|&value| value == 0.0)
        || linalg::Cholesky::new(&shifted, n).is_some()
    {
        return Ok(());
    }
    let place = Place::Gram {
        samples: index,
        name: name.to_string(),
    };
    let (smallest, largest) =
        linalg::extreme_eigenvalues(matrix, n).ok_or_else(|| Error::Numeric {
            place: place.to_string(),
            problem: "the eigenvalues of the kernel could not be computed".to_string(),
        })?;
    Err(Error::data(
        place,
        DataProblem::Indefinite { smallest, largest },
    ))
}

/// The chosen columns of all rows, packed.
pub(super) fn gather(values: &[f64], d: usize, columns: Option<&[usize]>) -> Vec<f64> {
    match columns {
        None => values.to_vec(),
        Some(columns) => values
            .chunks_exact(d.max(1))
            .flat_map(|row| columns.iter().map(|&column| row[column]))
            .collect(),
    }
}

#[allow(clippy::too_many_arguments)]
fn build_group(
    samples: &Samples,
    index: usize,
    kernels: &[KernelView],
    base: Base,
    columns: Option<&[usize]>,
    members: &[usize],
    normalise: bool,
) -> Result<Vec<(usize, Arc<[f64]>)>> {
    let n = samples.count();
    let normalised = |number: usize| normalise || kernels[number].kernel.is_always_normalised();
    if base == Base::Given {
        return members
            .iter()
            .map(|&number| {
                let name = kernels[number].kernel.given().unwrap_or_default();
                let Some(given) = samples.grams().iter().find(|gram| gram.name == name) else {
                    let known: Vec<&str> = samples
                        .grams()
                        .iter()
                        .map(|gram| gram.name.as_str())
                        .collect();
                    let known = if known.is_empty() {
                        "none".to_string()
                    } else {
                        known.join(", ")
                    };
                    let place = Place::Gram {
                        samples: index,
                        name: name.to_string(),
                    };
                    return Err(Error::data(place, DataProblem::MissingGram(known)));
                };
                let unit = (0..n).all(|i| given.values[i * n + i] == 1.0);
                if !normalised(number) || unit {
                    return Ok((number, Arc::clone(&given.values)));
                }
                let mut matrix = given.values.to_vec();
                normalise_matrix(&mut matrix, n);
                Ok((number, matrix.into()))
            })
            .collect();
    }
    let d = samples.columns().len();
    let packed = gather(samples.rows().values(), d, columns);
    let width = columns.map_or(d, <[usize]>::len);
    if base == Base::Own {
        // One kernel, one group.
        let number = members[0];
        let kernel = kernels[number].kernel.as_ref();
        let mut matrix = vec![0.0; n * n];
        matrix.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
            let x = &packed[i * width..(i + 1) * width];
            for j in 0..=i {
                row[j] = kernel.value(x, &packed[j * width..(j + 1) * width]);
            }
        });
        finish(&mut matrix, n, normalised(number));
        return Ok(vec![(number, matrix.into())]);
    }
    let mut values = vec![0.0; n * n];
    base_values(&packed, width, base, &mut values);
    let (last, others) = members.split_last().ok_or(Error::Numeric {
        place: "gram".to_string(),
        problem: "an empty group of kernels".to_string(),
    })?;
    let map = |number: usize, matrix: &mut [f64]| {
        for i in 0..n {
            kernels[number].kernel.map(&mut matrix[i * n..=i * n + i]);
        }
        finish(matrix, n, normalised(number));
    };
    let mut built: Vec<(usize, Arc<[f64]>)> = others
        .par_iter()
        .map(|&number| {
            let mut matrix = values.clone();
            map(number, &mut matrix);
            (number, matrix.into())
        })
        .collect();
    // The last kernel takes over the base's memory: no more is held than the Grams themselves.
    map(*last, &mut values);
    built.push((*last, values.into()));
    Ok(built)
}

/// The lower triangle of the base matrix.
fn base_values(x: &[f64], d: usize, base: Base, out: &mut [f64]) {
    let n = x.len() / d;
    match base {
        Base::Manhattan => out.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
            for j in 0..=i {
                row[j] = manhattan(&x[i * d..(i + 1) * d], &x[j * d..(j + 1) * d]);
            }
        }),
        Base::SquaredDistance => {
            let centred = centre(x, d, &column_means(x, d));
            let squares = squared_norms(&centred, d);
            product_blocks(&centred, d, out);
            out.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
                for j in 0..i {
                    row[j] = (squares[i] + squares[j] - 2.0 * row[j]).max(0.0);
                }
                row[i] = 0.0;
            });
        }
        _ => product_blocks(x, d, out),
    }
}

/// Row blocks of XX', the lower triangle (and a little more).
fn product_blocks(x: &[f64], d: usize, out: &mut [f64]) {
    let n = x.len() / d;
    out.par_chunks_mut(n * BLOCK)
        .enumerate()
        .for_each(|(block, rows)| {
            let count = rows.len() / n;
            let until = (block * BLOCK + count).min(n);
            let mut part = vec![0.0; count * until];
            linalg::products(
                &x[block * BLOCK * d..(block * BLOCK + count) * d],
                &x[..until * d],
                d,
                &mut part,
            );
            for (row, values) in rows.chunks_exact_mut(n).zip(part.chunks_exact(until)) {
                row[..until].copy_from_slice(values);
            }
        });
}

/// Lower triangle → symmetric, and normalised if asked.
fn finish(matrix: &mut [f64], n: usize, normalised: bool) {
    mirror(matrix, n);
    if normalised {
        normalise_matrix(matrix, n);
    }
}

fn mirror(matrix: &mut [f64], n: usize) {
    const TILE: usize = 32;
    // Tile by tile, so that the column-wise writes stay in the caches.
    for row_tile in (0..n).step_by(TILE) {
        for column_tile in (0..=row_tile).step_by(TILE) {
            for i in row_tile..(row_tile + TILE).min(n) {
                for j in column_tile..(column_tile + TILE).min(i) {
                    matrix[j * n + i] = matrix[i * n + j];
                }
            }
        }
    }
}

/// K_ij ← K_ij / √(K_ii K_jj). A sample of zero norm stays the zero vector: its row and column are 0, and so is its diagonal.
fn normalise_matrix(matrix: &mut [f64], n: usize) {
    // A value beyond the range is for the caller to find, not to be scaled away.
    if (0..n).any(|i| !matrix[i * n + i].is_finite()) {
        return;
    }
    let scales: Vec<f64> = (0..n).map(|i| inverse_norm(matrix[i * n + i])).collect();
    if scales.iter().all(|&scale| scale == 1.0) {
        return;
    }
    for i in 0..n {
        for j in 0..n {
            matrix[i * n + j] *= scales[i] * scales[j];
        }
        matrix[i * n + i] = if scales[i] > 0.0 { 1.0 } else { 0.0 };
    }
}

/// 1/√k(x,x), or 0 for a sample of zero norm (or of none, with an indefinite kernel).
pub(super) fn inverse_norm(own: f64) -> f64 {
    if !own.is_finite() {
        f64::NAN
    } else if own > 0.0 {
        own.sqrt().recip()
    } else {
        0.0
    }
}

pub(super) fn manhattan(x: &[f64], z: &[f64]) -> f64 {
    x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum()
}

pub(super) fn squared_norms(x: &[f64], d: usize) -> Vec<f64> {
    x.chunks_exact(d)
        .map(|row| crate::grid::dot(row, row))
        .collect()
}

pub(super) fn column_means(x: &[f64], d: usize) -> Vec<f64> {
    let n = x.len() / d;
    let mut means = vec![0.0; d];
    for row in x.chunks_exact(d) {
        linalg::axpy(1.0 / n as f64, row, &mut means);
    }
    means
}

/// Distances do not change when all points move, and ‖x‖² + ‖z‖² − 2x'z loses fewer digits near the origin.
pub(super) fn centre(x: &[f64], d: usize, means: &[f64]) -> Vec<f64> {
    x.chunks_exact(d)
        .flat_map(|row| row.iter().zip(means).map(|(value, mean)| value - mean))
        .collect()
}
