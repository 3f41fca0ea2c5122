//! A machine of one's own, added here without touching the crate: kernel logistic regression, whose dual is not quadratic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use mtmkl::engine::{Engine, Request};
use mtmkl::grid::Grid;
use mtmkl::machine::{Conjugate, Dual, Machine, MachineSpec, SmoothConjugate, Variables};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{
    Error, Fitting, Model, Precision, Preparation, Problem, ProblemSpec, Result, Rows, Samples,
    Status, Stop, Targets, Task,
};
use mtmkl_testkit::generate::{self, Random, dot, times};
use mtmkl_testkit::logistic::{entropy, least_primal, primal};

// ---- The machine.

/// min ½‖f‖² + C Σ_i ln(1 + exp(−y_i (f(x_i) + b))): class probabilities 1/(1 + exp(−f − b)).
///
/// Dual, β = y∘α: max −Σ_i φ(β_i) − ½ β'Kβ, 0 < α < C, Σβ = 0, φ = α ln(α/C) + (C − α) ln((C − α)/C).
#[derive(Debug)]
struct Logistic {
    c: f64,
}

impl Machine for Logistic {
    fn name(&self) -> &'static str {
        "logistic"
    }

    fn check(&self, task: &Task, _samples: usize) -> Result<()> {
        match &task.targets {
            Targets::Labels(labels) if labels.contains(&1.0) && labels.contains(&-1.0) => Ok(()),
            _ => Err(Error::Numeric {
                place: task.name.clone(),
                problem: "logistic regression needs both labels".to_string(),
            }),
        }
    }

    fn dual(&self, task: &Task, samples: usize) -> Dual {
        let Targets::Labels(labels) = &task.targets else {
            panic!("checked before");
        };
        Dual {
            scale: 1.0,
            variables: Variables::one_each(samples),
            linear: vec![0.0; samples],
            diagonal: 0.0,
            conjugate: Conjugate::Smooth {
                function: Arc::new(Entropy {
                    labels: labels.clone(),
                    c: self.c,
                }),
                sum: Some(0.0),
            },
        }
    }

    fn predict(&self, decision: f64) -> f64 {
        1.0 / (1.0 + (-decision).exp())
    }
}

#[derive(Debug)]
struct Entropy {
    labels: Vec<f64>,
    c: f64,
}

impl SmoothConjugate for Entropy {
    fn interval(&self, sample: usize) -> (f64, f64) {
        let end = self.labels[sample] * self.c;
        (end.min(0.0), end.max(0.0))
    }

    fn value(&self, sample: usize, beta: f64) -> f64 {
        let (alpha, c) = (self.labels[sample] * beta, self.c);
        alpha * (alpha / c).ln() + (c - alpha) * ((c - alpha) / c).ln()
    }

    fn slope(&self, sample: usize, beta: f64) -> f64 {
        let alpha = self.labels[sample] * beta;
        self.labels[sample] * (alpha / (self.c - alpha)).ln()
    }

    fn curvature(&self, sample: usize, beta: f64) -> f64 {
        let alpha = self.labels[sample] * beta;
        self.c / (alpha * (self.c - alpha))
    }

    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64) {
        let y = self.labels[sample];
        let t = y * slope;
        let loss = self.c * (t.max(0.0) + (-t.abs()).exp().ln_1p());
        (loss, y * self.c / (1.0 + (-t).exp()))
    }
}

// ---- Independent of the crate: Gram matrices.

/// The Gram matrices of each task, computed by other code.
fn grams(data: &common::Data) -> Vec<Vec<Vec<f64>>> {
    let tasks = data.conic(&MachineSpec::svc(1.0)).unwrap();
    tasks.into_iter().map(|task| task.grams).collect()
}

fn combined(grams: &[Vec<f64>], theta: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; grams[0].len()];
    for (gram, weight) in grams.iter().zip(theta) {
        for (sum, value) in sum.iter_mut().zip(gram) {
            *sum += weight * value;
        }
    }
    sum
}

// ---- Tests.

