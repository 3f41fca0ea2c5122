//! Which tasks share one kernel space and which keep their own.

use crate::page::{Section, scroll_box};
use crate::text::{capital, count, esc, list, name, number, plural, put, share};
use crate::tree;
use crate::view::{Space, View, size};

/// Up to so many tasks each get a row; beyond, those that share are summed up in one.
const ALL_ROWS: usize = 12;

/// The finding in one sentence, for the head of the page; HTML without a full stop.
pub(crate) fn finding(view: &View<'_>) -> String {
    let tasks = view.tasks.len();
    if tasks == 0 || view.kernels.is_empty() {
        return String::new();
    }
    if let Some(transfer) = &view.report.transfer {
        return transfer.finding();
    }
    if tasks > 1 && !view.report.groups.is_empty() {
        return tree::finding(view);
    }
    if tasks == 1 {
        return match view.leader(&view.theta(0)) {
            Some((kernel, part)) if view.kernels.len() > 1 => format!(
                "One task, led by <b>{}</b> with {} of the kernel weight",
                esc(kernel),
                share(part)
            ),
            Some((kernel, _)) => format!("One task with one kernel, <b>{}</b>", esc(kernel)),
            None => "One task, and no kernel has any weight".to_owned(),
        };
    }
    let led = |row: &[f64]| {
        view.leader(row).map_or_else(String::new, |(kernel, part)| {
            format!(", led by <b>{}</b> ({})", esc(kernel), share(part))
        })
    };
    let common = view.report.common.as_ref().map(|c| view.row(Some(c)));
    let Some(spaces) = view.spaces() else {
        return if let Some(common) = common {
            format!(
                "All {} share one kernel space{}",
                plural(tasks, "task"),
                led(&common)
            )
        } else if view.all_same() {
            format!(
                "All {} have the same kernel weights{}",
                plural(tasks, "task"),
                led(&view.theta(0))
            )
        } else {
            format!(
                "Each of the {} has kernel weights of its own",
                plural(tasks, "task")
            )
        };
    };
    let own: Vec<usize> = (0..tasks)
        .filter(|&t| matches!(spaces[t], Space::Own(_)))
        .collect();
    let shared = spaces.iter().filter(|s| **s == Space::Shared).count();
    let with_common = common.as_ref().is_some_and(|c| size(c) > 0.0);
    let lead = led(&common.unwrap_or_default());
    let names: Vec<&str> = own.iter().map(|&t| view.tasks[t].as_ref()).collect();
    if own.is_empty() {
        format!(
            "All {} share one kernel space{lead}",
            plural(shared, "task")
        )
    } else if shared == 0 && with_common {
        format!("Every task adds a kernel space of its own to the one they share{lead}")
    } else if shared == 0 {
        "Every task keeps a kernel space of its own; nothing is shared".to_owned()
    } else {
        let keeps = match own.as_slice() {
            [one] => format!(
                "{} keeps its own{}",
                list(&names, 1),
                led(&view.gamma(*one).unwrap_or_default())
            ),
            _ => format!("{} keep their own", list(&names, 3)),
        };
        let verb = if shared == 1 { "uses" } else { "share" };
        let what = if shared == 1 {
            "only the common kernel space"
        } else {
            "one kernel space"
        };
        format!(
            "{} of {} {verb} {what}{lead}; {keeps}",
            count(shared),
            plural(tasks, "task")
        )
    }
}

/// The section; `None` for a single task, which has nobody to share with.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    if view.tasks.len() < 2 || view.kernels.is_empty() {
        return None;
    }
    if !view.report.groups.is_empty() {
        return Some(tree::section(view));
    }
    let mut body = String::new();
    put!(body, "<p>{}.</p>", capital(&finding(view)));
    match view.spaces() {
        Some(spaces) => split(&mut body, view, &spaces),
        None if view.report.common.is_some() || view.all_same() => {
            body.push_str("<p>This sharing gives all tasks the same weights, so there is nothing to tell apart.</p>");
        }
        None => totals(&mut body, view),
    }
    Some(Section {
        id: "spaces",
        title: "Who shares, and who does not",
        body,
    })
}

