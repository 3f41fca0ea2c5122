//! A fit on an engine that is not the crate's: driven through a channel, by somebody who asks and tells.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::thread;

use mtmkl::engine::{Answer, Engine, Evaluation, Question, channel};
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{
    Definiteness, Error, Fitting, GivenGram, Model, Preparation, Problem, ProblemSpec, Samples,
    Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

const N: usize = 60;

fn problem(machine: MachineSpec, sharing: SharingSpec, solver: SolverSpec) -> Problem {
    let mut random = Random::new(9);
    let points = generate::points(&mut random, N, 3);
    let labels = generate::labels(&mut random, &points, N, 3);
    let targets = |labels: Vec<f64>| match machine.name() {
        "krr" => Targets::Values(labels),
        _ => Targets::Labels(labels),
    };
    let half: Vec<bool> = (0..N).map(|i| i % 2 == 0).collect();
    let tasks = vec![
        Task::new("all", targets(labels.clone())),
        Task::new("half", targets(labels)).restricted(&half),
    ];
    let mut kernels = parse_kernels("rbf:gamma=0.1|1|10").unwrap();
    kernels.extend(parse_kernels("linear").unwrap());
    let mut spec = ProblemSpec::new(kernels, machine, sharing);
    spec.solver = solver;
    let samples = Samples::new(points, N, 3).unwrap();
    Problem::new(spec, vec![samples], tasks).unwrap()
}

/// The rounds of a fit, the work done by the crate's own engine at the other end of a channel.
fn driven(problem: &Problem, start: Option<Model>) -> (Model, usize) {
    let prepared = problem.prepare(&Preparation::default()).unwrap();
    let mut local = prepared.engine();
    let (mut engine, driver) = channel(problem.shape(), true);
    let problem = problem.clone();
    let fit = thread::spawn(move || {
        let mut fitting = Fitting {
            tolerance: 1e-7,
            start: start.as_ref(),
            ..Fitting::default()
        };
        problem.fit_on(&mut engine, &mut fitting)
    });
    let mut rounds = 0;
    // The numbers at the other end are its own.
    let mut numbers = vec![0];
    while let Some(question) = driver.ask() {
        driver.tell(match question {
            Question::Evaluate {
                number,
                theta,
                request,
                keep,
                start,
            } => {
                rounds += 1;
                assert_eq!(number, rounds);
                let keep: Vec<usize> = keep.into_iter().map(|number| numbers[number]).collect();
                local.keep(&keep);
                if let Some(beta) = start {
                    local.start_from(&beta).unwrap();
                }
                let evaluation = local.evaluate(&theta, &request).unwrap();
                numbers.push(evaluation.number);
                Answer::Evaluation(evaluation)
            }
            Question::Machines(of) => {
                let of: Vec<usize> = of.into_iter().map(|number| numbers[number]).collect();
                Answer::Machines(local.machines(&of).unwrap())
            }
            Question::Mixtures(mixtures) => {
                let known = |(number, weight): &(usize, f64)| (numbers[*number], *weight);
                let of = |mixture: &Vec<_>| mixture.iter().map(known).collect();
                let mixtures: Vec<_> = mixtures.iter().map(of).collect();
                Answer::Mixtures(local.mixtures(&mixtures).unwrap())
            }
            other => panic!("{other:?}"),
        });
    }
    (fit.join().unwrap().unwrap(), rounds)
}

#[test]
fn a_fit_through_a_channel_is_a_fit() {
    let pscs = SharingSpec::pscs(1.5, 1.0, 1.0);
    let machines = [MachineSpec::svc(3.0), MachineSpec::krr(0.2)];
    for machine in machines {
        for solver in [SolverSpec::Newton, SolverSpec::Epf(Epf::default())] {
            let problem = problem(machine.clone(), pscs.clone(), solver);
            let (model, rounds) = driven(&problem, None);
            let outcome = model.outcome();
            assert_eq!(rounds, outcome.trace.len());
            let mut fitting = Fitting {
                tolerance: 1e-7,
                ..Fitting::default()
            };
            let direct = problem.fit(&mut fitting).unwrap();
            let (a, b) = (outcome.objective, direct.outcome().objective);
            // `epf` is slow at q = 1; both are where their certificates say.
            let gap = outcome.gap.max(direct.outcome().gap);
            assert!(gap <= 1e-4, "{machine:?}: {gap}");
            assert!(
                (a - b).abs() <= 2.0 * gap * b.abs(),
                "{machine:?}: {a} and {b}"
            );
            let rows = [0.1, 0.2, 0.3];
            let rows = mtmkl::Rows::new(&rows, 1, 3).unwrap();
            for task in ["all", "half"] {
                let of = |model: &Model| model.decision(task, rows).unwrap()[0];
                assert!((of(&model) - of(&direct)).abs() < 0.02);
            }
            // From there it is not far.
            if matches!(problem.spec().solver, SolverSpec::Newton) {
                let (_, again) = driven(&problem, Some(model));
                assert!(again <= rounds, "{again} after {rounds}");
            }
        }
    }
}

#[test]
fn whoever_does_not_answer_ends_the_fit_with_an_error() {
    let problem = problem(
        MachineSpec::svc(1.0),
        SharingSpec::simplex(),
        SolverSpec::Newton,
    );
    let end = |answer: fn(Question) -> Option<Answer>| {
        let (mut engine, driver) = channel(problem.shape(), true);
        let problem = problem.clone();
        let fit = thread::spawn(move || problem.fit_on(&mut engine, &mut Fitting::default()));
        while let Some(question) = driver.ask() {
            let Some(answer) = answer(question) else {
                break;
            };
            driver.tell(answer);
        }
        drop(driver);
        let error = fit.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Engine(_)), "{error:?}");
        error.to_string()
    };
    assert!(end(|_| None).contains("gone away"));
    let failure = end(|_| Some(Answer::Failure("the cluster is on fire".to_string())));
    assert!(failure.contains("the cluster is on fire"));
    let one_task = |_| Some(Answer::Evaluation(Evaluation::zeros(1, 1, 4)));
    assert!(end(one_task).contains("for each task and kernel"));
    let flat = |_| Some(Answer::Evaluation(Evaluation::zeros(1, 2, 4)));
    assert!(end(flat).contains("for each task and kernel"));
    assert!(end(|_| Some(Answer::Machines(Vec::new()))).contains("or none"));
}