const C: f64 = 3.0;

/// Sharings with σ_Ψ(s) = max over Ψ of ⟨s, θ⟩ for s ≥ 0, by hand.
type Support = fn(&[Vec<f64>]) -> f64;

fn norm(values: &[f64]) -> f64 {
    dot(values, values).sqrt()
}

fn sum_over_tasks(s: &[Vec<f64>]) -> Vec<f64> {
    (0..s[0].len())
        .map(|m| s.iter().map(|row| row[m]).sum())
        .collect()
}

fn sharings() -> Vec<(SharingSpec, Support)> {
    vec![
        (SharingSpec::independent(2.0, 1.0), |s| {
            s.iter().map(|row| norm(row)).sum()
        }),
        (SharingSpec::common(2.0, 1.0), |s| norm(&sum_over_tasks(s))),
        (SharingSpec::simplex(), |s| {
            sum_over_tasks(s).into_iter().fold(0.0, f64::max)
        }),
        (SharingSpec::pscs(2.0, 1.5, 1.0), |s| {
            let cubes: f64 = s.iter().map(|row| norm(row).powi(3)).sum();
            norm(&sum_over_tasks(s)) + cubes.cbrt()
        }),
    ]
}

fn problem(data: &common::Data, sharing: SharingSpec, solver: SolverSpec) -> Problem {
    let machine = MachineSpec::own(Logistic { c: C });
    let mut spec = ProblemSpec::new(common::kernels(), machine, sharing);
    spec.solver = solver;
    let tasks = data.tasks(mtmkl::machine::TargetKind::Labels);
    Problem::new(spec, data.samples(), tasks).unwrap()
}

fn fit(problem: &Problem, tolerance: f64) -> Model {
    let mut fitting = Fitting {
        tolerance,
        max_passes: 20_000,
        ..Fitting::default()
    };
    problem.fit(&mut fitting).unwrap()
}

/// β of a task on all of its samples; every sample supports.
fn beta(model: &Model, task: usize) -> Vec<f64> {
    let known = &model.tasks()[task];
    let set = &model.support_sets()[known.set];
    let mut beta = vec![0.0; known.samples];
    for (&row, &value) in known.support.iter().zip(&known.beta) {
        beta[set.positions[row]] = value;
    }
    beta
}

/// β̂ of a task, which proves the bound.
fn witness(model: &Model, task: usize) -> Vec<f64> {
    let known = &model.tasks()[task];
    known.witness.as_ref().map_or_else(
        || beta(model, task),
        |witness| {
            let mut beta = vec![0.0; known.samples];
            for (&row, &value) in witness.rows.iter().zip(&witness.beta) {
                beta[row] = value;
            }
            beta
        },
    )
}

#[test]
fn the_optimum_is_certified_from_the_primal_side() {
    for tasks in [1, 3] {
        let data = common::Data::new(tasks, 5);
        let grams = grams(&data);
        for (sharing, support) in sharings() {
            let mut objectives = Vec::new();
            for solver in [SolverSpec::Newton, SolverSpec::Epf(Epf::default())] {
                let problem = problem(&data, sharing.clone(), solver);
                let tolerance = 1e-6;
                let model = fit(&problem, tolerance);
                assert_eq!(model.outcome().status, Status::Converged, "{sharing:?}");
                // J(θ) = Σ_t min of the primal at θᵗ, and the model's own machines are that good.
                let (mut least, mut own) = (0.0, 0.0);
                let (mut constant, mut s) = (0.0, Vec::new());
                for task in 0..tasks {
                    let y = &data.labels[task];
                    let prices = vec![C; y.len()];
                    let kernel = combined(&grams[task], model.weights().row(task));
                    least += least_primal(&kernel, y, &prices);
                    let machine = &model.tasks()[task];
                    own += primal(&kernel, y, &prices, &beta(&model, task), machine.offset);
                    let beta = witness(&model, task);
                    assert!(beta.iter().sum::<f64>().abs() < 1e-9);
                    constant += entropy(y, &prices, &beta);
                    s.push(
                        (grams[task].iter())
                            .map(|gram| 0.5 * dot(&beta, &times(gram, &beta)))
                            .collect(),
                    );
                }
                let bound = constant - support(&s);
                let outcome = model.outcome();
                let gap = (own - bound) / own;
                assert!(gap <= 1.01 * tolerance, "{sharing:?}: {gap}");
                assert!(least <= own * (1.0 + 1e-12) && own <= outcome.objective * (1.0 + 1e-9));
                assert!(least >= bound * (1.0 - 1e-12));
                objectives.push(outcome.objective);
            }
            let difference = (objectives[0] - objectives[1]).abs();
            assert!(difference <= 1e-6 * objectives[0], "{sharing:?}");
        }
    }
}

