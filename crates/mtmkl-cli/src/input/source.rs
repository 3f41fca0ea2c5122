//! Opening a file or standard input, unpacking gzip by its magic bytes.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use mtmkl_table::words::similar;

use super::{InputError, check_size};

/// The first bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Bytes looked at to recognise a format.
const HEAD: u64 = 64 << 10;

/// An opened input.
pub(super) struct Source {
    name: String,
    content: Content,
}

/// What an input holds, unpacked.
pub(super) enum Content {
    /// A file on disk, at its beginning: large binary files are not copied into memory.
    File {
        /// The open file.
        file: File,
        /// Its length.
        size: u64,
    },
    /// Everything else.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens `path`, or standard input where it is `-`. What is not a plain file is read at once, up to `limit` bytes.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Self::from_stream("standard input", io::stdin().lock(), limit);
        }
        let name = path.display().to_string();
        let mut file = File::open(path).map_err(|error| not_opened(path, error))?;
        let metadata = file.metadata().map_err(|error| not_read(&name, error))?;
        if metadata.is_dir() {
            return Err(InputError::Folder { file: name });
        }
        // Pipes and devices cannot be rewound.
        if !metadata.is_file() {
            return Self::from_stream(&name, file, limit);
        }
        let mut magic = [0; 2];
        let packed = match file.read_exact(&mut magic) {
            Ok(()) => magic == GZIP,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(not_read(&name, error)),
        };
        file.seek(SeekFrom::Start(0))
            .map_err(|error| not_read(&name, error))?;
        let content = if packed {
            Content::Memory(unpack(&name, file, limit)?)
        } else {
            let size = metadata.len();
            Content::File { file, size }
        };
        Ok(Self { name, content })
    }

    /// Reads `stream` to its end, unpacking it if it is packed.
    fn from_stream(name: &str, mut stream: impl Read, limit: u64) -> Result<Self, InputError> {
        let mut magic = Vec::new();
        (&mut stream)
            .take(GZIP.len() as u64)
            .read_to_end(&mut magic)
            .map_err(|error| not_read(name, error))?;
        let packed = magic == GZIP;
        let whole = io::Cursor::new(magic).chain(stream);
        let bytes = if packed {
            unpack(name, whole, limit)?
        } else {
            read_limited(name, whole, 0, limit)?.map_err(|error| not_read(name, error))?
        };
        Ok(Self {
            name: name.to_owned(),
            content: Content::Memory(bytes),
        })
    }

    /// The name for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes; the input stays at its beginning.
    pub(super) fn head(&mut self) -> Result<Vec<u8>, InputError> {
        match &mut self.content {
            Content::Memory(bytes) => {
                let end = bytes.len().min(usize::try_from(HEAD).unwrap_or(usize::MAX));
                Ok(bytes[..end].to_vec())
            }
            Content::File { file, .. } => {
                let mut head = Vec::new();
                file.take(HEAD)
                    .read_to_end(&mut head)
                    .and_then(|_| file.seek(SeekFrom::Start(0)))
                    .map_err(|error| not_read(&self.name, error))?;
                Ok(head)
            }
        }
    }

    /// The name and the content, as file or bytes.
    pub(super) fn into_parts(self) -> (String, Content) {
        (self.name, self.content)
    }

    /// The name and all bytes, at most `limit`.
    pub(super) fn into_bytes(self, limit: u64) -> Result<(String, Vec<u8>), InputError> {
        match self.content {
            Content::Memory(bytes) => Ok((self.name, bytes)),
            Content::File { file, size } => {
                check_size(&self.name, "the file takes", size, limit)?;
                let bytes = read_limited(&self.name, file, size, limit)?
                    .map_err(|error| not_read(&self.name, error))?;
                Ok((self.name, bytes))
            }
        }
    }
}

/// Unpacks a gzip stream of one or more parts.
fn unpack(name: &str, packed: impl Read, limit: u64) -> Result<Vec<u8>, InputError> {
    read_limited(name, MultiGzDecoder::new(packed), 0, limit)?.map_err(|error| {
        let reason = if error.kind() == io::ErrorKind::UnexpectedEof {
            "it ends early; was it copied in full?".to_owned()
        } else {
            error.to_string()
        };
        InputError::Damaged {
            file: name.to_owned(),
            format: "gzip",
            reason,
        }
    })
}

/// Reads `stream`, of about `size` bytes, to its end unless it holds more than `limit` bytes.
fn read_limited(
    name: &str,
    stream: impl Read,
    size: u64,
    limit: u64,
) -> Result<io::Result<Vec<u8>>, InputError> {
    // One byte more, so that the end is seen without growing.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    match stream.take(limit.saturating_add(1)).read_to_end(&mut bytes) {
        Ok(read) => {
            check_size(
                name,
                "the unpacked content takes at least",
                read as u64,
                limit,
            )?;
            Ok(Ok(bytes))
        }
        Err(error) => Ok(Err(error)),
    }
}

fn not_read(name: &str, source: io::Error) -> InputError {
    InputError::Io {
        file: name.to_owned(),
        source,
    }
}

/// The error for a file that cannot be opened, with a similar name of the same folder if it does not exist.
fn not_opened(path: &Path, error: io::Error) -> InputError {
    let file = path.display().to_string();
    if error.kind() != io::ErrorKind::NotFound {
        return InputError::Io {
            file,
            source: error,
        };
    }
    InputError::NotFound {
        file,
        similar: similar_file(path),
    }
}

/// The file beside `path` whose name is most like it.
fn similar_file(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let mut present: Vec<String> = std::fs::read_dir(folder.unwrap_or(Path::new(".")))
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    present.sort();
    let candidates = || present.iter().map(String::as_str);
    let stem = |name: &str| {
        Path::new(name)
            .file_stem()
            .and_then(OsStr::to_str)
            .map(str::to_lowercase)
    };
    // `data.csv` for `data.csv.gz` or `data.tsv`: the same stem is closer than any count of letters.
    let found = candidates()
        .find(|candidate| {
            candidate.strip_prefix(name) == Some(".gz")
                || name.strip_prefix(candidate) == Some(".gz")
        })
        .or_else(|| similar(name, candidates()))
        .or_else(|| {
            candidates()
                .find(|candidate| stem(candidate).is_some() && stem(candidate) == stem(name))
        })?;
    Some(folder.map_or_else(
        || found.to_owned(),
        |folder| folder.join(found).display().to_string(),
    ))
}
