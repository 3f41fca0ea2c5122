//! Which cells are fitted on which folds: all of a grid, or the rounds of the usual search.

use std::collections::BTreeMap;

use mtmkl::select::{Cell, Chain, Grid, Metric, UsualSearch, Verdict};

use super::Finished;

/// The fits that are done, by cell and fold.
pub(super) type Done = BTreeMap<(usize, usize), Finished>;

/// What is fitted.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    /// Every cell on every fold.
    Grid {
        grid: Grid,
        /// Whether the chains were handed out.
        is_begun: bool,
    },
    /// Few cells on all folds, chosen from many on few.
    Usual(Box<UsualSearch>),
}

impl Plan {
    pub(super) fn of_grid(grid: Grid) -> Self {
        Self::Grid {
            grid,
            is_begun: false,
        }
    }

    /// The cells so far.
    pub(super) fn grid(&self) -> &Grid {
        match self {
            Self::Grid { grid, .. } => grid,
            Self::Usual(search) => search.grid(),
        }
    }

    pub(super) fn cells(&self) -> &[Cell] {
        self.grid().cells()
    }

    pub(super) fn is_usual(&self) -> bool {
        matches!(self, Self::Usual(_))
    }

    /// What to fit next; nothing when it is over.
    pub(super) fn next(&mut self, folds: usize, done: &Done, metric: Metric) -> Vec<Chain> {
        match self {
            Self::Grid { is_begun: true, .. } => Vec::new(),
            Self::Grid { grid, is_begun } => {
                *is_begun = true;
                grid.chains(folds)
            }
            Self::Usual(search) => search.next(|cell, fold| verdict(done, metric, cell, fold)),
        }
    }

    /// The cell to take.
    pub(super) fn best(&self, done: &Done, metric: Metric, means: &[f64]) -> usize {
        if let Self::Usual(search) = self {
            return search.best(|cell, fold| verdict(done, metric, cell, fold));
        }
        let mut best = 0;
        for (cell, &mean) in means.iter().enumerate() {
            // Of equal ones the first, in the order of the grid.
            if metric.is_better(mean, means[best]) {
                best = cell;
            }
        }
        best
    }
}

/// What came of a cell on a fold, where more is better.
fn verdict(done: &Done, metric: Metric, cell: usize, fold: usize) -> Option<Verdict> {
    let finished = done.get(&(cell, fold))?;
    let score = finished.score.unwrap_or(f64::NAN);
    Some(Verdict {
        score: if metric.is_better(0.0, 1.0) {
            -score
        } else {
            score
        },
        finer: finished.finer,
    })
}
