//! Settings that make other Gram matrices or weigh rows anew: scaling, normalisation, class weights. Each is searched by itself.

use anyhow::{Result, bail};
use mtmkl::Normalization;
use mtmkl::select::Metric;
use mtmkl_table::{Goal, Scaling};

use super::Tune;
use crate::args::FitArgs;
use crate::choices::unknown;

/// The names that `--grid` knows beside those of parameters.
pub(super) const NAMES: [&str; 3] = ["scale", "normalize", "class-weight"];

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
