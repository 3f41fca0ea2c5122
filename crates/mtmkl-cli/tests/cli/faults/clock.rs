//! The clock that people set may jump: nothing of ours looks at it. Times are differences of the clock that cannot be set.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::files;
use crate::fixture::{Folder, Ran, finished};

fn sources(folder: &Path, endings: &[&str], out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            sources(&path, endings, out);
        } else if ending.is_some_and(|ending| endings.contains(&ending)) {
            out.push(path);
        }
    }
}

#[test]
fn no_result_depends_on_the_clock_that_can_be_set() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for place in [
        "crates/mtmkl/src",
        "crates/mtmkl-cli/src",
        "crates/mtmkl-table/src",
        "crates/mtmkl-report/src",
        "crates/mtmkl-verify/src",
        "crates/mtmkl-py/src",
        "python/mtmkl",
    ] {
        sources(&root.join(place), &["rs", "py"], &mut files);
    }
    assert!(files.len() > 200, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for clock in ["SystemTime", "time.time(", "datetime.now", "utcnow"] {
            assert!(!text.contains(clock), "{} uses {clock}", file.display());
        }
    }
}

/// A clock that is set at every look at it: a year on, and two back.
const JUMPING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
    static unsigned looks;
    return __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % 2 ? -31536000L : 31536000L;
}

int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
    return failed;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"#;

/// The library that makes the clock jump; `None`, with a message, where there is no C compiler.
fn jumping(folder: &Folder) -> Option<PathBuf> {
    folder.file("jumping.c", JUMPING);
    let library = folder.path("jumping.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &folder.path("jumping.c")])
        .arg("-ldl")
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(library);
    }
    println!("skipped: no C compiler");
    None
}

fn year_of(command: &mut Command) -> i64 {
    let printed = finished(command.args(["-u", "+%Y"])).good();
    printed.trim().parse().unwrap()
}

#[test]
fn a_clock_that_jumps_changes_nothing() {
    let folder = files();
    let Some(library) = jumping(&folder) else {
        return;
    };
    let run = |arguments: &str| -> Ran {
        let mut command = folder.command();
        finished(
            command
                .args(arguments.split_whitespace())
                .env("LD_PRELOAD", &library),
        )
    };
    // The clock does jump for a program that looks at it.
    let jumped = year_of(Command::new("date").env("LD_PRELOAD", &library));
    assert_ne!(jumped, year_of(&mut Command::new("date")));
    // Files tell how long it took: what they predict is compared.
    let predicted = |model: &str, table: &str| {
        folder
            .run(&format!("predict {model} {table} --decision"))
            .good()
    };
    // A limit that is not reached ends nothing; one that is, does.
    let fit =
        "fit tasks.csv --target label --task site --kernel linear --kernel rbf --time-limit 60 -o";
    folder.run(&format!("{fit} still")).good();
    run(&format!("{fit} jumped")).good();
    assert_eq!(
        predicted("jumped", "tasks.csv"),
        predicted("still", "tasks.csv")
    );
    let late = "fit many.csv --target label --kernel rbf --time-limit 0.3 --tol 1e-12 -o late";
    let ran = run(late);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("Not converged (time limit)"),
        "{}",
        ran.stdout
    );
    // A search, its journal, and what goes on from it.
    let tune = "tune two.csv --target label --kernel linear --kernel rbf --folds 3 --grid C=0.1,1,10 --journal";
    run(&format!("{tune} jumped.journal -o jumped")).good();
    folder.run(&format!("{tune} still.journal -o still")).good();
    assert_eq!(
        predicted("jumped", "two.csv"),
        predicted("still", "two.csv")
    );
}
