//! One search, or one for each variant: the best of the best.

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

use anyhow::Result;
use mtmkl::Stop;
use mtmkl::select::{Cell, Grid};
use mtmkl_table::Equals;
use serde_json::{Value, json};

use super::Tune;
use super::kernel_set::KernelSet;
use super::plan::{Done, Plan};
use super::results::Results;
use super::variant::{self, Variant};
use super::wanted::Wanted;
use crate::args::TuneArgs;
use crate::commands::fit::Fit;
use crate::output;

/// What is to be searched.
pub(super) struct Asked<'a> {
    pub(super) args: &'a TuneArgs,
    pub(super) wanted: &'a Wanted,
    pub(super) kernel_sets: &'a [KernelSet],
    /// Where finished fits are kept; those of further variants beside it.
    pub(super) journal: &'a Path,
    /// The rows to learn from and to score on, of an outer fold.
    pub(super) rows: Option<(Vec<usize>, Vec<usize>)>,
    /// From its first use on Ctrl-C keeps what there is; until then it ends the program.
    pub(super) stop: &'a LazyCell<Stop>,
}

/// What came of it.
pub(super) struct Searched {
    /// The flags, with those of the variant that won.
    pub(super) args: TuneArgs,
    /// The kernels as given: opening gives precomputed ones names of their own.
    pub(super) given: Vec<String>,
    pub(super) tune: Tune,
    pub(super) results: Results,
    pub(super) computed: usize,
    /// Each variant and the score of its best cell, where there are several.
    variants: Vec<(Variant, f64)>,
    chosen: usize,
    /// The journals, which are not needed any more.
    pub(super) journals: Vec<PathBuf>,
}

/// One variant.
struct Found {
    args: TuneArgs,
    given: Vec<String>,
    tune: Tune,
    done: Done,
    computed: usize,
    journal: PathBuf,
}

impl Asked<'_> {
    /// Searches each variant that the grid names and, without a grid, tries others on the winner. `None` where it was interrupted.
    pub(super) fn search(&self) -> Result<Option<Searched>> {
        let mut best: Option<Searched> = None;
        let (mut variants, mut journals) = (Vec::new(), Vec::new());
        let is_piped = self.args.fit.data.as_deref() == Some(Path::new("-"));
        let asked = self.wanted.variants();
        let is_usual = self.wanted.is_nothing() && asked == [Variant::default()] && !is_piped;
        let all = if is_usual {
            variant::of_tasks(&self.args.fit)
        } else {
            asked
        };
        for (number, variant) in all.into_iter().enumerate() {
            let Some(found) = self.one(&variant, number, None)? else {
                return Ok(None);
            };
            let results = Results::new(&found.tune, &found.done);
            let mean = results.mean();
            journals.push(found.journal);
            variants.push((variant, mean));
            let is_better = |best: &Searched| best.tune.metric.is_better(mean, best.results.mean());
            if best.as_ref().is_none_or(is_better) {
                best = Some(Searched {
                    args: found.args,
                    given: found.given,
                    tune: found.tune,
                    results,
                    computed: found.computed,
                    variants: Vec::new(),
                    chosen: number,
                    journals: Vec::new(),
                });
            }
        }
        let Some(mut best) = best else {
            return Ok(None);
        };
        (best.variants, best.journals) = (variants, journals);
        if best.tune.plan.is_usual() && !is_piped && !self.vary(&mut best)? {
            return Ok(None);
        }
        Ok(Some(best))
    }

    /// Tries variants of the winner, on all folds; whether it was not interrupted.
    fn vary(&self, best: &mut Searched) -> Result<bool> {
        let winner = best.tune.plan.cells()[best.results.best].clone();
        let specs = best.tune.kernel_sets[winner.kernels].specs.clone();
        let mut settled = best.variants[best.chosen].0.clone();
        for (flag, values) in variant::usual(&best.args.fit, &best.tune) {
            let from = settled.clone();
            for value in values {
                let tried = from.with(flag, value);
                let number = best.variants.len();
                let only = (winner.clone(), specs.clone());
                let Some(found) = self.one(&tried, number, Some(only))? else {
                    return Ok(false);
                };
                let mean = Results::new(&found.tune, &found.done).mean();
                best.journals.push(found.journal);
                best.variants.push((tried.clone(), mean));
                if best
                    .tune
                    .metric
                    .is_better(mean, best.variants[best.chosen].1)
                {
                    (best.chosen, settled) = (number, tried);
                    tried_on(best, found.tune.fit)?;
                }
            }
        }
        Ok(true)
    }

    /// The search of one variant, or the fits of one cell of it.
    fn one(
        &self,
        variant: &Variant,
        number: usize,
        only: Option<(Cell, Vec<String>)>,
    ) -> Result<Option<Found>> {
        let mut args = self.args.clone();
        variant.set(&mut args.fit)?;
        let mut journal = self.journal.as_os_str().to_owned();
        if number > 0 {
            journal.push(format!(".variant{}", number + 1));
        }
        let journal = PathBuf::from(journal);
        if number > 0 && !self.args.resume {
            // That of a run whose own journal is gone.
            let _ = std::fs::remove_file(&journal);
        }
        args.resume = self.args.resume && (number == 0 || journal.exists());
        let mut kernel_sets = self.kernel_sets.to_vec();
        if let Some((cell, specs)) = &only {
            args.fit.kernel.clone_from(specs);
            // A kernel that does best alone does so without offsets.
            args.fit.no_task_offset |= cell.kernels > 0 && !args.fit.transfer.is_empty();
            kernel_sets = vec![KernelSet::of(specs.clone())];
        }
        let given = args.fit.kernel.clone();
        let mut fit = Fit::open(&mut args.fit, "tune")?;
        if let Some((train, test)) = &self.rows {
            fit = fit.on_rows(&args.fit, train.clone(), test.clone())?;
        }
        // Folds tell equal rows apart; the model of all rows does not.
        let sets = fit.sets(Equals::Apart)?;
        let mut tune = Tune::new(&args, self.wanted, kernel_sets, fit, &sets.dataset)?;
        if let Some((cell, _)) = only {
            tune.plan = Plan::of_grid(Grid::of(vec![Cell { kernels: 0, ..cell }]));
            tune.kernel_sets.truncate(1);
        }
        let Some((done, computed)) = tune.search(&args, &journal, &sets.dataset, self.stop)? else {
            return Ok(None);
        };
        Ok(Some(Found {
            args,
            given,
            tune,
            done,
            computed,
            journal,
        }))
    }
}

