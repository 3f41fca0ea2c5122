//! Colours, lines and marks: what tells classes, samples and levels apart.

use crate::scene::{INK, Item, Look, Paint, Polyline, Pt, Stroke, WHITE};

/// The tint of a class and the darker colour of its marks, which must stand out from it. Of the palette by Okabe and Ito: told apart
/// with every common colour blindness.
const CLASSES: [([u8; 3], [u8; 3]); 6] = [
    ([0, 114, 178], [0, 114, 178]),
    ([230, 159, 0], [213, 94, 0]),
    ([0, 158, 115], [0, 120, 87]),
    ([204, 121, 167], [163, 73, 121]),
    ([86, 180, 233], [26, 112, 163]),
    ([110, 110, 110], [51, 51, 51]),
];
/// A sample of no class.
const PLAIN: [u8; 3] = [82, 96, 109];
const MARGIN_DASH: (f64, f64) = (5.0, 4.5);

/// The colour of a class's side of the plane.
pub(super) fn tint(class: usize) -> [u8; 3] {
    CLASSES[class % CLASSES.len()].0
}

/// Dark and thick enough to stand out from every tint.
pub(super) const BOUNDARY: Stroke = Stroke::solid(INK, 2.0);
/// Beside the boundary.
pub(super) const MARGIN: Stroke = Stroke {
    dash: Some(MARGIN_DASH),
    ..LEVEL
};
/// One of several.
pub(super) const LEVEL: Stroke = Stroke::solid(INK, 1.3);

/// The mark of a sample.
pub(super) fn marker(at: Pt, radius: f64, class: Option<usize>) -> Item {
    let rgb = class.map_or(PLAIN, |class| CLASSES[class % CLASSES.len()].1);
    let look = Look::Own {
        fill: Some(Paint::solid(rgb)),
        // A white rim keeps marks that overlap apart.
        stroke: Some(Stroke::solid(WHITE, 0.8)),
    };
    // Corners relative to the centre; wider than the disc by what makes all look equally large.
    let corners: &[Pt] = match class.map(|class| class % 4) {
        Some(1) => &[(0.0, -1.32), (1.19, 0.82), (-1.19, 0.82)],
        Some(2) => &[(-0.92, -0.92), (0.92, -0.92), (0.92, 0.92), (-0.92, 0.92)],
        Some(3) => &[(0.0, -1.35), (1.15, 0.0), (0.0, 1.35), (-1.15, 0.0)],
        _ => {
            return Item::Circle {
                centre: at,
                radius,
                look,
            };
        }
    };
    let place = |corner: &Pt| (at.0 + radius * corner.0, at.1 + radius * corner.1);
    let outline = Polyline {
        points: corners.iter().map(place).collect(),
        closed: true,
    };
    Item::path(vec![outline], look)
}

/// Around a support vector.
pub(super) fn ring(at: Pt, radius: f64) -> Item {
    // Around small marks, of which there are many, a finer line: rings that overlap must not become a blot.
    let fine = (radius / 3.6).min(1.0);
    let paint = Paint {
        alpha: fine * fine,
        ..INK
    };
    Item::Circle {
        centre: at,
        radius: radius + 2.6 * fine,
        look: Look::drawn(Stroke::solid(paint, 1.2 * fine)),
    }
}

/// Marks shrink when there are many of them.
pub(super) fn radius(count: usize) -> f64 {
    match count {
        0..=150 => 3.6,
        151..=400 => 3.0,
        401..=1500 => 2.4,
        _ => 1.8,
    }
}
