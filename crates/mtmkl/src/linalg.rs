//! Dense algebra on row-major slices. Nothing else names faer.
//!
//! Everything here runs on the calling thread but for the factorisation of large matrices (`blocked.rs`), and no result depends on how many
//! threads there are.

mod blocked;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::{Accum, Mat, MatMut, MatRef, Par, Side};

pub(crate) use blocked::SingleCholesky;

/// out (n × m) ← X Z' for X (n × d) and Z (m × d), into part of a larger matrix: rows of `out` start every `stride` values.
pub(crate) fn products_into(x: &[f64], z: &[f64], d: usize, out: &mut [f64], stride: usize) {
    let (n, m) = (x.len() / d, z.len() / d);
    let x = MatRef::from_row_major_slice(x, n, d);
    let z = MatRef::from_row_major_slice(z, m, d);
    // By columns and transposed: faer 0.24's row-major constructor with a stride mixes up the strides and writes out of bounds
    // (its pull request 267).
    let out = MatMut::from_column_major_slice_with_stride_mut(out, m, n, stride).transpose_mut();
    matmul(out, Accum::Replace, x, z.transpose(), 1.0, Par::Seq);
}

/// The same in single precision, added: out ← out + X Z'.
pub(crate) fn add_single_products(x: &[f32], z: &[f32], d: usize, out: &mut [f32], stride: usize) {
    let (n, m) = (x.len() / d, z.len() / d);
    let x = MatRef::from_row_major_slice(x, n, d);
    let z = MatRef::from_row_major_slice(z, m, d);
    let out = MatMut::from_column_major_slice_with_stride_mut(out, m, n, stride).transpose_mut();
    matmul(out, Accum::Add, x, z.transpose(), 1.0, Par::Seq);
}

/// Up to this size plain loops are done before a blocked algorithm has begun.
const SMALL: usize = 32;
/// The same for one right-hand side.
const PLAIN_SOLVE: usize = 256;

/// out (n × n) ← out + V'V for V (rows × n).
pub(crate) fn add_gram(v: &[f64], n: usize, out: &mut [f64]) {
    if n <= SMALL {
        for row in v.chunks_exact(n) {
            for (value, out) in row.iter().zip(out.chunks_exact_mut(n)) {
                for (out, other) in out.iter_mut().zip(row) {
                    *out += value * other;
                }
            }
        }
        return;
    }
    let v = MatRef::from_row_major_slice(v, v.len() / n, n);
    matmul(
        MatMut::from_row_major_slice_mut(out, n, n),
        Accum::Add,
        v.transpose(),
        v,
        1.0,
        Par::Seq,
    );
}

/// Columns of V that are scaled at a time: a copy of all of them would be as large as V.
const COLUMNS: usize = 512;

/// The lower triangle of out (rows × rows) ← out + V diag(s) V' for V (rows × columns of s).
pub(crate) fn add_scaled_gram(v: &[f64], s: &[f64], out: &mut [f64]) {
    let m = s.len();
    let rows = v.len() / m;
    if rows == 0 {
        return;
    }
    if rows <= SMALL && m <= COLUMNS {
        let mut scaled = [0.0; COLUMNS];
        for (i, row) in v.chunks_exact(m).enumerate() {
            for (out, (value, s)) in scaled.iter_mut().zip(row.iter().zip(s)) {
                *out = value * s;
            }
            let others = v.chunks_exact(m).take(i + 1);
            for (out, other) in out[i * rows..].iter_mut().zip(others) {
                *out += dot(&scaled[..m], other);
            }
        }
        return;
    }
    let mut scaled = vec![0.0; rows * COLUMNS.min(m)];
    for first in (0..m).step_by(COLUMNS) {
        let until = (first + COLUMNS).min(m);
        let width = until - first;
        let scaled = &mut scaled[..rows * width];
        for (out, row) in scaled.chunks_exact_mut(width).zip(v.chunks_exact(m)) {
            let pairs = row[first..until].iter().zip(&s[first..until]);
            for (out, (value, s)) in out.iter_mut().zip(pairs) {
                *out = value * s;
            }
        }
        triangular::matmul(
            MatMut::from_row_major_slice_mut(out, rows, rows),
            BlockStructure::TriangularLower,
            Accum::Add,
            MatRef::from_row_major_slice(scaled, rows, width),
            BlockStructure::Rectangular,
            MatRef::from_column_major_slice_with_stride(&v[first..], width, rows, m),
            BlockStructure::Rectangular,
            1.0,
            Par::Seq,
        );
    }
}

