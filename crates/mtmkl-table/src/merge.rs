//! Equal samples are one, and the order of rows makes no difference (ADR 11).
//!
//! Within a task, samples with the same row and the same target are taken together and their weights added; the rest is sorted by its
//! numbers, then mixed in a fixed way, since a fit starts from some of the rows, which should be like the others. The problem is the
//! same, only smaller; and so the order of rows, and whether a row has weight 2 or stands there twice, makes no difference to a
//! single bit of the answer.

use std::cmp::Ordering;

use mtmkl::RowValues;
use mtmkl::random::Random;

use crate::Result;
use crate::error::TableError;
use crate::names::Names;

/// The rows of one sample set, and how often each counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The task that it is for.
    pub name: String,
    /// The rows.
    pub rows: Vec<usize>,
    /// Their weights.
    pub weights: Vec<f64>,
}

/// The `rows` of each task with their weights, tasks in the order of names; rows of weight 0 are left out.
///
/// # Errors
/// When a task has no row left.
pub fn groups(
    rows: &[usize],
    tasks: Option<&Names>,
    only: &str,
    weights: Option<&[f64]>,
) -> Result<Vec<Group>> {
    let sets = match tasks {
        Some(names) => {
            let own = names.select(rows);
            let groups = own.groups().into_iter();
            groups
                .map(|(name, places)| {
                    (
                        name.to_string(),
                        places.into_iter().map(|at| rows[at]).collect(),
                    )
                })
                .collect()
        }
        None => vec![(only.to_string(), rows.to_vec())],
    };
    let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
    let group = |(name, mut rows): (String, Vec<usize>)| {
        rows.retain(|&row| weight(row) != 0.0);
        if rows.is_empty() {
            return Err(TableError::NoWeight { task: name });
        }
        let weights = rows.iter().map(|&row| weight(row)).collect();
        Ok(Group {
            name,
            rows,
            weights,
        })
    };
    sets.into_iter().map(group).collect()
}

impl Group {
    /// Takes equal samples together and puts the rest in the order that depends on nothing but the samples. `row` are the numbers of
    /// the sample at a place in the group, `same` tells samples apart that have the same row: their class or target. Gives back the
    /// place that each sample had.
    pub fn merge<'a>(
        &mut self,
        row: impl Fn(usize) -> &'a [f64],
        same: Option<&[f64]>,
    ) -> Vec<usize> {
        self.merge_by(|a, b| by_numbers(row(a), row(b)), same)
    }

    /// The same with rows, which may be sparse: their order is that of rows with all their zeros.
    pub(crate) fn merge_rows(&mut self, rows: &RowValues, same: Option<&[f64]>) -> Vec<usize> {
        match rows {
            RowValues::Sparse(rows) => self.merge_by(|a, b| rows.rows().compare(a, b), same),
            RowValues::Dense(values) => {
                let columns = values.len() / self.rows.len().max(1);
                self.merge(|at| &values[at * columns..(at + 1) * columns], same)
            }
        }
    }

    /// The same with the order of the rows of two samples at places in the group.
    pub fn merge_by(
        &mut self,
        rows: impl Fn(usize, usize) -> Ordering,
        same: Option<&[f64]>,
    ) -> Vec<usize> {
        let compare = |a: usize, b: usize| -> Ordering {
            let target = |at: usize| same.map_or(0.0, |same| same[at]);
            rows(a, b).then_with(|| by_numbers(&[target(a)], &[target(b)]))
        };
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
        let mut kept: Vec<(usize, f64)> = Vec::with_capacity(order.len());
        for &at in &order {
            match kept.last_mut() {
                Some((first, weight)) if compare(*first, at).is_eq() => *weight += self.weights[at],
                _ => kept.push((at, self.weights[at])),
            }
        }
        Random::new(0).shuffle(&mut kept);
        let places: Vec<usize> = kept.iter().map(|(at, _)| *at).collect();
        self.rows = places.iter().map(|&at| self.rows[at]).collect();
        self.weights = kept.into_iter().map(|(_, weight)| weight).collect();
        places
    }
}

/// Numbers one after the other; −0 and 0 are one.
fn by_numbers(a: &[f64], b: &[f64]) -> Ordering {
    let mut pairs = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x + 0.0).total_cmp(&(y + 0.0)));
    pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Moves the rows at these places to the front, in this order, and forgets the others; nothing is copied elsewhere.
pub(crate) fn move_rows(rows: &mut RowValues, columns: usize, places: &[usize]) {
    let values = match rows {
        RowValues::Dense(values) => values,
        RowValues::Sparse(sparse) => {
            *sparse = sparse.select(places);
            return;
        }
    };
    let count = values.len() / columns.max(1);
    let mut is_wanted = vec![false; count];
    for &place in places {
        is_wanted[place] = true;
    }
    let rest = (0..count).filter(|&place| !is_wanted[place]);
    let from: Vec<usize> = places.iter().copied().chain(rest).collect();
    let mut done = vec![false; count];
    for start in 0..count {
        let mut at = start;
        // Around a cycle of the permutation, every exchange puts one row where it belongs.
        while !done[at] {
            done[at] = true;
            let next = from[at];
            if next != start {
                for column in 0..columns {
                    values.swap(at * columns + column, next * columns + column);
                }
            }
            at = next;
        }
    }
    values.truncate(places.len() * columns);
}
