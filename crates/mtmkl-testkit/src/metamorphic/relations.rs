//! What must hold between fits of a statement and of its twins: exact consequences of the mathematics, one function each.
//!
//! Every fit claims an interval [bound, objective] that holds J*. Intervals of equal optima overlap.
#![allow(
    clippy::unnecessary_wraps,
    reason = "relations have one type, whether or not they can have nothing to say"
)]

use mtmkl::{Model, Precision, Rows, Status, Storage};

use super::draw::pick;
use super::fits::{Answer, Fits, Trouble, Way};
use crate::bracket;
use crate::conic;
use crate::generate::Random;
use crate::statement::Statement;

/// A statement with its usual fit.
pub(super) struct Base<'a> {
    pub(super) statement: &'a Statement,
    pub(super) answer: &'a Answer,
}

/// `None` where a relation says nothing about a statement.
pub(super) type Verdict = Option<Result<(), Trouble>>;

/// A relation: its name, and how it is tried.
pub(super) type Relation = (
    &'static str,
    fn(&Base<'_>, &mut Random, &mut Fits) -> Verdict,
);

/// All of them. A new one is a function and a line here.
pub(super) const RELATIONS: &[Relation] = &[
    ("the order of rows", |base, random, fits| {
        same(base, &base.statement.clone().other_rows(random), 1.0, fits)
    }),
    ("the order of tasks", |base, random, fits| {
        same(
            base,
            &base.statement.clone().other_tasks(random)?,
            1.0,
            fits,
        )
    }),
    ("the order of kernels", |base, random, fits| {
        same(
            base,
            &base.statement.clone().other_kernels(random)?,
            1.0,
            fits,
        )
    }),
    ("labels exchanged", labels_exchanged),
    ("values moved", values_moved),
    ("values scaled", values_scaled),
    ("views of rows against copies", |base, _, fits| {
        same(base, &base.statement.clone().own_sets(), 1.0, fits)
    }),
    ("every kernel twice", |base, _, fits| {
        same(base, &base.statement.clone().kernels_twice()?, 1.0, fits)
    }),
    ("a kernel of zeros", |base, _, fits| {
        same(base, &base.statement.clone().with_zero_kernel()?, 1.0, fits)
    }),
    (
        "factors of normalised kernels",
        factors_of_normalised_kernels,
    ),
    ("factors against weights", factors_against_weights),
    ("factors against prices", factors_against_prices),
    ("every task twice", |base, _, fits| {
        same(base, &base.statement.clone().tasks_twice()?, 2.0, fits)
    }),
    ("weights against copies of rows", weights_against_copies),
    ("copies of rows against prices", copies_against_prices),
    ("the same set in other words", |base, random, fits| {
        same(
            base,
            &base.statement.clone().in_other_words(random)?,
            1.0,
            fits,
        )
    }),
    ("kernels against given matrices", |base, _, fits| {
        same(base, &base.statement.clone().into_given()?, 1.0, fits)
    }),
    ("a larger set never costs", a_larger_set_never_costs),
    ("a sample less never costs", a_sample_less_never_costs),
    ("mapped and streamed storage", storages),
    ("single precision", |base, _, fits| {
        let way = Way {
            precision: Precision::Single,
            ..fits.way()
        };
        other_way(base, way, fits)
    }),
    ("Algorithm 1", |base, _, fits| {
        let way = Way {
            epf: true,
            tolerance: 1e-3,
            ..fits.way()
        };
        other_way(base, way, fits)
    }),
    ("without shrinking", |base, _, fits| {
        let way = Way {
            shrinking: false,
            ..fits.way()
        };
        other_way(base, way, fits)
    }),
    ("another tolerance", |base, random, fits| {
        other_way(base, Way::usual(pick(random, &[1e-1, 1e-3, 1e-9])), fits)
    }),
    ("threads", threads),
    ("from another answer", from_another_answer),
    ("a file of the model", a_file_of_the_model),
    ("predictions at fixed weights", predictions_at_fixed_weights),
    ("a conic solver", a_conic_solver),
    ("claims by the textbook", claims_by_the_textbook),
];

fn wrong(text: String) -> Verdict {
    Some(Err(Trouble::Wrong(text)))
}

/// The statement is a fault of the relation where the product refuses it: every twin of a problem is one.
fn fit(statement: &Statement, fits: &mut Fits) -> Result<Answer, Trouble> {
    fits.usual(statement).map_err(as_fault)
}

fn as_fault(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Refused(text) => Trouble::Wrong(format!("the twin is refused: {text}")),
        wrong @ Trouble::Wrong(_) => wrong,
    }
}

