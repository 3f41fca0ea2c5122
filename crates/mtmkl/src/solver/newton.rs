//! The second-order solver.

use super::cuts::{History, Known, mixed_bound};
use super::model::Model;
use super::{Certificate, Epf, Solution, Solver, inner_accuracy};
use crate::engine::{Curvature, Engine, Request};
use crate::error::Result;
use crate::grid::Grid;
use crate::run::{Run, Status};
use crate::sharing::{Constraint, Parts, Sharing};

/// θ ← θ + ε (θ̂ − θ), θ̂ the minimiser over Ψ of J's quadratic model at θ, ε by backtracking on J.
///
/// J is twice differentiable where the set of free dual variables is stable, and its curvature costs one factorisation of that
/// set. Full steps are accepted almost always; five to ten passes reach a certified 1e-6. Elsewhere the model also knows what other
/// evaluations said of J (`cuts.rs`), and is damped towards the classical upper bound of J, task by task, as far as H would have
/// mistaken J at the last point. Only then is a step shortened. Where a sharing has no description
/// for the model, or ḡ is not concave, [`Epf`] takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Newton;

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
/// A gap that did not fall in this many steps will not fall.
const IDLE_PASSES: usize = 30;
/// How precisely to solve the model, as a part of the current gap.
const MODEL_ACCURACY: f64 = 0.02;
/// A promised decrease below this part of the gap says that the lower bound is what is far off; it is then found to this part of the gap.
const BEHIND: f64 = 0.1;
/// No part of a decrease needs to be known better than this, as a part of the tolerated gap.
const LEAST_ACCURACY: f64 = 1e-2;

impl Solver for Newton {
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Solution> {
        let Some(constraints) = sharing.constraints().filter(|_| engine.is_concave()) else {
            return Epf::default().solve(engine, sharing, start, run);
        };
        let mut parts = start.cloned().unwrap_or_else(|| sharing.start());
        let mut certificate = Certificate::new(parts.clone(), run);
        let mut theta = sharing.theta(&parts);
        let mut request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: true,
            stop: certificate.stop.clone(),
        };
        let mut current = engine.evaluate(&theta, &request)?;
        certificate.record(&parts, &theta, &current, sharing, 0.0, run);
        let mut here = Known::new(&theta, &current);
        let mut history = History::new(theta.kernels());
        let mut damping = vec![0.0; theta.rows()];
        let (mut least, mut idle) = (f64::INFINITY, 0);
        let status = 'outer: loop {
            if let Some(status) = certificate.finished() {
                break status;
            }
            // The next gap is about the square of this one. Where that would be the last, the inner solves must not spoil it.
            let gap = certificate.gap();
            let is_last = gap * gap <= run.tolerance;
            let wanted = inner_accuracy(if is_last { 0.0 } else { gap }, run.tolerance);
            request.accuracy = request.accuracy.min(wanted);
            let Some(curvature) = current.curvature.as_deref() else {
                break Status::Stalled;
            };
            // Accepted steps that change nothing would go on for ever.
            idle = if certificate.gap() < 0.99 * least {
                0
            } else {
                idle + 1
            };
            least = least.min(certificate.gap());
            if idle > IDLE_PASSES {
                break Status::Stalled;
            }
            let mut step = 1.0;
            let mut rejected = 0;
            let (mut minimum, mut slope) = aim(
                &here,
                curvature,
                &damping,
                &history,
                (sharing, &constraints),
                &mut certificate,
            );
            loop {
                if let Some(status) = certificate.finished() {
                    break 'outer status;
                }
                // What the step wins must be seen.
                let wanted = 0.1 * step * slope.abs() / certificate.objective.abs();
                request.accuracy = request.accuracy.min(wanted.max(0.01 * run.tolerance));
                let mut trial_parts = parts.clone();
                trial_parts.move_towards(&minimum, step);
                let trial_theta = sharing.theta(&trial_parts);
                let trial = engine.evaluate(&trial_theta, &request)?;
                certificate.record(&trial_parts, &trial_theta, &trial, sharing, step, run);
                let there = Known::new(&trial_theta, &trial);
                let reached = trial.upper() <= current.upper() + SUFFICIENT * step * slope.min(0.0);
                if reached {
                    if let Some(curvature) = &trial.curvature {
                        // Seen from there, does the curvature explain what J was here?
                        let missing = there.missing(&here, curvature, &full_bends(&there));
                        for (damping, missing) in damping.iter_mut().zip(missing) {
                            *damping = missing.min(MOST_DAMPING).max(0.1 * *damping);
                            if *damping < LEAST_DAMPING {
                                *damping = 0.0;
                            }
                        }
                    }
                    history.add(std::mem::replace(&mut here, there));
                    (parts, theta, current) = (trial_parts, trial_theta, trial);
                    break;
                }
                if let Some(status) = certificate.finished() {
                    break 'outer status;
                }
                let rise = trial.lower() - current.upper() - step * slope;
                let noise = trial.upper() - trial.lower() + current.upper() - current.lower();
                let missing = here.missing(&there, curvature, &full_bends(&here));
                history.add(there);
                if rise <= 2.0 * noise || step < SHORTEST {
                    // What is left is within the inner solver's accuracy: look closer instead of stepping shorter.
                    if request.accuracy <= 1e-13 {
                        break 'outer Status::Stalled;
                    }
                    request.accuracy = (0.01 * request.accuracy).max(1e-14);
                    current = engine.evaluate(&theta, &request)?;
                    certificate.record(&parts, &theta, &current, sharing, 0.0, run);
                    history.add(std::mem::replace(&mut here, Known::new(&theta, &current)));
                    break;
                }
                rejected += 1;
                if rejected <= MOST_MODELS {
                    // The curvature here says too little about J there. The model now knows J there, and trusts the curvature less.
                    for (damping, missing) in damping.iter_mut().zip(missing) {
                        if missing > LEAST_DAMPING {
                            *damping = damping.max(missing.min(MOST_DAMPING));
                        }
                    }
                    (minimum, slope) = aim(
                        &here,
                        curvature,
                        &damping,
                        &history,
                        (sharing, &constraints),
                        &mut certificate,
                    );
                } else {
                    // The parabola through J and its slope here and J there.
                    step *= (-0.5 * step * slope / rise).clamp(0.1, 0.5);
                }
            }
        };
        Ok(certificate.solution(sharing, status))
    }
}

