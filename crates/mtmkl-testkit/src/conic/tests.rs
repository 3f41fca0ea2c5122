//! Checks that share no line with the code under test: J(θ) by pairwise ascent or elimination, σ by closed forms,
//! and searches over θ for small grids.

use super::*;
use crate::generate::{self, Random, eliminate};
use crate::logistic;

/// min ½x'Qx + p'x over 0 ≤ x ≤ u, signs'x kept at its start: pairwise descent on the most violating pair.
fn pairwise(q: &[f64], p: &[f64], signs: &[f64], upper: &[f64], mut x: Vec<f64>) -> f64 {
    let n = x.len();
    let mut slope: Vec<f64> = (0..n)
        .map(|i| p[i] + (0..n).map(|j| q[i * n + j] * x[j]).sum::<f64>())
        .collect();
    let tolerance = 1e-11
        * slope
            .iter()
            .fold(1.0_f64, |most, value| most.max(value.abs()));
    for _ in 0..5_000_000 {
        // Moving signs_i·x_i up lowers the value at rate −signs_i·slope_i.
        let rate = |i: usize| -signs[i] * slope[i];
        let can_rise = |i: usize| {
            if signs[i] > 0.0 {
                x[i] < upper[i]
            } else {
                x[i] > 0.0
            }
        };
        let can_fall = |i: usize| {
            if signs[i] > 0.0 {
                x[i] > 0.0
            } else {
                x[i] < upper[i]
            }
        };
        let Some(i) = (0..n)
            .filter(|&i| can_rise(i))
            .max_by(|&a, &b| rate(a).total_cmp(&rate(b)))
        else {
            break;
        };
        // The partner with the largest decrease (second order), as most violating pairs crawl on singular matrices.
        let bend = |j: usize| {
            (q[i * n + i] + q[j * n + j] - 2.0 * signs[i] * signs[j] * q[i * n + j]).max(1e-12)
        };
        let gain = |j: usize| (rate(i) - rate(j)).powi(2) / bend(j);
        let violators = (0..n).filter(|&j| can_fall(j) && rate(i) - rate(j) > tolerance);
        let Some(j) = violators.max_by(|&a, &b| gain(a).total_cmp(&gain(b))) else {
            break;
        };
        let room_i = if signs[i] > 0.0 {
            upper[i] - x[i]
        } else {
            x[i]
        };
        let room_j = if signs[j] > 0.0 {
            x[j]
        } else {
            upper[j] - x[j]
        };
        let step = ((rate(i) - rate(j)) / bend(j)).min(room_i).min(room_j);
        let moved = |k: usize, up: f64| {
            let end = x[k] + up * signs[k] * step;
            // Land on the bound exactly, or the pair is chosen again for a step of rounding size.
            if step >= room_i.min(room_j) && end < 1e-14 * upper[k] {
                0.0
            } else if end > upper[k] * (1.0 - 1e-14) {
                upper[k]
            } else {
                end
            }
        };
        let (to_i, to_j) = (moved(i, 1.0), moved(j, -1.0));
        let (by_i, by_j) = (to_i - x[i], to_j - x[j]);
        for k in 0..n {
            slope[k] += q[k * n + i] * by_i + q[k * n + j] * by_j;
        }
        x[i] = to_i;
        x[j] = to_j;
    }
    (0..n).map(|i| 0.5 * x[i] * (slope[i] + p[i])).sum()
}

fn combined(task: &Task, theta: &[f64]) -> Vec<f64> {
    let size = task.samples * task.samples;
    (0..size)
        .map(|at| {
            theta
                .iter()
                .zip(&task.grams)
                .map(|(weight, gram)| weight * gram[at])
                .sum()
        })
        .collect()
}

/// x'K x.
fn form(gram: &[f64], x: &[f64]) -> f64 {
    let n = x.len();
    (0..n)
        .map(|i| x[i] * (0..n).map(|j| gram[i * n + j] * x[j]).sum::<f64>())
        .sum()
}

