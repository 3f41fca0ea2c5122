//! Random problems: every machine, sharing and kernel, sets shared or not, sparse rows, given matrices, kernels between tasks, weights.

use std::fmt;
use std::sync::Arc;

use mtmkl::grid::Shape;
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::TargetKind;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::task_kernel::TaskKernels;
use mtmkl::{
    Fitting, GivenGram, Model, Normalization, Precision, Preparation, Problem, ProblemSpec,
    Registry, Samples, SparseRows, TargetScale, Targets, Task,
};
use mtmkl_testkit::generate::{self, Random};

/// Kernels to draw from; those after the bar need values ≥ 0.
const KERNELS: [&str; 17] = [
    "linear",
    "poly:degree=2",
    "poly:degree=3,gamma=0.5,coef0=0.3",
    "rbf:gamma=0.3",
    "rbf:sigma=median*0.5",
    "rbf:gamma=scale@f1,f3",
    "laplacian:gamma=0.4",
    "laplacian:sigma=median",
    "matern32:length=1.5",
    "matern52:length=median",
    "cosine",
    "cosine@f2..f3",
    "constant",
    "linear@f1..f2",
    "rbf:gamma=2@f2,f1",
    "chi2:gamma=0.5",
    "intersection",
];
const COLUMNS: usize = 3;

/// A problem's data, and what it is called.
pub(crate) struct Case {
    pub(crate) spec: ProblemSpec,
    pub(crate) samples: Vec<Samples>,
    pub(crate) tasks: Vec<Task>,
    extra: Vec<&'static str>,
}

/// A case with its fit.
pub(crate) struct Drawn {
    pub(crate) case: Case,
    pub(crate) model: Model,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels: Vec<&str> = self
            .spec
            .kernels
            .iter()
            .map(|view| view.name.as_str())
            .collect();
        let (machine, sharing) = (&self.spec.machine, &self.spec.sharing);
        write!(
            f,
            "{machine:?} {sharing:?} {kernels:?} {:?} {:?}",
            self.spec.normalize, self.extra
        )
    }
}

