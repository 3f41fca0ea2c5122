//! The second-order solver.

use super::model::Model;
use super::{Certificate, Epf, Solution, Solver, inner_accuracy};
use crate::engine::{Engine, Request};
use crate::error::Result;
use crate::grid::Grid;
use crate::run::{Run, Status};
use crate::sharing::{Parts, Sharing};

/// θ ← θ + ε (θ̂ − θ), θ̂ the minimiser over Ψ of J's quadratic model at θ, ε by backtracking on J.
///
/// J is twice differentiable where the set of free dual variables is stable, and its curvature costs one factorisation of that
/// set. Full steps are accepted almost always; five to ten passes reach a certified 1e-6. Where one is not, the model is damped
/// towards the classical upper bound of J before the step is shortened. Where a sharing has no description
/// for the model, or ḡ is not concave, [`Epf`] takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Newton;

/// A step must achieve this part of what the model's slope promises.
const SUFFICIENT: f64 = 1e-4;
/// Shorter steps than this are not tried.
const SHORTEST: f64 = 1e-6;
/// Nearer than this gap, J is as its curvature says, and damping only delays.
const FAR: f64 = 1e-4;
/// A gap that did not fall in this many steps will not fall.
const IDLE_PASSES: usize = 30;
/// How precisely to solve the model, as a part of the current gap.
const MODEL_ACCURACY: f64 = 0.02;

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
        let mut damping = 0.0;
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
            let gap = (certificate.objective - certificate.bound).max(0.0);
            let mut step = 1.0;
            let mut aim = None;
            loop {
                let (minimum, slope) = aim.get_or_insert_with(|| {
                    let bends = (damping > 0.0)
                        .then(|| damping_bends(&current.sensitivities, &theta, damping));
                    let model = Model {
                        theta: &theta,
                        sensitivities: &current.sensitivities,
                        curvature,
                        bends: bends.as_ref(),
                        sharing,
                    };
                    let accuracy = MODEL_ACCURACY * gap;
                    let found = model.minimise(&constraints, accuracy);
                    let mut minimum = found.parts;
                    if found.gap > 2.0 * accuracy {
                        // Where hardly anything bends, interior points lose their way, and the minimum is at the best vertex.
                        let (vertex, _) = sharing.maximise(&current.sensitivities);
                        if model.value(&sharing.theta(&vertex)) < found.value {
                            minimum = vertex;
                        }
                    }
                    // The slope of J along the step; the model's value is about half of it.
                    let aim = sharing.theta(&minimum);
                    let slope = current.sensitivities.dot(&theta) - current.sensitivities.dot(&aim);
                    (minimum, slope)
                });
                let slope = *slope;
                let mut trial_parts = parts.clone();
                trial_parts.move_towards(minimum, step);
                let trial_theta = sharing.theta(&trial_parts);
                let trial = engine.evaluate(&trial_theta, &request)?;
                certificate.record(&trial_parts, &trial_theta, &trial, sharing, step, run);
                let reached = trial.upper() <= current.upper() + SUFFICIENT * step * slope.min(0.0);
                if reached {
                    (parts, theta, current) = (trial_parts, trial_theta, trial);
                    damping = if damping < 1e-2 || certificate.gap() <= FAR {
                        0.0
                    } else {
                        0.1 * damping
                    };
                    break;
                }
                if let Some(status) = certificate.finished() {
                    break 'outer status;
                }
                let rise = trial.lower() - current.upper() - step * slope;
                let noise = trial.upper() - trial.lower() + current.upper() - current.lower();
                if rise <= 2.0 * noise || step < SHORTEST {
                    // What is left is within the inner solver's accuracy: look closer instead of stepping shorter.
                    if request.accuracy <= 1e-13 {
                        break 'outer Status::Stalled;
                    }
                    request.accuracy = (0.01 * request.accuracy).max(1e-14);
                    current = engine.evaluate(&theta, &request)?;
                    certificate.record(&parts, &theta, &current, sharing, 0.0, run);
                    break;
                }
                if damping < 1.0 && certificate.gap() > FAR {
                    // The curvature here says too little about J there: trust it less before stepping shorter.
                    damping = (10.0 * damping).clamp(0.1, 1.0);
                    aim = None;
                } else {
                    // The parabola through J and its slope here and J there.
                    step *= (-0.5 * step * slope / rise).clamp(0.1, 0.5);
                }
            }
        };
        Ok(certificate.solution(sharing, status))
    }
}

/// damping · 2|s_m| / θ_m, to be added to the diagonal of H: between Newton's model and the classical upper bound of J,
/// Σ_m θ_k² s_m / θ_m, whose curvature the diagonal is. Where most dual variables sit at their bounds H vanishes, though J bends as
/// soon as they come off.
fn damping_bends(sensitivities: &Grid, theta: &Grid, damping: f64) -> Grid {
    // Of all tasks: one without any weight must be able to get some.
    let largest = theta.values().iter().fold(0.0_f64, |a, &b| a.max(b));
    let bends = sensitivities.values().iter().zip(theta.values());
    let bends = bends.map(|(s, weight)| {
        // A weight at zero must be able to leave it.
        damping * 2.0 * s.abs() / (weight + 1e-2 * largest + 1e-12)
    });
    Grid::from_values(theta.rows(), theta.kernels(), bends.collect())
}
