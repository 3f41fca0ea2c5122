//! Ψ from the paper's definitions: the support function σ_Ψ(s) = max over θ in Ψ of ⟨s, θ⟩, and whether weights are inside.
//!
//! A sharing is read as it stands in model files, `{"name": …}`, and taken apart here into a sum of terms; a term has rows of M weights, each
//! of which reaches some tasks. σ of a sum is the sum of the σ; s of a row is the sum of s over the tasks that it reaches.

mod read;

use mtmkl::sharing::Reach;

pub(crate) use read::terms;

use crate::machine::Rounded;
use crate::sum::lost;

/// A set of vectors of M weights, all ≥ 0.
#[derive(Debug, Clone, PartialEq)]
enum Set {
    /// ‖θ‖_p ≤ radius.
    Ball { p: f64, radius: f64 },
    /// Σθ = total, θ ≤ upper.
    Simplex { total: f64, upper: f64 },
    /// ‖θ − prior‖₂ ≤ radius.
    PriorBall { prior: Vec<f64>, radius: f64 },
    /// θ = weights.
    Fixed { weights: Vec<f64> },
}

/// What rows a term allows.
#[derive(Debug, Clone, PartialEq)]
enum Members {
    /// Each row is in the set.
    Each(Set),
    /// (Σ_v ‖γᵛ‖_p^q)^{1/q} ≤ radius, over all rows v together.
    Budget { p: f64, q: f64, radius: f64 },
    /// Each row is the one in its place.
    Given(Vec<Vec<f64>>),
}

/// One summand of Ψ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    members: Members,
    /// The tasks that each row reaches.
    pub(crate) reach: Vec<Vec<usize>>,
}

/// The tasks that each row of a part of a model reaches.
pub(crate) fn rows_of(reach: &Reach, tasks: usize) -> Vec<Vec<usize>> {
    match reach {
        Reach::All => vec![(0..tasks).collect()],
        Reach::Each => (0..tasks).map(|task| vec![task]).collect(),
        Reach::Groups(groups) => groups.clone(),
    }
}

/// ‖x⁺‖_p, p from 1 to ∞; the largest entry is divided out first, so that no power overflows or vanishes. What is no number has no norm.
fn norm(x: &[f64], p: f64) -> f64 {
    let largest = x.iter().fold(0.0, |most, &value| worse(most, value));
    if largest == 0.0 || p == f64::INFINITY || largest.is_nan() {
        return largest;
    }
    let powers: f64 = x
        .iter()
        .map(|value| (value.max(0.0) / largest).powf(p))
        .sum();
    largest * powers.powf(1.0 / p)
}

/// p* with 1/p + 1/p* = 1.
fn conjugate(p: f64) -> f64 {
    if p == 1.0 {
        f64::INFINITY
    } else {
        p / (p - 1.0)
    }
}

/// Σ of the rows of s over the tasks that each row of a term reaches.
fn gathered(reach: &[Vec<usize>], s: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let kernels = s.first().map_or(0, Vec::len);
    let sum = |tasks: &Vec<usize>| -> Vec<f64> {
        (0..kernels)
            .map(|kernel| tasks.iter().map(|&task| s[task][kernel]).sum())
            .collect()
    };
    reach.iter().map(sum).collect()
}

impl Term {
    fn support(&self, s: &[Vec<f64>]) -> f64 {
        let rows = gathered(&self.reach, s);
        match &self.members {
            Members::Each(set) => rows.iter().map(|row| set.support(row)).sum(),
            Members::Budget { p, q, radius } => {
                let inner: Vec<f64> = rows.iter().map(|row| norm(row, conjugate(*p))).collect();
                radius * norm(&inner, conjugate(*q))
            }
            Members::Given(given) => {
                let pairs = given.iter().flatten().zip(rows.iter().flatten());
                pairs.map(|(weight, s)| weight * s).sum()
            }
        }
    }

    /// Weights of the term's set that are these, but for what is outside: see [`Set::inside`].
    pub(crate) fn inside(&self, rows: &[&[f64]]) -> Vec<Vec<f64>> {
        match &self.members {
            Members::Each(set) => rows.iter().map(|row| set.inside(row)).collect(),
            Members::Budget { p, q, radius } => {
                let inner: Vec<f64> = rows.iter().map(|row| norm(row, *p)).collect();
                let part = (radius / norm(&inner, *q)).min(1.0);
                let shrunk = |row: &&[f64]| row.iter().map(|value| part * value.max(0.0)).collect();
                rows.iter().map(shrunk).collect()
            }
            Members::Given(given) => given.clone(),
        }
    }

