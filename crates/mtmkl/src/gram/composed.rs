//! Kernels of one sample set that are kept in different ways, as one operator: each part does its share, and sums are sums of parts.

use std::sync::Arc;

use rayon::prelude::*;

use super::operator::{ByChange, Image, OnSupport, Operator};
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::view::View;

/// Operators on the same samples, side by side.
#[derive(Debug)]
pub(super) struct Composed {
    parts: Vec<Arc<dyn Operator>>,
    /// For each kernel its part, and its number there.
    places: Vec<(usize, usize)>,
}

/// A part, and the weights of its kernels.
struct Share<'a> {
    part: &'a dyn Operator,
    weights: Vec<(usize, f64)>,
}

impl Composed {
    /// The operator whose kernel m is kernel `places[m].1` of part `places[m].0`; the only part where there is one.
    pub(super) fn of(
        mut parts: Vec<Arc<dyn Operator>>,
        places: Vec<(usize, usize)>,
    ) -> Arc<dyn Operator> {
        match parts.pop() {
            Some(only) if parts.is_empty() => only,
            last => {
                parts.extend(last);
                Arc::new(Self { parts, places })
            }
        }
    }

    /// What belongs to each part, by the numbers of its kernels.
    fn by_part<T>(&self, kernels: impl Iterator<Item = (usize, T)>) -> Vec<Vec<(usize, T)>> {
        let mut by_part: Vec<Vec<(usize, T)>> = self.parts.iter().map(|_| Vec::new()).collect();
        for (kernel, with) in kernels {
            let (part, number) = self.places[kernel];
            by_part[part].push((number, with));
        }
        by_part
    }

    /// Each part with its share of the weights, where it has one; those that make their values first.
    fn shares(&self, weights: &[(usize, f64)]) -> Vec<Share<'_>> {
        let shares = self.by_part(weights.iter().copied());
        let mut shares: Vec<Share<'_>> = self
            .parts
            .iter()
            .zip(shares)
            .filter(|(_, weights)| !weights.is_empty())
            .map(|(part, weights)| Share {
                part: part.as_ref(),
                weights,
            })
            .collect();
        shares.sort_by_key(|share| !share.part.are_made());
        shares
    }

    /// Results of all kernels, handed to the part that makes them, in the order of its kernels.
    fn outs<'a>(&self, out: Vec<&'a mut [f64]>) -> Vec<Vec<&'a mut [f64]>> {
        let by_part = self.by_part(out.into_iter().enumerate());
        let sorted = by_part.into_iter().map(|mut outs| {
            outs.sort_by_key(|(number, _)| *number);
            outs.into_iter().map(|(_, out)| out).collect()
        });
        sorted.collect()
    }
}

impl Operator for Composed {
    fn samples(&self) -> usize {
        self.parts.first().map_or(0, |part| part.samples())
    }

    fn kernels(&self) -> usize {
        self.places.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        let (part, number) = self.places[kernel];
        self.parts[part].diagonal(number)
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        let (part, number) = self.places[kernel];
        self.parts[part].indefiniteness(number)
    }

    fn ledger(&self) -> &Ledger {
        self.parts[0].ledger()
    }

    fn are_made(&self) -> bool {
        self.parts.iter().any(|part| part.are_made())
    }

