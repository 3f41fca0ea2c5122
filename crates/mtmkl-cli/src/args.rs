//! The command line: names, flags and defaults. The same names stand in configuration files.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "these comments are help texts: brackets in them mark what may be left out"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use mtmkl::machine::TargetKind;
use mtmkl::select::USUAL_TARGET_SCALE;
use mtmkl::{Normalization, Registry, TargetScale};
use mtmkl_table::{Missing, Multiclass, Scaling};
use serde::Serialize;

use crate::parameters::{self, Settings};
use crate::words::listing;

/// What a new user may want to do first.
const FIT_EXAMPLES: &str = "\
Examples:
  mtmkl fit iris.csv --target species --test-fraction 0.3
  mtmkl fit sites.csv --target fault --task site --kernel linear --kernel 'rbf:sigma=median*0.5|1|2@f1..f9' -o sites.mtmkl
  mtmkl fit names.csv --target y --kernel precomputed:path=k1.npy --kernel precomputed:path=k2.npy
  mtmkl fit data.csv --config run.toml --C 10

Exit codes: 0 converged, 1 not converged (the best model is still written), 2 error.";

/// What a new user may want to choose first.
const TUNE_EXAMPLES: &str = "\
Examples:
  mtmkl tune iris.csv --target species -o iris.mtmkl
  mtmkl tune sites.csv --target fault --task site --grid C=1/9,1/3,1,3,9 --grid q=1,1.5,2 --grid sharing=pscs,common --picture grid.svg
  mtmkl tune data.csv --target y --kernel-set linear --kernel-set 'linear;rbf:sigma=1|2|4' --validation-fraction 0.3 --repeats 5

Without --grid and --kernel-set this is the recommended way to a model: C (or lambda), each kernel alone, their average and learned weights are
tried, few folds first, and more than two classes are told apart by pairs. What a flag says is not searched for.
Each finished fit is kept in the journal at once: after Ctrl-C or worse, the same command with --resume goes on from there.
Columns are scaled (--scale) by all rows that the settings are chosen on, since all folds share one set of kernel matrices; no target is
seen by that. --nested makes all of it anew in each outer fold.
Exit codes: 0 converged, 1 not converged or interrupted, 2 error.";

/// Multi-task multiple kernel learning: which kernels matter for which task, what the tasks share, and a proof of how good the
/// answer is.
#[derive(Debug, Parser)]
#[command(
    name = "mtmkl",
    version,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line with the flags and names of all entries.
    ///
    /// # Errors
    /// When a flag of an entry is taken.
    pub fn command_with(registry: &Registry) -> Result<clap::Command> {
        let mut program = Self::command();
        for name in ["fit", "tune"] {
            let Some(command) = program.find_subcommand(name).cloned() else {
                continue;
            };
            let command = parameters::with_flags(command, registry)?;
            let mut command = parameters::with_names(command, registry);
            if name == "tune" {
                command = tune_names(command, registry);
            }
            program = program.mut_subcommand(name, |_| command);
        }
        Ok(program)
    }

    /// What a command line says.
    ///
    /// # Errors
    /// As clap finds them.
    pub fn read(
        program: clap::Command,
        registry: &Registry,
        arguments: &[OsString],
    ) -> std::result::Result<Self, clap::Error> {
        let mut matches = program.try_get_matches_from(arguments)?;
        let settings = matches
            .subcommand()
            .filter(|(name, _)| matches!(*name, "fit" | "tune"))
            .map(|(_, own)| (Settings::read(registry, own), Said::read(own)));
        let mut cli = Self::from_arg_matches_mut(&mut matches)?;
        let fit = match &mut cli.command {
            Command::Fit(fit) => Some(&mut **fit),
            Command::Tune(tune) => Some(&mut tune.fit),
            _ => None,
        };
        if let (Some(fit), Some((settings, said))) = (fit, settings) {
            (fit.parameters, fit.said) = (settings, said);
            fit.registry = registry.clone();
        }
        Ok(cli)
    }
}

