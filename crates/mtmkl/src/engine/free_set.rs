//! The variables strictly between their bounds, and K restricted to them: one factorisation that serves twice, for a direct
//! step of the inner problem and for the curvature of J.

use crate::gram::CombinedRows;
use crate::grid::dot;
use crate::linalg::{self, Cholesky};
use crate::qp::{self, Qp};

/// Free variables with K_FF = LL' and linear conditions A'd = v on their moves d: the first says that Σd is given, further ones
/// hold single variables.
///
/// With L⁻¹A = QR, the moves that meet homogeneous conditions are L⁻ᵀz with z ⊥ Q, so that conditions come at the price of a
/// triangular solve each, and the factorisation stays.
#[derive(Debug, Clone)]
pub(super) struct FreeSet {
    /// Variables, one per sample.
    variables: Vec<usize>,
    /// N_t.
    samples: usize,
    factor: Cholesky,
    /// The columns of Q, one after the other.
    basis: Vec<Vec<f64>>,
    /// The columns of R, of length 1, 2, …
    triangle: Vec<Vec<f64>>,
    /// The positions in `variables` that are held, in the order of their conditions.
    held: Vec<usize>,
}

/// Rounds of the direct step: in each, variables that would leave their bounds are put there.
const ROUNDS: usize = 6;
/// Where more than one in this many variables changed sides, a new factorisation is the cheaper way.
const CHANGED: usize = 12;
/// Variables that are held by one triangular solve.
const CONDITIONS: usize = 32;
/// Added to the diagonal, relative to it.
const JITTER: f64 = 1e-12;

/// A rotation that takes the second of two numbers to zero.
#[derive(Clone, Copy)]
struct Turn {
    cosine: f64,
    sine: f64,
}

impl Turn {
    fn new(first: f64, second: f64) -> Self {
        let length = first.hypot(second);
        if length == 0.0 {
            return Self {
                cosine: 1.0,
                sine: 0.0,
            };
        }
        Self {
            cosine: first / length,
            sine: second / length,
        }
    }

    fn pair(self, first: &mut f64, second: &mut f64) {
        let (x, y) = (*first, *second);
        *first = self.cosine * x + self.sine * y;
        *second = self.cosine * y - self.sine * x;
    }

    fn vectors(self, first: &mut [f64], second: &mut [f64]) {
        for (x, y) in first.iter_mut().zip(second) {
            self.pair(x, y);
        }
    }
}

/// Where a variable stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Free,
    Upper,
    /// Its bounds are one.
    Fixed,
}

fn side(qp: &Qp<'_>, beta: &[f64], v: usize) -> Side {
    let margin = qp::MARGIN * (qp.upper[v] - qp.lower[v]);
    if margin == 0.0 {
        Side::Fixed
    } else if beta[v] <= qp.lower[v] + margin {
        Side::Lower
    } else if beta[v] >= qp.upper[v] - margin {
        Side::Upper
    } else {
        Side::Free
    }
}

/// The free variables of β, at most one per sample.
pub(super) fn free_variables(qp: &Qp<'_>, beta: &[f64], samples: usize) -> Vec<usize> {
    (0..samples)
        .filter_map(|sample| {
            let mut own = (sample..beta.len()).step_by(samples);
            own.find(|&v| side(qp, beta, v) == Side::Free)
        })
        .collect()
}

