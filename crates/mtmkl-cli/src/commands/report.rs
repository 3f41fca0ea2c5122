//! `mtmkl report`: a model as one HTML page.

use std::path::Path;

use anyhow::{Context, Result};
use mtmkl::{Model, Registry};
use mtmkl_report::Report;

use super::Outcome;
use super::fit::notes;
use super::predict::load;
use crate::args::ReportArgs;
use crate::output;

/// `mtmkl report`
///
/// # Errors
/// When the model cannot be read or the page not written.
pub fn run(args: &ReportArgs, registry: &Registry) -> Result<Outcome> {
    output::check_place(&args.output)?;
    output::check_apart(
        &[("the model", Some(&args.model))],
        &[("-o", Some(&args.output))],
    )?;
    let model = load(&args.model, registry)?;
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

/// Everything the page shows, with the settings that the program keeps in the model.
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
    let settings = settings
        .iter()
        .map(|(key, value)| (key.clone(), setting(value)));
    Ok(Report::of(model, None, settings.collect())?)
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
