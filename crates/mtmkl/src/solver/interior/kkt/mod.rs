//! The Newton matrix of the model's interior point method, factored by its structure.
//!
//! Variables come in rows of M, and a row reaches one task or several. The matrix is
//!
//! - a diagonal and a few borders (a norm's curvature, a sum) for each row;
//! - W_t on θᵗ, the sum of all rows that reach task t ([`Hessian`]);
//! - for a norm over several rows, one border over all of them.
//!
//! Rows of one task are eliminated task by task (M × M or rank × rank, whichever is smaller). Their Schur complements are added up on the nodes, the rows
//! that several tasks share, and factored densely there. The borders over several rows come last.

mod hessian;
mod layout;
mod sum_block;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

pub(super) use hessian::Hessian;
pub(super) use layout::Layout;
use sum_block::SumBlock;

use crate::grid::{Grid, dot};
use crate::linalg::{self, axpy};

/// A rank-one piece (1/inverse) · v v', kept as a border of the matrix, [B v; v' −inverse]: nothing is divided by a small number. With inverse = 0 it is
/// the equality v'x = 0.
#[derive(Debug, Clone)]
pub(super) struct Border {
    pub(super) vector: Vec<f64>,
    pub(super) inverse: f64,
}

/// The matrix of one row before the tasks' curvature: diagonal > 0 plus borders.
#[derive(Debug, Clone)]
pub(super) struct RowMatrix {
    pub(super) diagonal: Vec<f64>,
    pub(super) borders: Vec<Border>,
}

/// The factored matrix.
#[derive(Debug)]
pub(super) struct KktSystem<'a> {
    layout: &'a Layout,
    hessians: &'a [Hessian<'a>],
    shared: Option<SumBlock<'a>>,
    tasks: Vec<Option<SumBlock<'a>>>,
    /// The number of rows of each term's matrix.
    shapes: Vec<usize>,
    kernels: usize,
    /// The borders over all rows of a term.
    couplings: Vec<(usize, &'a Border)>,
    /// B⁻¹ of each coupling, and the Schur complement of all of them.
    solved: Vec<Answer>,
    small: Vec<f64>,
}

/// So many tasks are eliminated before what they leave on the shared rows is added up: each leaves M × M numbers.
const AT_ONCE: usize = 32;
/// With more kernels than this it is one task at a time: 32 matrices of 512² numbers are 64 MiB.
const MANY: usize = 512;
/// A residual of this part of the right-hand side is rounding.
const REFINED: f64 = 1e-13;
/// So often at most an answer is refined; one that is no better for it by then never will be.
pub(super) const MOST_REFINEMENTS: usize = 3;

/// x and all multipliers.
#[derive(Debug)]
struct Answer {
    x: Vec<Grid>,
    multipliers: Multipliers,
}

/// One number per border: of the nodes' rows, of each task's rows, and over several rows.
#[derive(Debug)]
struct Multipliers {
    shared: Vec<f64>,
    /// Those of all tasks, and where each task's begin.
    tasks: Vec<f64>,
    first: Vec<usize>,
    couplings: Vec<f64>,
}

