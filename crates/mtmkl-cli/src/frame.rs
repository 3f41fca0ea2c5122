//! How a table becomes numbers: which columns, which classes, what fills a gap, which scale. Learned on the training rows, kept
//! in the model, applied to every later table, whose columns may come in another order.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::kernel::{KernelView, parse_kernel};
use mtmkl::machine::TargetKind;
use serde::{Deserialize, Serialize};

use crate::args::{FitArgs, Missing, Multiclass, Scaling};
use crate::dataset::pairs;
use crate::input::{Column, Format, InputError, Table, Values};
use crate::words::{by_number_then_text, count, listed};

/// The key under which a frame is kept in a model's notes.
pub const NOTE: &str = "frame";

/// One column as kernels see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// The name, as kernels' `@columns` refer to it.
    pub name: String,
    /// The table's column it comes from.
    pub column: String,
    /// The value that it is the indicator of, for a one-hot column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What fills a missing cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    /// value ← (value − offset) · factor
    pub offset: f64,
    /// value ← (value − offset) · factor
    pub factor: f64,
}

/// What is predicted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// One of two classes: the first is −1, the second +1.
    Binary {
        /// In sorted order.
        classes: Vec<String>,
    },
    /// One of several classes, by tasks over shared samples.
    Multiclass {
        /// In sorted order.
        classes: Vec<String>,
        /// One task per class or per pair.
        scheme: Multiclass,
    },
    /// A number.
    Regression,
    /// Inside or outside.
    OneClass,
}

impl Goal {
    /// The classes, in sorted order; none where numbers are predicted, or inside and outside.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Binary { classes } | Self::Multiclass { classes, .. } => classes,
            Self::Regression | Self::OneClass => &[],
        }
    }
}

/// How a table becomes numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The columns kernels see, in order.
    pub features: Vec<Feature>,
    /// The column that is predicted.
    pub target: Option<String>,
    /// The column that names tasks.
    pub task: Option<String>,
    /// What is predicted.
    pub goal: Goal,
    /// Whether rows with missing cells are left out.
    pub drop_missing: bool,
}

/// The rows of a table as numbers, before scaling.
#[derive(Debug, Clone)]
pub struct Raw {
    /// n × d values, NaN where missing (and filled at scaling).
    pub values: Vec<f64>,
    /// n.
    pub count: usize,
    /// The position in the table of each row: rows may have been dropped.
    pub positions: Vec<usize>,
    /// The target as text, where there is one.
    pub target: Option<Vec<String>>,
    /// The target as numbers, for regression.
    pub numbers: Option<Vec<f64>>,
    /// The task's name, where there is a task column.
    pub task: Option<Vec<String>>,
    /// Sample weights.
    pub weights: Option<Vec<f64>>,
}

impl Raw {
    /// Some of the rows; `columns` is d.
    #[must_use]
    pub fn subset(&self, rows: &[usize], columns: usize) -> Self {
        let texts = |all: &Option<Vec<String>>| {
            all.as_ref()
                .map(|all| rows.iter().map(|&row| all[row].clone()).collect())
        };
        let numbers = |all: &Option<Vec<f64>>| {
            all.as_ref()
                .map(|all| rows.iter().map(|&row| all[row]).collect())
        };
        Self {
            values: rows
                .iter()
                .flat_map(|&row| &self.values[row * columns..(row + 1) * columns])
                .copied()
                .collect(),
            count: rows.len(),
            positions: rows.iter().map(|&row| self.positions[row]).collect(),
            target: texts(&self.target),
            numbers: numbers(&self.numbers),
            task: texts(&self.task),
            weights: numbers(&self.weights),
        }
    }
}

