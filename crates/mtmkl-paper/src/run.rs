//! The paper's tables, from its data, by its protocol.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use mtmkl::select::{Limits, in_parallel};
use mtmkl::{Pool, Preparation};
use serde_json::json;

use mtmkl_cli::commands::{Outcome, demo};
use mtmkl_cli::journal::{Fingerprint, Journal};
use mtmkl_cli::progress::Fits;
use mtmkl_cli::signals::interruptible;
use mtmkl_cli::words::count;
use mtmkl_cli::{choices, output};

use crate::arguments::{Arguments, PaperTable};
use crate::benchmark::{BENCHMARKS, Benchmark};
use crate::method::{Method, P, TANG, q};
use crate::protocol::{C, DOUBLED, Experiment, Key, Settings, Unit};
use crate::sources;
use crate::tables::{Figures, markdown_table};

/// Makes a table: as Markdown, CSV and JSON, with pictures, and printed.
///
/// # Errors
/// When a data file is missing, a share cannot be drawn, or something cannot be written.
pub fn run(args: &Arguments) -> Result<Outcome> {
    if let Some(path) = &args.into {
        // Said now, not after hours.
        into(path, args.table.name(), None)?;
        output::check_place(path)?;
    }
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the folder {}", args.output.display()))?;
    for ending in ["md", "csv", "json"] {
        output::check_place(&args.output.join(format!("{}.{ending}", args.table.name())))?;
    }
    match args.table {
        PaperTable::Table1 => table_1(args),
        PaperTable::Table2 => table(args, 2),
        PaperTable::Table3 => table(args, 3),
    }
}

/// The Iris case: kernel weights beside the paper's.
fn table_1(args: &Arguments) -> Result<Outcome> {
    let model = demo::case()?;
    let (header, rows) = demo::weights(&model);
    let text = format!(
        "{}\n{}\n\n{}\n",
        markdown_table(&header, &rows),
        demo::SETTING,
        output::certificate(&model)
    );
    let lines = std::iter::once(&header).chain(&rows);
    let csv: String = lines.map(|line| line.join(",") + "\n").collect();
    let mut object = output::json(&model);
    object["paper"] = json!(demo::TABLE_1);
    write(args, "table1", &text, &csv, &object)?;
    if args.json {
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        output::show(&format!(
            "{}\n\n{}\n{}\n{}\n",
            demo::SETTING,
            output::table(&header, &rows),
            output::certificate(&model),
            output::effort(&model)
        ))?;
    }
    Ok(Outcome::Done)
}

/// The sets of a table that are asked for.
fn sets(args: &Arguments, number: u8) -> Result<Vec<&'static Benchmark>> {
    let own: Vec<&'static Benchmark> = BENCHMARKS
        .iter()
        .filter(|set| set.table == number)
        .collect();
    if args.sets.is_empty() {
        return Ok(own);
    }
    args.sets
        .iter()
        .map(|name| {
            own.iter()
                .copied()
                .find(|set| set.name == name)
                .ok_or_else(|| {
                    let names: Vec<&str> = own.iter().map(|set| set.name).collect();
                    match Benchmark::named(name) {
                        Some(other) => {
                            anyhow!("--sets {name}: that set is in table {}", other.table)
                        }
                        None => choices::unknown("data set", name, &names),
                    }
                })
        })
        .collect()
}

fn settings(args: &Arguments) -> Result<Settings> {
    if args.runs == 0 {
        bail!("--runs is 0, expected at least 1");
    }
    let methods = if args.methods.is_empty() {
        Method::ALL.to_vec()
    } else {
        args.methods
            .iter()
            .map(|name| {
                Method::named(name)
                    .ok_or_else(|| choices::unknown("method", name, &Method::ALL.map(Method::name)))
            })
            .collect::<Result<_>>()?
    };
    Ok(Settings {
        scale: args.scale,
        kernels: choices::kernels(&mtmkl::Registry::default(), &args.kernel)?,
        methods,
        shares: (!args.share.is_empty()).then(|| args.share.clone()),
        runs: args.runs,
        seed: args.seed,
    })
}

