//! The variables strictly between their bounds, and K restricted to them: one factorisation that serves twice, for a direct
//! step of the inner problem and for the curvature of J.

use super::givens::Givens;
use super::{MARGIN, Qp, offset};
use crate::gram::CombinedRows;
use crate::grid::dot;
use crate::ledger::{Guard, Ledger, bytes_of};
use crate::linalg::{self, Cholesky, Room};
use crate::machine::Variables;
use crate::run::Stop;

/// Free variables with K_FF = LL' and linear conditions A'd = v on their moves d: the first says that Σd is given, further ones
/// hold single variables.
///
/// With L⁻¹A = QR, the moves that meet homogeneous conditions are L⁻ᵀz with z ⊥ Q, so that conditions come at the price of a
/// triangular solve each, and the factorisation stays.
#[derive(Debug)]
pub(super) struct FreeSet {
    /// At most one per sample.
    members: Vec<usize>,
    variables: Variables,
    factor: Cholesky,
    /// The columns of Q, one after the other.
    basis: Vec<Vec<f64>>,
    /// The columns of R, of length 1, 2, …
    triangle: Vec<Vec<f64>>,
    /// The positions in `variables` that are held, in the order of their conditions.
    held: Vec<usize>,
    /// Rows that the factor has memory for.
    room: usize,
    memory: Guard,
    ledger: Ledger,
    /// Where this comes, nothing more is begun.
    stop: Stop,
}

/// Bytes of a factor for so many variables.
fn bytes_of_factor(count: usize) -> u64 {
    let size = Room::ToGrow.size(count);
    bytes_of::<f64>(size * size)
}

/// Bytes of a set of so many variables at most: the factor, and a direction for each condition.
pub(in crate::inner) fn bytes(count: usize) -> u64 {
    // One more than what can be held: the sum.
    bytes_of_factor(count) + bytes_of::<f64>(count * (most_conditions(count) + 1))
}

/// Beyond this many conditions, a new factorisation is the cheaper way: the directions are orthogonalised at the price of |F| each for each
/// other one, so that a third of |F| costs about as much as the factor's |F|³/3. Directions that a core's cache does not hold are read from
/// memory, each number at the price of some ten multiply–adds: then it is an eighth.
fn most_conditions(count: usize) -> usize {
    let share = if count > IN_CACHE { 8 } else { 3 };
    count / share + 2
}

/// A third of so many directions are a MiB.
const IN_CACHE: usize = 600;

/// Rounds of the direct step: in each, variables that would leave their bounds are put there.
const ROUNDS: usize = 6;
/// Where more than one in this many variables changed sides, a new factorisation is the cheaper way.
const CHANGED: usize = 12;
/// Conditions that are made by one triangular solve.
const CONDITIONS: usize = 32;
/// Added to the diagonal, relative to it.
const JITTER: f64 = 1e-12;

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
    let margin = MARGIN * (qp.upper[v] - qp.lower[v]);
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

/// Whether a variable is strictly between its bounds.
pub(super) fn is_free(qp: &Qp<'_>, beta: &[f64], v: usize) -> bool {
    side(qp, beta, v) == Side::Free
}

/// The free variables of β, at most one per sample.
pub(super) fn free_variables(qp: &Qp<'_>, beta: &[f64]) -> Vec<usize> {
    (0..qp.variables.samples())
        .filter_map(|sample| {
            let mut own = qp.variables.of_sample(sample);
            own.find(|&v| side(qp, beta, v) == Side::Free)
        })
        .collect()
}

/// The free variables and those at a bound whose slope says that they should come off it, at most one per sample.
pub(super) fn movable_variables(qp: &Qp<'_>, beta: &[f64], product: &[f64]) -> Vec<usize> {
    let offset = offset(qp, beta, product);
    let movable = |sample: usize| {
        let mut violating = None;
        for v in qp.variables.of_sample(sample) {
            let slope = qp.slope(product, v) - offset;
            match side(qp, beta, v) {
                Side::Free => return Some(v),
                Side::Lower if slope > 0.0 => violating = violating.or(Some(v)),
                Side::Upper if slope < 0.0 => violating = violating.or(Some(v)),
                _ => {}
            }
        }
        violating
    };
    (0..qp.variables.samples()).filter_map(movable).collect()
}

impl FreeSet {
    /// Factors K_FF; `None` for fewer than two variables, where K vanishes on them, or where `stop` comes first.
    pub(super) fn new(
        members: Vec<usize>,
        variables: Variables,
        rows: &CombinedRows<'_>,
        stop: &Stop,
        ledger: &Ledger,
    ) -> Option<Self> {
        if members.len() < 2 {
            return None;
        }
        let samples: Vec<usize> = members.iter().map(|&v| variables.sample_of(v)).collect();
        rows.make_together();
        Self::of_columns(members, variables, stop, ledger, |j, column| {
            let row = rows.row(samples[j]);
            for (value, &i) in column.iter_mut().zip(&samples[j..]) {
                *value = row.get(i);
            }
        })
    }

