//! Passes to a certified gap for every registered sharing and for trees of three levels, and the outer solver's own part of the time; one line of JSON for each fit.
//!
//! `passes SAMPLES KERNELS TASKS TOLERANCE THREADS TIME_LIMIT`: support vector classification, all tasks on the same samples; task t is to tell
//! the sign of column t. Half of the kernels are Gaussians on all columns, half on one column each. No fit takes more than TIME_LIMIT seconds.
//!
//! `passes` are those on the full problem, `seconds` is the whole fit on prepared Gram matrices. `outer` is what the outer solver takes
//! itself, everything but evaluating J, also in the starts from fewer samples. The fit does not tell: it is found by solving once more, with
//! those starts made here and an engine that is timed. Where samples are too few for such starts, that is the fit itself.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::time::{Duration, Instant};

use mtmkl::engine::{Engine, Evaluation, Fitted, Mixture, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::{Hierarchy, SharingSpec};
use mtmkl::solver::{Newton, Solution, Solver};
use mtmkl::{Fitting, NamedLevel, Prepared, Problem, Result, Run, Stop};

const COLUMNS: usize = 100;

/// An engine, and the seconds spent in it.
struct Timed<E> {
    engine: E,
    seconds: f64,
}

impl<E: Engine> Timed<E> {
    fn time<R>(&mut self, work: impl FnOnce(&mut E) -> R) -> R {
        let started = Instant::now();
        let result = work(&mut self.engine);
        self.seconds += started.elapsed().as_secs_f64();
        result
    }
}

impl<E: Engine> Engine for Timed<E> {
    fn shape(&self) -> Shape {
        self.engine.shape()
    }

    fn is_concave(&self) -> bool {
        self.engine.is_concave()
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        self.time(|engine| engine.evaluate(theta, request))
    }

    fn keep(&mut self, numbers: &[usize]) {
        self.engine.keep(numbers);
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        self.engine.machines(numbers)
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        self.engine.mixtures(mixtures)
    }
}

/// Every fourth run of eight, or none where `Prepared::fit` would not start from fewer samples.
fn quarter(rows: &[usize], kernels: usize) -> Option<Vec<usize>> {
    let chosen: Vec<usize> = rows.chunks_exact(8).step_by(4).flatten().copied().collect();
    (chosen.len() >= kernels.max(100)).then_some(chosen)
}

/// The answer on these rows, begun with that on a quarter of them, as `Prepared::fit` does it.
struct Solved {
    solution: Solution,
    /// Seconds on these rows.
    seconds: f64,
    /// Of all seconds, those of the quarter included, the outer solver's own.
    outer: f64,
}

fn solve(
    whole: &Prepared,
    problem: &Problem,
    sharing: &SharingSpec,
    rows: &[usize],
    mut run: Run<'_>,
) -> Result<Solved> {
    let shape = problem.shape();
    let coarse = quarter(rows, shape.kernels)
        .map(|quarter| {
            let run = Run {
                tolerance: run.tolerance.max(3e-3),
                max_passes: run.max_passes.min(20),
                pool: run.pool.clone(),
                stop: run.stop.clone(),
                ..Run::default()
            };
            solve(whole, problem, sharing, &quarter, run)
        })
        .transpose()?;
    let sets = problem.samples().to_vec();
    let mut marked = vec![false; sets[0].count()];
    for &row in rows {
        marked[row] = true;
    }
    let tasks = problem.tasks().iter().map(|task| task.restricted(&marked));
    let part = Problem::new(problem.spec().clone(), sets, tasks.collect())?;
    let kernels: Vec<usize> = (0..shape.kernels).collect();
    let prepared = part.prepare_from(whole, &kernels, whole.pool())?;
    let mut engine = Timed {
        engine: prepared.engine(),
        seconds: 0.0,
    };
    let sharing = sharing.build(shape)?;
    let start = coarse.as_ref().map(|coarse| &coarse.solution.parts);
    let started = Instant::now();
    let solution = Newton.solve(&mut engine, &sharing, start, &mut run)?;
    let seconds = started.elapsed().as_secs_f64();
    let before = coarse.as_ref().map_or(0.0, |coarse| coarse.outer);
    Ok(Solved {
        solution,
        seconds,
        outer: before + seconds - engine.seconds,
    })
}

/// The root, groups of ten tasks and the tasks, with the sharpest norms and with round ones.
fn trees(tasks: usize) -> impl Iterator<Item = SharingSpec> {
    let all: Vec<usize> = (0..tasks).collect();
    let groups = all.chunks(10).enumerate();
    let groups: Vec<(String, Vec<usize>)> = groups
        .map(|(number, own)| (format!("group {number}"), own.to_vec()))
        .collect();
    let exponents = [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.1, 1.5)];
    exponents.into_iter().map(move |(p, q)| {
        let level = NamedLevel {
            label: "groups of ten".to_string(),
            groups: groups.clone(),
        };
        let levels = vec![level];
        SharingSpec::from(Hierarchy {
            levels,
            p,
            q,
            ..Hierarchy::default()
        })
    })
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let [samples, kernels, tasks, tolerance, threads, limit] =
        mtmkl_bench::arguments("passes SAMPLES KERNELS TASKS TOLERANCE THREADS TIME_LIMIT")?;
    let (n, m, tasks): (usize, usize, usize) = (samples.parse()?, kernels.parse()?, tasks.parse()?);
    let (tolerance, threads): (f64, usize) = (tolerance.parse()?, threads.parse()?);
    let limit = Duration::try_from_secs_f64(limit.parse()?)?;
    let mut views = mtmkl_bench::gaussians(m - m / 2, COLUMNS, false)?;
    views.extend(mtmkl_bench::gaussians(m / 2, COLUMNS, true)?);
    let problem = mtmkl_bench::problem(n, COLUMNS, tasks, views)?;
    let prepared = problem.prepare(&mtmkl_bench::on_threads(threads, 8 << 30)?)?;
    let run = || Run {
        tolerance,
        max_passes: 200,
        pool: Some(prepared.pool().clone()),
        stop: Stop::never().with_limit(limit),
        ..Run::default()
    };
    let mut fitting = Fitting {
        tolerance,
        max_passes: 200,
        time_limit: Some(limit),
        ..Fitting::default()
    };
    let machine = MachineSpec::svc(1.0);
    let all: Vec<usize> = (0..n).collect();
    let registry = mtmkl::Registry::default();
    let examples = registry.sharings().iter();
    let examples = examples.flat_map(|info| (info.examples)(problem.shape()));
    for sharing in examples.chain(trees(tasks)) {
        let solved = solve(&prepared, &problem, &sharing, &all, run())?;
        let (passes, gap, status, seconds) = if quarter(&all, m).is_some() {
            let model = prepared.with(&machine, &sharing)?.fit(&mut fitting)?;
            let outcome = model.outcome();
            (
                outcome.trace.len(),
                outcome.gap,
                outcome.status,
                outcome.seconds.solve,
            )
        } else {
            let solution = &solved.solution;
            (
                solution.trace.len(),
                solution.gap,
                solution.status,
                solved.seconds,
            )
        };
        println!(
            "{}",
            serde_json::json!({
                "sharing": sharing, "kernels": m, "tasks": tasks, "passes": passes, "gap": gap, "status": status.name(),
                "seconds": seconds, "outer": solved.outer,
            })
        );
    }
    Ok(())
}
