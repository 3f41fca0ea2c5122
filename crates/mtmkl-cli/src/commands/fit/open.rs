//! From the flags and a file to the samples and tasks to learn from.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::TaskTree;
use mtmkl::ledger::{Guard, Ledger};
use mtmkl::machine::TargetKind;
use mtmkl::select::{Fold, Tasks, usual_kernels_without_targets};
use mtmkl_table::words::{quoted, size};
use mtmkl_table::{
    Aim, ClassWeight, Dataset, Equals, Frame, Goal, Grams, Multiclass, Plan, Records, Scaling,
    Table, sample, split, usual_scaling,
};

use super::grams::read_grams;
use super::tree;
use crate::args::{FitArgs, TableArgs};
use crate::input::{self, Delimiter, Format, TableOptions};
use crate::words::count;
use crate::{choices, output};

/// Everything around one fit.
pub(in crate::commands) struct Fit {
    pub(in crate::commands) table: Table,
    pub(in crate::commands) frame: Frame,
    pub(in crate::commands) records: Records,
    pub(in crate::commands) train: Vec<usize>,
    pub(super) test: Vec<usize>,
    pub(in crate::commands) grams: Grams,
    /// The groups of tasks that a file has.
    pub(super) tree: Option<TaskTree>,
    /// What an error costs, by class.
    class_weight: Option<ClassWeight>,
    /// The flags as given, as TOML.
    pub(in crate::commands) settings: String,
    /// The account of memory, and what the tables take of it.
    pub(in crate::commands) ledger: Ledger,
    _held: Vec<Guard>,
}

/// Samples and tasks, and what they take of the account of memory.
pub(in crate::commands) struct Sets {
    pub(in crate::commands) dataset: Dataset,
    pub(super) _held: Vec<Guard>,
}

/// The account of memory with the flag's limit.
fn ledger_of(args: &FitArgs) -> Result<Ledger> {
    if args.memory_limit.is_nan() || args.memory_limit <= 0.0 {
        bail!(
            "--memory-limit is {}, expected a number of GiB > 0",
            args.memory_limit
        );
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes; a float's range saturates"
    )]
    let limit = (args.memory_limit * f64::from(1 << 30)) as u64;
    // What the system would refuse half-way is refused beforehand, with the way out.
    let most = address_space().map_or(Ok(u64::MAX), |bytes| share_of(bytes, args.threads))?;
    Ok(Ledger::new(limit.min(most)))
}

/// Addresses that the C library reserves for the memory of a thread, of which next to nothing is used here.
const OF_A_THREAD: u64 = 64 << 20;
/// With less than this the smallest fit may be refused memory where nothing can be said any more: the allocator ends the program.
const LEAST: u64 = 16 << 20;

/// The part of an address space that is for what is learned from. As much is for tables and the program.
fn share_of(bytes: u64, threads: usize) -> Result<u64> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        given => given,
    };
    let reserved = (threads as u64).saturating_mul(OF_A_THREAD);
    let share = bytes.saturating_sub(reserved) / 2;
    if share < LEAST {
        bail!(
            "the system lets the program have {} of addresses (ulimit -v), too little for {}: {} is the least; raise it, or use fewer --threads",
            size(bytes),
            count(threads, "thread", "threads"),
            size(reserved.saturating_add(2 * LEAST)),
        );
    }
    Ok(share)
}

/// The bytes that the system lets the program have (`ulimit -v`), where it says so and there is such a limit.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the flags ask of a table to learn from.
fn plan_of(args: &FitArgs, computed: bool) -> Plan<'_> {
    Plan {
        target: args.target.as_deref(),
        task: args.task.as_deref(),
        weight: args.sample_weight.as_deref(),
        id: args.id.as_deref(),
        groups: &args.tree_columns,
        ignore: &args.ignore,
        features: args.features.as_deref(),
        one_hot: &args.one_hot,
        missing: args.missing,
        aim: match args.targets() {
            TargetKind::Unlabelled => Aim::Inside,
            TargetKind::Values => Aim::Numbers,
            TargetKind::Labels => Aim::Classes(args.multiclass),
        },
        is_sure: args.said.machine,
        computed,
    }
}

