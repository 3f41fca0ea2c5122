//! `σ_Ψ` by its dual: expressions above it that reach it at the optimum.

use super::programme::{Affine, Programme};
use super::sets::{nonnegatives, only_point};
use super::{Set, Term};
use crate::bracket::dual;

/// An expression above `σ_set(s)` that reaches it at the optimum: the dual form of the support function.
///
/// With `signed` false the entries of s are nonnegative at every feasible point, and their positive parts need no variables.
fn support(programme: &mut Programme, set: &Set, s: &[Affine], signed: bool) -> Affine {
    match set {
        // radius·‖s⁺‖_{p*}
        Set::LpBall { p, radius } => {
            if *radius == 0.0 {
                return Affine::default();
            }
            let positive = positive_parts(programme, s, signed);
            programme.norm(dual(*p), &positive).scaled(*radius)
        }
        // total·max s
        Set::Simplex { total } => {
            let most = programme.variable();
            for entry in s {
                programme.at_least(&most, entry);
            }
            most.scaled(*total)
        }
        // min over ν of total·ν + upper·Σ(s − ν)⁺
        Set::BoxSimplex { total, upper } => {
            if let Some(weights) = only_point(*total, *upper, s.len()) {
                return Affine::dot(&weights, s);
            }
            let level = programme.variable();
            let mut value = level.scaled(*total);
            for entry in s {
                let excess = programme.variable();
                programme.nonnegative(excess.clone());
                programme.at_least(&excess.clone().plus(1.0, &level), entry);
                value = value.plus(*upper, &excess);
            }
            value
        }
        // min over v ≥ s of centre'v + radius·‖v‖₂
        Set::PriorBall { centre, radius } => {
            assert!(centre.len() == s.len(), "one prior weight a kernel");
            if *radius == 0.0 {
                return Affine::dot(centre, s);
            }
            let above: Vec<Affine> = s
                .iter()
                .map(|entry| {
                    let value = programme.variable();
                    programme.at_least(&value, entry);
                    value
                })
                .collect();
            let length = programme.variable();
            programme.second_order(
                std::iter::once(length.clone())
                    .chain(above.iter().cloned())
                    .collect(),
            );
            Affine::dot(centre, &above).plus(*radius, &length)
        }
        Set::Fixed { weights } => {
            assert!(weights.len() == s.len(), "one weight a kernel");
            Affine::dot(weights, s)
        }
    }
}

/// `σ_Ψ` of a term: common sees the sum over tasks, independent adds over tasks, group nests ‖·‖_{q*} over ‖·‖_{p*}, and a level does so with the sums over its groups.
pub(super) fn term_support(
    programme: &mut Programme,
    term: &Term,
    s: &[Vec<Affine>],
    signed: bool,
) -> Affine {
    match term {
        Term::Common(set) => {
            let summed: Vec<Affine> = (0..s[0].len())
                .map(|kernel| Affine::sum(s.iter().map(|row| &row[kernel])))
                .collect();
            support(programme, set, &summed, signed)
        }
        Term::Independent(set) => s
            .iter()
            .map(|row| support(programme, set, row, signed))
            .fold(Affine::default(), |sum, part| sum.plus(1.0, &part)),
        Term::Given(rows) => (rows.iter().zip(s))
            .map(|(weights, row)| Affine::dot(weights, row))
            .fold(Affine::default(), |sum, part| sum.plus(1.0, &part)),
        &Term::Group { p, q, radius } => level_support(programme, s, [p, q, radius], signed),
        Term::Level {
            groups,
            p,
            q,
            radius,
        } => {
            let sums: Vec<Vec<Affine>> = groups
                .iter()
                .map(|group| {
                    (0..s[0].len())
                        .map(|kernel| Affine::sum(group.iter().map(|&task| &s[task][kernel])))
                        .collect()
                })
                .collect();
            level_support(programme, &sums, [*p, *q, *radius], signed)
        }
    }
}

/// radius · ‖(‖s_v⁺‖_{p*})_v‖_{q*}
fn level_support(
    programme: &mut Programme,
    s: &[Vec<Affine>],
    [p, q, radius]: [f64; 3],
    signed: bool,
) -> Affine {
    if radius == 0.0 {
        return Affine::default();
    }
    let norms: Vec<Affine> = s
        .iter()
        .map(|row| {
            let positive = positive_parts(programme, row, signed);
            programme.norm(dual(p), &positive)
        })
        .collect();
    programme.norm(dual(q), &norms).scaled(radius)
}

fn positive_parts(programme: &mut Programme, s: &[Affine], signed: bool) -> Vec<Affine> {
    if !signed {
        return s.to_vec();
    }
    let positive = nonnegatives(programme, s.len());
    for (large, entry) in positive.iter().zip(s) {
        programme.at_least(large, entry);
    }
    positive
}
