//! `cargo xtask mutants [--jobs N] [--seconds S]`: which mutants of the core the tests notice.

use std::path::Path;
use std::process::{Command, ExitCode};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What says which mutants there are.
const TOOL: &str = "test -x target/tools/bin/cargo-mutants || cargo install cargo-mutants --version 27.1.0 --locked --debug --root target/tools";

/// The list, all of it in one build under `$FOLDER`, and which test reaches what. Made again where the last one is of other sources.
const PLAN: &str = "\
    mkdir -p $FOLDER && \
    stamp=$(cat $(find crates/mtmkl crates/mtmkl-testkit crates/mtmkl-mutants -type f | sort) | sha256sum) && \
    if [ \"$stamp\" = \"$(cat $FOLDER/stamp 2>/dev/null)\" ]; then exit 0; fi; \
    rm -rf $FOLDER/plan $FOLDER/results.jsonl $FOLDER/stamp; \
    PATH=\"$PWD/target/tools/bin:$PATH\" cargo mutants --list --json --package mtmkl >$FOLDER/list.json && \
    cargo build --package mtmkl-mutants --locked && \
    target/debug/mtmkl-mutants weave --list $FOLDER/list.json --tree $FOLDER/tree --plan $FOLDER/plan && \
    target/debug/mtmkl-mutants baseline --plan $FOLDER/plan --jobs $JOBS && \
    echo \"$stamp\" >$FOLDER/stamp";

const TRY: &str = "\
    target/debug/mtmkl-mutants run --plan $FOLDER/plan --results $FOLDER/results.jsonl --jobs $JOBS --seconds $SECONDS_ALL; \
    target/debug/mtmkl-mutants report --plan $FOLDER/plan --results $FOLDER/results.jsonl";

/// The value after an option.
fn value<'a>(arguments: &'a [String], name: &str, usual: &'a str) -> &'a str {
    let found = arguments.iter().position(|argument| argument == name);
    found
        .and_then(|at| arguments.get(at + 1))
        .map_or(usual, String::as_str)
}

/// Tries mutants until all are tried or the seconds are over; what is known is kept and gone on with the next time.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    for script in [TOOL, PLAN, TRY] {
        let status = Command::new("sh")
            .args(["-c", script])
            .env("FOLDER", "target/mutants")
            .env("JOBS", value(arguments, "--jobs", "1"))
            .env("SECONDS_ALL", value(arguments, "--seconds", "inf"))
            .current_dir(Path::new(ROOT))
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("failed: {script}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
