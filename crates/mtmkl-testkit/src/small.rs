//! Small problems with their independent conic optimum.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use mtmkl::grid::Shape;
use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::sharing::{SetSpec, SharingSpec, TermSpec};
use mtmkl::{Samples, Targets, Task};

use crate::conic::{self, Machine, Set, Term};
use crate::generate::{self, Random};

pub const KERNELS: [&str; 4] = [
    "linear",
    "poly:degree=2,coef0=1",
    "rbf:gamma=0.3",
    "rbf:gamma=3",
];
pub const DIMENSION: usize = 3;

pub fn kernels() -> Vec<KernelView> {
    KERNELS
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
}

/// Two tasks with random targets on different rows of one sample set x of n rows, or both on all of it.
pub fn two_tasks(
    random: &mut Random,
    x: &[f64],
    n: usize,
    targets: TargetKind,
    views: bool,
) -> Vec<Task> {
    let columns = x.len() / n;
    (0..2)
        .map(|task| {
            let rows: Vec<usize> = if views {
                (0..n).filter(|i| i % 5 != 2 * task).rev().collect()
            } else {
                (0..n).collect()
            };
            let pick = |all: Vec<f64>| rows.iter().map(|&i| all[i]).collect();
            let targets = match targets {
                TargetKind::Labels => {
                    Targets::Labels(pick(generate::labels(random, x, n, columns)))
                }
                TargetKind::Values => {
                    Targets::Values(pick(generate::values(random, x, n, columns)))
                }
                TargetKind::Unlabelled => Targets::Unlabelled,
            };
            let task = Task::new(format!("task {task}"), targets);
            if views { task.with_rows(rows) } else { task }
        })
        .collect()
}

/// PSCS, or the simplex for a machine that does not go with it.
pub fn usual_sharing(machine: &MachineSpec) -> SharingSpec {
    if machine.name() == "svdd" {
        SharingSpec::simplex()
    } else {
        SharingSpec::pscs(2.0, 1.5, 1.0)
    }
}

/// Random samples, one set per task.
pub struct Data {
    pub points: Vec<Vec<f64>>,
    pub labels: Vec<Vec<f64>>,
    pub values: Vec<Vec<f64>>,
}

impl Data {
    pub fn new(tasks: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut data = Self {
            points: Vec::new(),
            labels: Vec::new(),
            values: Vec::new(),
        };
        for task in 0..tasks {
            let n = 11 + 3 * task;
            let points = generate::points(&mut random, n, DIMENSION);
            data.labels
                .push(generate::labels(&mut random, &points, n, DIMENSION));
            data.values
                .push(generate::values(&mut random, &points, n, DIMENSION));
            data.points.push(points);
        }
        data
    }

    pub fn samples(&self) -> Vec<Samples> {
        self.points
            .iter()
            .map(|points| {
                Samples::new(points.clone(), points.len() / DIMENSION, DIMENSION).unwrap()
            })
            .collect()
    }

    pub fn tasks(&self, targets: TargetKind) -> Vec<Task> {
        (0..self.points.len())
            .map(|task| {
                let targets = match targets {
                    TargetKind::Labels => Targets::Labels(self.labels[task].clone()),
                    TargetKind::Values => Targets::Values(self.values[task].clone()),
                    TargetKind::Unlabelled => Targets::Unlabelled,
                };
                Task::new(format!("task {task}"), targets).on(task)
            })
            .collect()
    }

    /// The same problem for the conic solver, with Grams computed by other code; `None` for a machine that is not stated for it here.
    pub fn conic(&self, machine: &MachineSpec) -> Option<Vec<conic::Task>> {
        (0..self.points.len())
            .map(|task| {
                let points = &self.points[task];
                let n = points.len() / DIMENSION;
                let mut grams = vec![
                    generate::linear_gram(points, n, DIMENSION),
                    generate::polynomial_gram(points, n, DIMENSION, 2, 1.0),
                    generate::gaussian_gram(points, n, DIMENSION, 0.3),
                    generate::gaussian_gram(points, n, DIMENSION, 3.0),
                ];
                for gram in &mut grams {
                    generate::unit_diagonal(gram, n);
                }
                let y = self.labels[task].clone();
                let values = self.values[task].clone();
                let c = machine.number("C");
                let machine = match machine.name() {
                    name @ ("svc" | "logistic") => {
                        let factor = |label: f64| {
                            if label > 0.0 {
                                machine.number("positive_weight")
                            } else {
                                machine.number("negative_weight")
                            }
                        };
                        let upper = y.iter().map(|&label| c * factor(label)).collect();
                        if name == "svc" {
                            Machine::Svc { upper, y }
                        } else {
                            Machine::Logistic { upper, y }
                        }
                    }
                    "svr" => Machine::Svr {
                        y: values,
                        upper: vec![c; n],
                        epsilon: machine.number("epsilon"),
                    },
                    "krr" => Machine::Krr {
                        y: values,
                        lambda: machine.number("lambda"),
                    },
                    "svdd" => Machine::Svdd { c },
                    "ocsvm" => Machine::OneClass {
                        nu: machine.number("nu"),
                    },
                    _ => return None,
                };
                Some(conic::Task {
                    machine,
                    samples: n,
                    grams,
                })
            })
            .collect()
    }
}

/// The sharing's terms for the conic solver; `None` where one is not stated for it here.
pub fn conic_terms(sharing: &SharingSpec, shape: Shape) -> Option<Vec<Term>> {
    let set = |set: &SetSpec| {
        Some(match set.clone() {
            SetSpec::LpBall { p, radius } => Set::LpBall { p, radius },
            SetSpec::Simplex { total } => Set::Simplex { total },
            SetSpec::BoxSimplex { total, upper } => Set::BoxSimplex { total, upper },
            SetSpec::PriorBall { prior, radius } => Set::PriorBall {
                centre: prior,
                radius,
            },
            SetSpec::Fixed { weights } => Set::Fixed { weights },
            _ => return None,
        })
    };
    if let ("fixed", Some(weights)) = (sharing.name(), sharing.values().list("weights"))
        && weights.len() > shape.kernels
    {
        let rows = weights.chunks(shape.kernels).map(<[f64]>::to_vec);
        return Some(vec![Term::Given(rows.collect())]);
    }
    sharing
        .terms(shape)
        .unwrap()
        .iter()
        .map(|term| {
            Some(match term {
                TermSpec::Common(inner) => Term::Common(set(inner)?),
                TermSpec::Independent(inner) => Term::Independent(set(inner)?),
                TermSpec::Group { p, q, radius } => Term::Group {
                    p: *p,
                    q: *q,
                    radius: *radius,
                },
                TermSpec::Level {
                    level,
                    p,
                    q,
                    radius,
                } => Term::Level {
                    groups: level.groups.iter().map(|(_, own)| own.clone()).collect(),
                    p: *p,
                    q: *q,
                    radius: *radius,
                },
                _ => return None,
            })
        })
        .collect()
}