/// The winner is that of another variant: its table is scaled, and its rows are weighed, as there.
fn tried_on(best: &mut Searched, fit: Fit) -> Result<()> {
    best.variants[best.chosen].0.set(&mut best.args.fit)?;
    best.tune.fit = fit;
    Ok(())
}

impl Searched {
    /// The variants and what came of them; nothing where there is one.
    pub(super) fn text(&self) -> String {
        if self.variants.len() < 2 {
            return String::new();
        }
        let mut flags: Vec<&str> = Vec::new();
        for (variant, _) in &self.variants {
            for (flag, _) in variant.flags() {
                if !flags.contains(&flag.as_str()) {
                    flags.push(flag);
                }
            }
        }
        let header = flags.iter().copied().chain([self.tune.metric.name(), ""]);
        let header: Vec<String> = header.map(String::from).collect();
        let row = |(number, (variant, mean)): (usize, &(Variant, f64))| {
            let value = |flag: &&str| {
                let own = variant.flags().iter().rfind(|(name, _)| name == flag);
                // What the search itself had.
                let usual = if *flag == "scale" { "standard" } else { "none" };
                own.map_or(usual.to_string(), |(_, value)| value.clone())
            };
            let chosen = if number == self.chosen { "chosen" } else { "" };
            flags
                .iter()
                .map(value)
                .chain([output::figure(*mean), chosen.to_string()])
                .collect()
        };
        let rows: Vec<Vec<String>> = self.variants.iter().enumerate().map(row).collect();
        format!("\n{}", output::table(&header, &rows))
    }

    /// The same as JSON.
    pub(super) fn json(&self) -> Value {
        let mut object = self.results.json(&self.tune, self.computed);
        if self.variants.len() > 1 {
            let one = |(variant, mean): &(Variant, f64)| {
                let flags = variant.flags().iter();
                let flags: serde_json::Map<String, Value> = flags
                    .map(|(flag, value)| (flag.clone(), json!(value)))
                    .collect();
                json!({ "flags": flags, "mean": mean })
            };
            object["variants"] = self.variants.iter().map(one).collect();
            object["variant"] = json!(self.chosen);
        }
        object
    }
}
