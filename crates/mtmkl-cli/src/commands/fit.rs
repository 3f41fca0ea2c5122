//! `mtmkl fit`: from a table to a model.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::error::{DataProblem, Place};
use mtmkl::ledger::{Guard, Ledger, bytes_of};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Definiteness, Fitting, Model, Preparation, Prepared, Problem, ProblemSpec, Stop, Storage, Task,
};
use mtmkl_table::{
    Aim, Dataset, Equals, Frame, Gram, Grams, Plan, Records, Table, keep, problem_of, split,
};
use serde_json::json;

use super::Outcome;
use crate::args::{FitArgs, TableArgs};
use crate::input::{self, Delimiter, Format, GramOptions, TableOptions};
use crate::predictor::{Asked, CrossGrams, Predictor};
use crate::progress::Progress;
use crate::score::{Score, metric, score};
use crate::words::count;
use crate::{choices, output};

/// Notes that the program keeps in a model beside those of the table.
pub mod notes {
    /// The settings as TOML.
    pub const SETTINGS: &str = "settings";
    pub use mtmkl_report::notes::{DATA, SCORES};
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
    Ok(Ledger::new(limit))
}

/// What the flags ask of a table to learn from.
fn plan_of(args: &FitArgs, computed: bool) -> Plan<'_> {
    Plan {
        target: args.target.as_deref(),
        task: args.task.as_deref(),
        weight: args.sample_weight.as_deref(),
        id: args.id.as_deref(),
        ignore: &args.ignore,
        features: args.features.as_deref(),
        one_hot: &args.one_hot,
        missing: args.missing,
        aim: match args.targets() {
            TargetKind::Unlabelled => Aim::Inside,
            TargetKind::Values => Aim::Numbers,
            TargetKind::Labels => Aim::Classes(args.multiclass),
        },
        computed,
    }
}

/// Reads a table as the flags say, of at most `limit` bytes where the default will not do.
///
/// # Errors
/// Names the file, the place in it and the way out.
pub fn read_table(
    path: &Path,
    args: &TableArgs,
    text: &[&str],
    limit: Option<u64>,
) -> Result<Table> {
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
        limit: limit.unwrap_or(TableOptions::default().limit),
    };
    let table = input::read_table(path, format, &options)?;
    for skipped in &table.skipped {
        output::note(&format!(
            "note: {}: column `{}` is left out: {}",
            table.source, skipped.name, skipped.reason
        ));
    }
    Ok(table)
}

/// Says on standard error how many rows are not used, and which are used without one of their values.
///
/// # Errors
/// When a column is not there.
pub fn note_rows(frame: &Frame, table: &Table, records: &Records) -> Result<()> {
    for (column, rows, value) in frame.strange_values(table)? {
        output::note(&format!(
            "note: {}: {} in column `{column}` that the model never saw, such as `{value}`; it is taken for none of those it knows",
            table.source,
            count(rows, "row has a value", "rows have values"),
        ));
    }
    let dropped = table.rows - records.count();
    if dropped > 0 {
        output::note(&format!(
            "note: {}: {} left out",
            table.source,
            count(
                dropped,
                "row with missing values is",
                "rows with missing values are"
            )
        ));
    }
    Ok(())
}

/// A kernel matrix' name: the file's without folder and ending, without the characters that specifications use.
fn gram_name(path: &Path, member: Option<&str>, taken: &Grams) -> String {
    let plain = |text: &str| text.replace([',', '@', '|', '=', ':'], "_");
    let stem = path
        .file_stem()
        .map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let with =
        |head: &str| plain(&member.map_or(head.to_string(), |member| format!("{head}/{member}")));
    let short = with(&stem);
    if taken.contains_key(&short) {
        with(&path.display().to_string())
    } else {
        short
    }
}

