//! From a set of weight vectors to all tasks: one vector for all, or one each.

use super::{Constraint, Reach, Set, Term};
use crate::error::Result;
use crate::grid::{Grid, Shape};

/// {θ : θᵗ = ζ for every t, ζ in the set}: one space for all tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Common<S>(pub S);

/// {θ : θᵗ in the set for every t}: a space for each task.
#[derive(Debug, Clone, PartialEq)]
pub struct Independent<S>(pub S);

/// Both lifts do to each of their rows what the set does; they differ in how many rows there are.
macro_rules! lift {
    ($lift:ident, $reach:ident, $label:literal, $separable:literal) => {
        impl<S: Set> Term for $lift<S> {
            fn reach(&self) -> Reach {
                Reach::$reach
            }

            fn label(&self) -> &'static str {
                $label
            }

            fn is_separable(&self) -> bool {
                $separable
            }

            fn check(&self, shape: Shape) -> Result<()> {
                self.0.check(shape.kernels)
            }

            fn start(&self, out: &mut Grid) {
                for row in 0..out.rows() {
                    self.0.start(out.row_mut(row));
                }
            }

            fn maximise(&self, s: &Grid, out: &mut Grid) -> f64 {
                (0..out.rows())
                    .map(|row| self.0.maximise(s.row(row), out.row_mut(row)))
                    .sum()
            }

            fn violation(&self, x: &Grid) -> f64 {
                x.iter_rows()
                    .map(|row| self.0.violation(row))
                    .fold(0.0, f64::max)
            }

            fn contains_zero(&self) -> bool {
                self.0.contains_zero()
            }

            fn constraint(&self) -> Option<Constraint> {
                self.0.constraint()
            }
        }
    };
}

lift!(Common, All, "common", false);
lift!(Independent, Each, "specific", true);
