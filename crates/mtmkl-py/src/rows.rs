//! Rows of numbers as Python has them: an array, or SciPy's compressed sparse rows; and as it gets them.

use std::ops::Range;

use mtmkl::{RowValues, Rows, SparseRows};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::convert::{matrix, vector};
use crate::errors::{self, Origins};

/// Rows, dense or sparse.
#[derive(FromPyObject)]
pub(crate) enum PyRows<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Sparse(Csr<'py>),
}

/// SciPy's names.
#[derive(FromPyObject)]
pub(crate) struct Csr<'py> {
    indptr: Indices<'py>,
    indices: Indices<'py>,
    data: PyReadonlyArray1<'py, f64>,
    shape: (usize, usize),
}

/// SciPy takes the shorter kind of numbers where that is enough.
#[derive(FromPyObject)]
enum Indices<'py> {
    Short(PyReadonlyArray1<'py, i32>),
    Long(PyReadonlyArray1<'py, i64>),
}

impl Indices<'_> {
    /// Those at these places.
    fn get<T: TryFrom<i32> + TryFrom<i64>>(&self, places: Range<usize>) -> PyResult<Vec<T>> {
        fn all<T: TryFrom<N>, N: Copy>(numbers: Option<&[N]>) -> Option<Vec<T>> {
            numbers?.iter().map(|&own| T::try_from(own).ok()).collect()
        }
        let read = match self {
            Self::Short(own) => all(own.as_slice()?.get(places)),
            Self::Long(own) => all(own.as_slice()?.get(places)),
        };
        read.ok_or_else(|| damaged("an index is not of this matrix"))
    }

    fn count(&self) -> usize {
        match self {
            Self::Short(own) => own.len(),
            Self::Long(own) => own.len(),
        }
    }
}

fn damaged(why: &str) -> PyErr {
    PyValueError::new_err(format!("X is a damaged sparse matrix: {why}"))
}

/// The rows, borrowed where they are dense and a checked copy where they are sparse.
pub(crate) enum Read<'a> {
    /// The values, row by row, and the number of columns.
    Dense(&'a [f64], usize),
    Sparse(SparseRows),
}

impl Csr<'_> {
    /// Where each row begins among the entries, and where the last one ends.
    fn offsets(&self) -> PyResult<Vec<usize>> {
        let offsets = self.indptr.get(0..self.indptr.count())?;
        if offsets.len() != self.shape.0 + 1 {
            return Err(damaged("it has not as many offsets as rows"));
        }
        Ok(offsets)
    }

    /// All rows.
    pub(crate) fn read(&self) -> PyResult<SparseRows> {
        let columns = self.indices.get(0..self.indices.count())?;
        checked(
            self.offsets()?,
            columns,
            vector(&self.data)?.to_vec(),
            self.shape.1,
        )
    }

    /// These rows, in this order: the others are not copied.
    fn select(&self, places: &[usize]) -> PyResult<SparseRows> {
        let (all, data) = (self.offsets()?, vector(&self.data)?);
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &place in places {
            let range = all[place]..all[place + 1];
            let own = data.get(range.clone());
            values.extend_from_slice(own.ok_or_else(|| damaged("rows are not in their order"))?);
            columns.extend(self.indices.get::<u32>(range)?);
            offsets.push(values.len());
        }
        checked(offsets, columns, values, self.shape.1)
    }
}

fn checked(
    offsets: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    width: usize,
) -> PyResult<SparseRows> {
    let made = SparseRows::new(offsets, columns, values, width);
    made.map_err(|error| errors::raise(error, &Origins::default()))
}

