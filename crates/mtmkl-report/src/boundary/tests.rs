//! What is drawn, and what is said where it cannot be.

use super::plot::{PLOT, Plot};
use super::*;
use crate::letters::room;
use crate::scene::{Item, Look, Paint, Polyline, Scene, Stroke};

fn point(x: f64, y: f64, class: usize, support: bool) -> Point {
    Point {
        x,
        y,
        class: Some(class),
        support,
    }
}

fn panel(n: usize, f: impl Fn(f64, f64) -> f64) -> Panel {
    let mut panel = Panel {
        title: "Task".to_owned(),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        points: vec![point(0.1, 0.2, 0, true), point(1.5, -1.2, 1, false)],
        x_range: (-2.0, 2.0),
        y_range: (-2.0, 2.0),
        grid: (n, n),
        field: Field::Inside { values: Vec::new() },
    };
    panel.field = Field::Sides {
        classes: ["no".to_owned(), "yes".to_owned()],
        values: panel.nodes().map(|(x, y)| f(x, y)).collect(),
    };
    panel
}

fn circle() -> Panel {
    panel(41, |x, y| 4.0 * (x.hypot(y) - 1.0))
}

/// The values of a panel on two sides.
fn values(panel: &mut Panel) -> &mut Vec<f64> {
    match &mut panel.field {
        Field::Sides { values, .. } | Field::Inside { values } | Field::Levels { values } => values,
        Field::Regions { values, .. } => &mut values[0],
    }
}

fn scene(panels: &[Panel], title: &str) -> Scene {
    layout::scene(panels, title)
}

/// Number of contour lines and of marks, by what tells them apart in the scene.
fn count(panel: &Panel, wanted: impl Fn(&Item) -> bool) -> usize {
    let scene = scene(std::slice::from_ref(panel), "");
    scene.items.iter().filter(|i| wanted(i)).count()
}

fn is_contour(item: &Item) -> bool {
    let Item::Path {
        lines,
        look: Look::Own {
            stroke: Some(Stroke { width, .. }),
            ..
        },
        ..
    } = item
    else {
        return false;
    };
    *width > 1.2 && lines[0].points.len() > 2
}

/// The tinted areas.
fn tints(panel: &Panel) -> Vec<(Paint, Vec<Polyline>)> {
    let scene = scene(std::slice::from_ref(panel), "");
    let area = |item: Item| match item {
        Item::Path {
            lines,
            look:
                Look::Own {
                    fill: Some(paint),
                    stroke: None,
                },
            ..
        } => Some((paint, lines)),
        _ => None,
    };
    scene.items.into_iter().filter_map(area).collect()
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
    let mut p = circle();
    assert_eq!(count(&p, is_contour), 3);
    let values = std::mem::take(values(&mut p));
    let plot = Plot::new(&p, (0.0, 0.0));
    let lines = plot.placed(&plot.lattice(&values).unwrap().lines(0.0));
    assert_eq!(lines.len(), 1);
    for q in &lines[0].points {
        let (x, y) = (q.0 / PLOT.0 * 4.0 - 2.0, 2.0 - q.1 / PLOT.1 * 4.0);
        assert!((x.hypot(y) - 1.0).abs() < 5e-3);
    }
}

#[test]
fn upright() {
    // Positive above: the tint of the second class must be in the upper half.
    let mut p = panel(11, |_, y| y);
    p.points.clear();
    let all = tints(&p);
    let heights = |rgb| {
        let (_, lines) = all.iter().find(|(paint, _)| paint.rgb == rgb).unwrap();
        padded_range(lines[0].points.iter().map(|q| q.1), 0.0)
    };
    let (above, below) = (heights(marks::tint(1)), heights(marks::tint(0)));
    assert!((above.1 - above.0 - PLOT.1 / 2.0).abs() < 1e-6);
    assert!((above.1 - below.0).abs() < 1e-6, "{above:?} {below:?}");
}

#[test]
fn a_group_for_each_panel() {
    for count in [0, 1, 2, 3, 4, 7] {
        let drawing = svg(&vec![circle(); count], "Title");
        assert_eq!(drawing.matches("<g>").count(), count);
        assert_eq!(drawing.matches("</g>").count(), count);
    }
}

