//! Probabilities: Platt's sigmoid against a search that knows nothing of Newton's method, and decisions of folds against fits from scratch.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::random::Random;
use mtmkl::select::{Calibration, Limits, Sigmoid};
use mtmkl::sharing::SharingSpec;
use mtmkl::{
    Error, Fitting, Pool, Preparation, Prepared, Problem, ProblemSpec, Samples, Targets, Task,
};
use proptest::prelude::*;

/// What the sigmoid minimises, written down once more.
fn loss(a: f64, b: f64, samples: &[(f64, f64, f64)]) -> f64 {
    let sum = |wanted: fn(f64) -> bool| -> f64 {
        let own = samples.iter().filter(|sample| wanted(sample.1));
        own.map(|sample| sample.2).sum()
    };
    let (yes, no) = (sum(|y| y > 0.0), sum(|y| y < 0.0));
    samples
        .iter()
        .map(|&(f, y, w)| {
            let t = if y > 0.0 {
                (yes + 1.0) / (yes + 2.0)
            } else {
                1.0 / (no + 2.0)
            };
            let z = a * f + b;
            // ln(1 + e^z) without overflow.
            let soft = |z: f64| if z > 30.0 { z } else { z.exp().ln_1p() };
            w * (t * soft(-z) + (1.0 - t) * soft(z))
        })
        .sum()
}

/// The smallest loss over a ≥ 0 and b, by golden sections in both.
fn least(samples: &[(f64, f64, f64)], scale: f64) -> f64 {
    let golden = |of: &dyn Fn(f64) -> f64, mut low: f64, mut high: f64| {
        let ratio = 0.5 * (5_f64.sqrt() - 1.0);
        for _ in 0..90 {
            let (left, right) = (high - ratio * (high - low), low + ratio * (high - low));
            if of(left) <= of(right) {
                high = right;
            } else {
                low = left;
            }
        }
        of(0.5 * (low + high))
    };
    let over_b = |a: f64| golden(&|b| loss(a, b, samples), -60.0, 60.0);
    golden(&over_b, 0.0, 60.0 / scale)
}

fn fitted(samples: &[(f64, f64, f64)]) -> Sigmoid {
    let column = |of: fn(&(f64, f64, f64)) -> f64| samples.iter().map(of).collect::<Vec<f64>>();
    Sigmoid::fit(&column(|s| s.0), &column(|s| s.1), &column(|s| s.2))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_sigmoid_is_the_minimum(
        seed in 0_u64..1_000_000,
        count in 2_usize..60,
        signal in -1.0..3.0_f64,
        size in -3_i32..4,
    ) {
        let scale = 10_f64.powi(size);
        let mut random = Random::new(seed);
        let samples: Vec<(f64, f64, f64)> = (0..count)
            .map(|at| {
                let y = if at % 3 == 0 { 1.0 } else { -1.0 };
                let f = scale * (signal * y + 2.0 * random.uniform() - 1.0);
                (f, y, [1.0, 2.0, 0.5][at % 3])
            })
            .collect();
        let found = fitted(&samples);
        prop_assert!(found.slope >= 0.0);
        let (own, best) = (loss(found.slope, found.offset, &samples), least(&samples, scale));
        prop_assert!(own <= best * (1.0 + 1e-6) + 1e-9, "{} {} {:?}", own, best, found);
    }

    #[test]
    fn a_weight_of_two_is_the_sample_twice(seed in 0_u64..1_000_000) {
        let mut random = Random::new(seed);
        let once: Vec<(f64, f64, f64)> = (0..12)
            .map(|at| (random.uniform() - 0.4, if at % 2 == 0 { 1.0 } else { -1.0 }, 1.0))
            .collect();
        let twice: Vec<(f64, f64, f64)> = once.iter().chain(&once).copied().collect();
        let heavy: Vec<(f64, f64, f64)> = once.iter().map(|&(f, y, _)| (f, y, 2.0)).collect();
        let (a, b) = (fitted(&twice), fitted(&heavy));
        prop_assert!((a.slope - b.slope).abs() <= 1e-6 * a.slope.max(1.0));
        prop_assert!((a.offset - b.offset).abs() <= 1e-6 * a.offset.abs().max(1.0));
    }
}

#[test]
fn edges_of_the_sigmoid() {
    // Decisions the wrong way around, or all equal, say only how many there are of each.
    for decisions in [[1.0, 1.0, -1.0, -1.0, -1.0, -1.0], [0.3; 6]] {
        let labels = [-1.0, -1.0, 1.0, 1.0, 1.0, 1.0];
        let found = Sigmoid::fit(&decisions, &labels, &[1.0; 6]);
        assert_eq!(found.slope, 0.0);
        let expected = (4.0 * 5.0 / 6.0 + 2.0 / 4.0) / 6.0;
        assert!((found.probability(7.0) - expected).abs() < 1e-12);
    }
    // Far apart: sure, but not more than so few samples allow.
    let found = Sigmoid::fit(&[-1e8, 1e8], &[-1.0, 1.0], &[1.0; 2]);
    assert!(
        (found.probability(1e8) - 2.0 / 3.0).abs() < 1e-6,
        "{found:?}"
    );
    let sure = Sigmoid {
        slope: 1.0,
        offset: 0.0,
    };
    assert_eq!((sure.probability(1e9), sure.probability(-1e9)), (1.0, 0.0));
}

