//! Scores over a grid of settings as a picture: a table whose cells are shaded by their figures.

use crate::text::{esc, put};

/// A table of figures, some of which may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatMap {
    /// What stands above it.
    pub title: String,
    /// What the columns differ in, such as `C`.
    pub across: String,
    /// What the rows differ in, such as `p, q`.
    pub up: String,
    /// Column names.
    pub columns: Vec<String>,
    /// Row names.
    pub rows: Vec<String>,
    /// Figures by rows; not a number where there is none.
    pub values: Vec<Vec<f64>>,
    /// Cells to mark with a star, (row, column).
    pub marked: Vec<(usize, usize)>,
    /// The chosen cell, (row, column).
    pub best: Option<(usize, usize)>,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// A line below, such as what the star means.
    pub note: String,
}

/// Width of a column.
const COLUMN: f64 = 62.0;
/// Height of a row.
const ROW: f64 = 26.0;
/// Width of a letter of the names.
const LETTER: f64 = 6.8;

impl HeatMap {
    /// The picture as an SVG file of its own.
    pub fn svg(&self) -> String {
        let widest = |names: &[String]| names.iter().map(|name| name.chars().count()).max();
        let left =
            24.0 + LETTER * widest(&self.rows).unwrap_or(0).max(self.up.chars().count()) as f64;
        let column = COLUMN.max(12.0 + LETTER * widest(&self.columns).unwrap_or(0) as f64);
        let top = 64.0;
        let drawn = left + column * self.columns.len() as f64 + 16.0;
        let letters = self.title.chars().count().max(self.note.chars().count()) as f64;
        let width = drawn.max(24.0 + LETTER * letters);
        let height =
            top + ROW * self.rows.len() as f64 + if self.note.is_empty() { 16.0 } else { 36.0 };
        let finite = || {
            self.values
                .iter()
                .flatten()
                .copied()
                .filter(|v| v.is_finite())
        };
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             role=\"img\" aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1f2328\">\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
             <text x=\"12\" y=\"20\" font-weight=\"600\" font-size=\"13\">{}</text>\
             <text x=\"{:.1}\" y=\"40\" text-anchor=\"middle\" fill=\"#57606a\">{}</text>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#57606a\">{}</text>",
            esc(&self.title),
            esc(&self.title),
            left + 0.5 * column * self.columns.len() as f64,
            esc(&self.across),
            left - 10.0,
            top - 6.0,
            esc(&self.up)
        );
        for (number, name) in self.columns.iter().enumerate() {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                left + column * (number as f64 + 0.5),
                top - 6.0,
                esc(name)
            );
        }
        for (row, name) in self.rows.iter().enumerate() {
            let y = top + ROW * row as f64;
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 10.0,
                y + 17.0,
                esc(name)
            );
            for number in 0..self.columns.len() {
                let value = self
                    .values
                    .get(row)
                    .and_then(|row| row.get(number))
                    .copied()
                    .unwrap_or(f64::NAN);
                let x = left + column * number as f64;
                if !value.is_finite() {
                    put!(
                        out,
                        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#8c959f\">–</text>",
                        x + 0.5 * column,
                        y + 17.0
                    );
                    continue;
                }
                let share = if high > low {
                    (value - low) / (high - low)
                } else {
                    1.0
                };
                let share = if self.higher_is_better {
                    share
                } else {
                    1.0 - share
                };
                let star = if self.marked.contains(&(row, number)) {
                    "*"
                } else {
                    ""
                };
                let chosen = self.best == Some((row, number));
                put!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\" fill=\"#0969da\" fill-opacity=\"{:.3}\"{}/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\"{}{}>{value:.4}{star}</text>",
                    x + 1.0,
                    y + 1.0,
                    column - 2.0,
                    ROW - 2.0,
                    // The difference between good and best is what one looks for.
                    0.04 + 0.86 * share.powi(2),
                    if chosen {
                        " stroke=\"#bc4c00\" stroke-width=\"2.5\""
                    } else {
                        ""
                    },
                    x + 0.5 * column,
                    y + 17.0,
                    if share > 0.75 { " fill=\"#fff\"" } else { "" },
                    if chosen { " font-weight=\"700\"" } else { "" }
                );
            }
        }
        if !self.note.is_empty() {
            put!(
                out,
                "<text x=\"12\" y=\"{:.1}\" fill=\"#57606a\">{}</text>",
                height - 12.0,
                esc(&self.note)
            );
        }
        out.push_str("</svg>");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_there_once_and_the_best_is_framed() {
        let map = HeatMap {
            title: "a < b".into(),
            across: "C".into(),
            up: "p".into(),
            columns: vec!["1".into(), "3".into()],
            rows: vec!["1.1".into(), "2".into()],
            values: vec![vec![0.5, 0.75], vec![f64::NAN, 0.25]],
            marked: vec![(1, 1)],
            best: Some((0, 1)),
            higher_is_better: true,
            note: String::new(),
        };
        let svg = map.svg();
        for text in ["a &lt; b", ">0.5000<", ">0.7500<", ">0.2500*<", ">–<"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert_eq!(svg.matches("stroke-width").count(), 1);
        // The darkest cell is the best one, whichever way is better.
        let opacity = |svg: &str, figure: &str| -> f64 {
            let before = &svg[..svg.find(figure).unwrap()];
            let at = before.rfind("fill-opacity=\"").unwrap() + 14;
            before[at..].split('"').next().unwrap().parse().unwrap()
        };
        assert!(opacity(&svg, ">0.7500") > opacity(&svg, ">0.5000"));
        let less = HeatMap {
            higher_is_better: false,
            ..map
        }
        .svg();
        assert!(opacity(&less, ">0.2500") > opacity(&less, ">0.5000"));
    }
}
