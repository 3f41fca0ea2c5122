//! The Newton matrix of the model's interior point method, factored by its structure.
//!
//! Variables come in rows of M: one row per task-specific term and task, one per common term. The matrix is
//!
//! - a diagonal, and for each row a few rank-one pieces (a norm's curvature) or sums held at zero;
//! - W_t = F_t'F_t + G_t'G_t + diag(b_t) on θᵗ = (sum of all rows that reach task t);
//! - for a mixed norm, one rank-one piece over all its rows.
//!
//! Tasks are eliminated one by one (M × M or rank × rank, whichever is smaller), what they leave on the common rows is added
//! up, and the couplings come last. With one task common rows are the task's own.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::grid::{Grid, dot};
use crate::linalg::{self, Cholesky, axpy};

/// A rank-one piece (1/inverse) · v v', or, with inverse = 0, the condition v'x = 0.
#[derive(Debug, Clone)]
pub(super) struct Extra {
    pub(super) vector: Vec<f64>,
    pub(super) inverse: f64,
}

/// The matrix of one row before the tasks' curvature: diagonal > 0 plus extras.
#[derive(Debug, Clone)]
pub(super) struct RowMatrix {
    pub(super) diagonal: Vec<f64>,
    pub(super) extras: Vec<Extra>,
}

/// W = F'F + G'G + diag(b), one task's curvature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bend<'a> {
    /// F, row by row.
    pub(super) rows: &'a [f64],
    /// F'F, where F has enough rows to make that worth while.
    pub(super) gram: Option<&'a [f64]>,
    /// G, row by row.
    pub(super) more: &'a [f64],
    pub(super) diagonal: Option<&'a [f64]>,
}

impl<'a> Bend<'a> {
    /// Nothing bends.
    const NONE: Self = Self {
        rows: &[],
        gram: None,
        more: &[],
        diagonal: None,
    };

    /// Whether F'F should be known: with many more kernels than rows it is never used.
    pub(super) fn wants_gram(rows: &[f64], m: usize) -> bool {
        !is_low(rows.len() / m, m)
    }

    /// out ← out + sign · W v
    fn add_image(&self, v: &[f64], sign: f64, out: &mut [f64]) {
        let m = v.len();
        match self.gram {
            Some(gram) => {
                for (value, row) in v.iter().zip(gram.chunks_exact(m)) {
                    axpy(sign * value, row, out);
                }
            }
            None => add_squares(self.rows, v, sign, out),
        }
        add_squares(self.more, v, sign, out);
        if let Some(diagonal) = self.diagonal {
            for (out, (bend, v)) in out.iter_mut().zip(diagonal.iter().zip(v)) {
                *out += sign * bend * v;
            }
        }
    }

    /// v'Wv
    pub(super) fn square(&self, v: &[f64]) -> f64 {
        let rows = [self.rows, self.more];
        let rows = rows.iter().flat_map(|rows| rows.chunks_exact(v.len()));
        let own: f64 = rows.map(|row| dot(row, v).powi(2)).sum();
        let pairs = self.diagonal.iter().flat_map(|b| b.iter().zip(v));
        own + pairs.map(|(bend, v)| bend * v * v).sum::<f64>()
    }

    /// out ← out − W v
    pub(super) fn subtract_image(&self, v: &[f64], out: &mut [f64]) {
        self.add_image(v, -1.0, out);
    }

    /// out ← out + W, M × M.
    fn add_to(&self, m: usize, out: &mut [f64]) {
        match self.gram {
            Some(gram) => axpy(1.0, gram, out),
            None if self.rows.is_empty() => {}
            None => linalg::add_gram(self.rows, m, out),
        }
        if !self.more.is_empty() {
            linalg::add_gram(self.more, m, out);
        }
        if let Some(diagonal) = self.diagonal {
            for (i, bend) in diagonal.iter().enumerate() {
                out[i * m + i] += bend;
            }
        }
    }

