//! `mtmkl inspect`: what is in a model.

use anyhow::{Context, Result};
use mtmkl::Normalization;
use mtmkl::Registry;

use super::Outcome;
use super::fit::notes;
use super::predict::load;
use crate::args::InspectArgs;
use crate::output;

/// `mtmkl inspect`
///
/// # Errors
/// When the model cannot be read.
pub fn run(args: &InspectArgs, registry: &Registry) -> Result<Outcome> {
    let model = load(&args.model, registry)?;
    if args.json {
        let mut object = output::json(&model);
        if let Some(scores) = model.notes().get(notes::SCORES) {
            object["scores"] =
                serde_json::from_str(scores).context("the model's scores cannot be read")?;
        }
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
        return Ok(Outcome::Done);
    }
    let machine = mtmkl_report::in_words(model.machine());
    let sharing = mtmkl_report::in_words(model.sharing());
    let mut text = format!(
        "machine  {machine}\nsharing  {sharing}\nkernels  {}",
        model.kernels().len()
    );
    text += match model.normalize() {
        Normalization::Unit => ", each sample of length 1\n\n",
        Normalization::Variance => ", divided by their variance\n\n",
        Normalization::None => ", as they are\n\n",
    };
    text += &output::weights(&model);
    let rows: Vec<Vec<String>> = model
        .tasks()
        .iter()
        .map(|task| {
            vec![
                task.name.clone(),
                task.samples.to_string(),
                task.support.len().to_string(),
                // Adding zero turns -0 into 0.
                format!("{:.6}", (1e6 * task.offset).round() / 1e6 + 0.0),
            ]
        })
        .collect();
    let header = ["task", "samples", "support", "offset"].map(String::from);
    text += &format!(
        "\n{}\n{}\n{}",
        output::task_table(&header, &rows),
        output::certificate(&model),
        output::remarks(&model)
    );
    output::show(&text)?;
    Ok(Outcome::Done)
}
