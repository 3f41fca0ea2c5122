//! So many Gaussians of one distance that a few of them span the others: the same answer as with every matrix by itself.
#![allow(clippy::unwrap_used, reason = "a failed test")]

use mtmkl::engine::{Engine, Request};
use mtmkl::grid::Grid;
use mtmkl::kernel::{Columns, Gaussian, KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Fitting, Pool, Preparation, Prepared, Problem, ProblemSpec, Samples, Stop, Storage, Targets,
    Task,
};
use mtmkl_testkit::generate::{Random, labels, points};

const SAMPLES: usize = 40;
const WIDTHS: usize = 600;

/// Two columns with 600 widths each, and a linear kernel between them.
fn problem(machine: MachineSpec, sharing: SharingSpec) -> Problem {
    let mut random = Random::new(5);
    let x = points(&mut random, SAMPLES, 2);
    let y = labels(&mut random, &x, SAMPLES, 2);
    let column = |k: usize| {
        (0..WIDTHS).map(move |number| {
            let sigma = 2.0_f64.powf(6.0 * (number as f64 + 0.5) / WIDTHS as f64 - 3.0);
            let kernel = Gaussian::from_sigma(sigma).unwrap();
            KernelView::new(format!("{k}, {number}"), kernel).on(Columns::Indices(vec![k]))
        })
    };
    let linear = parse_kernels("linear").unwrap();
    let kernels = column(0).chain(linear).chain(column(1)).collect();
    let spec = ProblemSpec::new(kernels, machine, sharing);
    let samples = Samples::new(x, SAMPLES, 2).unwrap();
    let task = Task::new("one", Targets::Labels(y));
    Problem::new(spec, vec![samples], vec![task]).unwrap()
}

fn prepare(problem: &Problem, storage: Storage, threads: usize) -> Prepared {
    let preparation = Preparation {
        storage: Some(storage),
        pool: Some(Pool::new(threads).unwrap()),
        ..Preparation::default()
    };
    problem.prepare(&preparation).unwrap()
}

fn fitting() -> Fitting<'static> {
    Fitting {
        tolerance: 1e-6,
        ..Fitting::default()
    }
}

#[test]
fn an_evaluation_is_that_of_all_matrices() {
    let problem = problem(MachineSpec::svc(1.0), SharingSpec::lp(1.5, 1.0));
    let mut random = Random::new(8);
    let theta = (0..=2 * WIDTHS).map(|_| random.uniform() / 100.0);
    let theta = Grid::new(1, 2 * WIDTHS + 1, theta.collect()).unwrap();
    let request = Request {
        accuracy: 1e-11,
        curvature: true,
        stop: Stop::never(),
        rounds: mtmkl::Rounds::default(),
    };
    let kept = prepare(&problem, Storage::Kept, 2);
    let spanned = prepare(&problem, Storage::Mapped, 2);
    let all = kept.engine().evaluate(&theta, &request).unwrap();
    let few = spanned.engine().evaluate(&theta, &request).unwrap();
    // Otherwise this test compares a thing with itself.
    let curvature = &few.curvature.as_ref().unwrap()[0];
    assert!(curvature.span.is_some() && curvature.factor.len() < curvature.rank * WIDTHS);
    assert!((all.values[0] - few.values[0]).abs() < 1e-8 * all.values[0]);
    assert!(few.gaps[0] < 1e-8 * all.values[0]);
    let pairs = (all.sensitivities.values().iter()).zip(few.sensitivities.values());
    for (one, other) in pairs {
        assert!(
            (one - other).abs() < 1e-7 * one.abs().max(1e-3),
            "{one} {other}"
        );
    }
}

