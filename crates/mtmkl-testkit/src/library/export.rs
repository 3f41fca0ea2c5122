//! Problems whose weights are known before anything is learned, as files: whoever knows one kernel only can state these.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::{Recipe, found};
use crate::conic::{Machine, Set, Task, Term};

/// θ of each task, where Ψ leaves nothing to choose, or its only kernel cannot have too much weight.
fn weights(terms: &[Term], kernels: usize) -> Option<Vec<f64>> {
    let [Term::Common(set) | Term::Independent(set)] = terms else {
        return None;
    };
    match set {
        Set::Fixed { weights } => Some(weights.clone()),
        Set::LpBall { radius, .. } if kernels == 1 => Some(vec![*radius]),
        Set::Simplex { total } if kernels == 1 => Some(vec![*total]),
        _ => None,
    }
}

fn numbers(machine: &Machine) -> Value {
    match machine {
        Machine::Svc { y, upper } => json!({"name": "svc", "y": y, "C": upper}),
        Machine::Logistic { y, upper } => json!({"name": "logistic", "y": y, "C": upper}),
        Machine::Svr { y, upper, epsilon } => {
            json!({"name": "svr", "y": y, "C": upper, "epsilon": epsilon})
        }
        Machine::Krr { y, lambda } => json!({"name": "krr", "y": y, "lambda": lambda}),
        Machine::OneClass { nu } => json!({"name": "ocsvm", "nu": nu}),
        Machine::Svdd { c } => json!({"name": "svdd", "C": c}),
    }
}

/// M × n × n numbers as NPY.
fn write_kernels(path: &Path, task: &Task) -> Result<()> {
    let (count, n) = (task.grams.len(), task.samples);
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({count}, {n}, {n}), }}");
    // Magic, version and length are ten bytes; all of it is a multiple of 64 that ends with a line.
    let blanks = (64 - (10 + header.len() + 1) % 64) % 64;
    header.push_str(&" ".repeat(blanks));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(std::io::Error::other)?;
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in task.grams.iter().flatten() {
        file.write_all(&value.to_le_bytes())?;
    }
    file.flush()
}

/// Writes those of the problems that can be stated with one kernel, `problems.json` and their matrices, with what the product makes of them. Says how many.
///
/// # Errors
/// When a file cannot be written.
pub fn export(recipes: &[Recipe], folder: &Path) -> Result<usize> {
    std::fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for recipe in recipes {
        let Some(statement) = recipe.statement() else {
            continue;
        };
        let Some((tasks, terms)) = statement.conic() else {
            continue;
        };
        let (Some(theta), Some(bounds)) =
            (weights(&terms, statement.kernels.len()), &recipe.bounds)
        else {
            continue;
        };
        let mut stated = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let file = format!("{}-{number}.npy", written.len());
            write_kernels(&folder.join(&file), task)?;
            stated.push(json!({"kernels": file, "machine": numbers(&task.machine)}));
        }
        let ours = found(recipe).map(|finding| {
            let is_solved = finding.is_solved();
            json!({"objective": finding.objective, "bound": finding.bound, "seconds": finding.seconds, "solved": is_solved})
        });
        written.push(json!({
            "name": recipe.name, "theta": theta, "tasks": stated,
            "low": bounds.low, "high": bounds.high, "ours": ours,
        }));
    }
    std::fs::write(
        folder.join("problems.json"),
        serde_json::to_string(&json!({"all": recipes.len(), "stated": written}))?,
    )?;
    Ok(written.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_npy() {
        let folder = std::env::temp_dir().join(format!("mtmkl-export-{}", std::process::id()));
        let recipes: Vec<Recipe> = super::super::problems();
        let chosen: Vec<Recipe> = recipes
            .into_iter()
            .filter(|recipe| {
                ["svc with fixed", "svc with common", "one kernel, krr"]
                    .contains(&recipe.name.as_str())
            })
            .collect();
        assert_eq!((chosen.len(), export(&chosen, &folder).unwrap()), (3, 2));
        let bytes = std::fs::read(folder.join("0-0.npy")).unwrap();
        let (tasks, _) = chosen
            .iter()
            .find(|recipe| recipe.name == "svc with fixed")
            .and_then(Recipe::statement)
            .and_then(|statement| statement.conic())
            .unwrap();
        let values: Vec<u8> = tasks[0]
            .grams
            .iter()
            .flatten()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let header = bytes.len() - values.len();
        assert_eq!(header % 64, 0);
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        assert_eq!(
            usize::from(u16::from_le_bytes([bytes[8], bytes[9]])) + 10,
            header
        );
        assert!(bytes[header..] == values);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