    fn is_streamed(&self) -> bool {
        self.parts.iter().any(|part| part.is_streamed())
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let (part, number) = self.places[kernel];
        self.parts[part].add_rows(view, number, rows, out);
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        for Share { part, weights } in self.shares(weights) {
            part.add_kernels(view, i, &weights, out);
        }
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
        let mut entries = vec![0.0; out.len()];
        for Share { part, weights } in self.shares(weights) {
            part.entries(view, i, columns, &weights, &mut entries);
            crate::vector::axpy(1.0, &entries, out);
        }
    }

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], stop: &Stop) {
        let shares = self.shares(weights);
        let Some((first, others)) = shares.split_first() else {
            out.fill(0.0);
            return;
        };
        first.part.combine(view, &first.weights, out, stop);
        let count = view.count(self.samples());
        let rows = out.par_chunks_mut(count.max(1)).enumerate();
        rows.for_each(|(i, row)| {
            for Share { part, weights } in others {
                part.add_kernels(view, i, weights, row);
            }
        });
    }

    fn combine_rounded(&self, view: &View, weights: &[(usize, f64)], out: &mut [f32], stop: &Stop) {
        let shares = self.shares(weights);
        let Some((first, others)) = shares.split_first() else {
            out.fill(0.0);
            return;
        };
        first.part.combine_rounded(view, &first.weights, out, stop);
        if others.is_empty() {
            return;
        }
        let count = view.count(self.samples());
        let rows = out.par_chunks_mut(count.max(1)).enumerate();
        rows.for_each(|(i, out)| {
            let mut row = vec![0.0; count];
            crate::vector::widen(out, &mut row);
            for Share { part, weights } in others {
                part.add_kernels(view, i, weights, &mut row);
            }
            crate::vector::narrow(&row, out);
        });
    }

    fn multiply(&self, view: &View, weights: &[(usize, f64)], v: &[f64], stop: &Stop) -> Vec<f64> {
        let mut sum = vec![0.0; v.len()];
        for Share { part, weights } in self.shares(weights) {
            let product = part.multiply(view, &weights, v, stop);
            crate::vector::axpy(1.0, &product, &mut sum);
        }
        sum
    }

    fn images(&self, view: &View, tasks: Vec<Image<'_>>) {
        let mut by_part: Vec<Vec<Image<'_>>> = self.parts.iter().map(|_| Vec::new()).collect();
        for task in tasks {
            match task {
                Image::Support(OnSupport { beta, support, out }) => {
                    for (images, out) in by_part.iter_mut().zip(self.outs(out)) {
                        images.push(Image::Support(OnSupport { beta, support, out }));
                    }
                }
                Image::Change(ByChange { change, out }) => {
                    for (images, out) in by_part.iter_mut().zip(self.outs(out)) {
                        let change = change.clone();
                        images.push(Image::Change(ByChange { change, out }));
                    }
                }
            }
        }
        for (part, images) in self.parts.iter().zip(by_part) {
            part.images(view, images);
        }
    }

    fn sweep(&self, view: &View, tasks: Vec<ByChange<'_>>, stop: &Stop) -> Option<u64> {
        let mut by_part: Vec<Vec<ByChange<'_>>> = self.parts.iter().map(|_| Vec::new()).collect();
        for ByChange { change, out } in tasks {
            for (changes, out) in by_part.iter_mut().zip(self.outs(out)) {
                let change = change.clone();
                changes.push(ByChange { change, out });
            }
        }
        let parts = self.parts.iter().zip(by_part);
        parts
            .map(|(part, tasks)| part.sweep(view, tasks, stop))
            .sum()
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes()).sum()
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        let mut parts: Vec<Arc<dyn Operator>> = Vec::new();
        let mut places = vec![(0, 0); kernels.len()];
        // Where each kernel stands among those that are wanted.
        let wanted: Vec<(usize, usize)> = kernels.iter().copied().zip(0..).collect();
        for (part, share) in self.parts.iter().zip(self.by_part(wanted.into_iter())) {
            if share.is_empty() {
                continue;
            }
            for (number, &(_, at)) in share.iter().enumerate() {
                places[at] = (parts.len(), number);
            }
            let numbers: Vec<usize> = share.iter().map(|(number, _)| *number).collect();
            parts.push(part.part(&numbers, view));
        }
        (!parts.is_empty()).then(|| Self::of(parts, places))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        let shares = self.by_part(kernels.iter().map(|&kernel| (kernel, ())));
        let parts = self.parts.iter().zip(shares);
        let bytes = parts.map(|(part, share)| {
            let numbers: Vec<usize> = share.iter().map(|(number, ())| *number).collect();
            part.bytes_of_part(&numbers, samples)
        });
        bytes.sum()
    }
}
