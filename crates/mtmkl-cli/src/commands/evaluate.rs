//! `mtmkl evaluate`: a model's scores on rows with known targets.

use anyhow::Result;
use mtmkl::Registry;
use mtmkl_table::Goal;
use serde_json::json;

use super::Outcome;
use super::predict::{Judged, Loaded};
use crate::args::EvaluateArgs;
use crate::confusion::Confusion;
use crate::score::{Method, figures, metric, scores};
use crate::{constant, guards, output};

/// `mtmkl evaluate`
///
/// # Errors
/// When the model or the rows cannot be used.
pub fn run(args: &EvaluateArgs, registry: &Registry) -> Result<Outcome> {
    let mut loaded = Loaded::new(&args.rows.model, registry)?;
    if let Some(target) = &args.target {
        loaded.frame.target = Some(target.clone());
    }
    let metric = metric(
        args.metric.as_deref(),
        &loaded.frame.goal,
        loaded.calibration.is_some(),
    )?;
    let Judged {
        source,
        records,
        predictions,
    } = loaded.judge(&args.rows)?;
    let frame = &loaded.frame;
    guards::note_unknown_classes(frame, &source, &records);
    let inlier = (frame.goal == Goal::OneClass).then_some(args.inlier.as_str());
    let mut methods = vec![Method {
        name: "learned".to_string(),
        scores: scores(frame, &records, &predictions, inlier, metric)?,
    }];
    let all: Vec<usize> = (0..records.count()).collect();
    let mut majority = None;
    if let Some((word, constant)) = constant::predictions(
        frame,
        &records,
        &all,
        &records,
        loaded.calibration.is_some(),
    )? {
        majority = word;
        let name = format!("{} of these rows", constant::name(&frame.goal));
        let scores = scores(frame, &records, &constant, inlier, metric)?;
        methods.push(Method { name, scores });
    }
    let losses = vec![None; methods.len()];
    let majority = majority.as_deref();
    for text in guards::of_scores("these rows", metric, &methods, &losses, majority) {
        output::note(&text);
    }
    let confusion = Confusion::of(frame, &records, &predictions);
    if args.json {
        let score = methods[0].main();
        let object = json!({
            "rows": records.count(), "metric": score.metric, "mean": score.mean, "together": score.together, "tasks": score.tasks,
            "metrics": figures(&methods[0].scores), "baselines": methods[1..].iter().map(Method::json).collect::<Vec<_>>(),
            "confusion": confusion,
        });
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        let by_class = frame.goal.is_by_class();
        let confusion = confusion.map_or(String::new(), |matrix| format!("\n{}", matrix.text()));
        output::show(&format!(
            "{} rows of {}\n\n{}{confusion}",
            records.count(),
            source,
            output::scores(&methods, by_class)
        ))?;
    }
    Ok(Outcome::Done)
}
