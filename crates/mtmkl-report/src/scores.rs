//! Scores per task, beside the baselines.

use crate::axis::Axis;
use crate::page::{Section, scroll_box};
use crate::text::{capital, esc, name, number, plural, put};
use crate::view::View;
use crate::{ScoreRow, Scores};

/// Shapes in the style sheet (`.s0` to `.s5`); methods beyond share the last.
const SHAPES: usize = 6;

/// The section; `None` without scores.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    let scores = view.report.scores.as_ref()?;
    if scores.rows.is_empty() {
        return None;
    }
    let mut body = String::new();
    put!(body, "<p>{}</p>", sentence(scores));
    put!(
        body,
        "<p class=\"legend\">{}, measured on {}; {} is better. The best of each row is <b>bold</b>.</p><ul class=\"legend\">",
        capital(&esc(&scores.metric).to_string()),
        esc(&scores.split),
        if scores.higher_is_better {
            "more"
        } else {
            "less"
        }
    );
    for (i, row) in scores.rows.iter().enumerate() {
        put!(
            body,
            "<li><i class=\"shape s{}\" aria-hidden=\"true\"></i> {}</li>",
            i.min(SHAPES - 1),
            esc(&row.method)
        );
    }
    body.push_str("</ul>");
    table(&mut body, view, scores);
    Some(Section {
        id: "scores",
        title: "Does learning the weights pay?",
        body,
    })
}

/// The row whose method's name contains `word`.
fn find<'a>(scores: &'a Scores, word: &str) -> Option<&'a ScoreRow> {
    scores
        .rows
        .iter()
        .find(|row| row.method.to_lowercase().contains(word))
}

/// Better, worse or equal, from the first one's side: positive is better.
fn advantage(scores: &Scores, a: f64, b: f64) -> f64 {
    if scores.higher_is_better {
        a - b
    } else {
        b - a
    }
}

/// Whether the learned weights beat their baselines, in words.
fn sentence(scores: &Scores) -> String {
    let metric = esc(&scores.metric);
    let Some(learned) = find(scores, "learned") else {
        let best = scores
            .rows
            .iter()
            .filter(|row| row.mean.is_finite())
            .max_by(|a, b| advantage(scores, a.mean, b.mean).total_cmp(&0.0));
        return best.map_or_else(String::new, |row| {
            format!(
                "Best mean {metric}: <b>{}</b> with {}.",
                esc(&row.method),
                score(row.mean)
            )
        });
    };
    let mut text = format!(
        "The learned weights reach {} {metric} of <b class=\"n\">{}</b>.",
        if scores.is_by_class { "an" } else { "a mean" },
        score(learned.mean)
    );
    let mut compared = false;
    for word in ["uniform", "single"] {
        let Some(base) = find(scores, word) else {
            continue;
        };
        compared = true;
        let better = advantage(scores, learned.mean, base.mean);
        let verdict = if better.is_nan() {
            "cannot be compared with"
        } else if better == 0.0 {
            "do exactly as well as"
        } else if better > 0.0 {
            "beat"
        } else {
            "<b>do not beat</b>"
        };
        put!(
            text,
            " They {verdict} the {}, which reaches {}",
            esc(&base.method),
            score(base.mean)
        );
        if better > 0.0 {
            put!(text, ", by {}", number(better, 2));
        } else if better < 0.0 {
            put!(text, ": they are {} behind", number(-better, 2));
        }
        if learned.per_task.len() > 1 && better.is_finite() {
            let pairs = || learned.per_task.iter().zip(&base.per_task);
            let wins = pairs()
                .filter(|(a, b)| advantage(scores, **a, **b) > 0.0)
                .count();
            let losses = pairs()
                .filter(|(a, b)| advantage(scores, **a, **b) < 0.0)
                .count();
            let ties = pairs().filter(|(a, b)| a == b).count();
            put!(
                text,
                " ({} better, {ties} equal, {losses} worse)",
                plural(wins, if scores.is_by_class { "class" } else { "task" })
            );
        }
        text.push('.');
    }
    if compared {
        text.push_str(" This is one split: small differences can be chance.");
    }
    text
}

/// A score with the digits that matter.
fn score(x: f64) -> String {
    if x.is_finite() && x.abs() < 10.0 && (x == 0.0 || x.abs() >= 0.001) {
        // Equal decimals line up in a column.
        format!("{x:.3}").replace('-', "\u{2212}")
    } else {
        number(x, 4)
    }
}

