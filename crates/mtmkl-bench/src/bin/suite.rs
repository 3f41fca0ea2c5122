//! A fixed set of problems of every kind, for ablations: what a constant or a rescue path of the solvers is worth.
//!
//! `suite SEED [GROUP]` prints one JSON object a line for each group of problems (but "edges"), or for this one: how many fits, how many of them reached the tolerance, passes,
//! inner steps, seconds on one thread, and the worst gap. Another seed makes other problems of the same kinds.

#![allow(clippy::print_stdout, reason = "a program for benchmarks")]
use std::error::Error;
use std::time::Instant;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::{MachineSpec, TargetKind};
use mtmkl::random::Random;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Fitting, Problem, ProblemSpec, Samples, Targets, Task};

/// Fits of one kind.
#[derive(Default)]
struct Group {
    fits: usize,
    converged: usize,
    passes: usize,
    steps: usize,
    seconds: f64,
    worst: f64,
}

/// What a problem is made of.
struct Case {
    samples: usize,
    columns: usize,
    tasks: usize,
    kernels: Vec<KernelView>,
    machine: MachineSpec,
    targets: TargetKind,
    sharing: SharingSpec,
    normalize: bool,
    /// Each sample is there so many times.
    copies: usize,
    tolerance: f64,
    solver: SolverSpec,
}

impl Case {
    /// An SVC on Gaussians of several widths, half of them on single columns.
    fn new(
        samples: usize,
        tasks: usize,
        kernels: usize,
        sharing: SharingSpec,
    ) -> Result<Self, mtmkl::Error> {
        let columns = 6;
        let mut views = mtmkl_bench::gaussians(kernels - kernels / 2, columns, false)?;
        views.extend(mtmkl_bench::gaussians(kernels / 2, columns, true)?);
        Ok(Self {
            samples,
            columns,
            tasks,
            kernels: views,
            machine: MachineSpec::svc(1.0),
            targets: TargetKind::Labels,
            sharing,
            normalize: true,
            copies: 1,
            tolerance: 1e-6,
            solver: SolverSpec::Newton,
        })
    }

    fn problem(&self, seed: u64) -> Result<Problem, mtmkl::Error> {
        let (n, d) = (self.samples, self.columns);
        let mut values = mtmkl_bench::table(n / self.copies, d, seed);
        let once = values.clone();
        for _ in 1..self.copies {
            values.extend_from_slice(&once);
        }
        let n = values.len() / d;
        let mut random = Random::new(seed + 1);
        let tasks = (0..self.tasks)
            .map(|task| {
                let scores: Vec<f64> = values
                    .chunks_exact(d)
                    .map(|row| {
                        let column = |k: usize| row[(task + k) % d];
                        let noise = random.uniform() + random.uniform() - 1.0;
                        column(0) + (2.0 * column(1)).sin() + noise
                    })
                    .collect();
                let targets = match self.targets {
                    TargetKind::Labels => {
                        let sign = |score: &f64| if *score > 0.0 { 1.0 } else { -1.0 };
                        Targets::Labels(scores.iter().map(sign).collect())
                    }
                    TargetKind::Values => Targets::Values(scores),
                    TargetKind::Unlabelled => Targets::Unlabelled,
                };
                Task::new(format!("task {task}"), targets)
            })
            .collect();
        let mut spec = ProblemSpec::new(
            self.kernels.clone(),
            self.machine.clone(),
            self.sharing.clone(),
        );
        spec.solver = self.solver.clone();
        spec.normalize = self.normalize.into();
        Problem::new(spec, vec![Samples::new(values, n, d)?], tasks)
    }
}

impl Group {
    fn fit(&mut self, case: &Case, seed: u64) -> Result<(), mtmkl::Error> {
        let problem = case.problem(seed)?;
        let prepared = problem.prepare(&mtmkl_bench::on_threads(1, 8 << 30)?)?;
        let started = Instant::now();
        let model = prepared.fit(&mut Fitting {
            tolerance: case.tolerance,
            max_passes: 150,
            ..Fitting::default()
        })?;
        self.seconds += started.elapsed().as_secs_f64();
        let outcome = model.outcome();
        self.fits += 1;
        self.converged += usize::from(outcome.status.is_converged());
        self.passes += outcome.trace.len();
        let steps = outcome.trace.iter().map(|pass| pass.inner_iterations);
        self.steps += steps.sum::<usize>();
        self.worst = self.worst.max(outcome.gap);
        Ok(())
    }
}

