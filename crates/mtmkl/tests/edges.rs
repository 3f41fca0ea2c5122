//! What is unusual but no error: degenerate samples, kernels without content, extreme parameters, early ends. The answer is the conic
//! optimum (where there is one to compare with), predictions are finite, and the status and the gap are honest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{DIMENSION, Data, conic_terms};
use mtmkl::grid::Shape;
use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Fitting, GivenGram, Model, Pass, Preparation, Problem, ProblemSpec, Rows, Samples, Status,
    Stop, Storage, Targets, Task,
};
use mtmkl_testkit::bracket;
use mtmkl_testkit::generate::{self, Random};

fn pscs() -> SharingSpec {
    SharingSpec::pscs(2.0, 1.0, 1.0)
}

fn lasso() -> SharingSpec {
    SharingSpec::common(1.0, 1.0)
}

fn kernels(specs: &[&str]) -> Vec<KernelView> {
    specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

fn run(tolerance: f64) -> Fitting<'static> {
    Fitting {
        tolerance,
        max_passes: 200,
        ..Fitting::default()
    }
}

fn fit(spec: ProblemSpec, samples: Vec<Samples>, tasks: Vec<Task>) -> Model {
    fit_to(1e-7, spec, samples, tasks)
}

/// Fits and insists on convergence and on finite predictions for the samples themselves.
fn fit_to(tolerance: f64, spec: ProblemSpec, samples: Vec<Samples>, tasks: Vec<Task>) -> Model {
    let problem = Problem::new(spec, samples, tasks).unwrap();
    let model = problem.fit(&mut run(tolerance)).unwrap();
    assert_eq!(
        model.outcome().status,
        Status::Converged,
        "{:?}",
        model.outcome()
    );
    assert_finite(&model, &problem);
    model
}

fn assert_finite(model: &Model, problem: &Problem) {
    assert!(model.weights().is_finite());
    for task in problem.tasks() {
        let samples = &problem.samples()[task.samples];
        if samples.columns().is_empty() {
            continue;
        }
        let decisions = model.decision(&task.name, samples.rows()).unwrap();
        assert!(
            decisions.iter().all(|value| value.is_finite()),
            "{decisions:?}"
        );
    }
}

fn targets_of(machine: &MachineSpec) -> TargetKind {
    let name = machine.build().name();
    mtmkl::Registry::default()
        .machines()
        .iter()
        .find(|info| info.part.name == name)
        .unwrap()
        .targets
}

fn optimum(data: &Data, machine: &MachineSpec, sharing: &SharingSpec) -> f64 {
    let shape = Shape {
        tasks: data.points.len(),
        kernels: common::KERNELS.len(),
    };
    bracket::optimum(
        &data.conic(machine).unwrap(),
        &conic_terms(sharing, shape).unwrap(),
    )
}

/// Equal up to this part of what is expected, or of 1e-3 where less is.
fn assert_close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected.abs().max(1e-3),
        "{found}, expected {expected}"
    );
}

/// The model for these data with the four standard kernels; its objective is the conic optimum.
fn reaches_optimum(data: &Data, machine: MachineSpec, sharing: SharingSpec) -> Model {
    let expected = optimum(data, &machine, &sharing);
    let tasks = data.tasks(targets_of(&machine));
    let spec = ProblemSpec::new(common::kernels(), machine, sharing);
    let model = fit(spec, data.samples(), tasks);
    assert_close(model.outcome().objective, expected, 1e-6);
    model
}

/// One task of these points, with random labels and values.
fn one_task(points: Vec<f64>, seed: u64) -> Data {
    let n = points.len() / DIMENSION;
    let mut random = Random::new(seed);
    Data {
        labels: vec![generate::labels(&mut random, &points, n, DIMENSION)],
        values: vec![generate::values(&mut random, &points, n, DIMENSION)],
        points: vec![points],
    }
}

/// One machine of each kind.
fn all_machines() -> Vec<MachineSpec> {
    mtmkl::Registry::default()
        .machines()
        .iter()
        .map(|info| (info.examples)().remove(0))
        .collect()
}

