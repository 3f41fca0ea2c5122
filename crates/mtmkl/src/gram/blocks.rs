//! Kernels of samples in groups, zero between groups: each group has an operator of its own, so that they take Σ_g n_g² numbers, not n².

use std::ops::Range;
use std::sync::Arc;

use super::operator::{ByChange, Operator, by_kernel};
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::view::View;

/// K_m(i, j) of the group that i and j are both in; 0 where they are in different ones.
#[derive(Debug)]
pub(super) struct Blocks {
    groups: Vec<Group>,
    /// The group of each sample, and its place there.
    places: Vec<(usize, usize)>,
    diagonals: Vec<Vec<f64>>,
    ledger: Ledger,
}

#[derive(Debug)]
struct Group {
    operator: Arc<dyn Operator>,
    /// Its samples, ascending.
    members: Vec<usize>,
    /// The same, where they lie together.
    range: Option<Range<usize>>,
}

impl Blocks {
    /// Of operators for the same kernels, each with the samples of the set that are its.
    pub(super) fn new(
        groups: Vec<(Arc<dyn Operator>, Vec<usize>)>,
        kernels: usize,
        ledger: &Ledger,
    ) -> Self {
        let samples = groups.iter().map(|(_, members)| members.len()).sum();
        let mut places = vec![(0, 0); samples];
        let mut diagonals = vec![vec![0.0; samples]; kernels];
        for (number, (operator, members)) in groups.iter().enumerate() {
            for (at, &sample) in members.iter().enumerate() {
                places[sample] = (number, at);
                for (kernel, diagonal) in diagonals.iter_mut().enumerate() {
                    diagonal[sample] = operator.diagonal(kernel)[at];
                }
            }
        }
        let group = |(operator, members): (Arc<dyn Operator>, Vec<usize>)| {
            let together = members.windows(2).all(|pair| pair[1] == pair[0] + 1);
            let first = members.first().copied().unwrap_or(0);
            Group {
                range: together.then(|| first..first + members.len()),
                operator,
                members,
            }
        };
        Self {
            groups: groups.into_iter().map(group).collect(),
            places,
            diagonals,
            ledger: ledger.clone(),
        }
    }

    /// The places in a view whose samples are in a group, and where in the group these are.
    fn seen(&self, view: &View, group: usize) -> (Vec<usize>, Vec<usize>) {
        let own = view.iter(self.places.len()).enumerate();
        let own = own.filter(|(_, sample)| self.places[*sample].0 == group);
        own.map(|(place, sample)| (place, self.places[sample].1))
            .unzip()
    }

    /// `add` of a group's operator to what `out` has of the group: in place where its samples lie together as they are seen.
    fn add_in_group(
        &self,
        view: &View,
        group: usize,
        out: &mut [f64],
        add: impl FnOnce(&View, &mut [f64]),
    ) {
        let own = &self.groups[group];
        match &own.range {
            Some(range) if view.is_all() => add(&View::All, &mut out[range.clone()]),
            _ => {
                let (places, members) = if view.is_all() {
                    let all = (0..own.members.len()).collect();
                    (own.members.clone(), all)
                } else {
                    self.seen(view, group)
                };
                let mut part = vec![0.0; places.len()];
                add(&View::of(members), &mut part);
                for (place, value) in places.into_iter().zip(part) {
                    out[place] += value;
                }
            }
        }
    }
}

impl Operator for Blocks {
    fn samples(&self) -> usize {
        self.places.len()
    }

    fn kernels(&self) -> usize {
        self.diagonals.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        let groups = self.groups.iter();
        groups
            .map(|group| group.operator.indefiniteness(kernel))
            .fold(0.0, f64::max)
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn are_made(&self) -> bool {
        self.groups.iter().any(|group| group.operator.are_made())
    }

    fn is_streamed(&self) -> bool {
        self.groups.iter().any(|group| group.operator.is_streamed())
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let mut by_group: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.groups.len()];
        for &(i, a) in rows {
            let (group, at) = self.places[view.position(i)];
            by_group[group].push((at, a));
        }
        for (number, rows) in by_group.into_iter().enumerate() {
            if rows.is_empty() {
                continue;
            }
            let group = &self.groups[number];
            self.add_in_group(view, number, out, |seen, out| {
                add_seen(group.operator.as_ref(), kernel, &rows, seen, out);
            });
        }
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let (number, at) = self.places[view.position(i)];
        let operator = &self.groups[number].operator;
        self.add_in_group(view, number, out, |seen, out| {
            if seen.is_all() {
                operator.add_kernels(seen, at, weights, out);
            } else {
                let columns: Vec<usize> = seen.iter(operator.samples()).collect();
                operator.entries(&View::All, at, &columns, weights, out);
            }
        });
    }

