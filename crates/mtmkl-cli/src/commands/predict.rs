//! `mtmkl predict`: a model and new rows.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::select::Calibration;
use mtmkl::{Model, Registry};
use mtmkl_table::{
    Frame, Goal, Predictions, Records, Table, calibration_of, frame_of, training_rows_of,
};
use serde_json::json;

use super::Outcome;
use super::fit::{note_rows, read_table};
use crate::args::{NewRowsArgs, PredictArgs};
use crate::choices;
use crate::input::{self, GramOptions, TableOptions};
use crate::output;
use crate::predictor::{Asked, CrossGrams, Predictor};
use crate::words::{count, listed};

/// A model read from a file, with what the program keeps in it.
pub struct Loaded {
    /// The model.
    pub model: Model,
    /// How tables become numbers.
    pub frame: Frame,
    /// What makes probabilities of its decisions.
    pub calibration: Option<Calibration>,
    /// Rows of the training table in each sample set, for precomputed kernels.
    pub training_rows: Vec<Vec<usize>>,
}

/// Rows of a table and what a model says about them.
pub struct Predicted {
    /// The table.
    pub table: Table,
    /// Its rows, without those left out.
    pub records: Records,
    /// The predictions for them.
    pub predictions: Predictions,
}

impl Loaded {
    /// Reads a model file.
    ///
    /// # Errors
    /// When it cannot be read, or is no model of this program.
    pub fn new(path: &Path, registry: &Registry) -> Result<Self> {
        let model = load(path, registry)?;
        let frame = frame_of(&model)?;
        let calibration = calibration_of(&model)?;
        let training_rows = training_rows_of(&model)?;
        check_precomputed(&model, &training_rows)?;
        Ok(Self {
            model,
            frame,
            calibration,
            training_rows,
        })
    }

    /// Reads the rows that are asked for, with their targets where those are known, and predicts for them.
    ///
    /// # Errors
    /// When the rows cannot be read, or do not fit the model.
    pub fn predict(&self, args: &NewRowsArgs, with_target: bool) -> Result<Predicted> {
        let table = read_table(&args.data, &args.table, &self.frame.names(), None)?;
        let tasks = self.frame.known_tasks(&self.model);
        let records = self.frame.records(&table, with_target, None, &tasks)?;
        note_rows(&self.frame, &table, &records)?;
        let cross = self.cross_of(&table, &records, read_cross(&args.cross)?)?;
        let predictor = Predictor {
            model: &self.model,
            frame: &self.frame,
            calibration: self.calibration.as_ref(),
            new_tasks: args.new_tasks,
            training_rows: &self.training_rows,
            limit: TableOptions::default().limit,
        };
        let pool = choices::pool(args.threads)?;
        let asked = Asked {
            table: &table,
            records: &records,
            cross: &cross,
        };
        let predictions = pool.install(|| predictor.predict(&asked))?;
        Ok(Predicted {
            table,
            records,
            predictions,
        })
    }

    /// The cross matrices that the kernels need, each with one row for each row that is predicted.
    fn cross_of(&self, table: &Table, records: &Records, cross: CrossGrams) -> Result<CrossGrams> {
        let given = precomputed(&self.model);
        if let Some(name) = cross.keys().find(|name| !given.contains(&name.as_str())) {
            let known = if given.is_empty() {
                "none".to_string()
            } else {
                listed(&given)
            };
            bail!(
                "--cross {name}: the model has no precomputed kernel of this name; it has {known}"
            );
        }
        // A kernel without weight anywhere is not asked for.
        let weighted = |number: usize| {
            let weights = self.model.weights();
            (0..weights.rows()).any(|task| weights[(task, number)] != 0.0)
        };
        for (number, view) in self.model.kernels().iter().enumerate() {
            if let Some(name) = view.kernel.given()
                && !cross.contains_key(name)
                && weighted(number)
            {
                bail!(
                    "the model has a precomputed kernel `{name}`: give its values between the new rows and the training rows with \
                     --cross {name}=FILE"
                );
            }
        }
        cross
            .into_iter()
            .map(|(name, (gram, own))| {
                if gram.rows != table.rows {
                    bail!(
                        "--cross {name}: the matrix has {}, expected {}: one for each row of {}",
                        count(gram.rows, "row", "rows"),
                        table.rows,
                        table.source
                    );
                }
                let positions = &records.positions;
                let own = own.map(|own| positions.iter().map(|&row| own[row]).collect());
                Ok((name, (gram.with_rows(positions), own)))
            })
            .collect()
    }
}

/// Reads the cross matrices, `NAME=FILE` each; an array called `own` in an archive is k(x, x).
fn read_cross(list: &[String]) -> Result<CrossGrams> {
    let mut cross = CrossGrams::new();
    for text in list {
        let (name, path) = text
            .split_once('=')
            .with_context(|| format!("--cross {text}: expected NAME=FILE"))?;
        let mut values = None;
        let mut own = None;
        for (member, gram) in input::read_gram(Path::new(path), None, &GramOptions::default())? {
            if member.as_deref() == Some("own") {
                own = Some(gram.values.to_vec());
            } else if values.replace(gram).is_some() {
                bail!(
                    "--cross {text}: the archive has several matrices; save the one that is meant (and `own`)"
                );
            }
        }
        let values =
            values.with_context(|| format!("--cross {text}: there is no matrix in the file"))?;
        if own.as_ref().is_some_and(|own| own.len() != values.rows) {
            bail!("--cross {text}: `own` needs one number per row of the matrix");
        }
        cross.insert(name.to_string(), (values, own));
    }
    Ok(cross)
}

