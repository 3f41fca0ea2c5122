//! The textbook's values at a point: J(θ), ḡ in its parts, the support function of Ψ in closed form, the primal of a machine. No line is shared with the
//! conic solver or the product, so that what either claims can be checked at the points that it found.

use crate::conic::{Machine, Set, Task, Term};
use crate::generate::eliminate;
use crate::logistic;

/// min ½x'Qx + p'x over 0 ≤ x ≤ u, signs'x kept at its start: pairwise descent on the most violating pair.
fn pairwise(
    q: &[f64],
    p: &[f64],
    signs: &[f64],
    upper: &[f64],
    mut x: Vec<f64>,
) -> (f64, Vec<f64>) {
    let n = x.len();
    let mut slope: Vec<f64> = (0..n)
        .map(|i| p[i] + (0..n).map(|j| q[i * n + j] * x[j]).sum::<f64>())
        .collect();
    let tolerance = 1e-11
        * slope
            .iter()
            .fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
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
    ((0..n).map(|i| 0.5 * x[i] * (slope[i] + p[i])).sum(), x)
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
pub fn inner(task: &Task, theta: &[f64]) -> f64 {
    solved(task, theta).0
}

/// J_t(θ), and β that reaches it.
pub fn solved(task: &Task, theta: &[f64]) -> (f64, Vec<f64>) {
    let minus = |(value, x): (f64, Vec<f64>)| (-value, x);
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
            let (value, x) = minus(pairwise(&q, &vec![-1.0; n], y, upper, vec![0.0; n]));
            (value, x.iter().zip(y).map(|(x, y)| x * y).collect())
        }
        Machine::Logistic { y, upper } => logistic::least_primal_at(&k, y, upper),
        Machine::Krr { y, lambda } => {
            let a = (0..n * n)
                .map(|at| k[at] + if at / n == at % n { *lambda } else { 0.0 })
                .collect();
            let alpha = eliminate(a, y.clone());
            (
                y.iter().zip(&alpha).map(|(y, alpha)| y * alpha).sum(),
                alpha,
            )
        }
        Machine::Svdd { c } => {
            let q: Vec<f64> = k.iter().map(|value| 2.0 * value).collect();
            let p: Vec<f64> = (0..n).map(|i| -k[i * n + i]).collect();
            minus(pairwise(&q, &p, &vec![1.0; n], &vec![*c; n], unit_mass(*c)))
        }
        Machine::OneClass { nu } => {
            let upper = 1.0 / (nu * n as f64);
            let q: Vec<f64> = k.iter().map(|value| 2.0 * value).collect();
            minus(pairwise(
                &q,
                &vec![0.0; n],
                &vec![1.0; n],
                &vec![upper; n],
                unit_mass(upper),
            ))
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
            let (value, x) = minus(pairwise(&q, &p, &signs, &upper, vec![0.0; size]));
            (value, (0..n).map(|i| x[i] - x[n + i]).collect())
        }
    }
}

/// Σ J_t(θ).
pub fn outer(tasks: &[Task], theta: &[Vec<f64>]) -> f64 {
    tasks
        .iter()
        .zip(theta)
        .map(|(task, row)| inner(task, row))
        .sum()
}

