//! Gram matrices that are made when they are needed: for so many kernels that their matrices would not fit into memory.
//!
//! What is kept is the base, n × n numbers for all kernels on the same columns. Each use maps pieces of it that stay in the first
//! cache. Every value has the same bits as if it had been kept, and since matrices are symmetric, sums over all of a matrix map half
//! of it.

use std::sync::Arc;

use rayon::prelude::*;

use super::images::{self, Factor, Outs, Sums};
use super::kept::subset;
use super::map::{Map, first_overflow};
use super::memory::Part;
use super::operator::{Image, Operator};
use super::pairs::mirror;
use super::plan::square;
use super::triangle::{PIECE, Stretch, length, pieces};
use crate::ledger::Ledger;
use crate::run::Stop;
use crate::vector;
use crate::view::View;

/// One kernel's matrix: a map of one of the bases.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub(super) base: usize,
    pub(super) map: Map,
}

/// M matrices, not kept.
#[derive(Debug)]
pub(super) struct Mapped {
    samples: usize,
    /// n × n each, symmetric, row by row.
    bases: Vec<Part<f64>>,
    kernels: Vec<Made>,
    diagonals: Vec<Vec<f64>>,
    indefiniteness: Vec<f64>,
    /// Whether values are rounded to single precision.
    single: bool,
    ledger: Ledger,
}

/// Kernels that are made from one base at a time.
const TOGETHER: usize = 8;

/// Rows of a combined matrix that are made at a time.
const ROWS: usize = 16;

impl Mapped {
    pub(super) fn new(
        samples: usize,
        bases: Vec<Part<f64>>,
        kernels: Vec<Made>,
        indefiniteness: Vec<f64>,
        single: bool,
        ledger: &Ledger,
    ) -> Self {
        let mut mapped = Self {
            samples,
            bases,
            kernels,
            diagonals: Vec::new(),
            indefiniteness,
            single,
            ledger: ledger.clone(),
        };
        mapped.diagonals = mapped
            .kernels
            .iter()
            .map(|m| mapped.diagonal_of(m))
            .collect();
        mapped
    }

    /// The same with what is known about their definiteness, and rounded to single precision where asked.
    pub(super) fn finished(self, indefiniteness: Vec<f64>, single: bool) -> Self {
        let Self {
            samples,
            bases,
            kernels,
            ledger,
            ..
        } = self;
        Self::new(samples, bases, kernels, indefiniteness, single, &ledger)
    }

    fn diagonal_of(&self, made: &Made) -> Vec<f64> {
        let (base, n) = (&self.bases[made.base], self.samples);
        let mut values: Vec<f64> = (0..n).map(|i| base[i * n + i]).collect();
        made.map.kernel_values(&mut values);
        for (i, value) in values.chunks_exact_mut(1).enumerate() {
            self.finish(&made.map, value, i, i..=i);
        }
        values
    }

    /// K_m(i, columns), whole rows where there is no choice.
    pub(super) fn row(
        &self,
        kernel: usize,
        i: usize,
        columns: Option<&[usize]>,
        out: &mut Vec<f64>,
    ) {
        let Made { base, map } = &self.kernels[kernel];
        let n = self.samples;
        let row = &self.bases[*base][i * n..(i + 1) * n];
        out.clear();
        match columns {
            None => out.extend_from_slice(row),
            Some(columns) => out.extend(columns.iter().map(|&j| row[j])),
        }
        map.kernel_values(out);
        match columns {
            None => self.finish(map, out, i, 0..n),
            Some(columns) => self.finish(map, out, i, columns.iter().copied()),
        }
    }

    /// Which base a kernel is made from.
    pub(super) fn base_of_kernel(&self, kernel: usize) -> usize {
        self.kernels[kernel].base
    }

    /// Whether all values of a base are finite, base by base.
    pub(super) fn finite_bases(&self) -> Vec<bool> {
        let rows = |base: &Part<f64>| base.par_chunks(self.samples.max(1)).all(vector::all_finite);
        self.bases.iter().map(rows).collect()
    }

    /// The first value of a kernel that is not finite.
    pub(super) fn overflow(&self, kernel: usize) -> Option<f64> {
        let mut finite = true;
        self.visit(&[kernel], None, self.samples, |_, _, _, values| {
            finite &= vector::all_finite(values);
        });
        if finite {
            return None;
        }
        let mut row = Vec::new();
        let found = (0..self.samples).find_map(|i| {
            self.row(kernel, i, None, &mut row);
            (!vector::all_finite(&row)).then(|| first_overflow(&row))
        });
        Some(found.unwrap_or(f64::NAN))
    }

