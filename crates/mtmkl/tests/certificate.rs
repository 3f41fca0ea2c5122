//! Objective and bound hold for the machines and the witness in the model, in exact arithmetic: kernels have whole numbers as values, and
//! sums are made with twice the digits, so that not even rounding is forgiven. Large values, low rank, large C, early ends.
//!
//! Nothing of the solver is used: the primal and the dual are written from the textbook forms.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use mtmkl::kernel::{KernelView, parse_kernels};
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{
    Fitting, Model, Precision, Preparation, Problem, ProblemSpec, Samples, Status, Targets, Task,
};
use mtmkl_testkit::generate::Random;
use mtmkl_testkit::logistic;

/// high + low, some 32 digits: Dekker's sums, products by fused multiplication.
#[derive(Clone, Copy, Debug, Default)]
struct Double(f64, f64);

impl Double {
    fn of(value: f64) -> Self {
        Self(value, 0.0)
    }

    fn plus(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        let back = sum - self.0;
        let rest = (self.0 - (sum - back)) + (other.0 - back) + self.1 + other.1;
        let high = sum + rest;
        Self(high, rest - (high - sum))
    }

    fn times(self, other: Self) -> Self {
        let product = self.0 * other.0;
        let rest = self.0.mul_add(other.0, -product) + self.0 * other.1 + self.1 * other.0;
        let high = product + rest;
        Self(high, rest - (high - product))
    }

    fn minus(self, other: Self) -> Self {
        self.plus(Self(-other.0, -other.1))
    }

    fn positive(self) -> Self {
        if self.0 > 0.0 { self } else { Self::default() }
    }

    fn value(self) -> f64 {
        self.0 + self.1
    }
}

fn sum(values: impl Iterator<Item = Double>) -> Double {
    values.fold(Double::default(), Double::plus)
}

fn dot(a: &[f64], b: &[Double]) -> Double {
    sum(a.iter().zip(b).map(|(&x, &y)| Double::of(x).times(y)))
}

/// One task on integer points, with its kernels' exact values.
struct Case {
    n: usize,
    points: Vec<f64>,
    targets: Vec<f64>,
    machine: MachineSpec,
    sharing: SharingSpec,
    /// For each kernel the first column, one past the last, degree and constant of (x'z + constant)^degree.
    kernels: Vec<(usize, usize, i32, f64)>,
    normalize: bool,
}

