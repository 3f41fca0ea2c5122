//! Widths, normalisation and targets in units of the data: the same as by hand, and the same whatever the data are measured in.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::{KernelView, parse_kernel, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Fitting, GivenGram, Model, Normalization, Preparation, Problem, ProblemSpec, Rows, Samples,
    TargetScale, Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

const N: usize = 60;
const D: usize = 4;

fn points(seed: u64) -> Vec<f64> {
    generate::points(&mut Random::new(seed), N, D)
}

fn numbers(points: &[f64]) -> Vec<f64> {
    let of = |x: &[f64]| (2.0 * x[0]).sin() + 0.3 * x[1] * x[2];
    points.chunks_exact(D).map(of).collect()
}

fn labels(points: &[f64]) -> Vec<f64> {
    let sign = |value: f64| if value > 0.2 { 1.0 } else { -1.0 };
    numbers(points).into_iter().map(sign).collect()
}

fn kernels(texts: &[&str]) -> Vec<KernelView> {
    let views = texts.iter().map(|text| parse_kernels(text).unwrap());
    views.flatten().collect()
}

fn fitted(spec: ProblemSpec, values: Vec<f64>, targets: Targets) -> Model {
    let samples = Samples::new(values, N, D).unwrap();
    let problem = Problem::new(spec, vec![samples], vec![Task::new("a", targets)]).unwrap();
    let mut fitting = Fitting {
        tolerance: 1e-9,
        ..Fitting::default()
    };
    problem.fit(&mut fitting).unwrap()
}

fn decisions(model: &Model, new: &[f64]) -> Vec<f64> {
    let rows = Rows::new(new, new.len() / D, D).unwrap();
    model.decision("a", rows).unwrap()
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    let size = a
        .iter()
        .fold(1e-300_f64, |most, value| most.max(value.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * size, "{a} is not {b}");
    }
}

#[test]
fn a_width_in_medians_is_that_number() {
    let points = points(1);
    let mut distances = Vec::new();
    for i in 0..N {
        for j in 0..i {
            let pairs = (0..2).map(|k| points[i * D + k] - points[j * D + k]);
            distances.push(pairs.map(|d| d * d).sum::<f64>().sqrt());
        }
    }
    distances.sort_by(f64::total_cmp);
    let median = distances[distances.len() / 2];
    let samples = Samples::new(points.clone(), N, D).unwrap();
    let spec = ProblemSpec::new(
        kernels(&[
            "rbf:sigma=median*2@f1,f2",
            "rbf:gamma=scale",
            "rbf:gamma=auto",
        ]),
        MachineSpec::svc(1.0),
        SharingSpec::uniform(),
    );
    let task = Task::new("a", Targets::Labels(labels(&points)));
    let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let gamma = |number: usize| -> f64 {
        let text = problem.spec().kernels[number].kernel.spec().unwrap();
        text.strip_prefix("rbf:gamma=").unwrap().parse().unwrap()
    };
    assert!((gamma(0) / (0.5 / (4.0 * median * median)) - 1.0).abs() < 1e-12);
    let mean = points.iter().sum::<f64>() / points.len() as f64;
    let squares = points.iter().map(|value| (value - mean).powi(2));
    let variance = squares.sum::<f64>() / points.len() as f64;
    assert!((gamma(1) * D as f64 * variance - 1.0).abs() < 1e-12);
    assert_eq!(gamma(2), 0.25);
    // The name stays what was asked for.
    assert_eq!(problem.spec().kernels[0].name, "rbf:sigma=median*2@f1,f2");
}

