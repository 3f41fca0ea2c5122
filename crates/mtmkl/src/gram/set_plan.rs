//! What will be computed for one sample set whose kernels may be between tasks: kernels with the same task kernel are planned together, on
//! all samples or on those of each group by themselves.

use std::sync::Arc;

use super::blocks::Blocks;
use super::build::{Built, check_samples};
use super::composed::Composed;
use super::operator::Operator;
use super::plan::{Options, Plan};
use super::weighted::Weighted;
use crate::data::Samples;
use crate::error::Result;
use crate::kernel::KernelView;
use crate::ledger::Ledger;
use crate::task_kernel::Form;

/// The plans of one sample set.
#[derive(Debug)]
pub(crate) struct SetPlan<'a> {
    samples: &'a Samples,
    index: usize,
    kernels: &'a [KernelView],
    pieces: Vec<Piece>,
}

/// Kernels with the same task kernel.
#[derive(Debug)]
struct Piece {
    /// Their numbers among all kernels.
    members: Vec<usize>,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    Whole(Plan),
    /// The samples of each group.
    Blocks(Vec<(Plan, Vec<usize>)>),
    /// Times this task kernel.
    Weighted(Plan, usize),
}

impl Piece {
    fn plans(&self) -> Vec<&Plan> {
        match &self.shape {
            Shape::Whole(plan) | Shape::Weighted(plan, _) => vec![plan],
            Shape::Blocks(blocks) => blocks.iter().map(|(plan, _)| plan).collect(),
        }
    }
}

impl<'a> SetPlan<'a> {
    /// For the samples of the set with this number.
    pub(crate) fn new(
        samples: &'a Samples,
        index: usize,
        kernels: &'a [KernelView],
        options: Options,
    ) -> Result<Self> {
        let mut names: Vec<Option<&str>> = Vec::new();
        for view in kernels {
            let name = view.between.as_deref();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let piece = |name: Option<&str>| {
            let members: Vec<usize> = (0..kernels.len())
                .filter(|&number| kernels[number].between.as_deref() == name)
                .collect();
            let own: Vec<KernelView> = members.iter().map(|&m| kernels[m].clone()).collect();
            let plan = |samples: &Samples| Plan::new(samples, index, &own, options);
            let kernels = samples.origins().map(|origins| &origins.kernels);
            let between = name.and_then(|name| kernels?.position(name));
            let shape = match (between, samples.origins()) {
                (Some(number), Some(origins)) => match &origins.kernels.kernels()[number].form {
                    Form::Similarity { .. } => Shape::Weighted(plan(samples)?, number),
                    Form::Same { groups, of } => {
                        let mut members: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
                        for (sample, &task) in origins.of.iter().enumerate() {
                            members[of[task]].push(sample);
                        }
                        let blocks = members.into_iter().filter(|own| !own.is_empty());
                        let blocks = blocks.map(|own| Ok((plan(&samples.part(&own))?, own)));
                        Shape::Blocks(blocks.collect::<Result<_>>()?)
                    }
                },
                _ => Shape::Whole(plan(samples)?),
            };
            Ok(Piece { members, shape })
        };
        Ok(Self {
            samples,
            index,
            kernels,
            pieces: names.into_iter().map(piece).collect::<Result<_>>()?,
        })
    }

    fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.pieces.iter().flat_map(Piece::plans)
    }

    /// Bytes that stay.
    pub(crate) fn kept(&self) -> u64 {
        self.plans().map(Plan::kept).fold(0, u64::saturating_add)
    }

    /// Bytes that are needed on the way, beside those that stay: one after the other is computed.
    pub(crate) fn passing(&self) -> u64 {
        let (mut present, mut peak) = (0_u64, 0_u64);
        for plan in self.plans() {
            present = present.saturating_add(plan.kept());
            peak = peak.max(present.saturating_add(plan.passing()));
        }
        peak.saturating_sub(present)
    }

    /// Bytes of a copy on so many of the samples, at most.
    pub(crate) fn part(&self, samples: usize) -> u64 {
        let piece = |piece: &Piece| match &piece.shape {
            Shape::Whole(plan) | Shape::Weighted(plan, _) => plan.part(samples),
            Shape::Blocks(blocks) => {
                let mut blocks: Vec<&(Plan, Vec<usize>)> = blocks.iter().collect();
                blocks.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
                let mut left = samples;
                let bytes = blocks.into_iter().map(|(plan, members)| {
                    let own = members.len().min(left);
                    left -= own;
                    plan.part(own)
                });
                bytes.fold(0, u64::saturating_add)
            }
        };
        self.pieces.iter().map(piece).fold(0, u64::saturating_add)
    }

    /// Computes what is planned, with the threads of the pool that this is called in.
    pub(crate) fn build(&self, ledger: &Ledger) -> Result<Built> {
        check_samples(self.samples, self.index, self.kernels)?;
        let mut is_semidefinite = true;
        let mut build = |plan: &Plan| {
            let built = plan.build(ledger)?;
            is_semidefinite &= built.is_semidefinite;
            Ok::<_, crate::error::Error>(built.operator)
        };
        let mut parts: Vec<Arc<dyn Operator>> = Vec::new();
        let mut places = vec![(0, 0); self.kernels.len()];
        for piece in &self.pieces {
            for (at, &number) in piece.members.iter().enumerate() {
                places[number] = (parts.len(), at);
            }
            parts.push(match (&piece.shape, self.samples.origins()) {
                (Shape::Weighted(plan, number), Some(origins)) => {
                    Arc::new(Weighted::new(build(plan)?, origins.clone(), *number))
                }
                (Shape::Whole(plan) | Shape::Weighted(plan, _), _) => build(plan)?,
                (Shape::Blocks(blocks), _) => {
                    let groups = blocks
                        .iter()
                        .map(|(plan, members)| Ok((build(plan)?, members.clone())))
                        .collect::<Result<_>>()?;
                    Arc::new(Blocks::new(groups, piece.members.len(), ledger))
                }
            });
        }
        Ok(Built {
            operator: Composed::of(parts, places),
            is_semidefinite,
        })
    }
}
