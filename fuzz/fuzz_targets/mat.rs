//! MATLAB's level 5 files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mtmkl_paper::mat::{self, Value};

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// The promises a value makes.
fn check(value: &Value) {
    match value {
        Value::Matrix { rows, columns, values } => assert_eq!(rows * columns, values.len()),
        Value::Cells(cells) => cells.iter().for_each(check),
        Value::Other => {}
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(variables) = mat::from_bytes("fuzz.mat", data, LIMIT) {
        variables.iter().for_each(|(_, value)| check(value));
    }
});
