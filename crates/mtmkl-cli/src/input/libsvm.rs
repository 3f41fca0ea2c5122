//! LIBSVM and `SVMlight` text: `label index:value …` with ascending indices.
//!
//! Feature `index` becomes the column `f<index>`, so that files with indices from 0 and from 1, and files that lack
//! the last features, agree on the names. A `0:i` in front of every row is the convention for kernel values.

mod joined;
mod parts;

use std::collections::BTreeSet;

use mtmkl_table::words::shown;
use mtmkl_table::{Column, Gram, Lines, Place, Sparse, Table, TableError, Values};

pub(super) use self::joined::joined;
pub(super) use self::parts::Parts;
use super::{GramOptions, InputError, TableOptions, check_size};

/// What a column costs beside its numbers: its name and the vectors' own fields.
const COLUMN_BYTES: u64 = 192;

/// Lines looked at to recognise the format.
const LOOKED_AT: usize = 20;

/// Whether the beginning `head` of a text looks like this format.
pub(super) fn resembles(head: &[u8]) -> bool {
    let mut pairs = false;
    // The last line may be cut off.
    let lines = head
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| line.ends_with(b"\n") || head.len() < 4096);
    for line in lines
        .map(content)
        .filter(|line| !line.is_empty())
        .take(LOOKED_AT)
    {
        let mut tokens = tokens(line);
        if tokens.next().and_then(number).is_none() {
            return false;
        }
        for token in tokens {
            if !token.starts_with(b"qid:")
                && split_pair(token).is_none_or(|(index, _)| integer(index).is_none())
            {
                return false;
            }
            pairs = true;
        }
    }
    pairs
}

/// The part of `line` before a comment.
fn content(line: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    line[..end].trim_ascii()
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|token| !token.is_empty())
}

fn split_pair(token: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', token)?;
    Some((&token[..colon], &token[colon + 1..]))
}

fn number(token: &[u8]) -> Option<f64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

fn integer(token: &[u8]) -> Option<u64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}

/// The rows of a file, sparse.
#[derive(Default)]
struct Rows {
    labels: Vec<String>,
    groups: Vec<Option<f64>>,
    lines: Vec<usize>,
    /// The end of each row in `entries`.
    ends: Vec<usize>,
    /// Feature indices and values.
    entries: Vec<(u64, f64)>,
}

impl Rows {
    fn row(&self, row: usize) -> &[(u64, f64)] {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.entries[begin..self.ends[row]]
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds the labels, groups and lines of further rows.
    fn append_without_entries(&mut self, rows: Self) {
        self.labels.extend(rows.labels);
        self.groups.extend(rows.groups);
        self.lines.extend(rows.lines);
        self.ends.resize(self.labels.len(), 0);
    }

    /// The largest index of all rows, 0 where there is none.
    fn largest_index(&self) -> u64 {
        let indices = self.entries.iter().map(|(index, _)| *index);
        indices.max().unwrap_or(0)
    }

    /// The serial numbers `i`, if every row begins with `0:i` for a different positive integer.
    fn serials(&self) -> Option<Vec<u64>> {
        let mut seen = BTreeSet::new();
        (0..self.len())
            .map(|row| match self.row(row).first() {
                // Integers from 1 to 2^53 are exact, so the conversion is.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                Some(&(0, value)) if (1.0..=9e15).contains(&value) && value.fract() == 0.0 => {
                    Some(value as u64).filter(|serial| seen.insert(*serial))
                }
                _ => None,
            })
            .collect()
    }

    /// Reads all lines of a whole text.
    fn all(source: &str, bytes: &[u8]) -> Result<Self, InputError> {
        let rows = Self::read(source, bytes, 1)?;
        if rows.len() == 0 {
            return Err(InputError::Empty {
                file: source.to_owned(),
            });
        }
        Ok(rows)
    }

