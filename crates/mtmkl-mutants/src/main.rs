//! Mutation testing of the core in one build: `cargo xtask mutants` and `docs/development/mutants.md`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

mod files;
mod mutant;
mod report;
mod run;
mod sites;
mod tree;
mod weave;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: mtmkl-mutants COMMAND [--name value…]
  weave     --list FILE --tree FOLDER --plan FOLDER [--only FILE]
                                                        all mutants into one build; its programs go to the plan
  baseline  --plan FOLDER [--jobs N]                    which tests reach which mutants
  run       --plan FOLDER --results FILE [--jobs N] [--seconds S] [--order backwards] [--check yes] [--only FILE] [--earlier FOLDER]
                                                        tries mutants until all are tried or the time is over
  report    --plan FOLDER --results FILE[,FILE…]        what was found, by folder, and who survived";

/// The folders of the core whose mutants are tried.
const FOLDERS: &[&str] = &["inner", "model", "sharing", "solver"];

/// `--name value` pairs.
struct Options(Vec<(String, String)>);

impl Options {
    fn text(&self, name: &str) -> Result<&str, String> {
        let found = self.0.iter().find(|(option, _)| option == name);
        found
            .map(|(_, value)| value.as_str())
            .ok_or_else(|| format!("{name} is needed\n{USAGE}"))
    }

    fn path(&self, name: &str) -> Result<PathBuf, String> {
        // Tests are run in folders of their own.
        std::path::absolute(self.text(name)?).map_err(|error| format!("{name}: {error}"))
    }

    fn number(&self, name: &str, usual: f64) -> Result<f64, String> {
        self.text(name).map_or(Ok(usual), |text| {
            text.parse()
                .map_err(|_| format!("{name}: {text:?} is no number"))
        })
    }

    fn jobs(&self) -> Result<usize, String> {
        let jobs = self.text("--jobs").unwrap_or("1");
        jobs.parse()
            .map_err(|_| format!("--jobs: {jobs:?} is no count"))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn weave(options: &Options) -> Result<(), String> {
    let root = root();
    let folders: Vec<String> = FOLDERS
        .iter()
        .map(|name| format!("crates/mtmkl/src/{name}/"))
        .collect();
    let mut mutants = mutant::listed(&options.path("--list")?, &folders)?;
    if let Some(only) = only(options)? {
        mutants.retain(|mutant| only.contains(&mutant.id));
    }
    println!("{} mutants", mutants.len());
    tree::build(
        &root,
        &options.path("--tree")?,
        &root.join("target"),
        &options.path("--plan")?,
        mutants,
    )
}

/// Numbers of mutants, one a line, where a file of them is given.
fn only(options: &Options) -> Result<Option<BTreeSet<u32>>, String> {
    if options.text("--only").is_err() {
        return Ok(None);
    }
    let text = files::read(&options.path("--only")?)?;
    Ok(Some(
        text.split_whitespace()
            .filter_map(|id| id.parse().ok())
            .collect(),
    ))
}

fn run(options: &Options) -> Result<(), String> {
    let earlier = options.path("--earlier").ok();
    run::run(&run::Wanted {
        plan: &options.path("--plan")?,
        results: &options.path("--results")?,
        jobs: options.jobs()?,
        seconds: options.number("--seconds", f64::INFINITY)?,
        backwards: options.text("--order") == Ok("backwards"),
        only: only(options)?,
        earlier: earlier.as_deref(),
        check: options.text("--check") == Ok("yes"),
    })
}

fn report(options: &Options) -> Result<(), String> {
    let results: Vec<PathBuf> = options
        .text("--results")?
        .split(',')
        .map(PathBuf::from)
        .collect();
    report::print(&options.path("--plan")?, &results)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let options = Options(
        rest.chunks(2)
            .filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone())))
            .collect(),
    );
    let done = match command.as_str() {
        "weave" => weave(&options),
        "baseline" => options
            .path("--plan")
            .and_then(|plan| run::baseline(&plan, options.jobs()?)),
        "run" => run(&options),
        "report" => report(&options),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
