//! Tests, each by itself: once to see which mutants it reaches, then for each mutant until one test fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::files;
use crate::mutant::{Mutant, State};

/// A test is over time at this many seconds and this multiple of what it took.
const PATIENCE: (f64, f64) = (2.0, 6.0);

/// How long a test may take that is tried on mutants at all, in seconds.
const LONGEST: f64 = 60.0;

/// What a test may allocate, in KiB: a mutant that asks for everything is to fail alone.
const MEMORY: &str = "8388608";

/// Seconds of tests for each mutant, pass after pass: what is found quickly is found first.
const PASSES: &[f64] = &[2.0, 8.0, 30.0];

/// A test as it is without mutants.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Test {
    pub(crate) program: String,
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) passes: bool,
    pub(crate) reached: Vec<u32>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Ending {
    /// A test failed.
    Killed,
    /// A test took too long.
    Slow,
    /// No test failed that was tried.
    Survived,
    /// No test comes there.
    Unreached,
}

/// What is known about a mutant.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Finding {
    pub(crate) id: u32,
    pub(crate) ending: Ending,
    /// The test that failed.
    pub(crate) by: String,
    /// How many tests were tried, and of how many.
    pub(crate) tried: usize,
    pub(crate) of: usize,
    pub(crate) seconds: f64,
}

/// How tests are run.
struct Lane<'a> {
    plan: &'a Path,
    scratch: PathBuf,
    processor: usize,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Exit {
    Passed,
    Failed,
    Late,
}

impl Lane<'_> {
    fn new(plan: &Path, number: usize) -> Lane<'_> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        Lane {
            plan,
            scratch: plan.join("scratch").join(number.to_string()),
            processor: number % count,
        }
    }

    /// One test on one processor, so that how many jobs there are changes nothing for it; children end with it.
    fn run(
        &self,
        program: &str,
        arguments: &[&str],
        variable: (&str, &str),
        limit: f64,
    ) -> Result<Exit, String> {
        let failed = |error: std::io::Error| format!("{program}: {error}");
        let _ = fs::remove_dir_all(&self.scratch);
        fs::create_dir_all(&self.scratch).map_err(failed)?;
        let mut child = Command::new("sh")
            .args([
                "-c",
                "ulimit -v $MUTANT_MEMORY; exec setsid taskset -c $MUTANT_PROCESSOR \"$@\"",
                "sh",
            ])
            .arg(self.plan.join("bin").join(program))
            .args(arguments)
            .env("MUTANT_MEMORY", MEMORY)
            .env("MUTANT_PROCESSOR", self.processor.to_string())
            .env("TMPDIR", &self.scratch)
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .env(variable.0, variable.1)
            .current_dir(&self.scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let started = Instant::now();
        let mut pause = 1;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                return Ok(if status.success() {
                    Exit::Passed
                } else {
                    Exit::Failed
                });
            }
            if started.elapsed().as_secs_f64() > limit {
                // `setsid` made it the first of its group.
                let end = format!("kill -s KILL -- -{}", child.id());
                let _ = Command::new("sh")
                    .args(["-c", &end])
                    .stderr(Stdio::null())
                    .status();
                let _ = child.kill();
                child.wait().map_err(failed)?;
                return Ok(Exit::Late);
            }
            std::thread::sleep(Duration::from_millis(pause));
            pause = (pause + 1).min(20);
        }
    }
}

/// All tests of all programs.
fn tests(plan: &Path) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    let folder = plan.join("bin");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut programs: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    programs.sort();
    for program in programs {
        let output = Command::new(folder.join(&program))
            .args(["--list", "--format", "terse"])
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some(name) = line.strip_suffix(": test") {
                all.push((program.clone(), name.to_string()));
            }
        }
    }
    Ok(all)
}

/// Work for `jobs` threads, in order, until it is done.
fn share<T: Sync>(
    jobs: usize,
    work: &[T],
    one: impl Fn(usize, &T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..jobs)
            .map(|lane| {
                let (next, one) = (&next, &one);
                scope.spawn(move || -> Result<(), String> {
                    while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                        one(lane, item)?;
                    }
                    Ok(())
                })
            })
            .collect();
        lanes.into_iter().try_for_each(|lane| {
            lane.join()
                .unwrap_or_else(|_| Err("a lane panicked".into()))
        })
    })
}

