//! A temporary folder with made-up tables, and the program run in it.

use std::fmt::Write as _;
use std::io::Write as _;
#[cfg(unix)]
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::process::{Child, ChildStderr};
use std::process::{Command, Stdio};

use mtmkl::random::Random;
use serde_json::Value;
use tempfile::TempDir;

use crate::PROGRAM;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The one JSON object on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.stdout, self.stderr))
    }

    /// Standard output of a run that must have gone well.
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, 0, "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The message of a run that must have failed with exit code 2, and printed nothing else.
    pub(crate) fn bad(self) -> String {
        assert_eq!(self.code, 2, "{}\n{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        assert!(!self.stderr.contains("internal error"), "{}", self.stderr);
        self.stderr
    }
}

/// A folder in which the program is run.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    /// The program in this folder, without the settings of whoever runs the tests.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .current_dir(self.root())
            .env_remove("COLUMNS")
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program with arguments separated by blanks.
    pub(crate) fn run(&self, arguments: &str) -> Ran {
        self.run_all(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn run_all(&self, arguments: &[&str]) -> Ran {
        finished(self.command().args(arguments))
    }

    /// As [`Folder::run`], with something on standard input.
    pub(crate) fn run_with_input(&self, arguments: &str, input: &[u8]) -> Ran {
        let mut child = self
            .command()
            .args(arguments.split_whitespace())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
        // Beside reading what it says: it answers before it has read all. A program that fails early may not read it all.
        let writer = std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        ran(output)
    }
}

pub(crate) fn finished(command: &mut Command) -> Ran {
    ran(command.output().unwrap())
}

fn ran(output: std::process::Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The paper's algorithm does not reach this gap in any time we would wait.
#[cfg(unix)]
const LONG: &str = "fit noise.csv --target label --task site --solver epf --p 1.1 --q 1 --C 10 --tol 1e-12 --max-passes 1000000 -v -o m";

/// A signal by its flag of `kill`.
#[cfg(unix)]
pub(crate) fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// How it ended; a program that does not is killed.
#[cfg(unix)]
pub(crate) fn ended(mut child: Child) -> std::process::ExitStatus {
    let begun = std::time::Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > std::time::Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("it does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A fit of `noise.csv` that goes on and on, after its first passes, and what reads what it says.
#[cfg(unix)]
pub(crate) fn fitting(
    command: &mut Command,
    further: &str,
) -> (Child, Lines<BufReader<ChildStderr>>) {
    let mut child = command
        .args(LONG.split(' '))
        .args(further.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    for _ in 0..3 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("pass "), "{line}");
    }
    (child, lines)
}

/// The program's name.
fn program() -> &'static str {
    Path::new(PROGRAM).file_stem().unwrap().to_str().unwrap()
}

/// Commands and what they print, as a terminal would show it, for snapshots.
pub(crate) struct Transcript<'a> {
    folder: &'a Folder,
    text: String,
}

impl<'a> Transcript<'a> {
    pub(crate) fn new(folder: &'a Folder) -> Self {
        Self {
            folder,
            text: String::new(),
        }
    }

    /// Runs the program and notes everything it says.
    pub(crate) fn run(&mut self, arguments: &str) -> &mut Self {
        let ran = self.folder.run(arguments);
        self.note(arguments, &ran)
    }

    pub(crate) fn note(&mut self, arguments: &str, ran: &Ran) -> &mut Self {
        let _ = writeln!(self.text, "$ {} {arguments}", program());
        self.text += &steady(&ran.stdout);
        self.text += &steady(&ran.stderr);
        let _ = writeln!(self.text, "[exit {}]\n", ran.code);
        self
    }

    /// Notes a file that must be bad input: the error, and nothing else.
    pub(crate) fn bad(&mut self, arguments: &str) -> &mut Self {
        let message = self.folder.run(arguments).bad();
        let _ = writeln!(
            self.text,
            "$ {} {arguments}\n{}",
            program(),
            steady(&message)
        );
        self
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Text without what changes from run to run and from machine to machine: times, the version, bounds, digits after the
/// third.
pub(crate) fn steady(text: &str) -> String {
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    let mut result = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let certificate = line.contains("the optimum lies between");
        let words: Vec<&str> = line.split(' ').collect();
        let shown: Vec<String> = words
            .iter()
            .enumerate()
            .map(|(at, word)| {
                let number = word.trim_end_matches([';', '.']);
                let rest = &word[number.len()..];
                let before = at.checked_sub(1).map_or("", |at| words[at]);
                let after = words
                    .get(at + 1)
                    .map_or("", |next| next.trim_end_matches([',', '.']));
                match (before, after) {
                    _ if number.parse::<f64>().is_err() => (*word).to_string(),
                    (_, "s" | "ms") => "[time]".to_string(),
                    ("within", "%") if certificate => "[gap]".to_string(),
                    ("between" | "and", _) if certificate => format!("[bound]{rest}"),
                    _ if (4..=6).contains(&decimals(number)) => format!("{}{rest}", short(number)),
                    _ => (*word).to_string(),
                }
            })
            .collect();
        result += &shown.join(" ");
        result += end;
    }
    result
}

/// How many digits stand behind the point, as in 0.5140; none in 1e-9.
fn decimals(number: &str) -> usize {
    match number.split_once('.') {
        Some((_, digits)) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.len(),
        _ => 0,
    }
}

/// A number to three decimals, as wide as it was, since an optimum within 1e-9 may move its weights by 1e-5.
fn short(number: &str) -> String {
    let rounded = (number.parse::<f64>().unwrap() * 1e3).round() / 1e3 + 0.0;
    format!("{rounded:>width$.3}", width = number.len())
}

/// JSON without times and gaps, numbers to three digits.
pub(crate) fn steady_json(value: &Value) -> String {
    serde_json::to_string_pretty(&rounded(value)).unwrap()
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap();
            let short = (number * 1e3).round() / 1e3;
            // Adding zero turns -0 into 0.
            Value::from(short + 0.0)
        }
        Value::Array(values) => values.iter().map(rounded).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| {
                let value = match key.as_str() {
                    "seconds" => Value::from("[seconds]"),
                    "taken" => Value::from("[bytes]"),
                    "gap" => Value::from("[gap]"),
                    "bound" => Value::from("[bound]"),
                    "objective" => Value::from("[objective]"),
                    // As it was asked for.
                    "tolerance" => value.clone(),
                    _ => rounded(value),
                };
                (key.clone(), value)
            })
            .collect(),
        other => other.clone(),
    }
}

