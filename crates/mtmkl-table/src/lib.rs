//! A table as people have it, and how it becomes the numbers that kernels see and the words of an answer.
//!
//! The contract is written here once; the program and the Python package are two doors to it. A [`Table`] has named columns of
//! numbers (dense or sparse) or text, with gaps. A [`Frame`] says how such a table becomes rows: which columns, what fills a gap,
//! which values get a 0/1 column, which scale. It is learned from the training rows, kept in the model as a note with a version, and
//! applied to every later table. [`Records`] are the rows that are used and what they say beside their features; a [`Dataset`] is
//! sample sets and tasks for the core. [`Predictions`] turn decision values back into classes and numbers.
//!
//! The numbers of a table are copied once between its columns and a sample set, by [`Frame::gather`].

mod block;
mod class_weight;
mod column;
mod coupling;
mod dataset;
mod error;
mod frame;
mod gaps;
mod gather;
mod goal;
mod merge;
mod names;
mod notes;
mod one_hot;
mod records;
mod scale;
mod shares;
mod sparse;
mod split;
mod table;
mod transfer;
mod votes;
pub mod words;

pub use block::{Block, BlockRows};
pub use class_weight::{ClassWeight, balanced};
pub use column::{Column, Sparse, Values};
pub use dataset::{Dataset, Equals, Gram, Grams};
pub use error::{Place, TableError, problem_of};
pub use frame::{Feature, Frame, Plan};
pub use gaps::{Cell, Missing, is_gap, read_cell};
pub use goal::{Aim, Goal, Multiclass, TaskClasses, looks_like_numbers};
pub use merge::{Group, groups};
pub use names::{Names, Spelled, by_number_then_text, named};
pub use notes::{
    FRAME, TRAINING_ROWS, calibration_of, frame_of, keep, keep_calibration, training_rows_of,
};
pub use records::Records;
pub use scale::{Moments, Scaling, usual_scaling};
pub use shares::{VarianceShares, variance_shares};
pub use split::{sample, split, strata};
pub use table::{Lines, Skipped, Table};
pub use transfer::{
    Transfer, is_between_tasks, kernels_between_tasks, levels_of, spec_between_tasks,
    tree_of_columns,
};
pub use votes::{Predictions, class_probabilities, class_scores, winner};

/// A result, or what is wrong with the table.
pub type Result<T> = std::result::Result<T, TableError>;
