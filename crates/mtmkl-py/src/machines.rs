//! Machines in arrays: what crosses from a worker to the client at the end of a fit. Of many machines Python sees a dozen arrays, not objects.

use std::collections::{BTreeMap, BTreeSet};

use mtmkl::model::{Machines, SupportSet, TaskModel, Witness};
use mtmkl::{RowValues, TargetUnit};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::vector;
use crate::errors::{self, Origins};
use crate::rows::{PyRows, Stack, Stacked};
use crate::sets::Unscaled;
use crate::table::{Frame, raise};

/// Positions are below 2³²: no sample set of so many samples has a kernel matrix.
#[allow(clippy::cast_possible_truncation, reason = "as it says")]
fn short<'a>(positions: impl Iterator<Item = &'a usize>) -> Vec<u32> {
    positions.map(|&position| position as u32).collect()
}

/// The arrays of these machines; positions count within sample sets, of which `with_rows` says whether they have rows here.
pub(crate) fn flat<'py>(
    py: Python<'py>,
    machines: &Machines,
    with_rows: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let Machines { sets, tasks, .. } = machines;
    let counts = |of: fn(&TaskModel) -> usize| tasks.iter().map(of).collect::<Vec<_>>();
    let all = PyDict::new(py);
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    all.set_item("names", names)?;
    all.set_item("sets", counts(|task| task.set).into_pyarray(py))?;
    all.set_item("samples", counts(|task| task.samples).into_pyarray(py))?;
    let sizes: Vec<usize> = sets.iter().map(|set| set.samples).collect();
    all.set_item("sizes", sizes.into_pyarray(py))?;
    let places: Vec<usize> = sets.iter().map(|set| set.positions.len()).collect();
    all.set_item("places", places.into_pyarray(py))?;
    let positions = short(sets.iter().flat_map(|set| &set.positions));
    all.set_item("positions", positions.into_pyarray(py))?;
    let supported = counts(|task| task.support.len());
    all.set_item("supported", supported.into_pyarray(py))?;
    let support = short(tasks.iter().flat_map(|task| &task.support));
    all.set_item("support", support.into_pyarray(py))?;
    let beta: Vec<f64> = tasks.iter().flat_map(|task| &task.beta).copied().collect();
    all.set_item("beta", beta.into_pyarray(py))?;
    let offsets: Vec<f64> = tasks.iter().map(|task| task.offset).collect();
    all.set_item("offsets", offsets.into_pyarray(py))?;
    let units = tasks
        .iter()
        .flat_map(|task| [task.unit.offset, task.unit.scale]);
    all.set_item("units", units.collect::<Vec<f64>>().into_pyarray(py))?;
    let witnesses = || tasks.iter().map(|task| task.witness.as_ref());
    let has: Vec<bool> = witnesses().map(|witness| witness.is_some()).collect();
    all.set_item("has_witness", has.into_pyarray(py))?;
    let witnessed = witnesses().map(|witness| witness.map_or(0, |own| own.rows.len()));
    all.set_item("witnessed", witnessed.collect::<Vec<_>>().into_pyarray(py))?;
    let rows = short(witnesses().flatten().flat_map(|witness| &witness.rows));
    all.set_item("witness_rows", rows.into_pyarray(py))?;
    let beta = witnesses().flatten().flat_map(|witness| &witness.beta);
    let beta: Vec<f64> = beta.copied().collect();
    all.set_item("witness_beta", beta.into_pyarray(py))?;
    let rows = with_rows.then(|| stacked(py, sets)).transpose()?;
    all.set_item("rows", rows)?;
    Ok(all)
}

/// The support rows of all sets, one after the other.
pub(crate) fn stacked<'py>(py: Python<'py>, sets: &[SupportSet]) -> PyResult<Stacked<'py>> {
    let tables = sets
        .iter()
        .map(|set| set.rows.table(set.positions.len(), set.columns.len()));
    let tables = tables.collect::<mtmkl::Result<Vec<_>>>();
    let tables = tables.map_err(|error| errors::raise(error, &Origins::default()))?;
    let mut all = Stack::like(tables.first().copied());
    for rows in tables {
        (0..rows.rows()).for_each(|row| all.push(rows, row));
    }
    all.hand_over(py)
}

/// The machines of a batch as they came, with their rows, or with which of all rows the samples of its sets are.
#[derive(FromPyObject)]
pub(crate) struct Part<'py> {
    #[pyo3(item)]
    names: Vec<String>,
    #[pyo3(item)]
    sets: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    samples: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    sizes: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    places: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    positions: PyReadonlyArray1<'py, u32>,
    #[pyo3(item)]
    supported: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    support: PyReadonlyArray1<'py, u32>,
    #[pyo3(item)]
    beta: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    offsets: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    units: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    has_witness: PyReadonlyArray1<'py, bool>,
    #[pyo3(item)]
    witnessed: PyReadonlyArray1<'py, usize>,
    #[pyo3(item)]
    witness_rows: PyReadonlyArray1<'py, u32>,
    #[pyo3(item)]
    witness_beta: PyReadonlyArray1<'py, f64>,
    #[pyo3(item)]
    rows: Option<PyRows<'py>>,
    #[pyo3(item)]
    origins: Option<PyReadonlyArray1<'py, i64>>,
}

