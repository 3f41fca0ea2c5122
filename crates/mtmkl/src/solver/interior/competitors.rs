//! Tasks that compete for one budget: most have no weights where the model is least, so it is minimised among the few that do.
//!
//! Ψ = {γ ≥ 0 : Σ_t ‖γᵗ‖_p ≤ a}. Let the model be minimised among the tasks of A, all others at zero, with descent d there. Its Frank–Wolfe gap over all
//! of Ψ is that among A plus a (max_t ‖dᵗ⁺‖_{p*} − max_{t ∈ A} ‖dᵗ⁺‖_{p*})⁺. So a task to which the budget is worth no more than to those of A adds nothing to
//! the gap and stays at zero; the others come into A. (Column generation; the working set of the group lasso.)

use std::sync::Arc;

use super::model::{Minimum, Model, Workspace};
use crate::engine::Curvature;
use crate::grid::{Grid, Shape};
use crate::sharing::{Constraint, Group, Parts, Reach, Sharing};
use crate::solver::bundle::Cut;

/// With no more tasks than this the model is minimised over all of them at once.
const FEW: usize = 64;
/// One in so many tasks competes to begin with.
const FIRST: usize = 16;
/// A gap so many times the one that was asked for is not solved; weights that become zeros may leave half more than that one.
const UNSOLVED: f64 = 2.0;

/// Σ_t ‖γᵗ‖_p ≤ radius, and the tasks that may have weights.
#[derive(Debug)]
pub(super) struct Competitors {
    ball: Group,
    /// Whether each task is in A.
    inside: Vec<bool>,
}

impl Competitors {
    /// A to begin with; none where the model is to be minimised over all tasks at once.
    pub(super) fn of(model: &Model<'_>, constraints: &[Constraint]) -> Option<Self> {
        let tasks = model.theta.rows();
        let (&[Constraint::MixedNorm { p, q, radius }], [Reach::Each]) =
            (constraints, model.sharing.reaches())
        else {
            return None;
        };
        if q != 1.0 || tasks <= FEW {
            return None;
        }
        let ball = Group { p, q, radius };
        let worths = ball.worths(model.sensitivities);
        let inside = vec![false; tasks];
        let mut competitors = Self { ball, inside };
        competitors.admit(&worths, (tasks / FIRST).max(FEW));
        Some(competitors)
    }

    /// So many of those outside to which the budget is worth most come into A; of equal ones the first.
    fn admit(&mut self, worths: &[f64], most: usize) {
        let mut outside: Vec<usize> = (0..worths.len()).filter(|&t| !self.inside[t]).collect();
        outside.sort_by(|&a, &b| worths[b].total_cmp(&worths[a]));
        for task in outside.into_iter().take(most) {
            self.inside[task] = true;
        }
    }

    /// The minimum among A, with A growing until those outside stay at zero.
    pub(super) fn minimise(
        mut self,
        model: &Model<'_>,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Minimum {
        let whole = Workspace::new(model, constraints, model.hessians(&[]));
        loop {
            let tasks: Vec<usize> = (0..self.inside.len()).filter(|&t| self.inside[t]).collect();
            let are_few = 2 * tasks.len() <= self.inside.len();
            let found = are_few.then(|| self.among(&tasks, model, constraints, accuracy, least));
            let Some((parts, weights)) = found.flatten() else {
                return model.minimise_at_once(constraints, accuracy, least);
            };
            let minimum = whole.minimum(parts, weights);
            if minimum.is_solved(accuracy, least) {
                return minimum;
            }
            let (descent, _) = whole.pulled(&model.sharing.theta(&minimum.parts), &minimum.weights);
            let worths = self.ball.worths(&descent);
            let most = tasks.iter().fold(0.0_f64, |most, &t| most.max(worths[t]));
            let outside = (0..worths.len()).filter(|&t| !self.inside[t] && worths[t] > most);
            match outside.count() {
                // What is left of the gap is A's own.
                0 if minimum.gap <= UNSOLVED * accuracy => return minimum,
                // Interior points may do better among all.
                0 => return minimum.or(model.minimise_at_once(constraints, accuracy, least)),
                count => self.admit(&worths, count.min(tasks.len())),
            }
        }
    }

