//! How wide text is, and what of it fits. The reader's font is not known, so widths are estimates on the safe side: those of a wide
//! common one (DejaVu Sans, Verdana).

/// Height of a line of text, in font sizes.
pub(crate) const LINE: f64 = 1.4;

/// The width of a character in font sizes.
fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 't' | 'r' | 'I' | 'J' | '(' | ')' | '[' | ']' | '-' | '/' | '"' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '—' => 0.98,
        'A'..='Z' | '+' | '−' | '=' | '<' | '>' | '±' | '_' | '~' | '#' | '&' => 0.78,
        // Scripts whose letters fill a square.
        '\u{2e80}'.. => 1.05,
        _ => 0.64,
    }
}

/// The room that a line of text needs at most.
pub(crate) fn room(text: &str, size: f64, bold: bool) -> f64 {
    let wider = if bold { 1.09 } else { 1.0 };
    wider * size * text.chars().map(advance).sum::<f64>()
}

/// The text, or its beginning with an ellipsis when it is wider than `width`.
pub(crate) fn fitted(text: &str, size: f64, bold: bool, width: f64) -> String {
    if room(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut short: Vec<char> = text.chars().collect();
    while short.pop().is_some() {
        let candidate: String = short.iter().chain(&['…']).collect();
        if room(&candidate, size, bold) <= width {
            return candidate;
        }
    }
    String::new()
}

/// The text in at most `most` lines of at most `width`, broken between words; bold.
pub(crate) fn wrapped(text: &str, size: f64, width: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let full = lines.len() >= most;
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match (longer, lines.last_mut()) {
            (Some(longer), Some(line)) if full || room(&longer, size, true) <= width => {
                *line = longer;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
        .iter()
        .map(|line| fitted(line, size, true, width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_or_broken() {
        assert_eq!(fitted("short", 10.0, false, 100.0), "short");
        let cut = fitted(&"word ".repeat(50), 10.0, false, 100.0);
        assert!(cut.ends_with('…') && room(&cut, 10.0, false) <= 100.0);
        assert_eq!(fitted("word", 10.0, false, 1.0), "");
        let lines = wrapped(&"word ".repeat(50), 10.0, 100.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'));
        assert!(room("中文", 10.0, false) > room("ab", 10.0, false));
    }
}
