use super::*;
use crate::data::{Samples, Targets, Task};
use crate::gram::TaskGrams;
use crate::kernel::{KernelView, parse_kernels};
use crate::machine::MachineSpec;
use crate::model::Model;
use crate::pool::Pool;
use crate::problem::{Fitting, Precision, Preparation, Prepared, ProblemSpec};
use crate::random::Random;
use crate::sharing::SharingSpec;
use crate::view::View;

fn all_machines() -> [MachineSpec; 6] {
    [
        MachineSpec::weighted_svc(2.0, 1.5, 0.5),
        MachineSpec::weighted_logistic(2.0, 1.5, 0.5),
        MachineSpec::svr(1.0, 0.1),
        MachineSpec::krr(0.5),
        MachineSpec::svdd(0.2),
        MachineSpec::one_class(0.3),
    ]
}

fn kernels() -> Vec<KernelView> {
    [
        "rbf:gamma=0.3|3",
        "linear",
        "poly:degree=2",
        "laplacian",
        "matern32:length=0.7",
        "cosine@f1..f3",
        "chi2@#0,#2",
        "intersection",
    ]
    .iter()
    .flat_map(|spec| parse_kernels(spec).unwrap())
    .collect()
}

/// Two sets of rows ≥ 0 away from the origin. Two tasks on all of the first, two on the same part of it, one on another part in another
/// order, one on all of the second; some with weights.
fn problem(machine: &MachineSpec, columns: usize, normalize: bool) -> Problem {
    let mut random = Random::new(columns as u64);
    let counts = [150, 40];
    let sets: Vec<Samples> = counts
        .iter()
        .map(|&n| {
            let values = (0..n * columns).map(|_| 1.0 + random.uniform()).collect();
            Samples::new(values, n, columns).unwrap()
        })
        .collect();
    let part: Vec<usize> = (0..counts[0]).filter(|i| i % 3 != 1).collect();
    let other: Vec<usize> = (20..90).rev().collect();
    let views = [
        (0, View::All),
        (0, View::All),
        (0, View::of(part.clone())),
        (0, View::of(part)),
        (0, View::of(other)),
        (1, View::All),
    ];
    let mut tasks = Vec::new();
    for (number, (set, rows)) in views.into_iter().enumerate() {
        let n = rows.count(counts[set]);
        let mut numbers: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
        let targets = match machine.name() {
            "svc" | "logistic" => {
                for value in &mut numbers {
                    *value = value.signum();
                }
                Targets::Labels(numbers)
            }
            "svr" | "krr" => Targets::Values(numbers),
            _ => Targets::Unlabelled,
        };
        let mut task = Task::new(format!("task {number}"), targets).on(set);
        task.rows = rows;
        if number % 2 == 1 {
            task.weights = Some((0..n).map(|_| 0.5 + random.uniform()).collect());
        }
        tasks.push(task);
    }
    let sharing = if machine.name() == "svdd" {
        SharingSpec::tang(2.0)
    } else {
        SharingSpec::pscs(2.0, 1.5, 1.0)
    };
    let mut spec = ProblemSpec::new(kernels(), machine.clone(), sharing);
    spec.normalize = normalize.into();
    Problem::new(spec, sets, tasks).unwrap()
}

/// The machines of a model with β for all samples of their tasks.
fn machines(problem: &Problem, model: &Model) -> Vec<Fitted> {
    let pairs = model.tasks.iter().zip(problem.tasks.iter());
    pairs
        .map(|(fitted, task)| {
            let set = &model.sets[fitted.set];
            let mut all = vec![0.0; set.samples];
            for (&row, &beta) in fitted.support.iter().zip(&fitted.beta) {
                all[set.positions[row]] = beta;
            }
            Fitted {
                beta: task.rows.iter(all.len()).map(|row| all[row]).collect(),
                offset: fitted.offset,
            }
        })
        .collect()
}

fn certified(problem: &Problem, theta: &Grid, fitted: &[Fitted]) -> Certified {
    let witness: Vec<Vec<f64>> = fitted.iter().map(|task| task.beta.clone()).collect();
    let pool = Pool::new(2).unwrap();
    let found = pool.install(|| problem.certify(theta, fitted, &witness));
    found.unwrap().unwrap()
}

fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a} and {b}");
}

/// What rounding may do is on the safe side: at these points, with terms far larger than their sum, a little more than 1e-11.
fn assert_safe(upper: f64, lower: f64, what: &str) {
    assert!(
        upper >= lower - 1e-11 * lower.abs(),
        "{what}: {upper} and {lower}"
    );
    assert_close(upper, lower, 1e-8, what);
}

