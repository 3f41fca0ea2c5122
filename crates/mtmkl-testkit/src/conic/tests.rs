//! Checks that share no line with the code under test: J(θ) by pairwise ascent or elimination, σ by closed forms,
//! and searches over θ for small grids.

use super::*;
use crate::bracket::{inner, norm, outer, parts, positive, prior_point, sigma};
use crate::generate::{self, Random};

fn kernels(x: &[f64], n: usize, d: usize, count: usize) -> Vec<Vec<f64>> {
    let mut grams = vec![
        generate::gaussian_gram(x, n, d, 0.5),
        generate::linear_gram(x, n, d),
        generate::polynomial_gram(x, n, d, 2, 1.0),
        generate::gaussian_gram(x, n, d, 0.02),
        generate::gaussian_gram(x, n, d, 4.0),
    ];
    grams.truncate(count);
    for gram in &mut grams {
        generate::unit_diagonal(gram, n);
    }
    grams
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Svc(f64),
    Logistic(f64),
    Krr(f64),
    Svdd(f64),
    OneClass(f64),
    Svr(f64, f64),
}

const KINDS: [Kind; 10] = [
    Kind::Svc(0.3),
    Kind::Svc(100.0),
    Kind::Logistic(0.3),
    Kind::Logistic(100.0),
    Kind::Krr(0.1),
    Kind::Krr(10.0),
    Kind::Svdd(0.3),
    Kind::OneClass(0.4),
    Kind::Svr(10.0, 0.2),
    Kind::Svr(1.0, 0.0),
];

fn problem(seed: u64, kind: Kind, tasks: usize, n: usize, count: usize) -> Vec<Task> {
    let d = 3;
    let mut random = Random::new(seed);
    (0..tasks)
        .map(|task| {
            let n = n + task;
            let x = generate::points(&mut random, n, d);
            let machine = match kind {
                Kind::Svc(c) => Machine::Svc {
                    y: generate::labels(&mut random, &x, n, d),
                    upper: vec![c; n],
                },
                Kind::Logistic(c) => Machine::Logistic {
                    y: generate::labels(&mut random, &x, n, d),
                    upper: vec![c; n],
                },
                Kind::Krr(lambda) => Machine::Krr {
                    y: generate::values(&mut random, &x, n, d),
                    lambda,
                },
                Kind::Svdd(c) => Machine::Svdd { c },
                Kind::OneClass(nu) => Machine::OneClass { nu },
                Kind::Svr(c, epsilon) => Machine::Svr {
                    y: generate::values(&mut random, &x, n, d),
                    upper: vec![c; n],
                    epsilon,
                },
            };
            Task {
                machine,
                samples: n,
                grams: kernels(&x, n, d, count),
            }
        })
        .collect()
}