impl Case {
    /// What it has an example of.
    pub(crate) fn kinds(&self, model: &Model) -> Vec<String> {
        let mut kinds = vec![
            self.spec.machine.name().to_string(),
            self.spec.sharing.name().to_string(),
            self.spec.normalize.word().to_string(),
            model.outcome().status.name().to_string(),
        ];
        kinds.extend(self.extra.iter().map(ToString::to_string));
        let names = self.spec.kernels.iter().map(|view| {
            let name = view.name.split([':', '@', '*']).next();
            format!("kernel {}", name.unwrap_or_default())
        });
        kinds.extend(names);
        if model.outcome().is_rounded {
            kinds.push("rounded".to_string());
        }
        if model.tasks().iter().any(|task| task.witness.is_some()) {
            kinds.push("own witness".to_string());
        }
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

/// Points of some rows; mostly zeros where they are sparse.
fn points(random: &mut Random, n: usize, is_positive: bool, is_sparse: bool) -> Vec<f64> {
    let mut points = generate::points(random, n, COLUMNS);
    for value in &mut points {
        if is_positive {
            *value = value.abs();
        }
        if is_sparse && random.below(2) == 0 {
            *value = 0.0;
        }
    }
    points
}

fn samples_of(points: &[f64], n: usize, is_sparse: bool) -> Samples {
    if !is_sparse {
        return Samples::new(points.to_vec(), n, COLUMNS).unwrap();
    }
    let (mut offsets, mut columns, mut values) = (vec![0], vec![], vec![]);
    for row in points.chunks(COLUMNS) {
        for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
            columns.push(column);
            values.push(value);
        }
        offsets.push(values.len());
    }
    Samples::sparse(SparseRows::new(offsets, columns, values, COLUMNS).unwrap()).unwrap()
}

fn targets_of(
    random: &mut Random,
    kind: TargetKind,
    x: &[f64],
    n: usize,
    rows: Option<&[usize]>,
) -> Targets {
    let pick = |all: Vec<f64>| match rows {
        None => all,
        Some(rows) => rows.iter().map(|&row| all[row]).collect(),
    };
    match kind {
        TargetKind::Unlabelled => Targets::Unlabelled,
        TargetKind::Values => Targets::Values(pick(generate::values(random, x, n, COLUMNS))),
        TargetKind::Labels => {
            let mut labels = pick(generate::labels(random, x, n, COLUMNS));
            if labels.iter().all(|label| *label == labels[0]) {
                labels[0] = -labels[0];
            }
            Targets::Labels(labels)
        }
    }
}

/// The machine and the sharing number `seed`, of all pairs in turn.
fn pair(
    seed: u64,
    random: &mut Random,
    tasks: usize,
    kernels: usize,
) -> (mtmkl::machine::MachineSpec, TargetKind, SharingSpec) {
    let registry = Registry::default();
    let machines: Vec<_> = (registry.machines().iter())
        .flat_map(|entry| {
            (entry.examples)()
                .into_iter()
                .map(|spec| (spec, entry.targets))
        })
        .collect();
    let sharings = registry.sharings();
    // A step that has no divisor in common with the number of pairs goes through all of them, and is soon everywhere.
    let pairs = machines.len() * sharings.len();
    let number = (usize::try_from(seed).unwrap() * 71) % pairs;
    let (machine, targets) = machines[number % machines.len()].clone();
    let entry = sharings[number / machines.len()];
    let examples = (entry.examples)(Shape { tasks, kernels });
    let sharing = if examples.is_empty() {
        SharingSpec::common(1.0 + random.uniform(), 1.0)
    } else {
        examples[random.below(examples.len())].clone()
    };
    // The sphere's machine needs a set of fixed mass.
    let sharing = match (machine.name(), sharing.name()) {
        ("svdd", "simplex" | "box-simplex" | "tang" | "fixed" | "uniform") => sharing,
        ("svdd", _) => SharingSpec::simplex(),
        _ => sharing,
    };
    (machine, targets, sharing)
}

/// Gram matrices that somebody computed of these points: a Gaussian one, or one that is not normalised.
fn given(random: &mut Random, points: &[f64], n: usize) -> GivenGram {
    let values = if random.below(2) == 0 {
        generate::gaussian_gram(points, n, COLUMNS, 0.7)
    } else {
        generate::polynomial_gram(points, n, COLUMNS, 2, 0.5)
    };
    GivenGram {
        name: "K1".to_string(),
        values: Arc::new(values),
    }
}

impl Drawn {
    /// The problem of a seed, fitted; nothing where it is refused.
    pub(crate) fn new(seed: u64, random: &mut Random) -> Option<Self> {
        let case = case(seed, random)?;
        // Some are done after one pass, so that these are more than a third.
        let is_early = seed % 5 < 2;
        let precision = if random.below(8) == 0 {
            Precision::Single
        } else {
            Precision::Double
        };
        let problem =
            Problem::new(case.spec.clone(), case.samples.clone(), case.tasks.clone()).ok()?;
        let prepared = problem
            .prepare(&Preparation {
                precision,
                ..Preparation::default()
            })
            .ok()?;
        let mut fitting = Fitting {
            tolerance: if is_early {
                1e-12
            } else {
                [1e-2, 1e-4, 1e-6][random.below(3)]
            },
            max_passes: if is_early { 1 + random.below(2) } else { 300 },
            ..Fitting::default()
        };
        let model = prepared.fit(&mut fitting).ok()?;
        Some(Self { case, model })
    }
}

fn case(seed: u64, random: &mut Random) -> Option<Case> {
    let mut extra = Vec::new();
    let transfer = random.below(8) == 0;
    let tasks = 1 + random.below(4);
    let is_sparse = random.below(5) == 0;
    let has_given = random.below(5) == 0;
    let mut specs: Vec<String> = (0..=random.below(4))
        .map(|_| KERNELS[random.below(KERNELS.len())].to_string())
        .collect();
    if has_given {
        specs.push("precomputed:name=K1".to_string());
    }
    if transfer {
        extra.push("transfer");
        let words = ["all", "own", "similarity"];
        for spec in &mut specs {
            let word = words[random.below(3)];
            *spec = match spec.split_once('@') {
                Some((head, columns)) => format!("{head}*{word}@{columns}"),
                None => format!("{spec}*{word}"),
            };
        }
    }
    specs.sort_unstable();
    specs.dedup();
    let is_positive = specs
        .iter()
        .any(|spec| spec.starts_with("chi2") || spec.starts_with("intersection"));
    let kernels: Vec<_> = specs
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect();
    let machines = if transfer { 1 } else { tasks };
    let (machine, targets, sharing) = pair(seed, random, machines, kernels.len());
    let is_shared = transfer || random.below(3) == 0;
    for (word, is_there) in [
        ("sparse", is_sparse),
        ("given", has_given),
        ("shared set", is_shared && !transfer),
    ] {
        if is_there {
            extra.push(word);
        }
    }
    let (mut samples, mut made) = (Vec::new(), Vec::new());
    let weighted = random.below(3) == 0;
    for number in 0..machines {
        let n = 6 + random.below(25);
        let is_new = number == 0 || !is_shared;
        if is_new {
            let points = points(random, n, is_positive, is_sparse);
            let mut set = samples_of(&points, n, is_sparse);
            if has_given {
                set = set.with_gram(given(random, &points, n)).unwrap();
            }
            if transfer {
                set = between(random, set, tasks, n)?;
            }
            samples.push((set, points));
        }
        let (set, points) = samples.last()?;
        let n = set.count();
        let rows: Option<Vec<usize>> = (is_shared && !transfer)
            .then(|| (0..n).filter(|row| row % 4 != number % 4).rev().collect());
        let targets = targets_of(random, targets, points, n, rows.as_deref());
        let mut task = Task::new(format!("task {number}"), targets).on(samples.len() - 1);
        let count = rows.as_ref().map_or(n, Vec::len);
        if let Some(rows) = rows {
            task = task.with_rows(rows);
        }
        if weighted {
            task = task.with_weights(
                (0..count)
                    .map(|_| [0.5, 1.0, 2.0, 3.0][random.below(4)])
                    .collect(),
            );
        }
        made.push(task);
    }
    if weighted {
        extra.push("weights");
    }
    let spec = ProblemSpec {
        normalize: [
            Normalization::Unit,
            Normalization::Variance,
            Normalization::None,
        ][random.below(3)],
        target_scale: [TargetScale::None, TargetScale::Standard][random.below(2)],
        solver: if random.below(6) == 0 {
            SolverSpec::Epf(Epf::default())
        } else {
            SolverSpec::Newton
        },
        ..ProblemSpec::new(kernels, machine, sharing)
    };
    let samples = samples.into_iter().map(|(set, _)| set).collect();
    Some(Case {
        spec,
        samples,
        tasks: made,
        extra,
    })
}

/// The same samples, each of one of some tasks, which have a similarity.
fn between(random: &mut Random, set: Samples, tasks: usize, n: usize) -> Option<Samples> {
    let names = (0..tasks).map(|task| format!("t{task}")).collect();
    let mut values = vec![0.0; tasks * tasks];
    let directions: Vec<Vec<f64>> = (0..tasks)
        .map(|_| (0..2).map(|_| random.normal()).collect())
        .collect();
    for t in 0..tasks {
        for u in 0..tasks {
            values[t * tasks + u] =
                generate::dot(&directions[t], &directions[u]) + f64::from(u8::from(t == u));
        }
    }
    let kernels = TaskKernels::new(names).ok()?.with_similarity(values).ok()?;
    let of = (0..n).map(|_| random.below(tasks)).collect();
    set.from_tasks(Arc::new(kernels), of).ok()
}
