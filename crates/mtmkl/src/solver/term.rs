//! One term of the sharing inside the interior point method: its variables, slacks and multipliers, its share of the Newton
//! matrix, and how it moves.

use super::model::TO_BOUNDARY;
use super::system::{Extra, RowMatrix};
use crate::grid::{Grid, dot};
use crate::sharing::Constraint;

/// The longest step that keeps all positive quantities positive, at most 1/TO_BOUNDARY.
pub(super) fn longest_step(terms: &[TermState], directions: &[Direction]) -> f64 {
    terms
        .iter()
        .zip(directions)
        .fold(1.0 / TO_BOUNDARY, |step, (term, direction)| {
            [
                ratio(term.x.values(), direction.x.values(), 1.0),
                ratio(term.z.values(), direction.z.values(), 1.0),
                ratio(&term.slack, &direction.slack, 1.0),
                ratio(&term.lambda, &direction.lambda, 1.0),
                ratio(&term.room(), direction.x.values(), -1.0),
                ratio(term.w.values(), direction.w.values(), 1.0),
            ]
            .into_iter()
            .fold(step, f64::min)
        })
}

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

/// What constrains a term beside x ≥ 0.
#[derive(Debug, Clone)]
enum Kind {
    /// ‖x_row‖_p + v = radius
    RowNorm { p: f64, radius: f64 },
    /// (Σ_rows ‖x_row‖_p^q)^{1/q} + v = radius
    MixedNorm { p: f64, q: f64, radius: f64 },
    /// Σ x_row = total, x ≤ upper
    RowSum { total: f64, upper: Option<f64> },
    /// ½ ‖x_row − centre‖² + v = ½ radius²
    RowBall { centre: Vec<f64>, radius: f64 },
    /// nothing to choose
    Constant,
}

/// The iterate of one term: variables, slacks and multipliers.
#[derive(Debug, Clone)]
pub(super) struct TermState {
    kind: Kind,
    pub(super) x: Grid,
    /// Multipliers of x ≥ 0.
    z: Grid,
    /// Multipliers of x ≤ upper; an empty grid without such a bound.
    w: Grid,
    /// Slacks v of the norm or ball constraints, one per constraint.
    slack: Vec<f64>,
    /// Their multipliers.
    lambda: Vec<f64>,
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

/// ‖x‖_p for x > 0 and its gradient (x/N)^{p−1}.
fn norm_and_gradient(x: &[f64], p: f64) -> (f64, Vec<f64>) {
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    if p == 1.0 {
        return (x.iter().sum(), vec![1.0; x.len()]);
    }
    let norm = largest
        * x.iter()
            .map(|value| (value / largest).powf(p))
            .sum::<f64>()
            .powf(1.0 / p);
    (
        norm,
        x.iter().map(|value| (value / norm).powf(p - 1.0)).collect(),
    )
}

impl TermState {
    pub(super) fn new(constraint: &Constraint, start: Grid) -> Self {
        let (rows, kernels) = (start.rows(), start.kernels());
        let mut x = start;
        let kind = match constraint {
            // With one row there is nothing to mix.
            Constraint::MixedNorm { p, radius, .. } if rows == 1 => Kind::RowNorm {
                p: *p,
                radius: *radius,
            },
            Constraint::MixedNorm { p, q, radius } => Kind::MixedNorm {
                p: *p,
                q: *q,
                radius: *radius,
            },
            Constraint::RowNorm { p, radius } => Kind::RowNorm {
                p: *p,
                radius: *radius,
            },
            // A bound that leaves only the equal weights leaves nothing to choose.
            Constraint::RowSum {
                total,
                upper: Some(upper),
            } if upper * kernels as f64 <= total * (1.0 + 1e-9) => Kind::Constant,
            Constraint::RowSum { .. } if kernels == 1 => Kind::Constant,
            Constraint::RowSum { total, upper } => Kind::RowSum {
                total: *total,
                upper: *upper,
            },
            Constraint::RowBall { centre, radius } => Kind::RowBall {
                centre: centre.clone(),
                radius: *radius,
            },
            Constraint::Constant => Kind::Constant,
        };
        let constraints = match &kind {
            Kind::RowNorm { .. } | Kind::RowBall { .. } => rows,
            Kind::MixedNorm { .. } => 1,
            _ => 0,
        };
        match &kind {
            // Start points lie on the sphere: go inside.
            Kind::RowNorm { .. } | Kind::MixedNorm { .. } => {
                x.values_mut().iter_mut().for_each(|value| *value *= 0.5);
            }
            Kind::RowBall { radius, .. } => {
                let least = 0.3 * radius / (kernels as f64).sqrt();
                x.values_mut()
                    .iter_mut()
                    .for_each(|value| *value = value.max(least));
            }
            _ => {}
        }
        let w = match &kind {
            Kind::RowSum { upper: Some(_), .. } => Grid::zeros(rows, kernels),
            _ => Grid::zeros(0, kernels),
        };
        let mut state = Self {
            kind,
            z: Grid::zeros(rows, kernels),
            w,
            x,
            slack: vec![0.0; constraints],
            lambda: vec![0.0; constraints],
        };
        state.slack = state
            .residuals()
            .into_iter()
            .map(|residual| -residual)
            .collect();
        state
    }

