//! The second derivative of one task's J in its weights, as a factor: H = F'F.

use crate::ledger::{Ledger, bytes_of};
use crate::linalg;

/// H = F'F, the M × M second derivative of one task's J in θᵗ, kept as its factor F (rank × M).
#[derive(Debug, Clone, PartialEq)]
pub struct Curvature {
    /// The number of rows of the factor.
    pub rank: usize,
    /// F, row by row.
    pub factor: Vec<f64>,
}

impl Curvature {
    /// H = 0.
    pub(crate) fn none() -> Self {
        Self {
            rank: 0,
            factor: Vec::new(),
        }
    }

    /// Of √κ V, or of a factor with fewer rows of the same V'V where V has more rows than columns.
    pub(super) fn of(mut block: Vec<f64>, kernels: usize, scale: f64, ledger: &Ledger) -> Self {
        let root = scale.sqrt();
        for value in &mut block {
            *value *= root;
        }
        let factor = if block.len() > kernels * kernels {
            // The matrix, and as much again for its factor.
            let _memory = ledger.take(bytes_of::<f64>(2 * kernels * kernels));
            let mut gram = vec![0.0; kernels * kernels];
            linalg::add_gram(&block, kernels, &mut gram);
            linalg::semidefinite_factor(gram, kernels)
        } else {
            block
        };
        Self {
            rank: factor.len() / kernels,
            factor,
        }
    }
}
