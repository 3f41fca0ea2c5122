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
/// Where rounding can do more than this part of the objective, and more than the stated gap says, nothing is proven.
const SHARE: f64 = 1e-3;
/// Less than this part of the largest target is no spread.
const NO_SPREAD: f64 = 1e-12;

/// Everything that was computed.
pub(crate) struct Found {
    /// P of each task.
    pub(crate) primals: Vec<Rounded>,
    /// The part of D of each task without θ.
    pub(crate) constants: Vec<Rounded>,
    /// s of each task.
    pub(crate) sensitivities: Vec<Vec<Rounded>>,
    /// σ_Ψ(s)
    pub(crate) support: Rounded,
    /// What is found of an optimum of zero at most.
    pub(crate) nothing: f64,
    /// Whether every β adds up to 1, so that none is large.
    pub(crate) is_spread: bool,
    /// The best offset of each task, and P at it; only looked for where the machines do not reach what is claimed.
    pub(crate) best: Vec<(f64, f64)>,
}

impl Found {
    pub(crate) fn new(tasks: usize, is_spread: bool) -> Self {
        Self {
            primals: vec![Rounded::default(); tasks],
            constants: vec![Rounded::default(); tasks],
            sensitivities: vec![Vec::new(); tasks],
            support: Rounded::default(),
            nothing: 0.0,
            is_spread,
            best: Vec::new(),
        }
    }

    /// Whether the machines are as good as is claimed, but for rounding.
    pub(crate) fn reaches(&self, objective: f64) -> bool {
        let Rounded { value, allowance } = self.upper();
        value.is_finite() && allowance.is_finite() && value <= objective + allowance
    }

    /// P = Σ_t P_t.
    fn upper(&self) -> Rounded {
        let values = self.primals.iter();
        let sizes: f64 = values.clone().map(|primal| primal.value.abs()).sum();
        let sum: Sum = values.clone().map(|primal| primal.value).collect();
        Rounded {
            value: sum.value(),
            allowance: values.map(|primal| primal.allowance).sum::<f64>()
                + lost(self.primals.len() + 2) * sizes,
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

/// An offset at which everything lies on one side: rounding it, as a part of every f, could make any objective true.
pub(crate) fn far_offset(task: &str, offset: f64, reach: f64, failures: &mut Vec<Failure>) {
    if !(offset.abs() <= reach) {
        let problem = format!(
            "it is {offset:?}, and nothing changes beyond {reach:.3e}: its rounding alone could make any objective true"
        );
        failures.push(
            Failure::new(Quantity::Offset, problem)
                .of_task(task)
                .numbers(offset, offset.clamp(-reach, reach)),
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
        claims.rounding(&mut failures);
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
            .map(|((task, primal), constant)| Part {
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

    /// Whether the optimum may be zero, for all that can be told: nothing is relative to it then.
    fn may_be_zero(&self) -> bool {
        let outcome = self.model.outcome();
        let (nothing, slack) = (self.found.nothing, self.slack());
        let is_below = |a: f64, b: f64, limit: f64| a.abs() <= limit && b.abs() <= limit;
        is_below(self.primal.value, self.dual.value, nothing)
            && is_below(outcome.objective, outcome.bound, slack.max(nothing))
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
        let is_open = bound == f64::NEG_INFINITY && gap == f64::INFINITY;
        if is_open && !outcome.status.is_converged() {
            return;
        }
        let relative = (objective - bound) / objective.abs().max(1e-300);
        if ![objective, bound, gap]
            .iter()
            .all(|value| value.is_finite())
        {
            fail(
                format!(
                    "it is {gap:e}, the objective {objective:?}, the bound {bound:?}: what is not finite proves nothing"
                ),
                relative,
            );
            return;
        }
        // An optimum of zero has no relative gap: what cannot be told from it may be called none.
        let is_none = gap == 0.0 && self.may_be_zero();
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
        if !(value.is_finite() && allowance.is_finite()) {
            let problem = format!(
                "the machines reach {value:?} (rounding {allowance:.1e}), and what is not finite proves nothing, not the {stated:?} that is claimed"
            );
            failures.push(Failure::new(Quantity::Objective, problem).numbers(stated, value));
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
        let gain = |number: usize| self.found.primals[number].value - best(number);
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
        let is_proven = value.is_finite() && allowance.is_finite() && value >= stated - allowance;
        if !(stated == f64::NEG_INFINITY || is_proven) {
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
    /// Whether rounding leaves anything of what is claimed. It may do as much as the stated gap allows, and a small part of the objective; an
    /// optimum that may be zero is as far off as β, b and θ let it be, and these are in bounds of their own, but for a β that can be anything.
    fn rounding(&self, failures: &mut Vec<Failure>) {
        let outcome = self.model.outcome();
        let (objective, slack) = (outcome.objective, self.slack());
        let limit = (SHARE * objective.abs()).max(objective - outcome.bound);
        let of_zero = if self.found.is_spread {
            f64::INFINITY
        } else {
            4.0 * self.found.nothing
        };
        let is_small = slack <= limit || (self.may_be_zero() && slack <= of_zero);
        if !(is_small && slack.is_finite()) {
            let problem = format!(
                "it may be {slack:.1e} of an objective of {objective:?}, objective and bound are {:.1e} apart: nothing is proven",
                objective - outcome.bound
            );
            failures.push(Failure::new(Quantity::Rounding, problem).numbers(limit, slack));
        }
    }
}
