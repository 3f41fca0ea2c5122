//! A problem in plain numbers: one text that the product, an independent solver and a test that failed have in common.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use mtmkl::grid::Shape;
use mtmkl::kernel::{KernelView, parse_kernel};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::SharingSpec;
use mtmkl::{Error, GivenGram, Problem, ProblemSpec, Samples, Targets, Task};
use serde::{Deserialize, Serialize};

use crate::conic;
use crate::small::conic_terms;
use crate::textbook::Kernel;

/// Rows by samples, and Gram matrices computed elsewhere.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Set {
    /// How many samples.
    pub count: usize,
    /// Their values, row by row.
    pub rows: Vec<f64>,
    /// Names and values, n × n, row by row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grams: Vec<(String, Vec<f64>)>,
}

/// One task: some rows of a set, in an order of its own, with targets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatedTask {
    /// Which set.
    pub set: usize,
    /// Which rows.
    pub rows: Vec<usize>,
    /// One for each row; not looked at by machines without targets.
    pub targets: Vec<f64>,
    /// One for each row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

/// All of a problem.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// (ḡ, Ω).
    pub machine: MachineSpec,
    /// Ψ.
    pub sharing: SharingSpec,
    /// One specification for each kernel.
    pub kernels: Vec<String>,
    /// Whether kernels are normalised to unit diagonal.
    pub normalize: bool,
    /// How many columns the rows have.
    pub columns: usize,
    /// Sample sets.
    pub sets: Vec<Set>,
    /// Tasks.
    pub tasks: Vec<StatedTask>,
}

/// What a machine learns from.
pub fn targets_of(machine: &MachineSpec) -> TargetKind {
    machine
        .entry()
        .map_or(TargetKind::Values, |entry| entry.targets)
}

impl Statement {
    /// From JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("a statement: {error}"))
    }

    /// As JSON.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap()
    }

    /// T × M.
    pub fn shape(&self) -> Shape {
        Shape {
            tasks: self.tasks.len(),
            kernels: self.kernels.len(),
        }
    }

    /// The kernels as the product knows them.
    ///
    /// # Errors
    /// When a specification is none.
    pub fn views(&self) -> Result<Vec<KernelView>, Error> {
        self.kernels.iter().map(|text| parse_kernel(text)).collect()
    }

    /// For the product.
    ///
    /// # Errors
    /// When it refuses the problem.
    pub fn problem(&self) -> Result<Problem, Error> {
        self.problem_with(|_| {})
    }

    /// For the product, with other ways of solving it.
    ///
    /// # Errors
    /// When it refuses the problem.
    pub fn problem_with(&self, change: impl FnOnce(&mut ProblemSpec)) -> Result<Problem, Error> {
        let mut spec = ProblemSpec::new(self.views()?, self.machine.clone(), self.sharing.clone());
        spec.normalize = self.normalize.into();
        change(&mut spec);
        let sets = self.sets.iter().map(|set| {
            let empty = if self.columns == 0 {
                Samples::from_grams(set.count, Vec::new())
            } else {
                Samples::new(set.rows.clone(), set.count, self.columns)
            };
            set.grams
                .iter()
                .try_fold(empty?, |samples, (name, values)| {
                    samples.with_gram(GivenGram {
                        name: name.clone(),
                        values: values.clone().into(),
                    })
                })
        });
        let sets = sets.collect::<Result<Vec<Samples>, Error>>()?;
        let tasks = self.tasks.iter().enumerate().map(|(number, task)| {
            let targets = match targets_of(&self.machine) {
                TargetKind::Labels => Targets::Labels(task.targets.clone()),
                TargetKind::Values => Targets::Values(task.targets.clone()),
                TargetKind::Unlabelled => Targets::Unlabelled,
            };
            Task {
                weights: task.weights.clone(),
                ..Task::new(format!("t{number}"), targets)
                    .on(task.set)
                    .with_rows(task.rows.clone())
            }
        });
        Problem::new(spec, sets, tasks.collect())
    }

    /// The Gram matrices of each set by the textbook, as they are or normalised; `None` for kernels that have no formula there.
    pub fn grams(&self, normalised: bool) -> Option<Vec<Vec<Vec<f64>>>> {
        let kernels: Option<Vec<Kernel>> =
            self.kernels.iter().map(|text| Kernel::read(text)).collect();
        let kernels = kernels?;
        let of = |set: &Set, kernel: &Kernel| match kernel.given() {
            None => kernel.gram(&set.rows, self.columns, normalised),
            Some(name) => {
                let (_, values) = set.grams.iter().find(|(known, _)| known == name)?;
                let mut gram = values.clone();
                if normalised {
                    crate::generate::unit_diagonal(&mut gram, set.count);
                }
                Some(gram)
            }
        };
        self.sets
            .iter()
            .map(|set| kernels.iter().map(|kernel| of(set, kernel)).collect())
            .collect()
    }

    /// For the conic solver, with Gram matrices from the textbook; `None` where machine, weights or kernels are not stated for it.
    pub fn conic(&self) -> Option<(Vec<conic::Task>, Vec<conic::Term>)> {
        let grams = self.grams(self.normalize)?;
        let terms = conic_terms(&self.sharing, self.shape())?;
        let tasks = self.tasks.iter().map(|task| {
            let (n, all) = (task.rows.len(), self.sets[task.set].count);
            let part = |gram: &Vec<f64>| {
                let cells = task
                    .rows
                    .iter()
                    .flat_map(|&i| task.rows.iter().map(move |&j| i * all + j));
                cells.map(|at| gram[at]).collect::<Vec<f64>>()
            };
            Some(conic::Task {
                machine: self.conic_machine(task)?,
                samples: n,
                grams: grams[task.set].iter().map(part).collect(),
            })
        });
        Some((tasks.collect::<Option<Vec<_>>>()?, terms))
    }

    fn conic_machine(&self, task: &StatedTask) -> Option<conic::Machine> {
        let machine = &self.machine;
        let n = task.rows.len();
        let weight = |row: usize| task.weights.as_ref().map_or(1.0, |weights| weights[row]);
        let c = machine.number("C");
        let y = task.targets.clone();
        Some(match machine.name() {
            name @ ("svc" | "logistic") => {
                let of_class = |label: f64| {
                    machine.number(if label > 0.0 {
                        "positive_weight"
                    } else {
                        "negative_weight"
                    })
                };
                let upper = (0..n)
                    .map(|row| c * of_class(y[row]) * weight(row))
                    .collect();
                if name == "svc" {
                    conic::Machine::Svc { y, upper }
                } else {
                    conic::Machine::Logistic { y, upper }
                }
            }
            "svr" => conic::Machine::Svr {
                upper: (0..n).map(|row| c * weight(row)).collect(),
                y,
                epsilon: machine.number("epsilon"),
            },
            "krr" if task.weights.is_none() => conic::Machine::Krr {
                y,
                lambda: machine.number("lambda"),
            },
            "svdd" if task.weights.is_none() => conic::Machine::Svdd {
                c: c.max(1.0 / n as f64),
            },
            "ocsvm" if task.weights.is_none() => conic::Machine::OneClass {
                nu: machine.number("nu"),
            },
            _ => return None,
        })
    }
}
