//! How kernels are prepared, and how a fit is run.

use std::time::Duration;

use crate::error::Result;
use crate::gram::{Definiteness, Storage};
use crate::ledger::Ledger;
use crate::model::Model;
use crate::pool::Pool;
use crate::run::{Observer, Rounds, Run, Stop};

/// How precisely the values of Gram matrices are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 8 bytes each.
    #[default]
    Double,
    /// 4 bytes each: half the memory and, where memory is the limit, half the time. Everything is still added up in double precision,
    /// and the certificate holds for the kernels as rounded: each value is off by at most 6e-8 of itself, J by at most
    /// 3e-8 κ (Σ_i |β_i| √K_ii)², in practice by far less.
    Single,
}

/// How the kernels of a problem are computed and kept.
#[derive(Debug, Clone)]
pub struct Preparation {
    /// The account of memory: how much may be taken, and how much the caller has taken already. It is the same for all that is prepared
    /// from this.
    pub ledger: Ledger,
    /// Where kernel values come from; chosen by the memory limit where it is not said.
    pub storage: Option<Storage>,
    /// How precisely Gram matrices are kept.
    pub precision: Precision,
    /// What to do about kernels that may be indefinite.
    pub definiteness: Definiteness,
    /// The threads that compute, in preparing and in all fits; one per core where none are given.
    pub pool: Option<Pool>,
}

impl Default for Preparation {
    fn default() -> Self {
        Self {
            ledger: Ledger::new(8 << 30),
            storage: None,
            precision: Precision::default(),
            definiteness: Definiteness::default(),
            pool: None,
        }
    }
}

impl Preparation {
    /// The threads to use.
    pub(super) fn pool(&self) -> Result<Pool> {
        match &self.pool {
            Some(pool) => Ok(pool.clone()),
            None => Pool::new(0),
        }
    }
}

/// How a fit is run: limits, listeners, and where to start.
pub struct Fitting<'a> {
    /// Stop when (objective − bound) ≤ tolerance · |objective|.
    pub tolerance: f64,
    /// At most this many passes.
    pub max_passes: usize,
    /// At most this much time.
    pub time_limit: Option<Duration>,
    /// Seed of every random choice (the start of `epf`, the starts for indefinite kernels).
    pub seed: u64,
    /// A model of the same machine, tasks, samples and kernels to start from: its β, grown with C, and its θ, as far as the sharing
    /// allows it. That changes the way, not the answer: certified to the same tolerance. `epf` does without.
    pub start: Option<&'a Model>,
    /// Cancellation.
    pub stop: Stop,
    /// How far an evaluation is, where it takes rounds: a clone of this says it on any thread.
    pub rounds: Rounds,
    /// Told about each pass.
    pub observer: Option<&'a mut dyn Observer>,
}

impl Default for Fitting<'_> {
    fn default() -> Self {
        let Run {
            tolerance,
            max_passes,
            seed,
            stop,
            rounds,
            ..
        } = Run::default();
        Self {
            tolerance,
            max_passes,
            time_limit: None,
            seed,
            start: None,
            stop,
            rounds,
            observer: None,
        }
    }
}

impl Fitting<'_> {
    /// Whether these limits can be used, as every fit asks first.
    ///
    /// # Errors
    /// Names the one that cannot.
    pub fn check(&self) -> Result<()> {
        self.limits().check()
    }

    /// The same limits for an outer solver, the time limit counted from now; nobody is told about its passes.
    fn limits<'b>(&self) -> Run<'b> {
        let stop = match self.time_limit {
            Some(limit) => self.stop.with_limit(limit),
            None => self.stop.clone(),
        };
        Run {
            tolerance: self.tolerance,
            max_passes: self.max_passes,
            seed: self.seed,
            pool: None,
            stop,
            rounds: self.rounds.clone(),
            observer: None,
        }
    }

    /// The same with the observer, on these threads.
    pub(super) fn run(&mut self, pool: Option<Pool>) -> Run<'_> {
        let mut run = self.limits();
        run.pool = pool;
        if let Some(observer) = &mut self.observer {
            run.observer = Some(&mut **observer);
        }
        run
    }
}

impl std::fmt::Debug for Fitting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fitting")
            .field("tolerance", &self.tolerance)
            .field("max_passes", &self.max_passes)
            .field("time_limit", &self.time_limit)
            .field("seed", &self.seed)
            .field("is_warm", &self.start.is_some())
            .finish_non_exhaustive()
    }
}
