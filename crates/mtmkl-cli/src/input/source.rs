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

    /// The bytes of a file on disk.
    pub(super) fn size(&self) -> Option<u64> {
        match self.content {
            Content::File { size, .. } => Some(size),
            Content::Memory(_) => None,
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

/// An input that is read once, from its beginning to its end, unpacked on the way.
pub(super) struct Stream {
    name: String,
    /// The first bytes, and how many of them were read.
    head: Vec<u8>,
    taken: usize,
    rest: Rest,
}

/// What comes after the first bytes.
enum Rest {
    File { file: File, size: u64 },
    Packed(Box<dyn Read>),
    Plain(Box<dyn Read>),
}

impl Stream {
    /// Opens `path`, or standard input where it is `-`.
    pub(super) fn open(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Self::of("standard input", Box::new(io::stdin().lock()));
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| not_opened(path, error))?;
        let metadata = file.metadata().map_err(|error| not_read(&name, error))?;
        if metadata.is_dir() {
            return Err(InputError::Folder { file: name });
        }
        if !metadata.is_file() {
            return Self::of(&name, Box::new(file));
        }
        let size = metadata.len();
        let again = file.try_clone().map_err(|error| not_read(&name, error))?;
        let mut stream = Self::of(&name, Box::new(file))?;
        if let Rest::Plain(_) = stream.rest {
            stream.rest = Rest::File { file: again, size };
        }
        Ok(stream)
    }

    /// What `input` holds, packed or not.
    pub(super) fn of(name: &str, mut input: Box<dyn Read>) -> Result<Self, InputError> {
        let mut magic = Vec::new();
        (&mut input)
            .take(GZIP.len() as u64)
            .read_to_end(&mut magic)
            .map_err(|error| not_read(name, error))?;
        let is_packed = magic == GZIP;
        let mut stream = Self {
            name: name.to_owned(),
            head: Vec::new(),
            taken: 0,
            rest: if is_packed {
                let whole = io::Cursor::new(magic).chain(input);
                Rest::Packed(Box::new(MultiGzDecoder::new(whole)))
            } else {
                Rest::Plain(Box::new(io::Cursor::new(magic).chain(input)))
            },
        };
        let mut head = Vec::new();
        let read = stream.rest.by_ref().take(HEAD).read_to_end(&mut head);
        read.map_err(|error| stream.failed(error))?;
        stream.head = head;
        Ok(stream)
    }

    /// The name for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The first bytes.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The error for an input that cannot be read on.
    pub(super) fn failed(&self, error: io::Error) -> InputError {
        if matches!(self.rest, Rest::Packed(_)) {
            return not_unpacked(&self.name, &error);
        }
        not_read(&self.name, error)
    }

    /// As an input that can be read from anywhere; what is not a plain file is read at once, up to `limit` bytes.
    pub(super) fn into_source(mut self, limit: u64) -> Result<Source, InputError> {
        let name = self.name.clone();
        let content = if let Rest::File { mut file, size } = self.rest {
            file.seek(SeekFrom::Start(0))
                .map_err(|error| not_read(&name, error))?;
            Content::File { file, size }
        } else {
            let read = read_limited(&name, &mut self, 0, limit)?;
            Content::Memory(read.map_err(|error| self.failed(error))?)
        };
        Ok(Source { name, content })
    }
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.read(buffer),
            Self::Packed(input) | Self::Plain(input) => input.read(buffer),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut head = &self.head[self.taken..];
        if head.is_empty() {
            return self.rest.read(buffer);
        }
        let read = head.read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

/// Unpacks a gzip stream of one or more parts.
fn unpack(name: &str, packed: impl Read, limit: u64) -> Result<Vec<u8>, InputError> {
    read_limited(name, MultiGzDecoder::new(packed), 0, limit)?
        .map_err(|error| not_unpacked(name, &error))
}

fn not_unpacked(name: &str, error: &io::Error) -> InputError {
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
    if path.as_os_str().is_empty() {
        return InputError::NoName;
    }
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
