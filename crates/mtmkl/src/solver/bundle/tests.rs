//! What mixtures, cuts and scaled α say about J is never more than is true.

use super::history::{REMEMBERED, SCALES};
use super::{Cut, History, Known, Proof};
use crate::engine::{Curvature, Evaluation};
use crate::grid::{Grid, Shape, dot};
use crate::random::Random;
use crate::sharing::SharingSpec;

const SHAPE: Shape = Shape {
    tasks: 2,
    kernels: 3,
};

/// For each task a few α, each with its part without θ and its sensitivities: J_t(θ) = max over them and over 0 ≤ κ ≤ 1 of κc − κ² s'θ.
struct Machine(Vec<Vec<(f64, Vec<f64>)>>);

/// max over κ of κc − κ² a.
fn best_scale(c: f64, a: f64) -> f64 {
    if a > 0.0 { (0.5 * c / a).min(1.0) } else { 1.0 }
}

impl Machine {
    fn new(random: &mut Random) -> Self {
        let mut alpha = || {
            let s = (0..SHAPE.kernels).map(|_| 4.0 * random.uniform()).collect();
            (1.0 + random.uniform(), s)
        };
        Self(
            (0..SHAPE.tasks)
                .map(|_| (0..4).map(|_| alpha()).collect())
                .collect(),
        )
    }

    fn evaluate(&self, theta: &Grid) -> Evaluation {
        let mut values = Vec::new();
        let mut sensitivities = Grid::zeros(SHAPE.tasks, SHAPE.kernels);
        for (task, family) in self.0.iter().enumerate() {
            let mut best = f64::NEG_INFINITY;
            for (c, s) in family {
                let along = dot(s, theta.row(task));
                let kappa = best_scale(*c, along);
                let value = kappa * c - kappa * kappa * along;
                if value > best {
                    best = value;
                    for (out, s) in sensitivities.row_mut(task).iter_mut().zip(s) {
                        *out = kappa * kappa * s;
                    }
                }
            }
            values.push(best);
        }
        Evaluation {
            number: 0,
            gaps: vec![0.0; SHAPE.tasks],
            values,
            sensitivities,
            curvature: None,
            scales: vec![true; SHAPE.tasks],
            inner_iterations: 0,
            noises: vec![0.0; SHAPE.tasks],
            forgiven: vec![0.0; SHAPE.tasks],
        }
    }

    fn known(&self, theta: &Grid) -> Known {
        Known::new(theta, &self.evaluate(theta))
    }
}

fn anywhere(random: &mut Random) -> Grid {
    let values = (0..SHAPE.tasks * SHAPE.kernels).map(|_| random.uniform());
    Grid::from_values(SHAPE.tasks, SHAPE.kernels, values.collect())
}

#[test]
fn a_scaled_alpha_is_below_j_and_the_best_of_its_kind_where_it_says() {
    let mut random = Random::new(3);
    let machine = Machine::new(&mut random);
    let known = machine.known(&anywhere(&mut random));
    for kappa in SCALES {
        let scaled = known.scaled(kappa);
        for task in 0..SHAPE.tasks {
            let (c, s) = (known.constant(task), known.sensitivities.row(task));
            let along = dot(s, scaled.theta.row(task));
            let best = best_scale(c, along);
            assert!((scaled.values[task] - (best * c - best * best * along)).abs() < 1e-12);
            for _ in 0..50 {
                let theta = anywhere(&mut random);
                let line =
                    scaled.constant(task) - dot(scaled.sensitivities.row(task), theta.row(task));
                assert!(line <= machine.evaluate(&theta).values[task] + 1e-12);
            }
        }
    }
}

