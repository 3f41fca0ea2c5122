//! Gram matrices and models used again: only where they are those of the problem at hand, and within the memory of the run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use mtmkl::kernel::{Base, Columns, Kernel, KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Error, Fitting, Ledger, Model, Pool, Preparation, Problem, ProblemSpec, Samples, Storage,
    Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

const N: usize = 40;

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

fn samples() -> (Samples, Vec<f64>) {
    let mut random = Random::new(4);
    let points = generate::points(&mut random, N, 3);
    let labels = generate::labels(&mut random, &points, N, 3);
    (Samples::new(points, N, 3).unwrap(), labels)
}

const WHOLE: [&str; 3] = ["linear", "rbf:gamma=1|2", "rbf:gamma=1@f1,f2"];

fn problem(samples: &Samples, labels: &[f64], kernels: Vec<KernelView>) -> Problem {
    let task = Task::new("one", Targets::Labels(labels.to_vec()));
    let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    Problem::new(spec, vec![samples.clone()], vec![task]).unwrap()
}

/// The same problem on every second row.
fn half(problem: &Problem) -> Problem {
    let marked: Vec<bool> = (0..N).map(|i| i % 2 == 0).collect();
    let tasks = problem.tasks().iter().map(|task| task.restricted(&marked));
    Problem::new(
        problem.spec().clone(),
        problem.samples().to_vec(),
        tasks.collect(),
    )
    .unwrap()
}

fn refused(whole: &Problem, part: &Problem, positions: &[usize], words: &[&str]) {
    let prepared = whole.prepare(&Preparation::default()).unwrap();
    let reused = part.prepare_from(&prepared, positions, prepared.pool());
    let error = reused.unwrap_err();
    assert!(matches!(error, Error::Param { .. }), "{error:?}");
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "no `{word}` in: {message}");
    }
}

#[test]
fn only_the_kernels_themselves_serve() {
    let (samples, labels) = samples();
    let whole = problem(&samples, &labels, kernels(&WHOLE));
    let part = |specs: &[&str]| problem(&samples, &labels, kernels(specs));
    // The wrong position, the right kernel with another parameter, the right kernel on other columns.
    refused(
        &whole,
        &part(&["linear"]),
        &[1],
        &["`kernels`", "1, the position of `rbf:gamma=1`", "`linear`"],
    );
    refused(
        &whole,
        &part(&["linear", "rbf:gamma=3"]),
        &[0, 2],
        &[
            "2, the position of `rbf:gamma=2`",
            "`rbf:gamma=3`",
            "parameters",
        ],
    );
    refused(
        &whole,
        &part(&["rbf:gamma=1"]),
        &[3],
        &["3, the position of `rbf:gamma=1@f1,f2`", "columns"],
    );
    refused(&whole, &part(&["rbf:gamma=1@f1,f3"]), &[3], &["columns"]);
    refused(&whole, &part(&["linear"]), &[4], &["[4]", "below 4"]);
    refused(&whole, &part(&["linear"]), &[], &["[]", "1 positions"]);
    // Other words for the same are the same.
    let run = &mut Fitting::default();
    let prepared = whole.prepare(&Preparation::default()).unwrap();
    let mut same = kernels(&["gaussian:sigma=0.5", "rbf:gamma=1"]);
    same[1] = same[1].clone().on(Columns::Indices(vec![0, 1]));
    let same = problem(&samples, &labels, same);
    let reused = same.prepare_from(&prepared, &[2, 3], prepared.pool());
    let reused = reused.unwrap();
    let (a, b) = (reused.fit(run).unwrap(), same.fit(run).unwrap());
    let (a, b) = (a.outcome().objective, b.outcome().objective);
    assert!((a - b).abs() <= 1e-3 * b.abs(), "{a} and {b}");
}

/// 1 + c x'z
#[derive(Debug)]
struct Mine(f64);

impl Kernel for Mine {
    fn base(&self) -> Base {
        Base::Own
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        1.0 + self.0 * x.iter().zip(z).map(|(a, b)| a * b).sum::<f64>()
    }

