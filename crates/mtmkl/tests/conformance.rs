//! Every registered machine with every registered sharing against an independent conic optimum. A new machine or sharing is tested
//! by being registered (and stated for the conic solver in `common`).

mod common;

use common::{Data, conic_terms, kernels};
use mtmkl::grid::Shape;
use mtmkl::machine::{MachineSpec, TargetKind, registered_machines};
use mtmkl::sharing::{SharingSpec, registered_sharings};
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Error, Model, Problem, ProblemSpec, Run};

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
    for machine in registered_machines() {
        for spec in (machine.examples)() {
            for sharing in registered_sharings() {
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
        .fit(&mut Run {
            tolerance,
            max_passes,
            threads: 1,
            ..Run::default()
        })
        .unwrap()
}

/// The pairs that THEORY §3 excludes.
fn is_refused(case: &Case, error: &Error) -> bool {
    matches!(error, Error::Pair { .. }) && matches!(case.machine, MachineSpec::Svdd { .. })
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
