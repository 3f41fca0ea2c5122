//! Terms by name, as they stand in configuration files and model files: what sharings are sums of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    BoxSimplex, Common, Fixed, Group, Independent, Level, LpBall, PriorBall, Simplex, Term,
};
use crate::entry::Values;
use crate::tree::NamedLevel;

fn one() -> f64 {
    1.0
}

/// A base set by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SetSpec {
    /// [`LpBall`]
    LpBall {
        /// p ≥ 1.
        p: f64,
        /// Bound on the norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// [`Simplex`]
    Simplex {
        /// The sum.
        #[serde(default = "one")]
        total: f64,
    },
    /// [`BoxSimplex`]
    BoxSimplex {
        /// The sum.
        #[serde(default = "one")]
        total: f64,
        /// Bound on each weight.
        upper: f64,
    },
    /// [`PriorBall`]
    PriorBall {
        /// θ⁰.
        prior: Vec<f64>,
        /// Λ.
        #[serde(default = "one")]
        radius: f64,
    },
    /// [`Fixed`]
    Fixed {
        /// M weights.
        weights: Vec<f64>,
    },
}

/// A term by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TermSpec {
    /// One vector for all tasks.
    Common(SetSpec),
    /// One vector for each task.
    Independent(SetSpec),
    /// [`Group`]
    Group {
        /// p ≥ 1.
        p: f64,
        /// q ≥ 1.
        q: f64,
        /// Bound on the mixed norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// [`Level`]
    Level {
        /// The groups by name, with the positions of their tasks.
        level: NamedLevel,
        /// p ≥ 1.
        p: f64,
        /// q ≥ 1.
        q: f64,
        /// Bound on the mixed norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// A term of the user's own, which has no name to be written by.
    #[serde(skip)]
    Own(OwnTerm),
}

/// A term of the user's own. Two are equal when they are the same one.
#[derive(Debug, Clone)]
pub struct OwnTerm(pub Arc<dyn Term>);

impl PartialEq for OwnTerm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl SetSpec {
    /// ‖θ‖_p ≤ radius, with the values of a sharing.
    pub(super) fn lp_ball(values: &Values) -> Self {
        Self::LpBall {
            p: values.number("p"),
            radius: values.number("radius"),
        }
    }
}

impl TermSpec {
    /// A term of the user's own.
    pub fn own(term: impl Term + 'static) -> Self {
        Self::Own(OwnTerm(Arc::new(term)))
    }

    /// (Σ_t ‖γᵗ‖_p^q)^{1/q} ≤ radius, with the values of a sharing.
    pub(super) fn group(values: &Values) -> Self {
        Self::Group {
            p: values.number("p"),
            q: values.number("q"),
            radius: values.number("radius"),
        }
    }

    /// The term itself.
    pub fn term(&self) -> Arc<dyn Term> {
        macro_rules! lifted {
            ($lift:ident, $set:expr) => {
                match $set.clone() {
                    SetSpec::LpBall { p, radius } => {
                        Arc::new($lift(LpBall { p, radius })) as Arc<dyn Term>
                    }
                    SetSpec::Simplex { total } => Arc::new($lift(Simplex { total })),
                    SetSpec::BoxSimplex { total, upper } => {
                        Arc::new($lift(BoxSimplex { total, upper }))
                    }
                    SetSpec::PriorBall { prior, radius } => {
                        Arc::new($lift(PriorBall { prior, radius }))
                    }
                    SetSpec::Fixed { weights } => Arc::new($lift(Fixed { weights })),
                }
            };
        }
        match self {
            Self::Common(set) => lifted!(Common, set),
            Self::Independent(set) => lifted!(Independent, set),
            Self::Group { p, q, radius } => Arc::new(Group {
                p: *p,
                q: *q,
                radius: *radius,
            }),
            Self::Level {
                level,
                p,
                q,
                radius,
            } => Arc::new(Level::named(level.clone(), *p, *q, *radius)),
            Self::Own(own) => Arc::clone(&own.0),
        }
    }
}