/// All scores as a table; each row has its dots on one common axis.
fn table(out: &mut String, view: &View<'_>, scores: &Scores) {
    let values = || {
        scores
            .rows
            .iter()
            .flat_map(|row| row.per_task.iter().chain(Some(&row.mean)))
            .copied()
            .filter(|v| v.is_finite())
    };
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let axis = (low <= high).then(|| {
        let room = 0.08 * (high - low);
        Axis::over(low - room, high + room, 4.0)
    });
    let what = if scores.is_by_class { "class" } else { "task" };
    let parts: Vec<&str> = if scores.parts.is_empty() {
        view.tasks.iter().map(AsRef::as_ref).collect()
    } else {
        scores.parts.iter().map(String::as_str).collect()
    };
    let mut inner = format!(
        "<table class=\"scores\"><caption class=\"hidden\">{} by {what} and method</caption><thead><tr><th scope=\"col\">{}</th>",
        esc(&scores.metric),
        capital(what)
    );
    if let Some(axis) = &axis {
        put!(
            inner,
            "<th scope=\"col\" class=\"dots\" aria-hidden=\"true\"><span class=\"ticks\">"
        );
        // Neighbours closer than the width of a label are left out by asking for four at most.
        for (v, label) in &axis.ticks {
            put!(
                inner,
                "<i style=\"left:{:.1}%\">{label}</i>",
                100.0 * axis.place(*v)
            );
        }
        put!(inner, "</span>{}</th>", esc(&scores.metric));
    }
    for (i, row) in scores.rows.iter().enumerate() {
        put!(
            inner,
            "<th scope=\"col\"><i class=\"shape s{}\" aria-hidden=\"true\"></i> {}</th>",
            i.min(SHAPES - 1),
            esc(&row.method)
        );
    }
    inner.push_str("</tr></thead><tbody>\n");
    if parts.len() > 1 {
        let means: Vec<f64> = scores.rows.iter().map(|row| row.mean).collect();
        let label = if scores.is_by_class {
            "all rows".to_string()
        } else {
            format!("mean of {}", plural(parts.len(), "task"))
        };
        line(&mut inner, scores, &label, &means, axis.as_ref(), "mean");
    }
    for (t, part) in parts.iter().enumerate() {
        let values: Vec<f64> = scores
            .rows
            .iter()
            .map(|row| row.per_task.get(t).copied().unwrap_or(f64::NAN))
            .collect();
        line(
            &mut inner,
            scores,
            &name(part),
            &values,
            axis.as_ref(),
            "one",
        );
    }
    inner.push_str("</tbody></table>");
    scroll_box(out, "Scores by task and method", &inner);
}

/// One row: dots, then numbers.
fn line(
    out: &mut String,
    scores: &Scores,
    label: &str,
    values: &[f64],
    axis: Option<&Axis>,
    class: &str,
) {
    put!(out, "<tr class=\"{class}\"><th scope=\"row\">{label}</th>");
    if let Some(axis) = axis {
        out.push_str("<td class=\"dots\" aria-hidden=\"true\"><span>");
        for (v, _) in &axis.ticks {
            put!(out, "<u style=\"left:{:.1}%\"></u>", 100.0 * axis.place(*v));
        }
        // The first method is filled and lies below; the others are outlines, so that ties show all.
        for (i, v) in values.iter().enumerate().filter(|(_, v)| v.is_finite()) {
            put!(
                out,
                "<i class=\"shape s{}\" style=\"left:{:.1}%\"></i>",
                i.min(SHAPES - 1),
                100.0 * axis.place(*v)
            );
        }
        out.push_str("</span></td>");
    }
    let best = values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .reduce(|a, b| if advantage(scores, a, b) >= 0.0 { a } else { b });
    for v in values {
        let text = score(*v);
        if Some(*v) == best && values.len() > 1 {
            put!(out, "<td><b>{text}</b></td>");
        } else {
            put!(out, "<td>{text}</td>");
        }
    }
    out.push_str("</tr>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(learned: &[f64], uniform: &[f64], higher_is_better: bool) -> Scores {
        let row = |method: &str, per_task: &[f64]| ScoreRow {
            method: method.into(),
            per_task: per_task.to_vec(),
            mean: per_task.iter().sum::<f64>() / per_task.len() as f64,
        };
        Scores {
            metric: "accuracy".into(),
            higher_is_better,
            split: "held-out 30 %".into(),
            parts: Vec::new(),
            is_by_class: false,
            rows: vec![
                row("learned weights", learned),
                row("uniform average", uniform),
            ],
        }
    }

    #[test]
    fn the_sentence_says_who_wins() {
        let won = sentence(&scores(&[0.9, 0.8, 0.7], &[0.8, 0.8, 0.75], true));
        assert!(won.contains("They beat the uniform average"));
        assert!(won.contains("1 task better, 1 equal, 1 worse"));
        let lost = sentence(&scores(&[0.9], &[0.8], false));
        assert!(lost.contains("do not beat"));
        let tied = sentence(&scores(&[0.5, 0.5], &[0.5, 0.5], true));
        assert!(tied.contains("exactly as well as"));
        let broken = sentence(&scores(&[f64::NAN], &[0.8], true));
        assert!(broken.contains("cannot be compared"));
    }
}