#[test]
fn duplicate_rows_are_as_good_as_any() {
    let mut random = Random::new(1);
    let half = generate::points(&mut random, 8, DIMENSION);
    let mut data = one_task([half.clone(), half].concat(), 2);
    // Some twins agree, some contradict each other.
    let labels = data.labels[0].clone();
    for i in 0..8 {
        data.labels[0][8 + i] = if i < 5 { labels[i] } else { -labels[i] };
    }
    for machine in all_machines() {
        reaches_optimum(&data, machine, SharingSpec::simplex());
    }
    reaches_optimum(&data, MachineSpec::svc(100.0), pscs());
}

#[test]
fn constant_columns_change_nothing_for_distances_and_are_fine_for_products() {
    let mut random = Random::new(3);
    let mut points = generate::points(&mut random, 12, DIMENSION);
    for row in points.chunks_exact_mut(DIMENSION) {
        row[1] = 5.0;
        row[2] = 0.0;
    }
    let data = one_task(points.clone(), 4);
    for machine in all_machines() {
        reaches_optimum(&data, machine, SharingSpec::simplex());
    }
    let fit_on = |specs: &[&str]| {
        let samples = Samples::new(points.clone(), 12, DIMENSION).unwrap();
        let spec = ProblemSpec::new(kernels(specs), MachineSpec::svc(5.0), lasso());
        fit(spec, vec![samples], data.tasks(TargetKind::Labels))
            .outcome()
            .objective
    };
    let all = fit_on(&["rbf:gamma=0.5|2", "laplacian:gamma=1"]);
    let first = fit_on(&["rbf:gamma=0.5|2@f1", "laplacian:gamma=1@f1"]);
    assert_close(all, first, 1e-6);
}

#[test]
fn samples_that_are_all_the_same_still_have_an_optimum() {
    let points = [0.3, -0.2, 0.7].repeat(7);
    let data = one_task(points, 5);
    let machine = MachineSpec::svc(2.0);
    let model = reaches_optimum(&data, machine, lasso());
    // Nothing separates them: every sample of the smaller class costs 2C.
    let positives = data.labels[0].iter().filter(|&&label| label > 0.0).count();
    let smaller = positives.min(7 - positives) as f64;
    assert_close(model.outcome().objective, 4.0 * smaller, 1e-6);
    for machine in all_machines() {
        if machine.name() != "svdd" {
            reaches_optimum(&data, machine, SharingSpec::simplex());
        }
    }
}

#[test]
fn a_sphere_around_one_point_has_radius_zero() {
    let data = one_task([0.3, -0.2, 0.7].repeat(7), 5);
    let spec = ProblemSpec::new(
        common::kernels(),
        MachineSpec::svdd(0.5),
        SharingSpec::simplex(),
    );
    let model = fit(spec, data.samples(), data.tasks(TargetKind::Unlabelled));
    assert!(model.outcome().objective.abs() < 1e-12);
    let here = model
        .decision("task 0", data.samples()[0].rows())
        .unwrap()
        .remove(0);
    assert!(here.abs() < 1e-12, "{here}");
    let elsewhere = Rows::new(&[-1.0, 2.0, 0.0], 1, 3).unwrap();
    assert_eq!(model.predict("task 0", elsewhere).unwrap(), [-1.0]);
}

#[test]
fn the_zero_vector_is_like_nothing_not_even_itself() {
    let mut random = Random::new(6);
    let mut points = generate::points(&mut random, 11, DIMENSION);
    points[4 * DIMENSION..5 * DIMENSION].fill(0.0);
    let data = one_task(points, 7);
    for machine in all_machines() {
        reaches_optimum(&data, machine, SharingSpec::simplex());
    }
    for normalize in [true, false] {
        let mut spec = ProblemSpec::new(
            kernels(&["linear", "cosine"]),
            MachineSpec::svc(2.0),
            SharingSpec::uniform(),
        );
        spec.normalize = normalize.into();
        let model = fit(spec, data.samples(), data.tasks(TargetKind::Labels));
        // All its kernel values are 0, so that only the offset is left.
        let zero = [0.0; DIMENSION];
        let decision = model
            .decision("task 0", Rows::new(&zero, 1, DIMENSION).unwrap())
            .unwrap();
        assert_eq!(decision, [model.tasks()[0].offset]);
    }
}

