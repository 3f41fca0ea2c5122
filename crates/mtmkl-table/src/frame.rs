//! How a table becomes numbers: which columns, which classes, what fills a gap, which scale. Learned on the training rows, kept
//! in the model, applied to every later table, whose columns may come in another order.

use mtmkl::kernel::{KernelView, parse_kernel};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::column::Values;
use crate::error::{TableError, problem_of};
use crate::gaps::Missing;
use crate::goal::{Aim, Goal, TaskClasses, looks_like_names, looks_like_numbers};
use crate::names::by_number_then_text;
use crate::one_hot;
use crate::records::Records;
use crate::scale::Scaling;
use crate::table::{Table, is_decimal_comma};
use crate::transfer::Transfer;

/// One column as kernels see it: (value − offset) · factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// The name, as kernels' `@columns` refer to it.
    pub name: String,
    /// The table's column it comes from.
    pub column: String,
    /// The value that it is the indicator of, for a one-hot column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// What fills a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    /// What is taken away.
    pub offset: f64,
    /// What is multiplied by.
    pub factor: f64,
}

impl Feature {
    /// A column as it is.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_string(),
            column: name.to_string(),
            category: None,
            fill: None,
            offset: 0.0,
            factor: 1.0,
        }
    }

    /// The value on its scale.
    pub(crate) fn scaled(&self, value: f64) -> f64 {
        (value - self.offset) * self.factor
    }
}

/// How a table becomes numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// The version of this description; the first ones did not say.
    #[serde(default = "first_version")]
    pub(crate) version: u32,
    /// The columns kernels see, in order.
    pub features: Vec<Feature>,
    /// The column that is predicted.
    pub target: Option<String>,
    /// The column that names tasks.
    pub task: Option<String>,
    /// What is predicted.
    pub goal: Goal,
    /// Whether rows with gaps are left out.
    pub drop_missing: bool,
    /// Where one machine learns from all tasks, with kernels between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// The version that is written here.
pub(crate) const VERSION: u32 = 1;

fn first_version() -> u32 {
    1
}

/// What is asked of a table to learn from.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The column to predict.
    pub target: Option<&'a str>,
    /// The column that names each row's task.
    pub task: Option<&'a str>,
    /// The column of sample weights.
    pub weight: Option<&'a str>,
    /// The column that names rows.
    pub id: Option<&'a str>,
    /// Columns that name the groups that each row's task stands in.
    pub groups: &'a [String],
    /// Columns to leave out.
    pub ignore: &'a [String],
    /// The columns to learn from, as names and ranges `a,b,f1..f9`; all others without it.
    pub features: Option<&'a str>,
    /// Columns to turn into one 0/1 column per value; those of text that have few values are so without being named.
    pub one_hot: &'a [String],
    /// What to do about gaps.
    pub missing: Missing,
    /// What to learn.
    pub aim: Aim,
    /// Whether someone said so, and numbers may be classes.
    pub is_sure: bool,
    /// Whether some kernel is computed from columns.
    pub computed: bool,
}

