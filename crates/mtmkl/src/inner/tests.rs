//! Every kind of dual: gaps against the optimum, derivatives against finite differences, warm starts against cold ones.

use std::sync::Arc;

use super::{Allowance, Effort, Here, State, TaskEvaluation, bytes};
use crate::gram::{CombinedRows, Grams, TaskGrams, given};
use crate::grid::dot;
use crate::ledger::Ledger;
use crate::machine::{Conjugate, Dual, SmoothConjugate, Variables};
use crate::random::Random;
use crate::run::Stop;

/// V'V for some V: a kernel on n samples.
pub(super) fn some_kernel(n: usize, random: &mut Random) -> Vec<f64> {
    let factor: Vec<f64> = (0..n * n).map(|_| random.uniform() - 0.5).collect();
    let mut matrix = vec![0.0; n * n];
    crate::linalg::add_gram(&factor, n, &mut matrix);
    matrix
}

/// All samples of a set.
pub(super) fn whole(grams: &Grams) -> TaskGrams<'_> {
    TaskGrams::all(grams.as_ref())
}

/// Kernel logistic regression: α = yβ in (0, C), φ = α ln(α/C) + (C − α) ln((C − α)/C), φ* = C ln(1 + e^(yg)).
#[derive(Debug)]
pub(super) struct Logistic {
    pub(super) labels: Vec<f64>,
    pub(super) c: f64,
}

impl SmoothConjugate for Logistic {
    fn interval(&self, sample: usize) -> (f64, f64) {
        let end = self.labels[sample] * self.c;
        (end.min(0.0), end.max(0.0))
    }

    fn value(&self, sample: usize, beta: f64) -> f64 {
        let (alpha, c) = (self.labels[sample] * beta, self.c);
        alpha * (alpha / c).ln() + (c - alpha) * ((c - alpha) / c).ln()
    }

    fn slope(&self, sample: usize, beta: f64) -> f64 {
        let alpha = self.labels[sample] * beta;
        self.labels[sample] * (alpha / (self.c - alpha)).ln()
    }

    fn curvature(&self, sample: usize, beta: f64) -> f64 {
        let alpha = self.labels[sample] * beta;
        self.c / (alpha * (self.c - alpha))
    }

    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64) {
        let y = self.labels[sample];
        let t = y * slope;
        let loss = self.c * (t.max(0.0) + (-t.abs()).exp().ln_1p());
        (loss, y * self.c / (1.0 + (-t).exp()))
    }
}

/// φ = β ln β − β on β > 0: an interval with one end.
#[derive(Debug)]
struct HalfLine;

impl SmoothConjugate for HalfLine {
    fn interval(&self, _sample: usize) -> (f64, f64) {
        (0.0, f64::INFINITY)
    }

    fn value(&self, _sample: usize, beta: f64) -> f64 {
        beta * beta.ln() - beta
    }

    fn slope(&self, _sample: usize, beta: f64) -> f64 {
        beta.ln()
    }

    fn curvature(&self, _sample: usize, beta: f64) -> f64 {
        1.0 / beta
    }

    fn conjugate(&self, _sample: usize, slope: f64) -> (f64, f64) {
        (slope.exp(), slope.exp())
    }
}

