//! The plain sections: pictures, settings, data, time, and how to read the page.

use crate::Picture;
use crate::page::{Section, scroll_box};
use crate::text::{count, duration, esc, name, put, share};
use crate::view::View;

/// Pictures; `None` if there are none.
pub(crate) fn pictures(view: &View<'_>) -> Option<Section> {
    if view.report.pictures.is_empty() {
        return None;
    }
    let mut body = String::from("<div class=\"pictures\">");
    for picture in &view.report.pictures {
        put!(
            body,
            "<figure><img src=\"{}\" alt=\"{}\"><figcaption>{}</figcaption></figure>",
            data_url(picture),
            esc(&picture.alt),
            esc(&picture.title)
        );
    }
    body.push_str("</div>");
    Some(Section {
        id: "pictures",
        title: "Pictures",
        body,
    })
}

/// The picture as an image of its own: nothing in it can run, load, or clash with the page.
fn data_url(picture: &Picture) -> String {
    const NAMESPACE: &str = "http://www.w3.org/2000/svg";
    let svg = picture.svg.trim();
    // Inside a page an SVG needs no name space, as a file it does.
    let whole = if svg.contains(NAMESPACE) {
        svg.to_owned()
    } else {
        svg.replacen("<svg", &format!("<svg xmlns=\"{NAMESPACE}\""), 1)
    };
    let mut url = String::with_capacity(2 * whole.len());
    url.push_str("data:image/svg+xml;charset=utf-8,");
    for byte in whole.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => url.push(char::from(byte)),
            b' ' | b'-' | b'_' | b'.' | b',' | b':' | b';' | b'/' | b'=' | b'(' | b')' => {
                url.push(char::from(byte));
            }
            _ => put!(url, "%{byte:02X}"),
        }
    }
    url
}

/// Name and value in two columns.
fn pairs<'a>(out: &mut String, caption: &str, rows: impl IntoIterator<Item = (&'a str, &'a str)>) {
    put!(
        out,
        "<div class=\"box\"><table class=\"pairs\"><caption class=\"hidden\">{caption}</caption><tbody>\n"
    );
    for (key, value) in rows {
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            esc(key),
            esc(value)
        );
    }
    out.push_str("</tbody></table></div>");
}

/// Machine, sharing, solver and all settings; `None` if nothing is known.
pub(crate) fn settings(view: &View<'_>) -> Option<Section> {
    let report = view.report;
    let solver = match &report.fallback {
        Some(reason) => format!("epf in place of {}: {reason}", report.solver),
        None => report.solver.clone(),
    };
    let chosen = [
        ("machine", &report.machine),
        ("sharing", &report.sharing),
        ("solver", &solver),
    ];
    let rows: Vec<(&str, &str)> = chosen
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key, value.as_str()))
        .chain(
            report
                .settings
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str())),
        )
        .collect();
    if rows.is_empty() {
        return None;
    }
    let mut body = String::new();
    pairs(&mut body, "Settings", rows);
    Some(Section {
        id: "settings",
        title: "Settings",
        body,
    })
}

/// The data and the tasks' sizes; `None` if nothing is known.
pub(crate) fn data(view: &View<'_>) -> Option<Section> {
    let report = view.report;
    if report.data.is_empty() && report.tasks.is_empty() {
        return None;
    }
    let mut body = String::new();
    if !report.data.is_empty() {
        let rows = report
            .data
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        pairs(&mut body, "Data", rows);
    }
    if !report.tasks.is_empty() {
        let mut inner = String::from(
            "<table><caption class=\"hidden\">Samples and support of each task</caption><thead><tr><th scope=\"col\">Task</th>\
             <th scope=\"col\">Samples</th><th scope=\"col\">Support</th><th scope=\"col\">Share</th></tr></thead><tbody>\n",
        );
        for (t, task) in report.tasks.iter().enumerate() {
            put!(
                inner,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                name(&view.tasks[t]),
                count(task.samples),
                count(task.support),
                share(task.support as f64 / task.samples as f64)
            );
        }
        inner.push_str("</tbody></table>");
        scroll_box(&mut body, "Samples and support of each task", &inner);
        body.push_str("<p class=\"note\">Support: training samples that the decision function needs. Few of them make prediction fast.</p>");
    }
    Some(Section {
        id: "data",
        title: "Data",
        body,
    })
}