/// The common and the own part of every task's weight.
fn split(out: &mut String, view: &View<'_>, spaces: &[Space]) {
    let tasks = view.tasks.len();
    let names = |wanted: Space| -> Vec<&str> {
        (0..tasks)
            .filter(|&t| spaces[t] == wanted)
            .map(|t| view.tasks[t].as_ref())
            .collect()
    };
    let (shared, empty) = (names(Space::Shared), names(Space::Empty));
    let mut own: Vec<(usize, f64)> = spaces
        .iter()
        .enumerate()
        .filter_map(|(t, s)| match s {
            Space::Own(part) => Some((t, *part)),
            _ => None,
        })
        .collect();
    own.sort_by(|a, b| b.1.total_cmp(&a.1));

    out.push_str(
        "<p class=\"legend\"><i class=\"swatch common\"></i> common part ζ <i class=\"swatch own\"></i> the task’s own part γ, as shares of its \
         weight: |γ|₁ / |θ|₁</p>",
    );
    let mut inner = String::from(
        "<table class=\"bars\"><caption class=\"hidden\">How much of each task’s weight is its own</caption><thead><tr><th scope=\"col\">Task</th>\
         <th scope=\"col\">Common and own part</th><th scope=\"col\">Own share</th><th scope=\"col\">Own part led by</th></tr></thead><tbody>\n",
    );
    for &(t, part) in &own {
        let gamma = view.gamma(t).unwrap_or_default();
        let lead = view
            .leader(&gamma)
            .map_or_else(|| "–".to_owned(), |(kernel, _)| name(kernel));
        bar(&mut inner, &name(&view.tasks[t]), part, &lead);
    }
    if shared.len() > ALL_ROWS {
        let label = format!("{} that share one space", plural(shared.len(), "task"));
        bar(&mut inner, &label, 0.0, "–");
    } else {
        for task in &shared {
            bar(&mut inner, &name(task), 0.0, "–");
        }
    }
    inner.push_str("</tbody></table>");
    scroll_box(out, "How much of each task’s weight is its own", &inner);
    if !shared.is_empty() {
        let (verb, plain) = if shared.len() == 1 {
            ("uses the common space alone", "its own part is 0")
        } else {
            ("share one space", "their own parts are 0")
        };
        let all = list(&shared, usize::MAX);
        if shared.len() > ALL_ROWS {
            put!(
                out,
                "<details><summary>The {} that {verb}</summary><p class=\"names\">{all}.</p></details>",
                plural(shared.len(), "task")
            );
        } else {
            put!(out, "<p><b>{}</b> ({plain}): {all}.</p>", capital(verb));
        }
    }
    if !empty.is_empty() {
        put!(
            out,
            "<p><b>No usable weight at all</b>: {}.</p>",
            list(&empty, usize::MAX)
        );
    }
}

/// One task's bar.
fn bar(out: &mut String, label: &str, part: f64, lead: &str) {
    put!(
        out,
        "<tr><th scope=\"row\">{label}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\"><i class=\"common\" style=\"width:{:.1}%\"></i>\
         <i class=\"own\" style=\"width:{:.1}%\"></i></span></td><td>{}</td><td class=\"text\">{lead}</td></tr>\n",
        100.0 * (1.0 - part),
        100.0 * part,
        share(part)
    );
}

/// Where nothing is split, how much weight each task was given.
fn totals(out: &mut String, view: &View<'_>) {
    let sums: Vec<f64> = (0..view.tasks.len())
        .map(|t| size(&view.theta(t)))
        .collect();
    let longest = sums
        .iter()
        .copied()
        .filter(|s| s.is_finite())
        .fold(f64::MIN_POSITIVE, f64::max);
    out.push_str("<p>This sharing has no common part. The bars show how much kernel weight each task was given.</p>");
    let mut inner = String::from(
        "<table class=\"bars\"><caption class=\"hidden\">Kernel weight of each task</caption><thead><tr><th scope=\"col\">Task</th>\
         <th scope=\"col\" colspan=\"2\">Sum of weights</th><th scope=\"col\">Led by</th></tr></thead><tbody>\n",
    );
    for (t, &sum) in sums.iter().enumerate() {
        let width = if sum.is_finite() {
            100.0 * sum / longest
        } else {
            0.0
        };
        let lead = view
            .leader(&view.theta(t))
            .map_or_else(|| "–".to_owned(), |(kernel, _)| name(kernel));
        put!(
            inner,
            "<tr><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\"><i class=\"own\" style=\"width:{width:.1}%\"></i></span></td>\
             <td>{}</td><td class=\"text\">{lead}</td></tr>\n",
            name(&view.tasks[t]),
            number(sum, 3)
        );
    }
    inner.push_str("</tbody></table>");
    scroll_box(out, "Kernel weight of each task", &inner);
    let none: Vec<&str> = (0..sums.len())
        .filter(|&t| sums[t] == 0.0)
        .map(|t| view.tasks[t].as_ref())
        .collect();
    if !none.is_empty() {
        put!(
            out,
            "<p><b>No weight at all</b>: {}.</p>",
            list(&none, usize::MAX)
        );
    }
}