/// The names of a model's precomputed kernels.
fn precomputed(model: &Model) -> Vec<&str> {
    let kernels = model.kernels().iter();
    kernels.filter_map(|view| view.kernel.given()).collect()
}

/// Whether a model has what prediction from its precomputed kernels takes for granted: a file can say anything.
fn check_precomputed(model: &Model, training_rows: &[Vec<usize>]) -> Result<()> {
    let given = precomputed(model);
    let fits = model.support_sets().iter().enumerate().all(|(set, kept)| {
        given
            .iter()
            .all(|name| kept.given_diagonals.contains_key(*name))
            && training_rows
                .get(set)
                .is_some_and(|rows| rows.len() == kept.samples)
    });
    if !given.is_empty() && !fits {
        bail!(
            "the model does not say which rows its precomputed kernels are about: the file is damaged"
        );
    }
    Ok(())
}

/// Reads a model.
///
/// # Errors
/// When there is none, or it is not one.
pub fn load(path: &Path, registry: &Registry) -> Result<Model> {
    let file = path.display();
    Model::load_with(registry, path).map_err(|error| match error {
        mtmkl::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            anyhow!("{file}: no such file")
        }
        mtmkl::Error::Io { .. } if path.is_dir() => anyhow!("{file} is a folder; give a file"),
        mtmkl::Error::Io { source, .. } => anyhow!("{file} cannot be read: {source}"),
        mtmkl::Error::Format { problem } => {
            anyhow!("{file} is not a readable mtmkl model: {problem}")
        }
        unknown @ mtmkl::Error::Unknown { .. } => anyhow!(
            "{file} cannot be used here: {unknown}; a program with parts of its own made it, or it is damaged"
        ),
        other => anyhow!("{file} is not a readable mtmkl model: {other}"),
    })
}

/// `mtmkl predict`
///
/// # Errors
/// When the model or the rows cannot be used.
pub fn run(args: &PredictArgs, registry: &Registry) -> Result<Outcome> {
    args.output
        .iter()
        .try_for_each(|path| output::check_place(path))?;
    let loaded = Loaded::new(&args.rows.model, registry)?;
    if args.probability && loaded.calibration.is_none() {
        bail!(
            "{} has no probabilities: fit it with --probability, or with --machine logistic",
            args.rows.model.display()
        );
    }
    let Predicted {
        records,
        predictions,
        ..
    } = loaded.predict(&args.rows, false)?;
    let text = if args.json {
        let is_number = matches!(loaded.frame.goal, Goal::Regression | Goal::OneClass);
        let rows: Vec<serde_json::Value> = (0..records.count())
            .map(|row| {
                let mut object = json!({ "row": records.positions[row] + 1 });
                object["prediction"] = if is_number {
                    json!(predictions.numbers[row])
                } else {
                    json!(predictions.labels[row])
                };
                if let Some(tasks) = &records.task {
                    object["task"] = json!(tasks.get(row));
                }
                if args.probability {
                    let own = predictions.probabilities.iter().map(|own| own[row]);
                    object["probabilities"] = json!(own.collect::<Vec<f64>>());
                }
                if args.decision {
                    object["decision"] = json!(predictions.decisions[row]);
                }
                object
            })
            .collect();
        let mut object = json!({ "predictions": rows, "decisions": predictions.names });
        if args.probability {
            object["classes"] = json!(loaded.frame.goal.classes());
        }
        format!("{}\n", serde_json::to_string_pretty(&object)?)
    } else {
        csv(args, loaded.frame.goal.classes(), &records, &predictions)
    };
    match &args.output {
        Some(path) => mtmkl::model::write_whole(path, text.as_bytes())?,
        // Programs get every name as it is, people see it.
        None if std::io::stdout().is_terminal() => output::show(&text)?,
        None => output::print(&text)?,
    }
    Ok(Outcome::Done)
}

/// `row,task,prediction,probability…,decision…`: rows are counted from 1, as in the table read.
fn csv(
    args: &PredictArgs,
    classes: &[String],
    records: &Records,
    predictions: &Predictions,
) -> String {
    let quoted = |cell: &str| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_string()
        }
    };
    let mut text = String::from("row");
    if records.task.is_some() {
        text += ",task";
    }
    text += ",prediction";
    if args.probability {
        for class in classes {
            text += &format!(",{}", quoted(&format!("probability {class}")));
        }
    }
    if args.decision {
        for name in &predictions.names {
            let name = if name == "decision" {
                name.clone()
            } else {
                format!("decision {name}")
            };
            text += &format!(",{}", quoted(&name));
        }
    }
    text.push('\n');
    for row in 0..records.count() {
        text += &(records.positions[row] + 1).to_string();
        if let Some(tasks) = &records.task {
            text += &format!(",{}", quoted(tasks.get(row)));
        }
        text += &format!(",{}", quoted(&predictions.labels[row]));
        if args.probability {
            for own in &predictions.probabilities {
                text += &format!(",{}", own[row]);
            }
        }
        if args.decision {
            for value in &predictions.decisions[row] {
                // A machine that is not about the row's task says nothing.
                text += &if value.is_nan() {
                    ",".to_string()
                } else {
                    format!(",{value}")
                };
            }
        }
        text.push('\n');
    }
    text
}
