//! LIBSVM text as a table and as a kernel matrix.

use mtmkl_cli::input::{GramOptions, TableOptions, libsvm};

/// Small: one large index fills a dense table to the limit, and that takes time.
const LIMIT: u64 = 1 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    for text in [Vec::new(), vec!["label".to_owned()]] {
        let options = TableOptions {
            text,
            limit: LIMIT,
            ..TableOptions::default()
        };
        if let Ok(table) = libsvm::from_bytes("fuzz.libsvm", data, &options) {
            crate::use_table(&table);
        }
    }
    let options = GramOptions {
        members: Vec::new(),
        limit: LIMIT,
    };
    if let Ok(gram) = libsvm::gram_from_bytes("fuzz.libsvm", data, &options) {
        crate::use_gram(&gram);
    }
}
