//! Figures of several methods over a few settings, as lines with a legend.

use crate::chart::Axis;
use crate::text::{esc, put};

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
const COLOURS: [&str; 8] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c959f",
];
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
/// Where the legend begins.
const RIGHT: f64 = 400.0;

impl Curves {
    /// The picture as an SVG file of its own.
    pub fn svg(&self) -> String {
        let (left, top, bottom) = (56.0, 36.0, HEIGHT - 46.0);
        let finite = |pick: fn(f64, f64) -> f64, from: f64| {
            self.curves
                .iter()
                .flat_map(|curve| &curve.values)
                .copied()
                .filter(|v| v.is_finite())
                .fold(from, pick)
        };
        let (low, high) = (
            finite(f64::min, f64::INFINITY),
            finite(f64::max, f64::NEG_INFINITY),
        );
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let room = 0.05 * (high - low);
        let y = Axis::over(low - room, high + room, 6.0);
        let px = |place: usize| {
            let steps = self.places.len().saturating_sub(1).max(1) as f64;
            left + 20.0 + (RIGHT - left - 40.0) * place as f64 / steps
        };
        let py = |value: f64| bottom - (bottom - top) * y.place(value);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             role=\"img\" aria-label=\"{0}\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"#1f2328\">\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
             <text x=\"12\" y=\"20\" font-weight=\"600\" font-size=\"13\">{0}</text>",
            esc(&self.title)
        );
        for (value, text) in &y.ticks {
            let at = py(*value);
            put!(
                out,
                "<path d=\"M{left} {at:.1}H{RIGHT}\" stroke=\"#d8dee4\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                left - 6.0,
                at + 4.0
            );
        }
        put!(
            out,
            "<path d=\"M{left} {bottom}H{RIGHT}\" stroke=\"#57606a\"/>"
        );
        for (place, name) in self.places.iter().enumerate() {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                px(place),
                bottom + 17.0,
                esc(name)
            );
        }
        put!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#57606a\">{}</text>\
             <text transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#57606a\">{}</text>",
            f64::midpoint(left, RIGHT),
            HEIGHT - 8.0,
            esc(&self.across),
            f64::midpoint(top, bottom),
            esc(&self.up)
        );
        for (number, curve) in self.curves.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let dash = if curve.foreign {
                " stroke-dasharray=\"5 4\""
            } else {
                ""
            };
            let mut path = String::new();
            let mut marks = String::new();
            for (place, &value) in curve
                .values
                .iter()
                .enumerate()
                .filter(|(_, value)| value.is_finite())
            {
                let (x, at) = (px(place), py(value));
                put!(
                    path,
                    "{}{x:.1} {at:.1}",
                    if path.is_empty() { 'M' } else { 'L' }
                );
                put!(
                    marks,
                    "<circle cx=\"{x:.1}\" cy=\"{at:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
                if let Some(spread) = curve.spreads.get(place).filter(|spread| spread.is_finite()) {
                    // Beside each other, so that bars of several methods can be told apart.
                    let x = x + 3.0 * (number as f64 - 0.5 * self.curves.len() as f64);
                    let (from, to) = (py(value - spread).min(bottom), py(value + spread).max(top));
                    put!(
                        marks,
                        "<path d=\"M{x:.1} {from:.1}V{to:.1}\" stroke=\"{colour}\" stroke-opacity=\"0.45\"/>"
                    );
                }
            }
            put!(
                out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/>{marks}"
            );
            let at = top + 8.0 + 18.0 * number as f64;
            put!(
                out,
                "<path d=\"M{:.1} {at:.1}h22\" stroke=\"{colour}\" stroke-width=\"1.8\"{dash}/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                RIGHT + 14.0,
                RIGHT + 42.0,
                at + 4.0,
                esc(&curve.name)
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
        assert!(Curves::default().svg().ends_with("</svg>"));
    }
}
