//! The program as a user runs it: help, tables, JSON, errors, exit codes, files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_cases;
mod behaviour;
mod class_weights;
mod config;
mod errors;
mod faults;
mod files;
mod fixture;
mod guards;
mod help;
mod hierarchy;
mod interruption;
mod invariance;
mod model_file;
mod names;
mod parts;
mod precomputed;
mod probability;
mod results;
mod schema;
mod sparse;
mod spellings;
mod storage;
mod stored;
mod transfer;
mod tune;
mod usual_search;
mod verify;

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mtmkl");