#[test]
fn variance_is_a_factor_of_the_kernel() {
    let points = points(2);
    let texts = ["linear", "rbf:sigma=1.5", "poly:degree=2"];
    let machine = MachineSpec::svc(3.0);
    let mut spec = ProblemSpec::new(kernels(&texts), machine, SharingSpec::lp(2.0, 1.0));
    spec.normalize = Normalization::Variance;
    let model = fitted(
        spec.clone(),
        points.clone(),
        Targets::Labels(labels(&points)),
    );
    // The same by hand: kernels computed here, divided by tr(HKH)/n, as they are.
    let rows: Vec<&[f64]> = points.chunks_exact(D).collect();
    let mut samples = Samples::new(points.clone(), N, D).unwrap();
    let mut given = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let view = parse_kernel(text).unwrap();
        let mut gram = Vec::new();
        for x in &rows {
            gram.extend(rows.iter().map(|z| view.kernel.value(x, z)));
        }
        let own = (0..N).map(|i| gram[i * N + i]).sum::<f64>() / N as f64;
        let variance = own - gram.iter().sum::<f64>() / (N * N) as f64;
        for value in &mut gram {
            *value /= variance;
        }
        let name = format!("K{number}");
        given.push(format!("precomputed:name={name}"));
        let values = gram.into();
        samples = samples.with_gram(GivenGram { name, values }).unwrap();
    }
    let texts: Vec<&str> = given.iter().map(String::as_str).collect();
    let plain = ProblemSpec {
        kernels: kernels(&texts),
        normalize: Normalization::None,
        ..spec
    };
    let task = Task::new("a", Targets::Labels(labels(&points)));
    let problem = Problem::new(plain, vec![samples], vec![task]).unwrap();
    let mut fitting = Fitting {
        tolerance: 1e-9,
        ..Fitting::default()
    };
    let by_hand = problem.fit(&mut fitting).unwrap();
    close(
        &[model.outcome().objective],
        &[by_hand.outcome().objective],
        1e-8,
    );
    close(model.weights().row(0), by_hand.weights().row(0), 1e-3);
}

#[test]
fn given_matrices_are_divided_too() {
    let points = points(3);
    let rows: Vec<&[f64]> = points.chunks_exact(D).collect();
    let view = parse_kernel("rbf:sigma=2").unwrap();
    let mut gram = Vec::new();
    for x in &rows {
        gram.extend(rows.iter().map(|z| view.kernel.value(x, z)));
    }
    let given = GivenGram {
        name: "K".into(),
        values: gram.clone().into(),
    };
    let samples = Samples::from_grams(N, vec![given]).unwrap();
    for machine in [MachineSpec::svc(1.0), MachineSpec::svdd(0.1)] {
        let is_svc = machine.name() == "svc";
        let targets = || {
            if is_svc {
                Targets::Labels(labels(&points))
            } else {
                Targets::Unlabelled
            }
        };
        let mut spec = ProblemSpec::new(kernels(&["rbf:sigma=2"]), machine, SharingSpec::uniform());
        spec.normalize = Normalization::Variance;
        let computed = fitted(spec.clone(), points.clone(), targets());
        spec.kernels = kernels(&["precomputed:name=K"]);
        let task = vec![Task::new("a", targets())];
        let problem = Problem::new(spec, vec![samples.clone()], task).unwrap();
        let mut fitting = Fitting {
            tolerance: 1e-9,
            ..Fitting::default()
        };
        let read = problem.fit(&mut fitting).unwrap();
        close(
            &[read.outcome().objective],
            &[computed.outcome().objective],
            1e-8,
        );
        let own = vec![1.0; N];
        let cross = [mtmkl::CrossGram {
            name: "K",
            values: &gram,
            own: Some(&own),
        }];
        let input = mtmkl::Input {
            count: N,
            rows: None,
            grams: &cross,
            origin: None,
        };
        let found = read.decision("a", input).unwrap();
        close(&decisions(&computed, &points), &found, 1e-4);
    }
}