/// Says on standard error which columns became categories unasked, and which seem to count the rows only.
fn note_columns(args: &FitArgs, table: &Table, frame: &Frame) {
    let categories = frame.categories();
    let unasked: Vec<String> = (categories.iter())
        .filter(|(name, _)| !args.one_hot.iter().any(|asked| asked == *name))
        .map(|(name, values)| format!("`{name}` ({})", values.len()))
        .collect();
    if !unasked.is_empty() {
        let task = if args.task.is_none() {
            "; if one of them says which task a row belongs to, name it by --task"
        } else {
            ""
        };
        output::note_once(&format!(
            "note: {}: text with few different values is taken for categories, a 0/1 column for each value: {}; --ignore COLUMN leaves one out{task}",
            table.source,
            unasked.join(", ")
        ));
    }
    // Alone it is there to be learned from.
    let counting = (frame.features.iter())
        .filter(|feature| feature.category.is_none() && table.counts_rows(&feature.column))
        .map(|feature| &feature.column)
        .filter(|_| frame.features.len() > 1);
    for name in counting {
        output::note_once(&format!(
            "warning: {}: column `{name}` numbers the rows, each with a number of its own, and is learned from like any other; `--ignore {}` leaves it out",
            table.source,
            quoted(name)
        ));
    }
}

/// That there is memory for the targets of a machine for each class, or each pair of classes.
fn check_machines(table: &Table, frame: &Frame, ledger: &Ledger) -> Result<()> {
    let Goal::Multiclass {
        classes, scheme, ..
    } = &frame.goal
    else {
        return Ok(());
    };
    if frame.task.is_some() {
        return Ok(());
    }
    let (machines, remedy) = match scheme {
        Multiclass::Ovo => (
            classes.len() * (classes.len() - 1) / 2,
            "--multiclass ova takes one for each class, ",
        ),
        Multiclass::Ova => (classes.len(), ""),
    };
    let needed = (machines * table.rows * size_of::<f64>()) as u64;
    if needed <= ledger.left() {
        return Ok(());
    }
    bail!(
        "{}: {machines} machines for the {} classes of the target take {} before anything is learned, over the limit of {}; {remedy}--memory-limit (GiB) \
         raises the limit",
        table.source,
        classes.len(),
        size(needed),
        size(ledger.left())
    )
}

/// The weights of classes, by the flag.
fn class_weight_of(args: &FitArgs, frame: &Frame) -> Result<Option<ClassWeight>> {
    let Some(text) = &args.class_weight else {
        return Ok(None);
    };
    let classes = frame.goal.classes();
    if classes.is_empty() {
        bail!(
            "--class-weight {text}: machine {} knows no classes; leave it out, or take --sample-weight COLUMN",
            args.machine
        );
    }
    let weight: ClassWeight = text
        .parse()
        .map_err(|problem: String| anyhow::anyhow!("--class-weight {text}: {problem}"))?;
    weight
        .check(classes)
        .with_context(|| format!("--class-weight {text}"))?;
    Ok(Some(weight))
}

/// How the flags say that a table is read, its columns of `text` as such.
///
/// # Errors
/// When a word is not known.
pub(in crate::commands) fn table_options(
    args: &TableArgs,
    text: &[&str],
    limit: Option<u64>,
) -> Result<(Option<Format>, TableOptions)> {
    let format: Option<Format> = args
        .format
        .as_deref()
        .map(|name| {
            name.parse()
                .map_err(|problem: String| anyhow::anyhow!("--format {name}: {problem}"))
        })
        .transpose()?;
    let delimiter: Option<Delimiter> = args
        .delimiter
        .as_deref()
        .map(|name| {
            name.parse()
                .map_err(|problem: String| anyhow::anyhow!("--delimiter {name}: {problem}"))
        })
        .transpose()?;
    let options = TableOptions {
        delimiter,
        header: !args.no_header,
        text: text.iter().map(ToString::to_string).collect(),
        only: None,
        limit: limit.unwrap_or(TableOptions::default().limit),
    };
    Ok((format, options))
}

/// Reads a table as the flags say, of at most `limit` bytes where the default will not do.
///
/// # Errors
/// Names the file, the place in it and the way out.
pub(in crate::commands) fn read_table(
    path: &Path,
    args: &TableArgs,
    text: &[&str],
    limit: Option<u64>,
) -> Result<Table> {
    let (format, options) = table_options(args, text, limit)?;
    let table = input::read_table(path, format, &options)?;
    note_skipped(&table);
    Ok(table)
}

/// Says on standard error which columns are left out.
pub(in crate::commands) fn note_skipped(table: &Table) {
    for skipped in &table.skipped {
        output::note(&format!(
            "note: {}: column `{}` is left out: {}",
            table.source, skipped.name, skipped.reason
        ));
    }
}

