//! Gaps, steps and offsets of a smooth dual, each against what it says it is.

use std::cell::Cell;
use std::sync::Arc;

use super::super::tests::{Logistic, effort, some_kernel, whole};
use super::super::{Inner, Progress};
use super::*;
use crate::gram::{Grams, given};
use crate::machine::{Conjugate, Variables};
use crate::random::Random;
use crate::run::Stop;

const N: usize = 8;

/// Logistic regression with C = 2 on eight samples: the solver, K, q and a point inside, Kβ known.
struct Place {
    grams: Grams,
    dual: Dual,
    linear: Vec<f64>,
    beta: Vec<f64>,
}

impl Place {
    fn new(sum: Option<f64>, random: &mut Random) -> Self {
        let labels: Vec<f64> = (0..N).map(|i| [1.0, -1.0][i % 2]).collect();
        let shares: Vec<f64> = (0..N).map(|_| 0.1 + 0.8 * random.uniform()).collect();
        let beta = labels
            .iter()
            .zip(shares)
            .map(|(y, share)| 2.0 * y * share)
            .collect();
        let linear: Vec<f64> = (0..N).map(|_| 2.0 * random.uniform() - 1.0).collect();
        let function = Arc::new(Logistic { labels, c: 2.0 });
        Self {
            grams: given(N, vec![some_kernel(N, random)]),
            dual: Dual {
                scale: 3.0,
                variables: Variables::one_each(N),
                linear: linear.clone(),
                diagonal: 0.0,
                conjugate: Conjugate::Smooth { function, sum },
            },
            linear,
            beta,
        }
    }

    fn look(&self, look: impl FnOnce(&Smooth<'_>, Iterate, Here<'_>)) {
        let Conjugate::Smooth { function, sum } = &self.dual.conjugate else {
            unreachable!()
        };
        let smooth = Smooth {
            dual: &self.dual,
            function: function.as_ref(),
            sum: *sum,
            kept: &mut None,
        };
        let rows = CombinedRows::new(whole(&self.grams), &[1.0]);
        let iterate = Iterate {
            product: rows.multiply(&self.beta),
            beta: self.beta.clone(),
            ends: smooth.ends(N),
            last_gap: 0.0,
        };
        let here = Here {
            grams: whole(&self.grams),
            rows: &rows,
            theta: &[1.0],
        };
        look(&smooth, iterate, here);
    }

    /// q'β − ½ β'Kβ − Σ φ
    fn value(&self, beta: &[f64], rows: &CombinedRows<'_>) -> f64 {
        dot(&self.linear, beta) - 0.5 * dot(beta, &rows.multiply(beta)) - self.dual.penalty(beta)
    }
}

#[test]
fn the_gap_is_fenchel_s_and_safe_where_slopes_are_within_their_errors() {
    let mut random = Random::new(71);
    for sum in [None, Some(0.4)] {
        let place = Place::new(sum, &mut random);
        let errors: Vec<f64> = (0..N).map(|_| 0.3 * random.uniform()).collect();
        place.look(|smooth, iterate, _| {
            for offset in [0.0, 0.7, -0.2] {
                let (mut plain, mut safe) = (0.0, 0.0);
                for (i, &beta) in iterate.beta.iter().enumerate() {
                    let slope = place.linear[i] - iterate.product[i] - offset;
                    let at = |slope: f64| {
                        let (conjugate, _) = smooth.function.conjugate(i, slope);
                        smooth.function.value(i, beta) + conjugate - beta * slope
                    };
                    plain += at(slope);
                    safe += at(slope - errors[i]).max(at(slope + errors[i]));
                }
                let missing = sum.map_or(0.0, |sum| sum - iterate.beta.iter().sum::<f64>());
                safe += (offset * missing).abs();
                let (found, more) = smooth.gap(&iterate, &place.linear, offset, &errors);
                assert!((found - 3.0 * plain).abs() <= 1e-13 * plain);
                assert!((found + more - 3.0 * safe).abs() <= 1e-12 * safe);
            }
        });
    }
}

