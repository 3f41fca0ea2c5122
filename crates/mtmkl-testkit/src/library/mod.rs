//! A library of problems with bounds on their optima that an independent solver gave: what the product claims of them can be told true or false.
//!
//! `problems.jsonl` has a line for each: how its samples are made, kernels, machine, sharing, and the interval that holds J*.

mod data;
mod export;

use std::collections::BTreeSet;
use std::time::Instant;

pub use data::{Source, Twist};
pub use export::export;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Error, Fitting, Status};
use serde::{Deserialize, Serialize};

use crate::bracket;
use crate::statement::{Statement, targets_of};

/// The problems with their bounds.
const PROBLEMS: &str = include_str!("problems.jsonl");
/// The relative gap that is asked for.
pub const TOLERANCE: f64 = 1e-6;
/// What rounding may do to the bounds: this part of the largest of what they are sums of.
const ROUNDING: f64 = 1e-13;

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
    /// Why it is not solved, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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

    /// Bounds by closed forms at the α and θ that the conic solver found, and where these are far apart those that cutting planes find from there: what α proves,
    /// and the primal of each machine at θ.
    ///
    /// # Errors
    /// Says why there are none.
    pub fn new_bounds(&self) -> Result<Bounds, String> {
        let statement = self.statement().ok_or("no data")?;
        let (tasks, terms) = statement.conic().ok_or("not stated for the conic solver")?;
        let bracket::Bounds {
            low,
            high,
            by,
            unit,
        } = bracket::bounds(&tasks, &terms);
        let rounding = ROUNDING * low.abs().max(high.abs()) + 1e-3 * ROUNDING * unit;
        let (low, high) = (low - rounding, high + rounding);
        if low <= high {
            Ok(Bounds {
                low,
                high,
                by: by.to_string(),
            })
        } else {
            Err(format!("{low:e} > {high:e}"))
        }
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

/// Numbers of order one plainly, others by powers of ten.
fn short(value: f64) -> String {
    if (1e-3..1e6).contains(&value.abs()) || value == 0.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}

/// The page: what was claimed of each problem, and whether it is true.
pub fn page(findings: &[(&Recipe, Finding)]) -> String {
    let count = |wanted: fn(&Finding) -> bool| {
        findings
            .iter()
            .filter(|(_, finding)| wanted(finding))
            .count()
    };
    let [machines, sharings, kernels] = coverage(
        &findings
            .iter()
            .map(|(recipe, _)| (*recipe).clone())
            .collect::<Vec<Recipe>>(),
    );
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<String>>().join(", ");
    let widths: Vec<f64> = {
        let mut widths: Vec<f64> = findings
            .iter()
            .map(|(_, finding)| finding.known.width())
            .collect();
        widths.sort_by(f64::total_cmp);
        widths
    };
    let at = |tenths: usize| {
        let place = widths.len().saturating_sub(1) * tenths / 10;
        widths.get(place).copied().unwrap_or_default()
    };
    let mut text = format!(
        "# The problem library\n\n\
         {} problems, each with an interval that holds the optimum J*, stored in `crates/mtmkl-testkit/src/library/problems.jsonl` (how to make the samples, kernels, \
         machine, sharing, bounds). The bounds are closed forms, written without the product: what a feasible α proves, and the primal of each machine at weights in Ψ. \
         α and θ are those of a conic solver (Clarabel), and of cutting planes where its bounds are far apart; neither need be believed for that. Half of the intervals are narrower than {:.0e} of J*, nine of ten than {:.0e}; where J* is 0 there is no relative width.\n\n\
         ```sh\ncargo xtask library\n```\n\n\
         - **true**: {} of {}: the claimed interval [bound, objective] meets the stored one, and a fit that says it converged is within {TOLERANCE:.0e} of it.\n\
         - **solved** to {TOLERANCE:.0e}: {} of {}.\n\n\
         Machines: {}. Sharings: {}. Kernels: {}.\n\n",
        findings.len(),
        at(5),
        at(9),
        count(Finding::is_true),
        findings.len(),
        count(Finding::is_solved),
        findings.len(),
        list(&machines),
        list(&sharings),
        list(&kernels),
    );
    let unsolved: Vec<&(&Recipe, Finding)> = findings
        .iter()
        .filter(|(_, finding)| !finding.is_solved())
        .collect();
    if !unsolved.is_empty() {
        text += "## Not solved\n\n";
        for (recipe, finding) in unsolved {
            let ended = finding.status.as_ref().map_or_else(Clone::clone, |status| {
                format!("{} at a gap of {:.1e}", status.name(), finding.gap)
            });
            let verdict = if finding.is_true() {
                ""
            } else {
                ", and what it claims is FALSE"
            };
            let note = recipe
                .note
                .as_deref()
                .map_or(String::new(), |note| format!(". {note}"));
            text += &format!("- {}: {ended}{verdict}{note}\n", finding.name);
        }
        text += "\n";
    }
    text += "## Each problem\n\nT tasks, M kernels, n samples over all tasks; width: of the stored interval, relative; gap: as claimed.\n\n\
             | problem | machine | sharing | T | M | n | J* | width | status | true | gap | passes | seconds |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (recipe, finding) in findings {
        let [tasks, kernels, samples] = finding.size;
        text += &format!(
            "| {} | {} | {} | {tasks} | {kernels} | {samples} | {} | {:.0e} | {} | {} | {:.0e} | {} | {:.3} |\n",
            finding.name,
            recipe.machine.name(),
            recipe.sharing.name(),
            short(0.5 * (finding.known.low + finding.known.high)),
            finding.known.width(),
            finding
                .status
                .as_ref()
                .map_or("refused", |status| status.name()),
            if finding.is_true() { "yes" } else { "NO" },
            finding.gap,
            finding.passes,
            finding.seconds,
        );
    }
    text
}

impl Bounds {
    /// (high − low) / |J*|
    pub fn width(&self) -> f64 {
        (self.high - self.low) / self.high.abs().max(self.low.abs()).max(f64::MIN_POSITIVE)
    }
}
