//! Tables and JSON on standard output.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::grid::Grid;
use mtmkl::{Model, Status};
use serde_json::{Value, json};

use crate::score::{Method, Score};
use crate::terminal::{self, width};
use crate::words::count;

/// With more rows than this, a table has only the first or the most important of them.
const MOST_ROWS: usize = 40;
/// With more kernels than this, a table that has them in columns has only the heaviest.
const MOST_COLUMNS: usize = 12;

/// Writes data for programs to standard output as they are; a closed pipe is an error of kind `BrokenPipe`, which the program treats as success.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Writes text for people to standard output; whatever is in it, it only shows.
///
/// # Errors
/// As [`print()`].
pub fn show(text: &str) -> Result<()> {
    print(&terminal::lines(text))
}

/// Whether a file can be written there, as far as that can be known beforehand: said before the work is done, not after.
///
/// # Errors
/// When the path is a folder, its folder does not exist, or the system refuses.
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
    mtmkl::model::check_writable(path).map_err(|error| match error {
        mtmkl::Error::Io { source, .. } => anyhow!("cannot write {}: {source}", path.display()),
        other => other.into(),
    })
}

/// A file of a run, where there is one: what it is in words, and where.
pub type Named<'a> = (&'a str, Option<&'a Path>);

/// That nothing is written over what is read, nor over what else is written.
///
/// # Errors
/// Names the two that are one file, however they are spelled.
pub fn check_apart(read: &[Named<'_>], written: &[Named<'_>]) -> Result<()> {
    for (number, (what, path)) in written.iter().enumerate() {
        for (other, place) in read.iter().chain(&written[..number]) {
            let (Some(path), Some(place)) = (path, place) else {
                continue;
            };
            // A device is not lost by being written to.
            let is_lost = place.is_file() && is_same(path, place);
            if is_lost || path == place && !path.exists() {
                bail!(
                    "{what} is {}, which is {other} too; give it a name of its own",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    real(one).is_some_and(|found| real(other) == Some(found))
}

/// A message for the person, one line on standard error.
pub fn note(text: &str) {
    complain(&terminal::line(text));
}

/// The same, unless it was said already: what reads a table several times has the same to say of it each time.
pub fn note_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID
        .lock()
        .is_ok_and(|mut said| said.insert(text.to_string()))
    {
        note(text);
    }
}

/// A message of several lines whose parts have been made harmless.
pub fn complain(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = writeln!(std::io::stderr(), "{}", terminal::lines(text));
}

/// A plain table: first column left, the others right. Cells are made harmless, each in its line.
pub fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let cells =
        |row: &[String]| -> Vec<String> { row.iter().map(|text| terminal::cell(text)).collect() };
    let header = cells(header);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
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
    let mut text = line(&header) + &line(&rule);
    for row in &rows {
        text += &line(row);
    }
    text
}

/// A table with a row for each task: the first of them, and how many there are. The rest is in `--json`.
pub fn task_table(header: &[String], rows: &[Vec<String>]) -> String {
    let shown = rows.len().min(MOST_ROWS);
    table(header, &rows[..shown]) + &first_of(shown, rows.len())
}

/// The line under a table that does not have all tasks.
fn first_of(shown: usize, tasks: usize) -> String {
    if shown < tasks {
        format!("(the first {shown} of {tasks} tasks; --json has all)\n")
    } else {
        String::new()
    }
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

/// A value of the objective, small ones with as many digits.
fn value(number: f64) -> String {
    if number != 0.0 && number.abs() < 1e-2 {
        format!("{number:.6e}")
    } else {
        format!("{number:.6}")
    }
}

/// The certificate in words.
pub fn certificate(model: &Model) -> String {
    let outcome = model.outcome();
    let between = format!(
        "the optimum lies between {} and {}",
        value(outcome.bound),
        value(outcome.objective)
    );
    match outcome.status {
        // What is left between the bounds is no more than rounding does to a zero.
        Status::Converged if outcome.gap == 0.0 && outcome.objective > outcome.bound => {
            format!("Certified: zero up to rounding; {between}.")
        }
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

/// What else is to be known about the certificate, in sentences.
pub fn remarks(model: &Model) -> String {
    let outcome = model.outcome();
    let mut text = String::new();
    if outcome.is_rounded {
        text += "The certificate is for the kernels as rounded to single precision.\n";
    }
    if outcome.status == Status::Stalled {
        text += "Rounding leaves no more to be known here: normalise the kernels (--normalize true), scale the columns (--scale standard), lower C or raise --tol.\n";
    }
    if let Some(fallback) = outcome.fallback {
        text += &format!(
            "Solved by epf in place of newton: {}.\n",
            mtmkl_report::reason(fallback)
        );
    }
    text
}

/// The heaviest kernels, at most so many, in their own order.
fn heaviest(model: &Model, most: usize) -> Vec<usize> {
    let kernels = model.kernels().len();
    let mut order: Vec<usize> = (0..kernels).collect();
    if kernels > most {
        let mut heights = vec![0.0_f64; kernels];
        for row in model.weights().iter_rows() {
            for (height, weight) in heights.iter_mut().zip(row) {
                *height = height.max(*weight);
            }
        }
        order.sort_by(|&a, &b| heights[b].total_cmp(&heights[a]).then(a.cmp(&b)));
        order.truncate(most);
        order.sort_unstable();
    }
    order
}

/// The table of weights: kernels in rows, or tasks where these are many; common and specific parts apart where there are both. Of very
/// many, the heaviest kernels and the first tasks.
pub fn weights(model: &Model) -> String {
    let tasks: Vec<&str> = model
        .tasks()
        .iter()
        .map(|task| task.name.as_str())
        .collect();
    let groups = mtmkl_report::groups(model);
    let is_sum = !groups.is_empty() || model.common().and(model.specific()).is_some();
    let mut others = model.weights().iter_rows().skip(1);
    let is_one = tasks.len() > 1 && others.all(|own| own == model.weights().row(0));
    // Kernels in rows: names are long, tasks often few; and many tasks still fit as rows.
    let upright = is_one || tasks.len() + groups.len() <= 6;
    let kernels = heaviest(model, if upright { MOST_ROWS } else { MOST_COLUMNS });
    let name = |kernel: usize| model.kernels()[kernel].name.clone();
    // A line for all tasks, where they have something in common, and one for each.
    let mut lines: Vec<(String, &[f64])> = Vec::new();
    if is_sum {
        let common = model.common().map(|common| common.row(0));
        lines.extend(common.map(|weights| ("common".to_string(), weights)));
        let groups = groups.iter();
        lines.extend(groups.map(|group| {
            let title = format!("{}: {}", group.level, group.name);
            (title, group.weights.as_slice())
        }));
        let own = tasks
            .iter()
            .zip(model.specific().into_iter().flat_map(Grid::iter_rows));
        lines.extend(own.map(|(name, weights)| (format!("own: {name}"), weights)));
    } else if is_one {
        lines.push(("all tasks".to_string(), model.weights().row(0)));
    } else {
        let own = tasks.iter().enumerate();
        lines.extend(own.map(|(task, name)| ((*name).to_string(), model.weights().row(task))));
    }
    let mut left_out = Vec::new();
    if kernels.len() < model.kernels().len() {
        left_out.push(format!(
            "the heaviest {} of {} kernels",
            kernels.len(),
            model.kernels().len()
        ));
    }
    let mut text = if upright {
        let header: Vec<String> = std::iter::once("kernel".to_string())
            .chain(lines.iter().map(|(name, _)| name.clone()))
            .collect();
        let rows: Vec<Vec<String>> = kernels
            .iter()
            .map(|&kernel| {
                std::iter::once(name(kernel))
                    .chain(lines.iter().map(|(_, weights)| weight(weights[kernel])))
                    .collect()
            })
            .collect();
        table(&header, &rows)
    } else {
        let header: Vec<String> = std::iter::once("task".to_string())
            .chain(kernels.iter().map(|&kernel| name(kernel)))
            .collect();
        // What several tasks share stands before their own.
        let has_own = !is_sum || model.specific().is_some();
        if tasks.len() > MOST_ROWS && has_own {
            let shared = lines.len() - tasks.len();
            lines.truncate(MOST_ROWS + shared);
            left_out.push(format!("the first {MOST_ROWS} of {} tasks", tasks.len()));
        }
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|(name, weights)| {
                std::iter::once(name.clone())
                    .chain(kernels.iter().map(|&kernel| weight(weights[kernel])))
                    .collect()
            })
            .collect();
        table(&header, &rows)
    };
    if !left_out.is_empty() {
        text += &format!("({}; --json has all)\n", left_out.join(", "));
    }
    text
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
        "tolerance": outcome.tolerance,
        "solver": outcome.solver,
        "fallback": outcome.fallback,
        "rounded": outcome.is_rounded,
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
    let groups = mtmkl_report::groups(model);
    if !groups.is_empty() {
        let names = |tasks: &[usize]| -> Vec<&str> {
            let tasks = tasks.iter();
            tasks
                .map(|&task| model.tasks()[task].name.as_str())
                .collect()
        };
        let groups = groups.iter().map(|group| {
            json!({
                "level": group.level, "name": group.name, "tasks": names(&group.tasks),
                "weights": group.weights,
            })
        });
        object["groups"] = groups.collect();
    }
    object
}

/// Scores of several methods: a row for each, a column for each metric, of several tasks the mean and all rows together; and by the metric
/// that counts, a row for each task or class.
pub fn scores(methods: &[Method], by_class: bool) -> String {
    let Some(first) = methods.first().map(Method::main) else {
        return String::new();
    };
    let tasks = first.tasks.len();
    let mut text = if by_class || tasks == 1 {
        summary("", methods, |score| score.mean)
    } else {
        let rows: usize = first.tasks.iter().map(|task| task.rows).sum();
        let mean = summary(&format!("mean of {tasks} tasks"), methods, |score| {
            score.mean
        });
        let together = format!("all {rows} rows together");
        mean + "\n" + &summary(&together, methods, |score| score.together)
    };
    if tasks > 1 {
        text += "\n";
        text += &by_task(methods, if by_class { "class" } else { "task" });
    }
    text
}

/// A row for each method, a column for each metric.
fn summary(title: &str, methods: &[Method], figure_of: impl Fn(&Score) -> f64) -> String {
    let metrics = methods[0].scores.iter();
    let metrics = metrics.map(|score| score.metric.to_string());
    let header: Vec<String> = std::iter::once(title.to_string()).chain(metrics).collect();
    let row = |method: &Method| {
        // Simpler answers have no probabilities.
        let figures = methods[0].scores.iter().map(|shown| {
            let mut own = method.scores.iter();
            let own = own.find(|score| score.metric == shown.metric);
            figure(own.map_or(f64::NAN, &figure_of))
        });
        std::iter::once(method.name.clone())
            .chain(figures)
            .collect()
    };
    let rows: Vec<Vec<String>> = methods.iter().map(row).collect();
    table(&header, &rows)
}

/// A row for each task, a column for each method.
fn by_task(methods: &[Method], what: &str) -> String {
    let first = methods[0].main();
    let names = methods.iter().map(|method| method.name.clone());
    let header: Vec<String> = [format!("{} by {what}", first.metric), "rows".to_string()]
        .into_iter()
        .chain(names)
        .collect();
    let shown = first.tasks.len().min(MOST_ROWS);
    let rows: Vec<Vec<String>> = first.tasks[..shown]
        .iter()
        .enumerate()
        .map(|(number, task)| {
            let own = methods.iter().map(|method| &method.main().tasks[number]);
            [task.name.clone(), task.rows.to_string()]
                .into_iter()
                .chain(own.map(|task| figure(task.score)))
                .collect()
        })
        .collect();
    table(&header, &rows) + &first_of(shown, first.tasks.len())
}
