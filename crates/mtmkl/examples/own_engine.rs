//! Engines written outside the crate: the solver asks for J(θ) and its derivatives, and does not care who answers.
//!
//! 1. A general semi-infinite problem, min over θ in Ψ of Σ_t max over a in A_t of (c_a − ⟨s_a, θᵗ⟩): state what the worst a is, and the
//!    solvers of the paper and ours do the rest, with a certificate.
//! 2. Kernel ridge regression by a Cholesky factorisation of one's own, which yields an ordinary model.
//!
//! Run it with `cargo run --release --example own_engine`.

use mtmkl::engine::{Curvature, Engine, Evaluation, Fitted, Mixture, Request};
use mtmkl::grid::{Grid, Shape};
use mtmkl::kernel::parse_kernels;
use mtmkl::machine::MachineSpec;
use mtmkl::sharing::SharingSpec;
use mtmkl::solver::{Epf, Newton, Solver};
use mtmkl::{Error, Fitting, GivenGram, Problem, ProblemSpec, Result, Run, Samples, Targets, Task};

/// J_t(θ) = max over some scenarios of (cost − ⟨savings, θ⟩).
struct Scenarios {
    /// For each task, cost and savings of its scenarios.
    tasks: Vec<Vec<(f64, Vec<f64>)>>,
    evaluations: usize,
}

impl Engine for Scenarios {
    fn shape(&self) -> Shape {
        let kernels = self.tasks[0][0].1.len();
        Shape {
            tasks: self.tasks.len(),
            kernels,
        }
    }

    fn is_concave(&self) -> bool {
        // The worst scenario is found by looking at all of them.
        true
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        self.evaluations += 1;
        let Shape { tasks, kernels } = self.shape();
        let mut found = Evaluation::zeros(self.evaluations, tasks, kernels);
        for (task, scenarios) in self.tasks.iter().enumerate() {
            let value = |(cost, savings): &(f64, Vec<f64>)| cost - dot(savings, theta.row(task));
            let worst = scenarios
                .iter()
                .max_by(|a, b| value(a).total_cmp(&value(b)));
            if let Some(worst) = worst {
                found.values[task] = value(worst);
                let out = found.sensitivities.row_mut(task);
                out.copy_from_slice(&worst.1);
            }
        }
        // A maximum of straight lines does not bend; what other evaluations said makes the model of J.
        let flat = Curvature {
            rank: 0,
            factor: Vec::new(),
            span: None,
        };
        found.curvature = request.curvature.then(|| vec![flat; tasks]);
        Ok(found)
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        // There are none: nothing is asked for but the certificate.
        let none = Fitted {
            beta: Vec::new(),
            offset: 0.0,
        };
        Ok(vec![none; numbers.len()])
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        Ok(vec![Vec::new(); mixtures.len()])
    }
}

/// max over α of 2α'y − α'(λ + K)α for one task, K = Σ_m θ_m K_m.
struct Ridge {
    grams: Vec<Vec<f64>>,
    targets: Vec<f64>,
    lambda: f64,
    /// α of each evaluation. An engine with much to remember would look at what `keep` names.
    answers: Vec<Vec<f64>>,
}

impl Ridge {
    fn answer(&self, number: usize) -> Result<&[f64]> {
        let answer = self.answers.get(number.wrapping_sub(1));
        let forgotten = || Error::Engine(format!("there was no evaluation {number}"));
        answer.map(Vec::as_slice).ok_or_else(forgotten)
    }
}

impl Engine for Ridge {
    fn shape(&self) -> Shape {
        Shape {
            tasks: 1,
            kernels: self.grams.len(),
        }
    }

    fn is_concave(&self) -> bool {
        true
    }

    fn evaluate(&mut self, theta: &Grid, request: &Request) -> Result<Evaluation> {
        let n = self.targets.len();
        let kernels = self.grams.len();
        let mut matrix = vec![0.0; n * n];
        for (gram, weight) in self.grams.iter().zip(theta.row(0)) {
            for (sum, value) in matrix.iter_mut().zip(gram) {
                *sum += weight * value;
            }
        }
        for i in 0..n {
            matrix[i * n + i] += self.lambda;
        }
        let factor = cholesky(&matrix, n);
        let alpha = solve_upper(&factor, n, &solve_lower(&factor, n, &self.targets));
        // r = y − (λ + K)α bounds what is left: J − ḡ(α) = r'(λ + K)⁻¹r ≤ r'r/λ.
        let residual: Vec<f64> = (0..n)
            .map(|i| self.targets[i] - dot(&matrix[i * n..(i + 1) * n], &alpha))
            .collect();
        let images: Vec<Vec<f64>> = (self.grams.iter())
            .map(|gram| gram.chunks_exact(n).map(|row| dot(row, &alpha)).collect())
            .collect();
        self.answers.push(alpha.clone());
        let mut found = Evaluation::zeros(self.answers.len(), 1, kernels);
        for (s, image) in found.sensitivities.row_mut(0).iter_mut().zip(&images) {
            *s = dot(&alpha, image);
        }
        let constant = 2.0 * dot(&alpha, &self.targets) - self.lambda * dot(&alpha, &alpha);
        found.values[0] = constant - dot(found.sensitivities.row(0), theta.row(0));
        found.gaps[0] = dot(&residual, &residual) / self.lambda;
        // What rounding can do, about: √n last digits of the sizes added up.
        found.noises[0] = f64::EPSILON * (n as f64).sqrt() * constant.abs();
        if request.curvature {
            // H_mn = 2 (K_mα)'(λ + K)⁻¹(K_nα) = F'F with F = √2 L⁻¹[K_1α … K_Mα].
            let columns: Vec<Vec<f64>> = (images.iter())
                .map(|image| solve_lower(&factor, n, image))
                .collect();
            let rows = (0..n).flat_map(|i| columns.iter().map(move |column| column[i]));
            let factor = rows.map(|value| 2.0_f64.sqrt() * value).collect();
            found.curvature = Some(vec![Curvature {
                rank: n,
                factor,
                span: None,
            }]);
        }
        Ok(found)
    }

