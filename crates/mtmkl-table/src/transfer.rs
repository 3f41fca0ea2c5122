//! One machine on the rows of all tasks, with kernels between tasks (see [`mtmkl::task_kernel`]): the samples of all tasks are one set, which knows
//! the task of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::task_kernel::{ALL, GROUP, OWN, Origin, TaskKernels};
use mtmkl::{Model, TaskTree};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::frame::Frame;
use crate::merge::Group;
use crate::names::{Names, by_number_then_text};
use crate::records::Records;
use crate::table::Table;

/// What a frame keeps of that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// The columns that name the groups of a task, outermost first: they place tasks that were never seen.
    pub columns: Vec<String>,
    /// The task kernels to learn with; a model has its own.
    #[serde(skip)]
    pub kernels: Option<Arc<TaskKernels>>,
}

impl Transfer {
    /// For tasks with these names and perhaps a tree or a matrix of similarities (of tasks in the order of names).
    ///
    /// # Errors
    /// When tree or matrix are not of these tasks.
    pub fn new(
        mut tasks: Vec<String>,
        columns: &[String],
        tree: Option<&TaskTree>,
        similarity: Option<Vec<f64>>,
    ) -> Result<Self> {
        tasks.sort_by(|a, b| by_number_then_text(a, b));
        tasks.dedup();
        // The samples of a group lie together where its tasks do.
        if let (Some(tree), None) = (tree, &similarity) {
            let mut paths: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
            for level in tree.levels(&tasks)? {
                for (number, (_, members)) in level.groups.iter().enumerate() {
                    for &task in members {
                        paths[task].push(number);
                    }
                }
            }
            let mut order: Vec<usize> = (0..tasks.len()).collect();
            order.sort_by_key(|&task| paths[task].clone());
            tasks = order.iter().map(|&task| tasks[task].clone()).collect();
        }
        let mut kernels = TaskKernels::new(tasks)?;
        if let Some(tree) = tree {
            kernels = kernels.with_tree(tree)?;
        }
        if let Some(values) = similarity {
            kernels = kernels.with_similarity(values)?;
        }
        Ok(Self {
            columns: columns.to_vec(),
            kernels: Some(Arc::new(kernels)),
        })
    }

    /// The groups of each task as one, in the order of the task kernels, and the task of each row.
    pub fn pooled(&self, groups: Vec<Group>, name: String) -> (Group, Vec<usize>) {
        let tasks = self.kernels.as_ref().map_or(&[][..], |own| own.tasks());
        let place = |group: &Group| tasks.iter().position(|task| *task == group.name);
        let mut placed: Vec<(usize, Group)> = (groups.into_iter())
            .map(|group| (place(&group).unwrap_or(0), group))
            .collect();
        placed.sort_by_key(|(task, _)| *task);
        let mut of = Vec::new();
        let mut all = Group {
            name,
            rows: Vec::new(),
            weights: Vec::new(),
        };
        for (task, group) in placed {
            of.extend(std::iter::repeat_n(task, group.rows.len()));
            all.rows.extend(group.rows);
            all.weights.extend(group.weights);
        }
        (all, of)
    }
}

/// Whether a specification says itself which tasks it is between.
pub fn is_between_tasks(view: &KernelView) -> bool {
    let head = view.name.split('@').next().unwrap_or_default();
    view.between.is_some() || head.ends_with(&format!("*{ALL}"))
}

/// k_m(x, z) c_g(t, u): each kernel that does not say itself which tasks it is between (`true` beside it) with each of the task kernels that these
/// words mean (`all` where there are none), and an offset for each task, `constant*own`, where it is wanted.
///
/// # Errors
/// When there is no such task kernel.
pub fn kernels_between_tasks(
    views: Vec<(KernelView, bool)>,
    words: &[String],
    known: &TaskKernels,
    with_offset: bool,
) -> mtmkl::Result<Vec<KernelView>> {
    let mut meant = Vec::new();
    for word in words {
        meant.extend(known.meant_by(word.trim())?);
    }
    if meant.is_empty() {
        meant.push(None);
    }
    let mut all = Vec::new();
    for (view, is_said) in views {
        if is_said {
            all.push(view);
        } else {
            all.extend(meant.iter().map(|word| view.clone().times(word.clone())));
        }
    }
    if with_offset && !all.iter().any(is_offset) {
        all.extend(parse_kernels(&format!("constant*{OWN}"))?);
    }
    Ok(all)
}

