//! The engine of kernels that are combinations of fewer, K_m = Σ_j B_mj N_j: θ goes down as B'θ, sensitivities come up as B s.

use std::sync::Arc;

use super::coarse::Coarse;
use super::local::{Local, LocalEngine};
use super::{Engine, Evaluation, Fitted, LocalMaxima, Mixture, Request, Solve};
use crate::error::{Error, Result};
use crate::gram::Grams;
use crate::grid::{Grid, Shape};
use crate::machine::{Conjugate, Dual};
use crate::span::Span;

/// The engine of this machine, of kernels or of what they are combinations of.
#[derive(Debug)]
pub(super) struct Spanned {
    inner: LocalEngine,
    /// B, and for each task what a value of ḡ is off by at most.
    span: Option<(Arc<Span>, Vec<f64>)>,
}

/// What ḡ is off by at most where each value of each kernel is off by at most ε: ½ κ ε (Σ_i |β_i|)² Σ_m θ_m, for the largest β that Ω has; and
/// c κ ε Σ_i |β_i| Σ_m θ_m on top for duals with a diagonal. Infinite where Ω has no largest β.
pub(crate) fn rounding_of_span(dual: &Dual, error: f64, reach: f64) -> (f64, f64) {
    let Conjugate::Box { lower, upper, .. } = &dual.conjugate else {
        return (f64::INFINITY, f64::INFINITY);
    };
    let bounds = lower.iter().zip(upper);
    let size: f64 = bounds.map(|(l, u)| l.abs().max(u.abs())).sum();
    let error = dual.scale * error * reach * (0.5 * size + dual.diagonal.abs()) * size;
    (error, dual.scale * size)
}

impl Spanned {
    pub(super) fn new(mut parts: Local, reach: f64) -> Self {
        let spanned = match &parts.grams[..] {
            [only] => only
                .spanned()
                .map(|(span, nodes)| (Arc::clone(span), Arc::clone(nodes))),
            _ => None,
        };
        let span = spanned.map(|(span, nodes)| {
            let nodes: [Grams; 1] = [nodes];
            parts.grams = Arc::new(nodes);
            let tasks = parts.tasks.iter();
            let errors = tasks.map(|task| rounding_of_span(&task.dual, span.error(), reach).0);
            let errors = errors.collect();
            (span, errors)
        });
        Self {
            inner: LocalEngine::new(parts),
            span,
        }
    }
}

impl Spanned {
    /// The engine on part of the samples. With so many kernels that they are combinations of fewer, a part says nothing of their weights.
    pub(super) fn coarser_self(&self) -> Option<Coarse> {
        match &self.span {
            Some(_) => None,
            None => self.inner.coarser_self(),
        }
    }

    /// Starts from there.
    pub(super) fn adopt(&mut self, coarse: &Coarse) {
        self.inner.adopt(coarse);
    }
}

impl Engine for Spanned {
    fn shape(&self) -> Shape {
        let inner = self.inner.shape();
        let spanned = self.span.as_ref().map(|(span, _)| span.kernels());
        Shape {
            kernels: spanned.unwrap_or(inner.kernels),
            ..inner
        }
    }

    fn is_concave(&self) -> bool {
        self.inner.is_concave()
    }

    fn is_curvature_costly(&self) -> bool {
        self.inner.is_curvature_costly()
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        let Some((span, errors)) = &self.span else {
            return self.inner.evaluate(theta, request);
        };
        let tasks = self.inner.shape().tasks;
        if (theta.rows(), theta.kernels()) != (tasks, span.kernels()) || !theta.is_finite() {
            return Err(Error::param(
                "theta",
                format!("a grid of {} × {} numbers", theta.rows(), theta.kernels()),
                format!("{tasks} × {} finite ones", span.kernels()),
            ));
        }
        let pool = self.inner.pool.clone();
        let gathered =
            pool.install(|| theta.iter_rows().flat_map(|row| span.gather(row)).collect());
        let nodes = Grid::from_values(tasks, span.nodes(), gathered);
        let mut evaluation = self.inner.evaluate(&nodes, request)?;
        let rows = evaluation.sensitivities.iter_rows();
        let spread = pool.install(|| rows.flat_map(|row| span.spread(row)).collect());
        evaluation.sensitivities = Grid::from_values(tasks, span.kernels(), spread);
        for (task, error) in errors.iter().enumerate() {
            // The value itself may be too large, and the maximum larger than this one's.
            evaluation.gaps[task] += 2.0 * error;
            evaluation.noises[task] += error;
        }
        for curvature in evaluation.curvature.iter_mut().flatten() {
            curvature.span = Some(Arc::clone(span));
        }
        Ok(evaluation)
    }

    fn keep(&mut self, numbers: &[usize]) {
        self.inner.keep(numbers);
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        self.inner.machines(numbers)
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        self.inner.mixtures(mixtures)
    }

    fn start_from(&mut self, beta: &[Vec<f64>]) -> Result<()> {
        self.inner.start_from(beta)
    }

    fn coarser(&mut self, solve: &mut Solve<'_>) -> Result<bool> {
        let Some(mut coarse) = self.coarser_self() else {
            return Ok(false);
        };
        solve(&mut coarse.engine)?;
        self.adopt(&coarse);
        Ok(true)
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn local_maxima(&mut self) -> Option<&mut dyn LocalMaxima> {
        match &self.span {
            Some(_) => None,
            None => self.inner.local_maxima(),
        }
    }
}
