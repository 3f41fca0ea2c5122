//! Reading a model file without trusting its size: a device or a file of a terabyte is refused by its first bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

use crate::platform;

/// The longest header that safetensors reads.
const LONGEST_HEADER: u64 = 100_000_000;

/// A tensor's place, counted from the end of the header. The entry of the metadata has none.
#[derive(Deserialize)]
struct Place {
    #[serde(default)]
    data_offsets: (u64, u64),
}

/// The bytes of a model file, or of the beginning of something else: never more than one byte beyond the size that the header states.
///
/// # Errors
/// When it cannot be read, or is a named pipe: that may never answer.
pub(super) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    if platform::is_named_pipe(path) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is a named pipe; copy its content to a file first",
        ));
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.by_ref().take(8).read_to_end(&mut bytes)?;
    let Some(length) = bytes.first_chunk().map(|eight| u64::from_le_bytes(*eight)) else {
        return Ok(bytes);
    };
    if length > LONGEST_HEADER {
        return Ok(bytes);
    }
    file.by_ref().take(length).read_to_end(&mut bytes)?;
    let places: BTreeMap<String, Place> = serde_json::from_slice(&bytes[8..]).unwrap_or_default();
    let content = places.values().map(|place| place.data_offsets.1).max();
    file.take(content.unwrap_or(0).saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Bytes in groups of eight, what is left over dropped.
pub(super) fn eights(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> + '_ {
    bytes.chunks_exact(8).map(|chunk| {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        eight
    })
}
