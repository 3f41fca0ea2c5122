//! Kernels between tasks, k(x, z) c(t, u), against matrices that are multiplied entry by entry here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{
    Fitting, Input, Model, Normalization, Precision, Preparation, Problem, ProblemSpec, Rows,
    Samples, Status, Storage, TargetScale, Targets, Task, TaskTree,
};
use mtmkl_testkit::bracket;
use mtmkl_testkit::conic::{self, Machine, Set, Term};
use mtmkl_testkit::generate::{self, Random};

const DIMENSION: usize = 3;
const SIMILARITY: [f64; 9] = [1.0, 0.5, -0.2, 0.5, 1.0, 0.0, -0.2, 0.0, 2.0];

/// Samples of three tasks, two of them in one group, in any order.
struct Data {
    n: usize,
    points: Vec<f64>,
    of: Vec<usize>,
    labels: Vec<f64>,
    values: Vec<f64>,
    kernels: Arc<TaskKernels>,
}

impl Data {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n = 27;
        let points = generate::points(&mut random, n, DIMENSION);
        let names = ["a", "b", "c"].map(String::from);
        let groups = [("ab", vec!["a", "b"]), ("c", vec!["c"])];
        let tree = TaskTree::overlapping(groups.map(|(name, tasks)| {
            (
                name.to_string(),
                tasks.into_iter().map(String::from).collect(),
            )
        }));
        let kernels = TaskKernels::new(names.to_vec()).unwrap();
        let kernels = kernels.with_tree(&tree.unwrap()).unwrap();
        let kernels = kernels.with_similarity(SIMILARITY.to_vec()).unwrap();
        Self {
            n,
            labels: generate::labels(&mut random, &points, n, DIMENSION),
            values: generate::values(&mut random, &points, n, DIMENSION),
            of: (0..n).map(|i| [0, 1, 2, 1, 0, 2, 2][i % 7]).collect(),
            points,
            kernels: Arc::new(kernels),
        }
    }

    fn samples(&self) -> Samples {
        let samples = Samples::new(self.points.clone(), self.n, DIMENSION).unwrap();
        let kernels = Arc::clone(&self.kernels);
        samples.from_tasks(kernels, self.of.clone()).unwrap()
    }

    fn targets(&self, kind: TargetKind) -> Targets {
        match kind {
            TargetKind::Labels => Targets::Labels(self.labels.clone()),
            TargetKind::Values => Targets::Values(self.values.clone()),
            TargetKind::Unlabelled => Targets::Unlabelled,
        }
    }

    fn problem(&self, kernels: &[&str], machine: &MachineSpec, sharing: SharingSpec) -> Problem {
        let mut spec = ProblemSpec::new(views(kernels), machine.clone(), sharing);
        spec.normalize = Normalization::None;
        spec.target_scale = TargetScale::None;
        let targets = self.targets(machine.entry().unwrap().targets);
        let task = Task::new("all", targets);
        Problem::new(spec, vec![self.samples()], vec![task]).unwrap()
    }

    /// c of two tasks, by hand.
    fn similar(word: &str, t: usize, u: usize) -> f64 {
        let is = |yes: bool| f64::from(u8::from(yes));
        match word {
            "own" => is(t == u),
            "group" => is((t < 2) == (u < 2)),
            "similarity" => SIMILARITY[3 * t + u],
            _ => 1.0,
        }
    }

    /// K∘C of a specification, by other code.
    fn gram(&self, spec: &str) -> Vec<f64> {
        let (kernel, word) = spec.split_once('*').unwrap_or((spec, "all"));
        let mut gram = match kernel {
            "linear" => generate::linear_gram(&self.points, self.n, DIMENSION),
            "rbf:gamma=0.3" => generate::gaussian_gram(&self.points, self.n, DIMENSION, 0.3),
            _ => vec![1.0; self.n * self.n],
        };
        for (at, value) in gram.iter_mut().enumerate() {
            *value *= Self::similar(word, self.of[at / self.n], self.of[at % self.n]);
        }
        gram
    }
}

const KERNELS: [&str; 6] = [
    "linear",
    "linear*own",
    "rbf:gamma=0.3*group",
    "rbf:gamma=0.3",
    "rbf:gamma=0.3*similarity",
    "constant*own",
];