/// One dual of each kind, with and without c, on n samples.
fn duals(n: usize, random: &mut Random) -> Vec<(&'static str, Dual)> {
    let labels: Vec<f64> = (0..n).map(|i| [1.0, -1.0][i % 2]).collect();
    let values: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
    let c = 2.0;
    let one = Variables::one_each(n);
    let dual = |scale, variables, linear: Vec<f64>, diagonal, conjugate| Dual {
        scale,
        variables,
        linear,
        diagonal,
        conjugate,
    };
    let smooth = |c: f64, sum: Option<f64>| Conjugate::Smooth {
        function: Arc::new(Logistic {
            labels: labels.clone(),
            c,
        }),
        sum,
    };
    let svc = Conjugate::Box {
        lower: labels.iter().map(|y| (c * y).min(0.0)).collect(),
        upper: labels.iter().map(|y| (c * y).max(0.0)).collect(),
        sum: 0.0,
    };
    let svr = Conjugate::Box {
        lower: [vec![0.0; n], vec![-c; n]].concat(),
        upper: [vec![c; n], vec![0.0; n]].concat(),
        sum: 0.0,
    };
    let svdd = Conjugate::Box {
        lower: vec![0.0; n],
        upper: vec![0.3; n],
        sum: 1.0,
    };
    let ridge = |value: f64| Conjugate::Ridge {
        ridge: vec![value; n],
    };
    let (below, above) = (
        values.iter().map(|y| y - 0.1),
        values.iter().map(|y| y + 0.1),
    );
    let tube = below.chain(above).collect();
    let half_line = |sum| Conjugate::Smooth {
        function: Arc::new(HalfLine),
        sum,
    };
    let steep: Vec<f64> = values.iter().map(|value| 10.0 * value).collect();
    vec![
        ("svc", dual(1.0, one, labels.clone(), 0.0, svc)),
        ("svr", dual(1.0, Variables::new(n, 2), tube, 0.0, svr)),
        ("svdd", dual(2.0, one, vec![0.0; n], 0.5, svdd)),
        ("ridge", dual(2.0, one, values.clone(), 0.0, ridge(0.5))),
        ("ridge, c", dual(1.0, one, values.clone(), 0.3, ridge(0.2))),
        (
            "logistic",
            dual(1.0, one, vec![0.0; n], 0.0, smooth(c, Some(0.0))),
        ),
        (
            "no offset",
            dual(1.0, one, vec![0.0; n], 0.0, smooth(c, None)),
        ),
        (
            "large C",
            dual(1.0, one, vec![0.0; n], 0.0, smooth(1e4, Some(0.0))),
        ),
        (
            "half line",
            dual(1.0, one, steep.clone(), 0.0, half_line(None)),
        ),
        (
            "half line, sum",
            dual(1.0, one, steep, 0.0, half_line(Some(2.0))),
        ),
        (
            "smooth, q and c",
            dual(2.0, one, values, 0.3, smooth(c, Some(0.4))),
        ),
    ]
}

pub(super) fn effort(accuracy: f64, stop: &Stop) -> Effort<'_> {
    Effort {
        accuracy,
        size: 0.0,
        curvature: true,
        shrinking: true,
        concave: true,
        allowance: Allowance::default(),
        stop,
    }
}

fn evaluate(
    state: &mut State,
    dual: &Dual,
    grams: &Grams,
    theta: &[f64],
    accuracy: f64,
) -> TaskEvaluation {
    let rows = CombinedRows::new(whole(grams), theta);
    let here = Here {
        grams: whole(grams),
        rows: &rows,
        theta,
    };
    let stop = Stop::never();
    state
        .evaluate(dual, here, &effort(accuracy, &stop))
        .unwrap()
}

fn cold(dual: &Dual, grams: &Grams, theta: &[f64], accuracy: f64) -> TaskEvaluation {
    let mut state = State::new(dual, None, &Ledger::default());
    evaluate(&mut state, dual, grams, theta, accuracy)
}

fn grams(n: usize, kernels: usize, random: &mut Random) -> Grams {
    given(n, (0..kernels).map(|_| some_kernel(n, random)).collect())
}

#[test]
fn gaps_bound_what_is_missing() {
    let mut random = Random::new(31);
    let n = 24;
    for _ in 0..5 {
        for (name, dual) in duals(n, &mut random) {
            let grams = grams(n, 3, &mut random);
            let theta = [0.4, 0.1, 0.7];
            let best = cold(&dual, &grams, &theta, 1e-11);
            assert!(best.gap <= 1e-7 * best.value.abs(), "{name}: {}", best.gap);
            for accuracy in [1.0, 1e-1, 1e-2, 1e-4, 1e-6] {
                let found = cold(&dual, &grams, &theta, accuracy);
                let missing = best.value - found.value;
                let slack = best.noise + found.noise;
                assert!(
                    missing <= found.gap + slack,
                    "{name}: {missing} {}",
                    found.gap
                );
                assert!(found.value <= best.value + best.gap + slack, "{name}");
                let asked = accuracy * found.value.abs();
                assert!(found.gap <= asked + 1e-7 * best.value.abs(), "{name}");
            }
        }
    }
}

