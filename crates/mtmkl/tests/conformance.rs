//! Every registered machine with every registered sharing against an independent conic optimum. A new machine or sharing is tested
//! by being registered (and stated for the conic solver in `common`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Data, conic_terms, kernels};
use mtmkl::engine::{Engine, Evaluation, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Error, Fitting, Model, Preparation, Problem, ProblemSpec, Stop};

struct Case {
    machine: MachineSpec,
    targets: TargetKind,
    sharing: SharingSpec,
    tasks: usize,
}

fn cases(tasks: usize) -> Vec<Case> {
    let shape = Shape {
        tasks,
        kernels: kernels().len(),
    };
    let mut cases = Vec::new();
    for machine in mtmkl::Registry::default().machines().iter() {
        for spec in (machine.examples)() {
            for sharing in mtmkl::Registry::default().sharings().iter() {
                for sharing in (sharing.examples)(shape) {
                    cases.push(Case {
                        machine: spec.clone(),
                        targets: machine.targets,
                        sharing,
                        tasks,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    fn data(&self) -> Data {
        Data::new(self.tasks, 7)
    }

    fn problem(&self, change: impl FnOnce(&mut ProblemSpec)) -> Result<Problem, Error> {
        let data = self.data();
        let mut spec = ProblemSpec::new(kernels(), self.machine.clone(), self.sharing.clone());
        change(&mut spec);
        Problem::new(spec, data.samples(), data.tasks(self.targets))
    }

    fn optimum(&self) -> f64 {
        let shape = Shape {
            tasks: self.tasks,
            kernels: kernels().len(),
        };
        let optimum = mtmkl_testkit::conic::optimum(
            &self.data().conic(&self.machine),
            &conic_terms(&self.sharing, shape),
        );
        assert!(optimum.solved, "{self}: the conic solver failed");
        optimum.value
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?} with {:?}, {} tasks",
            self.machine, self.sharing, self.tasks
        )
    }
}

fn fit(problem: &Problem, tolerance: f64, max_passes: usize) -> Model {
    problem
        .fit(&mut Fitting {
            tolerance,
            max_passes,
            ..Fitting::default()
        })
        .unwrap()
}

/// The pairs that THEORY §3 excludes.
fn is_refused(case: &Case, error: &Error) -> bool {
    matches!(error, Error::Pair { .. }) && case.machine.name() == "svdd"
}

#[test]
fn newton_reaches_the_conic_optimum_and_its_certificate_brackets_it() {
    let mut failures = Vec::new();
    let mut tested = 0;
    for tasks in [1, 3] {
        for case in cases(tasks) {
            let problem = match case.problem(|_| {}) {
                Ok(problem) => problem,
                Err(error) if is_refused(&case, &error) => continue,
                Err(error) => panic!("{case}: {error}"),
            };
            let model = fit(&problem, 1e-8, 60);
            let optimum = case.optimum();
            let outcome = model.outcome();
            let error = (outcome.objective - optimum).abs() / optimum.abs();
            let slack = 1e-7 * optimum.abs();
            let bracketed =
                outcome.bound <= optimum + slack && outcome.objective >= optimum - slack;
            tested += 1;
            if !(outcome.status.is_converged() && error <= 1e-6 && bracketed) {
                failures.push(format!(
                    "{case}: {:?} after {} passes, objective {} bound {} optimum {optimum} gap {:.1e}",
                    outcome.status,
                    outcome.trace.len(),
                    outcome.objective,
                    outcome.bound,
                    outcome.gap,
                ));
            }
        }
    }
    assert!(tested > 150, "only {tested} pairs tested");
    assert!(
        failures.is_empty(),
        "{} of {tested} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn epf_and_newton_agree() {
    let mut converged = 0;
    for tasks in [1, 3] {
        for case in cases(tasks) {
            let Ok(problem) = case.problem(|_| {}) else {
                continue;
            };
            let newton = fit(&problem, 1e-7, 60);
            let problem = case
                .problem(|spec| spec.solver = SolverSpec::Epf(Epf::default()))
                .unwrap();
            let epf = fit(&problem, 1e-5, 150);
            let (newton, epf) = (newton.outcome(), epf.outcome());
            let slack = 1e-7 * newton.objective.abs();
            // Whatever epf reached, its interval holds the same optimum.
            assert!(
                epf.objective >= newton.bound - slack,
                "{case}: epf went below the certified bound"
            );
            assert!(
                epf.bound <= newton.objective + slack,
                "{case}: epf's bound is above the optimum"
            );
            if epf.status.is_converged() {
                converged += 1;
                let difference = (epf.objective - newton.objective).abs() / newton.objective.abs();
                assert!(
                    difference <= 1.1e-5,
                    "{case}: objectives differ by {difference:.1e}"
                );
            }
        }
    }
    // It stalls at p = 1 and q = 1 (that is why newton is the default), not elsewhere.
    assert!(converged > 200, "epf converged in {converged} cases only");
}

#[test]
fn shrinking_on_equals_off() {
    for case in cases(3) {
        let Ok(on) = case.problem(|spec| spec.shrinking = true) else {
            continue;
        };
        let off = case.problem(|spec| spec.shrinking = false).unwrap();
        let (on, off) = (fit(&on, 1e-8, 60), fit(&off, 1e-8, 60));
        let (on, off) = (on.outcome().objective, off.outcome().objective);
        assert!(
            (on - off).abs() <= 1e-7 * on.abs(),
            "{case}: {on} with shrinking, {off} without"
        );
    }
}

/// One problem per machine, with the sharing of least consequence: derivatives of J do not depend on Ψ.
fn machines(tasks: usize) -> Vec<Case> {
    cases(tasks)
        .into_iter()
        .filter(|case| case.sharing.name() == "uniform")
        .collect()
}

fn theta(tasks: usize, tilt: f64) -> Grid {
    let kernels = kernels().len();
    let values = (0..tasks * kernels)
        .map(|i| 0.35 + tilt * (i as f64 * 0.7).sin())
        .collect();
    Grid::new(tasks, kernels, values).unwrap()
}

fn precisely(engine: &mut impl Engine, theta: &Grid) -> Evaluation {
    let request = Request {
        accuracy: 1e-14,
        curvature: true,
        stop: Stop::never(),
    };
    engine.evaluate(theta, &request).unwrap()
}

#[test]
fn sensitivities_and_curvature_equal_finite_differences() {
    for case in machines(2) {
        let problem = case.problem(|_| {}).unwrap();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let mut engine = prepared.engine();
        let theta = theta(2, 0.2);
        let centre = precisely(&mut engine, &theta);
        let curvature = centre.curvature.clone().unwrap();
        let step = 1e-5;
        for task in 0..2 {
            for kernel in 0..theta.kernels() {
                let mut shifted = |sign: f64| {
                    let mut theta = theta.clone();
                    theta[(task, kernel)] += sign * step;
                    precisely(&mut engine, &theta)
                };
                let (up, down) = (shifted(1.0), shifted(-1.0));
                let slope = (up.lower() - down.lower()) / (2.0 * step);
                let s = centre.sensitivities[(task, kernel)];
                assert!(
                    (slope + s).abs() <= 1e-5 * (1.0 + s.abs()),
                    "{case}: slope {slope}, sensitivity {s}"
                );
                for other in 0..theta.kernels() {
                    let change =
                        up.sensitivities[(task, other)] - down.sensitivities[(task, other)];
                    let difference = -change / (2.0 * step);
                    let product: f64 = curvature[task]
                        .factor
                        .chunks_exact(theta.kernels())
                        .map(|row| row[kernel] * row[other])
                        .sum();
                    let size = 1e-3 * (1.0 + product.abs());
                    assert!(
                        (difference - product).abs() <= size,
                        "{case}: H[{kernel}, {other}] of task {task} is {product}, by differences {difference}"
                    );
                }
            }
        }
    }
}

#[test]
fn warm_start_equals_cold_start() {
    for case in machines(3) {
        let problem = case.problem(|_| {}).unwrap();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let mut warm = prepared.engine();
        for tilt in [0.3, -0.3, 0.1] {
            let theta = theta(3, tilt);
            let (warm, cold) = (
                precisely(&mut warm, &theta),
                precisely(&mut prepared.engine(), &theta),
            );
            let difference = (warm.lower() - cold.lower()).abs();
            assert!(
                difference <= 1e-9 * cold.lower().abs(),
                "{case}: warm {} cold {}",
                warm.lower(),
                cold.lower()
            );
            // α is unique for a positive definite kernel, and so are the sensitivities.
            for (a, b) in warm
                .sensitivities
                .values()
                .iter()
                .zip(cold.sensitivities.values())
            {
                assert!(
                    (a - b).abs() <= 1e-4 * (1.0 + b.abs()),
                    "{case}: sensitivities {a} and {b}"
                );
            }
        }
    }
}

#[test]
fn the_certificate_holds_for_unfinished_inner_solves() {
    for case in cases(3) {
        let Ok(problem) = case.problem(|_| {}) else {
            continue;
        };
        let optimum = case.optimum();
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let mut engine = prepared.engine();
        let theta = problem.sharing().theta(&problem.sharing().start());
        let slack = 1e-7 * optimum.abs();
        for accuracy in [1e3, 1.0, 1e-1, 1e-3] {
            let request = Request {
                accuracy,
                curvature: false,
                stop: Stop::never(),
            };
            let evaluation = engine.evaluate(&theta, &request).unwrap();
            let bound = evaluation.constant(&theta)
                - problem.sharing().maximise(&evaluation.sensitivities).1;
            assert!(
                bound <= optimum + slack,
                "{case}: bound {bound} above the optimum {optimum} at {accuracy}"
            );
            assert!(
                evaluation.upper() >= optimum - slack,
                "{case}: upper bound below the optimum at {accuracy}"
            );
        }
    }
}