    pub(super) fn is_variable(&self) -> bool {
        !matches!(self.kind, Kind::Constant)
    }

    pub(super) fn start_multipliers(&mut self, mu: f64) {
        for (z, x) in self.z.values_mut().iter_mut().zip(self.x.values()) {
            *z = mu / x;
        }
        for (lambda, slack) in self.lambda.iter_mut().zip(&self.slack) {
            *lambda = mu / slack;
        }
        let room = self.room();
        for (w, room) in self.w.values_mut().iter_mut().zip(room) {
            *w = mu / room;
        }
    }

    /// upper − x, where there is an upper bound.
    fn room(&self) -> Vec<f64> {
        match self.kind {
            Kind::RowSum {
                upper: Some(upper), ..
            } => self.x.values().iter().map(|value| upper - value).collect(),
            _ => Vec::new(),
        }
    }

    /// N(x) + v − radius, per constraint.
    fn residuals(&self) -> Vec<f64> {
        let slack = |number: usize| self.slack.get(number).copied().unwrap_or(0.0);
        match &self.kind {
            Kind::RowNorm { p, radius } => self
                .x
                .iter_rows()
                .enumerate()
                .map(|(row, x)| norm_and_gradient(x, *p).0 + slack(row) - radius)
                .collect(),
            Kind::MixedNorm { p, q, radius } => {
                let norms: Vec<f64> = self
                    .x
                    .iter_rows()
                    .map(|x| norm_and_gradient(x, *p).0)
                    .collect();
                vec![norm_and_gradient(&norms, *q).0 + slack(0) - radius]
            }
            Kind::RowBall { centre, radius } => self
                .x
                .iter_rows()
                .enumerate()
                .map(|(row, x)| {
                    let square: f64 = x.iter().zip(centre).map(|(a, b)| (a - b) * (a - b)).sum();
                    0.5 * square + slack(row) - 0.5 * radius * radius
                })
                .collect(),
            Kind::RowSum { .. } | Kind::Constant => Vec::new(),
        }
    }

    /// ∇N, in the shape of x; zero where there is no norm.
    fn gradient(&self) -> Grid {
        let mut gradient = Grid::zeros(self.x.rows(), self.x.kernels());
        match &self.kind {
            Kind::RowNorm { p, .. } => {
                for row in 0..self.x.rows() {
                    gradient
                        .row_mut(row)
                        .copy_from_slice(&norm_and_gradient(self.x.row(row), *p).1);
                }
            }
            Kind::MixedNorm { p, q, .. } => {
                let parts: Vec<(f64, Vec<f64>)> = self
                    .x
                    .iter_rows()
                    .map(|x| norm_and_gradient(x, *p))
                    .collect();
                let norms: Vec<f64> = parts.iter().map(|part| part.0).collect();
                let (_, between) = norm_and_gradient(&norms, *q);
                for (row, (_, inside)) in parts.iter().enumerate() {
                    for (out, value) in gradient.row_mut(row).iter_mut().zip(inside) {
                        *out = between[row] * value;
                    }
                }
            }
            Kind::RowBall { centre, .. } => {
                for row in 0..self.x.rows() {
                    let x = self.x.row(row).to_vec();
                    for ((out, a), b) in gradient.row_mut(row).iter_mut().zip(&x).zip(centre) {
                        *out = a - b;
                    }
                }
            }
            Kind::RowSum { .. } | Kind::Constant => {}
        }
        gradient
    }

    /// Which constraint a row belongs to.
    fn constraint_of(&self, row: usize) -> usize {
        if matches!(self.kind, Kind::MixedNorm { .. }) {
            0
        } else {
            row
        }
    }

