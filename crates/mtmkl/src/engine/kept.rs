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
        // Rows that are made together are there already.
        let known = here.rows.are_together() && self.is_of(here.theta);
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
        let (step, factorisation) = costs(free, here);
        let steps = if share < 1.0 {
            (wanted.ln() / share.ln()).max(1.0)
        } else {
            f64::INFINITY
        };
        // The new factorisation takes a step too.
        self.is_of(here.theta) || (steps - 1.0) * step <= factorisation
    }

    /// Whether the curvature may come from this K_FF: near enough, and the right one would cost more than the pass that the right
    /// curvature may save.
    pub(super) fn bends_alike(&self, free: &[usize], here: Here<'_>) -> bool {
        let (step, factorisation) = costs(free, here);
        let distance = self.distance(here.theta);
        distance == 0.0 || distance <= NEAR && factorisation > 0.5 * step
    }
}

/// What a direct step with a factorisation at hand takes, and what the factorisation takes, in nanoseconds, about: reading rows of
/// all kernels, triangular solves, |F|³/3 at thirty a nanosecond. Rows that are made together are made anyway.
fn costs(free: &[usize], here: Here<'_>) -> (f64, f64) {
    let size = free.len() as f64;
    let rows = if here.rows.are_together() {
        0.0
    } else {
        0.6 * size * (here.grams.count() * here.grams.grams.kernels()) as f64
    };
    (rows + 6.0 * size * size, 0.5 * rows + 0.012 * size.powi(3))
}
