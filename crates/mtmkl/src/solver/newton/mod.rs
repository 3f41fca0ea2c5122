//! The second-order solver: the outer loop.
//!
//! - `block`: tasks that step together, and whether a step is taken; `split`, between all tasks and the blocks.
//! - `aim`: where the next step leads.
//! - `damping`: how far the curvature is trusted.
//! - `wide`: the model's minimum where kernels are combinations of fewer.

mod aim;
mod block;
mod damping;
mod split;
mod wide;

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::{Candidate, Certificate, Epf, Fallback, Solution, Solver, inner_accuracy};
use crate::engine::{Engine, Evaluation, Mixture, Request};
use crate::error::Result;
use crate::grid::Grid;
use crate::pool::Pool;
use crate::run::{Run, Status};
use crate::sharing::{Parts, Sharing};
use block::{Block, Verdict};
use split::{blocks, joined, share};

/// θ ← θ + ε (θ̂ − θ), θ̂ the minimiser over Ψ of J's quadratic model at θ, ε by backtracking on J.
///
/// J is twice differentiable where the set of free dual variables is stable, and its curvature costs one factorisation of that
/// set. Full steps are accepted almost always; five to ten passes reach a certified 1e-6. Elsewhere the model also knows what other
/// evaluations said of J (the bundle), and is damped towards the classical upper bound of J, task by task, as far as H would have
/// mistaken J at the last point. Only then is a step shortened. Where Ψ is a product over tasks, each task takes its own steps.
/// Where a sharing has no description for the model, or ḡ is not concave, [`Epf`] takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Newton;

/// From this T M² on the model is worth threads of its own: an iteration makes some T M² multiplications at least, a model has some twenty iterations, and
/// 200,000 multiplications are done before threads have helped.
const LARGE: usize = 10_000;
/// A gap that did not fall in this many steps will not fall.
const IDLE_PASSES: usize = 30;
/// A gap has fallen where it is below this part of the least so far.
const FALLEN: f64 = 0.99;
/// Inner solves are asked for this part of what the step should win, so that it can be seen …
const SEEN: f64 = 0.1;
/// … but for no more than this part of the tolerance.
const LEAST_ACCURACY: f64 = 0.01;
/// Where all that is left is within the inner solver's accuracy, it is asked for this part of it …
const CLOSER: f64 = 0.01;
/// … down to rounding, where looking closer shows nothing.
const CLOSEST: f64 = 1e-14;
const ROUNDING: f64 = 1e-13;

impl Solver for Newton {
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Solution> {
        let fallback = if !engine.is_concave() {
            Some(Fallback::Indefinite)
        } else if sharing.constraints().is_none() {
            Some(Fallback::Sharing)
        } else {
            None
        };
        if fallback.is_some() {
            let solution = Epf::default().solve(engine, sharing, start, run)?;
            return Ok(Solution {
                fallback,
                ..solution
            });
        }
        let mut search = Search::new(engine, sharing, start, run)?;
        let shape = sharing.shape();
        let is_large = shape.tasks > 1 && shape.tasks * shape.kernels * shape.kernels >= LARGE;
        let is_wide = search.blocks.iter().any(Block::is_wide);
        let pool = run.pool.clone().filter(|_| is_large || is_wide);
        let status = loop {
            if let Some(status) = search.certificate.finished() {
                break status;
            }
            if search.is_idle(run.tolerance) {
                break Status::Stalled;
            }
            search.aim(run.tolerance, pool.as_ref());
            if let Some(status) = search.certificate.finished() {
                break status;
            }
            if !search.step(engine, run)? {
                break Status::Stalled;
            }
        };
        Ok(search.certificate.solution(sharing, status))
    }
}

/// The state of a run.
#[derive(Debug)]
struct Search<'a> {
    sharing: &'a Sharing,
    blocks: Vec<Block>,
    certificate: Certificate,
    request: Request,
    /// The least gap so far, and passes since it fell.
    least: f64,
    idle: usize,
}

