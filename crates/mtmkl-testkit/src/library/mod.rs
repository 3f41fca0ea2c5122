//! A library of problems with bounds on their optima that an independent solver gave: what the product claims of them can be told true or false.
//!
//! `problems.jsonl` has a line for each: how its samples are made, kernels, machine, sharing, and the interval that holds J*.

mod data;

use std::collections::BTreeSet;
use std::time::Instant;

pub use data::{Source, Twist};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Error, Fitting, Status};
use serde::{Deserialize, Serialize};

use crate::conic;
use crate::statement::{Statement, targets_of};

/// The problems with their bounds.
const PROBLEMS: &str = include_str!("problems.jsonl");
/// The relative gap that is asked for.
pub const TOLERANCE: f64 = 1e-6;
/// What the conic solver says of its own error is multiplied by this.
const CAUTION: f64 = 10.0;

/// An interval that holds J*, and what gave it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
    /// By which method.
    pub by: String,
}

/// One problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What it is called.
    pub name: String,
    /// Specifications of kernels; several values between `|`, `@each` for each column.
    pub kernels: Vec<String>,
    /// Whether they are normalised.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub normalize: bool,
    /// (ḡ, Ω).
    pub machine: MachineSpec,
    /// Ψ.
    pub sharing: SharingSpec,
    /// Samples and targets.
    pub data: Source,
    /// Where J* is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
}

fn yes() -> bool {
    true
}

/// All problems of a text of lines.
///
/// # Panics
/// When a line is none.
pub fn read(text: &str) -> Vec<Recipe> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// All problems of the library.
pub fn problems() -> Vec<Recipe> {
    read(PROBLEMS)
}

/// `a=1|2` and `@each` written out.
fn expanded(specs: &[String], columns: usize) -> Vec<String> {
    let mut all = Vec::new();
    for spec in specs {
        let (head, at) = spec
            .split_once('@')
            .map_or((spec.as_str(), ""), |(head, at)| (head, at));
        let heads: Vec<String> = match head.split_once('|') {
            None => vec![head.to_string()],
            Some((first, others)) => {
                let (before, value) = first.rsplit_once('=').unwrap_or((first, ""));
                let values = std::iter::once(value).chain(others.split('|'));
                values.map(|value| format!("{before}={value}")).collect()
            }
        };
        for head in heads {
            match at {
                "" => all.push(head),
                "each" => all.extend((1..=columns).map(|column| format!("{head}@f{column}"))),
                columns => all.push(format!("{head}@{columns}")),
            }
        }
    }
    all
}

impl Recipe {
    /// The problem in numbers; `None` where its data are not there.
    pub fn statement(&self) -> Option<Statement> {
        let (columns, sets, tasks) = data::made(&self.data, targets_of(&self.machine))?;
        Some(Statement {
            machine: self.machine.clone(),
            sharing: self.sharing.clone(),
            kernels: expanded(&self.kernels, columns),
            normalize: self.normalize,
            columns,
            sets,
            tasks,
        })
    }

    /// Bounds by the conic solver: its value, wider on both sides by ten times what it sees of its own error, and by what its factors lack of the kernels.
    ///
    /// # Errors
    /// Says why there are none.
    pub fn conic_bounds(&self) -> Result<Bounds, String> {
        let statement = self.statement().ok_or("no data")?;
        let (tasks, terms) = statement.conic().ok_or("not stated for the conic solver")?;
        let optimum = conic::optimum(&tasks, &terms);
        if !optimum.solved {
            return Err(format!(
                "the conic solver ended with an error of {:e} of {:e}",
                optimum.error, optimum.value
            ));
        }
        let error = CAUTION * optimum.error
            + 4.0 * f64::EPSILON * optimum.value.abs()
            + optimum.factor_error(&tasks);
        Ok(Bounds {
            low: optimum.value - error,
            high: optimum.value + error,
            by: "conic".to_string(),
        })
    }
}

