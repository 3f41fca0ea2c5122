//! Every sharing that has a name, with what it takes and what it means: one entry each. Registering is all that help texts and the conformance suite need.

use super::spec::{SetSpec, SharingSpec as S, TermSpec};
use crate::grid::Shape;

/// A registered sharing: for help texts, and for the conformance suite, which runs over all of them.
#[derive(Debug, Clone)]
pub struct SharingInfo {
    /// The name on the command line and in files.
    pub name: &'static str,
    /// What it means, formula first.
    pub help: &'static str,
    /// The parameters it takes.
    pub parameters: &'static [&'static str],
    /// Examples for T tasks and M kernels that together touch every special case.
    pub examples: fn(Shape) -> Vec<S>,
}

/// Every sharing that has a name. One line each.
pub fn registered_sharings() -> Vec<SharingInfo> {
    vec![
        LP,
        COMMON,
        INDEPENDENT,
        GROUP,
        PSCS,
        TANG,
        SIMPLEX,
        BOX_SIMPLEX,
        PRIOR_BALL,
        FIXED,
        UNIFORM,
        SUM,
    ]
}

const LP: SharingInfo = SharingInfo {
    name: "lp",
    parameters: &["p", "radius"],
    help: "‖θ‖_p ≤ radius, one task",
    examples: |shape| match shape.tasks {
        1 => [1.0, 1.33, 2.0].map(|p| S::Lp { p, radius: 1.0 }).to_vec(),
        _ => Vec::new(),
    },
};

const COMMON: SharingInfo = SharingInfo {
    name: "common",
    parameters: &["p", "radius"],
    help: "one θ for all tasks, ‖θ‖_p ≤ radius",
    examples: |_| {
        [1.0, 1.5, 2.0]
            .map(|p| S::Common { p, radius: 1.5 })
            .to_vec()
    },
};

const INDEPENDENT: SharingInfo = SharingInfo {
    name: "independent",
    parameters: &["p", "radius"],
    help: "a θ for each task, each ‖θ‖_p ≤ radius",
    examples: |_| {
        [1.0, 1.1, 2.0]
            .map(|p| S::Independent { p, radius: 0.7 })
            .to_vec()
    },
};

const GROUP: SharingInfo = SharingInfo {
    name: "group",
    parameters: &["p", "q", "radius"],
    help: "(Σ_t ‖θᵗ‖_p^q)^{1/q} ≤ radius",
    examples: |_| {
        [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.5, 3.0), (3.0, 1.5)]
            .map(|(p, q)| S::Group { p, q, radius: 2.0 })
            .to_vec()
    },
};

const PSCS: SharingInfo = SharingInfo {
    name: "pscs",
    parameters: &["p", "q", "radius"],
    help: "θᵗ = ζ + γᵗ, ζ in an L_p ball, γ in an L_p–L_q group ball",
    examples: |_| {
        [(2.0, 1.0), (1.1, 1.0), (1.1, 1.5), (2.0, 2.0), (1.0, 1.0)]
            .map(|(p, q)| S::Pscs { p, q, radius: 1.0 })
            .to_vec()
    },
};

const TANG: SharingInfo = SharingInfo {
    name: "tang",
    parameters: &["beta"],
    help: "θᵗ = ζ + γᵗ, Σ_m θ_mᵗ = 1, Σγ ≤ beta",
    examples: |shape| {
        let tasks = shape.tasks as f64;
        [0.0, 0.4 * tasks, 2.0 * tasks]
            .map(|beta| S::Tang { beta })
            .to_vec()
    },
};

const SIMPLEX: SharingInfo = SharingInfo {
    name: "simplex",
    parameters: &[],
    help: "one θ for all tasks, Σθ = 1 (SimpleMKL)",
    examples: |_| vec![S::Simplex],
};

const BOX_SIMPLEX: SharingInfo = SharingInfo {
    name: "box-simplex",
    parameters: &["upper"],
    help: "one θ for all tasks, Σθ = 1, θ ≤ upper",
    examples: |shape| {
        let least = 1.0 / shape.kernels as f64;
        vec![
            S::BoxSimplex { upper: 1.5 * least },
            S::BoxSimplex { upper: least },
        ]
    },
};

const PRIOR_BALL: SharingInfo = SharingInfo {
    name: "prior-ball",
    parameters: &["prior", "radius"],
    help: "one θ for all tasks, ‖θ − prior‖₂ ≤ radius",
    examples: |shape| {
        let prior = (0..shape.kernels)
            .map(|kernel| if kernel == 0 { 0.0 } else { 1.0 })
            .collect();
        vec![
            S::PriorBall {
                prior: Some(prior),
                radius: 0.6,
            },
            S::PriorBall {
                prior: None,
                radius: 2.0,
            },
        ]
    },
};

const FIXED: SharingInfo = SharingInfo {
    name: "fixed",
    parameters: &["weights"],
    help: "given weights for all tasks",
    examples: |shape| {
        vec![S::Fixed {
            weights: (1..=shape.kernels)
                .map(|kernel| 0.5 * kernel as f64)
                .collect(),
        }]
    },
};

const UNIFORM: SharingInfo = SharingInfo {
    name: "uniform",
    parameters: &[],
    help: "θ = 1/M everywhere, nothing learned",
    examples: |_| vec![S::Uniform],
};

const SUM: SharingInfo = SharingInfo {
    name: "sum",
    parameters: &["terms"],
    help: "a sum of terms that you compose",
    examples: |shape| {
        let spread = SetSpec::Simplex { total: 0.5 };
        let ball = SetSpec::LpBall {
            p: 2.0,
            radius: 0.5,
        };
        let prior = SetSpec::PriorBall {
            prior: vec![0.2; shape.kernels],
            radius: 0.1,
        };
        vec![
            S::Sum {
                terms: vec![
                    TermSpec::Common(spread.clone()),
                    TermSpec::Independent(ball.clone()),
                ],
            },
            S::Sum {
                terms: vec![
                    TermSpec::Independent(prior),
                    TermSpec::Group {
                        p: 2.0,
                        q: 1.0,
                        radius: 0.5,
                    },
                    TermSpec::Common(ball),
                    TermSpec::Common(spread),
                ],
            },
        ]
    },
};
