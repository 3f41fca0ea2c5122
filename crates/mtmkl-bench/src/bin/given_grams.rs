//! Solves one problem with given Gram matrices several times and prints what it took, as JSON: `seconds` for the solver alone, `whole` from
//! arrays in memory to the model.
//!
//! `given_grams GRAMS LABELS SAMPLES KERNELS SHARING C TOLERANCE THREADS REPEATS`: GRAMS holds M matrices n × n and LABELS T × n labels ±1,
//! both little-endian f64; SHARING is JSON, e.g. `{"name":"lp","p":2}`.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::time::Instant;

use mtmkl::kernel::parse_kernel;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Definiteness, GivenGram, Problem, ProblemSpec, Run, Samples, Targets, Task};

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

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [grams, labels, n, m, sharing, c, tolerance, threads, repeats] = arguments.as_slice()
    else {
        return Err(
            "usage: given_grams GRAMS LABELS SAMPLES KERNELS SHARING C TOLERANCE THREADS REPEATS"
                .into(),
        );
    };
    let (n, m): (usize, usize) = (n.parse()?, m.parse()?);
    let (values, labels) = (floats(grams)?, floats(labels)?);
    let sharing: SharingSpec = serde_json::from_str(sharing)?;
    let c: f64 = c.parse()?;
    // From arrays in memory to a checked problem: what a caller of the library does, the copy of the matrices included.
    let problem = || -> Result<Problem, Box<dyn Error>> {
        let given = values
            .chunks_exact(n * n)
            .enumerate()
            .map(|(number, matrix)| GivenGram {
                name: number.to_string(),
                values: matrix.into(),
            })
            .collect();
        let samples = Samples::from_grams(n, given)?;
        let kernels = (0..m)
            .map(|number| parse_kernel(&format!("precomputed:name={number}")))
            .collect::<Result<_, _>>()?;
        let tasks = labels
            .chunks_exact(n)
            .enumerate()
            .map(|(task, labels)| Task::new(task.to_string(), Targets::Labels(labels.to_vec())))
            .collect();
        let mut spec = ProblemSpec::new(kernels, MachineSpec::svc(c), sharing.clone());
        spec.definiteness = Definiteness::Assume;
        spec.normalize = false;
        Ok(Problem::new(spec, vec![samples], tasks)?)
    };
    let run = || -> Result<Run<'_>, Box<dyn Error>> {
        let (tolerance, threads) = (tolerance.parse()?, threads.parse()?);
        Ok(Run {
            tolerance,
            threads,
            memory_limit: u64::MAX,
            max_passes: 200,
            ..Run::default()
        })
    };
    let repeats: usize = repeats.parse()?;
    let mut whole = Vec::new();
    for _ in 0..repeats {
        let started = Instant::now();
        problem()?.fit(&mut run()?)?;
        whole.push(started.elapsed().as_secs_f64());
    }
    let problem = problem()?;
    let prepared = problem.prepare(&run()?)?;
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..repeats {
        let started = Instant::now();
        let model = prepared.fit(&mut run()?)?;
        seconds.push(started.elapsed().as_secs_f64());
        last = Some(model);
    }
    let model = last.ok_or("no repeats")?;
    let outcome = model.outcome();
    let inner: usize = outcome.trace.iter().map(|pass| pass.inner_iterations).sum();
    let used = model
        .weights()
        .values()
        .iter()
        .filter(|weight| **weight > 0.0)
        .count();
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "whole": whole, "status": outcome.status.name(), "objective": outcome.objective, "bound": outcome.bound,
            "gap": outcome.gap, "passes": outcome.trace.len(), "steps": inner, "weights": used,
            "support": model.tasks().iter().map(|task| task.support.len()).collect::<Vec<_>>(),
        })
    );
    Ok(())
}
