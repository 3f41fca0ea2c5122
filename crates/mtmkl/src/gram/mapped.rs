//! Gram matrices that are made when they are needed: for so many kernels that their matrices would not fit into memory.
//!
//! What is kept is the base, n × n numbers for all kernels on the same columns. Each use maps pieces of it that stay in the first
//! cache. Every value has the same bits as if it had been kept, and since matrices are symmetric, sums over all of a matrix map half
//! of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::build::{Map, first_overflow, map_base};
use super::matrix::{Matrix, subset};
use super::memory::Part;
use super::{TaskGrams, Values};
use crate::vector;

/// Values made at a time. Short enough for the first cache and for many threads, long enough that starting costs nothing.
const PIECE: usize = 512;

/// One kernel's matrix, not kept.
#[derive(Debug, Clone)]
pub(crate) struct Mapped {
    /// n × n, symmetric, row by row.
    base: Part<f64>,
    map: Arc<Map>,
    samples: usize,
    /// Whether values are rounded to single precision.
    single: bool,
}

impl Mapped {
    pub(super) fn new(base: Part<f64>, map: Map, samples: usize) -> Self {
        Self {
            base,
            map: Arc::new(map),
            samples,
            single: false,
        }
    }

    pub(super) fn into_single(self) -> Self {
        Self {
            single: true,
            ..self
        }
    }

    /// Equal for matrices that are made from the same base, and only for them.
    pub(super) fn base_address(&self) -> usize {
        self.base.as_ptr().addr()
    }

    /// The base of the chosen samples.
    pub(super) fn base_of(&self, chosen: &[usize]) -> Part<f64> {
        subset(&self.base, self.samples, chosen).into()
    }

    /// The rows and columns of `chosen`. `bases` holds their bases by the addresses of those of all samples.
    pub(super) fn subset(&self, chosen: &[usize], bases: &BTreeMap<usize, Part<f64>>) -> Self {
        let known = bases.get(&self.base_address()).cloned();
        Self {
            base: known.unwrap_or_else(|| self.base_of(chosen)),
            map: Arc::new(self.map.subset(chosen)),
            samples: chosen.len(),
            single: self.single,
        }
    }

    /// The values from..to of the matrix, row by row.
    pub(super) fn values(&self, from: usize, to: usize) -> Vec<f64> {
        let mut values = self.base[from..to].to_vec();
        map_base(self.map.kernel(), &mut values);
        let n = self.samples;
        let mut at = from;
        while at < to {
            let (i, j) = (at / n, at % n);
            let until = ((i + 1) * n).min(to);
            self.finish(&mut values[at - from..until - from], i, j..n);
            at = until;
        }
        values
    }

    pub(super) fn value(&self, at: usize) -> f64 {
        let mut value = [self.base[at]];
        let (i, j) = (at / self.samples, at % self.samples);
        map_base(self.map.kernel(), &mut value);
        self.finish(&mut value, i, j..self.samples);
        value[0]
    }

    /// The first value that is not finite.
    pub(super) fn overflow(&self) -> Option<f64> {
        let n = self.samples;
        let (mut base, mut buffer) = ([0.0; PIECE], [0.0; PIECE]);
        let triangle = Triangle::new(n);
        let finite = triangle.pieces().all(|piece| {
            let length = length(piece);
            let (base, values) = (&mut base[..length], &mut buffer[..length]);
            copy_base(&self.base, n, piece, None, base);
            self.make(base, piece, None, values);
            vector::all_finite(values)
        });
        (!finite).then(|| first_overflow(&self.values(0, n * n)))
    }

    /// What is left to do once the kernel has mapped part of row i: normalise it, round it.
    fn finish(&self, row: &mut [f64], i: usize, columns: impl Iterator<Item = usize>) {
        self.map.scale(row, i, columns);
        if self.single {
            for value in row {
                // Rounding is what is asked for.
                #[allow(clippy::cast_possible_truncation)]
                let rounded = *value as f32;
                *value = rounded.into();
            }
        }
    }

    /// Kernel values of a piece of the triangle from its base values.
    fn make(&self, base: &[f64], piece: &[Stretch], view: Option<&[usize]>, values: &mut [f64]) {
        self.map.kernel().map_from(base, values);
        if !self.map.is_scaled() && !self.single {
            return;
        }
        let mut rest = values;
        for stretch in piece {
            let (row, after) = rest.split_at_mut(stretch.len());
            let columns = stretch.from..stretch.until;
            match view {
                None => self.finish(row, stretch.row, columns),
                Some(view) => self.finish(row, view[stretch.row], columns.map(|j| view[j])),
            }
            rest = after;
        }
    }
}

