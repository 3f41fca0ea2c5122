//! `cargo xtask library`: the problem library, run and written to `docs/library.md`.

use std::process::{Command, ExitCode};

/// The page.
const PAGE: &str = "docs/library.md";

/// Runs all problems in the release profile; fails where a claim is not true.
pub(crate) fn run() -> ExitCode {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let made = Command::new("cargo")
        .args([
            "run",
            "--release",
            "--package",
            "mtmkl-testkit",
            "--bin",
            "library",
            "--locked",
        ])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output();
    let output = match made {
        Ok(output) => output,
        Err(error) => {
            eprintln!("the library could not start (cargo): {error}");
            return ExitCode::FAILURE;
        }
    };
    // A page with a claim that is false is worth reading, too; one that is empty is not.
    if output.stdout.is_empty() {
        eprintln!("the library failed: {}", output.status);
        return ExitCode::FAILURE;
    }
    if let Err(error) = std::fs::write(format!("{root}/{PAGE}"), &output.stdout) {
        eprintln!("{PAGE}: {error}");
        return ExitCode::FAILURE;
    }
    println!("{PAGE}");
    if output.status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