impl Frame {
    /// The frame for a table to learn from; scales are learned later, on the training rows. Columns count only where
    /// `computed` says that some kernel is computed from them.
    ///
    /// # Errors
    /// Names the column, and the option that would help.
    pub fn new(table: &Table, args: &FitArgs, computed: bool) -> Result<Self> {
        let one_class = args.targets() == TargetKind::Unlabelled;
        let special: Vec<&String> = [&args.target, &args.task, &args.sample_weight, &args.id]
            .into_iter()
            .flatten()
            .chain(&args.ignore)
            .collect();
        for name in special.iter().copied().chain(&args.one_hot) {
            table.column(name)?;
        }
        if args.target.is_none() && !one_class {
            let names: Vec<&str> = table
                .columns()
                .iter()
                .rev()
                .take(3)
                .map(|column| column.name.as_str())
                .collect();
            bail!(
                "--target COLUMN is needed: which column of {} is to be predicted? Its last columns are {}",
                table.source,
                names
                    .iter()
                    .rev()
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
        }
        let available: Vec<String> = table
            .columns()
            .iter()
            .map(|column| column.name.clone())
            .filter(|name| !special.contains(&name))
            .collect();
        let chosen: Vec<String> = match &args.features {
            _ if !computed => Vec::new(),
            None => available,
            Some(text) => {
                // The grammar of a kernel's columns, and its errors.
                let view: KernelView = parse_kernel(&format!("linear@{text}"))
                    .map_err(|error| anyhow!("--features {text}: {}", problem_of(&error)))?;
                let positions = view
                    .columns
                    .resolve(&available)
                    .map_err(|error| anyhow!("--features {text}: {}", problem_of(&error)))?
                    .unwrap_or_default();
                positions
                    .into_iter()
                    .map(|position| available[position].clone())
                    .collect()
            }
        };
        if computed && chosen.is_empty() {
            bail!(
                "{} has no column left to learn from: all of them are the target, the task, the weight, the row names or ignored",
                table.source
            );
        }
        let mut features = Vec::new();
        for name in &chosen {
            if args.one_hot.contains(name) {
                let missing = &table.column(name)?.missing;
                if let (Some(&first), Missing::Error) = (missing.first(), args.missing) {
                    return Err(InputError::Missing {
                        file: table.source.clone(),
                        column: name.clone(),
                        count: missing.len(),
                        place: table.place(first),
                        remedy: "`--missing drop` leaves these rows out, `--missing mean` fills in the shares of the values",
                    }
                    .into());
                }
                let mut categories = present(table, name)?;
                categories.sort_by(|a, b| by_number_then_text(a, b));
                categories.dedup();
                features.extend(categories.into_iter().map(|category| Feature {
                    name: format!("{name}={category}"),
                    column: name.clone(),
                    category: Some(category),
                    fill: None,
                    offset: 0.0,
                    factor: 1.0,
                }));
                continue;
            }
            let numeric = match args.missing {
                Missing::Error => table.numeric(name).map(|_| ()),
                _ => table.numeric_or_missing(name).map(|_| ()),
            };
            numeric.map_err(|error| not_numbers(error, table, name))?;
            features.push(Feature {
                name: name.clone(),
                column: name.clone(),
                category: None,
                fill: None,
                offset: 0.0,
                factor: 1.0,
            });
        }
        let goal = match args.targets() {
            TargetKind::Unlabelled => Goal::OneClass,
            TargetKind::Values => Goal::Regression,
            TargetKind::Labels => Self::classes(table, args)?,
        };
        Ok(Self {
            features,
            target: args.target.clone(),
            task: args.task.clone(),
            goal,
            drop_missing: args.missing == Missing::Drop,
        })
    }

    /// The columns of names in a table to learn from: tasks, rows, categories and classes are text, so that `007` and `7` are two.
    pub fn names_of(args: &FitArgs) -> Vec<&str> {
        let numbers = args.targets() == TargetKind::Values;
        [&args.task, &args.id]
            .into_iter()
            .chain((!numbers).then_some(&args.target))
            .flatten()
            .chain(&args.one_hot)
            .map(String::as_str)
            .collect()
    }

    /// The columns of names in a later table. One that kernels see as numbers is no such column, whatever else it is used for.
    pub fn names(&self) -> Vec<&str> {
        let target = self.target.iter().filter(|_| self.goal != Goal::Regression);
        let (categories, numbers): (Vec<&Feature>, Vec<&Feature>) = self
            .features
            .iter()
            .partition(|feature| feature.category.is_some());
        self.task
            .iter()
            .chain(target)
            .filter(|name| numbers.iter().all(|feature| feature.column != **name))
            .chain(categories.iter().map(|feature| &feature.column))
            .map(String::as_str)
            .collect()
    }

    fn classes(table: &Table, args: &FitArgs) -> Result<Goal> {
        let target = args
            .target
            .as_deref()
            .context("--target COLUMN is needed")?;
        // Before the classes are counted: a class called NA would be missed there.
        if args.missing != Missing::Drop {
            complete(table, "target", target)?;
        }
        let mut classes = present(table, target)?;
        classes.sort_by(|a, b| by_number_then_text(a, b));
        classes.dedup();
        match classes.len() {
            0 | 1 => bail!(
                "{}: the target `{target}` has one value only, {}; there is nothing to tell apart",
                table.source,
                classes
                    .first()
                    .map_or("none".to_string(), |class| format!("`{class}`"))
            ),
            2 => Ok(Goal::Binary { classes }),
            count if args.task.is_some() => bail!(
                "{}: the target `{target}` has {count} values ({}{}), but with a task column each task must be a choice between the \
                 same two; leave --task out to make one task per class, or say --machine krr or svr to predict numbers",
                table.source,
                classes[..3].join(", "),
                if count > 3 { ", …" } else { "" }
            ),
            count
                if 2 * count > table.rows
                    && classes.iter().all(|class| class.parse::<f64>().is_ok()) =>
            {
                bail!(
                    "{}: the target `{target}` has {count} different numbers in {} rows: for regression say --machine krr or --machine svr",
                    table.source,
                    table.rows
                )
            }
            _ => Ok(Goal::Multiclass {
                classes,
                scheme: args.multiclass,
            }),
        }
    }

    /// The columns' names as kernels see them.
    pub fn columns(&self) -> Vec<String> {
        self.features
            .iter()
            .map(|feature| feature.name.clone())
            .collect()
    }

    /// A table's rows as numbers; columns are found by name.
    ///
    /// # Errors
    /// When a column is not there, has text, or has missing cells that nothing fills.
    pub fn rows(&self, table: &Table, with_target: bool, weight: Option<&str>) -> Result<Raw> {
        let mut dropped = vec![false; table.rows];
        let mut drop_rows = |rows: &[usize]| rows.iter().for_each(|&row| dropped[row] = true);
        let needed = [
            ("target", self.target.as_deref().filter(|_| with_target)),
            ("task", self.task.as_deref()),
            ("sample weight", weight),
        ];
        for (what, name) in needed {
            let Some(name) = name else { continue };
            if !self.drop_missing {
                complete(table, what, name)?;
            }
            drop_rows(&table.column(name)?.missing);
        }
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(self.features.len());
        for feature in &self.features {
            let (mut numbers, missing) = self.numbers_of(table, feature)?;
            // Gaps stay gaps until the means are known.
            for &row in missing {
                numbers[row] = f64::NAN;
            }
            if self.drop_missing {
                drop_rows(missing);
            }
            columns.push(numbers);
        }
        let positions: Vec<usize> = (0..table.rows).filter(|&row| !dropped[row]).collect();
        if positions.is_empty() {
            bail!(
                "{}: no rows are left, each has a missing value; --ignore leaves out a column, --missing mean fills gaps",
                table.source
            );
        }
        let text = |name: &str| -> Result<Vec<String>> {
            let names = texts(table.column(name)?);
            Ok(positions.iter().map(|&row| names[row].clone()).collect())
        };
        let target = match self.target.as_deref().filter(|_| with_target) {
            Some(name) => {
                let classes: Vec<&str> = self.goal.classes().iter().map(String::as_str).collect();
                let names = named(table, name, &classes)?;
                let target: Vec<String> = positions.iter().map(|&row| names[row].clone()).collect();
                self.known(table, name, &target, &positions)?;
                Some(target)
            }
            None => None,
        };
        let numbers = match self
            .target
            .as_deref()
            .filter(|_| with_target && self.goal == Goal::Regression)
        {
            Some(name) => {
                let column = table.column(name)?;
                let Values::Numbers(numbers) = &column.values else {
                    bail!(
                        "{}: the target `{name}` is text, such as `{}`; svr and krr predict numbers, for classes say --machine svc",
                        table.source,
                        present(table, name)?.first().map_or("", String::as_str)
                    )
                };
                Some(positions.iter().map(|&row| numbers[row]).collect())
            }
            None => None,
        };
        let weights = match weight {
            Some(name) => {
                let (numbers, _) = table.numeric_or_missing(name).map_err(|error| {
                    text_where_numbers_belong(error, "a sample weight is a number")
                })?;
                Some(positions.iter().map(|&row| numbers[row]).collect())
            }
            None => None,
        };
        Ok(Raw {
            values: positions
                .iter()
                .flat_map(|&row| columns.iter().map(move |column| column[row]))
                .collect(),
            count: positions.len(),
            task: self.task.as_deref().map(text).transpose()?,
            target,
            numbers,
            weights,
            positions,
        })
    }

    /// The column behind a feature as numbers, 0 where missing, and the missing rows. What a LIBSVM file leaves out is zero.
    fn numbers_of<'a>(
        &self,
        table: &'a Table,
        feature: &Feature,
    ) -> Result<(Vec<f64>, &'a [usize])> {
        if let Some(category) = &feature.category {
            let indicators = named(table, &feature.column, &self.categories(&feature.column))?
                .iter()
                .map(|value| f64::from(u8::from(value == category)))
                .collect();
            return Ok((indicators, &table.column(&feature.column)?.missing));
        }
        match table.numeric_or_missing(&feature.column) {
            Ok((numbers, missing)) => Ok((numbers.to_vec(), missing)),
            Err(InputError::UnknownColumn { .. }) if left_out(table, &feature.column) => {
                Ok((vec![0.0; table.rows], &[]))
            }
            Err(error) => Err(text_where_numbers_belong(
                error,
                "the model learned from numbers here",
            )),
        }
    }