/// Where the time went; `None` if not known.
pub(crate) fn timing(view: &View<'_>) -> Option<Section> {
    let seconds = &view.report.seconds;
    if seconds.is_empty() {
        return None;
    }
    let usable = |s: f64| if s.is_finite() { s.max(0.0) } else { 0.0 };
    let longest = seconds
        .iter()
        .map(|(_, s)| usable(*s))
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut inner = String::from(
        "<table class=\"bars\"><caption class=\"hidden\">Where the time went</caption><thead><tr><th scope=\"col\">Part</th>\
         <th scope=\"col\" colspan=\"2\">Time</th></tr></thead><tbody>\n",
    );
    for (part, s) in seconds {
        let class = if part == "total" { "all" } else { "common" };
        put!(
            inner,
            "<tr><th scope=\"row\">{}</th><td class=\"bar\"><span class=\"track\" aria-hidden=\"true\"><i class=\"{class}\" style=\"width:{:.1}%\"></i></span></td>\
             <td>{}</td></tr>\n",
            esc(part),
            100.0 * usable(*s) / longest,
            duration(*s)
        );
    }
    inner.push_str("</tbody></table>");
    let mut body = String::new();
    scroll_box(&mut body, "Where the time went", &inner);
    Some(Section {
        id: "time",
        title: "Time",
        body,
    })
}

/// A short guide, as long as what the page shows.
pub(crate) fn guide(view: &View<'_>) -> Section {
    let report = view.report;
    let mut body = String::from(
        "<dl><dt>Weights</dt><dd>Each task compares samples by a weighted sum of kernels, Σ θ<sub>m</sub> k<sub>m</sub>(x, z). A larger weight means that \
         the task relies more on that kernel; a dot means that it does not use it at all. Weights compare fairly only between kernels of like size, \
         which normalising them ensures.</dd>",
    );
    if !report.groups.is_empty() {
        body.push_str(
            "<dt>Sharing</dt><dd>θ is a sum: a part that is the same for all tasks, a part for each group of tasks that a task stands in, and a part of \
             its own. The parts of a level compete for one budget, and the learner decides which of them are worth their price.</dd>",
        );
    } else if report.specific.is_some() {
        body.push_str(
            "<dt>Sharing</dt><dd>θ = ζ + γ: ζ is the same for all tasks, γ belongs to one task. The learner decides for each task whether a part \
             of its own is worth its price; tasks with γ = 0 share one kernel space.</dd>",
        );
    }
    body.push_str(
        "<dt>Certificate</dt><dd>Learning the weights is one convex problem with a best possible value J*. The run computes a bound from below as well as the \
         value it reached, so the distance from the optimum is known, whatever the solver did on the way. It says that the stated problem is solved, not \
         that the model predicts well.</dd>",
    );
    if report.status.ends_with("-uncertified") {
        body.push_str(
            "<dd>Here a kernel is indefinite: the bounds count only the local maxima that were found, and prove nothing about the others.</dd>",
        );
    }
    if report.scores.is_some() {
        body.push_str(
            "<dt>Baselines</dt><dd>The uniform average uses all kernels alike, the best single kernel only one. Learned weights are worth having when they \
             beat both on samples that were not used for training.</dd>",
        );
    }
    body.push_str("</dl>");
    Section {
        id: "guide",
        title: "How to read this page",
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_sealed() {
        let picture = Picture {
            title: "t".into(),
            svg: "<svg viewBox=\"0 0 1 1\"><script>alert('ö')</script></svg>".into(),
            alt: "a".into(),
        };
        let url = data_url(&picture);
        assert!(!url.contains(['<', '"', '\'', '>', '#', 'ö']));
        assert!(url.contains("xmlns=%22http://www.w3.org/2000/svg%22"));
    }
}