/// Every set and every term, and the sums of the theory.
#[allow(clippy::too_many_lines)] // a table, one line an entry before formatting
fn sharings(kernels: usize) -> Vec<(&'static str, Vec<Term>)> {
    let ball = |p: f64| Set::LpBall { p, radius: 1.0 };
    let centre: Vec<f64> = (0..kernels).map(|m| 0.1 + 0.2 * m as f64).collect();
    vec![
        ("common L1", vec![Term::Common(ball(1.0))]),
        ("common L1.1", vec![Term::Common(ball(1.1))]),
        ("common L2", vec![Term::Common(ball(2.0))]),
        (
            "independent L1.33",
            vec![Term::Independent(ball(4.0 / 3.0))],
        ),
        (
            "independent L10, radius 3",
            vec![Term::Independent(Set::LpBall {
                p: 10.0,
                radius: 3.0,
            })],
        ),
        ("common L∞", vec![Term::Common(ball(f64::INFINITY))]),
        (
            "common simplex",
            vec![Term::Common(Set::Simplex { total: 1.0 })],
        ),
        (
            "independent box-simplex",
            vec![Term::Independent(Set::BoxSimplex {
                total: 1.0,
                upper: 0.5,
            })],
        ),
        (
            "common box-simplex",
            vec![Term::Common(Set::BoxSimplex {
                total: 2.0,
                upper: 0.9,
            })],
        ),
        (
            "common prior",
            vec![Term::Common(Set::PriorBall {
                centre: centre.clone(),
                radius: 0.4,
            })],
        ),
        (
            "independent prior",
            vec![Term::Independent(Set::PriorBall {
                centre: centre.clone(),
                radius: 0.2,
            })],
        ),
        (
            "fixed",
            vec![Term::Independent(Set::Fixed { weights: centre })],
        ),
        (
            "group 2,1",
            vec![Term::Group {
                p: 2.0,
                q: 1.0,
                radius: 1.0,
            }],
        ),
        (
            "group 1.1,1.5",
            vec![Term::Group {
                p: 1.1,
                q: 1.5,
                radius: 2.0,
            }],
        ),
        (
            "group 1,2",
            vec![Term::Group {
                p: 1.0,
                q: 2.0,
                radius: 1.0,
            }],
        ),
        (
            "group 3,1.1",
            vec![Term::Group {
                p: 3.0,
                q: 1.1,
                radius: 1.0,
            }],
        ),
        (
            "PSCS 2,1",
            vec![
                Term::Common(ball(2.0)),
                Term::Group {
                    p: 2.0,
                    q: 1.0,
                    radius: 1.0,
                },
            ],
        ),
        (
            "PSCS 1.1,1.5",
            vec![
                Term::Common(ball(1.1)),
                Term::Group {
                    p: 1.1,
                    q: 1.5,
                    radius: 1.0,
                },
            ],
        ),
        (
            "Tang 0.3",
            vec![
                Term::Common(Set::Simplex { total: 0.7 }),
                Term::Independent(Set::Simplex { total: 0.3 }),
            ],
        ),
    ]
}

fn relative(got: f64, wanted: f64) -> f64 {
    (got - wanted).abs() / wanted.abs().max(1e-300)
}

/// D(α) = value = J(θ) with closed σ, pairwise J, and θ in Ψ: the two sides of the certificate, for every machine and sharing.
#[test]
fn both_bounds_meet() {
    for (seed, kind) in (1..).zip(KINDS) {
        let tasks = problem(seed, kind, 2, 12, 4);
        for (name, sharing) in sharings(4) {
            let found = optimum(&tasks, &sharing);
            let pieces: Vec<_> = tasks
                .iter()
                .zip(&found.alpha)
                .map(|(task, alpha)| parts(task, alpha))
                .collect();
            let s: Vec<Vec<f64>> = pieces.iter().map(|piece| piece.1.clone()).collect();
            let below = pieces.iter().map(|piece| piece.0).sum::<f64>() - sigma(&sharing, &s);
            let above = outer(&tasks, &found.theta);
            // SVDD on a set that holds 0 has the optimum 0, where relative errors mean nothing.
            let unit = if matches!(kind, Kind::Svdd(_)) {
                found.value.abs().max(0.1)
            } else {
                found.value.abs()
            };
            let errors = ((below - found.value) / unit, (above - found.value) / unit);
            assert!(found.solved, "{kind:?}, {name}: {errors:?}");
            assert!(
                errors.0.abs() < 1e-7 && errors.1.abs() < 1e-7,
                "{kind:?}, {name}: {errors:?}, {}",
                found.value
            );
            let mut random = Random::new(99);
            for _ in 0..20 {
                let probe: Vec<Vec<f64>> = s
                    .iter()
                    .map(|row| row.iter().map(|_| random.normal()).collect())
                    .collect();
                let inside: f64 = probe
                    .iter()
                    .flatten()
                    .zip(found.theta.iter().flatten())
                    .map(|(a, b)| a * b)
                    .sum();
                assert!(
                    inside <= sigma(&sharing, &probe) + 1e-5,
                    "{kind:?}, {name}: θ outside Ψ"
                );
            }
        }
    }
}

/// θ given: J(θ) is one inner problem a task.
#[test]
fn fixed_weights_give_the_inner_optimum() {
    let weights = vec![0.4, 0.0, 1.3];
    let sharing = [Term::Common(Set::Fixed {
        weights: weights.clone(),
    })];
    for (seed, kind) in (20..).zip(KINDS) {
        let tasks = problem(seed, kind, 1, 20, 3);
        let found = optimum(&tasks, &sharing);
        let wanted = inner(&tasks[0], &weights);
        assert!(
            found.solved && relative(found.value, wanted) < 1e-7,
            "{kind:?}: {} for {wanted}",
            found.value
        );
    }
}

