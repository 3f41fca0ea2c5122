//! The table contract for Python: names, gaps, frames, sample sets and votes are those of `mtmkl_table`, as the program has them.

use std::collections::BTreeMap;

use mtmkl_table::{
    Column, Feature, Goal, Group, Lines, Names, Place, Scaling, Spelled, Table, TableError,
    by_number_then_text, class_probabilities, class_scores, usual_scaling, winner,
};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::convert::{matrix, vector};
use crate::errors::{self, Origins};
use crate::model::Model;
use crate::rows::{PyRows, Read};
use crate::transfer::Transfer;

/// Whether a text means that there is no value.
#[pyfunction]
pub(crate) fn is_gap(text: &str) -> bool {
    mtmkl_table::is_gap(text)
}

/// The places of names in their order: numbers by value, then texts.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn name_order(names: Vec<String>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| by_number_then_text(&names[a], &names[b]));
    order
}

/// The name among known ones of what Python spells so: a `text`, a `whole` number, another `number` or a `truth`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn named(text: String, kind: &str, known: Vec<String>) -> PyResult<String> {
    let value = match kind {
        "whole" => Spelled::Whole(&text),
        "truth" => Spelled::Truth(text == "True"),
        "number" => text.parse().map_or(Spelled::Text(&text), Spelled::Number),
        _ => Spelled::Text(&text),
    };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    match mtmkl_table::named(value, &known) {
        Ok(name) => Ok(name.unwrap_or(&text).to_string()),
        Err((first, second)) => Err(PyValueError::new_err(two_spellings(&text, first, second))),
    }
}

fn two_spellings(number: &str, first: &str, second: &str) -> String {
    format!(
        "{number} may be '{first}' or '{second}'; give names as text, as with read_csv(…, dtype=str)"
    )
}

/// The rows of each task, in the order of names.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn task_groups(
    py: Python<'_>,
    tasks: Vec<String>,
) -> Vec<(String, Bound<'_, PyArray1<usize>>)> {
    let names = Names::new(tasks.iter().map(|name| Some(name.as_str())));
    let groups = names.groups().into_iter();
    groups
        .map(|(name, rows)| (name.to_string(), rows.into_pyarray(py)))
        .collect()
}

/// The sample set of each task: its rows, equal samples (row and `same`) taken together and in the order that depends on nothing
/// else, and their weights. Rows of weight 0 are left out; without `rows`, all others stay as they are.
#[pyfunction]
#[allow(
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "Python hands over what it passes; a triple with arrays"
)]
pub(crate) fn sample_sets<'py>(
    py: Python<'py>,
    rows: Option<PyRows<'py>>,
    tasks: Option<Vec<String>>,
    only: &str,
    weights: PyReadonlyArray1<'py, f64>,
    same: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<
    Vec<(
        String,
        Bound<'py, PyArray1<usize>>,
        Bound<'py, PyArray1<f64>>,
    )>,
> {
    let groups = Samples {
        rows: rows.as_ref(),
        weights: &weights,
        same: same.as_ref(),
    }
    .groups(tasks, only)?;
    let groups = groups.into_iter();
    Ok(groups
        .map(|group| {
            (
                group.name,
                group.rows.into_pyarray(py),
                group.weights.into_pyarray(py),
            )
        })
        .collect())
}

/// Samples as Python has them: their rows, how often each counts, and what tells equal ones apart.
pub(crate) struct Samples<'a, 'py> {
    pub(crate) rows: Option<&'a PyRows<'py>>,
    pub(crate) weights: &'a PyReadonlyArray1<'py, f64>,
    pub(crate) same: Option<&'a PyReadonlyArray1<'py, f64>>,
}