#[test]
fn grams_of_rank_one_are_no_trouble() {
    let mut random = Random::new(8);
    let points = (0..14)
        .flat_map(|_| [random.normal(), 0.0, 0.0])
        .collect::<Vec<f64>>();
    let data = one_task(points, 9);
    for machine in all_machines() {
        reaches_optimum(&data, machine, SharingSpec::simplex());
    }
    let spec = ProblemSpec::new(kernels(&["linear"]), MachineSpec::svc(1000.0), lasso());
    fit(spec, data.samples(), data.tasks(TargetKind::Labels));
}

#[test]
fn a_million_for_c_is_only_a_number() {
    // Separable (a narrow Gaussian is among the kernels) and noisy: the hard margin must be found, not approached.
    let data = Data::new(3, 10);
    for sharing in [pscs(), lasso(), SharingSpec::simplex()] {
        reaches_optimum(&data, MachineSpec::svc(1e6), sharing);
    }
}

#[test]
fn two_samples_are_enough() {
    for seed in 0..5 {
        let points = generate::points(&mut Random::new(seed), 2, DIMENSION);
        let data = one_task(points, seed);
        for machine in [
            MachineSpec::svc(10.0),
            MachineSpec::svr(2.0, 0.1),
            MachineSpec::krr(0.5),
            MachineSpec::svdd(0.8),
            MachineSpec::one_class(0.7),
        ] {
            reaches_optimum(&data, machine, SharingSpec::simplex());
        }
    }
}

#[test]
fn one_sample_is_enough_where_one_class_is() {
    let data = Data {
        points: vec![vec![0.4, -1.0, 0.2]],
        labels: vec![vec![1.0]],
        values: vec![vec![2.0]],
    };
    reaches_optimum(&data, MachineSpec::krr(0.5), pscs());
    reaches_optimum(&data, MachineSpec::one_class(1.0), SharingSpec::simplex());
    let spec = |machine| ProblemSpec::new(common::kernels(), machine, SharingSpec::simplex());
    let samples = || data.samples();
    let model = fit(
        spec(MachineSpec::svdd(1.0)),
        samples(),
        data.tasks(TargetKind::Unlabelled),
    );
    assert!(model.outcome().objective.abs() < 1e-12);
    // One value is met with no slope at all: the objective is 0.
    let machine = MachineSpec::svr(1.0, 0.0);
    let model = fit(spec(machine), samples(), data.tasks(TargetKind::Values));
    let decision = model.decision("task 0", samples()[0].rows()).unwrap();
    assert_close(decision[0], 2.0, 1e-9);
}

#[test]
fn one_kernel_gets_all_the_weight_that_is_allowed() {
    let data = Data::new(2, 11);
    for (sharing, expected) in [
        (lasso(), 1.0),
        (SharingSpec::independent(1.5, 0.7), 0.7),
        (SharingSpec::simplex(), 1.0),
        (SharingSpec::tang(0.5), 1.0),
        (SharingSpec::prior_ball(None, 0.25), 1.25),
    ] {
        let spec = ProblemSpec::new(
            kernels(&["rbf:gamma=0.3"]),
            MachineSpec::svc(2.0),
            sharing.clone(),
        );
        let model = fit(spec, data.samples(), data.tasks(TargetKind::Labels));
        for &weight in model.weights().values() {
            assert!((weight - expected).abs() < 1e-6, "{sharing:?}: {weight}");
        }
    }
}

#[test]
fn two_identical_kernels_are_worth_as_much_as_the_set_allows() {
    let data = Data::new(2, 12);
    let objective = |specs: &[&str], sharing: SharingSpec| {
        let spec = ProblemSpec::new(kernels(specs), MachineSpec::svc(2.0), sharing);
        fit(spec, data.samples(), data.tasks(TargetKind::Labels))
            .outcome()
            .objective
    };
    let ball = |p, radius| SharingSpec::common(p, radius);
    let one = ["rbf:gamma=0.3"];
    let two = ["rbf:gamma=0.3", "rbf:gamma=0.3"];
    // ‖(1, 0)‖₁ = 1: a copy is worth nothing; ‖(1, 1)‖₂ = √2: a copy is worth a larger radius.
    assert_close(
        objective(&two, ball(1.0, 1.0)),
        objective(&one, ball(1.0, 1.0)),
        1e-6,
    );
    assert_close(
        objective(&two, ball(2.0, 1.0)),
        objective(&one, ball(1.0, 2.0_f64.sqrt())),
        1e-6,
    );
}

