//! Where a block's next step leads: to the minimum over Ψ of J's model here, as precisely as the gap deserves.

use super::block::Block;
use super::wide::Wide;
use crate::engine::Curvature;
use crate::sharing::{Constraint, Parts};
use crate::solver::bundle::{Cut, Proof};
use crate::solver::interior::{Minimum, Model};

/// How precisely to solve the model, as a part of the current gap …
const MODEL_ACCURACY: f64 = 0.02;
/// … and as a part of the gap that the step should lead to.
const NEXT_ACCURACY: f64 = 0.1;
/// A model that is solved this many times worse than was asked for is not solved.
const UNSOLVED: f64 = 2.0;
/// A promised decrease below this part of the gap says that the lower bound is what is far off; it is then found to this part of the gap.
const BEHIND: f64 = 0.1;
/// No part of a decrease needs to be known better than this, as a part of the tolerated gap.
const LEAST_ACCURACY: f64 = 1e-2;
/// A gap of this part of the tolerated one is none: the block stays where it is.
const DONE: f64 = 0.3;

impl Block {
    /// Chooses the next step, given how large the gap of this block may remain. What the model finds out about the lower bound, the block learns.
    pub(super) fn aim(&mut self, tolerated: f64) {
        let gap = (self.current.upper() - self.proof.bound).max(0.0);
        self.is_done = gap <= DONE * tolerated;
        if self.is_done {
            self.target = self.parts.clone();
            (self.step, self.slope, self.rejected) = (1.0, 0.0, 0);
            return;
        }
        if self.rejected > self.most_models() {
            // The same way, less far.
            return;
        }
        let Some((target, proof)) = self.minimise_model(gap, tolerated) else {
            return;
        };
        let (theta, sensitivities) = (&self.here.theta, &self.here.sensitivities);
        self.slope = sensitivities.dot(theta) - sensitivities.dot(&self.sharing.theta(&target));
        self.step = 1.0;
        self.target = target;
        self.learn_proof(proof);
    }

    /// The minimum of the model, and what it proves.
    fn minimise_model(&self, gap: f64, tolerated: f64) -> Option<(Parts, Proof)> {
        let curvature = self.current.curvature.as_deref()?;
        let constraints = self.sharing.constraints()?;
        // The next gap is about the square of this one, relative to J, and the model must not spoil it.
        let next = (gap * gap / self.current.upper().abs()).max(tolerated);
        let accuracy = (MODEL_ACCURACY * gap).min(NEXT_ACCURACY * next);
        let least = LEAST_ACCURACY * tolerated;
        if let Some(wide) = Wide::new(&self.here, curvature, &constraints) {
            let target = wide.minimum(accuracy, least);
            return Some((Parts(vec![target]), self.proof.clone()));
        }
        let by_kernel: Vec<Curvature>;
        let curvature = if self.is_wide() {
            by_kernel = curvature.iter().map(Curvature::by_kernel).collect();
            &by_kernel
        } else {
            curvature
        };
        let damping = self.damping.diagonal(&self.here);
        let cuts = self.history.cuts(&self.here, curvature);
        let model = Model {
            theta: &self.here.theta,
            sensitivities: &self.here.sensitivities,
            curvature,
            damping: damping.as_ref(),
            cuts: &cuts,
            sharing: &self.sharing,
        };
        let found = self.minimum(&model, &constraints, accuracy, least);
        let mut proof = Proof::mixed(&self.here, &cuts, &found.weights, &self.sharing);
        if -found.value < BEHIND * gap && self.history.is_kept() {
            // θ is better than the bound says.
            let least = BEHIND * tolerated;
            proof = proof.or(self.proof_of_lines(&model, &constraints, BEHIND * gap, least));
        }
        let mut target = found.parts;
        if found.gap > UNSOLVED * accuracy {
            // Where hardly anything bends, interior points lose their way, and the minimum is at the best vertex.
            let (vertex, _) = self.sharing.maximise(&self.here.sensitivities);
            if model.value(&self.sharing.theta(&vertex)) < found.value {
                target = vertex;
            }
        }
        Some((target, proof))
    }

    /// The model's minimum, without its cuts where these make it too hard to solve.
    fn minimum(
        &self,
        model: &Model<'_>,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Minimum {
        let found = model.minimise(constraints, accuracy, least);
        let is_unsolved = found.gap > (UNSOLVED * accuracy).max(-found.value);
        if !is_unsolved || model.cuts.iter().all(Vec::is_empty) {
            return found;
        }
        let none: Vec<Vec<Cut>> = vec![Vec::new(); self.tasks()];
        let plain = Model {
            cuts: &none,
            ..*model
        };
        plain.minimise(constraints, accuracy, least)
    }

    /// What the lines of all evaluations prove together: without curvature the model is nowhere above J, and its minimum a lower bound.
    fn proof_of_lines(
        &self,
        model: &Model<'_>,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Proof {
        let lines = self.history.lines(&self.here);
        let flat = vec![Curvature::none(); self.tasks()];
        let model = Model {
            curvature: &flat,
            damping: None,
            cuts: &lines,
            ..*model
        };
        let found = model.minimise(constraints, accuracy, least);
        Proof::mixed(&self.here, &lines, &found.weights, &self.sharing)
    }
}
