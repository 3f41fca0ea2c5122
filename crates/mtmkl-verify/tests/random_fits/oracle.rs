//! Whether a stated gap is true, by bounds from points that an independent conic solver found: objective ≥ J(θ) and ≥ J*, bound ≤ J*. That solver
//! itself need not be believed.
//!
//! Kernel values are the library's plain ones, pair by pair, which the checker does not use.

use std::cell::OnceCell;

use mtmkl::grid::Shape;
use mtmkl::{Model, Normalization, Targets};
use mtmkl_testkit::bracket::{self, Bounds};
use mtmkl_testkit::conic::{self, Machine, Set, Term};
use mtmkl_testkit::generate;
use mtmkl_testkit::small::conic_terms;

use crate::problems::Case;

/// Bounds further apart than this part of J* say nothing.
const NARROW: f64 = 1e-6;
/// Kernel values and sums are rounded in another order, which is at most this part of J*, …
const ROUNDING: f64 = 1e-9;
/// … or this where they are kept in single precision.
const SINGLE_ROUNDING: f64 = 1e-6;

pub(crate) struct Oracle {
    /// objective and bound before anything was changed.
    known: (f64, f64),
    tasks: Option<Vec<conic::Task>>,
    terms: Option<Vec<Term>>,
    /// Bounds on J*, once they were asked for; nothing inside where they are far from each other.
    optimum: OnceCell<Option<Bounds>>,
}

impl Oracle {
    pub(crate) fn new(case: &Case, model: &Model) -> Self {
        let Shape { tasks, kernels } = model.shape();
        Self {
            known: (model.outcome().objective, model.outcome().bound),
            tasks: conic_tasks(case, model),
            terms: conic_terms(model.sharing(), Shape { tasks, kernels }),
            optimum: OnceCell::new(),
        }
    }

    fn optimum(&self) -> Option<Bounds> {
        let (tasks, terms) = (self.tasks.as_ref()?, self.terms.as_ref()?);
        *self.optimum.get_or_init(|| narrow(tasks, terms))
    }

    /// J at the weights of a model, at least: kernels times their weights, which are then all 1.
    fn value_at(&self, model: &Model) -> Option<f64> {
        let mut tasks = self.tasks.clone()?;
        for (number, task) in tasks.iter_mut().enumerate() {
            for (gram, weight) in task.grams.iter_mut().zip(model.weights().row(number)) {
                for value in gram.iter_mut() {
                    *value *= weight;
                }
            }
        }
        let ones = Set::Fixed {
            weights: vec![1.0; model.shape().kernels],
        };
        narrow(&tasks, &[Term::Common(ones)]).map(|bounds| bounds.low)
    }

    /// Whether what the model states is true; `true` where other bounds say so, `false` where only those known before do.
    pub(crate) fn is_true(&self, model: &Model) -> Result<bool, String> {
        let outcome = model.outcome();
        let (objective, bound, gap) = (outcome.objective, outcome.bound, outcome.gap);
        let made = (objective - bound) / objective.abs().max(1e-300);
        if gap < made - 1e-9 && gap != 0.0 {
            return Err(format!(
                "the gap {gap} is not that of {objective} and {bound}"
            ));
        }
        let others = self.optimum().zip(self.value_at(model));
        let (least, most, at_theta) = match others {
            Some((bounds, at_theta)) => (bounds.low, bounds.high, at_theta),
            None => (self.known.1, self.known.0, f64::NEG_INFINITY),
        };
        let rounding = if outcome.is_rounded {
            SINGLE_ROUNDING
        } else {
            ROUNDING
        };
        let slack = rounding * objective.abs().max(least.abs()).max(most.abs());
        if objective < least - slack || objective < at_theta - slack {
            return Err(format!(
                "objective {objective}, but J(θ) = {at_theta} and J* ≥ {least}"
            ));
        }
        if bound > most + slack {
            return Err(format!("bound {bound}, but J* ≤ {most}"));
        }
        Ok(others.is_some())
    }
}

/// Bounds on J*; nothing where they are far from each other.
fn narrow(tasks: &[conic::Task], terms: &[Term]) -> Option<Bounds> {
    Some(bracket::bounds(tasks, terms))
        .filter(|bounds| bounds.high - bounds.low <= NARROW * bounds.high.abs())
}

