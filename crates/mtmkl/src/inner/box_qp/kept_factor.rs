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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::{CombinedRows, Grams, given};
    use crate::inner::tests::{effort, whole};
    use crate::run::Stop;

    /// A ridge alone: K is the identity.
    fn grams(n: usize) -> Grams {
        let mut matrix = vec![0.0; n * n];
        (0..n).for_each(|i| matrix[i * n + i] = 1.0);
        given(n, vec![matrix])
    }

    /// A factor of all but the last sample at θ = 2, looked at from another θ.
    fn with(n: usize, theta: f64, look: impl Fn(&KeptFactor, &[usize], Here<'_>)) {
        let (grams, stop) = (grams(n), Stop::never());
        let free: Vec<usize> = (0..n - 1).collect();
        let effort = effort(1e-3, &stop);
        let here = |theta: &[f64], look: &dyn Fn(Here<'_>)| {
            let rows = CombinedRows::new(whole(&grams), theta);
            look(Here {
                grams: whole(&grams),
                rows: &rows,
                theta,
            });
        };
        here(&[2.0], &|there| {
            let variables = Variables::one_each(n);
            let kept = KeptFactor::new(free.clone(), variables, there, &effort, &Ledger::default());
            let kept = kept.unwrap();
            here(&[theta], &|now| look(&kept, &free, now));
        });
    }

    #[test]
    fn costs_are_those_of_arithmetic_and_of_memory() {
        assert_eq!(factorisation_cost(&[0; 6]), 72.0);
        // 100³/3 multiply–adds, and two rows of 7 numbers at 100/9 each.
        assert_eq!(small_steps_of_factorisation(100, 7), 2142);
        assert_eq!(small_steps_of_factorisation(0, 7), 0);
        with(5, 1.0, |_, _, here| {
            let expected = READ * (2.0 * 5.0 + READS_OF_FACTOR * 4.0);
            assert!((step_cost(&[0, 1], here) - expected).abs() <= 1e-12);
        });
    }

    #[test]
    fn the_way_from_one_theta_to_another_is_relative_to_where_it_leads() {
        for (theta, distance) in [(2.0, 0.0), (4.0, 0.5), (1.0, 1.0), (-1.0, 3.0)] {
            with(5, theta, |kept, _, here| {
                assert_eq!(kept.distance(here.theta), distance);
                assert_eq!(kept.is_of(here.theta), theta == 2.0);
            });
        }
    }

    #[test]
    fn the_samples_that_move_are_known_and_may_have_other_names() {
        with(5, 2.0, |kept, free, here| {
            let variables = Variables::one_each(5);
            assert!(kept.is_on(free, variables));
            assert!(!kept.is_on(&[0, 1, 2], variables) && !kept.is_on(&[1, 2, 3, 4], variables));
            // Of the second and fourth sample the second copies.
            let variables = Variables::new(5, 2);
            let kept = KeptFactor::new(
                vec![0, 6, 2, 8],
                variables,
                here,
                &effort(1e-3, &Stop::never()),
                &Ledger::default(),
            )
            .unwrap();
            // Three samples further among twelve.
            let all = Variables::new(12, 2);
            let renamed = kept
                .renamed(variables, all, |sample| Some(sample + 3))
                .unwrap();
            assert_eq!(renamed.set.members(), [3, 16, 5, 18]);
            assert_eq!(renamed.set.moving(), [3, 4, 5, 6]);
            assert!(renamed.renamed(all, variables, |_| None).is_none());
        });
    }

    #[test]
    fn a_factor_serves_while_its_steps_are_cheaper_than_a_new_one() {
        // Small: reading is dear beside |F|³/3.
        with(20, 3.0, |kept, free, here| {
            assert!(step_cost(free, here) > factorisation_cost(free));
            // One step is what a new factor takes too.
            assert!(kept.serves(free, here, 0.5, 0.5) && kept.serves(free, here, 0.5, 0.9));
            assert!(!kept.serves(free, here, 0.5, 0.25));
            assert!(!kept.serves(free, here, 1.0, 0.5) && !kept.serves(free, here, 2.0, 0.5));
        });
        // At its own θ it always does.
        with(20, 2.0, |kept, free, here| {
            assert!(kept.serves(free, here, 2.0, 1e-9));
        });
        // Large: one step more is cheaper than a factor, two are not.
        with(320, 3.0, |kept, free, here| {
            let ratio = factorisation_cost(free) / step_cost(free, here);
            assert!(1.5 < ratio && ratio < 1.7, "{ratio}");
            assert!(kept.serves(free, here, 0.5, 0.25) && !kept.serves(free, here, 0.5, 0.125));
            assert!(kept.serves(free, here, 0.25, 0.1) && !kept.serves(free, here, 0.5, 0.1));
        });
    }

    #[test]
    fn curvature_of_another_theta_is_taken_where_it_is_near_and_dear_to_make() {
        let answers = |n: usize, theta: f64, expected: bool| {
            with(n, theta, |kept, free, here| {
                assert_eq!(kept.bends_alike(free, here), expected, "{n} {theta}");
            });
        };
        for n in [20, 320] {
            answers(n, 2.0, true);
            answers(n, 4.0, false);
        }
        answers(20, 1.9, false);
        answers(320, 1.9, true);
        // A quarter is near, more is not.
        answers(320, 1.6, true);
        answers(320, 1.59, false);
        // A factor of 129 variables costs more than half of a pass, one of 117 does not.
        answers(130, 1.9, true);
        answers(118, 1.9, false);
    }
}