/// Reads the kernel matrices that `precomputed:path=…` kernels name. An archive with several arrays stands for as many kernels.
fn read_grams(
    args: &mut FitArgs,
    table: &Table,
    ledger: &Ledger,
    held: &mut Vec<Guard>,
) -> Result<Grams> {
    let mut grams = Grams::new();
    let mut specs = Vec::new();
    for spec in &args.kernel {
        let Some(options) = spec.strip_prefix("precomputed") else {
            specs.push(spec.clone());
            continue;
        };
        let Some(options) = options.strip_prefix(':').filter(|path| !path.is_empty()) else {
            bail!("kernel `{spec}`: which matrix? Write precomputed:path=FILE");
        };
        let path = options
            .strip_prefix("path=")
            .or_else(|| options.strip_prefix("name="))
            .unwrap_or(options);
        let path = Path::new(path);
        let options = GramOptions {
            limit: ledger.left(),
            ..GramOptions::default()
        };
        let members = input::read_gram(path, None, &options)?;
        let several = members.len() > 1;
        for (member, gram) in members {
            let name = gram_name(path, member.as_deref().filter(|_| several), &grams);
            if grams.contains_key(&name) {
                bail!("the kernel matrix {} is given twice", path.display());
            }
            if gram.row_names.is_some() && args.id.is_none() {
                output::note(&format!(
                    "note: {} names its rows, which are taken in the order they come; --id COLUMN matches them by name",
                    path.display()
                ));
            }
            if gram.rows != table.rows || gram.columns != table.rows {
                bail!(
                    "kernel matrix `{name}` is {} × {}, expected {n} × {n}: one row and one column for each row of {}",
                    gram.rows,
                    gram.columns,
                    table.source,
                    n = table.rows
                );
            }
            held.push(ledger.take(bytes_of::<f64>(gram.values.len())));
            specs.push(format!("precomputed:name={name}"));
            grams.insert(name, align(gram, args.id.as_deref(), table)?);
        }
    }
    args.kernel = specs;
    Ok(grams)
}

/// Brings a matrix with named rows into the order of the table.
fn align(gram: Gram, id: Option<&str>, table: &Table) -> Result<Gram> {
    let (Some(names), Some(id)) = (&gram.row_names, id) else {
        return Ok(gram);
    };
    let position: BTreeMap<&str, usize> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (name.as_str(), i))
        .collect();
    let order = table
        .names(id)?
        .iter()
        .map(|name| {
            position.get(name.as_ref()).copied().with_context(|| {
                format!(
                    "the kernel matrix has no row called `{name}`, which column `{id}` of {} names",
                    table.source
                )
            })
        })
        .collect::<Result<Vec<usize>>>()?;
    let values: Vec<f64> = order
        .iter()
        .flat_map(|&i| order.iter().map(move |&j| (i, j)))
        .map(|(i, j)| gram.values[i * gram.columns + j])
        .collect();
    Ok(Gram {
        values: values.into(),
        ..gram
    })
}

/// Everything around one fit.
pub(super) struct Fit {
    pub(super) table: Table,
    pub(super) frame: Frame,
    pub(super) records: Records,
    pub(super) train: Vec<usize>,
    test: Vec<usize>,
    pub(super) grams: Grams,
    /// The flags as given, as TOML.
    pub(super) settings: String,
    /// The account of memory, and what the tables take of it.
    pub(super) ledger: Ledger,
    _held: Vec<Guard>,
}

/// Samples and tasks, and what they take of the account of memory.
pub(super) struct Sets {
    pub(super) dataset: Dataset,
    _held: Vec<Guard>,
}

/// The rows that scores are about.
struct Judged {
    /// Where they stand, if not in the table that is learned from.
    table: Option<Table>,
    records: Records,
    /// The kernel matrices' part.
    cross: CrossGrams,
    /// What they are, in words.
    split: String,
}

/// How to fit, by the flags' limits.
pub(super) fn fitting_of<'a>(
    args: &FitArgs,
    stop: &Stop,
    progress: &'a mut Progress,
) -> Result<Fitting<'a>> {
    let time_limit = match args.time_limit {
        Some(seconds) if seconds >= 0.0 && seconds.is_finite() => {
            // More than the clock can count is no limit.
            Duration::try_from_secs_f64(seconds).ok()
        }
        Some(seconds) => bail!("--time-limit is {seconds}, expected a number of seconds ≥ 0"),
        None => None,
    };
    Ok(Fitting {
        tolerance: args.tol,
        max_passes: args.max_passes,
        time_limit,
        seed: args.seed,
        start: None,
        stop: stop.clone(),
        observer: Some(progress),
    })
}

/// How to prepare the kernels, by the flags.
pub(super) fn preparation_of(args: &FitArgs, ledger: &Ledger) -> Result<Preparation> {
    Ok(Preparation {
        ledger: ledger.clone(),
        storage: None,
        precision: choices::precision(args)?,
        definiteness: if args.allow_indefinite {
            Definiteness::AllowIndefinite
        } else {
            Definiteness::Check
        },
        pool: Some(choices::pool(args.threads)?),
    })
}

