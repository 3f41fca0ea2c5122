//! A record of finished work that survives a kill: one JSON object a line, only ever appended to.
//!
//! The first line says what the work is about, with a fingerprint of data and settings; a journal is only gone on with where it is
//! the same. A last line without its end was being written when the program was killed, and counts as not there.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

/// A fingerprint of data and settings: FNV-1a, 64 bits. It tells runs apart, it is no seal.
#[derive(Debug, Clone)]
pub struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// Takes in bytes, and their number, so that two lists never look like one.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    /// Takes in numbers.
    pub fn numbers(&mut self, numbers: &[f64]) -> &mut Self {
        for number in numbers {
            self.bytes(&number.to_bits().to_le_bytes());
        }
        self
    }

    /// As text.
    pub fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// How often the system is asked to put a journal on disk: a kill takes nothing from it, a power cut as much as is done meanwhile.
const SYNC: Duration = Duration::from_secs(1);

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    written: Mutex<Written>,
}

/// The file, and how much of it is whole lines.
#[derive(Debug)]
struct Written {
    file: File,
    length: u64,
    synced: Instant,
}

impl Written {
    /// A line, or nothing of it: what is written after half a line would be lost with it.
    fn add(&mut self, line: &[u8]) -> std::io::Result<()> {
        if let Err(error) = self.file.write_all(line) {
            // Where even this fails, the half line is found when the journal is read.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        if self.synced.elapsed() >= SYNC {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }
}

/// Opens and locks it.
fn locked(path: &Path) -> Result<File> {
    let place = path.display();
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        bail!("{place} is no file; a journal must be one, for it is read again");
    }
    let file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write the journal {place}"))?;
    // Not every file system has locks.
    let is_held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    // A run that ended removed its own, and this is what it had.
    if is_held || !is_at(&file, path) {
        bail!("{place} is in use by another run; wait for it, or give this one another place");
    }
    Ok(file)
}

/// Whether this file still has this name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(named)) => number(own) == number(named),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

impl Journal {
    /// Begins a journal of `work` or, with `resume`, goes on with it; gives back the lines it has.
    ///
    /// # Errors
    /// When there is one already and `resume` is not asked for, when it is of other work, damaged, or in use.
    pub fn open(
        path: &Path,
        work: &str,
        fingerprint: &Fingerprint,
        resume: bool,
    ) -> Result<(Self, Vec<Value>)> {
        let place = path.display();
        let mut file = locked(path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .with_context(|| format!("cannot read the journal {place}"))?;
        if !text.is_empty() && !resume {
            bail!(
                "{place} holds results of an earlier run; --resume goes on with it, or remove it to begin anew"
            );
        }
        // What stands after the last end of line was torn off.
        let whole = text
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64)
                .and_then(|()| file.seek(SeekFrom::End(0)))
                .with_context(|| format!("cannot write the journal {place}"))?;
        }
        let header = json!({ "journal": work, "version": 1, "fingerprint": fingerprint.text() });
        let mut lines = Vec::new();
        for (number, line) in text[..whole]
            .split_inclusive(|&byte| byte == b'\n')
            .enumerate()
        {
            let value: Value = serde_json::from_slice(line).map_err(|_| match number {
                0 => anyhow!("{place} is no journal; give another file"),
                _ => anyhow!(
                    "{place}, line {}: damaged; remove this line and those after it",
                    number + 1
                ),
            })?;
            lines.push(value);
        }
        let journal = Self {
            path: path.to_path_buf(),
            written: Mutex::new(Written {
                file,
                length: whole as u64,
                synced: Instant::now(),
            }),
        };
        if lines.is_empty() {
            journal.add(&header)?;
            return Ok((journal, Vec::new()));
        }
        let found = lines.remove(0);
        if found["journal"] != header["journal"] || found["version"] != header["version"] {
            bail!("{place} is no journal of {work}; give another file");
        }
        if found["fingerprint"] != header["fingerprint"] {
            bail!(
                "{place} belongs to a run on other data or with other settings; resume with the same table and flags, or remove it to \
                 begin anew"
            );
        }
        Ok((journal, lines))
    }

    /// Adds a line. The line is there, whole, when this returns, even if the program is killed the moment after.
    ///
    /// # Errors
    /// When it cannot be written; then nothing of it is there.
    pub fn add(&self, line: &Value) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut written = self
            .written
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        written
            .add(text.as_bytes())
            .with_context(|| format!("cannot write the journal {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(text: &str) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        fingerprint.bytes(text.as_bytes());
        fingerprint
    }

    #[test]
    fn lines_come_back_and_a_torn_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let open = |resume| Journal::open(&path, "test", &fingerprint("a"), resume);
        let (journal, lines) = open(false).unwrap();
        assert!(lines.is_empty());
        journal
            .add(&json!({ "cell": 0, "score": 0.1 + 0.2 }))
            .unwrap();
        journal.add(&json!({ "cell": 1 })).unwrap();
        // In use.
        assert!(open(true).unwrap_err().to_string().contains("in use"));
        drop(journal);
        assert!(open(false).unwrap_err().to_string().contains("--resume"));
        let whole = std::fs::read(&path).unwrap();
        // Whatever was torn off, the lines before it are there, and writing goes on after them.
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (journal, lines) = open(true).unwrap();
            let ends = whole[..cut].split(|&byte| byte == b'\n').count() - 1;
            assert_eq!(lines.len(), ends.saturating_sub(1));
            journal.add(&json!({ "cell": 2 })).unwrap();
            drop(journal);
            let (_, lines) = open(true).unwrap();
            assert_eq!(lines.len(), ends.saturating_sub(1) + 1);
            assert_eq!(lines.last().unwrap()["cell"], 2);
            if lines.len() == 3 {
                assert_eq!(
                    lines[0]["score"].as_f64().unwrap().to_bits(),
                    (0.1_f64 + 0.2).to_bits()
                );
            }
        }
    }

    #[test]
    fn other_work_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        drop(Journal::open(&path, "test", &fingerprint("a"), false).unwrap());
        let refused = |work: &str, text: &str| {
            Journal::open(&path, work, &fingerprint(text), true)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("test", "b").contains("other data"));
        assert!(refused("other", "a").contains("no journal of other"));
        std::fs::write(&path, "{}\nnot json\n").unwrap();
        assert!(refused("test", "a").contains("line 2"));
    }
}
