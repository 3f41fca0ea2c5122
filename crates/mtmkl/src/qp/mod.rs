//! The box-constrained quadratic programme that all machines but ridge regression solve, and how far from its optimum a point is.

mod bound;
pub(crate) mod interior;
mod smo;

pub(crate) use bound::{MARGIN, best_offset, gap, offset, violation};
pub(crate) use smo::{Smo, solve};

/// max q'β − ½ β'Kβ  subject to  lower ≤ β ≤ upper, Σβ = s (s is the sum of the starting point).
///
/// No labels: β = y∘α, so K is the plain kernel and rows are shared by tasks with different labels. A kernel row may have
/// several variables (two for ε-SVR): variable v belongs to row v mod n.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Qp<'a> {
    /// q
    pub(crate) linear: &'a [f64],
    /// lower bounds
    pub(crate) lower: &'a [f64],
    /// upper bounds
    pub(crate) upper: &'a [f64],
}