/// Every sample set with a Gram matrix of zeros beside its rows.
fn with_empty_gram(data: &Data) -> Vec<Samples> {
    data.samples()
        .into_iter()
        .map(|samples| {
            let n = samples.count();
            samples
                .with_gram(GivenGram {
                    name: "nothing".to_string(),
                    values: vec![0.0; n * n].into(),
                })
                .unwrap()
        })
        .collect()
}

#[test]
fn a_kernel_of_zeros_is_as_good_as_none() {
    let data = Data::new(2, 13);
    for normalize in [true, false] {
        for sharing in [lasso(), pscs()] {
            let fit_on = |specs: &[&str]| {
                let mut spec =
                    ProblemSpec::new(kernels(specs), MachineSpec::svc(2.0), sharing.clone());
                spec.normalize = normalize.into();
                let problem =
                    Problem::new(spec, with_empty_gram(&data), data.tasks(TargetKind::Labels))
                        .unwrap();
                problem.fit(&mut run(1e-7)).unwrap()
            };
            let with = fit_on(&["linear", "rbf:gamma=1", "precomputed:name=nothing"]);
            let without = fit_on(&["linear", "rbf:gamma=1"]);
            assert_eq!(with.outcome().status, Status::Converged);
            assert_close(with.outcome().objective, without.outcome().objective, 1e-6);
        }
    }
}

#[test]
fn nothing_but_a_kernel_of_zeros_says_nothing() {
    let data = Data::new(1, 14);
    let spec = ProblemSpec::new(
        kernels(&["precomputed:name=nothing"]),
        MachineSpec::svc(2.0),
        lasso(),
    );
    let problem = Problem::new(spec, with_empty_gram(&data), data.tasks(TargetKind::Labels));
    let model = problem.unwrap().fit(&mut run(1e-7)).unwrap();
    assert_eq!(model.outcome().status, Status::Converged);
    let labels = &data.labels[0];
    let positives = labels.iter().filter(|&&label| label > 0.0).count();
    let smaller = positives.min(labels.len() - positives) as f64;
    assert_close(model.outcome().objective, 4.0 * smaller, 1e-7);
}

#[test]
fn forty_tiny_tasks_of_different_sizes_reach_the_optimum() {
    let mut random = Random::new(15);
    let mut data = Data {
        points: Vec::new(),
        labels: Vec::new(),
        values: Vec::new(),
    };
    for task in 0..40 {
        let n = 2 + task % 5;
        let points = generate::points(&mut random, n, DIMENSION);
        data.labels
            .push(generate::labels(&mut random, &points, n, DIMENSION));
        data.values
            .push(generate::values(&mut random, &points, n, DIMENSION));
        data.points.push(points);
    }
    reaches_optimum(&data, MachineSpec::svc(3.0), pscs());
    reaches_optimum(
        &data,
        MachineSpec::svc(3.0),
        SharingSpec::independent(1.0, 1.0),
    );
    reaches_optimum(
        &data,
        MachineSpec::krr(0.5),
        SharingSpec::group(1.5, 1.0, 4.0),
    );
    reaches_optimum(&data, MachineSpec::one_class(0.5), SharingSpec::tang(10.0));
}

