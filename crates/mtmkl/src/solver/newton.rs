//! The second-order solver.

use super::model::Model;
use super::{Certificate, Epf, Solution, Solver, inner_accuracy};
use crate::engine::{Engine, Request};
use crate::error::Result;
use crate::run::{Run, Status};
use crate::sharing::Sharing;

/// θ ← θ + ε (θ̂ − θ), θ̂ the minimiser over Ψ of J's quadratic model at θ, ε by backtracking on J.
///
/// J is twice differentiable where the set of free dual variables is stable, and its curvature costs one factorisation of that
/// set. Full steps are accepted almost always; five to ten passes reach a certified 1e-6. Where a sharing has no description
/// for the model, or ḡ is not concave, [`Epf`] takes over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Newton;

/// A step must achieve this part of what the model's slope promises.
const SUFFICIENT: f64 = 1e-4;
/// Shorter steps than this are not tried.
const SHORTEST: f64 = 1e-6;
/// How precisely to solve the model, as a part of the current gap.
const MODEL_ACCURACY: f64 = 0.02;

impl Solver for Newton {
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        run: &mut Run<'_>,
    ) -> Result<Solution> {
        let Some(constraints) = sharing.constraints().filter(|_| engine.is_concave()) else {
            return Epf::default().solve(engine, sharing, run);
        };
        let mut parts = sharing.start();
        let mut certificate = Certificate::new(parts.clone(), run);
        let mut theta = sharing.theta(&parts);
        let mut request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: true,
            stop: certificate.stop.clone(),
        };
        let mut current = engine.evaluate(&theta, &request)?;
        certificate.record(&parts, &theta, &current, sharing, 0.0, run);
        let status = 'outer: loop {
            if let Some(status) = certificate.finished() {
                break status;
            }
            request.accuracy = request
                .accuracy
                .min(inner_accuracy(certificate.gap(), run.tolerance));
            let Some(curvature) = current.curvature.as_deref() else {
                break Status::Stalled;
            };
            let model = Model {
                theta: &theta,
                sensitivities: &current.sensitivities,
                curvature,
                sharing,
            };
            let gap = (certificate.objective - certificate.bound).max(0.0);
            let minimum = model.minimise(&constraints, MODEL_ACCURACY * gap);
            let aim = sharing.theta(&minimum.parts);
            // The slope of J along the step; the model's value is about half of it.
            let slope = current.sensitivities.dot(&theta) - current.sensitivities.dot(&aim);
            let mut step = 1.0;
            loop {
                let mut trial_parts = parts.clone();
                trial_parts.move_towards(&minimum.parts, step);
                let trial_theta = sharing.theta(&trial_parts);
                let trial = engine.evaluate(&trial_theta, &request)?;
                certificate.record(&trial_parts, &trial_theta, &trial, sharing, step, run);
                let reached = trial.upper() <= current.upper() + SUFFICIENT * step * slope.min(0.0);
                if reached {
                    (parts, theta, current) = (trial_parts, trial_theta, trial);
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
                // The parabola through J and its slope here and J there.
                step *= (-0.5 * step * slope / rise).clamp(0.1, 0.5);
            }
        };
        Ok(certificate.solution(sharing, status))
    }
}
