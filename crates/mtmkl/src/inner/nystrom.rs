//! (K + D)⁻¹, about, where no n × n matrix fits: K ≈ K_nZ K_ZZ⁻¹ K_Zn for some of the samples, the landmarks Z (Nyström).
//!
//! With LL' = K_ZZ and B = L⁻¹ K_Zn D^(−½), r × n, what is inverted is D^½ (I + B'B) D^½, by Woodbury's identity through A = I + BB', r × r. All of it
//! makes conjugate gradients converge and says about how J bends; nothing that is claimed depends on it, so that B is in single precision.
//! Williams and Seeger, "Using the Nyström method to speed up kernel machines" (2001).

use rayon::prelude::*;

use super::linear_system::LinearSystem;
use crate::gram::CombinedRows;
use crate::ledger::{Buffer, Guard, Ledger, bytes_of};
use crate::linalg::{self, Cholesky, Room, SingleCholesky, add_single_products};
use crate::random::Random;
use crate::vector;

/// Landmarks at most: their rows are r/n of all pairs, which one product takes half of, and A is made in n r² multiply–adds.
const MOST: usize = 2000;
/// One sample in so many is one at most.
const ONE_IN: usize = 4;
/// Samples whose columns of B lie together.
const CHUNK: usize = 512;
/// Rows of A that one thread makes at a time.
const PANEL: usize = 128;
/// Added to K_ZZ, relative to its largest diagonal entry; the next where that is too little.
const JITTERS: [f32; 4] = [1e-6, 1e-5, 1e-4, 1e-3];

/// So many landmarks for so many samples, where there is room for that many.
pub(super) fn landmarks(samples: usize, room: usize) -> usize {
    MOST.min(samples / ONE_IN).min(room)
}

/// Bytes for so many samples and landmarks.
pub(super) fn bytes(samples: usize, landmarks: usize) -> u64 {
    let squares = landmarks.saturating_mul(landmarks);
    // B; L and A; the factor of A.
    bytes_of::<f32>(landmarks.saturating_mul(samples.next_multiple_of(CHUNK)))
        .saturating_add(bytes_of::<f32>(squares.saturating_mul(2)))
        .saturating_add(bytes_of::<f64>(squares))
}

/// A matrix next to K + D that can be inverted.
#[derive(Debug)]
pub(super) struct Nystrom {
    /// D^(−½)
    roots: Vec<f64>,
    landmarks: usize,
    /// B, chunk by chunk of samples, within each row by row.
    columns: Buffer<f32>,
    /// Of A; nothing where there are no landmarks.
    factor: Option<Cholesky>,
    _memory: Guard,
}

impl Nystrom {
    /// With so many landmarks; with none where K_ZZ has no factor.
    pub(super) fn new(system: &LinearSystem<'_>, landmarks: usize, ledger: &Ledger) -> Self {
        let n = system.diagonal.len();
        let roots = system.diagonal.iter().map(|d| 1.0 / d.sqrt()).collect();
        let memory =
            ledger.take(bytes(n, landmarks).saturating_sub(bytes_of::<f32>(landmarks * n)));
        let mut order: Vec<usize> = (0..n).collect();
        Random::new(0).shuffle(&mut order);
        order.truncate(landmarks);
        order.sort_unstable();
        let mut made = Self {
            roots,
            landmarks,
            columns: ledger.zeros(landmarks * n),
            factor: None,
            _memory: memory,
        };
        if landmarks > 0 {
            made.fill(system.rows, &order);
        }
        let is_wanted = || !system.rows.is_stopped();
        made.factor = made
            .solve_for_landmarks(&order, &is_wanted)
            .and_then(|()| made.factor_of_inner(&is_wanted));
        if made.factor.is_none() {
            made.landmarks = 0;
        }
        made
    }

    /// Samples by chunk.
    fn chunks(&self) -> impl IndexedParallelIterator<Item = (&[f64], &[f32])> {
        let parts = self.columns.par_chunks((CHUNK * self.landmarks).max(1));
        self.roots.par_chunks(CHUNK).zip(parts)
    }

