//! Panels beside and below each other, with titles and legends.

use super::legend::{self, Key, Legend};
use super::marks::{BOUNDARY, LEVEL, MARGIN as MARGIN_LINE};
use super::plot::{PLOT, Plot, TICK, TICK_SIZE, axis};
use super::{Field, Panel};
use crate::letters::{LINE, room, wrapped};
use crate::scene::{Item, Place, Scene, Text};

const COLUMNS: usize = 3;
/// Around the whole picture.
const MARGIN: f64 = 16.0;
/// Between panels.
const GAP: (f64, f64) = (24.0, 26.0);
const TITLE_SIZE: f64 = 17.0;
const PANEL_TITLE_SIZE: f64 = 14.0;

/// The picture of all panels.
pub(super) fn scene(panels: &[Panel], title: &str) -> Scene {
    let columns = panels.len().clamp(1, COLUMNS);
    // One width of tick labels for all panels: their frames line up across rows.
    let tick_room = panels
        .iter()
        .flat_map(|panel| axis(panel.y_range).ticks)
        .map(|(_, label)| room(&label, TICK_SIZE, false))
        .fold(0.0, f64::max)
        .ceil();
    let left = legend::SIZE * LINE + 4.0 + tick_room + TICK + 3.0;
    let cell = left + PLOT.0;
    let inner = columns as f64 * (cell + GAP.0) - GAP.0;
    let mut items = Vec::new();
    let mut y = MARGIN;
    for line in wrapped(title, TITLE_SIZE, inner, 4) {
        let line = Text::new((MARGIN, y + TITLE_SIZE), TITLE_SIZE, line);
        items.push(Item::Text(line.bold()));
        y += TITLE_SIZE * LINE;
    }
    if y > MARGIN {
        y += 8.0;
    }
    for row in panels.chunks(columns) {
        y = draw_row(row, y, (left, cell, tick_room), &mut items) + GAP.1;
    }
    if !panels.is_empty() {
        y -= GAP.1;
    }
    let shared = Legend::new(keys(panels), inner - left);
    if shared.height > 0.0 {
        y += 12.0;
        shared.draw(MARGIN + left, y, &mut items);
        y += shared.height;
    }
    let named = !title.trim().is_empty();
    Scene {
        width: (inner + 2.0 * MARGIN).ceil(),
        height: (y + MARGIN).ceil(),
        place: Place::File {
            title: if named { title } else { "Decision boundaries" }.to_owned(),
            description: description(panels),
        },
        items,
    }
}

/// Draws panels side by side below `y`, and says where they end. `widths` are those left of a plot, of a panel, and of its tick labels.
fn draw_row(row: &[Panel], y: f64, widths: (f64, f64, f64), items: &mut Vec<Item>) -> f64 {
    let (left, cell, tick_room) = widths;
    let legends: Vec<Legend> = row
        .iter()
        .map(|panel| class_legend(panel, PLOT.0))
        .collect();
    let legend_height = legends.iter().map(|l| l.height).fold(0.0, f64::max);
    let titles: Vec<Vec<String>> = row
        .iter()
        .map(|panel| wrapped(&panel.title, PANEL_TITLE_SIZE, PLOT.0, 2))
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
            let line = Text::new((x, base), PANEL_TITLE_SIZE, line.as_str());
            items.push(Item::Text(line.bold()));
        }
        legend.draw(x, y + title_height, items);
        Plot::new(panel, (x, top)).draw(tick_room, items);
        items.push(Item::Close);
    }
    top + PLOT.1 + TICK + 3.0 + TICK_SIZE * LINE + legend::SIZE * LINE
}

/// What lines and rings mean, as far as there are some.
fn keys(panels: &[Panel]) -> Vec<(Key, String)> {
    let drawn = || panels.iter().map(|p| &p.field).filter(|f| !f.is_empty());
    let mut keys = Vec::new();
    let mut key = |is_there: bool, key, text: &str| {
        if is_there {
            keys.push((key, text.to_owned()));
        }
    };
    let sides = drawn().any(|field| matches!(field, Field::Sides { .. }));
    let inside = drawn().any(|field| matches!(field, Field::Inside { .. }));
    let levels = drawn().any(|field| matches!(field, Field::Levels { .. }));
    key(sides, Key::Line(BOUNDARY), "decision boundary, f = 0");
    key(sides, Key::Line(MARGIN_LINE), "margins, f = ±1");
    key(
        inside,
        Key::Line(BOUNDARY),
        "border of what counts as inside, f = 0",
    );
    key(
        levels,
        Key::Line(LEVEL),
        "where the prediction has this value",
    );
    let ringed = |panel: &Panel| panel.points.iter().any(|point| point.support);
    key(panels.iter().any(ringed), Key::Ring, "support vector");
    keys
}

/// The name of a class; of two with the sign of its decision values, unless that is its name already.
fn class_name(field: &Field, class: usize) -> String {
    let name = field.classes()[class].trim();
    if matches!(field, Field::Regions { .. }) {
        return name.to_owned();
    }
    let sign = ["−1", "+1"][class];
    match name.replace('-', "−").as_str() {
        "" | "−1" | "+1" | "1" => sign.to_owned(),
        _ => format!("{name} ({sign})"),
    }
}

fn class_legend(panel: &Panel, width: f64) -> Legend {
    let classes = 0..panel.field.classes().len();
    let entry = |class| (Key::Class(class), class_name(&panel.field, class));
    Legend::new(classes.map(entry).collect(), width)
}

/// What the panels show, in words.
fn description(panels: &[Panel]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for panel in panels {
        let kind = match panel.field {
            Field::Sides { .. } => {
                "Samples of two classes, blue discs for −1 and orange triangles for +1, the decision boundary f = 0 as a solid line and \
                 the margins f = ±1 as dashed lines."
            }
            Field::Regions { .. } => {
                "The plane in the colours of the class that is predicted there, and samples."
            }
            Field::Inside { .. } => {
                "What counts as inside, tinted within the line f = 0, and samples."
            }
            Field::Levels { .. } => {
                "The predicted number by level lines, the darker the higher, and samples."
            }
        };
        if !sentences.iter().any(|known| known == kind) {
            sentences.push(kind.to_owned());
        }
    }
    sentences.extend(panels.iter().map(|panel| format!("{}.", summary(panel))));
    sentences.join(" ")
}

/// What a panel shows, in words.
fn summary(panel: &Panel) -> String {
    let counted =
        |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
    let of = |class: usize| {
        let own = panel.points.iter().filter(|p| p.class == Some(class));
        format!("{} {}", own.count(), class_name(&panel.field, class))
    };
    let classes: Vec<String> = (0..panel.field.classes().len()).map(of).collect();
    let title = panel.title.trim();
    let mut s = format!(
        "{}: {}",
        if title.is_empty() { "Panel" } else { title },
        counted(panel.points.len(), "sample", "samples"),
    );
    if !classes.is_empty() {
        s = format!("{s} ({})", classes.join(", "));
    }
    let support = panel.points.iter().filter(|p| p.support).count();
    if support > 0 {
        s = format!(
            "{s}, {}",
            counted(support, "support vector", "support vectors")
        );
    }
    let hidden = panel.points.iter().filter(|p| !panel.is_shown(p)).count();
    if hidden > 0 {
        s = format!("{s}, {hidden} outside the picture");
    }
    s
}
