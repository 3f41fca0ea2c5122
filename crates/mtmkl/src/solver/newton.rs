//! The second-order solver.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::block::{Block, Verdict};
use super::{Candidate, Certificate, Epf, Fallback, Solution, Solver, inner_accuracy};
use crate::engine::{Engine, Evaluation, Mixture, Request};
use crate::error::Result;
use crate::grid::{Grid, Shape};
use crate::run::{Run, Status};
use crate::sharing::{Parts, Sharing};

/// θ ← θ + ε (θ̂ − θ), θ̂ the minimiser over Ψ of J's quadratic model at θ, ε by backtracking on J.
///
/// J is twice differentiable where the set of free dual variables is stable, and its curvature costs one factorisation of that
/// set. Full steps are accepted almost always; five to ten passes reach a certified 1e-6. Elsewhere the model also knows what other
/// evaluations said of J (`cuts.rs`), and is damped towards the classical upper bound of J, task by task, as far as H would have
/// mistaken J at the last point. Only then is a step shortened. Where Ψ is a product over tasks, each task takes its own steps
/// (`block.rs`). Where a sharing has no description for the model, or ḡ is not concave, [`Epf`] takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Newton;

/// From this T M² on the model is worth threads of its own.
const LARGE: usize = 10_000;
/// A gap that did not fall in this many steps will not fall.
const IDLE_PASSES: usize = 30;

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
        let parts = start.cloned().unwrap_or_else(|| sharing.start());
        let mut certificate = Certificate::new(parts.clone(), run);
        let mut request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: true,
            stop: certificate.stop.clone(),
        };
        let first = engine.evaluate(&sharing.theta(&parts), &request)?;
        let mut blocks = blocks(sharing, &parts, &first)?;
        record(&blocks, &first, sharing, 0.0, &mut certificate, run)?;
        let shape = sharing.shape();
        let is_large = shape.tasks > 1 && shape.tasks * shape.kernels * shape.kernels >= LARGE;
        let pool = run.pool.clone().filter(|_| is_large);
        let (mut least, mut idle) = (f64::INFINITY, 0);
        let status = loop {
            if let Some(status) = certificate.finished() {
                break status;
            }
            // The next gap is about the square of this one. Where that would be the last, the inner solves must not spoil it.
            let gap = certificate.gap();
            let is_last = gap * gap <= run.tolerance;
            let wanted = inner_accuracy(if is_last { 0.0 } else { gap }, run.tolerance);
            request.accuracy = request.accuracy.min(wanted);
            // Accepted steps that change nothing would go on for ever.
            idle = if gap < 0.99 * least { 0 } else { idle + 1 };
            least = least.min(gap);
            if idle > IDLE_PASSES || blocks.iter().any(|block| !block.is_curved()) {
                break Status::Stalled;
            }
            let tolerated = run.tolerance * certificate.objective.abs() / blocks.len() as f64;
            match &pool {
                Some(pool) => {
                    pool.install(|| blocks.par_iter_mut().for_each(|block| block.aim(tolerated)));
                }
                None => blocks.iter_mut().for_each(|block| block.aim(tolerated)),
            }
            certificate.raise_bound(bound(&blocks), || witness(&blocks));
            if let Some(status) = certificate.finished() {
                break status;
            }
            // What the step wins must be seen.
            let promise: f64 = blocks.iter().map(Block::promise).sum();
            let wanted = 0.1 * promise / certificate.objective.abs();
            request.accuracy = request.accuracy.min(wanted.max(0.01 * run.tolerance));
            engine.keep(&known_evaluations(&blocks, &certificate));
            let trials: Vec<Parts> = blocks.iter().map(Block::trial).collect();
            let theta = sharing.theta(&joined(&trials));
            let evaluation = engine.evaluate(&theta, &request)?;
            let step = blocks
                .iter()
                .fold(0.0_f64, |step, block| step.max(block.step));
            let mut verdicts = Vec::with_capacity(blocks.len());
            for (number, (block, trial)) in blocks.iter_mut().zip(trials).enumerate() {
                let own = share(&evaluation, number, block.tasks());
                verdicts.push(block.judge(trial, own));
            }
            record(&blocks, &evaluation, sharing, step, &mut certificate, run)?;
            let is_fruitless = |verdict: &Verdict| *verdict == Verdict::Noise;
            if verdicts.iter().all(is_fruitless) && certificate.finished().is_none() {
                // What is left is within the inner solver's accuracy: look closer instead of stepping shorter.
                if request.accuracy <= 1e-13 {
                    break Status::Stalled;
                }
                request.accuracy = (0.01 * request.accuracy).max(1e-14);
                engine.keep(&known_evaluations(&blocks, &certificate));
                let here: Vec<Parts> = blocks.iter().map(|block| block.parts.clone()).collect();
                let evaluation = engine.evaluate(&sharing.theta(&joined(&here)), &request)?;
                for (number, block) in blocks.iter_mut().enumerate() {
                    block.look_closer(share(&evaluation, number, block.tasks()));
                }
                record(&blocks, &evaluation, sharing, 0.0, &mut certificate, run)?;
            }
        };
        Ok(certificate.solution(sharing, status))
    }
}

