//! The page around the sections.

use crate::Report;
use crate::text::{capital, count, duration, esc, gap_percent, put};
use crate::verdict::{Tone, verdict};
use crate::view::View;
use crate::{convergence, scores, spaces, tables, weights};

/// Colours, sizes, dark mode, paper.
const STYLE: &str = include_str!("style.css");

/// A section of the page.
pub(crate) struct Section {
    /// Where links lead.
    pub(crate) id: &'static str,
    /// Its heading.
    pub(crate) title: &'static str,
    /// What is in it, as HTML.
    pub(crate) body: String,
}

/// A box that scrolls by itself when its content is too large, also by keyboard; the page never scrolls sideways.
pub(crate) fn scroll_box(out: &mut String, label: &str, inner: &str) {
    put!(
        out,
        "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">{inner}</div>\n",
        esc(label)
    );
}

/// The report as one HTML page that needs nothing else.
///
/// The same report gives the same page, byte for byte.
pub fn html(report: &Report) -> String {
    let view = View::new(report);
    let sections: Vec<Section> = [
        weights::section(&view),
        report.transfer.as_ref().map(crate::Transfer::section),
        spaces::section(&view),
        scores::section(&view),
        tables::pictures(&view),
        convergence::section(&view),
        tables::data(&view),
        tables::settings(&view),
        tables::timing(&view),
        Some(tables::guide(&view)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let title = if report.title.trim().is_empty() {
        "Multi-task kernel learning"
    } else {
        report.title.trim()
    };
    // The policy makes sure of what the page promises: it loads nothing and runs nothing.
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"mtmkl {}\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the results</a>\n",
        esc(&report.version),
        esc(title)
    );
    head(&mut out, &view, title);
    out.push_str("<nav aria-label=\"Sections\"><ul>");
    for section in &sections {
        put!(
            out,
            "<li><a href=\"#{}\">{}</a></li>",
            section.id,
            section.title
        );
    }
    out.push_str("</ul></nav>\n<main id=\"main\" tabindex=\"-1\">\n");
    for Section { id, title, body } in &sections {
        put!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>\n{body}\n</section>\n"
        );
    }
    out.push_str("</main>\n<footer><p>");
    let version = format!("mtmkl {}", report.version);
    put!(
        out,
        "Made by {}. Everything is in this file; nothing is loaded from elsewhere.",
        esc(version.trim())
    );
    out.push_str("</p></footer>\n</body>\n</html>\n");
    out
}

/// Title, result, certificate and the main figures.
fn head(out: &mut String, view: &View<'_>, title: &str) {
    let report = view.report;
    put!(out, "<header>\n<h1>{}</h1>\n", esc(title));
    if let Some(subtitle) = report.subtitle.as_deref().filter(|s| !s.trim().is_empty()) {
        put!(out, "<p class=\"subtitle\">{}</p>\n", esc(subtitle));
    }
    let finding = spaces::finding(view);
    if !finding.is_empty() {
        put!(out, "<p class=\"lead\">{}.</p>\n", capital(&finding));
    }
    let verdict = verdict(report);
    let (class, sign) = match verdict.tone {
        Tone::Proven => ("proven", "✓"),
        Tone::Careful => ("careful", "!"),
    };
    put!(
        out,
        "<div class=\"verdict {class}\"><span class=\"sign\" aria-hidden=\"true\">{sign}</span><div><p class=\"headline\">{}</p><p>{}</p></div></div>\n",
        verdict.headline,
        verdict.text
    );
    out.push_str("<dl class=\"figures\">");
    let mut figure = |what: &str, value: &str| {
        put!(out, "<div><dt>{what}</dt><dd>{value}</dd></div>");
    };
    let together = report.transfer.as_ref().map(|own| own.tasks.len());
    figure("Tasks", &count(together.unwrap_or(view.tasks.len())));
    figure("Kernels", &count(view.kernels.len()));
    if !report.tasks.is_empty() {
        let samples = report.tasks.iter().map(|task| task.samples).sum();
        let what = if report.tasks.len() > 1 {
            "Samples, all tasks"
        } else {
            "Samples"
        };
        figure(what, &count(samples));
    }
    figure("Relative gap", &gap_percent(report.gap));
    if let Some(last) = report.passes.last() {
        figure("Passes", &count(last.number));
    }
    // The entry that says so is the total; parts of an unknown whole are not added up.
    if let Some((_, total)) = report.seconds.iter().find(|(part, _)| part == "total") {
        figure("Time", &duration(*total));
    }
    out.push_str("</dl>\n</header>\n");
}
