//! Rows that are felt by their sums: diagonals D_i and borders on each row, and a curvature W on σ, the sums of the rows of each node.
//!
//! (D + E'WE) x = y, Ex = σ, is solved by (S⁻¹ + W) σ = S⁻¹ E D⁻¹ y with S = E D⁻¹ E', the sum of the inverse diagonals, and x = D⁻¹(y − E'Wσ). Then the
//! borders are eliminated by their own small Schur complement.

use std::borrow::Cow;

use super::Border;
use super::RowMatrix;
use super::hessian::{Hessian, is_low};
use super::layout::RowId;
use crate::grid::{Grid, dot};
use crate::linalg::{self, Cholesky, axpy};

/// A factored block of rows.
#[derive(Debug)]
pub(super) struct SumBlock<'a> {
    /// The rows, those of one node after those of the one before, and the node of each.
    pub(super) rows: Vec<RowId>,
    pub(super) nodes: Vec<usize>,
    diagonals: Vec<&'a [f64]>,
    kernels: usize,
    /// S = Σ 1/diagonal over the rows of a node, node after node.
    inverse_sum: Vec<f64>,
    solver: SumSolver<'a>,
    /// Borders: which row, and B₀⁻¹ of the vector, one row after the other.
    pub(super) borders: Vec<(usize, &'a Border)>,
    solved: Vec<Vec<f64>>,
    /// diag(inverse) + E'B₀⁻¹E, the Schur complement of the borders.
    small: Vec<f64>,
}

/// Solves (S⁻¹ + W) σ = r.
#[derive(Debug)]
enum SumSolver<'a> {
    /// By the matrix itself; W is a task's, or what the tasks leave on the nodes.
    Dense {
        factor: Cholesky,
        hessian: Hessian<'a>,
        schur: Option<Vec<f64>>,
    },
    /// By I + F S̃ F' of the size of the rank, S̃ = 1/(1/S + b) (Woodbury): for many more kernels than free directions.
    LowRank {
        factor: Cholesky,
        rows: Cow<'a, [f64]>,
        damping: Option<&'a [f64]>,
        inverse: Vec<f64>,
    },
}

/// Where rounding has left a dense matrix indefinite, this part of its largest diagonal entry is added to begin with; the refinement by residuals makes up for it.
const JITTER: f64 = 1e-14;

impl<'a> SumSolver<'a> {
    /// `is_shared` says that [`SumBlock::add_schur`] will want I + F S̃ F', too.
    fn new(
        inverse_sum: &[f64],
        hessian: Hessian<'a>,
        schur: Option<Vec<f64>>,
        is_shared: bool,
    ) -> Option<Self> {
        let m = inverse_sum.len();
        let rank = hessian.rank(m);
        if schur.is_none() && (is_low(rank, m) || is_shared && rank <= m) {
            let mut inverse = hessian.shares(inverse_sum);
            for (value, s) in inverse.iter_mut().zip(inverse_sum) {
                *value *= s;
            }
            let rows = hessian.all_rows();
            return Some(Self::LowRank {
                factor: low_rank_factor(&inverse, &rows)?,
                rows,
                damping: hessian.damping,
                inverse,
            });
        }
        let mut matrix = schur.clone().unwrap_or_else(|| vec![0.0; m * m]);
        hessian.add_to(m, &mut matrix);
        for i in 0..m {
            matrix[i * m + i] += inverse_sum[i].recip();
        }
        let factor =
            Cholesky::new(&matrix, m).or_else(|| Cholesky::with_jitter(matrix, m, JITTER))?;
        Some(Self::Dense {
            factor,
            hessian,
            schur,
        })
    }