/// θ̂, and the slope of J from here to there (the model's value is about half of it). What the model finds out about the lower bound, the
/// certificate learns.
fn aim(
    here: &Known,
    curvature: &[Curvature],
    damping: &[f64],
    history: &History,
    (sharing, constraints): (&Sharing, &[Constraint]),
    certificate: &mut Certificate,
) -> (Parts, f64) {
    let (theta, sensitivities) = (&here.theta, &here.sensitivities);
    let bends =
        (damping.iter().any(|&damping| damping > 0.0)).then(|| damping_bends(here, damping));
    let cuts = history.cuts(here, curvature);
    let model = Model {
        theta,
        sensitivities,
        curvature,
        bends: bends.as_ref(),
        cuts: &cuts,
        sharing,
    };
    let gap = (certificate.objective - certificate.bound).max(0.0);
    let accuracy = MODEL_ACCURACY * gap;
    let tolerated = certificate.tolerance * certificate.objective.abs();
    let least = LEAST_ACCURACY * tolerated;
    let mut found = model.minimise(constraints, accuracy, least);
    if found.gap > (2.0 * accuracy).max(-found.value) && !cuts.iter().all(Vec::is_empty) {
        // What is known beyond can make the model too hard to solve. Then it is better not known.
        let none = vec![Vec::new(); theta.rows()];
        let plain = Model {
            cuts: &none,
            ..model
        };
        found = plain.minimise(constraints, accuracy, least);
    }
    certificate.raise_bound(mixed_bound(here, &cuts, &found.weights, sharing));
    if -found.value < BEHIND * gap && history.is_kept() {
        // θ is better than the bound says.
        let lines = history.lines(here);
        let flat = vec![Curvature::none(); theta.rows()];
        let model = Model {
            curvature: &flat,
            bends: None,
            cuts: &lines,
            ..model
        };
        let found = model.minimise(constraints, BEHIND * gap, BEHIND * tolerated);
        certificate.raise_bound(mixed_bound(here, &lines, &found.weights, sharing));
    }
    let mut minimum = found.parts;
    if found.gap > 2.0 * accuracy {
        // Where hardly anything bends, interior points lose their way, and the minimum is at the best vertex.
        let (vertex, _) = sharing.maximise(sensitivities);
        if model.value(&sharing.theta(&vertex)) < found.value {
            minimum = vertex;
        }
    }
    let slope = sensitivities.dot(theta) - sensitivities.dot(&sharing.theta(&minimum));
    (minimum, slope)
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
