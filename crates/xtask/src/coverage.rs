//! `cargo xtask coverage`: which lines the tests run, of Rust (cargo-llvm-cov; the Python package's tests run the core, too) and of Python (coverage.py).
//! The tables of `docs/development/coverage.md` are written; the lines that nobody runs are printed.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const PAGE: &str = "docs/development/coverage.md";

/// What is not the product: its tests and the programs of developers.
const LEFT_OUT: &[&str] = &["testkit", "bench", "mutants", "paper", "fuzz"];

/// LLVM's tools are of the compiler's own version: rustup's where it can be had, else the system's.
const TOOLS: &str = "\
    test -x target/tools/bin/cargo-llvm-cov || cargo install cargo-llvm-cov --version 0.9.1 --locked --debug --quiet --root target/tools; \
    version=$(rustc -vV | sed -n 's/^LLVM version: \\([0-9]*\\).*/\\1/p'); \
    rustup component add llvm-tools >/dev/null 2>&1 || command -v llvm-cov-$version >/dev/null || { \
        apt-get update -qq; apt-get install -y -qq --no-install-recommends llvm-$version >/dev/null; }; \
    target/python-env/bin/pip install --quiet --disable-pip-version-check pytest-cov==7.1.0";

/// All tests, instrumented. One that fails is said and no reason to stop: what it came to until then counts.
const MEASURE: &str = "\
    export PATH=\"$PWD/target/tools/bin:$PATH\" CARGO_TARGET_DIR=\"$PWD/target/coverage/build\" && \
    version=$(rustc -vV | sed -n 's/^LLVM version: \\([0-9]*\\).*/\\1/p') && \
    if command -v llvm-cov-$version >/dev/null; then export LLVM_COV=llvm-cov-$version LLVM_PROFDATA=llvm-profdata-$version; fi && \
    mkdir -p target/coverage && rm -rf target/coverage/wheels && \
    eval \"$(cargo llvm-cov show-env --sh)\" && \
    cargo llvm-cov clean --workspace && \
    { cargo test --workspace --lib --bins --tests --locked --no-fail-fast || echo 'some tests failed'; } && \
    target/python-env/bin/maturin build --locked --quiet --profile dev --features as-tested --out target/coverage/wheels && \
    target/python-env/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/coverage/wheels/*.whl && \
    { MTMKL_WHEEL=$(echo \"$PWD\"/target/coverage/wheels/*.whl) MTMKL_PROGRAM=\"$CARGO_TARGET_DIR/debug/mtmkl\" \
      target/python-env/bin/python -m pytest --numprocesses 2 --dist worksteal --cov=mtmkl --cov-report=lcov:target/coverage/python.lcov \
      || echo 'some tests failed'; } && \
    cargo llvm-cov report --lcov --output-path target/coverage/rust.lcov";

/// Lines that were run, and all.
#[derive(Clone, Copy, Default)]
struct Counts {
    run: usize,
    all: usize,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.run += other.run;
        self.all += other.all;
    }

    fn row(self, name: &str) -> String {
        let share = 100.0 * self.run as f64 / self.all.max(1) as f64;
        format!("| {name} | {} | {share:.1} % |\n", self.all)
    }
}

/// By file, how often each of its lines was run. Of a line with several counts the largest.
fn read(path: &str) -> Result<BTreeMap<String, BTreeMap<usize, u64>>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let (mut files, mut name) = (BTreeMap::new(), String::new());
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("SF:") {
            name = file.to_string();
        } else if let Some((number, count)) = line
            .strip_prefix("DA:")
            .and_then(|data| data.split_once(','))
        {
            let count = count.split(',').next().unwrap_or(count);
            if let (Ok(number), Ok(count)) = (number.parse::<usize>(), count.parse::<u64>()) {
                let lines: &mut BTreeMap<usize, u64> = files.entry(name.clone()).or_default();
                let most = lines.entry(number).or_default();
                *most = count.max(*most);
            }
        }
    }
    Ok(files)
}