fn views(kernels: &[&str]) -> Vec<KernelView> {
    let views = kernels.iter().flat_map(|spec| parse_kernels(spec).unwrap());
    views.collect()
}

fn fit(problem: &Problem, tolerance: f64) -> Model {
    let mut fitting = Fitting {
        tolerance,
        max_passes: 500,
        ..Fitting::default()
    };
    problem.fit(&mut fitting).unwrap()
}

fn machines() -> [MachineSpec; 4] {
    [
        MachineSpec::svc(2.0),
        MachineSpec::logistic(2.0),
        MachineSpec::svr(2.0, 0.1),
        MachineSpec::krr(0.5),
    ]
}

/// The conic statement of a machine on these samples.
fn stated(data: &Data, machine: &MachineSpec, kernels: &[&str]) -> conic::Task {
    let upper = vec![machine.number("C"); data.n];
    conic::Task {
        machine: match machine.name() {
            "svc" => Machine::Svc {
                y: data.labels.clone(),
                upper,
            },
            "logistic" => Machine::Logistic {
                y: data.labels.clone(),
                upper,
            },
            "svr" => Machine::Svr {
                y: data.values.clone(),
                upper,
                epsilon: machine.number("epsilon"),
            },
            _ => Machine::Krr {
                y: data.values.clone(),
                lambda: machine.number("lambda"),
            },
        },
        samples: data.n,
        grams: kernels.iter().map(|spec| data.gram(spec)).collect(),
    }
}

#[test]
fn the_optimum_is_that_of_the_products() {
    let data = Data::new(1);
    for machine in &machines() {
        // The last: separate functions with one offset for all.
        for kernels in [&KERNELS[..], &["linear*own", "rbf:gamma=0.3*own"]] {
            let task = stated(&data, machine, kernels);
            let optimum = bracket::optimum(
                &[task],
                &[Term::Common(Set::LpBall {
                    p: 2.0,
                    radius: 1.0,
                })],
            );
            for solver in [SolverSpec::Newton, SolverSpec::Epf(Epf::default())] {
                let mut problem = data.problem(kernels, machine, SharingSpec::lp(2.0, 1.0));
                if solver != SolverSpec::Newton {
                    let mut spec = problem.spec().clone();
                    spec.solver = solver;
                    let tasks = problem.tasks().to_vec();
                    problem = Problem::new(spec, problem.samples().to_vec(), tasks).unwrap();
                }
                let model = fit(&problem, 1e-6);
                let outcome = model.outcome();
                assert_eq!(outcome.status, Status::Converged, "{machine:?}");
                let error = (outcome.objective - optimum).abs() / optimum.abs();
                assert!(
                    error <= 1e-5,
                    "{machine:?}: {} {optimum}",
                    outcome.objective
                );
            }
        }
    }
}

#[test]
fn predictions_are_sums_over_products() {
    let data = Data::new(2);
    let problem = data.problem(
        &KERNELS,
        &MachineSpec::svr(2.0, 0.1),
        SharingSpec::lp(2.0, 1.0),
    );
    let model = fit(&problem, 1e-8);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let rows = Rows::new(&data.points, data.n, DIMENSION).unwrap();
    let (theta, machine, set) = (
        model.weights().row(0),
        &model.tasks()[0],
        &model.support_sets()[0],
    );
    let own = ["a", "b", "c"].map(|name| data.kernels.origin(name, &[]));
    let grouped = data.kernels.origin("d", &[("group".into(), "ab".into())]);
    let nowhere = data
        .kernels
        .origin("d", &[("group".into(), "north".into())]);
    // By hand: c towards each task, for the kernels in order.
    let towards = |at: usize, spec: &str, u: usize| {
        let word = spec.split_once('*').map_or("all", |(_, word)| word);
        match (at, word) {
            (_, "all") => 1.0,
            (0..=2, word) => Data::similar(word, at, u),
            (3, "group") => f64::from(u8::from(u < 2)),
            _ => 0.0,
        }
    };
    for (at, origin) in own.iter().chain([&grouped, &nowhere]).enumerate() {
        let input = Input {
            origin: Some(origin),
            ..Input::from(rows)
        };
        let found = model.decision("all", input).unwrap();
        assert_eq!(found, again.decision("all", input).unwrap());
        let parts = model.contributions("all", input).unwrap();
        for (row, &found) in found.iter().enumerate() {
            let mut wanted = machine.offset;
            for (kernel, spec) in KERNELS.iter().enumerate() {
                let plain = data.gram(spec.split_once('*').map_or(spec, |(plain, _)| plain));
                let support = machine.support.iter().zip(&machine.beta);
                let sum: f64 = support
                    .map(|(&s, beta)| {
                        let i = set.positions[s];
                        beta * plain[i * data.n + row] * towards(at, spec, data.of[i])
                    })
                    .sum();
                assert!((parts.row(kernel)[row] - theta[kernel] * sum).abs() < 1e-9);
                wanted += theta[kernel] * sum;
            }
            assert!((found - wanted).abs() < 1e-9, "{found} {wanted}");
        }
    }
    // Without a word about where they come from they are of a task that nobody knows.
    let plain = model.decision("all", rows).unwrap();
    let input = Input {
        origin: Some(&nowhere),
        ..Input::from(rows)
    };
    assert_eq!(plain, model.decision("all", input).unwrap());
}

