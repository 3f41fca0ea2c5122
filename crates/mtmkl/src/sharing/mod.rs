//! Ψ: which kernel weights θ are allowed, and so what the tasks share.
//!
//! A sharing is a Minkowski sum of terms, Ψ = Ψ₁ + Ψ₂ + …, and a [`Term`] is a base [`Set`] of weight vectors (one file each)
//! lifted to all tasks:
//!
//! - [`Common`]: θᵗ = ζ for every task, ζ in the set;
//! - [`Independent`]: each θᵗ in the set on its own;
//! - [`Group`]: the tasks compete for one L_p–L_q budget.
//!
//! The linear maximisation oracle max ⟨s, θ⟩ of a sum is the sum of the oracles, and the support function σ_Ψ(s) likewise. That
//! oracle is all that Algorithm 1 and the certificate need; the second-order solver also asks for the [`Constraint`].
//!
//! This room sees `grid` (and `error`) only.

mod box_simplex;
mod fixed;
mod group;
mod lift;
mod lp_ball;
mod prior_ball;
mod simplex;
mod spec;

use std::fmt::Debug;
use std::sync::Arc;

pub use box_simplex::BoxSimplex;
pub use fixed::Fixed;
pub use group::Group;
pub use lift::{Common, Independent};
pub use lp_ball::LpBall;
pub use prior_ball::PriorBall;
pub use simplex::Simplex;
pub use spec::{SetSpec, SharingInfo, SharingSpec, TermSpec, registered_sharings};

use crate::error::{Error, Result};
use crate::grid::{Grid, Shape};

/// A convex compact set of weight vectors in R^M, all ≥ 0.
pub trait Set: Debug + Send + Sync {
    /// Whether the parameters fit M kernels.
    ///
    /// # Errors
    /// Names the parameter and its range.
    fn check(&self, kernels: usize) -> Result<()>;

    /// A balanced point of the set.
    fn start(&self, out: &mut [f64]);

    /// out ← argmax over the set of ⟨s, θ⟩, for s of any sign; returns the maximum, the support function σ(s).
    fn maximise(&self, s: &[f64], out: &mut [f64]) -> f64;

    /// By how much θ breaks the set's constraints; 0 inside.
    fn violation(&self, theta: &[f64]) -> f64;

    /// Whether 0 is in the set (then SVDD has only the trivial answer).
    fn contains_zero(&self) -> bool;

    /// The set for the second-order step; `None` sends the whole problem to Algorithm 1.
    fn constraint(&self) -> Option<Constraint>;
}

/// One summand of Ψ, in its own variables: a grid of one row (shared by all tasks) or of T rows.
pub trait Term: Debug + Send + Sync {
    /// Whether one row serves all tasks (ζ) or each task has its own (γᵗ).
    fn is_common(&self) -> bool;

    /// Whether the parameters fit T tasks and M kernels.
    ///
    /// # Errors
    /// Names the parameter and its range.
    fn check(&self, shape: Shape) -> Result<()>;

    /// A balanced point.
    fn start(&self, out: &mut Grid);

    /// out ← argmax ⟨s, x⟩ over the term; returns the maximum. `s` has the term's own rows: for a common term it is Σ_t sᵗ.
    fn maximise(&self, s: &Grid, out: &mut Grid) -> f64;

    /// By how much x breaks the term's constraints; 0 inside.
    fn violation(&self, x: &Grid) -> f64;

    /// Whether 0 is in the term.
    fn contains_zero(&self) -> bool;

    /// The term for the second-order step; `None` sends the whole problem to Algorithm 1.
    fn constraint(&self) -> Option<Constraint>;
}

/// What the second-order step must know of a term beside x ≥ 0. Row constraints hold for each row of the term.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Constraint {
    /// (Σ_rows ‖x_row‖_p^q)^{1/q} ≤ radius, over all rows together.
    MixedNorm {
        /// p ≥ 1.
        p: f64,
        /// q ≥ 1.
        q: f64,
        /// The bound.
        radius: f64,
    },
    /// ‖x_row‖_p ≤ radius.
    RowNorm {
        /// p ≥ 1.
        p: f64,
        /// The bound.
        radius: f64,
    },
    /// Σ_m x_row,m = total, and x ≤ upper where there is one.
    RowSum {
        /// The sum.
        total: f64,
        /// The bound on each entry.
        upper: Option<f64>,
    },
    /// ‖x_row − centre‖₂ ≤ radius.
    RowBall {
        /// The centre, M numbers.
        centre: Vec<f64>,
        /// The bound.
        radius: f64,
    },
    /// x is what the term's `start` gives; nothing to choose.
    Constant,
}

/// A point of Ψ in summand variables: one grid per term.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts(pub Vec<Grid>);

impl Parts {
    /// self ← self + step · (target − self).
    pub fn move_towards(&mut self, target: &Self, step: f64) {
        for (part, aim) in self.0.iter_mut().zip(&target.0) {
            part.move_towards(aim, step);
        }
    }
}

/// Ψ = Σ terms, a set of T × M kernel weights.
#[derive(Debug, Clone)]
pub struct Sharing {
    name: String,
    terms: Vec<Arc<dyn Term>>,
    shape: Shape,
}

