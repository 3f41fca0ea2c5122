//! Small things about words: slips of the hand, lists of names.

pub use mtmkl_table::words::count;

/// The known name that `name` is most likely a slip of: a few letters away, or one the beginning of the other.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    let wanted = plain(name);
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&plain(known), &wanted), *known))
        .filter(|(distance, known)| {
            let known = plain(known);
            let begins = known.starts_with(&wanted) || wanted.starts_with(&known);
            *distance <= allowed || (begins && wanted.len().min(known.len()) >= 3)
        })
        .min()
        .map(|(_, known)| known)
}

/// `a, b or c`.
pub fn either(names: &[&str]) -> String {
    listing(names, "or")
}

/// `a, b and c`, with this word before the last.
pub fn listing(names: &[&str], word: &str) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_string(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

/// Names for a message, the first eight of them.
pub fn listed(names: &[&str]) -> String {
    let mut shown: Vec<String> = names
        .iter()
        .take(8)
        .map(|name| format!("`{name}`"))
        .collect();
    if names.len() > shown.len() {
        shown.push(format!("… ({} in all)", names.len()));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["kernel", "max-passes", "memory-limit", "beta", "nu", "C"];
        assert_eq!(nearest("kernl", &known), Some("kernel"));
        assert_eq!(nearest("max_passes", &known), Some("max-passes"));
        assert_eq!(nearest("memory", &known), Some("memory-limit"));
        assert_eq!(nearest("c", &known), Some("C"));
        assert_eq!(nearest("nosuch", &known), None);
        assert_eq!(nearest("data", &known), None);
    }
}
