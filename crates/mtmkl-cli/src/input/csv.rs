//! Delimited text: RFC 4180 with any delimiter, any line ends, and the errors that spreadsheets make.
//!
//! The text is split twice: once to find out which columns are numbers, parsing them on the way, and once more for
//! the columns that turn out to be text. A table of numbers, the common case, is thus read in one pass. `parts` does so part by part.

mod delimiter;
mod joined;
mod parts;
mod records;

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use mtmkl_table::words::shown;
use mtmkl_table::{
    Cell as Reading, Column, Gram, Lines, Place, Skipped, Sparse, Table, TableError, Values,
    read_cell,
};

use super::{GramOptions, InputError, TableOptions, check_names, check_size};
pub use delimiter::Delimiter;
use delimiter::detect;
pub(super) use joined::joined;
pub(super) use parts::Parts;
use records::{Cell, Records};

/// More columns than this are a wrong delimiter or an attack.
const MOST_COLUMNS: usize = 1_000_000;

/// Reads a table from the `bytes` of a delimited text named `source`.
///
/// # Errors
///
/// Any [`InputError`] about delimited text.
pub fn from_bytes(source: &str, bytes: &[u8], options: &TableOptions) -> Result<Table, InputError> {
    Reader::new(source, bytes, options.delimiter)?.table(options, false)
}

/// Reads a kernel matrix from the `bytes` of a delimited text named `source`: numbers only, or with the names of the
/// samples in the first line, and then perhaps in the first column.
///
/// # Errors
///
/// Any [`InputError`] about delimited text; cells that are missing or not numbers.
pub fn gram_from_bytes(
    source: &str,
    bytes: &[u8],
    delimiter: Option<Delimiter>,
    options: &GramOptions,
) -> Result<Gram, InputError> {
    let reader = Reader::new(source, bytes, delimiter)?;
    let header = !reader.first_line_is_numbers()?;
    let as_table = TableOptions {
        header,
        ..TableOptions::default()
    };
    let table = reader.table(&as_table, true)?;
    let (first, others) = match table.columns() {
        [first, others @ ..] if header && !others.is_empty() => (Some(first), others),
        others => (None, others),
    };
    let names =
        first.filter(|first| first.name.is_empty() || matches!(first.values, Values::Text(_)));
    let row_names = match names {
        Some(column) => Some(
            table
                .names(&column.name)?
                .into_iter()
                .map(Cow::into_owned)
                .collect(),
        ),
        None => None,
    };
    let kernel = if names.is_some() {
        others
    } else {
        table.columns()
    };
    let (rows, columns) = (table.rows, kernel.len());
    check_size(
        source,
        "the kernel matrix takes",
        8 * (rows as u64) * (columns as u64),
        options.limit,
    )?;
    let numbers: Vec<Cow<'_, [f64]>> = kernel
        .iter()
        .map(|column| table.numeric(&column.name))
        .collect::<Result<_, _>>()
        .map_err(incomplete)?;
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        values.extend(numbers.iter().map(|column| column[row]));
    }
    Ok(Gram {
        rows,
        columns,
        values: values.into(),
        row_names,
    })
}

/// The error for a cell of a kernel matrix, without the remedies that are for tables.
fn incomplete(mut error: TableError) -> TableError {
    match &mut error {
        TableError::Missing { remedy, .. } => *remedy = "a kernel matrix must be complete",
        TableError::NotNumber { remedy, .. } => {
            "a kernel matrix holds numbers, with names only in the first line and column"
                .clone_into(remedy);
        }
        _ => {}
    }
    error
}

/// Reads `raw` as a number, if it is one; most cells are.
fn read_number(raw: &[u8]) -> Reading {
    match fast_float2::parse::<f64, _>(raw) {
        Ok(number) if number.is_finite() => Reading::Number(number),
        _ => read_cell(raw),
    }
}

/// A column while its cells are being read.
struct Builder {
    name: String,
    numbers: Vec<f64>,
    missing: Vec<usize>,
    /// The first infinite cell: an error if the column stays numeric.
    infinite: Option<(usize, String)>,
    /// Whether a cell was not a number.
    is_text: bool,
    /// Whether somebody asks for the column.
    is_wanted: bool,
    /// The cells, in the second pass.
    text: Vec<String>,
}