    /// K_Zn
    fn fill(&mut self, rows: &CombinedRows<'_>, landmarks: &[usize]) {
        // A few rows of K at a time, each by one thread.
        let panels = (0..).step_by(PANEL).zip(landmarks.chunks(PANEL));
        for (first, some) in panels.take_while(|_| !rows.is_stopped()) {
            let rows: Vec<Vec<f64>> = some
                .par_iter()
                .map(|&z| rows.with_row(z, <[f64]>::to_vec))
                .collect();
            let parts = self.columns.par_chunks_mut(CHUNK * self.landmarks);
            parts.enumerate().for_each(|(number, part)| {
                let width = part.len() / self.landmarks;
                let own = number * CHUNK..number * CHUNK + width;
                for (row, out) in rows.iter().zip(part.chunks_exact_mut(width).skip(first)) {
                    for (out, &value) in out.iter_mut().zip(&row[own.clone()]) {
                        *out = single(value);
                    }
                }
            });
        }
    }

    /// K_Zn → L⁻¹ K_Zn D^(−½)
    fn solve_for_landmarks(
        &mut self,
        landmarks: &[usize],
        is_wanted: &(impl Fn() -> bool + Sync),
    ) -> Option<()> {
        let (r, n) = (self.landmarks, self.roots.len());
        let at = |row: usize, sample: usize| {
            let (chunk, place) = (sample / CHUNK, sample % CHUNK);
            let width = CHUNK.min(n - chunk * CHUNK);
            self.columns[chunk * CHUNK * r + row * width + place]
        };
        let largest = (0..r).fold(0.0_f32, |most, row| most.max(at(row, landmarks[row])));
        let write = |j: usize, column: &mut [f32]| {
            for (k, value) in column.iter_mut().enumerate() {
                *value = at(j + k, landmarks[j]);
            }
        };
        let jitters = JITTERS.map(|jitter| jitter * largest);
        let factor = SingleCholesky::of_columns(r, jitters, write)?;
        let parts = self.columns.par_chunks_mut((CHUNK * r).max(1));
        let parts = parts.zip(self.roots.par_chunks(CHUNK));
        parts.filter(|_| is_wanted()).for_each(|(part, roots)| {
            factor.solve_lower(part, roots.len());
            for row in part.chunks_exact_mut(roots.len()) {
                for (value, &root) in row.iter_mut().zip(roots) {
                    *value *= single(root);
                }
            }
        });
        is_wanted().then_some(())
    }

    /// The factor of A = I + BB'.
    fn factor_of_inner(&self, is_wanted: &(impl Fn() -> bool + Sync)) -> Option<Cholesky> {
        let r = self.landmarks;
        let mut inner = vec![0.0_f32; r * r];
        let panels = inner.par_chunks_mut((PANEL * r).max(1)).enumerate();
        panels.filter(|_| is_wanted()).for_each(|(number, panel)| {
            let (first, count) = (number * PANEL, panel.len() / r);
            for part in self.columns.chunks((CHUNK * r).max(1)) {
                let width = part.len() / r;
                // Up to the diagonal.
                let (own, others) = (
                    &part[first * width..(first + count) * width],
                    &part[..(first + count) * width],
                );
                add_single_products(own, others, width, panel, r);
            }
        });
        let fill = |j: usize, column: &mut [f64]| {
            for (k, value) in column.iter_mut().enumerate() {
                let one = if k == 0 { 1.0 } else { 0.0 };
                *value = one + f64::from(inner[(j + k) * r + j]);
            }
        };
        Cholesky::of_columns(r, Room::None, [0.0], is_wanted, fill)
    }

