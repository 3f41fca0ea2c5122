//! Scores over a grid of settings as a picture: a table whose cells are shaded by their figures.

use crate::scene::{
    Anchor, GREY, Item, Look, Paint, Place, Polyline, Pt, Scene, Stroke, Text, WHITE,
};

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
/// Where the rows begin.
const TOP: f64 = 64.0;
const SIZE: f64 = 12.0;
const BLUE: [u8; 3] = [9, 105, 218];
const CHOSEN: Stroke = Stroke::solid(Paint::solid([188, 76, 0]), 2.5);

impl HeatMap {
    /// The picture as an SVG file of its own.
    pub fn svg(&self) -> String {
        let widest = |names: &[String]| names.iter().map(|name| name.chars().count()).max();
        let left =
            24.0 + LETTER * widest(&self.rows).unwrap_or(0).max(self.up.chars().count()) as f64;
        let column = COLUMN.max(12.0 + LETTER * widest(&self.columns).unwrap_or(0) as f64);
        let drawn = left + column * self.columns.len() as f64 + 16.0;
        let letters = self.title.chars().count().max(self.note.chars().count()) as f64;
        let height =
            TOP + ROW * self.rows.len() as f64 + if self.note.is_empty() { 16.0 } else { 36.0 };
        let mut items = self.names(left, column);
        for (row, column_number) in (0..self.rows.len())
            .flat_map(|row| (0..self.columns.len()).map(move |column| (row, column)))
        {
            let corner = (left + column * column_number as f64, TOP + ROW * row as f64);
            self.cell((row, column_number), corner, column, &mut items);
        }
        if !self.note.is_empty() {
            let note = Text::new((12.0, height - 12.0), SIZE, &self.note);
            items.push(Item::Text(note.painted(GREY)));
        }
        let scene = Scene {
            width: drawn.max(24.0 + LETTER * letters).round(),
            height: height.round(),
            place: Place::File {
                title: self.title.clone(),
                description: format!("A table of {} by {}", self.up, self.across),
            },
            items,
        };
        scene.svg()
    }

    /// The title, and the names of rows and columns.
    fn names(&self, left: f64, column: f64) -> Vec<Item> {
        let text = |at: Pt, content: &str, anchor| Text::new(at, SIZE, content).anchored(anchor);
        let middle = left + 0.5 * column * self.columns.len() as f64;
        let mut items = vec![
            Text::new((12.0, 20.0), 13.0, &self.title).bold(),
            text((middle, 40.0), &self.across, Anchor::Middle).painted(GREY),
            text((left - 10.0, TOP - 6.0), &self.up, Anchor::End).painted(GREY),
        ];
        for (number, name) in self.columns.iter().enumerate() {
            let at = (left + column * (number as f64 + 0.5), TOP - 6.0);
            items.push(text(at, name, Anchor::Middle));
        }
        for (row, name) in self.rows.iter().enumerate() {
            let at = (left - 10.0, TOP + ROW * row as f64 + 17.0);
            items.push(text(at, name, Anchor::End));
        }
        items.into_iter().map(Item::Text).collect()
    }

    /// How good a figure is among all, 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let finite = self.values.iter().flatten().filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| {
            (low.min(v), high.max(v))
        });
        let share = if high > low {
            (value - low) / (high - low)
        } else {
            1.0
        };
        if self.higher_is_better {
            share
        } else {
            1.0 - share
        }
    }

    /// A figure on its shade.
    fn cell(&self, at: (usize, usize), corner: Pt, column: f64, items: &mut Vec<Item>) {
        let value = self.values.get(at.0).and_then(|row| row.get(at.1));
        let value = value.copied().unwrap_or(f64::NAN);
        let base = (corner.0 + 0.5 * column, corner.1 + 17.0);
        if !value.is_finite() {
            let none = Text::new(base, SIZE, "–").anchored(Anchor::Middle);
            items.push(Item::Text(none.painted(GREY)));
            return;
        }
        let share = self.share(value);
        let chosen = self.best == Some(at);
        let shade = Paint {
            rgb: BLUE,
            // The difference between good and best is what one looks for.
            alpha: 0.04 + 0.86 * share.powi(2),
        };
        let area = Polyline::rectangle((corner.0 + 1.0, corner.1 + 1.0), (column - 2.0, ROW - 2.0));
        let look = Look::Own {
            fill: Some(shade),
            stroke: chosen.then_some(CHOSEN),
        };
        items.push(Item::path(vec![area], look));
        let star = if self.marked.contains(&at) { "*" } else { "" };
        let figure = Text::new(base, SIZE, format!("{value:.4}{star}")).anchored(Anchor::Middle);
        let figure = if share > 0.75 {
            figure.painted(WHITE)
        } else {
            figure
        };
        items.push(Item::Text(if chosen { figure.bold() } else { figure }));
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