impl Samples<'_, '_> {
    /// Those of each task.
    pub(crate) fn groups(&self, tasks: Option<Vec<String>>, only: &str) -> PyResult<Vec<Group>> {
        let weights = vector(self.weights)?;
        let names = tasks.map(|tasks| Names::new(tasks.iter().map(|name| Some(name.as_str()))));
        let all: Vec<usize> = (0..weights.len()).collect();
        let mut groups = mtmkl_table::groups(&all, names.as_ref(), only, Some(weights))
            .map_err(|error| raise(error, false))?;
        if let Some(rows) = self.rows {
            let (all, columns) = (rows.read()?, rows.shape().1);
            let same = self.same.map(vector).transpose()?;
            for group in groups.iter_mut().filter(|_| columns > 0) {
                let own = group.rows.clone();
                let keys = same.map(|same| own.iter().map(|&row| same[row]).collect::<Vec<f64>>());
                match &all {
                    Read::Dense(values, _) => {
                        let row = |at: usize| &values[own[at] * columns..(own[at] + 1) * columns];
                        group.merge(row, keys.as_deref())
                    }
                    Read::Sparse(rows) => {
                        let order = |a: usize, b: usize| rows.rows().compare(own[a], own[b]);
                        group.merge_by(order, keys.as_deref())
                    }
                };
            }
        }
        Ok(groups)
    }
}

/// How columns are scaled where nothing is said, for these kernels.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn usual_scale(kernels: Vec<String>) -> &'static str {
    let usual = scaling_for(&kernels);
    let words = Scaling::WORDS.iter();
    let mut own = words.filter(|(scaling, ..)| *scaling == usual);
    own.next().map_or("none", |(_, word, _)| word)
}

fn scaling_for(kernels: &[String]) -> Scaling {
    let views = kernels
        .iter()
        .map(|spec| mtmkl::kernel::parse_kernels(spec));
    // What cannot be read is complained about where kernels are made.
    usual_scaling(&views.filter_map(Result::ok).flatten().collect::<Vec<_>>())
}

/// The offset and the factor of each column, learned from rows that count as often as their weights say; of sparse rows without an offset.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn column_scales(
    rows: PyRows<'_>,
    weights: PyReadonlyArray1<'_, f64>,
    scale: &str,
    kernels: Vec<String>,
) -> PyResult<Vec<(f64, f64)>> {
    let found = Scaling::WORDS.iter().find(|(_, word, _)| *word == scale);
    let usual = || scaling_for(&kernels);
    let said = found.map(|(scaling, ..)| *scaling);
    let Some(scaling) = said.or_else(|| (scale == "auto").then(usual)) else {
        let words = Scaling::WORDS
            .map(|(_, word, _)| format!("'{word}'"))
            .join(", ");
        return Err(PyValueError::new_err(format!(
            "scale is '{scale}', expected 'auto' or one of {words}"
        )));
    };
    let weights = vector(&weights)?;
    let (values, columns) = match rows.read()? {
        Read::Dense(values, columns) => (values, columns),
        Read::Sparse(rows) => {
            let factors = scaling.factors(&rows, weights).into_iter();
            return Ok(factors.map(|factor| (0.0, factor)).collect());
        }
    };
    let weights = weights
        .iter()
        .any(|weight| *weight != 1.0)
        .then_some(weights);
    let scale_of = |column: usize| {
        let column = values.iter().skip(column).step_by(columns).copied();
        scaling.of(&column.collect::<Vec<f64>>(), weights)
    };
    Ok((0..columns).map(scale_of).collect())
}

/// n / (k n_c) for each of so many classes, of rows with these classes and weights.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn balanced<'py>(
    py: Python<'py>,
    classes: usize,
    codes: Vec<usize>,
    weights: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    Ok(mtmkl_table::balanced(classes, &codes, vector(&weights)?).into_pyarray(py))
}

/// Whether so many different values look like numbers to predict rather than classes.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
pub(crate) fn looks_like_numbers(values: Vec<String>, rows: usize) -> bool {
    mtmkl_table::looks_like_numbers(&values, rows)
}

/// A column of new rows: numbers, NaN where there is none, or cells as they are written.
#[derive(FromPyObject)]
pub(crate) enum Cells<'py> {
    Numbers(PyReadonlyArray1<'py, f64>),
    Texts(Vec<String>),
}

