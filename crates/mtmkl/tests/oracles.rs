//! The linear maximisation oracle of every sharing: no random feasible point beats it, and an independent conic solution agrees, for
//! costs of both signs, ties and nothing but losses, with p and q from the sharpest to the flattest.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::conic_terms;
use mtmkl::grid::{Grid, Shape};
use mtmkl::sharing::{Parts, SetSpec, Sharing, SharingSpec, TermSpec};
use mtmkl_testkit::conic;
use mtmkl_testkit::generate::Random;

const EXPONENTS: [f64; 6] = [1.0, 1.1, 1.5, 2.0, 3.0, 10.0];
/// By how much an oracle's answer may leave its set.
const FEASIBLE: f64 = 1e-9;

fn shapes() -> Vec<Shape> {
    [(1, 1), (1, 4), (3, 1), (3, 4)]
        .map(|(tasks, kernels)| Shape { tasks, kernels })
        .to_vec()
}

/// All registered examples, and the four families of the paper over all p and q.
fn sharings(shape: Shape) -> Vec<SharingSpec> {
    let mut specs: Vec<SharingSpec> = mtmkl::Registry::default()
        .sharings()
        .iter()
        .flat_map(|info| (info.examples)(shape))
        .collect();
    for p in EXPONENTS {
        specs.push(SharingSpec::common(p, 1.3));
        specs.push(SharingSpec::independent(p, 0.8));
        for q in EXPONENTS {
            specs.push(SharingSpec::group(p, q, 2.5));
            specs.push(SharingSpec::pscs(p, q, 0.6));
        }
    }
    specs
}

/// Costs that reach every branch of an oracle, with their names.
fn costs(random: &mut Random, shape: Shape) -> Vec<(&'static str, Grid)> {
    let count = shape.tasks * shape.kernels;
    let mut draw = |cost: &mut dyn FnMut(&mut Random) -> f64| {
        (0..count).map(|_| cost(random)).collect::<Vec<f64>>()
    };
    let one_gain = |mut losses: Vec<f64>| {
        losses[count / 2] = 0.4;
        losses
    };
    let kinds = [
        ("both signs", draw(&mut Random::normal)),
        ("gains only", draw(&mut |random| 0.1 + random.uniform())),
        ("losses only", draw(&mut |random| -0.1 - random.uniform())),
        (
            "one gain",
            one_gain(draw(&mut |random| -0.1 - random.uniform())),
        ),
        ("nothing", vec![0.0; count]),
        ("all tied", vec![0.7; count]),
        ("all tied below 0", vec![-0.7; count]),
        (
            "many ties",
            draw(&mut |random| random.below(3) as f64 - 1.0),
        ),
    ];
    kinds
        .into_iter()
        .map(|(name, values)| (name, Grid::new(shape.tasks, shape.kernels, values).unwrap()))
        .collect()
}

/// A random mixture of the balanced point and of the oracle's answers; shrunk, where its term reaches down to 0.
fn feasible_point(sharing: &Sharing, random: &mut Random) -> Parts {
    let shape = sharing.shape();
    let mut parts = sharing.start();
    for _ in 0..3 {
        let costs = (0..shape.tasks * shape.kernels)
            .map(|_| random.normal())
            .collect();
        let (corner, _) = sharing.maximise(&Grid::new(shape.tasks, shape.kernels, costs).unwrap());
        parts.move_towards(&corner, random.uniform());
    }
    for (term, part) in sharing.terms().iter().zip(&mut parts.0) {
        if term.contains_zero() && random.below(2) == 0 {
            let factor = random.uniform();
            for value in part.values_mut() {
                *value *= factor;
            }
        }
    }
    parts
}

fn rows(grid: &Grid) -> Vec<Vec<f64>> {
    grid.iter_rows().map(<[f64]>::to_vec).collect()
}

fn largest(grid: &Grid) -> f64 {
    grid.values()
        .iter()
        .fold(0.0, |most, value| most.max(value.abs()))
}

