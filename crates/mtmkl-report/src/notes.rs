//! What the programs keep in a model's notes for the page: scores, lines about the data, pictures. Read here, so that the program and the Python package show the same.

use std::collections::BTreeMap;
use std::fmt;

use mtmkl::select::Metric;
use serde_json::Value;

use crate::{Picture, Report, ScoreRow, Scores, Transfer};

/// Lines about the data, as a list of pairs.
pub const DATA: &str = "data";
/// Scores, as the program prints them with `--json`.
pub const SCORES: &str = "scores";
/// Shares of the variance of predictions by level, of one machine of all tasks.
pub const SHARES: &str = "shares";
/// Pictures: a list of (title, alternative text, SVG).
pub const PICTURES: &str = "pictures";

/// A note that is not what it should be.
#[derive(Debug)]
pub struct Unreadable {
    note: &'static str,
    problem: serde_json::Error,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { note, problem } = self;
        write!(formatter, "the model's {note} cannot be read: {problem}")
    }
}

impl std::error::Error for Unreadable {}

impl Report {
    /// Adds what a model's notes say of scores, data and pictures.
    pub(crate) fn with_notes(
        mut self,
        notes: &BTreeMap<String, String>,
    ) -> Result<Self, Unreadable> {
        let unreadable = |note| move |problem| Unreadable { note, problem };
        if let Some(note) = notes.get(DATA) {
            self.data = serde_json::from_str(note).map_err(unreadable("data summary"))?;
        }
        if let Some(note) = notes.get(SCORES) {
            let value = serde_json::from_str(note).map_err(unreadable("scores"))?;
            self.scores = scores(&value);
        }
        if let Some(note) = notes.get(SHARES) {
            let read = Transfer::read(note).map_err(unreadable("shares"))?;
            self.transfer = Some(read).filter(|read| !read.tasks.is_empty());
        }
        if let Some(note) = notes.get(PICTURES) {
            let list: Vec<(String, String, String)> =
                serde_json::from_str(note).map_err(unreadable("pictures"))?;
            self.pictures = list
                .into_iter()
                .map(|(title, alt, svg)| Picture { title, svg, alt })
                .collect();
        }
        let target = self.data.iter().find(|(key, _)| key == "target");
        self.subtitle = target.map(|(_, target)| format!("predicting {target}"));
        Ok(self)
    }
}

fn scores(value: &Value) -> Option<Scores> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let methods = value["methods"].as_array()?;
    let metric = methods
        .first()
        .map_or(String::new(), |method| text(&method["metric"]));
    let rows = methods
        .iter()
        .map(|method| ScoreRow {
            method: match text(&method["name"]).as_str() {
                "learned" => "learned weights".to_string(),
                "uniform" => "uniform average".to_string(),
                "pooled" => "all tasks pooled".to_string(),
                "each alone" => "each task alone".to_string(),
                other => other.replace("best single: ", "best single kernel: "),
            },
            per_task: method["tasks"].as_array().map_or(Vec::new(), |tasks| {
                tasks.iter().map(|task| number(&task["score"])).collect()
            }),
            mean: number(&method["mean"]),
        })
        .collect();
    let parts: Vec<String> = methods
        .first()
        .and_then(|method| method["tasks"].as_array())
        .map_or(Vec::new(), |tasks| {
            tasks.iter().map(|task| text(&task["name"])).collect()
        });
    let first = methods.first();
    let is_all = first.is_some_and(|method| method["mean"] == method["together"]);
    Some(Scores {
        is_by_class: is_all && parts.len() > 1,
        parts,
        higher_is_better: !Metric::named(&metric).is_some_and(Metric::less_is_better),
        metric,
        split: text(&value["split"]),
        rows,
    })
}
