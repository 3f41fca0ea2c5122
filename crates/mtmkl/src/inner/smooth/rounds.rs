//! From Newton's steps to an answer: all at once where K(θ) is at hand, in rounds where kernel values are streamed, and what β is worth then.

use super::super::linear_system::streamed_rows;
use super::super::rounding::{linear_term, noise, objective, product_errors, target};
use super::super::{Answer, Curvature, Effort, Here, Inner, Point, Progress, Solved};
use super::{Climbed, Iterate, NEAR, OUT_OF_REACH, Smooth};
use crate::error::Result;
use crate::gram::TaskGrams;
use crate::grid::dot;
use crate::vector::rounding;

impl Inner for Smooth<'_> {
    /// What is not within its interval gets its β where the slopes are known.
    fn start(&self, _beta: &mut [f64]) {}

    fn solve(&mut self, point: &mut Point, here: Here<'_>, effort: &Effort<'_>) -> Result<Solved> {
        let (dual, rows) = (self.dual, here.rows);
        let linear = linear_term(dual, rows.diagonal());
        let product = point.take_product(dual.variables, here);
        let climbed = self.improve(point, here, &linear, product, effort);
        point.images.clear();
        let Climbed { steps, last_gap } = climbed?;
        // Steps add up their rounding.
        let product = rows.multiply(&point.beta);
        let errors = product_errors(dual.variables, &point.beta, rows.diagonal());
        let solved = self.judged(point, here, linear, (product, errors), last_gap, effort)?;
        Ok(Solved { steps, ..solved })
    }

    fn round(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Solved>> {
        let dual = self.dual;
        let rows = streamed_rows(grams, theta, effort);
        let linear = linear_term(dual, rows.diagonal());
        let product = point.known_product(dual.variables, theta);
        let here = Here {
            grams,
            rows: &rows,
            theta,
        };
        let is_feasible = self.is_feasible(&point.beta);
        let is_done = is_feasible && {
            let iterate = self.iterate(point.beta.clone(), product.clone());
            let residual = self.residual(&iterate, &linear);
            let offset = self.offset(&residual, &self.curvatures(&iterate.beta));
            let (gap, _) = self.gap(&iterate, &linear, offset, &vec![0.0; linear.len()]);
            let penalty = dual.penalty(&point.beta);
            let value = dual.scale * (objective(&linear, &point.beta, &product) - penalty);
            let enough = target(
                dual,
                effort,
                &linear,
                &point.beta,
                &product,
                rows.diagonal(),
            );
            progress.is_done(value, gap, enough)
        };
        // Where a round did not lead into Ω, another one does not either.
        let is_lost = !is_feasible && progress.was_outside();
        if !is_done && !is_lost && !effort.stop.now() {
            rows.make_together();
            if rows.are_streamed() {
                // Landmarks of this very θ cost less than the products that they save.
                *self.kept = None;
            }
            let before = point.beta.clone();
            if !effort.stop.now() {
                let climbed = self.improve(point, here, &linear, product.clone(), effort)?;
                progress.note_steps(climbed.steps, linear.len());
                progress.last_gap = climbed.last_gap;
            }
            if point.beta != before {
                return Ok(None);
            }
        }
        if !is_feasible {
            return self.unswept(point, grams, theta, effort).map(Some);
        }
        let errors = point.followed_errors(dual.variables, rows.diagonal());
        let solved = self.judged(
            point,
            here,
            linear,
            (product, errors),
            progress.last_gap,
            effort,
        )?;
        Ok(Some(progress.of(solved)))
    }

    /// β next to 0, where Kβ is nothing.
    fn unswept(
        &mut self,
        point: &mut Point,
        grams: TaskGrams<'_>,
        theta: &[f64],
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        let rows = streamed_rows(grams, theta, effort);
        let n = point.beta.len();
        let mut iterate = self.iterate(vec![0.0; n], vec![0.0; n]);
        self.least(&mut iterate);
        point.beta = iterate.beta;
        point.images.clear();
        let length: f64 = (point.beta.iter().zip(rows.diagonal()))
            .map(|(beta, diagonal)| beta.abs() * diagonal.abs().sqrt())
            .sum();
        if length * length > f64::EPSILON * self.dual.penalty(&point.beta).abs() {
            // An interval that is away from 0.
            point.make_images(grams);
        }
        let linear = linear_term(self.dual, rows.diagonal());
        let known = point.product_where_known(self.dual.variables, theta, rows.diagonal());
        let here = Here {
            grams,
            rows: &rows,
            theta,
        };
        let solved = self.judged(point, here, linear, known, f64::INFINITY, effort)?;
        Ok(solved.without_noise())
    }
}

