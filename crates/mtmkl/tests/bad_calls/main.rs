//! Calls with indices, lengths and names that do not fit: an error that says so, or a result that is no number, never a panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod grids;
mod predictions;
mod selection;
mod tables;

use std::ops::ControlFlow;
use std::sync::Arc;

use mtmkl::engine::{Engine, Request};
use mtmkl::error::{DataProblem, Place};
use mtmkl::grid::{Grid, Shape};
use mtmkl::kernel::{Columns, KernelView, Linear, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::select::{Axis, Cell, Chain, Fold, Grid as Cells, Limits, Metric, Search, split};
use mtmkl::sharing::{Parts, Reach, SharingSpec};
use mtmkl::{
    CrossGram, Error, Fitting, GivenGram, Input, Model, Preparation, Problem, ProblemSpec, Rows,
    Samples, Stop, Targets, Task, View,
};

const HUGE: usize = usize::MAX;
const VALUES: [f64; 12] = [
    0.0, 0.1, 0.2, 1.0, 1.0, 0.3, 1.1, 1.2, 0.4, 0.6, 0.9, 0.5, //
];
const LABELS: [f64; 6] = [-1.0, -1.0, 1.0, 1.0, -1.0, 1.0];

fn samples() -> Samples {
    Samples::new(VALUES.to_vec(), 6, 2).unwrap()
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

fn problem() -> Problem {
    let spec = ProblemSpec::new(
        kernels(&["linear", "rbf:gamma=1"]),
        MachineSpec::svc(1.0),
        SharingSpec::common(2.0, 1.0),
    );
    let task = Task::new("one", Targets::Labels(LABELS.to_vec()));
    Problem::new(spec, vec![samples()], vec![task]).unwrap()
}

fn model() -> Model {
    problem().fit(&mut Fitting::default()).unwrap()
}

/// The error's message, with these words in it.
#[track_caller]
fn refused<T>(result: Result<T, Error>, words: &[&str]) {
    let Err(error) = result else {
        panic!("accepted; expected an error with {words:?}")
    };
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}