    /// F above G.
    fn all_rows(self) -> Cow<'a, [f64]> {
        if self.more.is_empty() {
            Cow::Borrowed(self.rows)
        } else {
            Cow::Owned([self.rows, self.more].concat())
        }
    }

    /// 1/(1 + b S): what the diagonal leaves of each direction.
    fn shares(&self, inverse_sum: &[f64]) -> Vec<f64> {
        match self.diagonal {
            None => vec![1.0; inverse_sum.len()],
            Some(diagonal) => {
                let pairs = diagonal.iter().zip(inverse_sum);
                pairs.map(|(bend, s)| (1.0 + bend * s).recip()).collect()
            }
        }
    }
}

/// Whether a curvature of this rank on M kernels is better worked with by its rows than by an M × M matrix.
fn is_low(rank: usize, m: usize) -> bool {
    m > 2 * rank + 64
}

/// out ← out + sign · F'F v
fn add_squares(rows: &[f64], v: &[f64], sign: f64, out: &mut [f64]) {
    for row in rows.chunks_exact(v.len()) {
        axpy(sign * dot(row, v), row, out);
    }
}

/// Several rows that reach the same θ (one vector of M), with a curvature W on their sum.
#[derive(Debug)]
struct Bundle<'a> {
    /// (term, row) of each member.
    members: Vec<(usize, usize)>,
    diagonals: Vec<&'a [f64]>,
    /// S = Σ_members 1/diagonal.
    inverse_sum: Vec<f64>,
    solver: SumSolver<'a>,
    /// Extras: which member, and B₀⁻¹ of the vector, one member after the other.
    extras: Vec<(usize, &'a Extra)>,
    solved: Vec<Vec<f64>>,
    /// Small matrix diag(inverse) + E'B₀⁻¹E.
    small: Vec<f64>,
}

/// Solves (S⁻¹ + W) σ = r.
#[derive(Debug)]
enum SumSolver<'a> {
    /// By the M × M matrix itself; what bends, beside a matrix for the common rows.
    Dense {
        factor: Cholesky,
        bend: Bend<'a>,
        extra: Option<Vec<f64>>,
    },
    /// By I + F S̃ F' of the size of the rank, S̃ = 1/(1/S + b): for many more kernels than free directions.
    LowRank {
        factor: Cholesky,
        rows: Cow<'a, [f64]>,
        diagonal: Option<&'a [f64]>,
        inverse: Vec<f64>,
    },
}

impl<'a> SumSolver<'a> {
    fn new(inverse_sum: &[f64], bend: Bend<'a>, extra: Option<Vec<f64>>) -> Option<Self> {
        let m = inverse_sum.len();
        let rank = (bend.rows.len() + bend.more.len()) / m;
        if extra.is_none() && is_low(rank, m) {
            let mut inverse = bend.shares(inverse_sum);
            for (value, s) in inverse.iter_mut().zip(inverse_sum) {
                *value *= s;
            }
            let rows = bend.all_rows();
            return Some(Self::LowRank {
                factor: low_rank_factor(&inverse, &rows)?,
                rows,
                diagonal: bend.diagonal,
                inverse,
            });
        }
        let mut matrix = extra.clone().unwrap_or_else(|| vec![0.0; m * m]);
        bend.add_to(m, &mut matrix);
        for i in 0..m {
            matrix[i * m + i] += inverse_sum[i].recip();
        }
        let factor =
            Cholesky::new(&matrix, m).or_else(|| Cholesky::with_jitter(matrix, m, 1e-14))?;
        Some(Self::Dense {
            factor,
            bend,
            extra,
        })
    }