    /// A⁻¹ B v, for `columns` vectors in a row-major block.
    fn inner(&self, block: &[f64], columns: usize) -> Vec<f64> {
        let r = self.landmarks;
        let blocks = block.par_chunks((CHUNK * columns).max(1));
        let products = |((roots, part), block): ((&[f64], &[f32]), &[f64])| {
            let mut sums = vec![0.0; r * columns];
            let rows = part
                .chunks_exact(roots.len())
                .zip(sums.chunks_exact_mut(columns));
            for (row, sums) in rows {
                if let [sum] = sums {
                    *sum = wide_dot(row, block);
                    continue;
                }
                for (&b, values) in row.iter().zip(block.chunks_exact(columns)) {
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += f64::from(b) * value;
                    }
                }
            }
            sums
        };
        let parts: Vec<Vec<f64>> = self.chunks().zip(blocks).map(products).collect();
        let mut sums = vec![0.0; r * columns];
        for part in &parts {
            linalg::axpy(1.0, part, &mut sums);
        }
        if let Some(factor) = &self.factor {
            factor.solve(&mut sums, columns);
        }
        sums
    }

    /// V ← V − B'X
    fn subtract(&self, inner: &[f64], columns: usize, block: &mut [f64]) {
        let blocks = block.par_chunks_mut((CHUNK * columns).max(1));
        let work = |((roots, part), block): ((&[f64], &[f32]), &mut [f64])| {
            let rows = part
                .chunks_exact(roots.len())
                .zip(inner.chunks_exact(columns));
            if columns == 1 {
                let rows: Vec<(f64, &[f32])> = rows.map(|(row, x)| (-x[0], row)).collect();
                vector::add_rows(&rows, block);
                return;
            }
            for (row, x) in rows {
                for (&b, values) in row.iter().zip(block.chunks_exact_mut(columns)) {
                    for (value, x) in values.iter_mut().zip(x) {
                        *value -= f64::from(b) * x;
                    }
                }
            }
        };
        self.chunks().zip(blocks).for_each(work);
    }

    /// V ← D^(−½) V
    fn scale(&self, block: &mut [f64], columns: usize) {
        for (row, root) in block.chunks_exact_mut(columns).zip(&self.roots) {
            for value in row {
                *value *= root;
            }
        }
    }

    /// The inverse times r.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x = right.to_vec();
        self.scale(&mut x, 1);
        if self.landmarks > 0 {
            let inner = self.inner(&x, 1);
            self.subtract(&inner, 1, &mut x);
        }
        self.scale(&mut x, 1);
        x
    }

    /// V with V'V = u'M⁻¹u, M being what is inverted: the least of ‖D^(−½)u − B'x‖² + ‖x‖².
    pub(super) fn half(&self, mut block: Vec<f64>, columns: usize) -> Vec<f64> {
        self.scale(&mut block, columns);
        if self.landmarks > 0 {
            let inner = self.inner(&block, columns);
            self.subtract(&inner, columns, &mut block);
            block.extend(inner);
        }
        block
    }
}

/// Sums side by side, so that they need not wait for each other.
const LANES: usize = 8;

/// b'v
fn wide_dot(b: &[f32], v: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (bs, vs) = (b.chunks_exact(LANES), v.chunks_exact(LANES));
    let rest: f64 = (bs.remainder().iter().zip(vs.remainder()))
        .map(|(&b, v)| f64::from(b) * v)
        .sum();
    for (b, v) in bs.zip(vs) {
        for lane in 0..LANES {
            sums[lane] += f64::from(b[lane]) * v[lane];
        }
    }
    rest + sums.iter().sum::<f64>()
}

#[allow(clippy::cast_possible_truncation, reason = "rounding is meant")]
fn single(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::{TaskGrams, given};
    use crate::linalg::dot;

    /// With all samples as landmarks it is the inverse itself, but for single precision.
    #[test]
    fn with_all_samples_it_is_the_inverse() {
        let n = CHUNK + 70;
        let mut random = Random::new(5);
        let places: Vec<f64> = (0..n).map(|_| 4.0 * random.uniform()).collect();
        let entry = |i: usize, j: usize| (-(places[i] - places[j]).powi(2)).exp();
        let kernel: Vec<f64> = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        let diagonal: Vec<f64> = (0..n).map(|_| 0.5 + random.uniform()).collect();
        let grams = given(n, vec![kernel.clone()]);
        let rows = CombinedRows::new(TaskGrams::all(grams.as_ref()), &[1.0]);
        let system = LinearSystem {
            rows: &rows,
            diagonal: &diagonal,
            has_sum: false,
            concave: true,
            landmarks: 0,
        };
        let u: Vec<f64> = (0..2 * n).map(|_| random.uniform() - 0.5).collect();
        let first: Vec<f64> = u.iter().step_by(2).copied().collect();
        for (landmarks, digits) in [(n, 1e-3), (40, 1e-3), (0, 1.0)] {
            let ledger = Ledger::default();
            let near = Nystrom::new(&system, landmarks, &ledger);
            let x = near.solve(&first);
            // M x, of K itself: places on a line have a kernel of low rank.
            let left: Vec<f64> = (0..n)
                .map(|i| dot(&kernel[i * n..(i + 1) * n], &x) + diagonal[i] * x[i] - first[i])
                .collect();
            let off = (dot(&left, &left) / dot(&first, &first)).sqrt();
            assert!(
                if landmarks > 0 {
                    off < digits
                } else {
                    off > digits
                },
                "{landmarks}: {off}"
            );
            let half = near.half(u.clone(), 2);
            let squares: f64 = half.iter().step_by(2).map(|v| v * v).sum();
            assert!((squares - dot(&first, &x)).abs() < 1e-5 * squares);
            assert!(ledger.taken() > 0 || landmarks == 0);
            drop(near);
            assert_eq!(ledger.taken(), 0);
        }
    }
}