/// `J_t(θ)` = max over α of ḡ(α, Σ `θ_m` `K_m`).
fn inner(task: &Task, theta: &[f64]) -> f64 {
    let n = task.samples;
    let theta: Vec<f64> = theta.iter().map(|weight| weight.max(0.0)).collect();
    let k = combined(task, &theta);
    let unit_mass = |upper: f64| {
        let mut left = 1.0;
        (0..n)
            .map(|_| {
                let part = upper.min(left);
                left -= part;
                part
            })
            .collect::<Vec<f64>>()
    };
    match &task.machine {
        Machine::Svc { y, upper } => {
            let q: Vec<f64> = (0..n * n).map(|at| y[at / n] * y[at % n] * k[at]).collect();
            -pairwise(&q, &vec![-1.0; n], y, upper, vec![0.0; n])
        }
        Machine::Logistic { y, upper } => logistic::least_primal(&k, y, upper),
        Machine::Krr { y, lambda } => {
            let a = (0..n * n)
                .map(|at| k[at] + if at / n == at % n { *lambda } else { 0.0 })
                .collect();
            y.iter()
                .zip(eliminate(a, y.clone()))
                .map(|(y, alpha)| y * alpha)
                .sum()
        }
        Machine::Svdd { c } => {
            let q: Vec<f64> = k.iter().map(|value| 2.0 * value).collect();
            let p: Vec<f64> = (0..n).map(|i| -k[i * n + i]).collect();
            -pairwise(&q, &p, &vec![1.0; n], &vec![*c; n], unit_mass(*c))
        }
        Machine::OneClass { nu } => {
            let upper = 1.0 / (nu * n as f64);
            let q: Vec<f64> = k.iter().map(|value| 2.0 * value).collect();
            -pairwise(
                &q,
                &vec![0.0; n],
                &vec![1.0; n],
                &vec![upper; n],
                unit_mass(upper),
            )
        }
        Machine::Svr { y, upper, epsilon } => {
            let sign = |i: usize| if i < n { 1.0 } else { -1.0 };
            let size = 2 * n;
            let q: Vec<f64> = (0..size * size)
                .map(|at| {
                    sign(at / size) * sign(at % size) * k[(at / size) % n * n + at % size % n]
                })
                .collect();
            let p: Vec<f64> = (0..size).map(|i| epsilon - sign(i) * y[i % n]).collect();
            let signs: Vec<f64> = (0..size).map(sign).collect();
            let upper: Vec<f64> = (0..size).map(|i| upper[i % n]).collect();
            -pairwise(&q, &p, &signs, &upper, vec![0.0; size])
        }
    }
}

fn outer(tasks: &[Task], theta: &[Vec<f64>]) -> f64 {
    tasks
        .iter()
        .zip(theta)
        .map(|(task, row)| inner(task, row))
        .sum()
}

/// (θ-free part of ḡ, sensitivities) at α.
fn parts(task: &Task, alpha: &[f64]) -> (f64, Vec<f64>) {
    let n = task.samples;
    let forms = |x: &[f64], factor: f64| {
        task.grams
            .iter()
            .map(|gram| factor * form(gram, x))
            .collect::<Vec<f64>>()
    };
    let dot = |x: &[f64], z: &[f64]| x.iter().zip(z).map(|(a, b)| a * b).sum::<f64>();
    match &task.machine {
        Machine::Svc { y, .. } => {
            let beta: Vec<f64> = y.iter().zip(alpha).map(|(y, a)| y * a).collect();
            (alpha.iter().sum(), forms(&beta, 0.5))
        }
        Machine::Logistic { y, upper } => {
            let beta: Vec<f64> = y.iter().zip(alpha).map(|(y, a)| y * a).collect();
            (logistic::entropy(y, upper, &beta), forms(&beta, 0.5))
        }
        Machine::Krr { y, lambda } => (
            2.0 * dot(alpha, y) - lambda * dot(alpha, alpha),
            forms(alpha, 1.0),
        ),
        Machine::OneClass { .. } => (0.0, forms(alpha, 1.0)),
        Machine::Svdd { .. } => {
            let mut s = forms(alpha, 1.0);
            for (entry, gram) in s.iter_mut().zip(&task.grams) {
                *entry -= (0..n).map(|i| alpha[i] * gram[i * n + i]).sum::<f64>();
            }
            (0.0, s)
        }
        Machine::Svr { y, epsilon, .. } => (
            dot(y, alpha) - epsilon * alpha.iter().map(|b| b.abs()).sum::<f64>(),
            forms(alpha, 0.5),
        ),
    }
}