    /// Reads the lines of `bytes`, which are counted from `first` on.
    fn read(source: &str, bytes: &[u8], first: usize) -> Result<Self, InputError> {
        let mut rows = Self::default();
        let mark = if first == 1 {
            &b"\xef\xbb\xbf"[..]
        } else {
            b""
        };
        let bytes = bytes.strip_prefix(mark).unwrap_or(bytes);
        for (number, line) in (first..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = content(line);
            if !line.is_empty() {
                rows.read_line(line, number)
                    .map_err(|problem| InputError::Libsvm {
                        file: source.to_owned(),
                        line: number,
                        problem,
                    })?;
            }
        }
        Ok(rows)
    }

    fn read_line(&mut self, line: &[u8], number_of_line: usize) -> Result<(), String> {
        let mut tokens = tokens(line).peekable();
        let label = tokens.next().unwrap_or_default();
        if label.contains(&b':') {
            return Err(format!(
                "`{}` stands where the label belongs; lines are `label index:value …` (write 0 for an unknown label)",
                shown(label)
            ));
        }
        let Ok(label) = std::str::from_utf8(label) else {
            return Err(format!("the label `{}` is not UTF-8 text", shown(label)));
        };
        self.labels.push(label.to_owned());
        let group = match tokens.next_if(|token| token.starts_with(b"qid:")) {
            None => None,
            Some(token) => Some(
                number(&token[4..])
                    .filter(|group| group.is_finite())
                    .ok_or_else(|| format!("`{}` is not `qid:` and a number", shown(token)))?,
            ),
        };
        self.groups.push(group);
        let mut previous = None;
        for token in tokens {
            let pair = split_pair(token)
                .and_then(|(index, value)| Some((integer(index)?, number(value)?)));
            let Some((index, value)) = pair else {
                return Err(format!(
                    "`{}` is not `index:value` with a whole index and a number",
                    shown(token)
                ));
            };
            if !value.is_finite() {
                return Err(format!(
                    "the value in `{}` is not finite; leave out what is missing or correct it",
                    shown(token)
                ));
            }
            if previous.is_some_and(|previous| previous >= index) {
                let previous = previous.unwrap_or_default();
                return Err(format!(
                    "index {index} follows index {previous}; indices must ascend"
                ));
            }
            previous = Some(index);
            self.entries.push((index, value));
        }
        self.ends.push(self.entries.len());
        self.lines.push(number_of_line);
        Ok(())
    }
}

/// Reads a table from the `bytes` of a LIBSVM text named `source`: the columns `label`, `qid` where there is one, and
/// `f1` to `fd` (from `f0` where indices begin at 0).
///
/// # Errors
///
/// Any [`InputError`] about LIBSVM text; more columns than the limit allows.
pub fn from_bytes(source: &str, bytes: &[u8], options: &TableOptions) -> Result<Table, InputError> {
    let rows = Rows::all(source, bytes)?;
    let precomputed = rows.serials();
    table_of(source, &rows, precomputed, options)
}

/// The table of these rows; `precomputed` are their serial numbers where they hold kernel values.
fn table_of(
    source: &str,
    rows: &Rows,
    precomputed: Option<Vec<u64>>,
    options: &TableOptions,
) -> Result<Table, InputError> {
    let last = rows.largest_index();
    let zero_based = precomputed.is_none() && rows.entries.iter().any(|(index, _)| *index == 0);
    let first = u64::from(!zero_based);
    let features = last.saturating_add(1) - first;
    let bytes_needed = features.saturating_mul(COLUMN_BYTES);
    check_size(
        source,
        &format!("the columns of {features} features (the largest index is {last}) take"),
        bytes_needed.saturating_add(16 * rows.entries.len() as u64),
        options.limit,
    )?;
    // Below the limit, but not in the address space of a small machine.
    let features = usize::try_from(features).unwrap_or(0);
    let count = rows.len();
    let empty = Sparse {
        count,
        ..Sparse::default()
    };
    let mut sparse = vec![empty; features];
    for (place, row) in (0_u32..).zip(0..count) {
        for (index, value) in rows.row(row) {
            let column = index
                .checked_sub(first)
                .and_then(|column| usize::try_from(column).ok());
            if let Some(column) = column.and_then(|column| sparse.get_mut(column)) {
                column.rows.push(place);
                column.values.push(*value);
            }
        }
    }
    let mut table = table_with(source, rows, sparse, first)?;
    table.precomputed = precomputed;
    Ok(table)
}

