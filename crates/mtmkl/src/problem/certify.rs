//! What machines and a witness prove in double precision, from the rows alone: the certificate of a fit whose Gram matrices were
//! rounded, with nothing of size n² kept.
//!
//! For θ in Ψ, any β and any b per task, ḡ being concave in β,
//!
//! J* ≤ J(θ) ≤ Σ_t P_t, P_t = ḡ(β, θ) + κ max over β' in Ω of ⟨g, β' − β⟩, g = q + c Σ_m θ_m d_m − Kβ,
//!
//! where the maximum over a box with Σβ' = s is at most Σ_v max((g_v − b)(u_v − β_v), (g_v − b)(l_v − β_v)) + b (s − Σβ): the primal objective
//! of the machine with the offset b. With a ridge, P_t = ḡ(β, θ) + ½κ Σ_i r_i²/ρ_i, r = g − ρβ, since (K + ρ)⁻¹ ≼ ρ⁻¹. And for
//! any β̂ in Ω,
//!
//! J* ≥ D(β̂) = Σ_t κ ( q'β̂ − ½ Σ_i ρ_i β̂_i² ) − σ_Ψ(s(β̂)), s_m = κ ( ½ β̂'K_mβ̂ − c d_m'β̂ ).

use std::borrow::Cow;

use rayon::prelude::*;

use super::{Problem, Proven};
use crate::data::{Samples, Task};
use crate::engine::Fitted;
use crate::error::Result;
use crate::gram::CrossKernels;
use crate::grid::{Grid, dot};
use crate::kernel::KernelView;
use crate::ledger::Ledger;
use crate::machine::{Conjugate, Dual};
use crate::task_kernel::Origins;
use crate::vector::rounding;

/// Rows whose kernel values are there at a time, for each thread.
const BLOCK: usize = 128;

/// Bounds on J* that hold for the kernels as computed in double precision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Certified {
    /// Σ_t P_t ≥ J(θ).
    pub(super) objective: f64,
    /// D(β̂) ≤ J*, where β̂ is feasible.
    pub(super) bound: f64,
}

impl Problem {
    /// Both bounds, by the threads of the caller's pool: `fitted` has β and b by task, `witness` a feasible β̂ by task, each one number a
    /// sample of the task. `None` where a kernel cannot be made from rows.
    ///
    /// # Errors
    /// When a kernel's columns are not there; a checked problem has them.
    pub(super) fn certify(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Option<Certified>> {
        let proven = self.prove(theta, fitted, witness)?;
        Ok(proven.map(|proven| {
            let (objective, bound) = proven.bounds(&self.choice.sharing);
            Certified { objective, bound }
        }))
    }

    /// What both are sums of, task by task.
    ///
    /// # Errors
    /// As [`Problem::certify`].
    pub(super) fn prove(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Option<Proven>> {
        let kernels = &self.spec.kernels;
        if kernels.iter().any(|view| view.kernel.base().is_given()) {
            return Ok(None);
        }
        let count = self.tasks.len();
        let mut proven = Proven {
            primal: vec![0.0; count],
            constant: vec![0.0; count],
            sensitivities: Grid::zeros(count, kernels.len()),
        };
        for group in self.groups() {
            let points: Vec<Point<'_>> = group
                .iter()
                .map(|&task| Point {
                    theta: theta.row(task),
                    beta: &fitted[task].beta,
                    witness: &witness[task],
                })
                .collect();
            let sums = self.sums(group[0], &points)?;
            for ((&task, point), sum) in group.iter().zip(&points).zip(sums) {
                let dual = self
                    .choice
                    .machine
                    .dual(&self.learned[task], point.beta.len());
                proven.primal[task] = primal(&dual, point.beta, fitted[task].offset, &sum);
                // Less what rounding can do, and so for the sensitivities.
                let digits = rounding(point.witness.len());
                proven.constant[task] = part_without_theta(&dual, point.witness)
                    - digits * dual.scale * size_of_linear(&dual, point.witness);
                let row = proven.sensitivities.row_mut(task);
                for (kernel, s) in row.iter_mut().enumerate() {
                    let noise = 0.5 * digits * sum.lengths[kernel] * sum.lengths[kernel];
                    let bend = 0.5 * sum.squares[kernel] - dual.diagonal * sum.own[kernel];
                    *s = dual.scale * (bend + noise);
                }
            }
        }
        Ok(Some(proven))
    }

    /// Tasks with the same rows of the same sample set, together: they share kernel values.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let same = groups.iter_mut().find(|group| {
                let first = &self.tasks[group[0]];
                first.samples == task.samples && first.rows == task.rows
            });
            match same {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        groups
    }