#[test]
fn at_fixed_weights_it_is_plain_logistic_regression() {
    let data = common::Data::new(2, 9);
    let grams = grams(&data);
    let problem = problem(&data, SharingSpec::uniform(), SolverSpec::Newton);
    let model = fit(&problem, 1e-9);
    let mut wanted = 0.0;
    for task in 0..2 {
        let kernel = combined(&grams[task], &[0.25; 4]);
        let prices = vec![C; data.labels[task].len()];
        wanted += least_primal(&kernel, &data.labels[task], &prices);
    }
    let found = model.outcome().objective;
    assert!((found - wanted).abs() <= 1e-8 * wanted, "{found} {wanted}");
    // Probabilities, from the model as from any other.
    let points = &data.points[0];
    let rows = Rows::new(points, points.len() / common::DIMENSION, common::DIMENSION).unwrap();
    let kernel = combined(&grams[0], &[0.25; 4]);
    let f = times(&kernel, &beta(&model, 0));
    let offset = model.tasks()[0].offset;
    for (p, f) in model.predict("task 0", rows).unwrap().iter().zip(f) {
        assert!((p - 1.0 / (1.0 + (-f - offset).exp())).abs() < 1e-9);
    }
}

#[test]
fn curvature_is_the_second_derivative() {
    let data = common::Data::new(2, 11);
    let problem = problem(&data, SharingSpec::uniform(), SolverSpec::Newton);
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let request = Request {
        accuracy: 1e-13,
        curvature: true,
        stop: Stop::never(),
        rounds: mtmkl::Rounds::default(),
    };
    let theta = Grid::filled(2, 4, 0.3);
    let at = |theta: &Grid| prepared.engine().evaluate(theta, &request).unwrap();
    let here = at(&theta);
    let step = 1e-5;
    for (task, curvature) in here.curvature.unwrap().iter().enumerate() {
        for m in 0..4 {
            let moved = |change: f64| {
                let mut moved = theta.clone();
                moved.row_mut(task)[m] += change;
                at(&moved)
            };
            let (above, below) = (moved(step), moved(-step));
            for k in 0..4 {
                let change = below.sensitivities.row(task)[k] - above.sensitivities.row(task)[k];
                let wanted = change / (2.0 * step);
                let column = |m: usize| curvature.factor.iter().skip(m).step_by(4);
                let found: f64 = column(m).zip(column(k)).map(|(a, b)| a * b).sum();
                let difference = (found - wanted).abs();
                // The matrix may be that of the last step but one: a gap of 1e-11 there is 3e-6 of β.
                assert!(
                    difference <= 1e-5 * (1.0 + wanted.abs()),
                    "{found} {wanted}"
                );
            }
        }
    }
}