#[test]
fn views_of_one_sample_set_are_as_good_as_copies() {
    let data = Data::new(1, 16);
    let n = data.points[0].len() / DIMENSION;
    let mut random = Random::new(17);
    let points = generate::points(&mut random, n, DIMENSION);
    let labels = generate::labels(&mut random, &points, n, DIMENSION);
    // Overlapping, in an order of their own, and one of them with weights.
    let views: [Vec<usize>; 3] = [
        (0..8).collect(),
        (0..n).rev().collect(),
        vec![9, 2, 5, 0, 7, 1],
    ];
    let pick = |view: &[usize]| {
        let mut labels: Vec<f64> = view.iter().map(|&row| labels[row]).collect();
        (labels[0], labels[1]) = (1.0, -1.0);
        Targets::Labels(labels)
    };
    let weights = vec![1.0, 2.0, 0.5, 1.0, 3.0, 1.0];
    let finish = |mut tasks: Vec<Task>, samples: Vec<Samples>| {
        tasks[2].weights = Some(weights.clone());
        let spec = ProblemSpec::new(common::kernels(), MachineSpec::svc(2.0), pscs());
        fit_to(1e-9, spec, samples, tasks)
    };
    let whole = Samples::new(points.clone(), n, DIMENSION).unwrap();
    let viewed = finish(
        views
            .iter()
            .enumerate()
            .map(|(number, view)| {
                Task::new(format!("task {number}"), pick(view)).with_rows(view.clone())
            })
            .collect(),
        vec![whole.clone()],
    );
    let copied = finish(
        views
            .iter()
            .enumerate()
            .map(|(number, view)| Task::new(format!("task {number}"), pick(view)).on(number))
            .collect(),
        views
            .iter()
            .map(|view| {
                let rows = view
                    .iter()
                    .flat_map(|&row| whole.rows().get(row).unwrap().to_vec())
                    .collect();
                Samples::new(rows, view.len(), DIMENSION).unwrap()
            })
            .collect(),
    );
    assert_close(viewed.outcome().objective, copied.outcome().objective, 1e-6);
    let new = generate::points(&mut random, 20, DIMENSION);
    let rows = Rows::new(&new, 20, DIMENSION).unwrap();
    for task in ["task 0", "task 1", "task 2"] {
        let a = viewed.decision(task, rows).unwrap();
        let b = copied.decision(task, rows).unwrap();
        for (a, b) in a.iter().zip(&b) {
            assert!((a - b).abs() < 1e-4, "{task}: {a} and {b}");
        }
    }
}

/// Fits two versions of one task and compares objective and predictions.
fn same_answer(
    machine: &MachineSpec,
    (rows_a, task_a): (Vec<f64>, Task),
    (rows_b, task_b): (Vec<f64>, Task),
) {
    let mut random = Random::new(99);
    let new = generate::points(&mut random, 12, DIMENSION);
    // A sphere shrinks to nothing where θ = 0 is allowed.
    let sharing = match machine.name() {
        "svdd" => SharingSpec::simplex(),
        _ => SharingSpec::common(2.0, 1.0),
    };
    let answer = |rows: Vec<f64>, task: Task| {
        let n = rows.len() / DIMENSION;
        let samples = Samples::new(rows, n, DIMENSION).unwrap();
        let spec = ProblemSpec::new(common::kernels(), machine.clone(), sharing.clone());
        let model = fit_to(1e-9, spec, vec![samples], vec![task]);
        let rows = Rows::new(&new, 12, DIMENSION).unwrap();
        let decisions = model.decision("task", rows).unwrap();
        (model.outcome().objective, decisions)
    };
    let (objective_a, decisions_a) = answer(rows_a, task_a);
    let (objective_b, decisions_b) = answer(rows_b, task_b);
    assert_close(objective_a, objective_b, 1e-6);
    for (a, b) in decisions_a.iter().zip(&decisions_b) {
        assert!((a - b).abs() < 1e-4, "{machine:?}: {a} and {b}");
    }
}

#[test]
fn a_weight_of_three_is_three_copies_of_the_row() {
    let data = Data::new(1, 18);
    let points = &data.points[0];
    let n = points.len() / DIMENSION;
    let counts: Vec<usize> = (0..n).map(|row| 1 + row % 3).collect();
    let weights: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    let copied = |values: &[f64], width: usize| {
        counts
            .iter()
            .enumerate()
            .flat_map(|(row, &count)| values[row * width..(row + 1) * width].repeat(count))
            .collect::<Vec<f64>>()
    };
    let compare = |machine: MachineSpec, targets: fn(Vec<f64>) -> Targets, y: &[f64]| {
        same_answer(
            &machine,
            (
                points.clone(),
                Task::new("task", targets(y.to_vec())).with_weights(weights.clone()),
            ),
            (
                copied(points, DIMENSION),
                Task::new("task", targets(copied(y, 1))),
            ),
        );
    };
    // Small enough for the bounds, which the weights multiply, to be felt.
    compare(MachineSpec::svc(0.15), Targets::Labels, &data.labels[0]);
    compare(
        MachineSpec::svr(0.15, 0.1),
        Targets::Values,
        &data.values[0],
    );
    compare(MachineSpec::krr(0.8), Targets::Values, &data.values[0]);
    compare(
        MachineSpec::svdd(0.1),
        |_| Targets::Unlabelled,
        &data.values[0],
    );
    compare(
        MachineSpec::one_class(0.4),
        |_| Targets::Unlabelled,
        &data.values[0],
    );
}

