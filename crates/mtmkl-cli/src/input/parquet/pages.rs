//! Checks on the pages of a column chunk, made before the library believes their headers.
//!
//! A page header names the size of the unpacked page and the number of dictionary entries, and the library reserves
//! memory for both at once. A damaged or hostile header could thus claim gigabytes that are not there.

use std::io::{self, BufReader, Read};

use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnDescriptor;

/// Snappy copies at most 64 bytes with an element of two or more.
const SNAPPY_RATIO: u64 = 64;

/// Structures inside structures in a page header: statistics are two deep.
const DEEPEST: usize = 8;

/// The largest unpacked page in `chunk`, as far as its headers can be read; the library reports those that cannot.
///
/// # Errors
///
/// A page that cannot unpack to the size it claims.
pub(super) fn largest(content: &impl ChunkReader, chunk: &ColumnChunkMetaData) -> Result<u64> {
    let offset = chunk
        .dictionary_page_offset()
        .unwrap_or(chunk.data_page_offset());
    let (Ok(mut offset), Ok(length)) = (
        u64::try_from(offset),
        u64::try_from(chunk.compressed_size()),
    ) else {
        return Err(general("a column chunk lies before the file"));
    };
    let end = offset.saturating_add(length);
    let mut largest = 0;
    while offset < end {
        let mut header = Header {
            reader: BufReader::new(content.get_read(offset)?.take(end - offset)),
            consumed: 0,
        };
        let Ok(Some((unpacked, packed))) = header.sizes() else {
            break;
        };
        if chunk.compression() == Compression::SNAPPY
            && unpacked > SNAPPY_RATIO.saturating_mul(packed + 1)
        {
            return Err(general("a page cannot be as large as its header says"));
        }
        largest = largest.max(unpacked);
        offset = offset
            .saturating_add(header.consumed)
            .saturating_add(packed);
    }
    Ok(largest)
}

fn general(reason: &str) -> ParquetError {
    ParquetError::General(reason.to_owned())
}

/// Reads a page header, which is a structure in Thrift's compact protocol.
struct Header<R> {
    reader: R,
    consumed: u64,
}

impl<R: Read> Header<R> {
    /// The bytes of the page unpacked and packed.
    fn sizes(&mut self) -> io::Result<Option<(u64, u64)>> {
        let (mut unpacked, mut packed) = (None, None);
        self.structure(0, |header, field, kind| match (field, kind) {
            (2, 5) => header.integer().map(|value| unpacked = Some(value)),
            (3, 5) => header.integer().map(|value| packed = Some(value)),
            _ => header.skip(kind, 0),
        })?;
        let size = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        Ok(size(unpacked).zip(size(packed)))
    }

    /// Reads the fields of a structure, each with `read`, which gets the number and the kind of the field.
    fn structure(
        &mut self,
        depth: usize,
        mut read: impl FnMut(&mut Self, i64, u8) -> io::Result<()>,
    ) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut field = 0_i64;
        loop {
            let byte = self.byte()?;
            if byte == 0 {
                return Ok(());
            }
            // The upper half is the distance from the field before, or 0 where the number follows.
            field = match byte >> 4 {
                0 => self.integer()?,
                distance => field.saturating_add(i64::from(distance)),
            };
            read(self, field, byte & 0xf)?;
        }
    }

    /// Skips a value of the given kind.
    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        match kind {
            // The kind of a boolean field is its value.
            1 | 2 => Ok(()),
            3 => self.skip_bytes(1),
            4..=6 => self.unsigned().map(drop),
            7 => self.skip_bytes(8),
            8 => {
                let length = self.unsigned()?;
                self.skip_bytes(length)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let length = match byte >> 4 {
                    15 => self.unsigned()?,
                    length => u64::from(length),
                };
                // In a list a boolean takes a byte, so that every element takes one and the input ends the loop.
                let kind = if matches!(byte & 0xf, 1 | 2) {
                    3
                } else {
                    byte & 0xf
                };
                (0..length).try_for_each(|_| self.skip(kind, depth + 1))
            }
            12 => self.structure(depth + 1, |header, _, kind| header.skip(kind, depth + 1)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn skip_bytes(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.reader).take(length), &mut io::sink())?;
        self.consumed += skipped;
        if skipped < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.reader.read_exact(&mut byte)?;
        self.consumed += 1;
        Ok(byte[0])
    }

    /// An integer of seven bits per byte, lowest first.
    fn unsigned(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    /// A signed integer, with the sign in the lowest bit.
    fn integer(&mut self) -> io::Result<i64> {
        let value = self.unsigned()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

/// Passes on the pages of another reader that are consistent in themselves.
pub(super) struct CheckedPages {
    inner: Box<dyn PageReader>,
    /// Whether the dictionary has been read.
    dictionary: bool,
    /// The fewest bytes that a dictionary entry takes.
    entry_bytes: usize,
}

impl CheckedPages {
    /// Checks the pages that `inner` reads of `column`.
    pub(super) fn new(inner: Box<dyn PageReader>, column: &ColumnDescriptor) -> Self {
        let entry_bytes = match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => usize::try_from(column.type_length()).unwrap_or(0).max(1),
        };
        Self {
            inner,
            dictionary: false,
            entry_bytes,
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        if let Page::DictionaryPage {
            buf, num_values, ..
        } = page
        {
            self.dictionary = true;
            if u64::from(*num_values) * self.entry_bytes as u64 > buf.len() as u64 {
                return Err(general("a dictionary has fewer entries than it says"));
            }
            return Ok(());
        }
        if let Page::DataPageV2 {
            buf,
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } = page
            && u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len) > buf.len() as u64
        {
            return Err(general("the levels of a page are longer than the page"));
        }
        let indirect = matches!(
            page.encoding(),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        );
        if indirect && !self.dictionary {
            return Err(general("a page refers to a dictionary that is not there"));
        }
        Ok(())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }
}
