//! Whether the data are those that the model was fitted on, as far as the model knows them: how many rows, which columns, which tasks, and every
//! support row to the last bit.

use mtmkl::model::SupportSet;
use mtmkl::{Model, Samples, Targets, Task};

use crate::error::{Error, Result};
use crate::machine::Kind;
use crate::statistic::whole_row;

fn same_count(what: impl Into<String>, stated: usize, found: usize) -> Result<()> {
    if stated == found {
        return Ok(());
    }
    let what = what.into();
    Err(Error::Count {
        what,
        stated,
        found,
    })
}

fn same_name(what: impl Into<String>, stated: &str, found: &str) -> Result<()> {
    if stated == found {
        return Ok(());
    }
    let (stated, found) = (stated.to_string(), found.to_string());
    Err(Error::Name {
        what: what.into(),
        stated,
        found,
    })
}

/// Compares the data with what the model keeps of them.
pub(crate) fn compare(model: &Model, samples: &[Samples], tasks: &[Task]) -> Result<()> {
    same_count("sample sets", model.support_sets().len(), samples.len())?;
    same_count("tasks", model.tasks().len(), tasks.len())?;
    for (number, (stated, found)) in model.support_sets().iter().zip(samples).enumerate() {
        same_set(number, stated, found)?;
    }
    for (number, (stated, found)) in model.tasks().iter().zip(tasks).enumerate() {
        same_name(
            format!("the name of task {number}"),
            &stated.name,
            &found.name,
        )?;
        let set = samples.get(found.samples).map_or(0, Samples::count);
        same_count(
            format!("samples of task `{}`", stated.name),
            stated.samples,
            found.rows.count(set),
        )?;
        if stated.set != found.samples {
            return Err(Error::Task {
                task: stated.name.clone(),
                problem: format!(
                    "it is on sample set {} in the model and on {} in the data",
                    stated.set, found.samples
                ),
            });
        }
        complete(found, set)?;
    }
    Ok(())
}

/// Whether the rows of a task are rows of its set, with a finite target and a weight each.
fn complete(task: &Task, set: usize) -> Result<()> {
    let problem = |problem: String| {
        let task = task.name.clone();
        Err(Error::Task { task, problem })
    };
    let count = task.rows.count(set);
    let mut seen = vec![false; set];
    for place in 0..count {
        match task.rows.get(place, set) {
            Some(row) if !seen[row] => seen[row] = true,
            Some(row) => return problem(format!("row {row} stands there twice")),
            None => {
                return problem(format!(
                    "its row number {place} is not one of the {set} of its set"
                ));
            }
        }
    }
    if let Targets::Labels(values) | Targets::Values(values) = &task.targets {
        same_count(
            format!("targets of task `{}`", task.name),
            count,
            values.len(),
        )?;
        if let Some(row) = values.iter().position(|value| !value.is_finite()) {
            return problem(format!("its target number {row} is {}", values[row]));
        }
    }
    if let Some(weights) = &task.weights {
        same_count(
            format!("sample weights of task `{}`", task.name),
            count,
            weights.len(),
        )?;
        if let Some(row) = weights
            .iter()
            .position(|weight| !(weight.is_finite() && *weight >= 0.0))
        {
            return problem(format!(
                "its sample weight number {row} is {}",
                weights[row]
            ));
        }
    }
    Ok(())
}

/// The targets of a task as numbers: ±1, values, or zeros for one-class machines.
pub(crate) fn targets(task: &Task, kind: Kind, samples: usize) -> Result<Vec<f64>> {
    let wrong = |expected: &str| {
        let task = task.name.clone();
        let problem = format!("its machine learns from {expected}, which the data do not have");
        Err(Error::Task { task, problem })
    };
    match (kind.has_labels(), &task.targets) {
        (Some(true), Targets::Labels(labels)) if labels.iter().all(|label| label.abs() == 1.0) => {
            Ok(labels.clone())
        }
        (Some(true), _) => wrong("labels of 1 and −1"),
        (Some(false), Targets::Values(values)) => Ok(values.clone()),
        (Some(false), _) => wrong("numbers"),
        (None, _) => Ok(vec![0.0; samples]),
    }
}