/// Calls `visit(number, row, from, values)` with the lower triangle of each of these matrices on these samples, piece by piece. The matrices
/// have the same base.
pub(super) fn visit(
    matrices: &[&Mapped],
    triangle: &Triangle,
    samples: &[usize],
    mut visit: impl FnMut(usize, usize, usize, &[f64]),
) {
    let (mut base, mut buffer) = ([0.0; PIECE], [0.0; PIECE]);
    for piece in triangle.pieces() {
        let length = length(piece);
        let (base, values) = (&mut base[..length], &mut buffer[..length]);
        for (number, matrix) in matrices.iter().enumerate() {
            if number == 0 {
                copy_base(&matrix.base, matrix.samples, piece, Some(samples), base);
            }
            matrix.make(base, piece, Some(samples), values);
            let mut rest = &values[..];
            for stretch in piece {
                let (row, after) = rest.split_at(stretch.len());
                visit(number, stretch.row, stretch.from, row);
                rest = after;
            }
        }
    }
}

/// Part of a row of the lower triangle.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    row: usize,
    from: usize,
    until: usize,
}

impl Stretch {
    fn len(&self) -> usize {
        self.until - self.from
    }
}

fn length(piece: &[Stretch]) -> usize {
    piece.iter().map(Stretch::len).sum()
}

/// The lower triangle of an n × n matrix with its diagonal, row by row, cut into pieces of [`PIECE`] values.
#[derive(Debug)]
pub(super) struct Triangle {
    stretches: Vec<Stretch>,
    /// Where each piece ends among the stretches.
    ends: Vec<usize>,
}

impl Triangle {
    pub(super) fn new(n: usize) -> Self {
        let pieces = (n * (n + 1) / 2).div_ceil(PIECE);
        let mut triangle = Self {
            stretches: Vec::with_capacity(pieces + n),
            ends: Vec::with_capacity(pieces),
        };
        let mut room = PIECE;
        for row in 0..n {
            let mut from = 0;
            while from <= row {
                let until = (row + 1).min(from + room);
                triangle.stretches.push(Stretch { row, from, until });
                room -= until - from;
                from = until;
                if room == 0 {
                    triangle.ends.push(triangle.stretches.len());
                    room = PIECE;
                }
            }
        }
        if room < PIECE {
            triangle.ends.push(triangle.stretches.len());
        }
        triangle
    }

    fn piece(&self, number: usize) -> &[Stretch] {
        let start = number.checked_sub(1).map_or(0, |last| self.ends[last]);
        &self.stretches[start..self.ends[number]]
    }

    fn pieces(&self) -> impl Iterator<Item = &[Stretch]> {
        (0..self.ends.len()).map(|number| self.piece(number))
    }
}

/// The piece's values of an n × n matrix, of which the view picks rows and columns.
fn copy_base<T: Copy + Into<f64>>(
    matrix: &[T],
    n: usize,
    piece: &[Stretch],
    view: Option<&[usize]>,
    out: &mut [f64],
) {
    let mut rest = out;
    for stretch in piece {
        let columns = stretch.from..stretch.until;
        let (out, after) = rest.split_at_mut(stretch.len());
        match view {
            None => {
                let row = &matrix[stretch.row * n..][columns];
                for (out, &value) in out.iter_mut().zip(row) {
                    *out = value.into();
                }
            }
            Some(view) => {
                let row = &matrix[view[stretch.row] * n..][..n];
                for (out, &j) in out.iter_mut().zip(&view[columns]) {
                    *out = row[j].into();
                }
            }
        }
        rest = after;
    }
}

/// Rows of a square that are written at a time: as many as a few lines of the cache hold.
const TILE: usize = 32;

/// The symmetric n × n matrix of this lower triangle.
fn square_of(lower: &[f64], n: usize) -> Vec<f64> {
    let row = |i: usize| &lower[i * (i + 1) / 2..][..=i];
    let mut square = vec![0.0; n * n];
    square
        .par_chunks_mut((TILE * n).max(1))
        .enumerate()
        .for_each(|(number, rows)| {
            let first = number * TILE;
            for (i, out) in (first..).zip(rows.chunks_exact_mut(n)) {
                out[..=i].copy_from_slice(row(i));
            }
            for j in first + 1..n {
                let column = &row(j)[first..j.min(first + rows.len() / n)];
                for (value, out) in column.iter().zip(rows.chunks_exact_mut(n)) {
                    out[j] = *value;
                }
            }
        });
    square
}

