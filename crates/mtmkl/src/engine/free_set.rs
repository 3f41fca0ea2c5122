//! The variables strictly between their bounds, and K restricted to them: one factorisation that serves twice, for a direct
//! step of the inner problem and for the curvature of J.

use crate::gram::CombinedRows;
use crate::grid::dot;
use crate::linalg::{self, Cholesky};
use crate::qp::Qp;

/// Free variables with K_FF = LL'.
#[derive(Debug)]
pub(super) struct FreeSet {
    /// Variables, one per sample, in the order of their samples.
    pub(super) variables: Vec<usize>,
    factor: Cholesky,
    /// L⁻¹1, for the sum.
    border: Vec<f64>,
    square: f64,
}

/// Next to a bound, a variable that only rounding keeps off it is not free.
const MARGIN: f64 = 1e-10;
/// Rounds of the direct step: in each, variables that would leave their bounds are put there.
const ROUNDS: usize = 6;

/// The free variables of β, at most one per sample.
pub(super) fn free_variables(qp: &Qp<'_>, beta: &[f64], samples: usize) -> Vec<usize> {
    let is_free = |v: usize| {
        let margin = MARGIN * (qp.upper[v] - qp.lower[v]);
        beta[v] > qp.lower[v] + margin && beta[v] < qp.upper[v] - margin
    };
    (0..samples)
        .filter_map(|sample| (sample..beta.len()).step_by(samples).find(|&v| is_free(v)))
        .collect()
}

/// K_FF, row by row, lower triangle filled.
fn block(rows: &CombinedRows<'_>, samples: &[usize]) -> Vec<f64> {
    let count = samples.len();
    let mut matrix = vec![0.0; count * count];
    for (i, row) in matrix.chunks_exact_mut(count).enumerate() {
        rows.entries(samples[i], &samples[..=i], &mut row[..=i]);
    }
    matrix
}

impl FreeSet {
    /// Factors K_FF; `None` for fewer than two variables or where K vanishes on them.
    pub(super) fn new(variables: Vec<usize>, rows: &CombinedRows<'_>) -> Option<Self> {
        if variables.len() < 2 {
            return None;
        }
        let n = rows.count();
        let samples: Vec<usize> = variables.iter().map(|v| v % n).collect();
        Self::of_block(variables, block(rows, &samples))
    }

    fn of_block(variables: Vec<usize>, matrix: Vec<f64>) -> Option<Self> {
        let count = variables.len();
        if count < 2 {
            return None;
        }
        let factor = Cholesky::with_jitter(matrix, count, 1e-12)?;
        let mut border = vec![1.0; count];
        factor.solve_lower(&mut border, 1);
        let square = dot(&border, &border);
        Some(Self {
            variables,
            factor,
            border,
            square,
        })
    }

    /// V ← L⁻¹V without the direction L⁻¹1, so that V'V = u'Pu with P the leading block of [[K_FF, 1], [1', 0]]⁻¹; V is |F| × columns.
    pub(super) fn project(&self, block: &mut [f64], columns: usize) {
        self.factor.solve_lower(block, columns);
        let mut along = vec![0.0; columns];
        for (weight, row) in self.border.iter().zip(block.chunks_exact(columns)) {
            linalg::axpy(weight / self.square, row, &mut along);
        }
        for (weight, row) in self.border.iter().zip(block.chunks_exact_mut(columns)) {
            linalg::axpy(-weight, &along, row);
        }
    }

    /// d with K_FF d + b 1 = g, Σ d = sum.
    fn solve(&self, slopes: &[f64], sum: f64) -> Vec<f64> {
        let mut half = slopes.to_vec();
        self.factor.solve_lower(&mut half, 1);
        let multiplier = (dot(&self.border, &half) - sum) / self.square;
        linalg::axpy(-multiplier, &self.border, &mut half);
        self.factor.solve_upper(&mut half, 1);
        half
    }
}

