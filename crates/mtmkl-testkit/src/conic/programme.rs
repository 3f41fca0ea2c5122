//! A small modelling layer over Clarabel: affine expressions in, minimum x'Dx/2 + q'x over cones out.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolution, DefaultSolver, IPSolver, SolverStatus, SupportedConeT,
};

/// How much less a plain primal residual counts than its effect z'r on the value (see [`Programme::error`]).
const LOOSE: f64 = 1e-3;

/// constant + Σ coefficient · variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Affine {
    constant: f64,
    terms: Vec<(usize, f64)>,
}

impl Affine {
    pub(super) fn constant(value: f64) -> Self {
        Self {
            constant: value,
            terms: Vec::new(),
        }
    }

    /// self + factor · other.
    pub(super) fn plus(mut self, factor: f64, other: &Self) -> Self {
        self.constant += factor * other.constant;
        if factor != 0.0 {
            self.terms.extend(
                other
                    .terms
                    .iter()
                    .map(|&(index, value)| (index, factor * value)),
            );
        }
        self
    }

    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self::default().plus(factor, self)
    }

    pub(super) fn sum<'a>(items: impl IntoIterator<Item = &'a Self>) -> Self {
        items
            .into_iter()
            .fold(Self::default(), |sum, item| sum.plus(1.0, item))
    }

    /// Σ weight · item.
    pub(super) fn dot<'a>(weights: &[f64], items: impl IntoIterator<Item = &'a Self>) -> Self {
        weights
            .iter()
            .zip(items)
            .fold(Self::default(), |sum, (&weight, item)| {
                sum.plus(weight, item)
            })
    }

    pub(super) fn at(&self, x: &[f64]) -> f64 {
        self.terms
            .iter()
            .fold(self.constant, |sum, &(index, value)| {
                value.mul_add(x[index], sum)
            })
    }
}

/// min ½ x'Dx + q'x + constant, with every row group in its cone.
#[derive(Debug, Default)]
pub(super) struct Programme {
    cost: Vec<f64>,
    curvature: Vec<f64>,
    offset: f64,
    rows: Vec<Affine>,
    cones: Vec<SupportedConeT<f64>>,
}

/// What the solver left: its point, multipliers (one a row), and how good they are.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) x: Vec<f64>,
    pub(super) z: Vec<f64>,
    pub(super) value: f64,
    /// How far the value may be off, relative; infinite where there is no answer.
    pub(super) error: f64,
}

impl Programme {
    pub(super) fn variable(&mut self) -> Affine {
        self.cost.push(0.0);
        self.curvature.push(0.0);
        Affine {
            constant: 0.0,
            terms: vec![(self.cost.len() - 1, 1.0)],
        }
    }

    /// Adds factor · term to the objective.
    pub(super) fn minimise(&mut self, factor: f64, term: &Affine) {
        self.offset += factor * term.constant;
        for &(index, value) in &term.terms {
            self.cost[index] += factor * value;
        }
    }

