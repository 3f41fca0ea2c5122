//! From samples and kernels to Gram matrices: each base computed once, then mapped by every kernel on the same columns.
//!
//! The base is computed in the memory of the group's last matrix. Then one sweep over its rows maps each piece to all matrices
//! of the group while it is in the first cache, the last matrix in place. So nothing is held but the Grams themselves, and each
//! of their pages is written once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::memory::{Memory, Part};
use super::pairs::{self, Packed};
use super::{Grams, Matrix, Values};
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

/// Base values mapped at a time: with as many results they fill the first cache.
const PIECE: usize = 2048;

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
    let built: Vec<Built> = groups
        .par_iter()
        .map(|((base, columns), members)| {
            let columns = if *base == Base::Own {
                kernels[members[0]].columns.resolve(samples.columns())?
            } else {
                columns.clone()
            };
            if *base == Base::Given {
                return given(samples, index, kernels, members, normalise);
            }
            let packed = Packed::new(samples.rows(), columns.as_deref());
            Ok(build_group(&packed, kernels, *base, members, normalise))
        })
        .collect::<Result<_>>()?;
    if let Some((number, value)) = built
        .iter()
        .filter_map(|built| built.overflow)
        .min_by_key(|(number, _)| *number)
    {
        let place = Place::Gram {
            samples: index,
            name: kernels[number].name.clone(),
        };
        return Err(Error::data(place, DataProblem::Overflow(value)));
    }
    let mut matrices: Vec<(usize, Matrix)> =
        built.into_iter().flat_map(|built| built.matrices).collect();
    matrices.sort_unstable_by_key(|(number, _)| *number);
    let matrices: Vec<Matrix> = matrices.into_iter().map(|(_, matrix)| matrix).collect();
    let mut semidefinite = true;
    if definiteness != Definiteness::Assume {
        let checked: Result<()> = kernels
            .par_iter()
            .zip(&matrices)
            .filter(|(view, _)| !view.kernel.is_positive_definite())
            .try_for_each(|(view, matrix)| match matrix.values(0, n * n) {
                Values::Double(values) => check_definite(values, n, index, &view.name),
                Values::Single(values) => {
                    let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
                    check_definite(&values, n, index, &view.name)
                }
            });
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

/// The matrices of one group with their kernels' numbers, and the first value that is not finite.
struct Built {
    matrices: Vec<(usize, Matrix)>,
    overflow: Option<(usize, f64)>,
}

fn is_normalised(kernel: &dyn Kernel, normalise: bool) -> bool {
    normalise || kernel.is_always_normalised()
}

/// The matrices that the caller gave: shared as they are where nothing is to be done to them.
fn given(
    samples: &Samples,
    index: usize,
    kernels: &[KernelView],
    members: &[usize],
    normalise: bool,
) -> Result<Built> {
    let n = samples.count();
    let mut built = Built {
        matrices: Vec::with_capacity(members.len()),
        overflow: None,
    };
    for &number in members {
        let kernel = kernels[number].kernel.as_ref();
        let name = kernel.given().unwrap_or_default();
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
        if unit || !is_normalised(kernel, normalise) {
            let matrix = Matrix::Given(Arc::clone(&given.values));
            built.matrices.push((number, matrix));
            continue;
        }
        let mut values = Memory::zeros(n * n);
        values.copy_from_slice(&given.values);
        let overflow = sweep(&mut values, n, kernels, &[number], normalise);
        built.overflow = built.overflow.or(overflow);
        let parts = Part::split(values, n * n).map(Matrix::Built);
        built.matrices.extend(parts.map(|matrix| (number, matrix)));
    }
    Ok(built)
}

/// The matrices of all kernels with one base on the same columns.
fn build_group(
    x: &Packed,
    kernels: &[KernelView],
    base: Base,
    members: &[usize],
    normalise: bool,
) -> Built {
    let n = x.count();
    let mut values = Memory::zeros(members.len() * n * n);
    if let Some(last) = values.chunks_exact_mut(n * n).next_back() {
        match base {
            // One kernel, one group.
            Base::Own => {
                let kernel = kernels[members[0]].kernel.as_ref();
                last.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
                    for (j, value) in row[..=i].iter_mut().enumerate() {
                        *value = kernel.value(x.row(i), x.row(j));
                    }
                });
            }
            _ => pairs::lower_triangle(x, base, last),
        }
        mirror(last, n);
    }
    let overflow = sweep(&mut values, n, kernels, members, normalise);
    let matrices = Part::split(values, n * n).map(Matrix::Built);
    Built {
        matrices: members.iter().copied().zip(matrices).collect(),
        overflow,
    }
}

