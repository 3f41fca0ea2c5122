//! Terms that reach some tasks only: one written here, outside the crate, and levels of task hierarchies. Both solvers, against an independent conic
//! optimum and against the sharings that they contain.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::{Data, kernels};
use mtmkl::grid::{Grid, Shape};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::{
    Common, Constraint, Group, Level, LpBall, OwnTerm, Reach, SharingSpec, Term, TermSpec,
};
use mtmkl::solver::{Epf, Fallback, SolverSpec};
use mtmkl::{Error, Fitting, Model, Preparation, Problem, ProblemSpec, Result};
use mtmkl_testkit::{bracket, conic};

const TASKS: usize = 4;

/// Each clinic of some has weights of its own in a ball, ‖x_v‖₂ ≤ radius, which its patients add to theirs.
#[derive(Debug)]
struct Clinics {
    patients: Vec<Vec<usize>>,
    radius: f64,
    /// Whether the second-order solver is told what the set is.
    is_described: bool,
}

impl Term for Clinics {
    fn reach(&self) -> Reach {
        Reach::groups(self.patients.clone())
    }

    fn label(&self) -> &'static str {
        "clinics"
    }

    fn check(&self, _shape: Shape) -> Result<()> {
        Ok(())
    }

    fn start(&self, out: &mut Grid) {
        let weight = self.radius / (out.kernels() as f64).sqrt();
        out.values_mut().fill(weight);
    }

    fn maximise(&self, s: &Grid, out: &mut Grid) -> f64 {
        let mut support = 0.0;
        for row in 0..s.rows() {
            let gains: Vec<f64> = s.row(row).iter().map(|value| value.max(0.0)).collect();
            let length = gains.iter().map(|value| value * value).sum::<f64>().sqrt();
            for (out, gain) in out.row_mut(row).iter_mut().zip(&gains) {
                *out = if length > 0.0 {
                    self.radius * gain / length
                } else {
                    0.0
                };
            }
            support += self.radius * length;
        }
        support
    }

    fn violation(&self, x: &Grid) -> f64 {
        let length = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>().sqrt();
        let over = x.iter_rows().map(|row| length(row) - self.radius);
        let below = x.values().iter().map(|value| -value);
        over.chain(below).fold(0.0, f64::max)
    }

    fn contains_zero(&self) -> bool {
        true
    }

    fn constraint(&self) -> Option<Constraint> {
        self.is_described.then_some(Constraint::RowNorm {
            p: 2.0,
            radius: self.radius,
        })
    }
}

fn clinics(is_described: bool) -> Arc<dyn Term> {
    Arc::new(Clinics {
        patients: vec![vec![0, 2], vec![3]],
        radius: 0.8,
        is_described,
    })
}

/// The same for the conic solver: balls on their own are an L_∞ ball of their norms.
fn conic_clinics() -> conic::Term {
    conic::Term::Level {
        groups: vec![vec![0, 2], vec![3]],
        p: 2.0,
        q: f64::INFINITY,
        radius: 0.8,
    }
}

fn level(groups: &[&[usize]], p: f64, q: f64, radius: f64) -> (Arc<dyn Term>, conic::Term) {
    let groups: Vec<Vec<usize>> = groups.iter().map(|group| group.to_vec()).collect();
    let term = Level::new(groups.clone(), p, q, radius);
    let conic = conic::Term::Level {
        groups,
        p,
        q,
        radius,
    };
    (Arc::new(term), conic)
}

/// The root, two branches, the leaves.
fn tree(p: f64, q: f64) -> Vec<(Arc<dyn Term>, conic::Term)> {
    vec![
        level(&[&[0, 1, 2, 3]], p, q, 1.0),
        level(&[&[0, 3], &[1, 2]], p, q, 0.7),
        level(&[&[0], &[1], &[2], &[3]], p, q, 0.5),
    ]
}

fn problem(machine: &MachineSpec, sharing: SharingSpec, solver: SolverSpec) -> Problem {
    let data = Data::new(TASKS, 7);
    let targets = match machine.name() {
        "krr" => TargetKind::Values,
        _ => TargetKind::Labels,
    };
    let mut spec = ProblemSpec::new(kernels(), machine.clone(), sharing);
    spec.solver = solver;
    Problem::new(spec, data.samples(), data.tasks(targets)).unwrap()
}

fn fit(machine: &MachineSpec, sharing: SharingSpec, solver: SolverSpec, tolerance: f64) -> Model {
    let mut fitting = Fitting {
        tolerance,
        max_passes: 2000,
        ..Fitting::default()
    };
    problem(machine, sharing, solver).fit(&mut fitting).unwrap()
}

fn machines() -> [MachineSpec; 2] {
    [MachineSpec::svc(2.0), MachineSpec::krr(0.5)]
}

