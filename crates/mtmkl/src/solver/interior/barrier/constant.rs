//! Nothing to choose: x is what the term starts with.

use super::{Barrier, Linearisation};
use crate::grid::Grid;
use crate::solver::interior::kkt::{Border, RowMatrix};

/// x is given.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    linearised: Linearisation,
}

impl Constant {
    pub(super) fn new() -> Self {
        Self {
            linearised: Linearisation::none(),
        }
    }
}

impl Barrier for Constant {
    fn is_variable(&self) -> bool {
        false
    }

    fn linearised(&self) -> &Linearisation {
        &self.linearised
    }

    fn add_curvature(
        &self,
        _x: &Grid,
        _multipliers: &[f64],
        _slacks: &[f64],
        _rows: &mut [RowMatrix],
    ) -> Option<Border> {
        None
    }

    fn project(&self, _x: &mut Grid) {}

    fn snap(&self, _x: &mut Grid, _threshold: f64) {}

    fn boxed(&self) -> Box<dyn Barrier> {
        Box::new(self.clone())
    }
}