    /// The known values of a one-hot column.
    fn categories(&self, column: &str) -> Vec<&str> {
        self.features
            .iter()
            .filter(|feature| feature.column == column)
            .filter_map(|feature| feature.category.as_deref())
            .collect()
    }

    /// Gives tasks that are numbers in the table the names that the model has for them.
    ///
    /// # Errors
    /// When two names spell one number.
    pub fn recognise_tasks(&self, table: &Table, raw: &mut Raw, known: &[&str]) -> Result<()> {
        if let Some(name) = &self.task {
            let names = named(table, name, known)?;
            raw.task = Some(
                raw.positions
                    .iter()
                    .map(|&row| names[row].clone())
                    .collect(),
            );
        }
        Ok(())
    }

    /// Fails if no row has a class of the model, which is rather another spelling than another class.
    fn known(
        &self,
        table: &Table,
        name: &str,
        target: &[String],
        positions: &[usize],
    ) -> Result<()> {
        let classes = self.goal.classes();
        if classes.is_empty() || target.iter().any(|value| classes.contains(value)) {
            return Ok(());
        }
        let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
        bail!(
            "{}, {}: the target `{name}` is `{}`, and no row has one of the model's classes, {}; classes are compared as text, so that `1` \
             is not `1.0`",
            table.source,
            table.place(positions[0]),
            target[0],
            listed(&classes)
        )
    }

