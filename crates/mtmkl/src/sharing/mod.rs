//! Ψ: which kernel weights θ are allowed, and so what the tasks share.
//!
//! A sharing is a Minkowski sum of terms, Ψ = Ψ₁ + Ψ₂ + …. A [`Term`] has rows of M weights, says which tasks each row reaches ([`Reach`]),
//! and which rows are allowed; most are a base [`Set`] of weight vectors (one file each) lifted to all tasks:
//!
//! - [`Common`]: θᵗ = ζ for every task, ζ in the set;
//! - [`Independent`]: each θᵗ in the set on its own;
//! - [`Group`]: the tasks compete for one L_p–L_q budget;
//! - [`Level`]: given groups of tasks compete for one. A task hierarchy is one of these for each level of its tree.
//!
//! The linear maximisation oracle max ⟨s, θ⟩ of a sum is the sum of the oracles, and the support function σ_Ψ(s) likewise. That
//! oracle is all that Algorithm 1 and the certificate need; the second-order solver also asks for the [`Constraint`].
//!
//! Sharings with a name are sums of these, one file each in `named/`.
//!
//! This room sees `grid`, `tree` and `entry` (and `error`) only.

mod box_simplex;
mod fixed;
mod group;
mod level;
mod lift;
mod lp_ball;
mod named;
mod prior_ball;
mod reach;
mod simplex;
mod spec;
mod term;

use std::fmt::Debug;
use std::sync::Arc;

pub use box_simplex::BoxSimplex;
pub use fixed::{Fixed, FixedRows};
pub use group::Group;
pub use level::Level;
pub use lift::{Common, Independent};
pub use lp_ball::LpBall;
pub use named::Hierarchy;
pub(crate) use named::SHARINGS;
pub use prior_ball::PriorBall;
pub use reach::Reach;
pub use simplex::Simplex;
pub use spec::{SharingEntry, SharingSpec};
pub use term::{OwnTerm, SetSpec, TermSpec};

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

/// One summand of Ψ, in its own variables: a grid with a row for all tasks, for each task, or for each of some groups of tasks.
///
/// A user's own term goes into a problem by [`SharingSpec::own`], or beside registered ones by [`TermSpec::own`]; a [`SharingEntry`] gives it a name.
pub trait Term: Debug + Send + Sync {
    /// The rows, and which tasks each of them reaches. It does not change.
    fn reach(&self) -> Reach;

    /// What a model calls its weights.
    fn label(&self) -> &str;

    /// What the rows are called, where they have names: one for each.
    fn row_names(&self) -> &[String] {
        &[]
    }

    /// Whether it is the same set for each task on its own ([`Reach::Each`], and nothing ties the rows), and may be asked with any number of
    /// tasks. Where all terms are, tasks are solved one by one.
    fn is_separable(&self) -> bool {
        false
    }

    /// Whether the parameters fit T tasks and M kernels.
    ///
    /// # Errors
    /// Names the parameter and its range.
    fn check(&self, shape: Shape) -> Result<()>;

    /// A balanced point.
    fn start(&self, out: &mut Grid);

    /// out ← argmax ⟨s, x⟩ over the term; returns the maximum. `s` has the term's own rows: Σ sᵗ over the tasks that a row reaches.
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
    /// What each term reaches.
    reaches: Vec<Reach>,
    shape: Shape,
}

