//! The lower triangle of a symmetric matrix with its diagonal, row by row, in pieces that stay in the first cache.

use std::ops::Range;

/// Values of a piece. Short enough for the first cache and for many threads, long enough that starting costs nothing.
pub(super) const PIECE: usize = 512;

/// Part of a row of the lower triangle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) row: usize,
    pub(super) from: usize,
    pub(super) until: usize,
}

impl Stretch {
    pub(super) fn len(&self) -> usize {
        self.until - self.from
    }
}

/// How many values a piece has.
pub(super) fn length(piece: &[Stretch]) -> usize {
    piece.iter().map(Stretch::len).sum()
}

/// Calls `visit` with the pieces of these rows, in order. Short rows share a piece, long ones are cut.
pub(super) fn pieces(rows: Range<usize>, mut visit: impl FnMut(&[Stretch])) {
    let mut piece = Vec::with_capacity(PIECE);
    let mut room = PIECE;
    for row in rows {
        let mut from = 0;
        while from <= row {
            let until = (row + 1).min(from + room);
            piece.push(Stretch { row, from, until });
            room -= until - from;
            from = until;
            if room == 0 {
                visit(&piece);
                piece.clear();
                room = PIECE;
            }
        }
    }
    if !piece.is_empty() {
        visit(&piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_triangle_once_and_in_order() {
        for rows in [0..0, 0..1, 0..2, 0..32, 7..100, 0..1100] {
            let mut cells = Vec::new();
            pieces(rows.clone(), |piece| {
                assert!(length(piece) <= PIECE && !piece.is_empty());
                for stretch in piece {
                    cells.extend((stretch.from..stretch.until).map(|j| (stretch.row, j)));
                }
            });
            let expected: Vec<(usize, usize)> =
                rows.flat_map(|i| (0..=i).map(move |j| (i, j))).collect();
            assert_eq!(cells, expected);
        }
    }
}
