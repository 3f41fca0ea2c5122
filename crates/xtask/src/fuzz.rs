//! `cargo xtask fuzz`: every fuzz target, built for libFuzzer with the toolchain of the project, and run for some seconds each.
//!
//! What cargo-fuzz passes to the compiler is stable but for the sanitizers, which code without `unsafe` does not need: counters on the
//! edges of the code, and comparisons that are told to the fuzzer. The C++ library is linked in, so that the programs run elsewhere.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HOST: &str = "x86_64-unknown-linux-gnu";

const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

const USAGE: &str = "usage: cargo xtask fuzz [--build] [--seconds N (60)] [--jobs N (1)] [TARGET…]";

/// What is asked for.
struct Asked {
    seconds: String,
    jobs: String,
    only_build: bool,
    targets: Vec<String>,
}

/// Builds the targets and runs them, one after the other.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let Some(asked) = read(arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    if !build(root) {
        return ExitCode::FAILURE;
    }
    let programs = root.join("fuzz/target").join(HOST).join("release");
    println!("the programs are in {}", programs.display());
    if asked.only_build {
        return ExitCode::SUCCESS;
    }
    let mut all = 0;
    for name in targets(root, &asked.targets) {
        let Some(executions) = fuzz(root, &programs, &name, &asked) else {
            eprintln!("{name} failed; the input is in fuzz/artifacts/{name}");
            return ExitCode::FAILURE;
        };
        println!("{name}: {executions} executions");
        all += executions;
    }
    println!("{all} executions in all, no failure");
    ExitCode::SUCCESS
}

fn read(arguments: &[String]) -> Option<Asked> {
    let mut asked = Asked {
        seconds: "60".to_string(),
        jobs: "1".to_string(),
        only_build: false,
        targets: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--build" => asked.only_build = true,
            "--seconds" => asked.seconds.clone_from(rest.next()?),
            "--jobs" => asked.jobs.clone_from(rest.next()?),
            flag if flag.starts_with('-') => return None,
            name => asked.targets.push(name.to_string()),
        }
    }
    Some(asked)
}

/// Those that were named, or all.
fn targets(root: &Path, named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let corpora = std::fs::read_dir(root.join("fuzz/corpus"));
    let names = corpora.into_iter().flatten().flatten();
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn build(root: &Path) -> bool {
    let library = Command::new("g++")
        .arg("-print-file-name=libstdc++.a")
        .output();
    let folder = library
        .ok()
        .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
        .and_then(|path| path.parent().map(Path::to_path_buf))
        .filter(|folder| folder.is_dir());
    let mut flags = FLAGS.to_string();
    let mut command = Command::new("cargo");
    if let Some(folder) = folder {
        flags += &format!(" -Lnative={}", folder.display());
        command.env("CXXSTDLIB", "static=stdc++");
    }
    command
        .args(["build", "--release", "--target", HOST, "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .env("RUSTFLAGS", flags)
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a target on a copy of its corpus; how many inputs it tried, or nothing where one failed.
fn fuzz(root: &Path, programs: &Path, name: &str, asked: &Asked) -> Option<u64> {
    let found = root.join("fuzz/target/found").join(name);
    let artifacts = root.join("fuzz/artifacts").join(name);
    std::fs::create_dir_all(&found).ok()?;
    std::fs::create_dir_all(&artifacts).ok()?;
    let output = Command::new(programs.join(name))
        .args([
            "-print_final_stats=1",
            "-rss_limit_mb=2048",
            "-timeout=10",
            "-max_len=65536",
            // What the program says is not looked at.
            "-close_fd_mask=3",
        ])
        .arg(format!("-max_total_time={}", asked.seconds))
        .arg(format!("-fork={}", asked.jobs))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(found)
        .arg(root.join("fuzz/corpus").join(name))
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{said}");
        return None;
    }
    executions(&said)
}

/// The last count of a run in forks, `#12345: cov: …`.
fn executions(said: &str) -> Option<u64> {
    said.lines().rev().find_map(|line| {
        line.strip_prefix('#')?
            .split([':', '\t', ' '])
            .next()?
            .parse()
            .ok()
    })
}