    /// Values of one-hot columns that were never learned from, which leaves all indicators at 0: the column, how many rows, and
    /// one of the values.
    ///
    /// # Errors
    /// When a column is not there.
    pub fn strange_values(&self, table: &Table) -> Result<Vec<(String, usize, String)>> {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for feature in &self.features {
            if let Some(category) = &feature.category {
                known
                    .entry(&feature.column)
                    .or_default()
                    .insert(category.as_str());
            }
        }
        let mut found = Vec::new();
        for (column, categories) in known {
            let missing = &table.column(column)?.missing;
            let names = named(table, column, &self.categories(column))?;
            let values: Vec<&String> = (0..table.rows)
                .filter(|row| missing.binary_search(row).is_err())
                .map(|row| &names[row])
                .filter(|value| !categories.contains(value.as_str()))
                .collect();
            if let Some(first) = values.first() {
                found.push((column.to_string(), values.len(), (*first).clone()));
            }
        }
        Ok(found)
    }

    /// Learns means and scales on these rows.
    ///
    /// # Errors
    /// When a column has no value in any of them.
    pub fn learn(
        &mut self,
        raw: &Raw,
        rows: &[usize],
        missing: Missing,
        scaling: Scaling,
    ) -> Result<()> {
        let d = self.features.len();
        for (column, feature) in self.features.iter_mut().enumerate() {
            let present: Vec<f64> = rows
                .iter()
                .map(|&row| raw.values[row * d + column])
                .filter(|value| !value.is_nan())
                .collect();
            if present.is_empty() {
                bail!(
                    "column `{0}` has no value in any row to learn from; --ignore {0} leaves it out",
                    feature.column
                );
            }
            if missing == Missing::Mean {
                feature.fill = Some(present.iter().sum::<f64>() / present.len() as f64);
            }
            (feature.offset, feature.factor) = scaling.of(&present);
        }
        Ok(())
    }

