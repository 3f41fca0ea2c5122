//! The model file: safetensors with one metadata key, `mtmkl`, that holds JSON; numbers only as tensors, so they come back bit
//! for bit. One metadata key, because several would be written in no particular order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, View};

use super::header::{Header, KernelHeader, RunHeader, SetHeader, TaskHeader, read_header};
use super::read::{eights, read_bounded};
use super::write::write_whole;
use super::{
    Model, Outcome, Seconds, SupportSet, TaskModel, Witness, kernels, origins, parts, rows,
};
use crate::error::{Error, Result};
use crate::grid::{Grid, Shape};
use crate::problem::TargetUnit;
use crate::registry::Registry;
use crate::run::Pass;

/// The one metadata key.
const KEY: &str = "mtmkl";
/// The note of a model whose machines are in other files: what it would predict means nothing.
pub const ELSEWHERE: &str = "machines-elsewhere";

/// A tensor to be written.
pub(super) struct Tensor {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl Tensor {
    pub(super) fn floats(shape: Vec<usize>, values: &[f64]) -> Self {
        Self {
            dtype: Dtype::F64,
            shape,
            bytes: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        }
    }

    pub(super) fn json(value: &impl serde::Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(value).map_err(|error| format_error(error.to_string()))?;
        Ok(Self {
            dtype: Dtype::U8,
            shape: vec![bytes.len()],
            bytes,
        })
    }

