//! Small things about words: plurals, slips of the hand, the order of names.

use std::cmp::Ordering;

/// `1 pass`, `2 passes`: a number with its noun.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

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

/// Numbers by value, before texts in their own order. A total order, whatever is mixed: sorting needs one.
pub fn by_number_then_text(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_first_and_by_value() {
        // Compared as text where one is no number, 2 < 10 < 1a < 2 would go round in a circle.
        let mut names = vec!["1a", "10", "b", "2", "-1", "2.0"];
        names.sort_by(|a, b| by_number_then_text(a, b));
        assert_eq!(names, ["-1", "2", "2.0", "10", "1a", "b"]);
    }

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
