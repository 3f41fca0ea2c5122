//! How far an evaluation is that takes many rounds, for whoever shows it meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// One round on the way to β at one θ: a part of the samples was solved, and Kβ followed on all of them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Round {
    /// Counted from 1, over all θ.
    pub number: usize,
    /// Pairs of samples whose kernel values were made so far,
    pub pairs: f64,
    /// in so many seconds.
    pub seconds: f64,
    /// The inner gaps as they are, relative to |J|,
    pub gap: f64,
    /// and the one that is small enough for this θ.
    pub wanted: f64,
    /// Seconds to it, should the gap go on shrinking as it did so far at this θ.
    pub left: Option<f64>,
}

/// The last round of a fit. Cloning shares it: hand a clone to whoever shows it, on any thread.
///
/// Only kernel values that are streamed take rounds ([`Storage::Streamed`](crate::Storage::Streamed)).
#[derive(Debug, Clone, Default)]
pub struct Rounds(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    began: Option<Instant>,
    pairs: f64,
    /// At this θ: when it began, and the gap that there was.
    first: Option<(Instant, f64)>,
    last: Option<Round>,
}

impl Rounds {
    /// The last one, where there was one.
    pub fn last(&self) -> Option<Round> {
        self.counts().last
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new θ.
    pub(crate) fn begin(&self) {
        let mut counts = self.counts();
        counts.began.get_or_insert_with(Instant::now);
        counts.first = None;
    }

    /// So many pairs more.
    pub(crate) fn add_pairs(&self, pairs: f64) {
        self.counts().pairs += pairs;
    }

    /// One more round, with this gap.
    pub(crate) fn note(&self, gap: f64, wanted: f64) {
        let mut counts = self.counts();
        let now = Instant::now();
        let (since, first) = *counts.first.get_or_insert((now, gap));
        let (done, all) = ((first / gap).ln(), (first / wanted).ln());
        let left = (done > 0.1 && all > done)
            .then(|| now.duration_since(since).as_secs_f64() * (all / done - 1.0));
        counts.last = Some(Round {
            number: counts.last.map_or(0, |last| last.number) + 1,
            pairs: counts.pairs,
            seconds: counts
                .began
                .map_or(0.0, |began| now.duration_since(began).as_secs_f64()),
            gap,
            wanted,
            left,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_go_on_over_weights_and_time_left_does_not() {
        let rounds = Rounds::default();
        let shown = rounds.clone();
        assert_eq!(shown.last(), None);
        rounds.begin();
        for gap in [1.0, 0.1] {
            rounds.add_pairs(50.0);
            rounds.note(gap, 1e-3);
        }
        let last = shown.last().unwrap();
        assert_eq!((last.number, last.pairs, last.gap), (2, 100.0, 0.1));
        assert!(last.left.unwrap() >= 0.0);
        rounds.begin();
        rounds.note(0.5, 1e-3);
        let last = shown.last().unwrap();
        assert_eq!((last.number, last.left), (3, None));
    }
}