/// The least J over a grid of parameters in [0,1]^k, then refined by shrinking steps along the coordinates.
fn search(count: usize, grid: usize, value: &dyn Fn(&[f64]) -> f64) -> (f64, f64) {
    let mut best = (f64::INFINITY, vec![0.0; count]);
    let mut coarsest = f64::INFINITY;
    let cells = (0..count).fold(1, |product, _| product * (grid + 1));
    for cell in 0..cells {
        let mut rest = cell;
        let at: Vec<f64> = (0..count)
            .map(|_| {
                let digit = rest % (grid + 1);
                rest /= grid + 1;
                digit as f64 / grid as f64
            })
            .collect();
        let here = value(&at);
        coarsest = coarsest.min(here);
        if here < best.0 {
            best = (here, at);
        }
    }
    let mut step = 1.0 / grid as f64;
    while step > 1e-7 {
        let mut improved = false;
        for coordinate in 0..count {
            for way in [-1.0, 1.0] {
                let mut at = best.1.clone();
                at[coordinate] = (at[coordinate] + way * step).clamp(0.0, 1.0);
                let here = value(&at);
                if here < best.0 {
                    best = (here, at);
                    improved = true;
                }
            }
        }
        if !improved {
            step *= 0.5;
        }
    }
    (coarsest, best.0)
}

/// A point of the unit `L_p` sphere in two dimensions: (cos^{2/p}, sin^{2/p}).
fn sphere(p: f64, at: f64) -> [f64; 2] {
    let (sin, cos) = (at * std::f64::consts::FRAC_PI_2).sin_cos();
    if p == f64::INFINITY {
        [1.0, 1.0]
    } else {
        [cos.max(0.0).powf(2.0 / p), sin.max(0.0).powf(2.0 / p)]
    }
}

type Weights = Box<dyn Fn(&[f64]) -> Vec<Vec<f64>>>;

