//! How much memory one task takes, for its kind of dual.

use super::{Allowance, box_qp, linear_system, nystrom};
use crate::gram::square;
use crate::ledger::bytes_of;
use crate::machine::{Conjugate, Dual};

/// Bytes of one task at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    /// What stays from one evaluation to the next: for each task.
    pub(crate) stays: u64,
    /// What passes: for each task that is solved at the same time.
    pub(crate) passes: u64,
}

/// What a task with this dual and so many kernels takes at most: rows of K(θ), U_m = K_mβ, the factorisation of its solver, the block that
/// curvature is made of, and sums with twice the digits.
pub(crate) fn bytes(dual: &Dual, kernels: usize, allowance: Allowance) -> Bytes {
    let n = dual.variables.samples();
    let block = bytes_of::<f64>(n * kernels);
    // The M × M matrix and its factor, where there are fewer kernels than samples.
    let compressed = bytes_of::<f64>(2 * kernels * kernels.min(n));
    let rows = square(n);
    match dual.conjugate {
        Conjugate::Box { .. } => {
            let is_streamed = allowance.working_set < usize::MAX;
            let part = n.min(allowance.working_set);
            let free = part.min(allowance.most_free);
            let rows = if is_streamed {
                box_qp::bytes_of_part(part)
            } else {
                rows
            };
            let curvature = bytes_of::<f64>(free * kernels) + compressed;
            // High and low parts of K_mβ.
            let exact = if is_streamed { 0 } else { 2 * block };
            let interior = if allowance.interior_points && part <= box_qp::MOST_SAMPLES {
                box_qp::bytes_of_interior_points(part)
            } else {
                0
            };
            let factor = box_qp::bytes_of_free_set(free);
            // U on all samples, and its next change.
            let images = if is_streamed { 2 * block } else { block };
            Bytes {
                stays: images + factor,
                // The factorisation is given back before interior points are asked for.
                passes: rows + curvature.max(exact).max(interior.saturating_sub(factor)),
            }
        }
        Conjugate::Ridge { .. } | Conjugate::Smooth { .. }
            if allowance.working_set < usize::MAX =>
        {
            // Of so many samples K(θ) and its factor are kept; of more, landmarks stand for it.
            let part = n.min(allowance.working_set);
            let landmarks = if n > part {
                nystrom::bytes(n, nystrom::landmarks(n, allowance.most_free))
            } else {
                0
            };
            Bytes {
                // U on all samples, and its next change.
                stays: 2 * block + landmarks.max(linear_system::bytes_of_factor(part)),
                passes: block + compressed + square(part),
            }
        }
        Conjugate::Ridge { .. } | Conjugate::Smooth { .. } => {
            let factor = linear_system::bytes_of_factor(n);
            let is_kept = allowance.rows || matches!(dual.conjugate, Conjugate::Smooth { .. });
            let passes = block + compressed + if is_kept { rows } else { 0 };
            if allowance.factors {
                Bytes {
                    stays: block + factor,
                    passes,
                }
            } else {
                Bytes {
                    stays: block,
                    passes: passes + factor,
                }
            }
        }
    }
}