#[test]
fn a_weight_of_zero_leaves_the_row_out() {
    let data = Data::new(1, 19);
    let points = &data.points[0];
    let n = points.len() / DIMENSION;
    let kept: Vec<usize> = (0..n).filter(|row| row % 4 != 1).collect();
    let weights: Vec<f64> = (0..n)
        .map(|row| if kept.contains(&row) { 1.0 } else { 0.0 })
        .collect();
    let compare = |machine: MachineSpec, targets: fn(Vec<f64>) -> Targets, y: &[f64]| {
        let rest = kept.iter().map(|&row| y[row]).collect();
        let rows = kept
            .iter()
            .flat_map(|&row| points[row * DIMENSION..(row + 1) * DIMENSION].to_vec())
            .collect();
        same_answer(
            &machine,
            (
                points.clone(),
                Task::new("task", targets(y.to_vec())).with_weights(weights.clone()),
            ),
            (rows, Task::new("task", targets(rest))),
        );
    };
    compare(MachineSpec::svc(2.0), Targets::Labels, &data.labels[0]);
    compare(MachineSpec::svr(2.0, 0.1), Targets::Values, &data.values[0]);
    compare(
        MachineSpec::svdd(0.2),
        |_| Targets::Unlabelled,
        &data.values[0],
    );
    compare(
        MachineSpec::one_class(0.4),
        |_| Targets::Unlabelled,
        &data.values[0],
    );
}

#[test]
fn svdd_and_the_one_class_svm_choose_the_same_weights_on_unit_diagonals() {
    // α'diag(K) = Σθ = 1 for every θ of fixed mass, so the two objectives differ by a constant.
    let mut random = Random::new(20);
    let (n, nu) = (18, 0.4);
    let points = generate::points(&mut random, n, DIMENSION);
    let data = one_task(points, 21);
    for sharing in [
        SharingSpec::simplex(),
        SharingSpec::box_simplex(0.4),
        SharingSpec::tang(0.5),
    ] {
        let model = |machine| {
            let spec = ProblemSpec::new(common::kernels(), machine, sharing.clone());
            let tasks = data.tasks(TargetKind::Unlabelled);
            fit_to(1e-9, spec, data.samples(), tasks)
        };
        let sphere = model(MachineSpec::svdd(1.0 / (nu * n as f64)));
        let plane = model(MachineSpec::one_class(nu));
        assert_close(
            sphere.outcome().objective - 1.0,
            plane.outcome().objective,
            1e-6,
        );
        for (a, b) in sphere
            .weights()
            .values()
            .iter()
            .zip(plane.weights().values())
        {
            assert!((a - b).abs() < 1e-4, "{sharing:?}: {a} and {b}");
        }
    }
}

#[test]
fn a_tolerance_of_1e_10_is_reached_or_the_gap_says_how_far_it_got() {
    let data = Data::new(3, 22);
    for machine in all_machines() {
        for sharing in [SharingSpec::simplex(), SharingSpec::tang(1.0)] {
            let expected = optimum(&data, &machine, &sharing);
            let spec = ProblemSpec::new(common::kernels(), machine.clone(), sharing);
            let tasks = data.tasks(targets_of(&machine));
            let problem = Problem::new(spec, data.samples(), tasks).unwrap();
            let model = problem.fit(&mut run(1e-10)).unwrap();
            let outcome = model.outcome();
            match outcome.status {
                Status::Converged => assert!(outcome.gap <= 1e-10),
                Status::Stalled => assert!(outcome.gap > 1e-10 && outcome.gap < 1e-7),
                other => panic!("{machine:?}: {other:?}"),
            }
            assert_honest(&model, expected);
            assert_finite(&model, &problem);
        }
    }
}