    /// What the tasks with the rows of this one need to know about their kernels.
    fn sums(&self, task: usize, points: &[Point<'_>]) -> Result<Vec<Sums>> {
        let task = &self.tasks[task];
        let set = &self.sets[task.samples];
        let n = task.count(set.count());
        let d = set.columns().len();
        let gather = |chosen: &[usize]| {
            let places = chosen.iter().map(|&i| task.rows.position(i));
            set.rows().select(places)
        };
        let is_support = |&i: &usize| points.iter().any(|point| point.is_supported_by(i));
        let support: Vec<usize> = (0..n).filter(is_support).collect();
        let mut place = vec![None; n];
        for (at, &i) in support.iter().enumerate() {
            place[i] = Some(at);
        }
        let on_support: Vec<(Vec<f64>, Vec<f64>)> = points
            .iter()
            .map(|point| {
                let of = |beta: &[f64]| support.iter().map(|&i| beta[i]).collect();
                (of(point.beta), of(point.witness))
            })
            .collect();
        let values = gather(&support);
        let between = Between::new(&self.spec.kernels, set, task);
        let all: Vec<usize> = (0..self.spec.kernels.len()).collect();
        let cross = CrossKernels::new(
            &self.spec.kernels,
            &all,
            set.columns(),
            values.rows(support.len(), d),
            self.spec.normalize.is_unit(),
            &Ledger::default(),
        )?;
        let block = |first: usize| {
            let until = (first + BLOCK).min(n);
            let values = gather(&(first..until).collect::<Vec<usize>>());
            let mut sums = vec![Sums::new(until - first, all.len()); points.len()];
            cross.pieces(values.rows(until - first, d), |piece| {
                for (row, &own) in piece.own.iter().enumerate() {
                    let at = piece.first + row;
                    let i = first + at;
                    let values = &piece.values[row * support.len()..(row + 1) * support.len()];
                    let (values, own) = between.times(piece.kernel, values, own, i, &support);
                    // As in the Gram matrices, k(x, x) is not subject to what cancels in a distance.
                    let product = |beta: &[f64]| {
                        let exact = place[i].map_or(0.0, |at| (own - values[at]) * beta[at]);
                        dot(&values, beta) + exact
                    };
                    for ((sum, point), (beta, witness)) in
                        sums.iter_mut().zip(points).zip(&on_support)
                    {
                        let weight = point.theta[piece.kernel];
                        if weight != 0.0 {
                            sum.product[at] += weight * product(beta);
                            sum.diagonal[at] += weight * own;
                        }
                        if point.witness[i] != 0.0 {
                            sum.squares[piece.kernel] += point.witness[i] * product(witness);
                            sum.own[piece.kernel] += point.witness[i] * own;
                            sum.lengths[piece.kernel] += point.witness[i].abs() * own.abs().sqrt();
                        }
                    }
                }
            });
            Ok(sums)
        };
        let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
        let blocks: Vec<Vec<Sums>> = starts.into_par_iter().map(block).collect::<Result<_>>()?;
        // In the order of the blocks, whoever was first.
        let mut sums = vec![Sums::new(0, all.len()); points.len()];
        for block in blocks {
            for (sum, part) in sums.iter_mut().zip(block) {
                sum.extend(part);
            }
        }
        Ok(sums)
    }
}

/// Task kernels of the kernels, where these are between tasks.
struct Between<'a> {
    task: &'a Task,
    origins: Option<&'a Origins>,
    /// By kernel.
    numbers: Vec<Option<usize>>,
}

impl<'a> Between<'a> {
    fn new(kernels: &[KernelView], set: &'a Samples, task: &'a Task) -> Self {
        let origins = set.origins();
        let number = |view: &KernelView| origins?.kernels.position(view.between.as_deref()?);
        Self {
            task,
            origins,
            numbers: kernels.iter().map(number).collect(),
        }
    }

    /// k(x_i, x_j) for the samples j of the support, and k(x_i, x_i), times c.
    fn times<'v>(
        &self,
        kernel: usize,
        values: &'v [f64],
        own: f64,
        i: usize,
        support: &[usize],
    ) -> (Cow<'v, [f64]>, f64) {
        let (Some(number), Some(origins)) = (self.numbers[kernel], self.origins) else {
            return (Cow::Borrowed(values), own);
        };
        let similar = |j: usize| {
            let (i, j) = (self.task.rows.position(i), self.task.rows.position(j));
            origins.value(number, i, j)
        };
        let pairs = values.iter().zip(support);
        let times = pairs.map(|(value, &j)| value * similar(j));
        (times.collect(), own * similar(i))
    }
}

/// One task's part of what is to be certified.
struct Point<'a> {
    theta: &'a [f64],
    beta: &'a [f64],
    witness: &'a [f64],
}

impl Point<'_> {
    fn is_supported_by(&self, i: usize) -> bool {
        self.beta[i] != 0.0 || self.witness[i] != 0.0
    }
}

/// Sums over kernel values for one task, on some or all of its samples.
#[derive(Debug, Clone)]
struct Sums {
    /// K(θ)β by sample.
    product: Vec<f64>,
    /// Σ_m θ_m d_m by sample.
    diagonal: Vec<f64>,
    /// β̂'K_mβ̂ by kernel.
    squares: Vec<f64>,
    /// d_m'β̂ by kernel.
    own: Vec<f64>,
    /// Σ_i |β̂_i| √d_mi by kernel: the root of the sizes that are added up in β̂'K_mβ̂.
    lengths: Vec<f64>,
}

