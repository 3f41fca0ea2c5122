//! One file per subcommand.

pub mod demo;
pub mod evaluate;
pub mod fit;
pub mod inspect;
pub mod predict;
pub mod report;
pub mod tune;
pub mod verify;
mod written;

/// How a command ended: the program's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 0
    Done,
    /// 1: a model was written, but the tolerance was not reached.
    NotConverged,
    /// 1: what a model states does not hold.
    Refuted,
}
