//! c(t, u): how much two tasks share, a kernel on pairs of tasks.
//!
//! One machine on the samples of all tasks, with the kernels k_m(x, z) c_g(t, u), learns a function that all tasks share (c = 1), one for
//! each group of tasks (c = 1 within the group) and one of each task's own (c = [t = u]):
//!
//! f(x, t) = Σ_m Σ_g θ_mg Σ_i β_i k_m(x_i, x) c_g(t_i, t) + b.
//!
//! Products of positive semi-definite kernels are positive semi-definite, so these are kernels like any others; θ_mg says how much is
//! shared. Evgeniou and Pontil (2004); Widmer, Toussaint, Altun and Rätsch (2010).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{DataProblem, Error, Place, Result};
use crate::tree::TaskTree;

/// What kernels call the task kernel 1.
pub const ALL: &str = "all";
/// What kernels call [t = u].
pub const OWN: &str = "own";
/// What kernels call groups: those of every level of a tree, where nothing else is said.
pub const GROUP: &str = "group";
/// What kernels call a matrix of similarities.
pub const SIMILARITY: &str = "similarity";

/// How far the smallest eigenvalue of a similarity may be below zero, relative to the largest entry: rounding.
const ROUNDING: f64 = 1e-9;

/// Task kernels by name, for tasks with names. `all` and `own` are always there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskKernels {
    tasks: Vec<String>,
    kernels: Vec<TaskKernel>,
}

/// One task kernel beside `all`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskKernel {
    /// What kernels call it: `own`, `group`, the name of a level, `similarity`.
    pub name: String,
    /// c.
    pub form: Form,
}

/// The values of a task kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Form {
    /// c(t, u) = 1 where t and u are in the same group, 0 elsewhere.
    Same {
        /// The names of the groups.
        groups: Vec<String>,
        /// The group of each task.
        of: Vec<usize>,
    },
    /// Any positive semi-definite matrix, T × T, row by row.
    Similarity {
        /// c(t, u).
        values: Vec<f64>,
    },
}

/// Which task new samples are of: one that is known, or one that is not, perhaps of groups that are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    task: Option<usize>,
    /// By task kernel.
    groups: Vec<Option<usize>>,
}

/// The tasks that samples come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Origins {
    /// The task kernels.
    pub kernels: Arc<TaskKernels>,
    /// The task of each sample.
    pub of: Arc<Vec<usize>>,
}

impl Origin {
    /// Whether it is a task that is known.
    pub fn is_known(&self) -> bool {
        self.task.is_some()
    }

    /// Whether a group is known that it is of.
    pub fn has_groups(&self) -> bool {
        self.groups.iter().any(Option::is_some)
    }
}

fn wrong(value: impl Into<String>, expected: &str) -> Error {
    Error::param("task kernels", value.into(), expected)
}

