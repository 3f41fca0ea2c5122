//! f(x) = Σ_i β_i Σ_m θ_m k_m(x_i, x) + b for new rows, in batches that touch support rows only.

use rayon::prelude::*;

use super::{Model, SupportSet, TaskModel};
use crate::data::{Kind, Rows, SparseRows};
use crate::error::{DataProblem, Error, Place, Result};
use crate::gram::{CrossKernels, CrossPiece, Normaliser};
use crate::grid::Grid;
use crate::kernel::KernelView;
use crate::ledger::Ledger;
use crate::problem::TargetUnit;
use crate::task_kernel::Origin;

/// A cross-Gram matrix that the caller computed: new samples × training samples of the task's sample set, row by row.
#[derive(Debug, Clone, Copy)]
pub struct CrossGram<'a> {
    /// The name of the precomputed kernel.
    pub name: &'a str,
    /// n_new × n_train values; all training samples in their original order, not only the support rows.
    pub values: &'a [f64],
    /// k(x, x) of the new samples: needed where the kernel is normalised and was not given with unit diagonal, and by SVDD.
    pub own: Option<&'a [f64]>,
}

/// New samples: rows, cross-Gram matrices, or both.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// How many samples.
    pub count: usize,
    /// Their rows, where kernels are computed from rows.
    pub rows: Option<Rows<'a>>,
    /// Their precomputed kernels.
    pub grams: &'a [CrossGram<'a>],
    /// The task they are of, where kernels are between tasks: without one, of a task that is not known, about which only what all tasks share
    /// says something.
    pub origin: Option<&'a Origin>,
}

impl<'a> From<&'a SparseRows> for Input<'a> {
    fn from(rows: &'a SparseRows) -> Self {
        Rows::from(rows).into()
    }
}

impl<'a> From<Rows<'a>> for Input<'a> {
    fn from(rows: Rows<'a>) -> Self {
        Self {
            count: rows.rows(),
            rows: Some(rows),
            grams: &[],
            origin: None,
        }
    }
}

/// The first value below zero in these columns, by row and column.
fn first_negative(rows: Rows<'_>, columns: Option<&[usize]>) -> Option<(usize, usize, f64)> {
    let values = match rows.kind() {
        Kind::Sparse(sparse) => return sparse.first_negative(columns),
        Kind::Dense(values) => values,
    };
    let width = rows.columns().max(1);
    let is_seen = |column: usize| columns.is_none_or(|seen| seen.contains(&column));
    let mut all = values.iter().enumerate();
    all.find(|&(at, &value)| value < 0.0 && is_seen(at % width))
        .map(|(at, &value)| (at / width, at % width, value))
}

/// New rows handled at a time, each batch by one thread.
const BATCH: usize = 128;

impl Model {
    /// The task's number.
    fn task(&self, name: &str) -> Result<usize> {
        self.tasks
            .iter()
            .position(|task| task.name == name)
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Error {
        let mut known: Vec<&str> = self
            .tasks
            .iter()
            .map(|task| task.name.as_str())
            .take(8)
            .collect();
        if self.tasks.len() > known.len() {
            known.push("…");
        }
        let advice = if self.common.is_some() {
            "Ask for the common space explicitly to predict for a task never seen"
        } else {
            "This sharing has no common part, so nothing can be said about a task never seen"
        };
        let problem = DataProblem::UnknownTask {
            known: known.join(", "),
            advice,
        };
        Error::data(Place::Task(name.to_string()), problem)
    }

    /// Decision values of one task: > 0 for the class +1, inside a description, or the regression value.
    ///
    /// # Errors
    /// When the task is unknown, or the rows do not fit the model.
    pub fn decision<'a>(&self, task: &str, input: impl Into<Input<'a>>) -> Result<Vec<f64>> {
        let number = self.task(task)?;
        self.decide(&[(number, self.theta.row(number))], input.into())
            .map(|mut all| all.swap_remove(0))
    }

