//! What was found, and what does not hold.

use serde::Serialize;

/// Whether a certificate holds, with every figure that says so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Whether every claim holds: there are no failures.
    pub holds: bool,
    /// How the fit ended, as the model says.
    pub status: String,
    /// The upper bound: P at the model's θ, β and b.
    pub objective: Claim,
    /// The lower bound: D at the model's witness.
    pub bound: Claim,
    /// How far apart they are, relative to the objective.
    pub gap: Gap,
    /// The same by task.
    pub tasks: Vec<Part>,
    /// What is taken for granted: kernels that nothing but the fit says to be positive semi-definite.
    pub assumed: Vec<String>,
    /// What does not hold.
    pub failures: Vec<Failure>,
}

/// A number that a model states, beside the one that its parts make.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Claim {
    /// By the model.
    #[serde(serialize_with = "finite")]
    pub stated: f64,
    /// Computed here.
    #[serde(serialize_with = "finite")]
    pub found: f64,
    /// How far they may be apart by rounding alone.
    #[serde(serialize_with = "finite")]
    pub allowance: f64,
}

/// The relative gap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gap {
    /// By the model: (objective − bound)/|objective|.
    #[serde(serialize_with = "finite")]
    pub stated: f64,
    /// (P − D)/|P|.
    #[serde(serialize_with = "finite")]
    pub found: f64,
    /// What was asked for, where the model says so.
    pub tolerance: Option<f64>,
}

/// What a task adds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// How many samples it learned from.
    pub samples: usize,
    /// Its primal value at the model's θ, β and b.
    #[serde(serialize_with = "finite")]
    pub primal: f64,
    /// The part of its dual value without θ, at its witness.
    #[serde(serialize_with = "finite")]
    pub constant: f64,
}

/// A number, or null where there is none: JSON has no other.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "that is how serde calls it"
)]
fn finite<S: serde::Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(*value).serialize(serializer)
}

/// What of a model does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Quantity {
    /// Kernel weights, and their parts.
    Theta,
    /// β of a machine.
    Beta,
    /// β̂ that is to prove the bound.
    Witness,
    /// b of a machine.
    Offset,
    /// The upper bound.
    Objective,
    /// The lower bound.
    Bound,
    /// Their relative difference.
    Gap,
    /// How the fit ended.
    Status,
    /// What targets are measured in.
    Units,
    /// D ≤ P: of one problem.
    Duality,
    /// What double precision can tell: it may be that everything else holds, or not.
    Rounding,
}

impl Quantity {
    /// In words, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Theta => "theta",
            Self::Beta => "beta",
            Self::Witness => "witness",
            Self::Offset => "offset",
            Self::Objective => "objective",
            Self::Bound => "bound",
            Self::Gap => "gap",
            Self::Status => "status",
            Self::Units => "units",
            Self::Duality => "duality",
            Self::Rounding => "rounding",
        }
    }
}

/// One claim that does not hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// Of what.
    pub quantity: Quantity,
    /// Of which task, where it is one's.
    pub task: Option<String>,
    /// Of which row, where it is one's.
    pub row: Option<Row>,
    /// What the model says, where that is a number.
    pub stated: Option<f64>,
    /// What was found.
    pub found: Option<f64>,
    /// In words.
    pub problem: String,
}

/// A row of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Which sample set.
    pub set: usize,
    /// The position in it, from 0.
    pub position: usize,
}

impl Failure {
    pub(crate) fn new(quantity: Quantity, problem: impl Into<String>) -> Self {
        Self {
            quantity,
            task: None,
            row: None,
            stated: None,
            found: None,
            problem: problem.into(),
        }
    }

    pub(crate) fn of_task(mut self, task: &str) -> Self {
        self.task = Some(task.to_string());
        self
    }

    pub(crate) fn at(mut self, set: usize, position: usize) -> Self {
        self.row = Some(Row { set, position });
        self
    }

    pub(crate) fn numbers(mut self, stated: f64, found: f64) -> Self {
        let there = |value: f64| value.is_finite().then_some(value);
        (self.stated, self.found) = (there(stated), there(found));
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.quantity.name())?;
        if let Some(task) = &self.task {
            write!(f, " of task `{task}`")?;
        }
        if let Some(Row { set, position }) = self.row {
            write!(f, ", row {position} of sample set {set}")?;
        }
        write!(f, ": {}", self.problem)
    }
}
