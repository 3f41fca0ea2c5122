//! Which columns a kernel sees, and how that is written: `a,b..c` or `#0,#3..#5`.

use super::nearest;
use crate::error::{DataProblem, Error, Place, Result};

/// A short text could otherwise ask for more columns than fit into memory.
pub(super) const MOST_POSITIONS: usize = 1_000_000;

/// Which columns a kernel sees: a view of the data.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Columns {
    /// All.
    #[default]
    All,
    /// Columns by name: single names and inclusive ranges in the order of the table.
    Named(Vec<ColumnRange>),
    /// Columns by position, from 0.
    Indices(Vec<usize>),
}

/// `first..last`, both included; a single column when `last` is `None`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnRange {
    /// The first column's name.
    pub first: String,
    /// The last column's name.
    pub last: Option<String>,
}

impl Columns {
    /// Positions of the columns in a table with these names; `None` for all of them.
    ///
    /// # Errors
    /// When a column is not there, or none is left.
    pub fn resolve(&self, names: &[String]) -> Result<Option<Vec<usize>>> {
        let missing = |wanted: String| {
            let available = match names {
                [] => "no columns".to_string(),
                [only] => format!("one column, `{only}`"),
                [first, .., last] => format!("{} columns, `{first}` to `{last}`", names.len()),
            };
            let advice = nearest(&wanted, names)
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            Error::data(
                Place::Problem,
                DataProblem::Column {
                    wanted: format!("`{wanted}`"),
                    available: format!("{available}{advice}"),
                },
            )
        };
        let none = || {
            Error::data(
                Place::Problem,
                DataProblem::Empty("a kernel sees no columns, expected at least one"),
            )
        };
        let position = |name: &str| {
            names
                .iter()
                .position(|known| known == name)
                .ok_or_else(|| missing(name.into()))
        };
        match self {
            Self::All => Ok(None),
            Self::Indices(indices) if indices.is_empty() => Err(none()),
            Self::Named(ranges) if ranges.is_empty() => Err(none()),
            Self::Indices(indices) => match indices.iter().find(|&&index| index >= names.len()) {
                Some(index) => Err(missing(format!("number {index}"))),
                None => Ok(Some(indices.clone())),
            },
            Self::Named(ranges) => {
                let mut found = Vec::new();
                for range in ranges {
                    let first = position(&range.first)?;
                    let last = range.last.as_deref().map_or(Ok(first), position)?;
                    if last < first {
                        return Err(missing(format!(
                            "{}..{}",
                            range.first,
                            range.last.as_deref().unwrap_or("")
                        )));
                    }
                    if last - first >= MOST_POSITIONS - found.len().min(MOST_POSITIONS) {
                        return Err(Error::data(
                            Place::Problem,
                            DataProblem::Empty(
                                "a kernel sees more than a million columns; name each column once",
                            ),
                        ));
                    }
                    found.extend(first..=last);
                }
                Ok(Some(found))
            }
        }
    }
}

/// One end of a range as written.
enum End {
    Name(String),
    Position(usize),
}

/// `a,b..c` or `#0,#3..#5`.
pub(super) fn read_columns(text: &str) -> std::result::Result<Columns, String> {
    if text.is_empty() {
        return Err(
            "no columns follow `@`; drop it for all columns, or write for example `@f1,f3..f5`"
                .into(),
        );
    }
    let (mut ranges, mut positions) = (Vec::new(), Vec::new());
    let mut rest = text;
    loop {
        let (first, after) = read_end(rest)?;
        let (last, after) = match after.strip_prefix("..") {
            Some(after) => {
                let (last, after) = read_end(after)?;
                (Some(last), after)
            }
            None => (None, after),
        };
        match (first, last) {
            (End::Name(first), None) => ranges.push(ColumnRange { first, last: None }),
            (End::Name(first), Some(End::Name(last))) => ranges.push(ColumnRange {
                first,
                last: Some(last),
            }),
            (End::Position(only), None) => positions.push(only),
            (End::Position(first), Some(End::Position(last))) => {
                if last < first {
                    return Err(format!(
                        "the range `#{first}..#{last}` is empty; write `#{last}..#{first}`"
                    ));
                }
                if last - first >= MOST_POSITIONS - positions.len().min(MOST_POSITIONS) {
                    return Err(format!(
                        "with `#{first}..#{last}` it has more than {MOST_POSITIONS} columns"
                    ));
                }
                positions.extend(first..=last);
            }
            _ => {
                return Err(
                    "a range goes from name to name or from position to position, as in `#0..#3`"
                        .into(),
                );
            }
        }
        if after.is_empty() {
            break;
        }
        let Some(after) = after.strip_prefix(',') else {
            return Err(format!(
                "`{after}` follows a column; columns are separated by `,`, ranges are `first..last`"
            ));
        };
        rest = after;
    }
    match (ranges.is_empty(), positions.is_empty()) {
        (false, false) => Err(
            "names and positions (`#`) are mixed; give all columns by name or all by position"
                .into(),
        ),
        (false, true) => Ok(Columns::Named(ranges)),
        (true, _) => Ok(Columns::Indices(positions)),
    }
}

/// One name or position, and what follows it.
fn read_end(text: &str) -> std::result::Result<(End, &str), String> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut rest = quoted;
        loop {
            let Some((part, after)) = rest.split_once('"') else {
                return Err(format!(
                    "the quotation mark before `{quoted}` is not closed; add `\"` after the name"
                ));
            };
            name.push_str(part);
            match after.strip_prefix('"') {
                Some(after) => {
                    name.push('"');
                    rest = after;
                }
                None => return Ok((End::Name(name), after.trim_start())),
            }
        }
    }
    let end = [text.find(','), text.find("..")]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(text.len());
    let (name, rest) = (text[..end].trim(), &text[end..]);
    if name.is_empty() {
        return Err(
            "a column is missing; write names between the commas and at both ends of `..`, as in `@f1,f3..f5`".into()
        );
    }
    let Some(position) = name.strip_prefix('#') else {
        return Ok((End::Name(name.into()), rest));
    };
    match position.parse() {
        Ok(position) => Ok((End::Position(position), rest)),
        Err(_) => Err(format!(
            "`{name}` is no position, expected `#` and a whole number from 0; a name that starts with `#` stands in quotes, `\"{name}\"`"
        )),
    }
}

/// A name as [`read_end`] reads it back, in quotes where it needs them.
pub(super) fn write_name(name: &str) -> String {
    let plain = !name.is_empty()
        && name.trim() == name
        && !name.starts_with(['#', '"', '.'])
        && !name.ends_with('.')
        && !name.contains(',')
        && !name.contains("..");
    if plain {
        name.into()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
