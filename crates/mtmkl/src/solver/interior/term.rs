//! One term of the sharing inside the interior point method: its variables, slacks and multipliers, its share of the Newton
//! matrix, and how it moves.
//!
//! x ≥ 0 with multipliers z, x ≤ u with multipliers w where there is such a bound, N(x) + v = c with multipliers λ. Newton's method on
//!
//! −∇q + z − w − λ∇N = 0,  x z = μ,  (u − x) w = μ,  v λ = μ
//!
//! with everything but dx eliminated leaves diag(z/x + w/(u − x)) and what [`super::barrier`] says.

use super::barrier::{Barrier, barrier};
use super::kkt::{Border, RowMatrix};
use crate::grid::{Grid, dot};
use crate::linalg::axpy;
use crate::sharing::Constraint;

/// The iterate of one term: variables, slacks and multipliers.
#[derive(Debug, Clone)]
pub(super) struct TermState {
    constraint: Box<dyn Barrier>,
    pub(super) x: Grid,
    /// Multipliers of x ≥ 0.
    z: Grid,
    /// Multipliers of x ≤ upper; an empty grid without such a bound.
    w: Grid,
    /// v, one per inequality.
    slack: Vec<f64>,
    /// Their multipliers.
    lambda: Vec<f64>,
    /// What all products were to begin with.
    first_product: f64,
}

/// A step of one term.
#[derive(Debug, Clone)]
pub(super) struct Direction {
    x: Grid,
    z: Grid,
    w: Grid,
    slack: Vec<f64>,
    lambda: Vec<f64>,
}

/// What N(x) + v may exceed the bound by to begin with, as a part of it: an interior point method need not follow curved constraints closely while it is far
/// from the end. Beyond p = 2 that part falls with the average product μ, as (μ/μ₀)^{(p−2)/2}. A weight far below its norm costs next to nothing along ∇N and ∇²N, and with
/// p = 8 and above steps would raise it beyond all others, over and over, were they free to leave the norm behind until the end. (With p = 2 they are: held close, ten
/// thousand tasks took up to five times as long.)
const FREE_RESIDUAL: f64 = 0.1;
/// This part of what a step would take off the residual, were N a straight line, it must take off (Armijo's condition).
const SUFFICIENT: f64 = 0.1;

/// The largest step with value + step · sign · change ≥ 0.
fn ratio(values: &[f64], changes: &[f64], sign: f64) -> f64 {
    values
        .iter()
        .zip(changes)
        .filter(|(_, change)| sign * **change < 0.0)
        .fold(f64::INFINITY, |step, (value, change)| {
            step.min(-value / (sign * change))
        })
}

impl TermState {
    pub(super) fn new(constraint: &Constraint, start: Grid) -> Self {
        let (rows, kernels) = (start.rows(), start.kernels());
        let mut constraint = barrier(constraint, rows, kernels);
        let mut x = start;
        constraint.enter(&mut x);
        constraint.move_to(&x);
        let bounded_rows = if constraint.upper().is_some() {
            rows
        } else {
            0
        };
        let values = &constraint.linearised().values;
        let bound = constraint.bound();
        Self {
            slack: values.iter().map(|value| bound - value).collect(),
            lambda: vec![0.0; values.len()],
            first_product: 0.0,
            z: Grid::zeros(rows, kernels),
            w: Grid::zeros(bounded_rows, kernels),
            x,
            constraint,
        }
    }

    pub(super) fn is_variable(&self) -> bool {
        self.constraint.is_variable()
    }

    /// All complementarity products become μ.
    pub(super) fn start_multipliers(&mut self, mu: f64) {
        self.first_product = mu;
        for (z, x) in self.z.values_mut().iter_mut().zip(self.x.values()) {
            *z = mu / x;
        }
        for (lambda, slack) in self.lambda.iter_mut().zip(&self.slack) {
            *lambda = mu / slack;
        }
        let upper_slack = self.upper_slack();
        for (w, slack) in self.w.values_mut().iter_mut().zip(upper_slack) {
            *w = mu / slack;
        }
    }

    /// upper − x, where there is an upper bound.
    fn upper_slack(&self) -> Vec<f64> {
        let x = self.x.values().iter();
        match self.constraint.upper() {
            Some(upper) => x.map(|value| upper - value).collect(),
            None => Vec::new(),
        }
    }

    /// N(x) + v − c of one inequality.
    fn residual(&self, inequality: usize) -> f64 {
        let value = self.constraint.linearised().values[inequality];
        value + self.slack[inequality] - self.constraint.bound()
    }

