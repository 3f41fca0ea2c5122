//! SMO, interior points and all of the policy against each other and against brute force over active sets.

use super::free_set::{self, FreeSet};
use super::smo::{self, Smo};
use super::{Qp, gap, interior};
use crate::gram::{CombinedRows, given};
use crate::grid::dot;
use crate::inner::tests::{some_kernel, whole};
use crate::ledger::Ledger;
use crate::linalg;
use crate::machine::Variables;
use crate::random::Random;
use crate::run::Stop;

/// A box with a sum.
struct Case {
    variables: Variables,
    linear: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    sum: f64,
}

impl Case {
    fn qp(&self) -> Qp<'_> {
        Qp {
            variables: self.variables,
            linear: &self.linear,
            lower: &self.lower,
            upper: &self.upper,
        }
    }

    /// In the middle of the box, moved to the sum.
    fn start(&self) -> Vec<f64> {
        let mut beta = vec![0.0; self.linear.len()];
        let order = 0..beta.len();
        super::fill(&mut beta, &self.lower, &self.upper, self.sum, order);
        beta
    }

    fn value(&self, kernel: &[f64], beta: &[f64]) -> f64 {
        let own = self.variables.sums(beta);
        let image: Vec<f64> = kernel
            .chunks_exact(own.len())
            .map(|row| dot(row, &own))
            .collect();
        dot(&self.linear, beta) - 0.5 * dot(&own, &image)
    }

    /// The best stationary point over all choices of what is at its lower bound, at its upper bound and free.
    fn brute_force(&self, kernel: &[f64]) -> f64 {
        let count = self.linear.len();
        let mut best = f64::NEG_INFINITY;
        let powers: Vec<usize> = std::iter::successors(Some(1), |power| Some(3 * power))
            .take(count + 1)
            .collect();
        for choice in 0..powers[count] {
            let side = |v: usize| choice / powers[v] % 3;
            let free: Vec<usize> = (0..count).filter(|&v| side(v) == 2).collect();
            let mut beta: Vec<f64> = (0..count)
                .map(|v| [self.lower[v], self.upper[v], 0.0][side(v)])
                .collect();
            let Some(found) = self.stationary(kernel, &beta, &free) else {
                continue;
            };
            for (&v, value) in free.iter().zip(&found) {
                beta[v] = *value;
            }
            let is_feasible = (0..count)
                .all(|v| self.lower[v] - 1e-9 <= beta[v] && beta[v] <= self.upper[v] + 1e-9);
            if is_feasible && (beta.iter().sum::<f64>() - self.sum).abs() < 1e-9 {
                best = best.max(self.value(kernel, &beta));
            }
        }
        best
    }

    /// The free variables from [[K_FF, 1], [1', 0]], the others as they are.
    fn stationary(&self, kernel: &[f64], beta: &[f64], free: &[usize]) -> Option<Vec<f64>> {
        let n = self.variables.samples();
        let own = self.variables.sums(beta);
        let size = free.len() + 1;
        let mut matrix = vec![0.0; size * size];
        let mut right = vec![0.0; size];
        for (a, &v) in free.iter().enumerate() {
            let i = self.variables.sample_of(v);
            for (b, &w) in free.iter().enumerate() {
                matrix[a * size + b] = kernel[i * n + self.variables.sample_of(w)];
            }
            matrix[a * size + size - 1] = 1.0;
            matrix[(size - 1) * size + a] = 1.0;
            right[a] = self.linear[v] - dot(&kernel[i * n..(i + 1) * n], &own);
        }
        right[size - 1] = self.sum - beta.iter().sum::<f64>();
        if free.is_empty() {
            return (right[0].abs() < 1e-9).then(Vec::new);
        }
        linalg::solve_small(&mut matrix, &mut right, size).then(|| right[..size - 1].to_vec())
    }
}

