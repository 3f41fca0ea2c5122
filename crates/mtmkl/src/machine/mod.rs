//! (ḡ, Ω): what is learned for one task once its kernel is fixed. One file per machine.
//!
//! Every machine here has, for K = Σ_m θ_m K_m and d_m = diag K_m, the same dual form in β = y∘α:
//!
//! ḡ(β, θ) = κ · ( q'β + c Σ_m θ_m d_m'β − ½ β'Kβ − Σ_v φ_v(β_v) ), φ convex,
//!
//! so that a machine is data, not code: its [`Dual`]. From that follow, for all of them,
//!
//! - the sensitivity s_m = −∂ḡ/∂θ_m = κ ( ½ β'K_mβ − c d_m'β ),
//! - the curvature ∂²J/∂θ_m∂θ_n = κ u_m'P u_n, with u_m = K_mβ − c d_m on the free variables and P the leading block of the
//!   inverse of [[K_FF + diag φ'', 1], [1', 0]], without the border where Σβ is not given,
//! - the inner gap, and the offset b, the multiplier of Σβ = s.
//!
//! | machine | κ | q | c | Ω in β | φ |
//! |---|---|---|---|---|---|
//! | [`Svc`] | 1 | y | 0 | β between 0 and y C, Σβ = 0 | 0 |
//! | [`Svr`] | 1 | y ∓ ε, two variables a sample | 0 | \[0, C\] and \[−C, 0\], Σβ = 0 | 0 |
//! | [`Logistic`] | 1 | 0 | 0 | β between 0 and y C, Σβ = 0 | α ln(α/C) + (C − α) ln((C − α)/C) |
//! | [`Krr`] | 2 | y | 0 | everything | ½λβ² |
//! | [`Svdd`] | 2 | 0 | ½ | \[0, C\], Σβ = 1 | 0 |
//! | [`OneClass`] | 2 | 0 | 0 | \[0, 1/(νn)\], Σβ = 1 | 0 |
//! | one's own | any | any | any | an open interval each, Σβ given or not | [`SmoothConjugate`], or any of the above |
//!
//! A sample's weight multiplies its bound (for [`Krr`] it divides ρ): a sample of weight 3 is as good as three copies of it.
//! A machine of one's own implements [`Machine`] outside of this crate. Its entry, given to a [`Registry`](crate::Registry), makes it one like these;
//! without one it is used as [`MachineSpec::own`].

mod dual;
mod krr;
mod logistic;
mod one_class;
mod spec;
mod svc;
mod svdd;
mod svr;
mod variables;

use std::fmt::Debug;

pub use dual::{Conjugate, Dual, SmoothConjugate};
pub use krr::Krr;
pub use logistic::Logistic;
pub use one_class::OneClass;
pub(crate) use spec::MACHINES;
pub use spec::{MachineEntry, MachineSpec, TargetKind};
pub use svc::Svc;
pub use svdd::Svdd;
pub use svr::Svr;
pub use variables::Variables;

use crate::data::{Targets, Task};
use crate::entry::{Parameter, Range};
use crate::error::{DataProblem, Error, Place, Result};

/// A kernel machine.
pub trait Machine: Debug + Send + Sync {
    /// The name on the command line and in files.
    fn name(&self) -> &'static str;

    /// Whether the parameters are in range and the task has what the machine needs.
    ///
    /// # Errors
    /// Names the parameter, or the task and the sample.
    fn check(&self, task: &Task, samples: usize) -> Result<()>;

    /// (ḡ, Ω) for a task that passed `check`.
    fn dual(&self, task: &Task, samples: usize) -> Dual;

    /// The decision for x from f = Σ_i β_i k(x_i, x) + b and k(x, x).
    fn decision(&self, f: f64, _own: f64) -> f64 {
        f
    }

    /// Whether `decision` looks at k(x, x).
    fn uses_own_kernel(&self) -> bool {
        false
    }

    /// What a user gets to see as the prediction: a label ±1, or a value.
    fn predict(&self, decision: f64) -> f64;

    /// What is added to a decision f so that it is ln P(+1|x)/P(−1|x), where the machine knows that: minus what its own weights of the classes
    /// put there.
    fn log_odds_shift(&self) -> Option<f64> {
        None
    }

    /// Whether every sensitivity is ≤ 0, so that a set that contains θ = 0 has only that answer.
    fn shrinks_kernels(&self) -> bool {
        false
    }
}