impl<'a> Plan<'a> {
    /// The columns of names: tasks, rows, categories and classes are text, so that `007` and `7` are two.
    pub fn names(&self) -> Vec<&'a str> {
        let classes = self.target.filter(|_| self.aim != Aim::Numbers);
        let special = [self.task, self.id, classes].into_iter().flatten();
        special
            .chain(self.one_hot.iter().chain(self.groups).map(String::as_str))
            .collect()
    }

    /// The columns that are no features.
    fn special(&self) -> Vec<&'a str> {
        let named = [self.target, self.task, self.weight, self.id]
            .into_iter()
            .flatten();
        named
            .chain(self.ignore.iter().chain(self.groups).map(String::as_str))
            .collect()
    }

    /// The columns to learn from.
    fn chosen(&self, table: &Table) -> Result<Vec<String>> {
        if !self.computed {
            return Ok(Vec::new());
        }
        let special = self.special();
        let names = table.column_names().filter(|name| !special.contains(name));
        let available: Vec<String> = names.map(str::to_string).collect();
        let chosen = match self.features {
            None => available,
            Some(text) => {
                let wrong = |error: mtmkl::Error| TableError::Features {
                    text: text.to_string(),
                    problem: problem_of(&error),
                };
                // The grammar of a kernel's columns, and its errors.
                let view: KernelView = parse_kernel(&format!("linear@{text}")).map_err(wrong)?;
                let positions = view.columns.resolve(&available).map_err(wrong)?;
                let positions = positions.unwrap_or_default().into_iter();
                positions.map(|at| available[at].clone()).collect()
            }
        };
        if chosen.is_empty() {
            return Err(TableError::NoFeatures {
                file: table.source.clone(),
            });
        }
        Ok(chosen)
    }

    /// What is predicted: classes are those of the table.
    fn goal(&self, table: &Table) -> Result<Goal> {
        let scheme = match self.aim {
            Aim::Inside => return Ok(Goal::OneClass),
            Aim::Numbers => return Ok(Goal::Regression),
            Aim::Classes(scheme) => scheme,
        };
        let file = || table.source.clone();
        let target = self.target.unwrap_or_default();
        // Before the classes are counted: a class called NA would be missed there.
        if self.missing != Missing::Drop {
            complete(table, "target", target)?;
        }
        let mut classes = table.column(target)?.present();
        classes.sort_by(|a, b| by_number_then_text(a, b));
        classes.dedup();
        let target = target.to_string();
        match classes.len() {
            0 | 1 => Err(TableError::OneValue {
                file: file(),
                target,
                value: classes.pop(),
            }),
            2 => Ok(Goal::Binary { classes }),
            count if !self.is_sure && looks_like_numbers(&classes, table.rows) => {
                Err(TableError::NumbersAsClasses {
                    file: file(),
                    target,
                    classes: count,
                    rows: table.rows,
                })
            }
            count if !self.is_sure && looks_like_names(count, table.rows) => {
                Err(TableError::NamesAsClasses {
                    remedy: if classes.iter().all(|class| is_decimal_comma(class)) {
                        "write decimals with a point and say --machine krr or --machine svr"
                            .to_string()
                    } else {
                        "another column may be meant, and --machine svc takes each of them for a class".to_string()
                    },
                    file: file(),
                    target,
                    classes: count,
                    rows: table.rows,
                })
            }
            // Which of them each task has is learned from the training rows.
            _ => Ok(Goal::Multiclass {
                classes,
                scheme,
                present: Vec::new(),
            }),
        }
    }
}

