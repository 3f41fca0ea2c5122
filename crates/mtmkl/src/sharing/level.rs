//! One level of a task hierarchy: groups of tasks that compete for one budget.

use super::group::Group;
use super::{Constraint, Reach, Term};
use crate::error::Result;
use crate::grid::{Grid, Shape};
use crate::tree::NamedLevel;

/// {γ ≥ 0 : (Σ_v ‖γᵛ‖_p^q)^{1/q} ≤ radius}, a γᵛ for each given group v of tasks, which all tasks of the group add to their weights. Support
/// function: radius · ‖(‖(Σ_{t in v} sᵗ)⁺‖_{p*})_v‖_{q*}.
///
/// A tree of tasks is a sum of these, one for each level: the root is the common space, the leaves are the L_p–L_q group of tasks. Groups of a level
/// may overlap and leave tasks out.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    groups: Reach,
    ball: Group,
    label: String,
    names: Vec<String>,
}

impl Level {
    /// The groups by the positions of their tasks; p ≥ 1 inside a group, q ≥ 1 between groups, and the bound on the mixed norm.
    pub fn new(groups: impl IntoIterator<Item = Vec<usize>>, p: f64, q: f64, radius: f64) -> Self {
        Self {
            groups: Reach::groups(groups),
            ball: Group { p, q, radius },
            label: "groups".to_string(),
            names: Vec::new(),
        }
    }

    /// The groups of a level of a tree, with their names; p ≥ 1 inside a group, q ≥ 1 between groups, and the bound on the mixed norm.
    pub fn named(level: NamedLevel, p: f64, q: f64, radius: f64) -> Self {
        let (names, groups): (_, Vec<Vec<usize>>) = level.groups.into_iter().unzip();
        let level = Self::new(groups, p, q, radius).labelled(level.label);
        Self { names, ..level }
    }

    /// The same under a name of its own, by which models know it.
    #[must_use]
    pub fn labelled(self, label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..self
        }
    }
}

impl Term for Level {
    fn reach(&self) -> Reach {
        self.groups.clone()
    }

    fn label(&self) -> &str {
        &self.label
    }

    fn row_names(&self) -> &[String] {
        &self.names
    }

    fn check(&self, shape: Shape) -> Result<()> {
        self.ball.check(shape)
    }

    fn start(&self, out: &mut Grid) {
        self.ball.start(out);
    }

    fn maximise(&self, s: &Grid, out: &mut Grid) -> f64 {
        self.ball.maximise(s, out)
    }

    fn violation(&self, x: &Grid) -> f64 {
        self.ball.violation(x)
    }

    fn contains_zero(&self) -> bool {
        true
    }

    fn constraint(&self) -> Option<Constraint> {
        self.ball.constraint()
    }
}