/// `crates/mtmkl/src/inner/ridge.rs` of a path, and the row of the table that it belongs to: a folder of the core, a crate, the package.
fn place(path: &str) -> Option<(String, String)> {
    if let Some((_, rest)) = path.split_once("/mtmkl/src/") {
        let folder = rest
            .split_once('/')
            .map_or("the core, files of its root".to_string(), |(folder, _)| {
                format!("`mtmkl/src/{folder}/`")
            });
        return Some((format!("mtmkl/src/{rest}"), folder));
    }
    if let Some((before, rest)) = path.split_once("/src/") {
        let name = before.rsplit('/').next()?;
        let part = name.strip_prefix("mtmkl-")?;
        return (!LEFT_OUT.contains(&part))
            .then(|| (format!("{name}/src/{rest}"), format!("`{name}`")));
    }
    let rest = path
        .rsplit_once("mtmkl/dask/")
        .map(|(_, file)| (format!("python: dask/{file}"), "Python, `mtmkl.dask`"));
    let rest = rest.or_else(|| {
        path.rsplit_once("mtmkl/")
            .map(|(_, file)| (format!("python: {file}"), "Python, `mtmkl`"))
    });
    rest.map(|(file, row)| (file, row.to_string()))
}

/// The first line of the tests in a file, which stand last in it; they are not what is measured.
fn first_of_tests(path: &str) -> usize {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let found = text.lines().position(|line| line == "#[cfg(test)]");
    found.map_or(usize::MAX, |at| at + 1)
}

/// The table, and what is not run by file.
fn tables() -> Result<(String, String), String> {
    let mut rows: BTreeMap<String, Counts> = BTreeMap::new();
    let mut missing = String::new();
    for report in ["rust", "python"] {
        let mut all = Counts::default();
        for (path, lines) in read(&format!("{ROOT}/target/coverage/{report}.lcov"))? {
            let Some((name, row)) = place(&path) else {
                continue;
            };
            let end = first_of_tests(&path);
            let lines: Vec<(usize, u64)> =
                lines.into_iter().filter(|(line, _)| *line < end).collect();
            let run = lines.iter().filter(|(_, count)| *count > 0).count();
            let counts = Counts {
                run,
                all: lines.len(),
            };
            rows.entry(row).or_default().add(counts);
            all.add(counts);
            let not_run: Vec<usize> = lines
                .iter()
                .filter(|(_, count)| *count == 0)
                .map(|(line, _)| *line)
                .collect();
            if !not_run.is_empty() {
                missing += &format!("{name}: {}\n", ranges(&not_run));
            }
        }
        rows.insert(
            format!(
                "all of {}",
                if report == "rust" { "Rust" } else { "Python" }
            ),
            all,
        );
    }
    let mut table = "| what | lines | run |\n|---|---|---|\n".to_string();
    for (name, counts) in rows {
        table += &counts.row(&name);
    }
    Ok((table, missing))
}

/// `3, 5–7`
fn ranges(lines: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &line in lines {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == line => *last = line,
            _ => parts.push((line, line)),
        }
    }
    let parts = parts.iter().map(|(first, last)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}–{last}")
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Puts the table between its marks on the page.
fn write(table: &str) -> Result<(), String> {
    let path = format!("{ROOT}/{PAGE}");
    let page = std::fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    let (before, rest) = page
        .split_once("<!-- table -->\n")
        .ok_or("the page has no <!-- table -->")?;
    let (_, after) = rest
        .split_once("<!-- /table -->")
        .ok_or("the page has no <!-- /table -->")?;
    let page = format!("{before}<!-- table -->\n{table}<!-- /table -->{after}");
    std::fs::write(&path, page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Measures, writes the table into the page, prints what is not run.
pub(crate) fn run() -> ExitCode {
    for script in [TOOLS, MEASURE] {
        let status = Command::new("sh")
            .args(["-c", script])
            .current_dir(Path::new(ROOT))
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("failed: {script}");
            return ExitCode::FAILURE;
        }
    }
    match tables().and_then(|(table, missing)| write(&table).map(|()| (table, missing))) {
        Ok((table, missing)) => {
            println!("{table}\n{missing}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
