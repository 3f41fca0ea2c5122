//! What needs no learning: always the most frequent class, or the mean.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use mtmkl_table::{Frame, Goal, Predictions, Records, winner};

/// What it is called.
pub fn name(goal: &Goal) -> &'static str {
    match goal {
        Goal::Regression => "mean",
        _ => "majority class",
    }
}

/// The answer that each task's `chosen` records suggest, for each of the `asked` ones: their most frequent class (of equals the first), or
/// their mean. Also that answer, in words, where there is one for all. None for one-class machines, which learn without answers.
///
/// # Errors
/// When the targets are not there.
pub fn predictions(
    frame: &Frame,
    records: &Records,
    chosen: &[usize],
    asked: &Records,
    with_probabilities: bool,
) -> Result<Option<(Option<String>, Predictions)>> {
    if frame.goal == Goal::OneClass {
        return Ok(None);
    }
    let only = frame.only_task();
    let learned = records.select(chosen);
    let mut answers: BTreeMap<&str, Answer> = BTreeMap::new();
    for (task, rows) in learned.by_task(&only) {
        answers.insert(task, Answer::new(frame, &learned, &rows)?);
    }
    let classes = frame.goal.classes();
    let mut made = Predictions::of_rows(&frame.goal, asked.count());
    if let Goal::Multiclass { .. } = frame.goal {
        made.class_values = vec![vec![0.0; asked.count()]; classes.len()];
    }
    if with_probabilities {
        made.probabilities = vec![vec![0.0; asked.count()]; classes.len()];
    }
    let every: Vec<usize> = (0..chosen.len()).collect();
    let all = Answer::new(frame, &learned, &every)?;
    for (task, rows) in asked.by_task(&only) {
        // A task that was never seen is taken for one like all others.
        let Answer { best: own, shares } = answers.get(task).unwrap_or(&all);
        let own = *own;
        for row in rows {
            for (known, share) in made.probabilities.iter_mut().zip(shares) {
                known[row] = *share;
            }
            // One value for all rows: it puts none before another.
            made.decisions[row] = vec![0.0];
            (made.labels[row], made.numbers[row]) = match &frame.goal {
                Goal::Regression => (own.to_string(), own),
                Goal::Binary { .. } => (classes[place(own)].clone(), 2.0 * own - 1.0),
                _ => (classes[place(own)].clone(), own),
            };
        }
    }
    let single = answers.values().all(|own| own.best == all.best);
    let word = match frame.goal {
        Goal::Regression => all.best.to_string(),
        _ => classes[place(all.best)].clone(),
    };
    Ok(Some((single.then_some(word), made)))
}

/// What is said of all rows of a task.
struct Answer {
    /// The number of a class, or a number.
    best: f64,
    /// The share of each class.
    shares: Vec<f64>,
}

impl Answer {
    fn new(frame: &Frame, records: &Records, rows: &[usize]) -> Result<Self> {
        let needed = "the target column is needed to score";
        let count = rows.len() as f64;
        if frame.goal == Goal::Regression {
            let numbers = records.numbers.as_ref().context(needed)?;
            return Ok(Self {
                best: rows.iter().map(|&row| numbers[row]).sum::<f64>() / count,
                shares: Vec::new(),
            });
        }
        let target = records.target.as_ref().context(needed)?;
        let classes = frame.goal.classes();
        let mut counts = vec![0.0; classes.len()];
        for &row in rows {
            let class = classes.iter().position(|class| class == target.get(row));
            if let Some(class) = class {
                counts[class] += 1.0;
            }
        }
        Ok(Self {
            best: winner(&counts) as f64,
            shares: counts.iter().map(|own| own / count).collect(),
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number of a class"
)]
fn place(class: f64) -> usize {
    class as usize
}
