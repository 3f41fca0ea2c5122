//! `NumPy` archives: ZIP files of NPY members, stored or deflated.

use std::io::{Cursor, Read, Seek};

use mtmkl_table::Gram;
use mtmkl_table::words::{listed, shown};
use zip::ZipArchive;

use super::npy::{self, Array, Size};
use super::source::{Content, Source};
use super::{GramOptions, InputError};

/// Members that the archive of a `SciPy` sparse matrix has.
const SPARSE: [&str; 3] = ["indices", "indptr", "format"];

/// Reads the kernel matrices from the `bytes` of an archive named `source`; those of a three-dimensional member `k`
/// are named `k.0`, `k.1`, ….
///
/// # Errors
///
/// Any [`InputError`] about archives and arrays.
pub fn from_bytes(
    source: &str,
    bytes: &[u8],
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    read(source, Cursor::new(bytes), options)
}

/// As [`from_bytes`], without a copy of a file in memory.
pub(super) fn from_source(
    source: Source,
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    let (name, content) = source.into_parts();
    match content {
        Content::File { file, .. } => read(&name, std::io::BufReader::new(file), options),
        Content::Memory(bytes) => read(&name, Cursor::new(bytes), options),
    }
}

/// The error for an archive given as a table of samples.
pub(super) fn not_a_table(file: &str) -> InputError {
    InputError::Unsupported {
        file: file.to_owned(),
        found: "is a ZIP archive (NPZ, Excel), not a table".to_owned(),
        remedy: "save the table as CSV or Parquet; give kernel matrices as `--kernel precomputed:path=…`",
    }
}

fn read(
    file: &str,
    reader: impl Read + Seek,
    options: &GramOptions,
) -> Result<Vec<(Option<String>, Gram)>, InputError> {
    let damaged = |error: zip::result::ZipError| InputError::Damaged {
        file: file.to_owned(),
        format: "NPZ",
        reason: error.to_string(),
    };
    let mut archive = ZipArchive::new(reader).map_err(damaged)?;
    let mut names = Vec::new();
    for index in 0..archive.len() {
        let name = archive
            .name_for_index(index)
            .transpose()
            .map_err(damaged)?
            .unwrap_or_default();
        if name.starts_with("xl/") {
            return Err(not_a_table(file));
        }
        names.push(name.strip_suffix(".npy").map(str::to_owned));
    }
    let present: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    if present.is_empty() {
        return Err(InputError::Unsupported {
            file: file.to_owned(),
            found: "is a ZIP archive without arrays (members named `….npy`)".to_owned(),
            remedy: "save the kernel matrices with `numpy.savez`",
        });
    }
    if options.members.is_empty() && SPARSE.iter().all(|name| present.contains(name)) {
        return Err(InputError::Unsupported {
            file: file.to_owned(),
            found: "is a SciPy sparse matrix".to_owned(),
            remedy: "save it dense: `numpy.save(path, matrix.toarray())`",
        });
    }
    if let Some(unknown) = options
        .members
        .iter()
        .find(|wanted| !present.contains(&wanted.as_str()))
    {
        return Err(InputError::UnknownMember {
            file: file.to_owned(),
            member: unknown.clone(),
            present: listed(present.iter().copied()),
        });
    }
    let mut grams = Vec::new();
    // What the members read so far leave of the limit.
    let mut limit = options.limit;
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        if !options.members.is_empty() && !options.members.contains(name) {
            continue;
        }
        let member = archive.by_index(index).map_err(damaged)?;
        let label = format!("{file}, array `{}`", shown(name.as_bytes()));
        let size = member.size();
        // The size is the archive's word: it must agree with the header, but reserves nothing (see `Array::read`).
        let array = Array::read(&label, member, Size::Claimed(size), limit)?;
        for (slice, gram) in npy::grams(&label, array, true)? {
            limit = limit.saturating_sub(8 * gram.values.len() as u64);
            let name = slice.map_or_else(|| name.clone(), |slice| format!("{name}.{slice}"));
            grams.push((Some(name), gram));
        }
    }
    Ok(grams)
}