/// Which mutants each test reaches, and whether it passes without any: `tests.jsonl`.
pub(crate) fn baseline(plan: &Path, jobs: usize) -> Result<(), String> {
    let found = Mutex::new(Vec::new());
    let all = tests(plan)?;
    println!("{} tests", all.len());
    share(jobs, &all, |number, (program, name)| {
        let lane = Lane::new(plan, number);
        let record = plan.join("scratch").join(format!("record-{number}"));
        let _ = fs::remove_file(&record);
        let started = Instant::now();
        let variable = ("MUTANT_RECORD", record.to_str().unwrap_or_default());
        let exit = lane.run(program, &["--exact", name, "-q"], variable, LONGEST)?;
        let seconds = started.elapsed().as_secs_f64();
        let text = fs::read_to_string(&record).unwrap_or_default();
        let reached: BTreeSet<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        if exit != Exit::Passed {
            println!("left out: {program} {name}");
        }
        let test = Test {
            program: program.clone(),
            name: name.clone(),
            seconds,
            passes: exit == Exit::Passed,
            reached: reached.into_iter().collect(),
        };
        found.lock().map_err(|_| "a lane panicked")?.push(test);
        Ok(())
    })?;
    let mut found = found.into_inner().map_err(|_| "a lane panicked")?;
    found.sort_by(|a, b| (&a.program, &a.name).cmp(&(&b.program, &b.name)));
    files::write_lines(&plan.join("tests.jsonl"), &found)
}

/// Leaves out tests that fail here without mutants; another machine may lack something.
fn check(plan: &Path, jobs: usize, tests: &mut Vec<Test>) -> Result<(), String> {
    let failing = Mutex::new(BTreeSet::new());
    share(jobs, tests, |number, test| {
        let limit = PATIENCE.0 + PATIENCE.1 * test.seconds;
        let exit = Lane::new(plan, number).run(
            &test.program,
            &["--exact", &test.name, "-q"],
            ("MUTANT", "0"),
            limit,
        )?;
        if exit != Exit::Passed {
            println!("left out here: {} {}", test.program, test.name);
            failing
                .lock()
                .map_err(|_| "a lane panicked")?
                .insert(test.name.clone());
        }
        Ok(())
    })?;
    let failing = failing.into_inner().map_err(|_| "a lane panicked")?;
    tests.retain(|test| !failing.contains(&test.name));
    Ok(())
}

/// What is asked for.
pub(crate) struct Wanted<'a> {
    pub(crate) plan: &'a Path,
    /// Findings are added to this file; those that are there are not made again.
    pub(crate) results: &'a Path,
    pub(crate) jobs: usize,
    pub(crate) seconds: f64,
    /// From the last mutant to the first, for a second machine.
    pub(crate) backwards: bool,
    /// Only these.
    pub(crate) only: Option<BTreeSet<u32>>,
    /// A folder with the results and tests of an earlier run: what was tried in vain there comes last.
    pub(crate) earlier: Option<&'a Path>,
    /// Tests are run without mutants before, and those that fail left out.
    pub(crate) check: bool,
}

