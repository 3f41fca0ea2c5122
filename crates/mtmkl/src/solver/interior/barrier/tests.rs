//! Every barrier against finite differences: its gradient, what it leaves in the Newton matrix, and the points it moves.

use super::*;
use crate::random::Random;

const ROWS: usize = 3;
const KERNELS: usize = 4;

/// Every kind, with exponents that take each branch.
fn constraints() -> Vec<Constraint> {
    let mut all = vec![
        Constraint::RowSum {
            total: 1.5,
            upper: None,
        },
        Constraint::RowSum {
            total: 1.5,
            upper: Some(0.8),
        },
        Constraint::RowBall {
            centre: vec![0.4, 0.0, 0.2, 0.9],
            radius: 0.7,
        },
        Constraint::Constant,
    ];
    for p in [1.0, 1.1, 1.5, 2.0, 3.0, 4.5] {
        all.push(Constraint::RowNorm { p, radius: 1.3 });
        for q in [1.0, 1.5, 2.0, 3.5] {
            all.push(Constraint::MixedNorm { p, q, radius: 2.1 });
        }
    }
    all
}

fn point(random: &mut Random) -> Grid {
    let values = (0..ROWS * KERNELS).map(|_| 0.1 + random.uniform());
    Grid::from_values(ROWS, KERNELS, values.collect())
}

fn moved(x: &Grid, entry: usize, by: f64) -> Grid {
    let mut moved = x.clone();
    moved.values_mut()[entry] += by;
    moved
}

#[test]
fn gradients_are_the_slopes_of_the_values() {
    let mut random = Random::new(1);
    for constraint in constraints() {
        let mut barrier = barrier(&constraint, ROWS, KERNELS);
        let x = point(&mut random);
        barrier.move_to(&x);
        let at_x = barrier.linearised().clone();
        let values = barrier.values(&x);
        assert_eq!(values.len(), at_x.values.len());
        for (a, b) in values.iter().zip(&at_x.values) {
            assert!((a - b).abs() < 1e-14);
        }
        if values.is_empty() {
            continue;
        }
        for entry in 0..ROWS * KERNELS {
            let own = barrier.inequality_of(entry / KERNELS);
            let there = barrier.values(&moved(&x, entry, 1e-6));
            let before = barrier.values(&moved(&x, entry, -1e-6));
            for (number, (after, before)) in there.iter().zip(&before).enumerate() {
                let slope = (after - before) / 2e-6;
                let expected = if number == own {
                    at_x.gradient.values()[entry]
                } else {
                    0.0
                };
                assert!((slope - expected).abs() < 1e-8, "{constraint:?}");
            }
        }
    }
}

/// Diagonals, borders and the border over all rows, put together; equalities are left out.
fn assembled(rows: &[RowMatrix], over_all: Option<&Border>) -> Vec<f64> {
    let size = ROWS * KERNELS;
    let mut matrix = vec![0.0; size * size];
    let mut add = |start: usize, border: &Border| {
        for (i, a) in border.vector.iter().enumerate() {
            for (j, b) in border.vector.iter().enumerate() {
                matrix[(start + i) * size + start + j] += a * b / border.inverse;
            }
        }
    };
    for (row, own) in rows.iter().enumerate() {
        let borders = own.borders.iter().filter(|border| border.inverse != 0.0);
        borders.for_each(|border| add(row * KERNELS, border));
    }
    if let Some(border) = over_all {
        add(0, border);
    }
    for (row, own) in rows.iter().enumerate() {
        for (kernel, value) in own.diagonal.iter().enumerate() {
            let i = row * KERNELS + kernel;
            matrix[i * size + i] += value;
        }
    }
    matrix
}

