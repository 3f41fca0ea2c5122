//! A delimited text in parts of some thousand rows, each a table: what is kept of it is one part, however long it is.
//!
//! Where a row ends only the splitter knows, for a quoted cell may have line ends. A row that may go on after the bytes that are there is
//! thus split again when there are more of them. Which byte ends lines is known from the first line feed on; a text without any is read whole.

use std::io::Read;

use memchr::{memchr, memchr_iter};
use mtmkl_table::Table;

use super::{Delimiter, Head, InputError, Reader, Records, TableOptions, check_size};
use crate::input::batches::{self, NextPart};
use crate::input::source::Stream;

/// Rows after which a part may end.
const STEP: usize = 128;

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
pub(super) struct Known {
    head: Head,
    delimiter: Delimiter,
    line_end: u8,
}

impl Known {
    /// The table of a piece of the text `source`.
    ///
    /// # Errors
    ///
    /// Any [`InputError`] about delimited text.
    pub(super) fn table(
        &self,
        source: &str,
        piece: &Piece,
        options: &TableOptions,
    ) -> Result<Table, InputError> {
        let reader = Reader {
            source,
            records: Records {
                source,
                bytes: &piece.bytes,
                position: 0,
                line: piece.line,
                delimiter: self.delimiter.0,
                line_end: self.line_end,
            },
            delimiter: self.delimiter,
            before: piece.before,
        };
        reader.body(&self.head, options)
    }
}

/// Whole rows as they are written.
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// The line they begin at, counted from 1.
    line: usize,
    /// The rows before them.
    before: usize,
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
        Self::with_size(input, options, batches::ROWS, batches::BLOCK)
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

    /// The next rows as they are written; none at the end.
    ///
    /// # Errors
    ///
    /// Any [`InputError`] about delimited text.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>, InputError> {
        let known = match self.known.take() {
            Some(known) => known,
            None => self.begin()?,
        };
        let (delimiter, line_end) = (known.delimiter, known.line_end);
        self.known = Some(known);
        let end = self.whole_rows(delimiter, line_end, self.size.0)?;
        if end.rows == 0 {
            if self.rows > 0 {
                return Ok(None);
            }
            return Err(InputError::NoRows {
                file: self.input.name().to_owned(),
            });
        }
        let piece = Piece {
            bytes: self.buffer[..end.position].to_vec(),
            line: self.line,
            before: self.rows,
        };
        self.rows += end.rows;
        self.skip(end);
        Ok(Some(piece))
    }

    /// What the first lines say of all others, once the first piece is there, and the name of the text.
    pub(super) fn known(&self) -> Option<(&Known, &str)> {
        Some((self.known.as_ref()?, self.input.name()))
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
            let (found, is_done) = match self.plain_lines(line_end, end, most) {
                Some(found) => found,
                None => self.split(self.records(delimiter, line_end), end, most)?,
            };
            end = found;
            if is_done || self.has_ended {
                return Ok(end);
            }
            self.fill()?;
        }
    }

    /// As [`Parts::split`], where each line is a row: there are no quotes, no blank lines, and the last line is whole.
    fn plain_lines(&self, line_end: u8, mut end: Mark, most: usize) -> Option<(Mark, bool)> {
        let rest = &self.buffer[end.position..];
        if memchr(b'"', rest).is_some() || self.has_ended && rest.last() != Some(&line_end) {
            return None;
        }
        let first = end.position;
        for length in memchr_iter(line_end, rest) {
            if end.rows == most || end.rows.is_multiple_of(STEP) && end.position >= batches::BYTES {
                return Some((end, true));
            }
            if self.buffer[end.position].is_ascii_whitespace() {
                return None;
            }
            end = Mark {
                position: first + length + 1,
                line: end.line + 1,
                rows: end.rows + 1,
            };
        }
        Some((end, end.rows == most))
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
            if end.rows.is_multiple_of(STEP) && end.position >= batches::BYTES {
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

impl NextPart for Parts {
    fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        let (Some(piece), Some((known, source))) = (self.next_piece()?, self.known()) else {
            return Ok(None);
        };
        known.table(source, &piece, &self.options).map(Some)
    }
}
