#![doc = "Independent answers for the tests of mtmkl: min over θ in Ψ of max over α in Ω of `Σ_t` ḡ(α^t, `Σ_m` `θ_m^t` `K_m^t`)."]
//!
//! [`conic`], [`generate`], [`logistic`], [`shared`] and [`textbook`] do not look at the product, on purpose: the formulas are restated from the theory, and a general conic
//! solver finds the optimum, so that a mistake in the product cannot hide behind the same mistake here.
//!
//! - [`bracket`]: the textbook's values at a point, to check what anybody claims of it.
//! - [`conic`]: the optimum, and the largest ⟨s, θ⟩ over a sharing, as conic programmes.
//! - [`generate`]: small deterministic problems.
//! - [`logistic`]: kernel logistic regression at a fixed kernel.
//! - [`shared`]: the shared real data sets.
//! - [`textbook`]: kernels by their definitions.
//! - [`small`]: small problems of the product with their conic statement.
//! - [`statement`]: a problem in plain numbers, for the product and for the conic solver.
//! - [`metamorphic`]: fits against fits of the same problem in other words.
//! - [`library`]: problems with stored bounds on their optima.
//! - [`conformance`]: what must hold for every machine and sharing of a registry, one's own included.

pub mod bracket;
pub mod conformance;
pub mod conic;
pub mod generate;
pub mod library;
pub mod logistic;
pub mod metamorphic;
pub mod shared;
pub mod small;
pub mod statement;
pub mod textbook;
