//! Pictures of two-dimensional classifiers: samples, support vectors, decision boundary and margins.
//!
//! One panel per task, side by side, as [`svg`] or as [`png`]. Both are written from the same list of shapes
//! and texts and so show the same thing. The SVG is a document of its own without scripts, ids or style
//! rules; the PNG has twice its resolution and needs no fonts of the system.
//!
//! The samples of the two classes differ in shape and in colour (blue discs, orange triangles; told apart
//! also by colour-blind readers), support vectors are ringed, the boundary is a solid line, the margins are
//! dashed, and the two sides of the boundary are tinted in the colours of their classes.

mod contour;
mod font;
mod glyphs;
mod raster;
mod scene;

use contour::{Lattice, Polyline, Pt};
use scene::{Anchor, Item, Paint, Scene, Stroke, Text};

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The first feature.
    pub x: f64,
    /// The second feature.
    pub y: f64,
    /// Whether it belongs to the class +1.
    pub positive: bool,
    /// Whether it is a support vector.
    pub support: bool,
}

/// One classifier with its samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What is written above it, for instance the name of the task.
    pub title: String,
    /// Name of the first feature.
    pub x_label: String,
    /// Name of the second feature.
    pub y_label: String,
    /// Names of the classes -1 and +1.
    pub classes: [String; 2],
    /// The samples. Those outside the ranges, or without finite coordinates, are not drawn; the
    /// description in the SVG tells how many there are.
    pub points: Vec<Point>,
    /// Lowest and highest value of the first feature that is shown.
    pub x_range: (f64, f64),
    /// Lowest and highest value of the second feature that is shown.
    pub y_range: (f64, f64),
    /// Numbers of grid nodes along x and along y, which include both ends of the ranges; at least two each.
    pub grid: (usize, usize),
    /// Decision values at the nodes in the order of [`Panel::nodes`]; empty for samples alone. Where a
    /// value is not finite nothing is drawn. When there are more or fewer values than nodes, or a range is
    /// empty, none is drawn and the panel says so.
    pub values: Vec<f64>,
}

impl Panel {
    /// The nodes of the grid in the order of [`Panel::values`]: row by row from the lowest y, each row from
    /// the lowest x.
    pub fn nodes(&self) -> impl Iterator<Item = (f64, f64)> {
        contour::nodes_of(self.y_range, self.grid.1)
            .flat_map(|y| contour::nodes_of(self.x_range, self.grid.0).map(move |x| (x, y)))
    }

    fn lattice(&self) -> Option<Lattice> {
        let proper = |r: (f64, f64)| (r.1 - r.0).is_finite() && r.0 < r.1;
        if !proper(self.x_range) || !proper(self.y_range) {
            return None;
        }
        Lattice::new(self.x_range, self.y_range, self.grid, &self.values)
    }

    fn is_shown(&self, p: &Point) -> bool {
        let within = |v: f64, r: (f64, f64)| r.0 <= v && v <= r.1;
        within(p.x, shown(self.x_range)) && within(p.y, shown(self.y_range))
    }
}

/// The range of the finite values among `values`, widened on both sides by `share` of its length: room
/// around the samples. (0, 1) without any finite value.
pub fn padded_range(values: impl IntoIterator<Item = f64>, share: f64) -> (f64, f64) {
    let ends = values
        .into_iter()
        .filter(|v| v.is_finite())
        .fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(a, b)| (a.min(v), b.max(v))))
        });
    let (low, high) = shown(ends.unwrap_or((0.0, 1.0)));
    let pad = share * (high - low);
    (low - pad, high + pad)
}

/// The range an axis shows: a range without length gets one, as an axis cannot do without.
fn shown(range: (f64, f64)) -> (f64, f64) {
    let (low, high) = range;
    if (high - low).is_finite() && low < high {
        range
    } else if low.is_finite() && low == high {
        // Also a large number must differ from its neighbours.
        let half = (low.abs() * 1e-3).max(0.5);
        (low - half, low + half)
    } else {
        (0.0, 1.0)
    }
}

/// The panels as an SVG document, three to a row, under a common title (none if empty).
pub fn svg(panels: &[Panel], title: &str) -> String {
    scene(panels, title).svg()
}

/// The same picture as [`svg`] as a PNG file, with two pixels per CSS pixel of the SVG.
///
/// Text is drawn with a built-in font that has the Latin and Greek letters and common signs; other
/// characters are shown as empty boxes.
pub fn png(panels: &[Panel], title: &str) -> Vec<u8> {
    raster::png(&scene(panels, title))
}

