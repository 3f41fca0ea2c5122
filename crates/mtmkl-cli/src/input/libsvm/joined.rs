//! A large LIBSVM text as one table without the text in memory: its parts, read side by side, column by column put together.

use mtmkl_table::{Sparse, Table};

use super::parts::{Parts, Piece};
use super::{COLUMN_BYTES, InputError, Rows, TableOptions, check_size, table_with};
use crate::input::side_by_side::side_by_side;
use crate::input::source::Stream;

/// Parts that are read side by side.
const PARTS: usize = 8;
/// A column that is full grows by one part in so many: there may be many columns, and none of them should have much room to spare.
const GROWTH: usize = 8;

/// The table of a text of features and of so many bytes; none where it holds kernel values, or something is wrong with it: then all of it must be looked at together.
///
/// # Errors
///
/// When the table is larger than the limit.
pub(in crate::input) fn joined(
    input: Stream,
    options: &TableOptions,
    size: u64,
) -> Result<Option<Table>, InputError> {
    let name = input.name().to_owned();
    let mut parts = Parts::new(input, options.clone());
    // Labels, groups and lines; entries are in columns by index.
    let mut all = Rows::default();
    let mut columns: Vec<Sparse> = Vec::new();
    let mut entries = 0_u64;
    loop {
        let pieces: Result<Vec<Piece>, InputError> = (0..PARTS)
            .map_while(|_| parts.next_piece().transpose())
            .collect();
        let Ok(pieces) = pieces else { return Ok(None) };
        if pieces.is_empty() {
            break;
        }
        let bytes: usize = pieces.iter().map(Piece::bytes).sum();
        let is_first = columns.is_empty();
        for rows in side_by_side(pieces, |piece| piece.rows(&name)) {
            let Ok(rows) = rows else { return Ok(None) };
            if all.len() == 0 && rows.serials().is_some() {
                return Ok(None);
            }
            let last = rows.largest_index();
            entries += rows.entries.len() as u64;
            let bytes = (last.max(columns.len() as u64).saturating_mul(COLUMN_BYTES))
                .saturating_add(12 * entries);
            check_size(&name, "its features take at least", bytes, options.limit)?;
            let Ok(last) = usize::try_from(last) else {
                return Ok(None);
            };
            columns.resize(columns.len().max(last + 1), Sparse::default());
            for row in 0..rows.len() {
                let Ok(place) = u32::try_from(all.len() + row) else {
                    return Ok(None);
                };
                for &(index, value) in rows.row(row) {
                    let own = usize::try_from(index).ok();
                    if let Some(column) = own.and_then(|own| columns.get_mut(own)) {
                        push(column, place, value);
                    }
                }
            }
            all.append_without_entries(rows);
        }
        if is_first {
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            reserve(&mut columns, size / bytes.max(1));
        }
    }
    if all.len() == 0 {
        return Ok(None);
    }
    let is_zero_based = columns.first().is_some_and(|first| !first.rows.is_empty());
    if !is_zero_based && !columns.is_empty() {
        columns.remove(0);
    }
    for column in &mut columns {
        column.count = all.len();
    }
    table_with(&name, &all, columns, u64::from(!is_zero_based)).map(Some)
}

/// Room for so many times as many entries, as the rest of the text will have if it is like its beginning.
fn reserve(columns: &mut [Sparse], times: usize) {
    for column in columns {
        let more = column.rows.len().saturating_mul(times.saturating_sub(1));
        column.rows.reserve_exact(more);
        column.values.reserve_exact(more);
    }
}

fn push(column: &mut Sparse, row: u32, value: f64) {
    if column.rows.len() == column.rows.capacity() {
        let more = column.rows.len() / GROWTH + 4;
        column.rows.reserve_exact(more);
        column.values.reserve_exact(more);
    }
    column.rows.push(row);
    column.values.push(value);
}