    /// Σ of complementarity products, and how many there are.
    pub(super) fn complementarity(&self) -> (f64, f64) {
        if !self.is_variable() {
            return (0.0, 0.0);
        }
        let total = dot(self.x.values(), self.z.values())
            + dot(&self.slack, &self.lambda)
            + dot(&self.room(), self.w.values());
        (
            total,
            (self.x.values().len() + self.slack.len() + self.w.values().len()) as f64,
        )
    }

    /// The term's part of the Newton matrix: per row a diagonal, rank-one pieces and sums; and what couples the rows.
    pub(super) fn matrix(&self) -> (Vec<RowMatrix>, Option<Extra>) {
        if !self.is_variable() {
            return (Vec::new(), None);
        }
        let kernels = self.x.kernels();
        let room = self.room();
        let mut rows: Vec<RowMatrix> = (0..self.x.rows())
            .map(|row| {
                let (x, z) = (self.x.row(row), self.z.row(row));
                let mut diagonal: Vec<f64> = (0..kernels).map(|m| z[m] / x[m]).collect();
                if !room.is_empty() {
                    for m in 0..kernels {
                        diagonal[m] += self.w[(row, m)] / room[row * kernels + m];
                    }
                }
                RowMatrix {
                    diagonal,
                    extras: Vec::new(),
                }
            })
            .collect();
        let mut coupling = None;
        match &self.kind {
            Kind::RowNorm { p, .. } => {
                for (row, matrix) in rows.iter_mut().enumerate() {
                    let (norm, gradient) = norm_and_gradient(self.x.row(row), *p);
                    let lambda = self.lambda[row];
                    add_norm_diagonal(&mut matrix.diagonal, self.x.row(row), norm, *p, lambda);
                    let factor = lambda / self.slack[row] - lambda * (p - 1.0) / norm;
                    matrix.extras.push(Extra {
                        vector: gradient,
                        inverse: factor.recip(),
                    });
                }
            }
            Kind::MixedNorm { p, q, .. } => {
                let parts: Vec<(f64, Vec<f64>)> = self
                    .x
                    .iter_rows()
                    .map(|x| norm_and_gradient(x, *p))
                    .collect();
                let norms: Vec<f64> = parts.iter().map(|part| part.0).collect();
                let (total, between) = norm_and_gradient(&norms, *q);
                let lambda = self.lambda[0];
                for (row, matrix) in rows.iter_mut().enumerate() {
                    let share = lambda * between[row];
                    add_norm_diagonal(&mut matrix.diagonal, self.x.row(row), norms[row], *p, share);
                    let factor = share * (q - p) / norms[row];
                    if factor != 0.0 {
                        matrix.extras.push(Extra {
                            vector: parts[row].1.clone(),
                            inverse: factor.recip(),
                        });
                    }
                }
                let factor = lambda / self.slack[0] - lambda * (q - 1.0) / total;
                coupling = Some(Extra {
                    vector: self.gradient().values().to_vec(),
                    inverse: factor.recip(),
                });
            }
            Kind::RowSum { .. } => {
                for matrix in &mut rows {
                    matrix.extras.push(Extra {
                        vector: vec![1.0; kernels],
                        inverse: 0.0,
                    });
                }
            }
            Kind::RowBall { .. } => {
                let gradient = self.gradient();
                for (row, matrix) in rows.iter_mut().enumerate() {
                    matrix
                        .diagonal
                        .iter_mut()
                        .for_each(|value| *value += self.lambda[row]);
                    let factor = self.lambda[row] / self.slack[row];
                    matrix.extras.push(Extra {
                        vector: gradient.row(row).to_vec(),
                        inverse: factor.recip(),
                    });
                }
            }
            Kind::Constant => {}
        }
        (rows, coupling)
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
        let gradient = self.gradient();
        let residuals = self.residuals();
        let room = self.room();
        let kernels = self.x.kernels();
        for row in 0..self.x.rows() {
            let constraint = self.constraint_of(row);
            let pull = match self.slack.get(constraint) {
                None => 0.0,
                Some(slack) => {
                    let product =
                        predicted.map_or(0.0, |p| p.slack[constraint] * p.lambda[constraint]);
                    (mu - product + self.lambda[constraint] * residuals[constraint]) / slack
                }
            };
            for m in 0..kernels {
                let at = row * kernels + m;
                let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.z.values()[at]);
                let mut value = (mu - product) / self.x.values()[at] - pull * gradient.values()[at];
                if !room.is_empty() {
                    let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
                    value -= (mu + product) / room[at];
                }
                right.values_mut()[at] += value;
            }
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
        let mut dz = Grid::zeros(self.x.rows(), kernels);
        for at in 0..dx.values().len() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.z.values()[at]);
            let (x, z) = (self.x.values()[at], self.z.values()[at]);
            dz.values_mut()[at] = (mu - product - z * dx.values()[at]) / x - z;
        }
        let room = self.room();
        let mut dw = Grid::zeros(self.w.rows(), kernels);
        for at in 0..room.len() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
            let w = self.w.values()[at];
            dw.values_mut()[at] = (mu + product + w * dx.values()[at]) / room[at] - w;
        }
        let gradient = self.gradient();
        let residuals = self.residuals();
        let mut along = vec![0.0; self.slack.len()];
        if !along.is_empty() {
            for row in 0..self.x.rows() {
                along[self.constraint_of(row)] += dot(gradient.row(row), dx.row(row));
            }
        }
        let slack: Vec<f64> = along
            .iter()
            .zip(&residuals)
            .map(|(along, residual)| -along - residual)
            .collect();
        let lambda = (0..slack.len())
            .map(|number| {
                let product = predicted.map_or(0.0, |p| p.slack[number] * p.lambda[number]);
                (mu - product - self.lambda[number] * slack[number]) / self.slack[number]
                    - self.lambda[number]
            })
            .collect();
        Direction {
            x: dx,
            z: dz,
            w: dw,
            slack,
            lambda,
        }
    }

    /// Whether after this step N(x) + v − radius is at most v or a small part of the radius, or at least smaller than it was: by a
    /// tenth of what the step would take off it if N were a straight line, however short the step.
    pub(super) fn stays_close(&self, direction: &Direction, step: f64) -> bool {
        if self.slack.is_empty() {
            return true;
        }
        let free = match self.kind {
            Kind::RowNorm { radius, .. } | Kind::MixedNorm { radius, .. } => 0.1 * radius,
            Kind::RowBall { radius, .. } => 0.05 * radius * radius,
            Kind::RowSum { .. } | Kind::Constant => 0.0,
        };
        let mut moved = self.clone();
        moved.advance(direction, step);
        let before = self.residuals();
        moved
            .residuals()
            .iter()
            .zip(&moved.slack)
            .zip(before)
            .all(|((after, slack), before)| {
                *after <= slack.max((1.0 - 0.1 * step) * before).max(free)
            })
    }

    /// x ← x + step · dx, with the slack that belongs to it; negative slacks say that x is outside.
    pub(super) fn shift(&mut self, dx: &Grid, step: f64) {
        if !self.is_variable() {
            return;
        }
        crate::linalg::axpy(step, dx.values(), self.x.values_mut());
        self.slack.fill(0.0);
        if self.x.values().iter().all(|&value| value > 0.0) {
            self.slack = self
                .residuals()
                .into_iter()
                .map(|residual| -residual)
                .collect();
        }
    }

    /// −Σ log x − Σ log v − Σ log (upper − x), infinite outside.
    pub(super) fn barrier(&self) -> f64 {
        if !self.is_variable() {
            return 0.0;
        }
        let logs = |values: &[f64]| -> f64 {
            values
                .iter()
                .map(|&value| {
                    if value > 0.0 {
                        -value.ln()
                    } else {
                        f64::INFINITY
                    }
                })
                .sum()
        };
        logs(self.x.values()) + logs(&self.slack) + logs(&self.room())
    }

    pub(super) fn advance(&mut self, direction: &Direction, step: f64) {
        crate::linalg::axpy(step, direction.x.values(), self.x.values_mut());
        crate::linalg::axpy(step, direction.z.values(), self.z.values_mut());
        crate::linalg::axpy(step, direction.w.values(), self.w.values_mut());
        crate::linalg::axpy(step, &direction.slack, &mut self.slack);
        crate::linalg::axpy(step, &direction.lambda, &mut self.lambda);
    }

    /// x moved into the set: norms scaled back where the iterate is still outside, sums made exact.
    pub(super) fn feasible(&self) -> Grid {
        let mut x = self.x.clone();
        match &self.kind {
            Kind::RowNorm { p, radius } => {
                for row in 0..x.rows() {
                    let norm = norm_and_gradient(x.row(row), *p).0;
                    scale_down(x.row_mut(row), *radius, norm);
                }
            }
            Kind::MixedNorm { p, q, radius } => {
                let norms: Vec<f64> = x
                    .iter_rows()
                    .map(|row| norm_and_gradient(row, *p).0)
                    .collect();
                let norm = norm_and_gradient(&norms, *q).0;
                scale_down(x.values_mut(), *radius, norm);
            }
            Kind::RowSum { total, .. } => {
                for row in 0..x.rows() {
                    let sum: f64 = x.row(row).iter().sum();
                    x.row_mut(row)
                        .iter_mut()
                        .for_each(|value| *value *= total / sum);
                }
            }
            Kind::RowBall { centre, radius } => {
                for row in 0..x.rows() {
                    let distance = x
                        .row(row)
                        .iter()
                        .zip(centre)
                        .map(|(a, b)| (a - b) * (a - b))
                        .sum::<f64>()
                        .sqrt();
                    if distance > *radius {
                        for (value, middle) in x.row_mut(row).iter_mut().zip(centre) {
                            *value = middle + (*value - middle) * radius / distance;
                        }
                    }
                }
            }
            Kind::Constant => {}
        }
        x
    }

    /// Zeroes entries below the threshold (relative to the term's size), keeping norms and sums.
    pub(super) fn snap(&self, x: &mut Grid, threshold: f64) {
        let cut = |row: &mut [f64], least: f64| {
            row.iter_mut()
                .filter(|value| **value < least)
                .for_each(|value| *value = 0.0);
        };
        match &self.kind {
            Kind::RowNorm { p, radius } => {
                for row in 0..x.rows() {
                    let before = norm_and_gradient(x.row(row), *p).0;
                    cut(x.row_mut(row), threshold * radius);
                    rescale(x.row_mut(row), before, |row| norm_or_zero(row, *p));
                }
            }
            Kind::MixedNorm { p, q, radius } => {
                let total = |x: &Grid| {
                    let norms: Vec<f64> = x.iter_rows().map(|row| norm_or_zero(row, *p)).collect();
                    norm_or_zero(&norms, *q)
                };
                let before = total(x);
                cut(x.values_mut(), threshold * radius);
                let after = total(x);
                if after > 0.0 {
                    x.values_mut()
                        .iter_mut()
                        .for_each(|value| *value *= before / after);
                }
            }
            Kind::RowSum { total, upper } => {
                for row in 0..x.rows() {
                    cut(x.row_mut(row), threshold * total);
                    // With an upper bound, rescaling could step over it: the missing mass goes where there is room.
                    spread(x.row_mut(row), *total, upper.unwrap_or(f64::INFINITY));
                }
            }
            Kind::RowBall { .. } | Kind::Constant => {}
        }
    }
}