/// How large a factor may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// As it is.
    None,
    /// An eighth more rows without being moved.
    ToGrow,
}

impl Room {
    /// Rows, and columns, that there is memory for.
    pub(crate) fn size(self, n: usize) -> usize {
        match self {
            Self::None => n,
            Self::ToGrow => n + n / 8 + 8,
        }
    }
}

/// Twelve numbers, each ten times the one before: what is added to a diagonal until it is enough.
pub(crate) fn rising(first: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), |jitter| Some(10.0 * jitter)).take(12)
}

/// A = LL' for a symmetric positive definite A.
#[derive(Debug, Clone)]
pub(crate) struct Cholesky {
    lower: Mat<f64>,
}

impl Cholesky {
    /// Factors the n × n matrix whose lower triangle is given; `None` when it is not positive definite.
    pub(crate) fn new(matrix: &[f64], n: usize) -> Option<Self> {
        if n <= SMALL {
            return Self::new_small(matrix, n);
        }
        let factor = MatRef::from_row_major_slice(matrix, n, n)
            .llt(Side::Lower)
            .ok()?;
        let lower = factor.L().to_owned();
        (0..n)
            .all(|i| lower[(i, i)].is_finite())
            .then_some(Self { lower })
    }

    /// Column by column.
    fn new_small(matrix: &[f64], n: usize) -> Option<Self> {
        let mut lower = Mat::<f64>::zeros(n, n);
        let mut column = [0.0; SMALL];
        for j in 0..n {
            for i in j..n {
                column[i] = matrix[i * n + j];
            }
            for k in 0..j {
                let known = &lower.col_as_slice(k)[j..n];
                let factor = known[0];
                for (value, known) in column[j..n].iter_mut().zip(known) {
                    *value -= factor * known;
                }
            }
            let pivot = column[j];
            if !(pivot > 0.0 && pivot.is_finite()) {
                return None;
            }
            let scale = pivot.sqrt().recip();
            let out = &mut lower.col_as_slice_mut(j)[j..n];
            for (out, value) in out.iter_mut().zip(&column[j..n]) {
                *out = value * scale;
            }
        }
        (0..n)
            .all(|i| lower[(i, i)].is_finite())
            .then_some(Self { lower })
    }

    /// Factors A + jitter · I, with the jitter raised from `relative` · max diagonal until it succeeds.
    pub(crate) fn with_jitter(mut matrix: Vec<f64>, n: usize, relative: f64) -> Option<Self> {
        let largest = (0..n).fold(0.0_f64, |a, i| a.max(matrix[i * n + i].abs()));
        if largest == 0.0 {
            return None;
        }
        let mut added = 0.0;
        let mut jitter = relative * largest.max(f64::MIN_POSITIVE);
        for _ in 0..12 {
            for i in 0..n {
                matrix[i * n + i] += jitter - added;
            }
            added = jitter;
            if let Some(factor) = Self::new(&matrix, n) {
                return Some(factor);
            }
            jitter *= 10.0;
        }
        None
    }