impl TaskKernels {
    /// `own` for these tasks.
    ///
    /// # Errors
    /// When there are none, or two have the same name.
    pub fn new(tasks: Vec<String>) -> Result<Self> {
        if tasks.is_empty() {
            return Err(wrong("no tasks", "at least one task"));
        }
        let mut sorted: Vec<&String> = tasks.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let place = Place::Task(pair[0].clone());
            return Err(Error::data(place, DataProblem::NameTwice));
        }
        let own = TaskKernel {
            name: OWN.to_string(),
            form: Form::Same {
                groups: tasks.clone(),
                of: (0..tasks.len()).collect(),
            },
        };
        Ok(Self {
            kernels: vec![own],
            tasks,
        })
    }

    /// The same with a task kernel for each level of a tree, outermost first: `group` where there is one level, else the levels' names.
    /// Groups that overlap are one kernel, c(t, u) = how many of them t and u have in common.
    ///
    /// # Errors
    /// When the tree is not one of these tasks, or a level is called as another kernel is.
    pub fn with_tree(mut self, tree: &TaskTree) -> Result<Self> {
        let levels = tree.levels(&self.tasks)?;
        let several = levels.len() > 1;
        for level in levels {
            let tasks = self.tasks.len();
            let mut of = vec![None; tasks];
            let mut is_partition = true;
            for (number, (_, members)) in level.groups.iter().enumerate() {
                for &task in members {
                    is_partition &= of[task].is_none();
                    of[task] = Some(number);
                }
            }
            let form = if is_partition {
                // A task in no group of this level is alone.
                let mut groups: Vec<String> =
                    level.groups.into_iter().map(|(name, _)| name).collect();
                let alone = of.into_iter().enumerate().map(|(task, own)| {
                    own.unwrap_or_else(|| {
                        groups.push(self.tasks[task].clone());
                        groups.len() - 1
                    })
                });
                let of = alone.collect();
                Form::Same { groups, of }
            } else {
                let mut values = vec![0.0; tasks * tasks];
                for (_, members) in &level.groups {
                    for &t in members {
                        for &u in members {
                            values[t * tasks + u] += 1.0;
                        }
                    }
                }
                Form::Similarity { values }
            };
            let name = if several {
                level.label
            } else {
                GROUP.to_string()
            };
            self = self.with(TaskKernel { name, form })?;
        }
        Ok(self)
    }

    /// The same with a matrix of similarities, T × T row by row in the order of the tasks.
    ///
    /// # Errors
    /// When it is not symmetric and positive semi-definite.
    pub fn with_similarity(self, values: Vec<f64>) -> Result<Self> {
        let tasks = self.tasks.len();
        let largest = values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()));
        let expected = "a symmetric positive semi-definite matrix with a row for each task";
        if values.len() != tasks * tasks || !largest.is_finite() || largest == 0.0 {
            return Err(wrong(
                format!("{} similarities of {tasks} tasks", values.len()),
                expected,
            ));
        }
        let is_symmetric = |at: usize| {
            let (t, u) = (at / tasks, at % tasks);
            (values[at] - values[u * tasks + t]).abs() <= ROUNDING * largest
        };
        if let Some(at) = (0..values.len()).find(|&at| !is_symmetric(at)) {
            let (t, u) = (&self.tasks[at / tasks], &self.tasks[at % tasks]);
            return Err(wrong(
                format!("another similarity of `{t}` to `{u}` than of `{u}` to `{t}`"),
                expected,
            ));
        }
        let smallest =
            crate::linalg::extreme_eigenvalues(&values, tasks).map_or(f64::NAN, |(low, _)| low);
        if smallest.is_nan() || smallest < -ROUNDING * largest {
            return Err(wrong(
                format!("similarities with the eigenvalue {smallest}"),
                expected,
            ));
        }
        self.with(TaskKernel {
            name: SIMILARITY.to_string(),
            form: Form::Similarity { values },
        })
    }

    fn with(mut self, kernel: TaskKernel) -> Result<Self> {
        if kernel.name == ALL || self.kernels.iter().any(|known| known.name == kernel.name) {
            return Err(wrong(
                format!("two kernels `{}`", kernel.name),
                "a name of its own for each level",
            ));
        }
        self.kernels.push(kernel);
        Ok(self)
    }

    /// The tasks.
    pub fn tasks(&self) -> &[String] {
        &self.tasks
    }

    /// All but `all`.
    pub fn kernels(&self) -> &[TaskKernel] {
        &self.kernels
    }

    /// The kernel of this name.
    pub fn get(&self, name: &str) -> Option<&TaskKernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// What a word means in a list of task kernels: `all` (`None`), one of these kernels, or for `group` those between.
    ///
    /// # Errors
    /// Names the words there are.
    pub fn meant_by(&self, word: &str) -> Result<Vec<Option<String>>> {
        if word == ALL {
            return Ok(vec![None]);
        }
        let names = self.kernels.iter().map(|kernel| kernel.name.as_str());
        let found: Vec<&str> = match word {
            GROUP => names
                .filter(|name| ![OWN, SIMILARITY].contains(name))
                .collect(),
            word => names.filter(|name| *name == word).collect(),
        };
        if found.is_empty() {
            let known: Vec<&str> = std::iter::once(ALL)
                .chain(self.kernels.iter().map(|kernel| kernel.name.as_str()))
                .collect();
            let way = match word {
                GROUP => "; groups of tasks are given as a column or as a tree",
                SIMILARITY => "; similarities of tasks are given as a matrix",
                _ => "",
            };
            return Err(Error::param(
                "transfer",
                word.to_string(),
                format!("one of {}{way}", known.join(", ")),
            ));
        }
        Ok(found
            .into_iter()
            .map(|name| Some(name.to_string()))
            .collect())
    }

    /// The origin of samples of a task; of one that is not known, its groups by kernel and name, as far as these are known.
    pub fn origin(&self, task: &str, groups: &[(String, String)]) -> Origin {
        let known = self.tasks.iter().position(|name| name == task);
        let group = |kernel: &TaskKernel| {
            let Form::Same { groups: names, .. } = &kernel.form else {
                return None;
            };
            let mut wanted = groups.iter().filter(|(name, _)| *name == kernel.name);
            wanted
                .find_map(|(_, wanted)| names.iter().position(|name| name == wanted))
                .filter(|_| kernel.name != OWN)
        };
        Origin {
            task: known,
            groups: self.kernels.iter().map(group).collect(),
        }
    }

    /// c(t, u) for all tasks u, t being where samples come from; zeros where nothing is known of it.
    pub(crate) fn towards(&self, kernel: usize, origin: &Origin) -> Vec<f64> {
        let tasks = self.tasks.len();
        match (&self.kernels[kernel].form, origin.task) {
            (Form::Similarity { values }, Some(t)) => values[t * tasks..(t + 1) * tasks].to_vec(),
            (Form::Similarity { .. }, None) => vec![0.0; tasks],
            (Form::Same { of, .. }, task) => {
                let group = task
                    .map(|t| of[t])
                    .or_else(|| origin.groups.get(kernel).copied().flatten());
                of.iter()
                    .map(|&own| f64::from(u8::from(Some(own) == group)))
                    .collect()
            }
        }
    }

    /// c(t, t) of samples from there.
    pub(crate) fn itself(&self, kernel: usize, origin: &Origin) -> f64 {
        match (&self.kernels[kernel].form, origin.task) {
            (Form::Same { .. }, _) => 1.0,
            (Form::Similarity { values }, Some(t)) => values[t * self.tasks.len() + t],
            (Form::Similarity { .. }, None) => 0.0,
        }
    }

    /// The position of a kernel.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.kernels.iter().position(|kernel| kernel.name == name)
    }

    /// Whether what was read from a file is one of these.
    pub(crate) fn check(&self) -> Result<()> {
        let tasks = self.tasks.len();
        let fits = |kernel: &TaskKernel| match &kernel.form {
            Form::Same { groups, of } => {
                of.len() == tasks && of.iter().all(|&group| group < groups.len())
            }
            Form::Similarity { values } => {
                Some(values.len()) == tasks.checked_mul(tasks)
                    && values.iter().all(|value| value.is_finite())
            }
        };
        if tasks > 0 && self.kernels.iter().all(fits) {
            Ok(())
        } else {
            Err(wrong(
                "task kernels of other tasks",
                "a group, or a row of similarities, for each task",
            ))
        }
    }
}

impl TaskKernel {
    /// c(t, u).
    pub(crate) fn value(&self, t: usize, u: usize, tasks: usize) -> f64 {
        match &self.form {
            Form::Same { of, .. } => f64::from(u8::from(of[t] == of[u])),
            Form::Similarity { values } => values[t * tasks + u],
        }
    }
}

impl Origins {
    /// Those of some of the samples.
    pub(crate) fn part(&self, samples: impl Iterator<Item = usize>) -> Self {
        Self {
            kernels: Arc::clone(&self.kernels),
            of: Arc::new(samples.map(|i| self.of[i]).collect()),
        }
    }

    /// c of two samples.
    pub(crate) fn value(&self, kernel: usize, i: usize, j: usize) -> f64 {
        let kernels = &self.kernels;
        kernels.kernels[kernel].value(self.of[i], self.of[j], kernels.tasks.len())
    }
}
