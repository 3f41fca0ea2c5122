//! What can go wrong around the program while it runs: kills, full disks, signals, refused memory, files that change. Nothing a user had is
//! lost: what was there stays readable or is replaced whole, and what was computed is not computed again.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "soak shows how often what was met")]

mod bytes;
mod changing;
mod clock;
mod kills;
mod memory;
mod signals;
mod writes;

use std::path::Path;

use crate::fixture::{Folder, noise, two_classes, two_tasks};

/// How often a fault is tried: a few times here, as often as `MTMKL_SOAK_KILLS` says where it is set.
fn rounds(usual: usize) -> usize {
    #[allow(
        clippy::disallowed_methods,
        reason = "a test has no flags, and soak asks for more of the same"
    )]
    let asked = std::env::var("MTMKL_SOAK_KILLS");
    asked.map_or(usual, |text| text.parse().unwrap())
}

/// The names in a folder that begin with a dot: files that were being written.
fn litter(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect()
}

/// Tables, a model of each, and many rows to predict for.
fn files() -> Folder {
    let folder = Folder::new();
    folder
        .file("two.csv", two_classes(60))
        .file("tasks.csv", two_tasks(120))
        .file("noise.csv", noise(400))
        .file("many.csv", two_classes(20_000));
    folder
        .run("fit two.csv --target label --kernel linear --kernel rbf -o two.model --report two.html")
        .good();
    folder
        .run("fit tasks.csv --target label --task site --kernel linear --kernel rbf -o tasks.model --report tasks.html")
        .good();
    folder
}
