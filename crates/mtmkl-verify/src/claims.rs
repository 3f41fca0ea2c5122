//! What a model states, beside what was found.

use mtmkl::Model;
use mtmkl::model::TaskModel;
use mtmkl::run::Status;
use mtmkl::solver::Fallback;

use crate::machine::{Kind, Rounded};
use crate::sum::{Sum, lost};
use crate::verdict::{Claim, Failure, Gap, Part, Quantity, Verdict};

/// How far a quotient of two numbers may be from what its parts make of it.
const QUOTIENT: f64 = 1e-12;
/// Less than this part of the largest target is no spread.
const NO_SPREAD: f64 = 1e-12;

/// Everything that was computed.
pub(crate) struct Found {
    /// P of each task, and the quadratic part of it.
    pub(crate) primals: Vec<(Rounded, f64)>,
    /// The part of D of each task without θ.
    pub(crate) constants: Vec<Rounded>,
    /// s of each task.
    pub(crate) sensitivities: Vec<Vec<Rounded>>,
    /// σ_Ψ(s)
    pub(crate) support: Rounded,
    /// By how much θ is outside of Ψ.
    pub(crate) outside: f64,
    /// What double precision can do to Σ β'Kβ: a value below it cannot be told from 0.
    pub(crate) cancelling: f64,
    /// The best offset of each task, and P at it; only looked for where the machines do not reach what is claimed.
    pub(crate) best: Vec<(f64, f64)>,
}

impl Found {
    pub(crate) fn new(tasks: usize, outside: f64) -> Self {
        Self {
            primals: vec![(Rounded::default(), 0.0); tasks],
            constants: vec![Rounded::default(); tasks],
            sensitivities: vec![Vec::new(); tasks],
            support: Rounded::default(),
            outside,
            cancelling: 0.0,
            best: Vec::new(),
        }
    }

    /// Whether the machines are as good as is claimed, but for rounding.
    pub(crate) fn reaches(&self, objective: f64) -> bool {
        let primal = self.upper();
        primal.value <= objective + primal.allowance
    }

    /// P = Σ_t P_t.
    fn upper(&self) -> Rounded {
        let values = self.primals.iter().map(|(primal, _)| primal);
        let sizes: f64 = values.clone().map(|primal| primal.value.abs()).sum();
        let quadratic: f64 = self
            .primals
            .iter()
            .map(|(_, quadratic)| quadratic.abs())
            .sum();
        // θ/(1 + δ) is inside, where θ is outside by δ; that makes P larger by at most δ times its quadratic part.
        let moved = if self.outside.is_finite() {
            self.outside * quadratic
        } else {
            0.0
        };
        Rounded {
            value: values
                .clone()
                .map(|primal| primal.value)
                .collect::<Sum>()
                .value(),
            allowance: values.map(|primal| primal.allowance).sum::<f64>()
                + lost(self.primals.len() + 2) * sizes
                + moved,
        }
    }

    /// D = Σ_t constant_t − σ_Ψ(s).
    fn lower(&self) -> Rounded {
        let mut value: Sum = self
            .constants
            .iter()
            .map(|constant| constant.value)
            .collect();
        value.add(-self.support.value);
        let sizes: f64 = self
            .constants
            .iter()
            .map(|constant| constant.value.abs())
            .sum();
        Rounded {
            value: value.value(),
            allowance: self
                .constants
                .iter()
                .map(|constant| constant.allowance)
                .sum::<f64>()
                + self.support.allowance
                + lost(self.constants.len() + 4) * (sizes + self.support.value.abs()),
        }
    }
}

