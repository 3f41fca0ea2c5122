//! `--nested`: what the whole search is worth on rows that it never saw.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use mtmkl::Stop;
use mtmkl_table::Equals;
use serde_json::{Value, json};

use super::folds::splits;
use super::searched::Asked;
use super::settle;
use crate::args::TuneArgs;
use crate::commands::fit::Fit;
use crate::output;

/// Scores of the model that a search of its own chose, on the rows that each outer fold kept aside.
pub(super) struct Nested {
    metric: &'static str,
    scores: Vec<f64>,
}

impl Nested {
    /// Searches anew in each outer fold: rows are scaled, kernels made and settings chosen without those kept aside. `None` where it was
    /// interrupted.
    ///
    /// # Errors
    /// As the search itself.
    pub(super) fn run(
        asked: &Asked<'_>,
        fit: &Fit,
        journals: &mut Vec<PathBuf>,
    ) -> Result<Option<Self>> {
        let Some(folds) = asked.args.nested else {
            bail!("--nested is not given");
        };
        let outer = TuneArgs {
            folds,
            repeats: 1,
            validation_fraction: None,
            ..asked.args.clone()
        };
        let (splits, _) = splits(&outer, fit)?;
        let mut nested = Self {
            metric: "",
            scores: Vec::new(),
        };
        for (number, split) in splits.iter().enumerate() {
            let mut own = asked.args.clone();
            own.fit.output = None;
            own.fit.report = None;
            own.fit.test = None;
            (own.fit.baselines, own.fit.no_baselines) = (false, true);
            let mut path = asked.journal.as_os_str().to_owned();
            path.push(format!(".nested{}", number + 1));
            let path = Path::new(&path);
            if !asked.args.resume {
                // That of a run whose own journal is gone.
                let _ = std::fs::remove_file(path);
            }
            own.resume = asked.args.resume && path.exists();
            let rows = |rows: &[usize]| rows.iter().map(|&row| fit.train[row]).collect();
            let part = Asked {
                args: &own,
                journal: path,
                rows: Some((rows(&split.train), rows(&split.validation))),
                ..*asked
            };
            let Some(found) = part.search()? else {
                return Ok(None);
            };
            journals.extend(found.journals);
            let (tune, mut own) = (found.tune, found.args);
            let cell = &tune.plan.cells()[found.results.best];
            settle(&mut own.fit, cell);
            let specs = &tune.kernel_sets[cell.kernels].specs;
            own.fit.kernel.clone_from(specs);
            let sets = tune.fit.sets(Equals::Merged)?;
            let learned = tune.fit.learn(&own.fit, sets, || Stop::clone(asked.stop))?;
            if asked.stop.is_requested() {
                return Ok(None);
            }
            let score = learned.score();
            nested.metric = score.metric;
            nested.scores.push(score.mean);
        }
        Ok(Some(nested))
    }

    fn mean(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.scores.iter().map(|score| (score - mean).powi(2)).sum();
        (squares / (self.scores.len() as f64 - 1.0)).sqrt()
    }

    pub(super) fn text(&self) -> String {
        format!(
            "Nested, {} outer folds with a search of their own: {} {} ± {}\n",
            self.scores.len(),
            self.metric,
            output::figure(self.mean()),
            output::figure(self.deviation())
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "metric": self.metric,
            "folds": self.scores,
            "mean": self.mean(),
            "deviation": self.deviation(),
        })
    }
}