    /// Fills gaps and scales.
    ///
    /// # Errors
    /// When a cell is missing and nothing fills it.
    pub fn scaled(&self, raw: &Raw, table: &Table) -> Result<Vec<f64>> {
        let d = self.features.len();
        let mut values = raw.values.clone();
        for (at, value) in values.iter_mut().enumerate() {
            let feature = &self.features[at % d];
            if value.is_nan() {
                *value = feature.fill.ok_or_else(|| {
                    anyhow!(
                        "{}, {}, column `{}`: the value is missing; only a model fitted with --missing mean fills it in, or with --missing drop skips the row",
                        table.source,
                        table.place(raw.positions[at / d]),
                        feature.column
                    )
                })?;
            }
            *value = (*value - feature.offset) * feature.factor;
            if !value.is_finite() {
                bail!(
                    "{}, {}, column `{}`: {} is too large to be scaled as the training rows were",
                    table.source,
                    table.place(raw.positions[at / d]),
                    feature.column,
                    raw.values[at]
                );
            }
        }
        Ok(values)
    }

    /// The frame as kept in a model.
    ///
    /// # Errors
    /// When the model was not made by this program.
    pub fn of(model: &mtmkl::Model) -> Result<Self> {
        let note = model
            .notes()
            .get(NOTE)
            .context("the model has no table description: it was not fitted by this program, use it from the library")?;
        let frame: Self =
            serde_json::from_str(note).context("the model's table description cannot be read")?;
        // A file can say anything; what follows takes these numbers for granted.
        let tasks = model.tasks().len();
        let fits = match &frame.goal {
            Goal::Binary { classes } => classes.len() == 2,
            Goal::Multiclass { classes, scheme } => match scheme {
                Multiclass::Ova => classes.len() == tasks,
                Multiclass::Ovo => pairs(classes).len() == tasks,
            },
            Goal::Regression | Goal::OneClass => true,
        };
        let kept = frame.features.len();
        if !fits
            || model
                .support_sets()
                .iter()
                .any(|set| set.columns.len() != kept)
        {
            bail!("the model's table description does not fit its machines: the file is damaged");
        }
        Ok(frame)
    }

    /// The name of the only task, where no column names tasks.
    pub fn only_task(&self) -> String {
        self.target.clone().unwrap_or_else(|| "all".to_string())
    }
}

/// Fails if a cell of a column that every row needs is missing; `what` it is the column of.
fn complete(table: &Table, what: &str, name: &str) -> Result<()> {
    let missing = &table.column(name)?.missing;
    let Some(&first) = missing.first() else {
        return Ok(());
    };
    let spelling = match what {
        "sample weight" => "",
        _ => "; a name that is spelled so needs another spelling",
    };
    bail!(
        "{}: {} of {} no value in the {what} column `{name}`, the first at {} (empty, NA, N/A, null, ? and NaN mean that there is none); \
         fit with --missing drop to leave such rows out{spelling}",
        table.source,
        missing.len(),
        count(table.rows, "row has", "rows have"),
        table.place(first)
    )
}