#[test]
fn mixtures_bound_j_from_below() {
    let mut random = Random::new(4);
    let machine = Machine::new(&mut random);
    let sharing = SharingSpec::group(1.0, 1.0, 1.0);
    let sharing = sharing.build(SHAPE).unwrap();
    let at = machine.known(&anywhere(&mut random));
    let mut memory = History::new(SHAPE.kernels);
    for _ in 0..REMEMBERED + 2 {
        memory.add(machine.known(&anywhere(&mut random)));
    }
    let flat = vec![Curvature::none(); SHAPE.tasks];
    let mut seen = 0;
    for cuts in [memory.lines(&at), memory.cuts(&at, &flat)] {
        seen += cuts.iter().map(Vec::len).sum::<usize>();
        let mut highest = f64::NEG_INFINITY;
        for _ in 0..20 {
            let weights: Vec<Vec<f64>> = cuts
                .iter()
                .map(|cuts| {
                    let some: Vec<f64> = cuts.iter().map(|_| random.uniform()).collect();
                    let total = some.iter().sum::<f64>() / random.uniform();
                    some.iter().map(|weight| weight / total).collect()
                })
                .collect();
            let proof = Proof::mixed(&at, &cuts, &weights, &sharing);
            highest = highest.max(proof.bound);
        }
        for _ in 0..200 {
            // In the ball Σ θ ≤ 1 of all tasks and kernels.
            let mut theta = anywhere(&mut random);
            let sum: f64 = theta.values().iter().sum();
            for task in 0..SHAPE.tasks {
                for weight in theta.row_mut(task) {
                    *weight /= sum;
                }
            }
            let value: f64 = machine.evaluate(&theta).values.iter().sum();
            assert!(highest <= value + 1e-12, "{highest} {value}");
        }
    }
    assert!(seen > 2 * SHAPE.tasks);
}

#[test]
fn only_what_the_model_does_not_know_cuts() {
    let mut random = Random::new(5);
    let curvature = vec![
        Curvature {
            rank: 1,
            factor: vec![0.5, 1.0, 2.0],
            span: None,
        };
        SHAPE.tasks
    ];
    let here = Machine::new(&mut random).known(&anywhere(&mut random));
    let theta = anywhere(&mut random);
    // J as the model says.
    let mut there = here.clone();
    there.theta = theta;
    for task in 0..SHAPE.tasks {
        let found = here.compare(&there, &curvature, task);
        there.values[task] -= found.excess;
        for (s, pull) in there.sensitivities.row_mut(task).iter_mut().zip(found.pull) {
            *s -= pull;
        }
        assert!(here.cut(&there, &curvature, task).is_none());
        // J above it, though convex still.
        let more = 0.3 * found.bend;
        there.values[task] += more;
        let delta = here.compare(&there, &curvature, task).delta;
        let (slope, offset) = here.cut(&there, &curvature, task).unwrap();
        assert!(offset <= 0.0);
        assert!(more > 0.0 && offset + dot(&slope, &delta) >= more - 1e-12);
    }
}

/// One task, two kernels, J = 10 and s = (1, 2) at θ = (1, 1); H = F'F with F = (1, 2).
fn one_task() -> (Known, [Curvature; 1]) {
    let mut evaluation = Evaluation::zeros(7, 1, 2);
    evaluation.values = vec![10.0];
    evaluation.gaps = vec![0.05];
    evaluation.sensitivities = Grid::from_values(1, 2, vec![1.0, 2.0]);
    let curvature = Curvature {
        rank: 1,
        factor: vec![1.0, 2.0],
        span: None,
    };
    (
        Known::new(&Grid::filled(1, 2, 1.0), &evaluation),
        [curvature],
    )
}

/// J further on, at θ = (1.5, 1.5): the model says 10 − 1.5 + ½ 1.5².
fn further(value: f64) -> Known {
    let mut evaluation = Evaluation::zeros(8, 1, 2);
    evaluation.values = vec![value];
    evaluation.sensitivities = Grid::from_values(1, 2, vec![0.5, 0.5]);
    Known::new(&Grid::filled(1, 2, 1.5), &evaluation)
}

#[test]
fn missing_curvature_is_what_would_have_told_j() {
    let (here, curvature) = one_task();
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-13;
    let there = here.compare(&further(9.9), &curvature, 0);
    assert_eq!((there.delta, there.pull), (vec![0.5, 0.5], vec![1.5, 3.0]));
    assert!(close(there.bend, 1.125) && close(there.rise, -0.1) && close(there.excess, 0.275));
    // ½ δ'diag(b)δ = ½ (2 + 4) ¼ on the diagonal b.
    let damping = Grid::from_values(1, 2, vec![2.0, 4.0]);
    let missing = |value: f64, damping: &Grid, forgiven: f64| {
        here.missing(&further(value), &curvature, damping, &[forgiven])[0]
    };
    assert!(close(missing(9.9, &damping, 0.0), (0.275 - 0.05) / 0.75));
    assert!(close(
        missing(9.9, &damping, 0.1),
        (0.275 - 0.05 - 0.1125) / 0.75
    ));
    // Nothing is missing where J is what the model says but for the inner gap, or where no diagonal would help.
    assert_eq!(missing(9.67, &damping, 0.0), 0.0);
    assert_eq!(missing(9.0, &damping, 0.0), 0.0);
    assert_eq!(missing(9.9, &Grid::zeros(1, 2), 0.0), 0.0);
    for (value, foretold) in [(9.9, false), (9.68, false), (9.67, true), (9.0, true)] {
        assert_eq!(
            here.foretells(&further(value), &curvature),
            [foretold],
            "{value}"
        );
    }
}