/// The settings in words, for the record.
fn described(
    args: &Arguments,
    settings: &Settings,
    experiments: &[Experiment],
) -> Vec<(String, String)> {
    let list = |values: &[f64]| {
        values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut lines = vec![
        ("version".to_string(), env!("CARGO_PKG_VERSION").to_string()),
        (
            "draws".to_string(),
            format!("{}, seed {}", settings.runs, settings.seed),
        ),
        (
            "scaling".to_string(),
            format!("{:?} by all rows of the subset", settings.scale).to_lowercase(),
        ),
        (
            "kernels".to_string(),
            settings
                .kernels
                .iter()
                .map(|view| format!("`{}`", view.name))
                .collect::<Vec<_>>()
                .join(", ")
                + ", all normalised",
        ),
        (
            "machine".to_string(),
            "svc, without the ½ before the quadratic term, as the paper has it: C counts twice"
                .to_string(),
        ),
        ("C".to_string(), list(&C.map(|c| (c * 1e4).round() / 1e4))),
        ("p".to_string(), P.to_string()),
        ("q (PSCS, group)".to_string(), list(&q())),
        ("β/T (Tang)".to_string(), list(&TANG)),
        (
            "accuracy of each fit".to_string(),
            format!(
                "certified relative gap {}, at most {} passes",
                args.tol, args.max_passes
            ),
        ),
    ];
    for experiment in experiments {
        lines.push((
            experiment.set.title.to_string(),
            format!("data {}", experiment.data),
        ));
    }
    lines
}

fn table(args: &Arguments, number: u8) -> Result<Outcome> {
    let folder = args
        .data
        .as_deref()
        .context("where are the data? Give their folder: --data DIR")?;
    let name = args.table.name();
    let sets = sets(args, number)?;
    let settings = settings(args)?;
    for set in &sets {
        sources::check(set.name, folder)?;
    }
    let experiments = sets
        .iter()
        .map(|set| Experiment::new(set, sources::read(set.name, folder)?, &settings))
        .collect::<Result<Vec<_>>>()?;
    let path = args.output.join(format!("{name}.journal"));
    let (journal, known) = opened(args, &path, &settings, &experiments)?;
    let stop = interruptible();
    let done = work(args, &experiments, known, &journal, &stop)?;
    let wanted: Vec<Key> = experiments
        .iter()
        .flat_map(|one| one.runs().flat_map(|run| one.keys(run)))
        .collect();
    let units: BTreeMap<Key, Unit> = wanted
        .iter()
        .filter_map(|key| done.get(key).map(|unit| (key.clone(), unit.clone())))
        .collect();
    if units.len() < wanted.len() {
        output::note(&format!(
            "mtmkl: stopped; {} of {} are kept in {}. The same command with --resume goes on from there",
            units.len(),
            count(wanted.len(), "result", "results"),
            path.display()
        ));
        return Ok(Outcome::NotConverged);
    }
    let shown: Vec<(&'static Benchmark, Vec<f64>)> = experiments
        .iter()
        .map(|one| (one.set, one.shares.clone()))
        .collect();
    let figures = Figures::new(
        number,
        &shown,
        &units,
        described(args, &settings, &experiments),
    );
    written(args, &figures)?;
    Ok(Outcome::Done)
}

/// The journal, and the units that it has already.
fn opened(
    args: &Arguments,
    path: &Path,
    settings: &Settings,
    experiments: &[Experiment],
) -> Result<(Journal, BTreeMap<Key, Unit>)> {
    let mut fingerprint = Fingerprint::default();
    let kernels: Vec<&str> = settings
        .kernels
        .iter()
        .map(|view| view.name.as_str())
        .collect();
    fingerprint
        .bytes(
            format!(
                "{:?} {kernels:?} {} {} {}",
                settings.scale, settings.seed, args.tol, args.max_passes
            )
            .as_bytes(),
        )
        .numbers(&C.map(|c| DOUBLED * c))
        .numbers(&q())
        .numbers(&TANG);
    let (journal, lines) = Journal::open(
        path,
        // As journals have said from the beginning.
        &format!("mtmkl reproduce {}", args.table.name()),
        &fingerprint,
        args.resume,
    )?;
    let mut known: BTreeMap<Key, Unit> = BTreeMap::new();
    for line in lines {
        let unit: Unit = serde_json::from_value(line)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        if experiments
            .iter()
            .any(|one| one.set.name == unit.set && one.data != unit.data)
        {
            bail!(
                "{} has results of other data for the set `{}`; give another folder with -o, or remove it",
                path.display(),
                unit.set
            );
        }
        known.insert(unit.key(), unit);
    }
    Ok((journal, known))
}

/// Writes and prints the figures.
fn written(args: &Arguments, figures: &Figures) -> Result<()> {
    let name = args.table.name();
    let object = figures.json();
    write(args, name, &figures.markdown(), &figures.csv(), &object)?;
    for (set, svg) in figures.pictures() {
        mtmkl::model::write_whole(
            &args.output.join(format!("{name}-{set}.svg")),
            svg.as_bytes(),
        )?;
    }
    mtmkl::model::write_whole(
        &args.output.join(format!("{name}-pictures.html")),
        figures.page().as_bytes(),
    )?;
    if args.json {
        output::print(&format!("{}\n", serde_json::to_string_pretty(&object)?))?;
    } else {
        output::show(&format!(
            "{}\nWritten to {}: {name}.md, {name}.csv, {name}.json, {name}-pictures.html; the journal {name}.journal has every draw\n",
            figures.text(),
            args.output.display()
        ))?;
    }
    Ok(())
}

/// Fits what is not known yet, draw by draw, so that only one draw's Gram matrices are there at a time.
fn work(
    args: &Arguments,
    experiments: &[Experiment],
    mut known: BTreeMap<Key, Unit>,
    journal: &Journal,
    stop: &mtmkl::Stop,
) -> Result<BTreeMap<Key, Unit>> {
    let limits = Limits {
        tolerance: args.tol,
        max_passes: args.max_passes,
        time_limit: None,
        seed: args.seed,
        // A figure then depends on nothing but its own cell.
        warm: false,
        stop: stop.clone(),
    };
    let all: usize = experiments.iter().map(Experiment::fits).sum();
    let there: usize = known.values().map(|unit| unit.fits).sum();
    let fits = Fits::new(args.quiet || args.json);
    fits.expect(all, there.min(all));
    let pool = Pool::new(args.threads)?;
    let pools = Pool::for_jobs(pool.threads(), args.threads)?;
    for (experiment, run) in experiments
        .iter()
        .flat_map(|one| one.runs().map(move |run| (one, run)))
    {
        if stop.is_requested() {
            break;
        }
        if experiment
            .keys(run)
            .iter()
            .all(|key| known.contains_key(key))
        {
            continue;
        }
        let draw = experiment.draw(run)?;
        let mut chains = draw.chains();
        chains.retain(|chain| !known.contains_key(&draw.key(chain)));
        let prepared = draw.problem().prepare(&Preparation {
            pool: Some(pool.clone()),
            ..Preparation::default()
        })?;
        let search = draw.search()?;
        let found = Mutex::new(&mut known);
        in_parallel(chains.len(), &pools, |number, pool| -> Result<()> {
            if stop.is_requested() {
                return Ok(());
            }
            let Some(unit) = draw.follow(&search, &prepared, &chains[number], &limits, pool)?
            else {
                return Ok(());
            };
            journal.add(&serde_json::to_value(&unit)?)?;
            fits.advance_by(
                unit.fits,
                &format!(
                    "{} {} % draw {} {}",
                    unit.set,
                    unit.share,
                    unit.run + 1,
                    unit.method.name()
                ),
            );
            let mut found = found
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            found.insert(unit.key(), unit);
            Ok(())
        })?;
    }
    fits.finish();
    Ok(known)
}

/// Markdown, CSV and JSON, and the Markdown in the document that was named.
fn write(
    args: &Arguments,
    name: &str,
    markdown: &str,
    csv: &str,
    object: &serde_json::Value,
) -> Result<()> {
    let json = serde_json::to_string_pretty(object)? + "\n";
    for (ending, text) in [("md", markdown), ("csv", csv), ("json", &json)] {
        mtmkl::model::write_whole(
            &args.output.join(format!("{name}.{ending}")),
            text.as_bytes(),
        )?;
    }
    if let Some(path) = &args.into {
        into(path, name, Some(markdown))?;
    }
    Ok(())
}

/// Puts a text between the marks `<!-- NAME -->` and `<!-- /NAME -->` of a document; without a text, only looks for the marks.
fn into(path: &Path, name: &str, text: Option<&str>) -> Result<()> {
    let place = path.display();
    let document = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let found = document
        .split_once(&begin)
        .and_then(|(before, rest)| rest.split_once(&end).map(|(_, after)| (before, after)));
    let Some((before, after)) = found else {
        bail!(
            "{place} has no place for the table: a line `<!-- {name} -->` and, below it, a line `{end}`"
        );
    };
    if let Some(text) = text {
        let whole = format!("{before}{begin}\n{}\n\n{end}{after}", text.trim());
        mtmkl::model::write_whole(path, whole.as_bytes())?;
    }
    Ok(())
}