    /// With K_FF whose column j, from row j down, `fill` writes.
    fn of_columns(
        members: Vec<usize>,
        variables: Variables,
        stop: &Stop,
        ledger: &Ledger,
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Option<Self> {
        let count = members.len();
        let memory = ledger.take(bytes_of_factor(count));
        let jitters = linalg::rising(JITTER);
        let mut set = Self {
            basis: Vec::new(),
            triangle: Vec::new(),
            held: Vec::new(),
            variables,
            factor: Cholesky::of_columns(count, Room::ToGrow, jitters, &|| !stop.now(), fill)?,
            room: Room::ToGrow.size(count),
            members,
            memory,
            ledger: ledger.clone(),
            stop: stop.clone(),
        };
        set.add_conditions(vec![1.0; count], 1).then_some(set)
    }

    /// Says in the ledger what is held now: conditions come and go.
    fn account(&mut self) {
        let size = self.members.len();
        if size > self.room {
            self.room = size;
        }
        let conditions = bytes_of::<f64>(self.basis.len() * size);
        let bytes = bytes_of::<f64>(self.room * self.room) + conditions;
        if bytes != self.memory.bytes() {
            // Not both at a time.
            self.memory = self.ledger.take(0);
            self.memory.grow(bytes);
        }
    }

    /// The samples of its variables, those that are held among them.
    pub(super) fn samples(&self) -> impl ExactSizeIterator<Item = usize> {
        let members = self.members.iter();
        members.map(|&v| self.variables.sample_of(v))
    }

    /// The same for other names of its variables.
    pub(super) fn with_members(mut self, variables: Variables, members: Vec<usize>) -> Self {
        (self.variables, self.members) = (variables, members);
        self
    }

    /// Its variables, those that are held among them.
    pub(super) fn members(&self) -> &[usize] {
        &self.members
    }

    /// How many variables it has.
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// The samples of the variables that are not held.
    pub(super) fn moving(&self) -> Vec<usize> {
        let mut is_held = vec![false; self.members.len()];
        for &position in &self.held {
            is_held[position] = true;
        }
        let pairs = self.samples().zip(is_held);
        pairs.filter(|(_, held)| !held).map(|(i, _)| i).collect()
    }

    fn too_many(&self, further: usize) -> bool {
        self.held.len() + further > most_conditions(self.members.len())
    }

    /// Follows β to where these variables are free: those that are no longer are held, new ones join the factorisation with
    /// their entries of the same K. False where too much changed, or K does not allow it.
    pub(super) fn follow(
        &mut self,
        free: &[usize],
        entries: impl Fn(usize, &[usize], &mut [f64]),
    ) -> bool {
        let sample_of = |v: &usize| self.variables.sample_of(*v);
        let mut is_known = vec![false; free.len()];
        let mut held = Vec::new();
        for (position, &v) in self.members.iter().enumerate() {
            match free.binary_search_by_key(&sample_of(&v), sample_of) {
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
        if changed * CHANGED > self.members.len() || self.too_many(fresh.len()) {
            return false;
        }
        for position in released {
            self.release(position);
        }
        if !further.is_empty() && !self.extend(&further, entries) {
            return false;
        }
        let is_held = fresh.is_empty() || self.hold(&fresh);
        self.account();
        is_held
    }

    /// Takes these variables in, with their entries of the same K. False where K does not allow it.
    fn extend(&mut self, further: &[usize], entries: impl Fn(usize, &[usize], &mut [f64])) -> bool {
        let old = self.members.len();
        self.members.extend_from_slice(further);
        let all = self.members.len();
        let columns: Vec<usize> = self.samples().collect();
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
        // L⁻¹A = QR gets further rows, by the same forward substitution with the new rows of L. They are rotated into R one by one.
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
                let rotation = Givens::new(self.triangle[i][i], row[i]);
                for (column, value) in self.triangle[i..].iter_mut().zip(&mut row[i..]) {
                    rotation.pair(&mut column[i], value);
                }
                rotation.vectors(&mut self.basis[i], &mut rest);
            }
        }
        true
    }

    /// Lets a variable that is held move again: L⁻¹A = QR without that column, brought back to a triangle by Givens rotations of neighbours.
    fn release(&mut self, position: usize) {
        let Some(at) = self.held.iter().position(|&held| held == position) else {
            return;
        };
        self.held.remove(at);
        // The first condition is the sum.
        self.triangle.remove(at + 1);
        for i in at + 1..self.triangle.len() {
            let rotation = Givens::new(self.triangle[i][i], self.triangle[i][i + 1]);
            for column in &mut self.triangle[i..] {
                let (upper, lower) = column.split_at_mut(i + 1);
                rotation.pair(&mut upper[i], &mut lower[0]);
            }
            self.triangle[i].truncate(i + 1);
            let (first, second) = self.basis.split_at_mut(i + 1);
            rotation.vectors(&mut first[i], &mut second[0]);
        }
        self.basis.pop();
    }

    /// Holds these positions, in ascending order, from now on; false where nothing would be left to move, or a stop came.
    fn hold(&mut self, positions: &[usize]) -> bool {
        self.held.extend_from_slice(positions);
        positions.chunks(CONDITIONS).all(|some| {
            if self.stop.now() {
                return false;
            }
            // L⁻¹e is zero before the place of the one.
            let (first, count) = (some[0], some.len());
            let mut units = vec![0.0; (self.members.len() - first) * count];
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
        let zeros = self.members.len() - conditions.len() / count;
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
        let all = self.members.len();
        let slopes: Vec<f64> = self.members.iter().map(|&v| qp.slope(product, v)).collect();
        let room: Vec<(f64, f64)> = self
            .members
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
        self.account();
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
        for (position, &v) in self.members.iter().enumerate() {
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
mod tests;