/// Whether J* of the twin may be `factor` times that of the base.
fn overlap(base: &Answer, twin: &Answer, factor: f64) -> Result<(), Trouble> {
    let (low, high) = base.interval(factor);
    let (other_low, other_high) = twin.interval(1.0);
    if low <= other_high && other_low <= high {
        return Ok(());
    }
    Err(Trouble::Wrong(format!(
        "[{low:e}, {high:e}] and [{other_low:e}, {other_high:e}] hold no number in common ({:?}, {:?})",
        base.model.outcome().status,
        twin.model.outcome().status
    )))
}

fn same(base: &Base<'_>, twin: &Statement, factor: f64, fits: &mut Fits) -> Verdict {
    Some(fit(twin, fits).and_then(|twin| overlap(base.answer, &twin, factor)))
}

/// J* of the twin is at most that of the base.
fn at_most(base: &Base<'_>, twin: &Statement, fits: &mut Fits) -> Verdict {
    Some(fit(twin, fits).and_then(|twin| {
        let ((_, high), (low, _)) = (base.answer.interval(1.0), twin.interval(1.0));
        if low <= high {
            return Ok(());
        }
        Err(Trouble::Wrong(format!(
            "at least {low:e}, more than {high:e}"
        )))
    }))
}

/// The same statement, solved in another way. What that way does not know is refused, and no fault.
fn other_way(base: &Base<'_>, way: Way, fits: &mut Fits) -> Verdict {
    match fits.fit(base.statement, way, None) {
        Ok(twin) => Some(overlap(base.answer, &twin, 1.0)),
        Err(Trouble::Refused(_)) => None,
        Err(wrong) => Some(Err(wrong)),
    }
}

fn labels_exchanged(base: &Base<'_>, _: &mut Random, fits: &mut Fits) -> Verdict {
    let machine = &base.statement.machine;
    let numbers = match machine.name() {
        "svc" | "logistic" => vec![
            ("positive_weight", machine.number("negative_weight")),
            ("negative_weight", machine.number("positive_weight")),
        ],
        "svr" | "krr" => Vec::new(),
        _ => return None,
    };
    let twin = base
        .statement
        .clone()
        .with_targets(|y| -y)
        .with_numbers(&numbers)?;
    same(base, &twin, 1.0, fits)
}

fn values_moved(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    if base.statement.machine.name() != "svr" {
        return None;
    }
    let by = 4.0 * random.normal();
    same(
        base,
        &base.statement.clone().with_targets(|y| y + by),
        1.0,
        fits,
    )
}

/// J(f y, f ε, f C) = f² J(y, ε, C); powers of two, so that nothing is rounded.
fn values_scaled(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let machine = &base.statement.machine;
    let factor = pick(random, &[0.125, 0.5, 4.0, 1024.0]);
    let numbers = match machine.name() {
        "svr" => vec![
            ("C", factor * machine.number("C")),
            ("epsilon", factor * machine.number("epsilon")),
        ],
        "krr" => Vec::new(),
        _ => return None,
    };
    let twin = base
        .statement
        .clone()
        .with_targets(|y| factor * y)
        .with_numbers(&numbers)?;
    same(base, &twin, factor * factor, fits)
}

fn factors_of_normalised_kernels(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    if !base.statement.normalize {
        return None;
    }
    let factor = pick(random, &[1e-3, 0.3, 7.0, 1e4]);
    same(
        base,
        &base.statement.clone().with_factor(factor)?,
        1.0,
        fits,
    )
}