#[test]
fn sensitivities_and_curvature_are_derivatives() {
    let mut random = Random::new(32);
    let (n, kernels, step) = (20, 3, 1e-5);
    for (name, dual) in duals(n, &mut random) {
        let grams = grams(n, kernels, &mut random);
        let theta = [0.5, 0.3, 0.8];
        let at = |theta: &[f64]| cold(&dual, &grams, theta, 1e-13);
        let here = at(&theta);
        let curvature = here.curvature.unwrap();
        for m in 0..kernels {
            let moved = |change: f64| {
                let mut moved = theta;
                moved[m] += change;
                at(&moved)
            };
            let (above, below) = (moved(step), moved(-step));
            let slope = (below.value - above.value) / (2.0 * step);
            let size = 1.0 + here.sensitivities[m].abs();
            let difference = (slope - here.sensitivities[m]).abs();
            assert!(difference < 1e-5 * size, "{name}: {difference}");
            for k in 0..kernels {
                let change = below.sensitivities[k] - above.sensitivities[k];
                let bend = change / (2.0 * step);
                let column = |m: usize| curvature.factor.iter().skip(m).step_by(kernels);
                let ours: f64 = column(m).zip(column(k)).map(|(a, b)| a * b).sum();
                let difference = (ours - bend).abs();
                assert!(
                    difference < 1e-4 * (1.0 + bend.abs()),
                    "{name}: {ours} {bend}"
                );
            }
        }
    }
}

#[test]
fn warm_starts_end_where_cold_ones_do() {
    let mut random = Random::new(33);
    let n = 30;
    for (name, dual) in duals(n, &mut random) {
        let grams = grams(n, 3, &mut random);
        let ledger = Ledger::default();
        let mut state = State::new(&dual, None, &ledger);
        let mut theta = vec![0.5, 0.3, 0.8];
        for step in 0..8 {
            let warm = evaluate(&mut state, &dual, &grams, &theta, 1e-10);
            let cold = cold(&dual, &grams, &theta, 1e-10);
            let difference = (warm.value - cold.value).abs();
            let allowed = 2e-10 * cold.value.abs() + warm.noise + cold.noise + warm.gap;
            assert!(difference <= allowed + cold.gap, "{name}: {difference}");
            if step == 4 {
                // From β of another problem: some of it outside of Ω.
                let beta: Vec<f64> = (0..dual.variables.count())
                    .map(|_| 4.0 * random.uniform() - 2.0)
                    .collect();
                state.start_at(&dual, &beta);
            }
            for weight in &mut theta {
                *weight *= 0.8 + 0.4 * random.uniform();
            }
        }
        // Small buffers are counted too.
        let planned = bytes(&dual, 3, Allowance::default());
        assert!(ledger.taken() <= planned.stays, "{name}");
        assert!(ledger.peak() <= planned.stays + planned.passes, "{name}");
        drop(state);
        assert_eq!(ledger.taken(), 0);
    }
}

#[test]
fn the_machine_of_a_smooth_dual_is_that_of_its_primal() {
    let mut random = Random::new(34);
    let n = 20;
    let grams = grams(n, 1, &mut random);
    let labels: Vec<f64> = (0..n).map(|i| [1.0, -1.0][i % 2]).collect();
    for (name, dual) in duals(n, &mut random) {
        let Conjugate::Smooth { sum, .. } = dual.conjugate else {
            continue;
        };
        if dual.diagonal != 0.0 || name.starts_with("half line") {
            continue;
        }
        let c = if name == "large C" { 1e4 } else { 2.0 };
        let mut state = State::new(&dual, None, &Ledger::default());
        let found = evaluate(&mut state, &dual, &grams, &[1.0], 1e-12);
        let machine = state.fitted();
        let rows = CombinedRows::new(whole(&grams), &[1.0]);
        let image = rows.product(&machine.beta);
        // ½‖f‖² + C Σ ln(1 + exp(−y(f + b)))
        let loss: f64 = (image.iter().zip(&labels))
            .map(|(f, y)| (-y * (f + machine.offset)).exp().ln_1p())
            .sum();
        let primal = 0.5 * dot(&image, &machine.beta) + c * loss;
        assert!(
            (primal - found.value).abs() <= found.gap + 1e-9 * primal,
            "{name}"
        );
        assert!(sum.is_some() || machine.offset == 0.0);
    }
}

