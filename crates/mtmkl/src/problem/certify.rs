//! What machines and a witness prove in double precision, from the rows alone: the certificate of a fit whose Gram matrices were
//! rounded, with nothing of size n² kept.
//!
//! For θ in Ψ, any β and any b per task, ḡ being concave in β,
//!
//! J* ≤ J(θ) ≤ Σ_t P_t, P_t = ḡ(β, θ) + κ max over β' in Ω of ⟨g, β' − β⟩, g = q + c Σ_m θ_m d_m − Kβ,
//!
//! where the maximum over a box with Σβ' = s is at most Σ_v max((g_v − b)(u_v − β_v), (g_v − b)(l_v − β_v)) + b (s − Σβ): the primal objective
//! of the machine with the offset b. With a ridge, P_t = ḡ(β, θ) + ½κ Σ_i r_i²/ρ_i, r = g − ρβ, since (K + ρ)⁻¹ ≼ ρ⁻¹. And for
//! any β̂ in Ω,
//!
//! J* ≥ D(β̂) = Σ_t κ ( q'β̂ − ½ Σ_i ρ_i β̂_i² ) − σ_Ψ(s(β̂)), s_m = κ ( ½ β̂'K_mβ̂ − c d_m'β̂ ).

use rayon::prelude::*;

use super::Problem;
use crate::data::Rows;
use crate::engine::Fitted;
use crate::error::Result;
use crate::gram::CrossKernels;
use crate::grid::{Grid, dot};
use crate::ledger::Ledger;
use crate::machine::{Conjugate, Dual};
use crate::vector::rounding;

/// Rows whose kernel values are there at a time, for each thread.
const BLOCK: usize = 128;

/// Bounds on J* that hold for the kernels as computed in double precision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Certified {
    /// Σ_t P_t ≥ J(θ).
    pub(super) objective: f64,
    /// D(β̂) ≤ J*, where β̂ is feasible.
    pub(super) bound: f64,
}

impl Problem {
    /// Both bounds, by the threads of the caller's pool: `fitted` has β and b by task, `witness` a feasible β̂ by task, each one number a
    /// sample of the task. `None` where a kernel cannot be made from rows.
    ///
    /// # Errors
    /// When a kernel's columns are not there; a checked problem has them.
    pub(super) fn certify(
        &self,
        theta: &Grid,
        fitted: &[Fitted],
        witness: &[Vec<f64>],
    ) -> Result<Option<Certified>> {
        let kernels = &self.spec.kernels;
        if kernels.iter().any(|view| view.kernel.base().is_given()) {
            return Ok(None);
        }
        let mut objective = 0.0;
        let mut constant = 0.0;
        let mut sensitivities = Grid::zeros(self.tasks.len(), kernels.len());
        for group in self.groups() {
            let points: Vec<Point<'_>> = group
                .iter()
                .map(|&task| Point {
                    theta: theta.row(task),
                    beta: &fitted[task].beta,
                    witness: &witness[task],
                })
                .collect();
            let sums = self.sums(group[0], &points)?;
            for ((&task, point), sum) in group.iter().zip(&points).zip(sums) {
                let dual = self
                    .choice
                    .machine
                    .dual(&self.tasks[task], point.beta.len());
                objective += primal(&dual, point.beta, fitted[task].offset, &sum);
                constant += part_without_theta(&dual, point.witness);
                // Less what rounding can do, and so for the sensitivities.
                let digits = rounding(point.witness.len());
                constant -= digits * dual.scale * size_of_linear(&dual, point.witness);
                for (kernel, s) in sensitivities.row_mut(task).iter_mut().enumerate() {
                    let noise = 0.5 * digits * sum.lengths[kernel] * sum.lengths[kernel];
                    let bend = 0.5 * sum.squares[kernel] - dual.diagonal * sum.own[kernel];
                    *s = dual.scale * (bend + noise);
                }
            }
        }
        Ok(Some(Certified {
            objective,
            bound: constant - self.choice.sharing.maximise(&sensitivities).1,
        }))
    }

