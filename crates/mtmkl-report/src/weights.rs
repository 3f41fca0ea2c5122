//! The heat maps: which task uses which kernel, and how much.

use crate::page::{Section, scroll_box};
use crate::scene::{Item, Look, Place, Polyline, Scene};
use crate::text::{count, esc, list, name, plural, put, share, weight};
use crate::tree;
use crate::view::View;

/// Shades in the style sheet (`.k1` to `.k12`).
const LEVELS: usize = 12;
/// With more kernels than this, column names stand upright.
const LYING: usize = 6;
/// With more kernels than this the table is wider than the page, and a picture of the whole comes first.
const FITS: usize = 16;
/// With more tasks than this, tasks without a part of their own get no empty row.
const ALL_ROWS: usize = 12;

/// One row of a heat map.
struct Row {
    /// What stands before it, as HTML.
    label: String,
    /// M weights.
    weights: Vec<f64>,
}

/// The heat maps and what they say; `None` without tasks or kernels.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    if view.tasks.is_empty() || view.kernels.is_empty() {
        return None;
    }
    let report = view.report;
    let top = largest(view);
    let mut body = String::new();
    put!(body, "<p>{}</p>", summary(view));
    legend(&mut body, top);
    let is_tree = !report.groups.is_empty();
    let split = !is_tree && report.specific.is_some() && report.common.is_some();
    let symbol = if split {
        "Total weights θ = ζ + γ"
    } else {
        "Kernel weights θ"
    };
    if view.kernels.len() > FITS {
        overview(&mut body, view, top);
    }
    put!(body, "<h3>{symbol}</h3>");
    let (rows, foot) = total_rows(view);
    table(&mut body, view, &rows, foot.as_ref(), top, symbol, "task");
    if split {
        parts(&mut body, view, top);
    } else if is_tree {
        on_tree(&mut body, view, top);
    }
    glance(&mut body, view);
    Some(Section {
        id: "weights",
        title: "Which kernels each task uses",
        body,
    })
}

/// The largest weight on the page: all maps share one scale, so that parts and total compare.
fn largest(view: &View<'_>) -> f64 {
    let report = view.report;
    let specific = report.specific.iter().flatten();
    let groups = report.groups.iter().map(|group| &group.weights);
    report
        .weights
        .iter()
        .chain(&report.common)
        .chain(specific)
        .chain(groups)
        .flatten()
        .copied()
        .filter(|w| w.is_finite())
        .fold(0.0, f64::max)
}

/// The shade of a weight: none for 0, the first for the least bit more than that.
fn level(w: f64, top: f64) -> Option<usize> {
    if !(w > 0.0 && top > 0.0) {
        return None;
    }
    let position = (w / top).min(1.0) * LEVELS as f64;
    Some(
        (1..LEVELS)
            .find(|&k| position <= k as f64)
            .unwrap_or(LEVELS),
    )
}

/// How many kernels are used, in words.
fn summary(view: &View<'_>) -> String {
    let m = view.kernels.len();
    let rows: Vec<Vec<f64>> = (0..view.tasks.len()).map(|t| view.theta(t)).collect();
    let unused: Vec<&str> = (0..m)
        .filter(|&k| rows.iter().all(|row| row[k] == 0.0))
        .map(|k| view.kernels[k].as_ref())
        .collect();
    let zeros = rows.iter().flatten().filter(|w| **w == 0.0).count();
    let broken = rows.iter().flatten().filter(|w| !w.is_finite()).count();
    let cells = rows.len() * m;
    let mut text = match unused.len() {
        0 if m == 1 => "The only kernel is in use.".to_owned(),
        0 => format!("All {} are in use.", plural(m, "kernel")),
        n if n == m => "No kernel has any weight.".to_owned(),
        n => format!(
            "{} of {} are in use; no task uses {}.",
            count(m - n),
            plural(m, "kernel"),
            list(&unused, 3)
        ),
    };
    if zeros > 0 && unused.len() < m {
        put!(
            text,
            " {} of the {} weights are exactly 0 ({}).",
            count(zeros),
            count(cells),
            share(zeros as f64 / cells as f64)
        );
    }
    if broken > 0 {
        put!(
            text,
            " <b>{} not a finite number.</b>",
            if broken == 1 {
                "One weight is".to_owned()
            } else {
                format!("{} weights are", count(broken))
            }
        );
    }
    text
}

/// The scale of shades.
fn legend(out: &mut String, top: f64) {
    if top <= 0.0 {
        return;
    }
    out.push_str("<p class=\"legend\"><span class=\"zero\">·</span> exactly 0 <span class=\"ramp\" aria-hidden=\"true\">");
    for k in 1..=LEVELS {
        put!(out, "<i class=\"k{k}\"></i>");
    }
    put!(
        out,
        "</span> up to {}, the largest weight; one scale for all maps</p>",
        weight(top)
    );
}