/// Brings targets into the units that a model learned them in: these must be the mean and the spread of the data, weighted as its samples are.
pub(crate) fn units(
    stated: &TaskModel,
    weights: &[f64],
    targets: &mut [f64],
    failures: &mut Vec<Failure>,
) {
    let (offset, scale) = (stated.unit.offset, stated.unit.scale);
    if offset == 0.0 && scale == 1.0 {
        return;
    }
    let total = weights.iter().copied().collect::<Sum>().value();
    let mean = |term: &dyn Fn(f64) -> f64| {
        let mut sum = Sum::default();
        targets
            .iter()
            .zip(weights)
            .for_each(|(&y, &weight)| sum.add_product(weight, term(y)));
        sum.value() / total
    };
    let middle = mean(&|y| y);
    let spread = mean(&|y| (y - middle) * (y - middle)).sqrt();
    let largest = targets.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
    let spread = if spread > NO_SPREAD * largest {
        spread
    } else {
        1.0
    };
    // Means of n numbers, each rounded n times; the root of a spread of nothing is as far off as the root of that.
    let forgiven = lost(8 * targets.len() + 64).sqrt().min(1e-9) * largest;
    for (what, stated_number, found) in [("mean", offset, middle), ("spread", scale, spread)] {
        if !((stated_number - found).abs() <= forgiven) {
            let problem = format!(
                "its targets are measured by a {what} of {stated_number}, theirs is {found}: they are not those of the fit"
            );
            failures.push(
                Failure::new(Quantity::Units, problem)
                    .of_task(&stated.name)
                    .numbers(stated_number, found),
            );
        }
    }
    for y in targets {
        *y = (*y - offset) / scale;
    }
}

/// A machine without an offset must have none: predictions add it.
pub(crate) fn offset(stated: &TaskModel, kind: Kind, failures: &mut Vec<Failure>) {
    if kind == Kind::Krr && stated.offset != 0.0 {
        let problem = format!(
            "it is {}, and kernel ridge regression has none",
            stated.offset
        );
        failures.push(
            Failure::new(Quantity::Offset, problem)
                .of_task(&stated.name)
                .numbers(stated.offset, 0.0),
        );
    }
}

/// The verdict.
pub(crate) fn judged(
    model: &Model,
    found: &Found,
    assumed: Vec<String>,
    mut failures: Vec<Failure>,
) -> Verdict {
    let outcome = model.outcome();
    let (primal, dual) = (found.upper(), found.lower());
    let claims = Claims {
        model,
        found,
        primal,
        dual,
    };
    claims.status(&mut failures);
    claims.gap(&mut failures);
    if claims.is_certified() {
        claims.objective(&mut failures);
        claims.bound(&mut failures);
    }
    let parts = model
        .tasks()
        .iter()
        .zip(&found.primals)
        .zip(&found.constants);
    Verdict {
        holds: failures.is_empty(),
        status: outcome.status.name().to_string(),
        objective: Claim {
            stated: outcome.objective,
            found: primal.value,
            allowance: primal.allowance,
        },
        bound: Claim {
            stated: outcome.bound,
            found: dual.value,
            allowance: dual.allowance,
        },
        gap: Gap {
            stated: outcome.gap,
            found: (primal.value - dual.value) / primal.value.abs().max(f64::MIN_POSITIVE),
            tolerance: outcome.tolerance,
        },
        tasks: parts
            .map(|((task, (primal, _)), constant)| Part {
                name: task.name.clone(),
                samples: task.samples,
                primal: primal.value,
                constant: constant.value,
            })
            .collect(),
        assumed,
        failures,
    }
}

struct Claims<'a> {
    model: &'a Model,
    found: &'a Found,
    primal: Rounded,
    dual: Rounded,
}

