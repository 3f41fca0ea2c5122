//! How the solver got there: bounds and gap over the passes.

use crate::PassEntry;
use crate::axis::Axis;
use crate::chart::{Chart, Line};
use crate::page::{Section, scroll_box};
use crate::text::{count, duration, gap_percent, number, plural, put, superscript};
use crate::view::View;

/// Lines and the table are thinned out to about this many passes.
const SHOWN: usize = 400;
/// Gaps below this are rounding.
const SMALLEST: f64 = 1e-16;

/// Charts and table of the trace; `None` without one.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    let passes = thinned(&view.report.passes);
    let (first, last) = (passes.first()?, passes.last()?);
    let certified = !view.report.status.ends_with("-uncertified");
    let total = view.report.passes.len();
    let mut body = format!(
        "<p>A pass trains every task once at one choice of weights. The weights’ value J(θ) falls towards the optimum from above, \
         the lower bound rises towards it from below{}; the run ends when they are close enough. It took {}{}.</p><div class=\"charts\">",
        if certified {
            ""
        } else {
            " (here over the local maxima found only)"
        },
        plural(total, "pass"),
        if last.seconds.is_finite() && last.seconds > 0.0 {
            format!(" and {}", duration(last.seconds))
        } else {
            String::new()
        }
    );
    let x = Axis::counting(first.number as f64, last.number as f64);
    if let Some(chart) = gap_chart(&passes, &x, view.report.tolerance) {
        put!(
            body,
            "<figure>{chart}<figcaption>Relative gap (J(θ) − bound) / |J(θ)|, on a logarithmic scale.</figcaption></figure>"
        );
    }
    if let Some((chart, clipped)) = bounds_chart(&passes, &x) {
        put!(
            body,
            "<figure>{chart}<figcaption>The two bounds on the optimum J*.{}</figcaption></figure>",
            if clipped {
                " Early bounds lie below the chart."
            } else {
                ""
            }
        );
    }
    body.push_str("</div>");
    table(&mut body, &passes, total);
    Some(Section {
        id: "convergence",
        title: "How it converged",
        body,
    })
}

/// First, last and evenly chosen passes between them.
fn thinned(passes: &[PassEntry]) -> Vec<PassEntry> {
    let stride = passes.len().div_ceil(SHOWN).max(1);
    let mut out: Vec<PassEntry> = passes.iter().step_by(stride).copied().collect();
    if let (Some(end), Some(last)) = (passes.last(), out.last())
        && end.number != last.number
    {
        out.push(*end);
    }
    out
}

/// The gap over the passes; `None` if no gap is a positive number.
fn gap_chart(passes: &[PassEntry], x: &Axis, tolerance: Option<f64>) -> Option<String> {
    let points: Vec<(f64, f64)> = passes
        .iter()
        .map(|p| {
            let gap = if p.gap.is_finite() {
                p.gap.max(SMALLEST).log10()
            } else {
                f64::NAN
            };
            (p.number as f64, gap)
        })
        .collect();
    let wanted = tolerance
        .filter(|t| t.is_finite() && *t > 0.0)
        .map(f64::log10);
    let finite = || points.iter().map(|p| p.1).filter(|y| y.is_finite());
    let high = finite().chain(wanted).fold(f64::NEG_INFINITY, f64::max);
    let low = finite().chain(wanted).fold(f64::INFINITY, f64::min);
    finite().next()?;
    let (low, high) = ((low - 0.2).floor(), (high + 0.05).ceil());
    let chart = Chart {
        alt: format!(
            "Relative gap over {}, from {} to {}",
            plural(passes.len(), "pass"),
            passes
                .first()
                .map_or_else(String::new, |p| gap_percent(p.gap)),
            passes
                .last()
                .map_or_else(String::new, |p| gap_percent(p.gap)),
        ),
        across: "pass",
        up: "relative gap",
        x: x.clone(),
        y: decades(low, high.max(low + 1.0)),
        lines: vec![Line {
            class: "gap",
            points: &points,
            label: "",
            above: true,
        }],
        level: wanted.map(|w| {
            let asked = gap_percent(tolerance.unwrap_or(0.0));
            (w, format!("asked for: {asked}"))
        }),
        id: "clip-gap",
    };
    Some(chart.svg())
}