/// The rows of the total, and their mean. Tasks that all have the same weights get one row.
fn total_rows(view: &View<'_>) -> (Vec<Row>, Option<Row>) {
    let tasks = view.tasks.len();
    if view.all_same() {
        let row = Row {
            label: format!("all {}", plural(tasks, "task")),
            weights: view.theta(0),
        };
        return (vec![row], None);
    }
    let rows: Vec<Row> = (0..tasks)
        .map(|t| Row {
            label: name(&view.tasks[t]),
            weights: view.theta(t),
        })
        .collect();
    let foot = (tasks > 1).then(|| Row {
        label: "mean".to_owned(),
        weights: means(view),
    });
    (rows, foot)
}

/// Mean weight of each kernel over the tasks.
fn means(view: &View<'_>) -> Vec<f64> {
    let tasks = view.tasks.len();
    let rows: Vec<Vec<f64>> = (0..tasks).map(|t| view.theta(t)).collect();
    (0..view.kernels.len())
        .map(|m| rows.iter().map(|row| row[m]).sum::<f64>() / tasks as f64)
        .collect()
}

/// A map as a table, with digits in its cells.
fn table(
    out: &mut String,
    view: &View<'_>,
    rows: &[Row],
    foot: Option<&Row>,
    top: f64,
    caption: &str,
    corner: &str,
) {
    let upright = view.kernels.len() > LYING;
    let wide = view.kernels.len() > FITS;
    let mut inner = format!(
        "<table class=\"heat{}{}\"><caption class=\"hidden\">{caption}: one row a {corner}, one column a kernel; a dot is exactly 0</caption>\
         <thead><tr><th scope=\"col\">{corner}</th>",
        if upright { " upright" } else { "" },
        if wide { " wide" } else { "" },
    );
    for kernel in &view.kernels {
        put!(inner, "<th scope=\"col\">{}</th>", name(kernel));
    }
    inner.push_str("</tr></thead><tbody>\n");
    for row in rows {
        line(&mut inner, row, top);
    }
    inner.push_str("</tbody>");
    if let Some(row) = foot {
        inner.push_str("<tfoot>");
        line(&mut inner, row, top);
        inner.push_str("</tfoot>");
    }
    inner.push_str("</table>");
    scroll_box(out, &format!("{caption}, tasks by kernels"), &inner);
    if wide {
        out.push_str(
            "<p class=\"paper\">The table is too wide for paper: see the page on a screen.</p>",
        );
    }
}

/// One row of a map.
fn line(out: &mut String, row: &Row, top: f64) {
    put!(out, "<tr><th scope=\"row\">{}</th>", row.label);
    for &w in &row.weights {
        let text = weight(w);
        match level(w, top) {
            Some(k) => put!(out, "<td class=\"k{k}\">{text}</td>"),
            None if w == 0.0 => put!(out, "<td>{text}</td>"),
            None => put!(out, "<td class=\"odd\">{text}</td>"),
        }
    }
    out.push_str("</tr>\n");
}

/// ζ and γ apart.
fn parts(out: &mut String, view: &View<'_>, top: f64) {
    let tasks = view.tasks.len();
    let mut rows = vec![Row {
        label: "<b>ζ</b> common to all".to_owned(),
        weights: view.row(view.report.common.as_ref()),
    }];
    let mut left_out = 0;
    for t in 0..tasks {
        let gamma = view.gamma(t).unwrap_or_default();
        if tasks > ALL_ROWS && gamma.iter().all(|w| *w == 0.0) {
            left_out += 1;
        } else {
            rows.push(Row {
                label: format!("<b>γ</b> {}", name(&view.tasks[t])),
                weights: gamma,
            });
        }
    }
    out.push_str("<h3>Its parts: common ζ and specific γ</h3>");
    table(
        out,
        view,
        &rows,
        None,
        top,
        "Common part ζ and specific parts γ",
        "part",
    );
    if left_out > 0 {
        let verb = if left_out == 1 { "has" } else { "have" };
        put!(
            out,
            "<p class=\"note\">{} without a row {verb} γ = 0.</p>",
            plural(left_out, "task")
        );
    }
}

/// The weights of each node of a tree of tasks, as far in as it stands.
fn on_tree(out: &mut String, view: &View<'_>, top: f64) {
    out.push_str(
        "<h3>The parts on the tree</h3><p>A task’s weights are the sum of its own row, where it has one, and of those of all groups that it \
         stands in.</p>",
    );
    let branches = tree::branches(view).into_iter();
    let rows = branches.map(|branch| Row {
        label: format!(
            "<span style=\"padding-left:{:.1}em\">{}</span>",
            1.2 * branch.depth as f64,
            branch.label
        ),
        weights: branch.weights,
    });
    let rows: Vec<Row> = rows.collect();
    table(out, view, &rows, None, top, "Parts on the tree", "part");
}