    /// What is left to do once the kernel has mapped part of row i: normalise it, round it.
    fn finish(&self, map: &Map, row: &mut [f64], i: usize, columns: impl Iterator<Item = usize>) {
        map.normaliser().part(row, i, columns);
        if self.single {
            for value in row {
                // Rounding is what is asked for.
                #[allow(clippy::cast_possible_truncation)]
                let rounded = *value as f32;
                *value = rounded.into();
            }
        }
    }

    /// The base values of a piece of the triangle of these samples.
    fn base_of(&self, base: usize, piece: &[Stretch], samples: Option<&[usize]>, out: &mut [f64]) {
        let (base, n) = (&self.bases[base][..], self.samples);
        let mut rest = out;
        for stretch in piece {
            let columns = stretch.from..stretch.until;
            let (out, after) = rest.split_at_mut(stretch.len());
            match samples {
                None => out.copy_from_slice(&base[stretch.row * n..][columns]),
                Some(samples) => {
                    let row = &base[samples[stretch.row] * n..][..n];
                    for (out, &j) in out.iter_mut().zip(&samples[columns]) {
                        *out = row[j];
                    }
                }
            }
            rest = after;
        }
    }

    /// Kernel values of a piece of the triangle from its base values.
    fn make(
        &self,
        map: &Map,
        base: &[f64],
        piece: &[Stretch],
        samples: Option<&[usize]>,
        values: &mut [f64],
    ) {
        map.kernel_values_from(base, values);
        if map.normaliser().is_idle() && !self.single {
            return;
        }
        let mut rest = values;
        for stretch in piece {
            let (row, after) = rest.split_at_mut(stretch.len());
            let columns = stretch.from..stretch.until;
            match samples {
                None => self.finish(map, row, stretch.row, columns),
                Some(samples) => {
                    let columns = columns.map(|j| samples[j]);
                    self.finish(map, row, samples[stretch.row], columns);
                }
            }
            rest = after;
        }
    }

    /// Calls `visit(number, row, from, values)` with the lower triangle of each of these kernels on these samples, piece by piece. The
    /// kernels have the same base.
    fn visit(
        &self,
        kernels: &[usize],
        samples: Option<&[usize]>,
        count: usize,
        mut visit: impl FnMut(usize, usize, usize, &[f64]),
    ) {
        let (mut base, mut buffer) = ([0.0; PIECE], [0.0; PIECE]);
        pieces(0..count, |piece| {
            let length = length(piece);
            let (base, values) = (&mut base[..length], &mut buffer[..length]);
            for (number, &kernel) in kernels.iter().enumerate() {
                let made = &self.kernels[kernel];
                if number == 0 {
                    self.base_of(made.base, piece, samples, base);
                }
                self.make(&made.map, base, piece, samples, values);
                let mut rest = &values[..];
                for stretch in piece {
                    let (row, after) = rest.split_at(stretch.len());
                    visit(number, stretch.row, stretch.from, row);
                    rest = after;
                }
            }
        });
    }

    /// Kernels of the same base together, in the order in which bases are first used.
    fn by_base<T>(&self, kernels: impl Iterator<Item = (usize, T)>) -> Vec<Vec<(usize, T)>> {
        let mut place = vec![None; self.bases.len()];
        let mut groups: Vec<Vec<(usize, T)>> = Vec::new();
        for (kernel, with) in kernels {
            let place = &mut place[self.kernels[kernel].base];
            let number = *place.get_or_insert(groups.len());
            if number == groups.len() {
                groups.push(Vec::new());
            }
            groups[number].push((kernel, with));
        }
        groups
    }
}

impl Operator for Mapped {
    fn samples(&self) -> usize {
        self.samples
    }

    fn kernels(&self) -> usize {
        self.kernels.len()
    }

    fn diagonal(&self, kernel: usize) -> &[f64] {
        &self.diagonals[kernel]
    }

