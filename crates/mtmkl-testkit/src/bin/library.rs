//! The problem library: `library` runs it and prints the page (docs/library.md), `library run FILE` does so with other lines; `library bounds FILE` reads lines of problems and prints them again, with
//! bounds for those that have none; `library export FOLDER` writes those that can be stated with one kernel, for peers.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers"
)]

use std::process::ExitCode;
use std::time::Instant;

use mtmkl_testkit::library::{self, Finding, Recipe};

fn bounds(path: &str) -> std::io::Result<()> {
    for recipe in library::read(&std::fs::read_to_string(path)?) {
        let mut recipe = recipe;
        if recipe.bounds.is_none() {
            let started = Instant::now();
            match recipe.new_bounds() {
                Ok(found) => {
                    let width = (found.high - found.low) / found.high.abs().max(f64::MIN_POSITIVE);
                    eprintln!(
                        "{}: [{:e}, {:e}], {width:.1e} wide, {:.1} s",
                        recipe.name,
                        found.low,
                        found.high,
                        started.elapsed().as_secs_f64()
                    );
                    recipe.bounds = Some(found);
                }
                Err(reason) => eprintln!("{}: {reason}", recipe.name),
            }
        }
        println!("{}", serde_json::to_string(&recipe)?);
    }
    Ok(())
}

/// Prints the page of these problems; fails where a claim is false.
fn checked(recipes: &[Recipe]) -> ExitCode {
    let mut findings: Vec<(&Recipe, Finding)> = Vec::new();
    for recipe in recipes {
        match library::found(recipe) {
            Some(finding) => findings.push((recipe, finding)),
            None => eprintln!("{}: skipped, its data are not there", recipe.name),
        }
    }
    println!("{}", library::page(&findings));
    if findings.iter().all(|(_, finding)| finding.is_true()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<&str>>()
        .as_slice()
    {
        [] => checked(&library::problems()),
        ["run", path] => match std::fs::read_to_string(path) {
            Ok(text) => checked(&library::read(&text)),
            Err(error) => {
                eprintln!("{path}: {error}");
                ExitCode::from(2)
            }
        },
        ["bounds", path] => match bounds(path) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{path}: {error}");
                ExitCode::from(2)
            }
        },
        ["export", folder] => match library::export(&library::problems(), folder.as_ref()) {
            Ok(count) => {
                println!("{count} problems in {folder}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{folder}: {error}");
                ExitCode::from(2)
            }
        },
        _ => {
            eprintln!(
                "usage: library | library run FILE | library bounds FILE | library export FOLDER"
            );
            ExitCode::from(2)
        }
    }
}