/// Kernels f times as large want weights f times as small.
fn factors_against_weights(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    if base.statement.normalize {
        return None;
    }
    // Powers of two, so that nothing is rounded.
    let factor = pick(random, &[0.125, 0.5, 8.0, 128.0]);
    let twin = base
        .statement
        .clone()
        .with_factor(factor)?
        .with_weights_times(1.0 / factor)?;
    same(base, &twin, 1.0, fits)
}

/// J(f K, C/f) = J(K, C)/f; for the machines of unit mass J(f K) = f J(K).
fn factors_against_prices(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    if base.statement.normalize {
        return None;
    }
    let machine = &base.statement.machine;
    let factor = pick(random, &[0.25, 0.5, 8.0, 64.0]);
    let (numbers, times) = match machine.name() {
        "svc" | "logistic" | "svr" => (vec![("C", machine.number("C") / factor)], 1.0 / factor),
        "krr" => (
            vec![("lambda", machine.number("lambda") * factor)],
            1.0 / factor,
        ),
        _ => (Vec::new(), factor),
    };
    let twin = base
        .statement
        .clone()
        .with_factor(factor)?
        .with_numbers(&numbers)?;
    same(base, &twin, times, fits)
}

fn weights_against_copies(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let (weighted, copied) = base.statement.clone().weights_and_copies(random);
    let both = fit(&weighted, fits).and_then(|weighted| Ok((weighted, fit(&copied, fits)?)));
    Some(both.and_then(|(weighted, copied)| overlap(&weighted, &copied, 1.0)))
}

/// Each row k times, at the k-th part of the price.
fn copies_against_prices(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let copies = 2 + random.below(2);
    let machine = &base.statement.machine;
    let part = 1.0 / copies as f64;
    let numbers = match machine.name() {
        "krr" => vec![("lambda", machine.number("lambda") * copies as f64)],
        "ocsvm" => Vec::new(),
        _ => vec![("C", machine.number("C") * part)],
    };
    let mut twin = base.statement.clone().own_sets().with_numbers(&numbers)?;
    for (set, task) in twin.sets.iter_mut().zip(&mut twin.tasks) {
        let places: Vec<usize> = (0..copies).flat_map(|_| 0..set.count).collect();
        *set = set.part(&places, twin.columns);
        *task = task.part(&places);
        task.rows = (0..places.len()).collect();
    }
    same(base, &twin, 1.0, fits)
}

fn a_larger_set_never_costs(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    if !base.statement.is_of_balls() {
        return None;
    }
    let growth = pick(random, &[1.0 + 1e-9, 1.1, 3.0, 100.0]);
    at_most(
        base,
        &base.statement.clone().with_weights_times(growth)?,
        fits,
    )
}

/// β = 0 of the sample is a point of Ω, where the rest of ḡ is that of the others.
fn a_sample_less_never_costs(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let machine = base.statement.machine.name();
    if !matches!(machine, "svc" | "logistic" | "svr" | "krr") {
        return None;
    }
    let mut twin = base.statement.clone();
    let task = random.below(twin.tasks.len());
    let own = &mut twin.tasks[task];
    let leaves = random.below(own.rows.len());
    let kept: Vec<usize> = (0..own.rows.len()).filter(|&row| row != leaves).collect();
    *own = own.part(&kept);
    let is_one_class = own.targets.iter().all(|&label| label == own.targets[0]);
    if own.rows.is_empty() || (is_one_class && matches!(machine, "svc" | "logistic")) {
        return None;
    }
    at_most(base, &twin, fits)
}

