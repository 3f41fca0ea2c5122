//! Words for messages: cells cut short, lists of names, slips of the hand.

/// Most characters of a cell that a message repeats.
const SHOWN_CHARACTERS: usize = 40;

/// Most column names that a message lists.
const SHOWN_NAMES: usize = 12;

/// `1 pass`, `2 passes`: a number with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `bytes` with a unit that people read.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        mtmkl::error::human_bytes(bytes)
    }
}

/// Whether a character does what it looks like: no control character, nothing that turns the direction of writing, breaks the line
/// or is not seen.
pub fn is_harmless(character: char) -> bool {
    !(character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        ))
}

/// The beginning of `bytes` as one line of text that is safe to print: what is not harmless stands there as an escape, `\u{1b}`.
pub fn shown(bytes: &[u8]) -> String {
    // Four bytes per character suffice for UTF-8, so a cell of a gigabyte is not decoded in full.
    let head = &bytes[..bytes.len().min(4 * SHOWN_CHARACTERS + 4)];
    let text = String::from_utf8_lossy(head);
    let mut result = String::new();
    for (position, character) in text.chars().enumerate() {
        if position == SHOWN_CHARACTERS {
            result.push('…');
            break;
        }
        if is_harmless(character) {
            result.push(character);
        } else {
            result.extend(character.escape_default());
        }
    }
    result
}

/// The first `names`, for a message.
pub fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let total = names.len();
    let mut text = names
        .take(SHOWN_NAMES)
        .map(|name| format!("`{}`", shown(name.as_bytes())))
        .collect::<Vec<_>>()
        .join(", ");
    if total > SHOWN_NAMES {
        text = format!("{text}, … ({total} in all)");
    }
    text
}

/// A name as a word for a shell: in quotes where it has anything but letters, digits and `_.-`.
pub fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_.-".contains(letter);
    if name.chars().all(is_plain) {
        name.to_string()
    } else {
        format!("'{}'", shown(name.as_bytes()).replace('\'', "'\\''"))
    }
}

/// The candidate most like `name`, if one is close enough to be a slip of the hand.
pub fn similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    // One letter for another is not a likeness.
    if wanted.chars().count() < 2 {
        return None;
    }
    candidates
        // The distance costs the product of the lengths: a hostile name of a megabyte is no candidate.
        .filter(|candidate| {
            candidate.len().abs_diff(name.len()) <= 4 * allowed && candidate.len() <= 512
        })
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&wanted, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}
