//! The certificate in words, and no stronger than it is.

use crate::Report;
use crate::text::{esc, gap_percent, interval};

/// How the certificate is presented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Reached and proven.
    Proven,
    /// Something to know before relying on it.
    Careful,
}

/// The certificate in words; both texts are HTML.
pub(crate) struct Verdict {
    /// How to present it.
    pub(crate) tone: Tone,
    /// A few words.
    pub(crate) headline: String,
    /// The sentences under them.
    pub(crate) text: String,
}

/// Puts status, bounds and gap of a report into words.
pub(crate) fn verdict(report: &Report) -> Verdict {
    let status = report.status.trim();
    let certified = !status.ends_with("-uncertified");
    let status = status.strip_suffix("-uncertified").unwrap_or(status);
    let reached = status == "converged";
    // A status this page does not know may mean anything: its bounds are repeated, not vouched for.
    let familiar = [
        "converged",
        "pass-limit",
        "time-limit",
        "stopped",
        "stalled",
    ]
    .contains(&status);
    let gap = report.gap;
    let known = gap.is_finite() && report.bound.is_finite() && report.objective.is_finite();
    let within = gap_percent(gap);
    let (lower, upper) = interval(report.bound, report.objective);
    let lower = format!("<b class=\"n\">{lower}</b>");
    let upper = format!("<b class=\"n\">{upper}</b>");
    let asked = report.tolerance.map_or_else(String::new, |tolerance| {
        format!(" The gap asked for was {}.", gap_percent(tolerance))
    });
    let rounded = if report.is_rounded && known {
        " All this is for the kernels as rounded to single precision."
    } else {
        ""
    };
    let proof = if !known {
        "There is no usable bound on the optimum, so nothing is proven about how close these weights are.".to_owned()
    } else if !certified {
        format!(
            "A kernel is indefinite, so a task’s training problem can have several local maxima, and the gap of {within} counts \
             only those that were found. The range from {lower} to {upper} for the optimum J* is evidence, not proof."
        )
    } else if !familiar {
        format!(
            "The run reports the range from {lower} to {upper} for the optimum J*, a gap of {within}."
        )
    } else if gap <= 0.0 {
        format!(
            "The optimum J* equals {upper} to the accuracy of the arithmetic: the certified lower bound meets the value \
             that these weights reach."
        )
    } else if gap < 0.5 {
        format!(
            "The answer is within {within} of the optimum, proven: J* lies between {lower} (certified lower bound) and \
             {upper} (reached by these weights)."
        )
    } else {
        format!(
            "The proven range for the optimum J* is still wide: from {lower} to {upper}, a gap of {within} of the value reached."
        )
    };
    let (headline, reason) = match status {
        "converged" if !known => ("Converged, without a usable certificate".to_owned(), ""),
        "converged" if !certified => (
            format!("Converged to a gap of {within}, but not certified"),
            "",
        ),
        "converged" => ("Converged and certified".to_owned(), ""),
        "pass-limit" => (
            "Not converged: the pass limit came first".to_owned(),
            " A higher limit would narrow the gap.",
        ),
        "time-limit" => (
            "Not converged: the time limit came first".to_owned(),
            " More time would narrow the gap.",
        ),
        "stopped" => (
            "Not converged: stopped on request".to_owned(),
            " This is the best point found until then.",
        ),
        "stalled" => (
            "Not converged: no further progress".to_owned(),
            " The solver reached the accuracy of floating-point arithmetic on this problem.",
        ),
        "" => ("The run did not say how it ended".to_owned(), ""),
        other => (format!("Ended with status “{}”", esc(other)), ""),
    };
    Verdict {
        tone: if reached && certified && known {
            Tone::Proven
        } else {
            Tone::Careful
        },
        headline,
        text: format!("{proof}{rounded}{asked}{reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: &str, bound: f64, gap: f64) -> Report {
        Report {
            status: status.into(),
            objective: 100.0,
            bound,
            gap,
            tolerance: Some(1e-4),
            ..Report::default()
        }
    }

    #[test]
    fn only_a_certified_end_is_called_proven() {
        let good = verdict(&report("converged", 99.996, 4e-5));
        assert_eq!(good.tone, Tone::Proven);
        assert!(
            good.text
                .contains("within 0.004\u{a0}% of the optimum, proven")
        );
        assert!(good.text.contains("99.9960") && good.text.contains("100.0000"));

        let found = verdict(&report("converged-uncertified", 99.996, 4e-5));
        assert_eq!(found.tone, Tone::Careful);
        assert!(found.headline.contains("not certified"));
        assert!(!found.text.contains("proven"));

        let early = verdict(&report("pass-limit", 98.0, 0.02));
        assert_eq!(early.tone, Tone::Careful);
        assert!(early.headline.contains("Not converged"));
        assert!(
            early.text.contains("within 2\u{a0}%")
                && early.text.contains("asked for was 0.01\u{a0}%")
        );

        let wide = verdict(&report("time-limit", -300.0, 4.0));
        assert!(wide.text.contains("still wide"));

        let early = verdict(&report("stopped-uncertified", 98.0, 0.02));
        assert!(!early.text.contains("proven"));
    }

    #[test]
    fn broken_numbers_prove_nothing() {
        for (bound, gap) in [
            (f64::NAN, 0.1),
            (f64::NEG_INFINITY, f64::INFINITY),
            (1.0, f64::NAN),
        ] {
            let v = verdict(&report("converged", bound, gap));
            assert_eq!(v.tone, Tone::Careful);
            assert!(v.text.contains("nothing is proven"));
        }
    }

    #[test]
    fn a_proof_for_rounded_kernels_says_so() {
        let words = "for the kernels as rounded to single precision";
        let mut report = report("converged", 99.9, 1e-3);
        assert!(!verdict(&report).text.contains(words));
        report.is_rounded = true;
        assert!(verdict(&report).text.contains(words));
        // Where nothing is proven, there is nothing to restrict.
        report.bound = f64::NEG_INFINITY;
        assert!(!verdict(&report).text.contains(words));
    }

    #[test]
    fn unknown_status_is_shown_and_escaped() {
        assert!(
            verdict(&report("<odd>", 99.0, 0.01))
                .headline
                .contains("&lt;odd&gt;")
        );
        assert!(!verdict(&report("odd", 99.0, 0.01)).text.contains("proven"));
        assert!(
            verdict(&report("", 99.0, 0.01))
                .headline
                .contains("did not say")
        );
    }
}
