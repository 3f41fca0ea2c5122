//! Parquet files as a table.
//!
//! The reader catches the panics of the library it calls.

use mtmkl_cli::input::{TableOptions, parquet};

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    for text in [Vec::new(), vec!["a".to_owned()]] {
        let options = TableOptions {
            text,
            limit: LIMIT,
            ..TableOptions::default()
        };
        if let Ok(table) = parquet::from_bytes("fuzz.parquet", data, &options) {
            crate::use_table(&table);
        }
    }
}
