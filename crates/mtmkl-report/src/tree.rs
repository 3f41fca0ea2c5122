//! The weights on a tree of tasks: what all share, what each group shares, and what is a task's own.

use crate::GroupEntry;
use crate::page::{Section, scroll_box};
use crate::text::{capital, list, name, plural, put, share};
use crate::view::{View, size};

/// Groups that overlap say whose they are: so many names each.
const NAMED: usize = 6;

/// One node of the tree.
pub(crate) struct Branch {
    /// How far in it stands; the root at 0.
    pub(crate) depth: usize,
    /// What it is, as HTML.
    pub(crate) label: String,
    /// M weights, those of this node alone.
    pub(crate) weights: Vec<f64>,
}

/// The nodes that have weights, each before those inside it.
pub(crate) fn branches(view: &View<'_>) -> Vec<Branch> {
    let report = view.report;
    let mut out = Vec::new();
    let mut depth = 0;
    if let Some(common) = &report.common {
        out.push(Branch {
            depth,
            label: format!("<b>all {}</b>", plural(view.tasks.len(), "task")),
            weights: view.row(Some(common)),
        });
        depth = 1;
    }
    let tree = Tree::new(view);
    for group in 0..report.groups.len() {
        if tree.group_above[group].is_none() {
            tree.add(view, group, depth, &mut out);
        }
    }
    for task in 0..view.tasks.len() {
        if tree.task_above[task].is_none() {
            add_task(view, task, depth, &mut out);
        }
    }
    out
}

/// For each group and each task the group that it stands in.
struct Tree {
    group_above: Vec<Option<usize>>,
    task_above: Vec<Option<usize>>,
    overlaps: bool,
}

impl Tree {
    fn new(view: &View<'_>) -> Self {
        let groups = &view.report.groups;
        let has = |group: &GroupEntry, task: usize| group.tasks.contains(&task);
        let meet = |a: &GroupEntry, b: &GroupEntry| a.tasks.iter().any(|&task| has(b, task));
        let pairs = groups.iter().enumerate();
        let overlaps = pairs.clone().any(|(at, one)| {
            let mut later = groups[at + 1..].iter();
            later.any(|other| one.level == other.level && meet(one, other))
        });
        // The innermost of an outer level that has all of its tasks: levels come outermost first.
        let group_above = pairs.map(|(at, own)| {
            let holds = |outer: &GroupEntry| {
                outer.level != own.level && own.tasks.iter().all(|&task| has(outer, task))
            };
            groups[..at].iter().rposition(holds)
        });
        let task_above = (0..view.tasks.len()).map(|task| {
            let innermost = groups.iter().rposition(|group| has(group, task));
            innermost.filter(|_| !overlaps)
        });
        Self {
            group_above: group_above.collect(),
            task_above: task_above.collect(),
            overlaps,
        }
    }

    /// A group, the groups inside it and its tasks.
    fn add(&self, view: &View<'_>, group: usize, depth: usize, out: &mut Vec<Branch>) {
        let entry = &view.report.groups[group];
        let tasks = entry.tasks.iter().filter_map(|&task| view.tasks.get(task));
        let tasks: Vec<&str> = tasks.map(AsRef::as_ref).collect();
        let whose = if self.overlaps {
            format!(" ({})", list(&tasks, NAMED))
        } else {
            String::new()
        };
        out.push(Branch {
            depth,
            label: format!("<b>{}</b>{whose}", name(&entry.name)),
            weights: view.row(Some(&entry.weights)),
        });
        for inner in group + 1..self.group_above.len() {
            if self.group_above[inner] == Some(group) {
                self.add(view, inner, depth + 1, out);
            }
        }
        for task in 0..self.task_above.len() {
            if self.task_above[task] == Some(group) {
                add_task(view, task, depth + 1, out);
            }
        }
    }
}