impl<'a> KktSystem<'a> {
    /// Factors the matrix; `None` when it is numerically singular. A term without rows has no variables.
    pub(super) fn new(
        matrices: &'a [Vec<RowMatrix>],
        couplings: &'a [Option<Border>],
        layout: &'a Layout,
        hessians: &'a [Hessian<'a>],
        kernels: usize,
    ) -> Option<Self> {
        let (tasks, schur) = eliminate_tasks(matrices, layout, hessians, kernels)?;
        let shared = if layout.nodes.is_empty() {
            None
        } else {
            Some(SumBlock::of_nodes(&layout.nodes, matrices, schur)?)
        };
        let couplings = couplings.iter().enumerate();
        let mut system = Self {
            layout,
            hessians,
            shared,
            tasks,
            shapes: matrices.iter().map(Vec::len).collect(),
            kernels,
            couplings: couplings
                .filter_map(|(term, border)| border.as_ref().map(|border| (term, border)))
                .collect(),
            solved: Vec::new(),
            small: Vec::new(),
        };
        for &(term, border) in &system.couplings {
            let mut right = system.zeros();
            right[term].values_mut().copy_from_slice(&border.vector);
            let solution = system.solve_blocks(right, system.no_multipliers())?;
            system.solved.push(solution);
        }
        let count = system.couplings.len();
        system.small = vec![0.0; count * count];
        for (i, &(term, border)) in system.couplings.iter().enumerate() {
            for j in 0..count {
                system.small[i * count + j] =
                    dot(&border.vector, system.solved[j].x[term].values());
            }
            system.small[i * count + i] += border.inverse;
        }
        Some(system)
    }

    fn zeros(&self) -> Vec<Grid> {
        let shapes = self.shapes.iter();
        shapes
            .map(|&rows| Grid::zeros(rows, self.kernels))
            .collect()
    }

    fn no_multipliers(&self) -> Multipliers {
        let count = |block: &Option<SumBlock<'_>>| block.as_ref().map_or(0, |b| b.borders.len());
        let mut first = vec![0];
        for block in &self.tasks {
            first.push(first[first.len() - 1] + count(block));
        }
        Multipliers {
            shared: vec![0.0; count(&self.shared)],
            tasks: vec![0.0; first[self.tasks.len()]],
            first,
            couplings: vec![0.0; self.couplings.len()],
        }
    }

    /// Solves for one right-hand side (a grid per term); `None` when the matrix is numerically singular.
    ///
    /// The pieces differ by many orders of magnitude near the solution, so the answer is refined by its own residual, in the
    /// bordered form where nothing is divided by a small number, at most so often.
    pub(super) fn solve(&self, right: &[Grid], refinements: usize) -> Option<Vec<Grid>> {
        let size = norm(right);
        let mut answer = self.solve_once(right.to_vec(), self.no_multipliers())?;
        let mut last = f64::INFINITY;
        for _ in 0..refinements {
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

    fn solve_once(&self, right: Vec<Grid>, target: Multipliers) -> Option<Answer> {
        let couplings = target.couplings.clone();
        let mut answer = self.solve_blocks(right, target)?;
        let count = self.couplings.len();
        if count > 0 {
            let mut multipliers: Vec<f64> = self
                .couplings
                .iter()
                .zip(&couplings)
                .map(|((term, border), r)| dot(&border.vector, answer.x[*term].values()) - r)
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

    /// What the answer leaves of the right-hand side; `border_left` becomes what it leaves of the borders' conditions.
    fn residual(
        &self,
        right: &[Grid],
        answer: &Answer,
        border_left: &mut Multipliers,
    ) -> Vec<Grid> {
        let m = self.kernels;
        let mut left = right.to_vec();
        let (x, multipliers) = (&answer.x, &answer.multipliers);
        let mut sums = Vec::new();
        if let Some(shared) = &self.shared {
            shared.subtract(x, &multipliers.shared, &mut left, &mut border_left.shared);
            let mut rows = Vec::new();
            shared.collect(x, &mut rows);
            sums = shared.sums(&rows);
        }
        let mut images = vec![0.0; sums.len()];
        let (mut sum, mut image) = (vec![0.0; m], vec![0.0; m]);
        for (task, block) in self.tasks.iter().enumerate() {
            self.add_nodes_above(task, &sums, &mut sum);
            if let Some(block) = block {
                let own = multipliers.of(task);
                block.subtract(x, own, &mut left, border_left.of_mut(task));
                for &(term, row) in &block.rows {
                    axpy(1.0, x[term].row(row), &mut sum);
                }
            }
            image.fill(0.0);
            self.hessians[task].add_image(&sum, 1.0, &mut image);
            if let Some(block) = block {
                for &(term, row) in &block.rows {
                    axpy(-1.0, &image, left[term].row_mut(row));
                }
            }
            for &node in &self.layout.above[task] {
                axpy(1.0, &image, &mut images[node * m..(node + 1) * m]);
            }
        }
        if let Some(shared) = &self.shared {
            for (&(term, row), node) in shared.rows.iter().zip(&shared.nodes) {
                let image = &images[node * m..(node + 1) * m];
                axpy(-1.0, image, left[term].row_mut(row));
            }
        }
        for (number, &(term, border)) in self.couplings.iter().enumerate() {
            let multiplier = multipliers.couplings[number];
            axpy(-multiplier, &border.vector, left[term].values_mut());
            border_left.couplings[number] -=
                dot(&border.vector, x[term].values()) - border.inverse * multiplier;
        }
        left
    }

    /// out ← Σ over the nodes above a task, of these M numbers for each node.
    fn add_nodes_above(&self, task: usize, nodes: &[f64], out: &mut [f64]) {
        let m = self.kernels;
        out.fill(0.0);
        for &node in &self.layout.above[task] {
            axpy(1.0, &nodes[node * m..(node + 1) * m], out);
        }
    }

    /// All but the couplings. The right-hand side becomes the answer.
    fn solve_blocks(&self, mut x: Vec<Grid>, mut multipliers: Multipliers) -> Option<Answer> {
        let m = self.kernels;
        let mut rows = Vec::new();
        let mut sums = Vec::new();
        if let Some(shared) = &self.shared {
            let pulls = self.pulls_of_tasks(&x, &multipliers)?;
            shared.collect(&x, &mut rows);
            for (row, node) in rows.chunks_exact_mut(m).zip(&shared.nodes) {
                axpy(-1.0, &pulls[node * m..(node + 1) * m], row);
            }
            shared.solve(&mut rows, &mut multipliers.shared)?;
            shared.store(&rows, &mut x);
            sums = shared.sums(&rows);
        }
        let (mut shift, mut image) = (vec![0.0; m], vec![0.0; m]);
        for (task, block) in self.tasks.iter().enumerate() {
            let Some(block) = block else { continue };
            block.collect(&x, &mut rows);
            if !self.layout.above[task].is_empty() {
                self.add_nodes_above(task, &sums, &mut shift);
                image.fill(0.0);
                self.hessians[task].add_image(&shift, 1.0, &mut image);
                for row in rows.chunks_exact_mut(m) {
                    axpy(-1.0, &image, row);
                }
            }
            block.solve(&mut rows, multipliers.of_mut(task))?;
            block.store(&rows, &mut x);
        }
        Some(Answer { x, multipliers })
    }

    /// Tasks answer to the right-hand side on their own first: what that takes off the right-hand sides of the nodes above them.
    fn pulls_of_tasks(&self, right: &[Grid], target: &Multipliers) -> Option<Vec<f64>> {
        let m = self.kernels;
        let mut pulls = vec![0.0; self.layout.nodes.len() * m];
        let mut rows = Vec::new();
        let mut image = vec![0.0; m];
        for (task, block) in self.tasks.iter().enumerate() {
            let (Some(block), above) = (block, &self.layout.above[task]) else {
                continue;
            };
            if above.is_empty() {
                continue;
            }
            block.collect(right, &mut rows);
            block.solve(&mut rows, &mut target.of(task).to_vec())?;
            let sum = block.sums(&rows);
            if let [node] = above[..] {
                let pull = &mut pulls[node * m..(node + 1) * m];
                self.hessians[task].add_image(&sum, 1.0, pull);
                continue;
            }
            image.fill(0.0);
            self.hessians[task].add_image(&sum, 1.0, &mut image);
            for node in above {
                axpy(1.0, &image, &mut pulls[node * m..(node + 1) * m]);
            }
        }
        Some(pulls)
    }
}

/// Factors each task's rows, and adds up the Schur complements that they leave on the nodes: (nodes · M)² numbers.
fn eliminate_tasks<'a>(
    matrices: &'a [Vec<RowMatrix>],
    layout: &Layout,
    hessians: &'a [Hessian<'a>],
    kernels: usize,
) -> Option<(Vec<Option<SumBlock<'a>>>, Vec<f64>)> {
    let eliminate = |task: usize| {
        let hessian = hessians[task];
        let is_shared = !layout.above[task].is_empty();
        let mut schur = vec![0.0; if is_shared { kernels * kernels } else { 0 }];
        let rows = &layout.own[task];
        if rows.is_empty() {
            if is_shared {
                hessian.add_to(kernels, &mut schur);
            }
            return Some((None, schur));
        }
        let block = SumBlock::of_task(rows, matrices, hessian, is_shared)?;
        if is_shared {
            block.add_schur(hessian, &mut schur)?;
        }
        Some((Some(block), schur))
    };
    let tasks = hessians.len();
    let width = layout.nodes.len() * kernels;
    let mut blocks = Vec::with_capacity(tasks);
    let mut schur = vec![0.0; width * width];
    // A few tasks at a time on the solver's threads; what they leave is added up in their order, so that threads do not matter.
    let is_pooled = rayon::current_thread_index().is_some();
    let at_once = if kernels > MANY { 1 } else { AT_ONCE };
    for first in (0..tasks).step_by(at_once) {
        let range = first..(first + at_once).min(tasks);
        let some: Vec<_> = if is_pooled {
            let range = range.into_par_iter();
            range.map(eliminate).collect::<Option<_>>()?
        } else {
            range.map(eliminate).collect::<Option<_>>()?
        };
        for (block, own) in some {
            let above = &layout.above[blocks.len()];
            for (a, row) in own.chunks_exact(kernels).enumerate() {
                for one in above {
                    let start = (one * kernels + a) * width;
                    for other in above {
                        let start = start + other * kernels;
                        axpy(1.0, row, &mut schur[start..start + kernels]);
                    }
                }
            }
            blocks.push(block);
        }
    }
    Some((blocks, schur))
}

/// The largest absolute entry.
fn norm(grids: &[Grid]) -> f64 {
    grids
        .iter()
        .flat_map(Grid::values)
        .fold(0.0, |a, b| f64::max(a, b.abs()))
}

impl Multipliers {
    fn of(&self, task: usize) -> &[f64] {
        &self.tasks[self.first[task]..self.first[task + 1]]
    }

    fn of_mut(&mut self, task: usize) -> &mut [f64] {
        &mut self.tasks[self.first[task]..self.first[task + 1]]
    }

    fn add(&mut self, factor: f64, other: &Self) {
        axpy(factor, &other.shared, &mut self.shared);
        axpy(factor, &other.tasks, &mut self.tasks);
        axpy(factor, &other.couplings, &mut self.couplings);
    }

    fn size(&self) -> f64 {
        [&self.tasks, &self.shared, &self.couplings]
            .into_iter()
            .flatten()
            .fold(0.0, |a, b| f64::max(a, b.abs()))
    }
}