impl Smooth<'_> {
    fn iterate(&self, beta: Vec<f64>, product: Vec<f64>) -> Iterate {
        Iterate {
            ends: self.ends(beta.len()),
            beta,
            product,
            last_gap: 0.0,
        }
    }

    /// Whether β is within its intervals, and Σβ = s but for rounding.
    fn is_feasible(&self, beta: &[f64]) -> bool {
        let iterate = self.iterate(beta.to_vec(), Vec::new());
        (0..beta.len()).all(|i| iterate.is_inside(i)) && self.has_sum(beta)
    }

    /// Newton steps from this Kβ.
    fn improve(
        &mut self,
        point: &mut Point,
        here: Here<'_>,
        linear: &[f64],
        product: Vec<f64>,
        effort: &Effort<'_>,
    ) -> Result<Climbed> {
        let mut iterate = self.iterate(std::mem::take(&mut point.beta), product);
        self.enter(&mut iterate, linear, here.rows);
        let climbed = self.climb(&mut iterate, linear, here, effort, &point.ledger);
        if iterate.beta.iter().all(|value| value.is_finite()) {
            self.meet_sum(&mut iterate);
        } else {
            self.least(&mut iterate);
        }
        point.beta = iterate.beta;
        Ok(Climbed {
            steps: climbed?,
            last_gap: iterate.last_gap,
        })
    }

    /// What β is worth, Kβ being this within these errors. The factor at hand is of a step that was made at a gap of `last_gap`.
    ///
    /// # Errors
    /// Where Σβ = s is not met: such a β proves nothing.
    fn judged(
        &mut self,
        point: &mut Point,
        here: Here<'_>,
        linear: Vec<f64>,
        (product, errors): (Vec<f64>, Vec<f64>),
        last_gap: f64,
        effort: &Effort<'_>,
    ) -> Result<Solved> {
        let dual = self.dual;
        let (missing, least) = self.missing(&point.beta);
        if missing.is_nan() || missing.abs() > OUT_OF_REACH * least {
            return Err(Self::error(
                "the sum of β is out of reach in double precision: prices (C, weights of classes and samples) are too small or too far apart",
            ));
        }
        let iterate = self.iterate(std::mem::take(&mut point.beta), product);
        let residual = self.residual(&iterate, &linear);
        point.offset = self.offset(&residual, &self.curvatures(&iterate.beta));
        let (plain, more) = self.gap(&iterate, &linear, point.offset, &errors);
        let Iterate { beta, product, .. } = iterate;
        let value = objective(&linear, &beta, &product) - dual.penalty(&beta);
        let near = NEAR.min(100.0 * effort.accuracy) * dual.scale * value.abs();
        point.beta = beta;
        point.set_product(product, here.theta);
        let (gap, gap_noise) = if effort.concave {
            (plain + more, more)
        } else {
            (0.0, 0.0)
        };
        let curvature = if effort.curvature && effort.stop.now() {
            Some(Curvature::none())
        } else if effort.curvature {
            Some(self.curvature(point, here, effort, last_gap <= near)?)
        } else {
            None
        };
        let beta = &point.beta;
        let straight = noise(dual.variables, &linear, beta, here.rows.diagonal());
        let penalty = rounding(beta.len()) * dual.size_of_penalty(beta);
        Ok(Solved {
            constant: dual.scale * (dot(&dual.linear, beta) - dual.penalty(beta)),
            steps: 0,
            noise: dual.scale * (straight + penalty + (point.offset * missing).abs()),
            errors: Vec::new(),
            is_delicate: false,
            answer: Some(Answer {
                gap,
                noise: gap_noise,
                curvature,
            }),
            linear,
        })
    }
}
