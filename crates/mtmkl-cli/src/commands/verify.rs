//! `mtmkl verify`: whether the certificate of a model holds, from its table and the file alone.
//!
//! The table becomes samples and tasks as it did for the fit, by the settings that the model keeps (which columns, which rows by lot, which weights)
//! and by the scales in it. What is checked then is the business of `mtmkl-verify`, which knows nothing of what solved the problem.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::{Model, Registry};
use mtmkl_table::{Dataset, Equals, frame_of};
use mtmkl_verify::{Error, Failure, Quantity, Row, Verdict, verify};
use serde_json::json;

use super::Outcome;
use super::fit::{Fit, notes};
use super::predict::load;
use crate::args::{Cli, Command, FitArgs, TableArgs, VerifyArgs};
use crate::words::count;
use crate::{choices, config, output};

/// `mtmkl verify`
///
/// # Errors
/// When the model cannot be read, or the table is not the one it was fitted on.
pub fn run(args: &VerifyArgs, registry: &Registry) -> Result<Outcome> {
    let model = load(&args.model, registry)?;
    let mut settings = settings_of(&model, args, registry)?;
    let mut fit = Fit::open(&mut settings, "verify")?;
    // Rows as the model's own scales make them; were these changed, rows would not be those that it keeps.
    let transfer = fit.frame.transfer.take();
    fit.frame = frame_of(&model)?;
    // Notes name the groups of tasks; the kernels between them are made anew, and compared with the model's.
    fit.frame.transfer = transfer;
    let sets = fit.sets(Equals::Merged)?;
    let dataset = &sets.dataset;
    let pool = choices::pool(args.threads)?;
    let verdict = pool.install(|| verify(&model, &dataset.samples, &dataset.tasks));
    let verdict = verdict.map_err(|error| located(&error, &fit, dataset))?;
    if args.json {
        let object = json(&verdict, &fit, dataset)?;
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        output::show(&text(&verdict, &fit, dataset))?;
    }
    Ok(if verdict.holds {
        Outcome::Done
    } else {
        Outcome::Refuted
    })
}

/// The settings of the fit, which the model keeps, for this table.
fn settings_of(model: &Model, args: &VerifyArgs, registry: &Registry) -> Result<FitArgs> {
    let file = args.model.display();
    if model.notes().contains_key("python") {
        bail!("{file} was fitted in Python: check it there with mtmkl.load(MODEL).verify(X, y)");
    }
    let text = (model.notes().get(notes::SETTINGS)).with_context(|| {
        format!("{file} does not say how a table becomes its samples: the library wrote it, whose mtmkl_verify::verify takes samples and tasks")
    })?;
    let program = Cli::command_with(registry)?;
    let path = Path::new("the model's settings");
    let mut line: Vec<OsString> = vec!["mtmkl".into(), "fit".into()];
    line.extend(config::flags(&program, "fit", text, path, &[])?);
    line.push("--".into());
    line.push(args.data.clone().into());
    let cli = Cli::read(program, registry, &line);
    let cli = cli.map_err(|error| anyhow!("the settings of {file} cannot be read: {error}"))?;
    let Command::Fit(fit) = cli.command else {
        bail!("the settings of {file} are not those of a fit")
    };
    let mut fit = *fit;
    (fit.output, fit.report, fit.test, fit.quiet) = (None, None, None, true);
    if fit.transfer.is_empty() && model.support_sets().iter().all(|set| set.origins.is_none()) {
        // Groups of weights are in the model; only kernels between tasks need the file again.
        (fit.tree, fit.task_groups) = (None, None);
    }
    replace(&mut fit.table, &args.table);
    moved(&mut fit.kernel, args)?;
    Ok(fit)
}

/// How the table is read now, where that is said.
fn replace(table: &mut TableArgs, said: &TableArgs) {
    if said.format.is_some() {
        table.format.clone_from(&said.format);
    }
    if said.delimiter.is_some() {
        table.delimiter.clone_from(&said.delimiter);
    }
    table.no_header |= said.no_header;
}

