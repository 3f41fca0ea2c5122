//! What a feasible β is worth: the duality gap of the quadratic programme, and the multiplier of its sum.

use super::Qp;

/// max over feasible β' of ⟨q − Kβ, β' − β⟩: an upper bound on how much the objective can still grow, for K ⪰ 0.
///
/// This is the machine's primal objective at the current w and the best offset b, minus its dual objective at β: for the SVM,
/// Σ_i C_i (1 − y_i(f_i + b))₊ + ½‖w‖² − (1'α − ½‖w‖²). The linear programme over a box with one sum is solved exactly by
/// filling the largest slopes first; each summand of the result is ≥ 0, so nothing cancels.
pub(crate) fn gap(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> f64 {
    gap_at(qp, beta, product, multiplier(qp, beta, product))
}

/// The same for another offset b: max over β' within the bounds of ⟨q − Kβ − b, β' − β⟩.
fn gap_at(qp: &Qp<'_>, beta: &[f64], product: &[f64], offset: f64) -> f64 {
    (0..beta.len())
        .map(|v| {
            let slope = qp.slope(product, v) - offset;
            if slope > 0.0 {
                slope * (qp.upper[v] - beta[v])
            } else {
                slope * (qp.lower[v] - beta[v])
            }
        })
        .sum()
}

/// The multiplier of the sum in that linear programme: the b for which the primal objective is least.
pub(super) fn multiplier(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> f64 {
    let filled = beta.iter().zip(qp.lower);
    let mass: f64 = filled.map(|(value, lower)| value - lower).sum();
    let room = |v: usize| (qp.slope(product, v), qp.upper[v] - qp.lower[v]);
    last_filled((0..beta.len()).map(room).collect(), mass)
}

/// The slope at which the mass is used up when the largest slopes are filled first, each with its room.
///
/// As in a search for the median: the half that holds it is halved again.
fn last_filled(mut rooms: Vec<(f64, f64)>, mut mass: f64) -> f64 {
    let mut left = &mut rooms[..];
    while left.len() > 1 {
        let half = left.len() / 2;
        left.select_nth_unstable_by(half, |a, b| b.0.total_cmp(&a.0));
        let (high, low) = left.split_at_mut(half);
        let room: f64 = high.iter().map(|(_, room)| room).sum();
        left = if room >= mass {
            high
        } else {
            mass -= room;
            low
        };
    }
    left.first().map_or(0.0, |(slope, _)| *slope)
}

/// max {g_v : β_v can grow} − min {g_v : β_v can shrink}: 0 or less at the optimum.
pub(crate) fn violation(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> f64 {
    let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
    for v in 0..beta.len() {
        let slope = qp.slope(product, v);
        if beta[v] < qp.upper[v] {
            highest = highest.max(slope);
        }
        if beta[v] > qp.lower[v] {
            lowest = lowest.min(slope);
        }
    }
    (highest - lowest).max(0.0)
}

/// Next to a bound, a variable that only rounding keeps off it is not free: so much of the distance between its bounds.
pub(crate) const MARGIN: f64 = 1e-10;

/// b, the multiplier of Σβ = s: the slope that all free variables share at the optimum, else the middle of what is allowed.
pub(crate) fn offset(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> f64 {
    let (mut sum, mut free) = (0.0, 0_usize);
    let (mut highest, mut lowest) = (f64::NEG_INFINITY, f64::INFINITY);
    for v in 0..beta.len() {
        let margin = MARGIN * (qp.upper[v] - qp.lower[v]);
        if margin <= 0.0 {
            continue;
        }
        let slope = qp.slope(product, v);
        let grows = beta[v] < qp.upper[v] - margin;
        let shrinks = beta[v] > qp.lower[v] + margin;
        if grows && shrinks {
            sum += slope;
            free += 1;
        } else if grows {
            highest = highest.max(slope);
        } else {
            lowest = lowest.min(slope);
        }
    }
    match (free, highest.is_finite(), lowest.is_finite()) {
        (1.., _, _) => sum / free as f64,
        (0, true, true) => 0.5 * (highest + lowest),
        (0, true, false) => highest,
        (0, false, true) => lowest,
        (0, false, false) => 0.0,
    }
}

/// A machine's offset, the gap with that very offset, and how much more it can be for rounding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) offset: f64,
    pub(crate) gap: f64,
    pub(crate) noise: f64,
}

/// A gap that is larger by this factor is as good.
const AS_GOOD: f64 = 1.1;

/// The gap with this offset, wherever slopes are within these errors (one per sample) of what they were computed as.
fn safe_gap(qp: &Qp<'_>, beta: &[f64], product: &[f64], offset: f64, errors: &[f64]) -> f64 {
    let digits = f64::EPSILON * offset.abs();
    (0..beta.len())
        .map(|v| {
            let slope = qp.slope(product, v) - offset;
            let error =
                errors[qp.variables.sample_of(v)] + f64::EPSILON * qp.linear[v].abs() + digits;
            let grown = (slope + error) * (qp.upper[v] - beta[v]);
            let shrunk = (slope - error) * (qp.lower[v] - beta[v]);
            grown.max(shrunk).max(0.0)
        })
        .sum()
}

/// The usual [`offset`] where it is as good as the best one: far from the optimum free variables have no slope in common. `errors` is what
/// rounding can do to Kβ.
pub(crate) fn best_offset(qp: &Qp<'_>, beta: &[f64], product: &[f64], errors: &[f64]) -> Hold {
    let with = |offset: f64| {
        let gap = gap_at(qp, beta, product, offset);
        let safe = safe_gap(qp, beta, product, offset, errors);
        Hold {
            offset,
            gap,
            noise: safe - gap,
        }
    };
    let usual = with(offset(qp, beta, product));
    let best = with(multiplier(qp, beta, product));
    if usual.gap + usual.noise <= AS_GOOD * (best.gap + best.noise) {
        usual
    } else {
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Variables;
    use crate::random::Random;

    #[test]
    fn what_rounding_leaves_is_not_free() {
        // The first variable is at its bound but for rounding: b is between the slopes of those that can grow and can shrink.
        let qp = Qp {
            variables: Variables::one_each(3),
            linear: &[3.0, 1.0, 0.5],
            lower: &[0.0; 3],
            upper: &[1.0; 3],
        };
        let found = offset(&qp, &[1.0 - 4e-16, 1.0, 0.0], &[0.0; 3]);
        assert_eq!(found, 0.75);
        assert_eq!(offset(&qp, &[1.0, 0.5, 4e-16], &[0.0; 3]), 1.0);
    }

    #[test]
    fn the_last_that_is_filled_is_that_of_sorting() {
        let mut random = Random::new(11);
        for n in [1, 2, 3, 10, 101] {
            for _ in 0..20 {
                // Equal slopes and empty rooms among them.
                let level = |x: f64| (10.0 * x).round();
                let mut rooms: Vec<(f64, f64)> = (0..n)
                    .map(|_| (level(random.uniform()), level(random.uniform()).min(3.0)))
                    .collect();
                let mass = random.uniform() * rooms.iter().map(|(_, room)| room).sum::<f64>();
                let found = last_filled(rooms.clone(), mass);
                rooms.sort_by(|a, b| b.0.total_cmp(&a.0));
                let mut left = mass;
                let sorted = rooms.iter().find(|(_, room)| {
                    left -= room;
                    left <= 0.0
                });
                assert_eq!(found, sorted.map_or(f64::NAN, |(slope, _)| *slope));
            }
        }
    }

    fn qp<'a>(linear: &'a [f64], lower: &'a [f64], upper: &'a [f64]) -> Qp<'a> {
        Qp {
            variables: Variables::one_each(linear.len()),
            linear,
            lower,
            upper,
        }
    }

    #[test]
    fn the_violation_is_of_a_pair_that_can_move() {
        let (lower, upper) = ([0.0; 3], [1.0; 3]);
        let of = |linear: &[f64; 3], beta: &[f64; 3]| {
            violation(&qp(linear, &lower, &upper), beta, &[0.0; 3])
        };
        assert_eq!(of(&[0.25, 1.0, 1.5], &[1.0, 0.5, 0.0]), 1.25);
        assert_eq!(of(&[3.0, 1.0, 0.5], &[1.0, 0.5, 0.0]), 0.0);
        assert_eq!(of(&[3.0, 2.0, 0.5], &[1.0, 1.0, 0.0]), 0.0);
        let moved = violation(
            &qp(&[0.25, 1.0, 1.5], &lower, &upper),
            &[1.0, 0.5, 0.0],
            &[0.0, 0.0, 1.0],
        );
        assert_eq!(moved, 0.75);
    }

    #[test]
    fn without_free_variables_the_offset_is_between_those_that_may_move() {
        let (lower, upper) = ([0.0; 3], [1.0, 1.0, 0.0]);
        let of = |beta: &[f64; 3]| offset(&qp(&[4.0, 1.0, 9.0], &lower, &upper), beta, &[0.0; 3]);
        assert_eq!(of(&[0.0, 0.0, 0.0]), 4.0);
        assert_eq!(of(&[1.0, 1.0, 0.0]), 1.0);
        assert_eq!(of(&[1.0, 0.0, 0.0]), 2.5);
        assert_eq!(of(&[0.5, 0.25, 0.0]), 2.5);
        assert_eq!(offset(&qp(&[4.0], &[2.0], &[2.0]), &[2.0], &[0.0]), 0.0);
        // Off a bound by less than a part of the distance between the bounds is at it.
        let (lower, upper) = ([-50.0; 2], [50.0; 2]);
        let at = |beta: f64| offset(&qp(&[4.0, 1.0], &lower, &upper), &[beta, 0.0], &[0.0; 2]);
        assert_eq!((at(50.0 - 5e-9), at(5e-9 - 50.0)), (1.0, 1.0));
        assert_eq!((at(50.0 - 2e-8), at(2e-8 - 50.0)), (2.5, 2.5));
    }

    #[test]
    fn a_safe_gap_is_the_largest_with_slopes_within_their_errors() {
        let mut random = Random::new(12);
        let mut signed =
            |count: usize| -> Vec<f64> { (0..count).map(|_| random.uniform() - 0.5).collect() };
        for offset in [-0.3, 0.0, 0.2] {
            let (linear, product) = (signed(6), signed(3));
            let (lower, upper) = (vec![-1.0; 6], vec![0.75; 6]);
            let beta = signed(6);
            let qp = Qp {
                variables: Variables::new(3, 2),
                linear: &linear,
                lower: &lower,
                upper: &upper,
            };
            let errors = [0.1, 0.0, 0.4];
            let expected: f64 = (0..6)
                .map(|v| {
                    let slope = linear[v] - product[v % 3] - offset;
                    let ends = [slope - errors[v % 3], slope + errors[v % 3]];
                    let worth =
                        ends.map(|slope| (slope * (0.75 - beta[v])).max(slope * (-1.0 - beta[v])));
                    worth[0].max(worth[1])
                })
                .sum();
            let found = safe_gap(&qp, &beta, &product, offset, &errors);
            assert!((found - expected).abs() <= 1e-14);
        }
        // Digits of what a slope is the difference of are errors too: of q, and of b.
        let (lower, upper) = ([0.0], [1.0]);
        let large = 1.0 / f64::EPSILON;
        let found = safe_gap(&qp(&[large], &lower, &upper), &[0.5], &[large], 0.0, &[0.0]);
        assert_eq!(found, 0.5);
        let found = safe_gap(&qp(&[large], &lower, &upper), &[0.5], &[0.0], large, &[0.0]);
        assert_eq!(found, 1.0);
    }

    #[test]
    fn the_offset_is_the_usual_one_unless_another_is_better() {
        let (lower, upper) = ([0.0; 3], [1.0; 3]);
        // Free variables that agree, but for a little.
        let near = qp(&[1.0, 1.0 + 1e-9, 5.0], &lower, &upper);
        let hold = best_offset(&near, &[0.5, 0.5, 1.0], &[0.0; 3], &[0.0; 3]);
        assert_eq!(hold.offset, offset(&near, &[0.5, 0.5, 1.0], &[0.0; 3]));
        // Three that do not: the mean of 0, 0 and 9 is far from the best, which is 0.
        let far = qp(&[0.0, 0.0, 9.0], &lower, &upper);
        let beta = [0.5, 0.5, 0.5];
        let hold = best_offset(&far, &beta, &[0.0; 3], &[0.0; 3]);
        assert_eq!((hold.offset, hold.gap), (0.0, 4.5));
        assert_eq!(offset(&far, &beta, &[0.0; 3]), 3.0);
        // What is safe is said beside what is seen.
        let hold = best_offset(&far, &beta, &[0.0; 3], &[0.5; 3]);
        assert!((hold.gap + hold.noise - 5.25).abs() <= 1e-12 && (hold.gap - 4.5).abs() <= 1e-12);
    }
}
