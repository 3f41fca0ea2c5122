//! From samples and kernels to Gram matrices: each base computed once, then mapped by every kernel on the same columns.
//!
//! The base is computed in the memory of the group's last matrix. Then one sweep over its rows maps each piece to all matrices
//! of the group while it is in the first cache, the last matrix in place. So nothing is held but the Grams themselves, and each
//! of their pages is written once. Where they would not fit into memory, the base is kept instead (see [`super::mapped`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::mapped::Mapped;
use super::matrix::round;
use super::memory::{Memory, Part};
use super::pairs::{self, Packed};
use super::{Grams, Matrix, Values};
use crate::data::{GivenGram, Samples};
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::{Base, Kernel, KernelView};
use crate::linalg;
use crate::vector;

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

/// Where kernel values come from while a problem is solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// All Gram matrices are kept: M n² numbers.
    Kept,
    /// For kernels that are functions of the inner product, the squared or the Manhattan distance, these are kept, n² numbers for all
    /// kernels on the same columns, and kernel values are made from them whenever they are needed, bit for bit the same. There is little to
    /// prepare, so that one fit may be faster; of many fits on the same matrices, each takes longer.
    OnDemand,
}

/// What the Gram matrices of one sample set take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    samples: usize,
    /// Matrices that others are made from.
    bases: u64,
    /// Matrices computed here and kept.
    built: u64,
    /// Of these, in single precision, those that are rounded as they are computed, and the bases that takes.
    direct: u64,
    direct_bases: u64,
    /// Matrices of the caller's that are used as they are.
    given: u64,
    single: bool,
}

impl Size {
    pub(crate) fn new(
        samples: &Samples,
        kernels: &[KernelView],
        normalise: bool,
        single: bool,
        storage: Storage,
    ) -> Result<Self> {
        let mut size = Self {
            samples: samples.count(),
            bases: 0,
            built: 0,
            direct: 0,
            direct_bases: 0,
            given: 0,
            single,
        };
        for ((base, _), members) in groups(samples.columns(), kernels)? {
            let count = members.len() as u64;
            match base {
                Base::Given if !normalise => size.given += count,
                Base::Given | Base::Own => size.built += count,
                _ if storage == Storage::OnDemand => size.bases += 1,
                _ => {
                    size.built += count;
                    if single && is_rounded_at_once(base, kernels, &members) {
                        size.direct += count;
                        size.direct_bases += 1;
                    }
                }
            }
        }
        Ok(size)
    }

    /// Bytes of a matrix in double precision.
    pub(crate) fn square(samples: usize) -> u64 {
        8_u64.saturating_mul((samples as u64).saturating_pow(2))
    }

    /// Bytes that stay.
    pub(crate) fn kept(&self) -> u64 {
        let square = Self::square(self.samples);
        if self.single {
            let rest = (self.built + self.given).saturating_mul(square / 2);
            self.bases.saturating_mul(square).saturating_add(rest)
        } else {
            (self.bases + self.built).saturating_mul(square)
        }
    }

    /// Bytes that are needed on the way, beside those that stay: bases, and matrices that are rounded once they are computed.
    pub(crate) fn passing(&self) -> u64 {
        if self.single {
            let count = self.built - self.direct + self.direct_bases;
            count.saturating_mul(Self::square(self.samples))
        } else {
            0
        }
    }

    /// Bytes of a copy on so many of the samples.
    pub(crate) fn part(&self, samples: usize) -> u64 {
        let square = Self::square(samples);
        let rest = if self.single { square / 2 } else { square };
        let rest = (self.built + self.given).saturating_mul(rest);
        self.bases.saturating_mul(square).saturating_add(rest)
    }
}

type Groups = BTreeMap<(Base, Option<Vec<usize>>), Vec<usize>>;

