//! The sample sets and tasks of a batch, made on its worker from rows that lie together: thousands of tasks are one object here, and a few
//! arrays where Python has to know of them.

use mtmkl::gram::measured_rows;
use mtmkl::{Samples, SparseRows, Task};
use mtmkl_table::{Block, BlockRows, ClassWeight, Dataset};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::vector;
use crate::errors::Origins;
use crate::rows::{Csr, Stack, Stacked};
use crate::table::{Frame, raise};

/// What an error costs: a number for each class, or the word for what balances them.
#[derive(FromPyObject)]
enum Prices {
    Given(Vec<f64>),
    Balanced(#[allow(dead_code, reason = "there is one word")] String),
}

impl Prices {
    fn of(self, classes: &[String]) -> ClassWeight {
        match self {
            Self::Given(prices) => {
                ClassWeight::Given(classes.iter().cloned().zip(prices).collect())
            }
            Self::Balanced(_) => ClassWeight::Balanced,
        }
    }
}

/// Rows before they are scaled: dense ones as bytes, since what came over a wire may begin anywhere.
#[derive(FromPyObject)]
pub(crate) enum Wired<'py> {
    Dense(PyReadonlyArray1<'py, u8>),
    Sparse(Csr<'py>),
}

/// The same, borrowed where they are dense and a checked copy where they are sparse.
pub(crate) enum Unscaled<'a> {
    Dense(&'a [[u8; 8]]),
    Sparse(SparseRows),
}

impl Wired<'_> {
    /// The rows, of so many columns.
    pub(crate) fn read(&self, columns: usize) -> PyResult<Unscaled<'_>> {
        let rows = match self {
            Self::Dense(bytes) => Unscaled::Dense(bytes.as_slice()?.as_chunks().0),
            Self::Sparse(rows) => Unscaled::Sparse(rows.read()?),
        };
        match &rows {
            Unscaled::Sparse(own) if own.width() != columns => Err(unfitting()),
            _ => Ok(rows),
        }
    }
}

impl Unscaled<'_> {
    pub(crate) fn rows(&self) -> BlockRows<'_> {
        match self {
            Self::Dense(values) => BlockRows::Dense(values),
            Self::Sparse(rows) => BlockRows::Sparse(rows),
        }
    }

    /// How many there are, of so many columns.
    pub(crate) fn count(&self, columns: usize) -> usize {
        match self {
            Self::Dense(values) => values.len() / columns.max(1),
            Self::Sparse(rows) => rows.count(),
        }
    }
}

/// Sample sets and tasks, as one machine makes them.
#[pyclass(frozen, module = "mtmkl._core")]
pub(crate) struct Sets {
    pub(crate) data: Dataset,
    names: Vec<String>,
}

/// The rows in which kernels are measured, of all sets, and how many are of each.
type MeasuredRows<'py> = (Stacked<'py>, Bound<'py, PyArray1<usize>>);

