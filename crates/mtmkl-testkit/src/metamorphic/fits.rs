//! Fits of statements, counted, with what each claims: an interval that holds J*.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mtmkl::solver::{Epf, SolverSpec};
use mtmkl::{Fitting, Model, Pool, Precision, Preparation, Problem, Status, Storage};

use crate::statement::Statement;

/// Kernel values of the same formula, summed in another order, differ by this part of the largest.
const KERNEL_ROUNDING: f64 = 1e-13;
/// The same for kernels rounded to single precision.
const SINGLE_ROUNDING: f64 = 6e-8;
/// Sums of the terms of J differ by this part of J, …
const SUM_ROUNDING: f64 = 1e-12;
/// … and by this part of the largest that they could be, which may be far more than J.
const TERM_ROUNDING: f64 = 1e-14;

/// How a statement is solved.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The relative gap that is asked for.
    pub tolerance: f64,
    /// Where kernel values come from.
    pub storage: Option<Storage>,
    /// How precisely they are kept.
    pub precision: Precision,
    /// Algorithm 1 in place of second-order steps.
    pub epf: bool,
    /// Whether variables are left out of the search.
    pub shrinking: bool,
    /// Whether there are three threads and not one.
    pub threads: bool,
}

impl Way {
    /// As usual, to this gap.
    pub fn usual(tolerance: f64) -> Self {
        Self {
            tolerance,
            storage: None,
            precision: Precision::Double,
            epf: false,
            shrinking: true,
            threads: false,
        }
    }
}

/// A fit, and the interval that it claims.
#[derive(Clone, Debug)]
pub struct Answer {
    /// All of it.
    pub model: Model,
    /// J(θ), an upper bound on J*.
    pub objective: f64,
    /// A lower bound on J*.
    pub bound: f64,
    /// What rounding of kernels and sums may do to either.
    pub slack: f64,
}

/// What is the matter: the product refused the problem, which is no fault by itself, or it claims something false.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// An error of the product.
    Refused(String),
    /// A violation.
    Wrong(String),
}

/// Fits, with threads of their own.
#[derive(Debug)]
pub struct Fits {
    one: Pool,
    three: Option<Pool>,
    /// How many so far.
    pub count: usize,
    /// How many of them converged.
    pub converged: usize,
    /// The gap that fits are asked for.
    pub tolerance: f64,
}

impl Fits {
    /// With one thread.
    ///
    /// # Panics
    /// When there is none to be had.
    pub fn new() -> Self {
        Self {
            one: Pool::new(1).expect("a thread"),
            three: None,
            count: 0,
            converged: 0,
            tolerance: 1e-6,
        }
    }

    /// As usual, to the tolerance of these fits.
    pub fn way(&self) -> Way {
        Way::usual(self.tolerance)
    }

    /// A fit as usual.
    ///
    /// # Errors
    /// As [`Fits::fit`].
    pub fn usual(&mut self, statement: &Statement) -> Result<Answer, Trouble> {
        let way = self.way();
        self.fit(statement, way, None)
    }

    /// A fit, perhaps from a start, and a look at what it claims.
    ///
    /// # Errors
    /// When the product refuses it, or claims what cannot be.
    pub fn fit(
        &mut self,
        statement: &Statement,
        way: Way,
        start: Option<&Model>,
    ) -> Result<Answer, Trouble> {
        let pool = if way.threads {
            self.three
                .get_or_insert_with(|| Pool::new(3).expect("threads"))
                .clone()
        } else {
            self.one.clone()
        };
        self.count += 1;
        let solved = catch_unwind(AssertUnwindSafe(|| {
            let problem = statement.problem_with(|spec| {
                spec.shrinking = way.shrinking;
                if way.epf {
                    spec.solver = SolverSpec::Epf(Epf::default());
                }
            })?;
            let preparation = Preparation {
                storage: way.storage,
                precision: way.precision,
                pool: Some(pool),
                ..Preparation::default()
            };
            let model = problem.prepare(&preparation)?.fit(&mut Fitting {
                tolerance: way.tolerance,
                max_passes: if way.epf { 60 } else { 200 },
                start,
                ..Fitting::default()
            })?;
            Ok((problem, model))
        }));
        let (problem, model) = match solved {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return Err(refusal(&error)),
            Err(_) => return Err(Trouble::Wrong("it panicked".to_string())),
        };
        let answer = Answer {
            objective: model.outcome().objective,
            bound: model.outcome().bound,
            slack: slack(statement, &model),
            model,
        };
        if answer.model.outcome().status == Status::Converged {
            self.converged += 1;
        }
        answer.check(&problem, way.tolerance)?;
        Ok(answer)
    }
}

impl Default for Fits {
    fn default() -> Self {
        Self::new()
    }
}

/// An error of the product: numbers that break down are a fault, all else is an answer.
fn refusal(error: &mtmkl::Error) -> Trouble {
    match error {
        mtmkl::Error::Engine(_) => Trouble::Wrong(error.to_string()),
        _ => Trouble::Refused(error.to_string()),
    }
}