/// All tasks together, or each on its own where nothing ties them.
fn blocks(sharing: &Sharing, parts: &Parts, evaluation: &Evaluation) -> Result<Vec<Block>> {
    let shape = sharing.shape();
    if shape.tasks == 1 || !sharing.is_product() {
        let block = Block::new(sharing.clone(), parts.clone(), evaluation.clone());
        return Ok(vec![block]);
    }
    let one = Shape { tasks: 1, ..shape };
    let sharing = Sharing::new(sharing.name(), sharing.terms().to_vec(), one)?;
    let row =
        |grid: &Grid, task: usize| Grid::from_values(1, shape.kernels, grid.row(task).to_vec());
    Ok((0..shape.tasks)
        .map(|task| {
            let own = Parts(parts.0.iter().map(|part| row(part, task)).collect());
            Block::new(sharing.clone(), own, share(evaluation, task, 1))
        })
        .collect())
}

/// What an evaluation says of one block of so many tasks.
fn share(evaluation: &Evaluation, number: usize, tasks: usize) -> Evaluation {
    if tasks == evaluation.values.len() {
        return evaluation.clone();
    }
    let range = number * tasks..(number + 1) * tasks;
    let rows = range
        .clone()
        .flat_map(|task| evaluation.sensitivities.row(task).to_vec());
    Evaluation {
        number: evaluation.number,
        values: evaluation.values[range.clone()].to_vec(),
        gaps: evaluation.gaps[range.clone()].to_vec(),
        sensitivities: Grid::from_values(tasks, evaluation.sensitivities.kernels(), rows.collect()),
        curvature: evaluation
            .curvature
            .as_ref()
            .map(|all| all[range.clone()].to_vec()),
        scales: evaluation.scales[range.clone()].to_vec(),
        inner_iterations: 0,
        noises: evaluation.noises[range.clone()].to_vec(),
        forgiven: evaluation.forgiven[range].to_vec(),
    }
}

/// The rows of all blocks, in order.
fn joined(blocks: &[Parts]) -> Parts {
    let [first, ..] = blocks else {
        return Parts(Vec::new());
    };
    let terms = first.0.iter().enumerate().map(|(number, term)| {
        let grids = || blocks.iter().map(|block| &block.0[number]);
        let values = grids().flat_map(|grid| grid.values().to_vec()).collect();
        Grid::from_values(grids().map(Grid::rows).sum(), term.kernels(), values)
    });
    Parts(terms.collect())
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

/// The evaluations whose machines may be wanted yet.
fn known_evaluations(blocks: &[Block], certificate: &Certificate) -> Vec<usize> {
    let known = blocks.iter().flat_map(Block::evaluations);
    let known: BTreeSet<usize> = known.chain(certificate.evaluations()).collect();
    known.into_iter().collect()
}

/// One pass, with where all blocks are now and what they know.
fn record(
    blocks: &[Block],
    evaluation: &Evaluation,
    sharing: &Sharing,
    step: f64,
    certificate: &mut Certificate,
    run: &mut Run<'_>,
) -> Result<()> {
    certificate.improve_bound(bound(blocks), || witness(blocks));
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
    certificate.record(at, sharing, step, run)
}
