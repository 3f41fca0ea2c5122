//! How a fit is run: limits, cancellation, progress, and how it ended.

mod rounds;

pub use rounds::{Round, Rounds};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::pool::Pool;

/// A request to stop that any thread may make, and a deadline.
///
/// Cloning shares the request: hand a clone to a signal handler or another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Never stops unless asked.
    pub fn never() -> Self {
        Self::default()
    }

    /// The same request with a deadline from now, unless it has an earlier one.
    #[must_use]
    pub fn with_limit(&self, limit: Duration) -> Self {
        let new = Instant::now().checked_add(limit);
        Self {
            requested: Arc::clone(&self.requested),
            deadline: [self.deadline, new].into_iter().flatten().min(),
        }
    }

    /// The same request with a deadline half as far away.
    pub(crate) fn in_half_the_time(&self) -> Self {
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or_else(|| self.clone(), |left| self.with_limit(left / 2))
    }

    /// Ask to stop at the best point so far.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Whether someone asked.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Whether the deadline has passed.
    pub fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Either of the two.
    pub fn now(&self) -> bool {
        self.is_requested() || self.is_late()
    }
}

/// One pass: T inner solves at one θ.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// Counted from 1.
    pub number: usize,
    /// Best upper bound on J* so far: an upper bound on J at the best θ.
    pub objective: f64,
    /// Best certified lower bound on J* so far.
    pub bound: f64,
    /// (objective − bound) / |objective|.
    pub gap: f64,
    /// The step length that led to this pass' θ.
    pub step: f64,
    /// Inner iterations, summed over tasks.
    pub inner_iterations: usize,
    /// Seconds since the solver started.
    pub seconds: f64,
}

impl Pass {
    /// number, objective, bound, gap, step, inner iterations, seconds: as files and arrays keep a pass.
    pub fn numbers(&self) -> [f64; 7] {
        [
            self.number as f64,
            self.objective,
            self.bound,
            self.gap,
            self.step,
            self.inner_iterations as f64,
            self.seconds,
        ]
    }

    /// The inverse of [`Pass::numbers`]. A count that is none saturates.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts were written as floats, exactly"
    )]
    pub(crate) fn of_numbers(numbers: &[f64; 7]) -> Self {
        let [
            number,
            objective,
            bound,
            gap,
            step,
            inner_iterations,
            seconds,
        ] = *numbers;
        Self {
            number: number as usize,
            objective,
            bound,
            gap,
            step,
            inner_iterations: inner_iterations as usize,
            seconds,
        }
    }
}

/// Told about each pass. Printing, drawing and logging live behind this, outside the library.
pub trait Observer {
    /// Called after each pass, on the thread that called `fit`.
    fn pass(&mut self, pass: &Pass);
}

impl<F: FnMut(&Pass)> Observer for F {
    fn pass(&mut self, pass: &Pass) {
        self(pass);
    }
}

/// How a run ended. Every status comes with a usable model and its gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// The certified relative gap is at most the tolerance.
    Converged,
    /// An indefinite kernel: the gap holds over the local maxima found only, and is at most the tolerance.
    ConvergedUncertified,
    /// The pass limit came first.
    PassLimit,
    /// The time limit came first.
    TimeLimit,
    /// A stop was requested.
    Stopped,
    /// No further progress at the accuracy of floating point; the gap says how far it got.
    Stalled,
}

impl Status {
    /// Whether the tolerance was reached (with or without certificate).
    pub fn is_converged(self) -> bool {
        matches!(self, Self::Converged | Self::ConvergedUncertified)
    }

    /// The name in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Converged => "converged",
            Self::ConvergedUncertified => "converged-uncertified",
            Self::PassLimit => "pass-limit",
            Self::TimeLimit => "time-limit",
            Self::Stopped => "stopped",
            Self::Stalled => "stalled",
        }
    }
}

/// Limits and listeners of one run of an outer solver.
pub struct Run<'a> {
    /// Stop when (objective − bound) ≤ tolerance · |objective|.
    pub tolerance: f64,
    /// At most this many passes.
    pub max_passes: usize,
    /// Seed of every random choice (the start of `epf`, the starts for indefinite kernels).
    pub seed: u64,
    /// Threads for the solver's own work, where there is much of it; what an engine does is the engine's.
    pub pool: Option<Pool>,
    /// Cancellation, and the deadline.
    pub stop: Stop,
    /// How far an evaluation is, where it takes rounds.
    pub rounds: Rounds,
    /// Told about each pass.
    pub observer: Option<&'a mut dyn Observer>,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Self {
            tolerance: 1e-4,
            max_passes: 1000,
            seed: 0,
            pool: None,
            stop: Stop::never(),
            rounds: Rounds::default(),
            observer: None,
        }
    }
}

impl Run<'_> {
    /// Whether these limits can be used, as every fit asks first.
    ///
    /// # Errors
    /// Names the one that cannot.
    pub fn check(&self) -> Result<()> {
        if !(self.tolerance.is_finite() && self.tolerance > 0.0) {
            return Err(Error::param(
                "tolerance",
                self.tolerance,
                "a finite number > 0",
            ));
        }
        if self.max_passes == 0 {
            return Err(Error::param("max_passes", 0, "at least 1"));
        }
        Ok(())
    }

    /// The same limits for a part of this run; nobody is told about its passes.
    pub(crate) fn part<'b>(&self) -> Run<'b> {
        Run {
            tolerance: self.tolerance,
            max_passes: self.max_passes,
            seed: self.seed,
            pool: self.pool.clone(),
            stop: self.stop.clone(),
            rounds: self.rounds.clone(),
            observer: None,
        }
    }

    /// Tell the observer, if there is one.
    pub(crate) fn report(&mut self, pass: &Pass) {
        if let Some(observer) = self.observer.as_deref_mut() {
            observer.pass(pass);
        }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("tolerance", &self.tolerance)
            .field("max_passes", &self.max_passes)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_deadline_does_not_replace_an_earlier_one() {
        let late = Stop::never().with_limit(Duration::ZERO);
        assert!(late.is_late());
        assert!(late.with_limit(Duration::from_mins(1)).is_late());
        assert!(!Stop::never().with_limit(Duration::from_mins(1)).is_late());
        assert!(late.in_half_the_time().is_late());
        assert!(!Stop::never().in_half_the_time().is_late());
    }
}
