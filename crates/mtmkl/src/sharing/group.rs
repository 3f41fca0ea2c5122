//! The L_p–L_q group ball: tasks compete for one budget.

use super::lp_ball::{dual_norm, maximise, norm};
use super::{Constraint, Reach, Term, negativity};
use crate::entry::Range;
use crate::error::Result;
use crate::grid::{Grid, Shape};

/// {γ ≥ 0 : (Σ_t ‖γᵗ‖_p^q)^{1/q} ≤ radius}. Support function: radius · ‖(‖sᵗ⁺‖_{p*})_t‖_{q*}.
///
/// With q = 1 only the tasks with the largest ‖sᵗ⁺‖_{p*} get weights of their own: sparsity between tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// The exponent inside a task, ≥ 1.
    pub p: f64,
    /// The exponent between tasks, ≥ 1.
    pub q: f64,
    /// The bound on the mixed norm, > 0.
    pub radius: f64,
}

impl Group {
    /// n_t = ‖sᵗ⁺‖_{p*}: what a unit of the budget is worth to each task.
    pub(crate) fn worths(&self, s: &Grid) -> Vec<f64> {
        s.iter_rows().map(|row| dual_norm(row, self.p)).collect()
    }
}

impl Term for Group {
    fn reach(&self) -> Reach {
        Reach::Each
    }

    fn label(&self) -> &'static str {
        "specific"
    }

    fn check(&self, _shape: Shape) -> Result<()> {
        Range::AtLeast(1.0).check("p", self.p)?;
        Range::AtLeast(1.0).check("q", self.q)?;
        Range::Positive.check("radius", self.radius)
    }

    fn start(&self, out: &mut Grid) {
        let (tasks, kernels) = (out.rows() as f64, out.kernels() as f64);
        out.values_mut()
            .fill(self.radius * tasks.powf(-1.0 / self.q) * kernels.powf(-1.0 / self.p));
    }

    fn maximise(&self, s: &Grid, out: &mut Grid) -> f64 {
        // First the budgets σ_t between tasks, an L_q ball on n_t = ‖sᵗ⁺‖_{p*}; then an L_p ball of that radius in each task.
        let worths = self.worths(s);
        let mut budgets = vec![0.0; worths.len()];
        maximise(&worths, self.q, self.radius, &mut budgets);
        let mut support = 0.0;
        out.values_mut().fill(0.0);
        let rich = budgets
            .iter()
            .enumerate()
            .filter(|(_, budget)| **budget > 0.0);
        for (task, &budget) in rich {
            support += maximise(s.row(task), self.p, budget, out.row_mut(task));
        }
        support
    }

    fn violation(&self, x: &Grid) -> f64 {
        let norms: Vec<f64> = x.iter_rows().map(|row| norm(row, self.p)).collect();
        (norm(&norms, self.q) - self.radius).max(negativity(x.values()))
    }

    fn contains_zero(&self) -> bool {
        true
    }

    fn constraint(&self) -> Option<Constraint> {
        Some(Constraint::MixedNorm {
            p: self.p,
            q: self.q,
            radius: self.radius,
        })
    }
}