/// What can be done about a column of text, and how much of it there is.
fn not_numbers(error: InputError, table: &Table, name: &str) -> anyhow::Error {
    let (InputError::NotNumber { place, value, .. }, Ok(mut cells)) =
        (&error, present(table, name))
    else {
        return error.into();
    };
    let all = cells.len();
    cells.retain(|cell| !cell.trim().parse::<f64>().is_ok_and(f64::is_finite));
    let bad = cells.len();
    if bad < all {
        return anyhow!(
            "{error} (of the column's {all} values {})",
            count(bad, "is not a number", "are not numbers")
        );
    }
    cells.sort();
    cells.dedup();
    anyhow!(
        "{}, column `{name}`: none of its {all} values is a number, the first is `{value}` in {place}; `--one-hot {name}` makes a \
         0/1 column of each of its {}, `--ignore {name}` leaves it out",
        table.source,
        count(cells.len(), "value", "different values")
    )
}

/// The same fault where making categories of the column is not the way out.
fn text_where_numbers_belong(error: InputError, expected: &str) -> anyhow::Error {
    match error {
        InputError::NotNumber {
            file,
            place,
            column,
            value,
            ..
        } => anyhow!("{file}, {place}, column `{column}`: `{value}` is not a number; {expected}"),
        other => other.into(),
    }
}

/// Whether a column is a feature that no line of a LIBSVM file mentions.
fn left_out(table: &Table, name: &str) -> bool {
    table.format == Format::Libsvm
        && name
            .strip_prefix('f')
            .is_some_and(|number| number.parse::<u64>().is_ok())
}

/// What is wrong, without the place that means nothing to the reader.
pub fn problem_of(error: &mtmkl::Error) -> String {
    match error {
        mtmkl::Error::Data { problem, .. } => problem.to_string(),
        mtmkl::Error::Kernel { problem, .. } => problem.clone(),
        other => other.to_string(),
    }
}

/// The cells of a column that have a value, as text.
fn present(table: &Table, name: &str) -> Result<Vec<String>> {
    let column = table.column(name)?;
    let mut row = 0..;
    let mut cells = texts(column);
    cells.retain(|_| {
        row.next()
            .is_some_and(|row| column.missing.binary_search(&row).is_err())
    });
    Ok(cells)
}

/// A column's cells as names, of which `known` are some; what stands where one is missing means nothing. Text is its own name. A
/// number, as formats without text have them, is the known name that spells it, `1` or `1.0`, or else what is shortest.
fn named(table: &Table, name: &str, known: &[&str]) -> Result<Vec<String>> {
    let column = table.column(name)?;
    let mut names = texts(column);
    let Values::Numbers(numbers) = &column.values else {
        return Ok(names);
    };
    // By value; adding zero turns -0 into 0.
    let key = |number: f64| (number + 0.0).to_bits();
    let mut spelled: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for name in known {
        if let Ok(number) = name.parse::<f64>() {
            spelled.entry(key(number)).or_default().push(name);
        }
    }
    for (row, &number) in numbers.iter().enumerate() {
        match spelled.get(&key(number)).map(Vec::as_slice) {
            Some([only]) => (*only).clone_into(&mut names[row]),
            Some([first, second, ..]) if column.missing.binary_search(&row).is_err() => bail!(
                "{}, {}, column `{name}`: the number {number} may be `{first}` or `{second}`; give names as text, as in a CSV file",
                table.source,
                table.place(row)
            ),
            _ => {}
        }
    }
    Ok(names)
}

/// A column as text; what stands where it is missing means nothing.
fn texts(column: &Column) -> Vec<String> {
    match &column.values {
        // Adding zero turns -0 into 0: they are one name.
        Values::Numbers(numbers) => numbers
            .iter()
            .map(|number| (number + 0.0).to_string())
            .collect(),
        Values::Text(cells) => cells.clone(),
    }
}