/// Tries mutants until all are tried or the time is over.
pub(crate) fn run(wanted: &Wanted) -> Result<(), String> {
    let started = Instant::now();
    let mut tests: Vec<Test> = files::read_lines(&wanted.plan.join("tests.jsonl"))?;
    tests.retain(|test| test.passes);
    if wanted.check {
        check(wanted.plan, wanted.jobs, &mut tests)?;
        println!(
            "{} tests, {:.0} s",
            tests.len(),
            started.elapsed().as_secs_f64()
        );
    }
    let mut mutants: Vec<Mutant> = files::read_lines(&wanted.plan.join("mutants.jsonl"))?;
    mutants.retain(|mutant| {
        mutant.state == State::Woven
            && wanted
                .only
                .as_ref()
                .is_none_or(|only| only.contains(&mutant.id))
    });
    if wanted.backwards {
        mutants.reverse();
    }
    let mut known: BTreeMap<u32, Finding> = BTreeMap::new();
    if wanted.results.exists() {
        let lines: Vec<Finding> = files::read_lines(wanted.results)?;
        known.extend(lines.into_iter().map(|finding| (finding.id, finding)));
    }
    let earlier = wanted
        .earlier
        .map_or_else(|| Ok(Earlier::default()), Earlier::read)?;
    let reaching = reaching(&tests, &mutants, &earlier);
    let out = File::options()
        .create(true)
        .append(true)
        .open(wanted.results)
        .map_err(|error| format!("{}: {error}", wanted.results.display()))?;
    let out = Mutex::new(out);
    let known = Mutex::new(known);
    let late = || started.elapsed().as_secs_f64() > wanted.seconds;
    for budget in PASSES {
        share(wanted.jobs, &mutants, |number, mutant| {
            if late() {
                return Ok(());
            }
            let before = known
                .lock()
                .map_err(|_| "a lane panicked")?
                .get(&mutant.id)
                .cloned();
            let of = reaching.get(&mutant.id).map_or(&[][..], Vec::as_slice);
            if before.as_ref().is_some_and(|before| {
                before.ending != Ending::Survived
                    || before.tried == before.of
                    || before.seconds >= *budget
            }) {
                return Ok(());
            }
            let lane = Lane::new(wanted.plan, number);
            let Some(finding) = try_one(&lane, mutant.id, of, before, *budget, &late)? else {
                return Ok(());
            };
            let line = files::line(&finding)?;
            known
                .lock()
                .map_err(|_| "a lane panicked")?
                .insert(mutant.id, finding);
            let mut out = out.lock().map_err(|_| "a lane panicked")?;
            out.write_all(line.as_bytes())
                .map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}

/// What an earlier run says: how many mutants each test killed, and which tests did not kill a mutant.
#[derive(Debug, Default)]
struct Earlier {
    kills: BTreeMap<String, usize>,
    in_vain: BTreeSet<(u32, String)>,
}

impl Earlier {
    /// Of `results.jsonl` and `tests.jsonl` in a folder.
    fn read(folder: &Path) -> Result<Self, String> {
        let tests: Vec<Test> = files::read_lines(&folder.join("tests.jsonl"))?;
        let findings: Vec<Finding> = files::read_lines(&folder.join("results.jsonl"))?;
        let mut earlier = Self::default();
        let reaching = reaching(&tests, &[], &Self::default());
        for finding in findings {
            if matches!(finding.ending, Ending::Killed | Ending::Slow) {
                *earlier.kills.entry(finding.by).or_default() += 1;
            } else if let Some(tests) = reaching.get(&finding.id) {
                let tried = tests.iter().take(finding.tried);
                (earlier.in_vain).extend(tried.map(|test| (finding.id, test.name.clone())));
            }
        }
        Ok(earlier)
    }
}

/// The tests that reach each mutant: those that were not tried in vain, those beside the code, and those that kill much in little time first.
fn reaching<'a>(
    tests: &'a [Test],
    mutants: &[Mutant],
    earlier: &Earlier,
) -> BTreeMap<u32, Vec<&'a Test>> {
    let mut all: BTreeMap<u32, Vec<&Test>> = BTreeMap::new();
    for test in tests.iter().filter(|test| test.passes) {
        for &id in &test.reached {
            all.entry(id).or_default().push(test);
        }
    }
    for tests in all.values_mut() {
        tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    }
    for mutant in mutants {
        let path = mutant.file.trim_start_matches("crates/mtmkl/src/");
        let place: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
        let key = |test: &Test| {
            let names = test.name.split("::");
            let shared = names.zip(&place).take_while(|(a, b)| a == *b).count();
            let is_vain = earlier.in_vain.contains(&(mutant.id, test.name.clone()));
            let kills = earlier.kills.get(&test.name).map_or(1, |kills| kills + 1);
            let price = (test.seconds + 0.02) / kills as f64;
            (is_vain, place.len() - shared, price)
        };
        if let Some(tests) = all.get_mut(&mutant.id) {
            tests.sort_by(|a, b| {
                let (a, b) = (key(a), key(b));
                a.0.cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.total_cmp(&b.2))
            });
        }
    }
    all
}

/// The tests after those that were tried, for so many seconds in all; `None` where there was no time for it.
fn try_one(
    lane: &Lane,
    id: u32,
    of: &[&Test],
    before: Option<Finding>,
    budget: f64,
    late: &impl Fn() -> bool,
) -> Result<Option<Finding>, String> {
    let mut finding = before.unwrap_or(Finding {
        id,
        ending: Ending::Unreached,
        by: String::new(),
        tried: 0,
        of: of.len(),
        seconds: 0.0,
    });
    let number = id.to_string();
    while let Some(test) = of.get(finding.tried) {
        if finding.seconds >= budget {
            break;
        }
        if late() {
            return Ok(None);
        }
        let started = Instant::now();
        let limit = PATIENCE.0 + PATIENCE.1 * test.seconds;
        let exit = lane.run(
            &test.program,
            &["--exact", &test.name, "-q"],
            ("MUTANT", &number),
            limit,
        )?;
        finding.seconds += started.elapsed().as_secs_f64();
        finding.tried += 1;
        finding.ending = match exit {
            Exit::Passed => Ending::Survived,
            Exit::Failed => Ending::Killed,
            Exit::Late => Ending::Slow,
        };
        if exit != Exit::Passed {
            finding.by.clone_from(&test.name);
            break;
        }
    }
    Ok(Some(finding))
}
