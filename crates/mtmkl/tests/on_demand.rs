//! Gram matrices made on demand, where a memory limit forces it: the same answer.
#![allow(clippy::unwrap_used, reason = "a failed test")]

mod common;

use mtmkl::engine::{Engine, Request};
use mtmkl::grid::Grid;
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Error, Fitting, GivenGram, Ledger, Pool, Precision, Preparation, Prepared, Problem,
    ProblemSpec, Rows, Samples, Stop, Storage, Targets, Task,
};
use mtmkl_testkit::generate::{Random, labels, linear_gram, points};

const COLUMNS: usize = 4;

/// Normalised and plain, of all three bases, one kept in any case (`chi2` of column 4, which is ≥ 0), one of its own columns, one given.
const KERNELS: [&str; 8] = [
    "rbf:gamma=2|0.5|0.2|0.02",
    "poly:degree=2|3,coef0=1",
    "linear",
    "laplacian:gamma=0.1|1",
    "cosine",
    "chi2@f4",
    "rbf:gamma=1|0.1@f1..f2",
    "precomputed:name=own",
];

/// Two tasks on different rows of one sample set, or both on all of it.
fn problem(machine: &MachineSpec, targets: TargetKind, n: usize, views: bool) -> Problem {
    let mut random = Random::new(23);
    let mut x = points(&mut random, n, COLUMNS);
    x.iter_mut()
        .skip(COLUMNS - 1)
        .step_by(COLUMNS)
        .for_each(|value| *value = value.abs());
    let tasks = common::two_tasks(&mut random, &x, n, targets, views);
    let kernels = KERNELS
        .iter()
        .flat_map(|kernel| parse_kernels(kernel).unwrap())
        .collect();
    let spec = ProblemSpec::new(kernels, machine.clone(), common::usual_sharing(machine));
    let own = GivenGram {
        name: "own".to_string(),
        values: linear_gram(&x, n, COLUMNS).into(),
    };
    let samples = Samples::new(x, n, COLUMNS).unwrap();
    let samples = samples.with_gram(own).unwrap();
    Problem::new(spec, vec![samples], tasks).unwrap()
}

fn prepare(problem: &Problem, storage: Storage, precision: Precision, threads: usize) -> Prepared {
    let prepared = problem
        .prepare(&Preparation {
            storage: Some(storage),
            precision,
            pool: Some(Pool::new(threads).unwrap()),
            ..Preparation::default()
        })
        .unwrap();
    assert_eq!(prepared.storage(), storage);
    prepared
}

fn fitting(tolerance: f64) -> Fitting<'static> {
    Fitting {
        tolerance,
        max_passes: 100,
        ..Fitting::default()
    }
}

/// Everything that J says at one θ, to full accuracy.
fn look(problem: &Problem, storage: Storage, precision: Precision, threads: usize) -> Vec<f64> {
    let mut engine = prepare(problem, storage, precision, threads).engine();
    let shape = problem.shape();
    let theta: Vec<f64> = (0..shape.tasks * shape.kernels)
        .map(|i| 0.05 + 0.01 * (i % 7) as f64)
        .collect();
    let theta = Grid::new(shape.tasks, shape.kernels, theta).unwrap();
    let request = Request {
        accuracy: 1e-13,
        curvature: true,
        stop: Stop::never(),
        rounds: mtmkl::Rounds::default(),
    };
    let evaluation = engine.evaluate(&theta, &request).unwrap();
    let curvature = evaluation.curvature.unwrap();
    let squares = curvature.iter().flat_map(|curvature| {
        (0..shape.kernels).map(|kernel| {
            let column = curvature
                .factor
                .iter()
                .skip(kernel)
                .step_by(shape.kernels.max(1));
            column.map(|value| value * value).sum::<f64>()
        })
    });
    let sensitivities = evaluation.sensitivities.values();
    evaluation
        .values
        .iter()
        .copied()
        .chain(sensitivities.iter().copied())
        .chain(squares)
        .collect()
}