#[test]
fn a_step_is_taken_where_the_objective_rises_by_what_is_said() {
    let mut random = Random::new(72);
    let mut taken = [0; 2];
    for _ in 0..20 {
        let place = Place::new(None, &mut random);
        let change: Vec<f64> = (0..N).map(|_| 0.4 * (random.uniform() - 0.5)).collect();
        place.look(|smooth, iterate, here| {
            let residual = smooth.residual(&iterate, &place.linear);
            for (i, left) in residual.iter().enumerate() {
                let slope = smooth.function.slope(i, iterate.beta[i]);
                assert!((left - (place.linear[i] - iterate.product[i] - slope)).abs() <= 1e-14);
            }
            for length in [1.0, -1.0, 0.1, -0.1] {
                let moved = iterate.beta.iter().zip(&change).zip(&iterate.ends);
                let beta: Vec<f64> = moved
                    .map(|((b, c), (low, high))| (b + length * c).clamp(*low, *high))
                    .collect();
                let before = place.value(&iterate.beta, here.rows);
                let gain = place.value(&beta, here.rows) - before;
                let own: Vec<f64> = beta
                    .iter()
                    .zip(&iterate.beta)
                    .map(|(new, old)| new - old)
                    .collect();
                let rise = dot(&residual, &own);
                let found = smooth.tried(&iterate, &residual, beta.clone(), here);
                taken[usize::from(found.is_some())] += 1;
                if let Some(found) = found {
                    assert!((found.gain - gain).abs() <= 1e-12);
                    assert!(rise > 0.0);
                    let image = here.rows.multiply(&own);
                    assert!(
                        found
                            .image
                            .iter()
                            .zip(&image)
                            .all(|(a, b)| (a - b).abs() <= 1e-14)
                    );
                } else {
                    // Downhill, or too far: no tenth of what the slope promises, and no longer rising.
                    assert!(rise <= 0.0 || gain < ENOUGH * rise + 1e-12);
                }
                if rise > 0.0 && gain >= ENOUGH * rise + 1e-12 {
                    assert!(smooth.tried(&iterate, &residual, beta, here).is_some());
                }
            }
        });
    }
    assert!(taken[0] > 10 && taken[1] > 10, "{taken:?}");
}

#[test]
fn along_a_rising_direction_some_step_is_found_and_k_beta_follows() {
    let mut random = Random::new(73);
    for sum in [None, Some(0.3)] {
        let mut place = Place::new(sum, &mut random);
        if sum.is_some() {
            // Σβ is what it is to be.
            place.dual.conjugate = match place.dual.conjugate {
                Conjugate::Smooth { function, .. } => Conjugate::Smooth {
                    function,
                    sum: Some(place.beta.iter().sum()),
                },
                other => other,
            };
        }
        place.look(|smooth, mut iterate, here| {
            let residual = smooth.residual(&iterate, &place.linear);
            let curvatures = smooth.curvatures(&iterate.beta);
            let offset = smooth.offset(&residual, &curvatures);
            let direction: Vec<f64> = (residual.iter().zip(&curvatures))
                .map(|(left, bend)| (left - offset) / bend)
                .collect();
            if smooth.sum.is_some() {
                // That is what the offset is for.
                assert!(direction.iter().sum::<f64>().abs() <= 1e-12);
            }
            let left: Vec<f64> = residual.iter().map(|left| left - offset).collect();
            let before = place.value(&iterate.beta, here.rows);
            let sum = iterate.beta.iter().sum::<f64>();
            let gain = smooth
                .search(&mut iterate, &left, &direction, here)
                .unwrap();
            let after = place.value(&iterate.beta, here.rows);
            let moved = iterate.beta.iter().sum::<f64>() - sum;
            assert!((after - before - gain - offset * moved).abs() <= 1e-12 && gain > 0.0);
            let product = here.rows.multiply(&iterate.beta);
            assert!(
                product
                    .iter()
                    .zip(&iterate.product)
                    .all(|(a, b)| (a - b).abs() <= 1e-13)
            );
            assert!((0..N).all(|i| iterate.is_inside(i)));
        });
    }
}

#[test]
fn beta_is_halved_as_long_as_the_objective_rises() {
    let mut random = Random::new(74);
    let mut halvings = Vec::new();
    for size in [1.0, 30.0, 1000.0] {
        let place = Place::new(None, &mut random);
        place.look(|smooth, mut iterate, here| {
            // Slopes of a function that is not there yet: Kβ counts many times.
            let large: Vec<f64> = place.linear.iter().map(|q| q / size).collect();
            let value = |share: f64| {
                let beta: Vec<f64> = iterate.beta.iter().map(|b| share * b).collect();
                dot(&large, &beta)
                    - 0.5 * size * dot(&beta, &here.rows.multiply(&beta))
                    - place.dual.penalty(&beta)
            };
            let mut share = 1.0;
            while value(0.5 * share) > value(share) {
                share *= 0.5;
            }
            let before = iterate.beta.clone();
            let bent: Vec<f64> = iterate.product.iter().map(|value| size * value).collect();
            iterate.product.clone_from(&bent);
            smooth.shorten(&mut iterate, &large);
            for i in 0..N {
                assert_eq!(iterate.beta[i], share * before[i]);
                assert_eq!(iterate.product[i], share * bent[i]);
            }
            halvings.push(share);
        });
    }
    assert!(halvings[2] < halvings[0], "{halvings:?}");
}

