//! Tasks that step together: all of them or, where Ψ is a product over tasks, each on its own. Then J = Σ_t J_t has nothing that ties one
//! task's step to another's: each has its own damping and its own bound, and is done when it is done.

use super::damping::Damping;
use crate::engine::Evaluation;
use crate::grid::Grid;
use crate::sharing::{Parts, Sharing};
use crate::solver::bundle::{History, Known, Proof};

/// A step must achieve this part of what the model's slope promises (Armijo's condition): hardly more than not to rise, since the certificate and not the descent
/// tells when to stop.
const SUFFICIENT: f64 = 1e-4;
/// Shorter steps than this are not tried: what they promise is below rounding.
const SHORTEST: f64 = 1e-6;
/// So many steps are aimed anew from the same point, with what the last ones told, before they are made shorter.
const MOST_MODELS: usize = 5;
/// A rise of no more than this many times the inner solver's own uncertainty is not told from it.
const NOISE: f64 = 2.0;
/// How much shorter the next step may be than the refused one, at least and at most: the parabola through three numbers can be far off.
const SHORTER: (f64, f64) = (0.1, 0.5);

/// A sharing of these tasks only, where they are and what they know.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) sharing: Sharing,
    pub(super) parts: Parts,
    /// J at θ.
    pub(super) current: Evaluation,
    pub(super) here: Known,
    pub(super) history: History,
    pub(super) damping: Damping,
    /// A lower bound on the least J of these tasks.
    pub(super) proof: Proof,
    /// Where to, how far of it, and the slope of J from here to there (the model's value is about half of it).
    pub(super) target: Parts,
    pub(super) step: f64,
    pub(super) slope: f64,
    /// Steps from here that did not achieve what they should.
    pub(super) rejected: usize,
    /// The gap is small enough.
    pub(super) is_done: bool,
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
            damping: Damping::none(theta.rows()),
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

    /// Whether kernels are combinations of fewer: then the model has neither damping nor cuts.
    pub(super) fn is_wide(&self) -> bool {
        let curvature = self.current.curvature.iter().flatten();
        curvature.into_iter().any(|own| own.span.is_some())
    }

    /// So many steps may be aimed from the same point.
    pub(super) fn most_models(&self) -> usize {
        if self.is_wide() { 0 } else { MOST_MODELS }
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

    pub(super) fn learn_proof(&mut self, proof: Proof) {
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
            self.take(parts, trial, there);
            return Verdict::Taken;
        }
        self.refuse(promised, &trial, there)
    }

    fn take(&mut self, parts: Parts, trial: Evaluation, there: Known) {
        if let Some(curvature) = trial.curvature.as_ref().filter(|_| !self.is_wide()) {
            let before = self.current.curvature.as_deref().unwrap_or_default();
            (self.damping).after_step((&self.here, before), (&there, curvature));
        }
        self.history.add(std::mem::replace(&mut self.here, there));
        (self.parts, self.current, self.rejected) = (parts, trial, 0);
    }

    fn refuse(&mut self, promised: f64, trial: &Evaluation, there: Known) -> Verdict {
        let rise = trial.lower() - self.current.upper() - promised;
        let noise = trial.upper() - trial.lower() + self.current.upper() - self.current.lower();
        let curvature = self.current.curvature.as_deref().unwrap_or_default();
        let missing = Damping::missing((&self.here, curvature), &there);
        self.history.add(there);
        if rise <= NOISE * noise || self.step < SHORTEST {
            self.rejected = 0;
            return Verdict::Noise;
        }
        self.rejected += 1;
        if self.rejected <= self.most_models() {
            // The curvature here says too little about J there. The model now knows J there, and trusts the curvature less.
            self.damping.after_refusal(&missing);
        } else {
            // The parabola through J and its slope here and J there.
            self.step *= (-0.5 * promised / rise).clamp(SHORTER.0, SHORTER.1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Curvature;
    use crate::grid::Shape;
    use crate::sharing::SharingSpec;

    /// J between value and value + gap.
    fn evaluation(number: usize, value: f64, gap: f64) -> Evaluation {
        let mut evaluation = Evaluation::zeros(number, 1, 2);
        evaluation.values = vec![value];
        evaluation.gaps = vec![gap];
        evaluation.sensitivities = Grid::from_values(1, 2, vec![1.0, 2.0]);
        evaluation.curvature = Some(vec![Curvature::none()]);
        evaluation
    }

    /// At J between 10 and 10.5, on its way to a vertex, with this slope to there.
    fn block(slope: f64) -> Block {
        let shape = Shape {
            tasks: 1,
            kernels: 2,
        };
        let sharing = SharingSpec::lp(1.0, 2.0).build(shape).unwrap();
        let parts = sharing.start();
        let mut block = Block::new(sharing, parts, evaluation(1, 10.0, 0.5));
        block.target = Parts(vec![Grid::from_values(1, 2, vec![0.0, 2.0])]);
        block.slope = slope;
        block
    }

    fn judge(block: &mut Block, lower: f64) -> Verdict {
        let trial = block.trial();
        block.judge(trial, evaluation(2, lower, 0.25))
    }

    #[test]
    fn a_step_is_taken_where_j_falls_by_a_part_of_what_its_slope_promises() {
        // 10.5 − 10⁻⁴ · 4, of which ¼ is the gap there.
        let mut taken = block(-4.0);
        assert_eq!(
            (taken.promise(), taken.is_curved(), taken.is_wide()),
            (4.0, true, false)
        );
        taken.rejected = 3;
        assert_eq!(judge(&mut taken, 10.249_5), Verdict::Taken);
        assert_eq!(
            (taken.current.number, taken.here.number, taken.rejected),
            (2, 2, 0)
        );
        assert_eq!(taken.parts.0[0].values(), [0.0, 2.0]);
        assert_eq!(taken.history.evaluations().collect::<Vec<_>>(), [1]);
        // 10.2495 + 4 − 4 is a better bound than 10 + 2 s'θ − 4 = 9 + …
        assert!((taken.proof.bound - 10.249_5).abs() <= 1e-12);
        let mut refused = block(-4.0);
        assert_eq!(judge(&mut refused, 10.249_7), Verdict::Refused);
        assert_eq!((refused.current.number, refused.rejected), (1, 1));
        assert_eq!(refused.history.evaluations().collect::<Vec<_>>(), [2]);
        // A slope that rises promises nothing.
        assert_eq!(judge(&mut block(4.0), 10.25), Verdict::Taken);
    }

    #[test]
    fn half_a_step_leads_half_the_way_and_promises_half() {
        let mut half = block(-4.0);
        half.step = 0.5;
        assert_eq!(half.promise(), 2.0);
        let start = half.parts.0[0].values().to_vec();
        let expected = [0.5 * start[0], 0.5 * start[1] + 1.0];
        assert_eq!(half.trial().0[0].values(), expected);
    }

    #[test]
    fn what_the_inner_solver_cannot_tell_is_noise() {
        // Twice (¼ + ½) above what is promised.
        assert_eq!(judge(&mut block(-1e-3), 10.499 + 1.49), Verdict::Noise);
        assert_eq!(judge(&mut block(-1e-3), 10.499 + 1.51), Verdict::Refused);
        let mut short = block(-4.0);
        short.step = 0.5 * SHORTEST;
        assert_eq!(judge(&mut short, 100.0), Verdict::Noise);
        let mut short = block(-4.0);
        short.step = SHORTEST;
        assert_eq!(judge(&mut short, 100.0), Verdict::Refused);
    }

    #[test]
    fn after_some_models_a_step_is_shortened_by_the_parabola() {
        // Minus half the slope over the rise beyond it, 10.5 − 4 being promised.
        for (lower, step) in [(14.5, 0.25), (100.0, SHORTER.0), (10.3, SHORTER.1)] {
            let mut block = block(-4.0);
            assert_eq!(block.most_models(), MOST_MODELS);
            block.rejected = MOST_MODELS - 1;
            assert_eq!(judge(&mut block, lower), Verdict::Refused);
            assert_eq!((block.step, block.rejected), (1.0, MOST_MODELS));
            assert_eq!(judge(&mut block, lower), Verdict::Refused);
            assert!(
                (block.step - step).abs() <= 1e-15,
                "{lower}: {}",
                block.step
            );
        }
    }

    #[test]
    fn a_block_that_is_done_stays_and_may_know_j_better() {
        let mut done = block(-4.0);
        done.is_done = true;
        assert_eq!(judge(&mut done, 10.3), Verdict::Noise);
        assert_eq!(done.current.number, 1);
        assert_eq!(judge(&mut done, 10.25), Verdict::Noise);
        assert_eq!(done.current.number, 2);
        let before = done.parts.clone();
        assert_eq!(judge(&mut done, 9.0), Verdict::Noise);
        assert_eq!(done.parts.0[0].values(), before.0[0].values());
        // A bound that is no better proves nothing new.
        let twin = Proof {
            bound: done.proof.bound,
            witness: Vec::new(),
        };
        done.learn_proof(twin);
        assert!(!done.proof.witness.is_empty());
    }
}
