//! MATLAB's level 5 files.

use mtmkl_paper::mat::{self, Value};

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// The promises a value makes.
fn keeps_its_word(value: &Value) {
    match value {
        Value::Matrix {
            rows,
            columns,
            values,
        } => assert_eq!(rows * columns, values.len()),
        Value::Cells(cells) => cells.iter().for_each(keeps_its_word),
        Value::Other => {}
    }
}

/// Reads the bytes.
pub fn check(data: &[u8]) {
    if let Ok(variables) = mat::from_bytes("fuzz.mat", data, LIMIT) {
        for (_, value) in &variables {
            keeps_its_word(value);
        }
    }
}