fn kernels(specs: &[&str]) -> Result<Vec<KernelView>, mtmkl::Error> {
    let mut views = Vec::new();
    for spec in specs {
        views.extend(parse_kernels(spec)?);
    }
    Ok(views)
}

fn lp(p: f64) -> SharingSpec {
    SharingSpec::lp(p, 1.0)
}

fn sharings(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    let shape = mtmkl::grid::Shape {
        tasks: 5,
        kernels: 10,
    };
    for info in mtmkl::Registry::default().sharings() {
        for sharing in (info.examples)(shape) {
            group.fit(&Case::new(200, 5, 10, sharing)?, seed)?;
        }
    }
    Ok(group)
}

fn many_tasks(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    let radius = 1.0;
    for (p, q) in [(1.0, 1.0), (1.5, 1.0), (2.0, 2.0)] {
        let pscs = SharingSpec::pscs(p, q, radius);
        let own = SharingSpec::group(p, q, radius);
        for sharing in [pscs, own, SharingSpec::independent(p, radius)] {
            group.fit(&Case::new(100, 40, 16, sharing)?, seed)?;
        }
    }
    Ok(group)
}

fn norms(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for (p, q) in [(1.01, 1.01), (1.1, 8.0), (8.0, 1.0), (1.0, 4.0), (3.0, 1.2)] {
        let sharing = SharingSpec::pscs(p, q, 0.3);
        group.fit(&Case::new(120, 6, 12, sharing)?, seed)?;
    }
    Ok(group)
}

fn machines(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for info in mtmkl::Registry::default().machines() {
        for machine in (info.examples)() {
            let sharing = if machine.name() == "svdd" {
                SharingSpec::simplex()
            } else {
                SharingSpec::pscs(2.0, 1.5, 1.0)
            };
            let mut case = Case::new(300, 2, 6, sharing)?;
            (case.machine, case.targets) = (machine, info.targets);
            group.fit(&case, seed)?;
        }
    }
    Ok(group)
}

fn large_c(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for c in [1e2, 1e4, 1e6] {
        for normalize in [true, false] {
            let mut case = Case::new(200, 1, 2, lp(2.0))?;
            case.kernels = kernels(&["linear", "rbf:gamma=0.1", "poly"])?;
            case.machine = MachineSpec::svc(c);
            (case.normalize, case.tolerance) = (normalize, 1e-5);
            group.fit(&case, seed)?;
            case.machine = MachineSpec::svr(c, 0.1);
            case.targets = TargetKind::Values;
            group.fit(&case, seed)?;
        }
    }
    Ok(group)
}

fn low_rank(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for (c, copies) in [(1.0, 1), (100.0, 1), (1.0, 4), (1e4, 4)] {
        let mut case = Case::new(200, 2, 2, lp(1.0))?;
        case.kernels = kernels(&["linear@f1,f2", "linear@f3", "poly@f1"])?;
        case.machine = MachineSpec::svc(c);
        (case.copies, case.tolerance) = (copies, 1e-5);
        case.sharing = SharingSpec::common(1.0, 1.0);
        group.fit(&case, seed)?;
    }
    Ok(group)
}

fn small_c(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for c in [1e-4, 1e-2, 0.1] {
        for p in [1.0, 2.0] {
            let mut case = Case::new(300, 1, 8, lp(p))?;
            case.machine = MachineSpec::svc(c);
            group.fit(&case, seed)?;
        }
    }
    Ok(group)
}

fn larger(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for (p, c) in [(1.0, 1.0), (2.0, 1.0), (1.0, 10.0), (2.0, 10.0)] {
        let mut case = Case::new(1600, 1, 10, lp(p))?;
        case.machine = MachineSpec::svc(c);
        case.tolerance = 1e-5;
        group.fit(&case, seed)?;
    }
    let mut case = Case::new(1000, 4, 8, SharingSpec::common(1.5, 1.0))?;
    case.machine = MachineSpec::svc(5.0);
    group.fit(&case, seed)?;
    Ok(group)
}

fn many_kernels(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for p in [1.0, 1.5, 2.0] {
        group.fit(&Case::new(120, 1, 600, lp(p))?, seed)?;
    }
    Ok(group)
}

