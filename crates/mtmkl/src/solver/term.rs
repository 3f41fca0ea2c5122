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

impl Kind {
    /// What the level of a constraint is at most.
    fn bound(&self) -> f64 {
        match self {
            Self::RowNorm { radius, .. } | Self::MixedNorm { radius, .. } => *radius,
            Self::RowBall { radius, .. } => 0.5 * radius * radius,
            Self::RowSum { .. } | Self::Constant => 0.0,
        }
    }

    /// The level of each constraint at some x ≥ 0.
    fn levels(&self, x: &Grid) -> Vec<f64> {
        match self {
            Self::RowNorm { p, .. } => x.iter_rows().map(|row| norm(row, *p)).collect(),
            Self::MixedNorm { p, q, .. } => {
                let norms: Vec<f64> = x.iter_rows().map(|row| norm(row, *p)).collect();
                vec![norm(&norms, *q)]
            }
            Self::RowBall { centre, .. } => x
                .iter_rows()
                .map(|row| {
                    let square = row.iter().zip(centre).map(|(a, b)| (a - b) * (a - b));
                    0.5 * square.sum::<f64>()
                })
                .collect(),
            Self::RowSum { .. } | Self::Constant => Vec::new(),
        }
    }
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
    level: Level,
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

/// x^p; the usual p need no logarithm.
fn power(x: f64, p: f64) -> f64 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x * x
    } else if p == 3.0 {
        x * x * x
    } else if p == 1.5 {
        x * x.sqrt()
    } else if p == 0.5 {
        x.sqrt()
    } else {
        x.powf(p)
    }
}

/// ‖x‖_p for x ≥ 0.
fn norm(x: &[f64], p: f64) -> f64 {
    if p == 1.0 {
        return x.iter().sum();
    }
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = x.iter().map(|value| power(value / largest, p)).sum();
    largest * power(sum, 1.0 / p)
}

/// ‖x‖_p for x > 0; `out` becomes its gradient (x/N)^{p−1}.
fn norm_and_gradient(x: &[f64], p: f64, out: &mut [f64]) -> f64 {
    if p == 1.0 {
        out.fill(1.0);
        return x.iter().sum();
    }
    let largest = x.iter().fold(0.0_f64, |a, &b| a.max(b));
    let mut sum = 0.0;
    for (out, value) in out.iter_mut().zip(x) {
        *out = power(value / largest, p);
        sum += *out;
    }
    let norm = largest * power(sum, 1.0 / p);
    // (x/N)^{p−1} = (x/largest)^p (largest/x) (largest/N)^{p−1}
    let scale = largest * power(largest / norm, p - 1.0);
    for (out, value) in out.iter_mut().zip(x) {
        *out *= scale / value;
    }
    norm
}

/// What the constraints of a term are at x; made anew only where x moves.
#[derive(Debug, Clone)]
struct Level {
    /// N(x), or half the squared distance from the centre, per constraint.
    values: Vec<f64>,
    /// ∇N, in the shape of x; zero where there is no norm.
    gradient: Grid,
    /// For a mixed norm, the norm of each row and its gradient, and the gradient of the norm of these norms.
    norms: Vec<f64>,
    inside: Grid,
    between: Vec<f64>,
}

impl Level {
    fn new(kind: &Kind, x: &Grid) -> Self {
        let (rows, kernels) = (x.rows(), x.kernels());
        let mut level = Self {
            values: Vec::new(),
            gradient: Grid::zeros(rows, kernels),
            norms: Vec::new(),
            inside: Grid::zeros(0, kernels),
            between: Vec::new(),
        };
        match kind {
            Kind::RowNorm { .. } | Kind::RowBall { .. } => level.values = vec![0.0; rows],
            Kind::MixedNorm { .. } => {
                level.values = vec![0.0];
                level.norms = vec![0.0; rows];
                level.inside = Grid::zeros(rows, kernels);
                level.between = vec![0.0; rows];
            }
            Kind::RowSum { .. } | Kind::Constant => {}
        }
        level.move_to(kind, x);
        level
    }

