//! One panel: tinted areas, lines, axes, samples.

use super::contour::{self, Lattice};
use super::legend::SIZE as LABEL_SIZE;
use super::marks::{BOUNDARY, LEVEL, MARGIN, marker, radius, ring, tint};
use super::{Field, Panel, Point, shown};
use crate::axis::Axis;
use crate::letters::{LINE, fitted, room};
use crate::scene::{Anchor, GREY, Item, Look, Paint, Polyline, Pt, Stroke, Text};

/// Width and height of the plot itself.
pub(super) const PLOT: (f64, f64) = (290.0, 250.0);
pub(super) const TICK_SIZE: f64 = 11.5;
/// Length of a tick.
pub(super) const TICK: f64 = 4.0;
/// Opacity of the tint, laid on once beyond the boundary and once more beyond the margin.
const TINTS: [f64; 2] = [0.11, 0.1];
/// Opacity of the one tint of a class among several, or of the inside.
const TINT: f64 = 0.17;
/// Opacity added above each level of a number.
const STEP: f64 = 0.09;

/// The axis that a range is shown on.
pub(super) fn axis(range: (f64, f64)) -> Axis {
    let (low, high) = shown(range);
    Axis {
        low,
        high,
        ..Axis::over(low, high, 6.0)
    }
}

/// A tinted area.
struct Area {
    paint: Paint,
    outline: Vec<Polyline>,
}

/// Lines of one level and what is written on them.
struct Level {
    stroke: Stroke,
    name: String,
    lines: Vec<Polyline>,
}

/// A panel with the upper left corner of its plot.
pub(super) struct Plot<'a> {
    panel: &'a Panel,
    corner: Pt,
    x: Axis,
    y: Axis,
}

impl<'a> Plot<'a> {
    pub(super) fn new(panel: &'a Panel, corner: Pt) -> Self {
        Self {
            panel,
            corner,
            x: axis(panel.x_range),
            y: axis(panel.y_range),
        }
    }

    fn place(&self, p: Pt) -> Pt {
        (
            self.corner.0 + PLOT.0 * self.x.place(p.0),
            self.corner.1 + PLOT.1 * (1.0 - self.y.place(p.1)),
        )
    }

    /// Lines of the plane in the picture, less the points that no one could see.
    pub(super) fn placed(&self, lines: &[Polyline]) -> Vec<Polyline> {
        lines
            .iter()
            .map(|line| {
                let points = line.points.iter().map(|&p| self.place(p)).collect();
                let closed = line.closed;
                contour::simplified(&Polyline { points, closed }, 0.04)
            })
            .filter(|line| line.points.len() > 1)
            .collect()
    }

    pub(super) fn lattice(&self, values: &[f64]) -> Option<Lattice> {
        let proper = |r: (f64, f64)| (r.1 - r.0).is_finite() && r.0 < r.1;
        let Panel {
            x_range,
            y_range,
            grid,
            ..
        } = *self.panel;
        if !proper(x_range) || !proper(y_range) {
            return None;
        }
        Lattice::new(x_range, y_range, grid, values)
    }

