//! min over θ in Ψ of Σ J_t(θ) by cutting planes: each machine solved at each θ by the textbook gives a plane below J_t, and the least of their maximum over Ψ
//! is a conic programme in θ alone. Slow and plain; it does not care how far apart the sizes of α and K are.

use super::{ACCEPTED, Affine, Programme, TOLERANCE, Task, Term, nearest, rows_of, sum_of};
use crate::bracket;

/// A plane below J_t: constant − ⟨s, θ_t⟩, with the α that it is of.
struct Cut {
    constant: f64,
    s: Vec<f64>,
    alpha: Vec<f64>,
}

/// α and θ after so many rounds from a start: mixtures of what was found at each θ, and the θ of the least objective.
pub fn cutting(
    tasks: &[Task],
    sharing: &[Term],
    start: &[Vec<f64>],
    rounds: usize,
) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let kernels = tasks[0].grams.len();
    let mut cuts: Vec<Vec<Cut>> = tasks.iter().map(|_| Vec::new()).collect();
    let mut theta = nearest(sharing, start);
    let mut best = (f64::INFINITY, theta.clone());
    let mut proof: (f64, Vec<Vec<f64>>) = (f64::NEG_INFINITY, Vec::new());
    for _ in 0..rounds {
        let mut objective = 0.0;
        for ((task, row), cuts) in tasks.iter().zip(&theta).zip(&mut cuts) {
            let (_, beta) = bracket::solved(task, row);
            objective += bracket::primal(task, row, &beta);
            let alpha = bracket::feasible(task, &bracket::alpha_of(task, &beta));
            let (constant, s) = bracket::parts(task, &alpha);
            cuts.push(Cut { constant, s, alpha });
        }
        let newest: Vec<Vec<f64>> = (cuts.iter().filter_map(|cuts| cuts.last()))
            .map(|cut| cut.alpha.clone())
            .collect();
        let bound = bracket::dual_value(tasks, sharing, &newest);
        if bound > proof.0 {
            proof = (bound, newest);
        }
        if objective < best.0 {
            best = (objective, theta.clone());
        }
        let mut programme = Programme::default();
        let terms = rows_of(&mut programme, sharing, tasks.len(), kernels);
        let weights = sum_of(&terms, tasks.len(), kernels);
        let unit = objective.abs().max(f64::MIN_POSITIVE);
        let mut first = Vec::new();
        for (cuts, row) in cuts.iter().zip(&weights) {
            let value = programme.variable();
            programme.minimise(1.0, &value);
            first.push(programme.count());
            for cut in cuts {
                let scaled: Vec<f64> = cut.s.iter().map(|s| -s / unit).collect();
                let plane =
                    Affine::constant(cut.constant / unit).plus(1.0, &Affine::dot(&scaled, row));
                programme.at_least(&value, &plane);
            }
        }
        let answer = programme.solve(TOLERANCE, ACCEPTED);
        if !answer.error.is_finite() {
            break;
        }
        // The multipliers of a task's planes are the shares of a mixture, which is feasible since Ω is convex.
        let mixtures: Vec<Vec<f64>> = cuts
            .iter()
            .zip(&first)
            .map(|(cuts, &first)| {
                let shares: Vec<f64> = (0..cuts.len())
                    .map(|at| answer.z[first + at].max(0.0))
                    .collect();
                let total: f64 = shares.iter().sum();
                let mut mixture = vec![0.0; cuts[0].alpha.len()];
                for (cut, share) in cuts.iter().zip(&shares) {
                    mixture
                        .iter_mut()
                        .zip(&cut.alpha)
                        .for_each(|(sum, a)| *sum += share / total * a);
                }
                mixture
            })
            .collect();
        let bound = bracket::dual_value(tasks, sharing, &mixtures);
        if bound > proof.0 {
            proof = (bound, mixtures);
        }
        if best.0 - proof.0 <= 1e-10 * best.0.abs() {
            break;
        }
        let found: Vec<Vec<f64>> = weights
            .iter()
            .map(|row| row.iter().map(|weight| weight.at(&answer.x)).collect())
            .collect();
        theta = nearest(sharing, &found);
    }
    (proof.1, best.1)
}