impl<'a> Search<'a> {
    fn new(
        engine: &mut dyn Engine,
        sharing: &'a Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Self> {
        let parts = start.cloned().unwrap_or_else(|| sharing.start());
        let certificate = Certificate::new(parts.clone(), run);
        let request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: true,
            stop: certificate.stop.clone(),
            rounds: run.rounds.clone(),
        };
        let theta = sharing.theta(&parts);
        let first = evaluate(engine, sharing, &certificate, &theta, &request)?;
        let mut search = Self {
            sharing,
            blocks: blocks(sharing, &parts, &first)?,
            certificate,
            request,
            least: f64::INFINITY,
            idle: 0,
        };
        search.record(&first, 0.0, run)?;
        Ok(search)
    }

    /// Whether steps change nothing any more, or cannot be aimed. Accepted steps that change nothing would go on for ever.
    fn is_idle(&mut self, tolerance: f64) -> bool {
        let gap = self.certificate.gap();
        // The next gap is about the square of this one. Where that would be the last, the inner solves must not spoil it.
        let is_last = gap * gap <= tolerance;
        let wanted = inner_accuracy(if is_last { 0.0 } else { gap }, tolerance);
        self.request.accuracy = self.request.accuracy.min(wanted);
        self.idle = if gap < FALLEN * self.least {
            0
        } else {
            self.idle + 1
        };
        self.least = self.least.min(gap);
        self.idle > IDLE_PASSES || self.blocks.iter().any(|block| !block.is_curved())
    }

    /// Chooses the next step of every block.
    fn aim(&mut self, tolerance: f64, pool: Option<&Pool>) {
        let objective = self.certificate.objective.abs();
        let tolerated = tolerance * objective / self.blocks.len() as f64;
        let blocks = &mut self.blocks;
        match pool {
            Some(pool) => {
                pool.install(|| blocks.par_iter_mut().for_each(|block| block.aim(tolerated)));
            }
            None => blocks.iter_mut().for_each(|block| block.aim(tolerated)),
        }
        let blocks = &self.blocks;
        self.certificate
            .raise_bound(bound(blocks), || witness(blocks));
    }

    /// Takes the step; `false` when what is left cannot be told from rounding.
    fn step(&mut self, engine: &mut dyn Engine, run: &mut Run<'_>) -> Result<bool> {
        let promise: f64 = self.blocks.iter().map(Block::promise).sum();
        let wanted = SEEN * promise / self.certificate.objective.abs();
        let wanted = wanted.max(LEAST_ACCURACY * run.tolerance);
        self.request.accuracy = self.request.accuracy.min(wanted);
        let trials: Vec<Parts> = self.blocks.iter().map(Block::trial).collect();
        let evaluation = self.evaluate(engine, &trials)?;
        let steps = self.blocks.iter().map(|block| block.step);
        let step = steps.fold(0.0_f64, f64::max);
        let mut verdicts = Vec::with_capacity(self.blocks.len());
        for (number, (block, trial)) in self.blocks.iter_mut().zip(trials).enumerate() {
            let own = share(&evaluation, number, block.tasks());
            verdicts.push(block.judge(trial, own));
        }
        self.record(&evaluation, step, run)?;
        let is_fruitless = verdicts.iter().all(|verdict| *verdict == Verdict::Noise);
        if is_fruitless && self.certificate.finished().is_none() {
            // What is left is within the inner solver's accuracy: look closer instead of stepping shorter.
            return self.look_closer(engine, run);
        }
        Ok(true)
    }

    /// J here again, more precisely; `false` where that is not possible.
    fn look_closer(&mut self, engine: &mut dyn Engine, run: &mut Run<'_>) -> Result<bool> {
        if self.request.accuracy <= ROUNDING {
            return Ok(false);
        }
        self.request.accuracy = (CLOSER * self.request.accuracy).max(CLOSEST);
        let here: Vec<Parts> = self.blocks.iter().map(|b| b.parts.clone()).collect();
        let evaluation = self.evaluate(engine, &here)?;
        for (number, block) in self.blocks.iter_mut().enumerate() {
            block.look_closer(share(&evaluation, number, block.tasks()));
        }
        self.record(&evaluation, 0.0, run)?;
        Ok(true)
    }

    /// J where the blocks say; the engine keeps the machines that may be wanted yet.
    fn evaluate(&self, engine: &mut dyn Engine, at: &[Parts]) -> Result<Evaluation> {
        let known = self.blocks.iter().flat_map(Block::evaluations);
        let known: BTreeSet<usize> = known.chain(self.certificate.evaluations()).collect();
        engine.keep(&known.into_iter().collect::<Vec<_>>());
        let theta = self.sharing.theta(&joined(at));
        evaluate(
            engine,
            self.sharing,
            &self.certificate,
            &theta,
            &self.request,
        )
    }

    /// One pass, with where all blocks are now and what they know.
    fn record(&mut self, evaluation: &Evaluation, step: f64, run: &mut Run<'_>) -> Result<()> {
        let (blocks, sharing) = (&self.blocks, self.sharing);
        self.certificate
            .improve_bound(bound(blocks), || witness(blocks));
        let here: Vec<Parts> = blocks.iter().map(|block| block.parts.clone()).collect();
        let parts = joined(&here);
        let current = || blocks.iter().map(|block| &block.current);
        let rows = current().flat_map(|own| own.sensitivities.values().to_vec());
        let (tasks, kernels) = (sharing.shape().tasks, sharing.shape().kernels);
        let together = Evaluation {
            number: evaluation.number,
            values: current().flat_map(|own| own.values.clone()).collect(),
            gaps: current().flat_map(|own| own.gaps.clone()).collect(),
            sensitivities: Grid::from_values(tasks, kernels, rows.collect()),
            curvature: None,
            scales: Vec::new(),
            inner_iterations: evaluation.inner_iterations,
            noises: current().flat_map(|own| own.noises.clone()).collect(),
            forgiven: current().flat_map(|own| own.forgiven.clone()).collect(),
        };
        let at = Candidate {
            parts: &parts,
            theta: &sharing.theta(&parts),
            evaluation: &together,
            machines: current()
                .flat_map(|own| vec![own.number; own.values.len()])
                .collect(),
        };
        self.certificate.record(at, sharing, step, run)
    }
}

/// J at θ, with its curvature unless that is costly and this evaluation ends the search.
fn evaluate(
    engine: &mut dyn Engine,
    sharing: &Sharing,
    certificate: &Certificate,
    theta: &Grid,
    request: &Request,
) -> Result<Evaluation> {
    if engine.is_curvature_costly() {
        let plain = Request {
            curvature: false,
            ..request.clone()
        };
        let evaluation = engine.evaluate(theta, &plain)?;
        if certificate.ends_with(&evaluation, theta, sharing) {
            return Ok(evaluation);
        }
    }
    engine.evaluate(theta, request)
}

/// A lower bound on J*, where blocks have nothing in common the sum of theirs.
fn bound(blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.proof.bound).sum()
}

/// What proves it.
fn witness(blocks: &[Block]) -> Vec<Mixture> {
    let proofs = blocks.iter().map(|block| &block.proof);
    proofs.flat_map(|proof| proof.witness.clone()).collect()
}
