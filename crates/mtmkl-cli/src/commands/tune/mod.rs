//! `mtmkl tune`: which settings predict best on rows kept aside, and a model with them from all rows.

mod folds;
mod kernel_set;
mod nested;
mod plan;
mod results;
mod rounds;
mod searched;
mod starts;
mod variant;
mod wanted;

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use mtmkl::entry::Parameter;
use mtmkl::kernel::KernelView;
use mtmkl::select::{Cell, Fold, Metric, Trial, UsualSearch, usual_kernels_to_search};
use mtmkl::{Registry, Stop, Task};
use mtmkl_table::{Dataset, Equals, Goal, Predictions, Scaling};
use serde::{Deserialize, Serialize};

use self::folds::{fold_of, splits};
use self::kernel_set::{KernelSet, kernel_sets};
use self::nested::Nested;
use self::plan::Plan;
use self::searched::Asked;
use self::wanted::Wanted;
use super::Outcome;
use super::fit::{Fit, scaling_of};
use crate::args::{FitArgs, TuneArgs};
use crate::journal::{Fingerprint, Journal};
use crate::score::{Score, metric, score};
use crate::signals::interruptible;
use crate::{choices, output};

/// The journal's name where none is given.
const JOURNAL: &str = "mtmkl-tune.journal";

/// One cell on one fold, as the journal keeps it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Finished {
    cell: usize,
    fold: usize,
    /// Not there where it is not defined.
    score: Option<f64>,
    /// What tells cells with the same score apart.
    finer: f64,
    tasks: Vec<Option<f64>>,
    status: String,
    converged: bool,
    passes: usize,
    seconds: f64,
}

/// Everything that is tried on everything.
struct Tune {
    fit: Fit,
    metric: Metric,
    inlier: Option<String>,
    plan: Plan,
    /// What the usual search is of, for the fingerprint; empty for a grid.
    about: String,
    kernel_sets: Vec<KernelSet>,
    /// How columns are scaled.
    scaling: Scaling,
    /// The certified relative gap that is enough on folds.
    least: f64,
    registry: Registry,
    folds: Vec<Fold>,
    /// What the folds are, in words.
    split: String,
    tasks: Vec<Task>,
    /// For each sample set, its rows among the records.
    rows: Vec<Vec<usize>>,
}

/// `mtmkl tune`
///
/// # Errors
/// When the input cannot be used, the journal is not of this run, or something cannot be written.
pub fn run(args: &TuneArgs) -> Result<Outcome> {
    let mut args = args.clone();
    if args.fit.print_config {
        output::print(&toml::to_string(&args)?)?;
        return Ok(Outcome::Done);
    }
    let wanted = Wanted::new(&args)?;
    let kernel_sets = kernel_sets(&mut args)?;
    let journal = args
        .journal
        .clone()
        .unwrap_or_else(|| PathBuf::from(JOURNAL));
    args.picture
        .iter()
        .chain([&journal])
        .try_for_each(|path| output::check_place(path))?;
    output::check_apart(
        &[("the table to learn from", args.fit.data.as_deref())],
        &[
            ("-o", args.fit.output.as_deref()),
            ("--report", args.fit.report.as_deref()),
            ("--picture", args.picture.as_deref()),
            ("--journal", Some(&journal)),
        ],
    )?;
    if let Some(group) = args
        .group
        .clone()
        .filter(|group| !args.fit.ignore.contains(group))
    {
        args.fit.ignore.push(group);
    }
    if wanted.is_nothing() && !args.fit.said.kernels {
        args.fit.kernel = usual_kernels_to_search();
    }
    let is_piped = args.fit.data.as_deref() == Some(Path::new("-"));
    if is_piped && (args.nested.is_some() || wanted.variants().len() > 1) {
        bail!(
            "--nested, and grids over scale, normalize or class-weight, read the table several times, which standard input cannot; give a \
             file"
        );
    }
    let stop = LazyCell::new(interruptible as fn() -> Stop);
    let asked = Asked {
        args: &args,
        wanted: &wanted,
        kernel_sets: &kernel_sets,
        journal: &journal,
        rows: None,
        stop: &stop,
    };
    let Some(mut searched) = asked.search()? else {
        return Ok(Outcome::NotConverged);
    };
    let nested = match args.nested {
        Some(_) => match Nested::run(&asked, &searched.tune.fit, &mut searched.journals)? {
            Some(nested) => Some(nested),
            None => return Ok(Outcome::NotConverged),
        },
        None => None,
    };
    let is_own = args.journal.is_none();
    let told = (searched.text(), searched.json());
    let results = &searched.results;
    let (tune, mut args) = (&mut searched.tune, searched.args);
    let best = &tune.plan.cells()[results.best];
    settle(&mut args.fit, best);
    args.fit
        .kernel
        .clone_from(&tune.kernel_sets[best.kernels].specs);
    // A kernel that does best alone does so without offsets; sets that were named have them.
    args.fit.no_task_offset |=
        tune.plan.is_usual() && tune.fit.between().is_some() && best.kernels > 0;
    let mut shown = args.fit.clone();
    if tune.kernel_sets.len() == 1 || (tune.plan.is_usual() && best.kernels == 0) {
        shown.kernel = searched.given;
    }
    tune.fit.settings = toml::to_string(&shown)?;
    let picture = results.picture(tune);
    let sets = tune.fit.sets(Equals::Merged)?;
    let mut learned = tune.fit.learn(&args.fit, sets, || Stop::clone(&stop))?;
    learned.model.notes_mut().insert(
        mtmkl_report::notes::PICTURES.to_string(),
        serde_json::to_string(&[(picture.title.clone(), picture.title.clone(), picture.svg())])?,
    );
    let mut saved = learned.save(&args.fit);
    if let Some(path) = &args.picture
        && let Err(error) = mtmkl::model::write_whole(path, picture.svg().as_bytes())
    {
        saved.missing(format!("{error}; the picture is not written"));
    }
    // Not before: what was computed is worth more than the last fit.
    if stop.is_requested() || saved.check().is_err() {
        output::note(&format!(
            "mtmkl: the fits that this was chosen by are kept in {}. The same command with --resume goes on from there",
            journal.display()
        ));
    } else if is_own {
        for path in &searched.journals {
            if let Err(error) = std::fs::remove_file(path) {
                saved.missing(format!(
                    "cannot remove the journal {}: {error}",
                    path.display()
                ));
            }
        }
    }
    if args.fit.json {
        let mut object = learned.json();
        object["tune"] = told.1;
        if let Some(nested) = &nested {
            object["tune"]["nested"] = nested.json();
        }
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        let nested = nested.map_or(String::new(), |nested| nested.text());
        let cells = results.text(tune, searched.computed);
        let text = cells + &told.0 + &nested + "\n" + &learned.text(&args.fit, &saved);
        output::show(&text)?;
    }
    saved.check()?;
    Ok(learned.outcome())
}