/// Precomputed kernels at their new places.
fn moved(kernels: &mut [String], args: &VerifyArgs) -> Result<()> {
    for file in &args.kernel_matrix {
        let mut found = false;
        for spec in kernels.iter_mut() {
            let Some(options) = spec.strip_prefix("precomputed:") else {
                continue;
            };
            let old = options
                .strip_prefix("path=")
                .or_else(|| options.strip_prefix("name="));
            let old = Path::new(old.unwrap_or(options));
            if old.file_stem() == file.file_stem() {
                *spec = format!("precomputed:path={}", file.display());
                found = true;
            }
        }
        if !found {
            bail!(
                "--kernel-matrix {}: the model has no precomputed kernel of a file called so",
                file.display()
            );
        }
    }
    Ok(())
}

/// A row of a sample set, by its place in the file.
fn place(fit: &Fit, dataset: &Dataset, row: Row) -> Option<String> {
    let record = *dataset.rows.get(row.set)?.get(row.position)?;
    let position = *fit.records.positions.get(record)?;
    Some(fit.table.place(position).to_string())
}

/// An error with the place in the user's file.
fn located(error: &Error, fit: &Fit, dataset: &Dataset) -> anyhow::Error {
    let file = &fit.table.source;
    match error {
        Error::Row {
            set,
            row,
            what,
            stated,
            found,
        } => {
            let at = Row {
                set: *set,
                position: *row,
            };
            let at = place(fit, dataset, at).map_or(String::new(), |place| format!(", {place}"));
            anyhow!(
                "{file}{at}: this is not the row that the model was fitted on: its {what}, as kernels see it, is {stated} in the model and \
                 {found} here; take the table of the fit, or the model file was changed"
            )
        }
        _ => anyhow!("{file}: {error}"),
    }
}

/// A failure in words, with the place in the user's file.
fn said(failure: &Failure, fit: &Fit, dataset: &Dataset) -> String {
    let Failure {
        quantity,
        task,
        row,
        problem,
        ..
    } = failure;
    let mut text = quantity.name().to_string();
    if let Some(task) = task {
        text += &format!(" of task `{task}`");
    }
    if let Some(place) = row.and_then(|row| place(fit, dataset, row)) {
        text += &format!(", {place}");
    }
    format!("{text}: {problem}")
}

fn json(verdict: &Verdict, fit: &Fit, dataset: &Dataset) -> Result<serde_json::Value> {
    let mut object = serde_json::to_value(verdict)?;
    object["table"] = json!(fit.table.source);
    for (failure, own) in verdict
        .failures
        .iter()
        .zip(object["failures"].as_array_mut().into_iter().flatten())
    {
        own["place"] = json!(failure.row.and_then(|row| place(fit, dataset, row)));
    }
    Ok(object)
}

fn text(verdict: &Verdict, fit: &Fit, dataset: &Dataset) -> String {
    let (objective, bound, gap) = (&verdict.objective, &verdict.bound, &verdict.gap);
    let tolerance = gap.tolerance.map_or(String::new(), |tolerance| {
        format!(", asked for {tolerance:e}")
    });
    let mut text = format!(
        "{} of {}, {}\n\nstatus     {}\nobjective  stated {:?}, found {:?}, rounding {:.1e}\nbound      stated {:?}, found {:?}, rounding \
         {:.1e}\ngap        stated {:.4e}, found {:.4e}{tolerance}\n\n",
        count(fit.records.select(&fit.train).count(), "row", "rows"),
        fit.table.source,
        count(verdict.tasks.len(), "task", "tasks"),
        verdict.status,
        objective.stated,
        objective.found,
        objective.allowance,
        bound.stated,
        bound.found,
        bound.allowance,
        gap.stated,
        gap.found,
    );
    if !verdict.assumed.is_empty() {
        text += &format!(
            "Taken for granted, as the fit checked it: positive semi-definite is {}\n",
            verdict.assumed.join(", ")
        );
    }
    if verdict.holds {
        text += "Every claim holds: the optimum is between bound and objective";
        let rounding = objective.allowance + bound.allowance;
        let stated = objective.stated - bound.stated;
        if rounding > stated {
            text += &format!(
                ", up to rounding of {rounding:.1e}, which is more than the {stated:.1e} between them"
            );
        }
        text += "\n";
    }
    for failure in &verdict.failures {
        let word = if failure.quantity == Quantity::Rounding {
            "Cannot be told in double precision"
        } else {
            "Does not hold"
        };
        text += &format!("{word}: {}\n", said(failure, fit, dataset));
    }
    text
}