/// From β of another problem: within the intervals with another sum, on their ends, and far outside.
#[test]
fn a_smooth_dual_starts_from_anywhere() {
    let mut random = Random::new(35);
    let n = 16;
    let grams = grams(n, 2, &mut random);
    let theta = [0.6, 0.7];
    for (name, dual) in duals(n, &mut random) {
        let Conjugate::Smooth { function, sum } = &dual.conjugate else {
            continue;
        };
        let best = cold(&dual, &grams, &theta, 1e-10);
        let ends: Vec<(f64, f64)> = (0..n)
            .map(|i| function.interval(i))
            .map(|(low, high)| (low, if high.is_infinite() { 10.0 } else { high }))
            .collect();
        for share in [-3.0, 0.0, 1e-17, 0.1, 0.7, 1.0, 5.0] {
            let beta: Vec<f64> = (ends.iter().enumerate())
                .map(|(i, (low, high))| {
                    // The classes unequally, so that the sum is off.
                    let share = if i % 2 == 0 { share } else { 0.5 * share };
                    low + share * (high - low)
                })
                .collect();
            let mut state = State::new(&dual, None, &Ledger::default());
            state.start_at(&dual, &beta);
            let found = evaluate(&mut state, &dual, &grams, &theta, 1e-10);
            let difference = (found.value - best.value).abs();
            let allowed = found.gap + best.gap + found.noise + best.noise;
            assert!(difference <= allowed, "{name}: {share} {difference}");
            assert!(
                found.gap <= 1e-7 * best.value.abs(),
                "{name}: {share} {found:?} {best:?}"
            );
            if let Some(sum) = sum {
                let missing = state.fitted().beta.iter().sum::<f64>() - sum;
                let size = ends.iter().map(|(low, high)| low.abs() + high.abs());
                assert!(
                    missing.abs() <= 1e-14 * size.sum::<f64>(),
                    "{name}: {missing}"
                );
            }
        }
    }
}

/// Less memory than would be best: no direct steps on many variables, no interior points, rows of K(θ) that are not kept. The answer is the
/// same.
#[test]
fn an_allowance_changes_the_way_and_not_the_answer() {
    let mut random = Random::new(36);
    let n = 40;
    let grams = grams(n, 2, &mut random);
    let theta = [0.6, 0.7];
    let stop = Stop::never();
    let allowance = Allowance {
        most_free: 5,
        interior_points: false,
        rows: false,
        factors: false,
        ..Allowance::default()
    };
    for (name, dual) in duals(n, &mut random) {
        let rows = match dual.conjugate {
            Conjugate::Smooth { .. } => continue,
            Conjugate::Box { .. } => CombinedRows::new(whole(&grams), &theta),
            Conjugate::Ridge { .. } => CombinedRows::new(whole(&grams), &theta).passing(),
        };
        let best = cold(&dual, &grams, &theta, 1e-8);
        let ledger = Ledger::default();
        let mut state = State::new(&dual, None, &ledger);
        let here = Here {
            grams: whole(&grams),
            rows: &rows,
            theta: &theta,
        };
        let modest = Effort {
            allowance,
            ..effort(1e-8, &stop)
        };
        let found = state.evaluate(&dual, here, &modest).unwrap();
        let close = 2e-8 * best.value.abs();
        assert!((found.value - best.value).abs() <= close, "{name}");
        assert!(found.gap <= close, "{name}");
        let (planned, all) = [allowance, Allowance::default()]
            .map(|a| bytes(&dual, 2, a))
            .into();
        assert!(ledger.peak() <= planned.stays + planned.passes, "{name}");
        assert!(
            planned.stays + planned.passes < all.stays + all.passes,
            "{name}"
        );
    }
}

/// Steps from nothing; at another θ nearby with β and factors kept; and at one far away.
fn steps_of(dual: &Dual, grams: &Grams, accuracy: f64) -> [usize; 3] {
    let mut state = State::new(dual, None, &Ledger::default());
    [[0.5, 0.3, 0.8], [0.52, 0.29, 0.81], [0.9, 0.05, 0.2]]
        .map(|theta| evaluate(&mut state, dual, grams, &theta, accuracy).steps)
}

