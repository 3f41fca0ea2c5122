//! Writes sample pages to look at: `cargo run -p mtmkl-report --example sample_pages -- DIRECTORY`.

use std::path::PathBuf;

use mtmkl_report::{Report, html};

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&directory)?;
    let independent = Report {
        common: None,
        specific: None,
        status: "converged-uncertified".into(),
        ..sample::iris()
    };
    for (name, report) in [
        ("iris", sample::iris()),
        ("large", sample::large(100, 200)),
        ("independent", independent),
        ("one", sample::large(1, 1)),
        ("middle", sample::large(30, 10)),
        ("empty", Report::default()),
    ] {
        std::fs::write(directory.join(format!("{name}.html")), html(&report))?;
    }
    Ok(())
}
