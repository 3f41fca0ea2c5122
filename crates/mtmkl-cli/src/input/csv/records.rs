//! A text split into rows of cells: RFC 4180, with any delimiter and any line ends.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::InputError;

/// A cell as it stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a> {
    /// The content without surrounding quotes, or without surrounding space where there are none.
    pub(super) raw: &'a [u8],
    /// Whether the content holds doubled quotes.
    pub(super) doubled: bool,
}

impl<'a> Cell<'a> {
    pub(super) fn content(&self) -> Cow<'a, [u8]> {
        if !self.doubled {
            return Cow::Borrowed(self.raw);
        }
        let mut content = Vec::with_capacity(self.raw.len());
        let mut quote = false;
        for &byte in self.raw {
            quote = byte == b'"' && !quote;
            if !quote {
                content.push(byte);
            }
        }
        Cow::Owned(content)
    }
}

/// Splits a text into rows of cells.
#[derive(Clone)]
pub(super) struct Records<'a> {
    pub(super) source: &'a str,
    pub(super) bytes: &'a [u8],
    /// The byte after the last row read.
    pub(super) position: usize,
    /// The line at `position`, counted from 1.
    pub(super) line: usize,
    pub(super) delimiter: u8,
    /// The last byte of a line: a carriage return only where the text has no line feed at all.
    pub(super) line_end: u8,
}

impl<'a> Records<'a> {
    /// Replaces `cells` by those of the next row that is not blank; the line at which it begins, or none at the end.
    pub(super) fn next(&mut self, cells: &mut Vec<Cell<'a>>) -> Result<Option<usize>, InputError> {
        cells.clear();
        while self.position < self.bytes.len() {
            let rest = &self.bytes[self.position..];
            let length = memchr(self.line_end, rest);
            let text = &rest[..length.unwrap_or(rest.len())];
            let begin = self.line;
            if memchr(b'"', text).is_some() {
                self.quoted(cells)?;
                return Ok(Some(begin));
            }
            self.position += length.map_or(rest.len(), |length| length + 1);
            self.line += 1;
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.trim_ascii().is_empty()
                && (self.delimiter == b' ' || memchr(self.delimiter, text).is_none())
            {
                continue;
            }
            self.plain(text, cells);
            return Ok(Some(begin));
        }
        Ok(None)
    }

    /// Splits a line without quotes.
    fn plain(&self, text: &'a [u8], cells: &mut Vec<Cell<'a>>) {
        let mut push = |raw: &'a [u8]| {
            cells.push(Cell {
                raw,
                doubled: false,
            });
        };
        if self.delimiter == b' ' {
            text.split(u8::is_ascii_whitespace)
                .filter(|raw| !raw.is_empty())
                .for_each(push);
            return;
        }
        let mut begin = 0;
        for end in memchr_iter(self.delimiter, text) {
            push(text[begin..end].trim_ascii());
            begin = end + 1;
        }
        push(text[begin..].trim_ascii());
    }

    /// Splits a row with quotes, which may span lines.
    fn quoted(&mut self, cells: &mut Vec<Cell<'a>>) -> Result<(), InputError> {
        loop {
            self.skip_space();
            if self.bytes.get(self.position) == Some(&b'"') {
                let cell = self.quoted_cell(cells.len() + 1)?;
                cells.push(cell);
                self.skip_space();
            } else {
                let rest = &self.bytes[self.position..];
                let length = rest
                    .iter()
                    .position(|byte| self.delimits(*byte) || *byte == self.line_end)
                    .unwrap_or(rest.len());
                self.position += length;
                let raw = rest[..length].trim_ascii();
                // Spaces before the end of the line delimit nothing.
                if self.delimiter != b' ' || !raw.is_empty() {
                    cells.push(Cell {
                        raw,
                        doubled: false,
                    });
                }
            }
            match self.bytes.get(self.position) {
                None => return Ok(()),
                Some(byte) if *byte == self.line_end => {
                    self.position += 1;
                    self.line += 1;
                    return Ok(());
                }
                Some(b'\r')
                    if self
                        .bytes
                        .get(self.position + 1)
                        .is_none_or(|next| *next == self.line_end) =>
                {
                    self.position = (self.position + 2).min(self.bytes.len());
                    self.line += 1;
                    return Ok(());
                }
                Some(byte) if self.delimits(*byte) => self.position += 1,
                // With spaces as delimiter they have been skipped, and the next cell begins here.
                Some(_)
                    if self.delimiter == b' '
                        && self.bytes[self.position - 1].is_ascii_whitespace() => {}
                Some(_) => {
                    return Err(InputError::AfterQuote {
                        file: self.source.to_owned(),
                        line: self.line,
                        cell: cells.len(),
                    });
                }
            }
        }
    }

    /// The quoted cell at the current position, the `number`th of its row.
    fn quoted_cell(&mut self, number: usize) -> Result<Cell<'a>, InputError> {
        let first_line = self.line;
        let begin = self.position + 1;
        let mut doubled = false;
        let mut end = begin;
        loop {
            let Some(length) = memchr(b'"', &self.bytes[end..]) else {
                return Err(InputError::OpenQuote {
                    file: self.source.to_owned(),
                    line: first_line,
                    cell: number,
                });
            };
            end += length;
            if self.bytes.get(end + 1) != Some(&b'"') {
                break;
            }
            doubled = true;
            end += 2;
        }
        let raw = &self.bytes[begin..end];
        self.line += memchr_iter(self.line_end, raw).count();
        self.position = end + 1;
        Ok(Cell { raw, doubled })
    }

    fn delimits(&self, byte: u8) -> bool {
        byte == self.delimiter || self.delimiter == b' ' && byte == b'\t'
    }

    /// Skips space that belongs to no cell.
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t') = self.bytes.get(self.position) {
            if self.bytes[self.position] == self.delimiter && self.delimiter != b' ' {
                return;
            }
            self.position += 1;
        }
    }
}
