//! Tables and JSON on standard output.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use mtmkl::{Model, Status};
use serde_json::{Value, json};

use crate::score::Score;
use crate::words::count;

/// Writes to standard output; a closed pipe is an error of kind `BrokenPipe`, which the program treats as success.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Whether a file can be written there, as far as that can be known beforehand: said before the work is done, not after.
///
/// # Errors
/// When the path is a folder, or its folder does not exist.
pub fn check_place(path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if path.is_dir() {
        bail!("{} is a folder; give a file", path.display());
    }
    if !folder.is_dir() {
        bail!(
            "cannot write {}: there is no folder {}",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

/// A message for the person, on standard error.
pub fn note(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A plain table: first column left, the others right.
pub fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let width = |cell: &String| cell.chars().count();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            rows.iter()
                .map(|row| width(&row[column]))
                .chain([width(&header[column])])
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let space = " ".repeat(widths[column] - width(cell));
            if column == 0 {
                text += &format!("{cell}{space}");
            } else {
                text += &format!("   {space}{cell}");
            }
        }
        text.trim_end().to_string() + "\n"
    };
    let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    let mut text = line(header) + &line(&rule);
    for row in rows {
        text += &line(row);
    }
    text
}

/// A table in Markdown.
pub fn markdown_table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = header.iter().map(|_| "---".to_string()).collect();
    line(header) + &line(&rule) + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// A weight: four digits, a dot where they are all zero, so that sparsity is seen.
pub fn weight(value: f64) -> String {
    if value < 5e-5 {
        "·".to_string()
    } else {
        format!("{value:.4}")
    }
}

/// A score: four digits, a dash where there was nothing to score.
pub fn figure(value: f64) -> String {
    if value.is_nan() {
        "–".to_string()
    } else {
        format!("{value:.4}")
    }
}

/// `3 passes, 0.012 s for kernels, 0.034 s to solve`
pub fn effort(model: &Model) -> String {
    let outcome = model.outcome();
    format!(
        "{}, {:.3} s for kernels, {:.3} s to solve",
        count(outcome.trace.len(), "pass", "passes"),
        outcome.seconds.kernels,
        outcome.seconds.solve
    )
}

/// A share with a sensible number of digits: 0.00042 → 0.042 %.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "an unknown share".to_string();
    }
    let value = 100.0 * share;
    match value {
        0.0 => "0 %".to_string(),
        v if v >= 1.0 => format!("{v:.1} %"),
        v if v >= 0.001 => format!("{v:.3} %"),
        v => format!("{v:.0e} %"),
    }
}

/// The certificate in words.
pub fn certificate(model: &Model) -> String {
    let outcome = model.outcome();
    let between = format!(
        "the optimum lies between {:.6} and {:.6}",
        outcome.bound, outcome.objective
    );
    match outcome.status {
        Status::Converged => {
            format!(
                "Certified: within {} of the optimum; {between}.",
                percent(outcome.gap)
            )
        }
        Status::ConvergedUncertified => format!(
            "Not certified: a kernel is not positive semi-definite. As far as the local maxima found go, {between}."
        ),
        status => format!(
            "Not converged ({}): within {} of the optimum; {between}.",
            status.name().replace('-', " "),
            percent(outcome.gap)
        ),
    }
}