/// K(θ) of a task from the Gram matrices, row by row.
fn matrix(prepared: &Prepared, task: &Task, theta: &[f64]) -> Vec<f64> {
    let view = TaskGrams {
        grams: prepared.grams[task.samples].as_ref(),
        view: &task.rows,
    };
    let weights: Vec<(usize, f64)> = theta.iter().copied().enumerate().collect();
    let all: Vec<usize> = (0..view.count()).collect();
    let mut values = vec![0.0; all.len() * all.len()];
    for (i, row) in values.chunks_exact_mut(all.len()).enumerate() {
        view.entries(i, &all, &weights, row);
    }
    values
}

/// The primal objective of the textbooks; for ridge regression, the bound by the residual.
fn textbook(machine: &MachineSpec, task: &Task, matrix: &[f64], fitted: &Fitted) -> f64 {
    let Fitted { beta, offset: b } = fitted;
    let n = beta.len();
    let f: Vec<f64> = matrix.chunks_exact(n).map(|row| dot(row, beta)).collect();
    let norm = dot(&f, beta);
    let weight = |i: usize| task.weights.as_ref().map_or(1.0, |weights| weights[i]);
    let total: f64 = (0..n).map(weight).sum();
    let (Targets::Labels(y) | Targets::Values(y)) = &task.targets else {
        return match machine.name() {
            "svdd" => {
                let c = machine.number("C");
                let radius = 2.0 * b + norm;
                let far = |i: usize| matrix[i * n + i] - 2.0 * f[i] + norm - radius;
                radius + (0..n).map(|i| c * weight(i) * far(i).max(0.0)).sum::<f64>()
            }
            "ocsvm" => {
                let nu = machine.number("nu");
                let below = |i: usize| weight(i) * (-b - f[i]).max(0.0);
                norm + 2.0 * b + 2.0 / (nu * total) * (0..n).map(below).sum::<f64>()
            }
            other => panic!("{other:?} has targets"),
        };
    };
    match machine.name() {
        name @ ("svc" | "logistic") => {
            let (c, positive_weight, negative_weight) = (
                machine.number("C"),
                machine.number("positive_weight"),
                machine.number("negative_weight"),
            );
            let price = |i: usize| {
                let class = if y[i] > 0.0 {
                    positive_weight
                } else {
                    negative_weight
                };
                c * class * weight(i)
            };
            let loss = |i: usize| {
                let margin = y[i] * (f[i] + b);
                let own = if name == "svc" {
                    (1.0 - margin).max(0.0)
                } else {
                    (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
                };
                price(i) * own
            };
            0.5 * norm + (0..n).map(loss).sum::<f64>()
        }
        "svr" => {
            let (c, epsilon) = (machine.number("C"), machine.number("epsilon"));
            let loss = |i: usize| c * weight(i) * ((y[i] - f[i] - b).abs() - epsilon).max(0.0);
            0.5 * norm + (0..n).map(loss).sum::<f64>()
        }
        "krr" => {
            let lambda = machine.number("lambda");
            (0..n)
                .map(|i| {
                    let ridge = lambda / weight(i);
                    let residual = y[i] - f[i] - ridge * beta[i];
                    beta[i] * (2.0 * y[i] - f[i] - ridge * beta[i]) + residual * residual / ridge
                })
                .sum()
        }
        other => panic!("{other:?} has no targets"),
    }
}

#[test]
fn the_objective_is_that_of_the_textbooks_at_any_point() {
    for machine in &all_machines() {
        for (columns, normalize) in [(4, false), (4, true), (12, true), (12, false)] {
            let problem = problem(machine, columns, normalize);
            let run = &mut Fitting {
                tolerance: 0.05,
                ..Fitting::default()
            };
            let prepared = problem.prepare(&Preparation::default()).unwrap();
            let model = prepared.fit(run).unwrap();
            let mut fitted = machines(&problem, &model);
            for one in &mut fitted {
                // Away from the best offset: the bound is to hold for the one that is there.
                one.offset += 0.03;
            }
            let theta = model.weights();
            let expected: f64 = (problem.tasks.iter().zip(&fitted).enumerate())
                .map(|(number, (task, fitted))| {
                    let matrix = matrix(&prepared, task, theta.row(number));
                    textbook(machine, task, &matrix, fitted)
                })
                .sum();
            let found = certified(&problem, theta, &fitted).objective;
            assert_safe(found, expected, &format!("{machine:?}, {columns} columns"));
            // β̂ = β proves D(β) = Σ_t (part without θ) − σ_Ψ(s(β)).
            let mut constant = 0.0;
            let shape = problem.shape();
            let mut sensitivities = Grid::zeros(shape.tasks, shape.kernels);
            for (number, (task, fitted)) in problem.tasks.iter().zip(&fitted).enumerate() {
                let n = fitted.beta.len();
                let dual = problem.choice.machine.dual(task, n);
                constant += part_without_theta(&dual, &fitted.beta);
                for kernel in 0..shape.kernels {
                    let mut only = vec![0.0; shape.kernels];
                    only[kernel] = 1.0;
                    let matrix = matrix(&prepared, task, &only);
                    let own: f64 = (0..n).map(|i| matrix[i * n + i] * fitted.beta[i]).sum();
                    let rows = matrix.chunks_exact(n).zip(&fitted.beta);
                    let square: f64 = rows.map(|(row, b)| b * dot(row, &fitted.beta)).sum();
                    sensitivities[(number, kernel)] =
                        dual.scale * (0.5 * square - dual.diagonal * own);
                }
            }
            let expected = constant - problem.sharing().maximise(&sensitivities).1;
            let bound = certified(&problem, theta, &fitted).bound;
            assert_safe(expected, bound, &format!("bound of {machine:?}"));
        }
    }
}

#[test]
fn it_certifies_what_a_fit_says() {
    for machine in &all_machines() {
        for normalize in [false, true] {
            let problem = problem(machine, 4, normalize);
            let run = &mut Fitting {
                tolerance: 1e-10,
                ..Fitting::default()
            };
            let model = problem.fit(run).unwrap();
            let outcome = model.outcome();
            let found = certified(&problem, model.weights(), &machines(&problem, &model));
            let what = format!("{machine:?}, {normalize}: {:?}", outcome.status);
            assert_close(found.objective, outcome.objective, 1e-10, &what);
            let size = outcome.objective.abs();
            assert!(found.bound <= outcome.objective + 1e-12 * size, "{what}");
            assert!(outcome.bound <= found.objective + 1e-12 * size, "{what}");
        }
    }
}

#[test]
fn rounded_matrices_are_seen_through() {
    // Machines of a fit on rounded matrices, judged by the rows: bounds on both sides of the optimum in double precision.
    for machine in &all_machines() {
        let problem = problem(machine, 12, true);
        let run = &mut Fitting {
            tolerance: 1e-9,
            ..Fitting::default()
        };
        let exact = problem.fit(run).unwrap().outcome().clone();
        let single = Preparation {
            precision: Precision::Single,
            ..Preparation::default()
        };
        let model = problem.prepare(&single).unwrap().fit(run).unwrap();
        let found = certified(&problem, model.weights(), &machines(&problem, &model));
        let size = exact.objective.abs();
        assert!(found.objective >= exact.bound - 1e-12 * size, "{machine:?}");
        assert!(found.bound <= exact.objective + 1e-12 * size, "{machine:?}");
        assert_close(
            found.objective,
            exact.objective,
            1e-6,
            &format!("{machine:?}"),
        );
    }
}

#[test]
fn it_does_not_depend_on_the_number_of_threads() {
    let problem = problem(&all_machines()[0], 4, true);
    let model = problem.fit(&mut Fitting::default()).unwrap();
    let fitted = machines(&problem, &model);
    let witness: Vec<Vec<f64>> = fitted.iter().map(|task| task.beta.clone()).collect();
    let of = |threads| {
        let certify = || problem.certify(model.weights(), &fitted, &witness);
        Pool::new(threads).unwrap().install(certify).unwrap()
    };
    assert_eq!(of(1), of(3));
}

#[test]
fn what_is_not_made_from_rows_is_not_certified() {
    let gram = crate::data::GivenGram {
        name: "K".into(),
        values: vec![1.0, 0.0, 0.0, 1.0].into(),
    };
    let samples = Samples::from_grams(2, vec![gram]).unwrap();
    let kernels = parse_kernels("precomputed:name=K").unwrap();
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    let task = Task::new("one", Targets::Labels(vec![1.0, -1.0]));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let model = problem.fit(&mut Fitting::default()).unwrap();
    let fitted = machines(&problem, &model);
    let witness = vec![fitted[0].beta.clone()];
    let found = problem.certify(model.weights(), &fitted, &witness);
    assert_eq!(found.unwrap(), None);
}
