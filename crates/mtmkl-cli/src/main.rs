//! The program `mtmkl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(mtmkl_cli::run(&std::env::args_os().collect::<Vec<_>>()))
}