    fn machines(&mut self, numbers: &[usize]) -> Result<Vec<Fitted>> {
        let machine = |&number: &usize| {
            Ok(Fitted {
                beta: self.answer(number)?.to_vec(),
                offset: 0.0,
            })
        };
        numbers.iter().map(machine).collect()
    }

    fn mixtures(&mut self, mixtures: &[Mixture]) -> Result<Vec<Vec<f64>>> {
        let mix = |mixture: &Mixture| {
            let mut sum = vec![0.0; self.targets.len()];
            for (number, weight) in mixture {
                for (sum, value) in sum.iter_mut().zip(self.answer(*number)?) {
                    *sum += weight * value;
                }
            }
            Ok(sum)
        };
        mixtures.iter().map(mix).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// L with LL' = A, row by row.
fn cholesky(matrix: &[f64], n: usize) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let known = dot(&l[i * n..i * n + j], &l[j * n..j * n + j]);
            let rest = matrix[i * n + j] - known;
            l[i * n + j] = if i == j {
                rest.sqrt()
            } else {
                rest / l[j * n + j]
            };
        }
    }
    l
}

fn solve_lower(l: &[f64], n: usize, right: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(n);
    for i in 0..n {
        let known = dot(&l[i * n..i * n + i], &x);
        x.push((right[i] - known) / l[i * n + i]);
    }
    x
}

fn solve_upper(l: &[f64], n: usize, right: &[f64]) -> Vec<f64> {
    let mut x = right.to_vec();
    for i in (0..n).rev() {
        x[i] /= l[i * n + i];
        for j in 0..i {
            x[j] -= l[i * n + j] * x[i];
        }
    }
    x
}

/// Numbers that look like chance, in \[0, 1).
fn some(count: usize, seed: usize) -> Vec<f64> {
    let number = |i: usize| ((i * i * 31 + i * 17 + seed * 101) % 997) as f64 / 997.0;
    (0..count).map(number).collect()
}

#[allow(clippy::print_stdout, reason = "an example shows what it found")]
fn main() -> Result<()> {
    // Two tasks, three things to spend on, five scenarios each; the budgets are shared by the tasks.
    let task = |seed: usize| -> Vec<(f64, Vec<f64>)> {
        let savings = some(15, seed);
        let scenario = |number: usize| (1.0, savings[3 * number..3 * number + 3].to_vec());
        (0..5).map(scenario).collect()
    };
    let tasks = vec![task(1), task(2)];
    let sharing = SharingSpec::group(1.0, 1.0, 1.0);
    let sharing = sharing.build(Shape {
        tasks: 2,
        kernels: 3,
    })?;
    let solvers: [(&str, &dyn Solver); 2] = [("newton", &Newton), ("epf", &Epf::default())];
    for (name, solver) in solvers {
        let mut engine = Scenarios {
            tasks: tasks.clone(),
            evaluations: 0,
        };
        let mut run = Run {
            tolerance: 1e-6,
            max_passes: 200,
            ..Run::default()
        };
        let solution = solver.solve(&mut engine, &sharing, None, &mut run)?;
        println!(
            "scenarios by {name}: {:.6} ≤ J* ≤ {:.6} after {} passes ({})",
            solution.bound,
            solution.objective,
            solution.trace.len(),
            solution.status.name()
        );
    }

    // A model by one's own engine, and the one of this crate.
    let n = 30;
    let gram = |columns: usize| -> Vec<f64> {
        let x = some(n * columns, columns);
        let row = |i: usize| &x[i * columns..(i + 1) * columns];
        (0..n * n).map(|k| dot(row(k / n), row(k % n))).collect()
    };
    let grams = vec![gram(2), gram(7)];
    let targets = some(n, 5);
    let given = ["two", "seven"].iter().zip(&grams);
    let given = given.map(|(name, values)| GivenGram {
        name: (*name).to_string(),
        values: values.clone().into(),
    });
    let samples = Samples::from_grams(n, given.collect())?;
    let mut kernels = parse_kernels("precomputed:name=two")?;
    kernels.extend(parse_kernels("precomputed:name=seven")?);
    let machine = MachineSpec::krr(0.5);
    let mut spec = ProblemSpec::new(kernels, machine, SharingSpec::simplex());
    spec.normalize = false.into();
    let task = Task::new("task", Targets::Values(targets.clone()));
    let problem = Problem::new(spec, vec![samples], vec![task])?;
    let mut engine = Ridge {
        grams,
        targets,
        lambda: 0.5,
        answers: Vec::new(),
    };
    let mut fitting = Fitting {
        tolerance: 1e-8,
        ..Fitting::default()
    };
    let own = problem.fit_on(&mut engine, &mut fitting)?;
    let ours = problem.fit(&mut fitting)?;
    for (name, model) in [("an engine of one's own", &own), ("the crate's", &ours)] {
        let outcome = model.outcome();
        println!(
            "ridge by {name}: J = {:.8}, gap {:.1e}, weights {:.4?}",
            outcome.objective,
            outcome.gap,
            model.weights().row(0)
        );
    }
    assert!((own.outcome().objective - ours.outcome().objective).abs() < 1e-6);
    Ok(())
}