impl Sharing {
    /// The sum of these terms for T tasks and M kernels.
    ///
    /// # Errors
    /// When a term's parameters do not fit the shape, there is no term, or none that reaches a task.
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
        let mut reaches = Vec::with_capacity(terms.len());
        let mut reached = vec![false; tasks];
        for term in &terms {
            term.check(shape)?;
            let reach = term.reach();
            reach.check(tasks)?;
            for row in 0..reach.rows(tasks) {
                let own = reach.tasks_of(row, tasks);
                own.iter().for_each(|&task| reached[task] = true);
            }
            reaches.push(reach);
        }
        if let Some(task) = reached.iter().position(|reached| !reached) {
            let value = format!("terms of which none reaches task number {}", task + 1);
            let expected = "a term for each task: without one it has no kernel";
            return Err(Error::param("sharing", value, expected));
        }
        Ok(Self {
            name: name.into(),
            terms,
            reaches,
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

    /// What each summand reaches.
    pub fn reaches(&self) -> &[Reach] {
        &self.reaches
    }

    /// How many rows several tasks share, at most: what the second-order step solves for together.
    pub(crate) fn nodes(&self) -> usize {
        let tasks = self.shape.tasks;
        let shared = |reach: &Reach| match reach {
            Reach::All => usize::from(tasks > 1),
            Reach::Each => 0,
            Reach::Groups(groups) => groups.iter().filter(|group| group.len() > 1).count(),
        };
        self.reaches.iter().map(shared).sum()
    }

    /// A grid for each term.
    fn zeros(&self) -> impl Iterator<Item = Grid> + '_ {
        let Shape { tasks, kernels } = self.shape;
        let reaches = self.reaches.iter();
        reaches.map(move |reach| Grid::zeros(reach.rows(tasks), kernels))
    }

    /// A balanced point.
    pub fn start(&self) -> Parts {
        let terms = self.terms.iter().zip(self.zeros());
        let started = terms.map(|(term, mut part)| {
            term.start(&mut part);
            part
        });
        Parts(started.collect())
    }

    fn has_shape_of(&self, grid: &Grid) -> bool {
        (grid.rows(), grid.kernels()) == (self.shape.tasks, self.shape.kernels)
    }

    /// Whether these are one grid for each term, of its shape.
    fn has_parts(&self, parts: &Parts) -> bool {
        let Shape { tasks, kernels } = self.shape;
        let is_its = |(reach, part): (&Reach, &Grid)| {
            (part.rows(), part.kernels()) == (reach.rows(tasks), kernels)
        };
        let mut pairs = self.reaches.iter().zip(&parts.0);
        self.terms.len() == parts.0.len() && pairs.all(is_its)
    }

    /// argmax ⟨s, θ⟩ over Ψ in summand variables, and the maximum σ_Ψ(s); that of a grid of another shape is not a number.
    pub fn maximise(&self, s: &Grid) -> (Parts, f64) {
        if !self.has_shape_of(s) {
            return (self.start(), f64::NAN);
        }
        let mut support = 0.0;
        let terms = self.terms.iter().zip(&self.reaches).zip(self.zeros());
        let parts = terms
            .map(|((term, reach), mut part)| {
                support += term.maximise(&reach.gather(s), &mut part);
                part
            })
            .collect();
        (Parts(parts), support)
    }

    /// θᵗ = Σ over the rows of all parts that reach task t; not numbers, where these are not parts of Ψ.
    pub fn theta(&self, parts: &Parts) -> Grid {
        let Shape { tasks, kernels } = self.shape;
        if !self.has_parts(parts) {
            return Grid::filled(tasks, kernels, f64::NAN);
        }
        let mut theta = Grid::zeros(tasks, kernels);
        for (reach, part) in self.reaches.iter().zip(&parts.0) {
            reach.scatter(part, &mut theta);
        }
        theta
    }

    /// ζ: the sum of the parts that reach all tasks, where there are any.
    pub fn common(&self, parts: &Parts) -> Option<Grid> {
        self.sum_of(parts, |reach| reach.is_common(self.shape.tasks))
    }

    /// γ: the sum of the parts with a row for each task, where there are any.
    pub fn specific(&self, parts: &Parts) -> Option<Grid> {
        self.sum_of(parts, |reach| reach.is_specific(self.shape.tasks))
    }

    fn sum_of(&self, parts: &Parts, wanted: impl Fn(&Reach) -> bool) -> Option<Grid> {
        let pairs = self.reaches.iter().zip(&parts.0);
        let mut chosen = pairs.filter(|(reach, _)| wanted(reach)).map(|(_, p)| p);
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

    /// Whether Ψ is a product over tasks, of the same sets for each.
    pub fn is_product(&self) -> bool {
        self.terms.iter().all(|term| term.is_separable())
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