    fn indefiniteness(&self, kernel: usize) -> f64 {
        self.indefiniteness[kernel]
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn are_made(&self) -> bool {
        true
    }

    fn add_rows(&self, view: &View, kernel: usize, rows: &[(usize, f64)], out: &mut [f64]) {
        let mut row = Vec::with_capacity(out.len());
        for &(i, a) in rows {
            self.row(kernel, view.position(i), view.rows(), &mut row);
            vector::axpy(a, &row, out);
        }
    }

    fn add_kernels(&self, view: &View, i: usize, weights: &[(usize, f64)], out: &mut [f64]) {
        let mut row = Vec::with_capacity(out.len());
        for &(kernel, a) in weights {
            self.row(kernel, view.position(i), view.rows(), &mut row);
            vector::axpy(a, &row, out);
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
        let chosen: Vec<usize> = columns.iter().map(|&j| view.position(j)).collect();
        let mut row = Vec::with_capacity(chosen.len());
        for &(kernel, a) in weights {
            self.row(kernel, view.position(i), Some(&chosen), &mut row);
            vector::axpy(a, &row, out);
        }
    }

    fn combine(&self, view: &View, weights: &[(usize, f64)], out: &mut [f64], _stop: &Stop) {
        let n = view.count(self.samples);
        // Each piece of a base is read once.
        let groups = self.by_base(weights.iter().copied());
        out.par_chunks_mut((ROWS * n).max(1))
            .enumerate()
            .for_each(|(number, rows)| {
                let first = number * ROWS;
                let [mut base, mut buffer, mut sums] = [[0.0; PIECE]; 3];
                pieces(first..first + rows.len() / n, |piece| {
                    let length = length(piece);
                    let (base, values) = (&mut base[..length], &mut buffer[..length]);
                    let sums = &mut sums[..length];
                    sums.fill(0.0);
                    for group in &groups {
                        for (position, &(kernel, weight)) in group.iter().enumerate() {
                            let made = &self.kernels[kernel];
                            if position == 0 {
                                self.base_of(made.base, piece, view.rows(), base);
                            }
                            self.make(&made.map, base, piece, view.rows(), values);
                            vector::axpy(weight, values, sums);
                        }
                    }
                    // Fresh memory is written once, not read before.
                    let mut rest = &*sums;
                    for stretch in piece {
                        let (values, after) = rest.split_at(stretch.len());
                        let at = (stretch.row - first) * n + stretch.from;
                        rows[at..at + values.len()].copy_from_slice(values);
                        rest = after;
                    }
                });
            });
        if n > 0 {
            mirror(out, n);
        }
    }

    fn images(&self, view: &View, tasks: Vec<Image<'_>>) {
        let mut supports = images::add_changes(self, view, tasks);
        if supports.is_empty() {
            return;
        }
        let count = view.count(self.samples);
        let (used, positions) = images::used(&supports, view, count);
        let factors: Vec<Factor> = supports
            .iter()
            .map(|task| Factor::new(task, &used))
            .collect();
        let outs = supports
            .iter_mut()
            .map(|task| std::mem::take(&mut task.out));
        let outs = images::outs_by_kernel(outs, self.kernels());
        // What is used of a base is picked once for several kernels.
        let mut groups: Vec<Vec<(usize, Outs<'_>)>> = Vec::new();
        for mut group in self.by_base(outs.into_iter().enumerate()) {
            while group.len() > TOGETHER {
                groups.push(group.split_off(group.len() - TOGETHER));
            }
            groups.push(group);
        }
        groups.into_par_iter().for_each(|mut group| {
            let kernels: Vec<usize> = group.iter().map(|(kernel, _)| *kernel).collect();
            let mut sums: Vec<Sums<'_>> = group.iter().map(|_| Sums::new(&factors)).collect();
            let samples = Some(positions.as_slice());
            self.visit(
                &kernels,
                samples,
                used.len(),
                |number, row, from, values| {
                    sums[number].add(row, from, values);
                },
            );
            for ((_, outs), sums) in group.iter_mut().zip(&sums) {
                sums.write(outs);
            }
        });
    }

    fn bytes(&self) -> u64 {
        (self.bases.len() as u64).saturating_mul(square(self.samples))
    }

    fn copied_part(&self, kernels: &[usize], view: &View) -> Option<Arc<dyn Operator>> {
        // Kernels that are made from one base stay so.
        let groups = self.by_base(kernels.iter().map(|&kernel| (kernel, ())));
        let mut place = vec![0; self.bases.len()];
        for (number, group) in groups.iter().enumerate() {
            place[self.kernels[group[0].0].base] = number;
        }
        let bases = groups.par_iter().map(|group| {
            let base = &self.bases[self.kernels[group[0].0].base];
            match view.rows() {
                Some(chosen) => subset(base, self.samples, chosen, &self.ledger),
                None => base.clone(),
            }
        });
        let made = kernels.iter().map(|&kernel| {
            let Made { base, map } = &self.kernels[kernel];
            Made {
                base: place[*base],
                map: map.subset(view),
            }
        });
        // No eigenvalue of a part is below the smallest of the whole.
        let known = kernels.iter().map(|&kernel| self.indefiniteness[kernel]);
        Some(Arc::new(Self::new(
            view.count(self.samples),
            bases.collect(),
            made.collect(),
            known.collect(),
            self.single,
            &self.ledger,
        )))
    }

    fn bytes_of_part(&self, kernels: &[usize], samples: usize) -> u64 {
        let bases = self.by_base(kernels.iter().map(|&kernel| (kernel, ())));
        (bases.len() as u64).saturating_mul(square(samples))
    }
}
