//! Between all tasks and the blocks that step together: parts and evaluations cut by tasks, and put together again.

use super::block::Block;
use crate::engine::Evaluation;
use crate::error::Result;
use crate::grid::{Grid, Shape};
use crate::sharing::{Parts, Sharing};

/// All tasks together, or each on its own where nothing ties them.
pub(super) fn blocks(
    sharing: &Sharing,
    parts: &Parts,
    evaluation: &Evaluation,
) -> Result<Vec<Block>> {
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
pub(super) fn share(evaluation: &Evaluation, number: usize, tasks: usize) -> Evaluation {
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
pub(super) fn joined(blocks: &[Parts]) -> Parts {
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
