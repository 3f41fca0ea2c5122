//! Fits against fits, as many as are wanted: `metamorphic --count FITS [--seed SEED] [--threads WORKERS] [--minutes MINUTES]`; `metamorphic
//! --statement FILE` says what is known of one problem, as it stands in a failing test.
//!
//! Each worker has one thread. At the end stand the counts, and each violation as a test to paste; the exit code is 1 where there is one.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use mtmkl_testkit::metamorphic::{Plan, looked_at, run};
use mtmkl_testkit::statement::Statement;

const USAGE: &str =
    "usage: metamorphic [--count FITS] [--seed SEED] [--threads WORKERS] [--minutes MINUTES]";

fn plan(arguments: &[String]) -> Option<Plan> {
    let mut plan = Plan {
        seed: 1,
        fits: 10_000,
        until: None,
        workers: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--count" => plan.fits = value.parse().ok()?,
            "--seed" => plan.seed = value.parse().ok()?,
            "--threads" => plan.workers = value.parse().ok()?,
            "--minutes" => {
                plan.until =
                    Some(Duration::try_from_secs_f64(60.0 * value.parse::<f64>().ok()?).ok()?);
            }
            _ => return None,
        }
    }
    Some(plan)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = arguments.as_slice()
        && flag == "--statement"
    {
        return match std::fs::read_to_string(path) {
            Ok(text) => {
                println!("{}", looked_at(&Statement::read(&text)));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{path}: {error}");
                ExitCode::from(2)
            }
        };
    }
    let Some(plan) = plan(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let tally = run(plan);
    for violation in &tally.violations {
        println!("{violation}");
    }
    println!("{:>9}  relation", "tried");
    for (name, count) in &tally.relations {
        println!("{count:>9}  {name}");
    }
    println!(
        "{} fits ({} converged to their tolerance) of {} problems ({} more refused), {} relations, {} violations; seed {}, {} workers, {:.0} s",
        tally.fits,
        tally.converged,
        tally.problems - tally.refused,
        tally.refused,
        tally.tried(),
        tally.violations.len(),
        plan.seed,
        plan.workers,
        started.elapsed().as_secs_f64()
    );
    if tally.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
