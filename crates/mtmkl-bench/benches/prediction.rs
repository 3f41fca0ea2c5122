//! Decision values of new rows: one task, and ten tasks that share distances and kernels.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use mtmkl::{Fitting, Pool, Rows};

/// Throughput in new rows.
fn prediction(criterion: &mut Criterion) {
    const COLUMNS: usize = 50;
    const NEW: usize = 2000;
    let mut group = criterion.benchmark_group("prediction");
    group.sample_size(10);
    group.throughput(Throughput::Elements(NEW as u64));
    let new = mtmkl_bench::table(NEW, COLUMNS, 2);
    let rows = Rows::new(&new, NEW, COLUMNS).unwrap();
    for (n, m, tasks) in [(1000, 1, 1), (1000, 10, 1), (1000, 10, 10)] {
        let kernels = mtmkl_bench::gaussians(m, COLUMNS, false).unwrap();
        let problem = mtmkl_bench::problem(n, COLUMNS, tasks, kernels).unwrap();
        let model = problem.fit(&mut Fitting::default()).unwrap();
        let name = format!("n={n} M={m} T={tasks}");
        for threads in [1, 2] {
            let pool = Pool::new(threads).unwrap();
            group.bench_function(BenchmarkId::new(&name, threads), |bencher| {
                bencher.iter(|| pool.install(|| black_box(model.decisions(rows).unwrap())));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, prediction);
criterion_main!(benches);