/// How a table becomes numbers, and decision values become classes.
#[pyclass(frozen, module = "mtmkl._core")]
pub(crate) struct Frame {
    frame: mtmkl_table::Frame,
}

#[pymethods]
impl Frame {
    /// The frame of columns with these scales, an offset and a factor each; the goal as model files have it.
    #[new]
    #[pyo3(signature = (columns, scales, target, task, goal, transfer=None))]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn new(
        columns: Vec<String>,
        scales: Vec<(f64, f64)>,
        target: Option<&str>,
        task: Option<&str>,
        goal: &str,
        transfer: Option<Transfer>,
    ) -> PyResult<Self> {
        let goal: Goal =
            serde_json::from_str(goal).map_err(|error| errors::unreadable("goal", &error))?;
        let mut frame = mtmkl_table::Frame::plain(&columns, target, task, goal);
        for (feature, (offset, factor)) in frame.features.iter_mut().zip(scales) {
            (feature.offset, feature.factor) = (offset, factor);
        }
        frame.transfer = transfer.map(|own| own.inner);
        Ok(Self { frame })
    }

    /// Rows of numbers on the scales of their columns.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn scaled<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (count, width) = (rows.shape()[0], rows.shape()[1]);
        let values = self
            .frame
            .scaled(matrix(&rows)?)
            .map_err(|error| raise(error, false))?;
        values.into_pyarray(py).reshape([count, width])
    }

    /// Whether zeros stay zeros on the scales of the columns.
    #[getter]
    fn keeps_zeros(&self) -> bool {
        self.frame.keeps_zeros()
    }

    /// The entries of sparse rows on the scales of their columns, which keep zeros.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn scaled_entries<'py>(
        &self,
        py: Python<'py>,
        rows: PyRows<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let Read::Sparse(rows) = rows.read()? else {
            return Err(PyValueError::new_err("the rows are not sparse"));
        };
        let scaled = self.frame.scaled_entries(&rows);
        Ok(scaled
            .map_err(|error| raise(error, false))?
            .into_pyarray(py))
    }

    /// The frame that a model carries, or that of a model of the library.
    #[classmethod]
    fn of(_class: &Bound<'_, PyType>, model: &Model) -> PyResult<Self> {
        let model = model.core();
        let frame = match mtmkl_table::frame_of(model) {
            Ok(frame) => frame,
            Err(TableError::NoFrame) => mtmkl_table::Frame::of_library(model),
            Err(error) => return Err(raise(error, false)),
        };
        Ok(Self { frame })
    }

    /// The table's columns behind the features, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let mut columns: Vec<String> = Vec::new();
        for Feature { column, .. } in &self.frame.features {
            // The indicators of one column stand together.
            if columns.last() != Some(column) {
                columns.push(column.clone());
            }
        }
        columns
    }

    /// The features' names.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.frame.columns()
    }

    /// The column that names tasks.
    #[getter]
    fn task(&self) -> Option<&str> {
        self.frame.task.as_deref()
    }

    /// The classes in words, in their order.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.frame.goal.classes().to_vec()
    }

    /// Whether the machines are those of the classes of one problem, rather than of several.
    #[getter]
    fn is_by_class(&self) -> bool {
        self.frame.goal.is_by_class()
    }

    /// Whether there are more than two classes.
    #[getter]
    fn has_many_classes(&self) -> bool {
        matches!(self.frame.goal, Goal::Multiclass { .. })
    }

    /// The known values of each one-hot column.
    #[getter]
    fn categories(&self) -> BTreeMap<String, Vec<String>> {
        let known = self.frame.categories().into_iter();
        known
            .map(|(column, known)| {
                let known = known.into_iter().map(str::to_string).collect();
                (column.to_string(), known)
            })
            .collect()
    }

    /// The notes that a model keeps of it and of the rows of each sample set.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn notes(&self, rows: Vec<Vec<usize>>) -> PyResult<BTreeMap<String, String>> {
        let mut notes = BTreeMap::new();
        mtmkl_table::keep(&mut notes, &self.frame, &rows).map_err(|error| raise(error, false))?;
        Ok(notes)
    }

    /// New rows as numbers, gaps filled and scaled; their columns by name.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<(String, Cells<'py>)>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let raise = |error| raise(error, self.frame.drop_missing);
        let categories = self.frame.categories();
        let mut made = Vec::with_capacity(columns.len());
        for (name, cells) in columns {
            let infinite = |row: usize, value: String| TableError::NotFinite {
                file: "X".to_string(),
                place: Place::Row(row),
                column: name.clone(),
                value,
            };
            made.push(match cells {
                Cells::Numbers(numbers) => {
                    Column::of_numbers(name.clone(), numbers.as_array().to_vec())
                        .map_err(|(row, value)| raise(infinite(row, value.to_string())))
                }
                Cells::Texts(texts) => {
                    let is_names = categories.contains_key(name.as_str());
                    Column::of_cells(name.clone(), texts, is_names)
                        .map_err(|(row, value)| raise(infinite(row, value)))
                }
            }?);
        }
        let count = made.first().map_or(0, |column| column.values.len());
        let table = Table::new("X", count, made, Lines::Rows(0));
        let all: Vec<usize> = (0..count).collect();
        // As the program asks: whether the columns are of numbers comes before whether there are gaps.
        let values = self.frame.gather(&table, &all, u64::MAX).map_err(raise)?;
        let width = self.frame.features.len();
        values.into_pyarray(py).reshape([count, width])
    }

    /// The tasks that rows with these numbers of classes make: names, and +1, −1 or nan for rows that a task is not about.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn labels<'py>(
        &self,
        py: Python<'py>,
        only: &str,
        codes: Vec<usize>,
    ) -> Vec<(String, Bound<'py, PyArray1<f64>>)> {
        let tasks = self.frame.goal.labels(only, &codes).into_iter();
        tasks
            .map(|(name, labels)| (name, labels.into_pyarray(py)))
            .collect()
    }

    /// The sample set of a task; none where it was never seen. With kernels between tasks all are of one set.
    fn set_of(&self, model: &Model, task: &str) -> Option<usize> {
        if model.between().is_some() {
            return Some(0);
        }
        self.frame.goal.set_of(model.core(), task)
    }

    /// The columns that name the groups of a task, outermost first.
    #[getter]
    fn group_columns(&self) -> Vec<String> {
        self.frame.group_columns().to_vec()
    }

    /// The tasks of the table that a model knows.
    fn tasks(&self, model: &Model) -> Vec<String> {
        let known = self.frame.known_tasks(model.core()).into_iter();
        known.map(str::to_string).collect()
    }

    /// Each class' score from the decision values of the machines on a sample set: those themselves, or votes; −∞ for classes that its task does
    /// not have. Where there are not several classes, the decision values as they are.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn scores<'py>(
        &self,
        py: Python<'py>,
        set: usize,
        decisions: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (count, machines) = (decisions.shape()[0], decisions.shape()[1]);
        let Goal::Multiclass { scheme, .. } = &self.frame.goal else {
            let values = matrix(&decisions)?.to_vec();
            return values.into_pyarray(py).reshape([count, machines]);
        };
        self.by_class(
            py,
            set,
            count,
            f64::NEG_INFINITY,
            matrix(&decisions)?.chunks(machines.max(1)),
            |row, classes| class_scores(*scheme, classes, row),
        )
    }

    /// Each class' probability from the decision values of the machines on a sample set; without one, of a task that was never seen.
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        model: &Model,
        set: Option<usize>,
        decisions: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let calibration =
            mtmkl_table::calibration_of(model.core()).map_err(|error| raise(error, false))?;
        let Some(calibration) = calibration else {
            return Err(PyValueError::new_err("the model has no probabilities"));
        };
        let of_set = |set: usize| calibration.on(model.core(), set);
        let sigmoids = set.map_or(vec![calibration.pooled], of_set);
        let positive = |row: &[f64]| -> Vec<f64> {
            let own = sigmoids.iter().zip(row);
            own.map(|(one, &decision)| one.probability(decision))
                .collect()
        };
        let (count, machines) = (decisions.shape()[0], decisions.shape()[1]);
        let rows = matrix(&decisions)?.chunks(machines.max(1));
        let Goal::Multiclass { scheme, .. } = &self.frame.goal else {
            let both = rows.flat_map(|row| {
                let second = positive(row)[0];
                [1.0 - second, second]
            });
            return both
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .reshape([count, 2]);
        };
        self.by_class(py, set.unwrap_or(0), count, 0.0, rows, |row, classes| {
            class_probabilities(*scheme, classes, &positive(row))
        })
    }

    /// Which of the classes, by their scores; or by one decision value each, which is for the second class from 0 on.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "Python hands it over")]
    fn chosen<'py>(
        py: Python<'py>,
        scores: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<usize>>> {
        let columns = scores.shape()[1];
        let rows = matrix(&scores)?.chunks(columns.max(1));
        let chosen = |row: &[f64]| match row {
            [decision] => usize::from(*decision >= 0.0),
            row => winner(row),
        };
        Ok(rows.map(chosen).collect::<Vec<_>>().into_pyarray(py))
    }

    /// The frame as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.frame).map_err(|error| errors::unreadable("frame", &error))
    }

    /// A frame from its JSON.
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, json: &str) -> PyResult<Self> {
        let frame =
            serde_json::from_str(json).map_err(|error| errors::unreadable("frame", &error))?;
        Ok(Self { frame })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let make = slf.py().get_type::<Self>().getattr("from_json")?;
        Ok((make, (slf.get().to_json()?,)))
    }
}

