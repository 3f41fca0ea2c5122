//! From a plan to Gram matrices: each base computed once, then mapped by every kernel of its group.
//!
//! The base is computed in the memory of the group's last matrix. Then one sweep over its rows maps each piece to all matrices
//! of the group while it is in the first cache, the last matrix in place. So nothing is held but the Grams themselves, and each
//! of their pages is written once. Where they would not fit into memory, the base is kept instead (see [`super::mapped`]).

use std::sync::Arc;

use rayon::prelude::*;

use super::composed::Composed;
use super::definiteness::{self, Definiteness};
use super::kept::{Kept, Matrix};
use super::map::{Map, first_overflow};
use super::mapped::{Made, Mapped};
use super::memory::{Memory, Part};
use super::operator::Operator;
use super::pairs::{Packed, write_base};
use super::plan::{Form, Group, Plan, Source};
use super::streamed::Streamed;
use super::values::Values;
use crate::data::{GivenGram, Kind, Samples};
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::{Kernel, KernelView, Statistic};
use crate::ledger::Ledger;
use crate::vector;

/// Base values mapped at a time: with as many results they fill the first cache.
const PIECE: usize = 2048;

/// The Gram matrices of one sample set.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) operator: Arc<dyn Operator>,
    /// Whether all are positive semi-definite, as far as is known.
    pub(crate) is_semidefinite: bool,
}

/// What became of a group.
enum Computed {
    Matrices(Vec<(usize, Matrix)>),
    Base(Part<f64>, Vec<(usize, Map)>),
}

/// A kernel's number and the first value of it that is not finite.
type Overflow = Option<(usize, f64)>;

impl Plan {
    /// Computes what is planned, with the threads of the pool that this is called in.
    pub(crate) fn build(&self, ledger: &Ledger) -> Result<Built> {
        check_samples(&self.samples, self.index, &self.kernels)?;
        if self.is_streamed() {
            let made = Streamed::new(&self.samples, &self.kernels, self.options.normalise, ledger);
            return match made? {
                Ok(operator) => Ok(Built {
                    operator: Arc::new(operator),
                    is_semidefinite: true,
                }),
                Err(overflow) => Err(self.overflow_error(overflow)),
            };
        }
        let mut computed: Vec<(Computed, Overflow)> = Vec::new();
        for batch in self.batches() {
            let _taken = ledger.take(self.passing_of(batch));
            let groups = batch.par_iter();
            computed.par_extend(groups.map(|group| self.compute(group, ledger)));
        }
        let (computed, overflow): (Vec<Computed>, Vec<Overflow>) = computed.into_iter().unzip();
        self.assemble(computed, overflow, ledger)
    }

    fn place(&self, kernel: usize) -> Place {
        Place::Gram {
            samples: self.index,
            name: self.kernels[kernel].name.clone(),
        }
    }

    /// Refuses a kernel with a value beyond the range.
    fn refuse(&self, overflow: Overflow) -> Result<()> {
        overflow.map_or(Ok(()), |found| Err(self.overflow_error(found)))
    }

    fn overflow_error(&self, (number, value): (usize, f64)) -> Error {
        Error::data(self.place(number), DataProblem::Overflow(value))
    }

    fn compute(&self, group: &Group, ledger: &Ledger) -> (Computed, Overflow) {
        let work = Work {
            kernels: &self.kernels,
            members: &group.members,
            samples: &self.samples,
            normalise: self.options.normalise,
            ledger,
        };
        match (&group.source, group.form) {
            (Source::Given(grams), Form::Shared) => {
                let shared = grams.iter().map(|gram| Arc::clone(&gram.values));
                (work.matrices(shared.map(Matrix::Given)), None)
            }
            (Source::Given(grams), _) => work.normalised(grams),
            (Source::Statistic(statistic, columns), form) => {
                let (statistic, columns) = (statistic.as_ref(), columns.as_deref());
                match form {
                    Form::Base | Form::Rows => work.base(statistic, columns),
                    Form::Single => work.rounded(statistic, columns),
                    Form::Shared | Form::Double => work.double(statistic, columns),
                }
            }
        }
    }