/// A text whose delimiter is known.
struct Reader<'a> {
    source: &'a str,
    records: Records<'a>,
    delimiter: Delimiter,
    /// Rows of the text that came before.
    before: usize,
}

/// The columns of a text.
struct Head {
    /// The name of each, none where it is left out.
    names: Vec<Option<String>>,
    skipped: Vec<Skipped>,
}

impl<'a> Reader<'a> {
    /// Finds out the delimiter, unless it is given.
    fn new(
        source: &'a str,
        bytes: &'a [u8],
        delimiter: Option<Delimiter>,
    ) -> Result<Self, InputError> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let file = || source.to_owned();
        if bytes.trim_ascii().is_empty() {
            return Err(InputError::Empty { file: file() });
        }
        let line_end = if memchr(b'\n', bytes).is_none() {
            b'\r'
        } else {
            b'\n'
        };
        let first = bytes
            .split(|byte| *byte == line_end)
            .find(|line| !line.trim_ascii().is_empty())
            .unwrap_or(bytes);
        if memchr(0, first).is_some() {
            return Err(InputError::Unsupported {
                file: file(),
                found: "is not text: its first line holds zero bytes".to_owned(),
                remedy: "give the format with `--format`, or save the file as UTF-8 text",
            });
        }
        let delimiter = delimiter.unwrap_or_else(|| detect(first));
        Ok(Self {
            source,
            records: Records {
                source,
                bytes,
                position: 0,
                line: 1,
                delimiter: delimiter.0,
                line_end,
            },
            delimiter,
            before: 0,
        })
    }

    /// Whether the first line holds finite numbers only.
    fn first_line_is_numbers(&self) -> Result<bool, InputError> {
        let mut cells = Vec::new();
        self.records.clone().next(&mut cells)?;
        Ok(cells
            .iter()
            .all(|cell| matches!(read_number(cell.raw), Reading::Number(_))))
    }

    /// Reads the table. Columns without a name are left out unless `keep_unnamed`.
    fn table(mut self, options: &TableOptions, keep_unnamed: bool) -> Result<Table, InputError> {
        let head = self.head(options.header, keep_unnamed)?;
        self.body(&head, options)
    }

    /// Reads the names of the columns; a first line without them is left for the rows.
    fn head(&mut self, header: bool, keep_unnamed: bool) -> Result<Head, InputError> {
        let mut cells = Vec::new();
        let mut records = self.records.clone();
        let Some(line) = records.next(&mut cells)? else {
            return Err(InputError::Empty {
                file: self.source.to_owned(),
            });
        };
        if cells.len() > MOST_COLUMNS {
            return Err(InputError::TooManyColumns {
                file: self.source.to_owned(),
                found: cells.len(),
                limit: MOST_COLUMNS,
            });
        }
        let mut skipped = Vec::new();
        let names: Vec<Option<String>> = if header {
            let names = self.names(&cells, line)?;
            self.records = records;
            names
                .into_iter()
                .enumerate()
                .map(|(position, name)| {
                    if !name.is_empty() || keep_unnamed && position == 0 {
                        return Some(name);
                    }
                    skipped.push(Skipped {
                        name: format!("column {}", position + 1),
                        reason:
                            "it has no name in the header; is it a row index? name it to use it"
                                .to_owned(),
                    });
                    None
                })
                .collect()
        } else {
            (1..=cells.len())
                .map(|number| Some(format!("f{number}")))
                .collect()
        };
        self.check_delimiter(names.len())?;
        check_names(
            self.source,
            names
                .iter()
                .map(|name| name.as_deref().unwrap_or_default())
                .filter(|name| !name.is_empty()),
        )?;
        Ok(Head { names, skipped })
    }

    /// Reads the rows. A column that nobody asks for is one of zeros.
    fn body(&self, head: &Head, options: &TableOptions) -> Result<Table, InputError> {
        let is_wanted = |name: &String| options.only.as_ref().is_none_or(|own| own.contains(name));
        let builder = |name: &String| Builder {
            is_text: options.text.contains(name),
            is_wanted: is_wanted(name),
            name: name.clone(),
            numbers: Vec::new(),
            missing: Vec::new(),
            infinite: None,
            text: Vec::new(),
        };
        let names = head.names.iter();
        let mut builders: Vec<Option<Builder>> =
            names.map(|name| name.as_ref().map(builder)).collect();
        let (rows, lines) = self.read_numbers(&mut builders)?;
        if rows == 0 {
            return Err(InputError::NoRows {
                file: self.source.to_owned(),
            });
        }
        self.read_text(&mut builders)?;
        let columns = builders
            .into_iter()
            .flatten()
            .map(|builder| Column {
                values: if !builder.is_wanted {
                    Values::Sparse(Sparse {
                        count: rows,
                        ..Sparse::default()
                    })
                } else if builder.is_text {
                    Values::Text(builder.text)
                } else {
                    Values::Numbers(builder.numbers)
                },
                name: builder.name,
                missing: builder.missing,
            })
            .collect();
        let mut table = Table::new(self.source, rows, columns, lines);
        table.skipped.clone_from(&head.skipped);
        table.has_header = true;
        Ok(table)
    }

    /// The names in the header `cells`.
    fn names(&self, cells: &[Cell<'a>], line: usize) -> Result<Vec<String>, InputError> {
        let names = cells
            .iter()
            .enumerate()
            .map(|(position, cell)| {
                let content = cell.content();
                std::str::from_utf8(content.trim_ascii())
                    .map(str::to_owned)
                    .map_err(|_| InputError::NotUtf8 {
                        file: self.source.to_owned(),
                        place: Place::Line(line),
                        what: format!("the name of column {}", position + 1),
                        value: shown(&content),
                    })
            })
            .collect::<Result<Vec<String>, _>>()?;
        // A header of consecutive integers is what pandas writes for an array; other numbers are data.
        let mut numbers = names
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| name.parse::<f64>().ok());
        if let Some(Some(first)) = numbers.next() {
            let mut next = first;
            let mut all = true;
            let mut consecutive = first.fract() == 0.0 && names.len() > 1;
            for number in numbers {
                next += 1.0;
                all &= number.is_some();
                consecutive &= number == Some(next);
            }
            if all && !consecutive {
                return Err(InputError::HeaderOfNumbers {
                    file: self.source.to_owned(),
                    line,
                    value: names
                        .iter()
                        .find(|name| !name.is_empty())
                        .cloned()
                        .unwrap_or_default(),
                });
            }
        }
        Ok(names)
    }

    /// Fails if there is one column only and its text looks split at something else.
    fn check_delimiter(&self, columns: usize) -> Result<(), InputError> {
        if columns > 1 {
            return Ok(());
        }
        let mut records = self.records.clone();
        let mut cells = Vec::new();
        let Some(line) = records.next(&mut cells)? else {
            return Ok(());
        };
        let [cell] = cells.as_slice() else {
            return Ok(());
        };
        let text = cell.raw;
        let header = &self.records.bytes[..self.records.position];
        let likely = Delimiter::DETECTED
            .into_iter()
            .filter(|other| *other != self.delimiter)
            .map(|other| (memchr_iter(other.0, text).count(), other))
            // `max_by_key` would take the last of equals.
            .fold(
                None,
                |best: Option<(usize, Delimiter)>, candidate| match best {
                    Some(best) if best.0 >= candidate.0 => Some(best),
                    _ => Some(candidate),
                },
            )
            .filter(|(count, other)| *count > 1 || *count == 1 && memchr(other.0, header).is_some())
            .map(|(_, other)| other)
            .or_else(|| {
                let mut parts = text
                    .split(u8::is_ascii_whitespace)
                    .filter(|part| !part.is_empty());
                let number = |part: &[u8]| matches!(read_number(part), Reading::Number(_));
                (parts.next().is_some_and(number) && parts.next().is_some_and(number))
                    .then_some(Delimiter::SPACES)
            });
        match likely {
            None => Ok(()),
            Some(likely) => Err(InputError::Delimiter {
                file: self.source.to_owned(),
                line,
                used: self.delimiter.to_string(),
                likely: likely.to_string(),
                option: likely.option(),
            }),
        }
    }

    /// The first pass: parses the numeric columns and finds out which are not. Gives the rows and their lines.
    fn read_numbers(&self, builders: &mut [Option<Builder>]) -> Result<(usize, Lines), InputError> {
        let mut records = self.records.clone();
        let mut cells = Vec::with_capacity(builders.len());
        let mut lines = Lines::Rows(1);
        let mut row = 0;
        loop {
            let before = records.position;
            let Some(line) = records.next(&mut cells)? else {
                return Ok((row, lines));
            };
            if cells.len() != builders.len() {
                return Err(self.ragged(
                    line,
                    builders.len(),
                    cells.len(),
                    self.before + row,
                    records.line,
                ));
            }
            if row == 0 {
                // Rows are about as long as the first one; a row has a byte per cell, so this is at most eight times
                // the text.
                let expected =
                    (records.bytes.len() - before) / (records.position - before).max(1) + 1;
                for builder in builders
                    .iter_mut()
                    .flatten()
                    .filter(|builder| builder.is_wanted && !builder.is_text)
                {
                    builder.numbers.reserve(expected + expected / 16);
                }
            }
            lines.push(row, line);
            for (builder, cell) in builders.iter_mut().zip(&cells) {
                let Some(builder) = builder else { continue };
                if builder.is_text || !builder.is_wanted {
                    continue;
                }
                match read_number(cell.raw) {
                    Reading::Number(number) => builder.numbers.push(number),
                    Reading::Gap => {
                        builder.missing.push(row);
                        builder.numbers.push(0.0);
                    }
                    Reading::Infinite => {
                        builder
                            .infinite
                            .get_or_insert_with(|| (line, shown(cell.raw)));
                        builder.numbers.push(0.0);
                    }
                    Reading::Text => {
                        builder.is_text = true;
                        builder.numbers = Vec::new();
                        builder.missing = Vec::new();
                    }
                }
            }
            row += 1;
        }
    }

    /// The second pass: collects the columns that are text, and refuses infinite numbers in the others.
    fn read_text(&self, builders: &mut [Option<Builder>]) -> Result<(), InputError> {
        for builder in builders.iter().flatten().filter(|builder| !builder.is_text) {
            if let Some((line, value)) = &builder.infinite {
                return Err(InputError::Table(TableError::NotFinite {
                    file: self.source.to_owned(),
                    place: Place::Line(*line),
                    column: builder.name.clone(),
                    value: value.clone(),
                }));
            }
        }
        let mut wanted: Vec<(usize, &mut Builder)> = builders
            .iter_mut()
            .enumerate()
            .filter_map(|(position, builder)| Some((position, builder.as_mut()?)))
            .filter(|(_, builder)| builder.is_wanted && builder.is_text)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut records = self.records.clone();
        let mut cells = Vec::new();
        let mut row = 0;
        while let Some(line) = records.next(&mut cells)? {
            for (position, builder) in &mut wanted {
                let cell = cells[*position];
                let content = cell.content();
                let Ok(text) = std::str::from_utf8(&content) else {
                    return Err(InputError::NotUtf8 {
                        file: self.source.to_owned(),
                        place: Place::Line(line),
                        what: format!("column `{}`:", builder.name),
                        value: shown(&content),
                    });
                };
                if matches!(read_number(cell.raw), Reading::Gap) {
                    builder.missing.push(row);
                    builder.text.push(String::new());
                } else {
                    builder.text.push(text.to_owned());
                }
            }
            row += 1;
        }
        Ok(())
    }

    /// The error for a row with another number of cells, with its likely cause.
    fn ragged(
        &self,
        line: usize,
        expected: usize,
        found: usize,
        row: usize,
        next_line: usize,
    ) -> InputError {
        let hint = if row == 0 && found == expected + 1 {
            "; do the rows begin with a name that the header lacks (as R writes it)? name that column too"
        } else if next_line > line + 1 {
            "; the row spans several lines: is a quote left open?"
        } else if found > expected {
            "; quote cells that contain the delimiter"
        } else {
            ""
        };
        InputError::Ragged {
            file: self.source.to_owned(),
            line,
            expected,
            found,
            hint,
        }
    }
}
