//! A term's step fulfils every equation of the Newton system that it was eliminated from, for each kind of constraint.

use super::super::kkt::{Hessian, KktSystem, Layout, MOST_REFINEMENTS};
use super::*;
use crate::random::Random;
use crate::sharing::Reach;

const ROWS: usize = 2;
const KERNELS: usize = 3;
const MU: f64 = 0.07;

fn constraints() -> Vec<Constraint> {
    vec![
        Constraint::RowNorm {
            p: 1.0,
            radius: 1.3,
        },
        Constraint::RowNorm {
            p: 2.5,
            radius: 1.3,
        },
        Constraint::MixedNorm {
            p: 1.5,
            q: 1.0,
            radius: 2.0,
        },
        Constraint::MixedNorm {
            p: 1.1,
            q: 3.0,
            radius: 2.0,
        },
        Constraint::RowSum {
            total: 1.2,
            upper: None,
        },
        Constraint::RowSum {
            total: 1.2,
            upper: Some(0.7),
        },
        Constraint::RowBall {
            centre: vec![0.5, 0.0, 0.3],
            radius: 0.8,
        },
    ]
}

fn random_grid(rows: usize, random: &mut Random) -> Grid {
    let values = (0..rows * KERNELS).map(|_| 0.2 + random.uniform());
    Grid::from_values(rows, KERNELS, values.collect())
}

/// A point inside, with any positive slacks and multipliers.
fn state(constraint: &Constraint, random: &mut Random) -> TermState {
    let mut start = Grid::filled(ROWS, KERNELS, 0.4);
    if let Constraint::RowBall { centre, .. } = constraint {
        (0..ROWS).for_each(|row| start.row_mut(row).copy_from_slice(centre));
    }
    let mut state = TermState::new(constraint, start);
    for row in 0..ROWS {
        // Sums stay what they are.
        state.x[(row, 0)] += 0.05;
        state.x[(row, 2)] -= 0.05;
    }
    state.constraint.move_to(&state.x);
    state.z = random_grid(ROWS, random);
    state.w = random_grid(state.w.rows(), random);
    for value in state.slack.iter_mut().chain(&mut state.lambda) {
        *value = 0.2 + random.uniform();
    }
    state
}

/// The step to products μ, with nothing but the term itself in the matrix.
fn step(state: &TermState, descent: &Grid, mu: f64, predicted: Option<&Direction>) -> Direction {
    let (rows, border) = state.matrix();
    let (rows, borders) = ([rows], [border]);
    let none = Hessian {
        factor: &[],
        gram: None,
        cuts: &[],
        damping: None,
    };
    let hessians = [none; ROWS];
    let layout = Layout::new([Some(&Reach::Each)], ROWS);
    let system = KktSystem::new(&rows, &borders, &layout, &hessians, KERNELS).unwrap();
    let right = state.right_hand_side(descent, mu, predicted);
    let dx = system.solve(&[right], MOST_REFINEMENTS).unwrap().remove(0);
    state.direction(dx, mu, predicted)
}

/// λ ∇N of all rows at x + dx/…, to be compared at two points.
fn pull(state: &TermState, dx: &Grid, by: f64) -> Grid {
    let mut moved = state.clone();
    axpy(by, dx.values(), moved.x.values_mut());
    moved.constraint.move_to(&moved.x);
    let mut pull = moved.constraint.linearised().gradient.clone();
    for row in 0..pull.rows() {
        let lambda = state.lambda[state.constraint.inequality_of(row)];
        pull.row_mut(row)
            .iter_mut()
            .for_each(|value| *value *= lambda);
    }
    pull
}

/// What is left of −∇q + z − w − λ∇N = 0 after the step, to first order.
fn dual_residual(state: &TermState, descent: &Grid, d: &Direction) -> Grid {
    let mut left = descent.clone();
    for (out, (z, dz)) in left
        .values_mut()
        .iter_mut()
        .zip(state.z.values().iter().zip(d.z.values()))
    {
        *out += z + dz;
    }
    for (out, (w, dw)) in left
        .values_mut()
        .iter_mut()
        .zip(state.w.values().iter().zip(d.w.values()))
    {
        *out -= w + dw;
    }
    if state.slack.is_empty() {
        return left;
    }
    let (after, before) = (pull(state, &d.x, 1e-6), pull(state, &d.x, -1e-6));
    let gradient = &state.constraint.linearised().gradient;
    for row in 0..ROWS {
        let number = state.constraint.inequality_of(row);
        let lambda = state.lambda[number] + d.lambda[number];
        for kernel in 0..KERNELS {
            let at = (row, kernel);
            left[at] -= lambda * gradient[at] + (after[at] - before[at]) / 2e-6;
        }
    }
    left
}