const COLUMNS: usize = 3;
const PLOT: (f64, f64) = (290.0, 250.0);
/// Around the whole picture.
const MARGIN: f64 = 16.0;
/// Between panels.
const GAP: (f64, f64) = (24.0, 26.0);
const TITLE_SIZE: f64 = 17.0;
const PANEL_TITLE_SIZE: f64 = 14.0;
const LABEL_SIZE: f64 = 12.5;
const TICK_SIZE: f64 = 11.5;
const TICK: f64 = 4.0;
/// Height of a line of text, in font sizes.
const LINE: f64 = 1.4;
/// The reader's system font may be wider than the built-in one, by which text is measured; the widest of
/// the common ones (DejaVu Sans, Verdana) by this much, regular and bold.
const SLACK: [f64; 2] = [1.18, 1.26];

// Of the palette by Okabe and Ito: told apart with every common colour blindness.
const BLUE: [u8; 3] = [0, 114, 178];
const ORANGE: [u8; 3] = [230, 159, 0];
/// A darker orange for the marks, which must stand out from the tint.
const VERMILION: [u8; 3] = [213, 94, 0];
const INK: Paint = Paint::solid([31, 41, 51]);
const GREY: Paint = Paint::solid([82, 96, 109]);
const WHITE: Paint = Paint::solid([255; 3]);
/// Opacity of the tint, laid on once beyond the boundary and once more beyond the margin.
const TINTS: [f64; 2] = [0.11, 0.1];
const MARGIN_DASH: (f64, f64) = (5.0, 4.5);

fn tint_rgb(positive: bool) -> [u8; 3] {
    if positive { ORANGE } else { BLUE }
}

fn marker_rgb(positive: bool) -> [u8; 3] {
    if positive { VERMILION } else { BLUE }
}

fn stroke(paint: Paint, width: f64) -> Stroke {
    Stroke {
        paint,
        width,
        dash: None,
    }
}

/// Dark and thick enough to stand out from every tint; `f = 0` is solid, the margins are dashed.
fn contour_stroke(level: f64) -> Stroke {
    if level == 0.0 {
        stroke(INK, 2.0)
    } else {
        Stroke {
            dash: Some(MARGIN_DASH),
            ..stroke(INK, 1.3)
        }
    }
}

fn room(text: &str, size: f64, bold: bool) -> f64 {
    SLACK[usize::from(bold)] * font::width(text, size, bold)
}

