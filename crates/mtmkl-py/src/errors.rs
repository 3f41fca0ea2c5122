//! The core's errors as Python's: one table.

use mtmkl::error::{DataProblem, Place, human_bytes, without_streams};
use mtmkl::{Error, Registry};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Where the rows of each sample set come from, so that messages speak of the rows the user gave.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    /// For each sample set, the rows of X it is made of.
    pub(crate) rows: Vec<Vec<usize>>,
    /// For each task, its name, its sample set, and its rows of it where they are not all.
    pub(crate) tasks: Vec<(String, usize, Option<Vec<usize>>)>,
}

impl Origins {
    fn row(&self, set: usize, row: usize) -> usize {
        let rows = self.rows.get(set);
        rows.and_then(|rows| rows.get(row)).copied().unwrap_or(row)
    }

    fn place(&self, place: &Place) -> String {
        match place {
            Place::Cell {
                samples,
                row,
                column,
            } => format!("X, row {}, column `{column}`", self.row(*samples, *row)),
            Place::TaskRow { task, row } => {
                let found = self.tasks.iter().find(|(name, ..)| name == task);
                let row = found.map_or(*row, |(_, set, own)| {
                    let own = own.as_ref().and_then(|own| own.get(*row));
                    self.row(*set, own.copied().unwrap_or(*row))
                });
                format!("task `{task}`, row {row}")
            }
            Place::Samples(_) | Place::Problem => "X".to_string(),
            Place::Gram { samples, name } => {
                match self.tasks.iter().find(|(_, set, _)| set == samples) {
                    Some((task, ..)) if self.rows.len() > 1 => {
                        format!("kernel `{name}` of task `{task}`")
                    }
                    _ => format!("kernel `{name}`"),
                }
            }
            other => other.to_string(),
        }
    }
}

/// The parameter as the estimators call it.
fn argument(name: &str) -> String {
    match name {
        "tolerance" => "tol".to_string(),
        "max_passes" => "max_iter".to_string(),
        other => {
            let registry = Registry::default();
            let mut parameters = registry.parameters();
            let known = parameters.find(|(_, parameter)| parameter.name == other);
            known
                .map_or(other, |(_, parameter)| parameter.python)
                .to_string()
        }
    }
}

/// The exception for an error of the core.
pub(crate) fn raise(error: Error, origins: &Origins) -> PyErr {
    match error {
        Error::Data { place, problem } => {
            let place = origins.place(&place);
            let problem = match problem {
                DataProblem::Indefinite { smallest, largest } => format!(
                    "not positive semi-definite (smallest eigenvalue {smallest:.3e}, largest {largest:.3e}); repair the kernel (clip \
                     or shift its spectrum), give indefinite=\"assume\" if that is rounding (float32), or indefinite=\"allow\", which gives up \
                     the certificate"
                ),
                DataProblem::OwnMissing => {
                    "k(x, x) of the new samples is needed, to normalise the kernel or for the sphere of SVDD: give \
                     KernelStack(values, own=diagonals)"
                        .to_string()
                }
                other => other.to_string(),
            };
            PyValueError::new_err(format!("{place}: {problem}"))
        }
        Error::Param {
            name,
            value,
            expected,
        } => PyValueError::new_err(format!(
            "{} is {value}, expected {expected}",
            argument(name)
        )),
        Error::Memory {
            needed,
            limit,
            not_streamed,
        } => PyMemoryError::new_err(format!(
            "this needs at least {}, over the limit of {}{}: use fewer kernels or rows, or raise memory_limit (GiB)",
            human_bytes(needed),
            human_bytes(limit),
            without_streams(not_streamed.as_deref())
        )),
        Error::Io { path, source } => {
            let text = source.to_string();
            match source.raw_os_error() {
                // With a number, Python finds the right class (FileNotFoundError, PermissionError, …) and names the file.
                Some(number) => PyOSError::new_err((number, text, path.display().to_string())),
                None => PyOSError::new_err(format!("{}: {text}", path.display())),
            }
        }
        error @ Error::Numeric { .. } => PyRuntimeError::new_err(error.to_string()),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// A specification that the Python side wrote and the core does not understand.
pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("{what}: {error}"))
}
