//! What the core knows about choices that Python leaves open, or checks before a fit.

use mtmkl::Registry;
use mtmkl::entry::{Kind, Parameter};
use mtmkl::machine::MachineSpec;
use mtmkl::select;
use pyo3::prelude::*;

use crate::errors;

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