const COLUMNS: usize = 4;

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let n = 6 + random.below(50);
        // x'z below 2⁵³ to the power of the degree: values are exact.
        let size = [3.0, 30.0, 500.0][random.below(3)];
        let points: Vec<f64> = (0..n * COLUMNS)
            .map(|_| (size * (2.0 * random.uniform() - 1.0)).round())
            .collect();
        let wide = 10.0_f64.powf(6.0 * random.uniform());
        let cs = [10.0_f64.powf(4.0 * random.uniform() - 3.0), 1.0, wide];
        let c = cs[random.below(3)];
        let machine = match random.below(6) {
            0..=1 => MachineSpec::svc(c),
            2 => MachineSpec::logistic(c),
            3 => MachineSpec::svr(c, 0.1),
            4 => MachineSpec::krr(10.0_f64.powf(5.0 * random.uniform() - 3.0)),
            _ if random.below(2) == 0 => MachineSpec::svdd((1.0 / n as f64).max(random.uniform())),
            _ => MachineSpec::one_class([1.0, 0.5, 0.1][random.below(3)]),
        };
        let response = |i: usize| points[i * COLUMNS] - 0.5 * points[i * COLUMNS + 2];
        let targets: Vec<f64> = (0..n)
            .map(|i| match machine.name() {
                "svc" | "logistic" => {
                    let noisy = response(i) / size + 2.0 * random.uniform() - 1.0;
                    if i == 0 || (i > 1 && noisy > 0.0) {
                        1.0
                    } else {
                        -1.0
                    }
                }
                _ => response(i).round() + (3.0 * random.uniform()).round(),
            })
            .collect();
        let degree = if size < 100.0 { 1 + random.below(3) } else { 1 };
        let kernels = (0..=random.below(3))
            .map(|number| {
                let first = random.below(COLUMNS - 1);
                let last = first + 1 + random.below(COLUMNS - first);
                let degree = if number == 0 { degree } else { 1 };
                (
                    first,
                    last,
                    i32::try_from(degree).unwrap(),
                    random.below(2) as f64,
                )
            })
            .collect();
        let sharing = match (machine.name(), random.below(3)) {
            ("svdd", _) | (_, 0) => SharingSpec::simplex(),
            (_, 1) => SharingSpec::common(1.0, 1.0),
            _ => SharingSpec::common(2.0, 1.0),
        };
        Self {
            n,
            points,
            targets,
            machine,
            sharing,
            kernels,
            normalize: false,
        }
    }

    fn views(&self) -> Vec<KernelView> {
        let spec = |&(first, last, degree, constant): &(usize, usize, i32, f64)| {
            let columns: Vec<String> = (first..last).map(|c| format!("x{}", c + 1)).collect();
            format!(
                "poly:degree={degree},gamma=1,coef0={constant}@{}",
                columns.join(",")
            )
        };
        self.kernels
            .iter()
            .flat_map(|kernel| parse_kernels(&spec(kernel)).unwrap())
            .collect()
    }

    fn problem(&self, solver: SolverSpec) -> Problem {
        let columns = (1..=COLUMNS).map(|c| format!("x{c}")).collect();
        let samples = Samples::with_columns(self.points.clone(), self.n, columns).unwrap();
        let targets = match self.machine.name() {
            "svc" | "logistic" => Targets::Labels(self.targets.clone()),
            "svr" | "krr" => Targets::Values(self.targets.clone()),
            _ => Targets::Unlabelled,
        };
        let spec = ProblemSpec {
            normalize: self.normalize.into(),
            solver,
            ..ProblemSpec::new(self.views(), self.machine.clone(), self.sharing.clone())
        };
        Problem::new(spec, vec![samples], vec![Task::new("task", targets)]).unwrap()
    }

    /// K_m, whole numbers below 2⁵³.
    fn grams(&self) -> Vec<Vec<f64>> {
        let value = |&(first, last, degree, constant): &(usize, usize, i32, f64), i, j| {
            let row = |i: usize| &self.points[i * COLUMNS + first..i * COLUMNS + last];
            let product: f64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
            (product + constant).powi(degree)
        };
        let n = self.n;
        let gram = |kernel| (0..n * n).map(|k| value(kernel, k / n, k % n)).collect();
        let grams: Vec<Vec<f64>> = self.kernels.iter().map(gram).collect();
        assert!(grams.iter().flatten().all(|value| value.abs() < 9e15));
        grams
    }

    /// κ(½ β'K_mβ − c d_m'β) for each kernel.
    fn sensitivities(&self, grams: &[Vec<f64>], beta: &[f64]) -> Vec<Double> {
        let n = self.n;
        let beta: Vec<Double> = beta.iter().map(|&b| Double::of(b)).collect();
        grams
            .iter()
            .map(|gram| {
                let square =
                    sum((0..n).map(|i| beta[i].times(dot(&gram[i * n..(i + 1) * n], &beta))));
                match self.machine.name() {
                    "svc" | "logistic" | "svr" => Double::of(0.5).times(square),
                    "svdd" => {
                        let along = (0..n).map(|i| Double::of(gram[i * n + i]).times(beta[i]));
                        square.minus(sum(along))
                    }
                    _ => square,
                }
            })
            .collect()
    }

    /// The part of ḡ without θ, after a look at whether β is in Ω.
    fn constant(&self, beta: &[f64]) -> Double {
        let linear = |weights: &[f64]| {
            sum(weights
                .iter()
                .zip(beta)
                .map(|(&y, &b)| Double::of(y).times(Double::of(b))))
        };
        let total: f64 = beta.iter().sum();
        let size: f64 = beta.iter().map(|b| b.abs()).sum();
        let within = |low: f64, high: f64, i: usize| {
            let slack = 1e-12 * (high - low);
            assert!(
                beta[i] >= low - slack && beta[i] <= high + slack,
                "β_{i} = {}",
                beta[i]
            );
        };
        match self.machine.name() {
            name @ ("svc" | "logistic") => {
                let c = self.machine.number("C");
                for i in 0..self.n {
                    let bound = c * self.targets[i];
                    within(bound.min(0.0), bound.max(0.0), i);
                }
                assert!(total.abs() <= 1e-9 * size, "Σβ = {total}");
                if name == "svc" {
                    linear(&self.targets)
                } else {
                    let prices = vec![c; self.n];
                    Double::of(logistic::entropy(&self.targets, &prices, beta))
                }
            }
            "svr" => {
                let (c, epsilon) = (self.machine.number("C"), self.machine.number("epsilon"));
                for i in 0..self.n {
                    within(-c, c, i);
                }
                assert!(total.abs() <= 1e-9 * size, "Σβ = {total}");
                let length = sum(beta.iter().map(|b| Double::of(b.abs())));
                linear(&self.targets).minus(Double::of(epsilon).times(length))
            }
            "krr" => {
                let lambda = self.machine.number("lambda");
                let square = sum(beta.iter().map(|&b| Double::of(b).times(Double::of(b))));
                Double::of(2.0)
                    .times(linear(&self.targets))
                    .minus(Double::of(lambda).times(square))
            }
            "svdd" => {
                let c = self.machine.number("C");
                for i in 0..self.n {
                    within(0.0, c.max(1.0 / self.n as f64), i);
                }
                assert!((total - 1.0).abs() <= 1e-9, "Σβ = {total}");
                Double::default()
            }
            "ocsvm" => {
                let nu = self.machine.number("nu");
                for i in 0..self.n {
                    within(0.0, 1.0 / (nu * self.n as f64), i);
                }
                assert!((total - 1.0).abs() <= 1e-9, "Σβ = {total}");
                Double::default()
            }
            _ => unreachable!("all machines are above"),
        }
    }

    /// Σ of losses and ½‖w‖² at θ, β, b.
    fn primal(&self, grams: &[Vec<f64>], theta: &[f64], beta: &[f64], offset: f64) -> f64 {
        let n = self.n;
        let exact: Vec<Double> = beta.iter().map(|&b| Double::of(b)).collect();
        let combined = |row: &dyn Fn(&[f64]) -> Double| {
            sum(grams
                .iter()
                .zip(theta)
                .map(|(gram, &t)| Double::of(t).times(row(gram))))
        };
        let f: Vec<Double> = (0..n)
            .map(|i| combined(&|gram| dot(&gram[i * n..(i + 1) * n], &exact)))
            .collect();
        let square = sum((0..n).map(|i| exact[i].times(f[i])));
        let decision = |i: usize| f[i].plus(Double::of(offset));
        let losses = |loss: &dyn Fn(usize) -> Double| sum((0..n).map(loss));
        let half = Double::of(0.5).times(square);
        let value = match self.machine.name() {
            "svc" => {
                let c = self.machine.number("C");
                let hinge = |i: usize| {
                    let margin = Double::of(self.targets[i]).times(decision(i));
                    Double::of(1.0).minus(margin).positive()
                };
                half.plus(Double::of(c).times(losses(&hinge)))
            }
            "logistic" => {
                let c = self.machine.number("C");
                let loss = |i: usize| {
                    let margin = Double::of(self.targets[i]).times(decision(i)).value();
                    Double::of((-margin).max(0.0) + (-margin.abs()).exp().ln_1p())
                };
                half.plus(Double::of(c).times(losses(&loss)))
            }
            "svr" => {
                let (c, epsilon) = (self.machine.number("C"), self.machine.number("epsilon"));
                let tube = |i: usize| {
                    let residual = Double::of(self.targets[i]).minus(decision(i));
                    let length = if residual.0 < 0.0 {
                        Double::default().minus(residual)
                    } else {
                        residual
                    };
                    length.minus(Double::of(epsilon)).positive()
                };
                half.plus(Double::of(c).times(losses(&tube)))
            }
            "krr" => {
                let lambda = self.machine.number("lambda");
                let squared = |i: usize| {
                    let residual = Double::of(self.targets[i]).minus(f[i]);
                    residual.times(residual)
                };
                square.plus(Double::of(1.0 / lambda).times(losses(&squared)))
            }
            // R² + C Σ(distance² − R²)₊ with R² = 2b + β'Kβ.
            "svdd" => {
                let c = self.machine.number("C");
                let radius = Double::of(2.0 * offset).plus(square);
                let outside = |i: usize| {
                    let own = combined(&|gram| Double::of(gram[i * n + i]));
                    let distance = own.minus(Double::of(2.0).times(f[i])).plus(square);
                    distance.minus(radius).positive()
                };
                radius.plus(Double::of(c.max(1.0 / n as f64)).times(losses(&outside)))
            }
            // ‖w‖² − 2ρ + 2/(νn) Σ(ρ − f)₊ with ρ = −b; J is its negative maximum, −α'Kα.
            "ocsvm" => {
                let nu = self.machine.number("nu");
                let outside = |i: usize| Double::default().minus(decision(i)).positive();
                let each = 2.0 / (nu * n as f64);
                square
                    .plus(Double::of(2.0 * offset))
                    .plus(Double::of(each).times(losses(&outside)))
            }
            _ => unreachable!("all machines are above"),
        };
        value.value()
    }

    /// D(β) = (part without θ) − max over θ of ⟨s, θ⟩.
    fn dual(&self, grams: &[Vec<f64>], beta: &[f64]) -> f64 {
        let s = self.sensitivities(grams, beta);
        let constant = self.constant(beta);
        let positive = || s.iter().map(|s| s.value().max(0.0));
        match (self.sharing.name(), self.sharing.number("p")) {
            ("simplex", _) => {
                let largest = s
                    .iter()
                    .copied()
                    .reduce(|a, b| if a.0 >= b.0 { a } else { b });
                constant.minus(largest.unwrap()).value()
            }
            (_, 1.0) => constant.value() - positive().fold(0.0, f64::max),
            _ => constant.value() - positive().map(|s| s * s).sum::<f64>().sqrt(),
        }
    }

    /// What the model claims, checked; `None` where it is out by no more than is printed, else what is wrong.
    fn check(&self, model: &Model) -> Option<String> {
        let grams = self.grams();
        let outcome = model.outcome();
        let task = &model.tasks()[0];
        let positions = &model.support_sets()[task.set].positions;
        let mut beta = vec![0.0; self.n];
        for (&row, &value) in task.support.iter().zip(&task.beta) {
            beta[positions[row]] = value;
        }
        let mut witness = beta.clone();
        if let Some(known) = &task.witness {
            witness.fill(0.0);
            for (&row, &value) in known.rows.iter().zip(&known.beta) {
                witness[row] = value;
            }
        }
        let theta = model.weights().row(0);
        let norm = match self.sharing.number("p") {
            2.0 => theta.iter().map(|t| t * t).sum::<f64>().sqrt(),
            _ => theta.iter().sum(),
        };
        let primal = self.primal(&grams, theta, &beta, task.offset);
        self.constant(&beta);
        let dual = self.dual(&grams, &witness);
        let size = outcome.objective.abs().max(outcome.bound.abs());
        // The last digits of the stated numbers themselves, and of the sum Σβ = s.
        let slack = 1e-10 * size + 1e-18 * self.size(&grams, &beta);
        let claim = (outcome.objective - outcome.bound) / outcome.objective.abs().max(1e-300);
        let problems = [
            (norm > 1.0 + 1e-9, "θ is outside Ψ"),
            (
                primal > outcome.objective + slack,
                "the machine is worse than claimed",
            ),
            (
                dual < outcome.bound - slack,
                "the witness proves less than claimed",
            ),
            (
                outcome.bound > outcome.objective + slack,
                "the bound is above the objective",
            ),
            (
                outcome.gap < claim - 1e-10 && outcome.gap > 0.0,
                "the gap is not the gap",
            ),
            (
                outcome.status == Status::Converged && outcome.gap > outcome.tolerance.unwrap(),
                "converged beyond the tolerance",
            ),
            (
                outcome.gap == 0.0 && (primal - dual).abs() > 1e-9 * self.size(&grams, &beta),
                "no gap, but there is one",
            ),
        ];
        let found: Vec<&str> = problems
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, what)| *what)
            .collect();
        (!found.is_empty()).then(|| {
            format!(
                "{found:?}: primal {primal:e}, objective {:e}, dual {dual:e}, bound {:e}, gap {:e}, {:?}; n = {}, {:?}, {:?}, {:?}",
                outcome.objective, outcome.bound, outcome.gap, outcome.status, self.n, self.machine, self.sharing, self.kernels
            )
        })
    }

    /// The size of what is added up in the objective.
    fn size(&self, grams: &[Vec<f64>], beta: &[f64]) -> f64 {
        let n = self.n;
        let largest = |gram: &Vec<f64>| (0..n).map(|i| gram[i * n + i]).fold(0.0, f64::max);
        let length: f64 = beta.iter().map(|b| b.abs()).sum();
        length * length * grams.iter().map(largest).fold(0.0, f64::max)
    }
}

