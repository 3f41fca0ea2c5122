//! One iteration of Mehrotra's predictor–corrector method (1992).
//!
//! The predictor is Newton's step to complementarity products of zero. How far it could go tells how much to centre: σ = (μ after / μ)³. The corrector aims at products σμ
//! and takes off them what the predictor's own products would add. Both have the same matrix.

use super::epigraph::{Epigraph, EpigraphStep};
use super::kkt::{Hessian, KktSystem, MOST_REFINEMENTS};
use super::model::{Iterate, Pieces, Workspace};
use super::term::Direction;
use crate::grid::Grid;
use crate::sharing::Parts;

/// How far towards the boundary a step may go.
const TO_BOUNDARY: f64 = 0.99;
/// Shorter steps than this make no progress.
const SHORTEST: f64 = 1e-10;
/// Products are never aimed lower than this part of what they are: at zero the next matrix would be singular.
const LEAST_CENTRING: f64 = 1e-4;
/// By which a step is shortened that leaves a norm's slack behind.
const SHORTENED: f64 = 0.6;

/// A step of everything.
#[derive(Debug)]
struct Step {
    terms: Vec<Direction>,
    epigraphs: Vec<EpigraphStep>,
}

impl Step {
    /// Σ of complementarity products where this step would lead.
    fn complementarity_after(&self, at: &Iterate<'_>, step: f64) -> f64 {
        let terms = at.terms.iter().zip(&self.terms);
        let terms = terms.map(|(term, direction)| term.complementarity_after(direction, step));
        let cuts = at.epigraphs.iter().zip(&self.epigraphs);
        let cuts = cuts.map(|(cuts, direction)| cuts.complementarity_after(direction, step));
        terms.sum::<f64>() + cuts.sum::<f64>()
    }

    /// The longest step that keeps all positive quantities positive, at most 1/TO_BOUNDARY.
    fn longest(&self, at: &Iterate<'_>) -> f64 {
        let terms = at.terms.iter().zip(&self.terms);
        let terms = terms.map(|(term, direction)| term.longest_step(direction));
        let terms = terms.fold(1.0 / TO_BOUNDARY, f64::min);
        at.epigraphs
            .iter()
            .zip(&self.epigraphs)
            .flat_map(|(cuts, direction)| cuts.pairs(direction))
            .filter(|(_, change)| *change < 0.0)
            .fold(terms, |step, (value, change)| step.min(-value / change))
    }

    /// Whether no norm leaves its slack behind.
    fn stays_close(&self, at: &Iterate<'_>, step: f64) -> bool {
        let mut terms = at.terms.iter().zip(&self.terms);
        terms.all(|(term, direction)| term.stays_close(direction, step))
    }

    fn take(&self, at: &mut Iterate<'_>, step: f64) {
        for (term, direction) in at.terms.iter_mut().zip(&self.terms) {
            term.advance(direction, step);
        }
        for (cuts, direction) in at.epigraphs.iter_mut().zip(&self.epigraphs) {
            cuts.advance(direction, step);
        }
    }
}

impl Workspace<'_> {
    /// One predictor–corrector step; `false` when no further progress can be made.
    pub(super) fn iterate(&self, at: &mut Iterate<'_>) -> bool {
        let descent = self.descent(&self.theta(&at.terms));
        let (total, count) = at.complementarity();
        let mu = total / count;
        if !(mu.is_finite() && mu > 0.0) {
            return false;
        }
        let cuts: Vec<Vec<f64>> = at.epigraphs.iter().map(Epigraph::curvature).collect();
        let hessians = self.hessians.iter().zip(&cuts);
        let hessians: Vec<Hessian<'_>> = hessians
            .map(|(&hessian, cuts)| Hessian { cuts, ..hessian })
            .collect();
        let pieces = Pieces::of(&at.terms);
        let Some(system) = self.system(&pieces, &hessians) else {
            return false;
        };
        let Some(predictor) = self.direction(&system, at, &descent, 0.0, None) else {
            return false;
        };
        let after = predictor.complementarity_after(at, predictor.longest(at));
        let sigma = (after / total).clamp(0.0, 1.0).powi(3).max(LEAST_CENTRING);
        let corrector = self.direction(&system, at, &descent, sigma * mu, Some(&predictor));
        let Some(corrector) = corrector else {
            return false;
        };
        let mut step = (TO_BOUNDARY * corrector.longest(at)).min(1.0);
        // A norm is no straight line: do not step so far that it leaves its slack behind.
        while step > SHORTEST && !corrector.stays_close(at, step) {
            step *= SHORTENED;
        }
        if !(step.is_finite() && step > SHORTEST) {
            return false;
        }
        corrector.take(at, step);
        true
    }

    /// Newton's step to products μ, less those of the predictor; `None` when the matrix is numerically singular.
    fn direction(
        &self,
        system: &KktSystem<'_>,
        at: &Iterate<'_>,
        descent: &Grid,
        mu: f64,
        predicted: Option<&Step>,
    ) -> Option<Step> {
        let mut descent = descent.clone();
        for (task, cuts) in at.epigraphs.iter().enumerate() {
            let predicted = predicted.map(|all| &all.epigraphs[task]);
            cuts.add_right(mu, predicted, descent.row_mut(task));
        }
        let right = self.right_hand_sides(&at.terms, &descent, |number, term, own| {
            term.right_hand_side(own, mu, predicted.map(|all| &all.terms[number]))
        });
        // The predictor only says how much to centre, and by which products the corrector is off.
        let refinements = if predicted.is_some() {
            MOST_REFINEMENTS
        } else {
            0
        };
        let dx = system.solve(&right, refinements)?;
        // A constant term does not move.
        let moves = dx.iter().zip(&at.terms).map(|(dx, term)| {
            if term.is_variable() {
                dx.clone()
            } else {
                Grid::zeros(term.x.rows(), term.x.kernels())
            }
        });
        let change = self.model.sharing.theta(&Parts(moves.collect()));
        let terms = at.terms.iter().zip(dx).enumerate();
        let epigraphs = at.epigraphs.iter().enumerate();
        Some(Step {
            terms: terms
                .map(|(number, (term, dx))| {
                    term.direction(dx, mu, predicted.map(|all| &all.terms[number]))
                })
                .collect(),
            epigraphs: epigraphs
                .map(|(task, cuts)| {
                    let predicted = predicted.map(|all| &all.epigraphs[task]);
                    cuts.direction(change.row(task), mu, predicted)
                })
                .collect(),
        })
    }
}