    /// Matrices and bases of all groups → one operator, checked, rounded where that is left to do.
    fn assemble(
        &self,
        computed: Vec<Computed>,
        mut overflow: Vec<Overflow>,
        ledger: &Ledger,
    ) -> Result<Built> {
        let n = self.samples.count();
        let mut kept = Vec::new();
        let (mut bases, mut made) = (Vec::new(), Vec::new());
        for computed in computed {
            match computed {
                Computed::Matrices(matrices) => kept.extend(matrices),
                Computed::Base(base, maps) => {
                    let number = bases.len();
                    let maps = maps.into_iter();
                    made.extend(maps.map(|(kernel, map)| (kernel, Made { base: number, map })));
                    bases.push(base);
                }
            }
        }
        kept.sort_unstable_by_key(|(number, _)| *number);
        made.sort_unstable_by_key(|(number, _)| *number);
        let mut places = vec![(0, 0); self.kernels.len()];
        let first = usize::from(!kept.is_empty());
        for (at, (number, _)) in kept.iter().enumerate() {
            places[*number] = (0, at);
        }
        for (at, (number, _)) in made.iter().enumerate() {
            places[*number] = (first, at);
        }
        let (made_numbers, made): (Vec<usize>, Vec<Made>) = made.into_iter().unzip();
        let (kept_numbers, kept): (Vec<usize>, Vec<Matrix>) = kept.into_iter().unzip();
        let none = vec![0.0; made.len()];
        let mapped = Mapped::new(n, bases, made, none, false, ledger);
        overflow.push(self.overflow(&mapped, &made_numbers));
        let overflow = overflow.into_iter().flatten();
        self.refuse(overflow.min_by_key(|(number, _)| *number))?;
        let (known, is_semidefinite) = self.check(&kept, &mapped, &places, first, ledger)?;
        let of = |numbers: &[usize]| numbers.iter().map(|&number| known[number]).collect();
        let mut parts: Vec<Arc<dyn Operator>> = Vec::new();
        if !kept.is_empty() {
            let matrices = self.round(kept, &kept_numbers, ledger)?;
            parts.push(Arc::new(Kept::new(n, matrices, of(&kept_numbers), ledger)));
        }
        if !made_numbers.is_empty() {
            let mapped = mapped.finished(of(&made_numbers), self.options.single);
            parts.push(Arc::new(mapped));
        }
        if parts.is_empty() {
            parts.push(Arc::new(Kept::new(n, Vec::new(), Vec::new(), ledger)));
        }
        Ok(Built {
            operator: Composed::of(parts, places),
            is_semidefinite,
        })
    }

    /// The first kernel with a value beyond the range. Values are not kept, yet such a one is to be found now.
    fn overflow(&self, mapped: &Mapped, numbers: &[usize]) -> Overflow {
        let finite = mapped.finite_bases();
        numbers
            .par_iter()
            .enumerate()
            .filter(|&(at, &number)| {
                !(finite[mapped.base_of_kernel(at)] && self.kernels[number].kernel.is_bounded())
            })
            .find_map_first(|(at, &number)| Some((number, mapped.overflow(at)?)))
    }

    /// What is known about definiteness, kernel by kernel, and whether all are semi-definite.
    fn check(
        &self,
        kept: &[Matrix],
        mapped: &Mapped,
        places: &[(usize, usize)],
        first_made: usize,
        ledger: &Ledger,
    ) -> Result<(Vec<f64>, bool)> {
        let n = self.samples.count();
        let mut known = vec![0.0; self.kernels.len()];
        let mut is_semidefinite = true;
        let fill = |number: usize, out: &mut [f64]| match places[number] {
            (part, at) if part == first_made => {
                let mut row = Vec::with_capacity(n);
                for (i, out) in out.chunks_exact_mut(n).enumerate() {
                    mapped.row(at, i, None, &mut row);
                    out.copy_from_slice(&row);
                }
            }
            (_, at) => match kept[at].values() {
                Values::Double(values) => out.copy_from_slice(values),
                Values::Single(values) => vector::widen(values, out),
            },
        };
        for numbers in self.checked().chunks(self.checks_at_a_time().max(1)) {
            let _taken = ledger.take(numbers.len() as u64 * self.copies_of_check());
            let check = |&number: &usize| {
                // Normalised, a sample with k(x, x) < 0 would pass for one of zero norm.
                if let Some(given) = self.given_with_negative_diagonal(number)
                    && self.options.definiteness == Definiteness::Check
                {
                    let given = |out: &mut [f64]| out.copy_from_slice(given);
                    definiteness::check(n, given, self.place(number))?;
                }
                definiteness::check(n, |out| fill(number, out), self.place(number))
            };
            let checked: Vec<Result<f64>> = numbers.par_iter().map(check).collect();
            for (&number, checked) in numbers.iter().zip(checked) {
                known[number] = match checked {
                    Err(Error::Data {
                        problem: DataProblem::Indefinite { smallest, .. },
                        ..
                    }) if self.options.definiteness == Definiteness::AllowIndefinite => {
                        is_semidefinite = false;
                        -smallest
                    }
                    other => other?,
                };
            }
        }
        Ok((known, is_semidefinite))
    }