/// A number with two digits, as a person would type it.
fn number(random: &mut Random, middle: f64) -> String {
    let spread: f64 = (0..4).map(|_| random.uniform() - 0.5).sum();
    format!("{:.2}", middle + 0.8 * spread)
}

/// Two classes on two columns `a` and `b`, of which `a` tells them apart.
pub(crate) fn two_classes(rows: usize) -> String {
    let mut random = Random::new(1);
    let mut text = String::from("a,b,label\n");
    for row in 0..rows {
        let yes = row % 2 == 1;
        let (a, b) = (
            number(&mut random, if yes { 2.0 } else { 0.5 }),
            number(&mut random, 1.0),
        );
        let _ = writeln!(text, "{a},{b},{}", if yes { "yes" } else { "no" });
    }
    text
}

/// Three classes, told apart by `a` and `b` together.
pub(crate) fn three_classes(rows: usize) -> String {
    let mut random = Random::new(2);
    let mut text = String::from("a,b,c,kind\n");
    for row in 0..rows {
        let (name, a, b) = [("ash", 0.5, 0.5), ("birch", 2.5, 0.5), ("cedar", 1.5, 2.5)][row % 3];
        let (a, b, c) = (
            number(&mut random, a),
            number(&mut random, b),
            number(&mut random, 1.0),
        );
        let _ = writeln!(text, "{a},{b},{c},{name}");
    }
    text
}

/// Two tasks: `north` goes by column `a`, `south` by column `b`.
pub(crate) fn two_tasks(rows: usize) -> String {
    let mut random = Random::new(3);
    let mut text = String::from("site,a,b,label\n");
    for row in 0..rows {
        let (north, yes) = (row % 2 == 0, row / 2 % 2 == 1);
        let far = if yes { 2.0 } else { 0.5 };
        let (a, b) = if north { (far, 1.0) } else { (1.0, far) };
        let (a, b) = (number(&mut random, a), number(&mut random, b));
        let _ = writeln!(
            text,
            "{},{a},{b},{}",
            if north { "north" } else { "south" },
            if yes { "yes" } else { "no" }
        );
    }
    text
}

/// Five sites in towns in regions: those of the north go by column `a`, those of the south by column `b`. Every site has so many rows.
pub(crate) fn sites(rows: usize) -> String {
    let mut random = Random::new(6);
    let mut text = String::from("site,region,town,a,b,fault\n");
    let sites = [
        ("s1", "north,oslo"),
        ("s2", "north,oslo"),
        ("s3", "north,bergen"),
        ("s4", "south,"),
        ("s5", "south,"),
    ];
    for row in 0..rows {
        for (site, place) in sites {
            let yes = row % 2 == 1;
            let far = if yes { 2.0 } else { 0.5 };
            let (a, b) = if place.starts_with("north") {
                (far, 1.0)
            } else {
                (1.0, far)
            };
            let (a, b) = (number(&mut random, a), number(&mut random, b));
            let fault = if yes { "yes" } else { "no" };
            let _ = writeln!(text, "{site},{place},{a},{b},{fault}");
        }
    }
    text
}

/// Four tasks of nothing but noise: hard work for the solvers.
pub(crate) fn noise(rows: usize) -> String {
    let mut random = Random::new(5);
    let mut text = String::from("site,a,b,c,label\n");
    for row in 0..rows {
        let (a, b, c) = (random.uniform(), random.uniform(), random.uniform());
        let label = if random.below(2) == 1 { "yes" } else { "no" };
        let _ = writeln!(text, "{},{a},{b},{c},{label}", row % 4);
    }
    text
}

/// A curve with noise: `y` from `x`, and a column `z` that says nothing.
pub(crate) fn curve(rows: usize) -> String {
    let mut random = Random::new(4);
    let mut text = String::from("x,z,y\n");
    for row in 0..rows {
        let x = 6.0 * row as f64 / rows as f64;
        let z = number(&mut random, 0.0);
        let _ = writeln!(text, "{x:.3},{z},{:.3}", x.sin() + 0.05 * random.uniform());
    }
    text
}

/// The column of a CSV text, by name.
pub(crate) fn column<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = header.iter().position(|title| *title == name).unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap()).collect()
}

/// The share of equal entries.
pub(crate) fn agreement(a: &[&str], b: &[&str]) -> f64 {
    assert_eq!(a.len(), b.len());
    let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
    equal as f64 / a.len() as f64
}