fn run() -> Fitting<'static> {
    Fitting {
        max_passes: 200,
        ..Fitting::default()
    }
}

fn epf() -> SolverSpec {
    SolverSpec::Epf(Epf::default())
}

/// Unnormalised kernels with values to 1e6 and beyond, low rank, C to 1e6: never a false certificate. A fit may stall there; it is counted.
#[test]
fn large_values_low_rank_and_large_c_never_have_a_false_certificate() {
    let (mut wrong, mut stalled) = (Vec::new(), Vec::new());
    let cases = 300;
    for seed in 0..cases {
        let case = Case::new(seed);
        let model = case.problem(SolverSpec::Newton).fit(&mut run()).unwrap();
        wrong.extend(
            case.check(&model)
                .map(|problem| format!("seed {seed}: {problem}")),
        );
        if model.outcome().status == Status::Stalled {
            stalled.push((seed, model.outcome().gap));
        }
    }
    println!("{} of {cases} stalled: {stalled:?}", stalled.len());
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        stalled.len() as u64 * 20 <= cases,
        "{} of {cases} stalled",
        stalled.len()
    );
}

/// The machine that is saved is the certified one, wherever the fit was stopped.
#[test]
fn early_ends_keep_the_certified_machine() {
    let mut wrong = Vec::new();
    for seed in 0..200 {
        let case = Case::new(1000 + seed);
        for solver in [SolverSpec::Newton, epf()] {
            let limits = [
                (Some(Duration::ZERO), 200),
                (Some(Duration::from_micros(40 * seed)), 200),
                (None, 1),
                (None, 2),
                (None, 200),
            ];
            for (time_limit, max_passes) in limits {
                let mut run = Fitting {
                    time_limit,
                    max_passes,
                    ..run()
                };
                let model = case.problem(solver.clone()).fit(&mut run).unwrap();
                wrong.extend(case.check(&model).map(|problem| {
                    format!("seed {seed}, {solver:?}, {time_limit:?}, {max_passes}: {problem}")
                }));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Σβ = 0 wherever an SVR is stopped: its two variables a sample are large, with little left of both, where interior points have just begun.
#[test]
fn the_sum_of_beta_holds_wherever_an_svr_is_stopped() {
    let cases = (1000..1200).map(Case::new);
    for case in cases.filter(|case| case.machine.name() == "svr") {
        for micros in (40..400).step_by(40) {
            let mut run = Fitting {
                time_limit: Some(Duration::from_micros(micros)),
                ..run()
            };
            let model = case.problem(SolverSpec::Newton).fit(&mut run).unwrap();
            assert_eq!(case.check(&model), None);
        }
    }
}

/// Linear kernels on few columns with large C: newton converges wherever Algorithm 1 does, and to the same optimum.
#[test]
fn newton_converges_on_low_rank_kernels_with_large_c() {
    let mut lost = Vec::new();
    for seed in 0..100 {
        let mut random = Random::new(77 + seed);
        let mut case = Case::new(2000 + seed);
        case.machine = match random.below(4) {
            0 => MachineSpec::svr(10.0_f64.powf(1.0 + 3.0 * random.uniform()), 0.1),
            _ => MachineSpec::svc(10.0_f64.powf(1.0 + 3.0 * random.uniform())),
        };
        case.n = 30 + random.below(50);
        case.points = (0..case.n * COLUMNS)
            .map(|_| (10.0 * random.normal()).round())
            .collect();
        let labels = case.machine.name() == "svc";
        case.targets = (0..case.n)
            .map(|i| {
                let value = case.points[i * COLUMNS] + 5.0 * random.normal();
                if !labels {
                    value.round()
                } else if i == 0 || (i > 1 && value > 0.0) {
                    1.0
                } else {
                    -1.0
                }
            })
            .collect();
        for kernel in &mut case.kernels {
            kernel.2 = 1;
        }
        case.sharing = SharingSpec::common([1.0, 2.0][random.below(2)], 1.0);
        case.normalize = seed % 4 == 3;
        let newton = case.problem(SolverSpec::Newton).fit(&mut run()).unwrap();
        let outcome = newton.outcome();
        if !case.normalize {
            assert_eq!(case.check(&newton), None);
        }
        if outcome.status != Status::Converged {
            let epf = case.problem(epf()).fit(&mut run()).unwrap();
            lost.push(format!(
                "seed {seed}: newton {:?} {:e}, epf {:?} {:e}; {:?} {:?} {:?} normalised {}",
                outcome.status,
                outcome.gap,
                epf.outcome().status,
                epf.outcome().gap,
                case.machine,
                case.kernels,
                case.sharing,
                case.normalize
            ));
        }
    }
    assert!(lost.is_empty(), "{}:\n{}", lost.len(), lost.join("\n"));
}

/// With Gram matrices in single precision the certificate is of the kernels in double precision.
#[test]
fn single_precision_is_certified_in_double() {
    let mut wrong = Vec::new();
    let mut certified = 0;
    for seed in 0..150 {
        let case = Case::new(3000 + seed);
        let problem = case.problem(SolverSpec::Newton);
        let single = Preparation {
            precision: Precision::Single,
            ..Preparation::default()
        };
        let model = problem.prepare(&single).unwrap().fit(&mut run()).unwrap();
        // An optimum of zero is one in either precision.
        if model.outcome().is_rounded {
            assert_eq!(model.outcome().gap, 0.0);
            continue;
        }
        certified += 1;
        wrong.extend(
            case.check(&model)
                .map(|problem| format!("seed {seed}: {problem}")),
        );
    }
    assert!(certified > 100, "{certified}");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
