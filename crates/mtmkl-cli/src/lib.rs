//! The program `mtmkl`: commands, and one reader per file format.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 converged, 1 not converged (the best model is
//! still written), 2 error. A closed pipe is a quiet success.

pub mod args;
pub mod choices;
pub mod commands;
pub mod config;
pub mod confusion;
pub mod constant;
pub mod guards;
pub mod input;
pub mod journal;
pub mod output;
pub mod parameters;
pub mod predictor;
pub mod progress;
pub mod score;
pub mod signals;
pub mod terminal;
mod transfer;
pub mod words;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::builder::PossibleValuesParser;
use mtmkl::Registry;

use crate::args::{Cli, Command};
use crate::commands::Outcome;

/// Runs the program with these arguments (the first is its name) and what can be named, and returns its exit code.
///
/// A program with parts of one's own is this with a registry that has them:
///
/// ```no_run
/// let registry = mtmkl::Registry::default();
/// let code = mtmkl_cli::run(&std::env::args_os().collect::<Vec<_>>(), &registry);
/// # let _ = code;
/// ```
pub fn run(arguments: &[OsString], registry: &Registry) -> u8 {
    guarded(|| dispatch(arguments, registry))
}

/// The last line of defence: a panic is a fault of ours, said in one sentence instead of a backtrace.
fn guarded(program: impl FnOnce() -> u8) -> u8 {
    std::panic::set_hook(Box::new(|panic| {
        // A damaged file, which the reader is about to say.
        if input::parquet::is_guarded() {
            return;
        }
        let place = panic
            .location()
            .map_or(String::new(), |place| format!(" at {place}"));
        let what = panic.payload_as_str().unwrap_or("no message");
        // How the library of dense algebra says it.
        if what.contains("AllocError") {
            output::note(
                "mtmkl: the system refuses more memory; give it more (ulimit -v, a larger container), use fewer rows or kernels, or lower \
                 --memory-limit (GiB)",
            );
            return;
        }
        output::note(&format!(
            "mtmkl: internal error{place}: {what}. This is a bug in mtmkl, not in your data; please report it with the command you ran"
        ));
    }));
    signals::refusals_are_errors();
    let code = catch_unwind(AssertUnwindSafe(program)).unwrap_or(2);
    drop(std::panic::take_hook());
    code
}

fn dispatch(arguments: &[OsString], registry: &Registry) -> u8 {
    let cli = match config::parse(arguments, registry) {
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
        Command::Tune(args) => commands::tune::run(args),
        Command::Predict(args) => commands::predict::run(args, registry),
        Command::Evaluate(args) => commands::evaluate::run(args, registry),
        Command::Inspect(args) => commands::inspect::run(args, registry),
        Command::Verify(args) => commands::verify::run(args, registry),
        Command::Report(args) => commands::report::run(args, registry),
        Command::Completions { shell } => completions(*shell, registry),
        Command::Man { command } => manual(command.as_deref(), registry),
    };
    code(result)
}

/// Runs a command of any program and returns its exit code; errors and panics are said on standard error.
pub fn ended(command: impl FnOnce() -> anyhow::Result<Outcome>) -> u8 {
    guarded(|| code(command()))
}

fn code(result: anyhow::Result<Outcome>) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::NotConverged | Outcome::Refuted) => 1,
        Err(error) => complain(&error),
    }
}

/// Prints the completions of a shell, which also know the names of machines and sharings.
fn completions(shell: clap_complete::Shell, registry: &Registry) -> anyhow::Result<Outcome> {
    let mut program = Cli::command_with(registry)?;
    for name in ["fit", "tune"] {
        program = program.mut_subcommand(name, |command| {
            let machines = registry.machines().iter().map(|entry| entry.part.name);
            let sharings = registry.sharings().iter().map(|entry| entry.part.name);
            let machines = PossibleValuesParser::new(machines);
            let sharings = PossibleValuesParser::new(sharings);
            command
                .mut_arg("machine", |argument| argument.value_parser(machines))
                .mut_arg("sharing", |argument| argument.value_parser(sharings))
        });
    }
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut program, "mtmkl", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Outcome::Done)
}

/// Prints the manual page of the program, or of one command under the name that the program's page refers to.
fn manual(command: Option<&str>, registry: &Registry) -> anyhow::Result<Outcome> {
    let mut program = Cli::command_with(registry)?;
    // Built, so that flags and usage lines are complete.
    program.build();
    let (page, title) = match command {
        None => (program, "mtmkl".to_string()),
        Some(name) => {
            let page = program.find_subcommand(name).cloned().ok_or_else(|| {
                let names: Vec<&str> = program
                    .get_subcommands()
                    .map(clap::Command::get_name)
                    .collect();
                anyhow::anyhow!(
                    "there is no command `{name}`; there are {}",
                    names.join(", ")
                )
            })?;
            (page, format!("mtmkl-{name}"))
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).title(title).render(&mut text)?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Outcome::Done)
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
    output::complain(&format!("mtmkl: {}", chain(error)));
    2
}

/// The error and its causes, each said once: many errors repeat their cause in their own words. A name in them does not begin a new
/// line; only readers of settings have something to say in several.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        let several = cause.is::<toml::de::Error>() || cause.is::<config::Usage>();
        let cause = if several {
            terminal::lines(said.trim_end())
        } else {
            terminal::line(said.trim_end())
        };
        let cause = cause.as_ref();
        if text.is_empty() {
            text += cause;
        } else if !text.ends_with(cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_like_any_other() {
        assert_eq!(guarded(|| 0), 0);
        assert_eq!(guarded(|| panic!("on purpose, in a test")), 2);
    }

    #[test]
    fn causes_are_said_once() {
        let cause = std::io::Error::other("disk full");
        let error = anyhow::Error::new(mtmkl::Error::Io {
            path: "m".into(),
            source: cause,
        })
        .context("cannot load m");
        assert_eq!(chain(&error), "cannot load m: m: disk full");
    }
}
