//! The paper's experiments (C. Li, M. Georgiopoulos and G. C. Anagnostopoulos, *A Unifying Framework for Typical Multi-Task Multiple
//! Kernel Learning Problems*), repeated: its data, its protocol, its tables.
//!
//! `benchmark` has the paper's sets and figures, `sources` their files (`idx` and `mat` are formats that only these have), `rows` the
//! rows of a draw, `protocol` what is fitted on them, `method` the sharings compared, `t_test` and `tables` what is made of the results.

mod arguments;
pub mod benchmark;
pub mod idx;
pub mod mat;
pub mod method;
pub mod protocol;
mod rows;
mod run;
pub mod sources;
pub mod t_test;
pub mod tables;
#[cfg(test)]
mod tests;

pub use arguments::{Arguments, PaperTable};
pub use run::run;
