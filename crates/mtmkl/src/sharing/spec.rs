//! Sharings by name, as they stand in configuration files and model files.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lp_ball::{check_exponent, check_positive};
use super::{
    BoxSimplex, Common, Fixed, Group, Independent, LpBall, PriorBall, Sharing, Simplex, Term,
};
use crate::error::{Error, Result};
use crate::grid::Shape;

fn one() -> f64 {
    1.0
}

/// A sharing by name, with its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum SharingSpec {
    /// ‖θ‖_p ≤ radius, for one task (L_p-MKL).
    Lp {
        /// p ≥ 1.
        p: f64,
        /// Bound on the norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// CS: θᵗ = ζ for all tasks, ‖ζ‖_p ≤ radius.
    Common {
        /// p ≥ 1.
        p: f64,
        /// Bound on the norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// IS: ‖θᵗ‖_p ≤ radius for each task.
    Independent {
        /// p ≥ 1.
        p: f64,
        /// Bound on the norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// (Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius.
    Group {
        /// p ≥ 1.
        p: f64,
        /// q ≥ 1.
        q: f64,
        /// Bound on the mixed norm.
        #[serde(default = "one")]
        radius: f64,
    },
    /// θᵗ = ζ + γᵗ, ‖ζ‖_p ≤ radius, (Σ_t ‖γᵗ‖_p^q)^{1/q} ≤ radius: partially shared common space.
    Pscs {
        /// p ≥ 1.
        p: f64,
        /// q ≥ 1.
        q: f64,
        /// Bound on both norms.
        #[serde(default = "one")]
        radius: f64,
    },
    /// θᵗ = ζ + γᵗ ≥ 0, Σ_m θ_mᵗ = 1 for every t, Σγ ≤ β (Tang et al.).
    Tang {
        /// β ≥ 0: how much weight may be the tasks' own, over all tasks together.
        beta: f64,
    },
    /// Σ_m θ_m = 1, one θ for all tasks (SimpleMKL).
    Simplex,
    /// Σ_m θ_m = 1, θ ≤ upper, one θ for all tasks (soft-margin MKL).
    BoxSimplex {
        /// Bound on each weight.
        upper: f64,
    },
    /// θ ≥ 0, ‖θ − prior‖₂ ≤ radius, one θ for all tasks.
    PriorBall {
        /// θ⁰; the uniform 1/M when absent.
        #[serde(default)]
        prior: Option<Vec<f64>>,
        /// Λ.
        #[serde(default = "one")]
        radius: f64,
    },
    /// Given weights, the same for all tasks.
    Fixed {
        /// M weights.
        weights: Vec<f64>,
    },
    /// θ = 1/M everywhere: the plain average, the baseline to beat.
    Uniform,
    /// A sum of terms that the user composes.
    Sum {
        /// The terms.
        terms: Vec<TermSpec>,
    },
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

impl TermSpec {
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
            Self::Own(own) => Arc::clone(&own.0),
        }
    }
}

impl SharingSpec {
    /// The sum of terms of the user's own. A model of it can be used, not saved.
    pub fn own(terms: impl IntoIterator<Item = Arc<dyn Term>>) -> Self {
        let terms = terms.into_iter().map(OwnTerm).map(TermSpec::Own);
        Self::Sum {
            terms: terms.collect(),
        }
    }

    /// Whether all of it has a name, so that it can be written to a file.
    pub fn is_named(&self) -> bool {
        let Self::Sum { terms } = self else {
            return true;
        };
        !terms.iter().any(|term| matches!(term, TermSpec::Own(_)))
    }

    /// The registered name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Lp { .. } => "lp",
            Self::Common { .. } => "common",
            Self::Independent { .. } => "independent",
            Self::Group { .. } => "group",
            Self::Pscs { .. } => "pscs",
            Self::Tang { .. } => "tang",
            Self::Simplex => "simplex",
            Self::BoxSimplex { .. } => "box-simplex",
            Self::PriorBall { .. } => "prior-ball",
            Self::Fixed { .. } => "fixed",
            Self::Uniform => "uniform",
            Self::Sum { .. } => "sum",
        }
    }

    /// The terms whose sum it is, for T tasks and M kernels.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn terms(&self, shape: Shape) -> Result<Vec<TermSpec>> {
        let uniform = || vec![1.0 / shape.kernels as f64; shape.kernels];
        Ok(match self {
            Self::Lp { p, radius } if shape.tasks == 1 => {
                vec![TermSpec::Common(SetSpec::LpBall {
                    p: *p,
                    radius: *radius,
                })]
            }
            Self::Lp { .. } => {
                let expected =
                    "`common`, `independent`, `group`, `pscs` or `tang` for more than one task";
                return Err(Error::param(
                    "sharing",
                    format!("`lp` with {} tasks", shape.tasks),
                    expected,
                ));
            }
            Self::Common { p, radius } => vec![TermSpec::Common(SetSpec::LpBall {
                p: *p,
                radius: *radius,
            })],
            Self::Independent { p, radius } => {
                vec![TermSpec::Independent(SetSpec::LpBall {
                    p: *p,
                    radius: *radius,
                })]
            }
            Self::Group { p, q, radius } => vec![TermSpec::Group {
                p: *p,
                q: *q,
                radius: *radius,
            }],
            Self::Pscs { p, q, radius } => vec![
                TermSpec::Common(SetSpec::LpBall {
                    p: *p,
                    radius: *radius,
                }),
                TermSpec::Group {
                    p: *p,
                    q: *q,
                    radius: *radius,
                },
            ],
            Self::Tang { beta } => {
                if !(beta.is_finite() && *beta >= 0.0) {
                    return Err(Error::param("beta", beta, "a finite number ≥ 0"));
                }
                // Σγ ≤ β allows each task an own share b = min(1, β/T): Ψ = (1−b) · common simplex + b · simplex per task.
                let own = (beta / shape.tasks as f64).min(1.0);
                let mut terms = Vec::new();
                if own < 1.0 {
                    terms.push(TermSpec::Common(SetSpec::Simplex { total: 1.0 - own }));
                }
                if own > 0.0 {
                    terms.push(TermSpec::Independent(SetSpec::Simplex { total: own }));
                }
                terms
            }
            Self::Simplex => vec![TermSpec::Common(SetSpec::Simplex { total: 1.0 })],
            Self::BoxSimplex { upper } => vec![TermSpec::Common(SetSpec::BoxSimplex {
                total: 1.0,
                upper: *upper,
            })],
            Self::PriorBall { prior, radius } => {
                let prior = prior.clone().unwrap_or_else(uniform);
                vec![TermSpec::Common(SetSpec::PriorBall {
                    prior,
                    radius: *radius,
                })]
            }
            Self::Fixed { weights } => vec![TermSpec::Common(SetSpec::Fixed {
                weights: weights.clone(),
            })],
            Self::Uniform => vec![TermSpec::Common(SetSpec::Fixed { weights: uniform() })],
            Self::Sum { terms } => terms.clone(),
        })
    }

    /// Ψ for T tasks and M kernels.
    ///
    /// # Errors
    /// When a parameter is outside its range or does not fit the shape.
    pub fn build(&self, shape: Shape) -> Result<Sharing> {
        if let Self::Group { p, q, radius } | Self::Pscs { p, q, radius } = self {
            check_exponent("p", *p)?;
            check_exponent("q", *q)?;
            check_positive("radius", *radius)?;
        }
        let terms = self.terms(shape)?.iter().map(TermSpec::term).collect();
        Sharing::new(self.name(), terms, shape)
    }
}