    /// `sigma` is r and becomes σ; `image` becomes Wσ where it is wanted.
    fn solve(&self, sigma: &mut [f64], image: Option<&mut [f64]>) {
        let m = sigma.len();
        match self {
            Self::Dense {
                factor,
                bend,
                extra,
            } => {
                factor.solve(sigma, 1);
                if let Some(image) = image {
                    image.fill(0.0);
                    bend.add_image(sigma, 1.0, image);
                    if let Some(extra) = extra {
                        for (out, row) in image.iter_mut().zip(extra.chunks_exact(m)) {
                            *out += dot(row, sigma);
                        }
                    }
                }
            }
            Self::LowRank {
                factor,
                rows,
                diagonal,
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
                    if let Some(diagonal) = diagonal {
                        for (out, (bend, v)) in image.iter_mut().zip(diagonal.iter().zip(&*sigma)) {
                            *out += bend * v;
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

impl<'a> Bundle<'a> {
    fn new(
        members: Vec<(usize, usize)>,
        matrices: &'a [Vec<RowMatrix>],
        bend: Bend<'a>,
        extra: Option<Vec<f64>>,
    ) -> Option<Self> {
        let diagonals: Vec<&[f64]> = members
            .iter()
            .map(|&(term, row)| matrices[term][row].diagonal.as_slice())
            .collect();
        let m = diagonals.first()?.len();
        let mut inverse_sum = vec![0.0; m];
        for diagonal in &diagonals {
            for (sum, value) in inverse_sum.iter_mut().zip(*diagonal) {
                *sum += value.recip();
            }
        }
        let solver = SumSolver::new(&inverse_sum, bend, extra)?;
        let extras: Vec<(usize, &Extra)> = members
            .iter()
            .enumerate()
            .flat_map(|(member, &(term, row))| {
                let extras = matrices[term][row].extras.iter();
                extras.map(move |extra| (member, extra))
            })
            .collect();
        let mut bundle = Self {
            members,
            diagonals,
            inverse_sum,
            solver,
            extras,
            solved: Vec::new(),
            small: Vec::new(),
        };
        for &(member, extra) in &bundle.extras {
            let mut solution = vec![0.0; bundle.members.len() * m];
            solution[member * m..(member + 1) * m].copy_from_slice(&extra.vector);
            bundle.solve_plain(&mut solution);
            bundle.solved.push(solution);
        }
        let count = bundle.extras.len();
        bundle.small = vec![0.0; count * count];
        for (i, &(member, extra)) in bundle.extras.iter().enumerate() {
            for j in 0..count {
                let solved = &bundle.solved[j][member * m..(member + 1) * m];
                bundle.small[i * count + j] = dot(&extra.vector, solved);
            }
            bundle.small[i * count + i] += extra.inverse;
        }
        Some(bundle)
    }

    /// B₀⁻¹ y, without the extras: (diagonal + W on the sum) x = y, member after member. y becomes x.
    fn solve_plain(&self, y: &mut [f64]) {
        let m = self.inverse_sum.len();
        if self.members.len() == 1 {
            self.solver.solve(y, None);
            return;
        }
        // σ = Σ x solves (S⁻¹ + W) σ = S⁻¹ Σ y/d; then x = (y − Wσ)/d.
        let (mut sigma, mut image) = (vec![0.0; m], vec![0.0; m]);
        for (y, d) in y.chunks_exact(m).zip(&self.diagonals) {
            for (sum, (y, d)) in sigma.iter_mut().zip(y.iter().zip(*d)) {
                *sum += y / d;
            }
        }
        for (value, s) in sigma.iter_mut().zip(&self.inverse_sum) {
            *value /= s;
        }
        self.solver.solve(&mut sigma, Some(&mut image));
        for (y, d) in y.chunks_exact_mut(m).zip(&self.diagonals) {
            for (y, (image, d)) in y.iter_mut().zip(image.iter().zip(*d)) {
                *y = (*y - image) / d;
            }
        }
    }

    /// x and the extras' multipliers ν with (B₀ x + Σ v ν = y, v'x − inverse · ν = r) for every extra; y becomes x, and r becomes ν.
    fn solve(&self, y: &mut [f64], multipliers: &mut [f64]) -> Option<()> {
        self.solve_plain(y);
        let (m, count) = (self.inverse_sum.len(), self.extras.len());
        if count == 0 {
            return Some(());
        }
        for (value, &(member, extra)) in multipliers.iter_mut().zip(&self.extras) {
            *value = dot(&extra.vector, &y[member * m..(member + 1) * m]) - *value;
        }
        self.solve_extras(multipliers)?;
        for (multiplier, solved) in multipliers.iter().zip(&self.solved) {
            axpy(-multiplier, solved, y);
        }
        Some(())
    }

    /// The small system of the extras.
    fn solve_extras(&self, values: &mut [f64]) -> Option<()> {
        if let [only] = self.small.as_slice() {
            values[0] /= only;
            return values[0].is_finite().then_some(());
        }
        linalg::solve_small(&mut self.small.clone(), values, values.len()).then_some(())
    }

    /// Takes off `left` what x and ν make of it: the diagonal and the extras (the curvature is the system's business).
    fn subtract(&self, x: &[Grid], multipliers: &[f64], left: &mut [Grid], extra_left: &mut [f64]) {
        for (&(term, row), diagonal) in self.members.iter().zip(&self.diagonals) {
            let out = left[term].row_mut(row);
            for (value, (d, x)) in out.iter_mut().zip(diagonal.iter().zip(x[term].row(row))) {
                *value -= d * x;
            }
        }
        for (number, &(member, extra)) in self.extras.iter().enumerate() {
            let (term, row) = self.members[member];
            axpy(-multipliers[number], &extra.vector, left[term].row_mut(row));
            extra_left[number] -=
                dot(&extra.vector, x[term].row(row)) - extra.inverse * multipliers[number];
        }
    }

    /// Adds to `out` the curvature that a vector added to θᵗ from outside still feels once this bundle has answered to it:
    /// W − Ŵ'B⁻¹Ŵ; without extras b/(1 + bS) on the diagonal and F̃'(I + F S̃ F')⁻¹F̃ with F̃ = F/(1 + bS), S̃ = S/(1 + bS).
    fn add_schur(&self, bend: Bend<'_>, out: &mut [f64]) -> Option<()> {
        let m = self.inverse_sum.len();
        let shares = bend.shares(&self.inverse_sum);
        if let Some(diagonal) = bend.diagonal {
            for (i, (bend, share)) in diagonal.iter().zip(&shares).enumerate() {
                out[i * m + i] += bend * share;
            }
        }
        let pairs = shares.iter().zip(&self.inverse_sum);
        let inverse: Vec<f64> = pairs.map(|(share, s)| share * s).collect();
        let mut half = bend.all_rows().into_owned();
        let factor = low_rank_factor(&inverse, &half)?;
        for row in half.chunks_exact_mut(m) {
            for (value, share) in row.iter_mut().zip(&shares) {
                *value *= share;
            }
        }
        factor.solve_lower(&mut half, m);
        linalg::add_gram(&half, m, out);
        let count = self.extras.len();
        if count == 0 {
            return Some(());
        }
        // F'P, P = F̂ B₀⁻¹ E: the extras let go of a little less.
        let images: Vec<Vec<f64>> = self
            .solved
            .iter()
            .map(|solution| {
                let mut image = vec![0.0; m];
                bend.add_image(&total(solution, m), 1.0, &mut image);
                image
            })
            .collect();
        for j in 0..count {
            let mut column = vec![0.0; count];
            column[j] = 1.0;
            self.solve_extras(&mut column)?;
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

    /// The members' rows, one after the other.
    fn collect(&self, grids: &[Grid], out: &mut Vec<f64>) {
        out.clear();
        for &(term, row) in &self.members {
            out.extend_from_slice(grids[term].row(row));
        }
    }

    fn store(&self, rows: &[f64], grids: &mut [Grid]) {
        let rows = rows.chunks_exact(self.inverse_sum.len());
        for (&(term, row), part) in self.members.iter().zip(rows) {
            grids[term].row_mut(row).copy_from_slice(part);
        }
    }
}

/// The sum of rows of m.
fn total(rows: &[f64], m: usize) -> Vec<f64> {
    let mut sum = vec![0.0; m];
    for row in rows.chunks_exact(m) {
        axpy(1.0, row, &mut sum);
    }
    sum
}

/// The factored matrix.
#[derive(Debug)]
pub(super) struct System<'a> {
    common: Option<Bundle<'a>>,
    tasks: Vec<Option<Bundle<'a>>>,
    bends: &'a [Bend<'a>],
    shapes: Vec<usize>,
    kernels: usize,
    couplings: Vec<(usize, &'a Extra)>,
    /// B⁻¹ of each coupling, and the small matrix of all of them.
    solved: Vec<Answer>,
    small: Vec<f64>,
}

impl<'a> System<'a> {
    /// Factors the matrix; `None` when it is numerically singular. A term without rows has no variables.
    pub(super) fn new(
        matrices: &'a [Vec<RowMatrix>],
        couplings: &'a [Option<Extra>],
        is_common: &[bool],
        bends: &'a [Bend<'a>],
        kernels: usize,
    ) -> Option<Self> {
        let tasks = bends.len();
        // With one task, its own rows and the common ones are the same thing.
        let shared = |term: usize| is_common[term] && tasks > 1;
        let terms: Vec<usize> = (0..matrices.len())
            .filter(|&term| !matrices[term].is_empty())
            .collect();
        let is_shared = terms.iter().any(|&term| shared(term));
        let eliminate = |task: usize| {
            let bend = bends[task];
            let mut schur = vec![0.0; if is_shared { kernels * kernels } else { 0 }];
            let members: Vec<(usize, usize)> = terms
                .iter()
                .filter(|&&term| !shared(term))
                .map(|&term| (term, if is_common[term] { 0 } else { task }))
                .collect();
            if members.is_empty() {
                if is_shared {
                    bend.add_to(kernels, &mut schur);
                }
                return Some((None, schur));
            }
            let bundle = Bundle::new(members, matrices, bend, None)?;
            if is_shared {
                bundle.add_schur(bend, &mut schur)?;
            }
            Some((Some(bundle), schur))
        };
        // A few tasks at a time on the solver's threads; what they leave is added up in their order.
        let mut bundles = Vec::with_capacity(tasks);
        let mut schur = vec![0.0; if is_shared { kernels * kernels } else { 0 }];
        let is_pooled = rayon::current_thread_index().is_some();
        let at_once = if kernels > MANY { 1 } else { AT_ONCE };
        for first in (0..tasks).step_by(at_once) {
            let range = first..(first + at_once).min(tasks);
            let some: Vec<_> = if is_pooled {
                range
                    .into_par_iter()
                    .map(eliminate)
                    .collect::<Option<_>>()?
            } else {
                range.map(eliminate).collect::<Option<_>>()?
            };
            for (bundle, own) in some {
                axpy(1.0, &own, &mut schur);
                bundles.push(bundle);
            }
        }
        let members: Vec<(usize, usize)> = terms
            .iter()
            .filter(|&&term| shared(term))
            .map(|&term| (term, 0))
            .collect();
        let common = if members.is_empty() {
            None
        } else {
            Some(Bundle::new(members, matrices, Bend::NONE, Some(schur))?)
        };
        let mut system = Self {
            common,
            tasks: bundles,
            bends,
            shapes: matrices.iter().map(Vec::len).collect(),
            kernels,
            couplings: couplings
                .iter()
                .enumerate()
                .filter_map(|(term, extra)| extra.as_ref().map(|extra| (term, extra)))
                .collect(),
            solved: Vec::new(),
            small: Vec::new(),
        };
        for &(term, extra) in &system.couplings {
            let mut right = system.zeros();
            right[term].values_mut().copy_from_slice(&extra.vector);
            let solution = system.solve_plain(right, system.no_multipliers())?;
            system.solved.push(solution);
        }
        let count = system.couplings.len();
        system.small = vec![0.0; count * count];
        for (i, &(term, extra)) in system.couplings.iter().enumerate() {
            for j in 0..count {
                system.small[i * count + j] = dot(&extra.vector, system.solved[j].x[term].values());
            }
            system.small[i * count + i] += extra.inverse;
        }
        Some(system)
    }

    fn zeros(&self) -> Vec<Grid> {
        self.shapes
            .iter()
            .map(|&rows| Grid::zeros(rows, self.kernels))
            .collect()
    }

    /// Solves for one right-hand side (a grid per term); `None` when the matrix is numerically singular.
    ///
    /// The pieces differ by many orders of magnitude near the solution, so the answer is refined by its own residual, in the
    /// bordered form where nothing is divided by a small number.
    pub(super) fn solve(&self, right: &[Grid]) -> Option<Vec<Grid>> {
        let size = norm(right);
        let mut answer = self.solve_once(right.to_vec(), self.no_multipliers())?;
        let mut last = f64::INFINITY;
        for _ in 0..3 {
            let mut target = self.no_multipliers();
            let residual = self.residual(right, &answer, &mut target);
            let left = norm(&residual) + target.size();
            if left <= REFINED * size || left >= 0.5 * last {
                break;
            }
            last = left;
            let correction = self.solve_once(residual, target)?;
            for (part, change) in answer.x.iter_mut().zip(&correction.x) {
                axpy(1.0, change.values(), part.values_mut());
            }
            answer.multipliers.add(1.0, &correction.multipliers);
        }
        answer.x.iter().all(Grid::is_finite).then_some(answer.x)
    }

    fn no_multipliers(&self) -> Multipliers {
        let count =
            |bundle: &Option<Bundle<'_>>| bundle.as_ref().map_or(0, |bundle| bundle.extras.len());
        let mut first = vec![0];
        for bundle in &self.tasks {
            first.push(first[first.len() - 1] + count(bundle));
        }
        Multipliers {
            common: vec![0.0; count(&self.common)],
            tasks: vec![0.0; first[self.tasks.len()]],
            first,
            couplings: vec![0.0; self.couplings.len()],
        }
    }

    fn solve_once(&self, right: Vec<Grid>, target: Multipliers) -> Option<Answer> {
        let couplings = target.couplings.clone();
        let mut answer = self.solve_plain(right, target)?;
        let count = self.couplings.len();
        if count > 0 {
            let mut multipliers: Vec<f64> = self
                .couplings
                .iter()
                .zip(&couplings)
                .map(|((term, extra), r)| dot(&extra.vector, answer.x[*term].values()) - r)
                .collect();
            if !linalg::solve_small(&mut self.small.clone(), &mut multipliers, count) {
                return None;
            }
            for (multiplier, solved) in multipliers.iter().zip(&self.solved) {
                for (part, correction) in answer.x.iter_mut().zip(&solved.x) {
                    axpy(-multiplier, correction.values(), part.values_mut());
                }
                answer.multipliers.add(-multiplier, &solved.multipliers);
            }
            answer.multipliers.couplings = multipliers;
        }
        Some(answer)
    }

    /// What the answer leaves of the right-hand side; `extra` becomes what it leaves of the extras' conditions.
    fn residual(&self, right: &[Grid], answer: &Answer, extra: &mut Multipliers) -> Vec<Grid> {
        let mut left = right.to_vec();
        let (x, multipliers) = (&answer.x, &answer.multipliers);
        let mut shift = vec![0.0; self.kernels];
        let mut images = vec![0.0; self.kernels];
        if let Some(common) = &self.common {
            common.subtract(x, &multipliers.common, &mut left, &mut extra.common);
            for &(term, row) in &common.members {
                axpy(1.0, x[term].row(row), &mut shift);
            }
        }
        let mut sum = vec![0.0; self.kernels];
        let mut image = vec![0.0; self.kernels];
        for task in 0..self.tasks.len() {
            sum.copy_from_slice(&shift);
            if let Some(bundle) = &self.tasks[task] {
                let own = multipliers.of(task);
                bundle.subtract(x, own, &mut left, extra.of_mut(task));
                for &(term, row) in &bundle.members {
                    axpy(1.0, x[term].row(row), &mut sum);
                }
            }
            image.fill(0.0);
            self.bends[task].add_image(&sum, 1.0, &mut image);
            if let Some(bundle) = &self.tasks[task] {
                for &(term, row) in &bundle.members {
                    axpy(-1.0, &image, left[term].row_mut(row));
                }
            }
            if self.common.is_some() {
                axpy(1.0, &image, &mut images);
            }
        }
        if let Some(common) = &self.common {
            for &(term, row) in &common.members {
                axpy(-1.0, &images, left[term].row_mut(row));
            }
        }
        for (number, &(term, coupling)) in self.couplings.iter().enumerate() {
            axpy(
                -multipliers.couplings[number],
                &coupling.vector,
                left[term].values_mut(),
            );
            extra.couplings[number] -= dot(&coupling.vector, x[term].values())
                - coupling.inverse * multipliers.couplings[number];
        }
        left
    }

    /// All but the couplings. The right-hand side becomes the answer.
    fn solve_plain(&self, mut x: Vec<Grid>, mut multipliers: Multipliers) -> Option<Answer> {
        let mut rows = Vec::new();
        let mut image = vec![0.0; self.kernels];
        let mut shift = None;
        if let Some(common) = &self.common {
            // Tasks answer to the right-hand side on their own first; what they take off the common rows is subtracted.
            for (task, bundle) in self.tasks.iter().enumerate() {
                let Some(bundle) = bundle else { continue };
                bundle.collect(&x, &mut rows);
                bundle.solve(&mut rows, &mut multipliers.of(task).to_vec())?;
                self.bends[task].add_image(&total(&rows, self.kernels), 1.0, &mut image);
            }
            common.collect(&x, &mut rows);
            for row in rows.chunks_exact_mut(self.kernels) {
                axpy(-1.0, &image, row);
            }
            common.solve(&mut rows, &mut multipliers.common)?;
            common.store(&rows, &mut x);
            shift = Some(total(&rows, self.kernels));
        }
        for (task, bundle) in self.tasks.iter().enumerate() {
            let Some(bundle) = bundle else { continue };
            bundle.collect(&x, &mut rows);
            if let Some(shift) = &shift {
                image.fill(0.0);
                self.bends[task].add_image(shift, 1.0, &mut image);
                for row in rows.chunks_exact_mut(self.kernels) {
                    axpy(-1.0, &image, row);
                }
            }
            bundle.solve(&mut rows, multipliers.of_mut(task))?;
            bundle.store(&rows, &mut x);
        }
        Some(Answer { x, multipliers })
    }
}

/// So many tasks are eliminated before what they leave on the common rows is added up: each leaves M × M numbers.
const AT_ONCE: usize = 32;
/// With more kernels than this it is one task at a time.
const MANY: usize = 512;
/// A residual of this part of the right-hand side is rounding.
const REFINED: f64 = 1e-13;

/// The largest absolute entry.
fn norm(grids: &[Grid]) -> f64 {
    grids
        .iter()
        .flat_map(Grid::values)
        .fold(0.0, |a, b| f64::max(a, b.abs()))
}

/// x and all multipliers.
#[derive(Debug)]
struct Answer {
    x: Vec<Grid>,
    multipliers: Multipliers,
}

/// One number per extra, in each bundle, and per coupling.
#[derive(Debug)]
struct Multipliers {
    common: Vec<f64>,
    /// Those of all tasks, and where each task's begin.
    tasks: Vec<f64>,
    first: Vec<usize>,
    couplings: Vec<f64>,
}

impl Multipliers {
    fn of(&self, task: usize) -> &[f64] {
        &self.tasks[self.first[task]..self.first[task + 1]]
    }

    fn of_mut(&mut self, task: usize) -> &mut [f64] {
        &mut self.tasks[self.first[task]..self.first[task + 1]]
    }

    fn add(&mut self, factor: f64, other: &Self) {
        axpy(factor, &other.common, &mut self.common);
        axpy(factor, &other.tasks, &mut self.tasks);
        axpy(factor, &other.couplings, &mut self.couplings);
    }

    fn size(&self) -> f64 {
        [&self.tasks, &self.common, &self.couplings]
            .into_iter()
            .flatten()
            .fold(0.0, |a, b| f64::max(a, b.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Curvature;
    use crate::random::Random;

    fn numbers(count: usize, random: &mut Random) -> Vec<f64> {
        (0..count).map(|_| 0.1 + random.uniform()).collect()
    }

    /// A diagonal beside F is as good as a row with its root for each kernel in F.
    #[test]
    fn a_diagonal_bends_as_further_rows_do() {
        let mut random = Random::new(17);
        for (tasks, kernels, rank) in [(1, 4, 3), (1, 90, 2), (3, 5, 2), (2, 80, 3)] {
            // One term of the tasks' own, coupled over all rows, and one that they share.
            let row = |random: &mut Random| RowMatrix {
                diagonal: numbers(kernels, random),
                extras: vec![Extra {
                    vector: numbers(kernels, random),
                    inverse: 0.7,
                }],
            };
            let own: Vec<RowMatrix> = (0..tasks).map(|_| row(&mut random)).collect();
            let matrices = [own, vec![row(&mut random)]];
            let coupling = Extra {
                vector: numbers(tasks * kernels, &mut random),
                inverse: 0.4,
            };
            let couplings = [Some(coupling), None];
            let bends = Grid::from_values(tasks, kernels, numbers(tasks * kernels, &mut random));
            let plain: Vec<Curvature> = (0..tasks)
                .map(|_| Curvature {
                    rank,
                    factor: numbers(rank * kernels, &mut random),
                })
                .collect();
            let longer: Vec<Curvature> = plain
                .iter()
                .zip(bends.iter_rows())
                .map(|(own, bends)| {
                    let mut factor = own.factor.clone();
                    for (kernel, bend) in bends.iter().enumerate() {
                        factor.extend(vec![0.0; kernels]);
                        factor[(rank + kernel) * kernels + kernel] = bend.sqrt();
                    }
                    Curvature {
                        rank: rank + kernels,
                        factor,
                    }
                })
                .collect();
            let right = [
                Grid::from_values(tasks, kernels, numbers(tasks * kernels, &mut random)),
                Grid::from_values(1, kernels, numbers(kernels, &mut random)),
            ];
            let solve = |curvature: &[Curvature], bends: Option<&Grid>, split: bool| {
                let common = [false, true];
                let grams: Vec<Vec<f64>> = curvature
                    .iter()
                    .map(|own| {
                        let mut gram = vec![0.0; kernels * kernels];
                        linalg::add_gram(&own.factor, kernels, &mut gram);
                        gram
                    })
                    .collect();
                let bends: Vec<Bend<'_>> = (0..tasks)
                    .map(|task| {
                        let rows = &curvature[task].factor;
                        // Some of it as the model's own rows, some as further ones.
                        let (rows, more) = rows.split_at(if split { kernels } else { rows.len() });
                        Bend {
                            rows,
                            gram: (Bend::wants_gram(rows, kernels) && !split)
                                .then_some(grams[task].as_slice()),
                            more,
                            diagonal: bends.map(|bends| bends.row(task)),
                        }
                    })
                    .collect();
                let system = System::new(&matrices, &couplings, &common, &bends, kernels).unwrap();
                // Without refinement: that would make up for a wrong factorisation.
                let none = system.no_multipliers();
                system.solve_once(right.to_vec(), none).unwrap().x
            };
            let short = solve(&plain, Some(&bends), false);
            for long in [
                solve(&longer, None, false),
                solve(&plain, Some(&bends), true),
            ] {
                for (a, b) in short.iter().zip(&long) {
                    for (a, b) in a.values().iter().zip(b.values()) {
                        assert!((a - b).abs() <= 1e-9, "{tasks} {kernels}: {a} and {b}");
                    }
                }
            }
        }
    }
}