#[test]
fn a_line_is_looked_at_where_its_kappa_is_best() {
    let (mut here, _) = one_task();
    here.scales = vec![true];
    // c = 10 + 3, s'θ = 3: κ is best at 13/(6κ) times θ, and worth κc/2 there.
    let scaled = here.scaled(0.5);
    let longer = 13.0 / 3.0;
    for weight in scaled.theta.values() {
        assert!((weight - longer).abs() <= 1e-14);
    }
    assert!((scaled.values[0] - 3.25).abs() <= 1e-14);
    assert_eq!(scaled.sensitivities.values(), [0.25, 0.5]);
    assert_eq!(scaled.kappas, [0.5]);
    // Where κα is not feasible, or ⟨s, θ⟩ next to nothing, it stays what it is.
    here.scales = vec![false];
    assert_eq!(here.scaled(0.5).values, here.values);
    here.scales = vec![true];
    here.sensitivities = Grid::filled(1, 2, 1e-10);
    assert_eq!(here.scaled(0.5).values, here.values);
}

#[test]
fn the_last_evaluations_are_remembered_and_each_is_a_line() {
    let (here, curvature) = one_task();
    let mut history = History::new(2);
    for number in 0..REMEMBERED + 3 {
        let mut known = further(9.0 + 0.01 * number as f64);
        known.number = number;
        history.add(known);
    }
    let numbers: Vec<usize> = history.evaluations().collect();
    assert_eq!(numbers, (3..REMEMBERED + 3).collect::<Vec<_>>());
    let lines = history.lines(&here);
    assert_eq!((lines.len(), lines[0].len()), (1, REMEMBERED));
    for (line, number) in lines[0].iter().zip(3..) {
        // At any δ: the line of θ_j less that of θ_k.
        let delta = [0.3, -0.2];
        let theirs = 9.0 + 0.01 * f64::from(number) - 0.5 * (0.3 - 0.5 - 0.2 - 0.5);
        let own = 10.0 - 0.3 + 2.0 * 0.2;
        assert!((line.value(&delta) - (theirs - own)).abs() <= 1e-13);
    }
    // Of very many kernels nothing is.
    let mut wide = History::new(513);
    wide.add(further(9.0));
    assert!(!wide.is_kept() && wide.evaluations().count() == 0);
    assert!(History::new(512).is_kept() && wide.cuts(&here, &curvature)[0].is_empty());
}

#[test]
fn a_mixture_proves_the_constants_of_its_parts_less_the_support_of_their_sensitivities() {
    let (mut here, _) = one_task();
    here.noises = vec![0.5];
    let shape = Shape {
        tasks: 1,
        kernels: 2,
    };
    // Σθ ≤ 2: the support is twice the largest sensitivity.
    let sharing = SharingSpec::lp(1.0, 2.0).build(shape).unwrap();
    let mut cut = Cut::new(vec![0.0; 2], 0.0);
    (cut.constant, cut.noise, cut.source) = (20.0, 1.0, (3, 0.8));
    cut.sensitivities = vec![5.0, 1.0];
    let proof = Proof::mixed(&here, &[vec![cut]], &[vec![0.25]], &sharing);
    // ¾ (13 − ½) + ¼ (20 − 1), and s = (¾ + 5/4, 3/2 + ¼).
    assert!((proof.bound - (0.75 * 12.5 + 0.25 * 19.0 - 2.0 * 2.0)).abs() <= 1e-13);
    assert_eq!(proof.witness, [vec![(7, 0.75), (3, 0.25 * 0.8)]]);
    let alone = Proof::mixed(&here, &[Vec::new()], &[], &sharing);
    assert!((alone.bound - (12.5 - 4.0)).abs() <= 1e-13);
    let (low, high) = (alone.bound, proof.bound);
    assert!(low < high);
    assert_eq!(alone.clone().or(proof.clone()).bound, high);
    assert_eq!(proof.clone().or(alone).bound, high);
    let mut twin = proof.clone();
    twin.witness.clear();
    assert!(
        !proof.or(twin).witness.is_empty(),
        "the first of equal ones"
    );
}
