//! Configuration files and kernel specifications.

use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;

use mtmkl::Registry;
use mtmkl::kernel::{parse_kernel, parse_kernels};
use mtmkl_cli::args::Cli;
use mtmkl_cli::config;

/// Making it takes longer than reading a file.
static PROGRAM: LazyLock<clap::Command> = LazyLock::new(|| {
    Cli::command_with(&Registry::default()).expect("flags of our entries do not differ")
});

/// Reads the bytes.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let registry = Registry::default();
    let path = Path::new("fuzz.toml");
    if let Ok(flags) = config::flags(&PROGRAM, "fit", text, path, &[]) {
        let start = ["mtmkl", "fit"].map(OsString::from);
        let arguments: Vec<OsString> = start.into_iter().chain(flags).collect();
        let _ = Cli::read(PROGRAM.clone(), &registry, &arguments);
        let given = ["--kernel=linear", "--p", "1"].map(OsString::from);
        let _ = config::flags(&PROGRAM, "fit", text, path, &given);
    }
    // A model file keeps what `spec` says and reads it with `parse_kernel`.
    for view in parse_kernels(text).into_iter().flatten() {
        let spec = view.spec().expect("a registered kernel has one");
        let again = parse_kernel(&spec).expect("what was written can be read");
        assert_eq!(again.spec().as_ref(), Some(&spec));
    }
}
