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

/// Local maxima of the sum kept in E: each costs an oracle call and a look at all others, and those that matter are the first few.
const MOST_MAXIMA: usize = 16;
/// Shorter steps than this change nothing that is told from rounding.
const SHORTEST: f64 = 1e-12;
/// Where steps get no shorter, the inner solver is asked for this part of its accuracy …
const CLOSER: f64 = 0.01;
/// … down to rounding, where looking closer shows nothing.
const CLOSEST: f64 = 1e-14;
const ROUNDING: f64 = 1e-13;
/// A random start is this many random steps from the balanced one, each at most this far towards a vertex: off the boundary, where no task lacks weights.
const RANDOM_STEPS: usize = 3;
const RANDOM_REACH: f64 = 0.8;

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
        for _ in 0..RANDOM_STEPS {
            let costs = (0..shape.tasks * shape.kernels)
                .map(|_| random.uniform())
                .collect();
            let (aim, _) = sharing.maximise(&Grid::from_values(shape.tasks, shape.kernels, costs));
            parts.move_towards(&aim, RANDOM_REACH * random.uniform());
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

/// Where x is aimed at, and what that promises.
#[derive(Debug)]
struct Aim {
    omega: f64,
    parts: Parts,
    /// P(x), and G = ω̂ + ν Σ g(a_i, x̂)₊ − P(x), its slope along the step.
    penalty: f64,
    slope: f64,
}

/// What became of a step.
#[derive(Debug)]
enum Outcome {
    /// x is there now, or is known better.
    Moved,
    /// The run ends.
    Ended(Status),
}

/// The state of a run.
#[derive(Debug)]
struct Search<'a> {
    epf: &'a Epf,
    sharing: &'a Sharing,
    certificate: Certificate,
    request: Request,
}

impl Search<'_> {
    /// Evaluates at θ, and tells the certificate.
    fn look(
        &mut self,
        engine: &mut dyn Engine,
        parts: &Parts,
        theta: &Grid,
        step: f64,
        run: &mut Run<'_>,
    ) -> Result<(f64, Vec<Maximum>)> {
        engine.keep(&self.certificate.evaluations().collect::<Vec<_>>());
        let (evaluation, maxima) = (self.epf).evaluate(engine, theta, &self.request, run.seed)?;
        let at = Candidate::new(parts, theta, &evaluation);
        self.certificate.record(at, self.sharing, step, run)?;
        Ok((evaluation.lower(), maxima))
    }

    fn aim(&self, point: &Point) -> Aim {
        let (omega, parts) = Epf::aim(self.sharing, &point.maxima);
        let theta = self.sharing.theta(&parts);
        let penalty = self.epf.penalty(point);
        let over: f64 = point
            .maxima
            .iter()
            .map(|a| (a.value(&theta) - omega).max(0.0))
            .sum();
        Aim {
            slope: omega + self.epf.nu * over - penalty,
            omega,
            parts,
            penalty,
        }
    }

    /// Watson's rule: the largest of 1, β, β², … that achieves its part of the slope.
    fn step(
        &mut self,
        engine: &mut dyn Engine,
        point: &mut Point,
        aim: &Aim,
        run: &mut Run<'_>,
    ) -> Result<Outcome> {
        let mut step = 1.0;
        loop {
            let mut trial = point.clone();
            trial.parts.move_towards(&aim.parts, step);
            trial.theta = self.sharing.theta(&trial.parts);
            trial.omega += step * (aim.omega - point.omega);
            (_, trial.maxima) = self.look(engine, &trial.parts, &trial.theta, step, run)?;
            if self.epf.penalty(&trial) - aim.penalty <= self.epf.sigma * step * aim.slope {
                *point = trial;
                return Ok(Outcome::Moved);
            }
            if let Some(status) = self.certificate.finished() {
                return Ok(Outcome::Ended(status));
            }
            step *= self.epf.backtrack;
            if step < SHORTEST {
                // P cannot be told apart along the step: solve the inner problems more tightly, or give up.
                if self.request.accuracy <= ROUNDING {
                    return Ok(Outcome::Ended(Status::Stalled));
                }
                self.request.accuracy = (CLOSER * self.request.accuracy).max(CLOSEST);
                (point.omega, point.maxima) =
                    self.look(engine, &point.parts, &point.theta, 0.0, run)?;
                return Ok(Outcome::Moved);
            }
        }
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
        let certificate = Certificate::new(parts.clone(), run);
        let request = Request {
            accuracy: inner_accuracy(1.0, run.tolerance),
            curvature: false,
            stop: certificate.stop.clone(),
            rounds: run.rounds.clone(),
        };
        let mut search = Search {
            epf: self,
            sharing,
            certificate,
            request,
        };
        let theta = sharing.theta(&parts);
        let (omega, maxima) = search.look(engine, &parts, &theta, 0.0, run)?;
        let mut point = Point {
            omega,
            parts,
            theta,
            maxima,
        };
        let status = loop {
            if let Some(status) = search.certificate.finished() {
                break status;
            }
            let wanted = inner_accuracy(search.certificate.gap(), run.tolerance);
            search.request.accuracy = search.request.accuracy.min(wanted);
            let aim = search.aim(&point);
            if -aim.slope <= run.tolerance * point.omega.abs() && !engine.is_concave() {
                break Status::ConvergedUncertified;
            }
            match search.step(engine, &mut point, &aim, run)? {
                Outcome::Moved => {}
                Outcome::Ended(status) => break status,
            }
        };
        let status = match status {
            Status::Converged if !engine.is_concave() => Status::ConvergedUncertified,
            other => other,
        };
        Ok(search.certificate.solution(sharing, status))
    }
}