/// Of each column the mean and Σ(x − mean)², over so many rows.
type Moments<'py> = (f64, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl Sets {
    /// Those of these rows: `tasks` are the numbers of their tasks among `names`, `targets` numbers to predict or those of classes, `prices` what
    /// an error costs by class.
    #[new]
    #[pyo3(signature = (frame, rows, names, tasks, only, weights, targets, prices))]
    #[allow(
        clippy::too_many_arguments,
        clippy::needless_pass_by_value,
        reason = "the names are the interface, and Python hands over what it passes"
    )]
    fn new(
        py: Python<'_>,
        frame: Py<Frame>,
        rows: Wired<'_>,
        names: Vec<String>,
        tasks: Option<PyReadonlyArray1<'_, i32>>,
        only: &str,
        weights: PyReadonlyArray1<'_, f64>,
        targets: Option<PyReadonlyArray1<'_, f64>>,
        prices: Option<Prices>,
    ) -> PyResult<Self> {
        let frame = frame.get().inner();
        let rows = rows.read(frame.features.len())?;
        let (weights, targets) = (vector(&weights)?, targets.as_ref().map(vector).transpose()?);
        let tasks = tasks.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let count = weights.len();
        if rows.count(frame.features.len()) != count
            || tasks.is_some_and(|of| of.len() != count)
            || targets.is_some_and(|own| own.len() != count)
        {
            return Err(unfitting());
        }
        let class_weight = prices.map(|prices| prices.of(frame.goal.classes()));
        let block = Block {
            rows: rows.rows(),
            tasks: tasks.map(|of| (names.as_slice(), of)),
            only,
            targets,
            weights,
            class_weight: class_weight.as_ref(),
        };
        let made = py.detach(|| Dataset::of_block(frame, &block));
        let (data, names) = made.map_err(|error| raise(error, false))?;
        Ok(Self { data, names })
    }

    /// The task of the table that each sample set is of.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// How many samples each sample set has.
    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        let counts = self.data.samples.iter().map(Samples::count);
        counts.collect::<Vec<_>>().into_pyarray(py)
    }

    /// For the samples of all sets, one after the other, which of the rows they are.
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        self.data.rows.concat().into_pyarray(py)
    }

    /// The machines' names.
    #[getter]
    fn machines(&self) -> Vec<String> {
        let tasks = self.data.tasks.iter();
        tasks.map(|task| task.name.clone()).collect()
    }

    /// The sample set of each machine.
    #[getter]
    fn sets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        let sets = self.data.tasks.iter().map(|task| task.samples);
        sets.collect::<Vec<_>>().into_pyarray(py)
    }

    /// The sum of the weights of each machine.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let data = &self.data;
        let totals = data.tasks.iter().map(|task| match &task.weights {
            Some(weights) => weights.iter().sum(),
            None => task.rows.count(data.samples[task.samples].count()) as f64,
        });
        totals.collect::<Vec<f64>>().into_pyarray(py)
    }

    /// The rows in which kernels are measured where there are so many sample sets in all.
    fn measured<'py>(&self, py: Python<'py>, sets: usize) -> PyResult<MeasuredRows<'py>> {
        let samples = &self.data.samples;
        let (rows, counts) = py.detach(|| {
            let mut all = Stack::like(samples.first().map(Samples::rows));
            let mut counts = Vec::new();
            for set in samples {
                let (rows, chosen) = (set.rows(), measured_rows(set, sets));
                for &row in &chosen {
                    all.push(rows, row);
                }
                counts.push(chosen.len());
            }
            (all, counts)
        });
        Ok((rows.hand_over(py)?, counts.into_pyarray(py)))
    }

    /// What is known of the columns: how many samples there are, the mean and Σ(x − mean)².
    fn moments<'py>(&self, py: Python<'py>) -> Moments<'py> {
        let samples = &self.data.samples;
        let width = samples.first().map_or(0, |set| set.columns().len());
        let (count, means, squares) = py.detach(|| {
            let count: usize = samples.iter().map(Samples::count).sum();
            let mut means = vec![0.0; width];
            let mut zeros = vec![count; width];
            each_cell(samples, |column, x| {
                means[column] += x;
                zeros[column] -= 1;
            });
            for sum in &mut means {
                *sum /= count as f64;
            }
            // Zeros that are not there are as far from the mean as it is from them.
            let of_zeros = zeros.iter().zip(&means);
            let of_zeros = of_zeros.map(|(&zeros, mean)| zeros as f64 * mean * mean);
            let mut squares: Vec<f64> = of_zeros.collect();
            each_cell(samples, |column, x| {
                let off = x - means[column];
                squares[column] += off * off;
            });
            (count as f64, means, squares)
        });
        (count, means.into_pyarray(py), squares.into_pyarray(py))
    }
}

impl Sets {
    /// Where samples and tasks come from, for messages.
    pub(crate) fn origins(&self) -> Origins {
        let tasks = self.data.tasks.iter();
        Origins {
            rows: self.data.rows.clone(),
            tasks: tasks
                .map(|task| {
                    let rows = task.rows.rows().map(<[usize]>::to_vec);
                    (task.name.clone(), task.samples, rows)
                })
                .collect(),
        }
    }

    /// The tasks, the weights of each multiplied by its share.
    pub(crate) fn tasks(&self, shares: &[f64]) -> PyResult<Vec<Task>> {
        let tasks = &self.data.tasks;
        if shares.len() != tasks.len() {
            return Err(unfitting());
        }
        let weighed = |(task, &share): (&Task, &f64)| {
            if share == 1.0 {
                return task.clone();
            }
            let ones = || vec![1.0; task.rows.count(self.data.samples[task.samples].count())];
            let weights = task.weights.clone().unwrap_or_else(ones);
            let weights = weights.into_iter().map(|weight| weight * share);
            task.clone().with_weights(weights.collect())
        };
        Ok(tasks.iter().zip(shares).map(weighed).collect())
    }
}

/// Calls `work` with the column and the value of every number that is there, of all sets.
fn each_cell(samples: &[Samples], mut work: impl FnMut(usize, f64)) {
    for set in samples {
        let rows = set.rows();
        let sparse = rows.sparse();
        for row in 0..set.count() {
            if let Some(sparse) = &sparse {
                let (columns, values) = sparse.row(row);
                let cells = columns.iter().zip(values);
                cells.for_each(|(&column, &x)| work(column as usize, x));
            } else if let Some(own) = rows.get(row) {
                own.iter()
                    .enumerate()
                    .for_each(|(column, &x)| work(column, x));
            }
        }
    }
}

fn unfitting() -> PyErr {
    PyValueError::new_err("rows, tasks, targets and weights are not equally many")
}
