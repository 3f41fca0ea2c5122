//! The project's own commands: `cargo xtask test`.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

use std::process::{Command, ExitCode};
use std::time::Instant;

/// One step of a command: what it is called and what is run.
struct Step {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

/// Everything that must hold before a change goes in. Formatting first, since it is quickest to fail.
const TEST: &[Step] = &[
    Step {
        name: "format",
        program: "cargo",
        arguments: &["fmt", "--all", "--check"],
        variables: &[],
    },
    Step {
        name: "clippy",
        program: "cargo",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        variables: &[],
    },
    Step {
        name: "tests",
        program: "cargo",
        arguments: &["test", "--workspace", "--all-targets", "--locked"],
        variables: &[],
    },
    Step {
        name: "documentation examples",
        program: "cargo",
        arguments: &["test", "--workspace", "--doc", "--locked"],
        variables: &[],
    },
    Step {
        name: "documentation",
        program: "cargo",
        arguments: &[
            "doc",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--locked",
        ],
        variables: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

fn run(steps: &[Step]) -> ExitCode {
    let mut times = Vec::new();
    for step in steps {
        println!("\n== {} ==", step.name);
        let started = Instant::now();
        let status = Command::new(step.program)
            .args(step.arguments)
            .envs(step.variables.iter().copied())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status();
        match status {
            Ok(status) if status.success() => times.push((step.name, started.elapsed().as_secs())),
            Ok(status) => {
                eprintln!("\n{} failed: {status}", step.name);
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!(
                    "\n{} could not start ({}): {error}",
                    step.name, step.program
                );
                return ExitCode::FAILURE;
            }
        }
    }
    println!();
    for (name, seconds) in times {
        println!("{name}: {seconds} s");
    }
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("test") => run(TEST),
        _ => {
            eprintln!("usage: cargo xtask test");
            ExitCode::from(2)
        }
    }
}
