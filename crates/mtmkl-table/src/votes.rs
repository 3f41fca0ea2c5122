//! From decision values to the answer in the user's words.
//!
//! One against all others: the class with the largest value. Each against each: a vote per pair, +1 for the second class where
//! f ≥ 0; margins f / (3 (|f| + 1) K), which together stay below one vote, break ties. Of equals the first class wins.

use mtmkl::Model;
use mtmkl::machine::Machine;
use mtmkl::select::Sigmoid;

use crate::coupling::coupled;
use crate::goal::{Goal, Multiclass};

/// Each class' score from the decision values of one row.
pub fn class_scores(scheme: Multiclass, classes: usize, decisions: &[f64]) -> Vec<f64> {
    match scheme {
        Multiclass::Ova => decisions.to_vec(),
        Multiclass::Ovo => {
            let mut votes = vec![0.0; classes];
            for ((first, second), decision) in Multiclass::pairs(classes).zip(decisions) {
                votes[if *decision >= 0.0 { second } else { first }] += 1.0;
                let margin = decision / (3.0 * (decision.abs() + 1.0) * classes as f64);
                votes[second] += margin;
                votes[first] -= margin;
            }
            votes
        }
    }
}

/// Each class' probability from those of +1 of each machine, for one row: those of pairs are coupled, those against all others add up to 1.
pub fn class_probabilities(scheme: Multiclass, classes: usize, machines: &[f64]) -> Vec<f64> {
    match scheme {
        Multiclass::Ovo => coupled(classes, machines),
        Multiclass::Ova => {
            let sum: f64 = machines.iter().sum();
            let each = |p: &f64| {
                if sum > 0.0 {
                    p / sum
                } else {
                    1.0 / classes as f64
                }
            };
            machines.iter().map(each).collect()
        }
    }
}

/// The class with the largest score, the first of equals.
pub fn winner(scores: &[f64]) -> usize {
    let mut best = 0;
    for (class, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = class;
        }
    }
    best
}

/// The places of the machines of some classes among those of all.
fn places(scheme: Multiclass, classes: &[usize], all: usize) -> Vec<usize> {
    match scheme {
        Multiclass::Ova => classes.to_vec(),
        Multiclass::Ovo => Multiclass::pairs(classes.len())
            .map(|(first, second)| {
                let (first, second) = (classes[first], classes[second]);
                // Those of the classes before, then those of its own.
                first * (2 * all - first - 1) / 2 + second - first - 1
            })
            .collect(),
    }
}

/// Predictions for all rows, in their order.
#[derive(Debug, Clone, Default)]
pub struct Predictions {
    /// The prediction as the user writes it: a class, a number, 1 or -1.
    pub labels: Vec<String>,
    /// The same as a number: the value, ±1, or the number of one of several classes.
    pub numbers: Vec<f64>,
    /// Decision values, one list per row; not a number where a machine is not about the row's task.
    pub decisions: Vec<Vec<f64>>,
    /// What the decision values are called.
    pub names: Vec<String>,
    /// For several classes, each one's value for every row; the largest one wins. −∞ for those that the row's task does not have.
    pub class_values: Vec<Vec<f64>>,
    /// Each class' probability for every row, where they are known.
    pub probabilities: Vec<Vec<f64>>,
}

impl Predictions {
    /// Room for so many rows, which are filled in task by task.
    pub fn of_rows(goal: &Goal, count: usize) -> Self {
        let (names, class_values) = match goal {
            Goal::Multiclass {
                classes, scheme, ..
            } => (
                scheme.task_names(classes),
                vec![vec![f64::NEG_INFINITY; count]; classes.len()],
            ),
            _ => (vec!["decision".to_string()], Vec::new()),
        };
        Self {
            labels: vec![String::new(); count],
            numbers: vec![0.0; count],
            decisions: vec![vec![f64::NAN; names.len()]; count],
            names,
            class_values,
            probabilities: Vec::new(),
        }
    }

    /// Adds the predictions for further rows.
    pub fn append(&mut self, more: Self) {
        self.labels.extend(more.labels);
        self.numbers.extend(more.numbers);
        self.decisions.extend(more.decisions);
        let lists = [
            (&mut self.class_values, more.class_values),
            (&mut self.probabilities, more.probabilities),
        ];
        for (own, more) in lists {
            for (own, more) in own.iter_mut().zip(more) {
                own.extend(more);
            }
        }
    }