/// The specification of a kernel that says between which tasks it is, `*all` too.
pub fn spec_between_tasks(view: &KernelView) -> Option<String> {
    let mut said = view.clone();
    said.between.get_or_insert_with(|| ALL.to_string());
    said.spec()
}

/// Whether a kernel is an offset for each task.
fn is_offset(view: &KernelView) -> bool {
    let is_constant = view
        .kernel
        .spec()
        .is_some_and(|spec| spec.starts_with("constant"));
    is_constant && view.between.as_deref() == Some(OWN)
}

/// What the part of a prediction that an offset for each task makes is called.
const OFFSET: &str = "offset";

/// The level of each kernel: `all`, the name of its task kernel, or `offset`.
pub fn levels_of(kernels: &[KernelView]) -> Vec<String> {
    let level = |view: &KernelView| match &view.between {
        _ if is_offset(view) => OFFSET.to_string(),
        Some(word) => word.clone(),
        None => ALL.to_string(),
    };
    kernels.iter().map(level).collect()
}

/// The tree that the values of nested columns make, for rows of a table in any order: tasks, and so groups, are in the order of names.
///
/// # Errors
/// As [`TaskTree::from_columns`].
pub fn tree_of_columns<'a>(
    columns: &[&str],
    mut rows: Vec<(&'a str, Vec<Option<&'a str>>)>,
) -> Result<TaskTree> {
    rows.sort_by(|(a, _), (b, _)| by_number_then_text(a, b));
    Ok(TaskTree::from_columns(columns, rows)?)
}

impl Frame {
    /// The task that rows of a table are of, as a model with kernels between tasks knows it, with the rows that are of it: those of a task that was
    /// never seen go by the groups that the table has for them. None where each task has machines of its own.
    pub fn origins(
        &self,
        model: &Model,
        task: &str,
        table: &Table,
        records: &Records,
        rows: Vec<usize>,
    ) -> Vec<(Option<Origin>, Vec<usize>)> {
        let columns = self.group_columns().iter();
        let names: Vec<Option<Names>> = columns
            .map(|column| Names::of(table, column, &[]).ok())
            .collect();
        if self.known_tasks(model).contains(&task) || names.iter().all(Option::is_none) {
            return vec![(self.origin_of(model, task, &[]), rows)];
        }
        let mut by_groups: BTreeMap<Vec<Option<String>>, Vec<usize>> = BTreeMap::new();
        for row in rows {
            let at = records.positions[row];
            let value = |own: &Option<Names>| Some(own.as_ref()?.get(at).to_string());
            let values = names.iter().map(value).collect();
            by_groups.entry(values).or_default().push(row);
        }
        let origin = |(values, rows): (Vec<Option<String>>, Vec<usize>)| {
            (self.origin_of(model, task, &values), rows)
        };
        by_groups.into_iter().map(origin).collect()
    }

    /// The task with these values in the columns that place tasks; of groups that are no columns, the one in the only level.
    pub fn origin_of(
        &self,
        model: &Model,
        task: &str,
        values: &[Option<String>],
    ) -> Option<Origin> {
        let origins = model.support_sets().first()?.origins.as_ref()?;
        let columns = self.group_columns();
        let mut groups = Vec::new();
        let mut path: Vec<&str> = Vec::new();
        for (at, value) in values.iter().enumerate() {
            let Some(value) = value.as_deref().filter(|value| !value.is_empty()) else {
                break;
            };
            let kernel = match columns.get(at) {
                Some(column) if values.len() > 1 => column,
                _ => GROUP,
            };
            path.push(value);
            // Groups of the same name in different groups are called by all names on the way.
            groups.push((kernel.to_string(), path.join("/")));
            groups.push((kernel.to_string(), value.to_string()));
        }
        Some(origins.kernels.origin(task, &groups))
    }

    /// The tasks of the table that a model knows.
    pub fn known_tasks<'a>(&'a self, model: &'a Model) -> Vec<&'a str> {
        let sets = model.support_sets().first();
        if let Some(origins) = sets.and_then(|set| set.origins.as_ref()) {
            return origins.kernels.tasks().iter().map(String::as_str).collect();
        }
        let machines = model.tasks().iter().map(|task| &task.name);
        self.goal.tasks_of(machines)
    }

    /// The names of the columns that place tasks.
    pub fn group_columns(&self) -> &[String] {
        self.transfer.as_ref().map_or(&[], |own| &own.columns)
    }
}