#[test]
fn all_alone_is_the_pooled_fit_and_own_alone_machines_with_one_theta() {
    let data = Data::new(3);
    let kernels = ["linear", "rbf:gamma=0.3"];
    for machine in &machines() {
        let pooled = data.problem(&kernels, machine, SharingSpec::lp(2.0, 1.0));
        let all = data.problem(
            &["linear*all", "rbf:gamma=0.3*all"],
            machine,
            SharingSpec::lp(2.0, 1.0),
        );
        let (pooled, all) = (fit(&pooled, 1e-6), fit(&all, 1e-6));
        assert_eq!(pooled.weights(), all.weights());
        assert_eq!(pooled.outcome().objective, all.outcome().objective);
    }
    let machine = MachineSpec::krr(0.5);
    let own = fit(
        &data.problem(
            &["linear*own", "rbf:gamma=0.3*own"],
            &machine,
            SharingSpec::lp(2.0, 1.0),
        ),
        1e-8,
    );
    // The same as three machines on three sample sets.
    let mut spec = ProblemSpec::new(views(&kernels), machine, SharingSpec::common(2.0, 1.0));
    spec.normalize = Normalization::None;
    spec.target_scale = TargetScale::None;
    let (mut sets, mut tasks) = (Vec::new(), Vec::new());
    for task in 0..3 {
        let rows: Vec<usize> = (0..data.n).filter(|&i| data.of[i] == task).collect();
        let points = rows
            .iter()
            .flat_map(|&i| &data.points[i * DIMENSION..(i + 1) * DIMENSION]);
        sets.push(Samples::new(points.copied().collect(), rows.len(), DIMENSION).unwrap());
        let values = rows.iter().map(|&i| data.values[i]).collect();
        tasks.push(Task::new(format!("{task}"), Targets::Values(values)).on(task));
    }
    let separate = fit(&Problem::new(spec, sets, tasks).unwrap(), 1e-8);
    let (one, three) = (own.outcome().objective, separate.outcome().objective);
    assert!((one - three).abs() <= 2e-8 * three, "{one} {three}");
    for (a, b) in own.weights().row(0).iter().zip(separate.weights().row(0)) {
        assert!((a - b).abs() < 1e-4, "{a} {b}");
    }
}

