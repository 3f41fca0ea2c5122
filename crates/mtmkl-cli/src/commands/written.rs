//! Predictions as `mtmkl predict` writes them, part by part: CSV or one JSON object.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};
use mtmkl::model::WholeFile;
use mtmkl_table::Goal;
use serde_json::{Value, json};

use super::predict::Predicted;
use crate::args::PredictArgs;
use crate::output;

/// What stands in the JSON object where the rows come. It is in its last list: whoever looks for the last one finds it.
const ROWS: &str = "\u{0}rows";

/// How far the rows of the JSON object are indented.
const INDENT: &str = "\n    ";

/// Where predictions go.
enum Place {
    /// Its name gets the file when it is whole.
    File(WholeFile),
    Terminal,
    /// Standard output, of which others see each part when it is made.
    Stream,
}

/// Writes predictions.
pub(super) struct Writer<'a> {
    args: &'a PredictArgs,
    goal: &'a Goal,
    place: Place,
    /// What comes after all rows.
    end: String,
    has_begun: bool,
    /// Whether it was said that names were changed.
    has_told: bool,
}

impl<'a> Writer<'a> {
    /// For what the arguments say.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn new(args: &'a PredictArgs, goal: &'a Goal) -> Result<Self> {
        let place = match &args.output {
            Some(path) => Place::File(WholeFile::create(path)?),
            // Programs get every name as it is, people see it.
            None if std::io::stdout().is_terminal() => Place::Terminal,
            None => Place::Stream,
        };
        Ok(Self {
            args,
            goal,
            place,
            end: String::new(),
            has_begun: false,
            has_told: false,
        })
    }

    /// Writes a part with so many rows of the table before it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&mut self, first: usize, part: &Predicted) -> Result<()> {
        let mut text = String::new();
        if !self.has_begun {
            text += &self.begin(part)?;
        }
        for row in 0..part.records.count() {
            if self.args.json {
                // Names in it have no line ends of their own.
                let object = serde_json::to_string_pretty(&self.object(first, part, row))?;
                if self.has_begun || row > 0 {
                    text += ",";
                    text += INDENT;
                }
                text += &object.replace('\n', INDENT);
            } else {
                self.line(first, part, row, &mut text);
            }
        }
        self.has_begun = true;
        self.tell(part);
        self.put(&text)
    }

    /// Writes what comes after all rows.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> Result<()> {
        let end = std::mem::take(&mut self.end);
        self.put(&end)?;
        match self.place {
            Place::File(file) => Ok(file.finish()?),
            Place::Terminal | Place::Stream => Ok(()),
        }
    }

    /// Says once that a name is not written as it is.
    fn tell(&mut self, part: &Predicted) {
        if self.args.json || self.has_told {
            return;
        }
        let labels = part.predictions.labels.iter().map(String::as_str);
        let tasks = part.records.task.iter();
        let tasks = tasks.flat_map(|tasks| (0..part.records.count()).map(|row| tasks.get(row)));
        self.has_told = labels.chain(tasks).any(is_formula);
        if self.has_told {
            output::note(
                "note: names that a spreadsheet would run as formulas begin with ' here; --json has them as they are",
            );
        }
    }

    fn put(&mut self, text: &str) -> Result<()> {
        match &mut self.place {
            Place::File(file) => {
                let path = self.args.output.as_deref();
                let written = file.write_all(text.as_bytes());
                written.map_err(|source| {
                    let path = path.unwrap_or_else(|| "".as_ref()).to_path_buf();
                    mtmkl::Error::Io { path, source }.into()
                })
            }
            Place::Terminal => output::show(text),
            Place::Stream => output::print(text),
        }
    }

    /// What comes before all rows: the names of the columns, or the object up to them.
    fn begin(&mut self, part: &Predicted) -> Result<String> {
        if !self.args.json {
            return Ok(self.header(part));
        }
        let mut object = json!({ "predictions": [ROWS], "decisions": part.predictions.names });
        if self.args.probability {
            object["classes"] = json!(self.goal.classes());
        }
        let text = format!("{}\n", serde_json::to_string_pretty(&object)?);
        let (begin, end) = text
            .rsplit_once(&json!(ROWS).to_string())
            .context("the object has no place for rows")?;
        self.end = end.to_string();
        Ok(begin.to_string())
    }

    /// A row as an object.
    fn object(&self, first: usize, part: &Predicted, row: usize) -> Value {
        let (records, predictions) = (&part.records, &part.predictions);
        let mut object = json!({ "row": first + records.positions[row] + 1 });
        object["prediction"] = if matches!(self.goal, Goal::Regression | Goal::OneClass) {
            json!(predictions.numbers[row])
        } else {
            json!(predictions.labels[row])
        };
        if let Some(tasks) = &records.task {
            object["task"] = json!(tasks.get(row));
        }
        if self.args.probability {
            let own = predictions.probabilities.iter().map(|own| own[row]);
            object["probabilities"] = json!(own.collect::<Vec<f64>>());
        }
        if self.args.decision {
            object["decision"] = json!(predictions.decisions[row]);
        }
        object
    }

    /// `row,task,prediction,probability…,decision…`
    fn header(&self, part: &Predicted) -> String {
        let mut text = String::from("row");
        if part.records.task.is_some() {
            text += ",task";
        }
        text += ",prediction";
        if self.args.probability {
            for class in self.goal.classes() {
                text += &format!(",{}", quoted(&format!("probability {class}")));
            }
        }
        if self.args.decision {
            for name in &part.predictions.names {
                let name = if name == "decision" {
                    name.clone()
                } else {
                    format!("decision {name}")
                };
                text += &format!(",{}", quoted(&name));
            }
        }
        text.push('\n');
        text
    }

    /// A row under the header; rows are counted from 1, as in the table read.
    fn line(&self, first: usize, part: &Predicted, row: usize, text: &mut String) {
        let (records, predictions) = (&part.records, &part.predictions);
        *text += &(first + records.positions[row] + 1).to_string();
        if let Some(tasks) = &records.task {
            *text += &format!(",{}", quoted(tasks.get(row)));
        }
        *text += &format!(",{}", quoted(&predictions.labels[row]));
        if self.args.probability {
            for own in &predictions.probabilities {
                *text += &format!(",{}", own[row]);
            }
        }
        if self.args.decision {
            for value in &predictions.decisions[row] {
                // A machine that is not about the row's task says nothing.
                *text += &if value.is_nan() {
                    ",".to_string()
                } else {
                    format!(",{value}")
                };
            }
        }
        text.push('\n');
    }
}

