//! The program `mtmkl`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Memory in huge pages, kept between fits (ADR 13).
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(mtmkl_cli::run(&std::env::args_os().collect::<Vec<_>>()))
}
