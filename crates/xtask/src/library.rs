//! `cargo xtask library [--peers]`: the problem library, run and written to `docs/library.md`; with the flag, its part about peers too.

use std::process::{Command, ExitCode, Stdio};

/// The page.
const PAGE: &str = "docs/library.md";
/// The part about peers stands between these, …
const PEERS: [&str; 2] = ["<!-- peers -->\n", "<!-- /peers -->\n"];
/// … before this.
const NEXT: &str = "## Each problem\n";
/// Problems that peers can state.
const FOLDER: &str = "target/library-peers";

fn root() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../..")
}

/// What a program prints, and whether it went well.
fn printed(program: &str, arguments: &[&str]) -> Result<(String, bool), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{program} could not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return Err(format!("{program} failed: {}", output.status));
    }
    Ok((text, output.status.success()))
}

/// The library's program, in the release profile.
fn library(arguments: &[&str]) -> Result<(String, bool), String> {
    let program =
        "run --release --package mtmkl-testkit --bin library --locked --".split_whitespace();
    let all: Vec<&str> = program.chain(arguments.iter().copied()).collect();
    printed("cargo", &all)
}

/// What peers make of the problems that they can state. Their environment is that of the benchmarks.
fn peers() -> Result<String, String> {
    let (_, is_written) = library(&["export", FOLDER])?;
    let is_there = super::run(&super::BENCH[..1], &[]).is_some();
    let script = ["bench/library_peers.py", FOLDER];
    let (text, is_good) = printed("target/bench-env/bin/python", &script)?;
    if is_written && is_there && is_good {
        Ok(text)
    } else {
        Err("the peers failed".to_string())
    }
}

/// The part about peers of the page as it is.
fn known_peers() -> Option<String> {
    let page = std::fs::read_to_string(format!("{}/{PAGE}", root())).ok()?;
    let (_, after) = page.split_once(PEERS[0])?;
    Some(after.split_once(PEERS[1])?.0.to_string())
}

fn write(with_peers: bool) -> Result<bool, String> {
    // A page with a claim that is false is worth reading, too; one that is empty is not.
    let (mut page, is_true) = library(&[])?;
    let part = if with_peers {
        Some(format!("## Peers\n\n{}\n", peers()?))
    } else {
        known_peers()
    };
    if let Some(part) = part {
        page = page.replace(NEXT, &format!("{}{part}{}\n{NEXT}", PEERS[0], PEERS[1]));
    }
    std::fs::write(format!("{}/{PAGE}", root()), page)
        .map_err(|error| format!("{PAGE}: {error}"))?;
    println!("{PAGE}");
    Ok(is_true)
}

/// Runs all problems; fails where a claim is not true.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let with_peers = match arguments {
        [] => false,
        [flag] if flag == "--peers" => true,
        _ => {
            eprintln!("usage: cargo xtask library [--peers]");
            return ExitCode::from(2);
        }
    };
    match write(with_peers) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("the library: {message}");
            ExitCode::FAILURE
        }
    }
}
