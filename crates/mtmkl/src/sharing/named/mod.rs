//! Sharings that have a name: sums of terms, one file and one entry each.

mod box_simplex;
mod common;
mod fixed;
mod group;
mod hierarchy;
mod independent;
mod lp;
mod prior_ball;
mod pscs;
mod simplex;
mod sum;
mod tang;
mod uniform;

pub use hierarchy::Hierarchy;

use super::{SetSpec, SharingEntry, SharingSpec, TermSpec};
use crate::entry::{Parameter, Range};
use crate::grid::Shape;

/// Every sharing of ours, in the order of help texts. A new one is one line here.
pub(crate) const SHARINGS: &[&SharingEntry] = &[
    &lp::ENTRY,
    &common::ENTRY,
    &independent::ENTRY,
    &group::ENTRY,
    &pscs::ENTRY,
    &hierarchy::ENTRY,
    &tang::ENTRY,
    &simplex::ENTRY,
    &box_simplex::ENTRY,
    &prior_ball::ENTRY,
    &fixed::ENTRY,
    &uniform::ENTRY,
    &sum::ENTRY,
];

const P: Parameter = Parameter::number(
    "p",
    Range::AtLeast(1.0),
    "the norm's exponent inside a task",
)
.or(2.0);

const Q: Parameter = Parameter::number(
    "q",
    Range::AtLeast(1.0),
    "the norm's exponent between tasks (1 makes tasks share where they can)",
)
.or(1.0);

const RADIUS: Parameter =
    Parameter::number("radius", Range::Positive, "the bound on the norm").or(1.0);

const WEIGHTS: &str = "weights, one per kernel";

/// 1/M for each kernel.
fn uniform(shape: Shape) -> Vec<f64> {
    vec![1.0 / shape.kernels as f64; shape.kernels]
}
