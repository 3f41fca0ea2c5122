//! Builds the Gram matrices of M Gaussians several times and prints what it took, as JSON.
//!
//! `build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS`: `single` is one column per kernel. `peak` is the most memory that the
//! process held (Linux only), in bytes, `before` what it held before the first matrix; `grams` is the size of the matrices; `writing` is how
//! long the same threads take to fill as many bytes, `fresh` the same in memory that was never written.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use mtmkl_bench::peak;

/// Seconds that the threads take to write that many numbers, the first time, when the system must find and clear the memory, and the best of
/// three later: the least that the matrices can take.
fn writing(count: usize, threads: usize) -> (f64, f64) {
    let mut memory = vec![0.0_f64; count];
    let mut fill = |number: f64| {
        let started = Instant::now();
        std::thread::scope(|scope| {
            for part in memory.chunks_mut(count.div_ceil(threads)) {
                scope.spawn(move || part.fill(number));
            }
        });
        started.elapsed().as_secs_f64()
    };
    let first = fill(1.0);
    let later = [2.0, 3.0, 4.0].map(&mut fill);
    black_box(&memory);
    (first, later.into_iter().fold(f64::INFINITY, f64::min))
}

fn main() -> Result<(), Box<dyn Error>> {
    let [n, d, m, columns, threads, repeats] =
        mtmkl_bench::arguments("build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS")?;
    let (n, d, m): (usize, usize, usize) = (n.parse()?, d.parse()?, m.parse()?);
    let kernels = mtmkl_bench::gaussians(m, d, columns == "single")?;
    let problem = mtmkl_bench::problem(n, d, 1, kernels)?;
    let threads = threads.parse()?;
    let preparation = mtmkl_bench::on_threads(threads, u64::MAX)?;
    let before = mtmkl_bench::peak();
    let seconds = (0..repeats.parse::<usize>()?)
        .map(|_| Ok(problem.prepare(&preparation)?.seconds()))
        .collect::<Result<Vec<f64>, mtmkl::Error>>()?;
    // Before the limit is measured, which takes memory too.
    let peak = peak();
    let (fresh, again) = writing(n * n * m, threads.max(1));
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "grams": 8 * n * n * m, "peak": peak, "before": before, "fresh": fresh, "writing": again,
        })
    );
    Ok(())
}