/// Support rows of the next sample set, by its number of samples and the positions among them.
type Choose<'a> = Box<dyn FnMut(usize, &[usize]) -> PyResult<RowValues> + 'a>;

fn unfitting() -> PyErr {
    PyValueError::new_err("the arrays of the machines do not fit each other")
}

/// What is left of an array that is cut into pieces.
struct Left<'a, T>(&'a [T]);

impl<'a, T> Left<'a, T> {
    fn cut(&mut self, count: usize) -> PyResult<&'a [T]> {
        let (first, rest) = self.0.split_at_checked(count).ok_or_else(unfitting)?;
        self.0 = rest;
        Ok(first)
    }
}

/// Positions below a limit.
fn places(short: &[u32], below: usize) -> PyResult<Vec<usize>> {
    let places = short.iter().map(|&place| place as usize);
    let places = places.map(|place| (place < below).then_some(place));
    places.collect::<Option<_>>().ok_or_else(unfitting)
}

impl Part<'_> {
    /// The machines, with the rows that they need: their own, or some of all rows.
    pub(crate) fn machines(
        &self,
        frame: &Frame,
        about: &Machines,
        all: Option<&Unscaled<'_>>,
    ) -> PyResult<Machines> {
        let sets = self.support_sets(frame, all)?;
        let tasks = self.task_models(&sets)?;
        Ok(Machines {
            sets,
            tasks,
            ..about.clone()
        })
    }

    fn support_sets(&self, frame: &Frame, all: Option<&Unscaled<'_>>) -> PyResult<Vec<SupportSet>> {
        let columns = frame.inner().columns();
        let (sizes, counts) = (self.sizes.as_slice()?, self.places.as_slice()?);
        let mut positions = Left(self.positions.as_slice()?);
        let mut rows = self.rows_of_sets(frame, all)?;
        let pairs = sizes.iter().zip(counts);
        pairs
            .map(|(&samples, &count)| {
                let positions = places(positions.cut(count)?, samples)?;
                Ok(SupportSet {
                    columns: columns.clone(),
                    rows: rows(samples, &positions)?,
                    positions,
                    samples,
                    given_diagonals: BTreeMap::new(),
                    unit_diagonals: BTreeSet::new(),
                    origins: None,
                })
            })
            .collect()
    }

    /// The support rows of one set after the other, by its number of samples and the positions among them.
    fn rows_of_sets<'a>(
        &'a self,
        frame: &'a Frame,
        all: Option<&'a Unscaled<'_>>,
    ) -> PyResult<Choose<'a>> {
        if let Some(rows) = &self.rows {
            let (rows, mut first) = (rows.read()?, 0);
            return Ok(Box::new(move |_, positions| {
                let own = rows.part(first, positions.len());
                first += positions.len();
                own
            }));
        }
        let (all, origins) = all.zip(self.origins.as_ref()).ok_or_else(unfitting)?;
        let mut origins = Left(origins.as_slice()?);
        let count = all.count(frame.inner().features.len());
        Ok(Box::new(move |samples, positions| {
            let own = origins.cut(samples)?;
            let row = |&at: &usize| usize::try_from(own[at]).ok().filter(|row| *row < count);
            let rows: Option<Vec<usize>> = positions.iter().map(row).collect();
            let rows = rows.ok_or_else(unfitting)?;
            let found = frame.inner().scaled_rows(all.rows(), &rows);
            found.map_err(|error| raise(error, false))
        }))
    }

    fn task_models(&self, sets: &[SupportSet]) -> PyResult<Vec<TaskModel>> {
        let (of, samples) = (self.sets.as_slice()?, self.samples.as_slice()?);
        let (supported, witnessed) = (self.supported.as_slice()?, self.witnessed.as_slice()?);
        let has_witness = self.has_witness.as_slice()?;
        let (offsets, units) = (
            vector(&self.offsets)?,
            vector(&self.units)?.as_chunks::<2>().0,
        );
        let mut support = Left(self.support.as_slice()?);
        let mut beta = Left(vector(&self.beta)?);
        let mut witness_rows = Left(self.witness_rows.as_slice()?);
        let mut witness_beta = Left(vector(&self.witness_beta)?);
        let count = self.names.len();
        let lengths = [of.len(), samples.len(), supported.len(), witnessed.len()];
        let others = [has_witness.len(), offsets.len(), units.len()];
        if lengths.iter().chain(&others).any(|&length| length != count) {
            return Err(unfitting());
        }
        let task = |number: usize| {
            let set = sets.get(of[number]).ok_or_else(unfitting)?;
            let (rows, values) = (
                witness_rows.cut(witnessed[number])?,
                witness_beta.cut(witnessed[number])?,
            );
            let witness = Witness {
                rows: places(rows, set.samples)?,
                beta: values.to_vec(),
            };
            let [offset, scale] = units[number];
            Ok(TaskModel {
                name: self.names[number].clone(),
                samples: samples[number],
                set: of[number],
                support: places(support.cut(supported[number])?, set.positions.len())?,
                beta: beta.cut(supported[number])?.to_vec(),
                offset: offsets[number],
                unit: TargetUnit { offset, scale },
                witness: has_witness[number].then_some(witness),
            })
        };
        (0..count).map(task).collect()
    }
}