/// To nine digits, where rounding is near.
fn tight(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for (c, p) in [(0.1, 1.0), (1.0, 2.0), (1e2, 1.0), (1e3, 2.0)] {
        for samples in [20, 150] {
            let mut case = Case::new(samples, 1, 6, lp(p))?;
            case.machine = MachineSpec::svc(c);
            case.tolerance = 1e-9;
            group.fit(&case, seed)?;
        }
    }
    Ok(group)
}

/// The paper's Algorithm 1.
fn algorithm_1(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    for sharing in [lp(1.0), lp(2.0), SharingSpec::simplex()] {
        let mut case = Case::new(100, 1, 5, sharing)?;
        (case.solver, case.tolerance) = (SolverSpec::Epf(Epf::default()), 1e-2);
        group.fit(&case, seed)?;
    }
    Ok(group)
}

/// Random problems at the edges: few samples, tiny and huge C, kernels far from each other in scale, exponents near one and large.
fn edges(seed: u64) -> Result<Group, mtmkl::Error> {
    let mut group = Group::default();
    let mut random = Random::new(1000 + seed);
    let log = |random: &mut Random, low: f64, high: f64| {
        10_f64.powf(low + (high - low) * random.uniform())
    };
    for number in 0..100 {
        let tasks = 1 + random.below(4);
        let exponents = [1.0, 1.0, 1.01, 1.1, 1.5, 2.0, 4.0, 16.0];
        let p = exponents[random.below(exponents.len())];
        let q = exponents[random.below(exponents.len())];
        let radius = log(&mut random, -2.0, 2.0);
        let sharing = match random.below(6) {
            0 => SharingSpec::common(p, radius),
            1 => SharingSpec::independent(p, radius),
            2 => SharingSpec::group(p, q, radius),
            3 => SharingSpec::simplex(),
            4 => SharingSpec::tang(2.0 * random.uniform()),
            _ => SharingSpec::pscs(p, q, radius),
        };
        let mut case = Case::new(4 + random.below(60), tasks, 2, sharing)?;
        let choices = [
            "linear",
            "poly:degree=3",
            "rbf:gamma=100",
            "rbf:gamma=0.0001|0.01|1",
            "linear@f1",
            "laplacian",
            "poly@f2,f3",
        ];
        let chosen: Vec<&str> = (0..=random.below(4))
            .map(|_| choices[random.below(choices.len())])
            .collect();
        case.kernels = kernels(&chosen)?;
        case.normalize = random.uniform() < 0.6;
        case.copies = if random.uniform() < 0.2 { 2 } else { 1 };
        let c = log(&mut random, -5.0, 6.0);
        (case.machine, case.targets) = match random.below(4) {
            0 => (
                MachineSpec::svr(c, 0.1 * random.uniform()),
                TargetKind::Values,
            ),
            1 => (MachineSpec::krr(c.recip()), TargetKind::Values),
            _ => (MachineSpec::svc(c), TargetKind::Labels),
        };
        case.tolerance = log(&mut random, -8.0, -3.0);
        // What cannot be stated (one class alone, a matrix beyond double precision) is no fit.
        let tried = group.fit(&case, seed + 31 * number);
        if !matches!(
            tried,
            Err(mtmkl::Error::Data { .. } | mtmkl::Error::Numeric { .. })
        ) {
            tried?;
        }
    }
    Ok(group)
}

type Kind = fn(u64) -> Result<Group, mtmkl::Error>;

fn main() -> Result<(), Box<dyn Error>> {
    let seed: u64 = std::env::args()
        .nth(1)
        .ok_or("usage: suite SEED [GROUP]")?
        .parse()?;
    let kinds: [(&str, Kind); 12] = [
        ("sharings", sharings),
        ("many tasks", many_tasks),
        ("norms", norms),
        ("machines", machines),
        ("large C", large_c),
        ("low rank", low_rank),
        ("small C", small_c),
        ("larger", larger),
        ("many kernels", many_kernels),
        ("tight", tight),
        ("Algorithm 1", algorithm_1),
        ("edges", edges),
    ];
    let only = std::env::args().nth(2);
    let is_wanted = |name: &str| only.as_deref().map_or(name != "edges", |only| only == name);
    for (name, kind) in kinds.into_iter().filter(|(name, _)| is_wanted(name)) {
        let group = kind(seed)?;
        println!(
            "{}",
            serde_json::json!({
                "group": name, "fits": group.fits, "converged": group.converged, "passes": group.passes, "steps": group.steps,
                "seconds": group.seconds, "worst": group.worst,
            })
        );
    }
    Ok(())
}
