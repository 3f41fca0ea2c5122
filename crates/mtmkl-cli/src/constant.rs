//! What needs no learning: always the most frequent class, or the mean.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use mtmkl_table::{Frame, Goal, Predictions, Records};

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
) -> Result<Option<(Option<String>, Predictions)>> {
    if frame.goal == Goal::OneClass {
        return Ok(None);
    }
    let only = frame.only_task();
    let learned = records.select(chosen);
    let mut answers: BTreeMap<&str, f64> = BTreeMap::new();
    for (task, rows) in learned.by_task(&only) {
        answers.insert(task, answer(frame, &learned, &rows)?);
    }
    let classes = frame.goal.classes();
    let mut made = Predictions::of_rows(asked.count());
    if let Goal::Multiclass { .. } = frame.goal {
        made.class_values = vec![vec![0.0; asked.count()]; classes.len()];
    }
    let all = answer(frame, &learned, &(0..chosen.len()).collect::<Vec<_>>())?;
    for (task, rows) in asked.by_task(&only) {
        // A task that was never seen is taken for one like all others.
        let own = answers.get(task).copied().unwrap_or(all);
        for row in rows {
            // One value for all rows: it puts none before another.
            made.decisions[row] = vec![0.0];
            (made.labels[row], made.numbers[row]) = match &frame.goal {
                Goal::Regression => (own.to_string(), own),
                Goal::Binary { .. } => (classes[place(own)].clone(), 2.0 * own - 1.0),
                _ => (classes[place(own)].clone(), own),
            };
        }
    }
    let single = answers.values().all(|own| *own == all);
    let word = match frame.goal {
        Goal::Regression => all.to_string(),
        _ => classes[place(all)].clone(),
    };
    Ok(Some((single.then_some(word), made)))
}

/// The number of a class, or a number.
fn answer(frame: &Frame, records: &Records, rows: &[usize]) -> Result<f64> {
    let needed = "the target column is needed to score";
    if frame.goal == Goal::Regression {
        let numbers = records.numbers.as_ref().context(needed)?;
        return Ok(rows.iter().map(|&row| numbers[row]).sum::<f64>() / rows.len() as f64);
    }
    let target = records.target.as_ref().context(needed)?;
    let classes = frame.goal.classes();
    let mut counts = vec![0_usize; classes.len()];
    for &row in rows {
        let class = classes.iter().position(|class| class == target.get(row));
        if let Some(class) = class {
            counts[class] += 1;
        }
    }
    let mut best = 0;
    for (class, count) in counts.iter().enumerate() {
        if *count > counts[best] {
            best = class;
        }
    }
    Ok(best as f64)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number of a class"
)]
fn place(class: f64) -> usize {
    class as usize
}