/// What the product made of a problem.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The problem's name.
    pub name: String,
    /// T, M and how many samples in all.
    pub size: [usize; 3],
    /// How it ended; the error where it was refused.
    pub status: Result<Status, String>,
    /// Passes.
    pub passes: usize,
    /// Seconds, kernels included.
    pub seconds: f64,
    /// (objective − bound) / |objective|, as claimed.
    pub gap: f64,
    /// J(θ), an upper bound.
    pub objective: f64,
    /// A lower bound.
    pub bound: f64,
    /// Where J* is.
    pub known: Bounds,
}

impl Finding {
    /// Whether every claim is true: the interval meets the one that is known, and is as narrow as the status says.
    pub fn is_true(&self) -> bool {
        let Ok(status) = &self.status else {
            // A refusal claims nothing of the optimum.
            return true;
        };
        let holds = self.bound <= self.known.high
            && self.objective >= self.known.low
            && self.bound <= self.objective;
        holds && (!status.is_converged() || (self.gap <= TOLERANCE && self.is_near()))
    }

    /// Whether the objective is within the tolerance of what is known; of an optimum of zero, only rounding can be seen.
    fn is_near(&self) -> bool {
        self.objective - self.known.high <= TOLERANCE * self.objective.abs() + self.gap_of_zero()
    }

    /// A gap of exactly 0 between unequal numbers is one that rounding explains.
    fn gap_of_zero(&self) -> f64 {
        if self.gap == 0.0 {
            self.objective - self.bound
        } else {
            0.0
        }
    }

    /// Whether it converged, and truly.
    pub fn is_solved(&self) -> bool {
        self.status
            .as_ref()
            .is_ok_and(|status| status.is_converged())
            && self.is_true()
    }
}

/// The product on a problem; `None` where its data are not there.
///
/// # Panics
/// When the problem has no bounds yet.
pub fn found(recipe: &Recipe) -> Option<Finding> {
    let statement = recipe.statement()?;
    let known = recipe
        .bounds
        .clone()
        .unwrap_or_else(|| panic!("{} has no bounds", recipe.name));
    let started = Instant::now();
    let fit = || -> Result<_, Error> {
        statement.problem()?.fit(&mut Fitting {
            tolerance: TOLERANCE,
            ..Fitting::default()
        })
    };
    let model = fit();
    let seconds = started.elapsed().as_secs_f64();
    let samples = statement.tasks.iter().map(|task| task.rows.len()).sum();
    let nothing = Finding {
        name: recipe.name.clone(),
        size: [statement.tasks.len(), statement.kernels.len(), samples],
        status: Ok(Status::Stalled),
        passes: 0,
        seconds,
        gap: f64::INFINITY,
        objective: f64::INFINITY,
        bound: f64::NEG_INFINITY,
        known,
    };
    Some(match model {
        Err(error) => Finding {
            status: Err(error.to_string()),
            ..nothing
        },
        Ok(model) => {
            let outcome = model.outcome();
            Finding {
                status: Ok(outcome.status),
                passes: outcome.trace.len(),
                gap: outcome.gap,
                objective: outcome.objective,
                bound: outcome.bound,
                ..nothing
            }
        }
    })
}

/// What there is of everything, for a look at whether the library covers it.
pub fn coverage(recipes: &[Recipe]) -> [BTreeSet<String>; 3] {
    let machines = recipes
        .iter()
        .map(|recipe| recipe.machine.name().to_string())
        .collect();
    let sharings = recipes
        .iter()
        .map(|recipe| recipe.sharing.name().to_string())
        .collect();
    let kind = |spec: &String| {
        spec.split([':', '@'])
            .next()
            .unwrap_or_default()
            .to_string()
    };
    let kernels = recipes
        .iter()
        .flat_map(|recipe| recipe.kernels.iter().map(kind))
        .collect();
    [machines, sharings, kernels]
}
