//! A lower bound on the least J from a mixture of evaluations: for feasible α_j and λ in the simplex,
//!
//! D(Σ_j λ_j α_j) ≥ Σ_j λ_j (part of ḡ(α_j, ·) without θ) − σ_Ψ(Σ_j λ_j s(α_j)).

use super::{Cut, Known};
use crate::engine::{Evaluation, Mixture};
use crate::grid::Grid;
use crate::linalg::axpy;
use crate::sharing::Sharing;

/// A lower bound on the least J, and for each task the mixture of α that proves it.
#[derive(Debug, Clone)]
pub(in crate::solver) struct Proof {
    pub(in crate::solver) bound: f64,
    pub(in crate::solver) witness: Vec<Mixture>,
}

impl Proof {
    /// D of one evaluation.
    pub(in crate::solver) fn of(theta: &Grid, evaluation: &Evaluation, sharing: &Sharing) -> Self {
        let (_, support) = sharing.maximise(&evaluation.sensitivities);
        Self {
            bound: evaluation.constant(theta) - support - evaluation.noise(),
            witness: vec![vec![(evaluation.number, 1.0)]; evaluation.values.len()],
        }
    }

    /// D of the evaluation at θ_k mixed with the cuts in these proportions. At a corner of J no single α gives a good bound.
    pub(in crate::solver) fn mixed(
        at: &Known,
        cuts: &[Vec<Cut>],
        weights: &[Vec<f64>],
        sharing: &Sharing,
    ) -> Self {
        let mut mixed = at.sensitivities.clone();
        let mut constant = 0.0;
        let mut witness = Vec::with_capacity(cuts.len());
        for (task, cuts) in cuts.iter().enumerate() {
            // Without cuts there are no weights.
            let weights = weights.get(task).map_or(&[][..], |weights| weights);
            let left = 1.0 - weights.iter().sum::<f64>();
            constant += left * (at.constant(task) - at.noises[task]);
            let mut mixture = vec![(at.number, left)];
            let out = mixed.row_mut(task);
            for value in out.iter_mut() {
                *value *= left;
            }
            for (cut, &weight) in cuts.iter().zip(weights) {
                constant += weight * (cut.constant - cut.noise);
                axpy(weight, &cut.sensitivities, out);
                let (number, kappa) = cut.source;
                mixture.push((number, weight * kappa));
            }
            witness.push(mixture);
        }
        Self {
            bound: constant - sharing.maximise(&mixed).1,
            witness,
        }
    }

    /// The better one.
    pub(in crate::solver) fn or(self, other: Self) -> Self {
        if other.bound > self.bound {
            other
        } else {
            self
        }
    }
}