impl Sharing {
    /// The sum of these terms for T tasks and M kernels.
    ///
    /// # Errors
    /// When a term's parameters do not fit the shape, or there is no term.
    pub fn new(name: impl Into<String>, terms: Vec<Arc<dyn Term>>, shape: Shape) -> Result<Self> {
        let Shape { tasks, kernels } = shape;
        if tasks == 0 || kernels == 0 || tasks.checked_mul(kernels).is_none() {
            return Err(Error::param(
                "shape",
                format!("{tasks} × {kernels}"),
                "at least one task and one kernel, and no more weights than can be counted",
            ));
        }
        if terms.is_empty() {
            return Err(Error::param("sharing", "an empty sum", "at least one term"));
        }
        for term in &terms {
            term.check(shape)?;
        }
        Ok(Self {
            name: name.into(),
            terms,
            shape,
        })
    }

    /// The name it was made under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// T × M.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The summands.
    pub fn terms(&self) -> &[Arc<dyn Term>] {
        &self.terms
    }

    fn zeros(&self, term: &dyn Term) -> Grid {
        Grid::zeros(
            if term.is_common() {
                1
            } else {
                self.shape.tasks
            },
            self.shape.kernels,
        )
    }

    /// A balanced point.
    pub fn start(&self) -> Parts {
        Parts(
            self.terms
                .iter()
                .map(|term| {
                    let mut part = self.zeros(term.as_ref());
                    term.start(&mut part);
                    part
                })
                .collect(),
        )
    }

    fn has_shape_of(&self, grid: &Grid) -> bool {
        (grid.rows(), grid.kernels()) == (self.shape.tasks, self.shape.kernels)
    }

    /// Whether these are one grid for each term, of its shape.
    fn has_parts(&self, parts: &Parts) -> bool {
        let is_its = |(term, part): (&Arc<dyn Term>, &Grid)| {
            let rows = if term.is_common() {
                1
            } else {
                self.shape.tasks
            };
            (part.rows(), part.kernels()) == (rows, self.shape.kernels)
        };
        let mut pairs = self.terms.iter().zip(&parts.0);
        self.terms.len() == parts.0.len() && pairs.all(is_its)
    }

    /// argmax ⟨s, θ⟩ over Ψ in summand variables, and the maximum σ_Ψ(s); that of a grid of another shape is not a number.
    pub fn maximise(&self, s: &Grid) -> (Parts, f64) {
        if !self.has_shape_of(s) {
            return (self.start(), f64::NAN);
        }
        let summed = s.sum_rows();
        let mut support = 0.0;
        let parts = self
            .terms
            .iter()
            .map(|term| {
                let mut part = self.zeros(term.as_ref());
                support += term.maximise(if term.is_common() { &summed } else { s }, &mut part);
                part
            })
            .collect();
        (Parts(parts), support)
    }

    /// θᵗ = Σ common parts + Σ specific parts of task t; not numbers, where these are not parts of Ψ.
    pub fn theta(&self, parts: &Parts) -> Grid {
        if !self.has_parts(parts) {
            return Grid::filled(self.shape.tasks, self.shape.kernels, f64::NAN);
        }
        let mut theta = Grid::zeros(self.shape.tasks, self.shape.kernels);
        for part in &parts.0 {
            for task in 0..self.shape.tasks {
                let row = part.row(if part.rows() == 1 { 0 } else { task });
                for (value, add) in theta.row_mut(task).iter_mut().zip(row) {
                    *value += add;
                }
            }
        }
        theta
    }

    /// ζ: the sum of the common parts, where there are any.
    pub fn common(&self, parts: &Parts) -> Option<Grid> {
        self.sum_of(parts, true)
    }

    /// γ: the sum of the task-specific parts, where there are any.
    pub fn specific(&self, parts: &Parts) -> Option<Grid> {
        self.sum_of(parts, false)
    }

    fn sum_of(&self, parts: &Parts, common: bool) -> Option<Grid> {
        let mut chosen = self
            .terms
            .iter()
            .zip(&parts.0)
            .filter(|(term, _)| term.is_common() == common)
            .map(|(_, part)| part);
        let mut sum = chosen.next()?.clone();
        for part in chosen {
            for (value, add) in sum.values_mut().iter_mut().zip(part.values()) {
                *value += add;
            }
        }
        Some(sum)
    }

    /// By how much the parts break their constraints; without end, where they are not parts of Ψ.
    pub fn violation(&self, parts: &Parts) -> f64 {
        if !self.has_parts(parts) {
            return f64::INFINITY;
        }
        self.terms
            .iter()
            .zip(&parts.0)
            .map(|(term, part)| term.violation(part))
            .fold(0.0, f64::max)
    }

    /// Whether θ = 0 is allowed: true when every term allows it.
    pub fn contains_zero(&self) -> bool {
        self.terms.iter().all(|term| term.contains_zero())
    }

    /// Whether Ψ is a product over tasks: no term has a row for all of them or a bound on all rows together.
    pub fn is_product(&self) -> bool {
        self.terms.iter().all(|term| {
            let ties = matches!(term.constraint(), None | Some(Constraint::MixedNorm { .. }));
            !term.is_common() && !ties
        })
    }

    /// Each term's constraint for the second-order step, if all have one.
    pub fn constraints(&self) -> Option<Vec<Constraint>> {
        self.terms.iter().map(|term| term.constraint()).collect()
    }
}

/// By how much the most negative entry is below 0.
fn negativity(theta: &[f64]) -> f64 {
    theta.iter().fold(0.0, |worst, &value| worst.max(-value))
}
