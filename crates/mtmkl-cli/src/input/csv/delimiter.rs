//! What stands between two cells: as it is named, as it is shown, and as it is found out.

use std::fmt;
use std::str::FromStr;

/// The character between two cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delimiter(pub(super) u8);

impl Delimiter {
    /// The tab.
    pub const TAB: Self = Self(b'\t');
    /// The comma.
    pub const COMMA: Self = Self(b',');
    /// One or more spaces or tabs.
    pub const SPACES: Self = Self(b' ');

    /// Those detected, most likely first.
    pub(super) const DETECTED: [Self; 4] = [Self::COMMA, Self(b';'), Self::TAB, Self(b'|')];

    /// The delimiter as the option `--delimiter` takes it.
    pub(super) fn option(self) -> &'static str {
        match self.0 {
            b'\t' => "tab",
            b' ' => "space",
            b';' => "';'",
            b'|' => "'|'",
            _ => "','",
        }
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            b'\t' => formatter.write_str("tabs"),
            b' ' => formatter.write_str("spaces"),
            other => write!(formatter, "`{}`", char::from(other)),
        }
    }
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "tab" | "\\t" => Ok(Self::TAB),
            "space" => Ok(Self::SPACES),
            "comma" => Ok(Self::COMMA),
            _ => match text.as_bytes() {
                // What may stand in a number or a name cannot separate them.
                &[byte]
                    if byte.is_ascii_punctuation() && !b"\"'.+-_".contains(&byte)
                        || byte == b' '
                        || byte == b'\t' =>
                {
                    Ok(Self(byte))
                }
                _ => Err(
                    "expected one character such as , or ; or |, or the word tab or space"
                        .to_owned(),
                ),
            },
        }
    }
}

/// The delimiter that occurs most often in `line` outside quotes.
pub(super) fn detect(line: &[u8]) -> Delimiter {
    let mut best = (0, Delimiter::COMMA);
    for candidate in Delimiter::DETECTED {
        let mut inside = false;
        let mut count = 0;
        for &byte in line {
            inside ^= byte == b'"';
            count += usize::from(byte == candidate.0 && !inside);
        }
        if count > best.0 {
            best = (count, candidate);
        }
    }
    best.1
}