    /// The factor of a matrix whose column j, from row j down, `fill` writes, made in place: nothing else of its size is held. To the diagonal is
    /// added the first of `jitters`, each relative to the largest diagonal entry, with which it is positive definite. `None` for a matrix of
    /// zeros, where none of them is enough, or where it is not wanted any more.
    pub(crate) fn of_columns(
        n: usize,
        room: Room,
        jitters: impl IntoIterator<Item = f64>,
        is_wanted: &dyn Fn() -> bool,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Option<Self> {
        let size = room.size(n);
        let mut lower = Mat::<f64>::with_capacity(size, size);
        lower.resize_with(n, n, |_, _| 0.0);
        for jitter in jitters {
            if !is_wanted() {
                return None;
            }
            blocked::fill(lower.as_mut(), &fill);
            let largest = (0..n).fold(0.0_f64, |a, i| a.max(lower[(i, i)].abs()));
            if largest == 0.0 {
                return None;
            }
            for i in 0..n {
                lower[(i, i)] += jitter * largest.max(f64::MIN_POSITIVE);
            }
            if blocked::factor(lower.as_mut(), is_wanted) {
                return Some(Self { lower });
            }
        }
        None
    }

    /// A becomes [[A, B'], [B, C]]: `border` is [B, C], row by row, the lower triangle of C filled. False, and nothing changed, where that
    /// is not positive definite.
    pub(crate) fn extend(&mut self, border: &[f64], count: usize) -> bool {
        let old = self.lower.nrows();
        let n = old + count;
        let mut across = Mat::<f64>::from_fn(old, count, |i, j| border[j * n + i]);
        solve_lower_triangular_in_place(self.lower.as_ref(), across.as_mut(), Par::Seq);
        let mut corner = vec![0.0; count * count];
        for i in 0..count {
            for j in 0..=i {
                corner[i * count + j] =
                    border[i * n + old + j] - across.col(i).transpose() * across.col(j);
            }
        }
        let Some(corner) = Self::new(&corner, count) else {
            return false;
        };
        self.lower.resize_with(n, n, |i, j| {
            if j < old {
                if i < old { 0.0 } else { across[(j, i - old)] }
            } else if i < old {
                0.0
            } else {
                corner.lower[(i - old, j - old)]
            }
        });
        true
    }

    /// Row i of L, up to its diagonal.
    pub(crate) fn lower_row(&self, i: usize) -> Vec<f64> {
        (0..=i).map(|j| self.lower[(i, j)]).collect()
    }

    /// b ← L⁻¹ b, for `columns` right-hand sides in a row-major block. Where it has fewer than n rows, those before them are zeros, and
    /// stay zeros.
    pub(crate) fn solve_lower(&self, b: &mut [f64], columns: usize) {
        let rows = b.len() / columns;
        let first = self.lower.nrows() - rows;
        if rows <= PLAIN_SOLVE && columns == 1 {
            for j in 0..rows {
                let column = &self.lower.col_as_slice(first + j)[first + j..];
                b[j] /= column[0];
                let (value, rest) = (b[j], &mut b[j + 1..]);
                axpy(-value, &column[1..], rest);
            }
            return;
        }
        if rows <= SMALL {
            for j in 0..rows {
                let column = &self.lower.col_as_slice(first + j)[first + j..];
                let (known, rest) = b[j * columns..].split_at_mut(columns);
                let scale = column[0].recip();
                for value in known.iter_mut() {
                    *value *= scale;
                }
                for (out, factor) in rest.chunks_exact_mut(columns).zip(&column[1..]) {
                    axpy(-factor, known, out);
                }
            }
            return;
        }
        solve_lower_triangular_in_place(
            self.lower.as_ref().submatrix(first, first, rows, rows),
            MatMut::from_row_major_slice_mut(b, rows, columns),
            Par::Seq,
        );
    }

    /// b ← A⁻¹ b, for `columns` right-hand sides in a row-major n × columns block.
    pub(crate) fn solve(&self, b: &mut [f64], columns: usize) {
        self.solve_lower(b, columns);
        self.solve_upper(b, columns);
    }

    /// b ← L'⁻¹ b, for `columns` right-hand sides in a row-major n × columns block.
    pub(crate) fn solve_upper(&self, b: &mut [f64], columns: usize) {
        let n = self.lower.nrows();
        if n <= PLAIN_SOLVE && columns == 1 {
            for j in (0..n).rev() {
                let column = &self.lower.col_as_slice(j)[j..n];
                b[j] = (b[j] - dot(&column[1..], &b[j + 1..])) / column[0];
            }
            return;
        }
        solve_upper_triangular_in_place(
            self.lower.transpose(),
            MatMut::from_row_major_slice_mut(b, n, columns),
            Par::Seq,
        );
    }
}

/// The smallest and the largest eigenvalue of a symmetric n × n matrix.
pub(crate) fn extreme_eigenvalues(matrix: &[f64], n: usize) -> Option<(f64, f64)> {
    let values = MatRef::from_row_major_slice(matrix, n, n)
        .self_adjoint_eigenvalues(Side::Lower)
        .ok()?;
    Some((*values.first()?, *values.last()?))
}

/// The eigenvalues d of a symmetric n × n matrix V diag(d) V', and V row by row.
pub(crate) fn symmetric_eigen(matrix: &[f64], n: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let eigen = MatRef::from_row_major_slice(matrix, n, n)
        .self_adjoint_eigen(Side::Lower)
        .ok()?;
    let values = eigen.S().column_vector().iter().copied().collect();
    let rows = eigen.U();
    let vectors = (0..n).flat_map(|i| (0..n).map(move |j| rows[(i, j)]));
    Some((values, vectors.collect()))
}

/// Whether a symmetric matrix is positive definite, as far as Cholesky's algorithm can tell; the factor is written over it.
pub(crate) fn is_positive_definite(matrix: &mut [f64], n: usize) -> bool {
    blocked::factor(MatMut::from_column_major_slice_mut(matrix, n, n), &|| true)
}

/// F with as few rows as it takes and F'F = V'V up to `left` of each diagonal entry, V (rows × n): Cholesky's algorithm on V'V, which is not made,
/// with the column next of which the largest part is left.
pub(crate) fn low_rank_rows(v: &[f64], n: usize, left: f64) -> Vec<f64> {
    let mut diagonal = vec![0.0; n];
    for row in v.chunks_exact(n) {
        for (sum, value) in diagonal.iter_mut().zip(row) {
            *sum += value * value;
        }
    }
    // What is left of each column, as a part of it.
    let mut parts: Vec<f64> = (diagonal.iter())
        .map(|value| if *value > 0.0 { 1.0 } else { 0.0 })
        .collect();
    let mut factor: Vec<f64> = Vec::new();
    let mut next = vec![0.0; n];
    loop {
        let pivot = (0..n).max_by(|&a, &b| parts[a].total_cmp(&parts[b]));
        let Some(pivot) = pivot.filter(|&pivot| parts[pivot] > left) else {
            return factor;
        };
        next.fill(0.0);
        for row in v.chunks_exact(n) {
            axpy(row[pivot], row, &mut next);
        }
        for row in factor.chunks_exact(n) {
            axpy(-row[pivot], row, &mut next);
        }
        parts[pivot] = 0.0;
        if next[pivot] <= left * diagonal[pivot] {
            // Rounding had made more of it.
            continue;
        }
        let scale = next[pivot].sqrt().recip();
        for ((value, part), whole) in next.iter_mut().zip(&mut parts).zip(&diagonal) {
            *value *= scale;
            if *part > 0.0 {
                *part = (*part - *value * *value / whole).max(0.0);
            }
        }
        factor.extend_from_slice(&next);
    }
}

/// Solves a small dense system A x = b (n × n, row-major) by Gaussian elimination with partial pivoting.
///
/// Returns `false`, leaving b undefined, when the matrix is singular.
pub(crate) fn solve_small(a: &mut [f64], b: &mut [f64], n: usize) -> bool {
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|&i, &j| a[i * n + column].abs().total_cmp(&a[j * n + column].abs()));
        let Some(pivot) = pivot.filter(|&row| a[row * n + column] != 0.0) else {
            return false;
        };
        if pivot != column {
            for j in 0..n {
                a.swap(pivot * n + j, column * n + j);
            }
            b.swap(pivot, column);
        }
        for row in column + 1..n {
            let ratio = a[row * n + column] / a[column * n + column];
            for j in column..n {
                a[row * n + j] -= ratio * a[column * n + j];
            }
            b[row] -= ratio * b[column];
        }
    }
    for row in (0..n).rev() {
        let tail: f64 = (row + 1..n).map(|j| a[row * n + j] * b[j]).sum();
        b[row] = (b[row] - tail) / a[row * n + row];
    }
    b.iter().take(n).all(|value| value.is_finite())
}

