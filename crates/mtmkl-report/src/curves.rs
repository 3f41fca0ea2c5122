//! Figures of several methods over a few settings, as lines with a legend.

use crate::axis::Axis;
use crate::scene::{
    Anchor, GREY, Item, Look, PALE, Paint, Place, Polyline, Pt, Scene, Stroke, Text,
};

/// One method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// One figure for each place; not a number where there is none.
    pub values: Vec<f64>,
    /// The standard deviation of each figure; empty for none.
    pub spreads: Vec<f64>,
    /// Whether it is somebody else's: dashed.
    pub foreign: bool,
}

/// Lines over named places, which are evenly spaced.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curves {
    /// What stands above it.
    pub title: String,
    /// Title of the horizontal axis.
    pub across: String,
    /// Title of the vertical axis.
    pub up: String,
    /// Names of the places.
    pub places: Vec<String>,
    /// The methods.
    pub curves: Vec<Curve>,
}

/// Colours that people who see few of them can still tell apart (Okabe and Ito).
const COLOURS: [[u8; 3]; 8] = [
    [213, 94, 0],
    [0, 114, 178],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [0, 0, 0],
    [140, 149, 159],
];
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
/// Where the legend begins.
const RIGHT: f64 = 400.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = HEIGHT - 46.0;
const SIZE: f64 = 12.0;

impl Curves {
    /// The picture as an SVG file of its own.
    pub fn svg(&self) -> String {
        let y = self.axis();
        let mut items = self.frame(&y);
        for number in 0..self.curves.len() {
            self.curve(number, &y, &mut items);
        }
        let scene = Scene {
            width: WIDTH,
            height: HEIGHT,
            place: Place::File {
                title: self.title.clone(),
                description: format!("{} over {}", self.up, self.across),
            },
            items,
        };
        scene.svg()
    }

    fn axis(&self) -> Axis {
        let all = self.curves.iter().flat_map(|curve| &curve.values).copied();
        let finite = all.filter(|v| v.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let room = 0.05 * (high - low);
        Axis::over(low - room, high + room, 6.0)
    }

    /// Where a place is, from left to right.
    fn across(&self, place: usize) -> f64 {
        let steps = self.places.len().saturating_sub(1).max(1) as f64;
        LEFT + 20.0 + (RIGHT - LEFT - 40.0) * place as f64 / steps
    }

    /// Title, axes and their names.
    fn frame(&self, y: &Axis) -> Vec<Item> {
        let text = |at: Pt, content: &str| Text::new(at, SIZE, content);
        let line = |at: f64, paint| {
            let stroke = Stroke::solid(paint, 1.0);
            Item::segment((LEFT, at), (RIGHT, at), Look::drawn(stroke))
        };
        let mut items = vec![Item::Text(
            Text::new((12.0, 20.0), 13.0, &self.title).bold(),
        )];
        for (value, name) in &y.ticks {
            let at = height(y, *value);
            items.push(line(at, PALE));
            let label = text((LEFT - 6.0, at + 4.0), name).anchored(Anchor::End);
            items.push(Item::Text(label));
        }
        items.push(line(BOTTOM, GREY));
        for (place, name) in self.places.iter().enumerate() {
            let label = text((self.across(place), BOTTOM + 17.0), name);
            items.push(Item::Text(label.anchored(Anchor::Middle)));
        }
        let title = |at, content| text(at, content).anchored(Anchor::Middle).painted(GREY);
        let below = (f64::midpoint(LEFT, RIGHT), HEIGHT - 8.0);
        let beside = (14.0, f64::midpoint(TOP, BOTTOM));
        items.push(Item::Text(title(below, &self.across)));
        items.push(Item::Text(title(beside, &self.up).upwards()));
        items
    }

    /// A line with its points, their spread, and its entry of the legend.
    fn curve(&self, number: usize, y: &Axis, items: &mut Vec<Item>) {
        let curve = &self.curves[number];
        let paint = Paint::solid(COLOURS[number % COLOURS.len()]);
        let stroke = Stroke {
            dash: curve.foreign.then_some((5.0, 4.0)),
            ..Stroke::solid(paint, 1.8)
        };
        let mut points = Vec::new();
        let mut marks = Vec::new();
        let values = curve.values.iter().enumerate();
        for (place, &value) in values.filter(|(_, value)| value.is_finite()) {
            let centre = (self.across(place), height(y, value));
            points.push(centre);
            marks.push(Item::Circle {
                centre,
                radius: 3.0,
                look: Look::filled(paint),
            });
            let spread = curve.spreads.get(place).filter(|spread| spread.is_finite());
            if let Some(spread) = spread {
                // Beside each other, so that bars of several methods can be told apart.
                let x = centre.0 + 3.0 * (number as f64 - 0.5 * self.curves.len() as f64);
                let from = height(y, value - spread).min(BOTTOM);
                let to = height(y, value + spread).max(TOP);
                let faint = Paint {
                    alpha: 0.45,
                    ..paint
                };
                let look = Look::drawn(Stroke::solid(faint, 1.0));
                marks.push(Item::segment((x, from), (x, to), look));
            }
        }
        items.push(Item::path(
            vec![Polyline::open(points)],
            Look::drawn(stroke),
        ));
        items.extend(marks);
        let at = TOP + 8.0 + 18.0 * number as f64;
        let key = ((RIGHT + 14.0, at), (RIGHT + 36.0, at));
        items.push(Item::segment(key.0, key.1, Look::drawn(stroke)));
        let name = Text::new((RIGHT + 42.0, at + 4.0), SIZE, &curve.name);
        items.push(Item::Text(name));
    }
}

/// Where a value lies, from the top.
fn height(y: &Axis, value: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * y.place(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_method_higher_where_the_figure_is() {
        let curve = |name: &str, values: &[f64]| Curve {
            name: name.into(),
            values: values.to_vec(),
            ..Curve::default()
        };
        let svg = Curves {
            title: "a & b".into(),
            places: vec!["2 %".into(), "5 %".into()],
            curves: vec![
                curve("one", &[50.0, 60.0]),
                Curve {
                    foreign: true,
                    ..curve("two", &[f64::NAN, 55.0])
                },
            ],
            ..Curves::default()
        }
        .svg();
        assert!(svg.contains("a &amp; b") && svg.contains("stroke-dasharray"));
        let heights: Vec<f64> = svg
            .split("cy=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(heights.len(), 3);
        assert!(heights[0] > heights[2] && heights[2] > heights[1]);
        // Nothing at all is still a picture.
        assert!(Curves::default().svg().ends_with("</svg>\n"));
    }
}
