//! The groups that tasks stand in: from a file, or from columns of the table.

use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::entry::Kind;
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{NamedLevel, Task, TaskTree};
use mtmkl_table::{Names, Transfer, by_number_then_text, tree_of_columns};

use super::open::Fit;
use crate::args::FitArgs;
use crate::config;

/// `--task-groups` of a column is `--tree-columns` of it.
pub(in crate::commands) fn settle(args: &mut FitArgs) {
    // A file is one that is there, or is called as one.
    let is_file = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("toml" | "json")) || path.is_file()
    };
    if let Some(column) = args.task_groups.take_if(|path| !is_file(path)) {
        args.tree_columns = vec![column.display().to_string()];
    }
}

/// The tree of `--tree` or `--task-groups`, and whether any flag of a tree goes with the sharing.
pub(super) fn read(args: &mut FitArgs) -> Result<Option<TaskTree>> {
    settle(args);
    let is_transfer = crate::transfer::is_wanted(args)?;
    let flag = match (&args.tree, &args.tree_columns[..], &args.task_groups) {
        (Some(_), ..) => "--tree",
        (_, [_, ..], _) => "--tree-columns",
        (.., Some(_)) => "--task-groups",
        _ => return Ok(None),
    };
    let named = args.sharing.as_deref();
    if let Some(Ok(entry)) = named.map(|name| args.registry.sharing(name)) {
        let mut parameters = entry.part.parameters.iter();
        if !is_transfer && !parameters.any(|parameter| parameter.kind == Kind::Levels) {
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
    let text = config::text_of(path)?;
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
        // There groups of tasks are kernels, not weights.
        if self.frame.transfer.is_some() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
        match self.whole_tree(args)? {
            Some((tree, flag)) => tree.levels(&names).with_context(|| flag),
            None => Ok(Vec::new()),
        }
    }

    /// The tree of a file, or that of columns of the rows to learn from, and where it comes from.
    fn whole_tree(&self, args: &FitArgs) -> Result<Option<(TaskTree, String)>> {
        let columns: Vec<&str> = args.tree_columns.iter().map(String::as_str).collect();
        Ok(match (&self.tree, &columns[..], &self.records.task) {
            (Some(tree), ..) => {
                let path = args.tree.as_ref().or(args.task_groups.as_ref());
                let path = path.map_or(String::new(), |path| path.display().to_string());
                Some((tree.clone(), path))
            }
            (None, [_, ..], Some(tasks)) => {
                let flag = format!("--tree-columns {}", columns.join(","));
                let tree = self.tree_of(&columns, tasks);
                Some((tree.with_context(|| flag.clone())?, flag))
            }
            _ => None,
        })
    }

    /// The task kernels, where one machine learns from all tasks.
    pub(in crate::commands) fn between(&self) -> Option<&TaskKernels> {
        self.frame.transfer.as_ref()?.kernels.as_deref()
    }

    /// What is learned of the tasks where one machine learns from all of them.
    ///
    /// # Errors
    /// When groups or similarities are not of these tasks.
    pub(super) fn transfer(&self, args: &FitArgs) -> Result<Option<Transfer>> {
        let (true, Some(names)) = (crate::transfer::is_wanted(args)?, &self.records.task) else {
            return Ok(None);
        };
        let own = names.select(&self.train);
        let mut tasks: Vec<String> = own
            .groups()
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        tasks.sort_by(|a, b| by_number_then_text(a, b));
        let tree = self.whole_tree(args)?;
        let similarity = args.task_similarity.as_deref();
        let similarity = similarity.map(|path| crate::transfer::similarity(path, &tasks));
        let tree = tree.as_ref().map(|(tree, flag)| (tree, flag.clone()));
        let flag = tree
            .as_ref()
            .map_or("--transfer".to_string(), |(_, flag)| flag.clone());
        let made = Transfer::new(
            tasks,
            &args.tree_columns,
            tree.map(|(tree, _)| tree),
            similarity.transpose()?,
        );
        Ok(Some(made.with_context(|| flag)?))
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
        Ok(tree_of_columns(columns, rows.collect())?)
    }
}