impl Claims<'_> {
    /// Whether the model claims a certificate at all: with an indefinite kernel, P bounds nothing.
    fn is_certified(&self) -> bool {
        let outcome = self.model.outcome();
        outcome.status != Status::ConvergedUncertified
            && outcome.fallback != Some(Fallback::Indefinite)
    }

    fn slack(&self) -> f64 {
        self.primal.allowance + self.dual.allowance
    }

    fn status(&self, failures: &mut Vec<Failure>) {
        let outcome = self.model.outcome();
        let (gap, tolerance) = (outcome.gap, outcome.tolerance);
        if !self.is_certified() {
            let problem = format!(
                "the model claims no certificate (status {}): a kernel is indefinite, so that its objective bounds nothing",
                outcome.status.name()
            );
            failures.push(Failure::new(Quantity::Status, problem));
        }
        if let Some(tolerance) = tolerance
            && outcome.status.is_converged()
            && !(gap <= tolerance)
        {
            let problem = format!(
                "it says converged, with a gap of {gap:e} where {tolerance:e} was asked for"
            );
            failures.push(Failure::new(Quantity::Status, problem).numbers(gap, tolerance));
        }
    }

    fn gap(&self, failures: &mut Vec<Failure>) {
        let outcome = self.model.outcome();
        let (objective, bound, gap) = (outcome.objective, outcome.bound, outcome.gap);
        let mut fail = |problem: String, found: f64| {
            failures.push(Failure::new(Quantity::Gap, problem).numbers(gap, found));
        };
        if !(objective >= bound - self.slack()) {
            fail(
                format!("the objective {objective:?} is below the bound {bound:?}"),
                objective - bound,
            );
        }
        // A fit that was stopped before anything was proven says so: no bound, no gap.
        if bound == f64::NEG_INFINITY && gap == f64::INFINITY {
            return;
        }
        let relative = (objective - bound) / objective.abs().max(1e-300);
        let apart = (objective - bound).min(self.primal.value - self.dual.value);
        // A difference of nothing but rounding may be called none: an optimum of zero has no relative gap.
        let is_none = gap == 0.0 && apart <= self.slack().max(self.found.cancelling);
        if !(is_none || (gap - relative.abs()).abs() <= QUOTIENT * relative.abs().max(1.0)) {
            fail(
                format!("it is {gap:e}, objective and bound make it {relative:e}"),
                relative,
            );
        }
    }

    fn objective(&self, failures: &mut Vec<Failure>) {
        let (stated, Rounded { value, allowance }) = (self.model.outcome().objective, self.primal);
        if self.found.reaches(stated) {
            return;
        }
        let best = |number: usize| self.found.best[number].1;
        let least: f64 = (0..self.found.best.len()).map(best).sum();
        if !(least <= stated + allowance) {
            let problem = format!(
                "the machines reach {value:?}, which is above the {stated:?} that is claimed (rounding {allowance:.1e})"
            );
            failures.push(Failure::new(Quantity::Objective, problem).numbers(stated, value));
            return;
        }
        // Told apart, since the mend is another one. The task that has most to gain is the one.
        let gain = |number: usize| self.found.primals[number].0.value - best(number);
        let worst = (0..self.found.primals.len()).max_by(|&a, &b| gain(a).total_cmp(&gain(b)));
        if let Some(number) = worst {
            let task = &self.model.tasks()[number];
            let offset = self.found.best[number].0;
            let problem = format!(
                "with it the machines reach {value:?}, which is above the {stated:?} that is claimed; at about {offset:?} they would not be"
            );
            let failure = Failure::new(Quantity::Offset, problem).of_task(&task.name);
            failures.push(failure.numbers(task.offset, offset));
        }
    }

    fn bound(&self, failures: &mut Vec<Failure>) {
        let (stated, Rounded { value, allowance }) = (self.model.outcome().bound, self.dual);
        if !(stated == f64::NEG_INFINITY || value >= stated - allowance) {
            let problem = format!(
                "the witness proves {value:?}, which is below the {stated:?} that is claimed (rounding {allowance:.1e})"
            );
            failures.push(Failure::new(Quantity::Bound, problem).numbers(stated, value));
        }
        let primal = self.primal.value;
        if value > primal + self.slack() {
            let problem = format!(
                "the witness proves {value:?} and the machines reach {primal:?}, which is less: these are not the data of the fit"
            );
            failures.push(Failure::new(Quantity::Duality, problem).numbers(value, primal));
        }
    }
}