    fn spec(&self) -> Option<String> {
        None
    }
}

#[test]
fn a_kernel_of_the_users_own_serves_for_itself_only() {
    let (samples, labels) = samples();
    let mine = KernelView::new("mine", Mine(1.0));
    let whole = problem(&samples, &labels, vec![mine.clone()]);
    let other = KernelView::new("mine", Mine(2.0));
    let equal = KernelView::new("mine", Mine(1.0));
    for view in [other, equal] {
        let part = problem(&samples, &labels, vec![view]);
        refused(&whole, &part, &[0], &["0, the position of `mine`"]);
    }
    let prepared = whole.prepare(&Preparation::default()).unwrap();
    let again = KernelView {
        kernel: Arc::clone(&mine.kernel),
        ..mine
    };
    let again = problem(&samples, &labels, vec![again]);
    assert!(again.prepare_from(&prepared, &[0], prepared.pool()).is_ok());
}

#[test]
fn what_is_done_to_the_kernels_must_be_the_same() {
    let (samples, labels) = samples();
    let whole = problem(&samples, &labels, kernels(&WHOLE));
    let changed = |change: fn(&mut ProblemSpec)| {
        let mut spec = whole.spec().clone();
        change(&mut spec);
        Problem::new(spec, whole.samples().to_vec(), whole.tasks().to_vec()).unwrap()
    };
    let all = [0, 1, 2, 3];
    let plain = changed(|spec| spec.normalize = false.into());
    refused(&whole, &plain, &all, &["`unit`", "`none`"]);
    let (elsewhere, _) = self::samples();
    let other = problem(&elsewhere, &labels, kernels(&WHOLE));
    refused(&whole, &other, &all, &["other samples", "same sample sets"]);
}

