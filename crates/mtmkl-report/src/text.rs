//! Text and numbers as the page writes them.

use std::fmt::{self, Display, Formatter, Write};

/// Appends formatted text to a `String`.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        $out.push_str(&format!($($arg)*))
    };
}
pub(crate) use put;

/// Text that may hold anything, made safe for element content and for attributes in double or single quotes.
pub(crate) struct Escaped<'a>(&'a str);

/// See [`Escaped`].
pub(crate) fn esc(text: &str) -> Escaped<'_> {
    Escaped(text)
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\t' | '\n' | '\r' => f.write_char(c)?,
                // Not allowed in HTML or SVG at all, not even as a reference.
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                c if c.is_control() => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A name in a box that the style sheet may cut short; the whole name stays in the text and in the title.
///
/// Names of one family often differ at their end only, so a long name is cut before its last letters.
pub(crate) fn name(text: &str) -> String {
    const TAIL: usize = 8;
    let length = text.chars().count();
    // Short names are never cut: no title, less to load in large tables.
    if length <= 10 {
        return format!("<span class=\"name\">{}</span>", esc(text));
    }
    let cut = text
        .char_indices()
        .nth(length - TAIL)
        .map_or(text.len(), |(place, _)| place);
    let (head, tail) = text.split_at(cut);
    format!(
        "<span class=\"name\" title=\"{}\"><span>{}</span><span>{}</span></span>",
        esc(text),
        esc(head),
        esc(tail)
    )
}

/// With a proper minus sign.
fn minus(text: &str) -> String {
    text.replace('-', "\u{2212}")
}

/// What to write for a number that is none.
fn not_finite(x: f64) -> Option<&'static str> {
    if x.is_nan() {
        Some("NaN")
    } else if x == f64::INFINITY {
        Some("∞")
    } else if x == f64::NEG_INFINITY {
        Some("\u{2212}∞")
    } else {
        None
    }
}

/// `1.2e-5` as `1.2 × 10⁻⁵`.
fn powers(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return minus(text);
    };
    format!("{} × 10{}", minus(mantissa), superscript(exponent))
}

/// Digits and minus sign raised.
pub(crate) fn superscript(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '0' | '4'..='9' => {
                char::from_u32(0x2070 + (c as u32 - '0' as u32)).unwrap_or('\u{fffd}')
            }
            other => other,
        })
        .collect()
}

/// Decimal exponent of a finite number that is not 0.
#[expect(
    clippy::cast_possible_truncation,
    reason = "exponents of f64 fit into i32"
)]
fn exponent(x: f64) -> i32 {
    x.abs().log10().floor() as i32
}

