//! Multi-task multiple kernel learning with certified optimal answers.
//!
//! T tasks, M kernels: learn kernel weights θ (a T × M table, θ ≥ 0) and one kernel machine per task,
//!
//! min over θ in Ψ  max over αᵗ in Ω_t  Σ_t ḡ(αᵗ, Σ_m θ_mᵗ K_mᵗ).
//!
//! Three free choices: the [kernels](kernel), the [machine] (ḡ, Ω) and the [sharing] Ψ, which says what the tasks share. Every
//! machine goes with every sharing, and every answer carries a certificate of how far from optimal it can be.
//!
//! ```
//! use mtmkl::{Fitting, Problem, ProblemSpec, Samples, Targets, Task};
//! use mtmkl::kernel::parse_kernels;
//! use mtmkl::machine::MachineSpec;
//! use mtmkl::sharing::SharingSpec;
//!
//! # fn main() -> Result<(), mtmkl::Error> {
//! // Four points, two tasks on the same samples.
//! let samples = Samples::new(vec![0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 4, 2)?;
//! let tasks = vec![
//!     Task::new("and", Targets::Labels(vec![-1.0, -1.0, -1.0, 1.0])),
//!     Task::new("xor", Targets::Labels(vec![-1.0, 1.0, 1.0, -1.0])),
//! ];
//! let mut kernels = parse_kernels("linear")?;
//! kernels.extend(parse_kernels("rbf:sigma=0.5|2")?);
//! let spec = ProblemSpec::new(kernels, MachineSpec::svc(10.0), SharingSpec::pscs(2.0, 1.0, 1.0));
//! let model = Problem::new(spec, vec![samples], tasks)?.fit(&mut Fitting::default())?;
//!
//! assert!(model.outcome().gap <= 1e-4);
//! let new = [0.9, 0.9, 0.1, 0.9];
//! assert_eq!(model.predict("xor", mtmkl::Rows::new(&new, 2, 2)?)?, [-1.0, 1.0]);
//! # Ok(())
//! # }
//! ```
//!
//! What can be named stands in a [`Registry`], with an [`entry`] each; a user's own parts go there too.
//!
//! The rooms, and which may look into which: `grid`, `error`, `run`, `tree` and `data` know nobody, and `entry` only trees; [`kernel`] sees data; `gram` sees
//! kernels; [`machine`] says what a task's dual is and `inner` solves it; [`sharing`] sees only grids and trees; [`engine`] evaluates θ over all tasks; [`solver`] sees grids,
//! sharings and the engine's trait; `problem` and `model` put it together; [`select`] fits
//! many of them. A test (`tests/layers.rs`) holds them to it.

pub mod data;
pub mod engine;
pub mod entry;
pub mod error;
pub mod gram;
pub mod grid;
mod inner;
pub mod kernel;
pub mod ledger;
mod linalg;
pub mod machine;
pub mod model;
pub mod platform;
mod pool;
mod problem;
pub mod random;
mod registry;
pub mod run;
pub mod select;
pub mod sharing;
pub mod solver;
pub mod span;
pub mod task_kernel;
pub mod tree;
mod vector;
pub mod view;

pub use data::{GivenGram, RowValues, Rows, Samples, Sparse, SparseRows, Targets, Task};
pub use error::{Error, Result};
pub use gram::{Definiteness, Storage};
pub use ledger::Ledger;
pub use model::{CrossGram, Input, Model};
pub use pool::Pool;
pub use problem::{
    Fitting, Normalization, OuterProblem, Precision, Preparation, Prepared, Problem, ProblemSpec,
    Proven, TargetScale, TargetUnit,
};
pub use registry::Registry;
pub use run::{Observer, Pass, Round, Rounds, Run, Status, Stop};
pub use tree::{NamedLevel, TaskTree};
pub use view::View;

/// The page of the crate at its registry, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
