//! Building Gram matrices: many Gaussians on the same columns, and one column per Gaussian.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mtmkl::kernel::{Kernel, parse_kernel};

/// M Gram matrices n × n; throughput in bytes of Gram written.
fn grams(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("grams");
    group.sample_size(10);
    for (n, d, m, single) in [
        (500, 256, 10, false),
        (1000, 50, 1, false),
        (1000, 50, 20, false),
        (208, 60, 2000, true),
    ] {
        let kernels = mtmkl_bench::gaussians(m, d, single).unwrap();
        let problem = mtmkl_bench::problem(n, d, 1, kernels).unwrap();
        group.throughput(Throughput::Bytes(8 * (n * n * m) as u64));
        let name = format!("n={n} d={} M={m}", if single { 1 } else { d });
        for threads in [1, 2] {
            let preparation = mtmkl_bench::on_threads(threads, u64::MAX).unwrap();
            group.bench_function(BenchmarkId::new(&name, threads), |bencher| {
                bencher.iter(|| black_box(problem.prepare(&preparation).unwrap()));
            });
        }
    }
    group.finish();
}

/// Base values to kernel values in the first cache, on one thread.
fn maps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("map");
    let base: Vec<f64> = (0..2048).map(|i| 0.01 * f64::from(i)).collect();
    group.throughput(Throughput::Elements(base.len() as u64));
    for spec in [
        "rbf",
        "laplacian",
        "matern32",
        "matern52",
        "poly",
        "sigmoid",
    ] {
        let kernel = parse_kernel(spec).unwrap().kernel;
        let mut values = base.clone();
        group.bench_function(spec, |bencher| {
            bencher.iter(|| {
                values.copy_from_slice(&base);
                Kernel::map(kernel.as_ref(), black_box(&mut values));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, grams, maps);
criterion_main!(benches);