fn same_set(number: usize, stated: &SupportSet, found: &Samples) -> Result<()> {
    same_count(
        format!("rows in sample set {number}"),
        stated.samples,
        found.count(),
    )?;
    same_count(
        format!("columns in sample set {number}"),
        stated.columns.len(),
        found.columns().len(),
    )?;
    for (column, (stated, found)) in stated.columns.iter().zip(found.columns()).enumerate() {
        same_name(
            format!("column number {} of sample set {number}", column + 1),
            stated,
            found,
        )?;
    }
    for (place, &row) in stated.positions.iter().enumerate() {
        same_row(number, stated, found, place, row)?;
    }
    for name in &stated.unit_diagonals {
        // Predictions take k(x, x) = 1 for granted then.
        let gram = found.grams().iter().find(|gram| gram.name == *name);
        let count = found.count();
        let own = |row: usize| gram.map_or(f64::NAN, |gram| gram.values[row * count + row]);
        if let Some(row) = (0..count).find(|&row| own(row) != 1.0) {
            let what = format!("k(x, x) of kernel `{name}`");
            let (stated, found) = ("1".to_string(), own(row).to_string());
            return Err(Error::Row {
                set: number,
                row,
                what,
                stated,
                found,
            });
        }
    }
    let (known, given) = (&stated.origins, found.origins());
    match (known, given) {
        (None, None) => Ok(()),
        (Some(known), Some(given)) if known.kernels == given.kernels => Ok(()),
        (Some(_), None) => Err(Error::Unreadable(format!(
            "the model's kernels are between tasks, and the rows of sample set {number} are not said to be of any"
        ))),
        _ => Err(Error::Unreadable(format!(
            "the tasks of sample set {number}, their groups or their similarities are others in the data than in the model"
        ))),
    }
}

/// Whether a support row is the row of the data that it is said to be.
fn same_row(
    number: usize,
    stated: &SupportSet,
    found: &Samples,
    place: usize,
    row: usize,
) -> Result<()> {
    let other = |what: String, stated: String, found: String| {
        let set = number;
        Err(Error::Row {
            set,
            row,
            what,
            stated,
            found,
        })
    };
    let width = stated.columns.len();
    if width > 0 {
        let kept = whole_row(&stated.rows, place, width);
        let given = found.rows().get(row).unwrap_or_default();
        if let Some(column) = (0..width).find(|&column| kept[column] != given[column]) {
            let what = format!("column `{}`", stated.columns[column]);
            return other(what, kept[column].to_string(), given[column].to_string());
        }
    }
    for (name, diagonal) in &stated.given_diagonals {
        let Some(gram) = found.grams().iter().find(|gram| gram.name == *name) else {
            let problem =
                format!("the precomputed kernel `{name}` is not among the data; give its matrix");
            return Err(Error::Unreadable(problem));
        };
        let own = gram.values[row * found.count() + row];
        if own != diagonal[place] {
            return other(
                format!("k(x, x) of kernel `{name}`"),
                diagonal[place].to_string(),
                own.to_string(),
            );
        }
    }
    if let (Some(known), Some(given)) = (&stated.origins, found.origins()) {
        let name = |kernels: &mtmkl::task_kernel::TaskKernels, task: usize| {
            kernels.tasks().get(task).cloned().unwrap_or_default()
        };
        let (stated, found) = (
            name(&known.kernels, known.of[place]),
            name(&given.kernels, given.of[row]),
        );
        if stated != found {
            return other(
                "task".to_string(),
                format!("`{stated}`"),
                format!("`{found}`"),
            );
        }
    }
    Ok(())
}
