//! Algorithm 1 of the paper: the exact penalty function method with Watson's step rule.

use serde::{Deserialize, Serialize};

use super::{Candidate, Certificate, Solution, Solver, inner_accuracy};
use crate::engine::{Engine, Evaluation, LocalMaximum, Request};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::random::Random;
use crate::run::{Run, Status};
use crate::sharing::{Parts, Sharing};

/// x = (ω, θ) ← x + ε (x̂ − x), with θ̂ the oracle's answer at the current α and ω̂ = Σ ḡ(α, θ̂); ε is the largest of 1, β, β², …
/// with \[P(x + ε d) − P(x)\] / (ε G) ≥ σ for the penalty function P(x) = ω + ν Σ_i g(a_i, x)₊, g = Σ ḡ − ω.
///
/// Where ḡ is not concave (an indefinite kernel), E holds the local maxima a_i found with g(a_i, x) ≥ −η; each one's oracle answer
/// θ̂_i is judged by its worst value over E, and the best one is the aim (the paper's general theorem).
///
/// This is the Frank–Wolfe method on J: excellent where Ψ is strictly convex, slow where it is not (p = 1 or q = 1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Epf {
    /// ν > 1, the penalty.
    pub nu: f64,
    /// η ≥ 0, relative to |ω|: how far below the best a local maximum still counts.
    pub eta: f64,
    /// σ in (0, 1), Watson's constant.
    pub sigma: f64,
    /// β in (0, 1), by which a refused step shrinks.
    pub backtrack: f64,
    /// Start from a random θ (by the run's seed), as the paper does; otherwise from the balanced one.
    pub random_start: bool,
    /// Random starts per task in the search for local maxima of a non-concave ḡ.
    pub starts: usize,
}

impl Default for Epf {
    fn default() -> Self {
        Self {
            nu: 2.0,
            eta: 1e-2,
            sigma: 0.1,
            backtrack: 0.5,
            random_start: true,
            starts: 4,
        }
    }
}

/// Local maxima of the sum kept in E.
const MOST_MAXIMA: usize = 16;
const SHORTEST: f64 = 1e-12;

/// One a_i of E: Σ ḡ(a_i, θ') = constant − ⟨s, θ'⟩.
#[derive(Debug, Clone)]
struct Maximum {
    constant: f64,
    sensitivities: Grid,
}

impl Maximum {
    fn value(&self, theta: &Grid) -> f64 {
        self.constant - self.sensitivities.dot(theta)
    }
}

/// x = (ω, θ) with what is known there.
#[derive(Debug, Clone)]
struct Point {
    omega: f64,
    parts: Parts,
    theta: Grid,
    maxima: Vec<Maximum>,
}

impl Epf {
    /// Whether the parameters are in range.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub fn check(&self) -> Result<()> {
        let open_unit = |name, value: f64| {
            if value > 0.0 && value < 1.0 {
                Ok(())
            } else {
                Err(Error::param(name, value, "a number in (0, 1)"))
            }
        };
        if !(self.nu.is_finite() && self.nu > 1.0) {
            return Err(Error::param(
                "nu",
                self.nu,
                "a finite number > 1 (the penalty of epf)",
            ));
        }
        if !(self.eta.is_finite() && self.eta >= 0.0) {
            return Err(Error::param("eta", self.eta, "a finite number ≥ 0"));
        }
        open_unit("sigma", self.sigma)?;
        open_unit("backtrack", self.backtrack)
    }

    /// A random point of Ψ: a random mixture of the balanced one and oracle answers at random costs.
    fn start(&self, sharing: &Sharing, seed: u64) -> Parts {
        let mut parts = sharing.start();
        if !self.random_start {
            return parts;
        }
        let mut random = Random::new(seed);
        let shape = sharing.shape();
        for _ in 0..3 {
            let costs = (0..shape.tasks * shape.kernels)
                .map(|_| random.uniform())
                .collect();
            let (aim, _) = sharing.maximise(&Grid::from_values(shape.tasks, shape.kernels, costs));
            parts.move_towards(&aim, 0.8 * random.uniform());
        }
        parts
    }

    /// P(x) = ω + ν Σ g(a_i, x)₊
    fn penalty(&self, point: &Point) -> f64 {
        let over: f64 = point
            .maxima
            .iter()
            .map(|a| (a.value(&point.theta) - point.omega).max(0.0))
            .sum();
        point.omega + self.nu * over
    }

    /// α at θ: the maximum, or where ḡ is not concave the local maxima within η of the best.
    fn evaluate(
        &self,
        engine: &mut dyn Engine,
        theta: &Grid,
        request: &Request,
        seed: u64,
    ) -> Result<(Evaluation, Vec<Maximum>)> {
        let evaluation = engine.evaluate(theta, request)?;
        if engine.is_concave() {
            let maximum = Maximum {
                constant: evaluation.constant(theta),
                sensitivities: evaluation.sensitivities.clone(),
            };
            return Ok((evaluation, vec![maximum]));
        }
        let Some(search) = engine.local_maxima() else {
            return Err(Error::Engine(
                "a kernel is indefinite, and it cannot look for local maxima".to_string(),
            ));
        };
        let per_task = search.maxima(theta, request, self.starts, seed)?;
        let mut best = evaluation;
        for (task, found) in per_task.iter().enumerate() {
            best.values[task] = found[0].value;
            best.sensitivities
                .row_mut(task)
                .copy_from_slice(&found[0].sensitivities);
        }
        let maxima = self.combine(&per_task, theta);
        Ok((best, maxima))
    }

    /// Local maxima of the sum: the best of every task, and those that differ from it in one task, best first.
    fn combine(&self, per_task: &[Vec<LocalMaximum>], theta: &Grid) -> Vec<Maximum> {
        let combination = |swap: Option<(usize, usize)>| {
            let mut maximum = Maximum {
                constant: 0.0,
                sensitivities: Grid::zeros(theta.rows(), theta.kernels()),
            };
            for (task, found) in per_task.iter().enumerate() {
                let choice = swap
                    .filter(|(swapped, _)| *swapped == task)
                    .map_or(0, |(_, choice)| choice);
                maximum.constant += found[choice].constant;
                maximum
                    .sensitivities
                    .row_mut(task)
                    .copy_from_slice(&found[choice].sensitivities);
            }
            maximum
        };
        let best = combination(None);
        let top = best.value(theta);
        let mut others: Vec<Maximum> = per_task
            .iter()
            .enumerate()
            .flat_map(|(task, found)| (1..found.len()).map(move |choice| (task, choice)))
            .map(|swap| combination(Some(swap)))
            .filter(|maximum| maximum.value(theta) - top >= -self.eta * top.abs())
            .collect();
        others.sort_by(|a, b| b.value(theta).total_cmp(&a.value(theta)));
        others.truncate(MOST_MAXIMA - 1);
        std::iter::once(best).chain(others).collect()
    }

    /// (ω̂, θ̂): of the oracle's answers for each a_i, the one whose worst value over E is smallest.
    fn aim(sharing: &Sharing, maxima: &[Maximum]) -> (f64, Parts) {
        let mut best: Option<(f64, Parts)> = None;
        for maximum in maxima {
            let (parts, _) = sharing.maximise(&maximum.sensitivities);
            let theta = sharing.theta(&parts);
            let worst = maxima
                .iter()
                .map(|other| other.value(&theta))
                .fold(f64::NEG_INFINITY, f64::max);
            if best.as_ref().is_none_or(|(value, _)| worst < *value) {
                best = Some((worst, parts));
            }
        }
        best.unwrap_or_else(|| (0.0, sharing.start()))
    }
}