/// Says on standard error how many rows are not used, and which are used without one of their values.
///
/// # Errors
/// When a column is not there.
pub(in crate::commands) fn note_rows(
    frame: &Frame,
    table: &Table,
    records: &Records,
) -> Result<()> {
    let mut rows = RowNotes::default();
    rows.add(frame, table, records)?;
    rows.say(&table.source);
    Ok(())
}

/// What is said of the rows of a table, which may come in parts.
#[derive(Debug, Default)]
pub(in crate::commands) struct RowNotes {
    /// Of each one-hot column, how many rows have a value that was never learned from, and the first of them.
    strange: BTreeMap<String, (usize, String)>,
    dropped: usize,
}

impl RowNotes {
    /// Adds a part.
    ///
    /// # Errors
    /// When a column is not there.
    pub(in crate::commands) fn add(
        &mut self,
        frame: &Frame,
        table: &Table,
        records: &Records,
    ) -> Result<()> {
        for (column, rows, value) in frame.strange_values(table)? {
            self.strange.entry(column).or_insert((0, value)).0 += rows;
        }
        self.dropped += table.rows - records.count();
        Ok(())
    }

    /// Says it on standard error.
    pub(in crate::commands) fn say(&self, source: &str) {
        for (column, (rows, value)) in &self.strange {
            output::note(&format!(
                "note: {source}: {} in column `{column}` that the model never saw, such as `{value}`; it is taken for none of those it knows",
                count(*rows, "row has a value", "rows have values"),
            ));
        }
        if self.dropped > 0 {
            output::note(&format!(
                "note: {source}: {} left out",
                count(
                    self.dropped,
                    "row with missing values is",
                    "rows with missing values are"
                )
            ));
        }
    }
}

/// How columns are scaled.
pub(in crate::commands) fn scaling_of(args: &FitArgs) -> Result<Scaling> {
    Ok(match args.scale {
        Some(said) => said,
        None => usual_scaling(&choices::kernels(&args.registry, &args.kernel)?),
    })
}

impl Fit {
    /// What so many tasks of the core are.
    pub(in crate::commands) fn tasks(&self, count: usize) -> Tasks {
        Tasks::new(count, self.frame.goal.is_by_class())
    }

    /// Reads and checks everything that a command with the flags of `fit` learns from.
    pub(in crate::commands) fn open(args: &mut FitArgs, command: &str) -> Result<Self> {
        let data = args.data.clone().with_context(|| {
            format!("which table? Give its path: mtmkl {command} DATA --target COLUMN")
        })?;
        // What the columns are depends on it.
        choices::machine(args)?;
        if args.probability && args.targets() != TargetKind::Labels {
            bail!(
                "--probability is about classes, which machine {} does not tell apart",
                args.machine
            );
        }
        if !args.said.kernels && args.targets() == TargetKind::Unlabelled {
            args.kernel = usual_kernels_without_targets();
        }
        args.output
            .iter()
            .chain(&args.report)
            .try_for_each(|path| output::check_place(path))?;
        output::check_apart(
            &[
                ("the table to learn from", Some(&data)),
                ("the table of --test", args.test.as_deref()),
                ("the file of --tree", args.tree.as_deref()),
                ("the file of --task-groups", args.task_groups.as_deref()),
                (
                    "the file of --task-similarity",
                    args.task_similarity.as_deref(),
                ),
                ("the file of --config", args.config.as_deref()),
            ],
            &[
                ("-o", args.output.as_deref()),
                ("--report", args.report.as_deref()),
            ],
        )?;
        let tree = tree::read(args)?;
        let ledger = ledger_of(args)?;
        let table = read_table(
            &data,
            &args.table,
            &plan_of(args, true).names(),
            Some(ledger.left()),
        )?;
        let mut held = vec![ledger.take(table.bytes())];
        if table.absent_is_zero && args.target.is_none() {
            // The format has one place for it, and one name.
            args.target = Some("label".to_string());
        }
        let settings = toml::to_string(&args)?;
        let grams = read_grams(args, &table, &ledger, &mut held)?;
        let computed = args
            .kernel
            .iter()
            .any(|spec| !spec.starts_with("precomputed:"));
        if computed && table.precomputed.is_some() {
            bail!(
                "{0} holds kernel values, not features (its rows begin with 0:i); use them with --kernel precomputed:path={0}",
                table.source
            );
        }
        let frame = Frame::new(&table, &plan_of(args, computed))?;
        note_columns(args, &table, &frame);
        check_machines(&table, &frame, &ledger)?;
        let class_weight = class_weight_of(args, &frame)?;
        let records = frame.records(&table, true, args.sample_weight.as_deref(), &[])?;
        note_rows(&frame, &table, &records)?;
        let records = match args.sample {
            Some(count) => records.select(&sample(&frame, &records, count, args.seed)?),
            None => records,
        };
        let (train, test) = match args.test_fraction {
            Some(share) => split(&frame, &records, share, args.seed)?,
            None => ((0..records.count()).collect(), Vec::new()),
        };
        if let Some(share) = args.test_fraction.filter(|_| test.is_empty()) {
            output::note(&format!(
                "note: --test-fraction {share} holds nothing back: each class of each task has one row, which is learned from"
            ));
        }
        let mut fit = Self {
            table,
            frame,
            records,
            train,
            test,
            grams,
            tree,
            class_weight,
            settings,
            ledger,
            _held: held,
        };
        fit.learn_columns(args)?;
        fit.note_sparse(args)?;
        Ok(fit)
    }

