//! The one door to the terminal: names from tables and from foreign model files can hold anything, and must neither command the terminal
//! nor pass for something else.

use std::borrow::Cow;

use mtmkl_table::words::is_harmless;

/// Most columns of the terminal that a cell of a table takes.
const CELL_WIDTH: usize = 80;

/// Characters without a width of their own, first and last of each range: marks that combine with the one before, joiners and
/// selectors. The scripts with many such marks; a rare one more only shifts a column.
const COMBINING: [(char, char); 27] = [
    ('\u{300}', '\u{36f}'),
    ('\u{483}', '\u{489}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{610}', '\u{61a}'),
    ('\u{64b}', '\u{65f}'),
    ('\u{6d6}', '\u{6dc}'),
    ('\u{6df}', '\u{6e4}'),
    ('\u{93c}', '\u{93c}'),
    ('\u{941}', '\u{948}'),
    ('\u{94d}', '\u{94d}'),
    ('\u{951}', '\u{957}'),
    ('\u{9bc}', '\u{9bc}'),
    ('\u{9c1}', '\u{9c4}'),
    ('\u{9cd}', '\u{9cd}'),
    ('\u{bcd}', '\u{bcd}'),
    ('\u{e31}', '\u{e31}'),
    ('\u{e34}', '\u{e3a}'),
    ('\u{e47}', '\u{e4e}'),
    ('\u{1160}', '\u{11ff}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{200c}', '\u{200d}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{3099}', '\u{309a}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{fe20}', '\u{fe2f}'),
    // The colours of skin, after the emoji that they colour.
    ('\u{1f3fb}', '\u{1f3ff}'),
];

/// Characters that take two columns: the scripts of East Asia and emoji.
const WIDE: [(char, char); 17] = [
    ('\u{1100}', '\u{115f}'),
    ('\u{231a}', '\u{231b}'),
    ('\u{23e9}', '\u{23ec}'),
    ('\u{2614}', '\u{2615}'),
    ('\u{2648}', '\u{2653}'),
    ('\u{26bd}', '\u{26be}'),
    ('\u{2705}', '\u{2705}'),
    ('\u{2728}', '\u{2728}'),
    ('\u{274c}', '\u{274c}'),
    ('\u{2e80}', '\u{a4cf}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{1f300}', '\u{1faff}'),
    ('\u{20000}', '\u{3fffd}'),
];

/// One line of text that only shows: what is not harmless stands there as an escape, `\u{1b}`.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same for text of several lines, whose ends are meant.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character == '\n')
}

fn escaped(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    let shows = |character: char| is_harmless(character) || is_meant(character);
    if text.chars().all(shows) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if shows(character) {
            result.push(character);
        } else {
            result.extend(character.escape_default());
        }
    }
    Cow::Owned(result)
}

/// A cell of a table: harmless, and cut where it is very long.
pub fn cell(text: &str) -> String {
    let text = line(text);
    // Marks without width could go on for ever in one place.
    let mut shown: String = text.chars().take(4 * CELL_WIDTH).collect();
    if shown.len() == text.len() && width(&shown) <= CELL_WIDTH {
        return shown;
    }
    while width(&shown) >= CELL_WIDTH {
        shown.pop();
    }
    shown + "…"
}

/// Columns of the terminal that a text takes, as nearly as can be known: terminals differ about emoji made of several.
pub fn width(text: &str) -> usize {
    let within = |ranges: &[(char, char)], character: char| {
        ranges
            .iter()
            .any(|&(first, last)| (first..=last).contains(&character))
    };
    let mut before = ' ';
    let mut total = 0;
    for character in text.chars() {
        // What is joined to the one before is drawn in its place.
        let joined = before == '\u{200d}';
        before = character;
        total += match character {
            _ if character.is_ascii() => 1,
            _ if joined || within(&COMBINING, character) => 0,
            // Half a flag.
            '\u{1f1e6}'..='\u{1f1ff}' => 1,
            _ if within(&WIDE, character) => 2,
            _ => 1,
        };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_commands_the_terminal() {
        assert_eq!(line("plain, größer, 北京"), "plain, größer, 北京");
        assert_eq!(
            line("a\x1b[31mred\r\n\u{9b}2J\u{202e}live\u{200b}"),
            "a\\u{1b}[31mred\\r\\n\\u{9b}2J\\u{202e}live\\u{200b}"
        );
        assert_eq!(lines("one\ntwo\x07\n"), "one\ntwo\\u{7}\n");
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let shown = line(&text);
            assert!(shown.chars().all(is_harmless), "{text:?}");
            // Escapes of what is harmless would be noise.
            assert_eq!(is_harmless(character), shown == text);
        }
    }

    #[test]
    fn widths_are_those_of_the_terminal() {
        for (text, expected) in [
            ("", 0),
            ("abc", 3),
            ("größer", 6),
            ("gro\u{308}ßer", 6),
            ("北京", 4),
            ("🦀", 2),
            ("👩\u{200d}👩\u{200d}👧", 2),
            ("👍\u{1f3fd}", 2),
            ("🇩🇪", 2),
            ("한글", 4),
            ("─", 1),
        ] {
            assert_eq!(width(text), expected, "{text}");
        }
    }

    #[test]
    fn long_cells_are_cut_between_characters() {
        assert_eq!(cell("short"), "short");
        for character in ["x", "ß", "京", "🦀", "e\u{301}", "\x1b"] {
            let long = character.repeat(10_000);
            let shown = cell(&long);
            assert!(width(&shown) <= CELL_WIDTH, "{shown}");
            assert!(width(&shown) >= CELL_WIDTH - 2, "{shown}");
            assert!(shown.ends_with('…'));
        }
        assert_eq!(cell(&"x".repeat(CELL_WIDTH)), "x".repeat(CELL_WIDTH));
        assert!(cell(&"\u{301}".repeat(10_000)).len() < 1000);
    }
}
