//! Gaussians of the same distance, so many that a few of them span the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Precision, Preparation, Problem, ProblemSpec};
use crate::engine::rounding_of_span;
use crate::error::Result;
use crate::gram::Storage;
use crate::grid::Grid;
use crate::kernel::{Base, Columns, Gaussian, KernelView};
use crate::sharing::Constraint;
use crate::span::{Span, SpanBuilder, nodes_for};

/// A family of fewer kernels is not worth it.
const LEAST_FAMILY: usize = 512;
/// Nor one with fewer than this many times its nodes.
const LEAST_SAVED: usize = 4;
/// What a value of an interpolated kernel is off by at most, before rounding.
const ERROR: f64 = 1e-15;
/// What that may do to ḡ, as a part of κ times the largest Σ|β|.
const MOST_ERROR: f64 = 1e-7;

/// What a kernel is a function of.
fn key(base: &Base) -> Option<String> {
    match base {
        Base::Of(statistic) => Some(statistic.key()),
        Base::Own | Base::Given => None,
    }
}

/// γ, where a kernel is exp(−γ ‖x − z‖²) and nothing else.
fn gamma(view: &KernelView) -> Option<f64> {
    let (factor, gamma) = view.kernel.exponential()?;
    let is_distance = key(&view.kernel.base()) == key(&Base::squared_distance());
    let is_plain = is_distance && factor == 1.0 && view.between.is_none();
    (is_plain && view.kernel.is_bounded() && view.kernel.is_positive_definite()).then_some(gamma)
}

impl Problem {
    /// How the kernels are combinations of fewer, and of which; nothing where that is not worth it or not provided for.
    pub(super) fn span(
        &self,
        preparation: &Preparation,
    ) -> Result<Option<(Span, Vec<KernelView>)>> {
        let is_mapped = matches!(preparation.storage, None | Some(Storage::Mapped));
        let kernels = &self.spec.kernels;
        let is_plain = preparation.precision == Precision::Double && is_mapped;
        if kernels.len() < LEAST_FAMILY || !is_plain || !self.may_be_spanned(ERROR) {
            return Ok(None);
        }
        let mut place: BTreeMap<&Columns, usize> = BTreeMap::new();
        let mut families: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
        for (number, view) in kernels.iter().enumerate() {
            let known = match gamma(view) {
                Some(_) => *place.entry(&view.columns).or_insert(families.len()),
                None => families.len(),
            };
            if known == families.len() {
                families.push((Vec::new(), Vec::new()));
            }
            families[known].0.push(number);
            families[known].1.extend(gamma(view));
        }
        let (mut builder, mut nodes) = (SpanBuilder::default(), Vec::new());
        let mut is_worth = false;
        for (members, gammas) in families {
            let is_large = members.len() >= LEAST_FAMILY && gammas.len() == members.len();
            if is_large && members.len() >= LEAST_SAVED * nodes_for(&gammas, ERROR) {
                is_worth = true;
                let columns = &kernels[members[0]].columns;
                for gamma in builder.add_family(members, &gammas, ERROR) {
                    let name = format!("node {}", nodes.len());
                    let view = KernelView::new(name, Gaussian::from_gamma(gamma)?);
                    nodes.push(view.on(columns.clone()));
                }
            } else {
                for kernel in members {
                    builder.add_single(kernel);
                    nodes.push(kernels[kernel].clone());
                }
            }
        }
        let span = builder.finish(ERROR);
        let is_worth = is_worth && self.may_be_spanned(span.error());
        Ok(is_worth.then_some((span, nodes)))
    }

    /// Whether machine and sharing go with kernels that are off by this: one task, a ball of weights, a bounded Ω.
    pub(super) fn may_be_spanned(&self, error: f64) -> bool {
        let constraints = self.choice.sharing.constraints().unwrap_or_default();
        let is_ball = matches!(
            constraints[..],
            [Constraint::MixedNorm { .. } | Constraint::RowNorm { .. }]
        );
        if self.tasks.len() != 1 || self.sets.len() != 1 || !is_ball {
            return false;
        }
        let reach = self.reach();
        self.learned.iter().all(|task| {
            let count = task.count(self.sets[task.samples].count());
            let dual = self.choice.machine.dual(task, count);
            let (off, size) = rounding_of_span(&dual, error, reach);
            off <= MOST_ERROR * size && size.is_finite()
        })
    }

    /// max over θ in Ψ of Σ_m θ_m
    pub(super) fn reach(&self) -> f64 {
        let shape = self.shape();
        let ones = Grid::filled(shape.tasks, shape.kernels, 1.0);
        self.choice.sharing.maximise(&ones).1
    }

    /// The same problem with other kernels.
    pub(super) fn with_kernels(&self, kernels: Vec<KernelView>) -> Self {
        let spec = &self.spec;
        Self {
            spec: Arc::new(ProblemSpec {
                kernels,
                machine: spec.machine.clone(),
                sharing: spec.sharing.clone(),
                solver: spec.solver.clone(),
                normalize: spec.normalize,
                target_scale: spec.target_scale,
                shrinking: spec.shrinking,
            }),
            ..self.clone()
        }
    }
}
