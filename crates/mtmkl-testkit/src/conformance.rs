//! The conformance suite: every machine of a registry with every sharing, against an independent conic optimum where there is one, and
//! against itself in every way. A part is tested by being registered.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::engine::{Engine, Evaluation, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Error, Fitting, Model, Preparation, Problem, ProblemSpec, Registry, Stop, Storage};

use crate::bracket;
use crate::generate::{self, Random};
use crate::small::{DIMENSION, Data, conic_terms, kernels};

/// A machine with a sharing, on so many tasks.
#[derive(Debug, Clone)]
pub struct Case {
    /// (ḡ, Ω).
    pub machine: MachineSpec,
    /// What it learns from.
    pub targets: TargetKind,
    /// Ψ.
    pub sharing: SharingSpec,
    /// T.
    pub tasks: usize,
}

/// Every example of every machine with every example of every sharing.
pub fn cases(registry: &Registry, tasks: usize) -> Vec<Case> {
    let shape = Shape {
        tasks,
        kernels: kernels().len(),
    };
    let mut cases = Vec::new();
    for machine in registry.machines() {
        for spec in (machine.examples)() {
            for sharing in registry.sharings() {
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

    /// Whether the conic solver knows its optimum.
    pub fn is_stated(&self) -> bool {
        let shape = Shape {
            tasks: self.tasks,
            kernels: kernels().len(),
        };
        self.data().conic(&self.machine).is_some() && conic_terms(&self.sharing, shape).is_some()
    }

    /// Between bounds that are independent of the product, where machine and sharing are stated for them.
    fn optimum(&self) -> Option<f64> {
        let shape = Shape {
            tasks: self.tasks,
            kernels: kernels().len(),
        };
        Some(bracket::optimum(
            &self.data().conic(&self.machine)?,
            &conic_terms(&self.sharing, shape)?,
        ))
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
    matches!(error, Error::Pair { .. }) && case.machine.build().shrinks_kernels()
}

/// Newton reaches the conic optimum, and its certificate brackets it; where no conic optimum is stated, it converges and the bound is
/// below the objective. Returns how many pairs were tested: SVDD and its like refuse sets that contain 0.
///
/// # Panics
/// When one does not.
pub fn reaches_the_optimum(cases: &[Case]) -> usize {
    reaches_the_optimum_with(cases, &Preparation::default())
}

/// The same with kernel values streamed from rows.
///
/// # Panics
/// When one does not.
pub fn streamed_reaches_the_optimum(cases: &[Case]) -> usize {
    let streamed = Preparation {
        storage: Some(Storage::Streamed),
        ..Preparation::default()
    };
    reaches_the_optimum_with(cases, &streamed)
}

fn reaches_the_optimum_with(cases: &[Case], preparation: &Preparation) -> usize {
    let mut failures = Vec::new();
    let mut tested = 0;
    for case in cases {
        let problem = match case.problem(|_| {}) {
            Ok(problem) => problem,
            Err(error) if is_refused(case, &error) => continue,
            Err(error) => panic!("{case}: {error}"),
        };
        let prepared = problem.prepare(preparation).unwrap();
        let model = prepared
            .fit(&mut Fitting {
                tolerance: 1e-8,
                max_passes: 60,
                ..Fitting::default()
            })
            .unwrap();
        let outcome = model.outcome();
        let optimum = case.optimum().unwrap_or(outcome.objective);
        let error = (outcome.objective - optimum).abs() / optimum.abs();
        let slack = 1e-7 * optimum.abs();
        let bracketed = outcome.bound <= optimum + slack && outcome.objective >= optimum - slack;
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
    assert!(
        failures.is_empty(),
        "{} of {tested} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    tested
}

/// Algorithm 1 and Newton agree. Returns in how many cases Algorithm 1 converged.
///
/// # Panics
/// When they do not.
pub fn solvers_agree(cases: &[Case]) -> usize {
    let mut converged = 0;
    for case in cases {
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
    converged
}

/// Shrinking is for speed only.
///
/// # Panics
/// When it changes an answer.
pub fn shrinking_changes_nothing(cases: &[Case]) {
    for case in cases {
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
pub fn machines(registry: &Registry, tasks: usize) -> Vec<Case> {
    cases(registry, tasks)
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
        rounds: mtmkl::Rounds::default(),
    };
    engine.evaluate(theta, &request).unwrap()
}

/// Sensitivities and curvature of [`machines`] on two tasks equal finite differences.
///
/// # Panics
/// When they do not.
pub fn derivatives_are_right(registry: &Registry) {
    for case in machines(registry, 2) {
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

/// A warm start gives what a cold one gives, for [`machines`] on three tasks.
///
/// # Panics
/// When it does not.
pub fn warm_equals_cold(registry: &Registry) {
    for case in machines(registry, 3) {
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

/// The certificate holds for inner solves that are not finished.
///
/// # Panics
/// When it does not.
pub fn unfinished_solves_are_certified(cases: &[Case]) {
    for case in cases {
        let Ok(problem) = case.problem(|_| {}) else {
            continue;
        };
        let Some(optimum) = case.optimum() else {
            continue;
        };
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let mut engine = prepared.engine();
        let theta = problem.sharing().theta(&problem.sharing().start());
        let slack = 1e-7 * optimum.abs();
        for accuracy in [1e3, 1.0, 1e-1, 1e-3] {
            let request = Request {
                accuracy,
                curvature: false,
                stop: Stop::never(),
                rounds: mtmkl::Rounds::default(),
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

/// Every kernel is symmetric, positive semi-definite where it says so, and read back from its specification as the same.
///
/// # Panics
/// When one is not.
pub fn kernels_are_what_they_say(registry: &Registry) {
    let mut random = Random::new(5);
    let points = generate::points(&mut random, 12, DIMENSION);
    let rows: Vec<Vec<f64>> = points
        .chunks(DIMENSION)
        .map(|row| row.iter().map(|value| value.abs()).collect())
        .collect();
    for entry in registry
        .kernels()
        .iter()
        .filter(|entry| entry.name != "precomputed")
    {
        for text in [entry.example, entry.name] {
            let view = registry.parse_kernel(text).unwrap();
            let again = registry.parse_kernel(&view.spec().unwrap()).unwrap();
            let n = rows.len();
            let mut gram = vec![0.0; n * n];
            for (at, value) in gram.iter_mut().enumerate() {
                let (x, z) = (&rows[at / n], &rows[at % n]);
                *value = view.kernel.value(x, z);
                assert_eq!(*value, view.kernel.value(z, x), "{text} is not symmetric");
                assert_eq!(
                    *value,
                    again.kernel.value(x, z),
                    "{text} is another when read back"
                );
            }
            if view.kernel.is_positive_definite() {
                assert!(generate::is_semi_definite(&gram, n), "{text} is indefinite");
            }
        }
    }
}

/// All of it, for the cases that are wanted on one and on three tasks.
///
/// # Panics
/// When something does not hold.
pub fn check(registry: &Registry, wanted: impl Fn(&Case) -> bool) {
    kernels_are_what_they_say(registry);
    derivatives_are_right(registry);
    warm_equals_cold(registry);
    let mut chosen = cases(registry, 1);
    chosen.extend(cases(registry, 3));
    chosen.retain(wanted);
    assert!(reaches_the_optimum(&chosen) > 0, "nothing was tested");
    solvers_agree(&chosen);
    shrinking_changes_nothing(&chosen);
    unfinished_solves_are_certified(&chosen);
}