/// The table of weights: tasks in rows, kernels in columns; common and specific parts apart where there are both.
pub fn weights(model: &Model) -> String {
    // Kernels in rows: names are long, tasks often few; and many tasks still fit as rows.
    let kernels: Vec<String> = model
        .kernels()
        .iter()
        .map(|view| view.name.clone())
        .collect();
    let tasks: Vec<String> = model.tasks().iter().map(|task| task.name.clone()).collect();
    let both = model.common().zip(model.specific());
    if tasks.len() <= 6 {
        let mut header = vec!["kernel".to_string()];
        if both.is_some() {
            header.push("common".to_string());
            header.extend(tasks.iter().map(|task| format!("own: {task}")));
        } else {
            header.extend(tasks.iter().cloned());
        }
        let rows: Vec<Vec<String>> = (0..kernels.len())
            .map(|kernel| {
                let mut row = vec![kernels[kernel].clone()];
                if let Some((common, specific)) = both {
                    row.push(weight(common[(0, kernel)]));
                    row.extend((0..tasks.len()).map(|task| weight(specific[(task, kernel)])));
                } else {
                    row.extend(
                        (0..tasks.len()).map(|task| weight(model.weights()[(task, kernel)])),
                    );
                }
                row
            })
            .collect();
        return table(&header, &rows);
    }
    let mut rows = Vec::new();
    if let Some((common, specific)) = both {
        rows.push(
            std::iter::once("common".to_string())
                .chain(common.row(0).iter().map(|w| weight(*w)))
                .collect(),
        );
        rows.extend((0..tasks.len()).map(|task| {
            std::iter::once(format!("own: {}", tasks[task]))
                .chain(specific.row(task).iter().map(|w| weight(*w)))
                .collect()
        }));
    } else {
        rows.extend((0..tasks.len()).map(|task| {
            std::iter::once(tasks[task].clone())
                .chain(model.weights().row(task).iter().map(|w| weight(*w)))
                .collect()
        }));
    }
    let header: Vec<String> = std::iter::once("task".to_string()).chain(kernels).collect();
    table(&header, &rows)
}

/// The object that `fit --json` and `inspect --json` print, without scores.
pub fn json(model: &Model) -> Value {
    let outcome = model.outcome();
    let rows = |grid: &mtmkl::grid::Grid| -> Vec<Vec<f64>> {
        grid.iter_rows().map(<[f64]>::to_vec).collect()
    };
    let mut object = json!({
        "status": outcome.status.name(),
        "objective": outcome.objective,
        "bound": outcome.bound,
        "gap": outcome.gap,
        "passes": outcome.trace.len(),
        "kernels": model.kernels().iter().map(|view| &view.name).collect::<Vec<_>>(),
        "tasks": model.tasks().iter().enumerate().map(|(number, task)| json!({
            "name": task.name,
            "samples": task.samples,
            "support": task.support.len(),
            "weights": model.weights().row(number),
        })).collect::<Vec<_>>(),
        "machine": model.machine(),
        "sharing": model.sharing(),
        "seconds": {
            "kernels": outcome.seconds.kernels,
            "solve": outcome.seconds.solve,
            "total": outcome.seconds.kernels + outcome.seconds.solve,
        },
    });
    if let Some(common) = model.common() {
        object["common"] = json!(common.row(0));
    }
    if let Some(specific) = model.specific() {
        object["specific"] = json!(rows(specific));
    }
    object
}

/// Scores of several methods side by side: a row per task, and the mean.
pub fn scores(methods: &[(String, Score)]) -> String {
    let Some((_, first)) = methods.first() else {
        return String::new();
    };
    let header: Vec<String> = ["task".to_string(), "rows".to_string()]
        .into_iter()
        .chain(
            methods
                .iter()
                .map(|(name, score)| format!("{} ({name})", score.metric)),
        )
        .collect();
    let mut rows: Vec<Vec<String>> = first
        .tasks
        .iter()
        .enumerate()
        .map(|(number, task)| {
            [task.name.clone(), task.rows.to_string()]
                .into_iter()
                .chain(
                    methods
                        .iter()
                        .map(|(_, score)| figure(score.tasks[number].score)),
                )
                .collect()
        })
        .collect();
    let total: usize = first.tasks.iter().map(|task| task.rows).sum();
    rows.push(
        ["mean".to_string(), total.to_string()]
            .into_iter()
            .chain(methods.iter().map(|(_, score)| figure(score.mean)))
            .collect(),
    );
    table(&header, &rows)
}