/// The whole map without digits, as wide as the page, however many kernels there are.
fn overview(out: &mut String, view: &View<'_>, top: f64) {
    let (tasks, kernels) = (view.tasks.len(), view.kernels.len());
    // One path a shade: a rectangle each would be several times as much to load.
    let mut shades = vec![Vec::new(); LEVELS + 1];
    for t in 0..tasks {
        for (m, w) in view.theta(t).into_iter().enumerate() {
            if let Some(k) = level(w, top) {
                let corner = (m as f64, t as f64);
                shades[k].push(Polyline::rectangle(corner, (1.0, 1.0)));
            }
        }
    }
    let shown = shades.into_iter().enumerate();
    let items = shown
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(k, cells)| Item::path(cells, Look::Class(format!("k{k}"))));
    // Square cells where the page is as wide as on a desk, but never a hairline nor a tower.
    let height = (tasks as f64 * 900.0 / kernels as f64).clamp(24.0, 560.0);
    let map = Scene {
        width: kernels as f64,
        height: tasks as f64,
        place: Place::Page {
            attributes: format!("preserveAspectRatio=\"none\" style=\"height:{height:.0}px\""),
            label: format!(
                "Map of all weights, {} down by {} across; the table below has the numbers",
                plural(tasks, "task"),
                plural(kernels, "kernel")
            ),
        },
        items: items.collect(),
    };
    put!(
        out,
        "<figure class=\"overview\"><div class=\"frame\"><span class=\"across\" aria-hidden=\"true\">kernels →</span>\
         <span class=\"down\" aria-hidden=\"true\">tasks →</span>{}",
        map.svg()
    );
    put!(
        out,
        "</div><figcaption>The whole map at a glance: {} from top to bottom, {} from left to right, from <b>{}</b> to <b>{}</b>. \
         Empty means exactly 0.</figcaption></figure>",
        plural(tasks, "task"),
        plural(kernels, "kernel"),
        esc(view.kernels.first().map_or("", AsRef::as_ref)),
        esc(view.kernels.last().map_or("", AsRef::as_ref)),
    );
}

/// Kernels in order of their mean weight, with their names in full.
fn glance(out: &mut String, view: &View<'_>) {
    let tasks = view.tasks.len();
    if tasks < 2 && view.kernels.len() < 2 {
        return;
    }
    let mean = means(view);
    let mut order: Vec<usize> = (0..mean.len()).collect();
    // Broken means go last; equal ones keep their order.
    let key = |m: usize| if mean[m].is_nan() { -1.0 } else { mean[m] };
    order.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
    let longest = mean
        .iter()
        .copied()
        .filter(|w| w.is_finite())
        .fold(f64::MIN_POSITIVE, f64::max);
    let word = if tasks > 1 { "Mean weight" } else { "Weight" };
    put!(out, "<h3>Kernels in order of weight</h3>");
    let mut inner = format!(
        "<table class=\"bars\"><caption class=\"hidden\">Kernels in order of their weight</caption>\
         <thead><tr><th scope=\"col\">Kernel</th><th scope=\"col\" colspan=\"2\">{word}</th>{}</tr></thead><tbody>\n",
        if tasks > 1 {
            "<th scope=\"col\">Used by</th>"
        } else {
            ""
        }
    );
    for m in order {
        let used = (0..tasks)
            .filter(|&t| {
                view.report
                    .weights
                    .get(t)
                    .and_then(|r| r.get(m))
                    .is_some_and(|w| *w > 0.0)
            })
            .count();
        // Infinite means fill the track.
        let width = 100.0 * (key(m) / longest).clamp(0.0, 1.0);
        put!(
            inner,
            "<tr><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\"><i class=\"common\" style=\"width:{width:.1}%\"></i></span></td><td>{}</td>",
            esc(&view.kernels[m]),
            weight(mean[m])
        );
        if tasks > 1 {
            let who = if used == tasks {
                "all tasks".to_owned()
            } else if used == 0 {
                "no task".to_owned()
            } else {
                format!("{used} of {tasks}")
            };
            put!(inner, "<td>{who}</td>");
        }
        inner.push_str("</tr>\n");
    }
    inner.push_str("</tbody></table>");
    scroll_box(out, "Kernels in order of weight", &inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_ordered_and_only_nothing_has_none() {
        assert_eq!(level(0.0, 1.0), None);
        assert_eq!(level(f64::NAN, 1.0), None);
        assert_eq!(level(1e-300, 1.0), Some(1));
        assert_eq!(level(1.0, 1.0), Some(LEVELS));
        assert_eq!(level(f64::INFINITY, 1.0), Some(LEVELS));
        let shades: Vec<_> = (1..=100)
            .map(|i| level(f64::from(i) / 100.0, 1.0))
            .collect();
        assert!(shades.is_sorted());
    }
}
