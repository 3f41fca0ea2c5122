//! One machine on the rows of all tasks, with kernels between tasks (see [`mtmkl::task_kernel`]): the samples of all tasks are one set, which knows
//! the task of each.

use std::sync::Arc;

use mtmkl::task_kernel::{GROUP, Origin, TaskKernels};
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
    pub(crate) fn pooled(&self, groups: Vec<Group>, name: String) -> (Group, Vec<usize>) {
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

impl Frame {
    /// The task that rows of a table are of, as a model with kernels between tasks knows it: of one that was never seen the groups, where the
    /// table has their columns.
    pub fn origin(
        &self,
        model: &Model,
        task: &str,
        table: &Table,
        records: &Records,
        rows: &[usize],
    ) -> Option<Origin> {
        let origins = model.support_sets().first()?.origins.as_ref()?;
        let columns = self.transfer.as_ref().map_or(&[][..], |own| &own.columns);
        let mut groups = Vec::new();
        let mut path: Vec<String> = Vec::new();
        for column in columns {
            let first = rows.first().map(|&row| records.positions[row]);
            let value = first.and_then(|position| {
                let names = Names::of(table, column, &[]).ok()?;
                Some(names.get(position).to_string())
            });
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                break;
            };
            let kernel = if columns.len() == 1 { GROUP } else { column };
            path.push(value.clone());
            // Groups of the same name in different groups are called by all names on the way.
            groups.push((kernel.to_string(), path.join("/")));
            groups.push((kernel.to_string(), value));
        }
        Some(origins.kernels.origin(task, &groups))
    }

    /// The names of the columns that place tasks.
    pub fn group_columns(&self) -> &[String] {
        self.transfer.as_ref().map_or(&[], |own| &own.columns)
    }
}