/// One search: (name, sharing, number of parameters, grid, θ from the parameters).
fn searches(tasks: usize) -> Vec<(&'static str, Vec<Term>, usize, usize, Weights)> {
    let one = move |row: [f64; 2]| vec![row.to_vec(); tasks];
    let mut list: Vec<(&'static str, Vec<Term>, usize, usize, Weights)> = Vec::new();
    for p in [1.0, 1.1, 1.5, 2.0, 3.0, 10.0] {
        let set = Set::LpBall { p, radius: 1.5 };
        let at = move |a: &[f64]| one(sphere(p, a[0]).map(|x| 1.5 * x));
        list.push(("L_p ball", vec![Term::Common(set)], 1, 200, Box::new(at)));
    }
    let set = Set::Simplex { total: 2.0 };
    list.push((
        "simplex",
        vec![Term::Common(set)],
        1,
        200,
        Box::new(move |a| one([2.0 * a[0], 2.0 - 2.0 * a[0]])),
    ));
    let set = Set::BoxSimplex {
        total: 1.0,
        upper: 0.7,
    };
    let at = move |a: &[f64]| one([0.3 + 0.4 * a[0], 0.7 - 0.4 * a[0]]);
    list.push(("box-simplex", vec![Term::Common(set)], 1, 200, Box::new(at)));
    let set = Set::PriorBall {
        centre: vec![0.3, 0.6],
        radius: 0.5,
    };
    // The quarter of the circle where no weight can grow without another's falling; J never rises with θ here.
    let at = move |a: &[f64]| {
        one([
            0.3 + 0.5 * sphere(2.0, a[0])[0],
            0.6 + 0.5 * sphere(2.0, a[0])[1],
        ])
    };
    list.push(("prior ball", vec![Term::Common(set)], 1, 200, Box::new(at)));
    if tasks == 2 {
        let set = Set::LpBall {
            p: 1.5,
            radius: 1.0,
        };
        let at = |a: &[f64]| vec![sphere(1.5, a[0]).to_vec(), sphere(1.5, a[1]).to_vec()];
        list.push((
            "independent",
            vec![Term::Independent(set)],
            2,
            30,
            Box::new(at),
        ));
        for (p, q) in [(2.0, 1.0), (1.0, 2.0), (1.1, 1.5)] {
            let at = move |a: &[f64]| {
                let budget = sphere(q, a[2]);
                (0..2)
                    .map(|t| sphere(p, a[t]).iter().map(|x| x * budget[t]).collect())
                    .collect()
            };
            list.push((
                "group",
                vec![Term::Group { p, q, radius: 1.0 }],
                3,
                10,
                Box::new(at),
            ));
        }
        let sharing = vec![
            Term::Common(Set::LpBall {
                p: 2.0,
                radius: 1.0,
            }),
            Term::Group {
                p: 2.0,
                q: 1.5,
                radius: 0.5,
            },
        ];
        let at = |a: &[f64]| {
            let (zeta, budget) = (sphere(2.0, a[3]), sphere(1.5, a[2]));
            (0..2)
                .map(|t| {
                    (0..2)
                        .map(|m| zeta[m] + 0.5 * budget[t] * sphere(2.0, a[t])[m])
                        .collect()
                })
                .collect()
        };
        list.push(("PSCS", sharing, 4, 6, Box::new(at)));
        let sharing = vec![
            Term::Common(Set::Simplex { total: 0.8 }),
            Term::Independent(Set::Simplex { total: 0.2 }),
        ];
        let at = |a: &[f64]| {
            (0..2)
                .map(|t| vec![0.8 * a[2] + 0.2 * a[t], 1.0 - 0.8 * a[2] - 0.2 * a[t]])
                .collect()
        };
        list.push(("Tang", sharing, 3, 10, Box::new(at)));
    }
    list
}

/// Brute force: no θ of a fine grid is below the optimum, and the best one, refined, meets it.
#[test]
fn no_weights_are_better() {
    for (tasks, kind, seed) in [
        (1, Kind::Svc(1.0), 31),
        (1, Kind::Krr(0.5), 32),
        (1, Kind::OneClass(0.3), 33),
        (2, Kind::Svc(10.0), 34),
        (2, Kind::Svr(2.0, 0.1), 35),
    ] {
        let problem = problem(seed, kind, tasks, 8, 2);
        for (name, sharing, parameters, grid, weights) in searches(tasks) {
            let found = optimum(&problem, &sharing);
            let (coarse, fine) = search(parameters, grid, &|at| outer(&problem, &weights(at)));
            let unit = found.value.abs();
            assert!(found.solved, "{kind:?}, {name}");
            assert!(
                (fine - found.value) / unit > -1e-8,
                "{kind:?}, {name}: {fine} is below {}",
                found.value
            );
            assert!(
                (coarse - found.value) / unit < 2e-2,
                "{kind:?}, {name}: {coarse} for {}",
                found.value
            );
            assert!(
                (fine - found.value) / unit < 1e-6,
                "{kind:?}, {name}: {fine} for {}",
                found.value
            );
        }
    }
    // SVDD needs a set of fixed mass.
    let problem = problem(36, Kind::Svdd(0.4), 2, 8, 2);
    for (name, sharing, parameters, grid, weights) in searches(2) {
        if matches!(name, "simplex" | "box-simplex" | "Tang") {
            let found = optimum(&problem, &sharing);
            let (_, fine) = search(parameters, grid, &|at| outer(&problem, &weights(at)));
            assert!(
                relative(fine, found.value) < 1e-6 && found.solved,
                "SVDD, {name}: {fine} for {}",
                found.value
            );
        }
    }
}

/// Min over a grid of fixed weights, each solved by the same conic form: the two forms agree with each other too.
#[test]
fn grid_of_fixed_weights() {
    let problem = problem(40, Kind::Svc(2.0), 1, 10, 2);
    let found = optimum(
        &problem,
        &[Term::Common(Set::LpBall {
            p: 2.0,
            radius: 1.0,
        })],
    )
    .value;
    let least = (0..=100)
        .map(|at| {
            let weights = sphere(2.0, f64::from(at) / 100.0).to_vec();
            optimum(&problem, &[Term::Common(Set::Fixed { weights })]).value
        })
        .fold(f64::INFINITY, f64::min);
    assert!(
        least > found * (1.0 - 1e-8) && least < found * (1.0 + 1e-3),
        "{least} for {found}"
    );
}

/// SVDD and the one-class machine differ by a constant on unit diagonals and fixed mass (theory, §3).
#[test]
fn svdd_is_one_class_on_unit_diagonals() {
    let n = 15;
    let mut svdd = problem(50, Kind::Svdd(0.2), 1, n, 3);
    let sharing = [Term::Common(Set::Simplex { total: 1.0 })];
    let left = optimum(&svdd, &sharing);
    svdd[0].machine = Machine::OneClass {
        nu: 1.0 / (0.2 * n as f64),
    };
    let right = optimum(&svdd, &sharing);
    assert!(
        (left.value - 1.0 - right.value).abs() < 1e-8,
        "{} and {}",
        left.value,
        right.value
    );
    assert!(
        left.theta[0]
            .iter()
            .zip(&right.theta[0])
            .all(|(a, b)| (a - b).abs() < 1e-4)
    );
}

/// Sets and boxes of one point, and boxes with closed entries.
#[test]
fn corners() {
    let ball = [Term::Common(Set::LpBall {
        p: 2.0,
        radius: 1.0,
    })];
    // ν = 1: α = 1/n.
    let tasks = problem(60, Kind::OneClass(1.0), 1, 9, 2);
    let s: Vec<f64> = tasks[0]
        .grams
        .iter()
        .map(|gram| gram.iter().sum::<f64>() / 81.0)
        .collect();
    let found = optimum(&tasks, &ball);
    assert!(found.solved && relative(found.value, -s[0].hypot(s[1])) < 1e-8);
    // Radius 0: θ = 0, and J = Σα is the largest balanced mass.
    let tasks = problem(61, Kind::Svc(0.5), 1, 9, 2);
    let Machine::Svc { y, .. } = &tasks[0].machine else {
        unreachable!()
    };
    let fewer = y
        .iter()
        .filter(|&&label| label > 0.0)
        .count()
        .min(y.iter().filter(|&&label| label < 0.0).count());
    for empty in [
        Term::Common(Set::LpBall {
            p: 3.0,
            radius: 0.0,
        }),
        Term::Group {
            p: 2.0,
            q: 1.0,
            radius: 0.0,
        },
        Term::Independent(Set::PriorBall {
            centre: vec![0.0, 0.0],
            radius: 0.0,
        }),
        Term::Independent(Set::BoxSimplex {
            total: 0.0,
            upper: 0.0,
        }),
    ] {
        let found = optimum(&tasks, std::slice::from_ref(&empty));
        assert!(
            found.solved && relative(found.value, fewer as f64) < 1e-8,
            "{empty:?}: {}",
            found.value
        );
        assert_eq!(maximum(&[empty], &[vec![1.0, -2.0]]).theta, [[0.0, 0.0]]);
    }
    // A bound of 0 takes a sample out.
    let mut tasks = problem(62, Kind::Svc(2.0), 1, 10, 2);
    if let Machine::Svc { upper, .. } = &mut tasks[0].machine {
        upper[3] = 0.0;
    }
    let found = optimum(&tasks, &ball);
    assert!(found.solved && found.alpha[0][3] == 0.0);
    assert!(relative(outer(&tasks, &found.theta), found.value) < 1e-7);
    // A box-simplex of one point.
    let sharing = [Term::Common(Set::BoxSimplex {
        total: 1.0,
        upper: 0.5,
    })];
    assert!(
        relative(
            optimum(&tasks, &sharing).value,
            inner(&tasks[0], &[0.5, 0.5])
        ) < 1e-7
    );
    assert_eq!(maximum(&sharing, &[vec![3.0, -1.0]]).theta, [[0.5, 0.5]]);
}

#[test]
fn cholesky_rebuilds_and_drops() {
    let n = 10;
    let x = generate::points(&mut Random::new(3), n, 3);
    for (gram, rank) in [
        (generate::linear_gram(&x, n, 3), 3),
        (generate::gaussian_gram(&x, n, 3, 1.0), n),
    ] {
        let columns = pivoted_cholesky(&gram, n);
        assert_eq!(columns.len(), rank);
        for at in 0..n * n {
            let built: f64 = columns
                .iter()
                .map(|column| column[at / n] * column[at % n])
                .sum();
            assert!((built - gram[at]).abs() < 1e-12);
        }
    }
    assert!(pivoted_cholesky(&[0.0; 4], 2).is_empty());
}

fn costs(random: &mut Random, tasks: usize, count: usize, case: usize) -> Vec<Vec<f64>> {
    (0..tasks)
        .map(|_| {
            (0..count)
                .map(|_| match case % 4 {
                    0 => random.uniform(),
                    1 => random.normal(),
                    2 => 1000.0 * random.normal(),
                    _ => -random.uniform(),
                })
                .collect()
        })
        .collect()
}

/// max ⟨s, θ⟩ by cones against the closed support functions, for costs of any sign, and the point against its value.
#[test]
fn maximum_is_the_closed_support_function() {
    let mut list = sharings(4);
    for p in [1.0, 1.1, 1.5, 2.0, 3.0, 10.0] {
        list.push(("ball", vec![Term::Common(Set::LpBall { p, radius: 2.5 })]));
        list.push((
            "balls",
            vec![Term::Independent(Set::LpBall { p, radius: 0.3 })],
        ));
        for q in [1.0, 1.1, 1.5, 2.0, 3.0, 10.0] {
            list.push(("group", vec![Term::Group { p, q, radius: 0.7 }]));
        }
    }
    let mut random = Random::new(70);
    for (name, sharing) in list {
        for case in 0..8 {
            let s = costs(&mut random, 3, 4, case);
            let found = maximum(&sharing, &s);
            let wanted = sigma(&sharing, &s);
            // Where every cost is negative the answer may be 0: measured against the costs then.
            let unit = s
                .iter()
                .flatten()
                .fold(0.0_f64, |most, value| most.max(value.abs()));
            let error = (found.value - wanted).abs() / wanted.abs().max(0.1 * unit);
            let point: f64 = s
                .iter()
                .flatten()
                .zip(found.theta.iter().flatten())
                .map(|(a, b)| a * b)
                .sum();
            assert!(
                found.solved && error < 1e-8,
                "{name} {sharing:?}: {} for {wanted}",
                found.value
            );
            assert!(
                (point - found.value).abs() <= 1e-8 * unit,
                "{name}: value and point disagree"
            );
            assert!(
                found.theta.iter().flatten().all(|&weight| weight > -1e-8),
                "{name}: θ ≥ 0"
            );
        }
    }
}

/// The maximiser, where it is unique: θ = a (s⁺)^r / ‖(s⁺)^r‖_p, and (centre + μs)⁺ for the ball around a prior.
#[test]
fn maximisers() {
    let mut random = Random::new(80);
    for p in [1.1, 1.5, 2.0, 3.0, 10.0] {
        let s: Vec<f64> = (0..5).map(|_| random.normal()).collect();
        let most = s.iter().copied().fold(0.0, f64::max);
        let power: Vec<f64> = positive(&s)
            .iter()
            .map(|value| (value / most).powf(1.0 / (p - 1.0)))
            .collect();
        let found = maximum(
            &[Term::Common(Set::LpBall { p, radius: 2.0 })],
            std::slice::from_ref(&s),
        );
        for (weight, part) in found.theta[0].iter().zip(&power) {
            assert!(
                (weight - 2.0 * part / norm(&power, p)).abs() < 1e-4,
                "p = {p}: {:?}",
                found.theta
            );
        }
    }
    for case in 0..20 {
        let s: Vec<f64> = (0..4).map(|_| random.normal()).collect();
        let centre: Vec<f64> = (0..4).map(|_| random.uniform()).collect();
        let radius = 0.1 + 0.1 * f64::from(case);
        let wanted = prior_point(&s, &centre, radius);
        let found = maximum(&[Term::Common(Set::PriorBall { centre, radius })], &[s]);
        for (weight, other) in found.theta[0].iter().zip(&wanted) {
            assert!(
                (weight - other).abs() < 1e-4,
                "radius {radius}: {:?} for {wanted:?}",
                found.theta
            );
        }
    }
}