#[test]
fn what_is_missing_of_the_sum_is_shared_by_the_room_there_is() {
    let mut random = Random::new(75);
    let place = Place::new(Some(0.0), &mut random);
    for missing in [0.7, -0.9, 0.0] {
        place.look(|smooth, mut iterate, _| {
            let smooth = Smooth {
                dual: smooth.dual,
                function: smooth.function,
                sum: Some(iterate.beta.iter().sum::<f64>() + missing),
                kept: &mut None,
            };
            let before = iterate.beta.clone();
            assert_eq!(smooth.meet_sum(&mut iterate), missing != 0.0);
            let room = |i: usize| {
                let (low, high) = iterate.ends[i];
                if missing > 0.0 {
                    high - before[i]
                } else {
                    before[i] - low
                }
            };
            let all: f64 = (0..N).map(room).sum();
            for i in 0..N {
                let change = iterate.beta[i] - before[i];
                assert!((change - missing * room(i) / all).abs() <= 1e-14);
            }
        });
    }
}

/// Logistic regression with a price of its own for each sample, the sign that of its class.
#[derive(Debug)]
struct Priced(Vec<f64>);

impl SmoothConjugate for Priced {
    fn interval(&self, sample: usize) -> (f64, f64) {
        (self.0[sample].min(0.0), self.0[sample].max(0.0))
    }

    fn value(&self, sample: usize, beta: f64) -> f64 {
        let (alpha, c) = (beta.abs(), self.0[sample].abs());
        alpha * (alpha / c).ln() + (c - alpha) * (-alpha / c).ln_1p()
    }

    fn slope(&self, sample: usize, beta: f64) -> f64 {
        let end = self.0[sample];
        end.signum() * (beta / (end - beta)).ln()
    }

    fn curvature(&self, sample: usize, beta: f64) -> f64 {
        let end = self.0[sample];
        (end / (beta * (end - beta))).abs()
    }

    fn conjugate(&self, sample: usize, slope: f64) -> (f64, f64) {
        let end = self.0[sample];
        let t = slope * end.signum();
        let loss = end.abs() * (t.max(0.0) + (-t.abs()).exp().ln_1p());
        (loss, end / (1.0 + (-t).exp()))
    }
}

