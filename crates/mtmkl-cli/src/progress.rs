//! What a person sees while waiting: a line on standard error, on a terminal only.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use mtmkl::{Observer, Pass, Round, Rounds};

use crate::terminal;

/// Shows passes as a spinner with gap and time left, as lines (`-v`), or not at all.
pub struct Progress {
    bar: Option<ProgressBar>,
    rounds: Rounds,
    verbose: bool,
    tolerance: f64,
    started: Instant,
    first: Option<f64>,
}

impl Progress {
    /// Shows what is asked for.
    pub fn new(verbose: bool, quiet: bool, tolerance: f64) -> Self {
        let shown = !verbose && !quiet && std::io::stderr().is_terminal();
        let rounds = Rounds::default();
        let bar = shown.then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}{rounds}") {
                let rounds = rounds.clone();
                let show = move |_: &ProgressState, line: &mut dyn fmt::Write| {
                    if let Some(round) = rounds.last() {
                        // A line that cannot be shown is no reason to stop.
                        let _ = line.write_str(&of_round(&round));
                    }
                };
                bar.set_style(style.with_key("rounds", show));
            }
            bar.set_message("before the first pass");
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            bar
        });
        Self {
            bar,
            rounds,
            verbose,
            tolerance,
            started: Instant::now(),
            first: None,
        }
    }

    /// Where a fit says how far an evaluation is, where that takes rounds.
    pub fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// Takes the line away again.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Seconds left, if the gap goes on shrinking as it has so far.
    fn left(&mut self, gap: f64) -> Option<f64> {
        let first = *self.first.get_or_insert(gap);
        let (done, all) = ((first / gap).ln(), (first / self.tolerance).ln());
        (done > 0.1 && all > done)
            .then(|| self.started.elapsed().as_secs_f64() * (all / done - 1.0))
    }
}

/// How far the evaluation at one θ is: `; round 12, gap 3.1e-2 of 1e-3 at these weights, 85 million pairs/s, about 20 s left`.
fn of_round(round: &Round) -> String {
    let rate = round.pairs / round.seconds.max(1e-3) / 1e6;
    let left = (round.left).map_or(String::new(), |left| format!(", about {left:.0} s left"));
    format!(
        "; round {}, gap {:.1e} of {:.0e} at these weights, {rate:.1} million pairs/s{left}",
        round.number, round.gap, round.wanted
    )
}

/// Shows how many of many fits are done, and about how long the rest will take.
pub struct Fits {
    bar: Option<ProgressBar>,
}

impl Fits {
    /// No fits yet.
    pub fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::new(0);
            let template = "{bar:30} {pos} of {len} fits, about {eta} left   {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(std::time::Duration::from_millis(200));
            bar
        });
        Self { bar }
    }

    /// So many fits more, some of which are there already.
    pub fn expect(&self, fits: usize, done: usize) {
        if let Some(bar) = &self.bar {
            bar.inc_length(fits as u64);
            bar.inc(done as u64);
            // Without what was there: it took no time.
            bar.reset_eta();
        }
    }

    /// One more.
    pub fn advance(&self, message: &str) {
        self.advance_by(1, message);
    }

    /// Some more.
    pub fn advance_by(&self, fits: usize, message: &str) {
        if let Some(bar) = &self.bar {
            bar.inc(fits as u64);
            bar.set_message(terminal::line(message).into_owned());
        }
    }

    /// Takes the line away again.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn pass(&mut self, pass: &Pass) {
        if self.verbose {
            // Nothing can be done about a closed standard error.
            let _ = writeln!(
                std::io::stderr(),
                "pass {:>4}  objective {:.9e}  bound {:.9e}  gap {:.2e}  step {:.3}  inner {:>7}  {:.3} s",
                pass.number,
                pass.objective,
                pass.bound,
                pass.gap,
                pass.step,
                pass.inner_iterations,
                pass.seconds
            );
        }
        let left = self
            .left(pass.gap)
            .map_or(String::new(), |left| format!(", about {left:.0} s left"));
        if let Some(bar) = &self.bar {
            bar.set_message(format!(
                "pass {}, gap {:.1e} of {:.0e}{left}",
                pass.number, pass.gap, self.tolerance
            ));
        }
    }
}