/// However values are kept, in whatever precision, on whatever part of the samples.
#[test]
fn storage_precision_and_views_make_no_difference() {
    let data = Data::new(4);
    for machine in &machines() {
        let problem = data.problem(&KERNELS, machine, SharingSpec::lp(1.5, 1.0));
        let model = fit(&problem, 1e-8);
        for (storage, precision) in [
            (Storage::Mapped, Precision::Double),
            (Storage::Kept, Precision::Single),
            (Storage::Mapped, Precision::Single),
        ] {
            let preparation = Preparation {
                storage: Some(storage),
                precision,
                ..Preparation::default()
            };
            let mut fitting = Fitting {
                tolerance: 1e-5,
                ..Fitting::default()
            };
            let other = problem
                .prepare(&preparation)
                .unwrap()
                .fit(&mut fitting)
                .unwrap();
            assert!(!other.outcome().is_rounded);
            assert_eq!(other.outcome().status, Status::Converged);
            let (a, b) = (other.outcome().objective, model.outcome().objective);
            assert!(
                (a - b).abs() <= 2e-5 * b,
                "{machine:?} {storage:?} {precision:?}: {a} {b}"
            );
        }
        // Some rows in another order: read through a view, copied together, and as a problem of their own.
        let rows: Vec<usize> = (0..data.n).rev().filter(|i| i % 4 != 1).collect();
        let pick = |all: &[f64]| rows.iter().map(|&i| all[i]).collect::<Vec<f64>>();
        let targets = match machine.entry().unwrap().targets {
            TargetKind::Labels => Targets::Labels(pick(&data.labels)),
            _ => Targets::Values(pick(&data.values)),
        };
        let task = Task::new("all", targets.clone());
        let spec = problem.spec().clone();
        let viewed = task.clone().with_rows(rows.clone());
        let viewed = Problem::new(spec.clone(), problem.samples().to_vec(), vec![viewed]).unwrap();
        let points = rows
            .iter()
            .flat_map(|&i| &data.points[i * DIMENSION..(i + 1) * DIMENSION]);
        let alone = Samples::new(points.copied().collect(), rows.len(), DIMENSION).unwrap();
        let of = rows.iter().map(|&i| data.of[i]).collect();
        let alone = alone.from_tasks(Arc::clone(&data.kernels), of).unwrap();
        let alone = fit(&Problem::new(spec, vec![alone], vec![task]).unwrap(), 1e-8);
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        let all: Vec<usize> = (0..KERNELS.len()).collect();
        let part = viewed
            .prepare_from(&prepared, &all, prepared.pool())
            .unwrap();
        let mut fitting = Fitting {
            tolerance: 1e-8,
            ..Fitting::default()
        };
        let copied = part.fit(&mut fitting).unwrap();
        for other in [fit(&viewed, 1e-8), copied] {
            let (a, b) = (other.outcome().objective, alone.outcome().objective);
            assert!((a - b).abs() <= 3e-8 * b.abs(), "{machine:?}: {a} {b}");
        }
    }
}

#[test]
fn what_is_not_there_is_named() {
    let data = Data::new(5);
    let refused = |kernels: &[&str], samples: Samples| {
        let spec = ProblemSpec::new(
            views(kernels),
            MachineSpec::svc(1.0),
            SharingSpec::simplex(),
        );
        let task = Task::new("all", Targets::Labels(data.labels.clone()));
        Problem::new(spec, vec![samples], vec![task])
            .unwrap_err()
            .to_string()
    };
    let plain = Samples::new(data.points.clone(), data.n, DIMENSION).unwrap();
    assert!(refused(&["linear*own"], plain.clone()).contains("not said to be of any"));
    let unknown = refused(&["linear", "rbf*site"], data.samples());
    assert!(
        unknown.contains("`site`") && unknown.contains("all, own, group, similarity"),
        "{unknown}"
    );
    assert!(
        plain
            .clone()
            .from_tasks(Arc::clone(&data.kernels), vec![0; 3])
            .is_err()
    );
    assert!(
        plain
            .from_tasks(Arc::clone(&data.kernels), vec![3; 27])
            .is_err()
    );
    let kernels = || TaskKernels::new(["a", "b"].map(String::from).to_vec()).unwrap();
    for bad in [
        vec![1.0, 0.5, 0.4, 1.0],
        vec![1.0, 2.0, 2.0, 1.0],
        vec![1.0; 3],
        vec![f64::NAN; 4],
    ] {
        assert!(kernels().with_similarity(bad).is_err());
    }
    assert!(TaskKernels::new(vec!["a".into(), "a".into()]).is_err());
    assert!(
        kernels()
            .meant_by("group")
            .unwrap_err()
            .to_string()
            .contains("all, own")
    );
    assert_eq!(
        data.kernels.meant_by("group").unwrap(),
        [Some("group".to_string())]
    );
}
