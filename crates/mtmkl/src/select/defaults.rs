//! What is used where nothing is said: the kernels, what they are divided by, and what tasks share. `docs/development/defaults.md` says on what each was
//! chosen.

use crate::data::{Samples, Task};
use crate::error::{DataProblem, Error, Result};
use crate::gram::ColumnMoments;
use crate::machine::{MachineEntry, MachineSpec, TargetKind};
use crate::problem::{Normalization, Problem, ProblemSpec, TargetScale};

/// What numbers to learn are measured in.
pub const USUAL_TARGET_SCALE: TargetScale = TargetScale::Standard;

/// A linear kernel, and Gaussian ones about as wide as samples are apart.
pub fn usual_kernels() -> Vec<String> {
    ["linear", "rbf:sigma=median*0.5|1|2"]
        .map(String::from)
        .to_vec()
}

/// The kernel of a machine without targets: one, since there is nothing to learn weights by. Half as wide as samples are apart it follows them, and
/// new ones like them are still inside; narrower ones tell strangers apart a little better, and take most new samples for strangers.
pub fn usual_kernels_without_targets() -> Vec<String> {
    vec!["rbf:sigma=median*0.5".to_string()]
}

/// The kernels of a search, which tries each alone too: widths from a quarter to four times as wide as samples are apart.
pub fn usual_kernels_to_search() -> Vec<String> {
    ["linear", "rbf:sigma=median*0.25|0.5|1|2|4"]
        .map(String::from)
        .to_vec()
}

/// A checked problem whose kernels are divided by what is said; where nothing is, by their variance. Kernels that somebody computed are divided
/// by the lengths of their samples then, and so are all where one has no variance.
///
/// # Errors
/// As [`Problem::new`].
pub fn usual_problem(
    mut spec: ProblemSpec,
    normalize: Option<Normalization>,
    sets: Vec<Samples>,
    tasks: Vec<Task>,
) -> Result<Problem> {
    let (usual, is_open) = usual_normalization(&spec, normalize);
    spec.normalize = usual;
    if !is_open {
        return Problem::new(spec, sets, tasks);
    }
    match Problem::new(spec.clone(), sets.clone(), tasks.clone()) {
        Err(error) if has_no_variance(&error) => {
            spec.normalize = Normalization::Unit;
            Problem::new(spec, sets, tasks)
        }
        made => made,
    }
}

/// The same choice without tasks: kernels as [`ProblemSpec::settled`] makes them, divided by what is said or is usual.
///
/// # Errors
/// As there.
pub fn usual_settled(
    mut spec: ProblemSpec,
    normalize: Option<Normalization>,
    sets: &[Samples],
    moments: Option<&[ColumnMoments]>,
) -> Result<ProblemSpec> {
    let (usual, is_open) = usual_normalization(&spec, normalize);
    spec.normalize = usual;
    match spec.clone().settled(sets, moments) {
        Err(error) if is_open && has_no_variance(&error) => {
            spec.normalize = Normalization::Unit;
            spec.settled(sets, moments)
        }
        made => made,
    }
}

/// What kernels are divided by at first, and whether lengths may take the place of variances.
fn usual_normalization(spec: &ProblemSpec, said: Option<Normalization>) -> (Normalization, bool) {
    let mut kernels = spec.kernels.iter();
    let is_given = kernels.any(|view| view.kernel.base().is_given());
    match said {
        Some(said) => (said, false),
        None if is_given => (Normalization::Unit, false),
        None => (Normalization::Variance, true),
    }
}

fn has_no_variance(error: &Error) -> bool {
    let Error::Data { problem, .. } = error else {
        return false;
    };
    matches!(problem, DataProblem::NoVariance | DataProblem::Overflow(_))
}

/// Which tasks there are, as far as what they share depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// One.
    One,
    /// The classes of one problem, or its pairs of classes.
    OfClasses,
    /// Several problems.
    Several,
}

impl Tasks {
    /// So many, which may be made of the classes of one problem.
    pub fn new(count: usize, of_classes: bool) -> Self {
        match count {
            0 | 1 => Self::One,
            _ if of_classes => Self::OfClasses,
            _ => Self::Several,
        }
    }
}

/// The name of the sharing that suits a machine and its tasks: nothing is shared by one task, classes of one problem have the same weights, and
/// a machine that shrinks kernels needs weights of a fixed mass. Without targets there is nothing to learn weights by: the kernel with the smallest sphere is the flattest or the
/// narrowest, whatever the samples are, so all kernels count alike.
pub fn usual_sharing(machine: &MachineSpec, tasks: Tasks) -> &'static str {
    let is_unlabelled = |entry: &MachineEntry| entry.targets == TargetKind::Unlabelled;
    match tasks {
        _ if machine.entry().is_some_and(is_unlabelled) => "uniform",
        _ if machine.build().shrinks_kernels() => "simplex",
        Tasks::One => "lp",
        Tasks::OfClasses => "common",
        Tasks::Several => "pscs",
    }
}
