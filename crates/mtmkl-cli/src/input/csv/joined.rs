//! A large delimited text as one table without the text in memory: its parts, read side by side and put together.

use mtmkl_table::Table;

use super::Parts;
use super::parts::Piece;
use crate::input::side_by_side::side_by_side;
use crate::input::source::Stream;
use crate::input::{InputError, TableOptions, check_size};

/// Parts that are read side by side.
const PARTS: usize = 8;
/// One row in so many more than expected has room.
const SPARE: usize = 64;

/// The table of a text of so many bytes; none where its parts do not go together: a column has numbers in one and text in another, or something
/// is wrong with it. Then all of it must be looked at together.
///
/// # Errors
///
/// When the table is larger than the limit.
pub(in crate::input) fn joined(
    input: Stream,
    options: &TableOptions,
    size: u64,
) -> Result<Option<Table>, InputError> {
    let mut parts = Parts::new(input, options.clone());
    let mut made: Option<Table> = None;
    loop {
        let pieces: Result<Vec<Piece>, InputError> = (0..PARTS)
            .map_while(|_| parts.next_piece().transpose())
            .collect();
        let Ok(pieces) = pieces else { return Ok(None) };
        let Some((known, source)) = parts.known().filter(|_| !pieces.is_empty()) else {
            return Ok(made);
        };
        let bytes: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let tables = side_by_side(pieces, |piece| known.table(source, &piece, options));
        let Ok(tables) = tables.into_iter().collect::<Result<Vec<Table>, _>>() else {
            return Ok(None);
        };
        let rows: usize = tables.iter().map(|table| table.rows).sum();
        for mut table in tables {
            if let Some(before) = &mut made {
                if !before.append(table) {
                    return Ok(None);
                }
                continue;
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let expected = rows.saturating_mul(size / bytes.max(1) + 1);
            table.reserve(expected + expected / SPARE);
            made = Some(table);
        }
        let taken = made.as_ref().map_or(0, Table::bytes);
        check_size(source, "the table takes at least", taken, options.limit)?;
    }
}
