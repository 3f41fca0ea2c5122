//! Builds the Gram matrices of M Gaussians several times and prints what it took, as JSON.
//!
//! `build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS`: `single` is one column per kernel. `peak` is the most memory that the
//! process held (Linux only), in bytes; `grams` is the size of the matrices.
#![allow(clippy::print_stdout, reason = "a program for benchmarks")]

use std::error::Error;

use mtmkl::Run;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [n, d, m, columns, threads, repeats] = arguments.as_slice() else {
        return Err("usage: build_grams SAMPLES COLUMNS KERNELS all|single THREADS REPEATS".into());
    };
    let (n, d, m): (usize, usize, usize) = (n.parse()?, d.parse()?, m.parse()?);
    let kernels = mtmkl_bench::gaussians(m, d, columns == "single")?;
    let problem = mtmkl_bench::problem(n, d, 1, kernels)?;
    let run = Run {
        threads: threads.parse()?,
        memory_limit: u64::MAX,
        ..Run::default()
    };
    let before = mtmkl_bench::peak();
    let seconds = (0..repeats.parse::<usize>()?)
        .map(|_| Ok(problem.prepare(&run)?.seconds()))
        .collect::<Result<Vec<f64>, mtmkl::Error>>()?;
    println!(
        "{}",
        serde_json::json!({ "seconds": seconds, "grams": 8 * n * n * m, "peak": mtmkl_bench::peak(), "before": before })
    );
    Ok(())
}
