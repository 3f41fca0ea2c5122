//! Line charts as inline SVG. Small on purpose: they keep readable letters on a phone.

use crate::text::{esc, put};

/// Width of the drawing in its own units; about that many pixels on a phone.
const WIDTH: f64 = 380.0;
/// Height of the drawing.
const HEIGHT: f64 = 260.0;
/// With more points than this a line has no markers.
const MARKED: usize = 40;

/// One axis: its range and where its ticks are.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end; above `low`.
    pub(crate) high: f64,
    /// Place and label of each tick.
    pub(crate) ticks: Vec<(f64, String)>,
}

/// A line with its label.
pub(crate) struct Line<'a> {
    /// Class in the style sheet.
    pub(crate) class: &'static str,
    /// Points; those that are not finite interrupt the line.
    pub(crate) points: &'a [(f64, f64)],
    /// What stands beside it; empty for none.
    pub(crate) label: &'static str,
    /// Whether the label stands above the line's first point or below.
    pub(crate) above: bool,
}

/// A chart.
pub(crate) struct Chart<'a> {
    /// For those who cannot see it.
    pub(crate) alt: String,
    /// Title of the horizontal axis.
    pub(crate) across: &'static str,
    /// Title of the vertical axis.
    pub(crate) up: &'static str,
    /// Horizontal axis.
    pub(crate) x: Axis,
    /// Vertical axis.
    pub(crate) y: Axis,
    /// Lines.
    pub(crate) lines: Vec<Line<'a>>,
    /// A level to compare with, and its label.
    pub(crate) level: Option<(f64, String)>,
    /// Name that no other chart of the page has.
    pub(crate) id: &'static str,
}

/// Decimals that a step of this size needs.
fn decimals(step: f64) -> usize {
    let mut needed = 0;
    let mut scaled = step;
    // A step is 1, 2 or 5 times a power of ten, up to rounding.
    while needed < 15 && (scaled - scaled.round()).abs() > 1e-6 * scaled.abs() {
        scaled *= 10.0;
        needed += 1;
    }
    needed
}

/// The step 1, 2 or 5 times a power of ten that cuts `range` into at most `most` parts.
fn nice_step(range: f64, most: f64) -> f64 {
    let rough = range / most;
    let unit = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * unit)
        .find(|step| *step >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

impl Axis {
    /// An axis over `low` to `high`, as they are, with round ticks inside.
    pub(crate) fn over(low: f64, high: f64, most: f64) -> Self {
        let (low, high) = if high - low > 1e-12 * low.abs().max(high.abs()).max(1e-300) {
            (low, high)
        } else {
            // One value only: some room around it.
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.05 };
            (low - room, high + room)
        };
        let step = nice_step(high - low, most);
        let places = decimals(step);
        let first = (low / step - 1e-9).ceil();
        let large = low.abs().max(high.abs()) >= 1e6;
        let ticks = (0..=32)
            .map(|i| (first + f64::from(i)) * step)
            .take_while(|v| *v <= high + 1e-9 * step)
            .map(|v| {
                // −0 would print its sign.
                let v = if v.abs() < 1e-9 * step { 0.0 } else { v };
                let text = if large {
                    format!("{v:e}")
                } else {
                    format!("{v:.places$}")
                };
                (v, text.replace('-', "\u{2212}"))
            })
            .collect();
        Self { low, high, ticks }
    }

    /// An axis that counts from `first` to `last`.
    pub(crate) fn counting(first: f64, last: f64) -> Self {
        if last <= first {
            return Self {
                low: first - 1.0,
                high: first + 1.0,
                ticks: vec![(first, format!("{first:.0}"))],
            };
        }
        let mut axis = Self::over(first, last, 8.0);
        axis.ticks.retain(|(v, _)| v.fract() == 0.0);
        for (v, label) in &mut axis.ticks {
            *label = format!("{v:.0}");
        }
        axis
    }

    /// Where a value lies, 0 to 1.
    pub(crate) fn place(&self, v: f64) -> f64 {
        (v - self.low) / (self.high - self.low)
    }
}

