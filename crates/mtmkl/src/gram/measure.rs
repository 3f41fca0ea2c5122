//! What kernels are like on the samples, before any matrix is computed: the median distance of two samples, and the variance in
//! feature space.
//!
//! Both are means over pairs, so that a thousand rows say as much as all of them. Where there are more, every k-th row in the order of
//! their values is taken: the order of the rows makes no difference, and nothing is random.

use std::cmp::Ordering;

use super::pairs::{Packed, base_of_few};
use crate::data::{Kind, RowValues, Rows, Samples};
use crate::error::{DataProblem, Error, Place, Result};
use crate::kernel::{Base, Kernel, KernelView, Statistic};

/// Rows looked at, of one sample set; of S sets 1/√S of it each, so that there are as many pairs in all.
const ROWS: usize = 1000;

/// A variance in feature space below this share of the mean of k(x, x) has lost half of its digits to rounding, and is taken for none.
const SMALL: f64 = 1e-8;

/// The key of a statistic, the columns, and s(x, z) of all pairs by set.
type Known = (String, Option<Vec<usize>>, Vec<Vec<f64>>);

/// How many rows of each of so many sample sets are looked at.
fn most_rows(sets: usize) -> usize {
    let mut most = ROWS;
    while most > 2 && most * most * sets > ROWS * ROWS {
        most -= 1;
    }
    most
}

/// The rows of a sample set, one of so many, in which kernels are measured, in the order in which they are looked at. Whoever has the sets in
/// different places measures these together and gets the same numbers.
pub fn measured_rows(samples: &Samples, sets: usize) -> Vec<usize> {
    Sampled::new(samples, most_rows(sets)).chosen
}

/// What is known of all values in a column: Σ 1, Σ x / Σ 1 and Σ (x − mean)².
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnMoments {
    /// How many there are.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// The sum of their squared distances from it.
    pub squares: f64,
}

/// The variance of all values in some columns.
fn pooled(columns: &[ColumnMoments]) -> f64 {
    let count: f64 = columns.iter().map(|column| column.count).sum();
    let sum: f64 = columns
        .iter()
        .map(|column| column.count * column.mean)
        .sum();
    let mean = sum / count.max(1.0);
    let about = |column: &ColumnMoments| {
        column.squares + column.count * (column.mean - mean) * (column.mean - mean)
    };
    columns.iter().map(about).sum::<f64>() / count.max(1.0)
}

/// Some rows of each sample set, in which kernels are measured.
#[derive(Debug)]
pub(crate) struct Measured<'a> {
    sets: Vec<Sampled<'a>>,
    /// What is known of all rows, by column, where those at hand are not all.
    moments: Option<&'a [ColumnMoments]>,
    /// s(x, z) of all pairs, by set, of the statistic and columns asked for last.
    last: Option<Known>,
}

/// Some rows of one sample set.
#[derive(Debug)]
struct Sampled<'a> {
    samples: &'a Samples,
    chosen: Vec<usize>,
    /// Their values; `None` of all rows.
    values: Option<RowValues>,
}

impl<'a> Sampled<'a> {
    fn new(samples: &'a Samples, most: usize) -> Self {
        let rows = samples.rows();
        let count = samples.count();
        if count <= most {
            return Self {
                samples,
                chosen: (0..count).collect(),
                values: None,
            };
        }
        let mut order: Vec<usize> = (0..count).collect();
        match rows.sparse() {
            Some(sparse) => order.sort_by(|&a, &b| sparse.compare(a, b).then(a.cmp(&b))),
            None => order.sort_by(|&a, &b| compare(&rows.row(a), &rows.row(b)).then(a.cmp(&b))),
        }
        let chosen: Vec<usize> = (0..most).map(|k| order[k * count / most]).collect();
        Self {
            samples,
            values: Some(rows.select(chosen.iter().copied())),
            chosen,
        }
    }

    fn count(&self) -> usize {
        self.chosen.len()
    }