#[test]
fn values_and_derivatives_are_those_of_kept_matrices() {
    for machine in mtmkl::Registry::default().machines() {
        let spec = (machine.examples)().remove(0);
        for views in [false, true] {
            for precision in [Precision::Double, Precision::Single] {
                let problem = problem(&spec, machine.targets, 50, views);
                let kept = look(&problem, Storage::Kept, precision, 1);
                let made = look(&problem, Storage::Mapped, precision, 1);
                let threaded = look(&problem, Storage::Mapped, precision, 3);
                assert_eq!(made, threaded, "{spec:?}");
                for (number, (a, b)) in kept.iter().zip(&made).enumerate() {
                    // Inner problems end at a gap of 1e-13, derivatives at its root.
                    let allowed = if number < 2 { 1e-11 } else { 1e-5 };
                    assert!(
                        (a - b).abs() <= allowed * a.abs().max(1.0),
                        "{spec:?}, views {views}, {precision:?}, {number}: {a} and {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn fits_end_at_the_same_optimum_for_any_number_of_threads() {
    for machine in mtmkl::Registry::default().machines() {
        for (number, spec) in (machine.examples)().iter().enumerate() {
            for (n, views) in [(60, false), (60, true), (480, false)] {
                if number > 0 && n > 60 {
                    continue;
                }
                let problem = problem(spec, machine.targets, n, views);
                let double = Precision::Double;
                let needed = |storage| {
                    let preparation = Preparation::default();
                    problem.memory_needed(storage, &preparation).unwrap()
                };
                assert!(needed(Storage::Mapped) < needed(Storage::Kept));
                let fit = |storage, threads| {
                    let prepared = prepare(&problem, storage, double, threads);
                    let model = prepared.fit(&mut fitting(1e-8)).unwrap();
                    let held = prepared.decisions(&model, &[vec![0, 3, 5]]).unwrap();
                    (model, held)
                };
                let (kept, decided) = fit(Storage::Kept, 1);
                let (made, others) = fit(Storage::Mapped, 1);
                let (threaded, _) = fit(Storage::Mapped, 3);
                let what = format!("{spec:?}, {n} samples, views: {views}");
                let outcome = made.outcome();
                assert!(
                    outcome.status.is_converged(),
                    "{what}: {:?}",
                    outcome.status
                );
                let difference = (outcome.objective - kept.outcome().objective).abs();
                assert!(
                    difference <= 2e-8 * outcome.objective.abs(),
                    "{what}: {} and {}",
                    outcome.objective,
                    kept.outcome().objective
                );
                assert_eq!(made.weights(), threaded.weights(), "{what}");
                assert_eq!(
                    outcome.objective.to_bits(),
                    threaded.outcome().objective.to_bits(),
                    "{what}"
                );
                for (a, b) in decided.iter().flatten().zip(others.iter().flatten()) {
                    assert!(
                        (a - b).abs() <= 1e-2 * a.abs().max(1.0),
                        "{what}: {a} and {b}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_on_demand_is_refused() {
    let problem = problem(&MachineSpec::svc(1.0), TargetKind::Labels, 60, false);
    let preparation = Preparation::default();
    let needed = |storage| problem.memory_needed(storage, &preparation).unwrap();
    let (kept, needed) = (needed(Storage::Kept), needed(Storage::Mapped));
    let within = |limit| {
        problem.prepare(&Preparation {
            ledger: Ledger::new(limit),
            ..Preparation::default()
        })
    };
    assert_eq!(within(needed).unwrap().storage(), Storage::Mapped);
    assert_eq!(within(2 * kept).unwrap().storage(), Storage::Kept);
    let error = within(needed - 1).unwrap_err();
    assert!(
        matches!(error, Error::Memory { needed: found, limit, .. } if found == needed && limit + 1 == needed),
        "{error:?}"
    );
}

#[test]
fn parts_for_folds_are_made_on_demand_too() {
    let whole = problem(&MachineSpec::svc(1.0), TargetKind::Labels, 60, false);
    let rows: Vec<usize> = (0..60).filter(|i| i % 4 != 1).collect();
    let mut tasks = whole.tasks().to_vec();
    for task in &mut tasks {
        let Targets::Labels(labels) = &task.targets else {
            panic!("labels")
        };
        task.targets = Targets::Labels(rows.iter().map(|&i| labels[i]).collect());
        *task = task.clone().with_rows(rows.clone());
    }
    let chosen = [4, 0, 12, 2, 7];
    let mut spec = whole.spec().clone();
    spec.kernels = chosen.map(|kernel| spec.kernels[kernel].clone()).to_vec();
    let part = Problem::new(spec, whole.samples().to_vec(), tasks).unwrap();
    let fit = |storage| {
        let prepared = prepare(&whole, storage, Precision::Double, 2);
        let part = part.prepare_from(&prepared, &chosen, prepared.pool());
        let part = part.unwrap();
        assert_eq!(part.storage(), storage);
        let model = part.fit(&mut fitting(1e-9)).unwrap();
        let held = part.decisions(&model, &[vec![1, 5, 9]]).unwrap();
        (model, held)
    };
    let ((kept, decided), (made, others)) = (fit(Storage::Kept), fit(Storage::Mapped));
    let (a, b) = (kept.outcome().objective, made.outcome().objective);
    assert!((a - b).abs() <= 2e-9 * a.abs(), "{a} and {b}");
    for (a, b) in decided.iter().flatten().zip(others.iter().flatten()) {
        assert!((a - b).abs() <= 1e-3, "{a} and {b}");
    }
}

/// Far more kernels than samples: the outer solver's steps, damped ones too, must not need M × M numbers.
#[test]
fn many_kernels_take_little_memory() {
    let (n, m) = (40, 20_000);
    let mut random = Random::new(3);
    let x = points(&mut random, n, 2);
    let task = Task::new("one", Targets::Labels(labels(&mut random, &x, n, 2)));
    let kernels = (0..m)
        .flat_map(|i| {
            let gamma = 2.0_f64.powf(f64::from(i % 10_000) / 1000.0 - 5.0);
            parse_kernels(&format!("rbf:gamma={gamma}@f{}", 1 + i / 10_000)).unwrap()
        })
        .collect();
    let sharing = SharingSpec::lp(1.33, 1.0);
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(100.0), sharing);
    let samples = Samples::new(x.clone(), n, 2).unwrap();
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let fit = |storage| {
        let prepared = prepare(&problem, storage, Precision::Double, 2);
        prepared.fit(&mut fitting(1e-6)).unwrap()
    };
    let (kept, made) = (fit(Storage::Kept), fit(Storage::Mapped));
    let (a, b) = (kept.outcome().objective, made.outcome().objective);
    assert!(made.outcome().status.is_converged());
    assert!((a - b).abs() <= 2e-6 * a.abs(), "{a} and {b}");
    let rows = Rows::new(&x[..20], 10, 2).unwrap();
    assert_eq!(
        kept.predict("one", rows).unwrap(),
        made.predict("one", rows).unwrap()
    );
}
