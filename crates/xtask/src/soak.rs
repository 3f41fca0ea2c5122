//! `cargo xtask soak [--only PART] [--minutes MINUTES] [--seed SEED]`: what takes long, part after part.

use std::process::{Command, ExitCode};
use std::time::Instant;

/// A part: its name and a command, which is told the seconds it has and a seed by `SECONDS`, `MINUTES` and `SEED`, and fails where something is wrong.
type Part = (&'static str, &'static str);

/// All parts. One more is one line here.
const PARTS: &[Part] = &[
    (
        "metamorphic",
        "cargo run --release --package mtmkl-testkit --bin metamorphic --locked -- --count 1000000000 --minutes $MINUTES --seed $SEED",
    ),
    // A thousand fits and their changed files, however long that takes.
    (
        "verify",
        "MTMKL_VERIFY_FITS=1000 cargo test --workspace --test random_fits --locked -- --nocapture",
    ),
    // Two hundred kills each of who writes models, journals, reports and predictions.
    (
        "faults",
        "MTMKL_SOAK_KILLS=200 cargo test --workspace --test cli --locked faults -- --nocapture",
    ),
    // Each of nine targets has its share of the time.
    ("fuzz", "cargo xtask fuzz --seconds $((SECONDS / 9 + 1))"),
];

const USAGE: &str =
    "usage: cargo xtask soak [--only PART] [--minutes MINUTES, of each part] [--seed SEED]";

/// What is asked for.
struct Wanted {
    only: Option<String>,
    minutes: f64,
    seed: u64,
}

fn wanted(arguments: &[String]) -> Option<Wanted> {
    let mut wanted = Wanted {
        only: None,
        minutes: 10.0,
        seed: 1,
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return None };
        match name.as_str() {
            "--only" => wanted.only = Some(value.clone()),
            "--minutes" => {
                wanted.minutes = value
                    .parse()
                    .ok()
                    .filter(|minutes: &f64| *minutes > 0.0 && minutes.is_finite())?;
            }
            "--seed" => wanted.seed = value.parse().ok()?,
            _ => return None,
        }
    }
    Some(wanted)
}

/// Runs the parts that are wanted, all of them to their ends; fails where one does.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some(wanted) = wanted(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let is_wanted = |part: &&Part| wanted.only.as_deref().is_none_or(|only| only == part.0);
    let parts: Vec<&Part> = PARTS.iter().filter(is_wanted).collect();
    if parts.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no such part; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    let mut results = Vec::new();
    for (name, command) in parts {
        println!("\n== {name} ==");
        let started = Instant::now();
        let status = Command::new("sh")
            .args(["-c", command])
            .env("MINUTES", wanted.minutes.to_string())
            .env("SECONDS", (60.0 * wanted.minutes).ceil().to_string())
            .env("SEED", wanted.seed.to_string())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status();
        let holds = status.is_ok_and(|status| status.success());
        results.push((*name, holds, started.elapsed().as_secs()));
    }
    println!();
    for (name, holds, seconds) in &results {
        println!(
            "{name}: {} in {seconds} s",
            if *holds { "holds" } else { "FAILED" }
        );
    }
    if results.iter().all(|(_, holds, _)| *holds) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
