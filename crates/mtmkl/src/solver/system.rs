//! The Newton matrix of the model's interior point method, factored by its structure.
//!
//! Variables come in rows of M: one row per task-specific term and task, one per common term. The matrix is
//!
//! - a diagonal, and for each row a few rank-one pieces (a norm's curvature) or sums held at zero;
//! - W_t = F_t'F_t + diag(b_t) on θᵗ = (sum of all rows that reach task t);
//! - for a mixed norm, one rank-one piece over all its rows.
//!
//! Tasks are eliminated one by one (M × M or rank × rank, whichever is smaller), what they leave on the common rows is added
//! up, and the couplings come last. With one task common rows are the task's own.

use crate::engine::Curvature;
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

/// Several rows that reach the same θ (one vector of M), with a curvature W on their sum.
#[derive(Debug)]
struct Bundle<'a> {
    /// (term, row) of each member.
    members: Vec<(usize, usize)>,
    diagonals: Vec<Vec<f64>>,
    /// S = Σ_members 1/diagonal.
    inverse_sum: Vec<f64>,
    solver: SumSolver<'a>,
    /// Extras: which member, the vector, and B₀⁻¹ of it.
    extras: Vec<(usize, Extra)>,
    solved: Vec<Vec<Vec<f64>>>,
    /// Small matrix diag(inverse) + E'B₀⁻¹E.
    small: Vec<f64>,
}

/// W = F'F + diag(b), one task's curvature.
#[derive(Debug, Clone, Copy)]
struct Bend<'a> {
    /// F, row by row.
    rows: &'a [f64],
    diagonal: Option<&'a [f64]>,
}