impl Solver for Epf {
    fn solve(
        &self,
        engine: &mut dyn Engine,
        sharing: &Sharing,
        start: Option<&Parts>,
        run: &mut Run<'_>,
    ) -> Result<Solution> {
        let parts = start
            .cloned()
            .unwrap_or_else(|| self.start(sharing, run.seed));
        let mut certificate = Certificate::new(parts.clone(), run);
        let theta = sharing.theta(&parts);
        let mut request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: false,
            stop: certificate.stop.clone(),
        };
        let (evaluation, maxima) = self.evaluate(engine, &theta, &request, run.seed)?;
        let at = Candidate::new(&parts, &theta, &evaluation);
        certificate.record(at, sharing, 0.0, run)?;
        let mut point = Point {
            omega: evaluation.lower(),
            parts,
            theta,
            maxima,
        };
        let status = 'outer: loop {
            if let Some(status) = certificate.finished() {
                break status;
            }
            request.accuracy = request
                .accuracy
                .min(inner_accuracy(certificate.gap(), run.tolerance));
            let (omega_aim, aim) = Self::aim(sharing, &point.maxima);
            let aim_theta = sharing.theta(&aim);
            let penalty = self.penalty(&point);
            // G = ω̂ + ν Σ g(a_i, x̂)₊ − P(x), the slope of P along the step
            let over: f64 = point
                .maxima
                .iter()
                .map(|a| (a.value(&aim_theta) - omega_aim).max(0.0))
                .sum();
            let slope = omega_aim + self.nu * over - penalty;
            if -slope <= run.tolerance * point.omega.abs() && !engine.is_concave() {
                break Status::ConvergedUncertified;
            }
            let mut step = 1.0;
            loop {
                engine.keep(&certificate.evaluations().collect::<Vec<_>>());
                let mut trial = point.clone();
                trial.parts.move_towards(&aim, step);
                trial.theta = sharing.theta(&trial.parts);
                trial.omega += step * (omega_aim - point.omega);
                let (evaluation, maxima) =
                    self.evaluate(engine, &trial.theta, &request, run.seed)?;
                trial.maxima = maxima;
                let at = Candidate::new(&trial.parts, &trial.theta, &evaluation);
                certificate.record(at, sharing, step, run)?;
                if self.penalty(&trial) - penalty <= self.sigma * step * slope {
                    point = trial;
                    break;
                }
                if let Some(status) = certificate.finished() {
                    break 'outer status;
                }
                step *= self.backtrack;
                if step < SHORTEST {
                    // P cannot be told apart along the step: solve the inner problems more tightly, or give up.
                    if request.accuracy <= 1e-13 {
                        break 'outer Status::Stalled;
                    }
                    request.accuracy = (0.01 * request.accuracy).max(1e-14);
                    engine.keep(&certificate.evaluations().collect::<Vec<_>>());
                    let (evaluation, maxima) =
                        self.evaluate(engine, &point.theta, &request, run.seed)?;
                    let at = Candidate::new(&point.parts, &point.theta, &evaluation);
                    certificate.record(at, sharing, 0.0, run)?;
                    point.omega = evaluation.lower();
                    point.maxima = maxima;
                    break;
                }
            }
        };
        let status = match status {
            Status::Converged if !engine.is_concave() => Status::ConvergedUncertified,
            other => other,
        };
        Ok(certificate.solution(sharing, status))
    }
}
