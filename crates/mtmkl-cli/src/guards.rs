//! Where people fall: sentences that say what is wrong, and the way out.

use mtmkl::select::Metric;
use mtmkl_table::{Frame, Records};

use crate::output::{self, figure};
use crate::score::Method;
use crate::words::{count, listed};

/// Says on standard error which classes of new rows were never learned.
pub fn note_unknown_classes(frame: &Frame, source: &str, records: &Records) {
    let classes = frame.goal.classes();
    let Some(target) = records.target.as_ref().filter(|_| !classes.is_empty()) else {
        return;
    };
    let mut groups = target.groups();
    groups.retain(|(name, _)| !classes.iter().any(|class| class == name));
    if groups.is_empty() {
        return;
    }
    let rows: usize = groups.iter().map(|(_, rows)| rows.len()).sum();
    let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
    output::note(&format!(
        "note: {source}: {} that training never saw, {}; no prediction can be right there, and they count as wrong",
        count(rows, "row has a class", "rows have classes"),
        listed(&names)
    ));
}

/// What held-out scores warn of: a model that is no better than an answer without learning, or than simpler weights. `losses` are those of
/// each method, row by row; `majority` is the answer without learning where it is the same for all tasks.
pub fn of_scores(
    main: Metric,
    methods: &[Method],
    losses: &[Option<Vec<f64>>],
    majority: Option<&str>,
) -> Vec<String> {
    let Some((learned, others)) = methods.split_first() else {
        return Vec::new();
    };
    let mut warnings = Vec::new();
    for (number, other) in others.iter().enumerate() {
        let (own, theirs) = (learned.main().mean, other.main().mean);
        let against = format!("{} {} against {}", main.name(), figure(own), figure(theirs));
        let constant = matches!(other.name.as_str(), "majority class" | "mean");
        if constant {
            if !main.is_better(own, theirs) && !theirs.is_nan() {
                let answer = match (other.name.as_str(), majority) {
                    ("mean", _) => "the mean of the training rows".to_string(),
                    (_, Some(class)) => format!("always saying `{class}`"),
                    _ => "always saying the most frequent class".to_string(),
                };
                warnings.push(format!(
                    "warning: on held-out rows the model is no better than {answer} ({against}): the columns may say nothing about the \
                     target, or the settings do not suit; try --scale standard, mtmkl tune, --class-weight balanced, or --metric \
                     balanced-accuracy where one class is rare"
                ));
            }
            continue;
        }
        let way = match other.name.as_str() {
            "uniform" => "--sharing uniform takes all kernels alike".to_string(),
            name => match name.strip_prefix("best single: ") {
                Some(kernel) => format!("--kernel '{kernel}' takes it alone"),
                None => continue,
            },
        };
        let pair = losses[0].as_deref().zip(losses[number + 1].as_deref());
        if pair.is_some_and(|(own, theirs)| is_worse(own, theirs)) {
            let what = if other.name == "uniform" {
                "the uniform average of the kernels"
            } else {
                "a single kernel"
            };
            warnings.push(format!(
                "warning: on held-out rows the learned weights do worse than {what} ({against}), by more than chance would have it: {way}, \
                 and mtmkl tune chooses"
            ));
        }
    }
    warnings
}

/// Standard errors that are more than chance.
const BEYOND_CHANCE: f64 = 2.0;

/// Whether the mean of own − theirs is more than two of its standard errors above 0.
fn is_worse(own: &[f64], theirs: &[f64]) -> bool {
    let rows = own.len() as f64;
    let differences: Vec<f64> = own.iter().zip(theirs).map(|(a, b)| a - b).collect();
    let mean = differences.iter().sum::<f64>() / rows;
    let squares: f64 = differences.iter().map(|one| (one - mean).powi(2)).sum();
    let error = (squares / (rows - 1.0) / rows).sqrt();
    mean > BEYOND_CHANCE * error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_reason_to_warn() {
        let right = vec![0.0; 100];
        let mut wrong = right.clone();
        for (row, wanted) in [false, false, false, true].into_iter().enumerate() {
            wrong[row] = 1.0;
            assert_eq!(is_worse(&wrong, &right), wanted);
        }
        assert!(!is_worse(&right, &wrong));
        // Always a little worse is worse; equal is not.
        assert!(is_worse(&[1.5, 2.5, 3.5], &[1.0, 2.0, 3.0]));
        assert!(!is_worse(&right, &right));
        assert!(!is_worse(&[1.0], &[0.0]));
    }
}
