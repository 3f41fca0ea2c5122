//! The flags of `tune`: those of `fit`, and what to try.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "these comments are help texts: brackets in them mark what may be left out"
)]

use std::path::PathBuf;

use clap::Args;
use mtmkl::Registry;
use mtmkl::machine::TargetKind;
use serde::Serialize;

use super::FitArgs;
use crate::parameters;
use crate::words::listing;

/// Arguments of `tune`: those of `fit`, and what to try.
#[derive(Debug, Clone, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TuneArgs {
    #[command(flatten)]
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub fit: FitArgs,

    /// Values to try
    #[arg(long, value_name = "NAME=VALUES", help_heading = "Choice")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<String>,
    /// A set of kernels to try in place of --kernel, SPEC;SPEC;… or NAME=SPEC;SPEC;… (repeatable)
    #[arg(long, value_name = "SPECS", help_heading = "Choice")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel_set: Vec<String>,
    /// How many folds; each keeps the mix of tasks and classes
    #[arg(
        long,
        default_value_t = 5,
        value_name = "COUNT",
        help_heading = "Choice"
    )]
    pub folds: usize,
    /// Keep this share of the rows aside in place of folds
    #[arg(
        long,
        value_name = "SHARE",
        conflicts_with = "folds",
        help_heading = "Choice"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_fraction: Option<f64>,
    /// Make folds, or the validation split, so many times anew
    #[arg(
        long,
        default_value_t = 1,
        value_name = "COUNT",
        help_heading = "Choice"
    )]
    pub repeats: usize,
    /// A column whose equal rows stay together, e.g. the patient; it is not learned from
    #[arg(long, value_name = "COLUMN", help_heading = "Choice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Also say what the whole search is worth: repeat it in so many outer folds, everything made anew, and score on what each kept aside
    #[arg(long, value_name = "COUNT", help_heading = "Choice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested: Option<usize>,
    /// The target value of inliers
    #[arg(long, value_name = "VALUE", help_heading = "Choice")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlier: Option<String>,
    /// Where finished fits are kept (default: mtmkl-tune.journal, removed at the end)
    #[arg(long, value_name = "FILE", help_heading = "Choice")]
    #[serde(skip)]
    pub journal: Option<PathBuf>,
    /// Go on with the journal of a run that was interrupted
    #[arg(long, help_heading = "Choice")]
    #[serde(skip)]
    pub resume: bool,
    /// Draw the scores over the grid, as SVG
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub picture: Option<PathBuf>,
}

/// What can be tried, by name.
pub(super) fn tune_names(command: clap::Command, registry: &Registry) -> clap::Command {
    let mut tried: Vec<String> = Vec::new();
    for (_, parameter) in registry.parameters() {
        if !parameter.grid.is_empty() && !tried.contains(&parameter.flag()) {
            tried.push(parameter.flag());
        }
    }
    let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
    let grid = format!(
        "Values to try, NAME=VALUE,VALUE,… (repeatable; fractions such as 1/27 may be written). Names: {}, sharing, scale, normalize, class-weight (none, balanced). What is not in the grid \
         is as for fit. Without a grid: {} over a wide range, each kernel alone, the average of all, and learned weights with p = 1, 2 and 4, \
         in rounds, then other scalings of the winner",
        parameters::numbers(registry).join(", "),
        listing(&tried, "or")
    );
    let machines = registry.machines().iter();
    let unlabelled: Vec<&str> = machines
        .filter(|entry| entry.targets == TargetKind::Unlabelled)
        .map(|entry| entry.part.name)
        .collect();
    let inlier = format!(
        "The target value of inliers, for {}",
        listing(&unlabelled, "and")
    );
    command.mut_args(|argument| match argument.get_id().as_str() {
        "grid" => argument.help(grid.clone()),
        "inlier" => argument.help(inlier.clone()),
        _ => argument,
    })
}