/// The text, or its beginning with an ellipsis when it is wider than `width`.
fn fitted(text: &str, size: f64, bold: bool, width: f64) -> String {
    if room(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut short: Vec<char> = text.chars().collect();
    while short.pop().is_some() {
        let candidate: String = short.iter().chain(&['…']).collect();
        if room(&candidate, size, bold) <= width {
            return candidate;
        }
    }
    String::new()
}

/// The text in at most `most` lines of at most `width`, broken between words; bold.
fn wrapped(text: &str, size: f64, width: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let full = lines.len() >= most;
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) if full || room(&longer, size, true) <= width => {
                *line = longer;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
        .iter()
        .map(|line| fitted(line, size, true, width))
        .collect()
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Polyline {
    Polyline {
        points: vec![
            (x, y),
            (x + width, y),
            (x + width, y + height),
            (x, y + height),
        ],
        closed: true,
    }
}

fn segment(a: Pt, b: Pt) -> Vec<Polyline> {
    vec![Polyline {
        points: vec![a, b],
        closed: false,
    }]
}

/// Text in the common style, to be changed where it differs.
fn text(at: Pt, size: f64, content: impl Into<String>) -> Text {
    Text {
        at,
        size,
        bold: false,
        anchor: Anchor::Start,
        upwards: false,
        paint: INK,
        halo: false,
        content: content.into(),
    }
}

/// Marks of an axis: values and how they are written.
fn ticks(range: (f64, f64)) -> Vec<(f64, String)> {
    let (low, high) = range;
    let rough = high / 6.0 - low / 6.0;
    let power = rough.log10().floor();
    let base = 10f64.powf(power);
    let factor = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|f| f * base >= rough * 0.999)
        .unwrap_or(10.0);
    let step = factor * base;
    // Slightly beyond the ends, so that rounding does not lose a mark that lies on one.
    let slip = 1e-9 * (high - low);
    let first = ((low - slip) / step).ceil();
    let greatest = low.abs().max(high.abs());
    let plain = (1e-3..1e6).contains(&greatest);
    let decimals = (0..=9)
        .find(|&d| {
            let scaled = step * 10f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled
        })
        .unwrap_or(9);
    (0..12)
        .map(|k| (first + f64::from(k)) * step)
        .take_while(|&v| v <= high + slip)
        .map(|v| {
            let v = if v.abs() < step * 1e-6 { 0.0 } else { v };
            let digits = usize::try_from(decimals).unwrap_or_default();
            let written = if plain {
                format!("{v:.digits$}")
            } else if v == 0.0 {
                "0".to_owned()
            } else {
                format!("{:e}", format!("{v:.3e}").parse().unwrap_or(v))
            };
            (v, written.replace('-', "−"))
        })
        .collect()
}

/// The mark of a sample of either class.
fn marker(at: Pt, radius: f64, positive: bool) -> Item {
    // A white rim keeps marks that overlap apart.
    let rim = Some(stroke(WHITE, 0.8));
    let fill = Some(Paint::solid(marker_rgb(positive)));
    if positive {
        // Wider than the disc by what makes them look equally large.
        let r = 1.32 * radius;
        let points = vec![
            (at.0, at.1 - r),
            (at.0 + 0.9 * r, at.1 + 0.62 * r),
            (at.0 - 0.9 * r, at.1 + 0.62 * r),
        ];
        Item::Path {
            lines: vec![Polyline {
                points,
                closed: true,
            }],
            fill,
            stroke: rim,
        }
    } else {
        Item::Circle {
            centre: at,
            radius,
            fill,
            stroke: rim,
        }
    }
}

fn ring(at: Pt, radius: f64) -> Item {
    // Around small marks, of which there are many, a finer line: rings that overlap must not become a blot.
    let fine = (radius / 3.6).min(1.0);
    let paint = Paint {
        alpha: fine * fine,
        ..INK
    };
    Item::Circle {
        centre: at,
        radius: radius + 2.6 * fine,
        fill: None,
        stroke: Some(stroke(paint, 1.2 * fine)),
    }
}

/// Marks shrink when there are many of them.
fn marker_radius(count: usize) -> f64 {
    match count {
        0..=150 => 3.6,
        151..=400 => 3.0,
        401..=1500 => 2.4,
        _ => 1.8,
    }
}

/// An entry of a legend: what it shows, and the text beside it.
#[derive(Clone)]
enum Key {
    Class(bool),
    Ring,
    Line(f64),
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
    fn draw(&self, x: f64, y: f64, items: &mut Vec<Item>) {
        let width = self.width();
        match *self {
            Self::Class(positive) => items.push(marker((x + width / 2.0, y), 4.2, positive)),
            Self::Ring => items.push(ring((x + width / 2.0, y), 3.6)),
            Self::Line(level) => items.push(Item::Path {
                lines: segment((x + 1.0, y), (x + width - 1.0, y)),
                fill: None,
                stroke: Some(contour_stroke(level)),
            }),
        }
    }
}

/// Entries of a legend with their places relative to its upper left corner.
struct Legend {
    entries: Vec<(Key, String, Pt)>,
    height: f64,
}

/// Lays the entries out in as many rows as the width asks for.
fn legend(entries: Vec<(Key, String)>, width: f64) -> Legend {
    const BESIDE: f64 = 6.0;
    const BETWEEN: f64 = 16.0;
    let row = LABEL_SIZE * LINE;
    let (mut x, mut y) = (0.0, 0.0);
    let mut placed = Vec::new();
    for (key, name) in entries {
        let name = fitted(&name, LABEL_SIZE, false, width - key.width() - BESIDE);
        let wide = key.width() + BESIDE + room(&name, LABEL_SIZE, false);
        if x > 0.0 && x + wide > width {
            (x, y) = (0.0, y + row);
        }
        placed.push((key, name, (x, y)));
        x += wide + BETWEEN;
    }
    Legend {
        height: if placed.is_empty() { 0.0 } else { y + row },
        entries: placed,
    }
}

impl Legend {
    fn draw(&self, left: f64, top: f64, items: &mut Vec<Item>) {
        for (key, name, at) in &self.entries {
            let (x, y) = (left + at.0, top + at.1 + LABEL_SIZE * LINE / 2.0);
            key.draw(x, y, items);
            let at = (x + key.width() + 6.0, y + 0.35 * LABEL_SIZE);
            items.push(Item::Text(text(at, LABEL_SIZE, name.as_str())));
        }
    }
}

/// The name of a class with the sign of its decision values, unless that is its name already.
fn class_name(panel: &Panel, positive: bool) -> String {
    let name = panel.classes[usize::from(positive)].trim();
    let sign = if positive { "+1" } else { "−1" };
    match name.replace('-', "−").as_str() {
        "" | "−1" | "+1" | "1" => sign.to_owned(),
        _ => format!("{name} ({sign})"),
    }
}

fn class_legend(panel: &Panel, width: f64) -> Legend {
    let entry = |positive| (Key::Class(positive), class_name(panel, positive));
    legend(vec![entry(false), entry(true)], width)
}

/// What a panel shows, in words.
fn summary(panel: &Panel) -> String {
    let counted =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let of = |positive: bool| {
        let n = panel
            .points
            .iter()
            .filter(|p| p.positive == positive)
            .count();
        format!("{n} {}", class_name(panel, positive))
    };
    let support = panel.points.iter().filter(|p| p.support).count();
    let hidden = panel.points.iter().filter(|p| !panel.is_shown(p)).count();
    let title = panel.title.trim();
    let mut s = format!(
        "{}: {} ({}, {}), {}",
        if title.is_empty() { "Panel" } else { title },
        counted(panel.points.len(), "sample", "samples"),
        of(false),
        of(true),
        counted(support, "support vector", "support vectors"),
    );
    if hidden > 0 {
        s = format!("{s}, {hidden} outside the picture");
    }
    s
}

fn scene(panels: &[Panel], title: &str) -> Scene {
    let columns = panels.len().clamp(1, COLUMNS);
    // One width of tick labels for all panels: their frames line up across rows.
    let tick_room = panels
        .iter()
        .flat_map(|p| ticks(shown(p.y_range)))
        .map(|(_, label)| room(&label, TICK_SIZE, false))
        .fold(0.0, f64::max)
        .ceil();
    let left = LABEL_SIZE * LINE + 4.0 + tick_room + TICK + 3.0;
    let cell = left + PLOT.0;
    let inner = columns as f64 * (cell + GAP.0) - GAP.0;
    let mut items = Vec::new();
    let mut y = MARGIN;

    for line in wrapped(title, TITLE_SIZE, inner, 4) {
        items.push(Item::Text(Text {
            bold: true,
            ..text((MARGIN, y + TITLE_SIZE), TITLE_SIZE, line)
        }));
        y += TITLE_SIZE * LINE;
    }
    if y > MARGIN {
        y += 8.0;
    }

    let below = TICK + 3.0 + TICK_SIZE * LINE + LABEL_SIZE * LINE;
    for row in panels.chunks(columns) {
        let legends: Vec<Legend> = row.iter().map(|p| class_legend(p, PLOT.0)).collect();
        let legend_height = legends.iter().map(|l| l.height).fold(0.0, f64::max);
        let titles: Vec<Vec<String>> = row
            .iter()
            .map(|p| wrapped(&p.title, PANEL_TITLE_SIZE, PLOT.0, 2))
            .collect();
        let title_lines = titles.iter().map(Vec::len).max().unwrap_or(0);
        let title_height = title_lines as f64 * PANEL_TITLE_SIZE * LINE;
        // On half pixels, where lines of one pixel are sharp.
        let top = (y + title_height + legend_height + 6.0).ceil() + 0.5;
        for (k, (panel, legend)) in row.iter().zip(&legends).enumerate() {
            let x = (MARGIN + k as f64 * (cell + GAP.0) + left).floor() + 0.5;
            items.push(Item::Open(summary(panel)));
            for (n, line) in titles[k].iter().rev().enumerate() {
                // Counted from the last line: short titles stay close to their panels.
                let base = y + title_height - PANEL_TITLE_SIZE * (0.4 + n as f64 * LINE);
                items.push(Item::Text(Text {
                    bold: true,
                    ..text((x, base), PANEL_TITLE_SIZE, line.as_str())
                }));
            }
            legend.draw(x, y + title_height, &mut items);
            Frame { panel, x, y: top }.draw(tick_room, &mut items);
            items.push(Item::Close);
        }
        y = top + PLOT.1 + below + GAP.1;
    }
    if !panels.is_empty() {
        y -= GAP.1;
    }

    let mut keys = Vec::new();
    if panels.iter().any(|p| !p.values.is_empty()) {
        keys.push((Key::Line(0.0), "decision boundary, f = 0".to_owned()));
        keys.push((Key::Line(1.0), "margins, f = ±1".to_owned()));
    }
    if panels.iter().any(|p| p.points.iter().any(|s| s.support)) {
        keys.push((Key::Ring, "support vector".to_owned()));
    }
    let shared = legend(keys, inner - left);
    if shared.height > 0.0 {
        y += 12.0;
        shared.draw(MARGIN + left, y, &mut items);
        y += shared.height;
    }

    let mut description = String::from(
        "Samples of two classes, blue discs for -1 and orange triangles for +1, with support vectors \
         ringed, the decision boundary f = 0 as a solid line and the margins f = ±1 as dashed lines.",
    );
    for panel in panels {
        description = format!("{description} {}.", summary(panel));
    }
    Scene {
        width: (inner + 2.0 * MARGIN).ceil(),
        height: (y + MARGIN).ceil(),
        title: if title.trim().is_empty() {
            "Decision boundaries".to_owned()
        } else {
            title.to_owned()
        },
        description,
        items,
    }
}

/// A panel with the upper left corner of its plot.
struct Frame<'a> {
    panel: &'a Panel,
    x: f64,
    y: f64,
}

