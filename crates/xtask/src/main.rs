//! The project's own commands: `cargo xtask test`, everything that must hold; `cargo xtask python`, what Python's estimators repeat of the
//! entries; `cargo xtask bench`, speed beside the peers; `cargo xtask docs`, the site; `cargo xtask release --check`, what must hold before a release;
//! `cargo xtask library`, the problem library; `cargo xtask mutants` and `cargo xtask coverage`, what tests notice and what they run; `cargo xtask soak` and `cargo xtask fuzz`, what takes long.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

mod coverage;
mod docs;
mod fuzz;
mod library;
mod mutants;
mod release;
mod soak;

use std::process::{Command, ExitCode};
use std::time::Instant;

/// One step of a command: what it is called and what is run.
struct Step {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

/// What must hold before a change goes in and needs nothing but Rust; formatting first, since it is quickest to fail.
const LINTS: &[Step] = &[
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
];

/// And the rest of it.
const TEST: &[Step] = &[
    Step {
        name: "tests",
        program: "cargo",
        // Benches are built by clippy; run, they would measure nothing here.
        arguments: &[
            "test",
            "--workspace",
            "--lib",
            "--bins",
            "--tests",
            "--examples",
            "--locked",
        ],
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
    Step {
        name: "Python format and lints",
        program: "sh",
        arguments: &[
            "-c",
            "target/python-env/bin/ruff format --check python bench docs && \
             target/python-env/bin/ruff check python bench docs",
        ],
        variables: &[],
    },
    Step {
        // In the profile of the tests, whose dependencies are built already. The wheel that is shipped is a release build.
        name: "wheel",
        program: "sh",
        arguments: &[
            "-c",
            "rm -rf target/wheels && \
             target/python-env/bin/maturin build --locked --quiet --profile dev --features as-tested --out target/wheels && \
             target/python-env/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/*.whl",
        ],
        variables: &[],
    },
    Step {
        // The tests built it already; by itself it would be built with other features of its dependencies, all of them again.
        name: "program for the Python tests",
        program: "sh",
        arguments: &[
            "-c",
            "test -x target/debug/mtmkl || cargo build --package mtmkl-cli --locked",
        ],
        variables: &[],
    },
    Step {
        name: "Python tests",
        program: "sh",
        arguments: &[
            "-c",
            "MTMKL_WHEEL=$(echo \"$PWD\"/target/wheels/*.whl) MTMKL_PROGRAM=\"$PWD\"/target/debug/mtmkl \
             target/python-env/bin/python -m pytest --numprocesses 2 --dist worksteal",
        ],
        variables: &[],
    },
    docs::QUICK,
    release::DENY,
];

/// Made once under `target`, and again when what it holds changes.
const ENVIRONMENT: &[Step] = &[
    Step {
        name: "Python environment",
        program: "sh",
        arguments: &["-c", PYTHON_ENVIRONMENT],
        variables: &[],
    },
    docs::ENVIRONMENT,
    release::DENY_TOOL,
];

const PYTHON_ENVIRONMENT: &str = "\
    cmp -s python/requirements-test.txt target/python-env/requirements.txt && exit 0; \
    rm -rf target/python-env && python3 -m venv target/python-env && \
    target/python-env/bin/pip install --quiet --disable-pip-version-check -r python/requirements-test.txt && \
    cp python/requirements-test.txt target/python-env/requirements.txt";

/// Writes what Python's estimators repeat of the entries. The test that compares them does it, built as all tests are.
const PYTHON: &[Step] = &[Step {
    name: "arguments of the estimators",
    program: "cargo",
    arguments: &[
        "test",
        "--workspace",
        "--test",
        "python_arguments",
        "--locked",
    ],
    variables: &[("MTMKL_WRITE", "1")],
}];

/// The report is looked at in a real browser. Where the machine is ours to change (a CI machine: root, apt), it is installed; elsewhere
/// the browser test skips with a message.
fn ensure_chromium() {
    let has = |program: &str| {
        Command::new("sh")
            .args(["-c", &format!("command -v {program} >/dev/null")])
            .status()
            .is_ok_and(|status| status.success())
    };
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if has("chromium")
        || has("chromium-browser")
        || has("google-chrome")
        || !root
        || !has("apt-get")
    {
        return;
    }
    println!("\n== install Chromium ==");
    let installed = Command::new("sh")
        .args([
            "-c",
            "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null",
        ])
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        println!("Chromium could not be installed: the browser test will skip");
    }
}

/// What a step took, in seconds.
type Times = Vec<(&'static str, u64)>;

/// All tests. A browser and the Python environment are had from elsewhere, which takes minutes of waiting: meanwhile the lints run.
fn test() -> Option<Times> {
    let (lints, environment) = std::thread::scope(|scope| {
        let environment = scope.spawn(|| {
            ensure_chromium();
            run(ENVIRONMENT, &[])
        });
        (run(LINTS, &[]), environment.join().ok().flatten())
    });
    Some([lints?, environment?, run(TEST, &[])?].concat())
}

/// Runs the steps, the last one with the caller's further arguments; `None` where one fails.
fn run(steps: &[Step], further: &[String]) -> Option<Times> {
    let mut times = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let further = if number + 1 == steps.len() {
            further
        } else {
            &[]
        };
        println!("\n== {} ==", step.name);
        let started = Instant::now();
        let status = Command::new(step.program)
            .args(step.arguments)
            .args(further)
            .envs(step.variables.iter().copied())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status();
        match status {
            Ok(status) if status.success() => times.push((step.name, started.elapsed().as_secs())),
            Ok(status) => {
                eprintln!("\n{} failed: {status}", step.name);
                return None;
            }
            Err(error) => {
                eprintln!(
                    "\n{} could not start ({}): {error}",
                    step.name, step.program
                );
                return None;
            }
        }
    }
    Some(times)
}

/// What it all took.
fn report(times: Option<Times>) -> ExitCode {
    let Some(times) = times else {
        return ExitCode::FAILURE;
    };
    println!();
    for (name, seconds) in times {
        println!("{name}: {seconds} s");
    }
    ExitCode::SUCCESS
}

/// A Python environment for the peers, made once under `target`, and again when what it holds changes; sections of the benchmarks that need
/// more (the release wheel, MKLpy) see to it themselves.
const BENCH: &[Step] = &[
    Step {
        name: "environment",
        program: "sh",
        arguments: &[
            "-c",
            "cmp -s bench/requirements.txt target/bench-env/requirements.txt && exit 0; \
             rm -rf target/bench-env && python3 -m venv target/bench-env && \
             target/bench-env/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt && \
             cp bench/requirements.txt target/bench-env/requirements.txt",
        ],
        variables: &[],
    },
    Step {
        name: "build",
        program: "cargo",
        arguments: &[
            "build",
            "--release",
            "--package",
            "mtmkl-bench",
            "--package",
            "mtmkl-cli",
            "--locked",
        ],
        variables: &[],
    },
    Step {
        name: "measure",
        program: "target/bench-env/bin/python",
        arguments: &["bench/run.py"],
        variables: &[],
    },
];

/// The tests' environment first, which coverage is measured in.
fn coverage() -> ExitCode {
    if run(&ENVIRONMENT[..1], &[]).is_none() {
        return ExitCode::FAILURE;
    }
    coverage::run()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, [])) if command == "test" => report(test()),
        // A leading `--` is left out, as cargo does it for the programs that it runs.
        Some((command, further)) if command == "bench" => report(run(
            BENCH,
            further.strip_prefix(&["--".to_string()]).unwrap_or(further),
        )),
        Some((command, further)) if command == "fuzz" => fuzz::run(further),
        Some((command, [])) if command == "python" => report(run(PYTHON, &[])),
        Some((command, [])) if command == "docs" => {
            ensure_chromium();
            report(run(docs::SITE, &[]))
        }
        Some((command, [flag])) if command == "release" && flag == "--check" => release::check(),
        Some((command, further)) if command == "library" => library::run(further),
        Some((command, further)) if command == "mutants" => mutants::run(further),
        Some((command, [])) if command == "coverage" => coverage(),
        Some((command, further)) if command == "soak" => soak::run(further),
        _ => {
            eprintln!(
                "usage: cargo xtask test | python | docs | library [--peers] | release --check | bench [OPTIONS] (bench --help lists them) | \
                 mutants [--jobs N] [--seconds S] | coverage | soak [--only PART] [--minutes MINUTES] [--seed SEED] | fuzz [TARGET…]"
            );
            ExitCode::from(2)
        }
    }
}
