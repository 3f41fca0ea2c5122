//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use mtmkl_table::Scaling;

/// The paper's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaperTable {
    /// Kernel weights of the Iris case
    Table1,
    /// One-vs-all tasks: robot, vehicle, usps, shuttle, letter, mnist
    Table2,
    /// Tasks of their own: ocr, landmine
    Table3,
}

impl PaperTable {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table1 => "table1",
            Self::Table2 => "table2",
            Self::Table3 => "table3",
        }
    }
}

/// Repeat the paper's experiments: Table 1 (Iris), Table 2 (six data sets), Table 3 (two sets of tasks)
#[derive(Debug, Clone, Parser)]
#[command(name = "mtmkl-paper", version, max_term_width = 100)]
pub struct Arguments {
    /// Which table
    #[arg(value_enum)]
    pub table: PaperTable,
    /// The folder with the data: CSV files as this project describes them, or the files as UCI, AT&T (USPS), MNIST (IDX) and Duke
    /// (Landmine) publish them
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// The number of random draws
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub runs: usize,
    /// Training shares in per cent, e.g. 2,5,20,50 (default: the paper's for each set)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub share: Vec<f64>,
    /// Only these sets, e.g. robot,vehicle
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sets: Vec<String>,
    /// Only these methods: pscs, cs, is, tang, group, uniform, single
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub methods: Vec<String>,
    /// How features are scaled, by all rows of a set
    #[arg(long, value_parser = mtmkl_cli::args::words(&Scaling::WORDS), default_value = "minmax")]
    pub scale: Scaling,
    /// The kernels (repeatable)
    #[arg(
        long,
        value_name = "SPEC",
        default_values_t = ["linear".to_string(), "poly:degree=2,coef0=0".to_string(), "rbf:sigma=1|2|4|8|16|32|64|128".to_string()],
    )]
    pub kernel: Vec<String>,
    /// The certified relative gap of each fit
    #[arg(long, default_value_t = 1e-4, value_name = "NUMBER")]
    pub tol: f64,
    /// At most this many passes in each fit; a fit that needs more is kept as it is, and counted
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    pub max_passes: usize,
    /// Threads, 0 for one per core; the results do not depend on it
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    pub threads: usize,
    /// The seed of subsets and draws
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub seed: u64,
    /// The folder for tables, pictures and the journal
    #[arg(long, short, default_value = "reproduction", value_name = "FOLDER")]
    pub output: PathBuf,
    /// Go on with the journal in that folder
    #[arg(long)]
    pub resume: bool,
    /// Also write the table into a document, between the lines <!-- table2 --> and <!-- /table2 -->
    #[arg(long, value_name = "FILE")]
    pub into: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}
