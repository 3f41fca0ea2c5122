//! A file that several readers read from, each at a place of its own: the handles of one open file have one position together.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};

/// An open file.
pub(super) struct SharedFile {
    file: Arc<Mutex<File>>,
    size: u64,
}

impl SharedFile {
    pub(super) fn new(file: File, size: u64) -> Self {
        Self {
            file: Arc::new(Mutex::new(file)),
            size,
        }
    }
}

/// The file from some place on.
pub(super) struct From {
    file: Arc<Mutex<File>>,
    position: u64,
}

impl Read for From {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Length for SharedFile {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for SharedFile {
    type T = BufReader<From>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(From {
            file: Arc::clone(&self.file),
            position: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // No more than there is, whatever the file says of itself.
        let there = usize::try_from(self.size.saturating_sub(start)).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length.min(there));
        self.get_read(start)?
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        if bytes.len() != length {
            return Err(super::general("it ends early; was it copied in full?"));
        }
        Ok(Bytes::from(bytes))
    }
}
