//! Conditions, what follows β, and what may move.

use super::super::super::tests::some_kernel;
use super::*;
use crate::random::Random;

const SAMPLES: usize = 60;

fn set_of(kernel: &[f64], variables: &[usize]) -> FreeSet {
    let entry = |i: usize, j: usize| kernel[variables[i] * SAMPLES + variables[j]];
    let fill = |j: usize, column: &mut [f64]| {
        for (value, i) in column.iter_mut().zip(j..) {
            *value = entry(i, j);
        }
    };
    let all = Variables::one_each(SAMPLES);
    FreeSet::of_columns(
        variables.to_vec(),
        all,
        &Stop::never(),
        &Ledger::default(),
        fill,
    )
    .unwrap()
}

/// The step for these slopes by sample, in the order of samples: zero for what does not move.
fn moves(set: &FreeSet, slopes: &[f64]) -> Vec<f64> {
    let own: Vec<f64> = set.members.iter().map(|&v| slopes[v]).collect();
    let mut moves = vec![0.0; SAMPLES];
    let found = set.solve(&own, &vec![0.0; 1 + set.held.len()]);
    for (&v, value) in set.members.iter().zip(found) {
        moves[v] = value;
    }
    moves
}

#[test]
fn a_set_that_followed_is_the_set_made_anew() {
    let mut random = Random::new(5);
    let kernel = some_kernel(SAMPLES, &mut random);
    let slopes: Vec<f64> = (0..SAMPLES).map(|_| random.uniform()).collect();
    let entries = |i: usize, columns: &[usize], out: &mut [f64]| {
        for (value, &j) in out.iter_mut().zip(columns) {
            *value = kernel[i * SAMPLES + j];
        }
    };
    let mut free: Vec<usize> = (0..SAMPLES).filter(|v| v % 5 > 0).collect();
    let mut set = set_of(&kernel, &free);
    let (mut released, mut held, mut taken_in) = (0, 0, 0);
    for _ in 0..60 {
        // Two samples change sides.
        for _ in 0..2 {
            let v = random.below(SAMPLES);
            match free.binary_search(&v) {
                Ok(at) => {
                    free.remove(at);
                    held += 1;
                }
                Err(at) => {
                    released += usize::from(set.members.contains(&v));
                    taken_in += usize::from(!set.members.contains(&v));
                    free.insert(at, v);
                }
            }
        }
        if !set.follow(&free, entries) {
            set = set_of(&kernel, &free);
        }
        let anew = set_of(&kernel, &free);
        let (ours, wanted) = (moves(&set, &slopes), moves(&anew, &slopes));
        for (x, y) in ours.iter().zip(&wanted) {
            assert!((x - y).abs() < 1e-8 * (1.0 + y.abs()), "{x} {y}");
        }
        // V'V, for two columns.
        let gram = |set: &FreeSet| {
            let images = set.samples().map(|i| slopes[i]);
            let mut block: Vec<f64> = images.flat_map(|x| [x, 1.0 + x * x]).collect();
            set.project(&mut block, 2);
            let mut gram = vec![0.0; 4];
            linalg::add_gram(&block, 2, &mut gram);
            gram
        };
        for (x, y) in gram(&set).iter().zip(gram(&anew)) {
            assert!((x - y).abs() < 1e-8 * (1.0 + y.abs()), "{x} {y}");
        }
    }
    assert!(released > 5 && held > 5 && taken_in > 5);
}

#[test]
fn what_is_free_or_should_come_off_its_bound_may_move() {
    let n = 6;
    let (lower, upper) = ([0.0; 6], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]);
    // b = 0 by the free one; the second and fourth point inwards, the third, fifth and sixth outwards or nowhere.
    let qp = Qp {
        variables: Variables::one_each(n),
        linear: &[0.0, 1.0, -1.0, -1.0, 1.0, 9.0],
        lower: &lower,
        upper: &upper,
    };
    let beta = [0.5, 0.0, 0.0, 1.0, 1.0, 0.0];
    assert_eq!(movable_variables(&qp, &beta, &[0.0; 6]), [0, 1, 3]);
    assert_eq!(free_variables(&qp, &beta), [0]);
    // With Kβ that turns the slopes.
    assert_eq!(
        movable_variables(&qp, &beta, &[0.0, 2.0, -2.0, -2.0, 2.0, 0.0]),
        [0, 2, 4]
    );
    // Slopes of b itself stay where they are.
    assert_eq!(
        movable_variables(&qp, &beta, &[0.0, 1.0, -1.0, -1.0, 1.0, 9.0]),
        [0]
    );
    for (v, is_inside) in [(0, true), (1, false), (3, false), (5, false)] {
        assert_eq!(is_free(&qp, &beta, v), is_inside, "{v}");
    }
}

#[test]
fn of_a_sample_s_two_variables_the_free_one_moves() {
    // One sample with both at a bound, the first of which should come off; one whose second is free; one at rest.
    let (lower, upper) = (
        [0.0, 0.0, 0.0, -1.0, -1.0, -1.0],
        [1.0, 1.0, 1.0, 0.0, 0.0, 0.0],
    );
    let qp = Qp {
        variables: Variables::new(3, 2),
        linear: &[1.0, 1.0, -1.0, 1.0, 0.0, 1.0],
        lower: &lower,
        upper: &upper,
    };
    let beta = [0.0, 0.0, 0.0, 0.0, -0.5, 0.0];
    assert_eq!(movable_variables(&qp, &beta, &[0.0; 3]), [0, 4]);
}

#[test]
fn a_set_takes_its_factor_and_a_direction_for_each_condition() {
    assert_eq!(
        (most_conditions(0), most_conditions(IN_CACHE)),
        (2, IN_CACHE / 3 + 2)
    );
    assert_eq!(most_conditions(IN_CACHE + 8), (IN_CACHE + 8) / 8 + 2);
    let size = Room::ToGrow.size(30) as u64;
    assert_eq!(bytes_of_factor(30), 8 * size * size);
    assert_eq!(bytes(30), 8 * size * size + 8 * 30 * (10 + 2 + 1));
    let mut random = Random::new(6);
    let kernel = some_kernel(SAMPLES, &mut random);
    let mut set = set_of(&kernel, &(0..30).collect::<Vec<_>>());
    assert_eq!((set.len(), set.moving().len()), (30, 30));
    assert!(set.hold(&[4, 7]));
    set.account();
    assert_eq!(set.memory.bytes(), 8 * size * size + 8 * 30 * 3);
    assert_eq!(set.ledger.taken(), set.memory.bytes());
    let moving: Vec<usize> = (0..30).filter(|v| ![4, 7].contains(v)).collect();
    assert_eq!((set.len(), set.moving()), (30, moving));
    // Twelve conditions are allowed for, two of which are there.
    assert!(!set.too_many(10) && set.too_many(11));
}
