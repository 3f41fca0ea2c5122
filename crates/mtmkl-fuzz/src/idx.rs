//! IDX arrays.

use mtmkl_paper::idx;

/// Well under the memory that the fuzzer allows.
const LIMIT: u64 = 64 << 20;

/// Reads the bytes.
pub fn check(data: &[u8]) {
    if let Ok(array) = idx::from_bytes("fuzz.idx", data, LIMIT) {
        let items = array
            .shape
            .iter()
            .fold(1_u128, |all, &length| all * length as u128);
        assert_eq!(items, array.values.len() as u128);
    }
}
