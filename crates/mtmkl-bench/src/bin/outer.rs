//! What the outer solver takes itself in a fit of many tasks with samples of their own, beside evaluating J: one line of JSON.
//!
//! `outer TASKS SAMPLES KERNELS SHARING TOLERANCE`: support vector classification of 20 columns by ten kernels (linear, polynomial, Gaussians) or
//! so many Gaussians, made on demand; everything on one thread, as one worker and one client have. `own` is all that is not evaluating, in
//! the starts from fewer samples, too, in seconds by pass; `passes` counts all of them.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::time::Instant;

use mtmkl::engine::{Engine, Evaluation, Fitted, Mixture, Request, Solve};
use mtmkl::grid::{Grid, Shape};
use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::SolverSpec;
use mtmkl::{
    Fitting, Normalization, OuterProblem, Pool, Problem, ProblemSpec, Result, Samples, Storage,
    Targets, Task,
};

const COLUMNS: usize = 20;

/// An engine, and the seconds of each evaluation.
struct Timed<'a> {
    engine: &'a mut dyn Engine,
    seconds: &'a mut Vec<f64>,
}

impl Engine for Timed<'_> {
    fn shape(&self) -> Shape {
        self.engine.shape()
    }

    fn is_concave(&self) -> bool {
        self.engine.is_concave()
    }

    fn is_curvature_costly(&self) -> bool {
        self.engine.is_curvature_costly()
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        let started = Instant::now();
        let found = self.engine.evaluate(theta, request);
        self.seconds.push(started.elapsed().as_secs_f64());
        found
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

    fn coarser(&mut self, solve: &mut Solve<'_>) -> Result<bool> {
        let seconds = &mut *self.seconds;
        self.engine.coarser(&mut |engine| {
            let mut timed = Timed {
                engine,
                seconds: &mut *seconds,
            };
            solve(&mut timed)
        })
    }
}

/// Ten kernels of three kinds, or so many Gaussians.
fn kernels(count: usize) -> Result<Vec<KernelView>> {
    if count == 10 {
        let texts = ["linear", "poly:degree=2", "rbf:sigma=1|2|4|8|16|32|64|128"];
        let views = texts.into_iter().map(parse_kernels);
        return Ok(views.collect::<Result<Vec<_>>>()?.concat());
    }
    let last = (count - 1).max(1) as f64;
    let widths = (0..count).map(|number| 0.5 * 200.0_f64.powf(number as f64 / last));
    let widths: Vec<String> = widths.map(|width| width.to_string()).collect();
    parse_kernels(&format!("rbf:sigma={}", widths.join("|")))
}

/// Two classes by a product of two columns and by a third one, another in every second task.
fn problem(tasks: usize, samples: usize, many: usize, sharing: SharingSpec) -> Result<Problem> {
    let mut sets = Vec::with_capacity(tasks);
    let mut learned = Vec::with_capacity(tasks);
    for task in 0..tasks {
        let values = mtmkl_bench::table(samples, COLUMNS, 2 * task as u64);
        let noise = mtmkl_bench::table(samples, 1, 2 * task as u64 + 1);
        let rows = values.chunks_exact(COLUMNS).zip(noise);
        let labels = rows.map(|(row, noise)| {
            let signal = row[0] * row[1] + row[2 + task % 2] + 0.3 * noise;
            if signal > 0.0 { 1.0 } else { -1.0 }
        });
        let labels = Targets::Labels(labels.collect());
        learned.push(Task::new(format!("{task}"), labels).on(task));
        sets.push(Samples::new(values, samples, COLUMNS)?);
    }
    let mut spec = ProblemSpec::new(kernels(many)?, MachineSpec::svc(1.0), sharing);
    spec.normalize = Normalization::Variance;
    Problem::new(spec, sets, learned)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let [tasks, samples, many, sharing, tolerance] =
        mtmkl_bench::arguments("outer TASKS SAMPLES KERNELS SHARING TOLERANCE")?;
    let sharing = match sharing.as_str() {
        "pscs" => SharingSpec::pscs(2.0, 1.0, 1.0),
        "group" => SharingSpec::group(2.0, 1.0, 1.0),
        "common" => SharingSpec::common(2.0, 1.0),
        other => {
            return Err(format!("sharing is '{other}', expected pscs, group or common").into());
        }
    };
    let problem = problem(
        tasks.parse()?,
        samples.parse()?,
        many.parse()?,
        sharing.clone(),
    )?;
    let mut preparation = mtmkl_bench::on_threads(1, 16 << 30)?;
    preparation.storage = Some(Storage::Mapped);
    let prepared = problem.prepare(&preparation)?;
    let machine = MachineSpec::svc(1.0);
    let outer = OuterProblem::new(&machine, sharing, SolverSpec::Newton, problem.shape())?;
    let mut fitting = Fitting {
        tolerance: tolerance.parse()?,
        ..Fitting::default()
    };
    let mut seconds = Vec::new();
    let mut engine = prepared.engine();
    let mut timed = Timed {
        engine: &mut engine,
        seconds: &mut seconds,
    };
    let started = Instant::now();
    let solution = outer.solve(&mut timed, None, &mut fitting, Some(Pool::new(1)?))?;
    let whole = started.elapsed().as_secs_f64();
    let evaluating: f64 = seconds.iter().sum();
    let passes = seconds.len() as f64;
    println!(
        "{}",
        serde_json::json!({
            "passes": seconds.len(), "full": solution.trace.len(), "gap": solution.gap, "objective": solution.objective,
            "own": (whole - evaluating) / passes, "evaluating": evaluating / passes,
            "share": (whole - evaluating) / whole, "evaluations": seconds,
        })
    );
    Ok(())
}