    /// The matrix of a precomputed kernel as it was given, where k(x, x) < 0 for some sample.
    fn given_with_negative_diagonal(&self, number: usize) -> Option<&[f64]> {
        let name = self.kernels[number].kernel.given()?;
        let mut grams = self.samples.grams().iter();
        let given = &grams.find(|gram| gram.name == name)?.values;
        let mut diagonal = given.iter().step_by(self.samples.count() + 1);
        diagonal.any(|&own| own < 0.0).then_some(given.as_slice())
    }

    /// Matrices in single precision, where these are asked for.
    fn round(
        &self,
        matrices: Vec<Matrix>,
        numbers: &[usize],
        ledger: &Ledger,
    ) -> Result<Vec<Matrix>> {
        if !self.options.single {
            return Ok(matrices);
        }
        let rounded: Vec<(Matrix, Option<f64>)> = matrices
            .par_iter()
            .map(|matrix| matrix.clone().into_single(ledger))
            .collect();
        let mut beyond = numbers.iter().zip(&rounded);
        let first = beyond.find_map(|(&number, (_, value))| Some((number, (*value)?)));
        self.refuse(first)?;
        Ok(rounded.into_iter().map(|(matrix, _)| matrix).collect())
    }
}

/// Whether the kernels can be used on these samples.
pub(super) fn check_samples(samples: &Samples, index: usize, kernels: &[KernelView]) -> Result<()> {
    for view in kernels {
        let columns = view.columns.resolve(samples.columns())?;
        if !view.kernel.base().is_given() && samples.columns().is_empty() {
            let problem = DataProblem::Empty(
                "the samples have no columns, so only precomputed kernels can be used",
            );
            return Err(Error::data(Place::Samples(index), problem));
        }
        check_domain(samples, index, columns.as_deref(), view.kernel.as_ref())?;
    }
    Ok(())
}

fn check_domain(
    samples: &Samples,
    index: usize,
    columns: Option<&[usize]>,
    kernel: &dyn Kernel,
) -> Result<()> {
    let Some(name) = kernel.needs_non_negative() else {
        return Ok(());
    };
    let rows = samples.rows();
    let found = match rows.kind() {
        Kind::Sparse(sparse) => sparse.first_negative(columns),
        Kind::Dense(values) => {
            let width = rows.columns().max(1);
            let all: Vec<usize> = (0..width).collect();
            let mut rows = values.chunks_exact(width).enumerate();
            rows.find_map(|(row, values)| {
                let mut seen = columns.unwrap_or(&all).iter();
                let column = *seen.find(|&&column| values[column] < 0.0)?;
                Some((row, column, values[column]))
            })
        }
    };
    let Some((row, column, value)) = found else {
        return Ok(());
    };
    let place = Place::Cell {
        samples: index,
        row,
        column: samples.columns()[column].clone(),
    };
    let problem = DataProblem::Negative {
        value,
        kernel: name,
    };
    Err(Error::data(place, problem))
}

/// The kernels of one group, to be computed.
struct Work<'a> {
    kernels: &'a [KernelView],
    /// Their numbers among all kernels.
    members: &'a [usize],
    samples: &'a Samples,
    normalise: bool,
    ledger: &'a Ledger,
}

