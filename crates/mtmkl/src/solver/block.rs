//! Tasks that step together: all of them or, where Ψ is a product over tasks, each on its own. Then J = Σ_t J_t has nothing that ties one
//! task's step to another's: each has its own damping and its own bound, and is done when it is done.

use super::cuts::{History, Known, Proof};
use super::model::Model;
use crate::engine::{Curvature, Evaluation};
use crate::grid::Grid;
use crate::sharing::{Parts, Sharing};

/// A step must achieve this part of what the model's slope promises.
const SUFFICIENT: f64 = 1e-4;
/// Shorter steps than this are not tried.
const SHORTEST: f64 = 1e-6;
/// Damping below this is none.
const LEAST_DAMPING: f64 = 1e-3;
/// As far as one point tells, no task needs more.
const MOST_DAMPING: f64 = 3.0;
/// So many steps are aimed anew from the same point before they are made shorter.
const MOST_MODELS: usize = 5;
/// How precisely to solve the model, as a part of the current gap.
const MODEL_ACCURACY: f64 = 0.02;
/// The same as a part of the gap that the step should lead to.
const NEXT_ACCURACY: f64 = 0.1;
/// A promised decrease below this part of the gap says that the lower bound is what is far off; it is then found to this part of the gap.
const BEHIND: f64 = 0.1;
/// No part of a decrease needs to be known better than this, as a part of the tolerated gap.
const LEAST_ACCURACY: f64 = 1e-2;
/// A gap of this part of the tolerated one is none: the block stays where it is.
const DONE: f64 = 0.3;

/// A sharing of these tasks only, where they are and what they know.
#[derive(Debug)]
pub(super) struct Block {
    sharing: Sharing,
    pub(super) parts: Parts,
    /// J at θ.
    pub(super) current: Evaluation,
    here: Known,
    history: History,
    damping: Vec<f64>,
    /// A lower bound on the least J of these tasks.
    pub(super) proof: Proof,
    /// Where to, how far of it, and the slope of J from here to there (the model's value is about half of it).
    target: Parts,
    pub(super) step: f64,
    slope: f64,
    /// Steps from here that did not achieve what they should.
    rejected: usize,
    /// The gap is small enough.
    is_done: bool,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The block is there now.
    Taken,
    /// The block stayed; the next step is another one.
    Refused,
    /// The block stayed; what the step promised cannot be told from the inner solver's accuracy.
    Noise,
}

impl Block {
    pub(super) fn new(sharing: Sharing, parts: Parts, current: Evaluation) -> Self {
        let theta = sharing.theta(&parts);
        let here = Known::new(&theta, &current);
        Self {
            history: History::new(theta.kernels()),
            damping: vec![0.0; theta.rows()],
            proof: Proof::of(&theta, &current, &sharing),
            target: parts.clone(),
            step: 1.0,
            slope: 0.0,
            rejected: 0,
            is_done: false,
            sharing,
            parts,
            current,
            here,
        }
    }

    pub(super) fn tasks(&self) -> usize {
        self.sharing.shape().tasks
    }

    /// Whether the second derivatives are known.
    pub(super) fn is_curved(&self) -> bool {
        self.current.curvature.is_some()
    }

    /// What the slope promises of the next step.
    pub(super) fn promise(&self) -> f64 {
        self.step * self.slope.abs()
    }

    /// Where the next step leads.
    pub(super) fn trial(&self) -> Parts {
        let mut trial = self.parts.clone();
        trial.move_towards(&self.target, self.step);
        trial
    }

    /// What an evaluation at θ says about the least J.
    fn learn(&mut self, theta: &Grid, evaluation: &Evaluation) {
        self.learn_proof(Proof::of(theta, evaluation, &self.sharing));
    }

    fn learn_proof(&mut self, proof: Proof) {
        if proof.bound > self.proof.bound {
            self.proof = proof;
        }
    }