#[test]
fn folds_keep_what_was_measured_on_all_rows() {
    let points = points(4);
    let mut spec = ProblemSpec::new(
        kernels(&["linear", "rbf:sigma=median"]),
        MachineSpec::svc(1.0),
        SharingSpec::uniform(),
    );
    spec.normalize = Normalization::Variance;
    let samples = Samples::new(points.clone(), N, D).unwrap();
    let task = Task::new("a", Targets::Labels(labels(&points)));
    let whole = Problem::new(spec, vec![samples], vec![task]).unwrap();
    let marked: Vec<bool> = (0..N).map(|i| i % 3 != 0).collect();
    let tasks = whole.tasks().iter().map(|task| task.restricted(&marked));
    let fold = Problem::new(
        whole.spec().clone(),
        whole.samples().to_vec(),
        tasks.collect(),
    )
    .unwrap();
    let specs = |problem: &Problem| -> Vec<Option<String>> {
        problem
            .spec()
            .kernels
            .iter()
            .map(KernelView::spec)
            .collect()
    };
    assert_eq!(specs(&whole), specs(&fold));
    let prepared = whole.prepare(&Preparation::default()).unwrap();
    fold.prepare_from(&prepared, &[0, 1], prepared.pool())
        .unwrap();
}

#[test]
fn what_targets_are_measured_in_changes_nothing() {
    let (points, new) = (points(5), points(6));
    for machine in [MachineSpec::krr(0.1), MachineSpec::svr(5.0, 0.05)] {
        let mut spec = ProblemSpec::new(
            kernels(&["linear", "rbf:sigma=median"]),
            machine,
            SharingSpec::lp(2.0, 1.0),
        );
        spec.normalize = Normalization::Variance;
        spec.target_scale = TargetScale::Standard;
        let told = |offset: f64, scale: f64| -> Vec<f64> {
            let values = numbers(&points).into_iter();
            let targets = values.map(|value| offset + scale * value).collect();
            let model = fitted(spec.clone(), points.clone(), Targets::Values(targets));
            let saved = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            let answers = decisions(&model, &new);
            assert_eq!(answers, decisions(&saved, &new));
            answers
                .into_iter()
                .map(|value| (value - offset) / scale)
                .collect()
        };
        let plain = told(0.0, 1.0);
        close(&plain, &told(10_000.0, 1.0), 1e-4);
        close(&plain, &told(-3.0, 1e6), 1e-4);
    }
}

#[test]
fn what_columns_are_measured_in_changes_nothing_to_widths_in_medians() {
    let (points, new) = (points(7), points(8));
    let texts = [
        "linear",
        "rbf:sigma=median*0.5|1",
        "matern52:length=median",
        "laplacian:sigma=median",
    ];
    let mut spec = ProblemSpec::new(
        kernels(&texts),
        MachineSpec::svc(2.0),
        SharingSpec::lp(2.0, 1.0),
    );
    spec.normalize = Normalization::Variance;
    let told = |scale: f64| {
        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| scale * x).collect() };
        let model = fitted(
            spec.clone(),
            scaled(&points),
            Targets::Labels(labels(&points)),
        );
        decisions(&model, &scaled(&new))
    };
    close(&told(1.0), &told(1000.0), 1e-3);
}

#[test]
fn what_has_no_variance_is_refused_and_the_usual_problem_goes_on() {
    let mut points = points(9);
    let labels = labels(&points);
    points.iter_mut().step_by(D).for_each(|value| *value = 1.0);
    let mut spec = ProblemSpec::new(
        kernels(&["linear@f1", "rbf:sigma=median"]),
        MachineSpec::svc(1.0),
        SharingSpec::uniform(),
    );
    let samples = || vec![Samples::new(points.clone(), N, D).unwrap()];
    let tasks = || vec![Task::new("a", Targets::Labels(labels.clone()))];
    let usual = mtmkl::select::usual_problem(spec.clone(), None, samples(), tasks()).unwrap();
    assert_eq!(usual.spec().normalize, Normalization::Unit);
    spec.normalize = Normalization::Variance;
    let message = Problem::new(spec, samples(), tasks())
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("linear@f1") && message.contains("unit"),
        "{message}"
    );
}
