//! Ψ and Ω in closed form: the support function, how far outside a point is, and a point of the set next to it.

use crate::conic::{Machine, Set, Task, Term};

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

/// p* with 1/p + 1/p* = 1.
pub(crate) fn dual(p: f64) -> f64 {
    assert!(p >= 1.0, "p = {p} gives no norm");
    if p == 1.0 {
        f64::INFINITY
    } else if p == f64::INFINITY {
        1.0
    } else {
        p / (p - 1.0)
    }
}

/// s⁺
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
