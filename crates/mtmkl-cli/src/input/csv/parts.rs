//! A delimited text in parts of some thousand rows, each a table: what is kept of it is one part, however long it is.
//!
//! Where a row ends only the splitter knows, for a quoted cell may have line ends. A row that may go on after the bytes that are there is
//! thus split again when there are more of them. Which byte ends lines is known from the first line feed on; a text without any is read whole.

use std::io::Read;

use memchr::memchr;
use mtmkl_table::Table;

use super::{Delimiter, Head, InputError, Reader, Records, TableOptions, check_size};
use crate::input::source::Stream;

/// Rows of a part: a multiple of those that the core predicts at a time, so that the same rows are together as in the whole table.
const ROWS: usize = 8192;
/// Rows after which a part may end.
const STEP: usize = 128;
/// A part of rows that are long ends after so many bytes.
const BYTES: usize = 8 << 20;
/// Bytes read at a time.
const BLOCK: usize = 256 << 10;

/// A text that is read part by part.
pub(in crate::input) struct Parts {
    input: Stream,
    options: TableOptions,
    /// The rows of a part, and the bytes read at a time.
    size: (usize, usize),
    /// What was read and not yet given out.
    buffer: Vec<u8>,
    /// Whether the text has no more bytes than those in the buffer.
    has_ended: bool,
    /// The line at the beginning of the buffer, counted from 1.
    line: usize,
    /// Rows given out.
    rows: usize,
    known: Option<Known>,
}

/// What the first lines say of all others.
struct Known {
    head: Head,
    delimiter: Delimiter,
    line_end: u8,
}

/// A place in the buffer between two rows.
#[derive(Clone, Copy)]
struct Mark {
    position: usize,
    line: usize,
    /// The rows before it.
    rows: usize,
}

impl Parts {
    /// The text that `input` holds.
    pub(in crate::input) fn new(input: Stream, options: TableOptions) -> Self {
        Self::with_size(input, options, ROWS, BLOCK)
    }

    /// As [`Parts::new`], in parts of so many rows, read by so many bytes.
    pub(in crate::input) fn with_size(
        input: Stream,
        options: TableOptions,
        rows: usize,
        block: usize,
    ) -> Self {
        Self {
            input,
            options,
            size: (rows, block),
            buffer: Vec::new(),
            has_ended: false,
            line: 1,
            rows: 0,
            known: None,
        }
    }

    /// The next part; none at the end.
    ///
    /// # Errors
    ///
    /// Any [`InputError`] about delimited text.
    pub(in crate::input) fn next(&mut self) -> Result<Option<Table>, InputError> {
        let known = match self.known.take() {
            Some(known) => known,
            None => self.begin()?,
        };
        let table = self.part(&known);
        self.known = Some(known);
        table
    }

    fn part(&mut self, known: &Known) -> Result<Option<Table>, InputError> {
        let end = self.whole_rows(known.delimiter, known.line_end, self.size.0)?;
        if end.rows == 0 {
            if self.rows > 0 {
                return Ok(None);
            }
            return Err(InputError::NoRows {
                file: self.input.name().to_owned(),
            });
        }
        let mut records = self.records(known.delimiter, known.line_end);
        records.bytes = &records.bytes[..end.position];
        let reader = Reader {
            source: self.input.name(),
            records,
            delimiter: known.delimiter,
            before: self.rows,
        };
        let table = reader.body(&known.head, &self.options)?;
        self.rows += end.rows;
        self.skip(end);
        Ok(Some(table))
    }

    /// Reads the first lines.
    fn begin(&mut self) -> Result<Known, InputError> {
        // A line feed after something: the first line is whole, and what ends lines is known.
        let begins = |bytes: &[u8]| {
            let first = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
            first.is_some_and(|first| memchr(b'\n', &bytes[first..]).is_some())
        };
        self.fill()?;
        while !self.has_ended && !begins(&self.buffer) {
            self.fill()?;
        }
        if self.buffer.starts_with(b"\xef\xbb\xbf") {
            self.buffer.drain(..3);
        }
        let reader = Reader::new(self.input.name(), &self.buffer, self.options.delimiter)?;
        let (delimiter, line_end) = (reader.delimiter, reader.records.line_end);
        // The header, and the row after it, at which one sees whether the delimiter is right. What is wrong with them is said by those who read them.
        let _ = self.whole_rows(delimiter, line_end, 2);
        let mut reader = Reader::new(self.input.name(), &self.buffer, Some(delimiter))?;
        reader.records.line_end = line_end;
        let head = reader.head(self.options.header, false)?;
        let end = Mark {
            position: reader.records.position,
            line: reader.records.line,
            rows: 0,
        };
        self.skip(end);
        Ok(Known {
            head,
            delimiter,
            line_end,
        })
    }

    fn skip(&mut self, end: Mark) {
        self.buffer.drain(..end.position);
        self.line = end.line;
    }

    fn records(&self, delimiter: Delimiter, line_end: u8) -> Records<'_> {
        Records {
            source: self.input.name(),
            bytes: &self.buffer,
            position: 0,
            line: self.line,
            delimiter: delimiter.0,
            line_end,
        }
    }

    /// Reads until there are so many whole rows, or many bytes of them, or the text has ended.
    fn whole_rows(
        &mut self,
        delimiter: Delimiter,
        line_end: u8,
        most: usize,
    ) -> Result<Mark, InputError> {
        let mut end = Mark {
            position: 0,
            line: self.line,
            rows: 0,
        };
        loop {
            let (found, is_done) = self.split(self.records(delimiter, line_end), end, most)?;
            end = found;
            if is_done || self.has_ended {
                return Ok(end);
            }
            self.fill()?;
        }
    }

    /// Goes on from `end` over rows that are whole: where they end, and whether they are enough.
    fn split<'a>(
        &self,
        mut records: Records<'a>,
        mut end: Mark,
        most: usize,
    ) -> Result<(Mark, bool), InputError> {
        let mut cells = Vec::new();
        (records.position, records.line) = (end.position, end.line);
        while end.rows < most {
            if end.rows.is_multiple_of(STEP) && end.position >= BYTES {
                return Ok((end, true));
            }
            let found: Result<Option<usize>, InputError> = records.next(&mut cells);
            let bytes: &'a [u8] = records.bytes;
            let ends_with_line = bytes[..records.position].last() == Some(&records.line_end);
            let may_go_on = match &found {
                Ok(Some(_)) => records.position == bytes.len() && !ends_with_line,
                Ok(None) | Err(InputError::OpenQuote { .. }) => true,
                Err(_) => false,
            };
            if may_go_on && !self.has_ended {
                return Ok((end, false));
            }
            match found {
                Ok(Some(_)) => {
                    end = Mark {
                        position: records.position,
                        line: records.line,
                        rows: end.rows + 1,
                    };
                }
                Ok(None) => return Ok((end, true)),
                // The rows before it come first.
                Err(_) if end.rows > 0 => return Ok((end, true)),
                Err(error) => return Err(error),
            }
        }
        Ok((end, true))
    }

    /// Reads more: as much again as there is, so that long rows are not split too often.
    fn fill(&mut self) -> Result<(), InputError> {
        let wanted = self.size.1.max(self.buffer.len());
        let input = &mut self.input;
        let read = input
            .by_ref()
            .take(wanted as u64)
            .read_to_end(&mut self.buffer);
        let read = read.map_err(|error| self.input.failed(error))?;
        self.has_ended = read < wanted;
        let (name, limit) = (self.input.name(), self.options.limit);
        check_size(
            name,
            "a part of it takes at least",
            self.buffer.len() as u64,
            limit,
        )
    }
}