#[test]
fn curvature_is_the_slope_of_the_gradient() {
    let mut random = Random::new(2);
    for constraint in constraints() {
        let mut barrier = barrier(&constraint, ROWS, KERNELS);
        let x = point(&mut random);
        barrier.move_to(&x);
        let at_x = barrier.linearised().clone();
        let count = at_x.values.len();
        let lambda: Vec<f64> = (0..count).map(|_| 0.2 + random.uniform()).collect();
        let slack: Vec<f64> = (0..count).map(|_| 0.2 + random.uniform()).collect();
        let none = RowMatrix {
            diagonal: vec![0.0; KERNELS],
            borders: Vec::new(),
        };
        let mut rows = vec![none; ROWS];
        let over_all = barrier.add_curvature(&x, &lambda, &slack, &mut rows);
        let matrix = assembled(&rows, over_all.as_ref());
        let size = ROWS * KERNELS;
        for j in 0..size {
            // λ ∇N on both sides.
            let mut pull = |by: f64| -> Vec<f64> {
                let there = moved(&x, j, by);
                barrier.move_to(&there);
                let gradient = &barrier.linearised().gradient;
                let of = |i: usize| lambda[barrier.inequality_of(i / KERNELS)];
                let entries = gradient.values().iter().enumerate();
                entries.map(|(i, value)| of(i) * value).collect()
            };
            let (after, before) = (pull(1e-6), pull(-1e-6));
            for i in 0..size {
                let mut expected = 0.0;
                if count > 0 {
                    expected += (after[i] - before[i]) / 2e-6;
                    let (one, other) = (
                        barrier.inequality_of(i / KERNELS),
                        barrier.inequality_of(j / KERNELS),
                    );
                    if one == other {
                        let gradient = at_x.gradient.values();
                        expected += lambda[one] / slack[one] * gradient[i] * gradient[j];
                    }
                }
                let found = matrix[i * size + j];
                assert!(
                    (found - expected).abs() < 1e-6,
                    "{constraint:?}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn sums_are_equalities_and_the_rest_is_not() {
    for constraint in constraints() {
        let barrier = barrier(&constraint, ROWS, KERNELS);
        let is_sum = matches!(constraint, Constraint::RowSum { .. });
        if !is_sum {
            continue;
        }
        let none = RowMatrix {
            diagonal: vec![1.0; KERNELS],
            borders: Vec::new(),
        };
        let mut rows = vec![none; ROWS];
        let x = Grid::filled(ROWS, KERNELS, 0.375);
        assert!(barrier.add_curvature(&x, &[], &[], &mut rows).is_none());
        for row in rows {
            assert_eq!(row.borders.len(), 1);
            assert_eq!(
                (row.borders[0].inverse, &row.borders[0].vector[..]),
                (0.0, &[1.0; 4][..])
            );
        }
    }
}

#[test]
fn points_are_moved_into_the_set_and_keep_their_size_when_snapped() {
    let mut random = Random::new(3);
    for constraint in constraints() {
        let barrier = barrier(&constraint, ROWS, KERNELS);
        let mut x = point(&mut random);
        for row in 0..ROWS {
            // Above every radius, with one entry on its way to zero; below the upper bound once the sum is made exact.
            let scale = 1.4 + 0.2 * row as f64;
            let row = x.row_mut(row);
            for value in row.iter_mut() {
                *value = scale * (0.9 + 0.1 * *value);
            }
            row[1] = 1e-7;
        }
        barrier.project(&mut x);
        for value in barrier.values(&x) {
            assert!(value <= barrier.bound() * (1.0 + 1e-14), "{constraint:?}");
        }
        let (before, sums) = (barrier.values(&x), x.sum_rows());
        barrier.snap(&mut x, 1e-6);
        for (after, before) in barrier.values(&x).iter().zip(&before) {
            assert!((after - before).abs() < 1e-14, "{constraint:?}");
        }
        if let Constraint::RowSum { total, .. } = constraint {
            assert!(x.values().iter().all(|&value| value == 0.0 || value > 1e-6));
            assert!((x.values().iter().sum::<f64>() - ROWS as f64 * total).abs() < 1e-14);
            assert!((sums.values().iter().sum::<f64>() - ROWS as f64 * total).abs() < 1e-14);
        }
    }
}
