//! Tables that stay sparse on their way to the core: LIBSVM files and one-hot columns with many zeros.
//!
//! x_ij = v_ij · factor_j: zeros stay zeros, since nothing is taken away from a column (it is scaled, not centred).

use mtmkl::SparseRows;
use mtmkl::ledger::bytes_of;

use crate::Result;
use crate::column::Sparse;
use crate::error::TableError;
use crate::frame::Frame;
use crate::gaps::Missing;
use crate::gather::{Cells, Source};
use crate::one_hot::Indicators;
use crate::scale::{Moments, Scaling};
use crate::table::Table;

/// With fewer columns, rows with all their zeros are small and faster.
const FEWEST_COLUMNS: usize = 200;
/// At most one cell in so many is there, or rows with all their zeros are faster.
const CELLS: usize = 10;

impl Frame {
    /// Whether rows of this table are better kept without their zeros: more than 200 columns, at most a tenth of the cells in sparse columns or
    /// indicators. A column of numbers that a table writes out counts as full.
    ///
    /// # Errors
    /// When a column is not there.
    pub fn is_mostly_zero(&self, table: &Table) -> Result<bool> {
        if self.features.len() < FEWEST_COLUMNS {
            return Ok(false);
        }
        let indicators = Indicators::of(self, table)?;
        let mut entries = 0_usize;
        for number in 0..self.features.len() {
            let source = self.source(table, number, &indicators)?;
            entries += source.missing.len();
            entries += match source.cells {
                Cells::Dense(numbers) => numbers.len(),
                Cells::Sparse(sparse) => sparse.rows.len(),
                // Each row has one of them.
                Cells::Indicator(names, _) => table.rows / names.distinct().len().max(1),
                Cells::Zero => 0,
            };
        }
        Ok(entries.saturating_mul(CELLS) <= table.rows.saturating_mul(self.features.len()))
    }

    /// Whether zeros stay zeros on the scales of the columns.
    pub fn keeps_zeros(&self) -> bool {
        let mut features = self.features.iter();
        features.all(|feature| feature.scaled(0.0) == 0.0)
    }

    /// These rows of a table, each at most once, without their zeros: gaps filled and scaled. `None` where rows with all their zeros are
    /// better, or zeros do not stay zeros.
    ///
    /// # Errors
    /// As [`Frame::gather`].
    pub fn gather_sparse(
        &self,
        table: &Table,
        rows: &[usize],
        limit: u64,
    ) -> Result<Option<SparseRows>> {
        if !self.keeps_zeros() || !self.is_mostly_zero(table)? {
            return Ok(None);
        }
        let indicators = Indicators::of(self, table)?;
        let sources = (0..self.features.len())
            .map(|number| self.source(table, number, &indicators))
            .collect::<Result<Vec<_>>>()?;
        // Where each row of the table is among those wanted.
        let mut places = vec![usize::MAX; table.rows];
        for (place, &row) in rows.iter().enumerate() {
            places[row] = place;
        }
        let mut offsets = vec![0_usize; rows.len() + 1];
        for source in &sources {
            source.each(|row, _| {
                if let Some(count) = offsets.get_mut(places[row].saturating_add(1)) {
                    *count += 1;
                }
            });
        }
        for at in 0..rows.len() {
            offsets[at + 1] += offsets[at];
        }
        let entries = offsets[rows.len()];
        let bytes =
            bytes_of::<u32>(entries) + bytes_of::<f64>(entries) + bytes_of::<usize>(rows.len());
        if bytes > limit {
            return Err(TableError::TooManyValues {
                file: table.source.clone(),
                rows: rows.len(),
                columns: self.features.len(),
                bytes,
                limit,
            });
        }
        let (mut columns, mut values) = (vec![0_u32; entries], vec![0.0; entries]);
        let mut next = offsets.clone();
        let mut wrong = None;
        for ((number, feature), source) in (0_u32..).zip(&self.features).zip(&sources) {
            source.each(|row, value| {
                let Some(at) = next
                    .get_mut(places[row])
                    .filter(|_| places[row] < rows.len())
                else {
                    return;
                };
                let value = value.or(feature.fill).unwrap_or(f64::NAN);
                let scaled = feature.scaled(value);
                if !scaled.is_finite() {
                    wrong = wrong.or(Some((row, number as usize)));
                }
                (columns[*at], values[*at]) = (number, scaled);
                *at += 1;
            });
        }
        if let Some((row, feature)) = wrong {
            return Err(self.not_finite(table, row, feature, &sources[feature]));
        }
        Ok(Some(SparseRows::new(
            offsets,
            columns,
            values,
            self.features.len(),
        )?))
    }

    /// The entries of sparse rows on the scales of their columns, which must keep zeros.
    ///
    /// # Errors
    /// When a number is too large for its scale.
    pub fn scaled_entries(&self, rows: &SparseRows) -> Result<Vec<f64>> {
        let mut scaled = Vec::with_capacity(rows.values().len());
        for row in 0..rows.count() {
            let (columns, values) = rows.rows().row(row);
            for (&column, &value) in columns.iter().zip(values) {
                let own = self.scaled_cell(row, column as usize, value)?;
                scaled.push(own);
            }
        }
        Ok(scaled)
    }