impl Chart<'_> {
    /// The chart as SVG.
    pub(crate) fn svg(&self) -> String {
        let widest = self
            .y
            .ticks
            .iter()
            .map(|(_, text)| text.chars().count())
            .max()
            .unwrap_or(1);
        let (left, right) = (26.0 + 6.6 * widest as f64, WIDTH - 12.0);
        let (top, bottom) = (10.0, HEIGHT - 42.0);
        let px = |v: f64| left + (right - left) * self.x.place(v);
        let py = |v: f64| bottom - (bottom - top) * self.y.place(v);
        let mut out = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\
             <clipPath id=\"{}\"><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>",
            esc(&self.alt),
            self.id,
            top - 5.0,
            right - left + 5.0,
            bottom - top + 5.0
        );
        for (v, text) in &self.y.ticks {
            let y = py(*v);
            put!(
                out,
                "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/><text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        put!(
            out,
            "<path class=\"axis\" d=\"M{left:.1} {bottom:.1}H{right:.1}\"/>"
        );
        for (v, text) in &self.x.ticks {
            let x = px(*v);
            put!(
                out,
                "<path class=\"axis\" d=\"M{x:.1} {bottom:.1}v4\"/><text class=\"mid\" x=\"{x:.1}\" y=\"{:.1}\">{text}</text>",
                bottom + 17.0
            );
        }
        put!(
            out,
            "<text class=\"mid title\" x=\"{:.1}\" y=\"{:.1}\">{}</text><text class=\"mid title\" transform=\"translate(12 {:.1}) rotate(-90)\">{}</text>",
            f64::midpoint(left, right),
            HEIGHT - 6.0,
            self.across,
            f64::midpoint(top, bottom),
            self.up
        );
        if let Some((v, label)) = &self.level {
            let y = py(*v);
            put!(
                out,
                "<path class=\"level\" d=\"M{left:.1} {y:.1}H{right:.1}\"/><text class=\"halo\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                left + 6.0,
                y - 5.0
            );
        }
        // Labels after all lines, so that no line runs over them.
        let mut labels = String::new();
        for line in &self.lines {
            let inside =
                |p: &&(f64, f64)| p.1.is_finite() && (-0.02..=1.02).contains(&self.y.place(p.1));
            put!(
                out,
                "<path class=\"line {}\" clip-path=\"url(#{})\" d=\"{}\"/>",
                line.class,
                self.id,
                path(line.points, px, py)
            );
            if line.points.len() <= MARKED {
                for (x, y) in line.points.iter().filter(inside) {
                    put!(
                        out,
                        "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>",
                        line.class,
                        px(*x),
                        py(*y)
                    );
                }
            }
            if let Some((x, y)) = line
                .points
                .iter()
                .find(inside)
                .filter(|_| !line.label.is_empty())
            {
                // A label at the right edge would leave the drawing.
                let late = self.x.place(*x) > 0.55;
                let (class, x) = if late {
                    ("end halo", px(*x) - 8.0)
                } else {
                    ("halo", px(*x) + 8.0)
                };
                let y = if line.above {
                    py(*y) - 7.0
                } else {
                    py(*y) + 16.0
                };
                put!(
                    labels,
                    "<text class=\"{class} {}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                    line.class,
                    y.clamp(top + 8.0, bottom - 4.0),
                    line.label
                );
            }
        }
        out.push_str(&labels);
        out.push_str("</svg>");
        out
    }
}

/// A path through the points, interrupted where one is not finite.
fn path(points: &[(f64, f64)], px: impl Fn(f64) -> f64, py: impl Fn(f64) -> f64) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for &(x, y) in points {
        if x.is_finite() && y.is_finite() {
            // Far outside is as good as just outside, and renderers dislike huge coordinates.
            let y = py(y).clamp(-2.0 * HEIGHT, 3.0 * HEIGHT);
            put!(d, "{}{:.1} {y:.1}", if pen_down { 'L' } else { 'M' }, px(x));
            pen_down = true;
        } else {
            pen_down = false;
        }
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let labels = |a: &Axis| -> Vec<String> { a.ticks.iter().map(|t| t.1.clone()).collect() };
        assert_eq!(labels(&Axis::over(0.42, 0.98, 4.0)), ["0.6", "0.8"]);
        assert_eq!(
            labels(&Axis::over(-0.1, 0.1, 4.0)),
            ["−0.10", "−0.05", "0.00", "0.05", "0.10"]
        );
        assert_eq!(labels(&Axis::counting(1.0, 1.0)), ["1"]);
        assert_eq!(labels(&Axis::counting(1.0, 4.0)), ["1", "2", "3", "4"]);
        let one = Axis::over(5.0, 5.0, 4.0);
        assert!(one.low < 5.0 && one.high > 5.0 && !one.ticks.is_empty());
        assert!(
            Axis::over(1e9, 3e9, 4.0)
                .ticks
                .iter()
                .all(|t| t.1.len() <= 5)
        );
    }
}