/// `x` with `digits` significant digits, plain where that reads well, with powers of ten where not.
pub(crate) fn number(x: f64, digits: i32) -> String {
    if let Some(text) = not_finite(x) {
        return text.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let e = exponent(x);
    let decimals = usize::try_from(digits - 1 - e).unwrap_or(0);
    if (-5..8).contains(&e) {
        let text = format!("{x:.decimals$}");
        minus(trim_zeros(&text))
    } else {
        let decimals = usize::try_from(digits - 1).unwrap_or(0);
        let text = format!("{x:.decimals$e}");
        powers(&text)
    }
}

/// Drops zeros after the decimal point that say nothing.
fn trim_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A kernel weight: a dot for exactly 0, so that sparsity shows, and never `0.000` for what is not 0.
pub(crate) fn weight(w: f64) -> String {
    if let Some(text) = not_finite(w) {
        return text.into();
    }
    let size = w.abs();
    let text = if w == 0.0 {
        return "·".into();
    } else if size < 0.0005 {
        format!("{w:.0e}")
    } else if size < 9.9995 {
        format!("{w:.3}")
    } else if size < 999.95 {
        format!("{w:.1}")
    } else if size < 99_999.5 {
        format!("{w:.0}")
    } else {
        format!("{w:.1e}")
    };
    minus(&text)
}

/// A share as a percentage for reading: whole numbers, but never 0 % for something or 100 % for not all.
pub(crate) fn share(x: f64) -> String {
    if !x.is_finite() {
        return "–".into();
    }
    let percent = 100.0 * x;
    if x > 0.0 && percent < 0.01 {
        "&lt; 0.01\u{a0}%".into()
    } else if x > 0.0 && percent < 0.95 {
        format!("{}\u{a0}%", number(percent, 1))
    } else if x < 1.0 && percent > 99.5 {
        format!("{percent:.1}\u{a0}%").replace("100.0", "&gt; 99.9")
    } else {
        format!("{percent:.0}\u{a0}%")
    }
}

/// A relative gap in per cent with two significant digits, rounded up, so that "within" stays true.
pub(crate) fn gap_percent(gap: f64) -> String {
    if !gap.is_finite() || gap <= 0.0 {
        return not_finite(gap).map_or_else(|| "0\u{a0}%".into(), Into::into);
    }
    let percent = 100.0 * gap;
    let unit = 10_f64.powi(exponent(percent) - 1);
    // 0.0041 / 0.0001 is 41.00000000000001: what is rounding already must not be rounded up again.
    let raised = (percent / unit * (1.0 - 1e-12)).ceil() * unit;
    format!("{}\u{a0}%", number(raised, 2))
}

/// A lower and an upper bound with as many digits as it takes to tell them apart; rounded outwards.
pub(crate) fn interval(lower: f64, upper: f64) -> (String, String) {
    if !(lower.is_finite() && upper.is_finite()) {
        return (number(lower, 6), number(upper, 6));
    }
    let largest = lower.abs().max(upper.abs());
    if largest == 0.0 {
        return ("0".into(), "0".into());
    }
    let width = upper - lower;
    let top = exponent(largest);
    // Two digits of the difference, at least five in all, and no more than a f64 holds.
    let last = if width > 0.0 {
        (exponent(width) - 1).clamp(top - 14, top - 4)
    } else {
        top - 9
    };
    let plain = (-5..9).contains(&top);
    let one = |x: f64, away: f64| -> String {
        let write = |x: f64| {
            if plain {
                let decimals = usize::try_from(-last).unwrap_or(0);
                format!("{x:.decimals$}")
            } else {
                let decimals = usize::try_from(top - last).unwrap_or(0);
                format!("{x:.decimals$e}")
            }
        };
        let text = write(x);
        let shown: f64 = text.parse().unwrap_or(x);
        if (x - shown) * away > 0.0 {
            write(shown + away * 10_f64.powi(last))
        } else {
            text
        }
    };
    (powers(&one(lower, -1.0)), powers(&one(upper, 1.0)))
}

/// A duration for reading.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return "–".into();
    }
    if seconds == 0.0 {
        "0 s".into()
    } else if seconds < 0.000_999_5 {
        format!("{} µs", number(seconds * 1e6, 2))
    } else if seconds < 0.9995 {
        format!("{} ms", number(seconds * 1e3, 3))
    } else if seconds < 99.95 {
        format!("{} s", number(seconds, 3))
    } else {
        let whole = seconds.round();
        let (hours, minutes) = ((whole / 3600.0).floor(), (whole % 3600.0 / 60.0).floor());
        if hours > 0.0 {
            format!("{hours:.0} h {minutes:.0} min")
        } else {
            format!("{minutes:.0} min {:.0} s", whole % 60.0)
        }
    }
}