    /// Σ of complementarity products, and how many there are.
    pub(super) fn complementarity(&self) -> (f64, f64) {
        if !self.is_variable() {
            return (0.0, 0.0);
        }
        let total = dot(self.x.values(), self.z.values())
            + dot(&self.slack, &self.lambda)
            + dot(&self.upper_slack(), self.w.values());
        (
            total,
            (self.x.values().len() + self.slack.len() + self.w.values().len()) as f64,
        )
    }

    /// The same sum after this step.
    pub(super) fn complementarity_after(&self, direction: &Direction, step: f64) -> f64 {
        let products = |a: &[f64], da: &[f64], b: &[f64], db: &[f64], sign: f64| -> f64 {
            let pairs = a.iter().zip(da).zip(b.iter().zip(db));
            pairs
                .map(|((a, da), (b, db))| (a + sign * step * da) * (b + step * db))
                .sum()
        };
        let (d, x) = (direction, direction.x.values());
        products(self.x.values(), x, self.z.values(), d.z.values(), 1.0)
            + products(&self.slack, &d.slack, &self.lambda, &d.lambda, 1.0)
            + products(&self.upper_slack(), x, self.w.values(), d.w.values(), -1.0)
    }

    /// The term's part of the Newton matrix: per row a diagonal and borders; and the border over all rows, where there is one.
    pub(super) fn matrix(&self) -> (Vec<RowMatrix>, Option<Border>) {
        if !self.is_variable() {
            return (Vec::new(), None);
        }
        let kernels = self.x.kernels();
        let upper_slack = self.upper_slack();
        let mut rows: Vec<RowMatrix> = (0..self.x.rows())
            .map(|row| {
                let (x, z) = (self.x.row(row), self.z.row(row));
                let mut diagonal: Vec<f64> = (0..kernels).map(|m| z[m] / x[m]).collect();
                if !upper_slack.is_empty() {
                    for m in 0..kernels {
                        diagonal[m] += self.w[(row, m)] / upper_slack[row * kernels + m];
                    }
                }
                RowMatrix {
                    diagonal,
                    borders: Vec::new(),
                }
            })
            .collect();
        let border = (self.constraint).add_curvature(&self.x, &self.lambda, &self.slack, &mut rows);
        (rows, border)
    }

