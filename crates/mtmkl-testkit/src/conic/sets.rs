//! Ψ in the weights themselves: its points, the largest ⟨s, θ⟩ over them, and the nearest.

use super::programme::{Affine, Programme};
use super::{ACCEPTED, Set, TOLERANCE, Term, size};
use crate::bracket;

/// max over θ in Ψ of ⟨s, θ⟩, and where it is reached.
#[derive(Clone, Debug)]
pub struct Maximum {
    /// The support function.
    pub value: f64,
    /// A maximiser, T rows of M.
    pub theta: Vec<Vec<f64>>,
    /// Whether the gap and the effect of the residuals on the value are below 1e-8, relative.
    pub solved: bool,
}

/// max over θ in Ψ of ⟨s, θ⟩ as a conic programme in the summands ζ, γ themselves; s has T rows of M, of any sign.
///
/// No closed form of the support function is used.
pub fn maximum(sharing: &[Term], s: &[Vec<f64>]) -> Maximum {
    let tasks = s.len();
    let kernels = s.first().map_or(0, Vec::len);
    assert!(kernels > 0, "at least one task and one kernel");
    assert!(
        s.iter().all(|row| row.len() == kernels),
        "rows of equal length"
    );
    let largest = s
        .iter()
        .flatten()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let reach = sharing.iter().map(size).fold(0.0_f64, f64::max);
    let unit = if largest * reach > 0.0 {
        largest * reach
    } else {
        1.0
    };

    let mut programme = Programme::default();
    let theta = sum_of(
        &rows_of(&mut programme, sharing, tasks, kernels),
        tasks,
        kernels,
    );
    for (costs, row) in s.iter().zip(&theta) {
        for (cost, weight) in costs.iter().zip(row) {
            programme.minimise(-cost / unit, weight);
        }
    }
    let answer = programme.solve(TOLERANCE, ACCEPTED);
    Maximum {
        value: -answer.value * unit,
        theta: theta
            .iter()
            .map(|row| row.iter().map(|weight| weight.at(&answer.x)).collect())
            .collect(),
        solved: answer.error < ACCEPTED,
    }
}

/// A row of weights, and the tasks that it is added to.
pub(super) type Row = (Vec<usize>, Vec<Affine>);

/// The rows of each term, constrained to be in it.
pub(super) fn rows_of(
    programme: &mut Programme,
    sharing: &[Term],
    tasks: usize,
    kernels: usize,
) -> Vec<Vec<Row>> {
    let all = || (0..tasks).collect::<Vec<usize>>();
    let each = || {
        (0..tasks)
            .map(|task| vec![task])
            .collect::<Vec<Vec<usize>>>()
    };
    sharing
        .iter()
        .map(|term| match term {
            Term::Common(set) => vec![(all(), member(programme, set, kernels))],
            Term::Independent(set) => each()
                .into_iter()
                .map(|task| (task, member(programme, set, kernels)))
                .collect(),
            Term::Given(rows) => (each().into_iter().zip(rows))
                .map(|(task, row)| (task, row.iter().map(|&w| Affine::constant(w)).collect()))
                .collect(),
            &Term::Group { p, q, radius } => level(programme, &each(), [p, q, radius], kernels),
            Term::Level {
                groups,
                p,
                q,
                radius,
            } => level(programme, groups, [*p, *q, *radius], kernels),
        })
        .collect()
}

/// A row of weights for each group, the rows in an L_p–L_q ball together.
fn level(
    programme: &mut Programme,
    groups: &[Vec<usize>],
    [p, q, radius]: [f64; 3],
    kernels: usize,
) -> Vec<Row> {
    if radius == 0.0 {
        return Vec::new();
    }
    let mut norms = Vec::with_capacity(groups.len());
    let mut rows = Vec::with_capacity(groups.len());
    for group in groups {
        let gamma = nonnegatives(programme, kernels);
        norms.push(programme.norm(p, &gamma));
        rows.push((
            group.clone(),
            gamma.iter().map(|weight| weight.scaled(radius)).collect(),
        ));
    }
    programme.norm_at_most(q, &norms, &Affine::constant(1.0));
    rows
}

/// θ: the rows of all terms, each for its tasks.
pub(super) fn sum_of(terms: &[Vec<Row>], tasks: usize, kernels: usize) -> Vec<Vec<Affine>> {
    let mut theta = vec![vec![Affine::default(); kernels]; tasks];
    for (reached, row) in terms.iter().flatten() {
        for &task in reached {
            add(&mut theta[task], row);
        }
    }
    theta
}