/// A name as a cell of CSV.
fn quoted(name: &str) -> String {
    let mark = if is_formula(name) { "'" } else { "" };
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{mark}{}\"", name.replace('"', "\"\""))
    } else {
        format!("{mark}{name}")
    }
}

/// Whether a spreadsheet that opens the file would compute the name, or run what it says, in place of showing it. Numbers are numbers, and so is
/// what has a sign but asks for nothing: `-1`, `+`, `-20C`.
fn is_formula(name: &str) -> bool {
    match name.chars().next() {
        Some('=' | '@' | '＝' | '＠' | '\t' | '\r') => name.chars().nth(1).is_some(),
        Some('+' | '-' | '＋' | '－') => name.contains(['(', '|', '!']),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_that_spreadsheets_would_run_only_show() {
        for (name, cell) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("=1+2", "'=1+2"),
            (
                "=HYPERLINK(\"http://x\",\"y\")",
                "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"",
            ),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            ("+cmd|x!A0", "'+cmd|x!A0"),
            ("-2+3+cmd|x!A0", "'-2+3+cmd|x!A0"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("＝1", "'＝1"),
            // What asks for nothing stays what it is.
            ("-1", "-1"),
            ("+1", "+1"),
            ("-", "-"),
            ("=", "="),
            ("@", "@"),
            ("-20C", "-20C"),
            ("a=b", "a=b"),
            ("a,b", "\"a,b\""),
            ("", ""),
        ] {
            assert_eq!(quoted(name), cell);
        }
    }
}