/// Kernels on the same columns with the same base, together: they share one block of base values.
fn groups(names: &[String], kernels: &[KernelView]) -> Result<Groups> {
    let mut groups = Groups::new();
    for (number, view) in kernels.iter().enumerate() {
        let base = view.kernel.base();
        let columns = view.columns.resolve(names)?;
        // A base of the kernel's own is nobody else's.
        let columns = if base == Base::Own {
            Some(vec![number])
        } else {
            columns
        };
        groups.entry((base, columns)).or_default().push(number);
    }
    Ok(groups)
}

/// Whether matrices in single precision are rounded as they are computed. Those whose definiteness is to be checked are not: it is
/// checked before rounding.
fn is_rounded_at_once(base: Base, kernels: &[KernelView], members: &[usize]) -> bool {
    let definite = |&number: &usize| kernels[number].kernel.is_positive_definite();
    !matches!(base, Base::Own | Base::Given) && members.iter().all(definite)
}

/// The Gram matrices of one sample set, and whether all are positive semi-definite as far as is known. `index` is the set's
/// number, for messages. With `single`, most of them are in single precision.
pub(crate) fn build(
    samples: &Samples,
    index: usize,
    kernels: &[KernelView],
    normalise: bool,
    definiteness: Definiteness,
    storage: Storage,
    single: bool,
) -> Result<(Grams, bool)> {
    let n = samples.count();
    for view in kernels {
        let columns = view.columns.resolve(samples.columns())?;
        if view.kernel.base() != Base::Given && samples.columns().is_empty() {
            let problem = DataProblem::Empty(
                "the samples have no columns, so only precomputed kernels can be used",
            );
            return Err(Error::data(Place::Samples(index), problem));
        }
        check_domain(samples, index, columns.as_deref(), view.kernel.as_ref())?;
    }
    let groups: Vec<_> = groups(samples.columns(), kernels)?.into_iter().collect();
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
            let group = Group {
                x: &packed,
                kernels,
                base: *base,
                members,
                normalise,
            };
            Ok(if *base != Base::Own && storage == Storage::OnDemand {
                group.keep_base()
            } else if single && is_rounded_at_once(*base, kernels, members) {
                group.build_rounded()
            } else {
                group.build()
            })
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
    let mut indefiniteness = vec![0.0; kernels.len()];
    if definiteness != Definiteness::Assume {
        let checked: Vec<(usize, Result<f64>)> = (0..kernels.len())
            .into_par_iter()
            .filter(|&number| !kernels[number].kernel.is_positive_definite())
            .map(|number| {
                let name = &kernels[number].name;
                let checked = match matrices[number].values(0, n * n) {
                    Values::Double(values) => check_definite(values, n, index, name),
                    Values::Single(values) => {
                        let values: Vec<f64> = values.iter().copied().map(f64::from).collect();
                        check_definite(&values, n, index, name)
                    }
                    Values::Made(values) => check_definite(&values, n, index, name),
                };
                (number, checked)
            })
            .collect();
        for (number, checked) in checked {
            match checked {
                Err(Error::Data {
                    problem: DataProblem::Indefinite { smallest, .. },
                    ..
                }) if definiteness == Definiteness::AllowIndefinite => {
                    semidefinite = false;
                    indefiniteness[number] = -smallest;
                }
                other => indefiniteness[number] = other?,
            }
        }
    }
    let grams = Grams::new(n, matrices).with_indefiniteness(indefiniteness);
    Ok((grams, semidefinite))
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

/// A negative eigenvalue is forgiven down to minus this, times n and the largest entry of the diagonal: what rounding does to sums of n
/// terms, also where a matrix was kept in single precision once.
const FORGIVEN: f64 = 1e-9;
/// The same for what rounding in double precision does to any matrix, also to one that is singular by right.
const ROUNDING: f64 = f64::EPSILON;

/// ε ≥ 0 such that K + ε is positive semi-definite, as far as floating point can tell: 0 where K is, at most twice what it takes where
/// it is not. More than is forgiven is an error.
fn check_definite(matrix: &[f64], n: usize, index: usize, name: &str) -> Result<f64> {
    let largest = (0..n).fold(0.0_f64, |a, i| a.max(matrix[i * n + i].abs()));
    if largest == 0.0 && matrix.iter().all(|&value| value == 0.0) {
        return Ok(0.0);
    }
    let is_definite = |shift: f64| {
        let mut shifted = matrix.to_vec();
        for i in 0..n {
            shifted[i * n + i] += shift;
        }
        linalg::Cholesky::new(&shifted, n).is_some()
    };
    if is_definite(0.0) {
        return Ok(0.0);
    }
    let unit = largest * n as f64;
    let (mut low, mut high) = (ROUNDING * unit, FORGIVEN * unit);
    if is_definite(low) {
        return Ok(low);
    }
    if is_definite(high) {
        while high > 2.0 * low {
            let middle = (low * high).sqrt();
            if is_definite(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        return Ok(high);
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

/// Whether a kernel is used in its normalised form, in training and in prediction.
pub(crate) fn is_normalised(kernel: &dyn Kernel, normalise: bool) -> bool {
    normalise || kernel.is_always_normalised()
}

/// Whether k(x, x) = 1 for all samples of a set. A given Gram matrix with that diagonal is that of a normalised kernel: there is nothing
/// to do to it, and k(x, x) of new samples is 1 where it is not given. It takes all samples of the set to say so, not only those that
/// a model keeps.
pub(crate) fn has_unit_diagonal(gram: &GivenGram, samples: usize) -> bool {
    (0..samples).all(|i| gram.values[i * samples + i] == 1.0)
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
        if has_unit_diagonal(given, n) || !is_normalised(kernel, normalise) {
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

/// All kernels with one base on the same columns.
#[derive(Clone, Copy)]
struct Group<'a> {
    x: &'a Packed,
    kernels: &'a [KernelView],
    base: Base,
    /// Their numbers among all kernels.
    members: &'a [usize],
    normalise: bool,
}

impl Group<'_> {
    /// Their matrices.
    fn build(&self) -> Built {
        let n = self.x.count();
        let mut values = Memory::zeros(self.members.len() * n * n);
        if let Some(last) = values.chunks_exact_mut(n * n).next_back() {
            match self.base {
                // One kernel, one group.
                Base::Own => {
                    let kernel = self.kernels[self.members[0]].kernel.as_ref();
                    last.par_chunks_mut(n).enumerate().for_each(|(i, row)| {
                        for (j, value) in row[..=i].iter_mut().enumerate() {
                            *value = kernel.value(self.x.row(i), self.x.row(j));
                        }
                    });
                    mirror(last, n);
                }
                _ => write_base(self.x, self.base, last),
            }
        }
        let overflow = sweep(&mut values, n, self.kernels, self.members, self.normalise);
        let matrices = Part::split(values, n * n).map(Matrix::Built);
        Built {
            matrices: self.members.iter().copied().zip(matrices).collect(),
            overflow,
        }
    }

    /// The same, rounded to single precision piece by piece.
    fn build_rounded(&self) -> Built {
        let n = self.x.count();
        let (values, maps) = self.base_and_maps();
        let mut rounded = Memory::<f32>::zeros(self.members.len() * n * n);
        let rows = (PIECE / n).max(1);
        let found = row_pieces(&mut rounded, n, rows)
            .into_par_iter()
            .zip(values.par_chunks(rows * n))
            .enumerate()
            .filter_map(|(number, (parts, base))| {
                let mut buffer = vec![0.0; base.len()];
                let mut first = None;
                for (position, (map, part)) in maps.iter().zip(parts).enumerate() {
                    buffer.copy_from_slice(base);
                    map.apply(&mut buffer, number * rows);
                    round(&buffer, part);
                    // Beyond the range of single precision is beyond the range.
                    let beyond = part.iter().position(|value| !value.is_finite());
                    first = first.or(beyond.map(|at| (position, buffer[at])));
                }
                first
            })
            .collect();
        let matrices = Part::split(rounded, n * n).map(Matrix::Single);
        Built {
            matrices: self.members.iter().copied().zip(matrices).collect(),
            overflow: first_found(found, self.members),
        }
    }

    /// The same, to be made from the base when they are needed.
    fn keep_base(&self) -> Built {
        let n = self.x.count();
        let (values, maps) = self.base_and_maps();
        let base = Part::from(values);
        let matrices: Vec<(usize, Mapped)> = self
            .members
            .iter()
            .zip(maps)
            .map(|(&number, map)| (number, Mapped::new(base.clone(), map, n)))
            .collect();
        // Values are not kept, yet one beyond the range is to be found now.
        let is_finite = base.par_chunks(n.max(1)).all(vector::all_finite);
        let is_bounded = |number: usize| self.kernels[number].kernel.is_bounded();
        let overflow = matrices
            .par_iter()
            .filter(|(number, _)| !(is_finite && is_bounded(*number)))
            .find_map_first(|(number, mapped)| Some((*number, mapped.overflow()?)));
        Built {
            matrices: matrices
                .into_iter()
                .map(|(number, mapped)| (number, Matrix::Mapped(mapped)))
                .collect(),
            overflow,
        }
    }

    /// The base, n × n, and what each kernel does to it.
    fn base_and_maps(&self) -> (Memory<f64>, Vec<Map>) {
        let n = self.x.count();
        let mut values = Memory::zeros(n * n);
        write_base(self.x, self.base, &mut values);
        let maps = maps(&values, n, self.kernels, self.members, self.normalise);
        (values, maps)
    }
}

/// What the kernels of a group do to their base, n × n.
fn maps(
    base: &[f64],
    n: usize,
    kernels: &[KernelView],
    members: &[usize],
    normalise: bool,
) -> Vec<Map> {
    let diagonal: Vec<f64> = (0..n).map(|i| base[i * n + i]).collect();
    members
        .par_iter()
        .map(|&number| Map::new(&kernels[number].kernel, &diagonal, normalise))
        .collect()
}

fn write_base(x: &Packed, base: Base, out: &mut [f64]) {
    pairs::lower_triangle(x, base, out);
    mirror(out, x.count());
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
    let maps = maps(last, n, kernels, members, normalise);
    let rows = (PIECE / n).max(1);
    let found = row_pieces(matrices, n, rows)
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
        .collect();
    first_found(found, members)
}

/// So many rows of all matrices at a time: one piece of work each.
fn row_pieces<T>(matrices: &mut [T], n: usize, rows: usize) -> Vec<Vec<&mut [T]>> {
    let mut pieces: Vec<Vec<&mut [T]>> = std::iter::repeat_with(Vec::new)
        .take(n.div_ceil(rows))
        .collect();
    for matrix in matrices.chunks_exact_mut(n * n) {
        for (piece, part) in pieces.iter_mut().zip(matrix.chunks_mut(rows * n)) {
            piece.push(part);
        }
    }
    pieces
}

/// Of the values that pieces found, the first kernel's; among equal kernels the first piece wins, whoever finishes first.
fn first_found(found: Vec<(usize, f64)>, members: &[usize]) -> Option<(usize, f64)> {
    found
        .into_iter()
        .min_by_key(|(position, _)| *position)
        .map(|(position, value)| (members[position], value))
}

pub(super) fn first_overflow(values: &[f64]) -> f64 {
    let found = values.iter().copied().find(|value| !value.is_finite());
    found.unwrap_or(f64::NAN)
}

/// What one kernel does to the rows of a base.
#[derive(Debug)]
pub(super) struct Map {
    kernel: Arc<dyn Kernel>,
    /// 1/√k(x,x), where something is to be scaled.
    scales: Option<Vec<f64>>,
}

impl Map {
    fn new(kernel: &Arc<dyn Kernel>, base_diagonal: &[f64], normalise: bool) -> Self {
        let scales = is_normalised(kernel.as_ref(), normalise).then(|| {
            let mut own = base_diagonal.to_vec();
            map_base(kernel.as_ref(), &mut own);
            own.iter().map(|&own| inverse_norm(own)).collect()
        });
        // A value beyond the range is to be found, not to be scaled away.
        let scales = scales.filter(|scales: &Vec<f64>| {
            scales.iter().all(|scale| scale.is_finite()) && scales.iter().any(|&scale| scale != 1.0)
        });
        Self {
            kernel: Arc::clone(kernel),
            scales,
        }
    }

    pub(super) fn kernel(&self) -> &dyn Kernel {
        self.kernel.as_ref()
    }

    pub(super) fn is_scaled(&self) -> bool {
        self.scales.is_some()
    }

    /// The same for some of the samples.
    pub(super) fn subset(&self, chosen: &[usize]) -> Self {
        let of = |scales: &Vec<f64>| chosen.iter().map(|&i| scales[i]).collect();
        Self {
            kernel: Arc::clone(&self.kernel),
            scales: self.scales.as_ref().map(of),
        }
    }

    /// Values of row i in these columns, mapped already, normalised as by [`Map::apply`].
    pub(super) fn scale(&self, row: &mut [f64], i: usize, columns: impl Iterator<Item = usize>) {
        let Some(scales) = &self.scales else {
            return;
        };
        for (value, j) in row.iter_mut().zip(columns) {
            *value *= scales[i] * scales[j];
            if j == i {
                *value = own_value(scales[i]);
            }
        }
    }

    /// Whole rows of a matrix from row `first` on. Says whether all values are finite.
    ///
    /// K_ij ← K_ij / √(K_ii K_jj). A sample of zero norm stays the zero vector: its row and column are 0, and so is its diagonal.
    fn apply(&self, rows: &mut [f64], first: usize) -> bool {
        map_base(self.kernel(), rows);
        if let Some(scales) = &self.scales {
            for (i, row) in (first..).zip(rows.chunks_exact_mut(scales.len())) {
                for (value, scale) in row.iter_mut().zip(scales) {
                    *value *= scales[i] * scale;
                }
                row[i] = own_value(scales[i]);
            }
        }
        vector::all_finite(rows)
    }
}

/// k(x,x) once normalised, exactly.
pub(crate) fn own_value(scale: f64) -> f64 {
    if scale > 0.0 { 1.0 } else { 0.0 }
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
pub(crate) fn inverse_norm(own: f64) -> f64 {
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

    fn grams(samples: &Samples, normalise: bool, storage: Storage, threads: usize) -> Grams {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let built = || {
            let all = kernels();
            build(
                samples,
                0,
                &all,
                normalise,
                Definiteness::Assume,
                storage,
                false,
            )
        };
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
                let grams = grams(&samples, normalise, Storage::Kept, 2);
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
            let of = |threads| grams(&samples, true, Storage::Kept, threads);
            let (one, five) = (of(1), of(5));
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
        for (normalise, storage) in [
            (false, Storage::Kept),
            (true, Storage::Kept),
            (false, Storage::OnDemand),
            (true, Storage::OnDemand),
        ] {
            let built = build(
                &samples,
                0,
                &kernels,
                normalise,
                Definiteness::Assume,
                storage,
                false,
            );
            let message = built.unwrap_err().to_string();
            assert!(message.contains(&kernels[1].name), "{message}");
        }
    }

    #[test]
    fn values_made_on_demand_have_the_bits_of_those_kept() {
        for (n, d) in [(1, 1), (2, 3), (40, 8), (150, 40)] {
            let samples = samples(n, d);
            let chosen: Vec<usize> = (0..n).rev().step_by(2).collect();
            let all: Vec<usize> = (0..kernels().len()).rev().collect();
            for normalise in [false, true] {
                let of = |storage| grams(&samples, normalise, storage, 2);
                let (kept, made) = (of(Storage::Kept), of(Storage::OnDemand));
                assert!(made.are_made() && !kept.are_made());
                let part = |grams: &Grams| grams.part(&all, Some(&chosen));
                let pairs = [
                    (kept.clone(), made.clone()),
                    (part(&kept), part(&made)),
                    (kept.clone().into_single(), made.clone().into_single()),
                    (part(&kept.into_single()), part(&made.into_single())),
                ];
                for (number, (kept, made)) in pairs.iter().enumerate() {
                    for m in 0..all.len() {
                        for i in 0..made.samples {
                            let Values::Made(row) = made.row(m, i) else {
                                // A base of its own: kept in any case.
                                continue;
                            };
                            for j in 0..made.samples {
                                let (a, b) = (value(kept, m, i, j), value(made, m, i, j));
                                assert_eq!(a.to_bits(), b.to_bits(), "{number} {m} {i} {j}");
                                assert_eq!(a.to_bits(), row[j].to_bits(), "{number} {m} {i} {j}");
                            }
                        }
                        assert_eq!(kept.diagonal(m), made.diagonal(m));
                    }
                }
            }
        }
    }

    #[test]
    fn one_base_for_all_kernels_on_the_same_columns() {
        let samples = samples(20, 3);
        let size = |storage| Size::new(&samples, &kernels(), true, false, storage).unwrap();
        let square = 8 * 20 * 20;
        assert_eq!(size(Storage::Kept).kept(), 11 * square);
        // ‖x − z‖² of all columns and of f1, x'z, ‖x − z‖₁; chi2 and intersection are kept.
        assert_eq!(size(Storage::OnDemand).kept(), 6 * square);
        let single = Size::new(&samples, &kernels(), true, true, Storage::Kept).unwrap();
        assert_eq!(single.kept(), 11 * square / 2);
        // The two that are kept as they are, and the four bases.
        assert_eq!(single.passing(), 6 * square);
        assert_eq!(single.part(10), 11 * square / 8);
        let made = grams(&samples, true, Storage::OnDemand, 1);
        let bases: std::collections::BTreeSet<usize> = made
            .part(&(0..11).collect::<Vec<_>>(), Some(&[0, 3, 4]))
            .matrices
            .iter()
            .filter_map(|matrix| match matrix {
                Matrix::Mapped(mapped) => Some(mapped.base_address()),
                _ => None,
            })
            .collect();
        assert_eq!(bases.len(), 4);
    }

    #[test]
    fn rounded_at_once_is_the_same_as_rounded_later() {
        for (n, d) in [(1, 1), (40, 8), (150, 40)] {
            let samples = samples(n, d);
            for normalise in [false, true] {
                let of = |single| {
                    let all = kernels();
                    let (assume, kept) = (Definiteness::Assume, Storage::Kept);
                    let built = build(&samples, 0, &all, normalise, assume, kept, single);
                    built.unwrap().0
                };
                let (later, at_once) = (of(false).into_single(), of(true));
                let singles = at_once.matrices.iter();
                assert_eq!(
                    singles.filter(|m| matches!(m, Matrix::Single(_))).count(),
                    9
                );
                for m in 0..kernels().len() {
                    for i in 0..n {
                        for j in 0..n {
                            // Those that are not rounded yet are rounded here.
                            #[allow(clippy::cast_possible_truncation)]
                            let single = value(&at_once, m, i, j) as f32;
                            assert_eq!(f64::from(single), value(&later, m, i, j));
                        }
                    }
                }
            }
        }
    }

    /// A kernel on n samples, given as a matrix, with its smallest eigenvalue moved to −ε.
    fn with_smallest(n: usize, epsilon: f64) -> (Samples, f64) {
        let mut random = crate::random::Random::new(n as u64);
        let factor: Vec<f64> = (0..n * n).map(|_| random.uniform() - 0.5).collect();
        let mut values = vec![0.0; n * n];
        linalg::add_gram(&factor, n, &mut values);
        let (smallest, _) = linalg::extreme_eigenvalues(&values, n).unwrap();
        for i in 0..n {
            values[i * n + i] -= smallest + epsilon;
        }
        let largest = (0..n).fold(0.0_f64, |a, i| a.max(values[i * n + i]));
        let gram = GivenGram {
            name: "K".into(),
            values: values.into(),
        };
        (Samples::from_grams(n, vec![gram]).unwrap(), largest)
    }

    #[test]
    fn what_is_forgiven_is_known() {
        let kernels = parse_kernels("precomputed:name=K").unwrap();
        let built = |samples: &Samples, definiteness| {
            let kept = Storage::Kept;
            build(samples, 0, &kernels, false, definiteness, kept, false)
        };
        for n in [6, 40] {
            let (_, largest) = with_smallest(n, 0.0);
            let forgiven = 1e-9 * largest * n as f64;
            for share in [1e-5, 1e-3, 0.1, 0.9] {
                let epsilon = share * forgiven;
                let (samples, _) = with_smallest(n, epsilon);
                let (grams, semidefinite) = built(&samples, Definiteness::Check).unwrap();
                let known = grams.indefiniteness(0);
                assert!(semidefinite);
                assert!(known >= epsilon * (1.0 - 1e-3), "{known} for {epsilon}");
                assert!(known <= epsilon * 2.1, "{known} for {epsilon}");
                // A part has no smaller eigenvalue, and goes by the same number.
                assert_eq!(grams.part(&[0], Some(&[0, 2, 3])).indefiniteness(0), known);
                assert_eq!(grams.into_single().indefiniteness(0), known);
                let (assumed, _) = built(&samples, Definiteness::Assume).unwrap();
                assert_eq!(assumed.indefiniteness(0), 0.0);
            }
            // Definite: nothing to forgive. More than is forgiven: refused, or allowed and known exactly.
            let (samples, _) = with_smallest(n, -0.01);
            let (grams, _) = built(&samples, Definiteness::Check).unwrap();
            assert_eq!(grams.indefiniteness(0), 0.0);
            let (samples, _) = with_smallest(n, 1.5 * forgiven);
            assert!(built(&samples, Definiteness::Check).is_err());
            let (grams, semidefinite) = built(&samples, Definiteness::AllowIndefinite).unwrap();
            assert!(!semidefinite);
            assert!((grams.indefiniteness(0) / (1.5 * forgiven) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn a_singular_matrix_is_forgiven_no_more_than_rounding() {
        // Rank two on thirty samples.
        let n = 30;
        let points: Vec<f64> = (0..2 * n).map(|i| ((7 * i) % 11) as f64).collect();
        let samples = Samples::new(points, n, 2).unwrap();
        let linear = parse_kernels("linear").unwrap();
        let (assume, kept) = (Definiteness::Assume, Storage::Kept);
        let (grams, _) = build(&samples, 0, &linear, false, assume, kept, false).unwrap();
        assert_eq!(grams.indefiniteness(0), 0.0);
        let values: Vec<f64> = (0..n * n).map(|at| grams.matrices[0].value(at)).collect();
        let largest = grams.diagonal(0).iter().fold(0.0_f64, |a, &b| a.max(b));
        let gram = GivenGram {
            name: "K".into(),
            values: values.into(),
        };
        let samples = Samples::from_grams(n, vec![gram]).unwrap();
        let kernels = parse_kernels("precomputed:name=K").unwrap();
        let check = Definiteness::Check;
        let (grams, _) = build(&samples, 0, &kernels, false, check, kept, false).unwrap();
        assert!(grams.indefiniteness(0) <= 1e-13 * largest * n as f64);
    }

    #[test]
    fn a_value_beyond_single_precision_is_found() {
        let samples = Samples::new(vec![1e30, 2e30], 2, 1).unwrap();
        let kernels = parse_kernels("linear").unwrap();
        for (single, fine) in [(false, true), (true, false)] {
            let (assume, kept) = (Definiteness::Assume, Storage::Kept);
            let built = build(&samples, 0, &kernels, false, assume, kept, single);
            assert_eq!(built.is_ok(), fine);
        }
    }
}