/// A task, where tasks have weights of their own.
fn add_task(view: &View<'_>, task: usize, depth: usize, out: &mut Vec<Branch>) {
    if let Some(weights) = view.gamma(task) {
        out.push(Branch {
            depth,
            label: name(&view.tasks[task]),
            weights,
        });
    }
}

/// Of each task's weight, the shares of what all tasks have, of each level of groups, and of its own.
fn shares(view: &View<'_>, levels: &[&str], task: usize) -> Vec<f64> {
    let report = view.report;
    let all = size(&view.theta(task));
    let part = |row: Option<Vec<f64>>| row.map_or(0.0, |row| size(&row) / all);
    let mut shares = vec![part(report.common.as_ref().map(|row| view.row(Some(row))))];
    for level in levels {
        let own = report.groups.iter();
        let own = own.filter(|group| group.level == *level && group.tasks.contains(&task));
        let own = own.map(|group| part(Some(view.row(Some(&group.weights)))));
        // From 0 on: the sum of nothing is −0.
        shares.push(own.fold(0.0, |sum, part| sum + part));
    }
    shares.push(part(view.gamma(task)));
    shares
}

/// The levels, outermost first.
fn levels<'a>(view: &View<'a>) -> Vec<&'a str> {
    let mut levels: Vec<&str> = view
        .report
        .groups
        .iter()
        .map(|g| g.level.as_str())
        .collect();
    levels.dedup();
    levels
}

/// The finding in one sentence, for the head of the page; HTML without a full stop.
pub(crate) fn finding(view: &View<'_>) -> String {
    let levels = levels(view);
    let tasks = view.tasks.len();
    let all: Vec<Vec<f64>> = (0..tasks).map(|task| shares(view, &levels, task)).collect();
    let mean = |at: usize| all.iter().map(|shares| shares[at]).sum::<f64>() / tasks as f64;
    let groups: f64 = (1..=levels.len()).map(mean).sum();
    format!(
        "{} in {}: of a task’s weight {} is common to all, {} is shared in groups and {} is its own, on average",
        plural(tasks, "task"),
        plural(view.report.groups.len(), "group"),
        share(mean(0)),
        share(groups),
        share(mean(levels.len() + 1))
    )
}

/// How much of each task's weight stands on which level.
pub(crate) fn section(view: &View<'_>) -> Section {
    let levels = levels(view);
    let mut body = format!("<p>{}.</p>", capital(&finding(view)));
    body.push_str(
        "<p class=\"legend\"><i class=\"swatch common\"></i> common to all <i class=\"swatch group\"></i> shared in groups \
         <i class=\"swatch own\"></i> the task’s own, as shares of its weight</p>",
    );
    let caption = "How much of each task’s weight is shared";
    let mut inner = format!(
        "<table class=\"bars\"><caption class=\"hidden\">{caption}</caption><thead><tr><th scope=\"col\">Task</th>\
         <th scope=\"col\">Shares</th><th scope=\"col\">common</th>"
    );
    for level in &levels {
        put!(inner, "<th scope=\"col\">{}</th>", name(level));
    }
    inner.push_str("<th scope=\"col\">own</th></tr></thead><tbody>\n");
    for task in 0..view.tasks.len() {
        let shares = shares(view, &levels, task);
        put!(
            inner,
            "<tr><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\">",
            name(&view.tasks[task])
        );
        for (at, part) in shares.iter().enumerate() {
            let class = match at {
                0 => "common",
                at if at > levels.len() => "own",
                _ => "group",
            };
            let width = if part.is_finite() {
                100.0 * part.min(1.0)
            } else {
                0.0
            };
            put!(
                inner,
                "<i class=\"{class}\" style=\"width:{width:.1}%\"></i>"
            );
        }
        inner.push_str("</span></td>");
        for part in shares {
            put!(inner, "<td>{}</td>", share(part));
        }
        inner.push_str("</tr>\n");
    }
    inner.push_str("</tbody></table>");
    scroll_box(&mut body, caption, &inner);
    Section {
        id: "spaces",
        title: "Who shares, and who does not",
        body,
    }
}