#[test]
fn copies_of_parts_hold_the_memory_limit() {
    let (samples, labels) = samples();
    let whole = problem(&samples, &labels, kernels(&WHOLE));
    let part = half(&whole);
    let pool = Pool::new(1).unwrap();
    let all = [0, 1, 2, 3];
    let fit = |memory_limit: u64| -> Result<(f64, u64), Error> {
        let ledger = Ledger::new(memory_limit);
        let whole = whole.prepare(&Preparation {
            ledger: ledger.clone(),
            storage: Some(Storage::Kept),
            pool: Some(pool.clone()),
            ..Preparation::default()
        })?;
        let prepared = part.prepare_from(&whole, &all, &pool)?;
        let model = prepared.fit(&mut Fitting::default())?;
        Ok((model.outcome().objective, ledger.peak()))
    };
    let (objective, most) = fit(u64::MAX).unwrap();
    let mut seen = [0; 2];
    for share in 1..=40 {
        let limit = most * share / 32;
        match fit(limit) {
            Ok((other, peak)) => {
                assert!(peak <= limit, "{peak} of {limit}");
                assert!((other - objective).abs() <= 1e-3);
                seen[0] += 1;
            }
            Err(Error::Memory {
                needed,
                limit: told,
                ..
            }) => {
                assert!(needed > limit && told == limit, "{needed} of {limit}");
                seen[1] += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(seen.iter().all(|&times| times > 5), "{seen:?}");
}

/// Targets of some kind from labels.
type Kind = fn(&[f64]) -> Targets;

/// One example of each machine, with targets of its kind.
fn machines() -> [(MachineSpec, Kind); 5] {
    let labels: Kind = |y| Targets::Labels(y.to_vec());
    let values: Kind = |y| Targets::Values(y.iter().map(|y| 0.7 * y).collect());
    let none: Kind = |_| Targets::Unlabelled;
    [
        (MachineSpec::svc(1.0), labels),
        (MachineSpec::svr(1.0, 0.1), values),
        (MachineSpec::krr(0.5), values),
        (MachineSpec::svdd(0.2), none),
        (MachineSpec::one_class(0.3), none),
    ]
}

fn of_machine(machine: &MachineSpec, targets: Targets, samples: &Samples) -> Problem {
    let spec = ProblemSpec::new(
        kernels(&["linear", "rbf:gamma=1"]),
        machine.clone(),
        SharingSpec::simplex(),
    );
    let task = Task::new("one", targets);
    Problem::new(spec, vec![samples.clone()], vec![task]).unwrap()
}

#[test]
fn a_model_of_another_machine_is_no_start() {
    let (samples, labels) = samples();
    let problems = machines().map(|(machine, targets)| {
        let problem = of_machine(&machine, targets(&labels), &samples);
        (machine, problem)
    });
    let models: Vec<Model> = problems
        .iter()
        .map(|(_, problem)| problem.fit(&mut Fitting::default()).unwrap())
        .collect();
    let mut pairs = 0;
    for (machine, problem) in &problems {
        let prepared = problem.prepare(&Preparation::default()).unwrap();
        for last in &models {
            let sharing = SharingSpec::simplex();
            let mut fitting = Fitting {
                start: Some(last),
                ..Fitting::default()
            };
            let fit = prepared.with(machine, &sharing).unwrap().fit(&mut fitting);
            if last.machine() == machine {
                assert!(fit.unwrap().outcome().status.is_converged());
                continue;
            }
            pairs += 1;
            let error = fit.unwrap_err();
            assert!(matches!(error, Error::Param { name: "start", .. }));
            let message = error.to_string();
            for name in [machine.build().name(), last.machine().build().name()] {
                assert!(message.contains(&format!("machine `{name}`")), "{message}");
            }
        }
    }
    assert_eq!(pairs, 20);
}

fn from(last: &Model) -> Fitting<'_> {
    Fitting {
        tolerance: 1e-7,
        start: Some(last),
        ..Fitting::default()
    }
}

#[test]
fn other_parameters_targets_and_rows_are_a_start() {
    let (samples, labels) = samples();
    let others = [
        MachineSpec::svc(30.0),
        MachineSpec::svr(0.1, 0.0),
        MachineSpec::krr(5.0),
        MachineSpec::svdd(1.0),
        MachineSpec::one_class(0.9),
    ];
    let run = || Fitting {
        tolerance: 1e-7,
        ..Fitting::default()
    };
    for ((machine, targets), other) in machines().into_iter().zip(others) {
        let last = of_machine(&machine, targets(&labels), &samples);
        let last = last.fit(&mut run()).unwrap();
        // The same rows with the targets turned around, and the other half of the rows of a model that saw one half.
        let mut turned = labels.clone();
        turned.reverse();
        let problem = of_machine(&other, targets(&turned), &samples);
        let on = |rows: Vec<usize>, machine: &MachineSpec| {
            let chosen: Vec<f64> = rows.iter().map(|&row| labels[row]).collect();
            let whole = of_machine(machine, targets(&labels), &samples);
            let task = Task::new("one", targets(&chosen)).with_rows(rows);
            Problem::new(whole.spec().clone(), whole.samples().to_vec(), vec![task]).unwrap()
        };
        let one = on((0..N).filter(|i| i % 2 == 0).collect(), &machine);
        let one = one.fit(&mut run()).unwrap();
        let two = on((0..N).filter(|i| i % 2 == 1).collect(), &other);
        // And some of its rows, as a fold has them.
        for (problem, last) in [(&problem, &last), (&two, &one), (&two, &last)] {
            let prepared = problem.prepare(&Preparation::default()).unwrap();
            let warm = prepared.fit(&mut from(last));
            let warm = warm.unwrap().outcome().objective;
            let cold = prepared.fit(&mut run()).unwrap().outcome().objective;
            assert!((warm - cold).abs() <= 1e-6 * cold.abs(), "{other:?}");
        }
        // A set of another size is other data.
        let rows = samples.rows().dense().unwrap()[..3 * (N - 1)].to_vec();
        let fewer = Samples::new(rows, N - 1, 3).unwrap();
        let error = of_machine(&machine, targets(&labels[..N - 1]), &fewer).fit(&mut from(&last));
        assert!(matches!(error, Err(Error::Param { name: "start", .. })));
    }
}