    /// By how much weights are outside, in parts of the term's bound; 0 inside.
    pub(crate) fn violation(&self, rows: &[&[f64]]) -> f64 {
        let below = |rows: &[&[f64]]| {
            rows.iter()
                .copied()
                .flatten()
                .fold(0.0_f64, |most, value| most.max(-value))
        };
        let worst = match &self.members {
            Members::Each(set) => {
                let outside = rows
                    .iter()
                    .map(|row| set.violation(row).max(below(&[row]) / set.size()));
                outside.fold(0.0, worse)
            }
            Members::Budget { p, q, radius } => {
                let inner: Vec<f64> = rows.iter().map(|row| norm(row, *p)).collect();
                ((norm(&inner, *q) - radius) / radius).max(below(rows) / radius)
            }
            Members::Given(given) => {
                let size = given
                    .iter()
                    .flatten()
                    .fold(f64::MIN_POSITIVE, |most, &w| most.max(w));
                let pairs = given.iter().flatten().zip(rows.iter().copied().flatten());
                pairs.fold(0.0, |most, (w, value)| {
                    worse(most, (w - value).abs() / size)
                })
            }
        };
        let is_number = rows
            .iter()
            .copied()
            .flatten()
            .all(|value| value.is_finite());
        if is_number { worst } else { f64::NAN }
    }
}

/// The larger of two, and no number where one is none.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.max(b)
    }
}

impl Set {
    fn support(&self, s: &[f64]) -> f64 {
        match self {
            Self::Ball { p, radius } => radius * norm(s, conjugate(*p)),
            Self::Simplex { total, upper } => {
                let mut order = s.to_vec();
                order.sort_by(|a, b| b.total_cmp(a));
                let mut left = *total;
                let mut value = 0.0;
                for cost in order {
                    let weight = left.min(*upper);
                    if weight > 0.0 {
                        value += weight * cost;
                    }
                    left -= weight;
                }
                value
            }
            Self::PriorBall { prior, radius } => of_prior_ball(prior, *radius, s),
            Self::Fixed { weights } => weights
                .iter()
                .zip(s)
                .map(|(weight, cost)| weight * cost)
                .sum(),
        }
    }

    /// The weights that are given where the set has but one; else with what is below 0 or above a bound cut off, then by one factor, each
    /// with a rounding of its own: a weight of 0 stays 0, so that no kernel comes in, however large it is. A shortage beside weights that
    /// are all at their bound, and a ball around something, leave no such way; there the room of each takes its part.
    fn inside(&self, row: &[f64]) -> Vec<f64> {
        let cut = |upper: f64| -> Vec<f64> {
            row.iter().map(|value| value.max(0.0).min(upper)).collect()
        };
        match self {
            Self::Ball { p, radius } => {
                let row = cut(f64::INFINITY);
                let part = (radius / norm(&row, *p)).min(1.0);
                row.iter().map(|value| part * value).collect()
            }
            Self::Simplex { total, upper } => {
                let mut row = cut(*upper);
                let rounding = lost(row.len() + 8) * total;
                // What is cut off at the bound goes to the others.
                for _ in 0..64 {
                    let sum: f64 = row.iter().sum();
                    if (sum - total).abs() <= rounding {
                        return row;
                    }
                    let full: f64 = row.iter().filter(|value| *value >= upper).sum();
                    let is_short = sum < *total;
                    let part = if is_short && full > 0.0 {
                        (total - full) / (sum - full)
                    } else {
                        total / sum
                    };
                    if !part.is_finite() {
                        break;
                    }
                    for value in &mut row {
                        if !(is_short && *value >= *upper) {
                            *value = (*value * part).min(*upper);
                        }
                    }
                }
                let missing = total - row.iter().sum::<f64>();
                let room: f64 = row.iter().map(|value| upper - value).sum();
                for value in &mut row {
                    *value += missing * ((*upper - *value) / room);
                }
                row
            }
            Self::PriorBall { prior, radius } => {
                let row = cut(f64::INFINITY);
                let away = || row.iter().zip(prior).map(|(value, prior)| value - prior);
                let distance = away().map(|value| value * value).sum::<f64>().sqrt();
                if distance <= *radius * (1.0 + lost(row.len() + 8)) {
                    return row;
                }
                let part = radius / distance;
                prior
                    .iter()
                    .zip(away())
                    .map(|(prior, away)| prior + part * away)
                    .collect()
            }
            Self::Fixed { weights } => weights.clone(),
        }
    }