impl TaskGrams<'_> {
    /// Σ_(m, a) a K_m, n × n, row by row. Threads share the work; who does what makes no difference.
    pub(super) fn combined(&self, weights: &[(usize, f64)]) -> Vec<f64> {
        let n = self.count();
        // Kernels of the same base together, so that each piece of it is read once.
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut groups: Vec<Vec<(&Mapped, f64)>> = Vec::new();
        let mut kept: Vec<(&Matrix, f64)> = Vec::new();
        for &(kernel, weight) in weights {
            match &self.grams.matrices[kernel] {
                Matrix::Mapped(mapped) => {
                    let number = *numbers.entry(mapped.base_address()).or_insert(groups.len());
                    if number == groups.len() {
                        groups.push(Vec::new());
                    }
                    groups[number].push((mapped, weight));
                }
                matrix => kept.push((matrix, weight)),
            }
        }
        let triangle = Triangle::new(n);
        let mut lower = vec![0.0; n * (n + 1) / 2];
        lower
            .par_chunks_mut(PIECE)
            .enumerate()
            .for_each(|(number, out)| {
                let piece = triangle.piece(number);
                let [mut base, mut buffer, mut sums] = [[0.0; PIECE]; 3];
                let (base, values) = (&mut base[..out.len()], &mut buffer[..out.len()]);
                let sums = &mut sums[..out.len()];
                for group in &groups {
                    for (position, (mapped, weight)) in group.iter().enumerate() {
                        if position == 0 {
                            copy_base(&mapped.base, mapped.samples, piece, self.view.rows(), base);
                        }
                        mapped.make(base, piece, self.view.rows(), values);
                        vector::axpy(*weight, values, sums);
                    }
                }
                let all = self.grams.samples * self.grams.samples;
                for (matrix, weight) in &kept {
                    match matrix.values(0, all) {
                        Values::Double(matrix) => {
                            copy_base(matrix, self.grams.samples, piece, self.view.rows(), values);
                        }
                        Values::Single(matrix) => {
                            copy_base(matrix, self.grams.samples, piece, self.view.rows(), values);
                        }
                        Values::Made(matrix) => {
                            copy_base(&matrix, self.grams.samples, piece, self.view.rows(), values);
                        }
                    }
                    vector::axpy(*weight, values, sums);
                }
                // Fresh memory is written once, not read before.
                out.copy_from_slice(sums);
            });
        square_of(&lower, n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Samples;
    use crate::gram::{Definiteness, Grams, Storage, build};
    use crate::kernel::{KernelView, parse_kernels};
    use crate::random::Random;
    use crate::view::View;

    fn grams(n: usize, storage: Storage) -> Grams {
        let mut random = Random::new(n as u64);
        let values = (0..3 * n).map(|_| random.uniform()).collect();
        let samples = Samples::new(values, n, 3).unwrap();
        let kernels: Vec<KernelView> = [
            "rbf:sigma=0.5|2",
            "poly:degree=3",
            "chi2",
            "rbf:sigma=1|3@f1",
            "laplacian",
        ]
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
        let built = build(
            &samples,
            0,
            &kernels,
            true,
            Definiteness::Assume,
            storage,
            false,
        );
        built.unwrap().0
    }

    fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(work)
    }

    fn close(a: &[f64], b: &[f64]) -> bool {
        let mut pairs = a.iter().zip(b);
        pairs.all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0))
    }

    #[test]
    fn pieces_cover_the_triangle_once_and_in_order() {
        for n in [0, 1, 2, 31, 32, 100, 1100] {
            let triangle = Triangle::new(n);
            let mut cells = Vec::new();
            for piece in triangle.pieces() {
                assert!(length(piece) <= PIECE);
                for stretch in piece {
                    cells.extend((stretch.from..stretch.until).map(|j| (stretch.row, j)));
                }
            }
            let expected: Vec<(usize, usize)> =
                (0..n).flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
            assert_eq!(cells, expected);
            assert_eq!(triangle.ends.len(), (n * (n + 1) / 2).div_ceil(PIECE));
        }
    }

    #[test]
    fn sums_are_those_of_kept_matrices_for_any_number_of_threads() {
        for n in [1, 7, 40, 90] {
            let (kept, made) = (grams(n, Storage::Kept), grams(n, Storage::OnDemand));
            let mut random = Random::new(5);
            let mut view: Vec<usize> = (0..n).collect();
            random.shuffle(&mut view);
            view.truncate(n.div_ceil(2));
            for view in [View::All, View::of(view)] {
                let view = &view;
                let of = |grams| TaskGrams { grams, view };
                let (kept, made) = (of(&kept), of(&made));
                let count = kept.count();
                let weights: Vec<(usize, f64)> = (0..kept.grams.kernels())
                    .map(|m| (m, random.uniform()))
                    .collect();
                let combined = on(1, || made.combined(&weights));
                assert_eq!(combined, on(3, || made.combined(&weights)));
                for i in 0..count {
                    let mut row = vec![0.0; count];
                    kept.add_kernels(i, &weights, &mut row);
                    assert!(close(&combined[i * count..(i + 1) * count], &row));
                    let mut same = vec![0.0; count];
                    made.add_kernels(i, &weights, &mut same);
                    assert!(close(&same, &row));
                    let columns: Vec<usize> = (0..count).step_by(3).collect();
                    let mut entries = vec![0.0; columns.len()];
                    made.entries(i, &columns, &weights, &mut entries);
                    let picked: Vec<f64> = columns.iter().map(|&j| row[j]).collect();
                    assert!(close(&entries, &picked));
                }
            }
        }
    }
}