    /// Decision values of all tasks, in the model's order: kernels and distances are computed once for all of them.
    ///
    /// # Errors
    /// When the rows do not fit the model, or the tasks are not on one sample set.
    pub fn decisions<'a>(&self, input: impl Into<Input<'a>>) -> Result<Vec<Vec<f64>>> {
        let weights: Vec<&[f64]> = (0..self.tasks.len())
            .map(|task| self.theta.row(task))
            .collect();
        self.decide_all(&weights, input.into())
    }

    /// Decision values of all tasks on one sample set, in the model's order.
    ///
    /// # Errors
    /// When the rows do not fit the model.
    pub fn decisions_on<'a>(
        &self,
        set: usize,
        input: impl Into<Input<'a>>,
    ) -> Result<Vec<Vec<f64>>> {
        let tasks: Vec<(usize, &[f64])> = (0..self.tasks.len())
            .filter(|&task| self.tasks[task].set == set)
            .map(|task| (task, self.theta.row(task)))
            .collect();
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        self.decide(&tasks, input.into())
    }

    /// What each kernel adds to the decision values of one machine, M × rows, without the offset: their sum and the offset are the decision.
    /// Of a machine that decides otherwise (SVDD), what it decides from.
    ///
    /// # Errors
    /// As [`Model::decision`].
    pub fn contributions<'a>(&self, task: &str, input: impl Into<Input<'a>>) -> Result<Grid> {
        let (number, input) = (self.task(task)?, input.into());
        let mut found = Grid::zeros(self.kernels.len(), input.count);
        let nothing = vec![0.0; self.kernels.len()];
        let unit = TargetUnit {
            offset: 0.0,
            ..self.tasks[number].unit
        };
        for kernel in 0..self.kernels.len() {
            let mut weights = nothing.clone();
            weights[kernel] = self.theta.row(number)[kernel];
            if weights[kernel] != 0.0 {
                let sums = self.sums(&[(number, &weights)], input)?;
                for (value, sum) in found.row_mut(kernel).iter_mut().zip(sums.decisions.row(0)) {
                    *value = unit.back(*sum);
                }
            }
        }
        Ok(found)
    }

    /// Labels (±1) or values of one task.
    ///
    /// # Errors
    /// As [`Model::decision`].
    pub fn predict<'a>(&self, task: &str, input: impl Into<Input<'a>>) -> Result<Vec<f64>> {
        let machine = self.machine.build();
        Ok(self
            .decision(task, input)?
            .into_iter()
            .map(|value| machine.predict(value))
            .collect())
    }

    /// Decision values for a task never seen: the mean of all tasks' machines, each with the common weights ζ in place of its own.
    ///
    /// # Errors
    /// When the sharing has no common part, or the rows do not fit the model.
    pub fn decision_of_new_task<'a>(&self, input: impl Into<Input<'a>>) -> Result<Vec<f64>> {
        let Some(common) = &self.common else {
            return Err(self.unknown("a task never seen"));
        };
        let weights = vec![common.row(0); self.tasks.len()];
        let decisions = self.decide_all(&weights, input.into())?;
        let mut mean = vec![0.0; decisions.first().map_or(0, Vec::len)];
        for decisions in &decisions {
            crate::linalg::axpy(1.0 / self.tasks.len() as f64, decisions, &mut mean);
        }
        Ok(mean)
    }

    /// Decision values of all tasks, each with the kernel weights given.
    fn decide_all(&self, weights: &[&[f64]], input: Input<'_>) -> Result<Vec<Vec<f64>>> {
        let mut decisions = vec![Vec::new(); self.tasks.len()];
        for set in 0..self.sets.len() {
            let chosen: Vec<(usize, &[f64])> = (0..self.tasks.len())
                .filter(|&task| self.tasks[task].set == set)
                .map(|task| (task, weights[task]))
                .collect();
            if chosen.is_empty() {
                continue;
            }
            for ((task, _), values) in chosen.iter().zip(self.decide(&chosen, input)?) {
                decisions[*task] = values;
            }
        }
        Ok(decisions)
    }

    /// Decision values of tasks that share a support set, each with the kernel weights given.
    fn decide(&self, tasks: &[(usize, &[f64])], input: Input<'_>) -> Result<Vec<Vec<f64>>> {
        let machine = self.machine.build();
        let sums = self.sums(tasks, input)?;
        let rows = (0..tasks.len()).map(|number| sums.decisions.row(number).to_vec());
        let mut decisions: Vec<Vec<f64>> = rows.collect();
        for ((number, values), (task, _)) in decisions.iter_mut().enumerate().zip(tasks) {
            for (value, own) in values.iter_mut().zip(sums.own.row(number)) {
                let TaskModel { offset, unit, .. } = &self.tasks[*task];
                *value = unit.back(machine.decision(*value + offset, *own));
                if !value.is_finite() {
                    return Err(Error::data(Place::Problem, DataProblem::Overflow(*value)));
                }
            }
        }
        Ok(decisions)
    }

    /// Σ_m θ_m Σ_i β_i k_m(x_i, x) of tasks that share a support set, each with the kernel weights given.
    fn sums(&self, tasks: &[(usize, &[f64])], input: Input<'_>) -> Result<Sums> {
        let set = &self.sets[self.tasks[tasks[0].0].set];
        self.check(set, &input)?;
        // The rows that these tasks need, and each task's β on them.
        let kept = self.rows_of(tasks, set);
        let coefficients = self.coefficients(tasks, &kept, set, input.origin);
        let d = set.columns.len();
        let all = set.rows.rows(set.positions.len(), d);
        let support = all.select(kept.iter().copied());
        let support = support.rows(kept.len(), d);
        let wanted: Vec<usize> = (0..self.kernels.len())
            .filter(|&kernel| tasks.iter().any(|(_, weights)| weights[kernel] != 0.0))
            .collect();
        let cross = CrossKernels::new(
            &self.kernels,
            &wanted,
            &set.columns,
            support,
            self.normalize.is_unit(),
            &Ledger::default(),
        )?;
        let given: Vec<usize> = wanted
            .into_iter()
            .filter(|&kernel| self.kernels[kernel].kernel.base().is_given())
            .collect();
        let batch = |from: usize| {
            let until = (from + BATCH).min(input.count);
            let mut sums = Sums::new(tasks.len(), until - from);
            if let Some(rows) = input.rows {
                cross.pieces(rows.slice(from, until)?, |piece| {
                    sums.add(piece, tasks, &coefficients);
                });
            }
            for &kernel in &given {
                let (values, own) = self.given_block(kernel, set, &kept, &input, from, until)?;
                let piece = CrossPiece {
                    kernel,
                    first: 0,
                    values: &values,
                    own: &own,
                };
                sums.add(piece, tasks, &coefficients);
            }
            Ok(sums)
        };
        let starts: Vec<usize> = (0..input.count).step_by(BATCH).collect();
        // By the caller's threads, where it has some: see `Pool::install`. Never by rayon's own.
        let batches: Vec<Result<Sums>> = if rayon::current_thread_index().is_some() {
            starts.into_par_iter().map(batch).collect()
        } else {
            starts.into_iter().map(batch).collect()
        };
        let mut sums = Sums::new(tasks.len(), input.count);
        for (from, batch) in (0..input.count).step_by(BATCH).zip(batches) {
            let batch = batch?;
            for number in 0..tasks.len() {
                let range = from..from + batch.own.row(number).len();
                sums.decisions.row_mut(number)[range.clone()]
                    .copy_from_slice(batch.decisions.row(number));
                sums.own.row_mut(number)[range].copy_from_slice(batch.own.row(number));
            }
        }
        Ok(sums)
    }

    /// Each task's β on these rows, for every kernel times its task kernel.
    fn coefficients(
        &self,
        tasks: &[(usize, &[f64])],
        kept: &[usize],
        set: &SupportSet,
        origin: Option<&Origin>,
    ) -> Coefficients {
        let plain: Vec<Vec<f64>> = tasks
            .iter()
            .map(|(task, _)| on_rows(&self.tasks[*task], kept, set))
            .collect();
        let nowhere = Origin::default();
        let origin = origin.unwrap_or(&nowhere);
        let mut found = Coefficients {
            beta: vec![plain],
            itself: vec![1.0],
            of: vec![0; self.kernels.len()],
        };
        let Some(origins) = &set.origins else {
            return found;
        };
        let mut places = vec![None; origins.kernels.kernels().len()];
        for (kernel, view) in self.kernels.iter().enumerate() {
            let number = view
                .between
                .as_ref()
                .and_then(|own| origins.kernels.position(own));
            let Some(number) = number else { continue };
            found.of[kernel] = *places[number].get_or_insert_with(|| {
                let similar = origins.kernels.towards(number, origin);
                let times = |beta: &Vec<f64>| -> Vec<f64> {
                    let pairs = beta.iter().zip(kept);
                    pairs
                        .map(|(beta, &row)| beta * similar[origins.of[row]])
                        .collect()
                };
                let own = found.beta[0].iter().map(times).collect();
                found.beta.push(own);
                found.itself.push(origins.kernels.itself(number, origin));
                found.beta.len() - 1
            });
        }
        found
    }

    /// The support rows of these tasks, in ascending order.
    fn rows_of(&self, tasks: &[(usize, &[f64])], set: &SupportSet) -> Vec<usize> {
        let mut needed = vec![false; set.positions.len()];
        for (task, _) in tasks {
            for &row in &self.tasks[*task].support {
                needed[row] = true;
            }
        }
        (0..needed.len()).filter(|&row| needed[row]).collect()
    }

    /// Whether the input has all that the kernels need.
    fn check(&self, set: &SupportSet, input: &Input<'_>) -> Result<()> {
        let length = |what, found, expected| {
            Error::data(
                Place::Problem,
                DataProblem::Length {
                    what,
                    found,
                    expected,
                },
            )
        };
        let needs_rows = self
            .kernels
            .iter()
            .any(|view| !view.kernel.base().is_given());
        match input.rows {
            None if needs_rows => {
                return Err(length("columns of the new samples", 0, set.columns.len()));
            }
            Some(rows) => {
                if rows.rows() != input.count {
                    return Err(length("rows of the new samples", rows.rows(), input.count));
                }
                if needs_rows && rows.columns() != set.columns.len() {
                    return Err(length(
                        "columns of the new samples",
                        rows.columns(),
                        set.columns.len(),
                    ));
                }
                // Sparse rows are checked when they are made.
                let values = rows.dense().unwrap_or_default();
                if let Some(position) = values.iter().position(|value| !value.is_finite()) {
                    let (row, column) = (position / rows.columns(), position % rows.columns());
                    let column = set.columns.get(column).cloned().unwrap_or_default();
                    let place = Place::Cell {
                        samples: 0,
                        row,
                        column,
                    };
                    return Err(Error::data(place, DataProblem::NotFinite(values[position])));
                }
            }
            // Without rows, so many samples are there as kernel values are given for.
            None => {
                let is_given = |view: &&KernelView| {
                    let name = view.kernel.given();
                    input.grams.iter().any(|gram| Some(gram.name) == name)
                };
                // Kernels of no weight may be left out, but not all.
                let mut known = self.kernels.iter().filter(is_given).peekable();
                let missing = self.kernels.first().filter(|_| known.peek().is_none());
                for view in known.chain(missing) {
                    given(view, set, input)?;
                }
            }
        }
        for view in &self.kernels {
            let (Some(kernel), Some(rows)) = (view.kernel.needs_non_negative(), input.rows) else {
                continue;
            };
            let columns = view.columns.resolve(&set.columns)?;
            if let Some((row, column, value)) = first_negative(rows, columns.as_deref()) {
                let place = Place::Cell {
                    samples: 0,
                    row,
                    column: set.columns.get(column).cloned().unwrap_or_default(),
                };
                return Err(Error::data(place, DataProblem::Negative { value, kernel }));
            }
        }
        Ok(())
    }

    /// The block of a precomputed kernel: new rows × kept support rows, normalised as in training.
    fn given_block(
        &self,
        kernel: usize,
        set: &SupportSet,
        kept: &[usize],
        input: &Input<'_>,
        from: usize,
        until: usize,
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let given = given(&self.kernels[kernel], set, input)?;
        let kernel = self.kernels[kernel].kernel.as_ref();
        let name = given.name;
        let place = || Place::Gram {
            samples: 0,
            name: name.to_string(),
        };
        let trained = set.given_diagonals.get(name).map_or(&[][..], Vec::as_slice);
        let is_normalised = Normaliser::is_wanted(kernel, self.normalize.is_unit());
        let own = match given.own {
            Some(own) => own[from..until].to_vec(),
            None if set.unit_diagonals.contains(name) => vec![1.0; until - from],
            None if is_normalised || self.machine.build().uses_own_kernel() => {
                return Err(Error::data(place(), DataProblem::OwnMissing));
            }
            None => vec![0.0; until - from],
        };
        // Dividing by lengths takes a factor away with them.
        let factor = kernel.factor().filter(|_| !is_normalised).unwrap_or(1.0);
        let scale = |value: f64| {
            if is_normalised {
                Normaliser::scale(value)
            } else {
                1.0
            }
        };
        let mut block = Vec::with_capacity((until - from) * kept.len());
        for row in from..until {
            for &i in kept {
                let value = given.values[row * set.samples + set.positions[i]];
                if !value.is_finite() {
                    return Err(Error::data(place(), DataProblem::NotFinite(value)));
                }
                block.push(value * scale(own[row - from]) * scale(trained[i]) * factor);
            }
        }
        let diagonal = own
            .iter()
            .map(|&value| {
                if is_normalised {
                    Normaliser::own(scale(value))
                } else {
                    value * factor
                }
            })
            .collect();
        Ok((block, diagonal))
    }
}