impl Work<'_> {
    fn matrices(&self, matrices: impl Iterator<Item = Matrix>) -> Computed {
        Computed::Matrices(self.members.iter().copied().zip(matrices).collect())
    }

    /// The caller's matrices, normalised.
    fn normalised(&self, grams: &[GivenGram]) -> (Computed, Overflow) {
        let n = self.samples.count();
        let mut values = Memory::zeros(grams.len() * n * n, self.ledger);
        let mut overflow = None;
        for ((out, gram), number) in values.chunks_exact_mut(n * n).zip(grams).zip(self.members) {
            out.copy_from_slice(&gram.values);
            let maps = self.maps(out, std::slice::from_ref(number));
            let found = sweep(out, n, &maps);
            overflow = overflow.or(found.map(|(_, value)| (*number, value)));
        }
        let parts = Part::split(values, n * n).map(Matrix::Built);
        (self.matrices(parts), overflow)
    }

    /// Matrices in double precision.
    fn double(&self, statistic: &dyn Statistic, columns: Option<&[usize]>) -> (Computed, Overflow) {
        let n = self.samples.count();
        let mut values = Memory::zeros(self.members.len() * n * n, self.ledger);
        let mut overflow = None;
        if let Some(last) = values.chunks_exact_mut(n * n).next_back() {
            self.write_base(statistic, columns, last);
            let maps = self.maps(last, self.members);
            overflow = sweep(&mut values, n, &maps);
        }
        let parts = Part::split(values, n * n).map(Matrix::Built);
        (self.matrices(parts), self.numbered(overflow))
    }

    /// Matrices in single precision, rounded piece by piece.
    fn rounded(
        &self,
        statistic: &dyn Statistic,
        columns: Option<&[usize]>,
    ) -> (Computed, Overflow) {
        let n = self.samples.count();
        let mut base = Memory::reserved(n * n);
        self.write_base(statistic, columns, &mut base);
        let maps = self.maps(&base, self.members);
        let mut rounded = Memory::<f32>::zeros(self.members.len() * n * n, self.ledger);
        let rows = (PIECE / n).max(1);
        let found = row_pieces(&mut rounded, n, rows)
            .into_par_iter()
            .zip(base.par_chunks(rows * n))
            .enumerate()
            .filter_map(|(number, (parts, base))| {
                let mut buffer = vec![0.0; base.len()];
                let mut first = None;
                for (position, (map, part)) in maps.iter().zip(parts).enumerate() {
                    buffer.copy_from_slice(base);
                    map.apply(&mut buffer, number * rows);
                    vector::narrow(&buffer, part);
                    // Beyond the range of single precision is beyond the range.
                    let beyond = part.iter().position(|value| !value.is_finite());
                    first = first.or(beyond.map(|at| (position, buffer[at])));
                }
                first
            })
            .collect();
        let parts = Part::split(rounded, n * n).map(Matrix::Single);
        (self.matrices(parts), self.numbered(first_found(found)))
    }

    /// The base alone, to make matrices from when they are needed.
    fn base(&self, statistic: &dyn Statistic, columns: Option<&[usize]>) -> (Computed, Overflow) {
        let n = self.samples.count();
        let mut base = Memory::zeros(n * n, self.ledger);
        self.write_base(statistic, columns, &mut base);
        let maps = self.maps(&base, self.members);
        let maps = self.members.iter().copied().zip(maps).collect();
        (Computed::Base(Part::from(base), maps), None)
    }

    fn write_base(&self, statistic: &dyn Statistic, columns: Option<&[usize]>, out: &mut [f64]) {
        let packed = Packed::new(self.samples.rows(), columns);
        write_base(&packed, statistic, out);
    }

    /// What these kernels do to their base, n × n.
    fn maps(&self, base: &[f64], members: &[usize]) -> Vec<Map> {
        let n = self.samples.count();
        let own: Vec<f64> = (0..n).map(|i| base[i * n + i]).collect();
        let kernel = |&number: &usize| &self.kernels[number].kernel;
        let maps = members.par_iter();
        maps.map(|number| Map::new(kernel(number), &own, self.normalise))
            .collect()
    }

    /// With the kernel's number in place of its position in the group.
    fn numbered(&self, overflow: Overflow) -> Overflow {
        overflow.map(|(position, value)| (self.members[position], value))
    }
}

/// Base values, all in the last matrix → kernel values in every matrix, normalised where asked. Returns the first value that is
/// not finite, by position in the group and then by row.
fn sweep(matrices: &mut [f64], n: usize, maps: &[Map]) -> Overflow {
    let rows = (PIECE / n).max(1);
    let found = row_pieces(matrices, n, rows)
        .into_par_iter()
        .enumerate()
        .filter_map(|(number, mut parts)| {
            let (base, others) = parts.split_last_mut()?;
            let (last, maps) = maps.split_last()?;
            let mut first = None;
            for (position, (map, part)) in maps.iter().zip(others).enumerate() {
                part.copy_from_slice(base);
                let finite = map.apply(part, number * rows);
                first = first.or((!finite).then(|| (position, first_overflow(part))));
            }
            let finite = last.apply(base, number * rows);
            first.or((!finite).then(|| (maps.len(), first_overflow(base))))
        })
        .collect();
    first_found(found)
}

/// So many rows of all matrices at a time: one piece of work each.
fn row_pieces<T>(matrices: &mut [T], n: usize, rows: usize) -> Vec<Vec<&mut [T]>> {
    let mut pieces: Vec<Vec<&mut [T]>> = std::iter::repeat_with(Vec::new)
        .take(n.div_ceil(rows))
        .collect();
    for matrix in matrices.chunks_exact_mut(n * n) {
        for (piece, part) in pieces.iter_mut().zip(matrix.chunks_mut(rows * n)) {
            piece.push(part);
        }
    }
    pieces
}

/// Of the values that pieces found, the first kernel's; among equal kernels the first piece wins, whoever finishes first.
fn first_found(found: Vec<(usize, f64)>) -> Overflow {
    found.into_iter().min_by_key(|(position, _)| *position)
}

#[cfg(test)]
mod tests;