    /// What the field shows; `None` where its values do not fit the grid.
    fn shapes(&self) -> Option<(Vec<Area>, Vec<Level>)> {
        let (mut areas, mut levels) = (Vec::new(), Vec::new());
        let mut area = |class: usize, alpha, outline: Vec<Polyline>| {
            let rgb = tint(class);
            let paint = Paint { rgb, alpha };
            let outline = self.placed(&outline);
            areas.push(Area { paint, outline });
        };
        let mut level = |stroke, name: &str, lines: Vec<Polyline>| {
            let lines = self.placed(&lines);
            let name = name.to_owned();
            levels.push(Level {
                stroke,
                name,
                lines,
            });
        };
        match &self.panel.field {
            Field::Sides { values, .. } => {
                let lattice = self.lattice(values)?;
                for (margin, alpha) in [0.0, 1.0].into_iter().zip(TINTS) {
                    area(0, alpha, lattice.below(-margin));
                    area(1, alpha, lattice.above(margin));
                }
                level(MARGIN, "−1", lattice.lines(-1.0));
                level(MARGIN, "+1", lattice.lines(1.0));
                level(BOUNDARY, "0", lattice.lines(0.0));
            }
            Field::Inside { values } => {
                let lattice = self.lattice(values)?;
                area(0, TINT, lattice.above(0.0));
                level(BOUNDARY, "0", lattice.lines(0.0));
            }
            Field::Regions { values, .. } => {
                for class in 0..values.len() {
                    let lattice = self.lattice(&lead(values, class)?)?;
                    area(class, TINT, lattice.above(0.0));
                    level(LEVEL, "", lattice.lines(0.0));
                }
            }
            Field::Levels { values } => {
                let lattice = self.lattice(values)?;
                let finite = || values.iter().copied().filter(|v| v.is_finite());
                let low = finite().fold(f64::INFINITY, f64::min);
                let high = finite().fold(f64::NEG_INFINITY, f64::max);
                if low < high {
                    for (value, name) in Axis::over(low, high, 8.0).ticks {
                        area(0, STEP, lattice.above(value));
                        level(LEVEL, &name, lattice.lines(value));
                    }
                }
            }
        }
        levels.retain(|level| !level.lines.is_empty());
        areas.retain(|area| !area.outline.is_empty());
        Some((areas, levels))
    }

    pub(super) fn draw(&self, tick_room: f64, items: &mut Vec<Item>) {
        let panel = self.panel;
        let shapes = (!panel.field.is_empty()).then(|| self.shapes());
        let unfit = matches!(shapes, Some(None));
        let (areas, levels) = shapes.flatten().unwrap_or_default();
        for Area { paint, outline } in areas {
            items.push(Item::path(outline, Look::filled(paint)));
        }
        self.axes(tick_room, items);
        for level in &levels {
            items.push(Item::path(level.lines.clone(), Look::drawn(level.stroke)));
        }
        let drawn: Vec<&Point> = panel.points.iter().filter(|p| panel.is_shown(p)).collect();
        let radius = radius(drawn.len());
        for p in &drawn {
            items.push(marker(self.place((p.x, p.y)), radius, p.class));
        }
        // After all marks, so that none hides a ring.
        for p in drawn.iter().filter(|p| p.support) {
            items.push(ring(self.place((p.x, p.y)), radius));
        }
        let samples: Vec<Pt> = drawn.iter().map(|p| self.place((p.x, p.y))).collect();
        self.level_names(&levels, &samples, items);
        if unfit {
            let at = (self.corner.0 + PLOT.0 / 2.0, self.corner.1 + PLOT.1 / 2.0);
            let message = Text::new(at, LABEL_SIZE, "decision values do not fit the grid");
            items.push(Item::Text(message.anchored(Anchor::Middle).with_halo()));
        }
    }

    fn axes(&self, tick_room: f64, items: &mut Vec<Item>) {
        let (left, top) = self.corner;
        let bottom = top + PLOT.1;
        let thin = Look::drawn(Stroke::solid(GREY, 1.0));
        let outline = Polyline::rectangle(self.corner, PLOT);
        items.push(Item::path(vec![outline], thin.clone()));
        let sharp = |v: f64| (v - 0.5).round() + 0.5;
        let number = |at, text: &str| Text::new(at, TICK_SIZE, text).painted(GREY);
        let mut marks = Vec::new();
        let mut free_from = f64::NEG_INFINITY;
        for (v, label) in &self.x.ticks {
            let x = sharp(self.place((*v, self.y.low)).0);
            marks.push(Polyline::open(vec![(x, bottom), (x, bottom + TICK)]));
            // Long numbers: better some marks without label than labels on top of each other.
            let half = room(label, TICK_SIZE, false) / 2.0;
            if x - half < free_from {
                continue;
            }
            free_from = x + half + 4.0;
            let text = number((x, bottom + TICK + 2.0 + TICK_SIZE), label);
            items.push(Item::Text(text.anchored(Anchor::Middle)));
        }
        for (v, label) in &self.y.ticks {
            let y = sharp(self.place((self.x.low, *v)).1);
            marks.push(Polyline::open(vec![(left - TICK, y), (left, y)]));
            let text = number((left - TICK - 3.0, y + 0.36 * TICK_SIZE), label);
            items.push(Item::Text(text.anchored(Anchor::End)));
        }
        items.push(Item::path(marks, thin));
        let name = |at, name: &str, width: f64| {
            let name = fitted(name, LABEL_SIZE, false, width);
            Text::new(at, LABEL_SIZE, name).anchored(Anchor::Middle)
        };
        let below = bottom + TICK + 3.0 + TICK_SIZE * LINE + LABEL_SIZE;
        let at = (left + PLOT.0 / 2.0, below);
        items.push(Item::Text(name(at, &self.panel.x_label, PLOT.0)));
        let beside = left - TICK - 3.0 - tick_room - 8.0;
        let at = (beside, top + PLOT.1 / 2.0);
        let text = name(at, &self.panel.y_label, PLOT.1).upwards();
        items.push(Item::Text(text));
    }