    /// Adds factor · (coefficient · x)² to the objective, for a term with one variable and no constant.
    pub(super) fn minimise_square(&mut self, factor: f64, term: &Affine) {
        assert!(
            term.terms.len() == 1 && term.constant == 0.0,
            "only the square of one variable is diagonal"
        );
        let (index, value) = term.terms[0];
        self.curvature[index] += 2.0 * factor * value * value;
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn zero(&mut self, row: Affine) {
        self.rows.push(row);
        self.cones.push(SupportedConeT::ZeroConeT(1));
    }

    pub(super) fn nonnegative(&mut self, row: Affine) {
        self.rows.push(row);
        self.cones.push(SupportedConeT::NonnegativeConeT(1));
    }

    /// large ≥ small.
    pub(super) fn at_least(&mut self, large: &Affine, small: &Affine) {
        self.nonnegative(large.clone().plus(-1.0, small));
    }

    /// ‖rows\[1..\]‖₂ ≤ rows\[0\]. Returns the index of the first row.
    pub(super) fn second_order(&mut self, rows: Vec<Affine>) -> usize {
        let first = self.rows.len();
        self.cones
            .push(SupportedConeT::SecondOrderConeT(rows.len()));
        self.rows.extend(rows);
        first
    }

    /// ‖items‖_p ≤ bound, for items that other constraints already keep nonnegative.
    ///
    /// For other p than 1, 2, ∞: Σ r = bound and |`x_i`| ≤ `r_i`^{1/p} bound^{1−1/p}, one power cone an item.
    pub(super) fn norm_at_most(&mut self, p: f64, items: &[Affine], bound: &Affine) {
        assert!(p >= 1.0, "p = {p} gives no norm");
        if p == 1.0 || items.len() == 1 {
            self.at_least(bound, &Affine::sum(items));
        } else if p == f64::INFINITY {
            for item in items {
                self.at_least(bound, item);
            }
        } else if p == 2.0 {
            let rows = std::iter::once(bound.clone())
                .chain(items.iter().cloned())
                .collect();
            self.second_order(rows);
        } else {
            let mut shares = Vec::with_capacity(items.len());
            for item in items {
                let share = self.variable();
                self.rows
                    .extend([share.clone(), bound.clone(), item.clone()]);
                self.cones.push(SupportedConeT::PowerConeT(1.0 / p));
                shares.push(share);
            }
            self.zero(bound.clone().plus(-1.0, &Affine::sum(&shares)));
        }
    }

    /// A new variable u ≥ ‖items‖_p, for nonnegative items.
    pub(super) fn norm(&mut self, p: f64, items: &[Affine]) -> Affine {
        let bound = self.variable();
        self.norm_at_most(p, items, &bound);
        bound
    }

    /// A new variable e ≤ −x ln(x/c), for x ≥ 0 and c > 0: x exp(e/x) ≤ c, an exponential cone.
    pub(super) fn entropy(&mut self, x: &Affine, c: &Affine) -> Affine {
        let entropy = self.variable();
        self.rows.extend([entropy.clone(), x.clone(), c.clone()]);
        self.cones.push(SupportedConeT::ExponentialConeT());
        entropy
    }

    /// The best answer of a few attempts; the first whose error is below `accepted` ends them.
    ///
    /// Power cones now and then stop Clarabel early under one scaling of the rows or one step length, and not under another.
    pub(super) fn solve(&self, tolerance: f64, accepted: f64) -> Answer {
        if self.cost.is_empty() {
            // Nothing to choose, and Clarabel takes no empty problem.
            return Answer {
                x: Vec::new(),
                z: Vec::new(),
                value: self.offset,
                error: 0.0,
            };
        }
        let mut best = self.attempt([tolerance, tolerance], true, 0.99);
        for (factor, feasible, equilibrate, step) in [
            (1.0, 1.0, false, 0.99),
            (10.0, 100.0, true, 0.99),
            (10.0, 100.0, false, 0.99),
            (10.0, 100.0, true, 0.9),
            (10.0, 100.0, false, 0.9),
        ] {
            if best.error < accepted {
                break;
            }
            let next = self.attempt(
                [factor * tolerance, feasible * tolerance],
                equilibrate,
                step,
            );
            if next.error < best.error {
                best = next;
            }
        }
        best
    }

    fn attempt(&self, [gap, feasible]: [f64; 2], equilibrate: bool, step: f64) -> Answer {
        let columns = self.cost.len();
        let (mut at_row, mut at_column, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for (row, expression) in self.rows.iter().enumerate() {
            for &(column, value) in &expression.terms {
                at_row.push(row);
                at_column.push(column);
                values.push(-value);
            }
        }
        let a = CscMatrix::new_from_triplets(self.rows.len(), columns, at_row, at_column, values);
        let b: Vec<f64> = self.rows.iter().map(|row| row.constant).collect();
        let curved: Vec<usize> = (0..columns)
            .filter(|&column| self.curvature[column] != 0.0)
            .collect();
        let diagonal = curved
            .iter()
            .map(|&column| self.curvature[column])
            .collect();
        let quadratic =
            CscMatrix::new_from_triplets(columns, columns, curved.clone(), curved, diagonal);
        let settings = DefaultSettings {
            verbose: false,
            max_iter: 200,
            max_threads: 1,
            tol_gap_abs: gap,
            tol_gap_rel: gap,
            tol_feas: feasible,
            equilibrate_enable: equilibrate,
            max_step_fraction: step,
            ..DefaultSettings::default()
        };
        let mut solver = DefaultSolver::new(&quadratic, &self.cost, &a, &b, &self.cones, settings)
            .expect("dimensions and settings agree by construction");
        solver.solve();
        let solution = solver.solution;
        Answer {
            error: self.error(&solution),
            value: solution.obj_val + self.offset,
            x: solution.x,
            z: solution.z,
        }
    }

    /// How far the value may be off: the gap, the dual residual, and z'r for the residuals r of the rows, all relative.
    ///
    /// The point solves the problem whose rows are shifted by r, and that shift moves the optimal value by z'r (to first
    /// order). Clarabel's own primal residual is the largest entry of r instead; near the end it often grows to 1e-6 while
    /// gap, dual residual and z'r fall to 1e-13 and the value has as many right digits (seen against closed forms).
    fn error(&self, solution: &DefaultSolution<f64>) -> f64 {
        let ended = matches!(
            solution.status,
            SolverStatus::Solved
                | SolverStatus::AlmostSolved
                | SolverStatus::InsufficientProgress
                | SolverStatus::MaxIterations
                | SolverStatus::NumericalError
        );
        let unit = solution.obj_val.abs().max(1.0);
        let gap = (solution.obj_val - solution.obj_val_dual).abs() / unit;
        let weighted = (self.rows.iter().zip(&solution.s).zip(&solution.z))
            .map(|((row, slack), multiplier)| multiplier * (row.at(&solution.x) - slack))
            .sum::<f64>()
            .abs()
            / unit;
        let measures = [gap, weighted, solution.r_dual, LOOSE * solution.r_prim];
        // `f64::max` drops a NaN, which must not pass for a good residual.
        if !ended || measures.iter().any(|value| !value.is_finite()) {
            return f64::INFINITY;
        }
        measures.into_iter().fold(0.0, f64::max)
    }
}