    /// `sigma` is r and becomes σ; `image` becomes Wσ where it is wanted.
    fn solve(&self, sigma: &mut [f64], image: Option<&mut [f64]>) {
        let m = sigma.len();
        match self {
            Self::Dense {
                factor,
                hessian,
                schur,
            } => {
                factor.solve(sigma, 1);
                if let Some(image) = image {
                    image.fill(0.0);
                    hessian.add_image(sigma, 1.0, image);
                    if let Some(schur) = schur {
                        for (out, row) in image.iter_mut().zip(schur.chunks_exact(m)) {
                            *out += dot(row, sigma);
                        }
                    }
                }
            }
            Self::LowRank {
                factor,
                rows,
                damping,
                inverse,
            } => {
                for (r, s) in sigma.iter_mut().zip(inverse) {
                    *r *= s;
                }
                // Fσ
                let mut inner: Vec<f64> = rows.chunks_exact(m).map(|row| dot(row, sigma)).collect();
                factor.solve(&mut inner, 1);
                let mut pull = vec![0.0; m];
                for (weight, row) in inner.iter().zip(rows.chunks_exact(m)) {
                    axpy(*weight, row, &mut pull);
                }
                for (sigma, (pull, s)) in sigma.iter_mut().zip(pull.iter().zip(inverse)) {
                    *sigma -= s * pull;
                }
                if let Some(image) = image {
                    image.copy_from_slice(&pull);
                    if let Some(damping) = damping {
                        for (out, (b, v)) in image.iter_mut().zip(damping.iter().zip(&*sigma)) {
                            *out += b * v;
                        }
                    }
                }
            }
        }
    }
}

/// I + F S F'
fn low_rank_factor(inverse_sum: &[f64], rows: &[f64]) -> Option<Cholesky> {
    let m = inverse_sum.len();
    let rank = rows.len() / m;
    let mut matrix = vec![0.0; rank * rank];
    linalg::add_scaled_gram(rows, inverse_sum, &mut matrix);
    for i in 0..rank {
        matrix[i * rank + i] += 1.0;
    }
    Cholesky::new(&matrix, rank)
}

impl<'a> SumBlock<'a> {
    /// The rows of one task, which feel its curvature; `is_shared` where there are nodes above it.
    pub(super) fn of_task(
        rows: &[RowId],
        matrices: &'a [Vec<RowMatrix>],
        hessian: Hessian<'a>,
        is_shared: bool,
    ) -> Option<Self> {
        let rows = std::slice::from_ref(&rows);
        Self::new(rows, matrices, hessian, None, is_shared)
    }

    /// The rows of all nodes, which feel what the tasks leave: a dense matrix of (nodes · M)².
    pub(super) fn of_nodes(
        nodes: &[Vec<RowId>],
        matrices: &'a [Vec<RowMatrix>],
        schur: Vec<f64>,
    ) -> Option<Self> {
        Self::new(nodes, matrices, Hessian::NONE, Some(schur), false)
    }

    fn new<R: AsRef<[RowId]>>(
        nodes: &[R],
        matrices: &'a [Vec<RowMatrix>],
        hessian: Hessian<'a>,
        schur: Option<Vec<f64>>,
        is_shared: bool,
    ) -> Option<Self> {
        let rows: Vec<RowId> = nodes.iter().flat_map(AsRef::as_ref).copied().collect();
        let numbers = nodes.iter().enumerate();
        let numbers: Vec<usize> = numbers
            .flat_map(|(node, rows)| rows.as_ref().iter().map(move |_| node))
            .collect();
        let matrix = |&(term, row): &RowId| &matrices[term][row];
        let diagonals: Vec<&[f64]> = rows.iter().map(|id| &matrix(id).diagonal[..]).collect();
        let m = diagonals.first()?.len();
        let mut inverse_sum = vec![0.0; nodes.len() * m];
        for (diagonal, node) in diagonals.iter().zip(&numbers) {
            let sums = inverse_sum[node * m..(node + 1) * m].iter_mut();
            for (sum, value) in sums.zip(*diagonal) {
                *sum += value.recip();
            }
        }
        let solver = SumSolver::new(&inverse_sum, hessian, schur, is_shared)?;
        let borders = rows.iter().enumerate();
        let borders = borders
            .flat_map(|(at, id)| matrix(id).borders.iter().map(move |border| (at, border)))
            .collect();
        let mut block = Self {
            rows,
            nodes: numbers,
            diagonals,
            kernels: m,
            inverse_sum,
            solver,
            borders,
            solved: Vec::new(),
            small: Vec::new(),
        };
        block.eliminate_borders();
        Some(block)
    }

