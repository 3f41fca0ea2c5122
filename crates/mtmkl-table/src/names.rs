//! Names of classes, tasks and categories: text, in one order, and the numbers that they spell.
//!
//! Text is its own name, so that `1`, `1.0` and `001` are three. A number, from a format or a language that has numbers, is the known
//! name that spells it, or else what is shortest. Numbers come before texts, by value.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::Result;
use crate::column::Values;
use crate::error::TableError;
use crate::table::Table;

/// Numbers by value, before texts in their own order. A total order, whatever is mixed: sorting needs one.
pub fn by_number_then_text(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

/// A value that may be known by a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spelled<'a> {
    /// Text, its own name.
    Text(&'a str),
    /// A number.
    Number(f64),
    /// A whole number in decimal digits, as many as it has.
    Whole(&'a str),
    /// True or false.
    Truth(bool),
}

/// The `known` name of a value, if it has one: 1 may be `1`, `1.0` or `001`.
///
/// # Errors
/// The two names, where two spell it.
pub fn named<'a>(
    value: Spelled<'_>,
    known: &[&'a str],
) -> std::result::Result<Option<&'a str>, (&'a str, &'a str)> {
    let mut found = known.iter().filter(|name| spells(name, value));
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => Err((first, second)),
        (first, _) => Ok(first.copied()),
    }
}

fn spells(name: &str, value: Spelled<'_>) -> bool {
    let is_number = |number: f64| name.parse::<f64>().is_ok_and(|own| own == number);
    match value {
        Spelled::Text(text) => name == text,
        Spelled::Number(number) => is_number(number),
        Spelled::Truth(truth) => name.eq_ignore_ascii_case(if truth { "true" } else { "false" }),
        // More digits than a double has are compared as such.
        Spelled::Whole(digits) => match (whole(name), whole(digits)) {
            (Some(name), Some(digits)) => name == digits,
            _ => digits.parse().is_ok_and(is_number),
        },
    }
}

/// The sign and the digits of a whole number, without zeros in front.
fn whole(text: &str) -> Option<(bool, &str)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    Some((text.starts_with('-') && !digits.is_empty(), digits))
}

/// A name for each of many rows: few names, each kept once.
#[derive(Debug, Clone, PartialEq)]
pub struct Names {
    distinct: Vec<String>,
    /// For each row its name's place in `distinct`; beyond the end where the row has none.
    codes: Vec<u32>,
}

impl Names {
    /// The name of each row, the different ones in their order.
    pub fn new<'a>(names: impl Iterator<Item = Option<&'a str>>) -> Self {
        let mut places: BTreeMap<&str, u32> = BTreeMap::new();
        let mut distinct: Vec<&str> = Vec::new();
        let mut codes: Vec<u32> = names
            .map(|name| {
                let Some(name) = name else { return u32::MAX };
                *places.entry(name).or_insert_with(|| {
                    distinct.push(name);
                    // Rows, and so names, are fewer than 2³².
                    u32::try_from(distinct.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        let mut order: Vec<usize> = (0..distinct.len()).collect();
        order.sort_by(|&a, &b| by_number_then_text(distinct[a], distinct[b]));
        let mut places = vec![u32::MAX; distinct.len()];
        for (place, &before) in (0..).zip(&order) {
            places[before] = place;
        }
        for code in &mut codes {
            *code = places.get(*code as usize).copied().unwrap_or(u32::MAX);
        }
        Self {
            distinct: order
                .into_iter()
                .map(|at| distinct[at].to_string())
                .collect(),
            codes,
        }
    }

    /// The names in a column of a table, of which `known` are some; gaps have none.
    ///
    /// # Errors
    /// When the column is not there, or has a number that two known names spell.
    pub fn of(table: &Table, name: &str, known: &[&str]) -> Result<Self> {
        let column = table.column(name)?;
        if let Values::Text(cells) = &column.values {
            let mut missing = column.missing.iter().copied().peekable();
            let cells = cells.iter().enumerate();
            return Ok(Self::new(cells.map(|(row, cell)| {
                let is_gap = missing.next_if_eq(&row).is_some();
                (!is_gap).then_some(cell.as_str())
            })));
        }
        let numbers = column.values.numbers().unwrap_or_default();
        // By value; adding zero turns −0 into 0.
        let key = |number: f64| (number + 0.0).to_bits();
        let mut spelled: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for name in known {
            if let Ok(number) = name.parse::<f64>() {
                spelled.entry(key(number)).or_default().push(name);
            }
        }
        let mut written: BTreeMap<u64, String> = BTreeMap::new();
        for (row, &number) in numbers.iter().enumerate() {
            if column.is_missing(row) || written.contains_key(&key(number)) {
                continue;
            }
            let own = match spelled.get(&key(number)).map(Vec::as_slice) {
                Some([first, second, ..]) => {
                    return Err(TableError::TwoSpellings {
                        file: table.source.clone(),
                        place: table.place(row),
                        column: name.to_string(),
                        number,
                        first: (*first).to_string(),
                        second: (*second).to_string(),
                    });
                }
                Some([only]) => (*only).to_string(),
                _ => (number + 0.0).to_string(),
            };
            written.insert(key(number), own);
        }
        let name = |row: usize| {
            let there = !column.is_missing(row);
            let name = written.get(&key(numbers[row]));
            name.filter(|_| there).map(String::as_str)
        };
        Ok(Self::new((0..numbers.len()).map(name)))
    }

    /// The name of a row, empty where it has none.
    pub fn get(&self, row: usize) -> &str {
        let name = self.distinct.get(self.codes[row] as usize);
        name.map_or("", String::as_str)
    }

    /// The different names, in order; not all of them need have a row left.
    pub fn distinct(&self) -> &[String] {
        &self.distinct
    }

    /// For each row its name's place among the different ones; beyond the end where the row has none.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The names of all rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The names of these rows.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            distinct: self.distinct.clone(),
            codes: rows.iter().map(|&row| self.codes[row]).collect(),
        }
    }

    /// Adds the names of further rows.
    pub fn append(&mut self, more: &Self) {
        if self.distinct == more.distinct {
            self.codes.extend_from_slice(&more.codes);
            return;
        }
        let name = |of: &Self, row: usize| -> Option<usize> {
            let code = of.codes[row] as usize;
            (code < of.distinct.len()).then_some(code)
        };
        let own =
            (0..self.len()).map(|row| name(self, row).map(|code| self.distinct[code].as_str()));
        let others =
            (0..more.len()).map(|row| name(more, row).map(|code| more.distinct[code].as_str()));
        *self = Self::new(own.chain(others));
    }

    /// The rows of each name that has any, in the order of names.
    pub fn groups(&self) -> Vec<(&str, Vec<usize>)> {
        let mut rows = vec![Vec::new(); self.distinct.len()];
        for (row, &code) in self.codes.iter().enumerate() {
            if let Some(own) = rows.get_mut(code as usize) {
                own.push(row);
            }
        }
        let named = self.distinct.iter().map(String::as_str).zip(rows);
        named.filter(|(_, rows)| !rows.is_empty()).collect()
    }
}