/// Moves the free variables of β to where the slopes q − Kβ on them are equal, directly: one factorisation instead of many small
/// steps. Variables that would leave their bounds are put there and the rest solved again. Bounds and the sum are kept; the
/// objective does not fall (else β is left alone). Returns the factored free set if β moved.
pub(super) fn step(
    qp: &Qp<'_>,
    rows: &CombinedRows<'_>,
    beta: &mut [f64],
    product: &[f64],
) -> Option<FreeSet> {
    let n = product.len();
    let mut variables = free_variables(qp, beta, n);
    if variables.len() < 2 {
        return None;
    }
    let samples: Vec<usize> = variables.iter().map(|v| v % n).collect();
    let matrix = block(rows, &samples);
    let all = samples.len();
    let entry = |i: usize, j: usize| {
        if i >= j {
            matrix[i * all + j]
        } else {
            matrix[j * all + i]
        }
    };
    // Positions in `matrix` of the variables that are still free, and everyone's move.
    let mut places: Vec<usize> = (0..all).collect();
    let mut moves = vec![0.0; all];
    let start: Vec<usize> = variables.clone();
    let slopes: Vec<f64> = start
        .iter()
        .map(|&v| qp.linear[v] - product[v % n])
        .collect();
    let mut set = None;
    for round in 0..ROUNDS {
        let part = if round == 0 {
            matrix.clone()
        } else {
            places
                .iter()
                .flat_map(|&i| places.iter().map(move |&j| (i, j)))
                .map(|(i, j)| entry(i, j))
                .collect()
        };
        let current = FreeSet::of_block(variables.clone(), part)?;
        let fixed: Vec<usize> = (0..all)
            .filter(|i| places.binary_search(i).is_err())
            .collect();
        let mut right: Vec<f64> = places.iter().map(|&i| slopes[i]).collect();
        for &j in &fixed {
            for (value, &i) in right.iter_mut().zip(&places) {
                *value -= entry(i, j) * moves[j];
            }
        }
        let sum = -fixed.iter().map(|&j| moves[j]).sum::<f64>();
        let solution = current.solve(&right, sum);
        let mut stays = Vec::with_capacity(places.len());
        for (&i, &change) in places.iter().zip(&solution) {
            let v = start[i];
            let (low, high) = (qp.lower[v] - beta[v], qp.upper[v] - beta[v]);
            if change <= low || change >= high {
                moves[i] = if change <= low { low } else { high };
            } else {
                moves[i] = change;
                stays.push(i);
            }
        }
        if stays.len() == places.len() {
            set = Some(current);
            break;
        }
        if round + 1 == ROUNDS || stays.len() < 2 {
            return None;
        }
        places = stays;
        variables = places.iter().map(|&i| start[i]).collect();
    }
    let set = set?;
    // Rounding must not wear the sum away: with a nearly singular K the step is refused, else one variable makes up for it.
    let surplus: f64 = moves.iter().sum();
    let length: f64 = moves.iter().map(|change| change.abs()).sum();
    let room = |i: usize| {
        let v = start[i];
        (beta[v] + moves[i] - qp.lower[v]).min(qp.upper[v] - beta[v] - moves[i])
    };
    let widest = places
        .iter()
        .copied()
        .max_by(|&i, &j| room(i).total_cmp(&room(j)))?;
    if surplus.abs() > 1e-9 * length || surplus.abs() > 0.5 * room(widest) {
        return None;
    }
    moves[widest] -= surplus;
    // g'd − ½ d'K_FF d, which must not be negative.
    let mut gain = dot(&slopes, &moves);
    for i in 0..all {
        let row: f64 = dot(&matrix[i * all..i * all + i], &moves[..i]);
        gain -= moves[i] * (row + 0.5 * matrix[i * all + i] * moves[i]);
    }
    if gain.is_nan() || gain < 0.0 {
        return None;
    }
    for (i, &v) in start.iter().enumerate() {
        let (low, high) = (qp.lower[v], qp.upper[v]);
        let moved = beta[v] + moves[i];
        // A variable that was put on its bound is there exactly.
        beta[v] = if places.binary_search(&i).is_ok() {
            moved.clamp(low, high)
        } else if (moved - low).abs() < (moved - high).abs() {
            low
        } else {
            high
        };
    }
    Some(set)
}
