//! The box-constrained quadratic programme that the support vector machines solve:
//!
//! max q'β − ½ β'Kβ  subject to  lower ≤ β ≤ upper, Σβ = s.
//!
//! No labels: β = y∘α, so K is the plain kernel and rows are shared by tasks with different labels. A kernel row may have several variables
//! (two for ε-SVR). Which method does what, and when, is in [`policy`]; small steps are [`smo`], direct ones use a [`free_set`] with its
//! [`kept_factor`], [`interior`] points are for what neither solves, and [`bound`] says how far from the optimum a point is.

mod bound;
mod free_set;
mod givens;
mod interior;
mod kept_factor;
mod policy;
mod smo;
#[cfg(test)]
mod tests;
mod working_set;

pub(super) use bound::gap;
use bound::{MARGIN, best_offset, multiplier, offset, violation};
pub(super) use free_set::bytes as bytes_of_free_set;
pub(super) use interior::{MOST_SAMPLES, bytes as bytes_of_interior_points};
use kept_factor::KeptFactor;
pub(super) use working_set::bytes_of_part;

use super::curvature::Curvature;
use super::{Answer, Effort, Here, Inner, Point, Progress, Solved};
use crate::error::Result;
use crate::gram::{self, TaskGrams};
use crate::ledger::bytes_of;
use crate::machine::{Dual, Variables};

/// max q'β − ½ β'Kβ  subject to  lower ≤ β ≤ upper, Σβ = s (s is the sum of the starting point).
#[derive(Debug, Clone, Copy)]
pub(super) struct Qp<'a> {
    /// Which sample each variable belongs to.
    pub(super) variables: Variables,
    /// q
    pub(super) linear: &'a [f64],
    /// lower bounds
    pub(super) lower: &'a [f64],
    /// upper bounds
    pub(super) upper: &'a [f64],
}

impl Qp<'_> {
    /// g_v = q_v − (Kβ)_v
    fn slope(&self, product: &[f64], v: usize) -> f64 {
        self.linear[v] - product[self.variables.sample_of(v)]
    }
}

/// What a task keeps from one θ to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// K_FF, factored at the last θ or one nearby.
    kept: Option<KeptFactor>,
    /// Small and direct steps did not do at the last θ.
    is_hard: bool,
    /// How many free samples each one of the factorisation stands for, beyond itself.
    others: f64,
    /// Memory of K on the last working set.
    spare: Option<gram::Memory<f32>>,
}

impl Memory {
    /// Another β is to be started from.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// Gives back memory that others may need meanwhile.
    pub(super) fn give_back(&mut self) {
        self.spare = None;
    }

    /// The samples of the factorisation at hand.
    fn samples(&self) -> Vec<usize> {
        let kept = self.kept.as_ref();
        kept.map_or_else(Vec::new, |kept| kept.set.samples().collect())
    }

    /// The samples that are free in the factorisation at hand.
    pub(super) fn free_samples(&self) -> Vec<usize> {
        let kept = self.kept.as_ref();
        kept.map_or_else(Vec::new, |kept| kept.set.moving())
    }
}

/// The solver for a box and a sum.
#[derive(Debug)]
pub(super) struct BoxQp<'a> {
    pub(super) dual: &'a Dual,
    pub(super) lower: &'a [f64],
    pub(super) upper: &'a [f64],
    pub(super) sum: f64,
    pub(super) memory: &'a mut Memory,
}

impl BoxQp<'_> {
    fn qp<'b>(&'b self, linear: &'b [f64]) -> Qp<'b> {
        Qp {
            variables: self.dual.variables,
            linear,
            lower: self.lower,
            upper: self.upper,
        }
    }

    /// F with F'F = κ u'Pu: u_m = U_m − c d_m on the samples with a free variable, P from K_FF bordered by ones.
    fn curvature(&self, point: &Point, grams: TaskGrams<'_>) -> Curvature {
        let kernels = grams.grams.kernels();
        let Some(KeptFactor { set, .. }) = &self.memory.kept else {
            return Curvature::none();
        };
        // What is held does not count, whatever stands in its place.
        let _memory = point.ledger.take(bytes_of::<f64>(set.len() * kernels));
        let mut block = point.images.derivatives(self.dual, grams, set.samples());
        set.project(&mut block, kernels);
        let scale = self.dual.scale * (1.0 + self.memory.others);
        Curvature::of(block, kernels, scale, &point.ledger)
    }
}

impl Inner for BoxQp<'_> {
    fn start(&self, beta: &mut [f64]) {
        for (value, (low, high)) in beta.iter_mut().zip(self.lower.iter().zip(self.upper)) {
            *value = value.clamp(*low, *high);
        }
        fill(beta, self.lower, self.upper, self.sum, 0..self.lower.len());
    }

    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved> {
        Ok(policy::solve(self, point, here, effort, true))
    }

    fn round(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Solved>> {
        Ok(working_set::round(
            self, point, grams, theta, effort, progress,
        ))
    }

    fn unswept(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        Ok(working_set::unswept(self, point, grams, theta, effort))
    }

    fn answer(
        &self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        solved: &Solved,
        effort: &Effort<'_>,
    ) -> Answer {
        let qp = self.qp(&solved.linear);
        let best = best_offset(&qp, &point.beta, point.product_values(), &solved.errors);
        point.offset = best.offset;
        let scale = self.dual.scale;
        let (gap, noise) = if effort.concave {
            (scale * (best.gap + best.noise), scale * best.noise)
        } else {
            (0.0, 0.0)
        };
        Answer {
            gap,
            noise,
            curvature: effort.curvature.then(|| self.curvature(point, grams)),
        }
    }
}

/// A feasible point that touches as few samples as possible.
pub(super) fn vertex(dual: &Dual, lower: &[f64], upper: &[f64], sum: f64) -> Vec<f64> {
    let mut beta = vec![0.0; dual.variables.count()];
    fill(&mut beta, lower, upper, sum, 0..lower.len());
    beta
}

/// A random vertex: as much as possible on the first half of the order, balanced by the rest.
pub(super) fn vertex_in_order(lower: &[f64], upper: &[f64], sum: f64, order: &[usize]) -> Vec<f64> {
    let mut beta = lower.to_vec();
    fill(&mut beta, lower, upper, sum, order.iter().copied());
    beta
}

/// Raises or lowers β from where it is, in this order, until Σβ = sum.
fn fill(
    beta: &mut [f64],
    lower: &[f64],
    upper: &[f64],
    sum: f64,
    order: impl Iterator<Item = usize>,
) {
    let mut left = sum - beta.iter().sum::<f64>();
    for v in order {
        if left == 0.0 {
            break;
        }
        let change = if left > 0.0 {
            (upper[v] - beta[v].max(lower[v])).min(left)
        } else {
            (lower[v] - beta[v].min(upper[v])).max(left)
        };
        beta[v] += change;
        left -= change;
    }
}
