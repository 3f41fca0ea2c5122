//! The last fit of each chain, kept beside the journal: a chain that is gone on with starts its next fit where it would have started.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use mtmkl::select::Chain;
use mtmkl::{Model, Registry};

/// Model files beside a journal, at most two for each chain at work.
#[derive(Debug)]
pub(super) struct Starts {
    journal: PathBuf,
    registry: Registry,
}

impl Starts {
    pub(super) fn beside(journal: &Path, registry: &Registry) -> Self {
        Self {
            journal: journal.to_path_buf(),
            registry: registry.clone(),
        }
    }

    fn path(&self, fold: usize, cell: usize) -> PathBuf {
        let mut name = self.journal.clone().into_os_string();
        name.push(format!(".fold{}.cell{}", fold + 1, cell + 1));
        name.into()
    }

    /// Keeps the fit of a cell. Call it before the journal has the cell: a cell in the journal then always has its fit.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn keep(&self, fold: usize, cell: usize, model: &Model) -> Result<()> {
        let path = self.path(fold, cell);
        model
            .save(&path)
            .with_context(|| format!("cannot keep {}", path.display()))
    }

    /// Forgets the fit of a cell that nothing starts from any more.
    pub(super) fn forget(&self, fold: usize, cell: usize) {
        // One that is left lying does no harm, and one that was never kept need not go.
        let _ = std::fs::remove_file(self.path(fold, cell));
    }

    /// The cells of a chain that are not done, and the fit of the one before them. Without its file they start anew, and reach the
    /// same tolerance.
    pub(super) fn rest(
        &self,
        chain: &Chain,
        done: impl Fn(usize) -> bool,
    ) -> (Chain, Option<Model>) {
        let cells: Vec<usize> = chain
            .cells
            .iter()
            .copied()
            .filter(|&cell| !done(cell))
            .collect();
        let before = cells.first().and_then(|first| {
            let at = chain.cells.iter().position(|cell| cell == first)?;
            chain.cells.get(at.checked_sub(1)?)
        });
        let last = before
            .and_then(|&cell| Model::load_with(&self.registry, self.path(chain.fold, cell)).ok());
        let rest = Chain {
            fold: chain.fold,
            cells,
        };
        (rest, last)
    }
}