    /// The minimum among these tasks, all others at zero, and the proportions of all cuts there.
    fn among(
        &self,
        tasks: &[usize],
        model: &Model<'_>,
        constraints: &[Constraint],
        accuracy: f64,
        least: f64,
    ) -> Option<(Parts, Vec<Vec<f64>>)> {
        let shape = Shape {
            tasks: tasks.len(),
            kernels: model.theta.kernels(),
        };
        let sharing = Sharing::new("competitors", vec![Arc::new(self.ball)], shape).ok()?;
        let rows = |grid: &Grid| {
            let values = tasks.iter().flat_map(|&task| grid.row(task));
            Grid::from_values(shape.tasks, shape.kernels, values.copied().collect())
        };
        let curvature: Vec<Curvature> = tasks.iter().map(|&t| model.curvature[t].clone()).collect();
        let cuts: Vec<Vec<Cut>> = tasks.iter().map(|&t| model.cuts[t].clone()).collect();
        let damping = model.damping.map(rows);
        let own = Model {
            theta: &rows(model.theta),
            sensitivities: &rows(model.sensitivities),
            curvature: &curvature,
            damping: damping.as_ref(),
            cuts: &cuts,
            sharing: &sharing,
        };
        let found = own.minimise_at_once(constraints, accuracy, least);
        let mut part = Grid::zeros(model.theta.rows(), shape.kernels);
        let mut weights: Vec<Vec<f64>> = (0..part.rows()).map(|t| model.at_zero(t)).collect();
        let solved = found.parts.0[0].iter_rows().zip(found.weights);
        for (&task, (row, own)) in tasks.iter().zip(solved) {
            part.row_mut(task).copy_from_slice(row);
            weights[task] = own;
        }
        Some((Parts(vec![part]), weights))
    }
}

impl Model<'_> {
    /// The proportions of a task's cuts where it has no weights: all of the highest, if one is above the model.
    fn at_zero(&self, task: usize) -> Vec<f64> {
        let cuts = &self.cuts[task];
        let mut proportions = vec![0.0; cuts.len()];
        if !cuts.is_empty() {
            let delta: Vec<f64> = self.theta.row(task).iter().map(|value| -value).collect();
            let values = cuts.iter().map(|cut| cut.value(&delta));
            let highest = values.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((number, _)) = highest.filter(|(_, value)| *value > 0.0) {
                proportions[number] = 1.0;
            }
        }
        proportions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sharing::SharingSpec;

    const KERNELS: usize = 4;

    /// A model of so many tasks whose sensitivities are more or less alike, each with two cuts and some with damping.
    fn check(tasks: usize, p: f64, spread: f64) -> bool {
        let mut random = Random::new(17);
        let shape = Shape {
            tasks,
            kernels: KERNELS,
        };
        let mut numbers = |low: f64, high: f64| {
            let values = (0..tasks * KERNELS).map(|_| low + (high - low) * random.uniform());
            Grid::from_values(tasks, KERNELS, values.collect())
        };
        let sharing = SharingSpec::group(p, 1.0, 2.0).build(shape).unwrap();
        let constraints = sharing.constraints().unwrap();
        let theta = sharing.theta(&sharing.start());
        let (sensitivities, damping) = (numbers(1.0 - spread, 1.0 + spread), numbers(0.0, 0.2));
        let (first, second) = (numbers(-1.0, 1.0), numbers(-1.0, 1.0));
        let factors = [numbers(-1.0, 1.0), numbers(-1.0, 1.0), numbers(-1.0, 1.0)];
        let cuts: Vec<Vec<Cut>> = (0..tasks)
            .map(|t| {
                let slopes = [(first.row(t), -0.1), (second.row(t), 0.05)];
                slopes
                    .map(|(slope, offset)| Cut::new(slope.to_vec(), offset))
                    .to_vec()
            })
            .collect();
        let curvature: Vec<Curvature> = (0..tasks)
            .map(|t| Curvature {
                rank: factors.len(),
                factor: factors
                    .iter()
                    .flat_map(|rows| rows.row(t).to_vec())
                    .collect(),
                span: None,
            })
            .collect();
        let model = Model {
            theta: &theta,
            sensitivities: &sensitivities,
            curvature: &curvature,
            damping: Some(&damping),
            cuts: &cuts,
            sharing: &sharing,
        };
        let (accuracy, least) = (1e-7, 1e-9);
        let whole = model.minimise_at_once(&constraints, accuracy, least);
        let competitors = Competitors::of(&model, &constraints);
        let is_used = competitors.is_some();
        let found = model.minimise(&constraints, accuracy, least);
        let described = format!("{tasks} tasks, p = {p}, spread {spread}");
        assert!(sharing.violation(&found.parts) < 1e-9, "{described}");
        let (gap, other) = (found.gap, whole.gap);
        assert!(
            gap <= 2.0 * accuracy.max(other),
            "{described}: {gap:e}, at once {other:e}"
        );
        eprintln!(
            "{described}: {gap:e} {other:e} {} {}",
            found.value, whole.value
        );
        let off = (found.value - whole.value).abs();
        assert!(off <= 2.0 * (found.gap + whole.gap), "{described}: {off:e}");
        is_used
    }

    #[test]
    fn the_minimum_is_that_among_all_tasks() {
        for p in [1.0, 1.1, 2.0, 4.0, 8.0, 64.0] {
            for spread in [0.0, 1e-6, 0.01, 0.9] {
                assert!(check(300, p, spread));
            }
        }
        assert!(!check(FEW, 2.0, 0.5));
    }
}
