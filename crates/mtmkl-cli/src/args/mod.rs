//! The command line: names, flags and defaults. The same names stand in configuration files.
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "these comments are help texts: brackets in them mark what may be left out"
)]

mod fit;
mod tune;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use mtmkl::Registry;
use serde::Serialize;

pub use self::fit::{FitArgs, Said};
pub use self::tune::TuneArgs;
use self::tune::tune_names;
use crate::parameters::{self, Settings};

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

/// How `verify` ends.
const VERIFY_EXIT: &str = "\
Exit codes: 0 every claim of the model holds, 1 one does not (it is named), 2 error, such as other data than those of the fit.";

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
    /// Check a model's certificate from the table it was fitted on: objective, bound and gap are computed anew, by nothing of what solved it
    #[command(after_help = VERIFY_EXIT)]
    Verify(VerifyArgs),
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
    /// Also print the probability of each class (of models fitted with --probability or --machine logistic)
    #[arg(long)]
    pub probability: bool,
    /// Where to write the predictions (default: standard output)
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print one JSON object instead of CSV, where a name that a spreadsheet would run as a formula begins with '
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
    /// The metric that counts; the usual ones stand beside it: accuracy, balanced-accuracy, F1, AUC or average-precision for classes (log-loss or Brier where the model has probabilities), R2, RMSE or MAE for numbers (default: accuracy, R2)
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

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// The model file that fit wrote
    pub model: PathBuf,
    /// The table that it was fitted on (`-` for standard input)
    pub data: PathBuf,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub table: TableArgs,
    /// Where the file of a precomputed kernel is now, under its old name (repeatable; default: where it was)
    #[arg(long, value_name = "FILE")]
    pub kernel_matrix: Vec<PathBuf>,
    /// Threads, 0 for one per core; no figure depends on it
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub threads: usize,
    /// Print one JSON object instead of text
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
