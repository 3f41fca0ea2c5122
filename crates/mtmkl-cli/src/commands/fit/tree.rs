//! The groups that tasks stand in: from a file, or from columns of the table.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::entry::Kind;
use mtmkl::{NamedLevel, Task, TaskTree};
use mtmkl_table::Names;

use super::open::Fit;
use crate::args::FitArgs;

/// The tree of `--tree` or `--task-groups`, and whether any flag of a tree goes with the sharing.
pub(super) fn read(args: &FitArgs) -> Result<Option<TaskTree>> {
    let flag = match (&args.tree, &args.tree_columns[..], &args.task_groups) {
        (Some(_), ..) => "--tree",
        (_, [_, ..], _) => "--tree-columns",
        (.., Some(_)) => "--task-groups",
        _ => return Ok(None),
    };
    let named = args.sharing.as_deref();
    if let Some(Ok(entry)) = named.map(|name| args.registry.sharing(name)) {
        let mut parameters = entry.part.parameters.iter();
        if !parameters.any(|parameter| parameter.kind == Kind::Levels) {
            bail!(
                "{flag} is of --sharing hierarchy, and --sharing {} knows no groups of tasks; leave one of them out",
                entry.part.name
            );
        }
    }
    if flag == "--tree-columns" && args.task.is_none() {
        bail!(
            "--tree-columns says which groups tasks are in; name the tasks' column with --task COLUMN"
        );
    }
    match (&args.tree, &args.task_groups) {
        (Some(path), _) => Ok(Some(read_file(path)?)),
        (_, Some(path)) => {
            let groups = read_file(path)?;
            if groups.depth() > 1 {
                bail!(
                    "--task-groups {0}: groups that may overlap have no groups inside; give a tree by --tree {0}",
                    path.display()
                );
            }
            Ok(Some(groups.with_overlaps()))
        }
        _ => Ok(None),
    }
}

fn read_file(path: &Path) -> Result<TaskTree> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        serde_json::from_str(&text).with_context(|| format!("{file} is no tree of tasks"))
    } else {
        toml::from_str(&text).with_context(|| format!("{file} is no tree of tasks"))
    }
}

impl Fit {
    /// The groups of these tasks, level by level; none where no flag says so.
    ///
    /// # Errors
    /// When they do not fit the tasks.
    pub(in crate::commands) fn levels(
        &self,
        args: &FitArgs,
        tasks: &[Task],
    ) -> Result<Vec<NamedLevel>> {
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        let columns: Vec<&str> = args.tree_columns.iter().map(String::as_str).collect();
        let (tree, flag) = match (&self.tree, &columns[..], &self.records.task) {
            (Some(tree), ..) => {
                let path = args.tree.as_ref().or(args.task_groups.as_ref());
                let path = path.map_or(String::new(), |path| path.display().to_string());
                (tree.clone(), path)
            }
            (None, [_, ..], Some(tasks)) => {
                let flag = format!("--tree-columns {}", columns.join(","));
                let tree = self.tree_of(&columns, tasks);
                (tree.with_context(|| flag.clone())?, flag)
            }
            _ => return Ok(Vec::new()),
        };
        tree.levels(&names).with_context(|| flag)
    }

    /// The tree that columns of the rows to learn from make.
    fn tree_of(&self, columns: &[&str], tasks: &Names) -> Result<TaskTree> {
        let positions = &self.records.positions;
        let values = columns
            .iter()
            .map(|column| Ok(Names::of(&self.table, column, &[])?.select(positions)))
            .collect::<Result<Vec<Names>>>()?;
        let rows = self.train.iter().map(|&row| {
            let values = values.iter().map(|names| names.get(row));
            let values = values.map(|value| Some(value).filter(|value| !value.is_empty()));
            (tasks.get(row), values.collect())
        });
        Ok(TaskTree::from_columns(columns, rows)?)
    }
}