/// What was given of a precomputed kernel, with as many values as there are samples.
fn given<'a>(view: &KernelView, set: &SupportSet, input: &Input<'a>) -> Result<&'a CrossGram<'a>> {
    let name = view.kernel.given().unwrap_or_default();
    let place = || Place::Gram {
        samples: 0,
        name: name.to_string(),
    };
    let Some(given) = input.grams.iter().find(|gram| gram.name == name) else {
        let known: Vec<&str> = input.grams.iter().map(|gram| gram.name).collect();
        let known = if known.is_empty() {
            "none".to_string()
        } else {
            known.join(", ")
        };
        return Err(Error::data(place(), DataProblem::MissingGram(known)));
    };
    let expected = input.count.saturating_mul(set.samples);
    if given.values.len() != expected {
        let what = "values of the cross-Gram matrix (n_new × n_train)";
        return Err(Error::data(
            place(),
            DataProblem::Length {
                what,
                found: given.values.len(),
                expected,
            },
        ));
    }
    if let Some(own) = given.own.filter(|own| own.len() != input.count) {
        let problem = DataProblem::Length {
            what: "values of k(x, x)",
            found: own.len(),
            expected: input.count,
        };
        return Err(Error::data(place(), problem));
    }
    if let Some(value) = given
        .own
        .and_then(|own| own.iter().find(|value| !value.is_finite()))
    {
        return Err(Error::data(place(), DataProblem::NotFinite(*value)));
    }
    Ok(given)
}

