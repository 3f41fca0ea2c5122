//! Kernel values from rows in blocks, and machines on a working set: the answers of matrices that are kept.
#![allow(clippy::unwrap_used, reason = "a failed test")]

use std::time::Duration;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{
    Error, Fitting, GivenGram, Ledger, Model, Pool, Preparation, Problem, ProblemSpec, Samples,
    Status, Storage, Targets, Task,
};
use mtmkl_testkit::generate::{Random, points};

const COLUMNS: usize = 5;

fn views(specs: &[&str]) -> Vec<KernelView> {
    let specs = specs.iter();
    specs
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

/// The machines, each with a cheap and a dear error.
fn machines() -> Vec<(MachineSpec, TargetKind)> {
    let smooth = vec![
        (MachineSpec::krr(3.0), TargetKind::Values),
        (MachineSpec::krr(0.03), TargetKind::Values),
        (MachineSpec::logistic(0.3), TargetKind::Labels),
        (MachineSpec::logistic(30.0), TargetKind::Labels),
    ];
    [boxes(), smooth].concat()
}

/// Those on a box.
fn boxes() -> Vec<(MachineSpec, TargetKind)> {
    vec![
        (MachineSpec::svc(0.3), TargetKind::Labels),
        (MachineSpec::svc(30.0), TargetKind::Labels),
        (MachineSpec::svr(0.2, 0.1), TargetKind::Values),
        (MachineSpec::svr(20.0, 0.3), TargetKind::Values),
        (MachineSpec::one_class(0.2), TargetKind::Unlabelled),
        (MachineSpec::svdd(0.1), TargetKind::Unlabelled),
    ]
}

fn sharings(machine: &MachineSpec) -> Vec<SharingSpec> {
    if machine.build().shrinks_kernels() {
        return vec![SharingSpec::simplex(), SharingSpec::tang(0.5)];
    }
    vec![
        SharingSpec::common(2.0, 1.0),
        SharingSpec::pscs(1.5, 1.0, 1.0),
        SharingSpec::group(2.0, 1.0, 1.0),
        SharingSpec::independent(1.0, 1.0),
    ]
}

fn targets(random: &mut Random, rows: &[f64], kind: TargetKind, task: usize) -> Targets {
    let value = |row: &[f64], noise: f64| row[task] - row[1] * row[2] + 0.7 * noise;
    let mut values = || -> Vec<f64> {
        let rows = rows.chunks_exact(COLUMNS);
        rows.map(|row| value(row, random.normal())).collect()
    };
    match kind {
        TargetKind::Labels => Targets::Labels(
            values()
                .iter()
                .map(|&v| if v > 0.0 { 1.0 } else { -1.0 })
                .collect(),
        ),
        TargetKind::Values => Targets::Values(values()),
        TargetKind::Unlabelled => Targets::Unlabelled,
    }
}

/// Two tasks on all samples of one set, and one on rows of its own in another.
fn problem(n: usize, machine: &MachineSpec, kind: TargetKind, sharing: SharingSpec) -> Problem {
    let mut random = Random::new(n as u64);
    let sets: Vec<Vec<f64>> = [n, n / 2].map(|n| points(&mut random, n, COLUMNS)).to_vec();
    let some: Vec<usize> = (0..n / 2).rev().filter(|i| i % 5 > 0).collect();
    let own: Vec<f64> = some
        .iter()
        .flat_map(|&i| sets[1][i * COLUMNS..(i + 1) * COLUMNS].to_vec())
        .collect();
    let mut tasks: Vec<Task> = (0..2)
        .map(|task| {
            Task::new(
                format!("t{task}"),
                targets(&mut random, &sets[0], kind, task),
            )
        })
        .collect();
    let mut last = Task::new("own", targets(&mut random, &own, kind, 3));
    last.samples = 1;
    last.rows = some.into_iter().collect();
    tasks.push(last);
    let sets = sets.into_iter().map(|values| {
        let count = values.len() / COLUMNS;
        Samples::new(values, count, COLUMNS).unwrap()
    });
    let kernels = views(&[
        "linear",
        "poly:degree=2",
        "rbf:sigma=0.5|1|2|4",
        "laplacian:gamma=0.3@f1..f3",
    ]);
    let spec = ProblemSpec::new(kernels, machine.clone(), sharing);
    Problem::new(spec, sets.collect(), tasks).unwrap()
}

fn preparation(storage: Storage, threads: usize, bytes: u64) -> Preparation {
    Preparation {
        storage: Some(storage),
        pool: Some(Pool::new(threads).unwrap()),
        ledger: Ledger::new(bytes),
        ..Preparation::default()
    }
}

fn fit(problem: &Problem, preparation: &Preparation, tolerance: f64) -> Model {
    let mut fitting = Fitting {
        tolerance,
        max_passes: 60,
        ..Fitting::default()
    };
    let prepared = problem.prepare(preparation).unwrap();
    let model = prepared.fit(&mut fitting).unwrap();
    assert!(preparation.ledger.peak() <= preparation.ledger.limit());
    model
}

/// Both are certified, so that neither optimum is beyond the other's bounds.
fn assert_same(kept: &Model, streamed: &Model, what: &str) {
    for model in [kept, streamed] {
        assert_eq!(model.outcome().status, Status::Converged, "{what}");
    }
    let (kept, streamed) = (kept.outcome(), streamed.outcome());
    let rounding = 1e-9 * kept.objective.abs();
    assert!(streamed.bound <= kept.objective + rounding, "{what}");
    assert!(kept.bound <= streamed.objective + rounding, "{what}");
}

#[test]
fn every_machine_with_every_sharing() {
    for (machine, kind) in machines() {
        for sharing in sharings(&machine) {
            let what = format!("{machine:?} {sharing:?}");
            let problem = problem(240, &machine, kind, sharing);
            let kept = fit(&problem, &preparation(Storage::Kept, 2, u64::MAX), 1e-5);
            let streamed = fit(&problem, &preparation(Storage::Streamed, 2, u64::MAX), 1e-5);
            assert_same(&kept, &streamed, &what);
            let again = fit(&problem, &preparation(Storage::Streamed, 1, u64::MAX), 1e-5);
            assert_eq!(again.weights(), streamed.weights(), "{what}: threads");
            assert_eq!(again.outcome().objective, streamed.outcome().objective);
        }
    }
}

/// With less memory than there are free samples, parts are solved one after the other.
#[test]
fn a_working_set_that_is_too_small_is_decomposed() {
    for (machine, kind) in [boxes()[1].clone(), boxes()[3].clone()] {
        let problem = problem(2300, &machine, kind, SharingSpec::common(2.0, 1.0));
        let kept = fit(&problem, &preparation(Storage::Mapped, 2, u64::MAX), 1e-3);
        let any = preparation(Storage::Streamed, 2, u64::MAX);
        let least = problem.memory_needed(Storage::Streamed, &any).unwrap();
        let streamed = fit(
            &problem,
            &preparation(Storage::Streamed, 2, least + (1 << 20)),
            1e-3,
        );
        assert_same(&kept, &streamed, &format!("{machine:?}"));
    }
}

/// With less memory than K(θ) takes, landmarks stand for it.
#[test]
fn a_linear_system_that_is_too_large_has_landmarks() {
    for (machine, kind) in [
        (MachineSpec::krr(0.3), TargetKind::Values),
        (MachineSpec::logistic(3.0), TargetKind::Labels),
    ] {
        let problem = problem(1300, &machine, kind, SharingSpec::common(2.0, 1.0));
        let kept = fit(&problem, &preparation(Storage::Mapped, 2, u64::MAX), 1e-4);
        let any = preparation(Storage::Streamed, 2, u64::MAX);
        let least = problem.memory_needed(Storage::Streamed, &any).unwrap() + (1 << 20);
        let fits = [2, 1].map(|threads| {
            fit(
                &problem,
                &preparation(Storage::Streamed, threads, least),
                1e-4,
            )
        });
        assert_same(&kept, &fits[0], &format!("{machine:?}"));
        assert_eq!(fits[0].weights(), fits[1].weights(), "{machine:?}: threads");
    }
}

/// What all tasks share, and what each has of its own, as blocks from rows.
#[test]
fn kernels_between_tasks_are_streamed() {
    let mut random = Random::new(3);
    let (tasks, each) = (4, 60);
    let rows = points(&mut random, tasks * each, COLUMNS);
    let labels = targets(&mut random, &rows, TargetKind::Labels, 0);
    let names = (0..tasks).map(|task| format!("t{task}")).collect();
    let kernels = TaskKernels::new(names).unwrap();
    let of = (0..tasks * each).map(|i| i % tasks).collect();
    let samples = Samples::new(rows, tasks * each, COLUMNS).unwrap();
    let samples = samples.from_tasks(kernels.into(), of).unwrap();
    let kernels = views(&[
        "linear",
        "linear*own",
        "rbf:sigma=2",
        "rbf:sigma=2*own",
        "constant*own",
    ]);
    for machine in [MachineSpec::svc(1.0), MachineSpec::logistic(1.0)] {
        let what = format!("{machine:?}, own and all");
        let spec = ProblemSpec::new(kernels.clone(), machine, SharingSpec::lp(2.0, 1.0));
        let task = Task::new("all", labels.clone());
        let problem = Problem::new(spec, vec![samples.clone()], vec![task]).unwrap();
        let kept = fit(&problem, &preparation(Storage::Kept, 2, u64::MAX), 1e-6);
        let streamed = fit(&problem, &preparation(Storage::Streamed, 2, u64::MAX), 1e-6);
        assert_same(&kept, &streamed, &what);
    }
}

/// Whoever stops it has a machine with a gap that is true, also before any sweep over all samples was made.
#[test]
fn an_early_end_keeps_what_is_known() {
    for (machine, kind) in machines() {
        let problem = problem(1500, &machine, kind, sharings(&machine).remove(0));
        let optimum = fit(&problem, &preparation(Storage::Mapped, 2, u64::MAX), 1e-5);
        let prepared = problem
            .prepare(&preparation(Storage::Streamed, 2, u64::MAX))
            .unwrap();
        for milliseconds in [0, 2, 5, 10, 20, 40, 80, 200] {
            let mut fitting = Fitting {
                tolerance: 1e-9,
                time_limit: Some(Duration::from_millis(milliseconds)),
                ..Fitting::default()
            };
            let model = prepared.fit(&mut fitting).unwrap();
            let (found, known) = (model.outcome(), optimum.outcome());
            let rounding = 1e-9 * known.objective.abs();
            let case = format!("{machine:?}, {milliseconds} ms: {found:?}");
            assert!(found.bound <= known.objective + rounding, "{case}");
            assert!(found.objective >= known.bound - rounding, "{case}");
        }
    }
}

/// Prices 10¹² times apart on rows some of which are the same: rounding is more than the accuracy asked for, and rounds come to an end all the same. The
/// bounds are those of kernel matrices that are kept.
#[test]
fn rounding_is_not_searched_for_ever() {
    let cases = [
        (10, 143.7, ["linear", "rbf:gamma=0.01"]),
        (16, 1.0, ["rbf:gamma=1", "rbf:gamma=0.01"]),
        (28, 143.7, ["rbf:gamma=1e12", "rbf:gamma=0.01"]),
    ];
    for (n, lambda, kernels) in cases {
        let rows: Vec<f64> = (0..n).map(|i| (i % 7) as f64).collect();
        let values = (0..n).map(|i| {
            let size = if i % 9 == 4 { 1000.0 } else { 1.0 };
            size * ((i * 7 % 5) as f64 - 2.0)
        });
        let weights = (0..n).map(|i| [1e12, 1e12, 1.0, 1.0][(i * i + i / 3) % 4]);
        let task = Task::new("task", Targets::Values(values.collect()));
        let spec = ProblemSpec::new(
            views(&kernels),
            MachineSpec::krr(lambda),
            SharingSpec::simplex(),
        );
        let samples = Samples::new(rows, n, 1).unwrap();
        let task = task.with_weights(weights.collect());
        let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
        let fit = |storage: Storage| {
            let prepared = problem.prepare(&preparation(storage, 1, u64::MAX)).unwrap();
            let mut fitting = Fitting {
                tolerance: 1e-12,
                time_limit: Some(Duration::from_secs(30)),
                ..Fitting::default()
            };
            prepared.fit(&mut fitting).unwrap().outcome().clone()
        };
        let (kept, streamed) = (fit(Storage::Kept), fit(Storage::Streamed));
        for found in [&kept, &streamed] {
            let is_end = matches!(found.status, Status::Converged | Status::Stalled);
            assert!(is_end, "{n}: {found:?}");
        }
        assert!(streamed.bound <= kept.objective && kept.bound <= streamed.objective);
    }
}

/// Before anything is computed, with the way out.
#[test]
fn what_cannot_be_streamed_says_why() {
    let refused = |problem: &Problem, storage: Option<Storage>| {
        let preparation = Preparation {
            storage,
            ledger: Ledger::new(1 << 16),
            ..Preparation::default()
        };
        problem.prepare(&preparation).unwrap_err()
    };
    let mut random = Random::new(5);
    let n = 300;
    let rows = points(&mut random, n, COLUMNS);
    let with = |machine: MachineSpec, kernel: &str, targets: Targets| {
        let gram = GivenGram {
            name: "own".into(),
            values: (0..n * n)
                .map(|at| f64::from(u8::from(at / n == at % n)))
                .collect::<Vec<_>>()
                .into(),
        };
        let samples = Samples::new(rows.clone(), n, COLUMNS).unwrap();
        let samples = samples.with_gram(gram).unwrap();
        let spec = ProblemSpec::new(views(&[kernel]), machine, SharingSpec::lp(2.0, 1.0));
        Problem::new(spec, vec![samples], vec![Task::new("t", targets)]).unwrap()
    };
    let labels = targets(&mut random, &rows, TargetKind::Labels, 0);
    let cases = [
        (
            with(
                MachineSpec::svc(1.0),
                "precomputed:name=own",
                labels.clone(),
            ),
            "given as a matrix",
        ),
        (
            with(MachineSpec::svc(1.0), "sigmoid", labels.clone()),
            "positive semi-definite",
        ),
    ];
    for (problem, reason) in cases {
        let by_name = refused(&problem, Some(Storage::Streamed)).to_string();
        assert!(
            by_name.contains("storage") && by_name.contains(reason),
            "{by_name}"
        );
        let error = refused(&problem, None);
        let text = error.to_string();
        assert!(
            matches!(error, Error::Memory { .. }) && text.contains(reason),
            "{text}"
        );
        assert!(
            text.contains("bytes") && text.contains("raise the memory limit"),
            "{text}"
        );
    }
    // What fits by streaming alone is streamed.
    let n = 3000;
    let rows = points(&mut random, n, COLUMNS);
    let task = Task::new(
        "t",
        self::targets(&mut random, &rows, TargetKind::Labels, 0),
    );
    let spec = ProblemSpec::new(
        views(&["rbf:sigma=1|2|4|8"]),
        MachineSpec::svc(1.0),
        SharingSpec::lp(2.0, 1.0),
    );
    let samples = Samples::new(rows, n, COLUMNS).unwrap();
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let any = Preparation::default();
    let least = problem.memory_needed(Storage::Streamed, &any).unwrap();
    let mapped = problem.memory_needed(Storage::Mapped, &any).unwrap();
    assert!(least < mapped, "{least} {mapped}");
    let preparation = Preparation {
        ledger: Ledger::new(least),
        ..Preparation::default()
    };
    let prepared = problem.prepare(&preparation).unwrap();
    assert_eq!(prepared.storage(), Storage::Streamed);
}

/// Large parts are in single precision where that has the range of K, and the gap is smaller than its digits would allow.
#[test]
fn large_parts_are_rounded_and_the_certificate_is_not() {
    let mut random = Random::new(7);
    let n = 2400;
    let rows = points(&mut random, n, COLUMNS);
    let labels = targets(&mut random, &rows, TargetKind::Labels, 0);
    // The same problem in other units: kernels so many times as large, errors so many times as cheap.
    for size in [1.0, 1e32] {
        let spec = ProblemSpec::new(
            views(&["rbf:sigma=0.3|0.6|1"]),
            MachineSpec::svc(10.0 / size),
            SharingSpec::lp(2.0, size),
        );
        let samples = Samples::new(rows.clone(), n, COLUMNS).unwrap();
        let task = Task::new("t", labels.clone());
        let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
        let kept = fit(&problem, &preparation(Storage::Mapped, 2, u64::MAX), 1e-9);
        let streamed = fit(&problem, &preparation(Storage::Streamed, 2, u64::MAX), 1e-9);
        assert_same(&kept, &streamed, &format!("{size}"));
        let free = streamed.outcome().objective;
        assert!(free > 0.0 && streamed.outcome().gap <= 1e-9, "{size}");
    }
}