    /// Tasks with the same rows of the same sample set, together: they share kernel values.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for (number, task) in self.tasks.iter().enumerate() {
            let same = groups.iter_mut().find(|group| {
                let first = &self.tasks[group[0]];
                first.samples == task.samples && first.rows == task.rows
            });
            match same {
                Some(group) => group.push(number),
                None => groups.push(vec![number]),
            }
        }
        groups
    }

    /// What the tasks with the rows of this one need to know about their kernels.
    fn sums(&self, task: usize, points: &[Point<'_>]) -> Result<Vec<Sums>> {
        let task = &self.tasks[task];
        let set = &self.sets[task.samples];
        let n = task.count(set.count());
        let d = set.columns().len();
        let gather = |chosen: &[usize]| -> Vec<f64> {
            let position = |i: &usize| task.rows.position(*i);
            let rows = chosen.iter().map(|i| set.rows().row(position(i)));
            rows.flatten().copied().collect()
        };
        let support: Vec<usize> = (0..n)
            .filter(|&i| points.iter().any(|point| point.is_supported_by(i)))
            .collect();
        let mut place = vec![None; n];
        for (at, &i) in support.iter().enumerate() {
            place[i] = Some(at);
        }
        let on_support: Vec<(Vec<f64>, Vec<f64>)> = points
            .iter()
            .map(|point| {
                let of = |beta: &[f64]| support.iter().map(|&i| beta[i]).collect();
                (of(point.beta), of(point.witness))
            })
            .collect();
        let values = gather(&support);
        let all: Vec<usize> = (0..self.spec.kernels.len()).collect();
        let cross = CrossKernels::new(
            &self.spec.kernels,
            &all,
            set.columns(),
            Rows::new(&values, support.len(), d)?,
            self.spec.normalize,
            &Ledger::default(),
        )?;
        let block = |first: usize| {
            let until = (first + BLOCK).min(n);
            let values = gather(&(first..until).collect::<Vec<usize>>());
            let mut sums = vec![Sums::new(until - first, all.len()); points.len()];
            cross.pieces(Rows::new(&values, until - first, d)?, |piece| {
                for (row, &own) in piece.own.iter().enumerate() {
                    let at = piece.first + row;
                    let i = first + at;
                    let values = &piece.values[row * support.len()..(row + 1) * support.len()];
                    // As in the Gram matrices, k(x, x) is not subject to what cancels in a distance.
                    let error = place[i].map(|at| (at, own - values[at]));
                    let product = |beta: &[f64]| {
                        let exact = error.map_or(0.0, |(at, error)| error * beta[at]);
                        dot(values, beta) + exact
                    };
                    for ((sum, point), (beta, witness)) in
                        sums.iter_mut().zip(points).zip(&on_support)
                    {
                        let weight = point.theta[piece.kernel];
                        if weight != 0.0 {
                            sum.product[at] += weight * product(beta);
                            sum.diagonal[at] += weight * own;
                        }
                        if point.witness[i] != 0.0 {
                            sum.squares[piece.kernel] += point.witness[i] * product(witness);
                            sum.own[piece.kernel] += point.witness[i] * own;
                            sum.lengths[piece.kernel] += point.witness[i].abs() * own.abs().sqrt();
                        }
                    }
                }
            });
            Ok(sums)
        };
        let starts: Vec<usize> = (0..n).step_by(BLOCK).collect();
        let blocks: Vec<Vec<Sums>> = starts.into_par_iter().map(block).collect::<Result<_>>()?;
        // In the order of the blocks, whoever was first.
        let mut sums = vec![Sums::new(0, all.len()); points.len()];
        for block in blocks {
            for (sum, part) in sums.iter_mut().zip(block) {
                sum.extend(part);
            }
        }
        Ok(sums)
    }
}