    pub(super) fn counts(values: &[usize]) -> Self {
        let bytes = values
            .iter()
            .flat_map(|&value| (value as u64).to_le_bytes())
            .collect();
        Self {
            dtype: Dtype::U64,
            shape: vec![values.len()],
            bytes,
        }
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        self.dtype
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

/// More rows than any data have, so that sums of counts are counts.
const MOST_ROWS: usize = 1 << 40;

fn check_rows(samples: usize) -> Result<()> {
    if samples <= MOST_ROWS {
        return Ok(());
    }
    Err(format_error(format!(
        "{samples} rows are more than there can be"
    )))
}

pub(super) fn format_error(problem: impl Into<String>) -> Error {
    Error::Format {
        problem: problem.into(),
    }
}

impl Model {
    /// The model file's bytes; the same model always gives the same bytes.
    ///
    /// # Errors
    /// When a kernel, the machine or a term of the sharing is the user's own and has no specification to be saved by.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.machine.entry().is_none() {
            return Err(Error::param(
                "machine",
                format!("`{}`, a machine of your own", self.machine.name()),
                "a machine with an entry in a registry: another has no name in files, so the model cannot be saved",
            ));
        }
        let kernels = self
            .kernels
            .iter()
            .map(|view| {
                let spec = view.spec().ok_or_else(|| Error::Kernel {
                    spec: view.name.clone(),
                    problem: "a kernel of your own has no specification, so the model cannot be saved; use a registered \
                              kernel or a precomputed one"
                        .to_string(),
                })?;
                Ok(KernelHeader { name: view.name.clone(), spec })
            })
            .collect::<Result<_>>()?;
        if !self.sharing.is_named() {
            let value = "with a term of your own";
            let expected = "registered terms only, or the model cannot be saved: a term of your own has no name to be written by";
            return Err(Error::param("sharing", value, expected));
        }
        let header = Header {
            version: rows::version(&self.sets),
            kernels,
            machine: &self.machine,
            sharing: &self.sharing,
            normalize: self.normalize,
            status: self.outcome.status,
            run: RunHeader {
                tolerance: self.outcome.tolerance,
                solver: self.outcome.solver.clone(),
                fallback: self.outcome.fallback,
                rounded: self.outcome.is_rounded,
            },
            tasks: self
                .tasks
                .iter()
                .map(|task| TaskHeader {
                    name: task.name.clone(),
                    samples: task.samples,
                    set: task.set,
                })
                .collect(),
            sets: self
                .sets
                .iter()
                .map(|set| SetHeader {
                    columns: set.columns.clone(),
                    samples: set.samples,
                    given: set.given_diagonals.keys().cloned().collect(),
                    unit: Some(set.unit_diagonals.clone()),
                })
                .collect(),
            notes: self.notes.clone(),
        };
        let header =
            serde_json::to_string(&header).map_err(|error| format_error(error.to_string()))?;
        let mut tensors = self.tensors();
        parts::write(&self.parts, &mut tensors)?;
        origins::write(&self.sets, &mut tensors)?;
        let metadata = Some(std::iter::once((KEY.to_string(), header)).collect());
        safetensors::serialize(
            tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)),
            metadata,
        )
        .map_err(|error| format_error(error.to_string()))
    }

    fn tensors(&self) -> BTreeMap<String, Tensor> {
        let mut tensors = BTreeMap::new();
        let grid = |grid: &Grid| Tensor::floats(vec![grid.rows(), grid.kernels()], grid.values());
        tensors.insert("theta".to_string(), grid(&self.theta));
        if let Some(common) = &self.common {
            tensors.insert("common".to_string(), grid(common));
        }
        if let Some(specific) = &self.specific {
            tensors.insert("specific".to_string(), grid(specific));
        }
        let offsets: Vec<f64> = self.tasks.iter().map(|task| task.offset).collect();
        tensors.insert(
            "offsets".to_string(),
            Tensor::floats(vec![offsets.len()], &offsets),
        );
        let outcome = &self.outcome;
        let numbers = [
            outcome.objective,
            outcome.bound,
            outcome.gap,
            outcome.seconds.kernels,
            outcome.seconds.solve,
        ];
        tensors.insert(
            "outcome".to_string(),
            Tensor::floats(vec![numbers.len()], &numbers),
        );
        let passes: Vec<[f64; 7]> = outcome.trace.iter().map(Pass::numbers).collect();
        tensors.insert(
            "trace".to_string(),
            Tensor::floats(vec![passes.len(), 7], passes.as_flattened()),
        );
        self.put_tasks(&mut tensors);
        for (number, set) in self.sets.iter().enumerate() {
            rows::write(number, set, &mut tensors);
            tensors.insert(
                format!("set.{number}.positions"),
                Tensor::counts(&set.positions),
            );
            for (given, diagonal) in set.given_diagonals.values().enumerate() {
                tensors.insert(
                    format!("set.{number}.given.{given}"),
                    Tensor::floats(vec![diagonal.len()], diagonal),
                );
            }
        }
        tensors
    }

    /// What belongs to tasks: machines, witnesses, and what their targets were measured in.
    fn put_tasks(&self, tensors: &mut BTreeMap<String, Tensor>) {
        if self
            .tasks
            .iter()
            .any(|task| task.unit != TargetUnit::default())
        {
            let units: Vec<[f64; 2]> = self
                .tasks
                .iter()
                .map(|task| [task.unit.offset, task.unit.scale])
                .collect();
            tensors.insert(
                "units".to_string(),
                Tensor::floats(vec![units.len(), 2], units.as_flattened()),
            );
        }
        for (number, task) in self.tasks.iter().enumerate() {
            tensors.insert(
                format!("task.{number}.support"),
                Tensor::counts(&task.support),
            );
            tensors.insert(
                format!("task.{number}.beta"),
                Tensor::floats(vec![task.beta.len()], &task.beta),
            );
            if let Some(witness) = &task.witness {
                tensors.insert(
                    format!("task.{number}.witness.rows"),
                    Tensor::counts(&witness.rows),
                );
                tensors.insert(
                    format!("task.{number}.witness.beta"),
                    Tensor::floats(vec![witness.beta.len()], &witness.beta),
                );
            }
        }
    }

    /// Reads a model file's bytes, whatever they are, with kernels, machines and sharings of ours.
    ///
    /// # Errors
    /// As [`Model::from_bytes_with`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::from_bytes_with(&Registry::default(), bytes)
    }

    /// Reads a model file's bytes, whatever they are, with what the registry has.
    ///
    /// # Errors
    /// When they are not a model that this version can read; sizes and indices are checked before they are used. [`Error::Unknown`] names
    /// a kernel, a machine or a sharing that the registry does not have.
    pub fn from_bytes_with(registry: &Registry, bytes: &[u8]) -> Result<Self> {
        let model = Self::from_bytes_anyhow(registry, bytes)?;
        if model.notes.contains_key(ELSEWHERE) {
            return Err(format_error(
                "its machines are in the other files of its folder: load the folder, mtmkl.load(FOLDER) in Python",
            ));
        }
        Ok(model)
    }

    /// The same, wherever the machines are: one whose machines are elsewhere ([`ELSEWHERE`]) has weights, names and certificate only.
    ///
    /// # Errors
    /// As [`Model::from_bytes_with`], but for that.
    pub fn from_bytes_anyhow(registry: &Registry, bytes: &[u8]) -> Result<Self> {
        let (_, metadata) =
            SafeTensors::read_metadata(bytes).map_err(|error| format_error(error.to_string()))?;
        let header = metadata
            .metadata()
            .as_ref()
            .and_then(|map| map.get(KEY))
            .ok_or_else(|| {
                format_error("the file has no `mtmkl` header; it was not written by mtmkl")
            })?;
        let (header, machine, sharing) = read_header(header, registry)?;
        let file = Reader(
            SafeTensors::deserialize(bytes).map_err(|error| format_error(error.to_string()))?,
        );
        let (tasks, kernels) = (header.tasks.len(), header.kernels.len());
        if tasks == 0 || kernels == 0 {
            return Err(format_error("it has no tasks or no kernels"));
        }
        if header.sets.is_empty() {
            return Err(format_error("it has no sample sets"));
        }
        let sets = header
            .sets
            .into_iter()
            .enumerate()
            .map(|(number, set)| file.support_set(number, set))
            .collect::<Result<Vec<_>>>()?;
        let views = kernels::read(registry, &header.kernels, &sets)?;
        let offsets = file.floats("offsets", Some(tasks))?;
        let units = file.units(tasks)?;
        let task_models = header
            .tasks
            .into_iter()
            .enumerate()
            .map(|(number, task)| file.task(number, task, offsets[number], units[number], &sets))
            .collect::<Result<Vec<_>>>()?;
        let outcome = file.floats("outcome", Some(5))?;
        let theta = file.grid("theta", tasks, kernels)?;
        let common = file.optional_grid("common", 1, kernels)?;
        let specific = file.optional_grid("specific", tasks, kernels)?;
        let shape = Shape { tasks, kernels };
        let fits = sharing.check_groups(tasks);
        fits.map_err(|error| format_error(format!("its sharing: {error}")))?;
        Ok(Self {
            kernels: views,
            machine,
            sharing,
            normalize: header.normalize,
            parts: parts::read(&file, shape, common.as_ref(), specific.as_ref())?,
            theta,
            common,
            specific,
            sets,
            tasks: task_models,
            outcome: Outcome {
                status: header.status,
                objective: outcome[0],
                bound: outcome[1],
                gap: outcome[2],
                tolerance: header.run.tolerance,
                solver: header.run.solver,
                fallback: header.run.fallback,
                is_rounded: header.run.rounded,
                trace: file.trace()?,
                seconds: Seconds {
                    kernels: outcome[3],
                    solve: outcome[4],
                },
            },
            notes: header.notes,
        })
    }

    /// Writes the model with [`write_whole`]: what was there stays whole until the new one is.
    ///
    /// # Errors
    /// When the file cannot be written, or as [`Model::to_bytes`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_whole(path.as_ref(), &self.to_bytes()?)
    }

    /// Reads a model of kernels, machines and sharings of ours.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Model::from_bytes`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(&Registry::default(), path)
    }

    /// Reads a model, with what the registry has.
    ///
    /// # Errors
    /// When the file cannot be read, or as [`Model::from_bytes_with`].
    pub fn load_with(registry: &Registry, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_bounded(path).map_err(|source| Error::Io {
            path: path.to_path_buf(),
            source,
        })?;
        Self::from_bytes_with(registry, &bytes)
    }
}