    /// Writes its level on every line, where samples, other lines and the frame leave most room; not at all
    /// where there is none, as the legend tells the same.
    fn level_names(&self, levels: &[Level], samples: &[Pt], items: &mut Vec<Item>) {
        const APART: f64 = 5.0;
        const NEEDED: f64 = 11.0;
        const AMPLE: f64 = 30.0;
        let named = levels.iter().filter(|level| !level.name.is_empty());
        let spots: Vec<(&str, Vec<(Pt, f64)>)> = named
            .map(|Level { name, lines, .. }| {
                let all = lines.iter().flat_map(|line| spaced(line, APART));
                (name.as_str(), all.collect())
            })
            .collect();
        let mut taken: Vec<Pt> = Vec::new();
        for (number, (name, own)) in spots.iter().enumerate() {
            let others = || {
                let lines = spots.iter().enumerate().filter(|spot| spot.0 != number);
                lines
                    .flat_map(|(_, spot)| spot.1.iter().map(|spot| &spot.0))
                    .chain(samples)
                    .chain(&taken)
            };
            let free = |p: &Pt| {
                let (left, top) = self.corner;
                let across = (p.0 - left).min(left + PLOT.0 - p.0);
                let along = (p.1 - top).min(top + PLOT.1 - p.1);
                // A label is wider than high.
                let frame = (across / 1.3).min(along);
                others()
                    .map(|q| ((p.0 - q.0) / 1.3).hypot(p.1 - q.1))
                    .fold(frame.min(AMPLE), f64::min)
            };
            let best = own
                .iter()
                .map(|(p, steep)| (free(p), steep, *p))
                .filter(|(room, _, _)| *room >= NEEDED)
                // Rather where the line is steep: beside a level dash a minus sign looks like another dash.
                .max_by(|a, b| (a.0 * (1.0 + a.1)).total_cmp(&(b.0 * (1.0 + b.1))));
            if let Some((_, _, at)) = best {
                taken.push(at);
                let text = Text::new((at.0, at.1 + 0.36 * TICK_SIZE), TICK_SIZE, *name);
                items.push(Item::Text(text.anchored(Anchor::Middle).with_halo()));
            }
        }
    }
}

/// How far a class is ahead of the best other one, at each node; `None` where the classes have not as many values.
fn lead(values: &[Vec<f64>], class: usize) -> Option<Vec<f64>> {
    let own = &values[class];
    if values.iter().any(|other| other.len() != own.len()) {
        return None;
    }
    let best_other = |node: usize| {
        let others = values.iter().enumerate().filter(|(k, _)| *k != class);
        others
            .map(|(_, other)| other[node])
            .fold(f64::NEG_INFINITY, f64::max)
    };
    Some(
        (0..own.len())
            .map(|node| own[node] - best_other(node))
            .collect(),
    )
}

/// Points along a polyline, not more than `step` apart, with its steepness there from 0 to 1.
fn spaced(line: &Polyline, step: f64) -> Vec<(Pt, f64)> {
    let mut points = Vec::new();
    for w in line.points.windows(2) {
        let (a, b) = (w[0], w[1]);
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let mut done = 0.0;
        while done < length {
            let t = done / length;
            let p = (a.0 + t * (b.0 - a.0), a.1 + t * (b.1 - a.1));
            points.push((p, (b.1 - a.1).abs() / length));
            done += step;
        }
    }
    points
}