/// One task's part of what is to be certified.
struct Point<'a> {
    theta: &'a [f64],
    beta: &'a [f64],
    witness: &'a [f64],
}

impl Point<'_> {
    fn is_supported_by(&self, i: usize) -> bool {
        self.beta[i] != 0.0 || self.witness[i] != 0.0
    }
}

/// Sums over kernel values for one task, on some or all of its samples.
#[derive(Debug, Clone)]
struct Sums {
    /// K(θ)β by sample.
    product: Vec<f64>,
    /// Σ_m θ_m d_m by sample.
    diagonal: Vec<f64>,
    /// β̂'K_mβ̂ by kernel.
    squares: Vec<f64>,
    /// d_m'β̂ by kernel.
    own: Vec<f64>,
    /// Σ_i |β̂_i| √d_mi by kernel: the root of the sizes that are added up in β̂'K_mβ̂.
    lengths: Vec<f64>,
}

impl Sums {
    fn new(samples: usize, kernels: usize) -> Self {
        Self {
            product: vec![0.0; samples],
            diagonal: vec![0.0; samples],
            squares: vec![0.0; kernels],
            own: vec![0.0; kernels],
            lengths: vec![0.0; kernels],
        }
    }

    /// Those of further samples.
    fn extend(&mut self, part: Self) {
        self.product.extend(part.product);
        self.diagonal.extend(part.diagonal);
        crate::vector::axpy(1.0, &part.squares, &mut self.squares);
        crate::vector::axpy(1.0, &part.own, &mut self.own);
        crate::vector::axpy(1.0, &part.lengths, &mut self.lengths);
    }
}

/// β by variable: of two variables of a sample, one for each sign, each has its part.
fn by_variable(dual: &Dual, beta: &[f64]) -> Vec<f64> {
    let n = beta.len();
    match &dual.conjugate {
        Conjugate::Box { upper, .. } if upper.len() > n => (0..upper.len())
            .map(|v| {
                if upper[v] > 0.0 {
                    beta[dual.variables.sample_of(v)].max(0.0)
                } else {
                    beta[dual.variables.sample_of(v)].min(0.0)
                }
            })
            .collect(),
        _ => beta.to_vec(),
    }
}

/// κ ( q'β − Σ_v φ_v(β_v) )
fn part_without_theta(dual: &Dual, beta: &[f64]) -> f64 {
    let beta = by_variable(dual, beta);
    dual.scale * (dot(&dual.linear, &beta) - dual.penalty(&beta))
}

/// Σ_v |q_v β_v| + |φ_v(β_v)|
fn size_of_linear(dual: &Dual, beta: &[f64]) -> f64 {
    let beta = by_variable(dual, beta);
    let pairs = beta.iter().zip(&dual.linear);
    pairs.map(|(beta, q)| (beta * q).abs()).sum::<f64>() + dual.size_of_penalty(&beta)
}