/// An axis of powers of ten: per cent where those are easy to read, powers where not.
fn decades(low: f64, high: f64) -> Axis {
    let stride = ((high - low) / 6.0).ceil().max(1.0);
    let percent = low >= -7.0 && high <= 2.0;
    let ticks = (0..=40)
        .map(|i| high - stride * f64::from(i))
        .take_while(|e| *e >= low)
        .map(|e| {
            let label = if percent {
                format!("{}\u{a0}%", number(10_f64.powf(e + 2.0), 1))
            } else {
                format!("10{}", superscript(&format!("{e:.0}")))
            };
            (e, label)
        })
        .collect();
    Axis { low, high, ticks }
}

/// Objective and bound over the passes, and whether early bounds are off the chart.
fn bounds_chart(passes: &[PassEntry], x: &Axis) -> Option<(String, bool)> {
    let series = |value: fn(&PassEntry) -> f64| -> Vec<(f64, f64)> {
        passes.iter().map(|p| (p.number as f64, value(p))).collect()
    };
    let (upper, lower) = (series(|p| p.objective), series(|p| p.bound));
    // A first bound far below everything would press all else into one line.
    let near: Vec<f64> = passes
        .iter()
        .filter(|p| p.gap <= 1.0)
        .map(|p| p.bound)
        .collect();
    let all: Vec<f64> = lower.iter().map(|p| p.1).collect();
    let bounds = if near.is_empty() { &all } else { &near };
    let shown = || {
        upper
            .iter()
            .map(|p| p.1)
            .chain(bounds.iter().copied())
            .filter(|v| v.is_finite())
    };
    shown().next()?;
    let low = shown().fold(f64::INFINITY, f64::min);
    let high = shown().fold(f64::NEG_INFINITY, f64::max);
    // Room for the two labels.
    let room = 0.15 * (high - low);
    let y = Axis::over(low - room, high + room, 5.0);
    let clipped = all.iter().any(|b| *b < y.low);
    let end = passes.last()?;
    let chart = Chart {
        alt: format!(
            "Objective and lower bound over the passes; at the end {} and {}",
            number(end.objective, 6),
            number(end.bound, 6)
        ),
        across: "pass",
        up: "objective",
        x: x.clone(),
        y,
        lines: vec![
            Line {
                class: "upper",
                points: &upper,
                label: "value reached, J(θ)",
                above: true,
            },
            Line {
                class: "lower",
                points: &lower,
                label: "lower bound on J*",
                above: false,
            },
        ],
        level: None,
        id: "clip-bounds",
    };
    Some((chart.svg(), clipped))
}

/// The trace in numbers.
fn table(out: &mut String, passes: &[PassEntry], total: usize) {
    let mut inner = String::from(
        "<table><caption class=\"hidden\">The passes in numbers</caption><thead><tr><th scope=\"col\">Pass</th><th scope=\"col\">Value J(θ)</th>\
         <th scope=\"col\">Lower bound</th><th scope=\"col\">Gap</th><th scope=\"col\">Step</th><th scope=\"col\">Inner iterations</th>\
         <th scope=\"col\">Time</th></tr></thead><tbody>\n",
    );
    for p in passes {
        put!(
            inner,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            count(p.number),
            number(p.objective, 8),
            number(p.bound, 8),
            gap_percent(p.gap),
            number(p.step, 3),
            count(p.inner_iterations),
            duration(p.seconds)
        );
    }
    inner.push_str("</tbody></table>");
    put!(
        out,
        "<details><summary>The passes in numbers{}</summary>",
        if passes.len() < total {
            format!(" ({} of {})", count(passes.len()), count(total))
        } else {
            String::new()
        }
    );
    scroll_box(out, "The passes in numbers", &inner);
    out.push_str("</details>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_traces_keep_both_ends() {
        let passes: Vec<PassEntry> = (1..=1003)
            .map(|number| PassEntry {
                number,
                ..PassEntry::default()
            })
            .collect();
        let short = thinned(&passes);
        assert!(short.len() <= SHOWN + 1);
        assert_eq!((short[0].number, short[short.len() - 1].number), (1, 1003));
        assert_eq!(thinned(&passes[..7]).len(), 7);
        assert!(thinned(&[]).is_empty());
    }

    #[test]
    fn broken_traces_draw_nothing() {
        let broken = PassEntry {
            number: 1,
            objective: f64::NAN,
            bound: f64::NEG_INFINITY,
            gap: f64::NAN,
            ..PassEntry::default()
        };
        let x = Axis::counting(1.0, 1.0);
        assert!(gap_chart(&[broken], &x, Some(1e-4)).is_none());
        assert!(bounds_chart(&[broken], &x).is_none());
    }
}
