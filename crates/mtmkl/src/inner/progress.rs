//! How far the search for β at one θ is, where kernel values are streamed: a round improves β, and U follows it on all samples.

use super::Solved;

/// A round that raises ḡ by less than this share of the gap that is small enough is idle, and after so many of them what is left is rounding.
const WORTH: f64 = 1e-3;
const IDLE_ROUNDS: usize = 5;

/// The rounds of one task at one θ.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(super) steps: usize,
    /// The highest ḡ of all rounds, and rounds since it rose.
    value: Option<f64>,
    idle: usize,
    /// Whether a round began outside of Ω.
    was_outside: bool,
    /// The gap of the last round, and the one that is small enough.
    pub(crate) gap: f64,
    pub(crate) enough: f64,
    /// The gap at the last of Newton's steps, whose factor is at hand.
    pub(super) last_gap: f64,
    /// Pairs of samples whose kernel values were made beside those of sweeps.
    pub(crate) pairs: f64,
}

impl Progress {
    /// Whether the last round did not raise ḡ by anything to speak of.
    pub(super) fn is_idle(&self) -> bool {
        self.idle > 0
    }

    /// Notes that a round begins outside of Ω; whether an earlier one did.
    pub(super) fn was_outside(&mut self) -> bool {
        std::mem::replace(&mut self.was_outside, true)
    }

    /// |ḡ| of the best round.
    pub(crate) fn size(&self) -> f64 {
        self.value.map_or(0.0, f64::abs)
    }

    /// So many steps, each of which saw half of all pairs.
    pub(super) fn note_steps(&mut self, steps: usize, samples: usize) {
        self.steps += steps;
        self.pairs += 0.5 * steps as f64 * (samples as f64).powi(2);
    }

    /// What was found, with all steps that it took.
    pub(super) fn of(&self, solved: Solved) -> Solved {
        Solved {
            steps: self.steps.max(solved.steps),
            ..solved
        }
    }

    /// Whether ḡ with this gap is good enough, or as good as it gets.
    pub(super) fn is_done(&mut self, value: f64, gap: f64, enough: f64) -> bool {
        let has_risen = (self.value).is_none_or(|before| value > before + WORTH * enough);
        self.idle = if has_risen { 0 } else { self.idle + 1 };
        // The highest one: where rounding is all that is left, every fall would make room for another rise.
        let value = self.value.map_or(value, |best| best.max(value));
        (self.value, self.gap, self.enough) = (Some(value), gap, enough);
        gap <= enough || self.idle > IDLE_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accuracy_ends_a_search_and_so_do_idle_rounds() {
        let mut progress = Progress::default();
        assert_eq!(progress.size(), 0.0);
        // The first round is not idle, and exactly the accuracy is enough.
        assert!(!progress.is_done(-2.0, 1.0, 0.5) && !progress.is_idle());
        assert_eq!(
            (progress.size(), progress.gap, progress.enough),
            (2.0, 1.0, 0.5)
        );
        assert!(progress.is_done(-1.0, 0.5, 0.5) && !progress.is_idle());
        // What is worth while is a share of the accuracy, from the last round on.
        assert!(!progress.is_done(0.0, 1.0, 0.5) && !progress.is_idle());
        assert!(!progress.is_done(1.1 * WORTH * 0.5, 1.0, 0.5) && !progress.is_idle());
        let value = 1.1 * WORTH * 0.5;
        for _ in 0..IDLE_ROUNDS {
            assert!(!progress.is_done(value, 1.0, 0.5) && progress.is_idle());
        }
        assert!(progress.is_done(value, 1.0, 0.5));
        // A rise makes good for all idle rounds; one of just what is worth while is none.
        let mut progress = Progress::default();
        assert!(!progress.is_done(0.0, 2.0, 1.0));
        assert!(!progress.is_done(1.0, 2.0, 1.0) && !progress.is_idle());
        assert!(!progress.is_done(0.0, 2.0, 1.0) && progress.is_idle());
        assert!(!progress.is_done(WORTH, 2.0, 1.0) && progress.is_idle());
    }

    #[test]
    fn a_value_that_goes_up_and_down_has_not_risen() {
        let mut progress = Progress::default();
        assert!(!progress.is_done(3.0, 2.0, 1.0));
        let values = [1.0, 2.0, 1.0, 3.0, 2.0];
        assert!(
            (values.iter()).all(|&value| !progress.is_done(value, 2.0, 1.0) && progress.is_idle())
        );
        assert!(progress.is_done(1.0, 2.0, 1.0));
    }

    /// What is not a number never was a rise, and does not take the best one's place.
    #[test]
    fn what_is_not_a_number_comes_to_an_end() {
        let mut progress = Progress::default();
        assert!(!progress.is_done(f64::NAN, f64::NAN, f64::NAN));
        for _ in 0..IDLE_ROUNDS {
            assert!(!progress.is_done(f64::NAN, f64::NAN, f64::NAN));
        }
        assert!(progress.is_done(f64::NAN, f64::NAN, f64::NAN));
        let mut progress = Progress::default();
        assert!(!progress.is_done(3.0, 2.0, 1.0));
        assert!(!progress.is_done(f64::NAN, 2.0, 1.0));
        assert_eq!(progress.size(), 3.0);
    }

    #[test]
    fn steps_and_the_pairs_that_they_saw_add_up() {
        let mut progress = Progress::default();
        progress.note_steps(3, 4);
        progress.note_steps(2, 5);
        assert_eq!((progress.steps, progress.pairs), (5, 24.0 + 25.0));
    }
}
