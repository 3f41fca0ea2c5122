//! The report in a real browser: Chromium loads the page, every chart is there, nothing is logged and nothing is fetched. Skips with a
//! message where no Chromium is installed (`cargo xtask test` installs it where it may).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn chromium() -> Option<PathBuf> {
    ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .find_map(|name| {
            let found = Command::new("sh")
                .args(["-c", &format!("command -v {name}")])
                .output()
                .ok()?;
            let path = String::from_utf8(found.stdout).ok()?;
            (!path.trim().is_empty()).then(|| PathBuf::from(path.trim()))
        })
}

fn browse(chromium: &Path, folder: &Path, extra: &[&str], page: &Path) -> Output {
    Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .args(extra)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap()
}

#[test]
fn the_report_shows_every_chart_and_logs_nothing() {
    let Some(chromium) = chromium() else {
        println!("skipped: no Chromium here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let demo = Command::new(env!("CARGO_BIN_EXE_mtmkl"))
        .args(["demo", "--output"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(
        demo.status.success(),
        "{}",
        String::from_utf8_lossy(&demo.stderr)
    );
    let page = folder.path().join("report.html");
    let output = browse(&chromium, folder.path(), &["--dump-dom"], &page);
    let document = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    for heading in [
        "Which kernels each task uses",
        "Who shares, and who does not",
        "Does learning the weights pay?",
        "Pictures",
        "How it converged",
        "Settings",
    ] {
        assert!(
            document.contains(heading),
            "the section `{heading}` is missing"
        );
    }
    // Two convergence charts drawn in the page, the boundaries as a picture, the heat maps as tables.
    assert!(document.matches("<svg").count() >= 2, "charts are missing");
    assert!(document.contains("<img") && document.matches("<table").count() >= 4);
    assert!(
        document.contains("0.785") && document.contains("0.980"),
        "weights are missing"
    );
    assert!(!log.contains("CONSOLE"), "the page logged something: {log}");
    // It also renders: a picture of the page at the width of a phone.
    let picture = folder.path().join("phone.png");
    let argument = format!("--screenshot={}", picture.display());
    browse(
        &chromium,
        folder.path(),
        &[&argument, "--window-size=390,2400"],
        &page,
    );
    let bytes = std::fs::read(&picture).unwrap();
    assert!(
        bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000,
        "no picture of the page"
    );
}