    /// What its bounds are measured by.
    fn size(&self) -> f64 {
        match self {
            Self::Ball { radius, .. } => *radius,
            Self::Simplex { total, .. } => *total,
            Self::PriorBall { prior, radius } => norm(prior, f64::INFINITY).max(*radius),
            Self::Fixed { weights } => norm(weights, f64::INFINITY).max(f64::MIN_POSITIVE),
        }
    }

    fn violation(&self, row: &[f64]) -> f64 {
        let off = match self {
            Self::Ball { p, radius } => norm(row, *p) - radius,
            Self::Simplex { total, upper } => {
                let above = row
                    .iter()
                    .fold(0.0_f64, |most, value| most.max(value - upper));
                (row.iter().sum::<f64>() - total).abs().max(above)
            }
            Self::PriorBall { prior, radius } => {
                let squares = row.iter().zip(prior).map(|(a, b)| (a - b) * (a - b));
                squares.sum::<f64>().sqrt() - radius
            }
            Self::Fixed { weights } => row
                .iter()
                .zip(weights)
                .fold(0.0, |most, (a, b)| worse(most, (a - b).abs())),
        };
        off.max(0.0) / self.size()
    }
}

/// max of ⟨s, θ⟩ over θ ≥ 0, ‖θ − θ⁰‖₂ ≤ Λ is min over v ≥ 0 of ⟨s + v, θ⁰⟩ + Λ‖s + v‖₂. Every v gives an upper bound, so that a search for the
/// best cannot flatter D: v = −(s + θ⁰/τ) where that is positive, for the τ at which (θ⁰ + τs)⁺ has the distance Λ from θ⁰.
fn of_prior_ball(prior: &[f64], radius: f64, s: &[f64]) -> f64 {
    let largest = s.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let s: Vec<f64> = s.iter().map(|value| value / largest).collect();
    let length =
        |x: &mut dyn Iterator<Item = f64>| x.map(|value| value * value).sum::<f64>().sqrt();
    let distance = |tau: f64| {
        let moved = s
            .iter()
            .zip(prior)
            .map(|(s, prior)| (prior + tau * s).max(0.0) - prior);
        length(&mut { moved })
    };
    let value = |least: &dyn Fn(usize) -> f64| {
        let lifted: Vec<f64> = s
            .iter()
            .enumerate()
            .map(|(kernel, s)| s.max(least(kernel)))
            .collect();
        let along: f64 = lifted
            .iter()
            .zip(prior)
            .map(|(value, prior)| value * prior)
            .sum();
        along + radius * length(&mut lifted.iter().copied())
    };
    let (mut low, mut high) = (0.0, 1.0);
    while distance(high) < radius && high < 1e30 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if distance(middle) < radius {
            low = middle;
        } else {
            high = middle;
        }
    }
    let found = value(&|kernel| -prior[kernel] / high);
    largest
        * found
            .min(value(&|_| 0.0))
            .min(value(&|_| f64::NEG_INFINITY))
}

