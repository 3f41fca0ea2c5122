//! The primal barrier method: min q(θ(x)) − μ (Σ log x + Σ log v + …) for smaller and smaller μ, by damped Newton steps that never leave the interior.
//!
//! Slower than predictor and corrector, and safe: the merit function is convex and falls with every step. For models without cuts.

use super::model::{Iterate, Pieces, Workspace};
use super::predictor_corrector::SHORTEST;
use super::term::TermState;
use crate::grid::{Grid, dot};

/// μ falls by this much each time; 60 times is from 1 to 1e-42.
const FALL: f64 = 0.2;
const MOST_BARRIERS: usize = 60;
/// Newton steps for each μ; two or three are usual, and a point that is not quite central is a start for the next μ all the same.
const MOST_STEPS: usize = 30;
/// Centred, where the Newton decrement squared is at most this part of μ: the next μ moves the centre by far more.
const CENTRED: f64 = 1e-3;
/// Armijo's part of the promised decrease.
const SUFFICIENT: f64 = 0.1;
/// Below this part of the first sum of products μ is rounding.
const LEAST_MU: f64 = 1e-16;

impl Workspace<'_> {
    /// Follows the central path until `enough` is satisfied or rounding ends the progress.
    pub(super) fn follow_barrier(&self, mut enough: impl FnMut(&Iterate<'_>) -> bool) {
        let mut at = self.start();
        at.epigraphs.clear();
        let (total, count) = at.complementarity();
        let mut mu = total / count;
        for _ in 0..MOST_BARRIERS {
            for _ in 0..MOST_STEPS {
                match self.barrier_step(&mut at.terms, mu) {
                    Some(true) => {}
                    Some(false) => break,
                    None => return,
                }
            }
            if enough(&at) || mu < LEAST_MU * total {
                return;
            }
            mu *= FALL;
        }
    }

    /// q + μ · (barriers of all terms), infinite outside.
    fn merit(&self, terms: &[TermState], mu: f64) -> f64 {
        let barrier: f64 = terms.iter().map(TermState::barrier).sum();
        self.model.value(&self.theta(terms)) + mu * barrier
    }

    /// One damped Newton step; `false` when the point is central, or rounding ends the progress, and `None` when the matrix is numerically singular.
    fn barrier_step(&self, terms: &mut [TermState], mu: f64) -> Option<bool> {
        for term in terms.iter_mut().filter(|term| term.is_variable()) {
            term.start_multipliers(mu);
        }
        let descent = self.descent(&self.theta(terms));
        let pieces = Pieces::of(terms);
        let system = self.system(&pieces, &self.hessians)?;
        let right: Vec<Grid> = self.right_hand_sides(terms, &descent, |_, term, own| {
            term.right_hand_side(own, mu, None)
        });
        let dx = system.solve(&right)?;
        // The Newton decrement, squared: twice what the quadratic model of the merit function promises.
        let decrement: f64 = right
            .iter()
            .zip(&dx)
            .map(|(right, dx)| dot(right.values(), dx.values()))
            .sum();
        if decrement <= CENTRED * mu {
            return Some(false);
        }
        let before = self.merit(terms, mu);
        let mut step = 1.0;
        while step >= SHORTEST {
            let mut moved = terms.to_vec();
            for (term, dx) in moved.iter_mut().zip(&dx) {
                term.shift(dx, step);
            }
            if self.merit(&moved, mu) <= before - SUFFICIENT * step * decrement {
                terms.clone_from_slice(&moved);
                return Some(true);
            }
            step *= 0.5;
        }
        Some(false)
    }
}
