//! A factorisation of K_FF that is kept from one θ to the next: it predicts where β moves to, and where θ moved little it serves for
//! the curvature too.

use super::free_set::FreeSet;
use crate::gram::{CombinedRows, TaskGrams};

/// The kernels of a task, single and combined, at one θ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) grams: TaskGrams<'a>,
    pub(super) rows: &'a CombinedRows<'a>,
    pub(super) theta: &'a [f64],
}

/// The free variables with K_FF factored, and the θ of that K.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) set: FreeSet,
    theta: Vec<f64>,
}

/// A factorisation serves for weights that differ by no more than this share.
const NEAR: f64 = 0.25;

impl Kept {
    /// Factors K_FF; `None` where [`FreeSet::new`] does not.
    pub(super) fn new(free: Vec<usize>, here: Here<'_>) -> Option<Self> {
        Some(Self {
            set: FreeSet::new(free, here.rows)?,
            theta: here.theta.to_vec(),
        })
    }

    /// Whether K is that of this θ.
    pub(super) fn is_of(&self, theta: &[f64]) -> bool {
        self.theta == theta
    }

    /// Σ_m |there_m − here_m| / Σ_m |here_m|
    pub(super) fn distance(&self, theta: &[f64]) -> f64 {
        let pairs = self.theta.iter().zip(theta);
        let change: f64 = pairs.map(|(there, here)| (there - here).abs()).sum();
        change / theta.iter().map(|weight| weight.abs()).sum::<f64>()
    }

    /// Brought up to these free variables, where that is worth while.
    pub(super) fn follow(mut self, free: &[usize], here: Here<'_>) -> Option<Self> {
        let weights: Vec<(usize, f64)> = self.theta.iter().copied().enumerate().collect();
        let known = self.is_of(here.theta);
        self.set
            .follow(free, |i, columns, out| {
                if known {
                    let row = here.rows.row(i);
                    for (value, &j) in out.iter_mut().zip(columns) {
                        *value = row[j];
                    }
                } else {
                    here.grams.entries(i, columns, &weights, out);
                }
            })
            .then_some(self)
    }

    /// Whether steps with this K_FF, each of which leaves this share of the gap, reach `wanted` of it for less than a new
    /// factorisation takes.
    pub(super) fn serves(&self, free: &[usize], here: Here<'_>, share: f64, wanted: f64) -> bool {
        let steps = if share < 1.0 {
            (wanted.ln() / share.ln()).max(1.0)
        } else {
            f64::INFINITY
        };
        // The new factorisation takes a step too.
        self.is_of(here.theta) || (steps - 1.0) * step_cost(free, here) <= factorisation_cost(free)
    }

    /// Whether the curvature may come from this K_FF: near enough, and the right one would cost more than the pass that the right
    /// curvature may save.
    pub(super) fn bends_alike(&self, free: &[usize], here: Here<'_>) -> bool {
        let distance = self.distance(here.theta);
        // Rows of all kernels are read once and a half.
        let rows = (free.len() * here.grams.count() * here.grams.grams.kernels()) as f64;
        let pass = 0.6 * rows + step_cost(free, here);
        distance == 0.0 || distance <= NEAR && factorisation_cost(free) > 0.5 * pass
    }
}

/// What a direct step with a factorisation at hand takes in nanoseconds, about: reading rows of K, triangular solves.
fn step_cost(free: &[usize], here: Here<'_>) -> f64 {
    let size = free.len() as f64;
    0.4 * size * here.grams.count() as f64 + 2.0 * size * size
}

/// The same for a factorisation: |F|³/3 at thirty a nanosecond.
fn factorisation_cost(free: &[usize]) -> f64 {
    0.012 * (free.len() as f64).powi(3)
}
