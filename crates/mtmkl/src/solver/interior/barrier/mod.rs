//! What constrains a term beside x ≥ 0, with its barrier. One file for each kind of constraint.
//!
//! An inequality N(x) ≤ c becomes N(x) + v = c with a slack v > 0, the barrier −μ log v and a multiplier λ. Once dv and dλ are eliminated, what it
//! leaves in the Newton matrix of x is
//!
//! λ ∇²N(x) + (λ/v) ∇N(x)∇N(x)'
//!
//! a diagonal and a few rank-one pieces for every norm here. An equality is a row of the KKT system, which no barrier is needed for.
//!
//! A new constraint is a file here with its [`Barrier`], and a line in [`barrier`].

mod constant;
mod mixed_norm;
mod row_ball;
mod row_norm;
mod row_sum;
#[cfg(test)]
mod tests;

use std::fmt::Debug;

use constant::Constant;
use mixed_norm::MixedNorm;
use row_ball::RowBall;
use row_norm::RowNorm;
use row_sum::RowSum;

use super::kkt::{Border, RowMatrix};
use crate::grid::Grid;
use crate::sharing::Constraint;

/// N and ∇N of each inequality, at the point they were last computed for.
#[derive(Debug, Clone)]
pub(super) struct Linearisation {
    /// N(x) of each inequality.
    pub(super) values: Vec<f64>,
    /// ∇N, in the shape of x; of no rows where there is no inequality.
    pub(super) gradient: Grid,
}

impl Linearisation {
    fn new(inequalities: usize, rows: usize, kernels: usize) -> Self {
        Self {
            values: vec![0.0; inequalities],
            gradient: Grid::zeros(rows, kernels),
        }
    }

    /// Without inequalities.
    fn none() -> Self {
        Self::new(0, 0, 0)
    }
}

/// The constraint of one term: inequalities N(x) ≤ c on rows or on all of them, equalities, upper bounds.
pub(super) trait Barrier: Debug + Send + Sync {
    /// Whether there is anything to choose.
    fn is_variable(&self) -> bool {
        true
    }

    /// u, where x ≤ u is asked for.
    fn upper(&self) -> Option<f64> {
        None
    }

    /// c, the same for all inequalities.
    fn bound(&self) -> f64 {
        0.0
    }

    /// Which inequality a row belongs to.
    fn inequality_of(&self, row: usize) -> usize {
        row
    }

    /// How bent N is: the exponent of a norm, 1 where it is straight.
    fn exponent(&self) -> f64 {
        1.0
    }

    /// Moves a balanced point of the term off its boundary.
    fn enter(&self, _x: &mut Grid) {}

    /// N(x) of each inequality at some x ≥ 0.
    fn values(&self, _x: &Grid) -> Vec<f64> {
        Vec::new()
    }

    /// Computes N and ∇N at some x > 0, for [`Barrier::linearised`] and [`Barrier::add_curvature`].
    fn move_to(&mut self, _x: &Grid) {}

    /// N and ∇N where they were last computed.
    fn linearised(&self) -> &Linearisation;

    /// Adds λ ∇²N + (λ/v) ∇N∇N' and the equalities to the Newton matrix of each row; returns the piece over all rows, where there is one.
    fn add_curvature(
        &self,
        x: &Grid,
        multipliers: &[f64],
        slacks: &[f64],
        rows: &mut [RowMatrix],
    ) -> Option<Border>;

    /// Moves x ≥ 0 into the set: norms scaled down where they are too large, sums made exact.
    fn project(&self, x: &mut Grid);

    /// Zeroes entries of a point of the set that are below this part of its size, keeping norms and sums.
    fn snap(&self, x: &mut Grid, threshold: f64);

    /// A copy.
    fn boxed(&self) -> Box<dyn Barrier>;
}

impl Clone for Box<dyn Barrier> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// Whether a constraint on rows of M leaves anything to choose.
pub(super) fn is_variable(constraint: &Constraint, kernels: usize) -> bool {
    match constraint {
        Constraint::Constant => false,
        Constraint::RowSum { total, upper } => !RowSum::is_point(*total, *upper, kernels),
        _ => true,
    }
}

/// The barrier of a constraint on rows of M.
pub(super) fn barrier(constraint: &Constraint, rows: usize, kernels: usize) -> Box<dyn Barrier> {
    if !is_variable(constraint, kernels) {
        return Box::new(Constant::new());
    }
    match constraint {
        // With one row there is nothing to mix.
        Constraint::MixedNorm { p, radius, .. } if rows == 1 => {
            Box::new(RowNorm::new(*p, *radius, rows, kernels))
        }
        Constraint::MixedNorm { p, q, radius } => {
            Box::new(MixedNorm::new(*p, *q, *radius, rows, kernels))
        }
        Constraint::RowNorm { p, radius } => Box::new(RowNorm::new(*p, *radius, rows, kernels)),
        Constraint::RowSum { total, upper } => Box::new(RowSum::new(*total, *upper)),
        Constraint::RowBall { centre, radius } => {
            Box::new(RowBall::new(centre.clone(), *radius, rows))
        }
        Constraint::Constant => Box::new(Constant::new()),
    }
}