fn optimum(machine: &MachineSpec, terms: &[conic::Term]) -> f64 {
    bracket::optimum(&Data::new(TASKS, 7).conic(machine).unwrap(), terms)
}

fn assert_optimal(model: &Model, optimum: f64, what: &str) {
    let outcome = model.outcome();
    let slack = 1e-7 * optimum.abs();
    assert!(
        outcome.status.is_converged(),
        "{what}: {:?}",
        outcome.status
    );
    assert!(
        outcome.bound <= optimum + slack && optimum <= outcome.objective + slack,
        "{what}: {optimum} is not between {} and {}",
        outcome.bound,
        outcome.objective
    );
    let error = (outcome.objective - optimum).abs() / optimum.abs();
    assert!(error <= 1.2e-6, "{what}: off by {error:e}");
}

#[test]
fn a_term_of_ones_own_that_reaches_some_tasks_is_solved_to_the_optimum() {
    for machine in machines() {
        let (rest, conic_rest) = level(&[&[1], &[0, 1, 2, 3]], 2.0, 2.0, 0.6);
        let optimum = optimum(&machine, &[conic_clinics(), conic_rest]);
        let sharing = |is_described| SharingSpec::own([clinics(is_described), Arc::clone(&rest)]);
        let newton = fit(&machine, sharing(true), SolverSpec::Newton, 1e-6);
        assert_eq!(newton.outcome().fallback, None);
        assert!(newton.outcome().trace.len() <= 15);
        assert_optimal(&newton, optimum, "newton");
        let epf = SolverSpec::Epf(Epf::default());
        assert_optimal(&fit(&machine, sharing(true), epf, 1e-6), optimum, "epf");
        // Without a description Newton hands over.
        let fallen = fit(&machine, sharing(false), SolverSpec::Newton, 1e-6);
        assert_eq!(fallen.outcome().fallback, Some(Fallback::Sharing));
        assert_optimal(&fallen, optimum, "fallen back");
    }
}

#[test]
fn hierarchies_and_overlapping_groups_reach_the_conic_optimum() {
    let overlapping = |q: f64| {
        vec![
            level(&[&[0, 1], &[1, 2, 3], &[3, 0]], 1.5, q, 1.2),
            level(&[&[2], &[0, 1, 2, 3]], 2.0, 1.5, 0.4),
        ]
    };
    let mut cases = Vec::new();
    for (p, q) in [(2.0, 2.0), (2.0, 1.0), (1.1, 1.5), (1.0, 1.0)] {
        cases.push((format!("tree {p} {q}"), tree(p, q)));
        cases.push((format!("overlapping {q}"), overlapping(q)));
    }
    for machine in machines() {
        for (name, terms) in &cases {
            let (own, conic): (Vec<_>, Vec<_>) = terms.iter().cloned().unzip();
            let model = fit(&machine, SharingSpec::own(own), SolverSpec::Newton, 1e-8);
            let passes = model.outcome().trace.len();
            assert!(passes <= 30, "{name}: {passes} passes");
            assert_optimal(&model, optimum(&machine, &conic), name);
        }
    }
}

#[test]
fn epf_and_newton_bracket_the_same_optimum_of_a_tree() {
    for machine in machines() {
        let terms = || tree(2.0, 2.0).into_iter().map(|(term, _)| term);
        let newton = fit(
            &machine,
            SharingSpec::own(terms()),
            SolverSpec::Newton,
            1e-6,
        );
        let epf = SolverSpec::Epf(Epf::default());
        let epf = fit(&machine, SharingSpec::own(terms()), epf, 1e-6);
        let (newton, epf) = (newton.outcome(), epf.outcome());
        assert!(newton.status.is_converged() && epf.status.is_converged());
        assert!(newton.bound <= epf.objective && epf.bound <= newton.objective);
    }
}

#[test]
fn a_level_of_one_group_is_common_and_one_of_single_tasks_is_group() {
    let all: &[&[usize]] = &[&[3, 1, 0, 2]];
    let each: &[&[usize]] = &[&[0], &[1], &[2], &[3]];
    for machine in machines() {
        for (p, q) in [(1.0, 1.0), (2.0, 1.0), (1.5, 3.0)] {
            let pscs = [level(all, p, q, 1.0).0, level(each, p, q, 1.0).0];
            let pairs = [
                (vec![level(all, p, q, 1.5).0], SharingSpec::common(p, 1.5)),
                (
                    vec![level(each, p, q, 1.5).0],
                    SharingSpec::group(p, q, 1.5),
                ),
                (pscs.to_vec(), SharingSpec::pscs(p, q, 1.0)),
            ];
            for (own, known) in pairs {
                let name = format!("{known:?}");
                let known = fit(&machine, known, SolverSpec::Newton, 1e-8);
                let own = fit(&machine, SharingSpec::own(own), SolverSpec::Newton, 1e-8);
                let (a, b) = (own.outcome().objective, known.outcome().objective);
                assert!((a - b).abs() <= 1e-8 * b.abs(), "{name}: {a} and {b}");
                assert_eq!(own.common().is_some(), known.common().is_some(), "{name}");
                assert_eq!(own.specific().is_some(), known.specific().is_some());
                for (a, b) in own.weights().values().iter().zip(known.weights().values()) {
                    assert!((a - b).abs() < 1e-3, "{name}: {a} and {b}");
                }
            }
        }
    }
}

