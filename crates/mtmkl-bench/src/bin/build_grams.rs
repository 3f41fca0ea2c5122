//! Builds the Gram matrices of M Gaussians several times and prints what it took, as JSON.
//!
//! `build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS`: `single` is one column per kernel. `peak` is the most memory that the
//! process held (Linux only), in bytes, `before` what it held before the first matrix; `grams` is the size of the matrices; `writing` is how
//! many bytes a second the same threads can write.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use mtmkl::Run;
use mtmkl_bench::peak;

/// Bytes a second at which the threads write that many numbers, in memory written before: the least that the matrices can take.
fn writing(count: usize, threads: usize) -> f64 {
    let mut memory = vec![0.0_f64; count];
    let mut best = f64::INFINITY;
    // The first time, the system clears the pages: that is not in the limit.
    for round in 0..4 {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for part in memory.chunks_mut(count.div_ceil(threads)) {
                scope.spawn(move || part.fill(f64::from(round)));
            }
        });
        if round > 0 {
            best = best.min(started.elapsed().as_secs_f64());
        }
    }
    black_box(&memory);
    (8 * count) as f64 / best
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, d, m, columns, threads, repeats] = arguments.as_slice() else {
        return Err("usage: build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS".into());
    };
    let (n, d, m): (usize, usize, usize) = (n.parse()?, d.parse()?, m.parse()?);
    let kernels = mtmkl_bench::gaussians(m, d, columns == "single")?;
    let problem = mtmkl_bench::problem(n, d, 1, kernels)?;
    let threads = threads.parse()?;
    let run = Run {
        threads,
        memory_limit: u64::MAX,
        ..Run::default()
    };
    let before = peak();
    let seconds = (0..repeats.parse::<usize>()?)
        .map(|_| Ok(problem.prepare(&run)?.seconds()))
        .collect::<Result<Vec<f64>, mtmkl::Error>>()?;
    // Before the limit is measured, which takes memory too.
    let peak = peak();
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "grams": 8 * n * n * m, "peak": peak, "before": before, "writing": writing(n * n * m, threads.max(1)),
        })
    );
    Ok(())
}
