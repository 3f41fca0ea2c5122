//! Which classes are taken for which.

use mtmkl_table::{Frame, Predictions, Records};
use serde::Serialize;

use crate::output;

/// With more classes than this, the matrix is more than one looks at.
const MOST_CLASSES: usize = 20;

/// Rows by what they are and what was predicted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confusion {
    /// What rows are: the classes that were learned, then those that were not.
    pub truth: Vec<String>,
    /// What is predicted.
    pub predicted: Vec<String>,
    /// For each of the truth, the rows of each prediction.
    pub counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// Of predicted classes; none where no classes are predicted, or too many.
    pub fn of(frame: &Frame, records: &Records, predictions: &Predictions) -> Option<Self> {
        let classes = frame.goal.classes();
        let target = records.target.as_ref()?;
        if classes.is_empty() || classes.len() > MOST_CLASSES {
            return None;
        }
        let groups = target.groups();
        let strange = groups.iter().map(|(name, _)| (*name).to_string());
        let strange = strange.filter(|name| !classes.contains(name));
        let truth: Vec<String> = classes.iter().cloned().chain(strange).collect();
        if truth.len() > MOST_CLASSES {
            return None;
        }
        let mut counts = vec![vec![0; classes.len()]; truth.len()];
        for (value, label) in target.iter().zip(&predictions.labels) {
            let at = |names: &[String], name: &str| names.iter().position(|known| known == name);
            if let Some((row, column)) = at(&truth, value).zip(at(classes, label)) {
                counts[row][column] += 1;
            }
        }
        Some(Self {
            truth,
            predicted: classes.to_vec(),
            counts,
        })
    }

    /// As a table.
    pub fn text(&self) -> String {
        let header: Vec<String> = std::iter::once("is \\ predicted".to_string())
            .chain(self.predicted.iter().cloned())
            .chain(["right".to_string()])
            .collect();
        let rows = self.truth.iter().zip(&self.counts).enumerate();
        let rows: Vec<Vec<String>> = rows
            .map(|(number, (name, counts))| {
                let all: usize = counts.iter().sum();
                let right = counts.get(number).copied().unwrap_or(0);
                let cells = counts.iter().map(|&count| match count {
                    // Zeros are seen as such.
                    0 => "·".to_string(),
                    count => count.to_string(),
                });
                let share = if all == 0 {
                    "–".to_string()
                } else {
                    output::percent(right as f64 / all as f64)
                };
                std::iter::once(name.clone())
                    .chain(cells)
                    .chain([share])
                    .collect()
            })
            .collect();
        output::table(&header, &rows)
    }
}
