//! The program `mtmkl`: commands, and one reader per file format.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 converged, 1 not converged (the best model is
//! still written), 2 error. A closed pipe is a quiet success.

pub mod args;
pub mod choices;
pub mod commands;
pub mod config;
pub mod dataset;
pub mod frame;
pub mod input;
pub mod output;
pub mod predictor;
pub mod progress;
pub mod score;

use std::ffi::OsString;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::commands::Outcome;

/// Runs the program with these arguments (the first is its name) and returns its exit code.
pub fn run(arguments: &[OsString]) -> u8 {
    let cli = match config::parse(arguments) {
        Ok(Ok(cli)) => cli,
        Ok(Err(usage)) => {
            // Help and version are results, everything else is an error; clap knows which.
            let _ = usage.print();
            return u8::try_from(usage.exit_code()).unwrap_or(2);
        }
        Err(error) => return complain(&error),
    };
    let result = match &cli.command {
        Command::Demo(args) => commands::demo::run(args),
        Command::Fit(args) => commands::fit::run(args),
        Command::Predict(args) => commands::predict::run(args),
        Command::Evaluate(args) => commands::evaluate::run(args),
        Command::Inspect(args) => commands::inspect::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "mtmkl", &mut text);
            output::print(&String::from_utf8_lossy(&text)).map(|()| Outcome::Done)
        }
        Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut text)
                .map_err(Into::into)
                .and_then(|()| output::print(&String::from_utf8_lossy(&text)))
                .map(|()| Outcome::Done)
        }
    };
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NotConverged) => 1,
        Err(error) => complain(&error),
    }
}

/// The error with its causes, on standard error.
fn complain(error: &anyhow::Error) -> u8 {
    let closed = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe);
    if closed {
        return 0;
    }
    output::note(&format!("mtmkl: {error:#}"));
    2
}
