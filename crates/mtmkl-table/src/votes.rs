//! From decision values to the answer in the user's words.
//!
//! One against all others: the class with the largest value. Each against each: a vote per pair, +1 for the second class where
//! f ≥ 0; margins f / (3 (|f| + 1) K), which together stay below one vote, break ties. Of equals the first class wins.

use mtmkl::machine::Machine;

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

/// Predictions for all rows, in their order.
#[derive(Debug, Clone, Default)]
pub struct Predictions {
    /// The prediction as the user writes it: a class, a number, 1 or -1.
    pub labels: Vec<String>,
    /// The same as a number: the value, or ±1.
    pub numbers: Vec<f64>,
    /// Decision values, one list per row.
    pub decisions: Vec<Vec<f64>>,
    /// What the decision values are called.
    pub names: Vec<String>,
    /// For several classes, each one's value for every row; the largest one wins.
    pub class_values: Vec<Vec<f64>>,
}

impl Predictions {
    /// For several classes, from the decision values of each task.
    pub fn of_classes(classes: &[String], scheme: Multiclass, tasks: &[Vec<f64>]) -> Self {
        let mut predictions = Self {
            names: scheme.task_names(classes),
            class_values: vec![Vec::new(); classes.len()],
            ..Self::default()
        };
        for row in 0..tasks.first().map_or(0, Vec::len) {
            let decisions: Vec<f64> = tasks.iter().map(|task| task[row]).collect();
            let scores = class_scores(scheme, classes.len(), &decisions);
            let best = winner(&scores);
            for (values, score) in predictions.class_values.iter_mut().zip(scores) {
                values.push(score);
            }
            predictions.labels.push(classes[best].clone());
            predictions.numbers.push(best as f64);
            predictions.decisions.push(decisions);
        }
        predictions
    }

    /// From the decision values of each task: of several classes all decide about the same rows; else each about its own, one task after
    /// the other.
    pub fn of_decisions(goal: &Goal, machine: &dyn Machine, tasks: &[Vec<f64>]) -> Self {
        if let Goal::Multiclass { classes, scheme } = goal {
            return Self::of_classes(classes, *scheme, tasks);
        }
        let mut predictions = Self::of_rows(tasks.iter().map(Vec::len).sum());
        for (row, &decision) in tasks.iter().flatten().enumerate() {
            predictions.fill(row, goal, machine, decision);
        }
        predictions
    }

    /// Room for rows that are filled in task by task.
    pub fn of_rows(count: usize) -> Self {
        Self {
            labels: vec![String::new(); count],
            numbers: vec![0.0; count],
            decisions: vec![Vec::new(); count],
            names: vec!["decision".to_string()],
            class_values: Vec::new(),
        }
    }

    /// One row's prediction, from its task's decision value.
    pub fn fill(&mut self, row: usize, goal: &Goal, machine: &dyn Machine, decision: f64) {
        let number = machine.predict(decision);
        self.labels[row] = match goal {
            Goal::Binary { classes } => classes[usize::from(number > 0.0)].clone(),
            _ => number.to_string(),
        };
        self.numbers[row] = number;
        self.decisions[row] = vec![decision];
    }
}
