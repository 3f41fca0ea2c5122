//! What became of the files that were asked for.

use std::io::Write;

use anyhow::{Result, bail};
use mtmkl::Model;

use super::Learned;
use crate::args::FitArgs;
use crate::commands::report;

/// What became of the files that were asked for.
#[derive(Debug, Default)]
pub(in crate::commands) struct Saved {
    /// Whether the model is where it was to be.
    pub(super) model: bool,
    /// What could not be written, in words.
    problems: Vec<String>,
}

impl Saved {
    /// Notes a file that could not be written, and what to do about it.
    pub(in crate::commands) fn missing(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// The error to end with, after the result is printed.
    pub(in crate::commands) fn check(&self) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        bail!(self.problems.join("; "))
    }
}

/// Keeps a model that could not be saved in the folder for temporary files, and says so.
fn rescued(model: &Model) -> String {
    let kept = || -> Result<std::path::PathBuf> {
        let bytes = model.to_bytes()?;
        let folder = std::env::temp_dir();
        for number in 0..100 {
            let path = folder.join(format!("mtmkl-{}-{number}.mtmkl", std::process::id()));
            // Never through a link or over a file that somebody else put there; and a folder for all must not show it to all.
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            mtmkl::platform::for_its_owner(&mut options);
            match options.open(&path) {
                Ok(mut file) => {
                    if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_all()) {
                        let _ = std::fs::remove_file(&path);
                        return Err(error.into());
                    }
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("{} is full of such files", folder.display())
    };
    match kept() {
        Ok(path) => format!(
            "the model is not saved there but kept in {0}: copy it where it is wanted",
            path.display()
        ),
        Err(error) => format!(
            "the model is not saved, nor could it be kept in the folder for temporary files ({error:#}); make room, or give another \
             place with -o"
        ),
    }
}

impl Learned {
    /// Writes what the flags ask for, as far as that can be done.
    pub(in crate::commands) fn save(&self, args: &FitArgs) -> Saved {
        let mut saved = Saved::default();
        if let Some(path) = &args.output {
            match self.model.save(path) {
                Ok(()) => saved.model = true,
                Err(error) => saved.missing(format!("{error}; {}", rescued(&self.model))),
            }
        }
        if let Some(path) = &args.report
            && let Err(error) = report::write(&self.model, path)
        {
            saved.missing(format!(
                "{error:#}; the report is not written, `mtmkl report MODEL -o FILE` makes it from a saved model"
            ));
        }
        saved
    }
}
