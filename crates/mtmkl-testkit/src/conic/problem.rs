//! What is to be solved: machines, tasks, and the terms of a sharing.

/// A machine: ḡ(α, K) to be maximised over α in Ω, in α form.
#[derive(Clone, Debug)]
pub enum Machine {
    /// 1'α − ½ β'Kβ with β = y∘α, 0 ≤ α ≤ upper, y'α = 0; y is ±1.
    Svc {
        /// Labels ±1.
        y: Vec<f64>,
        /// Box, one bound a sample.
        upper: Vec<f64>,
    },
    /// −Σ [α ln(α/upper) + (upper − α) ln((upper − α)/upper)] − ½ β'Kβ with β = y∘α, 0 ≤ α ≤ upper, y'α = 0; y is ±1.
    Logistic {
        /// Labels ±1.
        y: Vec<f64>,
        /// C of each sample.
        upper: Vec<f64>,
    },
    /// 2α'y − α'(λI + K)α, α free.
    Krr {
        /// Targets.
        y: Vec<f64>,
        /// Ridge λ > 0.
        lambda: f64,
    },
    /// α'diag(K) − α'Kα, 0 ≤ α ≤ c, 1'α = 1.
    Svdd {
        /// Box; c·n ≥ 1.
        c: f64,
    },
    /// −α'Kα, 0 ≤ α ≤ 1/(ν n), 1'α = 1.
    OneClass {
        /// 0 < ν ≤ 1.
        nu: f64,
    },
    /// y'β − ε‖β‖₁ − ½ β'Kβ, |β| ≤ upper, 1'β = 0.
    Svr {
        /// Targets.
        y: Vec<f64>,
        /// Box, one bound a sample.
        upper: Vec<f64>,
        /// Half width ε ≥ 0 of the tube.
        epsilon: f64,
    },
}

/// One task: a machine on n samples with M Gram matrices.
#[derive(Clone, Debug)]
pub struct Task {
    /// The machine.
    pub machine: Machine,
    /// n.
    pub samples: usize,
    /// M matrices, each n·n entries by rows, positive semidefinite (rank deficient is fine).
    pub grams: Vec<Vec<f64>>,
}

/// A set of kernel weights of one task, always with θ ≥ 0.
#[derive(Clone, Debug)]
pub enum Set {
    /// ‖θ‖_p ≤ radius, 1 ≤ p ≤ ∞.
    LpBall {
        /// Exponent.
        p: f64,
        /// Radius.
        radius: f64,
    },
    /// Σθ = total.
    Simplex {
        /// Mass.
        total: f64,
    },
    /// Σθ = total, θ ≤ upper.
    BoxSimplex {
        /// Mass.
        total: f64,
        /// Largest weight; upper·M ≥ total.
        upper: f64,
    },
    /// ‖θ − centre‖₂ ≤ radius.
    PriorBall {
        /// Prior weights, ≥ 0.
        centre: Vec<f64>,
        /// Radius.
        radius: f64,
    },
    /// θ = weights.
    Fixed {
        /// Weights.
        weights: Vec<f64>,
    },
}

/// One summand of a sharing; a sharing Ψ is the Minkowski sum of its terms.
#[derive(Clone, Debug)]
pub enum Term {
    /// One ζ in the set, for all tasks.
    Common(Set),
    /// One `γ^t` in the set a task.
    Independent(Set),
    /// `γ^t` given, a row for each task.
    Given(Vec<Vec<f64>>),
    /// (`Σ_t` ‖γ^t‖_p^q)^{1/q} ≤ radius, γ ≥ 0.
    Group {
        /// Exponent inside a task.
        p: f64,
        /// Exponent across tasks.
        q: f64,
        /// Radius.
        radius: f64,
    },
    /// (`Σ_v` ‖γ^v‖_p^q)^{1/q} ≤ radius, γ ≥ 0, a row for each group v of tasks, which is added to the weights of all of them.
    Level {
        /// The tasks of each group.
        groups: Vec<Vec<usize>>,
        /// Exponent inside a group.
        p: f64,
        /// Exponent across groups.
        q: f64,
        /// Radius.
        radius: f64,
    },
}

pub(super) fn check(task: &Task, kernels: usize) {
    let n = task.samples;
    assert!(
        task.grams.len() == kernels,
        "every task has the same number of kernels"
    );
    assert!(
        task.grams.iter().all(|gram| gram.len() == n * n),
        "a Gram matrix is n·n"
    );
    match &task.machine {
        Machine::Svc { y, upper }
        | Machine::Logistic { y, upper }
        | Machine::Svr { y, upper, .. } => {
            assert!(
                y.len() == n && upper.len() == n,
                "one label and one bound a sample"
            );
        }
        Machine::Krr { y, lambda } => {
            assert!(y.len() == n && *lambda > 0.0, "one target a sample, λ > 0");
        }
        // Less than one unit of mass in all: Ω would be empty. The slack is for ν = 1, where 1/(νn)·n may round below 1.
        Machine::Svdd { c } => assert!(c * n as f64 >= 1.0 - 1e-12, "c·n ≥ 1"),
        Machine::OneClass { nu } => assert!(*nu > 0.0 && *nu <= 1.0, "0 < ν ≤ 1"),
    }
}

/// Size of the largest weight in a term, to scale the objective by.
pub(super) fn size(term: &Term) -> f64 {
    match term {
        Term::Group { radius, .. } | Term::Level { radius, .. } => *radius,
        Term::Given(rows) => rows.iter().flatten().copied().fold(0.0, f64::max),
        Term::Common(set) | Term::Independent(set) => match set {
            Set::LpBall { radius, .. } => *radius,
            Set::Simplex { total } => *total,
            Set::BoxSimplex { total, upper } => total.min(*upper),
            Set::PriorBall { centre, radius } => {
                radius + centre.iter().copied().fold(0.0, f64::max)
            }
            Set::Fixed { weights } => weights.iter().copied().fold(0.0, f64::max),
        },
    }
}