pub(crate) use crate::vector::{axpy, dot};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_solves() {
        let a = [4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.5, 0.2, 2.0];
        let factor = Cholesky::new(&a, 3).unwrap();
        let mut b = [1.0, 2.0, 3.0];
        factor.solve(&mut b, 1);
        for i in 0..3 {
            let product: f64 = (0..3).map(|j| a[i * 3 + j] * b[j]).sum();
            assert!((product - [1.0, 2.0, 3.0][i]).abs() < 1e-12);
        }
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::with_jitter(vec![1.0, 1.0, 1.0, 1.0], 2, 1e-12).is_some());
        let columns = Cholesky::of_columns(3, Room::None, rising(1e-14), &|| true, |j, out| {
            for (i, value) in (j..3).zip(out) {
                *value = a[i * 3 + j];
            }
        });
        let mut c = [1.0, 2.0, 3.0];
        columns.unwrap().solve(&mut c, 1);
        assert!(b.iter().zip(&c).all(|(x, y)| (x - y).abs() < 1e-12));
        assert!(
            Cholesky::of_columns(2, Room::ToGrow, rising(1e-12), &|| true, |_, out| out
                .fill(1.0))
            .is_some()
        );
        assert!(
            Cholesky::of_columns(2, Room::None, rising(1e-12), &|| true, |_, out| out
                .fill(0.0))
            .is_none()
        );
    }

    #[test]
    fn small_and_large_matrices_are_solved_alike() {
        for n in [1, 2, SMALL, SMALL + 1, PLAIN_SOLVE, PLAIN_SOLVE + 1] {
            let v: Vec<f64> = (0..n * n).map(|k| (k as f64 * 0.37).sin()).collect();
            let mut a = vec![0.0; n * n];
            for i in 0..n {
                a[i * n + i] = 1.0;
            }
            add_gram(&v, n, &mut a);
            let right: Vec<f64> = (0..n).map(|k| (k as f64).cos()).collect();
            let mut x = right.clone();
            Cholesky::new(&a, n).unwrap().solve(&mut x, 1);
            for i in 0..n {
                let product: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum();
                assert!((product - right[i]).abs() < 1e-10);
            }
            // Right-hand sides that are zero in the first third.
            let factor = Cholesky::new(&a, n).unwrap();
            let first = n / 3;
            for columns in [1, 2] {
                let mut whole: Vec<f64> = (0..columns * n).map(|k| (k as f64).sin()).collect();
                whole[..columns * first].fill(0.0);
                let mut tail = whole[columns * first..].to_vec();
                factor.solve_lower(&mut whole, columns);
                factor.solve_lower(&mut tail, columns);
                let pairs = whole[columns * first..].iter().zip(&tail);
                assert!(pairs.into_iter().all(|(x, y)| (x - y).abs() < 1e-12));
            }
        }
    }

    #[test]
    fn an_extended_factor_is_the_factor_of_the_whole() {
        let a = [
            4.0, 1.0, 0.5, 0.2, 1.0, 3.0, 0.2, 0.1, 0.5, 0.2, 2.0, 0.4, 0.2, 0.1, 0.4, 1.0,
        ];
        let whole = Cholesky::new(&a, 4).unwrap();
        let mut extended = Cholesky::new(&[4.0, 1.0, 1.0, 3.0], 2).unwrap();
        assert!(!extended.extend(&[1.0, 0.0, 0.0], 1));
        assert!(extended.extend(&a[8..], 2));
        let (mut x, mut y) = ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]);
        whole.solve(&mut x, 1);
        extended.solve(&mut y, 1);
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-12));
    }

    #[test]
    fn few_rows_say_what_many_said() {
        // Of rank 3, in columns of very different scales, one of them zero.
        let (n, rows) = (7, 20);
        let scale = |m: usize| [1.0, 1e6, 1e-6, 0.0, 3.0, 1e3, 0.1][m];
        let wave = |i: usize, k: usize| (1.3 * (i * (k + 1)) as f64).sin();
        let basis = |k: usize, m: usize| (0.9 * (m * (k + 2)) as f64).cos();
        let v: Vec<f64> = (0..rows * n)
            .map(|at| (at / n, at % n))
            .map(|(i, m)| scale(m) * (0..3).map(|k| wave(i, k) * basis(k, m)).sum::<f64>())
            .collect();
        let factor = low_rank_rows(&v, n, 1e-9);
        assert_eq!(factor.len(), 3 * n);
        let (mut a, mut b) = (vec![0.0; n * n], vec![0.0; n * n]);
        add_gram(&v, n, &mut a);
        add_gram(&factor, n, &mut b);
        for i in 0..n {
            for j in 0..n {
                let size = (a[i * n + i] * a[j * n + j]).sqrt();
                assert!((a[i * n + j] - b[i * n + j]).abs() <= 1e-8 * size);
            }
        }
        assert!(low_rank_rows(&[0.0; 6], 3, 1e-9).is_empty());
        assert!(low_rank_rows(&[], 3, 1e-9).is_empty());
    }

    #[test]
    fn scaled_gram_is_the_product() {
        for (rows, m) in [(0, 3), (1, 1), (3, 40), (7, 512), (5, 1100)] {
            let v: Vec<f64> = (0..rows * m).map(|k| (k as f64 * 0.7).sin()).collect();
            let s: Vec<f64> = (0..m).map(|k| 1.0 + (k as f64 * 0.3).cos()).collect();
            let mut out = vec![1.0; rows * rows];
            add_scaled_gram(&v, &s, &mut out);
            for i in 0..rows {
                for j in 0..=i {
                    let plain: f64 = (0..m).map(|k| v[i * m + k] * s[k] * v[j * m + k]).sum();
                    assert!((out[i * rows + j] - 1.0 - plain).abs() < 1e-11);
                }
            }
        }
    }

    #[test]
    fn small_systems_pivot() {
        let mut a = [0.0, 1.0, 1.0, 0.0];
        let mut b = [2.0, 3.0];
        assert!(solve_small(&mut a, &mut b, 2));
        assert_eq!(b, [3.0, 2.0]);
        assert!(!solve_small(&mut [0.0, 0.0, 0.0, 1.0], &mut [1.0, 1.0], 2));
    }

    #[test]
    fn eigenvalues_and_products() {
        let (low, high) = extreme_eigenvalues(&[2.0, 1.0, 1.0, 2.0], 2).unwrap();
        assert!((low - 1.0).abs() < 1e-12 && (high - 3.0).abs() < 1e-12);
        // 2 × 3 into rows of 4, the rest stays.
        let mut out = [9.0; 8];
        let (x, z) = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 1.0, 1.0, 0.0, 5.0]);
        products_into(&x, &z, 2, &mut out, 4);
        assert_eq!(out, [1.0, 3.0, 10.0, 9.0, 3.0, 7.0, 20.0, 9.0]);
    }
}