    fn eliminate_borders(&mut self) {
        let (m, count) = (self.kernels, self.borders.len());
        for &(at, border) in &self.borders {
            let mut solution = vec![0.0; self.rows.len() * m];
            solution[at * m..(at + 1) * m].copy_from_slice(&border.vector);
            self.solve_plain(&mut solution);
            self.solved.push(solution);
        }
        self.small = vec![0.0; count * count];
        for (i, &(at, border)) in self.borders.iter().enumerate() {
            for j in 0..count {
                let solved = &self.solved[j][at * m..(at + 1) * m];
                self.small[i * count + j] = dot(&border.vector, solved);
            }
            self.small[i * count + i] += border.inverse;
        }
    }

    /// B₀⁻¹ y, without the borders: (D + W on the sums) x = y, row after row. y becomes x.
    fn solve_plain(&self, y: &mut [f64]) {
        let m = self.kernels;
        // With one row in each node the sums are the rows.
        if y.len() == self.inverse_sum.len() {
            self.solver.solve(y, None);
            return;
        }
        let size = self.inverse_sum.len();
        let (mut sigma, mut image) = (vec![0.0; size], vec![0.0; size]);
        for (y, (d, node)) in y
            .chunks_exact(m)
            .zip(self.diagonals.iter().zip(&self.nodes))
        {
            let sums = sigma[node * m..(node + 1) * m].iter_mut();
            for (sum, (y, d)) in sums.zip(y.iter().zip(*d)) {
                *sum += y / d;
            }
        }
        for (value, s) in sigma.iter_mut().zip(&self.inverse_sum) {
            *value /= s;
        }
        self.solver.solve(&mut sigma, Some(&mut image));
        let rows = self.diagonals.iter().zip(&self.nodes);
        for (y, (d, node)) in y.chunks_exact_mut(m).zip(rows) {
            let images = &image[node * m..(node + 1) * m];
            for (y, (image, d)) in y.iter_mut().zip(images.iter().zip(*d)) {
                *y = (*y - image) / d;
            }
        }
    }

    /// x and the borders' multipliers ν with (B₀ x + Σ v ν = y, v'x − inverse · ν = r) for every border; y becomes x, and r becomes ν.
    pub(super) fn solve(&self, y: &mut [f64], multipliers: &mut [f64]) -> Option<()> {
        self.solve_plain(y);
        let (m, count) = (self.kernels, self.borders.len());
        if count == 0 {
            return Some(());
        }
        for (value, &(at, border)) in multipliers.iter_mut().zip(&self.borders) {
            *value = dot(&border.vector, &y[at * m..(at + 1) * m]) - *value;
        }
        self.solve_borders(multipliers)?;
        for (multiplier, solved) in multipliers.iter().zip(&self.solved) {
            axpy(-multiplier, solved, y);
        }
        Some(())
    }

    /// The small system of the borders.
    fn solve_borders(&self, values: &mut [f64]) -> Option<()> {
        if let [only] = self.small.as_slice() {
            values[0] /= only;
            return values[0].is_finite().then_some(());
        }
        linalg::solve_small(&mut self.small.clone(), values, values.len()).then_some(())
    }

