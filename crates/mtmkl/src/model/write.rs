//! Writing files so that nothing is lost: all of a file or nothing of it, and never something else than a file replaced.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::platform;

/// Bytes of a file's name that its temporary file repeats: with the numbers after them, it stays below the 255 that file systems allow.
const NAME_BYTES: usize = 200;
/// Links that are followed; more of them go round in a circle.
const MOST_LINKS: usize = 40;
/// How the name of a temporary file ends.
const ENDING: &str = ".tmp";

/// Where bytes go.
#[derive(Debug)]
enum Target {
    /// A file to be made or replaced, with the permissions it has.
    File(PathBuf, Option<Permissions>),
    /// A device or a pipe: written to as it is.
    Stream,
}

/// Writes all of it or nothing: a temporary file in the same folder, then a rename. A link is followed and stays, the permissions of a
/// file that is there are kept, and devices and pipes are written to, not replaced. What a killed process left behind while it
/// wrote to the same place is removed.
///
/// # Errors
/// When the file cannot be written; the temporary file is removed again.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    written(path, bytes).map_err(|source| Error::Io {
        path: path.to_path_buf(),
        source,
    })
}

/// Whether [`write_whole`] could write there, as far as that can be known beforehand. Leaves everything as it was.
///
/// # Errors
/// When it could not, with the system's reason.
pub fn check_writable(path: &Path) -> Result<()> {
    let check = || match target(path)? {
        Target::Stream => Ok(()),
        Target::File(target, permissions) => {
            if permissions.is_some() {
                OpenOptions::new().write(true).open(&target)?;
            }
            // One byte, for a full disk still has room for names.
            let (_temporary, mut file) = Temporary::beside(&target)?;
            file.write_all(&[0])
        }
    };
    check().map_err(|source| Error::Io {
        path: path.to_path_buf(),
        source,
    })
}

fn written(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::open(path)?;
    file.write_all(bytes)?;
    file.close()
}

/// A file that is written bit by bit, and is there when all of it is: as [`write_whole`], for what does not fit in memory. Dropped before
/// [`WholeFile::finish`], it leaves everything as it was.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    file: File,
    /// Where it is written until it is whole, where that is, and the permissions it then gets; none for devices and pipes.
    place: Option<(Temporary, PathBuf, Option<Permissions>)>,
}

impl WholeFile {
    /// Begins to write `path`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        Self::open(path).map_err(|source| Error::Io {
            path: path.to_path_buf(),
            source,
        })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When it cannot be written; the temporary file is removed again.
    pub fn finish(self) -> Result<()> {
        let path = self.path.clone();
        self.close().map_err(|source| Error::Io { path, source })
    }

    fn open(path: &Path) -> io::Result<Self> {
        let (target, permissions) = match target(path)? {
            Target::Stream => {
                return Ok(Self {
                    path: path.to_path_buf(),
                    file: OpenOptions::new().write(true).open(path)?,
                    place: None,
                });
            }
            Target::File(target, permissions) => (target, permissions),
        };
        if permissions.is_some() {
            // A rename would replace what its owner has protected.
            OpenOptions::new().write(true).open(&target)?;
        }
        sweep(&target);
        let (temporary, file) = Temporary::beside(&target)?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            place: Some((temporary, target, permissions)),
        })
    }

    fn close(self) -> io::Result<()> {
        let Some((temporary, target, permissions)) = self.place else {
            return Ok(());
        };
        if let Some(permissions) = permissions {
            self.file.set_permissions(permissions)?;
        }
        self.file.sync_all()?;
        // Some systems do not rename an open file.
        drop(self.file);
        std::fs::rename(&temporary.0, &target)?;
        platform::keep_names(folder_of(&target));
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The folder that a file is in.
fn folder_of(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A temporary file, removed when it is dropped, unless it has got another name by then.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    /// A new one beside `target`, locked: a process elsewhere that shares the folder but not our process numbers sees that it is in use.
    fn beside(target: &Path) -> io::Result<(Self, File)> {
        // Two threads that write to one path must not share a temporary file.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = name_of(target)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let process = std::process::id();
            let path = target.with_file_name(format!(".{name}.{process}.{number}{ENDING}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    // Not every file system has locks.
                    let _ = file.try_lock();
                    return Ok((Self(path), file));
                }
                // Left by an earlier process with our number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Best effort: the first error is the one to report.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What temporary files of a target are called after: its name or, where that is too long or no text, its beginning and a fingerprint.
fn name_of(target: &Path) -> io::Result<String> {
    let name = target
        .file_name()
        .ok_or_else(|| io::Error::other("not a file name"))?;
    if let Some(text) = name.to_str()
        && text.len() <= NAME_BYTES
    {
        return Ok(text.to_string());
    }
    let mut text = name.to_string_lossy().into_owned();
    text.truncate(text.floor_char_boundary(NAME_BYTES - 17));
    Ok(format!("{text}-{:016x}", fingerprint(name)))
}

/// FNV-1a, 64 bits.
fn fingerprint(name: &OsStr) -> u64 {
    name.as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

/// Follows links to what is really written.
fn target(path: &Path) -> io::Result<Target> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) if platform::is_own_file(path) => Ok(Target::Stream),
        Ok(found) if found.is_file() => Ok(Target::File(
            path.canonicalize()?,
            Some(found.permissions()),
        )),
        Ok(_) => Ok(Target::Stream),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // Nothing there, or a link to nothing.
            let mut path = path.to_path_buf();
            for _ in 0..MOST_LINKS {
                match path.read_link() {
                    Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
                    Err(_) => return Ok(Target::File(path, None)),
                }
            }
            Err(io::Error::other("too many links"))
        }
        Err(error) => Err(error),
    }
}

/// Removes temporary files of this very target whose process was killed. Best effort: litter is no reason not to write.
fn sweep(target: &Path) {
    let Ok(name) = name_of(target) else {
        return;
    };
    let before = format!(".{name}.");
    for entry in std::fs::read_dir(folder_of(target))
        .into_iter()
        .flatten()
        .flatten()
    {
        let found = entry.file_name();
        let process = found
            .to_str()
            .and_then(|found| found.strip_prefix(before.as_str())?.strip_suffix(ENDING))
            .and_then(|numbers| numbers.split_once('.'))
            .filter(|(_, number)| number.parse::<u64>().is_ok())
            .and_then(|(process, _)| process.parse::<u32>().ok());
        let Some(process) = process else {
            continue;
        };
        // Where there is no telling who is alive, everybody may be.
        let is_dead = platform::is_alive(process) == Some(false);
        let is_free = || {
            OpenOptions::new()
                .write(true)
                .open(entry.path())
                .is_ok_and(|file| file.try_lock().is_ok())
        };
        if is_dead && entry.file_type().is_ok_and(|kind| kind.is_file()) && is_free() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_is_that_of_fowler_noll_and_vo() {
        for (text, value) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fingerprint(OsStr::new(text)), value, "{text}");
        }
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let name = |text: String| name_of(Path::new(&text)).unwrap();
        assert_eq!(name("folder/model".into()), "model");
        assert_eq!(name("m".repeat(NAME_BYTES)), "m".repeat(NAME_BYTES));
        let (one, other) = (
            name("m".repeat(NAME_BYTES + 1)),
            name("m".repeat(NAME_BYTES + 2)),
        );
        assert_eq!((one.len(), other.len()), (NAME_BYTES, NAME_BYTES));
        assert!(one.starts_with(&"m".repeat(NAME_BYTES - 17)) && one != other);
        assert!(name_of(Path::new("..")).is_err());
    }
}
