//! LIBSVM text in parts of some thousand lines, each a table: what is kept of it is one part, however long it is.

use std::io::Read;

use memchr::{memchr_iter, memrchr};
use mtmkl_table::Table;

use super::{InputError, Rows, TableOptions, check_size, table_of};
use crate::input::batches::{self, NextPart};
use crate::input::source::Stream;

/// A text that is read part by part. Whether indices begin at 0 does not matter: features have the names of their indices.
pub(in crate::input) struct Parts {
    input: Stream,
    options: TableOptions,
    /// The lines of a part, and the bytes read at a time.
    size: (usize, usize),
    /// What was read and not yet given out.
    buffer: Vec<u8>,
    has_ended: bool,
    /// The line at the beginning of the buffer, counted from 1.
    line: usize,
    has_rows: bool,
}

impl Parts {
    /// The text that `input` holds.
    pub(in crate::input) fn new(input: Stream, options: TableOptions) -> Self {
        Self::with_size(input, options, batches::ROWS, batches::BLOCK)
    }

    /// As [`Parts::new`], in parts of so many lines, read by so many bytes.
    pub(in crate::input) fn with_size(
        input: Stream,
        options: TableOptions,
        lines: usize,
        block: usize,
    ) -> Self {
        Self {
            input,
            options,
            size: (lines, block),
            buffer: Vec::new(),
            has_ended: false,
            line: 1,
            has_rows: false,
        }
    }

    /// Reads until there are as many lines as a part has, or many bytes of them: where they end, and how many they are.
    fn whole_lines(&mut self) -> Result<(usize, usize), InputError> {
        let (mut seen, mut lines) = (0, 0);
        loop {
            let new = memchr_iter(b'\n', &self.buffer[seen..]);
            for end in new {
                lines += 1;
                if lines == self.size.0 {
                    return Ok((seen + end + 1, lines));
                }
            }
            seen = self.buffer.len();
            if self.has_ended {
                return Ok((seen, lines));
            }
            if seen >= batches::BYTES && lines > 0 {
                let end = memrchr(b'\n', &self.buffer).map_or(seen, |last| last + 1);
                return Ok((end, lines));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), InputError> {
        let read = (self.input.by_ref())
            .take(self.size.1 as u64)
            .read_to_end(&mut self.buffer);
        let read = read.map_err(|error| self.input.failed(error))?;
        self.has_ended = read < self.size.1;
        check_size(
            self.input.name(),
            "a part of it takes at least",
            self.buffer.len() as u64,
            self.options.limit,
        )
    }

    /// The next lines as they are written; none at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>, InputError> {
        let (end, lines) = self.whole_lines()?;
        if end == 0 {
            return Ok(None);
        }
        let piece = Piece {
            bytes: self.buffer[..end].to_vec(),
            line: self.line,
        };
        self.buffer.drain(..end);
        self.line += lines;
        Ok(Some(piece))
    }
}

/// Whole lines as they are written.
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// The number of the first of them, counted from 1.
    line: usize,
}

impl Piece {
    /// How long they are.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Their rows, perhaps none.
    pub(super) fn rows(&self, source: &str) -> Result<Rows, InputError> {
        Rows::read(source, &self.bytes, self.line)
    }
}

impl NextPart for Parts {
    fn next_part(&mut self) -> Result<Option<Table>, InputError> {
        while let Some(piece) = self.next_piece()? {
            let rows = piece.rows(self.input.name())?;
            // Comments and empty lines only.
            if rows.len() > 0 {
                self.has_rows = true;
                return table_of(self.input.name(), &rows, None, &self.options).map(Some);
            }
        }
        if self.has_rows {
            return Ok(None);
        }
        Err(InputError::Empty {
            file: self.input.name().to_owned(),
        })
    }
}