/// The table with these features, named from the index `first` on.
fn table_with(
    source: &str,
    rows: &Rows,
    features: Vec<Sparse>,
    first: u64,
) -> Result<Table, InputError> {
    let mut lines = Lines::Rows(1);
    for (row, line) in rows.lines.iter().enumerate() {
        lines.push(row, *line);
    }
    let mut columns = vec![labels(source, rows)?];
    columns.extend(groups(rows));
    columns.extend((first..).zip(features).map(|(index, values)| Column {
        name: format!("f{index}"),
        values: Values::Sparse(values),
        missing: Vec::new(),
    }));
    let mut table = Table::new(source, rows.len(), columns, lines);
    table.absent_is_zero = true;
    Ok(table)
}

/// The column of labels: numbers if all are, whether or not they are used as names, for `+1` and `1` are one label here.
fn labels(source: &str, rows: &Rows) -> Result<Column, InputError> {
    let name = "label".to_owned();
    let missing: Vec<usize> = (0..rows.len())
        .filter(|row| mtmkl_table::is_gap(&rows.labels[*row]))
        .collect();
    let is_gap = |row: usize| missing.binary_search(&row).is_ok();
    let labels = || rows.labels.iter().enumerate();
    let numbers: Option<Vec<f64>> = labels()
        .map(|(row, label)| {
            if is_gap(row) {
                Some(0.0)
            } else {
                label.parse().ok()
            }
        })
        .collect();
    let values = match numbers {
        Some(numbers) => {
            if let Some(row) = numbers.iter().position(|number| !number.is_finite()) {
                return Err(InputError::Table(TableError::NotFinite {
                    file: source.to_owned(),
                    place: Place::Line(rows.lines[row]),
                    column: name,
                    value: shown(rows.labels[row].as_bytes()),
                }));
            }
            Values::Numbers(numbers)
        }
        None => Values::Text(
            labels()
                .map(|(row, label)| {
                    if is_gap(row) {
                        String::new()
                    } else {
                        label.clone()
                    }
                })
                .collect(),
        ),
    };
    Ok(Column {
        name,
        values,
        missing,
    })
}

/// The column of query groups, if any row has one.
fn groups(rows: &Rows) -> Option<Column> {
    rows.groups.iter().flatten().next()?;
    Some(Column {
        name: "qid".to_owned(),
        values: Values::Numbers(
            rows.groups
                .iter()
                .map(|group| group.unwrap_or(0.0))
                .collect(),
        ),
        missing: (0..rows.len())
            .filter(|row| rows.groups[*row].is_none())
            .collect(),
    })
}

/// Reads the kernel matrix from the `bytes` of a LIBSVM text of kernel values named `source`; the serial numbers
/// become the names of the rows.
///
/// # Errors
///
/// Any [`InputError`] about LIBSVM text; features instead of kernel values; a matrix over the limit.
pub fn gram_from_bytes(
    source: &str,
    bytes: &[u8],
    options: &GramOptions,
) -> Result<Gram, InputError> {
    let rows = Rows::all(source, bytes)?;
    let Some(serials) = rows.serials() else {
        return Err(InputError::Unsupported {
            file: source.to_owned(),
            found: "holds features: kernel values need a different `0:i` at the start of every row"
                .to_owned(),
            remedy: "give it as the data file",
        });
    };
    let columns = rows.largest_index();
    let bytes_needed = columns.saturating_mul(8 * rows.len() as u64);
    check_size(
        source,
        "the kernel matrix takes",
        bytes_needed,
        options.limit,
    )?;
    let columns = usize::try_from(columns).unwrap_or(0);
    let mut values = vec![0.0; rows.len() * columns];
    for (row, target) in values.chunks_exact_mut(columns.max(1)).enumerate() {
        for (index, value) in rows.row(row) {
            let column = index
                .checked_sub(1)
                .and_then(|column| usize::try_from(column).ok());
            if let Some(cell) = column.and_then(|column| target.get_mut(column)) {
                *cell = *value;
            }
        }
    }
    Ok(Gram {
        rows: rows.len(),
        columns,
        values: values.into(),
        row_names: Some(serials.iter().map(u64::to_string).collect()),
    })
}
