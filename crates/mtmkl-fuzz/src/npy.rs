//! NumPy arrays as kernel matrices and as a table, and archives of them.

use mtmkl_cli::input::{GramOptions, TableOptions, npy, npz};

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    let options = TableOptions {
        limit: LIMIT,
        ..TableOptions::default()
    };
    if let Ok(table) = npy::table_from_bytes("fuzz.npy", data, &options) {
        crate::use_table(&table);
    }
    for members in [Vec::new(), vec!["a".to_owned()]] {
        let options = GramOptions {
            members,
            limit: LIMIT,
        };
        for grams in [
            npy::from_bytes("fuzz.npy", data, &options),
            npz::from_bytes("fuzz.npz", data, &options),
        ] {
            for (_, gram) in grams.into_iter().flatten() {
                crate::use_gram(&gram);
            }
        }
    }
}