/// (θ-free part of ḡ, sensitivities) at α.
pub fn parts(task: &Task, alpha: &[f64]) -> (f64, Vec<f64>) {
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
pub fn norm(x: &[f64], p: f64) -> f64 {
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

pub(crate) fn dual(p: f64) -> f64 {
    if p == 1.0 {
        f64::INFINITY
    } else if p == f64::INFINITY {
        1.0
    } else {
        p / (p - 1.0)
    }
}

pub(crate) fn positive(s: &[f64]) -> Vec<f64> {
    s.iter().map(|value| value.max(0.0)).collect()
}

/// The maximiser of ⟨s, θ⟩ over θ ≥ 0, ‖θ − centre‖ ≤ radius: (centre + μs)⁺, the projection of a step, with μ by bisection.
pub(crate) fn prior_point(s: &[f64], centre: &[f64], radius: f64) -> Vec<f64> {
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
pub fn sigma(sharing: &[Term], s: &[Vec<f64>]) -> f64 {
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
            Term::Given(rows) => {
                let pairs = rows.iter().flatten().zip(s.iter().flatten());
                pairs.map(|(w, s)| w * s).sum()
            }
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

/// By how much α is outside of Ω: of its box, and of its sum, as a part of the size of α.
pub fn violation(task: &Task, alpha: &[f64]) -> f64 {
    let n = task.samples;
    let of = |low: &dyn Fn(usize) -> f64, high: &dyn Fn(usize) -> f64, total: f64, sum: f64| {
        let size = alpha.iter().map(|a| a.abs()).sum::<f64>();
        let outside = (0..n).map(|i| {
            (low(i) - alpha[i]).max(alpha[i] - high(i)) / (high(i) - low(i)).max(f64::MIN_POSITIVE)
        });
        outside
            .fold((total - sum).abs() / size.max(f64::MIN_POSITIVE), f64::max)
            .max(0.0)
    };
    let total: f64 = alpha.iter().sum();
    match &task.machine {
        Machine::Svc { y, upper } | Machine::Logistic { y, upper } => {
            let total = y.iter().zip(alpha).map(|(y, a)| y * a).sum();
            of(&|_| 0.0, &|i| upper[i], total, 0.0)
        }
        Machine::Svr { upper, .. } => of(&|i| -upper[i], &|i| upper[i], total, 0.0),
        Machine::Svdd { c } => of(&|_| 0.0, &|_| *c, total, 1.0),
        Machine::OneClass { nu } => of(&|_| 0.0, &|_| 1.0 / (nu * n as f64), total, 1.0),
        Machine::Krr { .. } => 0.0,
    }
}

/// (θ-free part of Σ ḡ) − `σ_Ψ(s(α))`: at most J*, for any α in Ω.
pub fn dual_value(tasks: &[Task], sharing: &[Term], alpha: &[Vec<f64>]) -> f64 {
    let (constants, s): (Vec<f64>, Vec<Vec<f64>>) = tasks
        .iter()
        .zip(alpha)
        .map(|(task, alpha)| parts(task, alpha))
        .unzip();
    constants.iter().sum::<f64>() - sigma(sharing, &s)
}

/// The primal objective at w = Σ β φ and the best offset for it: at least J_t(θ), for any β.
///
/// β is y∘α for the machines of labels, α for the others.
pub fn primal(task: &Task, theta: &[f64], beta: &[f64]) -> f64 {
    let n = task.samples;
    let k = combined(task, theta);
    let f: Vec<f64> = (0..n)
        .map(|i| (0..n).map(|j| k[i * n + j] * beta[j]).sum())
        .collect();
    let square: f64 = f.iter().zip(beta).map(|(f, b)| f * b).sum();
    // Convex and piecewise linear in the offset: the best is at a corner.
    let least = |corners: Vec<f64>, value: &dyn Fn(f64) -> f64| {
        corners.into_iter().map(value).fold(f64::INFINITY, f64::min)
    };
    match &task.machine {
        Machine::Svc { y, upper } => {
            let corners = (0..n).map(|i| y[i] - f[i]).collect();
            let losses = |b: f64| {
                (0..n)
                    .map(|i| upper[i] * (1.0 - y[i] * (f[i] + b)).max(0.0))
                    .sum()
            };
            0.5 * square + least(corners, &losses)
        }
        Machine::Svr { y, upper, epsilon } => {
            let corners = (0..2 * n)
                .map(|i| y[i % n] - f[i % n] + if i < n { *epsilon } else { -epsilon })
                .collect();
            let losses = |b: f64| {
                (0..n)
                    .map(|i| upper[i] * ((y[i] - f[i] - b).abs() - epsilon).max(0.0))
                    .sum()
            };
            0.5 * square + least(corners, &losses)
        }
        Machine::Logistic { y, upper } => 0.5 * square + least_logistic(&f, y, upper),
        Machine::Krr { y, lambda } => {
            square + (0..n).map(|i| (y[i] - f[i]).powi(2)).sum::<f64>() / lambda
        }
        Machine::OneClass { nu } => {
            let each = 2.0 / (nu * n as f64);
            let value =
                |rho: f64| each * f.iter().map(|f| (rho - f).max(0.0)).sum::<f64>() - 2.0 * rho;
            square + least(f.clone(), &value)
        }
        Machine::Svdd { c } => {
            let far: Vec<f64> = (0..n).map(|i| k[i * n + i] - 2.0 * f[i] + square).collect();
            let value = |radius: f64| {
                radius + c * far.iter().map(|far| (far - radius).max(0.0)).sum::<f64>()
            };
            least(far.clone(), &value)
        }
    }
}

/// min over b of Σ C ln(1 + exp(−y(f + b))), by bisection of its slope.
fn least_logistic(f: &[f64], y: &[f64], c: &[f64]) -> f64 {
    let each = || f.iter().zip(y).zip(c);
    let slope = |b: f64| {
        each()
            .map(|((f, y), c)| -y * c / (1.0 + (y * (f + b)).exp()))
            .sum::<f64>()
    };
    let size = f.iter().fold(0.0_f64, |most, f| most.max(f.abs()));
    let (mut low, mut high) = (-size - 800.0, size + 800.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if slope(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let losses = each().map(|((f, y), c)| {
        let t = -y * (f + low);
        c * (t.max(0.0) + (-t.abs()).exp().ln_1p())
    });
    losses.sum()
}

/// α of β = y∘α, or β itself.
pub fn alpha_of(task: &Task, beta: &[f64]) -> Vec<f64> {
    match &task.machine {
        Machine::Svc { y, .. } | Machine::Logistic { y, .. } => {
            beta.iter().zip(y).map(|(b, y)| b * y).collect()
        }
        _ => beta.to_vec(),
    }
}

/// α moved into Ω: into its box, then its sum made right where there is room.
pub fn feasible(task: &Task, alpha: &[f64]) -> Vec<f64> {
    let n = task.samples;
    let (low, high, signs, sum): (Vec<f64>, Vec<f64>, Vec<f64>, f64) = match &task.machine {
        Machine::Svc { y, upper } | Machine::Logistic { y, upper } => {
            (vec![0.0; n], upper.clone(), y.clone(), 0.0)
        }
        Machine::Svr { upper, .. } => (
            upper.iter().map(|c| -c).collect(),
            upper.clone(),
            vec![1.0; n],
            0.0,
        ),
        Machine::Svdd { c } => (vec![0.0; n], vec![*c; n], vec![1.0; n], 1.0),
        Machine::OneClass { nu } => (
            vec![0.0; n],
            vec![1.0 / (nu * n as f64); n],
            vec![1.0; n],
            1.0,
        ),
        Machine::Krr { .. } => return alpha.to_vec(),
    };
    let mut x: Vec<f64> = (0..n).map(|i| alpha[i].clamp(low[i], high[i])).collect();
    // What is missing is shared by all, in proportion to their room.
    for _ in 0..4 {
        let missing = sum - x.iter().zip(&signs).map(|(x, sign)| x * sign).sum::<f64>();
        let room = |i: usize| {
            if (missing > 0.0) == (signs[i] > 0.0) {
                high[i] - x[i]
            } else {
                x[i] - low[i]
            }
        };
        let rooms: Vec<f64> = (0..n).map(room).collect();
        let total: f64 = rooms.iter().sum();
        if missing == 0.0 || total <= 0.0 {
            break;
        }
        let share = (missing.abs() / total).min(1.0);
        for i in 0..n {
            let way = if (missing > 0.0) == (signs[i] > 0.0) {
                1.0
            } else {
                -1.0
            };
            x[i] = (x[i] + way * share * rooms[i]).clamp(low[i], high[i]);
        }
    }
    x
}

/// Rows of weights next to those of a term, moved into it.
pub(crate) fn settle(term: &Term, rows: &mut [Vec<f64>]) {
    for value in rows.iter_mut().flatten() {
        *value = value.max(0.0);
    }
    match term {
        Term::Common(set) | Term::Independent(set) => {
            for row in rows.iter_mut() {
                settle_row(set, row);
            }
        }
        Term::Given(given) => rows.clone_from_slice(given),
        Term::Group { p, q, radius } | Term::Level { p, q, radius, .. } => {
            let norms: Vec<f64> = rows.iter().map(|row| norm(row, *p)).collect();
            let size = norm(&norms, *q);
            if size > *radius {
                rows.iter_mut()
                    .flatten()
                    .for_each(|value| *value *= radius / size);
            }
        }
    }
}

fn settle_row(set: &Set, row: &mut [f64]) {
    match set {
        Set::LpBall { p, radius } => {
            let size = norm(row, *p);
            if size > *radius {
                for value in row.iter_mut() {
                    *value *= radius / size;
                }
            }
        }
        Set::Simplex { total } => {
            let sum: f64 = row.iter().sum();
            for value in row.iter_mut() {
                *value *= total / sum;
            }
        }
        Set::BoxSimplex { total, upper } => {
            for value in row.iter_mut() {
                *value = value.min(*upper);
            }
            let missing = total - row.iter().sum::<f64>();
            let room: f64 = if missing > 0.0 {
                row.iter().map(|value| upper - value).sum()
            } else {
                row.iter().sum()
            };
            if room > 0.0 {
                let share = missing / room;
                for value in row.iter_mut() {
                    *value += share
                        * if missing > 0.0 {
                            upper - *value
                        } else {
                            *value
                        };
                }
            }
        }
        Set::PriorBall { centre, radius } => {
            let far = row
                .iter()
                .zip(centre)
                .map(|(t, c)| (t - c) * (t - c))
                .sum::<f64>()
                .sqrt();
            if far > *radius {
                row.iter_mut()
                    .zip(centre)
                    .for_each(|(t, c)| *t = c + (*t - c) * radius / far);
            }
        }
        Set::Fixed { weights } => row.copy_from_slice(weights),
    }
}

/// An interval that holds J*: what α proves once it is moved into Ω, and the primal of each machine at weights next to θ that are in Ψ. Nothing needs to be
/// believed of what found α and θ.
pub fn interval(
    tasks: &[Task],
    sharing: &[Term],
    alpha: &[Vec<f64>],
    theta: &[Vec<f64>],
) -> (f64, f64) {
    let inside: Vec<Vec<f64>> = tasks
        .iter()
        .zip(alpha)
        .map(|(task, alpha)| feasible(task, alpha))
        .collect();
    let theta = crate::conic::nearest(sharing, theta);
    let high = tasks
        .iter()
        .zip(&theta)
        .zip(&inside)
        .map(|((task, theta), alpha)| {
            // y is ±1, so that this is its own inverse.
            let own = alpha_of(task, alpha);
            primal(task, theta, &own).min(primal(task, theta, &solved(task, theta).1))
        });
    (dual_value(tasks, sharing, &inside), high.sum())
}