    fn entries(
        &self,
        view: &View,
        i: usize,
        columns: &[usize],
        weights: &[(usize, f64)],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let (group, at) = self.places[view.position(i)];
        let own = columns.iter().enumerate().filter_map(|(place, &j)| {
            let (other, member) = self.places[view.position(j)];
            (other == group).then_some((place, member))
        });
        let (places, members): (Vec<usize>, Vec<usize>) = own.unzip();
        let mut values = vec![0.0; places.len()];
        let operator = &self.groups[group].operator;
        operator.entries(&View::All, at, &members, weights, &mut values);
        for (place, value) in places.into_iter().zip(values) {
            out[place] = value;
        }
    }

    fn multiply(&self, view: &View, weights: &[(usize, f64)], v: &[f64], stop: &Stop) -> Vec<f64> {
        let mut product = vec![0.0; v.len()];
        for (number, group) in self.groups.iter().enumerate() {
            let (places, members) = self.seen(view, number);
            let own: Vec<f64> = places.iter().map(|&place| v[place]).collect();
            let part = (group.operator).multiply(&View::of(members), weights, &own, stop);
            for (place, value) in places.into_iter().zip(part) {
                product[place] = value;
            }
        }
        product
    }

    fn sweep(&self, view: &View, tasks: Vec<ByChange<'_>>, stop: &Stop) -> Option<u64> {
        let mut tasks = tasks;
        let groups = (0..self.groups.len()).map(|group| {
            let operator = &self.groups[group].operator;
            let (places, members) = self.seen(view, group);
            let mut place = vec![None; operator.samples()];
            for (at, &member) in members.iter().enumerate() {
                place[member] = Some(at);
            }
            // What a task changes within the group, and room for what that makes of U there.
            let own = |change: &[(usize, f64)]| -> Vec<(usize, f64)> {
                let within = change.iter().filter_map(|&(i, a)| {
                    let (other, member) = self.places[view.position(i)];
                    // Another group's members have numbers of their own.
                    let at = (other == group).then(|| place[member]).flatten()?;
                    Some((at, a))
                });
                within.collect()
            };
            let kernels = self.kernels();
            let mut parts: Vec<_> = (tasks.iter())
                .enumerate()
                .map(|(task, asked)| (task, own(&asked.change)))
                .filter(|(_, change)| !change.is_empty())
                .map(|(task, change)| (task, change, vec![0.0; kernels * places.len()]))
                .collect();
            let asked = parts.iter_mut().map(|(_, change, out)| ByChange {
                change: std::mem::take(change),
                out: by_kernel(out, kernels),
            });
            let asked: Vec<ByChange<'_>> = asked.collect();
            let pairs = if asked.is_empty() {
                Some(0)
            } else {
                operator.sweep(&View::of(members), asked, stop)
            };
            for (task, _, values) in &parts {
                let values = values.chunks_exact(places.len().max(1));
                for (out, values) in tasks[*task].out.iter_mut().zip(values) {
                    for (&at, value) in places.iter().zip(values) {
                        out[at] += value;
                    }
                }
            }
            pairs
        });
        groups.sum()
    }

    fn bytes(&self) -> u64 {
        let groups = self.groups.iter();
        groups.map(|group| group.operator.bytes()).sum()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let numbers = 0..self.groups.len();
        let groups = numbers.filter_map(|number| {
            let (places, members) = self.seen(view, number);
            if places.is_empty() {
                return None;
            }
            let operator = self.groups[number]
                .operator
                .part(kernels, &View::of(members));
            Some((operator, places))
        });
        Some(Arc::new(Self::new(
            groups.collect(),
            kernels.len(),
            &self.ledger,
        )))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        let mut groups: Vec<&Group> = self.groups.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.members.len()));
        let mut left = samples;
        let bytes = groups.into_iter().map(|group| {
            let own = group.members.len().min(left);
            left -= own;
            group.operator.bytes_of_part(kernels, own)
        });
        bytes.sum()
    }
}

/// out ← out + Σ_(i, a) a · (row i of K_m), i a sample and out only what is seen.
fn add_seen(
    operator: &dyn Operator,
    kernel: usize,
    rows: &[(usize, f64)],
    seen: &View,
    out: &mut [f64],
) {
    if seen.is_all() {
        operator.add_rows(seen, kernel, rows, out);
        return;
    }
    // Rows are of the view, so each of them is among what is seen of its group.
    let mut place = vec![0; operator.samples()];
    for (at, member) in seen.iter(operator.samples()).enumerate() {
        place[member] = at;
    }
    let rows: Vec<(usize, f64)> = rows.iter().map(|&(i, a)| (place[i], a)).collect();
    operator.add_rows(seen, kernel, &rows, out);
}