    /// Takes off `left` what x and ν make of it: the diagonal and the borders (the curvature is the system's business).
    pub(super) fn subtract(
        &self,
        x: &[Grid],
        multipliers: &[f64],
        left: &mut [Grid],
        border_left: &mut [f64],
    ) {
        for (&(term, row), diagonal) in self.rows.iter().zip(&self.diagonals) {
            let out = left[term].row_mut(row);
            for (value, (d, x)) in out.iter_mut().zip(diagonal.iter().zip(x[term].row(row))) {
                *value -= d * x;
            }
        }
        for (number, &(at, border)) in self.borders.iter().enumerate() {
            let (term, row) = self.rows[at];
            axpy(
                -multipliers[number],
                &border.vector,
                left[term].row_mut(row),
            );
            border_left[number] -=
                dot(&border.vector, x[term].row(row)) - border.inverse * multipliers[number];
        }
    }

    /// Adds to `out` the Schur complement of a task's block: the curvature that a vector added to θᵗ from outside still feels once these rows have answered to
    /// it, W − W E B⁻¹ E' W; without borders b/(1 + bS) on the diagonal and F̃'(I + F S̃ F')⁻¹F̃ with F̃ = F/(1 + bS), S̃ = S/(1 + bS).
    pub(super) fn add_schur(&self, hessian: Hessian<'_>, out: &mut [f64]) -> Option<()> {
        let m = self.kernels;
        let shares = hessian.shares(&self.inverse_sum);
        if let Some(damping) = hessian.damping {
            for (i, (b, share)) in damping.iter().zip(&shares).enumerate() {
                out[i * m + i] += b * share;
            }
        }
        let own: Cholesky;
        let (factor, mut half) = match &self.solver {
            SumSolver::LowRank { factor, rows, .. } => (factor, rows.to_vec()),
            SumSolver::Dense { .. } => {
                let pairs = shares.iter().zip(&self.inverse_sum);
                let inverse: Vec<f64> = pairs.map(|(share, s)| share * s).collect();
                let rows = hessian.all_rows().into_owned();
                own = low_rank_factor(&inverse, &rows)?;
                (&own, rows)
            }
        };
        for row in half.chunks_exact_mut(m) {
            for (value, share) in row.iter_mut().zip(&shares) {
                *value *= share;
            }
        }
        factor.solve_lower(&mut half, m);
        linalg::add_gram(&half, m, out);
        let count = self.borders.len();
        if count == 0 {
            return Some(());
        }
        // The borders hold the rows, and let go of a little less.
        let images: Vec<Vec<f64>> = self
            .solved
            .iter()
            .map(|solution| {
                let mut image = vec![0.0; m];
                hessian.add_image(&self.sums(solution), 1.0, &mut image);
                image
            })
            .collect();
        for j in 0..count {
            let mut column = vec![0.0; count];
            column[j] = 1.0;
            self.solve_borders(&mut column)?;
            for (i, &weight) in column.iter().enumerate() {
                for a in 0..m {
                    axpy(
                        weight * images[i][a],
                        &images[j],
                        &mut out[a * m..(a + 1) * m],
                    );
                }
            }
        }
        Some(())
    }

    /// The sum of the rows of each node, node after node.
    pub(super) fn sums(&self, rows: &[f64]) -> Vec<f64> {
        let m = self.kernels;
        let mut sums = vec![0.0; self.inverse_sum.len()];
        for (row, node) in rows.chunks_exact(m).zip(&self.nodes) {
            axpy(1.0, row, &mut sums[node * m..(node + 1) * m]);
        }
        sums
    }

    /// The rows of these grids, one after the other.
    pub(super) fn collect(&self, grids: &[Grid], out: &mut Vec<f64>) {
        out.clear();
        for &(term, row) in &self.rows {
            out.extend_from_slice(grids[term].row(row));
        }
    }

    pub(super) fn store(&self, rows: &[f64], grids: &mut [Grid]) {
        for (&(term, row), part) in self.rows.iter().zip(rows.chunks_exact(self.kernels)) {
            grids[term].row_mut(row).copy_from_slice(part);
        }
    }
}