/// Says on standard error where kernel values are not kept.
pub(super) fn note_storage(prepared: &Prepared) {
    if prepared.storage() == Storage::OnDemand {
        output::note(
            "note: the kernel matrices do not fit into the memory limit, so their values are made on demand, which may be slower; \
             --memory-limit (GiB) raises it",
        );
    }
}

/// A stop that Ctrl-C requests; a second Ctrl-C ends the program at once.
pub fn interruptible() -> Stop {
    let stop = Stop::never();
    let handle = stop.clone();
    // A second handler in one process cannot be set; then Ctrl-C ends the program as usual.
    let _ = ctrlc::set_handler(move || {
        if handle.is_requested() {
            // Whoever asks twice does not want to wait for the model; files are written whole or not at all.
            #[allow(clippy::exit, reason = "there is no way back from a signal handler")]
            std::process::exit(130);
        }
        handle.request();
    });
    stop
}

/// Names the kernel whose columns are not there; gives back those of which normalisation leaves next to nothing.
pub(super) fn check_columns(
    spec: &ProblemSpec,
    frame: &Frame,
    table: &Table,
) -> Result<Vec<String>> {
    let columns = frame.columns();
    let mut odd = Vec::new();
    for view in &spec.kernels {
        let seen = view.columns.resolve(&columns).map_err(|error| {
            anyhow!(
                "kernel `{}` on {}: {}",
                view.name,
                table.source,
                problem_of(&error)
            )
        })?;
        let one = seen.map_or(columns.len(), |seen| seen.len()) == 1;
        let linear = ["linear", "cosine"]
            .iter()
            .any(|name| view.kernel.spec().as_deref() == Some(name));
        if one && linear && spec.normalize {
            odd.push(view.name.clone());
        }
    }
    Ok(odd)
}

/// `mtmkl fit`
///
/// # Errors
/// When the input cannot be used or the model cannot be written.
pub fn run(args: &FitArgs) -> Result<Outcome> {
    let mut args = args.clone();
    if args.print_config {
        output::print(&toml::to_string(&args)?)?;
        return Ok(Outcome::Done);
    }
    let fit = Fit::open(&mut args, "fit")?;
    let learned = fit.learn(&args, fit.sets(Equals::Merged)?, interruptible)?;
    let saved = learned.save(&args);
    // The result is there, whatever became of the files.
    if args.json {
        output::print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&learned.json(&args))?
        ))?;
    } else {
        output::show(&learned.text(&args, &saved))?;
    }
    saved.check()?;
    Ok(learned.outcome())
}

/// What became of the files that were asked for.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// Whether the model is where it was to be.
    model: bool,
    /// What could not be written, in words.
    problems: Vec<String>,
}

impl Saved {
    /// Notes a file that could not be written, and what to do about it.
    pub(super) fn missing(&mut self, problem: String) {
        self.problems.push(problem);
    }

    /// The error to end with, after the result is printed.
    pub(super) fn check(&self) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        bail!(self.problems.join("; "))
    }
}