/// Writes a cell's values where `fit` would find them.
fn settle(args: &mut FitArgs, cell: &Cell) {
    args.sharing = Some(cell.sharing.name().to_string());
    let parameters: Vec<&Parameter> = args.registry.parameters().map(|(_, one)| one).collect();
    for parameter in parameters {
        if let Some(value) = cell.get(parameter.name) {
            args.parameters.set(&parameter.flag(), value);
        }
    }
}

impl Tune {
    fn new(
        args: &TuneArgs,
        wanted: &Wanted,
        mut kernel_sets: Vec<KernelSet>,
        fit: Fit,
        dataset: &Dataset,
    ) -> Result<Self> {
        if kernel_sets.is_empty() {
            kernel_sets.push(KernelSet::of(args.fit.kernel.clone()));
        }
        let metric = metric(args.fit.metric.as_deref(), &fit.frame.goal, false)?;
        if fit.frame.goal == Goal::OneClass && (fit.frame.target.is_none() || args.inlier.is_none())
        {
            bail!(
                "machine {} learns without labels, so there is nothing to choose by; name a column that tells inliers with --target \
                 COLUMN --inlier VALUE",
                args.fit.machine
            );
        }
        let machine = choices::machine(&args.fit)?;
        let (splits, split) = splits(args, &fit)?;
        let folds: Vec<Fold> = splits
            .iter()
            .map(|split| fold_of(split, &fit.train, dataset))
            .collect();
        let mut about = String::new();
        let tasks = fit.tasks(dataset.tasks.len());
        let levels = fit.levels(&args.fit, &dataset.tasks)?;
        let plan = if wanted.is_nothing() {
            let learned = wanted::learned(&args.fit, tasks, &levels)?;
            about = serde_json::to_string(&(&machine, &learned))?;
            let mut kernels = choices::kernels(&args.fit.registry, &args.fit.kernel)?;
            if let Some(known) = fit.between() {
                kernels = crate::transfer::kernels(&args.fit, kernels, known)?;
            }
            let held: Vec<usize> = splits.iter().map(|split| split.validation.len()).collect();
            let is_given = wanted::price_is_given(&args.fit, &machine);
            let of_task = |task: &Task| task.rows.count(dataset.samples[task.samples].count());
            let rows = dataset.tasks.iter().map(of_task).sum();
            let search = UsualSearch::new(&machine, is_given, &learned, kernels.len(), rows, &held);
            if kernels.len() > 1 {
                let alone = kernels
                    .into_iter()
                    .map(|view| KernelSet::of(vec![view.name]));
                kernel_sets.extend(alone);
            }
            Plan::Usual(Box::new(search))
        } else {
            Plan::of_grid(wanted.grid(&machine, &args.fit, tasks, &levels, kernel_sets.len())?)
        };
        Ok(Self {
            fit,
            metric,
            inlier: args.inlier.clone(),
            plan,
            about,
            kernel_sets,
            scaling: scaling_of(&args.fit)?,
            least: if wanted.is_nothing() {
                UsualSearch::TOLERANCE
            } else {
                0.0
            },
            registry: args.fit.registry.clone(),
            folds,
            split,
            tasks: dataset.tasks.clone(),
            rows: dataset.rows.clone(),
        })
    }

