//! Signals: one asks for the best so far, two end the program at once, and a reader that goes away is no fault.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::files;
use crate::PROGRAM;
use crate::fixture::{Folder, ended, fitting, send};

#[test]
fn asked_to_end_it_keeps_the_best_so_far() {
    let folder = files();
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (mut child, lines) = fitting(&mut folder.command(), "");
        send(signal, &child);
        let rest = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(ended(child).code(), Some(1), "{signal}: {text}");
        let rest = rest.join().unwrap().join("\n");
        assert!(rest.contains("stopping with the best so far"), "{signal}");
        assert!(text.contains("Not converged (stopped)"), "{signal}: {text}");
        let kept = folder.run("inspect m --json").json();
        assert_eq!(kept["status"], "stopped");
        std::fs::remove_file(folder.path("m")).unwrap();
    }
}

#[test]
fn under_nohup_a_closed_terminal_means_nothing() {
    let folder = files();
    let mut command = Command::new("nohup");
    command
        .arg(PROGRAM)
        .current_dir(folder.root())
        .stdin(Stdio::null());
    let (child, mut lines) = fitting(&mut command, "");
    send("-HUP", &child);
    for _ in 0..20 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.starts_with("pass "), "{line}");
    }
    send("-TERM", &child);
    let rest = std::thread::spawn(move || lines.map_while(Result::ok).count());
    assert_eq!(ended(child).code(), Some(1));
    rest.join().unwrap();
}

/// Until it has written as much as goes into the pipe, and waits for somebody to read it.
fn wait_until_it_waits(child: &Child) {
    let written = || {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap();
        counts
            .lines()
            .find(|line| line.starts_with("wchar"))
            .map(str::to_string)
    };
    let mut before = None;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(250));
        let now = written();
        if now == before {
            return;
        }
        before = now;
    }
    panic!("it goes on writing");
}

/// Nobody reads what it says, so it waits for ever with the best so far: the second signal ends it all the same.
#[test]
fn asked_twice_it_ends_at_once() {
    let folder = files();
    std::fs::copy(folder.path("two.model"), folder.path("m")).unwrap();
    let before = std::fs::read(folder.path("m")).unwrap();
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let (child, lines) = fitting(&mut folder.command(), "");
        wait_until_it_waits(&child);
        send(signal, &child);
        std::thread::sleep(Duration::from_millis(200));
        send(signal, &child);
        assert_eq!(ended(child).code(), Some(code), "{signal}");
        drop(lines);
        assert_eq!(std::fs::read(folder.path("m")).unwrap(), before);
    }
}

#[test]
fn a_reader_that_goes_away_costs_nothing() {
    let folder = files();
    let run = |arguments: &str| {
        let mut child = folder
            .command()
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    for (arguments, file) in [
        ("fit two.csv --target label -o n --report n.html", "n"),
        (
            "tune two.csv --target label --kernel linear --folds 2 --grid C=1,2 -o t",
            "t",
        ),
        ("predict two.model many.csv", "two.model"),
        ("inspect two.model", "two.model"),
    ] {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {said}");
        assert_eq!(output.status.signal(), None);
        folder.run(&format!("inspect {file}")).good();
    }
    assert!(folder.path("n.html").is_file());
    assert!(!folder.path("mtmkl-tune.journal").exists());
}

/// Two that want to go on with one journal: one does, and the other says why it does not.
#[test]
fn a_journal_is_of_one_run_at_a_time() {
    let folder = Folder::new();
    folder.file("noise.csv", crate::fixture::noise(600));
    let flags = "tune noise.csv --target label --task site --grid C=1/9,1/3,1,3,9 --grid q=1,1.5,2 --journal j --resume -o";
    let first = folder
        .command()
        .args(flags.split(' '))
        .arg("a")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = || std::fs::read_to_string(folder.path("j")).unwrap_or_default();
    while lines().lines().count() < 3 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let said = folder.run(&format!("{flags} b")).bad();
    assert!(said.contains("in use by another run"), "{said}");
    // Nor may one without --resume begin it anew.
    let anew = flags.replace(" --resume", "");
    let said = folder.run(&format!("{anew} b")).bad();
    assert!(said.contains("in use by another run"), "{said}");
    assert_eq!(ended(first).code(), Some(0));
    assert!(!folder.path("b").exists());
    // At the same moment: one of them at least, and nothing is written twice.
    std::fs::remove_file(folder.path("j")).unwrap();
    let both: Vec<Child> = ["a", "b"]
        .into_iter()
        .map(|place| {
            folder
                .command()
                .args(flags.split(' '))
                .arg(place)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<Option<i32>> = both.into_iter().map(|child| ended(child).code()).collect();
    assert!(codes.contains(&Some(0)), "{codes:?}");
    let fits = folder.run(&format!("{flags} c --json")).json();
    assert_eq!(fits["tune"]["computed"], 0);
    assert_eq!(
        lines().lines().count() as u64,
        fits["tune"]["fits"].as_u64().unwrap() + 1
    );
}

#[test]
fn a_journal_that_is_no_file_is_refused() {
    let folder = files();
    let made = Command::new("mkfifo").arg(folder.path("pipe")).status();
    assert!(made.unwrap().success());
    for place in ["pipe", "/dev/zero", "/dev/null", "/dev/stdin"] {
        for resume in ["", "--resume"] {
            let said = folder
                .run(&format!(
                    "tune two.csv --target label --kernel linear --folds 2 --grid C=1 --journal {place} {resume}"
                ))
                .bad();
            assert!(said.contains("is no file; a journal must be one"), "{said}");
        }
    }
}
