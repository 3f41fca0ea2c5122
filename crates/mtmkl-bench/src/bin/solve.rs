//! Solves one problem several times and prints what it took, as JSON.
//!
//! `solve JOB`: the job is JSON, its fields those of [`Job`]. Prints `seconds` (each solve, Gram matrices at hand), `kernels` (seconds for
//! the Gram matrices), `whole` (from arrays in memory to the model, where asked for), what the solver says about the answer, θ, the number
//! of `rows` of the Gram matrices that the answer needs, the `peak` of memory in bytes (Linux only), and for given matrices how fast this
//! machine reads them (`bandwidth`, bytes a second, one thread).
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use mtmkl::kernel::{parse_kernel, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Definiteness, Fitting, GivenGram, Model, Precision, Preparation, Problem, ProblemSpec, Samples,
    Storage, Targets, Task,
};

/// What to solve. Files hold little-endian f64.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// n.
    samples: usize,
    /// M matrices n × n,
    grams: Option<String>,
    /// or n rows of any number of columns,
    rows: Option<String>,
    /// with these kernels, normalised.
    #[serde(default)]
    kernels: Vec<String>,
    /// T × n labels ±1, or values for ridge regression.
    labels: String,
    sharing: SharingSpec,
    /// C of support vector classification,
    #[serde(default)]
    c: f64,
    /// or λ of kernel ridge regression.
    ridge: Option<f64>,
    tolerance: f64,
    threads: usize,
    repeats: usize,
    #[serde(default)]
    precision: Precision,
    /// Bytes that Gram matrices may take.
    memory_limit: Option<u64>,
    /// How kernels are kept: kept, mapped or streamed; by the limit where nothing is said.
    storage: Option<Storage>,
    /// Begin each repeat with the arrays.
    #[serde(default)]
    whole: bool,
}

fn floats(path: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes
        .chunks_exact(8)
        .map(|chunk| {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            f64::from_le_bytes(eight)
        })
        .collect())
}

/// From arrays in memory to a checked problem: what a caller of the library does, the copy of the matrices included.
fn problem(job: &Job, values: &[f64], labels: &[f64]) -> Result<Problem, Box<dyn Error>> {
    let n = job.samples;
    let (samples, kernels) = if job.grams.is_some() {
        let matrices = values.chunks_exact(n * n).enumerate();
        let given: Vec<GivenGram> = matrices
            .map(|(number, matrix)| GivenGram {
                name: number.to_string(),
                values: matrix.to_vec().into(),
            })
            .collect();
        let kernels = (0..given.len())
            .map(|number| parse_kernel(&format!("precomputed:name={number}")))
            .collect::<Result<_, _>>()?;
        (Samples::from_grams(n, given)?, kernels)
    } else {
        let samples = Samples::new(values.to_vec(), n, values.len() / n)?;
        let mut kernels = Vec::new();
        for spec in &job.kernels {
            kernels.extend(parse_kernels(spec)?);
        }
        (samples, kernels)
    };
    let tasks = labels
        .chunks_exact(n)
        .enumerate()
        .map(|(task, values)| {
            let targets = match job.ridge {
                Some(_) => Targets::Values(values.to_vec()),
                None => Targets::Labels(values.to_vec()),
            };
            Task::new(task.to_string(), targets)
        })
        .collect();
    let machine = match job.ridge {
        Some(lambda) => MachineSpec::krr(lambda),
        None => MachineSpec::svc(job.c),
    };
    let mut spec = ProblemSpec::new(kernels, machine, job.sharing.clone());
    if job.grams.is_some() {
        spec.normalize = false.into();
    }
    Ok(Problem::new(spec, vec![samples], tasks)?)
}

/// Bytes a second at which one thread adds up all values, the best of three.
fn bandwidth(values: &[f64]) -> f64 {
    let seconds = (0..3)
        .map(|_| {
            let started = Instant::now();
            // Several sums side by side, or the processor waits for its own additions.
            let mut sums = [0.0; 32];
            for chunk in black_box(values).chunks_exact(32) {
                for (sum, value) in sums.iter_mut().zip(chunk) {
                    *sum += value;
                }
            }
            black_box(sums);
            started.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    size_of_val(values) as f64 / seconds
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).ok_or("usage: solve JOB")?;
    let job: Job = serde_json::from_str(&text)?;
    let ((Some(file), None) | (None, Some(file))) = (&job.grams, &job.rows) else {
        return Err("a job has either `grams` or `rows`".into());
    };
    let (values, labels) = (floats(file)?, floats(&job.labels)?);
    let bandwidth = job.grams.as_ref().map(|_| bandwidth(&values));
    let mut fitting = Fitting {
        tolerance: job.tolerance,
        max_passes: 200,
        ..Fitting::default()
    };
    // With its threads: what is made for each repeat is within its time.
    let preparation = || -> mtmkl::Result<Preparation> {
        let limit = job.memory_limit.unwrap_or(u64::MAX);
        Ok(Preparation {
            precision: job.precision,
            storage: job.storage,
            definiteness: match job.grams {
                Some(_) => Definiteness::Assume,
                None => Definiteness::Check,
            },
            ..mtmkl_bench::on_threads(job.threads, limit)?
        })
    };
    let (mut kernels, mut seconds, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    let mut last: Option<Model> = None;
    if job.whole {
        for _ in 0..job.repeats {
            // What was made for the last repeat goes before the next, not within its time.
            drop(last.take());
            let started = Instant::now();
            let model = problem(&job, &values, &labels)?
                .prepare(&preparation()?)?
                .fit(&mut fitting)?;
            whole.push(started.elapsed().as_secs_f64());
            kernels.push(model.outcome().seconds.kernels);
            seconds.push(model.outcome().seconds.solve);
            last = Some(model);
        }
    } else {
        let problem = problem(&job, &values, &labels)?;
        drop(values);
        let prepared = problem.prepare(&preparation()?)?;
        kernels.push(prepared.seconds());
        for _ in 0..job.repeats {
            let started = Instant::now();
            let model = prepared.fit(&mut fitting)?;
            seconds.push(started.elapsed().as_secs_f64());
            last = Some(model);
        }
    }
    let model = last.ok_or("no repeats")?;
    let outcome = model.outcome();
    let inner: usize = outcome.trace.iter().map(|pass| pass.inner_iterations).sum();
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "kernels": kernels, "whole": whole, "status": outcome.status.name(), "objective": outcome.objective,
            "bound": outcome.bound, "gap": outcome.gap, "passes": outcome.trace.len(), "steps": inner,
            "theta": model.weights().iter_rows().collect::<Vec<_>>(),
            "support": model.tasks().iter().map(|task| task.support.len()).collect::<Vec<_>>(),
            "rows": model.support_sets().iter().map(|set| set.positions.len()).sum::<usize>(),
            "peak": mtmkl_bench::peak(), "bandwidth": bandwidth,
        })
    );
    Ok(())
}