    /// Scores a trial and writes it down.
    fn keep(&self, trial: &Trial<'_>, dataset: &Dataset, journal: &Journal) -> Result<Finished> {
        let score = self.judge(trial, dataset)?;
        let outcome = trial.model.outcome();
        let there = |value: f64| value.is_finite().then_some(value);
        let finished = Finished {
            cell: trial.cell,
            fold: trial.fold,
            score: there(score.mean),
            finer: trial.finer,
            tasks: score.tasks.iter().map(|task| there(task.score)).collect(),
            status: outcome.status.name().to_string(),
            converged: outcome.status.is_converged(),
            passes: outcome.trace.len(),
            seconds: trial.seconds,
        };
        journal.add(&serde_json::to_value(&finished)?)?;
        Ok(finished)
    }

    fn judge(&self, trial: &Trial<'_>, dataset: &Dataset) -> Result<Score> {
        let held = &self.folds[trial.fold].held;
        let frame = &self.fit.frame;
        let raw_rows = |set: usize| held[set].iter().map(move |&row| dataset.rows[set][row]);
        let rows: Vec<usize> = (0..held.len()).flat_map(raw_rows).collect();
        let predictions = Predictions::of_decisions(&frame.goal, trial.model, &trial.decisions);
        score(
            frame,
            &self.fit.records.select(&rows),
            &predictions,
            self.inlier.as_deref(),
            self.metric,
        )
    }

    /// The kernel sets as positions among all kernels.
    fn positions(&self, args: &FitArgs, kernels: &[KernelView]) -> Result<Vec<Vec<usize>>> {
        if let Plan::Usual(search) = &self.plan {
            return Ok(search.kernel_sets());
        }
        if self.kernel_sets.len() == 1 {
            return Ok(vec![(0..kernels.len()).collect()]);
        }
        self.kernel_sets
            .iter()
            .map(|set| {
                let mut positions = Vec::new();
                let mut views = choices::kernels(&self.registry, &set.specs)?;
                if let Some(known) = self.fit.between() {
                    views = crate::transfer::kernels(args, views, known)?;
                }
                for view in views {
                    let at = kernels.iter().position(|known| known.name == view.name);
                    positions
                        .push(at.with_context(|| format!("kernel `{}` is not there", view.name))?);
                }
                Ok(positions)
            })
            .collect()
    }

    /// Of everything that scores depend on.
    fn fingerprint(&self, args: &FitArgs, dataset: &Dataset) -> Result<Fingerprint> {
        let mut fingerprint = Fingerprint::default();
        let records = &self.fit.records;
        fingerprint
            .bytes(serde_json::to_string(self.plan.cells())?.as_bytes())
            .bytes(self.about.as_bytes());
        let specs = self.kernel_sets.iter().flat_map(|set| &set.specs);
        for text in specs.chain(&args.kernel) {
            fingerprint.bytes(text.as_bytes());
        }
        fingerprint
            .bytes(format!("{:?} {:?} {:?}", self.metric, self.inlier, self.folds).as_bytes())
            .bytes(
                format!(
                    "{} {:?} {:?} {} {} {}",
                    args.solver,
                    args.normalize,
                    args.target_scale,
                    args.precision,
                    args.tol,
                    args.max_passes
                )
                .as_bytes(),
            )
            .bytes(format!("{:?} {} {:?}", args.time_limit, args.seed, self.fit.frame).as_bytes())
            .bytes(format!("{:?} {:?}", records.target, records.task).as_bytes())
            .bytes(format!("{:?}", args.class_weight).as_bytes())
            .numbers(records.numbers.as_deref().unwrap_or_default())
            .numbers(records.weights.as_deref().unwrap_or_default());
        for set in &dataset.samples {
            let rows = set.rows();
            fingerprint.numbers(rows.dense().unwrap_or_default());
            for row in 0..rows.sparse().map_or(0, |sparse| sparse.count()) {
                let (columns, values) =
                    rows.sparse().map_or((&[][..], &[][..]), |all| all.row(row));
                let columns: Vec<f64> = columns.iter().map(|&column| f64::from(column)).collect();
                fingerprint.numbers(&columns).numbers(values);
            }
        }
        for (name, gram) in &self.fit.grams {
            fingerprint.bytes(name.as_bytes()).numbers(&gram.values);
        }
        Ok(fingerprint)
    }
}