impl Frame {
    /// The frame for a table to learn from; scales are learned later, on the training rows.
    ///
    /// # Errors
    /// Names the column, and the option that would help.
    pub fn new(table: &Table, plan: &Plan<'_>) -> Result<Self> {
        let one_hot = plan.one_hot.iter().map(String::as_str);
        for name in plan.special().into_iter().chain(one_hot) {
            match table.column(name) {
                // What was not read is left out already.
                Err(TableError::SkippedColumn { name, .. }) if plan.ignore.contains(&name) => {}
                found => drop(found?),
            }
        }
        if plan.target.is_none() && plan.aim != Aim::Inside {
            let names: Vec<&str> = table.column_names().collect();
            let last = &names[names.len().saturating_sub(3)..];
            let last: Vec<String> = last.iter().map(|name| format!("`{name}`")).collect();
            return Err(TableError::NoTarget {
                file: table.source.clone(),
                last: last.join(", "),
            });
        }
        let (mut features, mut texts) = (Vec::new(), Vec::new());
        for name in &plan.chosen(table)? {
            if plan.one_hot.contains(name) {
                features.extend(one_hot::features(table, name, plan.missing)?);
                continue;
            }
            let numeric = match plan.missing {
                Missing::Error => table.check_numeric(name),
                _ => table.numbers_in(name).map(|_| ()),
            };
            match numeric.map_err(|error| table.text_to_learn_from(error)) {
                Ok(()) => features.push(Feature::plain(name)),
                Err(TableError::NoNumbers {
                    cells, different, ..
                }) if one_hot::are_categories(cells, different) => {
                    features.extend(one_hot::features(table, name, plan.missing)?);
                }
                Err(error @ TableError::NoNumbers { .. }) => texts.push(error),
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = TableError::of_texts(texts) {
            return Err(error);
        }
        let drop_missing = plan.missing == Missing::Drop;
        let mut frame = Self::plain(&[], plan.target, plan.task, plan.goal(table)?);
        (frame.features, frame.drop_missing) = (features, drop_missing);
        Ok(frame)
    }

    /// The frame of a table whose columns are taken as they are.
    pub fn plain(columns: &[String], target: Option<&str>, task: Option<&str>, goal: Goal) -> Self {
        Self {
            version: VERSION,
            features: columns.iter().map(|name| Feature::plain(name)).collect(),
            target: target.map(str::to_string),
            task: task.map(str::to_string),
            goal,
            drop_missing: false,
            transfer: None,
        }
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
            .chain(self.group_columns())
            .filter(|name| numbers.iter().all(|feature| feature.column != **name))
            .chain(categories.iter().map(|feature| &feature.column))
            .map(String::as_str)
            .collect()
    }

    /// The columns' names as kernels see them.
    pub fn columns(&self) -> Vec<String> {
        let features = self.features.iter();
        features.map(|feature| feature.name.clone()).collect()
    }

    /// The name of the only task, where no column names tasks.
    pub fn only_task(&self) -> String {
        self.target.clone().unwrap_or_else(|| "all".to_string())
    }

    /// Learns which classes each task has, where there are several of both, from these records.
    pub fn learn_classes(&mut self, records: &Records, rows: &[usize]) {
        let Goal::Multiclass {
            classes, present, ..
        } = &mut self.goal
        else {
            return;
        };
        present.clear();
        let (Some(tasks), Some(target), None) = (&records.task, &records.target, &self.transfer)
        else {
            return;
        };
        let weight = |row: usize| records.weights.as_ref().map_or(1.0, |all| all[row]);
        let rows = rows.iter().copied().filter(|&row| weight(row) != 0.0);
        let rows: Vec<usize> = rows.collect();
        let (tasks, target) = (tasks.select(&rows), target.select(&rows));
        for (task, own) in tasks.groups() {
            let has = |class: &String| own.iter().any(|&row| target.get(row) == class);
            let found = (0..classes.len()).filter(|&class| has(&classes[class]));
            present.push(TaskClasses {
                task: task.to_string(),
                classes: found.collect(),
            });
        }
    }

    /// Learns means and scales on these rows of the table, which count as often as their weights say; of a table that is mostly zero, scales
    /// without means.
    ///
    /// # Errors
    /// When a column has no value in any of them.
    pub fn learn(
        &mut self,
        table: &Table,
        rows: &[usize],
        weights: Option<&[f64]>,
        missing: Missing,
        scaling: Scaling,
    ) -> Result<()> {
        if self.is_mostly_zero(table)? {
            return self.learn_sparse(table, rows, weights, missing, scaling);
        }
        let indicators = one_hot::Indicators::of(self, table)?;
        for number in 0..self.features.len() {
            let source = self.source(table, number, &indicators)?;
            let complete = source.missing.is_empty() && !rows.is_empty();
            if complete && missing != Missing::Mean && scaling == Scaling::None {
                continue;
            }
            let is_there = |at: &usize| source.missing.binary_search(&rows[*at]).is_err();
            let there: Vec<usize> = (0..rows.len()).filter(is_there).collect();
            let present: Vec<f64> = there.iter().map(|&at| source.get(rows[at])).collect();
            let counts = weights
                .map(|weights| -> Vec<f64> { there.iter().map(|&at| weights[at]).collect() });
            let feature = &mut self.features[number];
            if present.is_empty() {
                return Err(TableError::NoValue {
                    column: feature.column.clone(),
                });
            }
            if missing == Missing::Mean {
                feature.fill = Some(present.iter().sum::<f64>() / present.len() as f64);
            }
            (feature.offset, feature.factor) = scaling.of(&present, counts.as_deref());
        }
        Ok(())
    }
}

/// Fails if a cell of a column that every row needs is missing; `what` it is the column of.
pub(crate) fn complete(table: &Table, what: &'static str, name: &str) -> Result<()> {
    let missing = &table.column(name)?.missing;
    match missing.first() {
        None => Ok(()),
        Some(&first) => Err(TableError::Incomplete {
            file: table.source.clone(),
            what,
            column: name.to_string(),
            gaps: missing.len(),
            rows: table.rows,
            place: table.place(first),
        }),
    }
}

/// The numbers of a target to regress on.
pub(crate) fn target_numbers<'a>(
    table: &'a Table,
    target: &str,
) -> Result<std::borrow::Cow<'a, [f64]>> {
    let column = table.column(target)?;
    match &column.values {
        Values::Text(_) => {
            let value = column.present().into_iter().next().unwrap_or_default();
            Err(TableError::TextTarget {
                file: table.source.clone(),
                target: target.to_string(),
                remedy: if is_decimal_comma(&value) {
                    "with a point before the decimals"
                } else {
                    "for classes say --machine svc"
                },
                value,
            })
        }
        numbers => Ok(numbers.numbers().unwrap_or_default()),
    }
}