/// The prices of an error that a search tries.
const PRICES: &[f64] = &[1.0 / 27.0, 1.0 / 9.0, 1.0 / 3.0, 1.0, 3.0, 9.0, 27.0];

const POSITIVE_WEIGHT: Parameter = Parameter::number(
    "positive_weight",
    Range::Positive,
    "the factor of C for the second class (or for the one of a one-vs-all task)",
)
.or(1.0)
.in_python("class_weight");

const NEGATIVE_WEIGHT: Parameter = Parameter::number(
    "negative_weight",
    Range::Positive,
    "the factor of C for the other class",
)
.or(1.0)
.in_python("class_weight");

/// +1 for ≥ 0, −1 below.
fn sign(decision: f64) -> f64 {
    if decision >= 0.0 { 1.0 } else { -1.0 }
}

/// ±1 labels of both kinds.
///
/// # Errors
/// Says what is there instead.
pub fn check_labels<'a>(machine: &'static str, task: &'a Task) -> Result<&'a [f64]> {
    let Targets::Labels(labels) = &task.targets else {
        return Err(wrong_targets(machine, "±1 labels", task));
    };
    for (row, &label) in labels.iter().enumerate() {
        if label != 1.0 && label != -1.0 {
            let place = Place::TaskRow {
                task: task.name.clone(),
                row,
            };
            return Err(Error::data(place, DataProblem::Label(label)));
        }
    }
    // A sample of weight 0 does not count as a member of its class.
    let has = |wanted: f64| {
        labels
            .iter()
            .enumerate()
            .any(|(row, &label)| label == wanted && weight(task, row) > 0.0)
    };
    if !(has(1.0) && has(-1.0)) {
        let label = if has(1.0) { 1.0 } else { -1.0 };
        let problem = DataProblem::OneClass {
            label,
            samples: labels.len(),
        };
        return Err(Error::data(Place::Task(task.name.clone()), problem));
    }
    Ok(labels)
}

/// Real values to learn.
///
/// # Errors
/// Says what is there instead.
pub fn check_values(machine: &'static str, task: &Task) -> Result<()> {
    match &task.targets {
        Targets::Values(_) => Ok(()),
        _ => Err(wrong_targets(machine, "real values", task)),
    }
}

/// One-class machines take no targets.
///
/// # Errors
/// Says what is there instead.
pub fn check_unlabelled(machine: &'static str, task: &Task) -> Result<()> {
    match task.targets {
        Targets::Unlabelled => Ok(()),
        _ => Err(wrong_targets(machine, "no targets", task)),
    }
}

/// No sample of weight 0, where that is not the same as leaving it out.
///
/// # Errors
/// Names the sample.
pub fn check_positive_weights(machine: &'static str, task: &Task) -> Result<()> {
    let mut weights = task.weights.iter().flatten();
    match weights.position(|&weight| weight == 0.0) {
        Some(row) => {
            let place = Place::TaskRow {
                task: task.name.clone(),
                row,
            };
            Err(Error::data(place, DataProblem::ZeroWeight(machine)))
        }
        None => Ok(()),
    }
}

fn wrong_targets(machine: &'static str, expected: &'static str, task: &Task) -> Error {
    let problem = DataProblem::Targets {
        machine,
        expected,
        found: task.targets.kind(),
    };
    Error::data(Place::Task(task.name.clone()), problem)
}

/// The targets' numbers; empty for unlabelled tasks.
pub fn numbers(task: &Task) -> &[f64] {
    match &task.targets {
        Targets::Labels(values) | Targets::Values(values) => values,
        Targets::Unlabelled => &[],
    }
}

/// The weight of each sample, 1 where none are given; a sample without one does not count.
pub fn weight(task: &Task, row: usize) -> f64 {
    task.weights
        .as_ref()
        .map_or(1.0, |weights| weights.get(row).copied().unwrap_or_default())
}

/// y_i C w(y_i) w_i: the end of β_i for a label of ±1, with the weights of −1 and of +1.
fn signed_prices(task: &Task, c: f64, [negative, positive]: [f64; 2]) -> Vec<f64> {
    let price = |(row, label): (usize, &f64)| {
        let class = if *label > 0.0 { positive } else { negative };
        label * c * class * weight(task, row)
    };
    numbers(task).iter().enumerate().map(price).collect()
}

/// The sum of the weights: n where none are given.
fn total_weight(task: &Task, samples: usize) -> f64 {
    task.weights
        .as_ref()
        .map_or(samples as f64, |weights| weights.iter().sum())
}