    /// −∇q + μ/x − μ/(upper − x) − ((μ + λ r)/v) ∇N, with the predictor's products taken off μ.
    pub(super) fn right_hand_side(
        &self,
        descent: &Grid,
        mu: f64,
        predicted: Option<&Direction>,
    ) -> Grid {
        let mut right = descent.clone();
        if !self.is_variable() {
            return right;
        }
        let kernels = self.x.kernels();
        for row in 0..self.x.rows() {
            let number = self.constraint.inequality_of(row);
            let pull = match self.slack.get(number) {
                None => 0.0,
                Some(slack) => {
                    let product = predicted.map_or(0.0, |p| p.slack[number] * p.lambda[number]);
                    (mu - product + self.lambda[number] * self.residual(number)) / slack
                }
            };
            let out = right.row_mut(row);
            if pull != 0.0 {
                axpy(-pull, self.constraint.linearised().gradient.row(row), out);
            }
            let x = self.x.row(row);
            match predicted {
                None => {
                    for m in 0..kernels {
                        out[m] += mu / x[m];
                    }
                }
                Some(predicted) => {
                    let (dx, dz) = (predicted.x.row(row), predicted.z.row(row));
                    for m in 0..kernels {
                        out[m] += (mu - dx[m] * dz[m]) / x[m];
                    }
                }
            }
        }
        for (at, slack) in self.upper_slack().into_iter().enumerate() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
            right.values_mut()[at] -= (mu + product) / slack;
        }
        right
    }

    /// The other quantities' steps that go with dx.
    pub(super) fn direction(&self, dx: Grid, mu: f64, predicted: Option<&Direction>) -> Direction {
        let kernels = self.x.kernels();
        if !self.is_variable() {
            let none = || Grid::zeros(0, kernels);
            return Direction {
                x: none(),
                z: none(),
                w: none(),
                slack: Vec::new(),
                lambda: Vec::new(),
            };
        }
        let (x, z) = (self.x.values(), self.z.values());
        let mut dz = Grid::zeros(self.x.rows(), kernels);
        let pairs = dz.values_mut().iter_mut().zip(dx.values());
        for ((dz, dx), (x, z)) in pairs.zip(x.iter().zip(z)) {
            *dz = (mu - z * dx) / x - z;
        }
        if let Some(predicted) = predicted {
            let products = predicted.x.values().iter().zip(predicted.z.values());
            for (dz, ((px, pz), x)) in dz.values_mut().iter_mut().zip(products.zip(x)) {
                *dz -= px * pz / x;
            }
        }
        let upper_slack = self.upper_slack();
        let mut dw = Grid::zeros(self.w.rows(), kernels);
        for at in 0..upper_slack.len() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
            let w = self.w.values()[at];
            dw.values_mut()[at] = (mu + product + w * dx.values()[at]) / upper_slack[at] - w;
        }
        let (slack, lambda) = self.slack_direction(&dx, mu, predicted);
        Direction {
            x: dx,
            z: dz,
            w: dw,
            slack,
            lambda,
        }
    }

    /// dv = −∇N'dx − r and dλ = (μ − λ dv)/v − λ.
    fn slack_direction(
        &self,
        dx: &Grid,
        mu: f64,
        predicted: Option<&Direction>,
    ) -> (Vec<f64>, Vec<f64>) {
        let mut along = vec![0.0; self.slack.len()];
        if !along.is_empty() {
            let gradient = &self.constraint.linearised().gradient;
            for row in 0..self.x.rows() {
                let inequality = self.constraint.inequality_of(row);
                along[inequality] += dot(gradient.row(row), dx.row(row));
            }
        }
        let slack: Vec<f64> = along
            .iter()
            .enumerate()
            .map(|(number, along)| -along - self.residual(number))
            .collect();
        let lambda = (0..slack.len())
            .map(|number| {
                let product = predicted.map_or(0.0, |p| p.slack[number] * p.lambda[number]);
                (mu - product - self.lambda[number] * slack[number]) / self.slack[number]
                    - self.lambda[number]
            })
            .collect();
        (slack, lambda)
    }

    /// The longest step of this term that keeps all positive quantities positive.
    pub(super) fn longest_step(&self, direction: &Direction) -> f64 {
        [
            ratio(self.x.values(), direction.x.values(), 1.0),
            ratio(self.z.values(), direction.z.values(), 1.0),
            ratio(&self.slack, &direction.slack, 1.0),
            ratio(&self.lambda, &direction.lambda, 1.0),
            ratio(&self.upper_slack(), direction.x.values(), -1.0),
            ratio(self.w.values(), direction.w.values(), 1.0),
        ]
        .into_iter()
        .fold(f64::INFINITY, f64::min)
    }

    /// What N(x) + v may exceed the bound by.
    fn free_residual(&self) -> f64 {
        let (total, count) = self.complementarity();
        let left = (total / count / self.first_product).min(1.0);
        let share = left.powf(0.5 * (self.constraint.exponent() - 2.0).max(0.0));
        FREE_RESIDUAL * share * self.constraint.bound()
    }

    /// Whether after this step N(x) + v − c is at most v or a part of c that is free, or at least smaller than it was, by a part of what the
    /// step would take off it if N were a straight line, however short the step.
    pub(super) fn stays_close(&self, direction: &Direction, step: f64) -> bool {
        if self.slack.is_empty() {
            return true;
        }
        let (bound, free) = (self.constraint.bound(), self.free_residual());
        let mut x = self.x.clone();
        axpy(step, direction.x.values(), x.values_mut());
        let values = self.constraint.values(&x);
        values.iter().enumerate().all(|(number, value)| {
            let slack = self.slack[number] + step * direction.slack[number];
            let after = value + slack - bound;
            let fallen = (1.0 - SUFFICIENT * step) * self.residual(number);
            after <= slack.max(fallen).max(free)
        })
    }

    pub(super) fn advance(&mut self, direction: &Direction, step: f64) {
        axpy(step, direction.x.values(), self.x.values_mut());
        axpy(step, direction.z.values(), self.z.values_mut());
        axpy(step, direction.w.values(), self.w.values_mut());
        axpy(step, &direction.slack, &mut self.slack);
        axpy(step, &direction.lambda, &mut self.lambda);
        self.constraint.move_to(&self.x);
    }

    /// x moved into the set: norms scaled back where the iterate is still outside, sums made exact.
    pub(super) fn feasible(&self) -> Grid {
        let mut x = self.x.clone();
        self.constraint.project(&mut x);
        x
    }

    /// Zeroes entries of a feasible point below the threshold (relative to the term's size), keeping norms and sums.
    pub(super) fn snap(&self, x: &mut Grid, threshold: f64) {
        self.constraint.snap(x, threshold);
    }
}

#[cfg(test)]
mod tests;