/// What can be tried, by name.
fn tune_names(command: clap::Command, registry: &Registry) -> clap::Command {
    let mut tried: Vec<String> = Vec::new();
    for (_, parameter) in registry.parameters() {
        if !parameter.grid.is_empty() && !tried.contains(&parameter.flag()) {
            tried.push(parameter.flag());
        }
    }
    let tried: Vec<&str> = tried.iter().map(String::as_str).collect();
    let grid = format!(
        "Values to try, NAME=VALUE,VALUE,… (repeatable; fractions such as 1/27 may be written). Names: {}, sharing. What is not in the grid \
         is as for fit. Without a grid: {} over a wide range, each kernel alone, the average of all, and learned weights with p = 1, 2 and 4, \
         in rounds",
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

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The Iris case study of the paper: weights, certificate, picture of the decision boundaries, report.html
    Demo(DemoArgs),
    /// Learn kernel weights and machines from a table, and save them as a model
    #[command(allow_negative_numbers = true, after_help = FIT_EXAMPLES)]
    Fit(Box<FitArgs>),
    /// Choose settings by cross-validation or on a validation split, then fit with them: the recommended way to a model
    #[command(allow_negative_numbers = true, after_help = TUNE_EXAMPLES)]
    Tune(Box<TuneArgs>),
    /// Predict for new rows
    Predict(PredictArgs),
    /// Score a model on rows with known targets
    Evaluate(EvaluateArgs),
    /// Show what is in a model: weights, certificate, settings
    Inspect(InspectArgs),
    /// Write a model's report as one HTML page
    Report(ReportArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, of the program or of one of its commands
    Man {
        /// The command, e.g. fit
        command: Option<String>,
    },
}

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The folder for report.html and boundaries.svg; one that is made for them is ignored by git
    #[arg(long, short, default_value = "mtmkl-demo", value_name = "FOLDER")]
    pub output: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// How to read a table.
#[derive(Debug, Clone, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TableArgs {
    /// The file's format: csv, tsv, libsvm, parquet, npy (default: by name and content)
    #[arg(long, value_name = "FORMAT", help_heading = "Input")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The delimiter of a CSV file (default: detected)
    #[arg(long, value_name = "CHAR", help_heading = "Input")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// The first line is data; columns are called f1, f2, …
    #[arg(long, help_heading = "Input")]
    pub no_header: bool,
}

/// The words of a choice, with what each means.
pub fn words<T: Copy + Send + Sync>(
    words: &'static [(T, &'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let values = words.iter();
    let values = values.map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning));
    PossibleValuesParser::new(values).map(move |text: String| {
        let found = words.iter().find(|(_, word, _)| *word == text);
        found.unwrap_or(&words[0]).0
    })
}

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
    #[arg(long, value_parser = words(&Multiclass::WORDS), default_value = "ova", help_heading = "Data")]
    pub multiclass: Multiclass,
    /// The columns to learn from, as names and ranges a,b,f1..f9 (default: all others)
    #[arg(long, value_name = "COLUMNS", help_heading = "Data")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<String>,
    /// A column to leave out (repeatable)
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// A text column to turn into one 0/1 column per value (repeatable)
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
    /// GiB that kernel matrices may take; over it, their values are made on demand
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
    /// The metric that counts, and that tune chooses by; the usual ones stand beside it: accuracy, balanced-accuracy, F1, AUC or average-precision for classes, R2, RMSE or MAE for numbers (default: accuracy, R2)
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
    fn read(matches: &clap::ArgMatches) -> Self {
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
    /// What the machine learns from.
    pub fn targets(&self) -> TargetKind {
        let machine = self.registry.machine(&self.machine);
        machine.map_or(TargetKind::Labels, |entry| entry.targets)
    }
}

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
    /// A set of kernels to try in place of --kernel, SPEC;SPEC;… (repeatable)
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

/// A model and the rows to apply it to.
#[derive(Debug, Clone, Args)]
pub struct NewRowsArgs {
    /// The model file that fit wrote
    pub model: PathBuf,
    /// The new rows (`-` for standard input)
    pub data: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub table: TableArgs,
    /// The values of a precomputed kernel between the new rows and all rows of the training table, NAME=FILE (repeatable): NPY,
    /// CSV, or NPZ with a second array `own` of the values k(x, x)
    #[arg(long, value_name = "NAME=FILE")]
    pub cross: Vec<String>,
    /// Predict for tasks that the model never saw, from the common part of the weights
    #[arg(long)]
    pub new_tasks: bool,
    /// Threads, 0 for one per core; the answer does not depend on it
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub threads: usize,
}

/// Arguments of `predict`.
#[derive(Debug, Clone, Args)]
pub struct PredictArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub rows: NewRowsArgs,
    /// Also print decision values
    #[arg(long)]
    pub decision: bool,
    /// Where to write the predictions (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object instead of CSV
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `evaluate`.
#[derive(Debug, Clone, Args)]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    "data" => arg.help("Rows with their targets (`-` for standard input)"),
    "new_tasks" => {
        arg.help("Also score tasks that the model never saw, from the common part of the weights")
    }
    _ => arg,
}))]
pub struct EvaluateArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub rows: NewRowsArgs,
    /// The target value of inliers, for one-class models
    #[arg(long, value_name = "VALUE", default_value = "1")]
    pub inlier: String,
    /// The metric that counts; the usual ones stand beside it: accuracy, balanced-accuracy, F1, AUC or average-precision for classes, R2, RMSE or MAE for numbers (default: accuracy, R2)
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// The column with the targets, where it is not called as in training
    #[arg(long, value_name = "COLUMN")]
    pub target: Option<String>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `inspect`.
#[derive(Debug, Clone, Args)]
pub struct InspectArgs {
    /// The model file that fit wrote
    pub model: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The model file that fit wrote
    pub model: PathBuf,
    /// The page to write
    #[arg(long, short, default_value = "report.html", value_name = "FILE")]
    pub output: PathBuf,
}
