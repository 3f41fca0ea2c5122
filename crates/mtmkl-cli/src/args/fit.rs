//! The flags of `fit`, which `tune` has too.
#![allow(
    rustdoc::broken_intra_doc_links,
    clippy::doc_link_with_quotes,
    reason = "these comments are help texts: brackets in them mark what may be left out"
)]

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::select::USUAL_TARGET_SCALE;
use mtmkl::{Normalization, Registry, TargetScale};
use mtmkl_table::{Missing, Multiclass, Scaling};
use serde::Serialize;

use super::{TableArgs, words};
use crate::parameters::Settings;

/// The word of a choice.
fn word<T: Copy + PartialEq>(
    words: &'static [(T, &'static str, &'static str)],
    wanted: T,
) -> &'static str {
    let found = words.iter().find(|(known, ..)| *known == wanted);
    found.map_or(words[0].1, |(_, word, _)| word)
}

/// The words for what kernels are divided by, and the older `true` and `false`.
fn normalizations() -> impl TypedValueParser<Value = Normalization> {
    let words = Normalization::WORDS.iter();
    let words = words.map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning));
    let older = ["true", "false"].map(|word| PossibleValue::new(word).hide(true));
    PossibleValuesParser::new(words.chain(older))
        .map(|text: String| Normalization::of_word(&text).unwrap_or_default())
}

