//! Problems large enough for a start from a quarter of the samples: it changes the way, not the answer. And Gram matrices in single
//! precision.
#![allow(clippy::unwrap_used, reason = "a failed test")]

mod common;

use mtmkl::kernel::parse_kernel;
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::solver::{Newton, Solution, Solver};
use mtmkl::{Fitting, Model, Precision, Preparation, Problem, ProblemSpec, Run, Samples};
use mtmkl_testkit::generate::{Random, points};

const COLUMNS: usize = 4;

/// Two tasks on different rows of one sample set, or both on all of it.
fn problem(machine: &MachineSpec, targets: TargetKind, n: usize, views: bool) -> Problem {
    let mut random = Random::new(11);
    let x = points(&mut random, n, COLUMNS);
    let tasks = common::two_tasks(&mut random, &x, n, targets, views);
    let kernels = ["rbf:gamma=2", "rbf:gamma=0.2", "linear", "poly"]
        .map(|kernel| parse_kernel(kernel).unwrap())
        .to_vec();
    let spec = ProblemSpec::new(kernels, machine.clone(), common::usual_sharing(machine));
    let samples = Samples::new(x, n, COLUMNS).unwrap();
    Problem::new(spec, vec![samples], tasks).unwrap()
}

fn run(tolerance: f64) -> Fitting<'static> {
    Fitting {
        tolerance,
        max_passes: 100,
        ..Fitting::default()
    }
}

fn in_precision(problem: &Problem, precision: Precision, tolerance: f64) -> Model {
    let preparation = Preparation {
        precision,
        ..Preparation::default()
    };
    let prepared = problem.prepare(&preparation).unwrap();
    prepared.fit(&mut run(tolerance)).unwrap()
}

/// Without the start from fewer samples, which is the fit's and not the solver's.
fn from_the_middle(problem: &Problem, tolerance: f64) -> Solution {
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let mut engine = prepared.engine();
    Newton
        .solve(
            &mut engine,
            problem.sharing(),
            None,
            &mut Run {
                tolerance,
                max_passes: 100,
                ..Run::default()
            },
        )
        .unwrap()
}

#[test]
fn a_start_from_fewer_samples_leads_to_the_same_optimum() {
    for machine in mtmkl::Registry::default().machines() {
        for spec in (machine.examples)() {
            for views in [false, true] {
                let problem = problem(&spec, machine.targets, 640, views);
                let model = problem.fit(&mut run(1e-7)).unwrap();
                let outcome = model.outcome();
                let other = from_the_middle(&problem, 1e-7);
                let what = format!("{spec:?}, views: {views}");
                assert!(
                    outcome.status.is_converged(),
                    "{what}: {:?}",
                    outcome.status
                );
                let difference = (outcome.objective - other.objective).abs();
                assert!(
                    difference <= 2e-7 * other.objective.abs(),
                    "{what}: {} and {}",
                    outcome.objective,
                    other.objective
                );
            }
        }
    }
}

#[test]
fn single_precision_changes_the_answer_by_no_more_than_rounding() {
    for machine in mtmkl::Registry::default().machines() {
        let spec = (machine.examples)().remove(0);
        let fit = |precision| {
            let problem = problem(&spec, machine.targets, 300, false);
            in_precision(&problem, precision, 1e-6)
        };
        let (double, single) = (fit(Precision::Double), fit(Precision::Single));
        let (a, b) = (double.outcome(), single.outcome());
        assert!(b.status.is_converged(), "{spec:?}: {:?}", b.status);
        let difference = (a.objective - b.objective).abs();
        assert!(
            difference <= 2e-6 * a.objective.abs(),
            "{spec:?}: {} and {}",
            a.objective,
            b.objective
        );
        // Less than rounding cannot be certified, but it ends.
        let problem = problem(&spec, machine.targets, 120, false);
        let strict = in_precision(&problem, Precision::Single, 1e-13);
        assert!(
            strict.outcome().gap < 1e-4,
            "{spec:?}: {}",
            strict.outcome().gap
        );
        // It was not simply ignored.
        assert!(a.objective != b.objective, "{spec:?}");
    }
}
