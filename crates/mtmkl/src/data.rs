//! Samples and tasks: what a problem is made of, checked once.

mod rows;
mod sparse;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use rows::Kind;
pub use rows::{RowValues, Rows};
pub use sparse::{Sparse, SparseRows};

use crate::error::{DataProblem, Error, Place, Result};
use crate::ledger::bytes_of;
use crate::task_kernel::{Origins, TaskKernels};
use crate::view::View;

/// A Gram matrix that the caller computed: n × n for training, row by row.
#[derive(Debug, Clone)]
pub struct GivenGram {
    /// The name that a `precomputed:name=…` kernel refers to.
    pub name: String,
    /// n × n values, row by row, symmetric.
    pub values: Arc<Vec<f64>>,
}

/// A sample set: rows of numbers, or Gram matrices computed elsewhere, or both.
///
/// Gram matrices belong to sample sets, not to tasks: ten one-vs-all tasks on one sample set share M matrices.
#[derive(Debug, Clone)]
pub struct Samples {
    count: usize,
    columns: Vec<String>,
    /// Moved here, not copied: an `Arc` of a slice would be.
    values: Arc<RowValues>,
    grams: Vec<GivenGram>,
    origins: Option<Origins>,
}

impl Samples {
    /// A sample set of `count` rows with columns named `f1`, `f2`, ….
    ///
    /// # Errors
    /// When the number of values is not a multiple of `count`, or a value is NaN or infinite.
    pub fn new(values: Vec<f64>, count: usize, columns: usize) -> Result<Self> {
        // Before names are made for columns that are not there.
        check_table(&values, count, columns)?;
        let names = (1..=columns).map(|column| format!("f{column}")).collect();
        Self::with_columns(values, count, names)
    }

    /// A sample set whose columns have names.
    ///
    /// # Errors
    /// As [`Samples::new`].
    pub fn with_columns(values: Vec<f64>, count: usize, columns: Vec<String>) -> Result<Self> {
        check_table(&values, count, columns.len())?;
        if let Some(position) = values.iter().position(|value| !value.is_finite()) {
            let place = Place::Cell {
                samples: 0,
                row: position / columns.len(),
                column: columns[position % columns.len()].clone(),
            };
            return Err(Error::data(place, DataProblem::NotFinite(values[position])));
        }
        Ok(Self {
            count,
            columns,
            values: Arc::new(RowValues::Dense(values)),
            grams: Vec::new(),
            origins: None,
        })
    }

    /// A sample set of sparse rows, with columns named `f1`, `f2`, …: zeros are never written out, in training or prediction.
    ///
    /// # Errors
    /// When there are no rows.
    pub fn sparse(rows: SparseRows) -> Result<Self> {
        let names = (1..=rows.width()).map(|column| format!("f{column}"));
        Self::sparse_with_columns(rows, names.collect())
    }

    /// A sample set of sparse rows whose columns have names.
    ///
    /// # Errors
    /// When there are no rows, or not as many names as columns.
    pub fn sparse_with_columns(rows: SparseRows, columns: Vec<String>) -> Result<Self> {
        let problem = if rows.count() == 0 {
            DataProblem::Empty("there are no rows, expected at least one")
        } else if columns.len() != rows.width() {
            DataProblem::Length {
                what: "names of columns",
                found: columns.len(),
                expected: rows.width(),
            }
        } else {
            return Ok(Self {
                count: rows.count(),
                columns,
                values: Arc::new(RowValues::Sparse(rows)),
                grams: Vec::new(),
                origins: None,
            });
        };
        Err(Error::data(Place::Samples(0), problem))
    }

    /// A sample set of `count` rows, dense or sparse, whose columns have names.
    ///
    /// # Errors
    /// As [`Samples::with_columns`] and [`Samples::sparse_with_columns`].
    pub fn of_rows(rows: RowValues, count: usize, columns: Vec<String>) -> Result<Self> {
        match rows {
            RowValues::Dense(values) => Self::with_columns(values, count, columns),
            RowValues::Sparse(rows) => Self::sparse_with_columns(rows, columns),
        }
    }

    /// A sample set known by its Gram matrices only.
    ///
    /// # Errors
    /// As [`Samples::with_gram`].
    pub fn from_grams(count: usize, grams: Vec<GivenGram>) -> Result<Self> {
        let empty = Self {
            count,
            columns: Vec::new(),
            values: Arc::default(),
            grams: Vec::new(),
            origins: None,
        };
        if count == 0 {
            return Err(Error::data(
                Place::Samples(0),
                DataProblem::Empty("there are no rows, expected at least one"),
            ));
        }
        grams.into_iter().try_fold(empty, Self::with_gram)
    }

