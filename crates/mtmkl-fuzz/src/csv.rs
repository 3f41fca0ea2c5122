//! Delimited text as a table and as a kernel matrix; the first byte chooses the options.

use mtmkl_cli::input::{Delimiter, GramOptions, TableOptions, csv};

const DELIMITERS: [Option<&str>; 8] = [
    None,
    None,
    None,
    Some("comma"),
    Some(";"),
    Some("tab"),
    Some("space"),
    Some("|"),
];

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 256 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let delimiter: Option<Delimiter> =
        DELIMITERS[usize::from(choice & 7)].map(|name| name.parse().unwrap());
    let columns = ["a", "id", "f1", ""].map(str::to_owned);
    let options = TableOptions {
        delimiter,
        header: choice & 8 == 0,
        text: if choice & 16 == 0 {
            Vec::new()
        } else {
            columns.to_vec()
        },
        limit: LIMIT,
        ..TableOptions::default()
    };
    if let Ok(table) = csv::from_bytes("fuzz.csv", text, &options) {
        crate::use_table(&table);
    }
    let options = GramOptions {
        members: Vec::new(),
        limit: LIMIT,
    };
    if let Ok(gram) = csv::gram_from_bytes("fuzz.csv", text, delimiter, &options) {
        crate::use_gram(&gram);
    }
}
