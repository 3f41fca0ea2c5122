//! Model selection: which parameters, sharing and kernels predict best on rows that were kept aside.
//!
//! Gram matrices are computed once per sample set. A fold is a view of them: its machines learn from some rows, and the decision
//! values of the rows kept aside are Σ_i β_i Σ_m θ_m K_m(i, j) + b, from the same matrices, with no kernel computed again.
//!
//! - [`split`]: which rows are for learning, which for choosing, which for testing.
//! - [`Metric`]: how good predictions are.
//! - [`Grid`]: the cells to try, and the chains in which one cell starts from the last one's solution.
//! - [`Search`]: fits the cells of a chain on a fold; [`in_parallel`] spreads chains over threads.
//! - [`UsualSearch`]: the rounds of a search without a grid.
//! - [`Price`]: C or λ, chosen by the data.
//! - [`Calibration`]: from decision values to probabilities.
//! - [`Likeness`]: whether a kernel tells samples apart at all.
//! - [`usual_kernels`], [`usual_problem`], [`usual_sharing`]: what is used where nothing is said.

mod calibration;
mod defaults;
mod folds;
mod grid;
mod held_out;
mod ladder;
mod leave_one_out;
mod likeness;
mod metric;
mod price;
mod search;
pub mod split;
mod threads;
mod usual_search;

pub use calibration::{Calibration, Sigmoid};
pub use defaults::{
    Tasks, USUAL_TARGET_SCALE, usual_kernels, usual_kernels_to_search,
    usual_kernels_without_targets, usual_problem, usual_settled, usual_sharing,
};
pub use grid::{Axis, Cell, Chain, Grid};
pub use likeness::Likeness;
pub use metric::Metric;
pub use price::Price;
pub use search::{Fold, Limits, Search, Trial};
pub use split::Split;
pub use threads::in_parallel;
pub use usual_search::{UsualSearch, Verdict};