    /// The evaluations that this block still knows of.
    pub(super) fn evaluations(&self) -> impl Iterator<Item = usize> + '_ {
        let witness = self.proof.witness.iter().flatten();
        std::iter::once(self.current.number)
            .chain(self.history.evaluations())
            .chain(witness.map(|(number, _)| *number))
    }

    /// Chooses the next step, given how large the gap of this block may remain. What the model finds out about the lower bound, the block learns.
    pub(super) fn aim(&mut self, tolerated: f64) {
        let gap = (self.current.upper() - self.proof.bound).max(0.0);
        self.is_done = gap <= DONE * tolerated;
        if self.is_done {
            self.target = self.parts.clone();
            (self.step, self.slope, self.rejected) = (1.0, 0.0, 0);
            return;
        }
        let Some(curvature) = self.current.curvature.as_deref() else {
            return;
        };
        if self.rejected > MOST_MODELS {
            // The same way, less far.
            return;
        }
        let Some(constraints) = self.sharing.constraints() else {
            return;
        };
        let (theta, sensitivities) = (&self.here.theta, &self.here.sensitivities);
        let is_damped = self.damping.iter().any(|&damping| damping > 0.0);
        let bends = is_damped.then(|| damping_bends(&self.here, &self.damping));
        let cuts = self.history.cuts(&self.here, curvature);
        let model = Model {
            theta,
            sensitivities,
            curvature,
            bends: bends.as_ref(),
            cuts: &cuts,
            sharing: &self.sharing,
        };
        // The next gap is about the square of this one, relative to J, and the model must not spoil it.
        let next = (gap * gap / self.current.upper().abs()).max(tolerated);
        let accuracy = (MODEL_ACCURACY * gap).min(NEXT_ACCURACY * next);
        let least = LEAST_ACCURACY * tolerated;
        let mut found = model.minimise(&constraints, accuracy, least);
        if found.gap > (2.0 * accuracy).max(-found.value) && !cuts.iter().all(Vec::is_empty) {
            // What is known beyond can make the model too hard to solve. Then it is better not known.
            let none = vec![Vec::new(); theta.rows()];
            let plain = Model {
                cuts: &none,
                ..model
            };
            found = plain.minimise(&constraints, accuracy, least);
        }
        let mut proof = Proof::mixed(&self.here, &cuts, &found.weights, &self.sharing);
        if -found.value < BEHIND * gap && self.history.is_kept() {
            // θ is better than the bound says.
            let lines = self.history.lines(&self.here);
            let flat = vec![Curvature::none(); theta.rows()];
            let model = Model {
                curvature: &flat,
                bends: None,
                cuts: &lines,
                ..model
            };
            let found = model.minimise(&constraints, BEHIND * gap, BEHIND * tolerated);
            proof = proof.or(Proof::mixed(
                &self.here,
                &lines,
                &found.weights,
                &self.sharing,
            ));
        }
        let mut target = found.parts;
        if found.gap > 2.0 * accuracy {
            // Where hardly anything bends, interior points lose their way, and the minimum is at the best vertex.
            let (vertex, _) = self.sharing.maximise(sensitivities);
            if model.value(&self.sharing.theta(&vertex)) < found.value {
                target = vertex;
            }
        }
        self.slope = sensitivities.dot(theta) - sensitivities.dot(&self.sharing.theta(&target));
        self.step = 1.0;
        self.target = target;
        self.learn_proof(proof);
    }

    /// Takes the step if J is there what it should be.
    pub(super) fn judge(&mut self, parts: Parts, trial: Evaluation) -> Verdict {
        let theta = self.sharing.theta(&parts);
        self.learn(&theta, &trial);
        let there = Known::new(&theta, &trial);
        if self.is_done {
            // Nothing was tried, but J may be known better now.
            if trial.upper() <= self.current.upper() {
                (self.current, self.here) = (trial, there);
            }
            return Verdict::Noise;
        }
        let promised = self.step * self.slope;
        if trial.upper() <= self.current.upper() + SUFFICIENT * promised.min(0.0) {
            if let Some(curvature) = &trial.curvature {
                // Seen from there, does the curvature explain what J was here? Where J fell as far as it should or further, it may bend twice
                // as much here: it bends less and less on the way, as 1/θ does, and damping would only make the next step too short.
                let before = self.current.curvature.as_deref().unwrap_or_default();
                let foretold = self.here.foretells(&there, before);
                let forgiven: Vec<f64> = foretold.iter().map(|&f| f64::from(u8::from(f))).collect();
                let missing = there.missing(&self.here, curvature, &full_bends(&there), &forgiven);
                for (damping, missing) in self.damping.iter_mut().zip(missing) {
                    *damping = missing.min(MOST_DAMPING).max(0.1 * *damping);
                    if *damping < LEAST_DAMPING {
                        *damping = 0.0;
                    }
                }
            }
            self.history.add(std::mem::replace(&mut self.here, there));
            (self.parts, self.current, self.rejected) = (parts, trial, 0);
            return Verdict::Taken;
        }
        let rise = trial.lower() - self.current.upper() - promised;
        let noise = trial.upper() - trial.lower() + self.current.upper() - self.current.lower();
        let curvature = self.current.curvature.as_deref().unwrap_or_default();
        let unforgiven = vec![0.0; self.damping.len()];
        let missing = (self.here).missing(&there, curvature, &full_bends(&self.here), &unforgiven);
        self.history.add(there);
        if rise <= 2.0 * noise || self.step < SHORTEST {
            self.rejected = 0;
            return Verdict::Noise;
        }
        self.rejected += 1;
        if self.rejected <= MOST_MODELS {
            // The curvature here says too little about J there. The model now knows J there, and trusts the curvature less.
            for (damping, missing) in self.damping.iter_mut().zip(missing) {
                if missing > LEAST_DAMPING {
                    *damping = damping.max(missing.min(MOST_DAMPING));
                }
            }
        } else {
            // The parabola through J and its slope here and J there.
            self.step *= (-0.5 * promised / rise).clamp(0.1, 0.5);
        }
        Verdict::Refused
    }

    /// J here again, more precisely.
    pub(super) fn look_closer(&mut self, evaluation: Evaluation) {
        let theta = self.here.theta.clone();
        self.learn(&theta, &evaluation);
        let here = Known::new(&theta, &evaluation);
        self.history.add(std::mem::replace(&mut self.here, here));
        self.current = evaluation;
    }
}

/// 2|s_m| / θ_m, the curvature of the classical upper bound of J, Σ_m θ_k² s_m / θ_m.
fn full_bends(at: &Known) -> Grid {
    let theta = &at.theta;
    // Of all tasks: one without any weight must be able to get some.
    let largest = theta.values().iter().fold(0.0_f64, |a, &b| a.max(b));
    let bends = at.sensitivities.values().iter().zip(theta.values());
    let bends = bends.map(|(s, weight)| {
        // A weight at zero must be able to leave it.
        2.0 * s.abs() / (weight + 1e-2 * largest + 1e-12)
    });
    Grid::from_values(theta.rows(), theta.kernels(), bends.collect())
}

/// For each task a part of that curvature, to be added to the diagonal of H. Where most dual variables sit at their bounds H vanishes, though
/// J bends as soon as they come off.
fn damping_bends(at: &Known, damping: &[f64]) -> Grid {
    let mut bends = full_bends(at);
    for (task, damping) in damping.iter().enumerate() {
        for bend in bends.row_mut(task) {
            *bend *= damping;
        }
    }
    bends
}