#[test]
fn an_engine_of_another_shape_or_without_local_maxima_is_refused() {
    let problem = problem(
        MachineSpec::svc(1.0),
        SharingSpec::simplex(),
        SolverSpec::Newton,
    );
    let shape = mtmkl::grid::Shape {
        tasks: 3,
        kernels: 4,
    };
    let (mut engine, _driver) = channel(shape, true);
    let error = problem.fit_on(&mut engine, &mut Fitting::default());
    let message = error.unwrap_err().to_string();
    for word in ["`engine`", "3 tasks", "2 tasks"] {
        assert!(message.contains(word), "{message}");
    }
    let (mut engine, driver) = channel(problem.shape(), false);
    let fit = thread::spawn(move || problem.fit_on(&mut engine, &mut Fitting::default()));
    assert!(driver.ask().is_some());
    driver.tell(Answer::Evaluation(Evaluation::zeros(1, 2, 4)));
    let message = fit.join().unwrap().unwrap_err().to_string();
    assert!(message.contains("local maxima"), "{message}");
}

/// The crate's own engine has them.
#[test]
fn local_maxima_are_a_second_trait() {
    let gram = GivenGram {
        name: "k".to_string(),
        values: vec![0.0, 1.0, 1.0, 0.0].into(),
    };
    let samples = Samples::from_grams(2, vec![gram]).unwrap();
    let kernels = parse_kernels("precomputed:name=k").unwrap();
    let mut spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::uniform());
    spec.normalize = false.into();
    let task = Task::new("one", Targets::Labels(vec![1.0, -1.0]));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let preparation = Preparation {
        definiteness: Definiteness::AllowIndefinite,
        ..Preparation::default()
    };
    let mut engine = problem.prepare(&preparation).unwrap().engine();
    assert!(!engine.is_concave() && engine.local_maxima().is_some());
}
