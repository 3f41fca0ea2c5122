//! The program `mtmkl`.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Memory in huge pages, kept between fits (ADR 13).
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(mtmkl_cli::run(&arguments, &mtmkl::Registry::default()))
}
