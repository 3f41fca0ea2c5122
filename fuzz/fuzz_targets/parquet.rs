//! Parquet files as a table.
//!
//! The reader catches the panics of the library it calls; the fuzzer's hook would end the process before it could. A panic
//! that gets past the reader still ends it: `libfuzzer-sys` aborts on one.

#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use mtmkl_cli::input::{TableOptions, parquet};

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

static QUIET: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    for text in [Vec::new(), vec!["a".to_owned()]] {
        let options = TableOptions {
            text,
            limit: LIMIT,
            ..TableOptions::default()
        };
        if let Ok(table) = parquet::from_bytes("fuzz.parquet", data, &options) {
            mtmkl_fuzz::use_table(&table);
        }
    }
});
