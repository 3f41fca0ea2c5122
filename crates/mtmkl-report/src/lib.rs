#![doc = "A fitted multi-task multiple-kernel model and its trace as one HTML page that needs nothing else: no network, no scripts, no fonts."]
//!
//! The page answers, in this order: how good is the answer and is that proven; which kernels does each task use; which
//! tasks share one kernel space and which keep their own; how did the solver get there; do learned weights beat the
//! plain average on data kept aside. It is plain data in, text out: a [`Report`] is made
//! from a model and the caller adds what only it knows, so that the command line program and the Python package show the same page.
//!
//! ```
//! use mtmkl_report::{Report, TaskEntry, html};
//!
//! let report = Report {
//!     title: "Two tasks".into(),
//!     kernels: vec!["linear".into(), "rbf:gamma=1".into()],
//!     tasks: vec![
//!         TaskEntry { name: "a < b".into(), samples: 40, support: 12 },
//!         TaskEntry { name: "c".into(), samples: 50, support: 9 },
//!     ],
//!     weights: vec![vec![1.0, 0.0], vec![1.0, 0.5]],
//!     common: Some(vec![1.0, 0.0]),
//!     specific: Some(vec![vec![0.0, 0.0], vec![0.0, 0.5]]),
//!     status: "converged".into(),
//!     objective: 12.5,
//!     bound: 12.4999,
//!     gap: 8e-6,
//!     ..Report::default()
//! };
//! let page = html(&report);
//! assert!(page.contains("a &lt; b"));
//! ```

mod axis;
pub mod boundary;
mod chart;
mod convergence;
mod curves;
mod heat_map;
mod letters;
mod model;
pub mod notes;
mod page;
mod scene;
mod scores;
mod spaces;
mod tables;
mod text;
mod transfer;
mod tree;
mod verdict;
mod view;
mod weights;

pub use curves::{Curve, Curves};
pub use heat_map::HeatMap;
pub use model::{groups, in_words, reason};
pub use page::html;
pub use transfer::Transfer;

/// Everything the page shows. Parts that are `None` or empty are left out of the page.
///
/// All text is escaped; numbers may be infinite or not a number, and the page says so. Rows shorter than the number of
/// kernels or tasks are shown as far as they go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The page's title.
    pub title: String,
    /// A line under it, such as the file the data came from.
    pub subtitle: Option<String>,
    /// Names of the M kernels.
    pub kernels: Vec<String>,
    /// The T tasks.
    pub tasks: Vec<TaskEntry>,
    /// Kernel weights θ, T rows of M.
    pub weights: Vec<Vec<f64>>,
    /// The part ζ (M) that all tasks share, where the sharing has one.
    pub common: Option<Vec<f64>>,
    /// The parts γ (T rows of M) that belong to one task, where the sharing has them: θ^t = ζ + γ^t.
    pub specific: Option<Vec<Vec<f64>>>,
    /// The groups of tasks that share a part, where the sharing has some: level by level, outermost first.
    pub groups: Vec<GroupEntry>,
    /// Of one machine of all tasks: how much of its predictions is common, a group's, a task's own.
    pub transfer: Option<Transfer>,
    /// The machine, such as `svc C=1`.
    pub machine: String,
    /// The sharing, such as `pscs p=2 q=1`.
    pub sharing: String,
    /// The solver, such as `newton`.
    pub solver: String,
    /// Why another solver did the work, where one did.
    pub fallback: Option<String>,
    /// How the run ended: `converged`, `converged-uncertified`, `pass-limit`, `time-limit`, `stopped` or `stalled`.
    ///
    /// Any name that ends in `-uncertified` makes the page call its bounds unproven; any other name is shown as it is.
    pub status: String,
    /// The value these weights reach: an upper bound on the optimum J*.
    pub objective: f64,
    /// The certified lower bound on J*.
    pub bound: f64,
    /// (objective − bound) / |objective|.
    pub gap: f64,
    /// The relative gap that was asked for.
    pub tolerance: Option<f64>,
    /// Whether bounds and gap are those of the kernels as rounded to single precision.
    pub is_rounded: bool,
    /// The trace, one entry a pass.
    pub passes: Vec<PassEntry>,
    /// Scores beside the baselines.
    pub scores: Option<Scores>,
    /// Settings of the run, name and value.
    pub settings: Vec<(String, String)>,
    /// What the data are, name and value.
    pub data: Vec<(String, String)>,
    /// Ready-made pictures, such as decision boundaries.
    pub pictures: Vec<Picture>,
    /// Where the time went: name and seconds. An entry named `total` is taken as the sum of the others.
    pub seconds: Vec<(String, f64)>,
    /// Version of the program that fitted the model.
    pub version: String,
}

/// One task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEntry {
    /// Its name.
    pub name: String,
    /// Samples it was trained on.
    pub samples: usize,
    /// Samples its decision function needs.
    pub support: usize,
}

/// A group of tasks that share a part of their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupEntry {
    /// The level of the tree that it is of.
    pub level: String,
    /// Its name.
    pub name: String,
    /// The positions of its tasks.
    pub tasks: Vec<usize>,
    /// The part that they share, M weights.
    pub weights: Vec<f64>,
}

/// One pass of the solver: T inner solves at one θ.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PassEntry {
    /// Counted from 1.
    pub number: usize,
    /// Best upper bound on J* so far.
    pub objective: f64,
    /// Best lower bound on J* so far.
    pub bound: f64,
    /// (objective − bound) / |objective|.
    pub gap: f64,
    /// The step length that led here.
    pub step: f64,
    /// Inner iterations, summed over tasks.
    pub inner_iterations: usize,
    /// Seconds since the solver started.
    pub seconds: f64,
}

/// How well the model and its baselines do on one split.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// What is measured, such as `accuracy`.
    pub metric: String,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// The samples it is measured on, such as `held-out 30 %`.
    pub split: String,
    /// What the single figures of each method are of, where that is not the report's tasks: the classes of one problem, or tasks that have several
    /// classes each.
    pub parts: Vec<String>,
    /// Whether the parts are classes, so that the figure of all is that of all rows and no mean.
    pub is_by_class: bool,
    /// One row a method. A method whose name contains `learned` is compared in words with those whose names contain
    /// `uniform` and `single`.
    pub rows: Vec<ScoreRow>,
}

/// The scores of one method.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoreRow {
    /// Its name, such as `learned weights`, `uniform average` or `best single kernel (linear)`.
    pub method: String,
    /// One score for each part.
    pub per_task: Vec<f64>,
    /// Their mean, or that of all rows.
    pub mean: f64,
}

/// A ready-made picture.
///
/// It becomes an image of its own inside the page, so nothing in it can run, load anything, or clash with the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Shown under the picture.
    pub title: String,
    /// An SVG document.
    pub svg: String,
    /// What the picture shows, for those who cannot see it.
    pub alt: String,
}