/// Arguments of `fit`.
#[derive(Debug, Clone, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct FitArgs {
    /// The table to learn from (CSV, TSV, LIBSVM, Parquet; gzip or not; `-` for standard input)
    #[arg(value_name = "DATA")]
    #[serde(skip)]
    pub data: Option<PathBuf>,
    /// The column to predict (a LIBSVM file's is `label`)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The column that names each row's task
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How more than two classes become tasks, where there is no task column
    #[arg(long, value_parser = words(&Multiclass::WORDS), default_value = "ovo", help_heading = "Data")]
    pub multiclass: Multiclass,
    /// The columns to learn from, as names and ranges a,b,f1..f9 (default: all others)
    #[arg(long, value_name = "COLUMNS", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// A column to leave out (repeatable)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// A column to turn into one 0/1 column per value (repeatable); text with at most 20 different values is so anyway
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_hot: Vec<String>,
    /// What to do about missing values
    #[arg(long, value_parser = words(&Missing::WORDS), default_value = "error", help_heading = "Data")]
    pub missing: Missing,
    /// How to scale columns; kept in the model and applied at prediction (default: standard; none where a kernel needs values ≥ 0)
    #[arg(long, value_parser = words(&Scaling::WORDS), help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scaling>,
    /// What numbers to learn are measured in: C, lambda and epsilon are in these units
    #[arg(long, value_parser = words(&TargetScale::WORDS), default_value = word(&TargetScale::WORDS, USUAL_TARGET_SCALE), help_heading = "Data")]
    pub target_scale: TargetScale,
    /// The column that names rows, to match the row names of precomputed kernels
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A column of sample weights
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_weight: Option<String>,
    /// Factors of the price of an error by class: balanced, for n / (classes · rows of the class) in each task, or NAME=WEIGHT,…
    #[arg(long, value_name = "WEIGHTS", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_weight: Option<String>,
    /// Learn probabilities of classes too, from five folds (machine logistic has them anyway): for `predict --probability`, and metrics such as log-loss
    #[arg(long, help_heading = "Data")]
    pub probability: bool,
    /// Use so many rows only, by lot (--seed), with the mix of tasks and classes
    #[arg(long, value_name = "COUNT", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    #[command(flatten)]
    #[serde(flatten)]
    #[allow(missing_docs)]
    pub table: TableArgs,

    /// A kernel or a set of kernels
    #[arg(
        long,
        value_name = "SPEC",
        default_values_t = mtmkl::select::usual_kernels(),
        help_heading = "Kernels"
    )]
    pub kernel: Vec<String>,
    /// What kernels are divided by (default: variance; unit for precomputed ones)
    #[arg(long, value_parser = normalizations(), help_heading = "Kernels")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalization>,
    /// Allow kernels that are not positive semi-definite; the answer is then not certified
    #[arg(long, help_heading = "Kernels")]
    pub allow_indefinite: bool,

    /// The machine
    #[arg(
        long,
        default_value = "svc",
        value_name = "NAME",
        help_heading = "Machine"
    )]
    pub machine: String,
    /// What tasks share
    #[arg(long, value_name = "NAME", help_heading = "Sharing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<String>,
    /// Groups of tasks for hierarchy: a TOML or JSON file of names, groups inside groups and tasks inside these, e.g. north = { oslo = ["a", "b"], bergen = ["c"] }
    #[arg(long, value_name = "FILE", help_heading = "Sharing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree: Option<PathBuf>,
    /// The same by columns, outermost first, in which each task has one value: region,district. They are no features
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        conflicts_with = "tree",
        help_heading = "Sharing"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tree_columns: Vec<String>,
    /// The same by one column, or by groups that may overlap and leave tasks out in a TOML or JSON file, coast = ["a", "c"]
    #[arg(
        long,
        value_name = "COLUMN|FILE",
        conflicts_with_all = ["tree", "tree_columns"],
        help_heading = "Sharing"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_groups: Option<PathBuf>,
    /// Share what is learned, not only weights: one machine on all tasks learns a function that all of them share, one of each group and one of each
    /// task's own, with weights that say how much is whose. all,own or all,group,own (groups as for hierarchy), or with single kernels as in
    /// linear*all, rbf:sigma=median*own
    #[arg(
        long,
        value_name = "WORDS",
        value_delimiter = ',',
        help_heading = "Sharing"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<String>,
    /// A matrix of similarities of tasks for transfer (all,similarity): a table with a row and a column for each task, named in its first column and its header
    #[arg(long, value_name = "FILE", help_heading = "Sharing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_similarity: Option<PathBuf>,
    /// Transfer without an offset for each task
    #[arg(long, help_heading = "Sharing")]
    pub no_task_offset: bool,
    /// The flags of machines and sharings, which are made from their entries.
    #[arg(skip)]
    #[serde(flatten)]
    pub parameters: Settings,
    /// What can be named.
    #[arg(skip)]
    #[serde(skip)]
    pub registry: Registry,
    /// What was said, where a default would look the same.
    #[arg(skip)]
    #[serde(skip)]
    pub said: Said,

    /// newton or epf (the paper's Algorithm 1)
    #[arg(
        long,
        default_value = "newton",
        value_name = "NAME",
        help_heading = "Solver"
    )]
    pub solver: String,
    /// The certified relative gap to reach
    #[arg(
        long,
        default_value_t = 1e-4,
        value_name = "NUMBER",
        help_heading = "Solver"
    )]
    pub tol: f64,
    /// At most this many passes over all tasks
    #[arg(
        long,
        default_value_t = 1000,
        value_name = "COUNT",
        help_heading = "Solver"
    )]
    pub max_passes: usize,
    /// At most this many seconds
    #[arg(long, value_name = "SECONDS", help_heading = "Solver")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,
    /// Threads, 0 for one per core; the answer does not depend on it
    #[arg(
        long,
        default_value_t = 0,
        value_name = "COUNT",
        help_heading = "Solver"
    )]
    pub threads: usize,
    /// The seed of every random choice
    #[arg(
        long,
        default_value_t = 0,
        value_name = "NUMBER",
        help_heading = "Solver"
    )]
    pub seed: u64,
    /// How kernel values are kept: double, or single for faster fits, with gaps down to about 1e-6
    #[arg(
        long,
        default_value = "double",
        value_name = "NAME",
        help_heading = "Solver"
    )]
    pub precision: String,
    /// Where kernel values come from: kept (a matrix for each kernel), mapped (one for all kernels on the same columns), or streamed (from rows, on any number of them); by the memory limit where nothing is said
    #[arg(long, value_name = "NAME", help_heading = "Solver")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// GiB that a fit may take; where kernel matrices do not fit, their values are made on demand
    #[arg(
        long,
        default_value_t = 8.0,
        value_name = "GIB",
        help_heading = "Solver"
    )]
    pub memory_limit: f64,

    /// Hold back this share of the rows and score on it
    #[arg(
        long,
        value_name = "SHARE",
        conflicts_with = "test",
        help_heading = "Scores"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_fraction: Option<f64>,
    /// Score on this table
    #[arg(long, value_name = "FILE", help_heading = "Scores")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<PathBuf>,
    /// The metric that counts, and that tune and --C auto choose by; the usual ones stand beside it: accuracy, balanced-accuracy, F1, AUC or average-precision for classes (with --probability also log-loss or Brier), R2, RMSE or MAE for numbers (default: accuracy, R2)
    #[arg(long, value_name = "NAME", help_heading = "Scores")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Also fit simpler models and score them: the uniform average, the best single kernel, all tasks pooled, each task alone (default:
    /// beside held-out scores where that takes little time)
    #[arg(long, overrides_with = "no_baselines", help_heading = "Scores")]
    pub baselines: bool,
    /// Fit no simpler models
    #[arg(long, overrides_with = "baselines", help_heading = "Scores")]
    pub no_baselines: bool,

    /// Where to save the model
    #[arg(long, short, value_name = "MODEL", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Also write the report as an HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<PathBuf>,
    /// Show every pass on standard error
    #[arg(long, short, help_heading = "Output")]
    #[serde(skip)]
    pub verbose: bool,
    /// Show no progress
    #[arg(long, help_heading = "Output")]
    #[serde(skip)]
    pub quiet: bool,
    /// Read settings from a TOML file with the same names; flags win
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Print the settings in force as TOML and stop
    #[arg(long, help_heading = "Output")]
    #[serde(skip)]
    pub print_config: bool,
}

/// Which flags were given, on the command line or in a file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Said {
    /// The machine.
    pub machine: bool,
    /// Kernels, or sets of them.
    pub kernels: bool,
    /// The number of folds.
    pub folds: bool,
}

impl Said {
    pub(super) fn read(matches: &clap::ArgMatches) -> Self {
        let said = |name: &str| {
            let known = matches.ids().any(|id| id.as_str() == name);
            known && matches.value_source(name) == Some(ValueSource::CommandLine)
        };
        Self {
            machine: said("machine"),
            kernels: said("kernel") || said("kernel_set"),
            folds: said("folds"),
        }
    }
}

impl FitArgs {
    /// Whether the model is to have probabilities: because that was asked for, or because its machine has them.
    pub fn has_probabilities(&self) -> bool {
        let machine = self.registry.machine(&self.machine);
        let own = |entry| MachineSpec::of(entry, [0.0; 0]).has_probabilities();
        self.probability || machine.is_ok_and(own)
    }

    /// What the machine learns from.
    pub fn targets(&self) -> TargetKind {
        let machine = self.registry.machine(&self.machine);
        machine.map_or(TargetKind::Labels, |entry| entry.targets)
    }
}