/// σ_Ψ(s), s being T × M. It is convex, positively homogeneous and never falls in s (θ ≥ 0), so that it is off by at most σ_Ψ of what s is off by.
/// Of what is no number, or may be off by any, nothing is known.
pub(crate) fn support(terms: &[Term], s: &[Vec<Rounded>]) -> Rounded {
    let is_known = |s: &Rounded| s.value.is_finite() && s.allowance.is_finite();
    if !s.iter().flatten().all(is_known) {
        return Rounded {
            value: f64::NAN,
            allowance: f64::INFINITY,
        };
    }
    let of = |number: &dyn Fn(&Rounded) -> f64| -> f64 {
        let rows: Vec<Vec<f64>> = s
            .iter()
            .map(|row| row.iter().map(number).collect())
            .collect();
        terms.iter().map(|term| term.support(&rows)).sum()
    };
    let (tasks, kernels) = (s.len(), s.first().map_or(0, Vec::len));
    let value = of(&|s| s.value);
    let size = of(&|s| s.value.abs());
    Rounded {
        value,
        // Sums over tasks and kernels, and powers, which are right to a few units.
        allowance: of(&|s| s.allowance) + lost(tasks + kernels + 64) * size,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use mtmkl::Registry;
    use mtmkl::grid::{Grid, Shape};
    use mtmkl_testkit::generate::Random;

    /// Two pieces of code for the same definitions, at random s of any sign: support functions agree, their maximisers are inside, and what
    /// is a little farther out is not.
    #[test]
    fn every_sharing_is_what_the_library_says() {
        let shape = Shape {
            tasks: 4,
            kernels: 3,
        };
        let mut random = Random::new(3);
        let mut seen = 0;
        for entry in Registry::default().sharings() {
            for tasks in [1, 4] {
                let shape = Shape { tasks, ..shape };
                for spec in (entry.examples)(shape) {
                    let json = serde_json::to_value(&spec).unwrap();
                    let own = terms(&json, shape.tasks, shape.kernels).unwrap();
                    let library = spec.build(shape).unwrap();
                    assert_eq!(own.len(), library.terms().len(), "{json}");
                    for _ in 0..20 {
                        let values: Vec<f64> = (0..tasks * 3).map(|_| random.normal()).collect();
                        let rows: Vec<Vec<Rounded>> = values
                            .chunks(3)
                            .map(|row| {
                                row.iter()
                                    .map(|&value| Rounded {
                                        value,
                                        allowance: 0.0,
                                    })
                                    .collect()
                            })
                            .collect();
                        let found = support(&own, &rows);
                        let (parts, expected) =
                            library.maximise(&Grid::new(tasks, 3, values).unwrap());
                        assert!(
                            (found.value - expected).abs() <= 1e-12 * expected.abs().max(1.0),
                            "{json}: {} {expected}",
                            found.value
                        );
                        for ((term, part), reach) in own.iter().zip(&parts.0).zip(library.reaches())
                        {
                            assert_eq!(term.reach, rows_of(reach, tasks));
                            let rows: Vec<&[f64]> = part.iter_rows().collect();
                            assert!(
                                term.violation(&rows) <= 1e-12,
                                "{json}: {}",
                                term.violation(&rows)
                            );
                            let larger: Vec<Vec<f64>> = part
                                .iter_rows()
                                .map(|row| row.iter().map(|v| 1.001 * v + 1e-3).collect())
                                .collect();
                            let larger: Vec<&[f64]> = larger.iter().map(Vec::as_slice).collect();
                            // What costs little is not at its bound.
                            // Nor is what lies between 0 and a prior.
                            let has_prior = json.to_string().contains("prior");
                            let is_at_bound =
                                !has_prior && (expected > 0.0 || !library.contains_zero());
                            assert!(
                                !is_at_bound
                                    || part.values().iter().all(|v| *v == 0.0)
                                    || term.violation(&larger) > 1e-5,
                                "{json} {part:?}"
                            );
                        }
                        seen += 1;
                    }
                }
            }
        }
        assert!(seen > 500, "{seen}");
    }

    #[test]
    fn a_prior_has_a_ball_around_it() {
        let json = serde_json::json!({"name": "prior-ball", "prior": [1.0, 1.0], "radius": 0.5});
        let term = &terms(&json, 1, 2).unwrap()[0];
        assert_eq!(term.violation(&[&[1.0, 1.5]]), 0.0);
        assert!((term.violation(&[&[1.0, 1.6]]) - 0.1).abs() < 1e-12);
        assert!(term.violation(&[&[f64::NAN, 1.0]]).is_nan());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, expected) in [
            (r#"{"name": "mine"}"#, "`mine`"),
            (r#"{"name": "group", "p": 2}"#, "`q`"),
            (
                r#"{"name": "sum", "terms": [{"common": {"set": "cube"}}]}"#,
                "`set`",
            ),
            (
                r#"{"name": "hierarchy", "p": 2, "q": 1, "levels": [{"groups": [["a", [7]]]}]}"#,
                "`groups`",
            ),
        ] {
            let error = terms(&serde_json::from_str(text).unwrap(), 2, 2).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn of_what_is_no_number_nothing_is_known() {
        let shape = Shape {
            tasks: 2,
            kernels: 2,
        };
        for entry in Registry::default().sharings() {
            for spec in (entry.examples)(shape) {
                let json = serde_json::to_value(&spec).unwrap();
                let own = terms(&json, shape.tasks, shape.kernels).unwrap();
                for at in 0..4 {
                    for (value, allowance) in [
                        (f64::NAN, 0.0),
                        (-f64::NAN, 0.0),
                        (1.0, f64::NAN),
                        (f64::INFINITY, 0.0),
                        (1.0, f64::INFINITY),
                    ] {
                        let mut s = vec![
                            vec![
                                Rounded {
                                    value: 1.0,
                                    allowance: 1e-12
                                };
                                2
                            ];
                            2
                        ];
                        s[at / 2][at % 2] = Rounded { value, allowance };
                        let found = support(&own, &s);
                        assert!(
                            !found.value.is_finite() && !found.allowance.is_finite(),
                            "{json}"
                        );
                    }
                }
            }
        }
        assert!(
            norm(&[1.0, f64::NAN], 2.0).is_nan() && norm(&[f64::NAN, 1.0], f64::INFINITY).is_nan()
        );
    }

    /// Weights around a set end up in it, but for a rounding of each; those inside stay; a weight of 0 stays 0 where a set has room for that.
    #[test]
    fn weights_are_moved_inside() {
        let mut random = Random::new(5);
        let infinite = f64::INFINITY;
        for set in [
            Set::Ball {
                p: 1.0,
                radius: 2.0,
            },
            Set::Ball {
                p: 2.5,
                radius: 1.0,
            },
            Set::Ball {
                p: infinite,
                radius: 0.5,
            },
            Set::Simplex {
                total: 1.0,
                upper: infinite,
            },
            Set::Simplex {
                total: 1.0,
                upper: 0.3,
            },
            Set::Simplex {
                total: 1.0,
                upper: 0.25,
            },
            Set::PriorBall {
                prior: vec![0.1, 0.4, 0.0, 1.0],
                radius: 0.2,
            },
            Set::Fixed {
                weights: vec![0.5, 0.0, 1.0, 0.25],
            },
        ] {
            for size in [1e-9, 1e-3, 1.0] {
                for _ in 0..50 {
                    let around: Vec<f64> = match &set {
                        Set::Ball { .. } | Set::Simplex { .. } => vec![0.25; 4],
                        Set::PriorBall { prior: row, .. } | Set::Fixed { weights: row } => {
                            row.clone()
                        }
                    };
                    let row: Vec<f64> = around
                        .iter()
                        .map(|value| value + size * random.normal())
                        .collect();
                    let moved = set.inside(&row);
                    assert!(set.violation(&moved) <= 1e-14, "{set:?} {row:?} {moved:?}");
                    assert!(
                        moved.iter().all(|value| *value >= 0.0),
                        "{set:?} {row:?} {moved:?}"
                    );
                    let again = set.inside(&moved);
                    let off = again.iter().zip(&moved).map(|(a, b)| (a - b).abs());
                    assert!(off.fold(0.0, f64::max) <= 1e-14, "{set:?}");
                }
            }
        }
        let simplex = Set::Simplex {
            total: 1.0,
            upper: infinite,
        };
        assert_eq!(simplex.inside(&[1.0 + 1e-9, 0.0]), [1.0, 0.0]);
        assert_eq!(simplex.inside(&[1.0, -1e-9]), [1.0, 0.0]);
        let fixed = Set::Fixed {
            weights: vec![1.0, 0.0],
        };
        assert_eq!(fixed.inside(&[1.0, 1e-9]), [1.0, 0.0]);
        let term = &terms(
            &serde_json::json!({"name": "group", "p": 2.0, "q": 1.0}),
            2,
            2,
        )
        .unwrap()[0];
        let moved = term.inside(&[&[0.6, 0.8], &[0.3, -0.1]]);
        let moved: Vec<&[f64]> = moved.iter().map(Vec::as_slice).collect();
        assert!(
            term.violation(&moved) <= 1e-14 && moved[1][1] == 0.0,
            "{moved:?}"
        );
    }
}
