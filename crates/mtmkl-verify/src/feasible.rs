//! Whether θ is in Ψ, and β and β̂ in Ω.
//!
//! Rigour does not hang on how much is forgiven here: P is that of the nearest θ inside Ψ, whose J it bounds from above whatever β is, and D that of
//! a point of Ω beside β̂. The limit says what may be called feasible at all.

use mtmkl::model::TaskModel;
use mtmkl::sharing::Reach;
use mtmkl::{Model, Samples, Task};

use crate::machine::Domain;
use crate::sharing::{Term, rows_of};
use crate::sum::Sum;
use crate::verdict::{Failure, Quantity};

/// What may be called feasible, relative to the size of what is bounded: a solver's many small steps each leave a rounding.
const FEASIBLE: f64 = 1e-9;

/// Whether θ is in Ψ; gives back a θ that is, the sum of parts that were moved into their sets, one row for each task.
pub(crate) fn theta(model: &Model, terms: &[Term], failures: &mut Vec<Failure>) -> Vec<Vec<f64>> {
    let shape = model.shape();
    let weights = model.weights();
    let mut fail = |problem: String| failures.push(Failure::new(Quantity::Theta, problem));
    let parts = model.parts();
    // Each term has the first part with its rows that no other has.
    let mut taken = vec![false; parts.len()];
    let mut sum = vec![vec![0.0; shape.kernels]; shape.tasks];
    let mut inside = sum.clone();
    for (number, term) in terms.iter().enumerate() {
        let is_its =
            |at: &usize| !taken[*at] && rows_of(&parts[*at].reach, shape.tasks) == term.reach;
        let Some(at) = (0..parts.len()).find(is_its) else {
            fail(format!(
                "the model has not the weights of term number {} of its sharing",
                number + 1
            ));
            // Refuted already.
            return weights.iter_rows().map(<[f64]>::to_vec).collect();
        };
        taken[at] = true;
        let part = &parts[at];
        let rows: Vec<&[f64]> = part.weights.iter_rows().collect();
        let outside = term.violation(&rows);
        if !(outside <= FEASIBLE) {
            fail(format!(
                "the weights `{}` are outside of their set, by {outside:.3e} of its bound",
                part.label
            ));
        }
        let moved = term.inside(&rows);
        for ((row, moved), tasks) in rows.iter().zip(&moved).zip(&term.reach) {
            for &task in tasks {
                add(&mut sum[task], row);
                add(&mut inside[task], moved);
            }
        }
    }
    if taken.contains(&false) {
        fail("the model has weights of terms that its sharing does not have".to_string());
    }
    let largest = weights
        .values()
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    for (task, row) in sum.iter().enumerate() {
        for (kernel, (&expected, &stated)) in row.iter().zip(weights.row(task)).enumerate() {
            if !((stated - expected).abs() <= FEASIBLE * largest) {
                let problem = format!(
                    "the weight of kernel `{}` is {stated}, its parts add up to {expected}",
                    model.kernels()[kernel].name
                );
                let failure =
                    Failure::new(Quantity::Theta, problem).of_task(&model.tasks()[task].name);
                failures.push(failure.numbers(stated, expected));
            }
        }
    }
    for (what, stated, is_its) in [
        (
            "common",
            model.common(),
            Reach::is_common as fn(&Reach, usize) -> bool,
        ),
        ("specific", model.specific(), Reach::is_specific),
    ] {
        let Some(stated) = stated else { continue };
        let mut expected = vec![0.0; stated.values().len()];
        for part in parts.iter().filter(|part| is_its(&part.reach, shape.tasks)) {
            add(&mut expected, part.weights.values());
        }
        let is_same = stated
            .values()
            .iter()
            .zip(&expected)
            .all(|(a, b)| (a - b).abs() <= FEASIBLE * largest);
        if !is_same {
            let problem = format!("the weights `{what}` are not the sum of the parts that are so");
            failures.push(Failure::new(Quantity::Theta, problem));
        }
    }
    inside
}

fn add(sum: &mut [f64], values: &[f64]) {
    sum.iter_mut()
        .zip(values)
        .for_each(|(sum, value)| *sum += value);
}

/// β or β̂ of a task, one for each row of its sample set.
pub(crate) fn spread(rows: impl Iterator<Item = usize>, beta: &[f64], samples: usize) -> Vec<f64> {
    let mut all = vec![0.0; samples];
    for (row, &value) in rows.zip(beta) {
        all[row] += value;
    }
    all
}

/// What a model keeps of a task, by row of its sample set: β and β̂.
pub(crate) fn machines_of(model: &Model, task: &TaskModel) -> (Vec<f64>, Vec<f64>) {
    let set = &model.support_sets()[task.set];
    let positions = task.support.iter().map(|&place| set.positions[place]);
    let beta = spread(positions, &task.beta, set.samples);
    let witness = match &task.witness {
        Some(witness) => spread(witness.rows.iter().copied(), &witness.beta, set.samples),
        None => beta.clone(),
    };
    (beta, witness)
}

/// Whether β (or β̂) of a task is in Ω; `all` has one for each row of the set.
pub(crate) fn beta(
    quantity: Quantity,
    task: &Task,
    samples: &Samples,
    all: &[f64],
    domain: &Domain,
    failures: &mut Vec<Failure>,
) {
    let set = task.samples;
    let fail = |problem: String| Failure::new(quantity, problem).of_task(&task.name);
    let mut is_own = vec![false; samples.count()];
    task.rows
        .iter(samples.count())
        .for_each(|row| is_own[row] = true);
    if let Some(row) = (0..all.len()).find(|&row| all[row] != 0.0 && !is_own[row]) {
        let problem = format!("it is {} at a row that is not the task's", all[row]);
        failures.push(fail(problem).at(set, row).numbers(all[row], 0.0));
    }
    let own: Vec<f64> = task
        .rows
        .iter(samples.count())
        .map(|row| all[row])
        .collect();
    let size: f64 = own.iter().map(|value| value.abs()).sum();
    let beyond = |i: usize| (domain.lower[i] - own[i]).max(own[i] - domain.upper[i]);
    let worst = (0..own.len()).max_by(|&a, &b| beyond(a).total_cmp(&beyond(b)));
    let forgiven = if size.is_finite() {
        FEASIBLE * size
    } else {
        0.0
    };
    if let Some(i) = worst.filter(|&i| !(beyond(i) <= forgiven)) {
        let problem = format!(
            "it is {}, which is not between {} and {}",
            own[i], domain.lower[i], domain.upper[i]
        );
        let nearest = own[i].max(domain.lower[i]).min(domain.upper[i]);
        failures.push(
            fail(problem)
                .at(set, task.rows.position(i))
                .numbers(own[i], nearest),
        );
    }
    if let Some(wanted) = domain.sum {
        let sum = own.iter().copied().collect::<Sum>().value();
        if !((sum - wanted).abs() <= forgiven) {
            failures.push(
                fail(format!("it adds up to {sum:.6e}, not to {wanted}")).numbers(sum, wanted),
            );
        }
    }
}
