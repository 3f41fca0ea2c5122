//! The inner solver: one evaluation of J at a fixed θ from nothing, and what combining rows adds to it.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use mtmkl::engine::{Engine, Request};
use mtmkl::grid::Grid;
use mtmkl::kernel::{Gaussian, KernelView};
use mtmkl::{Problem, Stop};

const COLUMNS: usize = 20;

fn request(accuracy: f64) -> Request {
    Request {
        accuracy,
        curvature: false,
        stop: Stop::never(),
        rounds: mtmkl::Rounds::default(),
    }
}

/// SMO at θ = 1/M, from no support vectors to this gap.
fn evaluate(
    criterion: &mut Criterion,
    group: &str,
    problems: &[(BenchmarkId, Problem)],
    accuracy: f64,
) {
    let mut group = criterion.benchmark_group(group);
    group.sample_size(10);
    let preparation = mtmkl_bench::on_threads(1, u64::MAX).unwrap();
    for (name, problem) in problems {
        let prepared = problem.prepare(&preparation).unwrap();
        let shape = problem.shape();
        let theta = Grid::filled(shape.tasks, shape.kernels, 1.0 / shape.kernels as f64);
        group.bench_function(name.clone(), |bencher| {
            bencher.iter_batched(
                || prepared.engine(),
                |mut engine| black_box(engine.evaluate(&theta, &request(accuracy)).unwrap()),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// One kernel, so that rows are as they are.
fn smo(criterion: &mut Criterion) {
    let problems: Vec<_> = [(500, 1), (2000, 1), (500, 10)]
        .into_iter()
        .map(|(n, tasks)| {
            let kernels = mtmkl_bench::gaussians(1, COLUMNS, false).unwrap();
            let problem = mtmkl_bench::problem(n, COLUMNS, tasks, kernels).unwrap();
            (BenchmarkId::new(format!("n={n}"), tasks), problem)
        })
        .collect();
    for accuracy in [1e-3, 1e-6] {
        evaluate(
            criterion,
            &format!("smo to {accuracy:e}"),
            &problems,
            accuracy,
        );
    }
}

/// The same kernel M times over with weights 1/M: the steps of SMO are the same, and what M adds is combining rows and K_mβ.
fn rows(criterion: &mut Criterion) {
    let problems: Vec<_> = [1, 10, 50]
        .into_iter()
        .map(|m| {
            let kernels = (0..m)
                .map(|number| {
                    let gaussian = Gaussian::from_gamma(1.0 / COLUMNS as f64).unwrap();
                    KernelView::new(format!("copy {number}"), gaussian)
                })
                .collect();
            let problem = mtmkl_bench::problem(1000, COLUMNS, 1, kernels).unwrap();
            (BenchmarkId::new("copies", m), problem)
        })
        .collect();
    evaluate(criterion, "rows", &problems, 1e-4);
}

criterion_group!(benches, smo, rows);
criterion_main!(benches);