    fn rows(&self) -> Rows<'_> {
        let width = self.samples.columns().len();
        match &self.values {
            None => self.samples.rows(),
            Some(values) => values.rows(self.count(), width),
        }
    }

    /// s(x, z) of all pairs.
    fn base(&self, statistic: &dyn Statistic, columns: Option<&[usize]>) -> Vec<f64> {
        base_of_few(&Packed::new(self.rows(), columns), statistic)
    }

    /// The values that somebody computed, of all pairs.
    fn given(&self, name: &str) -> Option<Vec<f64>> {
        let grams = self.samples.grams();
        let gram = grams.iter().find(|gram| gram.name == name)?;
        let n = self.samples.count();
        let row = |&i: &usize| {
            let row = &gram.values[i * n..(i + 1) * n];
            self.chosen.iter().map(|&j| row[j])
        };
        Some(self.chosen.iter().flat_map(row).collect())
    }
}

/// Row by row, the first columns first.
fn compare(a: &[f64], b: &[f64]) -> Ordering {
    let mut pairs = a.iter().zip(b);
    let different = pairs.find(|(a, b)| a != b);
    different.map_or(Ordering::Equal, |(a, b)| a.total_cmp(b))
}

impl<'a> Measured<'a> {
    pub(crate) fn new(sets: &'a [Samples]) -> Self {
        let most = most_rows(sets.len());
        Self {
            sets: sets.iter().map(|set| Sampled::new(set, most)).collect(),
            moments: None,
            last: None,
        }
    }

    /// The same, where this is known of the columns of all rows.
    pub(crate) fn knowing(self, moments: Option<&'a [ColumnMoments]>) -> Self {
        Self { moments, ..self }
    }

    /// s(x, z) of all pairs, by set.
    fn base(&mut self, view: &KernelView, statistic: &dyn Statistic) -> Result<&[Vec<f64>]> {
        let names = self.sets[0].samples.columns();
        let columns = view.columns.resolve(names)?;
        let key = statistic.key();
        let is_known = |(known, seen, _): &Known| *known == key && *seen == columns;
        if !self.last.as_ref().is_some_and(is_known) {
            let mut bases = Vec::with_capacity(self.sets.len());
            for set in &self.sets {
                let own = view.columns.resolve(set.samples.columns())?;
                bases.push(set.base(statistic, own.as_deref()));
            }
            self.last = Some((key, columns, bases));
        }
        Ok(self.last.as_ref().map_or(&[], |(_, _, bases)| bases))
    }

    /// The median over pairs of different samples of s(x, z) ≥ 0, of those above 0 where most are 0; `None` where all are.
    pub(crate) fn median(
        &mut self,
        view: &KernelView,
        statistic: &dyn Statistic,
    ) -> Result<Option<f64>> {
        let mut all = Vec::new();
        for base in self.base(view, statistic)? {
            let n = base.len().isqrt();
            for i in 0..n {
                all.extend_from_slice(&base[i * n..i * n + i]);
            }
        }
        if middle(&mut all) <= Some(0.0) {
            all.retain(|&value| value > 0.0);
        }
        Ok(middle(&mut all))
    }

    /// The mean over samples of k(x, x) less the mean over pairs of k(x, z), within sample sets: the variance in feature space.
    ///
    /// # Errors
    /// When there is none: all samples are the same to the kernel, or it is indefinite and none is left.
    pub(crate) fn variance(&mut self, view: &KernelView, kernel: &dyn Kernel) -> Result<f64> {
        let values = self.values(view, kernel)?;
        let (mut variance, mut size, mut total) = (0.0, 0.0, 0.0);
        for (values, set) in values.iter().zip(&self.sets) {
            let n = set.count();
            let own: f64 = (0..n).map(|i| values[i * n + i]).sum();
            let mean: f64 = values.iter().sum::<f64>() / n as f64;
            variance += own - mean;
            size += own.abs();
            total += n as f64;
        }
        if variance.is_finite() && variance > SMALL * size {
            return Ok(variance / total);
        }
        let place = Place::Gram {
            samples: 0,
            name: view.name.clone(),
        };
        let problem = if variance.is_finite() {
            DataProblem::NoVariance
        } else {
            DataProblem::Overflow(variance)
        };
        Err(Error::data(place, problem))
    }

