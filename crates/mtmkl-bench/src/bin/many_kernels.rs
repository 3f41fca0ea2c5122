//! Learns weights of one Gaussian per column and width, of which there may be more than fit into memory, and prints what it took, as JSON.
//!
//! `many_kernels SAMPLES COLUMNS WIDTHS P TOLERANCE THREADS MEMORY_LIMIT`: COLUMNS · WIDTHS kernels, weights in the L_p ball, an SVC with
//! C = 1; MEMORY_LIMIT is in GiB. `peak` is the most memory that the process held (Linux only), in bytes.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::time::Instant;

use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{Fitting, Problem, ProblemSpec};

fn main() -> Result<(), Box<dyn Error>> {
    let [n, d, widths, p, tolerance, threads, limit] = mtmkl_bench::arguments(
        "many_kernels SAMPLES COLUMNS WIDTHS P TOLERANCE THREADS MEMORY_LIMIT",
    )?;
    let (n, d, widths): (usize, usize, usize) = (n.parse()?, d.parse()?, widths.parse()?);
    let (samples, task) = mtmkl_bench::noisy(n, d)?;
    let kernels = mtmkl_bench::widths(d, widths)?;
    let sharing = SharingSpec::lp(p.parse()?, 1.0);
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), sharing);
    let started = Instant::now();
    let problem = Problem::new(spec, vec![samples], vec![task])?;
    let bytes: f64 = limit.parse::<f64>()? * f64::from(1 << 30);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes; a float's range saturates"
    )]
    let preparation = mtmkl_bench::on_threads(threads.parse()?, bytes as u64)?;
    let prepared = problem.prepare(&preparation)?;
    let model = prepared.fit(&mut Fitting {
        tolerance: tolerance.parse()?,
        ..Fitting::default()
    })?;
    let whole = started.elapsed().as_secs_f64();
    let outcome = model.outcome();
    let weights = model.weights().values();
    println!(
        "{}",
        serde_json::json!({
            "kernels": d * widths,
            "storage": format!("{:?}", prepared.storage()),
            "seconds": { "whole": whole, "kernels": outcome.seconds.kernels, "solve": outcome.seconds.solve },
            "status": outcome.status.name(),
            "objective": outcome.objective,
            "bound": outcome.bound,
            "gap": outcome.gap,
            "passes": outcome.trace.len(),
            "weights": weights.iter().filter(|weight| **weight > 0.0).count(),
            "support": model.tasks().iter().map(|task| task.support.len()).sum::<usize>(),
            "peak": mtmkl_bench::peak(),
        })
    );
    Ok(())
}
