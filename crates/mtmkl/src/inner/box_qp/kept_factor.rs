//! A factorisation of K_FF that is kept from one θ to the next: it predicts where β moves to, and where θ moved little it serves for
//! the curvature too.

use super::super::{Effort, Here};
use super::free_set::FreeSet;
use crate::ledger::Ledger;
use crate::machine::Variables;

/// The free variables with K_FF factored, and the θ of that K.
#[derive(Debug)]
pub(super) struct KeptFactor {
    pub(super) set: FreeSet,
    theta: Vec<f64>,
}

/// A factorisation serves for the curvature at weights that differ by no more than this share.
const NEAR: f64 = 0.25;

impl KeptFactor {
    /// Factors K_FF; `None` where [`FreeSet::new`] does not, or where it would take more memory than was planned.
    pub(super) fn new(
        free: Vec<usize>,
        variables: Variables,
        here: Here<'_>,
        effort: &Effort<'_>,
        ledger: &Ledger,
    ) -> Option<Self> {
        if free.len() > effort.allowance.most_free {
            return None;
        }
        Some(Self {
            set: FreeSet::new(free, variables, here.rows, effort.stop, ledger)?,
            theta: here.theta.to_vec(),
        })
    }

    /// Whether K is that of this θ.
    pub(super) fn is_of(&self, theta: &[f64]) -> bool {
        self.theta == theta
    }

    /// Whether just these variables are free in it.
    pub(super) fn is_on(&self, free: &[usize], variables: Variables) -> bool {
        let mut moving = self.set.moving();
        moving.sort_unstable();
        moving
            .iter()
            .copied()
            .eq(free.iter().map(|&v| variables.sample_of(v)))
    }

    /// The same where samples have other numbers, among those of `all`; `None` where one of them has none.
    pub(super) fn renamed(
        self,
        from: Variables,
        all: Variables,
        number: impl Fn(usize) -> Option<usize>,
    ) -> Option<Self> {
        let rename = |&v: &usize| {
            let copy = v / from.samples();
            Some(copy * all.samples() + number(from.sample_of(v))?)
        };
        let members = self
            .set
            .members()
            .iter()
            .map(rename)
            .collect::<Option<_>>()?;
        Some(self.with_members(all, members))
    }

    /// The same for other names of its variables.
    pub(super) fn with_members(self, variables: Variables, members: Vec<usize>) -> Self {
        Self {
            set: self.set.with_members(variables, members),
            theta: self.theta,
        }
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
                        *value = row.get(j);
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
        let rows = (free.len() * here.grams.count() * here.grams.grams.kernels()) as f64;
        let pass = READS_PER_PASS * READ * rows + step_cost(free, here);
        distance == 0.0 || distance <= NEAR && factorisation_cost(free) > 0.5 * pass
    }
}

// Costs are counted in multiply–adds of a factorisation, which works in cache and is limited by arithmetic alone.

/// A number that is read from memory and used once takes as long as this many multiply–adds in cache. A core that makes two vector
/// multiply–adds a cycle of four or eight numbers (8 to 16 a cycle) and streams 5 to 8 bytes a cycle has a ratio of 8 to 20.
const READ: f64 = 100.0 / 9.0;
/// How often a pass reads the free samples' rows of all kernels: once to combine them, and half of them, by symmetry, for K_mβ.
const READS_PER_PASS: f64 = 1.5;
/// How often a direct step reads the factor: forward and backward, half of it each, for the move and again after each round that puts
/// variables to their bounds; some four rounds, and their conditions.
const READS_OF_FACTOR: f64 = 5.0;

/// What a direct step with a factorisation at hand costs: reading rows of K, triangular solves.
fn step_cost(free: &[usize], here: Here<'_>) -> f64 {
    let size = free.len() as f64;
    READ * (size * here.grams.count() as f64 + READS_OF_FACTOR * size * size)
}

/// Small steps, which read two rows of K each, that cost as much as a factorisation of so many free variables of so many samples.
pub(super) fn small_steps_of_factorisation(free: usize, samples: usize) -> usize {
    let steps = (free as f64).powi(3) / 3.0 / (2.0 * READ * samples as f64);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count, far from its limits"
    )]
    let steps = steps as usize;
    steps
}

/// The same for a factorisation: |F|³/3.
fn factorisation_cost(free: &[usize]) -> f64 {
    (free.len() as f64).powi(3) / 3.0
}
