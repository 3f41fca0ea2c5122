//! The program as one runs it: made-up data in the forms of the real ones, and the real ones where they are.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../mtmkl-cli/tests/cli/fixture.rs"]
#[allow(dead_code, reason = "the tables in it are for other tests")]
mod fixture;
mod real_data;
mod tables;

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_mtmkl-paper");
