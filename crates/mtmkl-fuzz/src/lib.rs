//! Everything that reads bytes from outside, fed with whatever a fuzzer thinks of. Nothing may panic, overflow, hang or take more memory than
//! the limit it was given; what is read keeps its promises.
//!
//! A target is one file with a function `check`. `fuzz/` hands them to libFuzzer; a test here feeds them with what was found before.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a target fails by panicking"
)]

pub mod config;
pub mod csv;
pub mod idx;
pub mod libsvm;
pub mod mat;
pub mod model;
pub mod notes;
pub mod npy;
pub mod parquet;

use mtmkl_table::{Gram, Table};

/// A target: its name, which is that of its corpus, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 9] = [
    ("config", config::check),
    ("csv", csv::check),
    ("idx", idx::check),
    ("libsvm", libsvm::check),
    ("mat", mat::check),
    ("model", model::check),
    ("notes", notes::check),
    ("npy", npy::check),
    ("parquet", parquet::check),
];

/// Looks at every column by every way to ask for it, and the promises a table makes.
fn use_table(table: &Table) {
    for column in table.columns() {
        assert_eq!(column.values.len(), table.rows);
        assert!(column.missing.iter().all(|&row| row < table.rows));
        let _ = table.column(&column.name);
        if let Ok(numbers) = table.numeric(&column.name) {
            assert!(numbers.iter().all(|number| number.is_finite()));
        }
        let _ = table.numeric_or_missing(&column.name);
        let _ = table.names(&column.name);
    }
    let _ = table.column("nothing of that name");
    if let Some(last) = table.rows.checked_sub(1) {
        let _ = table.place(last);
    }
}

/// The promises a kernel matrix makes.
fn use_gram(gram: &Gram) {
    assert_eq!(gram.values.len(), gram.rows * gram.columns);
    assert!(gram.values.iter().all(|value| value.is_finite()));
    if let Some(names) = &gram.row_names {
        assert_eq!(names.len(), gram.rows);
    }
}