/// Tensors of a file, checked as they are read.
pub(super) struct Reader<'a>(pub(super) SafeTensors<'a>);

impl Reader<'_> {
    pub(super) fn bytes(&self, name: &str, dtype: Dtype) -> Result<(Vec<usize>, &[u8])> {
        let tensor = self
            .0
            .tensor(name)
            .map_err(|_| format_error(format!("the tensor `{name}` is missing")))?;
        if tensor.dtype() != dtype {
            return Err(format_error(format!(
                "the tensor `{name}` has the wrong type"
            )));
        }
        Ok((tensor.shape().to_vec(), tensor.data()))
    }

    fn floats(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>> {
        let (_, bytes) = self.bytes(name, Dtype::F64)?;
        let values: Vec<f64> = eights(bytes).map(f64::from_le_bytes).collect();
        match length {
            Some(length) if length != values.len() => Err(format_error(format!(
                "the tensor `{name}` has {} values, expected {length}",
                values.len()
            ))),
            _ => Ok(values),
        }
    }

    /// Finite numbers only: for everything that prediction computes with.
    pub(super) fn finite(&self, name: &str, length: Option<usize>) -> Result<Vec<f64>> {
        let values = self.floats(name, length)?;
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(format_error(format!(
                "the tensor `{name}` has a value that is not finite"
            )))
        }
    }

    pub(super) fn counts(&self, name: &str, below: usize) -> Result<Vec<usize>> {
        let (_, bytes) = self.bytes(name, Dtype::U64)?;
        eights(bytes)
            .map(|bytes| {
                usize::try_from(u64::from_le_bytes(bytes))
                    .ok()
                    .filter(|value| *value < below)
                    .ok_or_else(|| {
                        format_error(format!(
                            "the tensor `{name}` has an index that is not below {below}"
                        ))
                    })
            })
            .collect()
    }

    pub(super) fn grid(&self, name: &str, rows: usize, kernels: usize) -> Result<Grid> {
        let (shape, _) = self.bytes(name, Dtype::F64)?;
        if shape != [rows, kernels] {
            return Err(format_error(format!(
                "the tensor `{name}` has shape {shape:?}, expected [{rows}, {kernels}]"
            )));
        }
        Ok(Grid::from_values(rows, kernels, self.finite(name, None)?))
    }

    fn optional_grid(&self, name: &str, rows: usize, kernels: usize) -> Result<Option<Grid>> {
        if self.has(name) {
            self.grid(name, rows, kernels).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    fn support_set(&self, number: usize, header: SetHeader) -> Result<SupportSet> {
        check_rows(header.samples)?;
        let positions = self.counts(&format!("set.{number}.positions"), header.samples)?;
        let rows = rows::read(self, number, positions.len(), header.columns.len())?;
        let given_diagonals: BTreeMap<String, Vec<f64>> = header
            .given
            .into_iter()
            .enumerate()
            .map(|(given, name)| {
                let diagonal = self.finite(
                    &format!("set.{number}.given.{given}"),
                    Some(positions.len()),
                )?;
                Ok((name, diagonal))
            })
            .collect::<Result<_>>()?;
        // Version 1 does not say; its support rows are all there is to go by.
        let unit_diagonals = header.unit.unwrap_or_else(|| {
            let is_unit = |diagonal: &[f64]| diagonal.iter().all(|&value| value == 1.0);
            let unit = given_diagonals
                .iter()
                .filter(|(_, diagonal)| is_unit(diagonal));
            unit.map(|(name, _)| name.clone()).collect()
        });
        Ok(SupportSet {
            origins: origins::read(self, number, positions.len())?,
            columns: header.columns,
            rows,
            positions,
            samples: header.samples,
            given_diagonals,
            unit_diagonals,
        })
    }

    fn task(
        &self,
        number: usize,
        header: TaskHeader,
        offset: f64,
        unit: TargetUnit,
        sets: &[SupportSet],
    ) -> Result<TaskModel> {
        let set = sets.get(header.set).ok_or_else(|| {
            format_error(format!(
                "task `{}` refers to sample set {}",
                header.name, header.set
            ))
        })?;
        check_rows(header.samples)?;
        if !offset.is_finite() {
            return Err(format_error(format!(
                "the offset of task `{}` is not finite",
                header.name
            )));
        }
        let support = self.counts(&format!("task.{number}.support"), set.positions.len())?;
        let beta = self.finite(&format!("task.{number}.beta"), Some(support.len()))?;
        let rows = format!("task.{number}.witness.rows");
        let witness = if self.has(&rows) {
            let rows = self.counts(&rows, set.samples)?;
            let beta = self.finite(&format!("task.{number}.witness.beta"), Some(rows.len()))?;
            Some(Witness { rows, beta })
        } else {
            None
        };
        Ok(TaskModel {
            name: header.name,
            samples: header.samples,
            set: header.set,
            support,
            beta,
            offset,
            unit,
            witness,
        })
    }

    /// Since version 3, where targets were measured in units of their spread.
    fn units(&self, tasks: usize) -> Result<Vec<TargetUnit>> {
        if !self.has("units") {
            return Ok(vec![TargetUnit::default(); tasks]);
        }
        let numbers = self.finite("units", Some(2 * tasks))?;
        let (units, _) = numbers.as_chunks::<2>();
        let unit = |&[offset, scale]: &[f64; 2]| {
            if scale > 0.0 {
                Ok(TargetUnit { offset, scale })
            } else {
                Err(format_error("a scale in the tensor `units` is not above 0"))
            }
        };
        units.iter().map(unit).collect()
    }

    fn trace(&self) -> Result<Vec<Pass>> {
        let values = self.floats("trace", None)?;
        let (passes, rest) = values.as_chunks::<7>();
        if !rest.is_empty() {
            return Err(format_error("the tensor `trace` is cut short"));
        }
        Ok(passes.iter().map(Pass::of_numbers).collect())
    }
}