    /// k(x, z) of all pairs, by set.
    fn values(&mut self, view: &KernelView, kernel: &dyn Kernel) -> Result<Vec<Vec<f64>>> {
        match kernel.base() {
            Base::Of(statistic) => {
                let mut values = self.base(view, statistic.as_ref())?.to_vec();
                for values in &mut values {
                    kernel.map(values);
                }
                Ok(values)
            }
            Base::Given => {
                let name = kernel.given().unwrap_or_default();
                let of = |set: &Sampled<'_>| set.given(name);
                // A matrix that is not there is refused where it is to be used.
                Ok(self.sets.iter().filter_map(of).collect())
            }
            Base::Own => {
                let of = |set: &Sampled<'_>| {
                    let columns = view.columns.resolve(set.samples.columns())?;
                    Ok(set.base(&Valued(kernel), columns.as_deref()))
                };
                self.sets.iter().map(of).collect()
            }
        }
    }

    /// The variance of all values in the columns of a view, and how many columns these are.
    pub(crate) fn spread(&self, view: &KernelView) -> Result<(f64, usize)> {
        if let (Some(moments), Some(set)) = (self.moments, self.sets.first()) {
            let columns = view.columns.resolve(set.samples.columns())?;
            let own: Vec<ColumnMoments> = match columns {
                Some(columns) => columns.iter().map(|&column| moments[column]).collect(),
                None => moments.to_vec(),
            };
            return Ok((pooled(&own), own.len()));
        }
        let (mut count, mut sum, mut squares, mut width) = (0.0, 0.0, 0.0, 0);
        // Twice through the values: Σ(x − mean)², in which nothing cancels.
        for pass in 0..2 {
            let mean = if count > 0.0 { sum / count } else { 0.0 };
            for set in &self.sets {
                let columns = view.columns.resolve(set.samples.columns())?;
                let packed = Packed::new(set.samples.rows(), columns.as_deref());
                let rows = packed.rows();
                width = rows.columns();
                // What sparse rows do not have is zero.
                let values = match rows.kind() {
                    Kind::Dense(values) => values,
                    Kind::Sparse(rows) => rows.values(),
                };
                let all = rows.rows() as f64 * width as f64;
                if pass == 0 {
                    count += all;
                    sum += values.iter().sum::<f64>();
                } else {
                    let terms = values.iter().map(|value| (value - mean).powi(2));
                    squares += terms.sum::<f64>() + (all - values.len() as f64) * mean * mean;
                }
            }
        }
        Ok((squares / count.max(1.0), width))
    }
}

/// A kernel as its own statistic.
#[derive(Debug)]
struct Valued<'a>(&'a dyn Kernel);

impl Statistic for Valued<'_> {
    fn key(&self) -> String {
        "k(x, z)".into()
    }

    fn value(&self, x: &[f64], z: &[f64]) -> f64 {
        self.0.value(x, z)
    }
}

