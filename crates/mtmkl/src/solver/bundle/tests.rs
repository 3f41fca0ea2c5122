//! What mixtures, cuts and scaled α say about J is never more than is true.

use super::history::{REMEMBERED, SCALES};
use super::{History, Known, Proof};
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
