//! Files, with their names in what goes wrong, and lines of JSON.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// One value a line; a last line that was cut is left out.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = read(path)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    text[..whole]
        .lines()
        .map(|line| {
            serde_json::from_str(line).map_err(|error| format!("{}: {error}", path.display()))
        })
        .collect()
}

pub(crate) fn line<T: Serialize>(value: &T) -> Result<String, String> {
    let mut text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

pub(crate) fn write_lines<T: Serialize>(path: &Path, values: &[T]) -> Result<(), String> {
    let lines: Result<Vec<String>, String> = values.iter().map(line).collect();
    write(path, &lines?.concat())
}

/// A folder and what is in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    if from.is_file() {
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .map_err(failed)?;
        return fs::copy(from, to).map(|_| ()).map_err(failed);
    }
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
