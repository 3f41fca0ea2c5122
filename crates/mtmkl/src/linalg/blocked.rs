//! A = LL' of a large matrix, panel by panel: Golub and Van Loan, *Matrix Computations*, §4.2.9.
//!
//! Threads share the columns that a panel changes. Each tile is computed by one thread in one order, so that the factor does not depend on how
//! many there are.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::reborrow::{IntoConst, ReborrowMut};
use faer::traits::RealField;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use rayon::prelude::*;

/// Up to this size one thread is done before others have begun.
const PLAIN: usize = 512;
/// Columns that are eliminated at a time.
const PANEL: usize = 192;
/// Columns that one thread changes at a time.
const TILE: usize = 128;

/// Numbers that a factor may be made of.
pub(super) trait Number: RealField + Copy + Send + Sync {
    const MINUS_ONE: Self;
    fn is_finite(self) -> bool;
}

impl Number for f64 {
    const MINUS_ONE: Self = -1.0;
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

impl Number for f32 {
    const MINUS_ONE: Self = -1.0;
    fn is_finite(self) -> bool {
        self.is_finite()
    }
}

/// Writes the lower triangle, column by column from its diagonal on, each by whichever thread is free.
pub(super) fn fill<T: Number>(mut lower: MatMut<'_, T>, fill: impl Fn(usize, &mut [T]) + Sync) {
    let write = |(first, mut tile): (usize, MatMut<'_, T>)| {
        for at in 0..tile.ncols() {
            if let Some(column) = tile.rb_mut().col_mut(at).try_as_col_major_mut() {
                fill(first + at, &mut column.as_slice_mut()[first + at..]);
            }
        }
    };
    let tiles = tiles(lower.rb_mut());
    tiles.into_par_iter().for_each(write);
}

/// A ← L; whether A is positive definite. Asked between panels, `is_wanted` may end it: then the answer is no.
pub(super) fn factor<T: Number>(mut lower: MatMut<'_, T>, is_wanted: &dyn Fn() -> bool) -> bool {
    let n = lower.nrows();
    let size = if n <= PLAIN { n } else { PANEL };
    let mut first = 0;
    while first < n {
        let size = size.min(n - first);
        let rest = lower.rb_mut().get_mut(first.., first..);
        let (mut corner, _, mut below, next) = rest.split_at_mut(size, size);
        if !is_wanted() || !factor_plain(corner.rb_mut()) {
            return false;
        }
        eliminate(corner.into_const(), below.rb_mut());
        subtract(below.into_const(), next);
        first += size;
    }
    (0..n).all(|i| Number::is_finite(lower[(i, i)]))
}

fn factor_plain<T: Number>(matrix: MatMut<'_, T>) -> bool {
    let n = matrix.nrows();
    let mut scratch = MemBuffer::new(cholesky_in_place_scratch::<T>(
        n,
        Par::Seq,
        faer::prelude::default(),
    ));
    let done = cholesky_in_place(
        matrix,
        faer::prelude::default(),
        Par::Seq,
        MemStack::new(&mut scratch),
        faer::prelude::default(),
    );
    done.is_ok()
}

/// B ← B L'⁻¹
fn eliminate<T: Number>(lower: MatRef<'_, T>, below: MatMut<'_, T>) {
    let mut parts = Vec::new();
    let mut rest = below;
    while rest.nrows() > 0 {
        let height = TILE.min(rest.nrows());
        let (part, more) = rest.split_at_row_mut(height);
        parts.push(part);
        rest = more;
    }
    parts.into_par_iter().for_each(|part| {
        solve_lower_triangular_in_place(lower, part.transpose_mut(), Par::Seq);
    });
}

/// The lower triangle of A ← A − BB'
fn subtract<T: Number>(b: MatRef<'_, T>, a: MatMut<'_, T>) {
    let subtract = |(first, tile): (usize, MatMut<'_, T>)| {
        let width = tile.ncols();
        let (square, below) = tile.get_mut(first.., ..).split_at_row_mut(width);
        let own = b.get(first..first + width, ..);
        triangular::matmul(
            square,
            BlockStructure::TriangularLower,
            Accum::Add,
            own,
            BlockStructure::Rectangular,
            own.transpose(),
            BlockStructure::Rectangular,
            T::MINUS_ONE,
            Par::Seq,
        );
        let others = b.get(first + width.., ..);
        matmul(
            below,
            Accum::Add,
            others,
            own.transpose(),
            T::MINUS_ONE,
            Par::Seq,
        );
    };
    tiles(a).into_par_iter().for_each(subtract);
}

/// Some columns each, with the number of the first.
fn tiles<T>(matrix: MatMut<'_, T>) -> Vec<(usize, MatMut<'_, T>)> {
    let (mut tiles, mut first) = (Vec::new(), 0);
    let mut rest = matrix;
    while rest.ncols() > 0 {
        let width = TILE.min(rest.ncols());
        let (tile, more) = rest.split_at_col_mut(width);
        tiles.push((first, tile));
        first += width;
        rest = more;
    }
    tiles
}

/// A = LL' in single precision: half the memory and half the time, for where a nearby matrix will do.
#[derive(Debug)]
pub(crate) struct SingleCholesky {
    lower: Mat<f32>,
}

impl SingleCholesky {
    /// The factor of the n × n matrix whose column j, from row j down, `fill` writes, with the first of `jitters` on its diagonal that is enough.
    pub(crate) fn of_columns(
        n: usize,
        jitters: impl IntoIterator<Item = f32>,
        write: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Option<Self> {
        let mut lower = Mat::<f32>::zeros(n, n);
        for jitter in jitters {
            fill(lower.as_mut(), &write);
            for i in 0..n {
                lower[(i, i)] += jitter;
            }
            if factor(lower.as_mut(), &|| true) {
                return Some(Self { lower });
            }
        }
        None
    }

    /// Bytes of it for so many samples.
    pub(crate) fn bytes(samples: usize) -> u64 {
        let samples = samples as u64;
        samples.saturating_mul(samples).saturating_mul(4)
    }

    /// b ← L⁻¹ b, for `columns` right-hand sides in a row-major block.
    pub(crate) fn solve_lower(&self, b: &mut [f32], columns: usize) {
        let n = self.lower.nrows();
        let b = MatMut::from_row_major_slice_mut(b, n, columns);
        solve_lower_triangular_in_place(self.lower.as_ref(), b, Par::Seq);
    }

    /// b ← L'⁻¹ b
    pub(crate) fn solve_upper(&self, b: &mut [f32], columns: usize) {
        let n = self.lower.nrows();
        let b = MatMut::from_row_major_slice_mut(b, n, columns);
        solve_upper_triangular_in_place(self.lower.transpose(), b, Par::Seq);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// exp(−(i − j)²/s) + ½ [i = j]
    fn entry(i: usize, j: usize) -> f64 {
        let distance = (i as f64 - j as f64) / 7.0;
        (-distance * distance).exp() + if i == j { 0.5 } else { 0.0 }
    }

    #[test]
    fn the_factor_is_that_of_the_matrix_whatever_the_threads() {
        for n in [1, PANEL, PLAIN, PLAIN + 1, 700] {
            let make = || {
                let mut lower = Mat::<f64>::zeros(n, n);
                fill(lower.as_mut(), |j, column: &mut [f64]| {
                    for (k, value) in column.iter_mut().enumerate() {
                        *value = entry(j + k, j);
                    }
                });
                assert!(factor(lower.as_mut(), &|| true));
                lower
            };
            let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let one = pool(1).unwrap().install(make);
            let three = pool(3).unwrap().install(make);
            assert_eq!(one, three);
            for (i, j) in [(0, 0), (n - 1, 0), (n - 1, n / 2), (n - 1, n - 1)] {
                let product: f64 = (0..=j).map(|k| one[(i, k)] * one[(j, k)]).sum();
                assert!((product - entry(i, j)).abs() < 1e-12, "{n} {i} {j}");
            }
        }
    }

    #[test]
    fn what_is_not_positive_definite_is_seen_in_every_panel() {
        for at in [0, PANEL, 650] {
            let n = 700;
            let mut lower = Mat::<f32>::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 });
            lower[(at, at)] = -1.0;
            assert!(!factor(lower.as_mut(), &|| true));
        }
    }

    #[test]
    fn a_factor_that_is_not_wanted_any_more_is_not_finished() {
        let asked = std::cell::Cell::new(0);
        let is_wanted = || {
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let mut lower = Mat::<f64>::identity(700, 700);
        assert!(!factor(lower.as_mut(), &is_wanted));
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn single_precision_solves_to_single_precision() {
        let n = 600;
        let write = |j: usize, column: &mut [f32]| {
            for (k, value) in column.iter_mut().enumerate() {
                #[allow(clippy::cast_possible_truncation, reason = "rounding is meant")]
                let rounded = entry(j + k, j) as f32;
                *value = rounded;
            }
        };
        let single = SingleCholesky::of_columns(n, [0.0], write).unwrap();
        let mut x = vec![1.0_f32; n];
        single.solve_lower(&mut x, 1);
        single.solve_upper(&mut x, 1);
        for i in [0, 1, n / 2, n - 1] {
            let product: f64 = (0..n).map(|j| entry(i, j) * f64::from(x[j])).sum();
            assert!((product - 1.0).abs() < 1e-4, "{product}");
        }
    }
}
