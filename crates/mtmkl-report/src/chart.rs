//! Line charts inside the page. Small on purpose: they keep readable letters on a phone.

use crate::axis::Axis;
use crate::scene::{Item, Look, Place, Polyline, Scene, Text};

/// Width of the drawing in its own units; about that many pixels on a phone.
const WIDTH: f64 = 380.0;
/// Height of the drawing.
const HEIGHT: f64 = 260.0;
/// With more points than this a line has no markers.
const MARKED: usize = 40;

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

/// Where the lines are drawn, and where a value lies there.
struct Area<'a> {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    chart: &'a Chart<'a>,
}

impl Area<'_> {
    fn across(&self, v: f64) -> f64 {
        self.left + (self.right - self.left) * self.chart.x.place(v)
    }

    fn up(&self, v: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.chart.y.place(v)
    }
}

fn class(name: &str) -> Look {
    Look::Class(name.to_owned())
}

impl Chart<'_> {
    /// The chart as SVG.
    pub(crate) fn svg(&self) -> String {
        let ticks = self.y.ticks.iter();
        let widest = ticks.map(|(_, text)| text.chars().count()).max();
        let area = Area {
            left: 26.0 + 6.6 * widest.unwrap_or(1) as f64,
            right: WIDTH - 12.0,
            top: 10.0,
            bottom: HEIGHT - 42.0,
            chart: self,
        };
        let mut items = self.axes(&area);
        // Labels after all lines, so that no line runs over them.
        let mut labels = Vec::new();
        for line in &self.lines {
            self.line(line, &area, &mut items);
            labels.extend(self.label(line, &area));
        }
        items.extend(labels);
        let scene = Scene {
            width: WIDTH,
            height: HEIGHT,
            place: Place::Page {
                attributes: "class=\"chart\"".to_owned(),
                label: self.alt.clone(),
            },
            items,
        };
        scene.svg()
    }

    fn axes(&self, area: &Area<'_>) -> Vec<Item> {
        let Area {
            left,
            right,
            top,
            bottom,
            ..
        } = *area;
        let size = (right - left + 5.0, bottom - top + 5.0);
        let mut items = vec![Item::Clip {
            name: self.id,
            area: Polyline::rectangle((left, top - 5.0), size),
        }];
        let across = |y: f64, name: &str| Item::segment((left, y), (right, y), class(name));
        for (v, text) in &self.y.ticks {
            let y = area.up(*v);
            items.push(across(y, "grid"));
            let at = (left - 6.0, y + 4.0);
            items.push(Item::Text(Text::of_class(at, "end", text)));
        }
        items.push(across(bottom, "axis"));
        for (v, text) in &self.x.ticks {
            let x = area.across(*v);
            let to = (x, bottom + 4.0);
            items.push(Item::segment((x, bottom), to, class("axis")));
            let at = (x, bottom + 17.0);
            items.push(Item::Text(Text::of_class(at, "mid", text)));
        }
        let below = (f64::midpoint(left, right), HEIGHT - 6.0);
        let beside = (12.0, f64::midpoint(top, bottom));
        let title = |at, text| Text::of_class(at, "mid title", text);
        items.push(Item::Text(title(below, self.across)));
        items.push(Item::Text(title(beside, self.up).upwards()));
        if let Some((v, label)) = &self.level {
            let y = area.up(*v);
            items.push(across(y, "level"));
            items.push(Item::Text(Text::of_class(
                (left + 6.0, y - 5.0),
                "halo",
                label,
            )));
        }
        items
    }

    fn is_inside(&self, point: &(f64, f64)) -> bool {
        point.1.is_finite() && (-0.02..=1.02).contains(&self.y.place(point.1))
    }

    /// A line, interrupted where a point is not finite, and its markers.
    fn line(&self, line: &Line<'_>, area: &Area<'_>, items: &mut Vec<Item>) {
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let place = |point: &(f64, f64)| {
            // Far outside is as good as just outside, and renderers dislike huge coordinates.
            let y = area.up(point.1).clamp(-2.0 * HEIGHT, 3.0 * HEIGHT);
            (area.across(point.0), y)
        };
        let pieces = line
            .points
            .split(|point| !finite(&point))
            .filter(|piece| !piece.is_empty())
            .map(|piece| Polyline::open(piece.iter().map(place).collect()));
        items.push(Item::Path {
            lines: pieces.collect(),
            look: Look::Class(format!("line {}", line.class)),
            clip: Some(self.id),
        });
        if line.points.len() <= MARKED {
            let shown = line.points.iter().filter(|point| self.is_inside(point));
            items.extend(shown.map(|point| Item::Circle {
                centre: place(point),
                radius: 3.0,
                look: class(line.class),
            }));
        }
    }

    /// The name of a line beside its first point.
    fn label(&self, line: &Line<'_>, area: &Area<'_>) -> Option<Item> {
        let (x, y) = line.points.iter().find(|point| self.is_inside(point))?;
        if line.label.is_empty() {
            return None;
        }
        // A label at the right edge would leave the drawing.
        let late = self.x.place(*x) > 0.55;
        let (side, x) = if late {
            ("end halo", area.across(*x) - 8.0)
        } else {
            ("halo", area.across(*x) + 8.0)
        };
        let y = area.up(*y) + if line.above { -7.0 } else { 16.0 };
        let at = (x, y.clamp(area.top + 8.0, area.bottom - 4.0));
        let class = format!("{side} {}", line.class);
        Some(Item::Text(Text::of_class(at, class, line.label)))
    }
}