/// For each dual, to a gap of a thousandth and of nothing: steps of four problems, summed as [`steps_of`] has them. Newton's steps are a handful, small
/// steps some times the number of variables, and a factor at hand saves nearly all of them: what is found here was measured, with a fifth and four to spare.
const USUAL_WORK: [(&str, [[usize; 3]; 2]); 11] = [
    ("svc", [[484, 8, 8], [484, 4, 8]]),
    ("svr", [[390, 5, 63], [390, 5, 147]]),
    ("svdd", [[131, 4, 78], [131, 4, 117]]),
    ("ridge", [[4, 4, 20], [4, 12, 20]]),
    ("ridge, c", [[4, 4, 20], [4, 12, 20]]),
    ("logistic", [[7, 0, 8], [15, 8, 16]]),
    ("no offset", [[8, 0, 8], [16, 8, 16]]),
    ("large C", [[11, 4, 11], [20, 8, 20]]),
    ("half line", [[17, 0, 8], [28, 8, 18]]),
    ("half line, sum", [[8, 0, 4], [17, 4, 14]]),
    ("smooth, q and c", [[12, 0, 8], [20, 8, 16]]),
];

#[test]
fn no_more_work_is_done_than_is_usual() {
    let mut random = Random::new(37);
    let n = 60;
    let mut sums = [[[0; 3]; 2]; USUAL_WORK.len()];
    for _ in 0..4 {
        for (sums, (_, dual)) in sums.iter_mut().zip(duals(n, &mut random)) {
            let grams = grams(n, 3, &mut random);
            for (sums, accuracy) in sums.iter_mut().zip([1e-3, 1e-9]) {
                let steps = steps_of(&dual, &grams, accuracy);
                sums.iter_mut()
                    .zip(steps)
                    .for_each(|(sum, steps)| *sum += steps);
            }
        }
    }
    for (sums, (name, usual)) in sums.iter().zip(USUAL_WORK) {
        for (sum, usual) in sums.as_flattened().iter().zip(usual.as_flattened()) {
            assert!(
                *sum <= usual + usual / 5 + 4,
                "{name}: {sums:?}, usually {usual:?}"
            );
        }
    }
}

/// Few directions and a large C: small steps would go on for very long, and interior points end it.
#[test]
fn a_hard_box_is_left_to_interior_points() {
    let mut random = Random::new(38);
    let (n, columns) = (80, 3);
    for round in 0..4 {
        let x: Vec<f64> = (0..n * columns).map(|_| random.uniform() - 0.5).collect();
        let mut matrix = vec![0.0; n * n];
        for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                *value = dot(
                    &x[i * columns..(i + 1) * columns],
                    &x[j * columns..(j + 1) * columns],
                );
            }
        }
        let grams = given(n, vec![matrix.clone(), some_kernel(n, &mut random), matrix]);
        let c = 1e4;
        let labels: Vec<f64> = (0..n)
            .map(|_| if random.uniform() < 0.5 { 1.0 } else { -1.0 })
            .collect();
        let dual = Dual {
            scale: 1.0,
            variables: Variables::one_each(n),
            linear: labels.clone(),
            diagonal: 0.0,
            conjugate: Conjugate::Box {
                lower: labels.iter().map(|y| (c * y).min(0.0)).collect(),
                upper: labels.iter().map(|y| (c * y).max(0.0)).collect(),
                sum: 0.0,
            },
        };
        let mut state = State::new(&dual, None, &Ledger::default());
        let steps = [[0.5, 0.0, 0.8], [0.52, 0.0, 0.81], [0.1, 0.0, 2.0]].map(|theta| {
            let found = evaluate(&mut state, &dual, &grams, &theta, 1e-6);
            assert!(
                found.gap <= 1e-6 * found.value.abs() + found.noise,
                "{round}"
            );
            found.steps
        });
        // As many small steps as interior points are worth, n²/8 + 10 n; then these, and the factor that they leave.
        assert!(
            steps[0] <= 1640 && steps[1] <= 20 && steps[2] <= 90,
            "{round}: {steps:?}"
        );
    }
}
