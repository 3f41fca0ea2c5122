//! What the core knows about choices that Python leaves open, or checks before a fit.

use mtmkl::entry::{Kind, Parameter};
use mtmkl::machine::MachineSpec;
use mtmkl::select;
use mtmkl::{Registry, TaskTree};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::{self, Origins};
use crate::table;

/// The kernels where none are given.
#[pyfunction]
pub(crate) fn usual_kernels() -> Vec<String> {
    select::usual_kernels()
}

/// The same for machines without targets.
#[pyfunction]
pub(crate) fn usual_kernels_without_targets() -> Vec<String> {
    select::usual_kernels_without_targets()
}

/// The same for a search without a grid.
#[pyfunction]
pub(crate) fn usual_kernels_to_search() -> Vec<String> {
    select::usual_kernels_to_search()
}

/// The sharing that suits a machine, as it stands in model files, and so many tasks, which may be made of classes.
#[pyfunction]
pub(crate) fn usual_sharing(
    machine: &str,
    tasks: usize,
    of_classes: bool,
) -> PyResult<&'static str> {
    let machine: MachineSpec =
        serde_json::from_str(machine).map_err(|error| errors::unreadable("machine", &error))?;
    Ok(select::usual_sharing(
        &machine,
        select::Tasks::new(tasks, of_classes),
    ))
}

/// Tasks with their values in columns.
type Places = Vec<(String, Vec<Option<String>>)>;

/// Groups of tasks as Python gives them.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Groups {
    /// Groups inside groups, with tasks inside.
    Tree(TaskTree),
    /// The same, of one level, which may overlap.
    Overlapping(TaskTree),
    /// Names of columns, and values in them by task.
    Columns(Vec<String>, Places),
}

/// Groups of tasks as a tree.
pub(crate) fn tree_of(groups: &str) -> PyResult<TaskTree> {
    let groups: Groups =
        serde_json::from_str(groups).map_err(|error| errors::unreadable("tree", &error))?;
    let tree = match groups {
        Groups::Tree(tree) => Ok(tree),
        Groups::Overlapping(groups) if groups.depth() <= 1 => Ok(groups.with_overlaps()),
        Groups::Overlapping(_) => {
            let problem =
                "groups that may overlap have no groups inside; Hierarchy(tree) takes a tree";
            return Err(PyValueError::new_err(problem));
        }
        Groups::Columns(columns, rows) => {
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let rows = rows.iter().map(|(task, values)| {
                let values = values.iter().map(Option::as_deref);
                (task.as_str(), values.collect())
            });
            mtmkl_table::tree_of_columns(&columns, rows.collect())
        }
    };
    tree.map_err(|error| table::raise(error, false))
}

/// The levels of groups of tasks, as they stand in model files, for these tasks.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn task_levels(groups: &str, tasks: Vec<String>) -> PyResult<String> {
    let levels = tree_of(groups)?.levels(&tasks);
    let levels = levels.map_err(|error| errors::raise(error, &Origins::default()))?;
    serde_json::to_string(&levels).map_err(|error| errors::unreadable("tree", &error))
}

/// The sharings that are more than their terms: the name, the numbers that it takes, and what must be given.
#[pyfunction]
pub(crate) fn sharings() -> Vec<(&'static str, Vec<&'static str>, Vec<&'static str>)> {
    let registry = Registry::default();
    let sharings = registry.sharings().iter().map(|entry| &entry.part);
    sharings
        .filter(|part| part.parameters.iter().all(|one| one.kind != Kind::Terms))
        .map(|part| {
            let names = |wanted: fn(&Parameter) -> bool| {
                let parameters = part.parameters.iter().filter(|one| wanted(one));
                parameters.map(|one| one.python).collect()
            };
            (
                part.name,
                names(Parameter::is_number),
                names(Parameter::is_required),
            )
        })
        .collect()
}
