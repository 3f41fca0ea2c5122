//! Where people fall: sentences that say what is wrong, and the way out.

use mtmkl::Prepared;
use mtmkl::machine::TargetKind;
use mtmkl::select::{Likeness, Metric};
use mtmkl_table::{Frame, Records};

use crate::args::FitArgs;
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

/// Kernels that tell no rows apart, or all: those that someone named, or all there are. And weights of kernels that are learned without labels.
/// `noted` are kernels about which something was said already.
pub fn of_kernels(args: &FitArgs, prepared: &Prepared, noted: &[String]) -> Vec<String> {
    let problem = prepared.problem();
    let kernels = &problem.spec().kernels;
    let likeness = prepared.likeness();
    let those = |is: fn(Likeness) -> bool| -> Vec<&str> {
        let found = kernels.iter().zip(&likeness);
        let found = found.filter(|(view, _)| !noted.contains(&view.name));
        let found = found.filter(|(_, like)| like.is_some_and(is));
        found.map(|(view, _)| view.name.as_str()).collect()
    };
    let mut warnings = Vec::new();
    let identity = those(Likeness::is_identity);
    let constant = those(Likeness::is_constant);
    let those_are = |names: &[&str]| match names {
        [one] => format!("warning: kernel `{one}` is"),
        several => format!("warning: kernels {} are", listed(several)),
    };
    let is_shown =
        |names: &[&str]| !names.is_empty() && (args.said.kernels || names.len() == kernels.len());
    if is_shown(&identity) {
        warnings.push(format!(
            "{} nearly the identity on the training rows: each row is like itself only, so that they are learned by heart and new rows are \
             told nothing; take a wider one (for rbf a larger sigma), or scale the columns (--scale standard)",
            those_are(&identity)
        ));
    }
    if is_shown(&constant) {
        warnings.push(format!(
            "{} nearly constant on the training rows: all rows are alike there, and none is told apart; take a narrower one (for rbf a \
             smaller sigma), or scale the columns (--scale standard)",
            those_are(&constant)
        ));
    }
    let sharing = problem.spec().sharing.name();
    let learned = !matches!(sharing, "uniform" | "fixed");
    if args.targets() == TargetKind::Unlabelled && kernels.len() > 1 && learned {
        warnings.push(format!(
            "note: {} learns the weights of {} without labels, and prefers the flattest or the narrowest of them whatever the \
             rows are; --sharing uniform takes all alike, --kernel names one",
            args.machine,
            count(kernels.len(), "kernel", "kernels")
        ));
    }
    warnings
}

/// Tasks with no more rows than this on the mean are small: up to so many, sharing predictors beat sharing weights on Landmine even without groups, beyond them
/// with groups only (docs/transfer.md).
const SMALL: usize = 100;

/// What else small tasks could share, where no flag says what they do: weights are tied, predictors are not, and only the rows can tell which is better.
pub fn of_tasks(args: &FitArgs, records: &Records, train: &[usize]) -> Option<String> {
    let is_said = args.sharing.is_some() || crate::transfer::is_said_by_flags(args);
    let names = records.task.as_ref().filter(|_| !is_said)?;
    let tasks = names.select(train).groups().len();
    let rows = train.len() / tasks.max(1);
    let is_small = tasks > 1 && rows <= SMALL && args.targets() != TargetKind::Unlabelled;
    is_small.then(|| {
        format!(
            "{} of {} on the mean share the weights of kernels here, not what is learned with them; where small tasks are alike, --transfer \
             all,own often predicts better, and mtmkl tune compares.",
            count(tasks, "task", "tasks"),
            count(rows, "row", "rows")
        )
    })
}

/// What scores on new rows warn of: a model that is no better than an answer without learning, or than simpler weights. `place` says which rows;
/// `losses` are those of each method, row by row; `majority` is the answer without learning where it is the same for all tasks.
pub fn of_scores(
    place: &str,
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
        let mean = other.name.starts_with("mean");
        let constant = mean || other.name.starts_with("majority class");
        if constant {
            if !main.is_better(own, theirs) && !theirs.is_nan() {
                let answer = match (other.name.as_str(), majority) {
                    ("mean", _) => "the mean of the training rows".to_string(),
                    (name, _) if mean => format!("the {name}"),
                    (_, Some(class)) => format!("always saying `{class}`"),
                    _ => "always saying the most frequent class".to_string(),
                };
                let rare = if mean {
                    ""
                } else {
                    "; where a class is rare, --class-weight balanced, and --metric balanced-accuracy or AUC to judge by"
                };
                warnings.push(format!(
                    "warning: on {place} the model is no better than {answer} ({against}): the columns may say nothing about the \
                     target, or the settings do not suit; mtmkl tune looks for better ones{rare}"
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
                "warning: on {place} the learned weights do worse than {what} ({against}), by more than chance would have it: {way}, \
                 and mtmkl tune chooses"
            ));
        }
    }
    warnings
}

/// Standard errors that are more than chance.
const BEYOND_CHANCE: f64 = 2.0;

/// Σ d > 2 √Σ d², d = own − theirs: the difference is more than two of the standard errors that it would have if there were none. Of right and
/// wrong answers this is `McNemar`'s test.
fn is_worse(own: &[f64], theirs: &[f64]) -> bool {
    let differences = || own.iter().zip(theirs).map(|(a, b)| a - b);
    let squares: f64 = differences().map(|one| one * one).sum();
    differences().sum::<f64>() > BEYOND_CHANCE * squares.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_reason_to_warn() {
        let right = vec![0.0; 100];
        let mut wrong = right.clone();
        for (row, wanted) in [false, false, false, false, true].into_iter().enumerate() {
            wrong[row] = 1.0;
            assert_eq!(is_worse(&wrong, &right), wanted);
        }
        assert!(!is_worse(&right, &wrong));
        // Always a little worse is worse; equal is not.
        assert!(is_worse(&[1.5; 5], &[1.4; 5]));
        assert!(!is_worse(&[1.5, 1.4, 3.5, 0.0], &[1.4, 1.5, 3.0, 0.2]));
        assert!(!is_worse(&right, &right));
        assert!(!is_worse(&[1.0], &[0.0]));
    }
}