/// Base values, all in the last matrix → kernel values in every matrix, normalised where asked. Returns the first value that is
/// not finite, by kernel and then by row.
fn sweep(
    matrices: &mut [f64],
    n: usize,
    kernels: &[KernelView],
    members: &[usize],
    normalise: bool,
) -> Option<(usize, f64)> {
    let last = matrices.chunks_exact(n * n).next_back()?;
    let diagonal: Vec<f64> = (0..n).map(|i| last[i * n + i]).collect();
    let maps: Vec<Map<'_>> = members
        .iter()
        .map(|&number| Map::new(kernels[number].kernel.as_ref(), &diagonal, normalise))
        .collect();
    // The same rows of all matrices are one piece of work.
    let rows = (PIECE / n).max(1);
    let mut pieces: Vec<Vec<&mut [f64]>> = std::iter::repeat_with(Vec::new)
        .take(n.div_ceil(rows))
        .collect();
    for matrix in matrices.chunks_exact_mut(n * n) {
        for (piece, part) in pieces.iter_mut().zip(matrix.chunks_mut(rows * n)) {
            piece.push(part);
        }
    }
    pieces
        .into_par_iter()
        .enumerate()
        .filter_map(|(number, mut parts)| {
            let (base, others) = parts.split_last_mut()?;
            let (last, maps) = maps.split_last()?;
            let mut first = None;
            for (position, (map, part)) in maps.iter().zip(others).enumerate() {
                part.copy_from_slice(base);
                let finite = map.apply(part, number * rows);
                first = first.or((!finite).then(|| (position, first_overflow(part))));
            }
            let finite = last.apply(base, number * rows);
            first.or((!finite).then(|| (maps.len(), first_overflow(base))))
        })
        // Among equal kernels the first piece wins, whoever finishes first.
        .collect::<Vec<_>>()
        .into_iter()
        .min_by_key(|(position, _)| *position)
        .map(|(position, value)| (members[position], value))
}

fn first_overflow(values: &[f64]) -> f64 {
    let found = values.iter().copied().find(|value| !value.is_finite());
    found.unwrap_or(f64::NAN)
}

/// What one kernel does to the rows of a base.
struct Map<'a> {
    kernel: &'a dyn Kernel,
    /// 1/√k(x,x), where something is to be scaled.
    scales: Option<Vec<f64>>,
}

impl<'a> Map<'a> {
    fn new(kernel: &'a dyn Kernel, base_diagonal: &[f64], normalise: bool) -> Self {
        let scales = is_normalised(kernel, normalise).then(|| {
            let mut own = base_diagonal.to_vec();
            map_base(kernel, &mut own);
            own.iter().map(|&own| inverse_norm(own)).collect()
        });
        // A value beyond the range is to be found, not to be scaled away.
        let scales = scales.filter(|scales: &Vec<f64>| {
            scales.iter().all(|scale| scale.is_finite()) && scales.iter().any(|&scale| scale != 1.0)
        });
        Self { kernel, scales }
    }

    /// Whole rows of a matrix from row `first` on. Says whether all values are finite.
    ///
    /// K_ij ← K_ij / √(K_ii K_jj). A sample of zero norm stays the zero vector: its row and column are 0, and so is its diagonal.
    fn apply(&self, rows: &mut [f64], first: usize) -> bool {
        map_base(self.kernel, rows);
        if let Some(scales) = &self.scales {
            for (i, row) in (first..).zip(rows.chunks_exact_mut(scales.len())) {
                for (value, scale) in row.iter_mut().zip(scales) {
                    *value *= scales[i] * scale;
                }
                row[i] = if scales[i] > 0.0 { 1.0 } else { 0.0 };
            }
        }
        crate::vector::all_finite(rows)
    }
}

/// Base values → kernel values; those of [`Base::Own`] and [`Base::Given`] are kernel values already.
pub(super) fn map_base(kernel: &dyn Kernel, values: &mut [f64]) {
    if !matches!(kernel.base(), Base::Own | Base::Given) {
        kernel.map(values);
    }
}

/// Rows and columns that are copied at a time, so that the column-wise writes stay in the caches.
const TILE: usize = 32;