    /// What the machines on sample set `set` say of these rows: `decisions` are those of each machine. With `sigmoids`, one for each, also how
    /// probable each class is.
    pub fn decide(
        &mut self,
        rows: &[usize],
        (goal, machine): (&Goal, &dyn Machine),
        set: usize,
        decisions: &[Vec<f64>],
        sigmoids: Option<&[Sigmoid]>,
    ) {
        if sigmoids.is_some() && self.probabilities.is_empty() {
            self.probabilities = vec![vec![0.0; self.labels.len()]; goal.classes().len()];
        }
        let classes = goal.classes_on(set);
        let places = match goal {
            Goal::Multiclass { scheme, .. } => places(*scheme, &classes, goal.classes().len()),
            _ => Vec::new(),
        };
        for (at, &row) in rows.iter().enumerate() {
            let own: Vec<f64> = decisions.iter().map(|machine| machine[at]).collect();
            let positive = sigmoids.map(|sigmoids| {
                let pairs = sigmoids.iter().zip(&own);
                pairs
                    .map(|(one, &decision)| one.probability(decision))
                    .collect()
            });
            if let Goal::Multiclass { scheme, .. } = goal {
                let between = (classes.as_slice(), places.as_slice());
                self.decide_between(row, goal, between, *scheme, &own, positive);
            } else {
                self.fill(row, goal, machine, own[0], positive);
            }
        }
    }

    /// One row's prediction between these classes.
    fn decide_between(
        &mut self,
        row: usize,
        goal: &Goal,
        (classes, places): (&[usize], &[usize]),
        scheme: Multiclass,
        decisions: &[f64],
        positive: Option<Vec<f64>>,
    ) {
        let scores = class_scores(scheme, classes.len(), decisions);
        let best = classes[winner(&scores)];
        for (&class, score) in classes.iter().zip(scores) {
            self.class_values[class][row] = score;
        }
        let all = goal.classes();
        self.labels[row].clone_from(&all[best]);
        self.numbers[row] = best as f64;
        for (&place, &decision) in places.iter().zip(decisions) {
            self.decisions[row][place] = decision;
        }
        if let Some(positive) = positive {
            let own = class_probabilities(scheme, classes.len(), &positive);
            for (&class, p) in classes.iter().zip(own) {
                self.probabilities[class][row] = p;
            }
        }
    }

    /// From the decision values of each of a model's machines about the rows of its sample set, one sample set after the other.
    pub fn of_decisions(goal: &Goal, model: &Model, decisions: &[Vec<f64>]) -> Self {
        let machine = model.machine().build();
        let own = |set: usize| -> Vec<Vec<f64>> {
            let machines = model.tasks().iter().zip(decisions);
            let machines = machines.filter(|(task, _)| task.set == set);
            machines.map(|(_, values)| values.clone()).collect()
        };
        let sets = 0..model.support_sets().len();
        let by_set: Vec<Vec<Vec<f64>>> = sets.map(own).collect();
        let rows = |own: &Vec<Vec<f64>>| own.first().map_or(0, Vec::len);
        let mut made = Self::of_rows(goal, by_set.iter().map(rows).sum());
        let mut first = 0;
        for (set, own) in by_set.iter().enumerate() {
            let rows: Vec<usize> = (first..first + rows(own)).collect();
            first += rows.len();
            made.decide(&rows, (goal, machine.as_ref()), set, own, None);
        }
        made
    }

    /// One row's prediction, from its task's decision value and the probability of +1.
    fn fill(
        &mut self,
        row: usize,
        goal: &Goal,
        machine: &dyn Machine,
        decision: f64,
        positive: Option<Vec<f64>>,
    ) {
        let number = machine.predict(decision);
        self.labels[row] = match goal {
            Goal::Binary { classes } => classes[usize::from(number > 0.0)].clone(),
            _ => number.to_string(),
        };
        self.numbers[row] = number;
        self.decisions[row] = vec![decision];
        if let Some(positive) = positive {
            self.probabilities[0][row] = 1.0 - positive[0];
            self.probabilities[1][row] = positive[0];
        }
    }
}