impl Sums {
    fn new(samples: usize, kernels: usize) -> Self {
        Self {
            product: vec![0.0; samples],
            diagonal: vec![0.0; samples],
            squares: vec![0.0; kernels],
            own: vec![0.0; kernels],
            lengths: vec![0.0; kernels],
        }
    }

    /// Those of further samples.
    fn extend(&mut self, part: Self) {
        self.product.extend(part.product);
        self.diagonal.extend(part.diagonal);
        crate::vector::axpy(1.0, &part.squares, &mut self.squares);
        crate::vector::axpy(1.0, &part.own, &mut self.own);
        crate::vector::axpy(1.0, &part.lengths, &mut self.lengths);
    }
}

/// β by variable: of two variables of a sample, one for each sign, each has its part.
fn by_variable(dual: &Dual, beta: &[f64]) -> Vec<f64> {
    let n = beta.len();
    match &dual.conjugate {
        Conjugate::Box { upper, .. } if upper.len() > n => (0..upper.len())
            .map(|v| {
                if upper[v] > 0.0 {
                    beta[dual.variables.sample_of(v)].max(0.0)
                } else {
                    beta[dual.variables.sample_of(v)].min(0.0)
                }
            })
            .collect(),
        _ => beta.to_vec(),
    }
}

/// κ ( q'β − Σ_v φ_v(β_v) )
fn part_without_theta(dual: &Dual, beta: &[f64]) -> f64 {
    let beta = by_variable(dual, beta);
    dual.scale * (dot(&dual.linear, &beta) - dual.penalty(&beta))
}

/// Σ_v |q_v β_v| + |φ_v(β_v)|
fn size_of_linear(dual: &Dual, beta: &[f64]) -> f64 {
    let beta = by_variable(dual, beta);
    let pairs = beta.iter().zip(&dual.linear);
    pairs.map(|(beta, q)| (beta * q).abs()).sum::<f64>() + dual.size_of_penalty(&beta)
}

/// P_t at β and b.
fn primal(dual: &Dual, beta: &[f64], offset: f64, sums: &Sums) -> f64 {
    let n = beta.len();
    let straight = dual.diagonal * dot(&sums.diagonal, beta);
    let bend = 0.5 * dot(&sums.product, beta);
    let value = part_without_theta(dual, beta) + dual.scale * (straight - bend);
    let slope = |v: usize| {
        let i = dual.variables.sample_of(v);
        dual.linear[v] + dual.diagonal * sums.diagonal[i] - sums.product[i]
    };
    // What rounding can do to a slope, and to the value.
    let roots: Vec<f64> = sums.diagonal.iter().map(|d| d.abs().sqrt()).collect();
    let pairs = beta.iter().zip(&roots);
    let length: f64 = pairs.map(|(beta, root)| beta.abs() * root).sum();
    let error = |v: usize| {
        let digits = f64::EPSILON * (dual.linear[v].abs() + offset.abs());
        rounding(n) * roots[dual.variables.sample_of(v)] * length + digits
    };
    let noise = rounding(n) * (size_of_linear(dual, beta) + 0.5 * length * length);
    let gap: f64 = match &dual.conjugate {
        Conjugate::Box { lower, upper, sum } => {
            let beta = by_variable(dual, beta);
            let missing = sum - beta.iter().sum::<f64>();
            let ways = (0..beta.len()).map(|v| {
                let (slope, error) = (slope(v) - offset, error(v));
                let grown = (slope + error) * (upper[v] - beta[v]);
                let shrunk = (slope - error) * (lower[v] - beta[v]);
                grown.max(shrunk)
            });
            ways.sum::<f64>() + offset * missing
        }
        Conjugate::Ridge { ridge } => (0..n)
            .map(|i| {
                let residual = (slope(i) - ridge[i] * beta[i]).abs() + error(i);
                0.5 * residual * residual / ridge[i]
            })
            .sum(),
        Conjugate::Smooth { function, sum } => {
            let missing = sum.map_or(0.0, |sum| sum - beta.iter().sum::<f64>());
            let terms = (0..n).map(|i| {
                // φ + φ* − βg is convex in g: it is largest at an end.
                let own = function.value(i, beta[i]);
                let at = |slope: f64| {
                    let (loss, _) = function.conjugate(i, slope);
                    let size = own.abs() + loss.abs() + (beta[i] * slope).abs();
                    own + loss - beta[i] * slope + 4.0 * f64::EPSILON * size
                };
                let (slope, error) = (slope(i) - offset, error(i));
                at(slope - error).max(at(slope + error)).max(0.0)
            });
            terms.sum::<f64>() + (offset * missing).abs()
        }
    };
    value + dual.scale * (gap + noise)
}

#[cfg(test)]
mod tests;
