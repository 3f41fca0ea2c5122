//! Passes to a certified gap for every registered sharing, and the outer solver's own part of the time; one line of JSON for each fit.
//!
//! `passes SAMPLES KERNELS TASKS TOLERANCE THREADS`: support vector classification, all tasks on the same samples; task t is to tell the sign
//! of column t. Half of the kernels are Gaussians on all columns, half on one column each.
//!
//! `passes` are those on the full problem, `seconds` is the whole fit on prepared Gram matrices. `outer` is what the outer solver takes
//! itself, everything but evaluating J, also in the starts from fewer samples. The fit does not tell: it is found by making those starts
//! again, with an engine that is timed.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::time::Instant;

use mtmkl::engine::{Engine, Evaluation, LocalMaximum, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::{Parts, SharingSpec, registered_sharings};
use mtmkl::solver::{Newton, Solver};
use mtmkl::{Prepared, Problem, Result, Run};

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

    fn maxima(
        &mut self,
        theta: &Grid,
        request: &Request,
        starts: usize,
        seed: u64,
    ) -> Result<Vec<Vec<LocalMaximum>>> {
        self.time(|engine| engine.maxima(theta, request, starts, seed))
    }
}

/// The weights found on every fourth run of eight of these rows, and from there on all of them, as `Prepared::fit` does it; with the
/// seconds that the outer solver took itself.
fn outer(
    whole: &Prepared<'_>,
    problem: &Problem,
    sharing: &SharingSpec,
    rows: &[usize],
    (tolerance, max_passes): (f64, usize),
    threads: usize,
) -> Result<(Parts, f64)> {
    let shape = problem.shape();
    let quarter: Vec<usize> = rows.chunks_exact(8).step_by(4).flatten().copied().collect();
    let (start, before) = if quarter.len() >= shape.kernels.max(100) {
        let effort = (tolerance.max(3e-3), max_passes.min(20));
        let (parts, seconds) = outer(whole, problem, sharing, &quarter, effort, threads)?;
        (Some(parts), seconds)
    } else {
        (None, 0.0)
    };
    let mut run = Run {
        tolerance,
        max_passes,
        threads,
        ..Run::default()
    };
    let sets = problem.samples().to_vec();
    let mut marked = vec![false; sets[0].count()];
    for &row in rows {
        marked[row] = true;
    }
    let tasks = problem.tasks().iter().map(|task| task.restricted(&marked));
    let part = Problem::new(problem.spec().clone(), sets, tasks.collect())?;
    let kernels: Vec<usize> = (0..shape.kernels).collect();
    let prepared = part.prepare_from(whole, &kernels, &run)?;
    let mut engine = Timed {
        engine: prepared.engine(),
        seconds: 0.0,
    };
    let sharing = sharing.build(shape)?;
    let started = Instant::now();
    let solution = Newton.solve(&mut engine, &sharing, start.as_ref(), &mut run)?;
    let own = started.elapsed().as_secs_f64() - engine.seconds;
    Ok((solution.parts, before + own))
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [samples, kernels, tasks, tolerance, threads] = arguments.as_slice() else {
        return Err("usage: passes SAMPLES KERNELS TASKS TOLERANCE THREADS".into());
    };
    let (n, m, tasks): (usize, usize, usize) = (samples.parse()?, kernels.parse()?, tasks.parse()?);
    let (tolerance, threads): (f64, usize) = (tolerance.parse()?, threads.parse()?);
    let mut views = mtmkl_bench::gaussians(m - m / 2, COLUMNS, false)?;
    views.extend(mtmkl_bench::gaussians(m / 2, COLUMNS, true)?);
    let problem = mtmkl_bench::problem(n, COLUMNS, tasks, views)?;
    let run = || Run {
        tolerance,
        threads,
        max_passes: 200,
        ..Run::default()
    };
    let prepared = problem.prepare(&run())?;
    let machine = MachineSpec::svc(1.0);
    let all: Vec<usize> = (0..n).collect();
    for sharing in registered_sharings()
        .iter()
        .flat_map(|info| (info.examples)(problem.shape()))
    {
        let model = prepared.fit_with(&machine, &sharing, &mut run())?;
        let outcome = model.outcome();
        let (_, outer) = outer(
            &prepared,
            &problem,
            &sharing,
            &all,
            (tolerance, 200),
            threads,
        )?;
        println!(
            "{}",
            serde_json::json!({
                "sharing": sharing, "kernels": m, "tasks": tasks, "passes": outcome.trace.len(), "gap": outcome.gap,
                "status": outcome.status.name(), "seconds": outcome.seconds.solve, "outer": outer,
            })
        );
    }
    Ok(())
}