    /// The same sample set with one more Gram matrix. What is not symmetric to the last digit is made so: (K + K')/2 is used.
    ///
    /// # Errors
    /// When it is not n × n, not finite or not symmetric (to 1e-8 of its largest entry), or there is one of its name.
    pub fn with_gram(mut self, mut gram: GivenGram) -> Result<Self> {
        let n = self.count;
        let place = || Place::Gram {
            samples: 0,
            name: gram.name.clone(),
        };
        if self.grams.iter().any(|known| known.name == gram.name) {
            return Err(Error::data(place(), DataProblem::GramTwice));
        }
        let expected = n.saturating_mul(n);
        if gram.values.len() != expected {
            return Err(Error::data(
                place(),
                DataProblem::Length {
                    what: "values of a Gram matrix (n × n)",
                    found: gram.values.len(),
                    expected,
                },
            ));
        }
        let mut largest = 0.0_f64;
        for &value in gram.values.iter() {
            if !value.is_finite() {
                return Err(Error::data(place(), DataProblem::NotFinite(value)));
            }
            largest = largest.max(value.abs());
        }
        let mut is_symmetric = true;
        for row in 0..n {
            for column in 0..row {
                let (value, mirrored) =
                    (gram.values[row * n + column], gram.values[column * n + row]);
                is_symmetric &= value == mirrored;
                if (value - mirrored).abs() > 1e-8 * largest {
                    return Err(Error::data(
                        place(),
                        DataProblem::Asymmetric {
                            row,
                            column,
                            value,
                            mirrored,
                        },
                    ));
                }
            }
        }
        if !is_symmetric {
            let mean = |at: usize| 0.5 * gram.values[at] + 0.5 * gram.values[at % n * n + at / n];
            gram.values = Arc::new((0..n * n).map(mean).collect());
        }
        self.grams.push(gram);
        Ok(self)
    }

    /// The same samples, each of one of these tasks, by their positions: kernels may then be between tasks.
    ///
    /// # Errors
    /// When there is not one for each sample, or there is no such task.
    pub fn from_tasks(mut self, kernels: Arc<TaskKernels>, of: Vec<usize>) -> Result<Self> {
        let tasks = kernels.tasks().len();
        if of.len() != self.count || of.iter().any(|&task| task >= tasks) {
            let value = format!("origins of {} samples", of.len());
            let expected = format!("for each of {} samples a task below {tasks}", self.count);
            return Err(Error::param("origins", value, expected));
        }
        let of = Arc::new(of);
        self.origins = Some(Origins { kernels, of });
        Ok(self)
    }

    /// The tasks that they come from.
    pub fn origins(&self) -> Option<&Origins> {
        self.origins.as_ref()
    }

    /// Some of them, without their origins.
    pub(crate) fn part(&self, rows: &[usize]) -> Self {
        let values = self.rows().select(rows.iter().copied());
        let n = self.count;
        let gram = |gram: &GivenGram| {
            let cells = rows
                .iter()
                .flat_map(|&i| rows.iter().map(move |&j| i * n + j));
            GivenGram {
                name: gram.name.clone(),
                values: Arc::new(cells.map(|at| gram.values[at]).collect()),
            }
        };
        Self {
            count: rows.len(),
            columns: self.columns.clone(),
            values: Arc::new(values),
            grams: self.grams.iter().map(gram).collect(),
            origins: None,
        }
    }

    /// n, the number of samples.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether this is the same sample set or a clone of it, which shares its numbers.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.count == other.count
            && Arc::ptr_eq(&self.values, &other.values)
            && self.grams.len() == other.grams.len()
            && self
                .grams
                .iter()
                .zip(&other.grams)
                .all(|(a, b)| a.name == b.name && Arc::ptr_eq(&a.values, &b.values))
            && match (&self.origins, &other.origins) {
                (Some(own), Some(known)) => Arc::ptr_eq(&own.of, &known.of),
                (own, known) => own.is_none() && known.is_none(),
            }
    }

    /// The columns' names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        self.values.rows(self.count, self.columns.len())
    }

    /// Bytes of so many of the rows, as they are on average.
    pub(crate) fn bytes_of_rows(&self, count: usize) -> u64 {
        let rows = self.rows();
        if rows.sparse().is_none() {
            return bytes_of::<f64>(count.saturating_mul(self.columns.len()));
        }
        let all = self.count.max(1) as u64;
        rows.bytes().div_ceil(all).saturating_mul(count as u64)
    }

    /// The Gram matrices given with the samples.
    pub fn grams(&self) -> &[GivenGram] {
        &self.grams
    }
}

/// Whether there are rows, and as many values as so many rows and columns have.
fn check_table(values: &[f64], count: usize, columns: usize) -> Result<()> {
    let problem = if count == 0 {
        DataProblem::Empty("there are no rows, expected at least one")
    } else if values.len() != count.saturating_mul(columns) {
        DataProblem::Length {
            what: "values",
            found: values.len(),
            expected: count.saturating_mul(columns),
        }
    } else {
        return Ok(());
    };
    Err(Error::data(Place::Samples(0), problem))
}