impl Frame<'_> {
    fn place(&self, p: Pt) -> Pt {
        let share = |v: f64, (low, high): (f64, f64)| (v - low) / (high - low);
        (
            self.x + PLOT.0 * share(p.0, shown(self.panel.x_range)),
            self.y + PLOT.1 * (1.0 - share(p.1, shown(self.panel.y_range))),
        )
    }

    /// Lines of the plane in the picture, less the points that no one could see.
    fn placed(&self, lines: &[Polyline]) -> Vec<Polyline> {
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

    fn draw(&self, tick_room: f64, items: &mut Vec<Item>) {
        let panel = self.panel;
        let lattice = panel.lattice();
        if let Some(lattice) = &lattice {
            for (margin, alpha) in [0.0, 1.0].into_iter().zip(TINTS) {
                for positive in [false, true] {
                    let region = if positive {
                        lattice.above(margin)
                    } else {
                        lattice.below(-margin)
                    };
                    let rgb = tint_rgb(positive);
                    let lines = self.placed(&region);
                    if !lines.is_empty() {
                        items.push(Item::Path {
                            lines,
                            fill: Some(Paint { rgb, alpha }),
                            stroke: None,
                        });
                    }
                }
            }
        }
        self.axes(tick_room, items);

        let contours: Vec<(f64, Vec<Polyline>)> = lattice
            .iter()
            .flat_map(|l| [-1.0, 1.0, 0.0].map(|level| (level, self.placed(&l.lines(level)))))
            .filter(|(_, lines)| !lines.is_empty())
            .collect();
        for (level, lines) in &contours {
            items.push(Item::Path {
                lines: lines.clone(),
                fill: None,
                stroke: Some(contour_stroke(*level)),
            });
        }

        let drawn: Vec<&Point> = panel.points.iter().filter(|p| panel.is_shown(p)).collect();
        let radius = marker_radius(drawn.len());
        for p in &drawn {
            items.push(marker(self.place((p.x, p.y)), radius, p.positive));
        }
        // After all marks, so that none hides a ring.
        for p in drawn.iter().filter(|p| p.support) {
            items.push(ring(self.place((p.x, p.y)), radius));
        }

        let samples: Vec<Pt> = drawn.iter().map(|p| self.place((p.x, p.y))).collect();
        self.contour_labels(&contours, &samples, items);
        if lattice.is_none() && !panel.values.is_empty() {
            let at = (self.x + PLOT.0 / 2.0, self.y + PLOT.1 / 2.0);
            items.push(Item::Text(Text {
                anchor: Anchor::Middle,
                halo: true,
                ..text(at, LABEL_SIZE, "decision values do not fit the grid")
            }));
        }
    }

    fn axes(&self, tick_room: f64, items: &mut Vec<Item>) {
        let panel = self.panel;
        let thin = Some(stroke(GREY, 1.0));
        items.push(Item::Path {
            lines: vec![rectangle(self.x, self.y, PLOT.0, PLOT.1)],
            fill: None,
            stroke: thin,
        });
        let bottom = self.y + PLOT.1;
        let sharp = |v: f64| (v - 0.5).round() + 0.5;
        let (x_range, y_range) = (shown(panel.x_range), shown(panel.y_range));
        let mut marks = Vec::new();
        let mut free_from = f64::NEG_INFINITY;
        for (v, label) in ticks(x_range) {
            let x = sharp(self.place((v, y_range.0)).0);
            marks.extend(segment((x, bottom), (x, bottom + TICK)));
            // Long numbers: better some marks without label than labels on top of each other.
            let half = room(&label, TICK_SIZE, false) / 2.0;
            if x - half < free_from {
                continue;
            }
            free_from = x + half + 4.0;
            items.push(Item::Text(Text {
                anchor: Anchor::Middle,
                paint: GREY,
                ..text((x, bottom + TICK + 2.0 + TICK_SIZE), TICK_SIZE, label)
            }));
        }
        for (v, label) in ticks(y_range) {
            let y = sharp(self.place((x_range.0, v)).1);
            marks.extend(segment((self.x - TICK, y), (self.x, y)));
            items.push(Item::Text(Text {
                anchor: Anchor::End,
                paint: GREY,
                ..text(
                    (self.x - TICK - 3.0, y + 0.36 * TICK_SIZE),
                    TICK_SIZE,
                    label,
                )
            }));
        }
        items.push(Item::Path {
            lines: marks,
            fill: None,
            stroke: thin,
        });
        let middle = Text {
            anchor: Anchor::Middle,
            ..text((0.0, 0.0), LABEL_SIZE, "")
        };
        let below = bottom + TICK + 3.0 + TICK_SIZE * LINE + LABEL_SIZE;
        items.push(Item::Text(Text {
            at: (self.x + PLOT.0 / 2.0, below),
            content: fitted(&panel.x_label, LABEL_SIZE, false, PLOT.0),
            ..middle.clone()
        }));
        let beside = self.x - TICK - 3.0 - tick_room - 8.0;
        items.push(Item::Text(Text {
            at: (beside, self.y + PLOT.1 / 2.0),
            content: fitted(&panel.y_label, LABEL_SIZE, false, PLOT.1),
            upwards: true,
            ..middle
        }));
    }

    /// Writes its level on every line, where samples, other lines and the frame leave most room; not at all
    /// where there is none, as the legend tells the same.
    fn contour_labels(
        &self,
        contours: &[(f64, Vec<Polyline>)],
        samples: &[Pt],
        items: &mut Vec<Item>,
    ) {
        const STEP: f64 = 5.0;
        const NEEDED: f64 = 11.0;
        const AMPLE: f64 = 30.0;
        let spots: Vec<(f64, Vec<(Pt, f64)>)> = contours
            .iter()
            .map(|(level, lines)| (*level, lines.iter().flat_map(|l| spaced(l, STEP)).collect()))
            .collect();
        let mut taken: Vec<Pt> = Vec::new();
        for (level, own) in &spots {
            let others = || {
                let lines = spots.iter().filter(|s| s.0 != *level);
                lines
                    .flat_map(|s| s.1.iter().map(|spot| &spot.0))
                    .chain(samples)
                    .chain(&taken)
            };
            let free = |p: &Pt| {
                let across = (p.0 - self.x).min(self.x + PLOT.0 - p.0);
                let along = (p.1 - self.y).min(self.y + PLOT.1 - p.1);
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
                let content = match *level {
                    l if l > 0.0 => "+1",
                    l if l < 0.0 => "−1",
                    _ => "0",
                };
                items.push(Item::Text(Text {
                    anchor: Anchor::Middle,
                    halo: true,
                    ..text((at.0, at.1 + 0.36 * TICK_SIZE), TICK_SIZE, content)
                }));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(n: usize, f: impl Fn(f64, f64) -> f64) -> Panel {
        let mut panel = Panel {
            title: "Task".to_owned(),
            x_label: "x".to_owned(),
            y_label: "y".to_owned(),
            classes: ["no".to_owned(), "yes".to_owned()],
            points: vec![
                Point {
                    x: 0.1,
                    y: 0.2,
                    positive: false,
                    support: true,
                },
                Point {
                    x: 1.5,
                    y: -1.2,
                    positive: true,
                    support: false,
                },
            ],
            x_range: (-2.0, 2.0),
            y_range: (-2.0, 2.0),
            grid: (n, n),
            values: Vec::new(),
        };
        panel.values = panel.nodes().map(|(x, y)| f(x, y)).collect();
        panel
    }

    fn circle() -> Panel {
        panel(41, |x, y| 4.0 * (x.hypot(y) - 1.0))
    }

    fn decoded(file: &[u8]) -> (u32, u32, Vec<u8>) {
        let decoder = png::Decoder::new(std::io::Cursor::new(file));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.color_type, png::ColorType::Rgb);
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        (info.width, info.height, pixels)
    }

    /// Number of contour lines and of marks, by what tells them apart in the scene.
    fn count(panels: &[Panel], wanted: impl Fn(&Item) -> bool) -> usize {
        scene(panels, "").items.iter().filter(|i| wanted(i)).count()
    }

    fn is_contour(item: &Item) -> bool {
        let width = |s: &Stroke| s.width > 1.2;
        matches!(item, Item::Path { lines, stroke: Some(s), .. } if width(s) && lines[0].points.len() > 2)
    }

    #[test]
    fn nodes_run_row_by_row() {
        let mut p = circle();
        p.x_range = (0.0, 2.0);
        p.y_range = (5.0, 6.0);
        p.grid = (3, 2);
        let nodes: Vec<_> = p.nodes().collect();
        let expected = [(0., 5.), (1., 5.), (2., 5.), (0., 6.), (1., 6.), (2., 6.)];
        assert_eq!(nodes, expected);
    }

    #[test]
    fn circle_in_the_picture() {
        let p = circle();
        assert_eq!(count(std::slice::from_ref(&p), is_contour), 3);
        let frame = Frame {
            panel: &p,
            x: 0.0,
            y: 0.0,
        };
        let lines = frame.placed(&p.lattice().unwrap().lines(0.0));
        assert_eq!(lines.len(), 1);
        for q in &lines[0].points {
            let (x, y) = (q.0 / PLOT.0 * 4.0 - 2.0, 2.0 - q.1 / PLOT.1 * 4.0);
            assert!((x.hypot(y) - 1.0).abs() < 5e-3);
        }
    }

    #[test]
    fn upright() {
        // Positive above: the orange tint must be in the upper half of both pictures.
        let mut p = panel(11, |_, y| y);
        p.points.clear();
        let frame = scene(std::slice::from_ref(&p), "");
        let tint = frame.items.iter().find_map(|i| match i {
            Item::Path {
                lines,
                fill: Some(paint),
                ..
            } if paint.rgb == ORANGE && paint.alpha < 1.0 => Some(&lines[0]),
            _ => None,
        });
        let ys: Vec<f64> = tint.unwrap().points.iter().map(|q| q.1).collect();
        let (low, high) = padded_range(ys.iter().copied(), 0.0);
        assert!((high - low - PLOT.1 / 2.0).abs() < 1e-6);
        let (width, _, pixels) = decoded(&png(&[p], ""));
        let at = |x: f64, y: f64| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a pixel of the picture"
            )]
            let k = 3 * ((y * 2.0) as usize * width as usize + (x * 2.0) as usize);
            (pixels[k], pixels[k + 2])
        };
        let (red, blue) = at(200.0, low + 5.0);
        assert!(red > blue, "orange above");
        let (red, blue) = at(200.0, high + PLOT.1 / 2.0 - 5.0);
        assert!(red < blue, "blue below");
    }

    #[test]
    fn png_has_twice_the_size_of_the_svg() {
        for count in [0, 1, 2, 3, 4, 7] {
            let panels = vec![circle(); count];
            let drawing = svg(&panels, "Title");
            let attribute = |name: &str| -> u32 {
                let from = drawing.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
                let rest = &drawing[from..];
                rest[..rest.find('"').unwrap()].parse().unwrap()
            };
            let (width, height, pixels) = decoded(&png(&panels, "Title"));
            assert_eq!(
                (width, height),
                (2 * attribute("width"), 2 * attribute("height"))
            );
            assert_eq!(pixels.len(), 3 * width as usize * height as usize);
            assert_eq!(pixels[..3], [255; 3]);
            assert!(pixels.iter().any(|&p| p < 100), "something is drawn");
            assert_eq!(drawing.matches("<g>").count(), count);
            assert_eq!(drawing.matches("</g>").count(), count);
        }
    }

    #[test]
    fn without_points_or_values() {
        let mut p = circle();
        p.points.clear();
        assert_eq!(count(std::slice::from_ref(&p), is_contour), 3);
        p.values.clear();
        assert_eq!(count(std::slice::from_ref(&p), is_contour), 0);
        let drawing = svg(std::slice::from_ref(&p), "");
        assert!(
            !drawing.contains("margins, f"),
            "no key to what is not there"
        );
        assert!(!drawing.contains("support vector<"));
        decoded(&png(&[p], ""));
    }

    #[test]
    fn constant_values_have_no_contour() {
        for v in [0.0, 0.5, -7.0] {
            let p = panel(9, |_, _| v);
            assert_eq!(count(std::slice::from_ref(&p), is_contour), 0);
            decoded(&png(&[p], ""));
        }
    }

    #[test]
    fn values_that_are_not_numbers_are_skipped() {
        for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let p = panel(31, |x, y| if x > 0.5 { v } else { x + y });
            let drawing = svg(std::slice::from_ref(&p), "");
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
            assert_eq!(count(std::slice::from_ref(&p), is_contour), 0);
            decoded(&png(&[p], ""));
        }
    }

    #[test]
    fn unfit_input_is_said_not_drawn() {
        let mut wrong = vec![circle(); 5];
        wrong[0].values.pop();
        wrong[1].x_range = (1.0, 1.0);
        wrong[2].y_range = (f64::NAN, 1.0);
        wrong[3].x_range = (2.0, -2.0);
        wrong[4].y_range = (-f64::MAX, f64::MAX);
        for p in wrong {
            let drawing = svg(std::slice::from_ref(&p), "");
            assert!(drawing.contains("do not fit the grid"), "{:?}", p.x_range);
            assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
            decoded(&png(&[p], ""));
        }
    }

    #[test]
    fn points_outside_are_counted() {
        let mut p = circle();
        for x in [9.0, f64::NAN, f64::INFINITY] {
            p.points.push(Point { x, ..p.points[0] });
        }
        let marks = |i: &Item| matches!(i, Item::Circle { fill: Some(_), .. });
        // The one within, and the one of the legend.
        assert_eq!(count(std::slice::from_ref(&p), marks), 2);
        assert!(svg(&[p], "").contains("3 outside the picture"));
    }

    #[test]
    fn text_is_escaped() {
        let mut p = circle();
        let evil = "<b>&\"'</svg>\u{0}";
        p.title = evil.to_owned();
        p.x_label = evil.to_owned();
        p.y_label = evil.to_owned();
        p.classes = [evil.to_owned(), evil.to_owned()];
        let drawing = svg(std::slice::from_ref(&p), evil);
        assert_eq!(drawing.matches("</svg>").count(), 1);
        assert!(!drawing.contains("<b>") && !drawing.contains('\0'));
        assert!(drawing.contains("&lt;b&gt;&amp;&quot;&#39;&lt;/svg&gt;\u{fffd}"));
        // Nothing but the escapes may follow an ampersand, and nothing is named by an id.
        for (at, _) in drawing.match_indices('&') {
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            assert!(known.iter().any(|k| drawing[at..].starts_with(k)));
        }
        assert!(!drawing.contains(" id="));
        decoded(&png(&[p], evil));
    }

    #[test]
    fn long_texts_stay_inside() {
        let mut p = circle();
        let long = "word ".repeat(60);
        p.title.clone_from(&long);
        p.x_label.clone_from(&long);
        p.y_label = "x".repeat(500);
        p.classes = [long.clone(), long.clone()];
        let drawing = scene(&[p], &long);
        for item in &drawing.items {
            if let Item::Text(t) = item {
                let wide = font::width(&t.content, t.size, t.bold);
                assert!(wide < drawing.width - 2.0 * MARGIN, "{}", t.content);
            }
        }
    }

    #[test]
    fn tick_marks() {
        let labels = |r| -> Vec<String> { ticks(r).into_iter().map(|t| t.1).collect() };
        assert_eq!(
            labels((0.0, 1.0)),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(labels((-1.2, 1.2)), ["−1.0", "−0.5", "0.0", "0.5", "1.0"]);
        assert_eq!(
            labels((0.0, 1250.0)),
            ["0", "250", "500", "750", "1000", "1250"]
        );
        assert_eq!(labels((0.0, 2e-7))[1], "5e−8");
        assert_eq!(labels((0.0, 3e9))[1], "5e8");
        for r in [(1e15, 1e15 + 2.0), (-1e300, 1e300), (1e-300, 3e-300)] {
            let n = ticks(r).len();
            assert!((2..=12).contains(&n), "{r:?} {n}");
        }
    }

    #[test]
    fn ranges() {
        assert_eq!(padded_range([1.0, f64::NAN, 3.0], 0.1), (0.8, 3.2));
        assert_eq!(padded_range([], 0.0), (0.0, 1.0));
        assert_eq!(padded_range([4.0], 0.0), (3.5, 4.5));
    }

    #[test]
    fn same_input_same_files() {
        let panels = [circle(), panel(30, |x, y| x * y)];
        assert_eq!(svg(&panels, "t"), svg(&panels, "t"));
        assert_eq!(png(&panels, "t"), png(&panels, "t"));
    }
}
