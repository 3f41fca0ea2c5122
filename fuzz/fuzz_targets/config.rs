//! Configuration files and kernel specifications.

#![no_main]

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use libfuzzer_sys::fuzz_target;
use mtmkl::kernel::{parse_kernel, parse_kernels};
use mtmkl_cli::args::Cli;
use mtmkl_cli::config;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(flags) = config::flags("fit", text, Path::new("fuzz.toml"), &[]) {
        let start = ["mtmkl", "fit"].map(OsString::from);
        let _ = Cli::try_parse_from(start.into_iter().chain(flags));
        let given = ["--kernel=linear", "--p", "1"].map(OsString::from);
        let _ = config::flags("fit", text, Path::new("fuzz.toml"), &given);
    }
    // A model file keeps what `spec` says and reads it with `parse_kernel`.
    for view in parse_kernels(text).into_iter().flatten() {
        let spec = view.spec().expect("a registered kernel has one");
        let again = parse_kernel(&spec).expect("what was written can be read");
        assert_eq!(again.spec().as_ref(), Some(&spec));
    }
});
