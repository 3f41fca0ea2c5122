//! The paper's experiments on real data: its data sets and figures, its protocol, and tables that put ours beside its.

pub mod method;
pub mod paper;
pub mod protocol;
pub mod sources;
pub mod tables;