    /// Learns what fills gaps, and scales that keep zeros, on these rows of the table.
    pub(crate) fn learn_sparse(
        &mut self,
        table: &Table,
        rows: &[usize],
        weights: Option<&[f64]>,
        missing: Missing,
        scaling: Scaling,
    ) -> Result<()> {
        // How often each row of the table counts; those that are not learned from are `None`.
        let mut counts = vec![None; table.rows];
        for (at, &row) in rows.iter().enumerate() {
            counts[row] = Some(weights.map_or(1.0, |weights| weights[at]));
        }
        let total: f64 = counts.iter().flatten().sum();
        let indicators = Indicators::of(self, table)?;
        for number in 0..self.features.len() {
            let source = self.source(table, number, &indicators)?;
            let (mut values, mut own) = (Vec::new(), Vec::new());
            let (mut gaps, mut gap_weight) = (0, 0.0);
            source.each(|row, value| match (counts[row], value) {
                (None, _) => {}
                (Some(weight), Some(value)) => {
                    values.push(value);
                    own.push(weight);
                }
                (Some(weight), None) => {
                    gaps += 1;
                    gap_weight += weight;
                }
            });
            let zeros = rows.len() - gaps - values.len();
            let feature = &mut self.features[number];
            if zeros + values.len() == 0 {
                return Err(TableError::NoValue {
                    column: feature.column.clone(),
                });
            }
            if missing == Missing::Mean {
                let there = (zeros + values.len()) as f64;
                feature.fill = Some(values.iter().sum::<f64>() / there);
            }
            let rest = total - gap_weight - own.iter().sum::<f64>();
            feature.offset = 0.0;
            feature.factor = scaling.factor(values, own, (zeros > 0).then_some(rest.max(0.0)));
        }
        Ok(())
    }
}

impl Scaling {
    /// The factor of each column of sparse rows, learned from rows that count as often as their weights say.
    pub fn factors(self, rows: &SparseRows, weights: &[f64]) -> Vec<f64> {
        let mut columns = vec![(Vec::new(), Vec::new()); rows.width()];
        for (row, &weight) in weights.iter().enumerate() {
            let (own, values) = rows.rows().row(row);
            for (&column, &value) in own.iter().zip(values) {
                let (known, counts) = &mut columns[column as usize];
                known.push(value);
                counts.push(weight);
            }
        }
        let total: f64 = weights.iter().sum();
        let factor = |(values, own): (Vec<f64>, Vec<f64>)| {
            let rest = total - own.iter().sum::<f64>();
            let has_zeros = values.len() < weights.len();
            self.factor(values, own, has_zeros.then_some(rest.max(0.0)))
        };
        columns.into_iter().map(factor).collect()
    }

    /// The factor of a column with these values, as often as it says, and zeros as often as that: nothing is taken away.
    fn factor(self, mut values: Vec<f64>, mut counts: Vec<f64>, zeros: Option<f64>) -> f64 {
        if let Some(zeros) = zeros {
            values.push(0.0);
            counts.push(zeros);
        }
        let (_, factor) = self.of(&values, Some(&counts));
        let largest = values.iter().fold(0.0_f64, |most, own| most.max(own.abs()));
        self.keeping_zeros(factor, largest)
    }

    /// The same from what is known of a column, its zeros included.
    pub fn factor_of_moments(self, moments: &Moments) -> f64 {
        let largest = moments.low.abs().max(moments.high.abs());
        self.keeping_zeros(self.of_moments(moments).1, largest)
    }

    /// A factor without an offset: the largest of a column becomes 1 where its range does elsewhere.
    fn keeping_zeros(self, factor: f64, largest: f64) -> f64 {
        match self {
            Self::Minmax if factor != 0.0 && largest > 0.0 => largest.recip(),
            _ => factor,
        }
    }
}

impl Source<'_> {
    /// Calls `each` with the rows that have a number that may be other than zero, and with `None` for those without one.
    fn each(&self, mut each: impl FnMut(usize, Option<f64>)) {
        let is_gap = |row: usize| self.missing.binary_search(&row).is_ok();
        match self.cells {
            Cells::Dense(numbers) => {
                let all = numbers.iter().enumerate();
                all.filter(|(row, _)| !is_gap(*row))
                    .for_each(|(row, &value)| each(row, Some(value)));
            }
            Cells::Sparse(Sparse { rows, values, .. }) => {
                let all = rows.iter().map(|&row| row as usize).zip(values);
                all.filter(|(row, _)| !is_gap(*row))
                    .for_each(|(row, &value)| each(row, Some(value)));
            }
            Cells::Indicator(names, code) => {
                let codes = names.codes().iter().enumerate();
                let own = codes.filter(|(row, own)| **own == code && !is_gap(*row));
                own.for_each(|(row, _)| each(row, Some(1.0)));
            }
            Cells::Zero => {}
        }
        self.missing.iter().for_each(|&row| each(row, None));
    }
}
