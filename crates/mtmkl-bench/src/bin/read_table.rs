//! Reads a table once and prints the seconds it took.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use mtmkl_cli::input::{TableOptions, read_table};

fn main() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(std::env::args().nth(1).ok_or("usage: read_table FILE")?);
    let started = Instant::now();
    let table = read_table(&path, None, &TableOptions::default())?;
    let seconds = started.elapsed().as_secs_f64();
    if table.rows == 0 {
        return Err("no rows".into());
    }
    println!("{seconds}");
    Ok(())
}