/// A count with separators between thousands.
pub(crate) fn count(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 task`, `2 tasks`, `2 passes`.
pub(crate) fn plural(n: usize, noun: &str) -> String {
    let s = match (n, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {noun}{s}", count(n))
}

/// `a, b and c`, escaped, cut after `most` names.
pub(crate) fn list(names: &[&str], most: usize) -> String {
    let mut parts: Vec<String> = names
        .iter()
        .take(most)
        .map(|n| format!("<b>{}</b>", esc(n)))
        .collect();
    if names.len() > most {
        parts.push(format!("{} more", count(names.len() - most)));
    }
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} and {last}", parts.join(", ")),
    }
}

/// A sentence's first letter raised; escaped text may begin with a reference, which is left alone.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + chars.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_all_that_could_leave_text_or_attributes() {
        assert_eq!(
            esc("<a href=\"x\" b='y'>&\u{0}\u{7}").to_string(),
            "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
        assert!(name("a \"long\" <name>").contains("title=\"a &quot;long&quot; &lt;name&gt;\""));
        assert!(!name("short").contains("title"));
        assert!(
            name("ä long näme, ölü ä").contains("<span>ä long näm</span><span>e, ölü ä</span>")
        );
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(534.088_04, 6), "534.088");
        assert_eq!(number(0.25, 3), "0.25");
        assert_eq!(number(-1.5e-9, 2), "−1.5 × 10⁻⁹");
        assert_eq!(number(f64::NAN, 3), "NaN");
        assert_eq!(number(f64::NEG_INFINITY, 3), "−∞");
        assert_eq!(number(12_345_678.0, 3), "12345678");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(123), "123");
    }

    #[test]
    fn a_weight_is_a_dot_only_if_it_is_nothing() {
        assert_eq!(weight(0.0), "·");
        assert_eq!(weight(-0.0), "·");
        assert_eq!(weight(3e-7), "3e−7");
        assert_eq!(weight(0.3642), "0.364");
        assert_eq!(weight(12.3), "12.3");
        assert_eq!(weight(f64::NAN), "NaN");
    }

    #[test]
    fn gaps_are_rounded_up() {
        assert_eq!(gap_percent(4.01e-5), "0.0041\u{a0}%");
        assert_eq!(gap_percent(4.1e-5), "0.0041\u{a0}%");
        assert_eq!(gap_percent(3.21e-10), "3.3 × 10⁻⁸\u{a0}%");
        assert_eq!(gap_percent(0.0), "0\u{a0}%");
        assert_eq!(gap_percent(f64::INFINITY), "∞");
    }

    #[test]
    fn bounds_are_rounded_outwards_and_told_apart() {
        assert_eq!(
            interval(534.067_49, 534.088_01),
            ("534.067".into(), "534.089".into())
        );
        assert_eq!(interval(-3.5, -3.25), ("−3.5000".into(), "−3.2500".into()));
        let (lower, upper) = interval(1.0 / 3.0, 1.0 / 3.0);
        assert_eq!(
            (lower.as_str(), upper.as_str()),
            ("0.3333333333", "0.3333333334")
        );
        assert_eq!(interval(0.0, 0.0), ("0".into(), "0".into()));
        assert_eq!(interval(f64::NEG_INFINITY, 2.0).0, "−∞");
        assert_eq!(
            interval(1.234_5e12, 1.234_6e12),
            ("1.23450 × 10¹²".into(), "1.23460 × 10¹²".into())
        );
    }

    #[test]
    fn shares_never_claim_all_or_nothing_wrongly() {
        assert_eq!(share(0.0), "0\u{a0}%");
        assert_eq!(share(1.0), "100\u{a0}%");
        assert_eq!(share(0.0004), "0.04\u{a0}%");
        assert_eq!(share(6e-8), "&lt; 0.01\u{a0}%");
        assert_eq!(share(0.998), "99.8\u{a0}%");
        assert_eq!(share(0.999_999), "&gt; 99.9\u{a0}%");
        assert_eq!(share(f64::NAN), "–");
    }

    #[test]
    fn durations() {
        assert_eq!(duration(0.0123), "12.3 ms");
        assert_eq!(duration(3.456), "3.46 s");
        assert_eq!(duration(125.0), "2 min 5 s");
        assert_eq!(duration(7322.0), "2 h 2 min");
        assert_eq!(duration(f64::NAN), "–");
    }

    #[test]
    fn lists() {
        assert_eq!(list(&["a"], 3), "<b>a</b>");
        assert_eq!(list(&["a", "b"], 3), "<b>a</b> and <b>b</b>");
        assert_eq!(
            list(&["a", "b", "c", "d"], 2),
            "<b>a</b>, <b>b</b> and 2 more"
        );
    }
}