/// A solver for these prices, K = 1.
fn priced(prices: &[f64], sum: f64, look: impl FnOnce(&mut Smooth<'_>, &Grams)) {
    let function = Arc::new(Priced(prices.to_vec()));
    let n = prices.len();
    let mut identity = vec![0.0; n * n];
    for entry in identity.iter_mut().step_by(n + 1) {
        *entry = 1.0;
    }
    let dual = Dual {
        scale: 1.0,
        variables: Variables::one_each(n),
        linear: vec![0.0; n],
        diagonal: 0.0,
        conjugate: Conjugate::Smooth {
            function: function.clone(),
            sum: Some(sum),
        },
    };
    let mut smooth = Smooth {
        dual: &dual,
        function: function.as_ref(),
        sum: Some(sum),
        kept: &mut None,
    };
    look(&mut smooth, &given(n, vec![identity]));
}

#[test]
fn margins_leave_the_sum_within_reach_however_far_prices_are_apart() {
    for prices in [
        vec![1e15, -1.0],
        vec![-1e15, 1.0],
        vec![1.0, 1e12, 1.0, -1e-12],
        vec![1e150, 1e160, -1e-150],
        vec![3e14; 40].into_iter().chain([-1e-3]).collect(),
        vec![1.0, -1.0],
    ] {
        priced(&prices, 0.0, |smooth, _| {
            let ends = smooth.ends(prices.len());
            let least: f64 = ends.iter().map(|(low, _)| low).sum();
            let most: f64 = ends.iter().map(|(_, high)| high).sum();
            assert!(least < 0.0 && most > 0.0, "{prices:?}: {least} {most}");
            for (price, (low, high)) in prices.iter().zip(&ends) {
                let (inner, outer) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
                assert!(0.0 < inner && inner <= MARGIN * price.abs(), "{prices:?}");
                assert!(outer < price.abs() && outer >= (1.0 - 2.0 * MARGIN) * price.abs());
            }
            let mut iterate = Iterate {
                beta: vec![0.0; prices.len()],
                product: Vec::new(),
                ends,
                last_gap: 0.0,
            };
            smooth.least(&mut iterate);
            assert!((0..prices.len()).all(|i| iterate.is_inside(i)));
            assert!(smooth.has_sum(&iterate.beta), "{prices:?}");
        });
    }
}

/// Of prices 1 and −2 nothing is more than 1: no β proves anything, and whoever asks is told so, however often.
#[test]
fn a_sum_out_of_reach_is_an_error_and_no_bound() {
    let stop = Stop::never();
    let effort = effort(1e-6, &stop);
    priced(&[1.0, -2.0], 5.0, |smooth, grams| {
        let mut iterate = Iterate {
            beta: vec![0.5, -1.0],
            product: Vec::new(),
            ends: smooth.ends(2),
            last_gap: 0.0,
        };
        for _ in 0..2 {
            smooth.meet_sum(&mut iterate);
            assert_eq!(iterate.beta, [iterate.ends[0].1, iterate.ends[1].1]);
            assert!(!smooth.has_sum(&iterate.beta));
        }
        let rows = CombinedRows::new(whole(grams), &[1.0]);
        let here = Here {
            grams: whole(grams),
            rows: &rows,
            theta: &[1.0],
        };
        let mut point = Point::new(vec![0.0; 2], 2, &Ledger::default());
        let error = smooth.solve(&mut point, here, &effort).unwrap_err();
        assert!(error.to_string().contains("too far apart"), "{error}");
        assert!(point.beta.iter().all(|value| value.is_finite()));
        let mut point = Point::new(vec![0.0; 2], 2, &Ledger::default());
        let mut progress = Progress::default();
        let mut round = || smooth.round(&mut point, whole(grams), &[1.0], &effort, &mut progress);
        assert!(round().unwrap().is_none());
        let error = round().unwrap_err();
        assert!(error.to_string().contains("too far apart"), "{error}");
    });
}

#[test]
fn what_is_not_a_number_is_not_shared() {
    priced(&[1.0, -2.0], 0.0, |smooth, _| {
        let mut iterate = Iterate {
            beta: vec![f64::NAN, -1.0],
            product: Vec::new(),
            ends: smooth.ends(2),
            last_gap: 0.0,
        };
        assert!(!smooth.meet_sum(&mut iterate) && !smooth.has_sum(&iterate.beta));
        assert_eq!(iterate.beta[1], -1.0);
        // Without slopes, the middle.
        let beta = smooth.beta_of_slopes(&iterate.ends, &[f64::NAN; 2]);
        let middles: Vec<f64> = (iterate.ends.iter())
            .map(|(low, high)| 0.5 * (low + high))
            .collect();
        assert_eq!(beta, middles);
    });
}

/// b with the total, and how often it was asked for.
fn counted(wanted: f64, total: impl Fn(f64) -> (f64, f64)) -> (f64, usize) {
    let calls = Cell::new(0);
    let offset = offset_with_sum(wanted, |offset| {
        calls.set(calls.get() + 1);
        total(offset)
    });
    (offset, calls.get())
}

/// Σ 1/(1 + e^(b − z)) and minus its slope.
fn logistic(shift: f64) -> impl Fn(f64) -> (f64, f64) {
    move |offset| {
        let shares = [-2.0, -0.5, 0.3, 1.1, 2.5].map(|z| 1.0 / (1.0 + (offset - z - shift).exp()));
        let slope = shares
            .iter()
            .map(|share| share * (1.0 - share))
            .sum::<f64>();
        (shares.iter().sum(), slope.max(f64::MIN_POSITIVE))
    }
}

#[test]
fn the_offset_with_a_sum_is_found_in_a_few_steps_of_newton() {
    for wanted in [0.5, 2.5, 4.5] {
        let (offset, calls) = counted(wanted, logistic(0.0));
        assert!(
            (logistic(0.0)(offset).0 - wanted).abs() <= 1e-14 && calls <= 10,
            "{calls}"
        );
    }
    // A straight line is met at once, and once more to see that it is.
    let (offset, calls) = counted(-3.0, |offset| (7.0 - 2.0 * offset, 2.0));
    assert!((offset - 5.0).abs() <= 1e-15 && calls <= 5, "{calls}");
}

#[test]
fn an_offset_far_away_is_reached_by_doubling() {
    for shift in [100.0, 1000.0, -1000.0] {
        let (offset, calls) = counted(2.5, logistic(shift));
        assert!((logistic(shift)(offset).0 - 2.5).abs() <= 1e-12, "{shift}");
        assert!(calls <= 50, "{shift}: {calls}");
    }
}

#[test]
fn a_sum_that_nothing_has_leaves_what_is_nearest() {
    let (above, _) = counted(6.0, logistic(0.0));
    let (below, _) = counted(-1.0, logistic(0.0));
    assert!(logistic(0.0)(above).0 > 5.0 - 1e-12 && logistic(0.0)(below).0 < 1e-12);
}

#[test]
fn a_bent_change_follows_its_start_and_never_uses_up_the_room() {
    for room in [2.0, -2.0] {
        let sign = f64::signum(room);
        assert_eq!(bent(sign * 0.7, room), sign * 0.7);
        assert_eq!(bent(sign, room), sign);
        assert_eq!(bent(sign * 4.0, room), sign * 1.75);
        let far = bent(sign * 1e6, room);
        assert!(far.abs() < 2.0 && far.abs() > 2.0 - 1e-5);
    }
}