/// The size of ⟨s, θ⟩, whatever cancels in it: the largest cost times the largest weights, summed.
fn scale(sharing: &Sharing, s: &Grid) -> f64 {
    let gains = Grid::filled(s.rows(), s.kernels(), 1.0);
    largest(s) * sharing.maximise(&gains).1
}

/// What is wrong with the oracle's answer for these costs, judged by itself and by random feasible points.
fn faults(sharing: &Sharing, s: &Grid, random: &mut Random) -> Vec<String> {
    let (parts, support) = sharing.maximise(s);
    let theta = sharing.theta(&parts);
    let slack = 1e-12 * scale(sharing, s);
    let mut faults = Vec::new();
    let violation = sharing.violation(&parts);
    if violation.is_nan() || violation > FEASIBLE {
        faults.push(format!("the answer leaves the set by {violation:e}"));
    }
    if !theta.is_finite() || (s.dot(&theta) - support).abs() > slack {
        faults.push(format!("⟨s, θ⟩ = {}, returned {support}", s.dot(&theta)));
    }
    for _ in 0..6 {
        let point = feasible_point(sharing, random);
        let outside = sharing.violation(&point);
        if outside > FEASIBLE {
            faults.push(format!("a mixture leaves the set by {outside:e}"));
        }
        let value = s.dot(&sharing.theta(&point));
        if value > support + slack {
            faults.push(format!("a mixture reaches {value}, the oracle {support}"));
        }
    }
    faults
}