fn storages(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let storage = pick(random, &[Storage::Kept, Storage::Mapped, Storage::Streamed]);
    let way = Way {
        storage: Some(storage),
        ..fits.way()
    };
    other_way(base, way, fits)
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Whether two models are the same to the last bit.
fn equal(one: &Model, other: &Model) -> bool {
    let outcomes = |model: &Model| {
        bits(&[
            model.outcome().objective,
            model.outcome().bound,
            model.outcome().gap,
        ])
    };
    bits(one.weights().values()) == bits(other.weights().values())
        && outcomes(one) == outcomes(other)
        && one.outcome().status == other.outcome().status
        && one.tasks().iter().zip(other.tasks()).all(|(one, other)| {
            bits(&one.beta) == bits(&other.beta)
                && one.support == other.support
                && one.offset.to_bits() == other.offset.to_bits()
                && one.witness == other.witness
        })
}

fn threads(base: &Base<'_>, _: &mut Random, fits: &mut Fits) -> Verdict {
    let way = Way {
        threads: true,
        ..fits.way()
    };
    let twin = match fits.fit(base.statement, way, None) {
        Ok(twin) => twin,
        Err(trouble) => return Some(Err(as_fault(trouble))),
    };
    if equal(&base.answer.model, &twin.model) {
        Some(Ok(()))
    } else {
        wrong("three threads change bits".to_string())
    }
}

fn from_another_answer(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let mut other = base.statement.clone();
    let name = pick(random, &["C", "lambda", "nu", "epsilon"]);
    if let Some(value) = other.machine.get(name) {
        // Still in range: the price of a sphere has a least one, a share a largest one.
        let value = if name == "nu" {
            0.5 * value
        } else {
            2.0 * value
        };
        other = other.with_numbers(&[(name, value)])?;
    }
    let way = fits.way();
    let twin = fits
        .usual(&other)
        .and_then(|start| fits.fit(base.statement, way, Some(&start.model)));
    Some(
        twin.map_err(as_fault)
            .and_then(|twin| overlap(base.answer, &twin, 1.0)),
    )
}

fn a_file_of_the_model(base: &Base<'_>, _: &mut Random, _: &mut Fits) -> Verdict {
    let model = &base.answer.model;
    let again = match model.to_bytes().and_then(|bytes| Model::from_bytes(&bytes)) {
        Ok(again) => again,
        Err(error) => return wrong(format!("its own file is refused: {error}")),
    };
    if !equal(model, &again) {
        return wrong("the file is of another model".to_string());
    }
    let statement = base.statement;
    for set in &statement.sets {
        let Ok(rows) = Rows::new(&set.rows, set.count, statement.columns) else {
            continue;
        };
        match (model.decisions(rows), again.decisions(rows)) {
            (Ok(one), Ok(other)) if bits(&one.concat()) == bits(&other.concat()) => {}
            _ => return wrong("the model of the file predicts something else".to_string()),
        }
    }
    Some(Ok(()))
}

/// At fixed θ the primal is strongly convex in w: P(w) − P* ≥ μ/2 ‖w − w*‖², μ = 1 or 2. So decisions of two answers, up to their offsets, differ
/// between two points by at most (√(2g₁/μ) + √(2g₂/μ)) ‖φ(x) − φ(z)‖.
fn predictions_at_fixed_weights(base: &Base<'_>, random: &mut Random, fits: &mut Fits) -> Verdict {
    let mut statement = base.statement.clone();
    let of_unit_mass = match statement.machine.name() {
        "svc" | "logistic" | "svr" => 2.0,
        "krr" | "ocsvm" => 1.0,
        _ => return None,
    };
    statement.sharing = mtmkl::sharing::SharingSpec::uniform();
    let twin = statement.clone().other_rows(random);
    let both = fit(&statement, fits).and_then(|one| Ok((one, fit(&twin, fits)?)));
    let (one, other) = match both {
        Ok(both) => both,
        Err(trouble) => return Some(Err(trouble)),
    };
    if [&one, &other]
        .iter()
        .any(|answer| answer.model.outcome().status != Status::Converged)
    {
        return None;
    }
    let reach = |answer: &Answer| {
        let (low, high) = answer.interval(1.0);
        (of_unit_mass * (high - low)).sqrt()
    };
    let reach = reach(&one) + reach(&other);
    let grams = statement.grams(statement.normalize)?;
    for (set, grams) in statement.sets.iter().zip(&grams) {
        let n = set.count;
        let rows = Rows::new(&set.rows, n, statement.columns).ok()?;
        let (Ok(f), Ok(g)) = (one.model.decisions(rows), other.model.decisions(rows)) else {
            return wrong("no predictions for the samples themselves".to_string());
        };
        let value = |i: usize, j: usize| {
            grams.iter().map(|gram| gram[i * n + j]).sum::<f64>() / grams.len() as f64
        };
        for (f, g) in f.iter().zip(&g) {
            for i in 1..n {
                let distance = (value(0, 0) + value(i, i) - 2.0 * value(0, i))
                    .max(0.0)
                    .sqrt();
                let size = f.iter().fold(1.0_f64, |most, value| most.max(value.abs()));
                let rounding = 1e-7 * size * (1.0 + (value(0, 0) + value(i, i)).sqrt());
                let difference = ((f[i] - f[0]) - (g[i] - g[0])).abs();
                if difference > reach * distance + rounding {
                    return wrong(format!(
                        "decisions differ by {difference:e}, {:e} is explained",
                        reach * distance
                    ));
                }
            }
        }
    }
    Some(Ok(()))
}

/// What plain sums of the textbook lose, as a part of what J* is the sum of.
const ROUNDING: f64 = 1e-12;

/// How many numbers the matrices of a problem have, a dimension each.
fn size(statement: &Statement) -> usize {
    statement
        .tasks
        .iter()
        .map(|task| task.rows.len() * statement.kernels.len())
        .sum()
}

/// J* lies between what the textbook's formulas say at the points that a conic solver found: its own word is not asked for, since now and then it says
/// that it solved what it did not.
fn a_conic_solver(base: &Base<'_>, _: &mut Random, _: &mut Fits) -> Verdict {
    if size(base.statement) > 150 {
        return None;
    }
    let (tasks, terms) = base.statement.conic()?;
    let bounds = bracket::bounds(&tasks, &terms);
    let (low, high) = base.answer.interval(1.0);
    let rounding = ROUNDING * bounds.unit;
    if low > bounds.high + rounding || bounds.low - rounding > high {
        return wrong(format!(
            "[{low:e}, {high:e}] and [{:e}, {:e}] by {} hold no number in common",
            bounds.low, bounds.high, bounds.by
        ));
    }
    Some(Ok(()))
}

/// A vector over a task's samples, from positions in its set.
fn of_rows(rows: &[usize], positions: impl Iterator<Item = usize>, values: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; rows.len()];
    for (position, &value) in positions.zip(values) {
        if let Some(place) = rows.iter().position(|&row| row == position) {
            all[place] = value;
        }
    }
    all
}