#[test]
fn the_optimum_is_that_of_all_matrices() {
    for p in [1.0, 1.33, 2.0, 3.0] {
        for machine in [MachineSpec::svc(1.0), MachineSpec::svc(10.0)] {
            let problem = problem(machine, SharingSpec::lp(p, 1.0));
            let kept = prepare(&problem, Storage::Kept, 2).fit(&mut fitting());
            let spanned = prepare(&problem, Storage::Mapped, 2);
            let (kept, few) = (kept.unwrap(), spanned.fit(&mut fitting()).unwrap());
            let (one, other) = (kept.outcome(), few.outcome());
            assert_eq!(other.status, mtmkl::Status::Converged, "{p}: {other:?}");
            // Both bounds are below both objectives.
            let rounding = 1e-9 * one.objective;
            assert!(one.bound <= other.objective + rounding, "{p}");
            assert!(other.bound <= one.objective + rounding, "{p}");
            // The model decides as its Gram matrices say.
            let rows = vec![(0..SAMPLES).collect::<Vec<usize>>()];
            let decisions = spanned.decisions(&few, &rows).unwrap();
            let set = problem.fit(&mut fitting()).unwrap();
            assert_eq!(set.outcome().objective, other.objective);
            let others = prepare(&problem, Storage::Kept, 1)
                .decisions(&few, &rows)
                .unwrap();
            for (a, b) in decisions[0].iter().zip(&others[0]) {
                assert!((a - b).abs() < 1e-9, "{p}: {a} and {b}");
            }
        }
    }
}

#[test]
fn what_interpolation_cannot_prove_every_matrix_does() {
    let problem = problem(MachineSpec::svc(10.0), SharingSpec::lp(3.0, 1.0));
    let spanned = prepare(&problem, Storage::Mapped, 2);
    let mut fitting = Fitting {
        tolerance: 1e-9,
        ..Fitting::default()
    };
    let model = spanned.fit(&mut fitting).unwrap();
    assert!(model.outcome().gap <= 1e-9, "{:?}", model.outcome());
}

#[test]
fn threads_do_not_matter() {
    for p in [1.0, 1.33] {
        let problem = problem(MachineSpec::svc(1.0), SharingSpec::lp(p, 1.0));
        let one = prepare(&problem, Storage::Mapped, 1).fit(&mut fitting());
        let two = prepare(&problem, Storage::Mapped, 2).fit(&mut fitting());
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!(one.weights(), two.weights());
        assert_eq!(one.outcome().objective, two.outcome().objective);
    }
}

#[test]
fn other_machines_and_sharings_on_the_same_matrices() {
    let problem = problem(MachineSpec::svc(1.0), SharingSpec::lp(1.33, 1.0));
    let prepared = prepare(&problem, Storage::Mapped, 2);
    for (machine, sharing) in [
        (MachineSpec::svc(3.0), SharingSpec::lp(1.1, 2.0)),
        (MachineSpec::svc(1.0), SharingSpec::simplex()),
    ] {
        let other = prepared.with(&machine, &sharing).unwrap();
        let model = other.fit(&mut fitting()).unwrap();
        let fresh = other.problem().fit(&mut fitting()).unwrap();
        let (one, two) = (model.outcome(), fresh.outcome());
        assert!(one.gap <= 1e-6 && two.gap <= 1e-6);
        assert!((one.objective - two.objective).abs() <= 2e-6 * one.objective);
    }
    // Some of the kernels: those of the first column, and the linear one.
    let some: Vec<usize> = (0..=WIDTHS).rev().collect();
    let mut spec = ProblemSpec::new(
        Vec::new(),
        MachineSpec::svc(1.0),
        SharingSpec::lp(1.33, 1.0),
    );
    let kernels = problem.spec().kernels.clone();
    spec.kernels = some.iter().map(|&m| kernels[m].clone()).collect();
    let part = Problem::new(spec, problem.samples().to_vec(), problem.tasks().to_vec()).unwrap();
    let from = part
        .prepare_from(&prepared, &some, prepared.pool())
        .unwrap();
    let (model, fresh) = (
        from.fit(&mut fitting()).unwrap(),
        part.fit(&mut fitting()).unwrap(),
    );
    let (one, two) = (model.outcome(), fresh.outcome());
    assert!((one.objective - two.objective).abs() <= 2e-6 * one.objective);
}