/// The linearised product a b = μ with a second-order part, for each pair.
fn assert_products(a: &[f64], da: &[f64], b: &[f64], db: &[f64], second: &[f64], sign: f64) {
    for i in 0..b.len() {
        let product = a[i] * b[i] + sign * da[i] * b[i] + a[i] * db[i] + sign * second[i];
        assert!((product - MU).abs() < 1e-9, "{product}");
    }
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

#[test]
fn a_step_fulfils_the_linearised_optimality_conditions() {
    let mut random = Random::new(21);
    for constraint in constraints() {
        let state = state(&constraint, &mut random);
        let descent = random_grid(ROWS, &mut random);
        let predictor = step(&state, &descent, 0.0, None);
        for predicted in [None, Some(&predictor)] {
            let d = step(&state, &descent, MU, predicted);
            let second = |of: fn(&Direction) -> (&[f64], &[f64]), count: usize| {
                predicted.map_or(vec![0.0; count], |p| products(of(p).0, of(p).1))
            };
            let (x, z) = (state.x.values(), state.z.values());
            let own = second(|p| (p.x.values(), p.z.values()), x.len());
            assert_products(x, d.x.values(), z, d.z.values(), &own, 1.0);
            let upper = state.upper_slack();
            let own = second(|p| (p.x.values(), p.w.values()), upper.len());
            let (w, dw) = (state.w.values(), d.w.values());
            assert_products(&upper, d.x.values(), w, dw, &own, -1.0);
            let own = second(|p| (&p.slack, &p.lambda), state.slack.len());
            assert_products(&state.slack, &d.slack, &state.lambda, &d.lambda, &own, 1.0);
            let left = dual_residual(&state, &descent, &d);
            for row in left.iter_rows() {
                // The multiplier of a sum is what all entries have in common.
                let is_sum = matches!(constraint, Constraint::RowSum { .. });
                let common = if is_sum { row[0] } else { 0.0 };
                assert!(
                    row.iter().all(|value| (value - common).abs() < 1e-6),
                    "{constraint:?}: {row:?}"
                );
            }
            for row in d.x.iter_rows() {
                let is_sum = matches!(constraint, Constraint::RowSum { .. });
                assert!(!is_sum || row.iter().sum::<f64>().abs() < 1e-12);
            }
            // N(x) + v = c, to first order.
            let mut along = vec![0.0; state.slack.len()];
            for row in 0..if along.is_empty() { 0 } else { ROWS } {
                let gradient = state.constraint.linearised().gradient.row(row);
                along[state.constraint.inequality_of(row)] += dot(gradient, d.x.row(row));
            }
            for (number, along) in along.iter().enumerate() {
                assert!((state.residual(number) + along + d.slack[number]).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn products_after_a_step_are_those_of_where_it_leads() {
    let mut random = Random::new(22);
    for constraint in constraints() {
        let mut state = state(&constraint, &mut random);
        let descent = random_grid(ROWS, &mut random);
        let d = step(&state, &descent, MU, None);
        let foretold = state.complementarity_after(&d, 0.4);
        let (_, before) = state.complementarity();
        state.advance(&d, 0.4);
        let (found, count) = state.complementarity();
        assert!(
            (foretold - found).abs() <= 1e-12 * found.abs(),
            "{constraint:?}"
        );
        let pairs = state.x.values().len() + state.slack.len() + state.w.values().len();
        assert_eq!((before, count), (pairs as f64, pairs as f64));
    }
}

#[test]
fn all_products_start_alike() {
    let mut random = Random::new(23);
    for constraint in constraints() {
        let mut state = state(&constraint, &mut random);
        state.start_multipliers(MU);
        let upper = state.upper_slack();
        let all = [
            products(state.x.values(), state.z.values()),
            products(&state.slack, &state.lambda),
            products(&upper, state.w.values()),
        ];
        for product in all.concat() {
            assert!((product - MU).abs() <= 1e-15, "{constraint:?}: {product}");
        }
    }
}

#[test]
fn a_step_goes_as_far_as_the_first_value_that_it_takes_to_zero() {
    assert_eq!(ratio(&[1.0, 3.0, 2.0], &[-0.5, -2.0, 4.0], 1.0), 1.5);
    assert_eq!(ratio(&[1.0, 3.0, 2.0], &[-0.5, -2.0, 4.0], -1.0), 0.5);
    assert_eq!(ratio(&[1.0, 3.0], &[0.0, 2.0], 1.0), f64::INFINITY);
}

/// As it says: N(x) + v − c at most v, a part of c, or what it was less a part of what a straight line would take off it.
#[test]
fn a_step_stays_close_to_a_curved_constraint_or_is_refused() {
    let mut random = Random::new(24);
    let mut answers = [0; 2];
    for constraint in constraints() {
        for length in [0.1, 0.5, 1.0, 3.0, 10.0] {
            let state = state(&constraint, &mut random);
            let mut d = step(&state, &random_grid(ROWS, &mut random), MU, None);
            for value in d.x.values_mut() {
                *value = length * (*value + 0.2);
            }
            let (x, at) = (state.x.values().iter().zip(d.x.values()), 0.7);
            let moved = Grid::from_values(ROWS, KERNELS, x.map(|(x, d)| x + at * d).collect());
            let (values, bound) = (state.constraint.values(&moved), state.constraint.bound());
            let is_close = (0..state.slack.len()).all(|number| {
                let slack = state.slack[number] + at * d.slack[number];
                let left = values[number] + slack - bound;
                let was = state.constraint.values(&state.x)[number] + state.slack[number] - bound;
                left <= slack || left <= 0.1 * bound || left <= 0.93 * was
            });
            assert_eq!(
                state.stays_close(&d, at),
                is_close,
                "{constraint:?} {length}"
            );
            if !state.slack.is_empty() {
                answers[usize::from(is_close)] += 1;
            }
        }
    }
    assert!(answers.iter().all(|&count| count > 5), "{answers:?}");
}