fn norm_or_zero(x: &[f64], p: f64) -> f64 {
    if x.iter().all(|&value| value == 0.0) {
        0.0
    } else {
        norm_and_gradient(x, p).0
    }
}

fn scale_down(x: &mut [f64], radius: f64, norm: f64) {
    if norm > radius {
        for value in x.iter_mut() {
            *value *= radius / norm;
        }
    }
}

fn rescale(x: &mut [f64], before: f64, norm: impl Fn(&[f64]) -> f64) {
    let after = norm(x);
    if after > 0.0 {
        for value in x.iter_mut() {
            *value *= before / after;
        }
    }
}

/// Raises or lowers the non-zero entries in proportion until they sum to the total, none above `upper`.
fn spread(x: &mut [f64], total: f64, upper: f64) {
    for _ in 0..x.len() {
        let sum: f64 = x.iter().sum();
        let free: f64 = x.iter().filter(|value| **value < upper).sum();
        if free <= 0.0 || (total - sum).abs() <= 1e-16 * total {
            return;
        }
        let factor = 1.0 + (total - sum) / free;
        x.iter_mut()
            .filter(|value| **value < upper)
            .for_each(|value| *value = (*value * factor).min(upper));
    }
}

/// λ (p−1)/N · (x/N)^{p−2} on the diagonal.
fn add_norm_diagonal(diagonal: &mut [f64], x: &[f64], norm: f64, p: f64, lambda: f64) {
    if p == 1.0 {
        return;
    }
    for (value, x) in diagonal.iter_mut().zip(x) {
        *value += lambda * (p - 1.0) / norm * (x / norm).powf(p - 2.0);
    }
}
