//! The outer solver's own work: the oracle of every sharing, and one step of the second-order model.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use mtmkl::engine::{Curvature, Engine, Evaluation, Fitted, Mixture, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Newton, Solver};
use mtmkl::{Result, Run};

const SHAPE: Shape = Shape {
    tasks: 10,
    kernels: 50,
};

/// argmax ⟨s, θ⟩ over Ψ, for the first example of each sharing that goes with several tasks.
fn oracle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("oracle T=10 M=50");
    let values = mtmkl_bench::table(SHAPE.tasks, SHAPE.kernels, 3);
    let s = Grid::new(SHAPE.tasks, SHAPE.kernels, values).unwrap();
    for info in mtmkl::Registry::default().sharings() {
        for (number, spec) in (info.examples)(SHAPE).into_iter().enumerate() {
            let sharing = spec.build(SHAPE).unwrap();
            group.bench_function(BenchmarkId::new(info.part.name, number), |bencher| {
                bencher.iter(|| black_box(sharing.maximise(black_box(&s))));
            });
        }
    }
    group.finish();
}

/// J(θ) = Σ_t ½ ‖F_t θᵗ − 1‖²: convex, its curvature exact, evaluated in no time.
struct Quadratic {
    shape: Shape,
    rank: usize,
    factors: Vec<Vec<f64>>,
}

impl Quadratic {
    fn new(shape: Shape) -> Self {
        // As the engine's: no more rows than kernels.
        let rank = shape.kernels;
        let factors = (0..shape.tasks)
            .map(|task| mtmkl_bench::table(rank, shape.kernels, 10 + task as u64))
            .collect();
        Self {
            shape,
            rank,
            factors,
        }
    }
}

impl Engine for Quadratic {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn is_concave(&self) -> bool {
        true
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        let Shape { tasks, kernels } = self.shape;
        let mut values = Vec::with_capacity(tasks);
        let mut sensitivities = Grid::zeros(tasks, kernels);
        for (task, factor) in self.factors.iter().enumerate() {
            let mut value = 0.0;
            for row in factor.chunks_exact(kernels) {
                let product: f64 = row.iter().zip(theta.row(task)).map(|(a, b)| a * b).sum();
                let residual = product - 1.0;
                value += 0.5 * residual * residual;
                for (s, entry) in sensitivities.row_mut(task).iter_mut().zip(row) {
                    *s -= residual * entry;
                }
            }
            values.push(value);
        }
        let curvature = self.factors.iter().map(|factor| Curvature {
            rank: self.rank,
            factor: factor.clone(),
            span: None,
        });
        Ok(Evaluation {
            number: 0,
            values,
            gaps: vec![0.0; tasks],
            sensitivities,
            curvature: request.curvature.then(|| curvature.collect()),
            scales: vec![false; tasks],
            inner_iterations: 0,
            noises: vec![0.0; tasks],
            forgiven: vec![0.0; tasks],
        })
    }

    fn machines(&mut self, _: &[usize]) -> Result<Vec<Fitted>> {
        Ok(Vec::new())
    }

    fn mixtures(&mut self, _: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        Ok(Vec::new())
    }
}

/// Two passes of `Newton` on a quadratic J: one minimisation of the model over Ψ between them.
fn model(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("model");
    group.sample_size(10);
    let shapes = [(1, 10), (1, 200), (10, 10), (10, 50)];
    for (tasks, kernels) in shapes {
        let shape = Shape { tasks, kernels };
        let sharings = [
            SharingSpec::common(1.0, 1.0),
            SharingSpec::common(2.0, 1.0),
            SharingSpec::group(1.5, 1.5, 1.0),
            SharingSpec::pscs(2.0, 1.0, 1.0),
            SharingSpec::tang(0.4 * tasks as f64),
        ];
        for (number, spec) in sharings.into_iter().enumerate() {
            let sharing = spec.build(shape).unwrap();
            let name = format!("{} {number}", spec.name());
            group.bench_function(
                BenchmarkId::new(name, format!("T={tasks} M={kernels}")),
                |bencher| {
                    bencher.iter_batched(
                        || Quadratic::new(shape),
                        |mut engine| {
                            let mut run = Run {
                                tolerance: 1e-6,
                                max_passes: 2,
                                ..Run::default()
                            };
                            let solution = Newton.solve(&mut engine, &sharing, None, &mut run);
                            black_box(solution.unwrap())
                        },
                        BatchSize::SmallInput,
                    );
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, oracle, model);
criterion_main!(benches);