/// (Σ x^p)^{1/p} of nonnegative x, scaled by the largest.
fn norm(x: &[f64], p: f64) -> f64 {
    let most = x.iter().copied().fold(0.0, f64::max);
    if most == 0.0 || p == f64::INFINITY {
        return most;
    }
    most * x
        .iter()
        .map(|value| (value / most).powf(p))
        .sum::<f64>()
        .powf(1.0 / p)
}

fn dual(p: f64) -> f64 {
    if p == 1.0 {
        f64::INFINITY
    } else if p == f64::INFINITY {
        1.0
    } else {
        p / (p - 1.0)
    }
}

fn positive(s: &[f64]) -> Vec<f64> {
    s.iter().map(|value| value.max(0.0)).collect()
}

/// The maximiser of ⟨s, θ⟩ over θ ≥ 0, ‖θ − centre‖ ≤ radius: (centre + μs)⁺, the projection of a step, with μ by bisection.
fn prior_point(s: &[f64], centre: &[f64], radius: f64) -> Vec<f64> {
    let at = |mu: f64| -> Vec<f64> {
        centre
            .iter()
            .zip(s)
            .map(|(c, s)| (c + mu * s).max(0.0))
            .collect()
    };
    let far = |theta: &[f64]| {
        theta
            .iter()
            .zip(centre)
            .map(|(t, c)| (t - c) * (t - c))
            .sum::<f64>()
            .sqrt()
    };
    let largest = s
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()))
        .max(1e-300);
    let (mut low, mut high) = (0.0, 1e6 / largest);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if far(&at(middle)) > radius {
            high = middle;
        } else {
            low = middle;
        }
    }
    at(low)
}

fn sigma_set(set: &Set, s: &[f64]) -> f64 {
    match set {
        Set::LpBall { p, radius } => radius * norm(&positive(s), dual(*p)),
        Set::Simplex { total } => total * s.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Set::BoxSimplex { total, upper } => {
            let mut sorted = s.to_vec();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let mut left = *total;
            sorted
                .iter()
                .map(|value| {
                    let part = upper.min(left);
                    left -= part;
                    part * value
                })
                .sum()
        }
        Set::PriorBall { centre, radius } => prior_point(s, centre, *radius)
            .iter()
            .zip(s)
            .map(|(t, s)| t * s)
            .sum(),
        Set::Fixed { weights } => weights.iter().zip(s).map(|(w, s)| w * s).sum(),
    }
}

/// The closed support function of the theory, §3.
fn sigma(sharing: &[Term], s: &[Vec<f64>]) -> f64 {
    sharing
        .iter()
        .map(|term| match term {
            Term::Common(set) => {
                let sum: Vec<f64> = (0..s[0].len())
                    .map(|m| s.iter().map(|row| row[m]).sum())
                    .collect();
                sigma_set(set, &sum)
            }
            Term::Independent(set) => s.iter().map(|row| sigma_set(set, row)).sum(),
            Term::Group { p, q, radius } => {
                let norms: Vec<f64> = s.iter().map(|row| norm(&positive(row), dual(*p))).collect();
                radius * norm(&norms, dual(*q))
            }
            Term::Level {
                groups,
                p,
                q,
                radius,
            } => {
                let sum = |group: &Vec<usize>| -> Vec<f64> {
                    (0..s[0].len())
                        .map(|m| group.iter().map(|&task| s[task][m]).sum())
                        .collect()
                };
                let norms: Vec<f64> = groups
                    .iter()
                    .map(|group| norm(&positive(&sum(group)), dual(*p)))
                    .collect();
                radius * norm(&norms, dual(*q))
            }
        })
        .sum()
}

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
