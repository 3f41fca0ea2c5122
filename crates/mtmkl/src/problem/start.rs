//! Where a fit starts: from a model of the same tasks, or from fewer samples.

use super::Problem;
use crate::engine::Engine;
use crate::error::Result;
use crate::machine::{Conjugate, Dual};
use crate::model::Model;
use crate::run::Run;
use crate::sharing::{Parts, Reach, Sharing};
use crate::solver::Solver;

/// β of a model of the same tasks, by task and sample. What was at a bound goes along with the bound, the rest stays.
pub(super) fn known_beta(problem: &Problem, last: &Model) -> Vec<Vec<f64>> {
    let (old, new) = (last.machine.build(), problem.spec.machine.build());
    let pairs = problem.learned.iter().zip(&last.tasks);
    pairs
        .map(|(task, known)| {
            let set = &last.sets[known.set];
            let mut beta = vec![0.0; set.samples];
            for (&row, &value) in known.support.iter().zip(&known.beta) {
                beta[set.positions[row]] = value;
            }
            if let Some(rows) = task.rows.rows() {
                beta = rows.iter().map(|&row| beta[row]).collect();
            }
            let count = beta.len();
            follow_bounds(&old.dual(task, count), &new.dual(task, count), &mut beta);
            beta
        })
        .collect()
}

/// What is at a bound of the old Ω moves to the same bound of the new one.
fn follow_bounds(old: &Dual, new: &Dual, beta: &mut [f64]) {
    let (
        Conjugate::Box {
            lower: l, upper: u, ..
        },
        Conjugate::Box { lower, upper, .. },
    ) = (&old.conjugate, &new.conjugate)
    else {
        return;
    };
    // Of two variables of a sample, one for each sign, the bounds of their sum are the sums of their bounds.
    let of_sample = |bounds: &[f64], i: usize| -> f64 {
        let own = new.variables.of_sample(i);
        own.map(|v| bounds[v]).sum()
    };
    for (i, value) in beta
        .iter_mut()
        .enumerate()
        .filter(|(_, value)| **value != 0.0)
    {
        if *value <= of_sample(l, i) {
            *value = of_sample(lower, i);
        } else if *value >= of_sample(u, i) {
            *value = of_sample(upper, i);
        }
    }
}

/// The weights of a model, moved into Ψ; `None` where Ψ is not a sum of as many parts with the same reach.
pub(super) fn known_start(last: &Model, sharing: &Sharing) -> Option<Parts> {
    let mut parts = sharing.start();
    let reaches = sharing.reaches();
    for (number, (part, term)) in parts.0.iter_mut().zip(sharing.terms()).enumerate() {
        // Parts of the same reach follow each other in the terms' order.
        let of_its_kind = |reach: &&Reach| **reach == reaches[number];
        let wanted = reaches.iter().filter(of_its_kind).count();
        let before = reaches[..number].iter().filter(of_its_kind).count();
        let known = last
            .parts()
            .iter()
            .filter(|known| known.reach == reaches[number]);
        if known.clone().count() != wanted {
            return None;
        }
        let known = &known.clone().nth(before)?.weights;
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
    engine: &mut dyn Engine,
    solver: &dyn Solver,
    sharing: &Sharing,
    run: &Run<'_>,
) -> Result<Option<Parts>> {
    if !engine.is_concave() {
        return Ok(None);
    }
    let mut found = None;
    // Where time is short: what it finds has to be certified on all samples, too.
    let stop = run.stop.in_half_the_time();
    engine.coarser(&mut |coarse| {
        let mut smaller = Run {
            tolerance: run.tolerance.max(COARSE_TOLERANCE),
            max_passes: run.max_passes.min(COARSE_PASSES),
            stop: stop.clone(),
            ..run.part()
        };
        let start = coarse_start(coarse, solver, sharing, &smaller)?;
        found = Some(solver.solve(coarse, sharing, start.as_ref(), &mut smaller)?);
        Ok(())
    })?;
    let parts = found.map(|solution| {
        let mut parts = solution.parts;
        give_all_some(&mut parts, sharing);
        parts
    });
    Ok(parts)
}