/// The median, the upper one of two; `None` of nothing.
fn middle(values: &mut [f64]) -> Option<f64> {
    let at = values.len() / 2;
    (at < values.len()).then(|| *values.select_nth_unstable_by(at, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::parse_kernel;
    use crate::random::Random;

    fn normal(n: usize, d: usize, seed: u64) -> Samples {
        let mut random = Random::new(seed);
        let values = (0..n * d).map(|_| (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0);
        Samples::new(values.collect(), n, d).unwrap()
    }

    #[test]
    fn the_median_is_that_of_all_pairs() {
        let sets = [normal(31, 3, 1), normal(20, 3, 2)];
        let view = parse_kernel("rbf@f1,f3").unwrap();
        let mut all = Vec::new();
        for set in &sets {
            for i in 0..set.count() {
                for j in 0..i {
                    let (x, z) = (set.rows().row(i), set.rows().row(j));
                    all.push((x[0] - z[0]).powi(2) + (x[2] - z[2]).powi(2));
                }
            }
        }
        all.sort_by(f64::total_cmp);
        let statistic = crate::kernel::base::SquaredDistance;
        let found = Measured::new(&sets).median(&view, &statistic).unwrap();
        assert!((found.unwrap() - all[all.len() / 2]).abs() < 1e-12);
    }

    #[test]
    fn the_variance_is_that_of_centred_gram_matrices() {
        let sets = [normal(40, 4, 3)];
        for text in ["linear", "rbf:sigma=2", "poly:degree=2@f2..f4"] {
            let view = parse_kernel(text).unwrap();
            let kernel = view.kernel.as_ref();
            let columns = view.columns.resolve(sets[0].columns()).unwrap();
            let packed = Packed::new(sets[0].rows(), columns.as_deref());
            let rows = packed.rows();
            let k = |i: usize, j: usize| kernel.value(&rows.row(i), &rows.row(j));
            let mean_of = |i: usize| (0..40).map(|j| k(i, j)).sum::<f64>() / 40.0;
            let all = (0..40).map(mean_of).sum::<f64>() / 40.0;
            // tr(HKH)/n
            let centred = |i: usize| k(i, i) - 2.0 * mean_of(i) + all;
            let expected = (0..40).map(centred).sum::<f64>() / 40.0;
            let found = Measured::new(&sets).variance(&view, kernel).unwrap();
            assert!((found - expected).abs() < 1e-10 * expected, "{text}");
        }
    }

    #[test]
    fn a_sample_of_the_rows_says_the_same_in_any_order() {
        let set = normal(3000, 5, 4);
        let mut order: Vec<usize> = (0..3000).collect();
        Random::new(5).shuffle(&mut order);
        let moved: Vec<f64> = order
            .iter()
            .flat_map(|&row| set.rows().row(row).into_owned())
            .collect();
        let moved = Samples::new(moved, 3000, 5).unwrap();
        let view = parse_kernel("rbf:sigma=1").unwrap();
        let statistic = crate::kernel::base::SquaredDistance;
        let of = |set: &Samples| {
            let sets = [set.clone()];
            let mut measured = Measured::new(&sets);
            let median = measured.median(&view, &statistic).unwrap().unwrap();
            (
                median,
                measured.variance(&view, view.kernel.as_ref()).unwrap(),
            )
        };
        assert_eq!(of(&set), of(&moved));
        // ‖x − z‖² of five normal columns is 2 χ²₅, whose median is 8.70.
        assert!((of(&set).0 - 8.70).abs() < 0.3);
    }

    /// Rows of each set, and moments of the columns, say the same as all of them.
    #[test]
    fn sets_in_different_places_are_measured_together() {
        let sets = [normal(1500, 4, 6), normal(900, 4, 7), normal(40, 4, 8)];
        let some: Vec<Samples> = (sets.iter())
            .map(|set| {
                let chosen = measured_rows(set, sets.len());
                let RowValues::Dense(values) = set.rows().select(chosen.iter().copied()) else {
                    panic!("dense rows")
                };
                Samples::new(values, chosen.len(), 4).unwrap()
            })
            .collect();
        let moments: Vec<ColumnMoments> = (0..4)
            .map(|column| {
                let of = |set: &Samples| -> Vec<f64> {
                    (0..set.count())
                        .map(|row| set.rows().row(row)[column])
                        .collect()
                };
                let values: Vec<f64> = sets.iter().flat_map(of).collect();
                let count = values.len() as f64;
                let mean = values.iter().sum::<f64>() / count;
                let squares = values.iter().map(|value| (value - mean).powi(2)).sum();
                ColumnMoments {
                    count,
                    mean,
                    squares,
                }
            })
            .collect();
        let view = parse_kernel("rbf:sigma=1@f1,f3").unwrap();
        let statistic = crate::kernel::base::SquaredDistance;
        let (mut all, mut few) = (
            Measured::new(&sets),
            Measured::new(&some).knowing(Some(&moments)),
        );
        assert_eq!(
            all.median(&view, &statistic).unwrap(),
            few.median(&view, &statistic).unwrap()
        );
        let kernel = view.kernel.as_ref();
        assert_eq!(
            all.variance(&view, kernel).unwrap(),
            few.variance(&view, kernel).unwrap()
        );
        let ((one, width), (other, columns)) =
            (all.spread(&view).unwrap(), few.spread(&view).unwrap());
        assert!((one - other).abs() < 1e-12 * one);
        assert_eq!((width, columns), (2, 2));
    }

    #[test]
    fn what_has_no_variance_is_named() {
        let sets = [Samples::new(vec![2.0; 6], 3, 2).unwrap()];
        let view = parse_kernel("linear").unwrap();
        let mut measured = Measured::new(&sets);
        let error = measured.variance(&view, view.kernel.as_ref()).unwrap_err();
        assert!(error.to_string().contains("linear"), "{error}");
        let statistic = crate::kernel::base::SquaredDistance;
        assert_eq!(measured.median(&view, &statistic).unwrap(), None);
    }
}
