//! Fits against fits: problems at random, changed in ways of which mathematics says what they do to the optimum.
//!
//! - [`statement`]: the problem of a seed.
//! - `relations.rs`: what must hold, one line each.
//! - [`run`]: many problems, each with some of the relations; a failure is reduced to the smallest problem that still fails, and printed as a test.

mod draw;
mod fits;
mod reduce;
mod relations;
mod twins;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use draw::statement;
pub use fits::{Answer, Fits, Trouble, Way};
pub use reduce::{as_test, reduced};
use relations::{Base, RELATIONS};

use crate::generate::Random;
use crate::statement::Statement;

/// How many relations are tried on each problem, after its own fit.
const OF_EACH: usize = 4;
/// A problem has its relations drawn from its seed with this added.
const OTHER_DRAWS: u64 = 0x5eed;
/// Fits that a failure may take to become small.
const MOST_TRIES: usize = 400;

/// How much to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed of the first problem; the others follow it.
    pub seed: u64,
    /// So many fits at least, …
    pub fits: usize,
    /// … or until then.
    pub until: Option<Duration>,
    /// Workers, each with one thread.
    pub workers: usize,
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Problems drawn.
    pub problems: usize,
    /// Of them, those that the product refuses.
    pub refused: usize,
    /// Fits of problems and of their twins.
    pub fits: usize,
    /// Of them, those that converged to their tolerance.
    pub converged: usize,
    /// How often each relation was tried.
    pub relations: BTreeMap<&'static str, usize>,
    /// What did not hold, each as a test to paste, with the reason.
    pub violations: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.problems += other.problems;
        self.refused += other.refused;
        self.fits += other.fits;
        self.converged += other.converged;
        for (name, count) in other.relations {
            *self.relations.entry(name).or_default() += count;
        }
        self.violations.extend(other.violations);
    }

    /// How many relations were tried.
    pub fn tried(&self) -> usize {
        self.relations.values().sum()
    }
}

/// Problems one after the other until there were enough fits.
pub fn run(plan: Plan) -> Tally {
    let started = Instant::now();
    let (next, fits) = (AtomicU64::new(plan.seed), AtomicUsize::new(0));
    let total = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..plan.workers.max(1) {
            scope.spawn(|| {
                let mut own = Fits::new();
                let mut tally = Tally::default();
                let is_late = || plan.until.is_some_and(|until| started.elapsed() >= until);
                while fits.load(Ordering::Relaxed) < plan.fits && !is_late() {
                    let before = own.count;
                    one(next.fetch_add(1, Ordering::Relaxed), &mut own, &mut tally);
                    fits.fetch_add(own.count - before, Ordering::Relaxed);
                }
                (tally.fits, tally.converged) = (own.count, own.converged);
                total
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .add(tally);
            });
        }
    });
    total
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The problem of a seed with some relations.
fn one(seed: u64, fits: &mut Fits, tally: &mut Tally) {
    let statement = statement(seed);
    tally.problems += 1;
    let answer = match fits.usual(&statement) {
        Ok(answer) => answer,
        Err(Trouble::Refused(_)) => {
            tally.refused += 1;
            return;
        }
        Err(Trouble::Wrong(reason)) => {
            tally
                .violations
                .push(reported("by itself", seed, statement, &reason));
            return;
        }
    };
    let base = Base {
        statement: &statement,
        answer: &answer,
    };
    let random = &mut Random::new(seed.wrapping_add(OTHER_DRAWS));
    for _ in 0..OF_EACH {
        let (name, relation) = RELATIONS[random.below(RELATIONS.len())];
        let own = random.below(1 << 30) as u64;
        match relation(&base, &mut Random::new(own), fits) {
            None => {}
            Some(verdict) => {
                *tally.relations.entry(name).or_default() += 1;
                if let Err(Trouble::Wrong(reason)) = verdict {
                    tally
                        .violations
                        .push(reported(name, own, statement.clone(), &reason));
                }
            }
        }
    }
}

/// The failure, as small as it gets, as a test.
fn reported(relation: &str, seed: u64, statement: Statement, reason: &str) -> String {
    let small = reduced(statement, MOST_TRIES, |candidate| {
        tried(relation, seed, candidate).is_err()
    });
    format!("// {reason}\n{}", as_test(relation, seed, &small))
}

/// The names of all relations.
pub fn names() -> impl Iterator<Item = &'static str> {
    RELATIONS.iter().map(|(name, _)| *name)
}

/// One relation on one statement; where it says nothing, it holds.
///
/// # Errors
/// Says what does not hold.
pub fn tried(relation: &str, seed: u64, statement: &Statement) -> Result<(), String> {
    let mut fits = Fits::new();
    let answer = match fits.usual(statement) {
        Ok(answer) => answer,
        Err(Trouble::Refused(_)) => return Ok(()),
        Err(Trouble::Wrong(reason)) => return Err(reason),
    };
    let base = Base {
        statement,
        answer: &answer,
    };
    let known = RELATIONS.iter().find(|(name, _)| *name == relation);
    match known.and_then(|(_, relation)| relation(&base, &mut Random::new(seed), &mut fits)) {
        Some(Err(Trouble::Wrong(reason) | Trouble::Refused(reason))) => Err(reason),
        _ => Ok(()),
    }
}

/// The same for a statement as it is written in a test, with its claims by itself.
///
/// # Panics
/// When it does not hold.
pub fn assert_holds(relation: &str, seed: u64, text: &str) {
    let known = RELATIONS.iter().any(|(name, _)| *name == relation) || relation == "by itself";
    assert!(known, "there is no relation `{relation}`");
    if let Err(reason) = tried(relation, seed, &Statement::read(text)) {
        panic!("{relation}: {reason}");
    }
}

/// What the product and the conic solver say of a statement: for a look at a failure.
pub fn looked_at(statement: &Statement) -> String {
    let mut text = match Fits::new().usual(statement) {
        Ok(answer) => format!(
            "{:?}, J* in [{:e}, {:e}], slack {:e}\n",
            answer.model.outcome().status,
            answer.bound,
            answer.objective,
            answer.slack
        ),
        Err(trouble) => format!("{trouble:?}\n"),
    };
    if let Some((tasks, terms)) = statement.conic() {
        let optimum = crate::conic::optimum(&tasks, &terms);
        text += &format!(
            "conic solver: {:e}, off by {:e}, solved: {}\n",
            optimum.value, optimum.error, optimum.solved
        );
        let bounds = crate::bracket::bounds(&tasks, &terms);
        text += &format!(
            "by the textbook: J* in [{:e}, {:e}], by {}; unit {:e}\n",
            bounds.low, bounds.high, bounds.by, bounds.unit
        );
    }
    text
}