impl PyRows<'_> {
    /// How many rows and columns.
    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense(rows) => (rows.shape()[0], rows.shape()[1]),
            Self::Sparse(rows) => rows.shape,
        }
    }

    /// The rows, checked.
    pub(crate) fn read(&self) -> PyResult<Read<'_>> {
        match self {
            Self::Dense(rows) => Ok(Read::Dense(matrix(rows)?, rows.shape()[1])),
            Self::Sparse(rows) => rows.read().map(Read::Sparse),
        }
    }

    /// A copy of these rows, in this order.
    pub(crate) fn select(&self, places: &[usize]) -> PyResult<RowValues> {
        let (count, columns) = self.shape();
        if places.iter().any(|&row| row >= count) {
            return Err(PyValueError::new_err(
                "origin names rows that are not there",
            ));
        }
        Ok(match self {
            Self::Dense(rows) => {
                let values = matrix(rows)?;
                let own = places.iter();
                let own = own.flat_map(|place| &values[place * columns..(place + 1) * columns]);
                RowValues::Dense(own.copied().collect())
            }
            Self::Sparse(rows) => RowValues::Sparse(rows.select(places)?),
        })
    }
}

impl Read<'_> {
    /// A copy of so many rows, from the first of them on.
    pub(crate) fn part(&self, first: usize, count: usize) -> PyResult<RowValues> {
        let few = || PyValueError::new_err("there are fewer rows than was said");
        Ok(match self {
            Self::Dense(values, columns) => {
                let own = values.get(first * columns..(first + count) * columns);
                RowValues::Dense(own.ok_or_else(few)?.to_vec())
            }
            Self::Sparse(rows) if first + count > rows.count() => return Err(few()),
            Self::Sparse(rows) => {
                RowValues::Sparse(rows.select(&(first..first + count).collect::<Vec<_>>()))
            }
        })
    }

    /// So many rows, as the core sees them.
    pub(crate) fn rows(&self, count: usize) -> mtmkl::Result<Rows<'_>> {
        match self {
            Self::Dense(values, columns) => Rows::new(values, count, *columns),
            Self::Sparse(rows) => Ok(rows.into()),
        }
    }
}

/// Rows for Python, put one after the other: all their numbers, or those other than zero.
pub(crate) struct Stack {
    count: usize,
    width: usize,
    /// Where rows end among the numbers, and the column of each, where rows are sparse.
    sparse: Option<(Vec<usize>, Vec<u32>)>,
    values: Vec<f64>,
}

/// The offsets, columns and values of sparse rows, and how many columns there are.
type Parts<'py> = (
    Bound<'py, PyArray1<usize>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    usize,
);

/// The rows, which Python makes a matrix of where they are sparse.
#[derive(IntoPyObject)]
pub(crate) enum Stacked<'py> {
    Dense(Bound<'py, PyArray2<f64>>),
    Sparse(Parts<'py>),
}

impl Stack {
    /// None yet, of the kind of these.
    pub(crate) fn like(rows: Option<Rows<'_>>) -> Self {
        Self {
            count: 0,
            width: rows.map_or(0, |rows| rows.columns()),
            sparse: rows.and_then(|rows| rows.sparse().map(|_| (vec![0], Vec::new()))),
            values: Vec::new(),
        }
    }

    /// One more, of rows of this kind.
    pub(crate) fn push(&mut self, rows: Rows<'_>, row: usize) {
        self.count += 1;
        match (&mut self.sparse, rows.sparse()) {
            (Some((offsets, columns)), Some(rows)) => {
                let (own, values) = rows.row(row);
                columns.extend_from_slice(own);
                self.values.extend_from_slice(values);
                offsets.push(self.values.len());
            }
            _ => self
                .values
                .extend(rows.get(row).iter().flat_map(|own| own.iter())),
        }
    }

    /// The rows, handed over.
    pub(crate) fn hand_over(self, py: Python<'_>) -> PyResult<Stacked<'_>> {
        if let Some((offsets, columns)) = self.sparse {
            let (offsets, columns) = (offsets.into_pyarray(py), columns.into_pyarray(py));
            let values = self.values.into_pyarray(py);
            return Ok(Stacked::Sparse((offsets, columns, values, self.width)));
        }
        let shape = [self.count, self.width];
        let values = self.values.into_pyarray(py).reshape(shape)?;
        Ok(Stacked::Dense(values))
    }
}