impl Answer {
    /// What must hold for every fit by itself.
    fn check(&self, problem: &Problem, tolerance: f64) -> Result<(), Trouble> {
        let outcome = self.model.outcome();
        let wrong = |what: &str| {
            let text = format!(
                "{what}: {:?} objective {:e} bound {:e} gap {:e}",
                outcome.status, self.objective, self.bound, outcome.gap
            );
            Err(Trouble::Wrong(text))
        };
        if !(self.objective.is_finite()
            && self.bound.is_finite()
            && self.model.weights().is_finite())
        {
            return wrong("not finite");
        }
        // The certificate is widened by rounding, so that not even slack is needed here.
        if self.bound > self.objective {
            return wrong("the bound is above the objective");
        }
        if outcome.status.is_converged() && outcome.gap > tolerance {
            return wrong("converged to more than the tolerance");
        }
        let gap = (self.objective - self.bound) / self.objective.abs().max(1e-300);
        // An optimum of zero is only seen up to rounding, which is told as a gap of 0.
        let is_forgiven = outcome.gap == 0.0 && self.objective.abs() <= self.slack;
        if (gap - outcome.gap).abs() > 1e-9 * gap && !is_forgiven {
            return wrong("the gap is not that of objective and bound");
        }
        if self
            .model
            .weights()
            .values()
            .iter()
            .any(|&weight| weight < 0.0)
        {
            return wrong("a weight below 0");
        }
        let theta = self.model.weights();
        // ⟨s, θ⟩ ≤ σ(s) for every s is what being in a convex set means; a few are tried.
        for lean in 0..3_u32 {
            let mut costs = theta.clone();
            for (at, cost) in costs.values_mut().iter_mut().enumerate() {
                *cost = ((at as f64 + 1.0) * f64::from(lean + 1) * 0.7).sin();
            }
            let (value, support) = (costs.dot(theta), problem.sharing().maximise(&costs).1);
            let size: f64 = theta.values().iter().sum();
            if value > support + 1e-13 * size * theta.values().len() as f64 {
                return wrong("θ is outside of its set");
            }
        }
        Ok(())
    }

    /// The interval that the model claims for J*, times a factor and wider by rounding.
    pub fn interval(&self, factor: f64) -> (f64, f64) {
        (
            factor * (self.bound - self.slack),
            factor * (self.objective + self.slack),
        )
    }
}

/// J changes by at most δ κ (½ Σ_ij |β_i||β_j| |K_ij| θ) where each kernel value changes by the part δ of the largest; both the machines and what
/// proves the bound are looked at.
fn slack(statement: &Statement, model: &Model) -> f64 {
    let rounding = if model.outcome().is_rounded {
        SINGLE_ROUNDING
    } else {
        KERNEL_ROUNDING
    };
    let diagonals: Vec<f64> = if statement.normalize {
        vec![1.0; statement.kernels.len()]
    } else {
        let grams = statement.grams(false).unwrap_or_default();
        let largest = |kernel: usize| {
            let entries = grams.iter().flat_map(|set| set[kernel].iter());
            entries.fold(0.0_f64, |most, value| most.max(value.abs()))
        };
        (0..statement.kernels.len()).map(largest).collect()
    };
    let sizes = model.tasks().iter().enumerate().map(|(number, task)| {
        let length = |beta: &[f64]| beta.iter().map(|beta| beta.abs()).sum::<f64>();
        let witness = task
            .witness
            .as_ref()
            .map_or(0.0, |witness| length(&witness.beta));
        let beta = length(&task.beta).max(witness);
        let theta = model.weights().row(number).iter().zip(&diagonals);
        let largest: f64 = theta.map(|(weight, diagonal)| weight * diagonal).sum();
        // SVDD is linear in K too.
        beta * beta * largest + beta * largest
    });
    let outcome = model.outcome();
    let of_sums = SUM_ROUNDING * outcome.objective.abs().max(outcome.bound.abs());
    let largest = diagonals.iter().copied().fold(0.0, f64::max);
    let heaviest = (0..model.tasks().len()).map(|task| model.weights().row(task).iter().sum());
    let largest = largest * heaviest.fold(0.0_f64, f64::max);
    rounding * sizes.sum::<f64>() + of_sums + TERM_ROUNDING * largest_terms(statement, largest)
}

/// Σ C_i |y_i|, Σ y_i²/λ, C_i times the largest kernel value where a loss is a difference of these: what the terms of J and of its primal may come to.
fn largest_terms(statement: &Statement, largest: f64) -> f64 {
    let machine = &statement.machine;
    let mut sum = 0.0;
    for task in &statement.tasks {
        for (row, &y) in task.targets.iter().enumerate() {
            let weight = task.weights.as_ref().map_or(1.0, |weights| weights[row]);
            sum += weight
                * match machine.name() {
                    "svr" => machine.number("C") * (y.abs() + machine.number("epsilon")),
                    "krr" => y * y / machine.number("lambda"),
                    "svc" | "logistic" => {
                        machine.number("C")
                            * machine
                                .number("positive_weight")
                                .max(machine.number("negative_weight"))
                    }
                    "svdd" => 2.0 * machine.number("C") * largest,
                    "ocsvm" => 2.0 * largest / (machine.number("nu") * task.targets.len() as f64),
                    _ => 0.0,
                };
        }
    }
    sum
}
