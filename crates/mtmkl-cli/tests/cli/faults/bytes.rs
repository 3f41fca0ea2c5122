//! The program under limits of the system.

use std::process::Command;

use crate::PROGRAM;
use crate::fixture::{Folder, Ran, finished};

/// Runs the program under a limit of `prlimit`, as `--fsize=1000`, in this folder.
pub(super) fn limited(folder: &Folder, limit: &str, arguments: &str) -> Ran {
    finished(
        Command::new("prlimit")
            .arg(limit)
            .arg(PROGRAM)
            .args(arguments.split_whitespace())
            .env("TMPDIR", folder.root())
            .current_dir(folder.root()),
    )
}
