//! Text as outlines, from the built-in table of glyphs.

use super::contour::{Polyline, Pt};
use super::glyphs::GLYPHS;

const UNITS: f64 = 1024.0;
/// Straight pieces per curve: glyphs are at most a few dozen pixels high.
const PIECES: u32 = 5;
/// A character outside the table: an empty frame, outer contour and hole.
const UNKNOWN: (u16, &str) = (
    576,
    "M60 0L60 728L516 728L516 0M116 56L460 56L460 672L116 672",
);

fn glyph(c: char) -> (u16, &'static str) {
    GLYPHS
        .binary_search_by_key(&c, |g| g.0)
        .map_or(UNKNOWN, |k| (GLYPHS[k].1, GLYPHS[k].2))
}

/// Extra advance per character of bold text, in ems: some of what its strokes are thicker.
fn tracking(bold: bool) -> f64 {
    if bold { 0.5 * EMBOLDEN } else { 0.0 }
}

/// By how much bold text is thicker than the outlines of the table, in ems.
pub(super) const EMBOLDEN: f64 = 0.035;

/// Width of a line of text.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    text.chars()
        .map(|c| size * (f64::from(glyph(c).0) / UNITS + tracking(bold)))
        .sum()
}

/// The closed outlines of a line of text with its base line starting at the origin, y downwards.
pub(super) fn outlines(text: &str, size: f64, bold: bool) -> Vec<Polyline> {
    let scale = size / UNITS;
    let mut x = size * tracking(bold) / 2.0;
    let mut result = Vec::new();
    for c in text.chars() {
        let (advance, path) = glyph(c);
        let place = |p: Pt| (x + scale * p.0, -scale * p.1);
        for contour in path.split('M').skip(1) {
            result.push(Polyline {
                points: flattened(contour).into_iter().map(place).collect(),
                closed: true,
            });
        }
        x += size * (f64::from(advance) / UNITS + tracking(bold));
    }
    result
}

/// The points of one contour, written as in the table without the leading `M`.
fn flattened(contour: &str) -> Vec<Pt> {
    let mut points: Vec<Pt> = Vec::new();
    let mut rest = contour;
    let mut command = 'L';
    loop {
        let end = rest.find(['L', 'Q']).unwrap_or(rest.len());
        let mut numbers = rest[..end]
            .split_ascii_whitespace()
            .filter_map(|n| n.parse::<f64>().ok());
        let mut pair = || Some((numbers.next()?, numbers.next()?));
        let (first, second) = (pair(), pair());
        match (command, points.last().copied(), first, second) {
            ('Q', Some(a), Some(b), Some(c)) => {
                points.extend((1..=PIECES).map(|k| {
                    let t = f64::from(k) / f64::from(PIECES);
                    let (u, v, w) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
                    (u * a.0 + v * b.0 + w * c.0, u * a.1 + v * b.1 + w * c.1)
                }));
            }
            (_, _, Some(p), _) => points.push(p),
            _ => {}
        }
        let mut tail = rest[end..].chars();
        match tail.next() {
            Some(c) => command = c,
            None => return points,
        }
        rest = tail.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_whole() {
        assert!(GLYPHS.windows(2).all(|w| w[0].0 < w[1].0));
        for &(c, advance, path) in GLYPHS {
            assert!(advance > 0, "{c}");
            for contour in path.split('M').skip(1) {
                let points = flattened(contour);
                assert!(points.len() >= 3, "{c}");
                let corners = contour.matches('L').count();
                let curves = contour.matches('Q').count();
                assert_eq!(points.len(), 1 + corners + 5 * curves, "{c}");
            }
        }
        assert!((' '..='~').all(|c| GLYPHS.binary_search_by_key(&c, |g| g.0).is_ok()));
    }

    #[test]
    fn width_adds_up_and_unknown_has_one() {
        let w = |t| width(t, 10.0, false);
        assert!((w("ab") - w("a") - w("b")).abs() < 1e-12);
        assert!(w("\u{4e2d}") > 0.0);
        assert_eq!(outlines("\u{4e2d}", 10.0, false).len(), 2);
        assert_eq!(w(""), 0.0);
    }
}