/// The free variables and those at a bound whose slope says that they should come off it, at most one per sample.
pub(super) fn movable_variables(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> Vec<usize> {
    let n = product.len();
    let offset = qp::offset(qp, beta, product);
    let movable = |sample: usize| {
        let mut violating = None;
        for v in (sample..beta.len()).step_by(n) {
            let slope = qp.linear[v] - product[sample] - offset;
            match side(qp, beta, v) {
                Side::Free => return Some(v),
                Side::Lower if slope > 0.0 => violating = violating.or(Some(v)),
                Side::Upper if slope < 0.0 => violating = violating.or(Some(v)),
                _ => {}
            }
        }
        violating
    };
    (0..n).filter_map(movable).collect()
}

impl FreeSet {
    /// Factors K_FF; `None` for fewer than two variables or where K vanishes on them.
    pub(super) fn new(variables: Vec<usize>, rows: &CombinedRows<'_>) -> Option<Self> {
        if variables.len() < 2 {
            return None;
        }
        let n = rows.count();
        let samples: Vec<usize> = variables.iter().map(|v| v % n).collect();
        Self::of_columns(variables, n, |j, column| {
            let row = rows.row(samples[j]);
            for (value, &i) in column.iter_mut().zip(&samples[j..]) {
                *value = row[i];
            }
        })
    }

    /// With K_FF whose column j, from row j down, `fill` writes.
    fn of_columns(
        variables: Vec<usize>,
        samples: usize,
        fill: impl Fn(usize, &mut [f64]),
    ) -> Option<Self> {
        let ones = vec![1.0; variables.len()];
        let mut set = Self {
            basis: Vec::new(),
            triangle: Vec::new(),
            held: Vec::new(),
            samples,
            factor: Cholesky::of_columns(variables.len(), JITTER, fill)?,
            variables,
        };
        set.add_conditions(ones, 1).then_some(set)
    }

    /// The variables, those that are held among them.
    pub(super) fn variables(&self) -> &[usize] {
        &self.variables
    }

    /// The variables that are not held.
    pub(super) fn moving(&self) -> Vec<usize> {
        let mut is_held = vec![false; self.variables.len()];
        for &position in &self.held {
            is_held[position] = true;
        }
        let pairs = self.variables.iter().zip(is_held);
        pairs.filter(|(_, held)| !held).map(|(&v, _)| v).collect()
    }

    /// Beyond this many conditions, a new factorisation is the cheaper way.
    fn too_many(&self, further: usize) -> bool {
        self.held.len() + further > self.variables.len() / 3 + 2
    }

    /// Follows β to where these variables are free: those that are no longer are held, new ones join the factorisation with
    /// their entries of the same K. False where too much changed, or K does not allow it.
    pub(super) fn follow(
        &mut self,
        free: &[usize],
        entries: impl Fn(usize, &[usize], &mut [f64]),
    ) -> bool {
        let samples = self.samples;
        let mut is_known = vec![false; free.len()];
        let mut held = Vec::new();
        for (position, &v) in self.variables.iter().enumerate() {
            match free.binary_search_by_key(&(v % samples), |w| w % samples) {
                Ok(at) if free[at] == v => is_known[at] = true,
                _ => held.push(position),
            }
        }
        let known = free.iter().zip(is_known);
        let further: Vec<usize> = known.filter(|(_, known)| !known).map(|(&v, _)| v).collect();
        // Both in ascending order. What a step put to a bound is held already.
        let mut before = self.held.clone();
        before.sort_unstable();
        let without = |some: &[usize], others: &[usize]| -> Vec<usize> {
            let is_left = |position: &&usize| others.binary_search(position).is_err();
            some.iter().filter(is_left).copied().collect()
        };
        let (released, fresh) = (without(&before, &held), without(&held, &before));
        let changed = released.len() + fresh.len() + further.len();
        if changed * CHANGED > self.variables.len() || self.too_many(fresh.len()) {
            return false;
        }
        for position in released {
            self.release(position);
        }
        if !further.is_empty() && !self.extend(&further, entries) {
            return false;
        }
        fresh.is_empty() || self.hold(&fresh)
    }

    /// Takes these variables in, with their entries of the same K. False where K does not allow it.
    fn extend(&mut self, further: &[usize], entries: impl Fn(usize, &[usize], &mut [f64])) -> bool {
        let old = self.variables.len();
        self.variables.extend_from_slice(further);
        let all = self.variables.len();
        let columns: Vec<usize> = self.variables.iter().map(|v| v % self.samples).collect();
        let mut border = vec![0.0; further.len() * all];
        for (row, &column) in border.chunks_exact_mut(all).zip(&columns[old..]) {
            entries(column, &columns, row);
        }
        for i in 0..further.len() {
            border[i * all + old + i] *= 1.0 + JITTER;
        }
        if !self.factor.extend(&border, further.len()) {
            return false;
        }
        // L⁻¹A = QR gets further rows, by the same forward substitution with the new rows of L. They are turned into R one by one.
        let mut rows: Vec<Vec<f64>> = Vec::with_capacity(further.len());
        for position in old..all {
            let lower = self.factor.lower_row(position);
            let along: Vec<f64> = self.basis.iter().map(|q| dot(&lower[..old], q)).collect();
            let mut row: Vec<f64> = (self.triangle.iter())
                .map(|column| -dot(&along[..column.len()], column))
                .collect();
            // The sum has a term for each variable, the other conditions have none for new ones.
            row[0] += 1.0;
            for (known, weight) in rows.iter().zip(&lower[old..]) {
                linalg::axpy(-weight, known, &mut row);
            }
            for value in &mut row {
                *value /= lower[position];
            }
            rows.push(row);
        }
        for direction in &mut self.basis {
            direction.resize(all, 0.0);
        }
        for (position, mut row) in (old..all).zip(rows) {
            let mut rest = vec![0.0; all];
            rest[position] = 1.0;
            for i in 0..self.basis.len() {
                let turn = Turn::new(self.triangle[i][i], row[i]);
                for (column, value) in self.triangle[i..].iter_mut().zip(&mut row[i..]) {
                    turn.pair(&mut column[i], value);
                }
                turn.vectors(&mut self.basis[i], &mut rest);
            }
        }
        true
    }

    /// Lets a variable that is held move again: L⁻¹A = QR without that column, brought back to a triangle by turns of neighbours.
    fn release(&mut self, position: usize) {
        let Some(at) = self.held.iter().position(|&held| held == position) else {
            return;
        };
        self.held.remove(at);
        // The first condition is the sum.
        self.triangle.remove(at + 1);
        for i in at + 1..self.triangle.len() {
            let turn = Turn::new(self.triangle[i][i], self.triangle[i][i + 1]);
            for column in &mut self.triangle[i..] {
                let (upper, lower) = column.split_at_mut(i + 1);
                turn.pair(&mut upper[i], &mut lower[0]);
            }
            self.triangle[i].truncate(i + 1);
            let (first, second) = self.basis.split_at_mut(i + 1);
            turn.vectors(&mut first[i], &mut second[0]);
        }
        self.basis.pop();
    }

    /// Holds these positions, in ascending order, from now on; false where nothing would be left to move.
    fn hold(&mut self, positions: &[usize]) -> bool {
        self.held.extend_from_slice(positions);
        positions.chunks(CONDITIONS).all(|some| {
            // L⁻¹e is zero before the place of the one.
            let (first, count) = (some[0], some.len());
            let mut units = vec![0.0; (self.variables.len() - first) * count];
            for (column, position) in some.iter().enumerate() {
                units[(position - first) * count + column] = 1.0;
            }
            self.add_conditions(units, count)
        })
    }

    /// Further columns of A, row by row without the rows before the first that is not zero. By Gram and Schmidt, twice for orthogonality
    /// in rounding too.
    fn add_conditions(&mut self, mut conditions: Vec<f64>, count: usize) -> bool {
        self.factor.solve_lower(&mut conditions, count);
        let zeros = self.variables.len() - conditions.len() / count;
        for column in 0..count {
            let mut direction = vec![0.0; zeros];
            direction.extend(conditions[column..].iter().step_by(count));
            let length = dot(&direction, &direction).sqrt();
            let mut entries = vec![0.0; self.basis.len() + 1];
            for _ in 0..2 {
                for (entry, known) in entries.iter_mut().zip(&self.basis) {
                    let along = dot(known, &direction);
                    linalg::axpy(-along, known, &mut direction);
                    *entry += along;
                }
            }
            let rest = dot(&direction, &direction).sqrt();
            if rest.is_nan() || rest <= 1e-12 * length {
                return false;
            }
            for value in &mut direction {
                *value /= rest;
            }
            if let Some(last) = entries.last_mut() {
                *last = rest;
            }
            self.basis.push(direction);
            self.triangle.push(entries);
        }
        true
    }

    /// V ← (I − QQ')L⁻¹V, so that V'V = u'Pu with P the leading block of [[K_FF, A], [A', 0]]⁻¹; V is |F| × columns.
    pub(super) fn project(&self, block: &mut [f64], columns: usize) {
        self.factor.solve_lower(block, columns);
        for direction in &self.basis {
            let mut along = vec![0.0; columns];
            for (&weight, row) in direction.iter().zip(block.chunks_exact(columns)) {
                linalg::axpy(weight, row, &mut along);
            }
            for (&weight, row) in direction.iter().zip(block.chunks_exact_mut(columns)) {
                linalg::axpy(-weight, &along, row);
            }
        }
    }

    /// The maximiser of g'd − ½d'K_FF d under A'd = v.
    fn solve(&self, slopes: &[f64], values: &[f64]) -> Vec<f64> {
        let mut half = slopes.to_vec();
        self.factor.solve_lower(&mut half, 1);
        // R'c = v: c_k = (v_k − Σ_(i<k) R_ik c_i) / R_kk
        let mut along: Vec<f64> = Vec::with_capacity(values.len());
        for (column, value) in self.triangle.iter().zip(values) {
            let known = dot(&column[..along.len()], &along);
            along.push((value - known) / column[along.len()]);
        }
        for (direction, wanted) in self.basis.iter().zip(along) {
            let change = wanted - dot(direction, &half);
            linalg::axpy(change, direction, &mut half);
        }
        self.factor.solve_upper(&mut half, 1);
        half
    }

    /// Moves the free variables of β to where the slopes q − Kβ on them are equal, directly: one factorisation instead of many
    /// small steps. Variables that would leave their bounds are put there, held, and the rest solved again. Bounds and the sum
    /// are kept; β is left alone where that fails.
    ///
    /// K_FF may belong to another θ nearby: then this predicts where β moves to with θ, to first order.
    pub(super) fn step(&mut self, qp: &Qp<'_>, beta: &mut [f64], product: &[f64]) -> Option<()> {
        let n = product.len();
        let all = self.variables.len();
        let slopes: Vec<f64> = self
            .variables
            .iter()
            .map(|&v| qp.linear[v] - product[v % n])
            .collect();
        let room: Vec<(f64, f64)> = self
            .variables
            .iter()
            .map(|&v| (qp.lower[v] - beta[v], qp.upper[v] - beta[v]))
            .collect();
        let mut is_held = vec![false; all];
        let mut values = vec![0.0];
        for &position in &self.held {
            is_held[position] = true;
            values.push(0.0);
        }
        let mut moves = self.solve(&slopes, &values);
        for round in 0.. {
            let mut leaving = Vec::new();
            for position in 0..all {
                if is_held[position] {
                    continue;
                }
                let (low, high) = room[position];
                let change = moves[position];
                if change.is_nan() {
                    return None;
                }
                if change <= low || change >= high {
                    leaving.push(position);
                    values.push(if change <= low { low } else { high });
                    is_held[position] = true;
                }
            }
            if leaving.is_empty() {
                break;
            }
            if round == ROUNDS || self.too_many(leaving.len()) || !self.hold(&leaving) {
                return None;
            }
            moves = self.solve(&slopes, &values);
        }
        // What is held is there exactly.
        for (&position, &value) in self.held.iter().zip(&values[1..]) {
            moves[position] = value;
        }
        // Rounding must not wear the sum away: with a nearly singular K the step is refused, else one variable makes up for it.
        let surplus: f64 = moves.iter().sum();
        let length: f64 = moves.iter().map(|change| change.abs()).sum();
        let slack = |i: usize| (moves[i] - room[i].0).min(room[i].1 - moves[i]);
        let widest = (0..all)
            .filter(|&i| !is_held[i])
            .max_by(|&i, &j| slack(i).total_cmp(&slack(j)))?;
        if surplus.abs() > 1e-9 * length || surplus.abs() > 0.5 * slack(widest) {
            return None;
        }
        moves[widest] -= surplus;
        for (position, &v) in self.variables.iter().enumerate() {
            let (low, high) = (qp.lower[v], qp.upper[v]);
            let change = moves[position];
            beta[v] = if change == 0.0 {
                beta[v]
            } else if change == room[position].0 {
                low
            } else if change == room[position].1 {
                high
            } else {
                (beta[v] + change).clamp(low, high)
            };
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::some_kernel;
    use super::*;
    use crate::random::Random;

    const SAMPLES: usize = 60;

    fn set_of(kernel: &[f64], variables: &[usize]) -> FreeSet {
        let entry = |i: usize, j: usize| kernel[variables[i] * SAMPLES + variables[j]];
        let fill = |j: usize, column: &mut [f64]| {
            for (value, i) in column.iter_mut().zip(j..) {
                *value = entry(i, j);
            }
        };
        FreeSet::of_columns(variables.to_vec(), SAMPLES, fill).unwrap()
    }

    /// The step for these slopes by sample, in the order of samples: zero for what does not move.
    fn moves(set: &FreeSet, slopes: &[f64]) -> Vec<f64> {
        let own: Vec<f64> = set.variables.iter().map(|&v| slopes[v]).collect();
        let mut moves = vec![0.0; SAMPLES];
        let found = set.solve(&own, &vec![0.0; 1 + set.held.len()]);
        for (&v, value) in set.variables.iter().zip(found) {
            moves[v] = value;
        }
        moves
    }

    #[test]
    fn a_set_that_followed_is_the_set_made_anew() {
        let mut random = Random::new(5);
        let kernel = some_kernel(SAMPLES, &mut random);
        let slopes: Vec<f64> = (0..SAMPLES).map(|_| random.uniform()).collect();
        let entries = |i: usize, columns: &[usize], out: &mut [f64]| {
            for (value, &j) in out.iter_mut().zip(columns) {
                *value = kernel[i * SAMPLES + j];
            }
        };
        let mut free: Vec<usize> = (0..SAMPLES).filter(|v| v % 5 > 0).collect();
        let mut set = set_of(&kernel, &free);
        let (mut released, mut held, mut taken_in) = (0, 0, 0);
        for _ in 0..60 {
            // Two samples change sides.
            for _ in 0..2 {
                let v = random.below(SAMPLES);
                match free.binary_search(&v) {
                    Ok(at) => {
                        free.remove(at);
                        held += 1;
                    }
                    Err(at) => {
                        released += usize::from(set.variables.contains(&v));
                        taken_in += usize::from(!set.variables.contains(&v));
                        free.insert(at, v);
                    }
                }
            }
            if !set.follow(&free, entries) {
                set = set_of(&kernel, &free);
            }
            let anew = set_of(&kernel, &free);
            let (ours, wanted) = (moves(&set, &slopes), moves(&anew, &slopes));
            for (x, y) in ours.iter().zip(&wanted) {
                assert!((x - y).abs() < 1e-8 * (1.0 + y.abs()), "{x} {y}");
            }
            // V'V, for two columns.
            let gram = |set: &FreeSet| {
                let images = set.variables().iter().map(|&v| slopes[v]);
                let mut block: Vec<f64> = images.flat_map(|x| [x, 1.0 + x * x]).collect();
                set.project(&mut block, 2);
                let mut gram = vec![0.0; 4];
                linalg::add_gram(&block, 2, &mut gram);
                gram
            };
            for (x, y) in gram(&set).iter().zip(gram(&anew)) {
                assert!((x - y).abs() < 1e-8 * (1.0 + y.abs()), "{x} {y}");
            }
        }
        assert!(released > 5 && held > 5 && taken_in > 5);
    }
}
