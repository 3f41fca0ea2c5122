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

/// Four variables: where they are, and what they are worth.
struct Place {
    linear: [f64; 4],
    lower: [f64; 4],
    upper: [f64; 4],
    beta: [f64; 4],
}

/// Two samples with two variables each, K = diag(4, 9), κ = 2: a search from this β that nothing is kept for.
fn search_from(place: &Place, look: impl FnOnce(&mut Search<'_>)) {
    let grams = given(2, vec![vec![4.0, 0.0, 0.0, 9.0]]);
    let rows = CombinedRows::new(whole(&grams), &[1.0]);
    let stop = Stop::never();
    let dual = Dual {
        scale: 2.0,
        variables: Variables::new(2, 2),
        linear: place.linear.to_vec(),
        diagonal: 0.0,
        conjugate: Conjugate::Box {
            lower: place.lower.to_vec(),
            upper: place.upper.to_vec(),
            sum: 0.0,
        },
    };
    let qp = Qp {
        variables: dual.variables,
        linear: &dual.linear,
        lower: &place.lower,
        upper: &place.upper,
    };
    let here = Here {
        grams: whole(&grams),
        rows: &rows,
        theta: &[1.0],
    };
    let mut point = Point::new(place.beta.to_vec(), 2, &Ledger::default());
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

/// The same from β = (½, 1, −1½, ¼).
fn search(look: impl FnOnce(&mut Search<'_>)) {
    let place = Place {
        linear: [1.0, -1.0, 0.5, 2.0],
        lower: [-1.0, 0.0, -2.0, 0.0],
        upper: [1.0, 3.0, 0.0, 1.0],
        beta: [0.5, 1.0, -1.5, 0.25],
    };
    search_from(&place, look);
}

/// Two variables a sample, [0, 10¹⁶] and [−10¹⁶, 0], that take each other away but for 3½ and −3⅝: an eighth is below the last digit of each.
#[test]
fn what_is_missing_of_the_sum_is_not_put_where_it_is_lost() {
    let place = Place {
        linear: [1.0, -1.0, 2.0, -1.0],
        lower: [0.0, 0.0, -1e16, -1e16],
        upper: [1e16, 1e16, 0.0, 0.0],
        beta: [4e15, 1e15, -4e15 + 3.5, -1e15 - 3.625],
    };
    search_from(&place, |search| {
        assert_eq!(search.product, [14.0, -9.0 * 3.625]);
        search.mend_sum(0.0);
        assert_eq!(search.beta, [3.5, 0.0, 0.0, -3.5]);
        assert_eq!(search.product, [14.0, -31.5]);
    });
}

#[test]
fn where_all_are_at_their_bounds_the_one_with_the_most_room_makes_up_for_the_sum() {
    let place = Place {
        linear: [1.0, -1.0, 2.0, -1.0],
        lower: [0.0, 0.0, 0.0, -4.0],
        upper: [3.5, 1.0, 0.0, -3.25],
        beta: [3.5, 0.0, 0.0, -3.25],
    };
    search_from(&place, |search| {
        search.mend_sum(0.0);
        assert_eq!(search.beta, [3.25, 0.0, 0.0, -3.25]);
        assert_eq!(search.product, [13.0, -29.25]);
    });
}

#[test]
fn twins_take_each_other_away_where_that_is_worth_something() {
    let (lower, upper) = ([0.0, 0.5, -8.0, -8.0], [8.0, 8.0, 0.0, 0.0]);
    let cancelled = |linear: [f64; 4], mut beta: [f64; 4]| {
        let qp = Qp {
            variables: Variables::new(2, 2),
            linear: &linear,
            lower: &lower,
            upper: &upper,
        };
        cancel_twins(&qp, &mut beta);
        beta
    };
    // As far as the bounds let them.
    let beta = [5.0, 5.0, -3.0, -7.0];
    assert_eq!(cancelled([1.0, 1.0, 2.0, 1.0], beta), [2.0, 0.5, 0.0, -2.5]);
    assert_eq!(cancelled([1.0, 1.0, 0.5, 0.5], beta), beta);
    // What is of one sign is no pair.
    let beta = [0.0, 0.5, -3.0, -7.0];
    assert_eq!(cancelled([1.0, 1.0, 2.0, 2.0], beta), beta);
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
        // More than any has room for on both sides goes to the one with the most room on that side.
        search.mend_sum(0.5 + 1.75);
        assert_eq!(search.beta, [0.5, 3.0, -1.5, 0.25]);
        search.mend_sum(0.5);
        assert_eq!(search.beta, [0.5, 1.25, -1.5, 0.25]);
        // Rounding stays as it is.
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