/// Lower triangle → symmetric.
fn mirror(matrix: &mut [f64], n: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse_kernels;

    const KERNELS: [&str; 10] = [
        "rbf:sigma=0.5|2",
        "linear",
        "poly:degree=3",
        "laplacian:gamma=0.2",
        "matern32:length=3",
        "matern52",
        "cosine",
        "chi2",
        "intersection",
        "rbf:gamma=0.7@f1",
    ];

    fn kernels() -> Vec<KernelView> {
        KERNELS
            .iter()
            .flat_map(|spec| parse_kernels(spec).unwrap())
            .collect()
    }

    /// Values ≥ 0, far from the origin; the last row is 0.
    fn samples(n: usize, d: usize) -> Samples {
        let mut random = crate::random::Random::new(n as u64);
        let mut values: Vec<f64> = (0..n * d).map(|_| 3.0 + random.uniform()).collect();
        values[(n - 1) * d..].fill(0.0);
        Samples::new(values, n, d).unwrap()
    }

    fn grams(samples: &Samples, normalise: bool, threads: usize) -> Grams {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let built = || build(samples, 0, &kernels(), normalise, Definiteness::Assume);
        pool.install(built).unwrap().0
    }

    fn value(grams: &Grams, m: usize, i: usize, j: usize) -> f64 {
        grams.matrices[m].value(i * grams.samples + j)
    }

    /// k(x, z) from the definition of its base, one pair at a time.
    fn direct(view: &KernelView, x: &[f64], z: &[f64]) -> f64 {
        let (x, z) = match view.columns {
            crate::kernel::Columns::All => (x, z),
            _ => (&x[..1], &z[..1]),
        };
        let sum = |term: fn(f64, f64) -> f64| x.iter().zip(z).map(|(&a, &b)| term(a, b)).sum();
        let mut value = match view.kernel.base() {
            Base::Product => [sum(|a, b| a * b)],
            Base::SquaredDistance => [sum(|a, b| (a - b).powi(2))],
            Base::Manhattan => [sum(|a, b| (a - b).abs())],
            _ => return view.kernel.value(x, z),
        };
        view.kernel.map(&mut value);
        value[0]
    }

    #[test]
    fn grams_equal_the_kernels_pair_by_pair() {
        for (n, d) in [(1, 1), (2, 3), (40, 8), (65, 9), (150, 40)] {
            let samples = samples(n, d);
            for normalise in [false, true] {
                let grams = grams(&samples, normalise, 2);
                for (m, view) in kernels().iter().enumerate() {
                    let pair = |i, j| direct(view, samples.rows().row(i), samples.rows().row(j));
                    for i in 0..n {
                        for j in 0..n {
                            let scale = if is_normalised(view.kernel.as_ref(), normalise) {
                                inverse_norm(pair(i, i)) * inverse_norm(pair(j, j))
                            } else {
                                1.0
                            };
                            let (found, expected) = (value(&grams, m, i, j), pair(i, j) * scale);
                            assert!(
                                (found - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                                "{} {n} {d} ({i}, {j}): {found} {expected}",
                                view.name
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn exactly_symmetric_with_an_exact_diagonal_for_any_number_of_threads() {
        for (n, d) in [(33, 2), (150, 40), (331, 12)] {
            let samples = samples(n, d);
            let (one, five) = (grams(&samples, true, 1), grams(&samples, true, 5));
            for m in 0..kernels().len() {
                for i in 0..n {
                    for j in 0..n {
                        assert_eq!(value(&one, m, i, j), value(&five, m, i, j));
                        assert_eq!(
                            value(&one, m, i, j).to_bits(),
                            value(&one, m, j, i).to_bits()
                        );
                    }
                    let own = value(&one, m, i, i);
                    assert!(own == 1.0 || own == 0.0 && i == n - 1, "{m} {own}");
                }
            }
        }
    }

    #[test]
    fn the_first_kernel_beyond_the_range_is_named() {
        let mut values = vec![1.0; 300];
        values[299] = 1e200;
        let samples = Samples::new(values, 300, 1).unwrap();
        let kernels: Vec<KernelView> = ["rbf", "poly:degree=4", "linear", "poly:degree=2"]
            .iter()
            .flat_map(|spec| parse_kernels(spec).unwrap())
            .collect();
        for normalise in [false, true] {
            let built = build(&samples, 0, &kernels, normalise, Definiteness::Assume);
            let message = built.unwrap_err().to_string();
            assert!(message.contains(&kernels[1].name), "{message}");
        }
    }
}