impl Bend<'_> {
    /// W v
    fn image(&self, v: &[f64]) -> Vec<f64> {
        let mut image = vec![0.0; v.len()];
        for row in self.rows.chunks_exact(v.len()) {
            axpy(dot(row, v), row, &mut image);
        }
        self.add_diagonal(v, &mut image);
        image
    }

    /// out ← out + b v
    fn add_diagonal(&self, v: &[f64], out: &mut [f64]) {
        if let Some(diagonal) = self.diagonal {
            for (out, (bend, v)) in out.iter_mut().zip(diagonal.iter().zip(v)) {
                *out += bend * v;
            }
        }
    }

    /// out ← out + W, M × M.
    fn add_to(&self, m: usize, out: &mut [f64]) {
        if !self.rows.is_empty() {
            linalg::add_gram(self.rows, m, out);
        }
        if let Some(diagonal) = self.diagonal {
            for (i, bend) in diagonal.iter().enumerate() {
                out[i * m + i] += bend;
            }
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

/// Solves (S⁻¹ + W) σ = r.
#[derive(Debug)]
enum SumSolver<'a> {
    /// By the M × M matrix itself.
    Dense {
        factor: Cholesky,
        curvature: Vec<f64>,
    },
    /// By I + F S̃ F' of the size of the rank, S̃ = 1/(1/S + b): for many more kernels than free directions.
    LowRank {
        factor: Cholesky,
        bend: Bend<'a>,
        inverse: Vec<f64>,
    },
}

impl<'a> SumSolver<'a> {
    fn new(inverse_sum: &[f64], bend: Bend<'a>, extra: Option<&[f64]>) -> Option<Self> {
        let m = inverse_sum.len();
        let rank = bend.rows.len() / m;
        if extra.is_none() && m > 2 * rank + 64 {
            let mut inverse = bend.shares(inverse_sum);
            for (value, s) in inverse.iter_mut().zip(inverse_sum) {
                *value *= s;
            }
            return Some(Self::LowRank {
                factor: low_rank_factor(&inverse, bend.rows)?,
                bend,
                inverse,
            });
        }
        let mut curvature = extra.map_or_else(|| vec![0.0; m * m], <[f64]>::to_vec);
        bend.add_to(m, &mut curvature);
        let mut matrix = curvature.clone();
        for i in 0..m {
            matrix[i * m + i] += inverse_sum[i].recip();
        }
        let factor =
            Cholesky::new(&matrix, m).or_else(|| Cholesky::with_jitter(matrix, m, 1e-14))?;
        Some(Self::Dense { factor, curvature })
    }

    /// σ, and Wσ where it is `wanted`.
    fn solve(&self, right: &[f64], wanted: bool) -> (Vec<f64>, Vec<f64>) {
        let m = right.len();
        match self {
            Self::Dense { factor, curvature } => {
                let mut sigma = right.to_vec();
                factor.solve(&mut sigma, 1);
                let mut image = Vec::new();
                if wanted {
                    image.extend(curvature.chunks_exact(m).map(|row| dot(row, &sigma)));
                }
                (sigma, image)
            }
            Self::LowRank {
                factor,
                bend,
                inverse,
            } => {
                let scaled: Vec<f64> = right.iter().zip(inverse).map(|(r, s)| r * s).collect();
                // Fσ
                let rows = || bend.rows.chunks_exact(m);
                let mut inner: Vec<f64> = rows().map(|row| dot(row, &scaled)).collect();
                factor.solve(&mut inner, 1);
                let mut image = vec![0.0; m];
                for (weight, row) in inner.iter().zip(rows()) {
                    axpy(*weight, row, &mut image);
                }
                let sigma: Vec<f64> = (0..m).map(|i| scaled[i] - inverse[i] * image[i]).collect();
                bend.add_diagonal(&sigma, &mut image);
                (sigma, image)
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
        matrices: &[Vec<RowMatrix>],
        bend: Bend<'a>,
        extra: Option<&[f64]>,
    ) -> Option<Self> {
        let diagonals: Vec<Vec<f64>> = members
            .iter()
            .map(|&(term, row)| matrices[term][row].diagonal.clone())
            .collect();
        let mut inverse_sum = vec![0.0; diagonals.first()?.len()];
        for diagonal in &diagonals {
            for (sum, value) in inverse_sum.iter_mut().zip(diagonal) {
                *sum += value.recip();
            }
        }
        let solver = SumSolver::new(&inverse_sum, bend, extra)?;
        let extras: Vec<(usize, Extra)> = members
            .iter()
            .enumerate()
            .flat_map(|(member, &(term, row))| {
                matrices[term][row]
                    .extras
                    .iter()
                    .map(move |extra| (member, extra.clone()))
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
        for number in 0..bundle.extras.len() {
            let right = bundle.unit(number);
            let solution = bundle.solve_plain(&right);
            bundle.solved.push(solution);
        }
        let count = bundle.extras.len();
        bundle.small = vec![0.0; count * count];
        for (i, (member, extra)) in bundle.extras.iter().enumerate() {
            for j in 0..count {
                bundle.small[i * count + j] = dot(&extra.vector, &bundle.solved[j][*member]);
            }
            bundle.small[i * count + i] += extra.inverse;
        }
        Some(bundle)
    }

    /// The extra's vector, placed in its member.
    fn unit(&self, number: usize) -> Vec<Vec<f64>> {
        let (member, extra) = &self.extras[number];
        let mut right = vec![vec![0.0; self.inverse_sum.len()]; self.members.len()];
        right[*member].copy_from_slice(&extra.vector);
        right
    }

    /// B₀⁻¹ y, without the extras: (diagonal + W on the sum) x = y.
    fn solve_plain(&self, right: &[Vec<f64>]) -> Vec<Vec<f64>> {
        // σ = Σ x solves (S⁻¹ + W) σ = S⁻¹ Σ y/d; then x = (y − Wσ)/d.
        let m = self.inverse_sum.len();
        let mut weighted = vec![0.0; m];
        for (y, d) in right.iter().zip(&self.diagonals) {
            for i in 0..m {
                weighted[i] += y[i] / d[i];
            }
        }
        for (value, s) in weighted.iter_mut().zip(&self.inverse_sum) {
            *value /= s;
        }
        let is_alone = self.members.len() == 1;
        let (sigma, image) = self.solver.solve(&weighted, !is_alone);
        if is_alone {
            return vec![sigma];
        }
        right
            .iter()
            .zip(&self.diagonals)
            .map(|(y, d)| (0..m).map(|i| (y[i] - image[i]) / d[i]).collect())
            .collect()
    }

    /// x and the extras' multipliers ν with (B₀ x + Σ v ν = y, v'x − inverse · ν = r) for every extra.
    fn solve(&self, right: &[Vec<f64>], extra_right: &[f64]) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
        let mut x = self.solve_plain(right);
        let count = self.extras.len();
        if count == 0 {
            return Some((x, Vec::new()));
        }
        let mut multipliers: Vec<f64> = self
            .extras
            .iter()
            .zip(extra_right)
            .map(|((member, extra), r)| dot(&extra.vector, &x[*member]) - r)
            .collect();
        if !linalg::solve_small(&mut self.small.clone(), &mut multipliers, count) {
            return None;
        }
        for (multiplier, solved) in multipliers.iter().zip(&self.solved) {
            for (part, correction) in x.iter_mut().zip(solved) {
                axpy(-multiplier, correction, part);
            }
        }
        Some((x, multipliers))
    }

    /// Takes off `left` what x and ν make of it: the diagonal and the extras (the curvature is the system's business).
    fn subtract(
        &self,
        x: &[Grid],
        multipliers: &[f64],
        left: &mut Residual,
        extra_left: &mut [f64],
    ) {
        for (&(term, row), diagonal) in self.members.iter().zip(&self.diagonals) {
            let out = left[term].row_mut(row);
            for (value, (d, x)) in out.iter_mut().zip(diagonal.iter().zip(x[term].row(row))) {
                *value -= d * x;
            }
        }
        for (number, (member, extra)) in self.extras.iter().enumerate() {
            let (term, row) = self.members[*member];
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
        let times =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a * b).collect() };
        let factor = low_rank_factor(&times(&shares, &self.inverse_sum), bend.rows)?;
        let rows = bend.rows.chunks_exact(m);
        let mut half: Vec<f64> = rows.flat_map(|row| times(row, &shares)).collect();
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
                let mut sum = vec![0.0; m];
                for part in solution {
                    axpy(1.0, part, &mut sum);
                }
                bend.image(&sum)
            })
            .collect();
        for j in 0..count {
            let mut column = vec![0.0; count];
            column[j] = 1.0;
            if !linalg::solve_small(&mut self.small.clone(), &mut column, count) {
                return None;
            }
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
}

/// The factored matrix.
#[derive(Debug)]
pub(super) struct System<'a> {
    common: Option<Bundle<'a>>,
    tasks: Vec<Option<Bundle<'a>>>,
    bends: Vec<Bend<'a>>,
    shapes: Vec<usize>,
    kernels: usize,
    couplings: Vec<(usize, Extra)>,
    /// B⁻¹ of each coupling, and the small matrix of all of them.
    solved: Vec<Answer>,
    small: Vec<f64>,
}

impl<'a> System<'a> {
    /// Factors the matrix; `None` when it is numerically singular. A term without rows has no variables.
    pub(super) fn new(
        matrices: &[Vec<RowMatrix>],
        couplings: &[Option<Extra>],
        is_common: &[bool],
        curvature: &'a [Curvature],
        diagonals: Option<&'a Grid>,
        kernels: usize,
    ) -> Option<Self> {
        let bends: Vec<Bend<'_>> = curvature
            .iter()
            .enumerate()
            .map(|(task, curvature)| Bend {
                rows: &curvature.factor,
                diagonal: diagonals.map(|diagonals| diagonals.row(task)),
            })
            .collect();
        let tasks = curvature.len();
        // With one task, its own rows and the common ones are the same thing.
        let shared = |term: usize| is_common[term] && tasks > 1;
        let terms: Vec<usize> = (0..matrices.len())
            .filter(|&term| !matrices[term].is_empty())
            .collect();
        let mut bundles = Vec::with_capacity(tasks);
        let mut schur = vec![
            0.0;
            if terms.iter().any(|&term| shared(term)) {
                kernels * kernels
            } else {
                0
            }
        ];
        for (task, &bend) in bends.iter().enumerate() {
            let members: Vec<(usize, usize)> = terms
                .iter()
                .filter(|&&term| !shared(term))
                .map(|&term| (term, if is_common[term] { 0 } else { task }))
                .collect();
            if members.is_empty() {
                if !schur.is_empty() {
                    bend.add_to(kernels, &mut schur);
                }
                bundles.push(None);
                continue;
            }
            let bundle = Bundle::new(members, matrices, bend, None)?;
            if !schur.is_empty() {
                bundle.add_schur(bend, &mut schur)?;
            }
            bundles.push(Some(bundle));
        }
        let members: Vec<(usize, usize)> = terms
            .iter()
            .filter(|&&term| shared(term))
            .map(|&term| (term, 0))
            .collect();
        let common = if members.is_empty() {
            None
        } else {
            let none = Bend {
                rows: &[],
                diagonal: None,
            };
            Some(Bundle::new(members, matrices, none, Some(&schur))?)
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
                .filter_map(|(term, extra)| extra.clone().map(|extra| (term, extra)))
                .collect(),
            solved: Vec::new(),
            small: Vec::new(),
        };
        for (term, extra) in &system.couplings {
            let mut right = system.zeros();
            right[*term].values_mut().copy_from_slice(&extra.vector);
            let solution = system.solve_plain(&right, &system.no_multipliers())?;
            system.solved.push(solution);
        }
        let count = system.couplings.len();
        system.small = vec![0.0; count * count];
        for (i, (term, extra)) in system.couplings.iter().enumerate() {
            for j in 0..count {
                system.small[i * count + j] =
                    dot(&extra.vector, system.solved[j].x[*term].values());
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
        let mut target = self.no_multipliers();
        let size = norm(right);
        let mut answer = self.solve_once(right, &target)?;
        let mut last = f64::INFINITY;
        for _ in 0..3 {
            target = self.no_multipliers();
            let residual = self.residual(right, &answer, &mut target);
            let left = norm(&residual) + target.size();
            if left <= 1e-13 * size || left >= 0.5 * last {
                break;
            }
            last = left;
            let correction = self.solve_once(&residual, &target)?;
            for (part, change) in answer.x.iter_mut().zip(&correction.x) {
                axpy(1.0, change.values(), part.values_mut());
            }
            answer.multipliers.add(&correction.multipliers);
        }
        answer.x.iter().all(Grid::is_finite).then_some(answer.x)
    }

    fn no_multipliers(&self) -> Multipliers {
        let count = |bundle: &Option<Bundle<'_>>| {
            vec![0.0; bundle.as_ref().map_or(0, |bundle| bundle.extras.len())]
        };
        Multipliers {
            common: count(&self.common),
            tasks: self.tasks.iter().map(count).collect(),
            couplings: vec![0.0; self.couplings.len()],
        }
    }

    fn solve_once(&self, right: &[Grid], target: &Multipliers) -> Option<Answer> {
        let mut answer = self.solve_plain(right, target)?;
        let count = self.couplings.len();
        if count > 0 {
            let mut multipliers: Vec<f64> = self
                .couplings
                .iter()
                .zip(&target.couplings)
                .map(|((term, extra), r)| dot(&extra.vector, answer.x[*term].values()) - r)
                .collect();
            if !linalg::solve_small(&mut self.small.clone(), &mut multipliers, count) {
                return None;
            }
            for (multiplier, solved) in multipliers.iter().zip(&self.solved) {
                for (part, correction) in answer.x.iter_mut().zip(&solved.x) {
                    axpy(-multiplier, correction.values(), part.values_mut());
                }
                answer
                    .multipliers
                    .subtract_scaled(*multiplier, &solved.multipliers);
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
        if let Some(common) = &self.common {
            common.subtract(x, &multipliers.common, &mut left, &mut extra.common);
            for &(term, row) in &common.members {
                axpy(1.0, x[term].row(row), &mut shift);
            }
        }
        for task in 0..self.tasks.len() {
            let mut sum = shift.clone();
            if let Some(bundle) = &self.tasks[task] {
                bundle.subtract(
                    x,
                    &multipliers.tasks[task],
                    &mut left,
                    &mut extra.tasks[task],
                );
                for &(term, row) in &bundle.members {
                    axpy(1.0, x[term].row(row), &mut sum);
                }
            }
            let image = self.bends[task].image(&sum);
            for bundle in [&self.tasks[task], &self.common].into_iter().flatten() {
                for &(term, row) in &bundle.members {
                    axpy(-1.0, &image, left[term].row_mut(row));
                }
            }
        }
        for (number, (term, coupling)) in self.couplings.iter().enumerate() {
            axpy(
                -multipliers.couplings[number],
                &coupling.vector,
                left[*term].values_mut(),
            );
            extra.couplings[number] -= dot(&coupling.vector, x[*term].values())
                - coupling.inverse * multipliers.couplings[number];
        }
        left
    }

    /// All but the couplings.
    fn solve_plain(&self, right: &[Grid], target: &Multipliers) -> Option<Answer> {
        let mut answer = Answer {
            x: self.zeros(),
            multipliers: self.no_multipliers(),
        };
        let collect = |bundle: &Bundle<'_>| -> Vec<Vec<f64>> {
            bundle
                .members
                .iter()
                .map(|&(term, row)| right[term].row(row).to_vec())
                .collect()
        };
        let store = |bundle: &Bundle<'_>, solution: Vec<Vec<f64>>, x: &mut [Grid]| {
            for (&(term, row), part) in bundle.members.iter().zip(solution) {
                x[term].row_mut(row).copy_from_slice(&part);
            }
        };
        let total = |parts: &[Vec<f64>]| {
            let mut sum = vec![0.0; self.kernels];
            for part in parts {
                axpy(1.0, part, &mut sum);
            }
            sum
        };
        let mut shift = None;
        if let Some(common) = &self.common {
            // Tasks answer to the right-hand side on their own first; what they take off the common rows is subtracted.
            let mut reduced = collect(common);
            for (task, bundle) in self.tasks.iter().enumerate() {
                let Some(bundle) = bundle else { continue };
                let (own, _) = bundle.solve(&collect(bundle), &target.tasks[task])?;
                let image = self.bends[task].image(&total(&own));
                for row in &mut reduced {
                    axpy(-1.0, &image, row);
                }
            }
            let (solution, multipliers) = common.solve(&reduced, &target.common)?;
            shift = Some(total(&solution));
            store(common, solution, &mut answer.x);
            answer.multipliers.common = multipliers;
        }
        for (task, bundle) in self.tasks.iter().enumerate() {
            let Some(bundle) = bundle else { continue };
            let mut own = collect(bundle);
            if let Some(shift) = &shift {
                let image = self.bends[task].image(shift);
                for row in &mut own {
                    axpy(-1.0, &image, row);
                }
            }
            let (solution, multipliers) = bundle.solve(&own, &target.tasks[task])?;
            store(bundle, solution, &mut answer.x);
            answer.multipliers.tasks[task] = multipliers;
        }
        Some(answer)
    }
}

type Residual = Vec<Grid>;

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
    tasks: Vec<Vec<f64>>,
    couplings: Vec<f64>,
}

impl Multipliers {
    fn add(&mut self, other: &Self) {
        self.subtract_scaled(-1.0, other);
        axpy(1.0, &other.couplings, &mut self.couplings);
    }

    /// Bundles' extras only: a coupling's multiplier is set, not moved.
    fn subtract_scaled(&mut self, factor: f64, other: &Self) {
        axpy(-factor, &other.common, &mut self.common);
        for (mine, theirs) in self.tasks.iter_mut().zip(&other.tasks) {
            axpy(-factor, theirs, mine);
        }
    }

    fn size(&self) -> f64 {
        self.tasks
            .iter()
            .chain([&self.common, &self.couplings])
            .flatten()
            .fold(0.0, |a, b| f64::max(a, b.abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let solve = |curvature: &[Curvature], bends: Option<&Grid>| {
                let common = [false, true];
                let system =
                    System::new(&matrices, &couplings, &common, curvature, bends, kernels).unwrap();
                // Without refinement: that would make up for a wrong factorisation.
                let none = system.no_multipliers();
                system.solve_once(&right, &none).unwrap().x
            };
            let (short, long) = (solve(&plain, Some(&bends)), solve(&longer, None));
            for (a, b) in short.iter().zip(&long) {
                for (a, b) in a.values().iter().zip(b.values()) {
                    assert!((a - b).abs() <= 1e-9, "{tasks} {kernels}: {a} and {b}");
                }
            }
        }
    }
}
