//! Settings that make other Gram matrices or weigh rows anew: scaling, normalisation, class weights, what tasks are to each other. Each is searched by itself.

use anyhow::{Result, bail};
use mtmkl::Normalization;
use mtmkl::select::Metric;
use mtmkl::task_kernel::{ALL, GROUP, OWN};
use mtmkl_table::{Goal, Scaling};

use super::Tune;
use crate::args::FitArgs;
use crate::choices::unknown;
use crate::commands::fit::settle_groups;

/// The names that `--grid` knows beside those of parameters.
pub(super) const NAMES: [&str; 4] = ["scale", "normalize", "class-weight", TASKS];

/// What tasks are to each other.
const TASKS: &str = "tasks";
/// What that may be.
const WAYS: [&str; 5] = ["weights", "separate", "pooled", "transfer", "hierarchy"];

/// Flags of `fit` and their values; none are the flags as given.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Variant(Vec<(String, String)>);

impl Variant {
    /// The same with one more flag.
    pub(super) fn with(&self, flag: &str, value: &str) -> Self {
        let mut flags = self.0.clone();
        flags.push((flag.to_string(), value.to_string()));
        Self(flags)
    }

    /// Every combination of the values of some flags.
    pub(super) fn all(axes: &[(String, Vec<String>)]) -> Vec<Self> {
        let mut all = vec![Self::default()];
        for (flag, values) in axes {
            let with = |one: &Self| values.iter().map(|value| one.with(flag, value)).collect();
            all = all
                .iter()
                .flat_map(|one| -> Vec<Self> { with(one) })
                .collect();
        }
        all
    }

    pub(super) fn flags(&self) -> &[(String, String)] {
        &self.0
    }

    /// Writes the flags where `fit` would find them.
    ///
    /// # Errors
    /// When a value is none that the flag has.
    pub(super) fn set(&self, args: &mut FitArgs) -> Result<()> {
        for (flag, value) in &self.0 {
            match flag.as_str() {
                "scale" => {
                    let found = Scaling::WORDS.iter().find(|known| known.1 == value);
                    let known = Scaling::WORDS.map(|known| known.1);
                    args.scale = Some(found.ok_or_else(|| unknown("scale", value, &known))?.0);
                }
                "normalize" => {
                    let known = ["unit", "variance", "none"];
                    let found = Normalization::of_word(value);
                    args.normalize =
                        Some(found.ok_or_else(|| unknown("normalize", value, &known))?);
                }
                TASKS => relate(args, value)?,
                _ => match value.as_str() {
                    "none" => args.class_weight = None,
                    "balanced" => args.class_weight = Some(value.clone()),
                    _ => bail!(
                        "--grid class-weight: found `{value}`, expected none or balanced; other weights are for --class-weight"
                    ),
                },
            }
        }
        Ok(())
    }
}

/// Whether flags say which groups tasks are in.
fn has_groups(args: &FitArgs) -> bool {
    args.tree.is_some() || args.task_groups.is_some() || !args.tree_columns.is_empty()
}

/// Makes tasks share weights, nothing, everything, predictors, or weights in their groups.
fn relate(args: &mut FitArgs, way: &str) -> Result<()> {
    if args.task.is_none() {
        bail!("--grid {TASKS}={way} is about tasks; name their column with --task COLUMN");
    }
    if way == "hierarchy" && !has_groups(args) {
        bail!(
            "--grid {TASKS}={way} needs groups of tasks: --task-groups, --tree or --tree-columns"
        );
    }
    settle_groups(args);
    args.sharing = None;
    args.transfer.clear();
    match way {
        "hierarchy" => return Ok(()),
        "transfer" => {
            let words = [Some(ALL), has_groups(args).then_some(GROUP), Some(OWN)];
            args.transfer = words.into_iter().flatten().map(String::from).collect();
            return Ok(());
        }
        "pooled" => {
            args.transfer = vec![ALL.to_string()];
            args.no_task_offset = true;
        }
        "separate" => args.sharing = Some("independent".to_string()),
        "weights" => {}
        _ => return Err(unknown("way between tasks", way, &WAYS)),
    }
    // Groups say nothing there, and their columns are no features.
    (args.tree, args.task_groups) = (None, None);
    let columns = std::mem::take(&mut args.tree_columns);
    args.ignore.extend(columns);
    Ok(())
}

/// What the usual search compares where there are tasks, and no flag says what they are to each other.
pub(super) fn of_tasks(args: &FitArgs) -> Vec<Variant> {
    let is_said = args.sharing.is_some() || crate::transfer::is_said_by_flags(args);
    if args.task.is_none() || is_said {
        return vec![Variant::default()];
    }
    let ways = WAYS
        .iter()
        .filter(|way| **way != "hierarchy" || has_groups(args));
    ways.map(|way| Variant::default().with(TASKS, way))
        .collect()
}

/// What the usual search tries on the winner, where no flag says it: the scalings that it was not found with, and weights that balance classes where the metric
/// counts them alike.
pub(super) fn usual(args: &FitArgs, tune: &Tune) -> Vec<(&'static str, Vec<&'static str>)> {
    let frame = &tune.fit.frame;
    let mut tried = Vec::new();
    let is_computed = |spec: &String| !spec.starts_with("precomputed");
    if args.scale.is_none()
        && tune.scaling == Scaling::Standard
        && !frame.features.is_empty()
        && args.kernel.iter().all(is_computed)
    {
        tried.push(("scale", vec!["minmax", "none"]));
    }
    let is_even = matches!(tune.metric, Metric::BalancedAccuracy | Metric::F1);
    let has_classes = matches!(frame.goal, Goal::Binary { .. } | Goal::Multiclass { .. });
    if is_even && has_classes && args.class_weight.is_none() {
        tried.push(("class-weight", vec!["balanced"]));
    }
    tried
}
