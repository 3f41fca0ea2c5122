//! `mtmkl fit`: from a table to a model.

mod baselines;
mod grams;
mod judge;
mod limits;
mod open;
mod price;
mod room;
mod save;
mod shares;
mod tree;

use anyhow::{Result, anyhow};
use mtmkl::error::{DataProblem, Place};
use mtmkl::ledger::Ledger;
use mtmkl::select::{Limits, Price, usual_problem};
use mtmkl::{Model, Normalization, ProblemSpec, Status, Stop, Storage, Task};
use mtmkl_table::{Equals, Frame, Table, keep, keep_calibration, problem_of};
use serde_json::json;

use self::judge::{Scores, Trained};
pub(super) use self::limits::{fitting_of, note_storage, preparation_of};
pub(super) use self::open::{
    Fit, RowNotes, Sets, note_rows, note_skipped, read_table, scaling_of, table_options,
};
pub(super) use self::save::Saved;
pub(super) use self::tree::settle as settle_groups;
use super::Outcome;
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::score::Score;
use crate::signals::interruptible;
use crate::words::count;
use crate::{choices, guards, output};

/// Notes that the program keeps in a model beside those of the table.
pub mod notes {
    /// The settings as TOML.
    pub const SETTINGS: &str = "settings";
    pub use mtmkl_report::notes::{DATA, SCORES, SHARES};
}

/// Names the kernel whose columns are not there; gives back those of which normalisation leaves next to nothing.
pub(super) fn check_columns(
    spec: &ProblemSpec,
    frame: &Frame,
    table: &Table,
    normalize: Option<Normalization>,
) -> Result<Vec<String>> {
    let columns = frame.columns();
    let mut odd = Vec::new();
    for view in &spec.kernels {
        let seen = view.columns.resolve(&columns).map_err(|error| {
            anyhow!(
                "kernel `{}` on {}: {}",
                view.name,
                table.source,
                problem_of(&error)
            )
        })?;
        let one = seen.map_or(columns.len(), |seen| seen.len()) == 1;
        let linear = ["linear", "cosine"]
            .iter()
            .any(|name| view.kernel.spec().as_deref() == Some(name));
        if one && linear && normalize == Some(Normalization::Unit) {
            odd.push(view.name.clone());
        }
    }
    Ok(odd)
}

/// `mtmkl fit`
///
/// # Errors
/// When the input cannot be used or the model cannot be written.
pub fn run(args: &FitArgs) -> Result<Outcome> {
    let mut args = args.clone();
    if args.print_config {
        output::print(&toml::to_string(&args)?)?;
        return Ok(Outcome::Done);
    }
    let fit = Fit::open(&mut args, "fit")?;
    let learned = fit.learn(&args, fit.sets(Equals::Merged)?, interruptible)?;
    let saved = learned.save(&args);
    // The result is there, whatever became of the files.
    if args.json {
        output::print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&learned.json())?
        ))?;
    } else {
        output::show(&learned.text(&args, &saved))?;
    }
    saved.check()?;
    Ok(learned.outcome())
}

/// A fitted model and its scores.
pub(super) struct Learned {
    pub(super) model: Model,
    ledger: Ledger,
    storage: Storage,
    scores: Scores,
    /// What a person should know.
    warnings: Vec<String>,
    /// What the data chose.
    price: Option<Price>,
    /// What else could be tried.
    hint: Option<String>,
}

