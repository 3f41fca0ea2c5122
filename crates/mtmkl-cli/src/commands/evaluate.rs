//! `mtmkl evaluate`: a model's scores on rows with known targets.

use anyhow::Result;
use mtmkl::Registry;
use mtmkl_table::Goal;
use serde_json::json;

use super::Outcome;
use super::predict::{Loaded, Predicted};
use crate::args::EvaluateArgs;
use crate::output;
use crate::score::{metric, score};

/// `mtmkl evaluate`
///
/// # Errors
/// When the model or the rows cannot be used.
pub fn run(args: &EvaluateArgs, registry: &Registry) -> Result<Outcome> {
    let mut loaded = Loaded::new(&args.rows.model, registry)?;
    if let Some(target) = &args.target {
        loaded.frame.target = Some(target.clone());
    }
    let metric = metric(args.metric.as_deref(), &loaded.frame.goal)?;
    let Predicted {
        table,
        records,
        predictions,
    } = loaded.predict(&args.rows, true)?;
    let inlier = (loaded.frame.goal == Goal::OneClass).then_some(args.inlier.as_str());
    let score = score(&loaded.frame, &records, &predictions, inlier, metric)?;
    if args.json {
        let object = json!({
            "rows": records.count(), "metric": score.metric, "mean": score.mean, "tasks": score.tasks,
        });
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        output::show(&format!(
            "{} rows of {}\n\n{}",
            records.count(),
            table.source,
            output::scores(&[("learned".to_string(), score)])
        ))?;
    }
    Ok(Outcome::Done)
}