    /// Says that columns are scaled and not centred, where zeros stay zeros for the sake of memory.
    fn note_sparse(&self, args: &FitArgs) -> Result<()> {
        if scaling_of(args)? != Scaling::None && self.frame.is_mostly_zero(&self.table)? {
            output::note(&format!(
                "note: at most a tenth of the {} × {} cells are other than zero, so rows are kept without zeros: columns are scaled, but not \
                 centred, in training and in prediction",
                self.table.rows,
                self.frame.features.len()
            ));
        }
        Ok(())
    }

    /// Learns what fills gaps, how columns are scaled and which classes each task has, from the rows to learn from.
    fn learn_columns(&mut self, args: &FitArgs) -> Result<()> {
        let scale = scaling_of(args)?;
        let (records, train) = (&self.records, &self.train);
        let positions: Vec<usize> = train.iter().map(|&row| records.positions[row]).collect();
        let weights = records.weights.as_ref();
        let weights: Option<Vec<f64>> =
            weights.map(|weights| train.iter().map(|&row| weights[row]).collect());
        let transfer = self.transfer(args)?;
        let (frame, table) = (&mut self.frame, &self.table);
        frame.transfer = transfer;
        frame.learn_classes(records, train);
        Ok(frame.learn(table, &positions, weights.as_deref(), args.missing, scale)?)
    }

    /// The same table with other rows to learn from and to score on; what is learned of its columns is learned anew.
    pub(in crate::commands) fn on_rows(
        mut self,
        args: &FitArgs,
        train: Vec<usize>,
        test: Vec<usize>,
    ) -> Result<Self> {
        (self.train, self.test) = (train, test);
        self.learn_columns(args)?;
        Ok(self)
    }

    /// The samples and tasks to learn from.
    pub(in crate::commands) fn sets(&self, equals: Equals) -> Result<Sets> {
        let dataset = self.dataset(&self.frame, &self.records, &self.train, equals)?;
        let bytes = dataset.bytes_of_rows() + dataset.bytes_of_copies(&self.grams);
        Ok(Sets {
            dataset,
            _held: vec![self.ledger.take(bytes)],
        })
    }

    /// Samples and tasks from some of the records, with the weights of classes; `frame` and `records` may leave the tasks out.
    pub(super) fn dataset(
        &self,
        frame: &Frame,
        records: &Records,
        chosen: &[usize],
        equals: Equals,
    ) -> Result<Dataset> {
        let limit = self.ledger.left();
        let (table, grams) = (&self.table, &self.grams);
        let mut dataset = Dataset::new(frame, table, records, chosen, grams, equals, limit)?;
        if let Some(weight) = &self.class_weight {
            let weights = dataset.class_weights(frame, records, weight, None)?;
            dataset.weigh(&weights);
        }
        Ok(dataset)
    }

    /// The weights of rows in each fold, by sample set, where they depend on it: classes are balanced by the rows that it learns from.
    pub(in crate::commands) fn fold_weights(
        &self,
        dataset: &Dataset,
        folds: &[Fold],
    ) -> Result<Option<Vec<Vec<Vec<f64>>>>> {
        let Some(weight) = &self.class_weight else {
            return Ok(None);
        };
        let of = |fold: &Fold| {
            dataset.class_weights(&self.frame, &self.records, weight, Some(&fold.learn))
        };
        let weights = folds.iter().map(of).collect::<mtmkl_table::Result<_>>()?;
        Ok(Some(weights))
    }
}
