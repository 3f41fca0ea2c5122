//! Direct steps that raise ḡ, what rounding can do, and when something else is tried.

use super::*;
use crate::gram::given;
use crate::inner::tests::{effort, some_kernel, whole};
use crate::machine::{Conjugate, Variables};
use crate::random::Random;
use crate::run::Stop;

/// With a factor of K/t a direct step is t times as long as the best one: ḡ rises by t − ½t² of what there is, for t below 2.
#[test]
fn a_direct_step_is_taken_where_it_raises_the_objective() {
    let mut random = Random::new(81);
    let n = 20;
    let grams = given(n, vec![some_kernel(n, &mut random)]);
    let (lower, upper) = (vec![-1e9; n], vec![1e9; n]);
    let linear: Vec<f64> = (0..n).map(|_| random.uniform()).collect();
    let stop = Stop::never();
    let effort = effort(1e-3, &stop);
    let qp = Qp {
        variables: Variables::one_each(n),
        linear: &linear,
        lower: &lower,
        upper: &upper,
    };
    let rows = CombinedRows::new(whole(&grams), &[1.0]);
    let beta: Vec<f64> = (0..n)
        .map(|i| f64::from(u8::from(i % 2 == 0)) - 0.5)
        .collect();
    let product = rows.product(&beta);
    let value = |beta: &[f64]| dot(&linear, beta) - 0.5 * dot(beta, &rows.product(beta));
    for (length, is_taken) in [
        (0.5, true),
        (1.0, true),
        (1.9, true),
        (2.1, false),
        (10.0, false),
    ] {
        let theta = [1.0 / length];
        let scaled = CombinedRows::new(whole(&grams), &theta);
        let there = Here {
            grams: whole(&grams),
            rows: &scaled,
            theta: &theta,
        };
        let free = (0..n).collect();
        let mut kept =
            KeptFactor::new(free, qp.variables, there, &effort, &Ledger::default()).unwrap();
        let (mut moved, mut image) = (beta.clone(), product.clone());
        assert_eq!(
            direct_step(&mut kept, &qp, &rows, &mut moved, &mut image),
            is_taken,
            "{length}"
        );
        if is_taken {
            assert!(value(&moved) > value(&beta));
            let exact = rows.product(&moved);
            let size = exact.iter().fold(1.0_f64, |a, b| a.max(b.abs()));
            assert!(
                image
                    .iter()
                    .zip(&exact)
                    .all(|(a, b)| (a - b).abs() <= 1e-10 * size)
            );
        } else {
            assert_eq!((moved, image), (beta.clone(), product.clone()));
        }
    }
}

/// Two samples with two variables each, K = diag(4, 9), κ = 2: a search from β = (½, 1, −1½, ¼) that nothing is kept for.
fn search(look: impl FnOnce(&mut Search<'_>)) {
    let grams = given(2, vec![vec![4.0, 0.0, 0.0, 9.0]]);
    let rows = CombinedRows::new(whole(&grams), &[1.0]);
    let stop = Stop::never();
    let (lower, upper) = (vec![-1.0, 0.0, -2.0, 0.0], vec![1.0, 3.0, 0.0, 1.0]);
    let dual = Dual {
        scale: 2.0,
        variables: Variables::new(2, 2),
        linear: vec![1.0, -1.0, 0.5, 2.0],
        diagonal: 0.0,
        conjugate: Conjugate::Box {
            lower: lower.clone(),
            upper: upper.clone(),
            sum: 0.0,
        },
    };
    let qp = Qp {
        variables: dual.variables,
        linear: &dual.linear,
        lower: &lower,
        upper: &upper,
    };
    let here = Here {
        grams: whole(&grams),
        rows: &rows,
        theta: &[1.0],
    };
    let mut point = Point::new(vec![0.5, 1.0, -1.5, 0.25], 2, &Ledger::default());
    let known = Known {
        kept: None,
        was_hard: false,
        is_part: false,
    };
    let effort = effort(1e-3, &stop);
    look(&mut Search::new(
        &dual, qp, &mut point, here, &effort, known,
    ));
}

#[test]
fn rounding_can_do_to_the_gap_what_it_does_to_slopes_over_the_width_of_the_box() {
    search(|search| {
        // √K_ii are 2 and 3, and the terms 1, 3, 3 and ¾; the widths of the two samples' boxes 2 + 2 and 3 + 1.
        let length = rounding(2) * (1.0 + 3.0 + 3.0 + 0.75);
        let expected = 2.0 * length * (2.0 * 4.0 + 3.0 * 4.0);
        assert!((search.worst_of_rounding() - expected).abs() <= 1e-14 * expected);
        assert_eq!((search.has_direct_steps(), search.price()), (true, 0));
    });
}

#[test]
fn what_is_missing_of_the_sum_goes_to_the_variable_with_the_most_room() {
    search(|search| {
        // The sum is ¼.
        search.mend_sum(0.25);
        assert_eq!(search.beta, [0.5, 1.0, -1.5, 0.25]);
        search.mend_sum(0.5);
        assert_eq!(search.beta, [0.5, 1.25, -1.5, 0.25]);
        let rows = search.here.rows;
        assert_eq!(search.product, rows.product(&[-1.0, 1.5]));
        // More than that variable has room for stays missing, and rounding as it is.
        search.mend_sum(0.5 + 1.75);
        search.mend_sum(0.5 + 0.5 * rounding(4) * 2.5);
        assert_eq!(search.beta, [0.5, 1.25, -1.5, 0.25]);
        search.mend_sum(0.5 + 4.0 * rounding(4) * 2.5);
        assert!(search.beta[1] > 1.25);
    });
}

#[test]
fn interior_points_are_due_once_where_the_gap_does_not_fall_or_small_steps_have_cost_as_much() {
    search(|search| {
        // A tenth less is a fall; so many rounds without are enough.
        (search.least, search.gap) = (1.0, 0.89);
        search.note_progress();
        assert_eq!((search.idle, search.least), (0, 0.89));
        for idle in 1..=IDLE_ROUNDS {
            search.note_progress();
            assert_eq!((search.idle, search.is_stuck()), (idle, false));
        }
        search.gap = 0.9 * 0.89;
        search.note_progress();
        assert!(search.is_stuck() && search.are_interior_points_due());
        assert_eq!(search.least, 0.9 * 0.89);
        search.idle = 0;
        assert!(!search.are_interior_points_due());
        search.steps = search.patience;
        assert!(search.are_interior_points_due());
        search.interior_points = InteriorPoints::Over;
        assert!(!search.are_interior_points_due());
    });
}