#[test]
fn one_s_own_terms_stand_beside_registered_ones_and_the_model_knows_them_all() {
    let sharing = SharingSpec::sum(vec![
        TermSpec::Own(OwnTerm(clinics(true))),
        TermSpec::Group {
            p: 2.0,
            q: 1.0,
            radius: 0.5,
        },
    ]);
    let machine = MachineSpec::svc(2.0);
    let model = fit(&machine, sharing.clone(), SolverSpec::Newton, 1e-6);
    let [clinics, specific] = model.parts() else {
        panic!("two parts");
    };
    assert_eq!((&*clinics.label, &*specific.label), ("clinics", "specific"));
    assert_eq!(clinics.reach, Reach::groups([vec![0, 2], vec![3]]));
    assert_eq!(model.specific(), Some(&specific.weights));
    assert_eq!(model.common(), None);
    for task in 0..TASKS {
        let row = [Some(0), None, Some(0), Some(1)][task];
        for (kernel, weight) in model.weights().row(task).iter().enumerate() {
            let shared = row.map_or(0.0, |row| clinics.weights.row(row)[kernel]);
            assert_eq!(*weight, shared + specific.weights.row(task)[kernel]);
        }
    }
    // It has no name to be saved by.
    let error = model.to_bytes().unwrap_err();
    assert!(
        matches!(
            error,
            Error::Param {
                name: "sharing",
                ..
            }
        ),
        "{error}"
    );
    assert!(serde_json::to_string(&sharing).is_err());
    assert_eq!(sharing, sharing.clone());
    assert_ne!(
        SharingSpec::own([self::clinics(true)]),
        SharingSpec::own([self::clinics(true)])
    );
}

#[test]
fn a_model_of_the_same_terms_is_a_start() {
    let terms: Vec<Arc<dyn Term>> = tree(2.0, 1.0).into_iter().map(|(term, _)| term).collect();
    let machine = MachineSpec::svc(2.0);
    let problem = problem(&machine, SharingSpec::own(terms), SolverSpec::Newton);
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let mut fitting = Fitting {
        tolerance: 1e-6,
        ..Fitting::default()
    };
    let cold = prepared.fit(&mut fitting).unwrap();
    fitting.start = Some(&cold);
    let warm = prepared.fit(&mut fitting).unwrap();
    assert!(warm.outcome().trace.len() < cold.outcome().trace.len());
}

#[test]
fn groups_that_make_no_sense_are_refused() {
    let shape = Shape {
        tasks: 3,
        kernels: 2,
    };
    let refused = |groups: &[&[usize]]| {
        let (term, _) = level(groups, 2.0, 1.0, 1.0);
        let error = SharingSpec::own([term]).build(shape).unwrap_err();
        error.to_string()
    };
    assert!(refused(&[]).contains("at least one group"));
    assert!(refused(&[&[0, 1, 2], &[]]).contains("at least one task"));
    assert!(refused(&[&[0, 1, 2], &[3]]).contains("below 3"));
    assert!(refused(&[&[0, 1, 2, 1]]).contains("at most once"));
    assert!(refused(&[&[0, 2]]).contains("task number 2"));
    let (term, _) = level(&[&[0, 1, 2]], 0.5, 1.0, 1.0);
    assert!(SharingSpec::own([term]).build(shape).is_err());
    // What one level leaves out another may reach.
    let (some, _) = level(&[&[0, 2]], 2.0, 1.0, 1.0);
    let common: Arc<dyn Term> = Arc::new(Common(LpBall {
        p: 2.0,
        radius: 1.0,
    }));
    let group: Arc<dyn Term> = Arc::new(Group {
        p: 2.0,
        q: 1.0,
        radius: 1.0,
    });
    for other in [common, group] {
        let sharing = SharingSpec::own([Arc::clone(&some), other]);
        let sharing = sharing.build(shape).unwrap();
        assert!(!sharing.is_product());
        assert!(sharing.violation(&sharing.start()) <= 1e-12);
    }
}
