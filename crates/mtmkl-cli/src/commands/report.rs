//! `mtmkl report`: a model as one HTML page.

use std::path::Path;

use anyhow::{Context, Result};
use mtmkl::Model;
use mtmkl_report::{Picture, Report, ScoreRow, Scores};

use super::Outcome;
use super::fit::notes;
use super::predict::load;
use crate::args::ReportArgs;
use crate::output;

/// `mtmkl report`
///
/// # Errors
/// When the model cannot be read or the page not written.
pub fn run(args: &ReportArgs) -> Result<Outcome> {
    output::check_place(&args.output)?;
    let model = load(&args.model)?;
    write(&model, &args.output)?;
    output::note(&format!("Report written to {}", args.output.display()));
    Ok(Outcome::Done)
}

/// Writes the page of a model.
///
/// # Errors
/// When it cannot be written.
pub fn write(model: &Model, path: &Path) -> Result<()> {
    let report = report(model)?;
    Ok(mtmkl::model::write_whole(
        path,
        mtmkl_report::html(&report).as_bytes(),
    )?)
}

/// Everything the page shows, from the model and the notes the program keeps in it.
///
/// # Errors
/// When a note cannot be read.
pub fn report(model: &Model) -> Result<Report> {
    let settings: toml::Table = match model.notes().get(notes::SETTINGS) {
        Some(note) => note
            .parse()
            .context("the model's settings cannot be read")?,
        None => toml::Table::new(),
    };
    let data: Vec<(String, String)> = match model.notes().get(notes::DATA) {
        Some(note) => {
            serde_json::from_str(note).context("the model's data summary cannot be read")?
        }
        None => Vec::new(),
    };
    let find = |name: &str| {
        data.iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    };
    let own = Report::from(model);
    Ok(Report {
        title: find("table").map_or("mtmkl model".to_string(), |table| format!("mtmkl: {table}")),
        subtitle: find("target").map(|target| format!("predicting {target}")),
        // Of older models, which do not say it themselves.
        solver: if own.solver.is_empty() {
            let solver = settings.get("solver").and_then(toml::Value::as_str);
            solver.unwrap_or("newton").to_string()
        } else {
            own.solver.clone()
        },
        tolerance: own
            .tolerance
            .or_else(|| settings.get("tol").and_then(toml::Value::as_float)),
        scores: scores(model)?,
        settings: settings
            .iter()
            .map(|(key, value)| (key.clone(), setting(value)))
            .collect(),
        data,
        pictures: pictures(model)?,
        ..own
    })
}

fn setting(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        // Not 0.0000000001.
        toml::Value::Float(number) if *number != 0.0 && number.abs() < 1e-3 => {
            format!("{number:e}")
        }
        toml::Value::Array(values) => values.iter().map(setting).collect::<Vec<_>>().join("  "),
        other => other.to_string(),
    }
}

fn scores(model: &Model) -> Result<Option<Scores>> {
    let Some(note) = model.notes().get(notes::SCORES) else {
        return Ok(None);
    };
    let value: serde_json::Value =
        serde_json::from_str(note).context("the model's scores cannot be read")?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    let Some(methods) = value["methods"].as_array() else {
        return Ok(None);
    };
    let metric = methods
        .first()
        .map_or(String::new(), |method| text(&method["metric"]));
    let rows = methods
        .iter()
        .map(|method| ScoreRow {
            method: match text(&method["name"]).as_str() {
                "learned" => "learned weights".to_string(),
                "uniform" => "uniform average".to_string(),
                other => other.replace("best single: ", "best single kernel, in hindsight: "),
            },
            per_task: method["tasks"].as_array().map_or(Vec::new(), |tasks| {
                tasks.iter().map(|task| number(&task["score"])).collect()
            }),
            mean: number(&method["mean"]),
        })
        .collect();
    Ok(Some(Scores {
        metric,
        higher_is_better: true,
        split: text(&value["split"]),
        rows,
    }))
}

/// The note under which pictures are kept: a list of (title, alternative text, SVG).
pub const PICTURES: &str = "pictures";

fn pictures(model: &Model) -> Result<Vec<Picture>> {
    let Some(note) = model.notes().get(PICTURES) else {
        return Ok(Vec::new());
    };
    let list: Vec<(String, String, String)> =
        serde_json::from_str(note).context("the model's pictures cannot be read")?;
    Ok(list
        .into_iter()
        .map(|(title, alt, svg)| Picture { title, svg, alt })
        .collect())
}
