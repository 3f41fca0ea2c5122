//! Where a fit starts: from a model of the same tasks, or from fewer samples.

use super::Prepared;
use crate::engine::{Engine, LocalEngine};
use crate::error::Result;
use crate::model::Model;
use crate::run::Run;
use crate::sharing::{Parts, Sharing};
use crate::solver::Solver;

impl Prepared<'_> {
    /// The dual variables of a model of the same tasks. Those at their bounds go along with the bounds, the others stay.
    pub(super) fn adopt(&self, engine: &mut LocalEngine, last: &Model) {
        let machine = last.machine.build();
        for (number, (task, known)) in self.problem.tasks.iter().zip(&last.tasks).enumerate() {
            let set = &last.sets[known.set];
            let mut beta = vec![0.0; set.samples];
            for (&row, &value) in known.support.iter().zip(&known.beta) {
                beta[set.positions[row]] = value;
            }
            if let Some(rows) = task.rows.rows() {
                beta = rows.iter().map(|&row| beta[row]).collect();
            }
            engine.start_at(number, &beta, &machine.dual(task, beta.len()));
        }
    }
}

/// The weights of a model, moved into Ψ; `None` where Ψ is not a sum of the same parts.
pub(super) fn known_start(last: &Model, sharing: &Sharing) -> Option<Parts> {
    let mut parts = sharing.start();
    let mut used = [false; 2];
    for (part, term) in parts.0.iter_mut().zip(sharing.terms()) {
        let common = term.is_common();
        let known = if common { &last.common } else { &last.specific };
        let known = known.as_ref().filter(|known| known.rows() == part.rows())?;
        // With two parts of a kind, only their sum is known.
        if std::mem::replace(&mut used[usize::from(common)], true) {
            return None;
        }
        // From a balanced point as far towards the known one as the set reaches.
        let (mut inside, mut outside) = (0.0, 1.0);
        let reached = |step: f64| {
            let mut moved = part.clone();
            moved.move_towards(known, step);
            (term.violation(&moved) <= 0.0).then_some(moved)
        };
        let mut best = reached(1.0);
        for _ in 0..if best.is_some() { 0 } else { 20 } {
            let middle = 0.5 * (inside + outside);
            match reached(middle) {
                Some(moved) => (best, inside) = (Some(moved), middle),
                None => outside = middle,
            }
        }
        if let Some(best) = best {
            *part = best;
        }
    }
    give_all_some(&mut parts, sharing);
    Some(parts)
}

/// A task without any weight has no curvature to go by.
fn give_all_some(parts: &mut Parts, sharing: &Sharing) {
    let theta = sharing.theta(parts);
    let empty = |task| theta.row(task).iter().all(|&weight| weight <= 0.0);
    if (0..theta.rows()).any(empty) {
        parts.move_towards(&sharing.start(), 0.1);
    }
}

/// The smaller problem is given up after this many passes: wherever it is then is a start.
const COARSE_PASSES: usize = 20;
/// How well the smaller problem is solved: its weights differ from those wanted by more than that.
const COARSE_TOLERANCE: f64 = 3e-3;

/// Weights and dual variables from a quarter of the samples, and those from a sixteenth, as far as that goes.
pub(super) fn coarse_start(
    engine: &mut LocalEngine,
    solver: &dyn Solver,
    sharing: &Sharing,
    run: &Run<'_>,
) -> Result<Option<Parts>> {
    if !engine.is_concave() {
        return Ok(None);
    }
    let Some(mut coarse) = engine.coarse() else {
        return Ok(None);
    };
    let start = coarse_start(&mut coarse.engine, solver, sharing, run)?;
    let mut smaller = Run {
        tolerance: run.tolerance.max(COARSE_TOLERANCE),
        max_passes: run.max_passes.min(COARSE_PASSES),
        ..run.part(&run.stop)
    };
    let solution = solver.solve(&mut coarse.engine, sharing, start.as_ref(), &mut smaller)?;
    engine.adopt(&coarse);
    let mut parts = solution.parts;
    give_all_some(&mut parts, sharing);
    Ok(Some(parts))
}