/// Classification, one class, and regression with two variables a sample.
fn cases(n: usize, random: &mut Random) -> Vec<Case> {
    let c = 0.5 + 3.0 * random.uniform();
    let labels: Vec<f64> = (0..n).map(|i| [1.0, -1.0][i % 2]).collect();
    let half = n / 2;
    let values: Vec<f64> = (0..half).map(|_| random.uniform() - 0.5).collect();
    vec![
        Case {
            variables: Variables::one_each(n),
            lower: labels.iter().map(|y| (c * y).min(0.0)).collect(),
            upper: labels.iter().map(|y| (c * y).max(0.0)).collect(),
            linear: labels,
            sum: 0.0,
        },
        Case {
            variables: Variables::one_each(n),
            linear: vec![0.0; n],
            lower: vec![0.0; n],
            upper: vec![0.4; n],
            sum: 1.0,
        },
        Case {
            variables: Variables::new(half, 2),
            linear: (values.iter().map(|y| y - 0.1))
                .chain(values.iter().map(|y| y + 0.1))
                .collect(),
            lower: [vec![0.0; half], vec![-c; half]].concat(),
            upper: [vec![c; half], vec![0.0; half]].concat(),
            sum: 0.0,
        },
    ]
}

#[test]
fn small_steps_interior_points_and_brute_force_agree() {
    let mut random = Random::new(21);
    for _ in 0..10 {
        for case in cases(6, &mut random) {
            let n = case.variables.samples();
            let kernel = some_kernel(n, &mut random);
            let grams = given(n, vec![kernel.clone()]);
            let rows = CombinedRows::new(whole(&grams), &[1.0]);
            let qp = case.qp();
            let best = case.brute_force(&kernel);
            let tight = Smo {
                tolerance: 1e-12,
                shrinking: true,
                max_steps: 100_000,
            };
            let mut beta = case.start();
            // At the start the gap bounds what is missing, and so it does on the way.
            let mut product = rows.product(&case.variables.sums(&beta));
            for max_steps in [0, 1, 3, 10] {
                let some = Smo { max_steps, ..tight };
                smo::solve(&qp, &rows, &mut beta, &mut product, &some, &Stop::never());
                let missing = best - case.value(&kernel, &beta);
                let bound = gap(&qp, &beta, &product);
                assert!(
                    missing <= bound + 1e-9,
                    "{missing} is missing, {bound} said"
                );
            }
            smo::solve(&qp, &rows, &mut beta, &mut product, &tight, &Stop::never());
            let small = case.value(&kernel, &beta);
            assert!((small - best).abs() < 1e-8 * (1.0 + best.abs()));
            assert!(gap(&qp, &beta, &product) < 1e-8);
            let start = case.start();
            let stop = Stop::never();
            let inside = interior::solve(&qp, &rows, &start, 1e-8, &stop, &Ledger::default());
            let inside = case.value(&kernel, &inside.unwrap().beta);
            assert!((inside - best).abs() < 1e-7 * (1.0 + best.abs()));
        }
    }
}

#[test]
fn after_a_direct_step_free_slopes_are_equal() {
    let mut random = Random::new(22);
    let ledger = Ledger::default();
    let mut steps = 0;
    for _ in 0..10 {
        // Classification and one class: a variable is its sample.
        for case in cases(30, &mut random).into_iter().take(2) {
            let n = case.variables.samples();
            let grams = given(n, vec![some_kernel(n, &mut random)]);
            let rows = CombinedRows::new(whole(&grams), &[1.0]);
            let qp = case.qp();
            let mut beta = case.start();
            let mut product = rows.product(&beta);
            let loose = Smo {
                tolerance: 1e-2,
                shrinking: false,
                max_steps: 10_000,
            };
            smo::solve(&qp, &rows, &mut beta, &mut product, &loose, &Stop::never());
            let free = free_set::free_variables(&qp, &beta);
            let set = FreeSet::new(
                free,
                case.variables,
                &rows,
                &crate::run::Stop::never(),
                &ledger,
            );
            let Some(mut set) = set else { continue };
            if set.step(&qp, &mut beta, &product).is_none() {
                continue;
            }
            steps += 1;
            product = rows.product(&beta);
            let slopes: Vec<f64> = (set.moving().iter())
                .map(|&i| qp.slope(&product, i))
                .collect();
            let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
            assert!(slopes.iter().all(|slope| (slope - mean).abs() < 1e-8));
            assert!((beta.iter().sum::<f64>() - case.sum).abs() < 1e-12);
            assert!((0..n).all(|v| case.lower[v] <= beta[v] && beta[v] <= case.upper[v]));
        }
    }
    assert!(steps > 10, "{steps}");
    assert_eq!(ledger.taken(), 0);
}