/// A constant kernel says nothing, so that only b is learned: J* = p ln(1 + q/p) + q ln(1 + p/q) for prices of p and q in all of the two classes.
#[test]
fn prices_that_are_far_apart_are_only_numbers() {
    let signs = [1.0, -1.0, 1.0, 1.0];
    for weights in [
        [1.0, 1e-12, 1.0, 1e12],
        [1e15, 1.0, 1.0, 1.0],
        [1.0, 1e15, 1e-9, 1e-3],
        [1e-6, 1e-18, 1e18, 1e18],
        [1e-20, 1e20, 1e-20, 1e-21],
    ] {
        let total = |sign: f64| -> f64 {
            let pairs = weights.iter().zip(&signs);
            pairs.filter(|(_, own)| **own == sign).map(|(w, _)| w).sum()
        };
        let (p, q) = (total(1.0), total(-1.0));
        let optimum = p * (q / p).ln_1p() + q * (p / q).ln_1p();
        for storage in [Storage::Kept, Storage::Streamed] {
            let spec = ProblemSpec::new(
                kernels(&["constant"]),
                MachineSpec::logistic(1.0),
                SharingSpec::uniform(),
            );
            let samples = Samples::new(vec![0.0, 1.0, 2.0, 3.0], 4, 1).unwrap();
            let task = Task::new("task", Targets::Labels(signs.to_vec()));
            let task = task.with_weights(weights.to_vec());
            let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
            let preparation = Preparation {
                storage: Some(storage),
                ..Preparation::default()
            };
            let model = problem
                .prepare(&preparation)
                .unwrap()
                .fit(&mut Fitting {
                    time_limit: Some(Duration::from_secs(20)),
                    ..run(1e-6)
                })
                .unwrap();
            let outcome = model.outcome();
            assert_eq!(outcome.status, Status::Converged, "{weights:?} {outcome:?}");
            let slack = 1e-12 * optimum;
            assert!(
                outcome.bound <= optimum + slack && optimum <= outcome.objective + slack,
                "{weights:?} {storage:?}: {} ≤ {optimum} ≤ {}",
                outcome.bound,
                outcome.objective
            );
            assert_finite(&model, &problem);
        }
    }
}

/// bound ≤ J* ≤ objective, and the gap is what lies between.
fn assert_honest(model: &Model, optimum: f64) {
    let outcome = model.outcome();
    let slack = 1e-7 * optimum.abs();
    assert!(
        outcome.bound <= optimum + slack && outcome.objective >= optimum - slack,
        "{} ≤ {optimum} ≤ {}",
        outcome.bound,
        outcome.objective
    );
    assert!(outcome.gap >= 0.0, "{}", outcome.gap);
    if outcome.gap.is_finite() {
        let between = (outcome.objective - outcome.bound).max(0.0);
        assert_close(outcome.gap, between / outcome.objective.abs(), 1e-9);
    }
}

#[test]
fn an_optimum_of_zero_is_found_and_not_searched_for_ever() {
    // With the linear kernel the smallest ‖Σ α_i x_i‖ is 0 where the samples surround the origin, and no gap is small beside it.
    for (seed, n, dimension) in [(4, 6, 2), (6, 8, 2), (7, 12, 3)] {
        let points = generate::points(&mut Random::new(seed), n, dimension);
        let spec = ProblemSpec::new(
            kernels(&["linear"]),
            MachineSpec::one_class(0.5),
            SharingSpec::uniform(),
        );
        let samples = Samples::new(points, n, dimension).unwrap();
        let task = Task::new("task", Targets::Unlabelled);
        let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
        let started = Instant::now();
        let model = problem
            .fit(&mut Fitting {
                time_limit: Some(Duration::from_secs(1)),
                ..run(1e-4)
            })
            .unwrap();
        assert!(
            matches!(model.outcome().status, Status::Converged | Status::Stalled),
            "{:?} after {:?}",
            model.outcome().status,
            started.elapsed()
        );
        assert!(model.outcome().objective.abs() < 1e-9);
        assert!(started.elapsed() < Duration::from_secs(1));
    }
}