/// Enough samples for a start from a quarter of them; kernels also kept in single precision.
#[test]
fn more_samples_start_from_fewer() {
    let (n, d) = (600, 4);
    let mut random = Random::new(3);
    let x = generate::points(&mut random, n, d);
    let labels = generate::labels(&mut random, &x, n, d);
    let samples = Samples::new(x, n, d).unwrap();
    let mut objectives = Vec::new();
    for precision in [Precision::Double, Precision::Single] {
        let spec = ProblemSpec::new(
            common::kernels(),
            MachineSpec::own(Logistic { c: 1.0 }),
            SharingSpec::lp(2.0, 1.0),
        );
        let tasks = vec![Task::new("one", Targets::Labels(labels.clone()))];
        let problem = Problem::new(spec, vec![samples.clone()], tasks).unwrap();
        let preparation = Preparation {
            precision,
            ..Preparation::default()
        };
        let mut fitting = Fitting {
            tolerance: 1e-5,
            ..Fitting::default()
        };
        let prepared = problem.prepare(&preparation).unwrap();
        let model = prepared.fit(&mut fitting).unwrap();
        assert_eq!(model.outcome().status, Status::Converged);
        objectives.push(model.outcome().objective);
    }
    let difference = (objectives[0] - objectives[1]).abs();
    assert!(difference <= 2e-5 * objectives[0]);
}

#[test]
fn it_has_no_name_in_files() {
    let data = common::Data::new(1, 9);
    let model = fit(
        &problem(&data, SharingSpec::simplex(), SolverSpec::Newton),
        1e-3,
    );
    let error = model.to_bytes().unwrap_err();
    assert!(matches!(
        error,
        Error::Param {
            name: "machine",
            ..
        }
    ));
    assert!(error.to_string().contains("logistic"), "{error}");
    // Equal to itself alone.
    assert_eq!(model.machine(), model.machine());
    assert_ne!(*model.machine(), MachineSpec::own(Logistic { c: C }));
    assert!(serde_json::to_string(model.machine()).is_err());
}

/// A machine whose dual does not fit its task.
#[derive(Debug)]
struct Mistaken(fn(usize) -> Dual);

impl Machine for Mistaken {
    fn name(&self) -> &'static str {
        "mistaken"
    }

    fn check(&self, _task: &Task, _samples: usize) -> Result<()> {
        Ok(())
    }

    fn dual(&self, _task: &Task, samples: usize) -> Dual {
        self.0(samples)
    }

    fn predict(&self, decision: f64) -> f64 {
        decision
    }
}

#[test]
fn mistaken_duals_are_refused() {
    fn plain(n: usize) -> Dual {
        Dual {
            scale: 1.0,
            variables: Variables::one_each(n),
            linear: vec![1.0; n],
            diagonal: 0.0,
            conjugate: Conjugate::Ridge {
                ridge: vec![1.0; n],
            },
        }
    }
    let mistakes: [fn(usize) -> Dual; 6] = [
        |n| plain(n + 1),
        |n| Dual {
            linear: vec![1.0],
            ..plain(n)
        },
        |n| Dual {
            scale: f64::NAN,
            ..plain(n)
        },
        |n| Dual {
            conjugate: Conjugate::Ridge {
                ridge: vec![0.0; n],
            },
            ..plain(n)
        },
        |n| Dual {
            conjugate: Conjugate::Box {
                lower: vec![0.0; n],
                upper: vec![1.0; n],
                sum: -1.0,
            },
            ..plain(n)
        },
        |n| Dual {
            conjugate: Conjugate::Smooth {
                function: Arc::new(Entropy {
                    labels: vec![1.0; n],
                    c: 1.0,
                }),
                sum: Some(0.0),
            },
            ..plain(n)
        },
    ];
    let data = common::Data::new(1, 9);
    let with = |dual: fn(usize) -> Dual| {
        let machine = MachineSpec::own(Mistaken(dual));
        let spec = ProblemSpec::new(common::kernels(), machine, SharingSpec::simplex());
        let tasks = data.tasks(mtmkl::machine::TargetKind::Labels);
        Problem::new(spec, data.samples(), tasks)
    };
    for mistake in mistakes {
        let error = with(mistake).unwrap_err();
        assert!(matches!(
            error,
            Error::Param {
                name: "machine",
                ..
            }
        ));
    }
    // Without a mistake, a ridge of one's own is solved.
    assert_eq!(
        fit(&with(plain).unwrap(), 1e-6).outcome().status,
        Status::Converged
    );
}