impl Fit {
    /// Checks the specification that the flags make, fits and scores.
    pub(super) fn learn(
        &self,
        args: &FitArgs,
        sets: Sets,
        stop: impl FnOnce() -> Stop,
    ) -> Result<Learned> {
        let Sets { dataset, _held } = sets;
        let levels = self.levels(args, &dataset.tasks)?;
        let spec = choices::problem(
            args,
            self.tasks(dataset.tasks.len()),
            &levels,
            self.between(),
        )?;
        let odd = check_columns(&spec, &self.frame, &self.table, args.normalize)?;
        let judged = self.judged(args, &dataset.tasks)?;
        // Rows to be scored are made when they are, after the fit.
        let _scored = (self.ledger).take(dataset.bytes_for(judged.records.count()));
        let (rows, tasks) = (dataset.rows, dataset.tasks.clone());
        let located = |error| self.located(error, &rows, &tasks, args);
        let problem =
            usual_problem(spec, args.normalize, dataset.samples, dataset.tasks).map_err(located)?;
        for name in &odd {
            output::note(&format!(
                "note: kernel `{name}` sees one column and is normalised, so that only the sign of its values is left; --normalize variance \
                 keeps their size"
            ));
        }
        // From here on there is something to keep; until here Ctrl-C ends the program.
        let stop = stop();
        let mut progress = Progress::new(args.verbose, args.quiet || args.json, args.tol);
        let mut fitting = fitting_of(args, &stop, &mut progress)?;
        // Said before anything is computed.
        fitting.check().map_err(located)?;
        let preparation = preparation_of(args, &self.ledger)?;
        let prepared = problem.prepare(&preparation).map_err(located)?;
        note_storage(args, &prepared);
        let mut warnings = guards::of_kernels(args, &prepared, &odd);
        let (prepared, price) = price::priced(args, prepared, &fitting).map_err(located)?;
        let mut model = prepared.fit(&mut fitting).map_err(located)?;
        let calibration = if args.has_probabilities() {
            let limits = Limits::from(&fitting);
            let made = prepared.calibrate(&model, &dataset.counts, &limits);
            made.map_err(located)?
        } else {
            None
        };
        drop(fitting);
        let is_cut_short = matches!(model.outcome().status, Status::Stopped | Status::TimeLimit);
        let judged = if is_cut_short {
            judged.at_once(&model)
        } else {
            judged
        };
        let training_rows = self.training_rows(&rows);
        let trained = Trained {
            model: &model,
            prepared: &prepared,
            rows: &rows,
            training_rows: &training_rows,
            stop: &stop,
            calibration: calibration.as_ref(),
        };
        let scores = self.scores(args, &judged, &trained)?;
        progress.finish();
        warnings.extend(scores.warnings.iter().cloned());
        for text in &warnings {
            output::note(text);
        }
        self.keep_notes(&mut model, &training_rows, &scores)?;
        if let Some(calibration) = &calibration {
            keep_calibration(model.notes_mut(), calibration)?;
        }
        Ok(Learned {
            model,
            ledger: self.ledger.clone(),
            storage: prepared.storage(),
            scores,
            warnings,
            price,
            hint: guards::of_tasks(args, &self.records, &self.train),
        })
    }

    /// An error of the core about the data, with the place in the user's file instead of its own.
    pub(super) fn located(
        &self,
        error: mtmkl::Error,
        rows: &[Vec<usize>],
        tasks: &[Task],
        args: &FitArgs,
    ) -> anyhow::Error {
        let mtmkl::Error::Data {
            place,
            problem: what,
        } = error
        else {
            return self
                .too_large(&error, args)
                .unwrap_or_else(|| choices::said_as_flag(error, args));
        };
        let file = &self.table.source;
        let line = |set: usize, row: usize| {
            let position = rows[set][row];
            self.table.place(self.records.positions[position])
        };
        let advice = match &what {
            DataProblem::Indefinite { .. } => " (--allow-indefinite)",
            DataProblem::Negative { .. } => "; --scale minmax brings all columns to [0, 1]",
            _ => "",
        };
        match place {
            Place::Cell {
                samples,
                row,
                column,
            } => anyhow!(
                "{file}, {}, column `{column}`: {what}{advice}",
                line(samples, row)
            ),
            Place::TaskRow { task, row } => {
                let found = tasks.iter().find(|known| known.name == task);
                let at = found.map_or(String::new(), |found| {
                    let own = found.rows.position(row);
                    format!("{}, ", line(found.samples, own))
                });
                anyhow!("{file}, {at}task `{task}`: {what}{advice}")
            }
            Place::Gram { name, .. } => anyhow!("kernel `{name}`: {what}{advice}"),
            Place::Task(name) => anyhow!("{file}, task `{name}`: {what}{advice}"),
            Place::Samples(_) | Place::Problem => anyhow!("{file}: {what}{advice}"),
            other => anyhow!("{other}: {what}{advice}"),
        }
    }

