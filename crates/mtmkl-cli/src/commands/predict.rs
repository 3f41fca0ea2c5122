//! `mtmkl predict`: a model and new rows.

use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::select::Calibration;
use mtmkl::{Model, Registry};
use mtmkl_table::{
    Frame, Place, Predictions, Records, Table, TableError, calibration_of, frame_of,
    training_rows_of,
};

use super::Outcome;
use super::fit::{RowNotes, note_rows, note_skipped, read_table, table_options};
use super::written::Writer;
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

/// What a model says about the rows of a table, and what they say themselves.
pub struct Judged {
    /// The table, as messages name it.
    pub source: String,
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
        let predictor = self.predictor(args);
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

    /// Reads the rows that are asked for, with their targets where those are known, part by part, predicts for each part, and hands it out with the
    /// number of rows before it. Kernel matrices are about all rows, and with them the table is one part.
    ///
    /// # Errors
    /// As [`Loaded::predict`]; parts before the fault have been handed out.
    pub fn predict_in_parts(
        &self,
        args: &NewRowsArgs,
        with_target: bool,
        mut take: impl FnMut(usize, Predicted) -> Result<()>,
    ) -> Result<()> {
        if !args.cross.is_empty() || !precomputed(&self.model).is_empty() {
            return take(0, self.predict(args, with_target)?);
        }
        let (format, mut options) = table_options(&args.table, &self.frame.names(), None)?;
        let features = self.frame.features.iter().map(|feature| &feature.column);
        let target = self.frame.target.iter().filter(|_| with_target);
        let others = self.frame.task.iter().chain(self.frame.group_columns());
        options.only = Some(features.chain(target).chain(others).cloned().collect());
        let mut parts = input::Batches::open(&args.data, format, &options)?;
        let tasks = self.frame.known_tasks(&self.model);
        let predictor = self.predictor(args);
        let cross = CrossGrams::new();
        let pool = choices::pool(args.threads)?;
        let mut notes = RowNotes::default();
        let (mut first, mut used, mut source) = (0, 0, String::new());
        while let Some(table) = parts.next_part()? {
            if first == 0 {
                note_skipped(&table);
                source.clone_from(&table.source);
            }
            let records = (self.frame).records_of_part(&table, with_target, None, &tasks)?;
            notes.add(&self.frame, &table, &records)?;
            let rows = table.rows;
            if records.count() > 0 {
                let asked = Asked {
                    table: &table,
                    records: &records,
                    cross: &cross,
                };
                let predictions = pool.install(|| predictor.predict(&asked))?;
                used += records.count();
                let predicted = Predicted {
                    table,
                    records,
                    predictions,
                };
                take(first, predicted)?;
            }
            first += rows;
        }
        if used == 0 {
            return Err(TableError::NoRows { file: source }.into());
        }
        notes.say(&source);
        Ok(())
    }

    /// Reads the rows that are asked for and predicts for them, part by part: of each row its target and the predictions are kept, and nothing else.
    ///
    /// # Errors
    /// As [`Loaded::predict`].
    pub fn judge(&self, args: &NewRowsArgs) -> Result<Judged> {
        let mut judged: Option<(Place, Judged)> = None;
        self.predict_in_parts(args, true, |before, part| {
            let Predicted {
                table,
                records,
                predictions,
            } = part;
            if let Some((_, all)) = &mut judged {
                all.records.append(&records, before);
                all.predictions.append(predictions);
                return Ok(());
            }
            let first = table.place(records.positions.first().copied().unwrap_or(0));
            let mut all = Judged {
                source: table.source,
                records,
                predictions,
            };
            for position in &mut all.records.positions {
                *position += before;
            }
            judged = Some((first, all));
            Ok(())
        })?;
        let (first, judged) = judged.context("there are no rows")?;
        (self.frame).recognised(&judged.source, first, &judged.records)?;
        Ok(judged)
    }

    /// The model as it is asked for.
    fn predictor(&self, args: &NewRowsArgs) -> Predictor<'_> {
        Predictor {
            model: &self.model,
            frame: &self.frame,
            calibration: self.calibration.as_ref(),
            new_tasks: args.new_tasks,
            training_rows: &self.training_rows,
            limit: TableOptions::default().limit,
            noted: Mutex::default(),
        }
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
            .filter(|(name, path)| !name.is_empty() && !path.is_empty())
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
    if path.as_os_str().is_empty() {
        bail!("{}", input::InputError::NoName);
    }
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
    output::check_apart(
        &[
            ("the model", Some(&args.rows.model)),
            ("the table", Some(&args.rows.data)),
        ],
        &[("-o", args.output.as_deref())],
    )?;
    let loaded = Loaded::new(&args.rows.model, registry)?;
    if args.probability && loaded.calibration.is_none() {
        bail!(
            "{} has no probabilities: fit it with --probability, or with --machine logistic",
            args.rows.model.display()
        );
    }
    let mut writer = Writer::new(args, &loaded.frame.goal)?;
    loaded.predict_in_parts(&args.rows, false, |first, part| writer.write(first, &part))?;
    writer.finish()?;
    Ok(Outcome::Done)
}