/// Keeps a model that could not be saved in the folder for temporary files, and says so.
fn rescued(model: &Model) -> String {
    let kept = || -> Result<std::path::PathBuf> {
        let bytes = model.to_bytes()?;
        let folder = std::env::temp_dir();
        for number in 0..100 {
            let path = folder.join(format!("mtmkl-{}-{number}.mtmkl", std::process::id()));
            // Never through a link or over a file that somebody else put there; and a folder for all must not show it to all.
            let mut options = std::fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            match options.open(&path) {
                Ok(mut file) => {
                    if let Err(error) = file.write_all(&bytes).and_then(|()| file.sync_all()) {
                        let _ = std::fs::remove_file(&path);
                        return Err(error.into());
                    }
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("{} is full of such files", folder.display())
    };
    match kept() {
        Ok(path) => format!(
            "the model is not saved there but kept in {0}: copy it where it is wanted",
            path.display()
        ),
        Err(error) => format!(
            "the model is not saved, nor could it be kept in the folder for temporary files ({error:#}); make room, or give another \
             place with -o"
        ),
    }
}

/// A fitted model and its scores.
pub(super) struct Learned {
    pub(super) model: Model,
    ledger: Ledger,
    scores: Scores,
}

/// Scores of the model and its baselines, on rows that were held out or, without such, on the training rows.
struct Scores {
    split: String,
    methods: Vec<(String, Score)>,
}

impl Fit {
    /// Reads and checks everything that a command with the flags of `fit` learns from.
    pub(super) fn open(args: &mut FitArgs, command: &str) -> Result<Self> {
        let data = args.data.clone().with_context(|| {
            format!("which table? Give its path: mtmkl {command} DATA --target COLUMN")
        })?;
        // What the columns are depends on it.
        choices::machine(args)?;
        args.output
            .iter()
            .chain(&args.report)
            .try_for_each(|path| output::check_place(path))?;
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
        let mut frame = Frame::new(&table, &plan_of(args, computed))?;
        let records = frame.records(&table, true, args.sample_weight.as_deref(), &[])?;
        note_rows(&frame, &table, &records)?;
        let (train, test) = match args.test_fraction {
            Some(share) => split(&frame, &records, share, args.seed)?,
            None => ((0..records.count()).collect(), Vec::new()),
        };
        let learned_from: Vec<usize> = train.iter().map(|&row| records.positions[row]).collect();
        frame.learn(&table, &learned_from, args.missing, args.scale)?;
        Ok(Self {
            table,
            frame,
            records,
            train,
            test,
            grams,
            settings,
            ledger,
            _held: held,
        })
    }

    /// The samples and tasks to learn from.
    pub(super) fn sets(&self, equals: Equals) -> Result<Sets> {
        let limit = self.ledger.left();
        let (train, grams) = (&self.train, &self.grams);
        let dataset = Dataset::new(
            &self.frame,
            &self.table,
            &self.records,
            train,
            grams,
            equals,
            limit,
        )?;
        let bytes = dataset.bytes_of_rows() + dataset.bytes_of_copies(grams);
        Ok(Sets {
            dataset,
            _held: vec![self.ledger.take(bytes)],
        })
    }

    /// Checks the specification that the flags make, fits and scores.
    pub(super) fn learn(
        &self,
        args: &FitArgs,
        sets: Sets,
        stop: impl FnOnce() -> Stop,
    ) -> Result<Learned> {
        let Sets { dataset, _held } = sets;
        let spec = choices::problem(args, dataset.tasks.len())?;
        let odd = check_columns(&spec, &self.frame, &self.table)?;
        let judged = self.judged(args, &dataset.tasks)?;
        // Rows to be scored are made when they are, after the fit.
        let _scored = self.ledger.take(bytes_of::<f64>(
            judged.records.count() * self.frame.features.len(),
        ));
        let (rows, tasks) = (dataset.rows, dataset.tasks.clone());
        let located = |error| self.located(error, &rows, &tasks, args);
        let problem = Problem::new(spec, dataset.samples, dataset.tasks).map_err(located)?;
        for name in odd {
            output::note(&format!(
                "note: kernel `{name}` sees one column and is normalised, so that only the sign of its values is left; --normalize false \
                 keeps their size"
            ));
        }
        // From here on there is something to keep; until here Ctrl-C ends the program.
        let stop = stop();
        let mut progress = Progress::new(args.verbose, args.quiet || args.json, args.tol);
        let mut fitting = fitting_of(args, &stop, &mut progress)?;
        // Said before anything is computed.
        fitting.check().map_err(located)?;
        let preparation = preparation_of(args, &self.ledger)?;
        let prepared = problem.prepare(&preparation).map_err(located)?;
        note_storage(&prepared);
        let mut model = prepared.fit(&mut fitting).map_err(located)?;
        drop(fitting);
        let rows = self.training_rows(&rows);
        let scores = self.scores(args, &judged, &rows, &model, &prepared, &stop)?;
        progress.finish();
        self.keep_notes(&mut model, &rows, &scores)?;
        Ok(Learned {
            model,
            ledger: self.ledger.clone(),
            scores,
        })
    }

    /// The rows to score on: those of `--test`, those held out, or those learned from.
    fn judged(&self, args: &FitArgs, tasks: &[Task]) -> Result<Judged> {
        if let Some(path) = &args.test {
            if !self.grams.is_empty() {
                bail!(
                    "--test cannot be used with precomputed kernels; use --test-fraction, or mtmkl evaluate --cross"
                );
            }
            let names = self.frame.names();
            let table = read_table(path, &args.table, &names, Some(self.ledger.left()))?;
            let records = self.frame.records(&table, true, None, &[])?;
            note_rows(&self.frame, &table, &records)?;
            let names = records.task.iter().flat_map(|names| names.groups());
            let mut names = names.map(|(name, _)| name);
            let strange = names.find(|name| tasks.iter().all(|task| task.name != *name));
            if let Some(name) = strange {
                bail!(
                    "{}: there is no task `{name}` in {}, so it cannot be scored; leave its rows out",
                    table.source,
                    self.table.source
                );
            }
            // Said before anything is computed.
            self.frame.check(&table, &records.positions)?;
            return Ok(Judged {
                cross: CrossGrams::new(),
                split: format!(
                    "{} of {}",
                    count(records.count(), "row", "rows"),
                    table.source
                ),
                table: Some(table),
                records,
            });
        }
        let held = !self.test.is_empty();
        let rows = if held { &self.test } else { &self.train };
        let records = self.records.select(rows);
        if held {
            self.frame.check(&self.table, &records.positions)?;
        }
        let cross = self
            .grams
            .iter()
            .map(|(name, gram)| {
                let n = gram.columns;
                let positions = &records.positions;
                let own = positions.iter().map(|&row| gram.values[row * n + row]);
                let own = Some(own.collect());
                (name.clone(), (gram.with_rows(positions), own))
            })
            .collect();
        let split = if held {
            format!(
                "{} of {}",
                count(rows.len(), "held-out row", "held-out rows"),
                self.records.count()
            )
        } else {
            format!("the {} training rows", rows.len())
        };
        Ok(Judged {
            table: None,
            records,
            cross,
            split,
        })
    }

    /// An error of the core about the data, with the place in the user's file instead of its own.
    pub(super) fn located(
        &self,
        error: mtmkl::Error,
        rows: &[Vec<usize>],
        tasks: &[Task],
        args: &FitArgs,
    ) -> anyhow::Error {
        let mtmkl::Error::Data {
            place,
            problem: what,
        } = error
        else {
            return choices::said_as_flag(error, args);
        };
        let file = &self.table.source;
        let line = |set: usize, row: usize| {
            let position = rows[set][row];
            self.table.place(self.records.positions[position])
        };
        let advice = match &what {
            DataProblem::Indefinite { .. } => " (--allow-indefinite)",
            DataProblem::Negative { .. } => "; --scale minmax brings all columns to [0, 1]",
            _ => "",
        };
        match place {
            Place::Cell {
                samples,
                row,
                column,
            } => anyhow!(
                "{file}, {}, column `{column}`: {what}{advice}",
                line(samples, row)
            ),
            Place::TaskRow { task, row } => {
                let found = tasks.iter().find(|known| known.name == task);
                let at = found.map_or(String::new(), |found| {
                    let own = found.rows.position(row);
                    format!("{}, ", line(found.samples, own))
                });
                anyhow!("{file}, {at}task `{task}`: {what}{advice}")
            }
            Place::Gram { name, .. } => anyhow!("kernel `{name}`: {what}{advice}"),
            Place::Task(name) => anyhow!("{file}, task `{name}`: {what}{advice}"),
            Place::Samples(_) | Place::Problem => anyhow!("{file}: {what}{advice}"),
            other => anyhow!("{other}: {what}{advice}"),
        }
    }

    /// Rows of the training table, per sample set.
    fn training_rows(&self, rows: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let positions = |rows: &Vec<usize>| {
            let rows = rows.iter();
            rows.map(|&row| self.records.positions[row]).collect()
        };
        rows.iter().map(positions).collect()
    }

    fn scores(
        &self,
        args: &FitArgs,
        judged: &Judged,
        training_rows: &[Vec<usize>],
        model: &Model,
        prepared: &Prepared,
        stop: &Stop,
    ) -> Result<Scores> {
        let asked = Asked {
            table: judged.table.as_ref().unwrap_or(&self.table),
            records: &judged.records,
            cross: &judged.cross,
        };
        let judge = |model: &Model| -> Result<Score> {
            let predictor = Predictor {
                model,
                frame: &self.frame,
                new_tasks: false,
                training_rows,
                limit: self.ledger.limit(),
            };
            let predictions = prepared.pool().install(|| predictor.predict(&asked))?;
            let metric = metric(None, &self.frame.goal)?;
            score(&self.frame, asked.records, &predictions, None, metric)
        };
        let mut methods = vec![("learned".to_string(), judge(model)?)];
        if args.baselines {
            let machine: &MachineSpec = model.machine();
            let fit_with = |sharing: &SharingSpec| -> Result<Model> {
                let mut silent = Progress::new(false, true, args.tol);
                let mut fitting = fitting_of(args, stop, &mut silent)?;
                Ok(prepared.with(machine, sharing)?.fit(&mut fitting)?)
            };
            methods.push((
                "uniform".to_string(),
                judge(&fit_with(&SharingSpec::uniform())?)?,
            ));
            let kernels = model.kernels();
            let mut best: Option<(String, Score)> = None;
            for number in 0..kernels.len() {
                let mut weights = vec![0.0; kernels.len()];
                weights[number] = 1.0;
                let score = judge(&fit_with(&SharingSpec::fixed(weights))?)?;
                if best
                    .as_ref()
                    .is_none_or(|(_, known)| score.mean > known.mean)
                {
                    best = Some((format!("best single: {}", kernels[number].name), score));
                }
            }
            methods.extend(best);
        }
        Ok(Scores {
            split: judged.split.clone(),
            methods,
        })
    }

    fn keep_notes(&self, model: &mut Model, rows: &[Vec<usize>], scores: &Scores) -> Result<()> {
        let notes = model.notes_mut();
        keep(notes, &self.frame, rows)?;
        notes.insert(notes::SETTINGS.to_string(), self.settings.clone());
        let data = [
            ("table", self.table.source.clone()),
            ("rows", self.table.rows.to_string()),
            ("rows learned from", self.train.len().to_string()),
            (
                "columns learned from",
                self.frame.features.len().to_string(),
            ),
            ("target", self.frame.target.clone().unwrap_or_default()),
            ("task column", self.frame.task.clone().unwrap_or_default()),
        ];
        let data: Vec<_> = data
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        notes.insert(notes::DATA.to_string(), serde_json::to_string(&data)?);
        notes.insert(notes::SCORES.to_string(), scores.json().to_string());
        Ok(())
    }
}

impl Learned {
    /// Writes what the flags ask for, as far as that can be done.
    pub(super) fn save(&self, args: &FitArgs) -> Saved {
        let mut saved = Saved::default();
        if let Some(path) = &args.output {
            match self.model.save(path) {
                Ok(()) => saved.model = true,
                Err(error) => saved.missing(format!("{error}; {}", rescued(&self.model))),
            }
        }
        if let Some(path) = &args.report
            && let Err(error) = super::report::write(&self.model, path)
        {
            saved.missing(format!(
                "{error:#}; the report is not written, `mtmkl report MODEL -o FILE` makes it from a saved model"
            ));
        }
        saved
    }

    /// How the program is to end.
    pub(super) fn outcome(&self) -> Outcome {
        if self.model.outcome().status.is_converged() {
            Outcome::Done
        } else {
            Outcome::NotConverged
        }
    }

    /// What `--json` prints.
    pub(super) fn json(&self, args: &FitArgs) -> serde_json::Value {
        let mut object = output::json(&self.model);
        object["memory"] = json!({ "limit": self.ledger.limit(), "taken": self.ledger.peak() });
        object["scores"] = self.scores.json();
        if args.baselines {
            object["baselines"] = self.scores.methods[1..]
                .iter()
                .map(|(name, score)| json!({ "name": name, "metric": score.metric, "mean": score.mean, "tasks": score.tasks }))
                .collect();
        }
        object
    }

    /// What is printed for people.
    pub(super) fn text(&self, args: &FitArgs, saved: &Saved) -> String {
        let (model, scores) = (&self.model, &self.scores);
        let mut text = String::new();
        let shape = model.shape();
        text += &format!(
            "{}, {}, machine {}, sharing {}\n\n",
            count(shape.tasks, "task", "tasks"),
            count(shape.kernels, "kernel", "kernels"),
            args.machine,
            model.sharing().name()
        );
        text += &output::weights(model);
        text += &format!(
            "\n{}\n{}{}\n\n",
            output::certificate(model),
            output::remarks(model),
            output::effort(model)
        );
        text += &format!("On {}:\n{}", scores.split, output::scores(&scores.methods));
        if args.baselines {
            text += "(the best single kernel is chosen on these rows, with hindsight)\n";
        }
        match &args.output {
            Some(path) if saved.model => {
                text += &format!("\nModel saved to {}\n", path.display());
            }
            // Said on standard error.
            Some(_) => {}
            None => text += "\nNot saved: -o MODEL keeps the model\n",
        }
        text
    }
}

impl Scores {
    fn json(&self) -> serde_json::Value {
        json!({
            "split": self.split,
            "methods": self.methods.iter().map(|(name, score)| json!({
                "name": name, "metric": score.metric, "mean": score.mean, "tasks": score.tasks,
            })).collect::<Vec<_>>(),
        })
    }
}