impl Frame {
    /// The frame of the table contract.
    pub(crate) fn inner(&self) -> &mtmkl_table::Frame {
        &self.frame
    }

    /// Rows × all classes, from what is known of the classes of a sample set in each row.
    fn by_class<'py, 'a>(
        &self,
        py: Python<'py>,
        set: usize,
        count: usize,
        absent: f64,
        rows: impl Iterator<Item = &'a [f64]>,
        of_row: impl Fn(&[f64], usize) -> Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let own = self.frame.goal.classes_on(set);
        let all = self.frame.goal.classes().len();
        let mut values = vec![absent; count * all];
        for (row, out) in rows.zip(values.chunks_mut(all)) {
            for (&class, value) in own.iter().zip(of_row(row, own.len())) {
                out[class] = value;
            }
        }
        values.into_pyarray(py).reshape([count, all])
    }
}

/// The exception for what is wrong with new rows: in Python's words, rows counted from 0.
pub(crate) fn raise(error: TableError, drops: bool) -> PyErr {
    let at = |place: Place, column: &str| {
        let (Place::Row(row) | Place::Line(row)) = place;
        format!("X, row {row}, column '{column}'")
    };
    PyValueError::new_err(match error {
        TableError::NotNumber {
            place,
            column,
            value,
            ..
        } => format!(
            "{}: '{value}' is not a number; the model learned from numbers here",
            at(place, &column)
        ),
        TableError::NotFinite { place, column, .. } => format!(
            "{}: the value is infinite; correct it, or leave it empty if it is missing",
            at(place, &column)
        ),
        TableError::Gap { place, column, .. } => format!(
            "{}: the value is missing, and the model has nothing to fill it with; leave the row out{}",
            at(place, &column),
            if drops {
                ", as the model was fitted with --missing drop"
            } else {
                ", or fit with --missing mean"
            }
        ),
        TableError::TooLarge {
            place,
            column,
            value,
            ..
        } => format!(
            "{}: {value} is too large to be scaled as the training rows were",
            at(place, &column)
        ),
        TableError::TwoSpellings {
            place,
            column,
            number,
            first,
            second,
            ..
        } => format!(
            "{}: {}",
            at(place, &column),
            two_spellings(&number.to_string(), &first, &second)
        ),
        TableError::NoWeight { task } => {
            format!("task '{task}': all its sample weights are 0; leave the task out")
        }
        TableError::Core(error) => return errors::raise(error, &Origins::default()),
        other => other.to_string(),
    })
}