#[test]
fn every_class_has_its_region() {
    let mut p = circle();
    let nodes: Vec<(f64, f64)> = p.nodes().collect();
    // Thirds of a turn.
    let toward = |turn: f64| -> Vec<f64> {
        let (sin, cos) = (std::f64::consts::TAU * turn).sin_cos();
        nodes.iter().map(|(x, y)| x * cos + y * sin).collect()
    };
    p.field = Field::Regions {
        classes: ["ash", "birch", "cedar"].map(String::from).to_vec(),
        values: vec![toward(0.0), toward(1.0 / 3.0), toward(2.0 / 3.0)],
    };
    assert_eq!(tints(&p).len(), 3);
    let drawing = svg(std::slice::from_ref(&p), "");
    for name in ["ash", "birch", "cedar"] {
        assert!(drawing.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(!drawing.contains("margins"));
    if let Field::Regions { values, .. } = &mut p.field {
        values[1].pop();
    }
    assert!(svg(&[p], "").contains("do not fit the grid"));
}

#[test]
fn a_number_has_levels_and_the_inside_one_border() {
    let mut p = circle();
    let x: Vec<f64> = p.nodes().map(|(x, _)| 10.0 * x).collect();
    p.field = Field::Levels { values: x.clone() };
    let drawing = svg(std::slice::from_ref(&p), "");
    for level in ["−10", "0", "10"] {
        assert!(drawing.contains(&format!(">{level}</text>")), "{level}");
    }
    assert!(drawing.contains("where the prediction has this value"));
    p.field = Field::Inside { values: x };
    assert_eq!(tints(&p).len(), 1);
    assert!(svg(&[p], "").contains("counts as inside"));
}

#[test]
fn without_points_or_values() {
    let mut p = circle();
    p.points.clear();
    assert_eq!(count(&p, is_contour), 3);
    values(&mut p).clear();
    assert_eq!(count(&p, is_contour), 0);
    let drawing = svg(std::slice::from_ref(&p), "");
    assert!(
        !drawing.contains("margins, f"),
        "no key to what is not there"
    );
    assert!(!drawing.contains("support vector<"));
}

#[test]
fn constant_values_have_no_contour() {
    for v in [0.0, 0.5, -7.0] {
        let p = panel(9, |_, _| v);
        assert_eq!(count(&p, is_contour), 0);
    }
}

#[test]
fn values_that_are_not_numbers_are_skipped() {
    for v in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let p = panel(31, |x, y| if x > 0.5 { v } else { x + y });
        let drawing = svg(std::slice::from_ref(&p), "");
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
        assert_eq!(count(&p, is_contour), 0);
    }
}

#[test]
fn unfit_input_is_said_not_drawn() {
    let mut wrong = vec![circle(); 5];
    values(&mut wrong[0]).pop();
    wrong[1].x_range = (1.0, 1.0);
    wrong[2].y_range = (f64::NAN, 1.0);
    wrong[3].x_range = (2.0, -2.0);
    wrong[4].y_range = (-f64::MAX, f64::MAX);
    for p in wrong {
        let drawing = svg(std::slice::from_ref(&p), "");
        assert!(drawing.contains("do not fit the grid"), "{:?}", p.x_range);
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
    }
}

#[test]
fn points_outside_are_counted() {
    let mut p = circle();
    for x in [9.0, f64::NAN, f64::INFINITY] {
        let first = p.points[0];
        p.points.push(Point { x, ..first });
    }
    let marks = |i: &Item| {
        matches!(
            i,
            Item::Circle {
                look: Look::Own { fill: Some(_), .. },
                ..
            }
        )
    };
    // The one within, and the one of the legend.
    assert_eq!(count(&p, marks), 2);
    assert!(svg(&[p], "").contains("3 outside the picture"));
}

#[test]
fn text_is_escaped() {
    let mut p = circle();
    let evil = "<b>&\"'</svg>\u{0}";
    p.title = evil.to_owned();
    p.x_label = evil.to_owned();
    p.y_label = evil.to_owned();
    if let Field::Sides { classes, .. } = &mut p.field {
        *classes = [evil.to_owned(), evil.to_owned()];
    }
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
}

#[test]
fn long_texts_stay_inside() {
    let mut p = circle();
    let long = "word ".repeat(60);
    p.title.clone_from(&long);
    p.x_label.clone_from(&long);
    p.y_label = "x".repeat(500);
    if let Field::Sides { classes, .. } = &mut p.field {
        *classes = [long.clone(), long.clone()];
    }
    let drawing = scene(&[p], &long);
    for item in &drawing.items {
        if let Item::Text(t) = item {
            let wide = room(&t.content, t.size, t.bold);
            assert!(wide < drawing.width - 32.0, "{}", t.content);
        }
    }
}

#[test]
fn ranges() {
    assert_eq!(padded_range([1.0, f64::NAN, 3.0], 0.1), (0.8, 3.2));
    assert_eq!(padded_range([], 0.0), (0.0, 1.0));
    assert_eq!(padded_range([4.0], 0.0), (3.5, 4.5));
}

#[test]
fn same_input_same_file() {
    let panels = [circle(), panel(30, |x, y| x * y)];
    assert_eq!(svg(&panels, "t"), svg(&panels, "t"));
}
