//! The programme in α: machines, epigraphs of the sensitivities, and the support function above them.

use super::programme::{Affine, Answer, Programme};
use super::scale::Scale;
use super::support::term_support;
use super::{ACCEPTED, Machine, Optimum, Task, Term};

/// Pivots below this fraction of the largest diagonal entry are rounding, not rank.
const PIVOT: f64 = 1e-13;

/// The programme of [`optimum`](super::optimum), with the expressions to read its answer by.
pub(super) struct Model {
    pub(super) programme: Programme,
    pub(super) alpha: Vec<Vec<Affine>>,
    /// The variables t that stand above the quadratic part of s, T×M.
    pub(super) epigraph: Vec<Vec<Affine>>,
    /// First row of the cone of `t_tm`.
    pub(super) cone: Vec<Vec<usize>>,
}

/// min (1/value)·[W·`σ_Ψ`(s/W) − θ-free part], with W the largest size of s (σ is positively homogeneous).
pub(super) fn assemble(
    tasks: &[Task],
    sharing: &[Term],
    factors: &[Vec<Vec<Vec<f64>>>],
    scale: &Scale,
) -> Model {
    let mut programme = Programme::default();
    let (mut alphas, mut epigraph, mut cone, mut s) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let widest = scale
        .sensitivity
        .iter()
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    for (t, task) in tasks.iter().enumerate() {
        let alpha = variables(&mut programme, task, scale.alpha[t], scale.value);
        let (half, signs) = match &task.machine {
            Machine::Svc { y, .. } | Machine::Logistic { y, .. } => (0.5, Some(y)),
            Machine::Svr { .. } => (0.5, None),
            Machine::Krr { .. } | Machine::Svdd { .. } | Machine::OneClass { .. } => (1.0, None),
        };
        let (mut tops, mut rows, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (m, columns) in factors[t].iter().enumerate() {
            let unit = scale.sensitivity[t][m];
            // t̂·1 ≥ ‖√(half/unit) L'β‖² as (t̂ + 1)² ≥ (t̂ − 1)² + ‖2·√(half/unit) L'β‖².
            let top = programme.variable();
            let factor = 2.0 * (half / unit).sqrt();
            let one = Affine::constant(1.0);
            let mut parts = vec![top.clone().plus(1.0, &one), top.clone().plus(-1.0, &one)];
            parts.extend(columns.iter().map(|column| {
                let weights: Vec<f64> = column
                    .iter()
                    .enumerate()
                    .map(|(i, value)| factor * value * signs.map_or(1.0, |y| y[i]))
                    .collect();
                Affine::dot(&weights, &alpha)
            }));
            rows.push(programme.second_order(parts));
            let mut entry = top.scaled(unit / widest);
            if matches!(task.machine, Machine::Svdd { .. }) {
                let n = task.samples;
                let diagonal: Vec<f64> = (0..n).map(|i| task.grams[m][i * n + i]).collect();
                entry = entry.plus(-1.0 / widest, &Affine::dot(&diagonal, &alpha));
            }
            entries.push(entry);
            tops.push(top.scaled(unit));
        }
        alphas.push(alpha);
        epigraph.push(tops);
        cone.push(rows);
        s.push(entries);
    }
    let signed = tasks
        .iter()
        .any(|task| matches!(task.machine, Machine::Svdd { .. }));
    for term in sharing {
        let above = term_support(&mut programme, term, &s, signed);
        programme.minimise(widest / scale.value, &above);
    }
    Model {
        programme,
        alpha: alphas,
        epigraph,
        cone,
    }
}

/// α of one task: its variables (in units of `size`), Ω, and the θ-free part of ḡ in the objective (in units of `value`).
fn variables(programme: &mut Programme, task: &Task, size: f64, value: f64) -> Vec<Affine> {
    let n = task.samples;
    let capped = |programme: &mut Programme, upper: f64| {
        // A bound of zero leaves no interior: the variable is the constant 0.
        if upper <= 0.0 {
            return Affine::default();
        }
        let unit = programme.variable();
        programme.nonnegative(unit.clone());
        programme.at_least(&Affine::constant(upper / size), &unit);
        unit.scaled(size)
    };
    match &task.machine {
        Machine::Svc { y, upper } => {
            let alpha: Vec<Affine> = upper
                .iter()
                .map(|&bound| capped(programme, bound))
                .collect();
            programme.zero(Affine::dot(y, &alpha).scaled(1.0 / size));
            programme.minimise(-1.0 / value, &Affine::sum(&alpha));
            alpha
        }
        Machine::Logistic { y, upper } => {
            let alpha: Vec<Affine> = upper
                .iter()
                .map(|&bound| {
                    let unit = programme.variable();
                    let whole = Affine::constant(bound / size);
                    let rest = whole.clone().plus(-1.0, &unit);
                    for part in [&unit, &rest] {
                        let entropy = programme.entropy(part, &whole);
                        programme.minimise(-size / value, &entropy);
                    }
                    unit.scaled(size)
                })
                .collect();
            programme.zero(Affine::dot(y, &alpha).scaled(1.0 / size));
            alpha
        }
        Machine::Krr { y, lambda } => {
            let alpha: Vec<Affine> = (0..n).map(|_| programme.variable().scaled(size)).collect();
            programme.minimise(-2.0 / value, &Affine::dot(y, &alpha));
            for entry in &alpha {
                programme.minimise_square(lambda / value, entry);
            }
            alpha
        }
        Machine::Svdd { .. } | Machine::OneClass { .. } => {
            let upper = match &task.machine {
                Machine::Svdd { c } => *c,
                Machine::OneClass { nu } => 1.0 / (nu * n as f64),
                _ => unreachable!("only the machines of unit mass come here"),
            };
            // Just enough mass: Ω is one point, and has no interior.
            if upper * n as f64 <= 1.0 + 1e-12 {
                return vec![Affine::constant(1.0 / n as f64); n];
            }
            let alpha: Vec<Affine> = (0..n).map(|_| capped(programme, upper)).collect();
            programme.zero(Affine::constant(-1.0 / size).plus(1.0 / size, &Affine::sum(&alpha)));
            alpha
        }
        Machine::Svr { y, upper, epsilon } => {
            let beta: Vec<Affine> = upper
                .iter()
                .map(|&bound| {
                    if bound <= 0.0 {
                        return Affine::default();
                    }
                    let unit = programme.variable();
                    // |β| ≤ e ≤ upper, with e paid for at ε.
                    let length = if *epsilon > 0.0 {
                        let length = programme.variable();
                        programme.at_least(&Affine::constant(bound / size), &length);
                        programme.minimise(epsilon * size / value, &length);
                        length
                    } else {
                        Affine::constant(bound / size)
                    };
                    programme.nonnegative(length.clone().plus(1.0, &unit));
                    programme.nonnegative(length.plus(-1.0, &unit));
                    unit.scaled(size)
                })
                .collect();
            programme.zero(Affine::sum(&beta).scaled(1.0 / size));
            programme.minimise(-1.0 / value, &Affine::dot(y, &beta));
            beta
        }
    }
}

pub(super) fn read(model: &Model, answer: &Answer, scale: &Scale) -> Optimum {
    Optimum {
        value: -answer.value * scale.value,
        alpha: model
            .alpha
            .iter()
            .map(|row| row.iter().map(|entry| entry.at(&answer.x)).collect())
            .collect(),
        // In the Lagrangian the first two rows (t̂ + 1, t̂ − 1) of a cone weigh t̂ = t / size by z₀ + z₁, and that
        // balances the slope θ·size/value of the scaled support function.
        theta: model
            .cone
            .iter()
            .zip(&scale.sensitivity)
            .map(|(rows, sizes)| {
                rows.iter()
                    .zip(sizes)
                    .map(|(&row, size)| (answer.z[row] + answer.z[row + 1]) * scale.value / size)
                    .collect()
            })
            .collect(),
        solved: answer.error < ACCEPTED,
        error: answer.error * scale.value.abs().max((answer.value * scale.value).abs()),
        unit: scale
            .sensitivity
            .iter()
            .flatten()
            .copied()
            .fold(scale.value.abs(), f64::max),
    }
}

/// Lower factor columns: K ≈ `Σ_k` `ℓ_k` `ℓ_k`', stopping where the largest remaining pivot is rounding.
pub(super) fn pivoted_cholesky(gram: &[f64], n: usize) -> Vec<Vec<f64>> {
    let mut left: Vec<f64> = (0..n).map(|i| gram[i * n + i]).collect();
    let threshold = PIVOT * left.iter().copied().fold(0.0, f64::max);
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut used = vec![false; n];
    while columns.len() < n {
        let Some(pivot) = (0..n)
            .filter(|&i| !used[i])
            .max_by(|&i, &j| left[i].total_cmp(&left[j]))
        else {
            break;
        };
        if left[pivot] <= threshold {
            break;
        }
        used[pivot] = true;
        let root = left[pivot].sqrt();
        let mut column = vec![0.0; n];
        column[pivot] = root;
        for i in (0..n).filter(|&i| !used[i]) {
            let known: f64 = columns
                .iter()
                .map(|earlier| earlier[i] * earlier[pivot])
                .sum();
            column[i] = (gram[i * n + pivot] - known) / root;
            left[i] -= column[i] * column[i];
        }
        columns.push(column);
    }
    columns
}