/// Two tasks of labels that are right in nine of ten samples.
fn problem(seed: u64, lone: bool) -> Problem {
    let mut random = Random::new(seed);
    let (mut sets, mut tasks) = (Vec::new(), Vec::new());
    for (number, count) in [60_usize, 90].into_iter().enumerate() {
        let rows: Vec<f64> = (0..2 * count)
            .map(|_| 2.0 * random.uniform() - 1.0)
            .collect();
        let labels = rows.chunks(2).enumerate().map(|(at, row)| {
            let flipped = random.uniform() < 0.1;
            let is_one = if lone && number == 1 {
                at == 3
            } else {
                (row[0] > 0.0) != flipped
            };
            if is_one { 1.0 } else { -1.0 }
        });
        let labels = Targets::Labels(labels.collect());
        tasks.push(Task::new(format!("t{number}"), labels).on(number));
        sets.push(Samples::new(rows, count, 2).unwrap());
    }
    let kernels = ["linear", "rbf:sigma=1"]
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap());
    let spec = ProblemSpec::new(
        kernels.collect(),
        MachineSpec::svc(1.0),
        SharingSpec::pscs(2.0, 1.0, 1.0),
    );
    Problem::new(spec, sets, tasks).unwrap()
}

fn calibrated(problem: &Problem, threads: usize, counts: &[Vec<f64>]) -> Option<Calibration> {
    let preparation = Preparation {
        pool: Some(Pool::new(threads).unwrap()),
        ..Preparation::default()
    };
    let prepared: Prepared = problem.prepare(&preparation).unwrap();
    let mut fitting = Fitting::default();
    let model = prepared.fit(&mut fitting).unwrap();
    prepared
        .calibrate(&model, counts, &Limits::from(&fitting))
        .unwrap()
}

#[test]
fn probabilities_are_those_of_the_labels() {
    let problem = problem(5, false);
    let counts = vec![vec![1.0; 60], vec![1.0; 90]];
    let made = calibrated(&problem, 1, &counts).unwrap();
    assert_eq!(made, calibrated(&problem, 2, &counts).unwrap());
    assert_eq!((made.tasks.len(), made.folds), (2, 5));
    let sure = made.tasks.iter().chain([&made.pooled]);
    for sigmoid in sure {
        let (high, low) = (sigmoid.probability(1.5), sigmoid.probability(-1.5));
        assert!(
            (0.8..0.99).contains(&high) && (0.01..0.2).contains(&low),
            "{sigmoid:?}"
        );
    }
    // Without samples of +1 that count, nothing is probable.
    let Targets::Labels(labels) = &problem.tasks()[0].targets else {
        unreachable!();
    };
    let only: Vec<f64> = labels
        .iter()
        .map(|y| if *y > 0.0 { 1e-9 } else { 1.0 })
        .collect();
    let rare = calibrated(&problem, 1, &[only, vec![1.0; 90]]).unwrap();
    assert!(rare.tasks[0].probability(0.0) < made.tasks[0].probability(0.0) - 0.1);
}

#[test]
fn what_has_no_probabilities() {
    // A task with one sample of a class goes by the others.
    let lone = problem(5, true);
    let prepared = lone.prepare(&Preparation::default()).unwrap();
    let mut fitting = Fitting::default();
    let model = prepared.fit(&mut fitting).unwrap();
    let limits = Limits::from(&fitting);
    let made = prepared.calibrate(&model, &[], &limits).unwrap().unwrap();
    assert!(made.tasks[1].slope > 0.1 * made.pooled.slope);
    assert_ne!(made.tasks[0], made.pooled);
    let rows = Samples::new(vec![0.0, 1.0], 2, 1).unwrap();
    let task = Task::new("y", Targets::Labels(vec![1.0, -1.0]));
    let spec = lone.spec().clone();
    let spec = ProblemSpec::new(
        parse_kernels("linear").unwrap(),
        spec.machine,
        SharingSpec::lp(2.0, 1.0),
    );
    let two = Problem::new(spec, vec![rows], vec![task]).unwrap();
    let prepared = two.prepare(&Preparation::default()).unwrap();
    let model = prepared.fit(&mut Fitting::default()).unwrap();
    let error = prepared.calibrate(&model, &[], &limits).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no class of a task has two samples"),
        "{error}"
    );
    let rows = Samples::new(vec![0.0, 1.0, 2.0], 3, 1).unwrap();
    let task = Task::new("y", Targets::Values(vec![1.0, 2.0, 4.0]));
    let spec = ProblemSpec::new(
        parse_kernels("linear").unwrap(),
        MachineSpec::krr(1.0),
        SharingSpec::lp(2.0, 1.0),
    );
    let prepared = Problem::new(spec, vec![rows], vec![task]).unwrap();
    let prepared = prepared.prepare(&Preparation::default()).unwrap();
    let model = prepared.fit(&mut Fitting::default()).unwrap();
    let error = prepared.calibrate(&model, &[], &limits);
    assert!(matches!(
        error,
        Err(Error::Param {
            name: "probability",
            ..
        })
    ));
    limits.stop.request();
    let prepared = problem(5, false).prepare(&Preparation::default()).unwrap();
    let model = prepared.fit(&mut Fitting::default()).unwrap();
    assert!(prepared.calibrate(&model, &[], &limits).unwrap().is_none());
}