/// The problem for the conic solver; nothing where it is not stated there.
fn conic_tasks(case: &Case, model: &Model) -> Option<Vec<conic::Task>> {
    let sets: Vec<Vec<Vec<f64>>> = (0..case.samples.len())
        .map(|set| grams(case, model, set))
        .collect();
    let machine = model.machine();
    (case.tasks.iter().zip(model.tasks()))
        .map(|(task, fitted)| {
            let total = case.samples[task.samples].count();
            let rows: Vec<usize> = task.rows.iter(total).collect();
            let n = rows.len();
            let weights = task.weights.clone().unwrap_or_else(|| vec![1.0; n]);
            let is_weighted = weights.iter().any(|weight| *weight != 1.0);
            let y: Vec<f64> = match &task.targets {
                Targets::Labels(y) => y.clone(),
                Targets::Values(y) => y
                    .iter()
                    .map(|y| (y - fitted.unit.offset) / fitted.unit.scale)
                    .collect(),
                Targets::Unlabelled => Vec::new(),
            };
            let price = |i: usize| machine.number("C") * weights[i];
            let class = |i: usize| {
                machine.number(if y[i] > 0.0 {
                    "positive_weight"
                } else {
                    "negative_weight"
                })
            };
            let of_classes = || (0..n).map(|i| price(i) * class(i)).collect();
            let stated = match machine.name() {
                "svc" => Machine::Svc {
                    upper: of_classes(),
                    y,
                },
                "logistic" => Machine::Logistic {
                    upper: of_classes(),
                    y,
                },
                "svr" => Machine::Svr {
                    upper: (0..n).map(price).collect(),
                    y,
                    epsilon: machine.number("epsilon"),
                },
                "krr" if !is_weighted => Machine::Krr {
                    y,
                    lambda: machine.number("lambda"),
                },
                "svdd" if !is_weighted => Machine::Svdd {
                    c: machine.number("C").max(1.0 / n as f64),
                },
                "ocsvm" if !is_weighted => Machine::OneClass {
                    nu: machine.number("nu"),
                },
                _ => return None,
            };
            let pick = |gram: &Vec<f64>| -> Vec<f64> {
                let pairs = rows.iter().flat_map(|&i| rows.iter().map(move |&j| (i, j)));
                pairs.map(|(i, j)| gram[i * total + j]).collect()
            };
            Some(conic::Task {
                machine: stated,
                samples: n,
                grams: sets[task.samples].iter().map(pick).collect(),
            })
        })
        .collect()
}

/// K_m of a sample set.
fn grams(case: &Case, model: &Model, set: usize) -> Vec<Vec<f64>> {
    let samples = &case.samples[set];
    let n = samples.count();
    let of = |view: &mtmkl::kernel::KernelView| {
        let seen = view.columns.resolve(samples.columns()).unwrap();
        let row = |at: usize| -> Vec<f64> {
            let all = samples.rows().get(at).unwrap();
            match &seen {
                None => all.into_owned(),
                Some(seen) => seen.iter().map(|&column| all[column]).collect(),
            }
        };
        let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
        let mut gram: Vec<f64> = match view.kernel.given() {
            Some(name) => samples
                .grams()
                .iter()
                .find(|gram| gram.name == name)
                .unwrap()
                .values
                .to_vec(),
            None => (0..n * n)
                .map(|at| view.kernel.value(&rows[at / n], &rows[at % n]))
                .collect(),
        };
        if let (Some(_), Some(factor)) = (view.kernel.given(), view.kernel.factor()) {
            for value in &mut gram {
                *value *= factor;
            }
        }
        if model.normalize() == Normalization::Unit || view.kernel.is_always_normalised() {
            generate::unit_diagonal(&mut gram, n);
        }
        if let (Some(word), Some(origins)) = (&view.between, samples.origins()) {
            let count = origins.kernels.tasks().len();
            let form = &origins.kernels.get(word).unwrap().form;
            for (at, value) in gram.iter_mut().enumerate() {
                let (t, u) = (origins.of[at / n], origins.of[at % n]);
                *value *= match form {
                    mtmkl::task_kernel::Form::Same { of, .. } => {
                        f64::from(u8::from(of[t] == of[u]))
                    }
                    mtmkl::task_kernel::Form::Similarity { values } => values[t * count + u],
                };
            }
        }
        gram
    };
    model.kernels().iter().map(of).collect()
}