/// P_t at β and b.
fn primal(dual: &Dual, beta: &[f64], offset: f64, sums: &Sums) -> f64 {
    let n = beta.len();
    let straight = dual.diagonal * dot(&sums.diagonal, beta);
    let bend = 0.5 * dot(&sums.product, beta);
    let value = part_without_theta(dual, beta) + dual.scale * (straight - bend);
    let slope = |v: usize| {
        let i = dual.variables.sample_of(v);
        dual.linear[v] + dual.diagonal * sums.diagonal[i] - sums.product[i]
    };
    // What rounding can do to a slope, and to the value.
    let roots: Vec<f64> = sums.diagonal.iter().map(|d| d.abs().sqrt()).collect();
    let pairs = beta.iter().zip(&roots);
    let length: f64 = pairs.map(|(beta, root)| beta.abs() * root).sum();
    let error = |v: usize| {
        let digits = f64::EPSILON * (dual.linear[v].abs() + offset.abs());
        rounding(n) * roots[dual.variables.sample_of(v)] * length + digits
    };
    let noise = rounding(n) * (size_of_linear(dual, beta) + 0.5 * length * length);
    let gap: f64 = match &dual.conjugate {
        Conjugate::Box { lower, upper, sum } => {
            let beta = by_variable(dual, beta);
            let missing = sum - beta.iter().sum::<f64>();
            let ways = (0..beta.len()).map(|v| {
                let (slope, error) = (slope(v) - offset, error(v));
                let grown = (slope + error) * (upper[v] - beta[v]);
                let shrunk = (slope - error) * (lower[v] - beta[v]);
                grown.max(shrunk)
            });
            ways.sum::<f64>() + offset * missing
        }
        Conjugate::Ridge { ridge } => (0..n)
            .map(|i| {
                let residual = (slope(i) - ridge[i] * beta[i]).abs() + error(i);
                0.5 * residual * residual / ridge[i]
            })
            .sum(),
        Conjugate::Smooth { function, sum } => {
            let missing = sum.map_or(0.0, |sum| sum - beta.iter().sum::<f64>());
            let terms = (0..n).map(|i| {
                // φ + φ* − βg is convex in g: it is largest at an end.
                let own = function.value(i, beta[i]);
                let at = |slope: f64| {
                    let (loss, _) = function.conjugate(i, slope);
                    let size = own.abs() + loss.abs() + (beta[i] * slope).abs();
                    own + loss - beta[i] * slope + 4.0 * f64::EPSILON * size
                };
                let (slope, error) = (slope(i) - offset, error(i));
                at(slope - error).max(at(slope + error)).max(0.0)
            });
            terms.sum::<f64>() + (offset * missing).abs()
        }
    };
    value + dual.scale * (gap + noise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Samples, Targets, Task};
    use crate::gram::TaskGrams;
    use crate::kernel::{KernelView, parse_kernels};
    use crate::machine::MachineSpec;
    use crate::model::Model;
    use crate::pool::Pool;
    use crate::problem::{Fitting, Precision, Preparation, Prepared, ProblemSpec};
    use crate::random::Random;
    use crate::sharing::SharingSpec;
    use crate::view::View;

    const MACHINES: [MachineSpec; 5] = [
        MachineSpec::Svc {
            c: 2.0,
            positive_weight: 1.5,
            negative_weight: 0.5,
        },
        MachineSpec::Svr {
            c: 1.0,
            epsilon: 0.1,
        },
        MachineSpec::Krr { lambda: 0.5 },
        MachineSpec::Svdd { c: 0.2 },
        MachineSpec::OneClass { nu: 0.3 },
    ];

    fn kernels() -> Vec<KernelView> {
        [
            "rbf:gamma=0.3|3",
            "linear",
            "poly:degree=2",
            "laplacian",
            "matern32:length=0.7",
            "cosine@f1..f3",
            "chi2@#0,#2",
            "intersection",
        ]
        .iter()
        .flat_map(|spec| parse_kernels(spec).unwrap())
        .collect()
    }

    /// Two sets of rows ≥ 0 away from the origin. Two tasks on all of the first, two on the same part of it, one on another part in another
    /// order, one on all of the second; some with weights.
    fn problem(machine: &MachineSpec, columns: usize, normalize: bool) -> Problem {
        let mut random = Random::new(columns as u64);
        let counts = [150, 40];
        let sets: Vec<Samples> = counts
            .iter()
            .map(|&n| {
                let values = (0..n * columns).map(|_| 1.0 + random.uniform()).collect();
                Samples::new(values, n, columns).unwrap()
            })
            .collect();
        let part: Vec<usize> = (0..counts[0]).filter(|i| i % 3 != 1).collect();
        let other: Vec<usize> = (20..90).rev().collect();
        let views = [
            (0, View::All),
            (0, View::All),
            (0, View::of(part.clone())),
            (0, View::of(part)),
            (0, View::of(other)),
            (1, View::All),
        ];
        let mut tasks = Vec::new();
        for (number, (set, rows)) in views.into_iter().enumerate() {
            let n = rows.count(counts[set]);
            let mut numbers: Vec<f64> = (0..n).map(|_| random.uniform() - 0.5).collect();
            let targets = match machine {
                MachineSpec::Svc { .. } => {
                    for value in &mut numbers {
                        *value = value.signum();
                    }
                    Targets::Labels(numbers)
                }
                MachineSpec::Svr { .. } | MachineSpec::Krr { .. } => Targets::Values(numbers),
                _ => Targets::Unlabelled,
            };
            let mut task = Task::new(format!("task {number}"), targets).on(set);
            task.rows = rows;
            if number % 2 == 1 {
                task.weights = Some((0..n).map(|_| 0.5 + random.uniform()).collect());
            }
            tasks.push(task);
        }
        let sharing = if matches!(machine, MachineSpec::Svdd { .. }) {
            SharingSpec::Tang { beta: 2.0 }
        } else {
            SharingSpec::Pscs {
                p: 2.0,
                q: 1.5,
                radius: 1.0,
            }
        };
        let mut spec = ProblemSpec::new(kernels(), machine.clone(), sharing);
        spec.normalize = normalize;
        Problem::new(spec, sets, tasks).unwrap()
    }

    /// The machines of a model with β for all samples of their tasks.
    fn machines(problem: &Problem, model: &Model) -> Vec<Fitted> {
        let pairs = model.tasks.iter().zip(problem.tasks.iter());
        pairs
            .map(|(fitted, task)| {
                let set = &model.sets[fitted.set];
                let mut all = vec![0.0; set.samples];
                for (&row, &beta) in fitted.support.iter().zip(&fitted.beta) {
                    all[set.positions[row]] = beta;
                }
                Fitted {
                    beta: task.rows.iter(all.len()).map(|row| all[row]).collect(),
                    offset: fitted.offset,
                }
            })
            .collect()
    }

    fn certified(problem: &Problem, theta: &Grid, fitted: &[Fitted]) -> Certified {
        let witness: Vec<Vec<f64>> = fitted.iter().map(|task| task.beta.clone()).collect();
        let pool = Pool::new(2).unwrap();
        let found = pool.install(|| problem.certify(theta, fitted, &witness));
        found.unwrap().unwrap()
    }

    fn assert_close(a: f64, b: f64, tolerance: f64, what: &str) {
        assert!((a - b).abs() <= tolerance * b.abs(), "{what}: {a} and {b}");
    }

    /// What rounding may do is on the safe side: at these points, with terms far larger than their sum, a little more than 1e-11.
    fn assert_safe(upper: f64, lower: f64, what: &str) {
        assert!(
            upper >= lower - 1e-11 * lower.abs(),
            "{what}: {upper} and {lower}"
        );
        assert_close(upper, lower, 1e-8, what);
    }

    /// K(θ) of a task from the Gram matrices, row by row.
    fn matrix(prepared: &Prepared, task: &Task, theta: &[f64]) -> Vec<f64> {
        let view = TaskGrams {
            grams: prepared.grams[task.samples].as_ref(),
            view: &task.rows,
        };
        let weights: Vec<(usize, f64)> = theta.iter().copied().enumerate().collect();
        let all: Vec<usize> = (0..view.count()).collect();
        let mut values = vec![0.0; all.len() * all.len()];
        for (i, row) in values.chunks_exact_mut(all.len()).enumerate() {
            view.entries(i, &all, &weights, row);
        }
        values
    }

    /// The primal objective of the textbooks; for ridge regression, the bound by the residual.
    fn textbook(machine: &MachineSpec, task: &Task, matrix: &[f64], fitted: &Fitted) -> f64 {
        let Fitted { beta, offset: b } = fitted;
        let n = beta.len();
        let f: Vec<f64> = matrix.chunks_exact(n).map(|row| dot(row, beta)).collect();
        let norm = dot(&f, beta);
        let weight = |i: usize| task.weights.as_ref().map_or(1.0, |weights| weights[i]);
        let total: f64 = (0..n).map(weight).sum();
        let (Targets::Labels(y) | Targets::Values(y)) = &task.targets else {
            return match machine {
                MachineSpec::Svdd { c } => {
                    let radius = 2.0 * b + norm;
                    let far = |i: usize| matrix[i * n + i] - 2.0 * f[i] + norm - radius;
                    radius + (0..n).map(|i| c * weight(i) * far(i).max(0.0)).sum::<f64>()
                }
                MachineSpec::OneClass { nu } => {
                    let below = |i: usize| weight(i) * (-b - f[i]).max(0.0);
                    norm + 2.0 * b + 2.0 / (nu * total) * (0..n).map(below).sum::<f64>()
                }
                other => panic!("{other:?} has targets"),
            };
        };
        match machine {
            MachineSpec::Svc {
                c,
                positive_weight,
                negative_weight,
            } => {
                let price = |i: usize| {
                    let class = if y[i] > 0.0 {
                        positive_weight
                    } else {
                        negative_weight
                    };
                    c * class * weight(i)
                };
                let loss = |i: usize| price(i) * (1.0 - y[i] * (f[i] + b)).max(0.0);
                0.5 * norm + (0..n).map(loss).sum::<f64>()
            }
            MachineSpec::Svr { c, epsilon } => {
                let loss = |i: usize| c * weight(i) * ((y[i] - f[i] - b).abs() - epsilon).max(0.0);
                0.5 * norm + (0..n).map(loss).sum::<f64>()
            }
            MachineSpec::Krr { lambda } => (0..n)
                .map(|i| {
                    let ridge = lambda / weight(i);
                    let residual = y[i] - f[i] - ridge * beta[i];
                    beta[i] * (2.0 * y[i] - f[i] - ridge * beta[i]) + residual * residual / ridge
                })
                .sum(),
            other => panic!("{other:?} has no targets"),
        }
    }

    #[test]
    fn the_objective_is_that_of_the_textbooks_at_any_point() {
        for machine in &MACHINES {
            for (columns, normalize) in [(4, false), (4, true), (12, true), (12, false)] {
                let problem = problem(machine, columns, normalize);
                let run = &mut Fitting {
                    tolerance: 0.05,
                    ..Fitting::default()
                };
                let prepared = problem.prepare(&Preparation::default()).unwrap();
                let model = prepared.fit(run).unwrap();
                let mut fitted = machines(&problem, &model);
                for one in &mut fitted {
                    // Away from the best offset: the bound is to hold for the one that is there.
                    one.offset += 0.03;
                }
                let theta = model.weights();
                let expected: f64 = (problem.tasks.iter().zip(&fitted).enumerate())
                    .map(|(number, (task, fitted))| {
                        let matrix = matrix(&prepared, task, theta.row(number));
                        textbook(machine, task, &matrix, fitted)
                    })
                    .sum();
                let found = certified(&problem, theta, &fitted).objective;
                assert_safe(found, expected, &format!("{machine:?}, {columns} columns"));
                // β̂ = β proves D(β) = Σ_t (part without θ) − σ_Ψ(s(β)).
                let mut constant = 0.0;
                let shape = problem.shape();
                let mut sensitivities = Grid::zeros(shape.tasks, shape.kernels);
                for (number, (task, fitted)) in problem.tasks.iter().zip(&fitted).enumerate() {
                    let n = fitted.beta.len();
                    let dual = problem.choice.machine.dual(task, n);
                    constant += part_without_theta(&dual, &fitted.beta);
                    for kernel in 0..shape.kernels {
                        let mut only = vec![0.0; shape.kernels];
                        only[kernel] = 1.0;
                        let matrix = matrix(&prepared, task, &only);
                        let own: f64 = (0..n).map(|i| matrix[i * n + i] * fitted.beta[i]).sum();
                        let rows = matrix.chunks_exact(n).zip(&fitted.beta);
                        let square: f64 = rows.map(|(row, b)| b * dot(row, &fitted.beta)).sum();
                        sensitivities[(number, kernel)] =
                            dual.scale * (0.5 * square - dual.diagonal * own);
                    }
                }
                let expected = constant - problem.sharing().maximise(&sensitivities).1;
                let bound = certified(&problem, theta, &fitted).bound;
                assert_safe(expected, bound, &format!("bound of {machine:?}"));
            }
        }
    }

    #[test]
    fn it_certifies_what_a_fit_says() {
        for machine in &MACHINES {
            for normalize in [false, true] {
                let problem = problem(machine, 4, normalize);
                let run = &mut Fitting {
                    tolerance: 1e-10,
                    ..Fitting::default()
                };
                let model = problem.fit(run).unwrap();
                let outcome = model.outcome();
                let found = certified(&problem, model.weights(), &machines(&problem, &model));
                let what = format!("{machine:?}, {normalize}: {:?}", outcome.status);
                assert_close(found.objective, outcome.objective, 1e-10, &what);
                let size = outcome.objective.abs();
                assert!(found.bound <= outcome.objective + 1e-12 * size, "{what}");
                assert!(outcome.bound <= found.objective + 1e-12 * size, "{what}");
            }
        }
    }

    #[test]
    fn rounded_matrices_are_seen_through() {
        // Machines of a fit on rounded matrices, judged by the rows: bounds on both sides of the optimum in double precision.
        for machine in &MACHINES {
            let problem = problem(machine, 12, true);
            let run = &mut Fitting {
                tolerance: 1e-9,
                ..Fitting::default()
            };
            let exact = problem.fit(run).unwrap().outcome().clone();
            let single = Preparation {
                precision: Precision::Single,
                ..Preparation::default()
            };
            let model = problem.prepare(&single).unwrap().fit(run).unwrap();
            let found = certified(&problem, model.weights(), &machines(&problem, &model));
            let size = exact.objective.abs();
            assert!(found.objective >= exact.bound - 1e-12 * size, "{machine:?}");
            assert!(found.bound <= exact.objective + 1e-12 * size, "{machine:?}");
            assert_close(
                found.objective,
                exact.objective,
                1e-6,
                &format!("{machine:?}"),
            );
        }
    }

    #[test]
    fn it_does_not_depend_on_the_number_of_threads() {
        let problem = problem(&MACHINES[0], 4, true);
        let model = problem.fit(&mut Fitting::default()).unwrap();
        let fitted = machines(&problem, &model);
        let witness: Vec<Vec<f64>> = fitted.iter().map(|task| task.beta.clone()).collect();
        let of = |threads| {
            let certify = || problem.certify(model.weights(), &fitted, &witness);
            Pool::new(threads).unwrap().install(certify).unwrap()
        };
        assert_eq!(of(1), of(3));
    }

    #[test]
    fn what_is_not_made_from_rows_is_not_certified() {
        let gram = crate::data::GivenGram {
            name: "K".into(),
            values: vec![1.0, 0.0, 0.0, 1.0].into(),
        };
        let samples = Samples::from_grams(2, vec![gram]).unwrap();
        let kernels = parse_kernels("precomputed:name=K").unwrap();
        let spec = ProblemSpec::new(kernels, MachineSpec::svc(1.0), SharingSpec::Uniform);
        let task = Task::new("one", Targets::Labels(vec![1.0, -1.0]));
        let problem = Problem::new(spec, vec![samples], vec![task]).unwrap();
        let model = problem.fit(&mut Fitting::default()).unwrap();
        let fitted = machines(&problem, &model);
        let witness = vec![fitted[0].beta.clone()];
        let found = problem.certify(model.weights(), &fitted, &witness);
        assert_eq!(found.unwrap(), None);
    }
}
