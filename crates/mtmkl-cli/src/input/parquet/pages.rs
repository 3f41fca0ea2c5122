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

/// The bytes after the footer: its length, and `PAR1`.
const FOOTER_END: u64 = 8;

/// The kinds of fields that a page header has, besides booleans.
const INTEGER: u8 = 5;
const STRUCTURE: u8 = 12;

/// Deeper than any structure inside structures in a header.
const DEEPEST: usize = 32;

/// Checks that no element of the schema claims more children than the schema has elements; the library reserves room
/// for them.
///
/// # Errors
///
/// One does, or there is no schema.
pub(super) fn check_schema(content: &impl ChunkReader) -> Result<()> {
    const ELEMENTS: i64 = 2;
    const CHILDREN: i64 = 5;
    let end = content
        .len()
        .checked_sub(FOOTER_END)
        .ok_or_else(|| general("it is too short"))?;
    let mut length = [0; 4];
    content.get_read(end)?.read_exact(&mut length)?;
    let start = end
        .checked_sub(u64::from(u32::from_le_bytes(length)))
        .ok_or_else(|| {
            general("its last bytes are not those of a Parquet file; was it copied in full?")
        })?;
    let mut footer = Header {
        reader: BufReader::new(content.get_read(start)?.take(end - start)),
        consumed: 0,
    };
    let (mut elements, mut most_children) = (None, 0);
    let read = footer.structure(0, |footer, field, kind| {
        if field != ELEMENTS {
            return footer.skip(kind, 0);
        }
        let (_, length) = footer.list()?;
        (0..length).try_for_each(|_| {
            footer.structure(1, |element, field, kind| {
                if field != CHILDREN {
                    return element.skip(kind, 1);
                }
                most_children = most_children.max(element.integer()?);
                Ok(())
            })
        })?;
        elements = Some(length);
        Ok(())
    });
    let Some(elements) = elements else {
        return Err(general("its schema cannot be read"));
    };
    // Where the rest is merely cut off, the library says so.
    if read.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
        return Err(general("its footer cannot be read"));
    }
    if u64::try_from(most_children).is_ok_and(|children| children > elements) {
        return Err(general("its schema lacks columns that it promises"));
    }
    Ok(())
}

/// The largest unpacked page in `chunk`.
///
/// # Errors
///
/// A page that cannot unpack to the size it claims, or a header that cannot be read.
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
            return Err(general("a page header cannot be read"));
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

/// Reads a header, which is a structure in Thrift's compact protocol.
struct Header<R> {
    reader: R,
    consumed: u64,
}

impl<R: Read> Header<R> {
    /// The bytes of the page unpacked and packed.
    ///
    /// The library goes by the numbers of the fields and ignores their kinds, so that a wrong kind would make it go on
    /// to another place in the file than to the one checked here.
    fn sizes(&mut self) -> io::Result<Option<(u64, u64)>> {
        let (mut unpacked, mut packed) = (None, None);
        self.structure(0, |header, field, kind| match (field, kind) {
            (2, INTEGER) => header.integer().map(|value| unpacked = Some(value)),
            (3, INTEGER) => header.integer().map(|value| packed = Some(value)),
            (1 | 4, INTEGER) => header.skip(kind, 0),
            (5..=8, STRUCTURE) => header.structure(1, |page, number, kind| {
                let expected = match (field, number) {
                    (5, 5) | (8, 8) => kind == STRUCTURE,
                    (7, 3) | (8, 7) => matches!(kind, 1 | 2),
                    (5, 1..=4) | (7, 1 | 2) | (8, 1..=6) => kind == INTEGER,
                    _ => true,
                };
                if expected {
                    page.skip(kind, 1)
                } else {
                    Err(io::ErrorKind::InvalidData.into())
                }
            }),
            (1..=8, _) => Err(io::ErrorKind::InvalidData.into()),
            _ => header.skip(kind, 0),
        })?;
        // Sizes have 32 bits, of more the library would take the lowest.
        let size = |value: Option<i64>| {
            let value = i32::try_from(value?).ok()?;
            u64::try_from(value).ok()
        };
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
                distance => field + i64::from(distance),
            };
            // No kind would end the structure for the library, and of a larger number it would take the lowest bits.
            let kind = byte & 0xf;
            if kind == 0 || i16::try_from(field).is_err() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            read(self, field, kind)?;
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
                let (kind, length) = self.list()?;
                // For the library a boolean in a list takes no byte, and a few bytes could keep it busy for hours.
                if depth > DEEPEST || matches!(kind, 1 | 2) {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                (0..length).try_for_each(|_| self.skip(kind, depth + 1))
            }
            12 => self.structure(depth + 1, |header, _, kind| header.skip(kind, depth + 1)),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// The kind and the number of the elements of a list.
    fn list(&mut self) -> io::Result<(u8, u64)> {
        let byte = self.byte()?;
        let length = match byte >> 4 {
            15 => self.unsigned()?,
            length => u64::from(length),
        };
        Ok((byte & 0xf, length))
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
    /// Whether the pages begin with definition levels.
    levels: bool,
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
            levels: column.max_def_level() > 0,
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
        let encoding = page.encoding();
        if matches!(
            encoding,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY
        ) && !self.dictionary
        {
            return Err(general("a page refers to a dictionary that is not there"));
        }
        let values = self
            .values(page)
            .ok_or_else(|| general("the levels of a page are longer than the page"))?;
        // Lengths are decoded all at once, as many as they themselves say.
        let most = u64::from(page.num_values());
        let lists = match encoding {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => 0,
        };
        (0..lists)
            .try_fold(values, |rest, _| skip_lengths(rest, most))
            .map(drop)
            .ok_or_else(|| general("a page has more lengths than values"))
    }

    /// The part of `page` after its levels; none if there are no such bytes.
    fn values<'a>(&self, page: &'a Page) -> Option<&'a [u8]> {
        let buffer: &[u8] = page.buffer();
        let levels = match page {
            Page::DataPageV2 {
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => usize::try_from(def_levels_byte_len.checked_add(*rep_levels_byte_len)?).ok()?,
            Page::DataPage {
                def_level_encoding, ..
            } if self.levels && *def_level_encoding == Encoding::RLE => {
                let length = buffer.first_chunk::<4>()?;
                usize::try_from(u32::from_le_bytes(*length))
                    .ok()?
                    .checked_add(4)?
            }
            // Levels packed otherwise went out of use before lengths came into it.
            _ => 0,
        };
        buffer.get(levels..)
    }
}

/// The bytes after a list of integers in the encoding `DELTA_BINARY_PACKED`; none if it has more than `most` or is cut
/// off.
fn skip_lengths(bytes: &[u8], most: u64) -> Option<&[u8]> {
    let mut header = Header {
        reader: bytes,
        consumed: 0,
    };
    let block = header.unsigned().ok()?;
    let parts = header.unsigned().ok()?;
    let total = header.unsigned().ok()?;
    header.integer().ok()?;
    if total > most {
        return None;
    }
    // The first integer stands in the header.
    let mut left = total.saturating_sub(1);
    if left == 0 {
        return Some(header.reader);
    }
    let part = block.checked_div(parts).filter(|part| *part > 0)?;
    while left > 0 {
        header.integer().ok()?;
        let widths = header.reader.split_off(..usize::try_from(parts).ok()?)?;
        for width in widths {
            if left == 0 {
                break;
            }
            let length = part.checked_mul(u64::from(*width))? / 8;
            header.reader.split_off(..usize::try_from(length).ok()?)?;
            left = left.saturating_sub(part);
        }
    }
    Some(header.reader)
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