/// A point of Ψ next to θ: the nearest by cones, each of its rows then moved into its set exactly.
pub fn nearest(sharing: &[Term], theta: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (tasks, kernels) = (theta.len(), theta[0].len());
    let size = theta
        .iter()
        .flatten()
        .fold(f64::MIN_POSITIVE, |most, value| value.abs().max(most));
    let mut programme = Programme::default();
    let terms = rows_of(&mut programme, sharing, tasks, kernels);
    let distance = programme.variable();
    let differences = sum_of(&terms, tasks, kernels)
        .into_iter()
        .flatten()
        .zip(theta.iter().flatten());
    let mut cone = vec![distance.clone()];
    cone.extend(differences.map(|(weight, wanted)| {
        weight
            .scaled(1.0 / size)
            .plus(-1.0, &Affine::constant(wanted / size))
    }));
    programme.second_order(cone);
    programme.minimise(1.0, &distance);
    let answer = programme.solve(TOLERANCE, ACCEPTED);
    let mut found = vec![vec![0.0; kernels]; tasks];
    for (term, rows) in sharing.iter().zip(&terms) {
        let mut values: Vec<Vec<f64>> = rows
            .iter()
            .map(|(_, row)| row.iter().map(|weight| weight.at(&answer.x)).collect())
            .collect();
        bracket::settle(term, &mut values);
        for ((reached, _), row) in rows.iter().zip(&values) {
            for &task in reached {
                found[task]
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, weight)| *sum += weight);
            }
        }
    }
    found
}

fn add(row: &mut [Affine], summand: &[Affine]) {
    for (weight, part) in row.iter_mut().zip(summand) {
        *weight = std::mem::take(weight).plus(1.0, part);
    }
}

pub(super) fn nonnegatives(programme: &mut Programme, count: usize) -> Vec<Affine> {
    (0..count)
        .map(|_| {
            let variable = programme.variable();
            programme.nonnegative(variable.clone());
            variable
        })
        .collect()
}

/// Weights constrained to the set, in variables of order one.
fn member(programme: &mut Programme, set: &Set, kernels: usize) -> Vec<Affine> {
    let one = Affine::constant(1.0);
    let constants = |values: &[f64]| {
        values
            .iter()
            .map(|&value| Affine::constant(value))
            .collect::<Vec<_>>()
    };
    let scaled = |items: &[Affine], factor: f64| {
        items
            .iter()
            .map(|item| item.scaled(factor))
            .collect::<Vec<_>>()
    };
    match set {
        // A set of one point has no interior, which an interior-point method needs.
        Set::LpBall { radius: 0.0, .. }
        | Set::Simplex { total: 0.0 }
        | Set::BoxSimplex { total: 0.0, .. } => constants(&vec![0.0; kernels]),
        Set::LpBall { p, radius } => {
            let unit = nonnegatives(programme, kernels);
            programme.norm_at_most(*p, &unit, &one);
            scaled(&unit, *radius)
        }
        Set::Simplex { total } => {
            let unit = nonnegatives(programme, kernels);
            programme.zero(one.plus(-1.0, &Affine::sum(&unit)));
            scaled(&unit, *total)
        }
        Set::BoxSimplex { total, upper } => {
            if let Some(weights) = only_point(*total, *upper, kernels) {
                constants(&weights)
            } else {
                let unit = nonnegatives(programme, kernels);
                for weight in &unit {
                    programme.at_least(&Affine::constant(upper / total), weight);
                }
                programme.zero(one.plus(-1.0, &Affine::sum(&unit)));
                scaled(&unit, *total)
            }
        }
        Set::PriorBall { centre, radius } => {
            assert!(centre.len() == kernels, "one prior weight a kernel");
            if *radius == 0.0 {
                return constants(centre);
            }
            // θ = centre + radius·δ with ‖δ‖ ≤ 1.
            let step: Vec<Affine> = (0..kernels).map(|_| programme.variable()).collect();
            let weights: Vec<Affine> = centre
                .iter()
                .zip(&step)
                .map(|(&middle, part)| Affine::constant(middle).plus(*radius, part))
                .collect();
            for weight in &weights {
                programme.nonnegative(weight.scaled(1.0 / radius));
            }
            programme.second_order(std::iter::once(one).chain(step).collect());
            weights
        }
        Set::Fixed { weights } => {
            assert!(weights.len() == kernels, "one weight a kernel");
            constants(weights)
        }
    }
}

/// The weights of a box-simplex that holds one point only, upper·M = total.
pub(super) fn only_point(total: f64, upper: f64, kernels: usize) -> Option<Vec<f64>> {
    let room = upper * kernels as f64 - total;
    assert!(
        room >= -1e-12 * total,
        "upper·M ≥ total, or the set is empty"
    );
    (room <= 1e-12 * total).then(|| vec![total / kernels as f64; kernels])
}