/// What a task is to predict, one entry per sample of the task.
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Class labels, +1 or −1.
    Labels(Vec<f64>),
    /// Numbers to regress on.
    Values(Vec<f64>),
    /// Nothing: one-class machines.
    Unlabelled,
}

impl Targets {
    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Labels(_) => "±1 labels",
            Self::Values(_) => "real values",
            Self::Unlabelled => "no targets",
        }
    }
}

/// One prediction problem: some rows of a sample set, with targets.
#[derive(Debug, Clone)]
pub struct Task {
    /// The task's name, different from every other's.
    pub name: String,
    /// Which sample set it uses.
    pub samples: usize,
    /// Which rows of that set, in which order.
    pub rows: View,
    /// Targets, one per row used.
    pub targets: Targets,
    /// Weights of the samples, one per row used; all 1 when `None`.
    pub weights: Option<Vec<f64>>,
}

impl Task {
    /// A task on all rows of sample set 0.
    pub fn new(name: impl Into<String>, targets: Targets) -> Self {
        Self {
            name: name.into(),
            samples: 0,
            rows: View::All,
            targets,
            weights: None,
        }
    }

    /// The same task on another sample set.
    #[must_use]
    pub fn on(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// The same task on some rows only.
    #[must_use]
    pub fn with_rows(mut self, rows: Vec<usize>) -> Self {
        self.rows = View::of(rows);
        self
    }

    /// The same task with sample weights.
    #[must_use]
    pub fn with_weights(mut self, weights: Vec<f64>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// The same task on those of its rows that are marked; `marked` has an entry for each row of its sample set, and what is beyond it is
    /// not marked.
    #[must_use]
    pub fn restricted(&self, marked: &[bool]) -> Self {
        let kept = self.rows.places_of(marked);
        // Numbers that are missing stay so, for the problem to refuse.
        let of = |values: &[f64]| -> Vec<f64> {
            let values = kept.iter().map(|&i| values.get(i).copied());
            values.map_while(|value| value).collect()
        };
        Self {
            name: self.name.clone(),
            samples: self.samples,
            rows: kept.iter().map(|&i| self.rows.position(i)).collect(),
            targets: match &self.targets {
                Targets::Labels(labels) => Targets::Labels(of(labels)),
                Targets::Values(values) => Targets::Values(of(values)),
                Targets::Unlabelled => Targets::Unlabelled,
            },
            weights: self.weights.as_deref().map(of),
        }
    }

    /// N_t: how many samples it uses of a set with `samples` rows.
    pub(crate) fn count(&self, samples: usize) -> usize {
        self.rows.count(samples)
    }

    /// Checks everything that does not depend on the machine.
    pub(crate) fn check(&self, sets: &[Samples]) -> Result<()> {
        let place = || Place::Task(self.name.clone());
        let Some(set) = sets.get(self.samples) else {
            let problem = DataProblem::Length {
                what: "index of its sample set",
                found: self.samples,
                expected: sets.len(),
            };
            return Err(Error::data(place(), problem));
        };
        if let Some(rows) = self.rows.rows() {
            let mut seen = BTreeSet::new();
            for &index in rows {
                if index >= set.count() {
                    return Err(Error::data(
                        place(),
                        DataProblem::RowIndex {
                            index,
                            samples: set.count(),
                        },
                    ));
                }
                if !seen.insert(index) {
                    return Err(Error::data(place(), DataProblem::RowTwice(index)));
                }
            }
        }
        let n = self.count(set.count());
        if n == 0 {
            return Err(Error::data(
                place(),
                DataProblem::Empty("the task has no samples, expected at least one"),
            ));
        }
        let (Targets::Labels(values) | Targets::Values(values)) = &self.targets else {
            return self.check_weights(n);
        };
        if values.len() != n {
            return Err(Error::data(
                place(),
                DataProblem::Length {
                    what: "number of targets",
                    found: values.len(),
                    expected: n,
                },
            ));
        }
        for (row, &value) in values.iter().enumerate() {
            if !value.is_finite() {
                let place = Place::TaskRow {
                    task: self.name.clone(),
                    row,
                };
                return Err(Error::data(place, DataProblem::NotFinite(value)));
            }
        }
        self.check_weights(n)
    }

    fn check_weights(&self, n: usize) -> Result<()> {
        let Some(weights) = &self.weights else {
            return Ok(());
        };
        if weights.len() != n {
            return Err(Error::data(
                Place::Task(self.name.clone()),
                DataProblem::Length {
                    what: "number of sample weights",
                    found: weights.len(),
                    expected: n,
                },
            ));
        }
        for (row, &weight) in weights.iter().enumerate() {
            if !(weight.is_finite() && weight >= 0.0) {
                let place = Place::TaskRow {
                    task: self.name.clone(),
                    row,
                };
                return Err(Error::data(place, DataProblem::Weight(weight)));
            }
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            return Err(Error::data(
                Place::Task(self.name.clone()),
                DataProblem::Weight(0.0),
            ));
        }
        Ok(())
    }
}