/// Every machine, cut short by this run: the status says by what, and there is a model to use all the same.
fn cut_short(status: Status, limits: impl Fn() -> Fitting<'static>) -> Vec<Model> {
    let data = Data::new(3, 23);
    all_machines()
        .into_iter()
        .map(|machine| {
            let expected = optimum(&data, &machine, &SharingSpec::simplex());
            let spec = ProblemSpec::new(common::kernels(), machine.clone(), SharingSpec::simplex());
            let tasks = data.tasks(targets_of(&machine));
            let problem = Problem::new(spec, data.samples(), tasks).unwrap();
            let model = problem.fit(&mut limits()).unwrap();
            assert_eq!(model.outcome().status, status, "{machine:?}");
            assert!(model.outcome().gap > 1e-7);
            assert_honest(&model, expected);
            assert_finite(&model, &problem);
            for row in model.weights().iter_rows() {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{row:?}");
            }
            model
        })
        .collect()
}

#[test]
fn no_time_at_all_leaves_a_model_and_an_honest_gap() {
    cut_short(Status::TimeLimit, || Fitting {
        time_limit: Some(Duration::ZERO),
        ..run(1e-7)
    });
}

#[test]
fn a_stop_before_the_start_leaves_a_model_and_an_honest_gap() {
    cut_short(Status::Stopped, || {
        let stop = Stop::never();
        stop.clone().request();
        Fitting { stop, ..run(1e-7) }
    });
}

#[test]
fn a_tolerance_of_one_half_is_a_tolerance() {
    let data = Data::new(3, 25);
    for machine in all_machines() {
        let spec = ProblemSpec::new(common::kernels(), machine.clone(), SharingSpec::simplex());
        let tasks = data.tasks(targets_of(&machine));
        let problem = Problem::new(spec, data.samples(), tasks).unwrap();
        let model = problem.fit(&mut run(0.5)).unwrap();
        assert_eq!(model.outcome().status, Status::Converged, "{machine:?}");
        assert_honest(&model, optimum(&data, &machine, &SharingSpec::simplex()));
    }
}

#[test]
fn one_pass_is_one_pass() {
    let models = cut_short(Status::PassLimit, || Fitting {
        max_passes: 1,
        ..run(1e-7)
    });
    for model in models {
        assert_eq!(model.outcome().trace.len(), 1);
        // The balanced start is all it has seen.
        assert!(
            model
                .weights()
                .values()
                .iter()
                .all(|&weight| weight == 0.25)
        );
    }
}

#[test]
fn a_stop_from_the_observer_ends_the_run_after_that_pass() {
    let data = Data::new(3, 24);
    let spec = ProblemSpec::new(common::kernels(), MachineSpec::svc(5.0), pscs());
    let problem = Problem::new(spec, data.samples(), data.tasks(TargetKind::Labels)).unwrap();
    let stop = Stop::never();
    let mut seen: Vec<Pass> = Vec::new();
    let mut observer = |pass: &Pass| {
        seen.push(*pass);
        if pass.number == 2 {
            stop.request();
        }
    };
    let model = problem
        .fit(&mut Fitting {
            stop: stop.clone(),
            observer: Some(&mut observer),
            ..run(1e-10)
        })
        .unwrap();
    assert_eq!(model.outcome().status, Status::Stopped);
    assert_eq!(model.outcome().trace, seen);
    assert_eq!(seen.len(), 2);
    assert_honest(&model, optimum(&data, &MachineSpec::svc(5.0), &pscs()));
}

#[test]
fn a_value_that_is_not_finite_is_an_error_that_names_its_task() {
    // y is finite, y'(λI + K)⁻¹y is not.
    let points = vec![0.0, 1.0, 2.0, 3.0];
    let values = vec![1e160, -1e160, 2e160, 5e159];
    let machine = MachineSpec::krr(1.0);
    let spec = ProblemSpec::new(kernels(&["rbf:gamma=1"]), machine, lasso());
    let samples = Samples::new(points, 4, 1).unwrap();
    let task = Task::new("only", Targets::Values(values));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let error = problem.fit(&mut run(1e-4)).unwrap_err().to_string();
    for word in ["task number 1", "double precision", "scale the columns"] {
        assert!(error.contains(word), "no `{word}` in: {error}");
    }
}
