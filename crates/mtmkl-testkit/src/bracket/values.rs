//! J(θ), ḡ in its parts, and the primal of a machine, at a point.

use super::searches::{least_logistic, pairwise};
use super::sigma;
use crate::conic::{Machine, Task, Term};
use crate::generate::eliminate;
use crate::logistic;

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

/// α of β = y∘α, or β itself.
pub fn alpha_of(task: &Task, beta: &[f64]) -> Vec<f64> {
    match &task.machine {
        Machine::Svc { y, .. } | Machine::Logistic { y, .. } => {
            beta.iter().zip(y).map(|(b, y)| b * y).collect()
        }
        _ => beta.to_vec(),
    }
}