/// What a model claims holds by the textbook: θ and β give at most the objective, the witness proves at least the bound.
fn claims_by_the_textbook(base: &Base<'_>, _: &mut Random, _: &mut Fits) -> Verdict {
    let (statement, answer) = (base.statement, base.answer);
    let (tasks, terms) = statement.conic()?;
    let model = &answer.model;
    let (mut primal, mut witnesses) = (0.0, Vec::new());
    for (number, own) in model.tasks().iter().enumerate() {
        let (task, rows) = (&tasks[number], &statement.tasks[number].rows);
        let positions = &model.support_sets()[own.set].positions;
        let beta = of_rows(
            rows,
            own.support.iter().map(|&place| positions[place]),
            &own.beta,
        );
        let theta = model.weights().row(number);
        primal += bracket::primal(task, theta, &beta);
        let witness = match &own.witness {
            Some(witness) => of_rows(rows, witness.rows.iter().copied(), &witness.beta),
            None => beta,
        };
        let alpha: Vec<f64> = match &task.machine {
            conic::Machine::Svc { y, .. } | conic::Machine::Logistic { y, .. } => {
                witness.iter().zip(y).map(|(beta, y)| beta * y).collect()
            }
            _ => witness,
        };
        let outside = bracket::violation(task, &alpha);
        if outside > 1e-9 {
            return wrong(format!("the witness is outside of Ω by {outside:e}"));
        }
        witnesses.push(alpha);
    }
    let dual = bracket::dual_value(&tasks, &terms, &witnesses);
    let (low, high) = answer.interval(1.0);
    if primal > high {
        return wrong(format!(
            "the objective is said to be {:e}, and is {primal:e}",
            answer.objective
        ));
    }
    if dual < low {
        return wrong(format!(
            "the bound is said to be {:e}, and the witness proves {dual:e}",
            answer.bound
        ));
    }
    Some(Ok(()))
}