    /// Rows of the training table, per sample set.
    fn training_rows(&self, rows: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let positions = |rows: &Vec<usize>| {
            let rows = rows.iter();
            rows.map(|&row| self.records.positions[row]).collect()
        };
        rows.iter().map(positions).collect()
    }

    fn keep_notes(&self, model: &mut Model, rows: &[Vec<usize>], scores: &Scores) -> Result<()> {
        let shares = self.shares(model)?;
        let notes = model.notes_mut();
        keep(notes, &self.frame, rows)?;
        notes.insert(notes::SETTINGS.to_string(), self.settings.clone());
        let data = [
            ("table", self.table.source.clone()),
            ("rows", self.table.rows.to_string()),
            ("rows learned from", self.train.len().to_string()),
            (
                "columns learned from",
                self.frame.features.len().to_string(),
            ),
            ("target", self.frame.target.clone().unwrap_or_default()),
            ("task column", self.frame.task.clone().unwrap_or_default()),
        ];
        let data: Vec<_> = data
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .collect();
        notes.insert(notes::DATA.to_string(), serde_json::to_string(&data)?);
        notes.insert(notes::SCORES.to_string(), scores.json().to_string());
        if let Some(shares) = shares {
            notes.insert(notes::SHARES.to_string(), shares.to_string());
        }
        Ok(())
    }
}

impl Learned {
    /// How the program is to end.
    pub(super) fn outcome(&self) -> Outcome {
        if self.model.outcome().status.is_converged() {
            Outcome::Done
        } else {
            Outcome::NotConverged
        }
    }

    /// How good the model is on the rows it is judged by.
    pub(super) fn score(&self) -> &Score {
        &self.scores.methods[0].scores[0]
    }

    /// What `--json` prints.
    pub(super) fn json(&self) -> serde_json::Value {
        let mut object = output::json(&self.model);
        object["storage"] = json!(self.storage.name());
        object["memory"] = json!({ "limit": self.ledger.limit(), "taken": self.ledger.peak() });
        object["scores"] = self.scores.json();
        if let Some(price) = &self.price {
            object["chosen"] = json!({ price.parameter: price.value, "by": price.by });
        }
        let shares = self.model.notes().get(notes::SHARES);
        if let Some(shares) = shares.and_then(|note| serde_json::from_str(note).ok()) {
            object["shares"] = shares;
        }
        if self.scores.methods.len() > 1 {
            object["baselines"] = self.scores.baselines();
        }
        if !self.warnings.is_empty() {
            object["warnings"] = json!(self.warnings);
        }
        object
    }

    /// What is printed for people.
    pub(super) fn text(&self, args: &FitArgs, saved: &Saved) -> String {
        let model = &self.model;
        let mut text = String::new();
        let shape = model.shape();
        let origins = model.support_sets().first();
        let origins = origins.and_then(|set| set.origins.as_ref());
        let tasks = match origins.map(|origins| origins.kernels.tasks().len()) {
            Some(together) => format!("{} together", count(together, "task", "tasks")),
            None => count(shape.tasks, "task", "tasks"),
        };
        text += &format!(
            "{tasks}, {}, machine {}, sharing {}\n\n",
            count(shape.kernels, "kernel", "kernels"),
            args.machine,
            model.sharing().name()
        );
        if let Some(Price {
            parameter,
            value,
            by,
        }) = &self.price
        {
            text += &format!(
                "{parameter} = {}, chosen by {by}\n\n",
                output::figure(*value)
            );
        }
        text += &output::weights(model);
        text += &format!(
            "\n{}\n{}{}\n\n",
            output::certificate(model),
            output::remarks(model),
            output::effort(model)
        );
        text += &self.scores.text();
        if let Some(hint) = &self.hint {
            text += &format!("\n{hint}\n");
        }
        match &args.output {
            Some(path) if saved.model => {
                text += &format!("\nModel saved to {}\n", path.display());
            }
            // Said on standard error.
            Some(_) => {}
            None => text += "\nNot saved: -o MODEL keeps the model\n",
        }
        text
    }
}