    fn move_to(&mut self, kind: &Kind, x: &Grid) {
        match kind {
            Kind::RowNorm { p, .. } => {
                for row in 0..x.rows() {
                    self.values[row] =
                        norm_and_gradient(x.row(row), *p, self.gradient.row_mut(row));
                }
            }
            Kind::MixedNorm { p, q, .. } => {
                for row in 0..x.rows() {
                    self.norms[row] = norm_and_gradient(x.row(row), *p, self.inside.row_mut(row));
                }
                self.values[0] = norm_and_gradient(&self.norms, *q, &mut self.between);
                for (row, between) in self.between.iter().enumerate() {
                    let pairs = self.gradient.row_mut(row).iter_mut();
                    for (out, value) in pairs.zip(self.inside.row(row)) {
                        *out = between * value;
                    }
                }
            }
            Kind::RowBall { centre, .. } => {
                for row in 0..x.rows() {
                    let out = self.gradient.row_mut(row);
                    for (out, (a, b)) in out.iter_mut().zip(x.row(row).iter().zip(centre)) {
                        *out = a - b;
                    }
                    self.values[row] = 0.5 * dot(out, out);
                }
            }
            Kind::RowSum { .. } | Kind::Constant => {}
        }
    }
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
        match &kind {
            // Start points lie on the sphere: go inside, to where n entries and the slack of their norm are in balance.
            Kind::RowNorm { .. } | Kind::MixedNorm { .. } => {
                let is_mixed = matches!(kind, Kind::MixedNorm { .. });
                let n = (kernels * if is_mixed { rows } else { 1 }) as f64;
                let inside = n / (n + 1.0);
                x.values_mut().iter_mut().for_each(|value| *value *= inside);
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
        let level = Level::new(&kind, &x);
        let bound = kind.bound();
        Self {
            slack: level.values.iter().map(|value| bound - value).collect(),
            lambda: vec![0.0; level.values.len()],
            kind,
            z: Grid::zeros(rows, kernels),
            w,
            x,
            level,
        }
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

    /// N(x) + v − radius of one constraint.
    fn residual(&self, constraint: usize) -> f64 {
        self.level.values[constraint] + self.slack[constraint] - self.kind.bound()
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
            + products(&self.room(), x, self.w.values(), d.w.values(), -1.0)
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
                    let (norm, gradient) = (self.level.values[row], self.level.gradient.row(row));
                    let lambda = self.lambda[row];
                    let scale = lambda * (p - 1.0);
                    add_norm_diagonal(&mut matrix.diagonal, self.x.row(row), gradient, scale);
                    let factor = lambda / self.slack[row] - scale / norm;
                    matrix.extras.push(Extra {
                        vector: gradient.to_vec(),
                        inverse: factor.recip(),
                    });
                }
            }
            Kind::MixedNorm { p, q, .. } => {
                let lambda = self.lambda[0];
                for (row, matrix) in rows.iter_mut().enumerate() {
                    let inside = self.level.inside.row(row);
                    let share = lambda * self.level.between[row];
                    let scale = share * (p - 1.0);
                    add_norm_diagonal(&mut matrix.diagonal, self.x.row(row), inside, scale);
                    let factor = share * (q - p) / self.level.norms[row];
                    if factor != 0.0 {
                        matrix.extras.push(Extra {
                            vector: inside.to_vec(),
                            inverse: factor.recip(),
                        });
                    }
                }
                let factor = lambda / self.slack[0] - lambda * (q - 1.0) / self.level.values[0];
                coupling = Some(Extra {
                    vector: self.level.gradient.values().to_vec(),
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
                let gradient = &self.level.gradient;
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
        let kernels = self.x.kernels();
        for row in 0..self.x.rows() {
            let constraint = self.constraint_of(row);
            let pull = match self.slack.get(constraint) {
                None => 0.0,
                Some(slack) => {
                    let product =
                        predicted.map_or(0.0, |p| p.slack[constraint] * p.lambda[constraint]);
                    (mu - product + self.lambda[constraint] * self.residual(constraint)) / slack
                }
            };
            let out = right.row_mut(row);
            if pull != 0.0 {
                crate::linalg::axpy(-pull, self.level.gradient.row(row), out);
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
        for (at, room) in self.room().into_iter().enumerate() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
            right.values_mut()[at] -= (mu + product) / room;
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
        let room = self.room();
        let mut dw = Grid::zeros(self.w.rows(), kernels);
        for at in 0..room.len() {
            let product = predicted.map_or(0.0, |p| p.x.values()[at] * p.w.values()[at]);
            let w = self.w.values()[at];
            dw.values_mut()[at] = (mu + product + w * dx.values()[at]) / room[at] - w;
        }
        let mut along = vec![0.0; self.slack.len()];
        if !along.is_empty() {
            for row in 0..self.x.rows() {
                along[self.constraint_of(row)] += dot(self.level.gradient.row(row), dx.row(row));
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
        let mut x = self.x.clone();
        crate::linalg::axpy(step, direction.x.values(), x.values_mut());
        let levels = self.kind.levels(&x);
        levels.iter().enumerate().all(|(number, level)| {
            let slack = self.slack[number] + step * direction.slack[number];
            let after = level + slack - self.kind.bound();
            after
                <= slack
                    .max((1.0 - 0.1 * step) * self.residual(number))
                    .max(free)
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
            self.level.move_to(&self.kind, &self.x);
            for (slack, level) in self.slack.iter_mut().zip(&self.level.values) {
                *slack = self.kind.bound() - level;
            }
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
        self.level.move_to(&self.kind, &self.x);
    }

    /// x moved into the set: norms scaled back where the iterate is still outside, sums made exact.
    pub(super) fn feasible(&self) -> Grid {
        let mut x = self.x.clone();
        match &self.kind {
            Kind::RowNorm { p, radius } => {
                for row in 0..x.rows() {
                    let norm = norm(x.row(row), *p);
                    scale_down(x.row_mut(row), *radius, norm);
                }
            }
            Kind::MixedNorm { radius, .. } => {
                let norm = self.kind.levels(&x)[0];
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
                    let before = norm(x.row(row), *p);
                    cut(x.row_mut(row), threshold * radius);
                    rescale(x.row_mut(row), before, |row| norm(row, *p));
                }
            }
            Kind::MixedNorm { radius, .. } => {
                let before = self.kind.levels(x)[0];
                cut(x.values_mut(), threshold * radius);
                let after = self.kind.levels(x)[0];
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

/// scale/N · (x/N)^{p−2} = scale · ∇N/x on the diagonal.
fn add_norm_diagonal(diagonal: &mut [f64], x: &[f64], gradient: &[f64], scale: f64) {
    if scale == 0.0 {
        return;
    }
    for (value, (x, gradient)) in diagonal.iter_mut().zip(x.iter().zip(gradient)) {
        *value += scale * gradient / x;
    }
}