/// Σ_m θ_m Σ_i β_i k_m(x_i, x) and Σ_m θ_m k_m(x, x) for tasks × rows of a batch.
struct Sums {
    decisions: Grid,
    own: Grid,
}

impl Sums {
    fn new(tasks: usize, rows: usize) -> Self {
        Self {
            decisions: Grid::zeros(tasks, rows),
            own: Grid::zeros(tasks, rows),
        }
    }

    /// One kernel's share for some rows.
    fn add(&mut self, piece: CrossPiece<'_>, tasks: &[(usize, &[f64])], known: &Coefficients) {
        let number = known.of[piece.kernel];
        let (beta, itself) = (&known.beta[number], known.itself[number]);
        for (number, (_, weights)) in tasks.iter().enumerate() {
            let weight = weights[piece.kernel];
            if weight == 0.0 {
                continue;
            }
            let beta = &beta[number];
            for (i, &own) in piece.own.iter().enumerate() {
                let values = &piece.values[i * beta.len()..(i + 1) * beta.len()];
                self.decisions[(number, piece.first + i)] +=
                    weight * crate::grid::dot(values, beta);
                self.own[(number, piece.first + i)] += weight * own * itself;
            }
        }
    }
}

/// β of each task on support rows, times c of where they and the new samples come from.
struct Coefficients {
    /// For each task kernel that is used, the first being 1.
    beta: Vec<Vec<Vec<f64>>>,
    /// c of new samples with themselves.
    itself: Vec<f64>,
    /// Which of these each kernel has.
    of: Vec<usize>,
}

/// The task's β on these rows of its support set, 0 where it has none.
fn on_rows(task: &TaskModel, kept: &[usize], set: &SupportSet) -> Vec<f64> {
    let mut all = vec![0.0; set.positions.len()];
    for (&row, &beta) in task.support.iter().zip(&task.beta) {
        all[row] = beta;
    }
    kept.iter().map(|&row| all[row]).collect()
}
