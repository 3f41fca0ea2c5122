//! Which format a file has: by its magic bytes, else by its name, else by its text.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::source::Stream;
use super::{Delimiter, InputError, libsvm};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Delimited text; the delimiter is detected.
    Csv,
    /// Text delimited by tabs.
    Tsv,
    /// `label index:value …`, also known as `SVMlight`.
    Libsvm,
    /// Apache Parquet.
    Parquet,
    /// One `NumPy` array.
    Npy,
    /// A ZIP archive of `NumPy` arrays.
    Npz,
}

impl Format {
    /// The delimiter that the format prescribes.
    pub(super) fn delimiter(self) -> Option<Delimiter> {
        (self == Self::Tsv).then_some(Delimiter::TAB)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Libsvm => "libsvm",
            Self::Parquet => "parquet",
            Self::Npy => "npy",
            Self::Npz => "npz",
        })
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "libsvm" | "svm" | "svmlight" => Self::Libsvm,
            "parquet" => Self::Parquet,
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            _ => return Err("expected csv, tsv, libsvm, parquet, npy or npz".to_owned()),
        })
    }
}

/// Files that are often tried and not read: magic bytes, what they are, what to do.
const OTHERS: [(&[u8], &str, &str); 12] = [
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
    (
        b"\xd0\xcf\x11\xe0",
        "is an Excel workbook",
        "save the sheet as CSV",
    ),
    (
        b"ARROW1",
        "is an Arrow or Feather file",
        "save it as Parquet",
    ),
    (b"FEA1", "is a Feather file", "save it as Parquet"),
    (
        b"\x89HDF",
        "is an HDF5 file",
        "save the table as CSV or Parquet, a matrix as NPY",
    ),
    (
        b"MATLAB",
        "is a MATLAB file",
        "save the table as CSV, a matrix as NPY (`scipy.io.loadmat`, `numpy.save`)",
    ),
    (
        b"BZh",
        "is packed with bzip2",
        "unpack it first, or pack it with gzip",
    ),
    (
        b"\xfd7zXZ",
        "is packed with xz",
        "unpack it first, or pack it with gzip",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "is packed with zstd",
        "unpack it first, or pack it with gzip",
    ),
    (
        b"\x80\x04\x95",
        "is a Python pickle",
        "save the table as CSV or Parquet, a matrix as NPY",
    ),
    (
        b"<!DOCTYPE",
        "is a web page",
        "was the download redirected? fetch the file itself",
    ),
];

/// The format of an input opened from `path`: the one that was named, if one was.
pub(super) fn of_stream(
    path: &Path,
    stream: &Stream,
    named: Option<Format>,
) -> Result<Format, InputError> {
    let (name, head) = (stream.name(), stream.head());
    let format = named.map_or_else(|| of_head(path, name, head), Ok)?;
    let is_text = matches!(format, Format::Csv | Format::Tsv | Format::Libsvm);
    if is_text && !resembles_text(head) {
        return Err(InputError::Unsupported {
            file: name.to_owned(),
            found: "is neither text nor a format that is known here".to_owned(),
            remedy: "give a table as CSV, TSV, LIBSVM or Parquet, a matrix as NPY or NPZ",
        });
    }
    Ok(format)
}

/// Whether these may be the first bytes of a text: it has few zeros, and few kinds of control characters beside the ends of lines, tabs and
/// perhaps a delimiter.
fn resembles_text(head: &[u8]) -> bool {
    const MOST_KINDS: usize = 8;
    let zeros = memchr::memchr_iter(0, head).count();
    let kinds = (0..b' ').filter(|control| head.contains(control)).count();
    zeros <= head.len() / 10 && kinds <= MOST_KINDS
}

/// The format of an input with this name and these first bytes, opened from `path`.
fn of_head(path: &Path, name: &str, head: &[u8]) -> Result<Format, InputError> {
    if head.is_empty() {
        return Err(InputError::Empty {
            file: name.to_owned(),
        });
    }
    // Magic bytes cannot be mistaken, names can.
    if let Some(format) = by_magic(head) {
        return Ok(format);
    }
    if let Some((_, found, remedy)) = OTHERS.iter().find(|(magic, ..)| head.starts_with(magic)) {
        return Err(InputError::Unsupported {
            file: name.to_owned(),
            found: (*found).to_owned(),
            remedy,
        });
    }
    Ok(match by_name(path) {
        Some(format) => format,
        None if libsvm::resembles(head) => Format::Libsvm,
        None => Format::Csv,
    })
}

fn by_magic(head: &[u8]) -> Option<Format> {
    const MAGIC: [(&[u8], Format); 4] = [
        (b"PAR1", Format::Parquet),
        (b"\x93NUMPY", Format::Npy),
        (b"PK\x03\x04", Format::Npz),
        // An archive without members.
        (b"PK\x05\x06", Format::Npz),
    ];
    MAGIC
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, format)| *format)
}

/// The format that the ending promises; `.txt` promises nothing.
fn by_name(path: &Path) -> Option<Format> {
    let ending = |path: &Path| {
        path.extension()
            .and_then(OsStr::to_str)
            .map(str::to_ascii_lowercase)
    };
    let mut last = ending(path)?;
    if last == "gz" {
        last = ending(Path::new(path.file_stem()?))?;
    }
    Format::from_str(&last).ok()
}
