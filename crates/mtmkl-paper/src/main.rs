//! The program `mtmkl-paper`.

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use mtmkl_paper::{Arguments, run};

/// Memory in huge pages, kept between fits (ADR 13).
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ExitCode::from(mtmkl_cli::ended(|| run(&arguments)))
}
