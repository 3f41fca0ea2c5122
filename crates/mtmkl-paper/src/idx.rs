//! IDX, the format of the MNIST digits: a magic number, the lengths, then the items, all in big-endian order.

use mtmkl_cli::input::{InputError, check_size};

/// An array of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The lengths, outermost first.
    pub shape: Vec<usize>,
    /// The items, the last index running fastest.
    pub values: Vec<f64>,
}

/// Reads the array in `bytes`, of at most `limit` bytes in memory.
///
/// # Errors
///
/// When it is no IDX file, its length is not what its header says, or it is too large.
pub fn from_bytes(file: &str, bytes: &[u8], limit: u64) -> Result<Array, InputError> {
    let damaged = |reason: String| InputError::Damaged {
        file: file.to_owned(),
        format: "IDX",
        reason,
    };
    let (Some(&[0, 0, kind, dimensions]), true) = (bytes.first_chunk::<4>(), bytes.len() >= 4)
    else {
        return Err(damaged(
            "it does not begin with two zero bytes and a type".to_owned(),
        ));
    };
    let width = match kind {
        0x08 | 0x09 => 1,
        0x0b => 2,
        0x0c | 0x0d => 4,
        0x0e => 8,
        other => return Err(damaged(format!("there is no item type {other:#04x}"))),
    };
    let head = 4 + 4 * usize::from(dimensions);
    let Some(lengths) = bytes.get(4..head) else {
        return Err(damaged(format!(
            "the header of {dimensions} lengths is cut short"
        )));
    };
    let (lengths, _) = lengths.as_chunks::<4>();
    let shape: Vec<u64> = lengths
        .iter()
        .map(|length| u64::from(u32::from_be_bytes(*length)))
        .collect();
    let items = shape
        .iter()
        .try_fold(1_u64, |product, &length| product.checked_mul(length));
    let data = &bytes[head..];
    let expected = items.and_then(|items| items.checked_mul(width));
    // Checked against the bytes there are, so a header alone cannot ask for memory.
    let Some(items) = items.filter(|_| expected == Some(data.len() as u64)) else {
        return Err(damaged(format!(
            "the header says {shape:?} items of {width} bytes, but {} bytes follow",
            data.len()
        )));
    };
    check_size(file, "the array takes", items.saturating_mul(8), limit)?;
    let values = match kind {
        0x08 => data.iter().map(|&item| f64::from(item)).collect(),
        0x09 => data
            .iter()
            .map(|&item| f64::from(item.cast_signed()))
            .collect(),
        0x0b => data
            .as_chunks::<2>()
            .0
            .iter()
            .map(|item| f64::from(i16::from_be_bytes(*item)))
            .collect(),
        0x0c => data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|item| f64::from(i32::from_be_bytes(*item)))
            .collect(),
        0x0d => data
            .as_chunks::<4>()
            .0
            .iter()
            .map(|item| f64::from(f32::from_be_bytes(*item)))
            .collect(),
        _ => data
            .as_chunks::<8>()
            .0
            .iter()
            .map(|item| f64::from_be_bytes(*item))
            .collect(),
    };
    Ok(Array {
        // Each length is at most the number of bytes, or another one is 0.
        shape: shape
            .iter()
            .map(|&length| usize::try_from(length).unwrap_or(usize::MAX))
            .collect(),
        values,
    })
}
