//! Legends: what a mark or a line means.

use super::marks::{marker, ring};
use crate::letters::{LINE, fitted, room};
use crate::scene::{Item, Look, Pt, Stroke, Text};

pub(super) const SIZE: f64 = 12.5;
/// Between what is shown and the text beside it.
const BESIDE: f64 = 6.0;
/// Between entries.
const BETWEEN: f64 = 16.0;

/// What an entry shows.
pub(super) enum Key {
    Class(usize),
    Ring,
    Line(Stroke),
}

impl Key {
    fn width(&self) -> f64 {
        match self {
            Self::Class(_) => 10.0,
            Self::Ring => 13.0,
            Self::Line(_) => 28.0,
        }
    }

    /// Draws it with its left end at `x`, centred on `y`.
    fn draw(&self, x: f64, y: f64) -> Item {
        let width = self.width();
        let middle = (x + width / 2.0, y);
        match *self {
            Self::Class(class) => marker(middle, 4.2, Some(class)),
            Self::Ring => ring(middle, 3.6),
            Self::Line(stroke) => {
                Item::segment((x + 1.0, y), (x + width - 1.0, y), Look::drawn(stroke))
            }
        }
    }
}

/// Entries with their places relative to the upper left corner.
pub(super) struct Legend {
    entries: Vec<(Key, String, Pt)>,
    pub(super) height: f64,
}

impl Legend {
    /// Lays the entries out in as many rows as the width asks for.
    pub(super) fn new(entries: Vec<(Key, String)>, width: f64) -> Self {
        let row = SIZE * LINE;
        let (mut x, mut y) = (0.0, 0.0);
        let mut placed = Vec::new();
        for (key, name) in entries {
            let name = fitted(&name, SIZE, false, width - key.width() - BESIDE);
            let wide = key.width() + BESIDE + room(&name, SIZE, false);
            if x > 0.0 && x + wide > width {
                (x, y) = (0.0, y + row);
            }
            placed.push((key, name, (x, y)));
            x += wide + BETWEEN;
        }
        Self {
            height: if placed.is_empty() { 0.0 } else { y + row },
            entries: placed,
        }
    }

    pub(super) fn draw(&self, left: f64, top: f64, items: &mut Vec<Item>) {
        for (key, name, at) in &self.entries {
            let (x, y) = (left + at.0, top + at.1 + SIZE * LINE / 2.0);
            items.push(key.draw(x, y));
            let at = (x + key.width() + BESIDE, y + 0.35 * SIZE);
            items.push(Item::Text(Text::new(at, SIZE, name.as_str())));
        }
    }
}