/// Runs a check over all sharings of all shapes and reports every failure at once.
fn for_all_sharings(check: impl Fn(&SharingSpec, &Sharing, &mut Random) -> Vec<String>) {
    let mut random = Random::new(3);
    let (mut failures, mut tested) = (Vec::new(), 0);
    for shape in shapes() {
        for spec in sharings(shape) {
            let sharing = spec.build(shape).unwrap();
            tested += 1;
            let found = check(&spec, &sharing, &mut random);
            failures.extend(
                found
                    .iter()
                    .map(|fault| format!("{spec:?}, {shape:?}: {fault}")),
            );
        }
    }
    assert!(tested > 400, "only {tested} sharings tested");
    assert!(
        failures.is_empty(),
        "{} faults:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn the_balanced_start_is_feasible_everywhere() {
    for_all_sharings(|_, sharing, _| {
        let violation = sharing.violation(&sharing.start());
        let fault = violation.is_nan() || violation > FEASIBLE;
        fault
            .then(|| format!("the start leaves the set by {violation:e}"))
            .into_iter()
            .collect()
    });
}

#[test]
fn no_random_feasible_point_beats_an_oracle() {
    for_all_sharings(|_, sharing, random| {
        costs(random, sharing.shape())
            .into_iter()
            .flat_map(|(name, s)| {
                faults(sharing, &s, random)
                    .into_iter()
                    .map(move |fault| format!("{name}: {fault}"))
                    .collect::<Vec<_>>()
            })
            .collect()
    });
}

#[test]
fn every_oracle_matches_the_conic_maximum() {
    for_all_sharings(|spec, sharing, random| {
        let terms = conic_terms(spec, sharing.shape()).unwrap();
        let mut faults = Vec::new();
        for (name, s) in costs(random, sharing.shape()) {
            let (_, support) = sharing.maximise(&s);
            let conic = conic::maximum(&terms, &rows(&s));
            if !conic.solved {
                faults.push(format!("{name}: the conic solver failed"));
            }
            let slack = 1e-6 * scale(sharing, &s);
            if (support - conic.value).abs() > slack {
                faults.push(format!(
                    "{name}: the oracle gives {support}, the conic solver {}",
                    conic.value
                ));
            }
        }
        faults
    });
}

#[test]
fn costs_of_very_different_sizes_are_no_trouble() {
    for_all_sharings(|_, sharing, random| {
        let shape = sharing.shape();
        (0..4)
            .flat_map(|_| {
                let values = (0..shape.tasks * shape.kernels)
                    .map(|_| random.normal().signum() * 10.0_f64.powf(-16.0 * random.uniform()))
                    .collect();
                let s = Grid::new(shape.tasks, shape.kernels, values).unwrap();
                faults(sharing, &s, random)
                    .into_iter()
                    .map(move |fault| format!("{s:?}: {fault}"))
                    .collect::<Vec<_>>()
            })
            .collect()
    });
}

#[test]
fn the_support_grows_in_proportion_to_the_costs_far_beyond_the_range_of_powers() {
    for_all_sharings(|_, sharing, random| {
        let shape = sharing.shape();
        let values: Vec<f64> = (0..shape.tasks * shape.kernels)
            .map(|_| random.normal())
            .collect();
        let s = Grid::new(shape.tasks, shape.kernels, values.clone()).unwrap();
        let (_, support) = sharing.maximise(&s);
        let mut faults = Vec::new();
        for factor in [1e-150, 1e150] {
            let scaled = values.iter().map(|value| factor * value).collect();
            let scaled = Grid::new(shape.tasks, shape.kernels, scaled).unwrap();
            let (parts, grown) = sharing.maximise(&scaled);
            let violation = sharing.violation(&parts);
            let slack = 1e-12 * scale(sharing, &s);
            if !((grown / factor - support).abs() <= slack && violation <= FEASIBLE) {
                faults.push(format!(
                    "times {factor:e}: {grown:e} for {support}, outside by {violation:e}"
                ));
            }
        }
        faults
    });
}

#[test]
fn points_outside_a_set_are_told_from_points_inside() {
    for_all_sharings(|_, sharing, _| {
        let shape = sharing.shape();
        let gains = Grid::filled(shape.tasks, shape.kernels, 1.0);
        let (corner, _) = sharing.maximise(&gains);
        let mut faults = Vec::new();
        for number in 0..corner.0.len() {
            let mut beyond = corner.clone();
            for value in beyond.0[number].values_mut() {
                *value *= 1.5;
            }
            if sharing.violation(&beyond) < 1e-2 {
                faults.push(format!("1.5 times summand {number} counts as inside"));
            }
            let mut negative = sharing.start();
            negative.0[number].values_mut()[0] = -0.25;
            if sharing.violation(&negative) < 0.05 {
                faults.push(format!("a negative weight in summand {number} is allowed"));
            }
        }
        faults
    });
}

#[test]
fn zero_is_in_a_set_exactly_when_the_set_says_so() {
    for_all_sharings(|_, sharing, _| {
        let mut zero = sharing.start();
        for part in &mut zero.0 {
            part.values_mut().fill(0.0);
        }
        let inside = sharing.violation(&zero) <= FEASIBLE;
        (inside != sharing.contains_zero())
            .then(|| format!("0 is inside: {inside}, claimed the opposite"))
            .into_iter()
            .collect()
    });
}

/// A random point of the simplex of this mass.
fn random_simplex(random: &mut Random, kernels: usize, total: f64) -> Vec<f64> {
    let draws: Vec<f64> = (0..kernels)
        .map(|_| -(1.0 - random.uniform()).ln())
        .collect();
    let sum: f64 = draws.iter().sum();
    draws.iter().map(|draw| total * draw / sum).collect()
}

#[test]
fn every_point_of_the_sum_for_tang_fulfils_tangs_constraints() {
    let mut random = Random::new(11);
    let shape = Shape {
        tasks: 3,
        kernels: 4,
    };
    for beta in [0.0, 0.3, 1.2, 2.9, 3.0, 7.0] {
        let sharing = SharingSpec::tang(beta).build(shape).unwrap();
        let zeros = || Grid::zeros(shape.tasks, shape.kernels);
        for _ in 0..50 {
            let parts = feasible_point(&sharing, &mut random);
            let theta = sharing.theta(&parts);
            for row in theta.iter_rows() {
                assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{row:?}");
            }
            let common = sharing
                .common(&parts)
                .unwrap_or_else(|| Grid::zeros(1, shape.kernels));
            let specific = sharing.specific(&parts).unwrap_or_else(zeros);
            assert!(common.values().iter().all(|&weight| weight >= 0.0));
            assert!(specific.values().iter().all(|&weight| weight >= 0.0));
            let own: f64 = specific.values().iter().sum();
            assert!(own <= beta + 1e-12, "Σγ = {own} for beta = {beta}");
        }
    }
}

#[test]
fn every_point_that_fulfils_tangs_constraints_is_in_the_sum_for_tang() {
    let mut random = Random::new(12);
    let shape = Shape {
        tasks: 3,
        kernels: 4,
    };
    for beta in [0.0, 0.3, 1.2, 2.9, 3.0, 7.0] {
        let sharing = SharingSpec::tang(beta).build(shape).unwrap();
        for _ in 0..50 {
            // Σ_m θ_mᵗ = 1 for every t gives all tasks the same own mass, at most β/T of it.
            let own = random.uniform() * (beta / 3.0).min(1.0);
            let common = random_simplex(&mut random, shape.kernels, 1.0 - own);
            let mut theta = Grid::zeros(shape.tasks, shape.kernels);
            for task in 0..shape.tasks {
                let specific = random_simplex(&mut random, shape.kernels, own);
                for kernel in 0..shape.kernels {
                    theta[(task, kernel)] = common[kernel] + specific[kernel];
                }
            }
            // A convex set holds exactly the points that no support function excludes.
            for _ in 0..20 {
                let costs = (0..shape.tasks * shape.kernels)
                    .map(|_| random.normal())
                    .collect();
                let s = Grid::new(shape.tasks, shape.kernels, costs).unwrap();
                let (value, support) = (s.dot(&theta), sharing.maximise(&s).1);
                assert!(
                    value <= support + 1e-12,
                    "beta = {beta}: {value} > {support}"
                );
            }
        }
    }
}

#[test]
fn a_group_of_one_exponent_only_is_one_ball_over_all_entries() {
    // With q = p the mixed norm is the plain p-norm of all T·M weights.
    let mut random = Random::new(13);
    let group = Shape {
        tasks: 3,
        kernels: 4,
    };
    let ball = Shape {
        tasks: 1,
        kernels: 12,
    };
    for p in EXPONENTS {
        let mixed = SharingSpec::group(p, p, 1.7).build(group).unwrap();
        let plain = SharingSpec::lp(p, 1.7).build(ball).unwrap();
        for _ in 0..20 {
            let costs: Vec<f64> = (0..12).map(|_| random.normal()).collect();
            let (parts, support) = mixed.maximise(&Grid::new(3, 4, costs.clone()).unwrap());
            let (expected, value) = plain.maximise(&Grid::new(1, 12, costs).unwrap());
            assert!((support - value).abs() <= 1e-12 * value, "p = {p}");
            for (a, b) in parts.0[0].values().iter().zip(expected.0[0].values()) {
                assert!((a - b).abs() <= 1e-12, "p = {p}: {a} for {b}");
            }
        }
    }
}

#[test]
fn the_weights_of_a_prior_ball_stay_in_it_when_a_loss_dwarfs_the_others() {
    // θ = (0, ½): the first weight is at its bound already, the second may fall by the radius.
    let spec = SharingSpec::sum(vec![TermSpec::Common(SetSpec::PriorBall {
        prior: vec![0.0, 1.0],
        radius: 0.5,
    })]);
    let sharing = spec
        .build(Shape {
            tasks: 1,
            kernels: 2,
        })
        .unwrap();
    for small in [1e-3, 1e-6, 1e-9, 1e-12] {
        let (parts, _) = sharing.maximise(&Grid::new(1, 2, vec![-1.0, -small]).unwrap());
        let theta = sharing.theta(&parts);
        assert!(
            theta[(0, 0)] == 0.0 && (theta[(0, 1)] - 0.5).abs() < 1e-9,
            "{small:e}: {theta:?}"
        );
    }
}
